/*
 * A connection: TLS, if there are certificates, and over it the negotiated version of HTTP.
 *
 *     accepted --> handshake --> requests --> close_notify --> closed
 *
 * Its memory is one allocation: this struct, then that of TLS, then that of HTTP.
 */
#ifndef HTTPD_SESSION_H
#define HTTPD_SESSION_H

#include "worker.h"

bide_declare_body(session_body);

/* The size of that allocation. */
size_t session_size(const struct worker *worker);

#endif
