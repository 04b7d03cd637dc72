/* The async functions that more than one file knows. */
#ifndef KV_TASKS_H
#define KV_TASKS_H

#include "kv.h"

#include <bide/async.h>

/*
 * Nanoseconds that work beside the clients pauses between two slices. After a pause of 0 the next
 * slice is ready at once, and the loop would look for what has come only now and then.
 */
enum { TASKS_PAUSE = 20000 };

/* Writes what comes into the append-only file, until it is to end. Its error ends the server. */
async_sized(768) int journal_write(struct journal *journal);

/* Syncs it each second in which it has grown. */
async_sized(768) int journal_sync_each_second(struct journal *journal);

/* Waits until all changes that were made are in the file. */
async_sized(160) int journal_wait(struct journal *journal);

/* The same, for what may be late: no group is gathered for it. There are such changes. */
async_sized(160) int journal_next_group(struct journal *journal);

/*
 * So many bytes of records that wait to be written are in the file already, since it was replaced
 * by one that was begun after them.
 */
void journal_skip(struct journal *journal, size_t size);

/* Writes all keys, as they are when it begins, to the snapshot's file. One at a time. */
async_sized(2048) int save_snapshot(struct kv *kv);

/* Writes the append-only file anew, with what is needed to have the keys. One at a time. */
async_sized(2560) int rewrite_journal(struct kv *kv);

/* Saves and rewrites when it is wanted, and when it is time. */
async_sized(3072) int keep_saving(struct kv *kv);

/* Removes keys when their time has come. */
async_sized(512) int keep_expiring(struct kv *kv);

/* Frees what was flushed. */
async_sized(256) int keep_sweeping(struct kv *kv);

/* Serves the clients that come to kv->server, which is to listen already. */
int client_server_init(struct kv *kv);

/* Clients send nothing more: what has come from them is answered, and they end. */
void clients_end(struct kv *kv);

#endif
