/* Reads a file of groups of records and applies them. */
#ifndef KV_REPLAY_H
#define KV_REPLAY_H

#include "kv.h"

/* Sizes of a file, in bytes. */
struct extent {
    int64_t good; /* the intact groups at its beginning */
    int64_t used; /* without the zeros at its end */
    int64_t size;
};

/*
 * Applies the records of a file. Behind the intact groups there may be zeros, which a killed server
 * leaves, or a torn group, or both. If an intact group follows a damaged one, the error is
 * -EBADMSG, and `good` is the offset of the damage. If there is no file, it is -ENOENT.
 */
int replay(struct kv *kv, const char *path, struct extent *extent);

#endif
