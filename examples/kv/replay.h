/* Reads what was kept in a file: groups of records. */
#ifndef KV_REPLAY_H
#define KV_REPLAY_H

#include "kv.h"

/*
 * Does what the records of a file say, and puts the size of its whole groups into *good, which is
 * less than the file's *size if the last one is torn. If a group is damaged that has others behind
 * it, the error is -EBADMSG, and *good says where. No file, -ENOENT.
 */
int replay(struct kv *kv, const char *path, int64_t *good, int64_t *size);

#endif
