/*
 * The records of the append-only file and of snapshots: commands in the form in which clients send
 * them. format.h has the form of the files.
 *
 *     SET key value [PXAT milliseconds | KEEPTTL]      APPEND key bytes      DEL key
 *     PEXPIREAT key milliseconds                       PERSIST key           FLUSHALL
 */
#ifndef KV_RECORD_H
#define KV_RECORD_H

#include "bytes.h"

/* For record_set, in place of a time. */
enum { RECORD_STAYS = 0, RECORD_KEEPS_TIME = -1 };

/* Each appends a record. Returns false if memory is exhausted. */
bool record_set(struct buffer *buffer, struct bytes key, struct bytes value, int64_t time);
bool record_append(struct buffer *buffer, struct bytes key, struct bytes value);
bool record_delete(struct buffer *buffer, struct bytes key);
bool record_expire(struct buffer *buffer, struct bytes key, int64_t time);
bool record_persist(struct buffer *buffer, struct bytes key);
bool record_flush(struct buffer *buffer);

#endif
