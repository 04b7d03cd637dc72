/*
 * Fields in a server's answer to the handshake of a WebSocket that have one value at most. Internal to HTTP, also to that of
 * HTTP/2.
 *
 * Threads: any.
 */
#ifndef BIDE_SRC_HTTP_EXTENSIONS_H
#define BIDE_SRC_HTTP_EXTENSIONS_H

#include "bide/http_message.h"
#include "bide/websocket.h"

#include <errno.h>

/*
 * Finds the only line of that name: Sec-WebSocket-Accept, -Protocol or -Extensions. Several lines of a list, extensions,
 * are one; a client offers one extension at most, so only one line is not empty. Returns `before` if that is an error.
 * Errors: -EPROTO (there are more).
 */
static inline int http_find_only(int before, const bide_http_field *fields, size_t count,
                                 const char *name, bool is_list, bide_websocket_value *found)
{
    *found = (bide_websocket_value){NULL, 0};
    for (size_t i = 0; i < count; i++) {
        bide_slice value = fields[i].value;
        if ((is_list && value.size == 0) || !bide_http_is(fields[i].name, name))
            continue;
        if (found->data != NULL)
            return before < 0 ? before : -EPROTO;
        *found = (bide_websocket_value){value.data, value.size};
    }
    return before;
}

#endif
