/* The async functions that more than one file knows. */
#ifndef FETCH_TASKS_H
#define FETCH_TASKS_H

#include "fetch.h"

#include <bide/async.h>

/* Ends the connection that there is, and opens one to the origin of the URL. */
async_sized(12288) int connection_open(struct fetch *fetch, struct connection *connection,
                                       const bide_http_url *url);

/* Brings one to its end, which its state tells. An error ends all: the request to stop. */
async_sized(20480) int transfer_run(struct fetch *fetch, struct working *working,
                                    struct transfer *transfer);

#endif
