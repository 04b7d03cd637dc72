/*
 * A reader of server-sent events, for clients: it takes the bytes of a response of "text/event-stream", in whatever pieces
 * they come, and finds the events in them. Floor: http.
 *
 *     bide_http_event_reader_init(&self->events, self->memory, sizeof self->memory);
 *     ... a GET with "Accept: text/event-stream"; its response is 200 and of that type ...
 *     do {
 *         bide_try(bide_http_client_read(&self->client, self->buffer, sizeof self->buffer));
 *         self->bytes = (bide_slice){self->buffer, self->client.count};
 *         while ((self->status = bide_http_next_event(&self->events, &self->bytes)) == 1)
 *             ... self->events.type, self->events.data ...
 *         if (self->status < 0)
 *             bide_return(self->status);
 *     } while (self->client.count != 0);
 *
 * The bytes may come from bide_http_client_read, bide_http_fetch_read, bide_http2_request_read or any stream. When the
 * response ends, a client waits for `retry` milliseconds, calls bide_http_event_reader_restart, and asks again, with
 * "Last-Event-ID: `id`" if the id is not empty. A response of 204 says that it is not to ask again.
 *
 * Memory is bounded: an event has as many bytes of data as `memory` has room, a byte for each end of a line included.
 * Comments and unknown fields have no bound, because they are dropped. A server may be silent for as long as it likes: the
 * reads have the caller's deadlines.
 *
 * One thread at a time uses a reader. Texts are as the server has sent them: they should be UTF-8, which is not checked.
 */
#ifndef BIDE_HTTP_EVENT_READER_H
#define BIDE_HTTP_EVENT_READER_H

#include "bide/http_message.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_HTTP_EVENT_ID = 256,  /* bytes that an id may have */
    BIDE_HTTP_EVENT_TYPE = 128 /* bytes that a type may have */
};

/* A reader. The caller's memory. */
typedef struct bide_http_event_reader {
    /* the event at hand: texts stay until the next call */
    bide_slice data; /* lines with "\n" between them */
    bide_slice type; /* "message" if the server has named none */

    bide_slice id;  /* of the last event that had one, for "Last-Event-ID"; empty: there was none */
    bool has_retry; /* the server has said how long a client is to wait before it asks again: */
    uint32_t retry; /* milliseconds; a longer time than fits is the longest that fits */

    /* of the library */
    char *memory; /* the data of the event, and behind it the current line of data */
    size_t size;
    size_t data_size;
    size_t value_size; /* of the current line */
    size_t type_size;
    size_t pending_size;
    uint32_t number; /* of the current "retry" */
    uint8_t state;
    uint8_t field;
    uint8_t name_size;
    uint8_t mark;    /* bytes of a byte order mark that have come */
    bool was_return; /* the last byte was "\r": a "\n" belongs to it */
    bool has_event;  /* the event at hand is still in the memory */
    bool is_ignored; /* the current value has a byte for which its field is ignored */
    int error;
    char name[8];
    char types[BIDE_HTTP_EVENT_TYPE];
    char value[BIDE_HTTP_EVENT_ID];   /* of the current "event" or "id" */
    char pending[BIDE_HTTP_EVENT_ID]; /* becomes the id with the end of the event */
    char ids[BIDE_HTTP_EVENT_ID];
} bide_http_event_reader;

/*
 * Makes a reader. `memory` of `size` bytes stays while it is used.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_http_event_reader_init(bide_http_event_reader *reader, void *memory, size_t size);

/*
 * Begins with a new response: drops an event that has not ended, and an error. The id and the time to wait stay.
 * Threads: one at a time. Progress: wait-free.
 */
void bide_http_event_reader_restart(bide_http_event_reader *reader);

/*
 * Takes bytes from the front of *bytes up to the end of an event. Returns 1 (an event is at hand, and *bytes is what is
 * behind it) or 0 (all bytes were taken; more are needed). An event without data is none.
 * Threads: one at a time. Errors: -EMSGSIZE (an event's data does not fit into the memory, or an id or a type is too long;
 * later calls return the same). Progress: wait-free, linear in the bytes.
 */
int bide_http_next_event(bide_http_event_reader *reader, bide_slice *bytes);

/*
 * Why it is correct: src/http/event_reader.c.
 *
 * Source: the HTML Standard, 9.2.6.
 */

BIDE_EXTERN_C_END

#endif
