/*
 * One connection: TLS, if there are certificates, and over it the version of HTTP that was agreed on.
 *
 *     accepted --> handshake --> requests --> close_notify --> closed
 *
 * Its memory is one piece: this struct, then that of TLS, then that of HTTP.
 */
#ifndef HTTPD_SESSION_H
#define HTTPD_SESSION_H

#include "worker.h"

bide_declare_body(session_body);

/* The size of all of it. */
size_t session_size(const struct worker *worker);

#endif
