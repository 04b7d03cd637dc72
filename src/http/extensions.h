/*
 * The extensions in a server's answer to the handshake of a WebSocket. Internal to HTTP, also to that of HTTP/2.
 *
 * Threads: any.
 */
#ifndef BIDE_SRC_HTTP_EXTENSIONS_H
#define BIDE_SRC_HTTP_EXTENSIONS_H

#include "bide/http_message.h"
#include "bide/websocket.h"

#include <errno.h>

/*
 * Finds the line of Sec-WebSocket-Extensions. Several lines are one list; as a client offers one extension at most, no
 * answer has two members. Errors: -EPROTO (several lines have members).
 */
static inline int http_find_extensions(const bide_http_field *fields, size_t count,
                                       bide_websocket_value *extensions)
{
    *extensions = (bide_websocket_value){NULL, 0};
    for (size_t i = 0; i < count; i++) {
        bide_slice value = fields[i].value;
        if (value.size == 0 || !bide_http_is(fields[i].name, "sec-websocket-extensions"))
            continue;
        if (extensions->size != 0)
            return -EPROTO;
        *extensions = (bide_websocket_value){value.data, value.size};
    }
    return 0;
}

#endif
