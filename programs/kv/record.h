/*
 * The records of the append-only file and of snapshots: commands in the form in which clients send
 * them. format.h has the form of the files.
 *
 *     SET key value [PXAT milliseconds | KEEPTTL]      APPEND key bytes      DEL key
 *     PEXPIREAT key milliseconds                       PERSIST key           FLUSHALL
 *     SETRANGE key offset bytes                        RENAME key key        COPY key key
 *
 *     HSET key field value ...    HDEL key field ...
 *     SADD key member ...         SREM key member ...
 *     ZADD key score member ...   ZREM key member ...
 *     LPUSH key bytes ...         RPUSH key bytes ...          LPOP key count       RPOP key count
 *     LSET key index bytes        LINSERT key index bytes      LREM key count bytes
 *
 * An index is that of an item, from 0 on. LREM's count is as that of the command.
 */
#ifndef KV_RECORD_H
#define KV_RECORD_H

#include "collection.h"

/* For record_set, in place of a time. */
enum { RECORD_STAYS = 0, RECORD_KEEPS_TIME = -1 };

/* Each appends a record. Returns false if memory is exhausted. */
bool record_set(struct buffer *buffer, struct bytes key, struct bytes value, int64_t time);
bool record_append(struct buffer *buffer, struct bytes key, struct bytes value);
bool record_set_range(struct buffer *buffer, struct bytes key, size_t offset, struct bytes part);
/* The key `to` gets the value and the expiry of `from`, which does not stay if it `moves`. */
bool record_copy(struct buffer *buffer, struct bytes from, struct bytes to, bool moves);
bool record_delete(struct buffer *buffer, struct bytes key);
bool record_expire(struct buffer *buffer, struct bytes key, int64_t time);
bool record_persist(struct buffer *buffer, struct bytes key);
bool record_flush(struct buffer *buffer);

/* Of any words; the first is the record's name. */
bool record_words(struct buffer *buffer, const struct bytes *words, size_t count);

/* All elements of a collection, as several records. */
bool record_collection(struct buffer *buffer, struct bytes key, struct collection *collection);

#endif
