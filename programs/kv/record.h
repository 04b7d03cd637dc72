/*
 * What stands in the append-only file and in a snapshot: commands as a client would send them, in
 * groups. Each group ends with a checksum of it, GROUP and sixteen hexadecimal digits. A group
 * counts as a whole or not at all.
 *
 *     SET key value [PXAT milliseconds | KEEPTTL]      APPEND key bytes      DEL key
 *     PEXPIREAT key milliseconds                       PERSIST key           FLUSHALL
 */
#ifndef KV_RECORD_H
#define KV_RECORD_H

#include "bytes.h"

/* Of SET, in place of a time. */
enum { RECORD_STAYS = 0, RECORD_KEEPS_TIME = -1 };

/* Each appends a record. False: there is no memory. */
bool record_set(struct buffer *buffer, struct bytes key, struct bytes value, int64_t time);
bool record_append(struct buffer *buffer, struct bytes key, struct bytes value);
bool record_delete(struct buffer *buffer, struct bytes key);
bool record_expire(struct buffer *buffer, struct bytes key, int64_t time);
bool record_persist(struct buffer *buffer, struct bytes key);
bool record_flush(struct buffer *buffer);

/* Ends the group that begins where the buffer does. */
bool record_group(struct buffer *buffer);

/* The checksum of a group, and the size of the record that has it. */
uint64_t record_sum(struct bytes group);
enum { RECORD_GROUP_SIZE = sizeof "*2\r\n$5\r\nGROUP\r\n$16\r\n0123456789abcdef\r\n" - 1 };

#endif
