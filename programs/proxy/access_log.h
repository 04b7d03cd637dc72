/* The lines of requests in the log, and their counts. */
#ifndef PROXY_ACCESS_LOG_H
#define PROXY_ACCESS_LOG_H

#include "forward.h"

/* Copies the request's line, whose text may be gone when the line is written. */
void access_log_note(struct forward *self);

/* Writes the line of a finished exchange. */
void access_log_ended(bide_http_exchange *exchange, int error);

/* Writes the line of a request that was refused before its exchange had begun. */
void access_log_refused(bide_http_connection *connection, bide_slice line, int status);

#endif
