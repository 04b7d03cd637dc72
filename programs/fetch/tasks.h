/* The async functions that more than one file knows. */
#ifndef FETCH_TASKS_H
#define FETCH_TASKS_H

#include "fetch.h"

#include <bide/async.h>

/* Ends the connection that there is, and opens one to the origin of the URL. */
async_sized(12288) int connection_open(struct fetch *fetch, struct connection *connection,
                                       const bide_http_url *url);

/* If there is a beginning of that URL, the transfer has it. Errors: -ECANCELED. */
async_sized(2048) int remains_load(struct working *working, struct transfer *transfer);

/* Notes of what the part will be the beginning. Errors: those of files. */
async_sized(2048) int remains_save(struct working *working, const struct transfer *transfer);

async_sized(1024) int remains_remove(const struct place *place);

/*
 * The part is synced and gets the file's name, and so is the folder: what has the name is whole, also
 * when the machine fails. Errors: those of files.
 */
async_sized(2560) int remains_become_whole(struct fetch *fetch, struct working *working);

/* Brings one to its end, which its state tells. An error ends all: the request to stop. */
async_sized(20480) int transfer_run(struct fetch *fetch, struct working *working,
                                    struct transfer *transfer);

#endif
