/* The async functions, and others of the loop's thread, that more than one file uses. */
#ifndef KV_TASKS_H
#define KV_TASKS_H

#include "kv.h"

#include <bide/async.h>

/*
 * Nanoseconds that background work pauses between two slices. With a pause of 0 the next slice
 * would be ready at once, and the loop would poll for input only rarely.
 */
enum { TASKS_PAUSE = 20000 };

/*
 * Writes groups to the append-only file until the journal is stopped. Its error stops the server.
 */
async_sized(768) int journal_write(struct journal *journal);

/* Syncs the file in each second in which it has grown. */
async_sized(768) int journal_sync_each_second(struct journal *journal);

/*
 * Waits until all changes so far are in the file. Errors: journal->error; or that of the group for
 * which there was no room, if they may not be.
 */
async_sized(160) int journal_wait(struct journal *journal);

/* There is room again: the file has all changes. */
void journal_accept_changes(struct journal *journal);

/*
 * Waits for the next group, for a caller that is not urgent: the writer does not gather for it.
 * `filling` must not be empty, and the journal not full. Ends also if the group is refused.
 */
async_sized(160) int journal_next_group(struct journal *journal);

/*
 * Drops `size` bytes of records from `filling`: the file that has just replaced the old one
 * already has them.
 */
void journal_skip(struct journal *journal, size_t size);

/* Writes all keys, as they are when it starts, to the snapshot's file. One at a time. */
async_sized(2048) int save_snapshot(struct kv *kv);

/* Rewrites the append-only file with the records that the present keys need. One at a time. */
async_sized(2560) int rewrite_journal(struct kv *kv);

/* Saves and rewrites on request and on schedule. */
async_sized(3072) int run_saves(struct kv *kv);

/* Removes keys when they expire. */
async_sized(512) int expire_keys(struct kv *kv);

/* Ends pauses of clients. */
async_sized(512) int end_pauses(struct kv *kv);

/* Frees flushed keys. */
async_sized(256) int free_flushed_keys(struct kv *kv);

/* Serves waiting clients that no turn has served. */
async_sized(256) int serve_waiting_clients(struct kv *kv);

/* Delivers messages that no turn has delivered. */
async_sized(256) int deliver_publications(struct kv *kv);

/* Initializes a server, which serves clients once its listener listens; with TLS, if it `is_secure`. */
int client_server_init(struct kv *kv, bide_server *server, bool is_secure);

/* Opens the directory of --unix-socket, which stays open. It may be that this is not possible later. */
void listeners_find_path(struct kv *kv);

/* Listens on all addresses of the options. An error is reported, and ends the process. */
void listeners_start(struct kv *kv);

/* Prints these on standard output, one a line. */
void listeners_print(const struct kv *kv);

/*
 * Stops receiving from clients: requests that have arrived are answered, and then the clients are
 * disconnected.
 */
void clients_shut_down_input(struct kv *kv);

#endif
