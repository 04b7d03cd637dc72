/*
 * The records of the append-only file and of snapshots: commands in the form in which clients send
 * them, in groups. A group ends with its checksum, the record GROUP and sixteen hexadecimal digits.
 * A group counts as a whole or not at all.
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

/* Appends the checksum to the group, which is the buffer's content. */
bool record_group(struct buffer *buffer);

/* The checksum of a group, and the size of the record with the checksum. */
uint64_t record_sum(struct bytes group);
enum { RECORD_GROUP_SIZE = sizeof "*2\r\n$5\r\nGROUP\r\n$16\r\n0123456789abcdef\r\n" - 1 };

#endif
