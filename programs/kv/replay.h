/* Reads what was kept in a file: groups of records. */
#ifndef KV_REPLAY_H
#define KV_REPLAY_H

#include "kv.h"

/* Sizes of a file, in bytes. */
struct extent {
    int64_t good; /* of its whole groups */
    int64_t used; /* without zeros at its end */
    int64_t size;
};

/*
 * Does what the records of a file say. What there is behind its whole groups is zeros, which a server
 * that was killed has left, or a group that is torn, or both. If a group is damaged that has others
 * behind it, the error is -EBADMSG, and `good` says where. No file, -ENOENT.
 */
int replay(struct kv *kv, const char *path, struct extent *extent);

#endif
