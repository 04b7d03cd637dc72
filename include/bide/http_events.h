/*
 * Server-sent events: a response that never ends by itself, for EventSource in browsers, and for http_event_reader.h.
 * Floor: http.
 *
 *     bide_coroutine(news_body)
 *     {
 *         bide_begin(news_body, struct news *self);
 *         if (bide_http_start_events(&self->exchange) < 0)
 *             bide_return(-ENOBUFS);
 *         for (;;) {
 *             bide_try(bide_with_timeout(&self->timeout, BIDE_SECONDS(20), bide_recv...));
 *             bide_try(bide_http_send_event(&self->send, &self->exchange, &(bide_http_event){
 *                 .id = {self->id, self->id_size}, .data = {self->text, self->size}}));
 *         }
 *         bide_end();
 *     }
 *
 * A client that connects again sends the id of the last event that it has received in "Last-Event-ID":
 * bide_http_request_field. When the client leaves, a handler that waits is cancelled (http_server.h, "Clients that
 * leave"). Proxies end connections that are silent for long: an event with only a comment, every 15 seconds or so, keeps
 * them open, and clients ignore it.
 */
#ifndef BIDE_HTTP_EVENTS_H
#define BIDE_HTTP_EVENTS_H

#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

/* One event. A text whose data is NULL is left out. Texts are UTF-8; this is not checked. */
typedef struct bide_http_event {
    bide_slice data; /* may have several lines, which end with "\n", "\r\n" or "\r". Without it, clients dispatch nothing */
    bide_slice type; /* without it, clients dispatch "message" */
    bide_slice id;   /* an empty one resets the client's "Last-Event-ID" */
    bide_slice comment;  /* is ignored by clients; may have several lines */
    bool has_retry;
    uint32_t retry; /* milliseconds: how long a client waits before it connects again */
} bide_http_event;

/* One of these. The caller's memory until it has ended. */
typedef struct bide_http_event_operation {
    bide_task task;
    bide_http_exchange *exchange;
    bide_http_event event;
    int status;
    uint8_t field;
    uint8_t part;
    bool has_more;
    bide_slice line;
    bide_slice rest;
    char digits[20];
} bide_http_event_operation;

/*
 * Starts the response: its type, "Cache-Control: no-store", and no deadline. Before any field ends the head. The head is
 * sent with the first event.
 * Threads: the loop's. Errors: -EINVAL (there is a response already), -EMSGSIZE (the head does not fit). Progress:
 * wait-free.
 */
int bide_http_start_events(bide_http_exchange *exchange);

/*
 * Sends an event, whose texts stay until it has ended.
 * Threads: the loop's, one at a time. Errors: -EINVAL (the type or the id contains a line end, or the id a NUL; nothing
 * was sent), those of bide_http_write. Suspends: if the client is slow. Cancel-safe: no, the connection ends after it.
 * Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_send_event(bide_http_event_operation *operation,
                                   bide_http_exchange *exchange, const bide_http_event *event);

/*
 * Why it is correct: src/http/events.c.
 *
 * Source: the HTML Standard, 9.2.
 */

BIDE_EXTERN_C_END

#endif
