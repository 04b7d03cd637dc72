/* Reads a file of groups of records, checks it, and applies the records. */
#ifndef KV_REPLAY_H
#define KV_REPLAY_H

#include "format.h"
#include "keyspace.h"

enum replay_state {
    REPLAY_INTACT,
    REPLAY_TORN,    /* the end belongs to changes that were never on the disk as a whole */
    REPLAY_DAMAGED, /* anything else */
    REPLAY_EMPTY,   /* no bytes at all */
    REPLAY_FOREIGN,
    REPLAY_OLD,
    REPLAY_NEWER,
    REPLAY_OTHER_KIND
};

/* What was found in a file. Sizes are in bytes. */
struct replayed {
    enum replay_state state;
    int64_t
        good; /* the intact frames at its beginning; the offset of the damage, if there is any */
    int64_t used; /* without the zeros at its end */
    int64_t size;
    uint64_t groups, records;
    bool ends_with_mark; /* the intact frames do */
    unsigned kind, version;
    struct file_identity identity;
};

/*
 * Checks the content of a file and applies its records to `keys`, which may be NULL. `kind` is the
 * wanted kind of file, or 0. Behind the intact frames of a journal there may be zeros, which a
 * killed server leaves, or a torn tail, or both. A snapshot must be complete. Returns 0, or -ENOMEM.
 */
int replay_data(struct keyspace *keys, char *data, size_t size, unsigned kind,
                struct replayed *replayed);

/*
 * The same for a file that is open for reading. Returns 0 or a negative errno; -EINVAL if it is no
 * regular file.
 */
int replay_file(struct keyspace *keys, int fd, unsigned kind, struct replayed *replayed);

/*
 * Prints why a file is not used as it is, without its name; the text is static or in `buffer`. Not
 * for an intact one.
 */
const char *replay_explain(const struct replayed *replayed, char *buffer, size_t size);

#endif
