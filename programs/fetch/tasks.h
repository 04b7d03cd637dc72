/* The async functions of fetch that more than one file uses. */
#ifndef FETCH_TASKS_H
#define FETCH_TASKS_H

#include "fetch.h"

#include <bide/async.h>

/*
 * Loads the state of an earlier part of that URL into the transfer, if there is one. Errors:
 * -ECANCELED.
 */
async_sized(2048) int partial_load(struct worker *worker, struct transfer *transfer);

/* Records the URL and version of the part. Errors: those of files. */
async_sized(2048) int partial_save(struct worker *worker, const struct transfer *transfer);

async_sized(1024) int partial_remove(const struct paths *paths);

/*
 * Syncs the part, gives it its final name, and syncs the directory. So a file with that name is
 * complete even after a crash of the machine. Errors: those of files.
 */
async_sized(2560) int partial_commit(struct fetch *fetch, struct worker *worker);

/*
 * Runs a transfer, whose state shows the result. An error stops the worker: it is the cancellation.
 */
async_sized(8192) int transfer_run(struct fetch *fetch, struct worker *worker,
                                   struct transfer *transfer);

#endif
