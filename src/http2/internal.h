/*
 * Internal to HTTP/2: types, limits, and the functions that its files call in each other.
 *
 *     serve.c      the coroutines of a connection; turns
 *     session.c    nghttp2's session and callbacks; budgets
 *     request.c    the life of a stream
 *     stream.c     a stream as a bide_stream: the ring of its input, the vectors of its output
 *     head.c       heads and trailers
 *     memory.c     counted memory
 *     common.c     sessions, frames and rings, also of clients
 *
 * Threads: everything runs on the loop's thread of the server.
 */
#ifndef BIDE_SRC_HTTP2_INSIDE_H
#define BIDE_SRC_HTTP2_INSIDE_H

#include "bide/http2.h"
#include "bide/http2_client.h"
#include "bide/schedule.h"
#include "bide/single_consumer_event.h"

#include <nghttp2/nghttp2.h>

/*
 * FRAME     the largest frame that nghttp2 produces at once, with a margin
 * TRAILERS  the maximum size of a request's trailers
 * TURN      the requests that a connection starts in one turn: serve.c, 6
 * SPARES    the pieces of memory that are kept, or one for each connection if these are more, up to
 *           MAX_SPARES
 */
enum {
    HTTP2_FRAME = 16384 + 9 + 256,
    HTTP2_OUTPUT = 4 * HTTP2_FRAME,
    HTTP2_TRAILERS = 2048,
    HTTP2_TURN = 16,
    HTTP2_SPARES = 32,
    MAX_HTTP2_SPARES = 256
};

typedef struct http2_connection http2_connection;
typedef struct http2_stream http2_stream;

/*
 * A request and its response.
 *
 *     head is received --its end--> coroutine runs --handler completes--> coroutine has ended
 *      is_waiting from the end of the head until the coroutine first runs
 *
 * A stream is freed when both of its holders have released it: nghttp2 (is_closed), and its coroutine
 * (has_ended, or never started).
 */
struct http2_stream {
    bide_task task;
    bide_branch branch;
    http2_connection *owner;
    http2_stream *next;
    http2_stream **link;
    int32_t id;

    /* its life: */
    int error; /* the reason for which the stream was stopped; or 0 */
    int status;
    int reject_status; /* the status to respond with instead of running the handler; or 0 */
    bool has_started;  /* the coroutine has been spawned */
    bool has_ended;    /* the coroutine has ended */
    bool is_closed;    /* nghttp2 has released the stream */
    bool is_waiting;   /* the coroutine has not run yet */

    /* its response: */
    bool is_submitted; /* the head of the response was given to nghttp2 */
    bool is_finished;  /* the response is complete: nothing is appended */

    /* the rest of its request, after the handler has ended: */
    bool is_draining; /* the response was sent, and the request has not ended */
    uint64_t dropped; /* bytes */

    /* the head and the trailers of the request: */
    bide_slice method, path, authority, protocol; /* (data is NULL: it is missing) */
    size_t head_size;
    size_t field_count;
    char *trailers; /* NULL: none */
    size_t trailers_size;

    /* the part of the request's body that was received but not read, in a ring: */
    bide_http2_ring_ ring; /* stream.c, 1 */
    bool input_ended;      /* the whole request was received */
    bide_single_consumer_auto_event readable;

    /* the output, vectors of a write, or, at the end, the writer's buffer: */
    const struct iovec *vectors;
    size_t offset; /* in the first vector */
    size_t left;
    struct iovec vector;
    bide_single_consumer_auto_event written;

    bide_http_connection http;
};

/* A coroutine of a connection. */
typedef struct http2_task {
    bide_task task;
    http2_connection *owner;
    bide_branch branch;
    union {
        bide_stream_operation operation;
        struct {
            bide_auto_event_waiter wait;
            bide_with_deadline_operation limited;
        };
    };
    int status;
} http2_task;

/* A connection, from its preface to its end. */
struct http2_connection {
    bide_http2 *http2;
    bide_http_connection *http; /* the connection that was accepted */
    nghttp2_session *session;
    nghttp2_mem memory;
    http2_stream *streams;
    size_t stream_count;

    /* budgets (session.c, 2), and times: */
    uint32_t resets_left;
    size_t preface_left; /* bytes of the preface that were not received */
    bide_http2_frames_ frames;
    int32_t highest;          /* the largest stream that the client has opened; -1: none */
    uint64_t opened;          /* bit i: it has opened the stream `highest` - 2 i (session.c, 5) */
    uint64_t ended;           /* the same: it has ended or reset that stream */
    uint32_t started_in_turn; /* requests that started in this turn. */
    uint64_t idle_deadline;   /* the end of a connection without streams */
    uint64_t write_deadline;  /* the end of the write in progress */
    uint64_t now;             /* the time at which the current turn, write or check started */

    /* its state: */
    int error;          /* the session has failed; or 0 */
    bool is_paused;     /* nghttp2 stopped within the received data because the turn has ended */
    bool has_turn;      /* this connection holds http2->turn */
    bool is_going_away; /* GOAWAY was submitted */
    bool is_stopping;   /* the reader, the writer and the watcher have ended */

    char *output; /* NULL: nothing is gathered */
    size_t output_size;
    const uint8_t *pending; /* output of nghttp2 that did not fit into `output` */
    size_t pending_size;

    bide_auto_event output_needed; /* there may be output */
    bide_auto_event nudge;         /* a deadline is earlier than `armed` */
    uint64_t armed;
    bide_mutex_waiter turn;
    bide_schedule_operation yield;
    bide_scope io;
    bide_scope scope; /* the requests */
    http2_task reader, writer, watcher;
    int status;
};

/* Counted memory. Returns NULL if there is none, or if the limit is reached. */
void *bide_http2_allocate_(bide_http2 *http2, size_t size);
void *bide_http2_allocate_for_stream_(bide_http2 *http2, size_t size);
void bide_http2_deallocate_(bide_http2 *http2, void *memory, size_t size);
nghttp2_mem bide_http2_memory_(bide_http2 *http2);

/*
 * Pieces of one size. Some are kept for the next use, so that memory that each request needs costs no
 * system call.
 */
void *bide_http2_take_piece_(bide_http2_spare_ *spare); /* returns NULL if none is kept */
void bide_http2_give_piece_(bide_http2 *http2, bide_http2_spare_ *spare, void *piece, size_t size);
void bide_http2_free_pieces_(bide_http2 *http2, bide_http2_spare_ *spare, size_t size);

/* The size of a stream, including its buffers. */
size_t bide_http2_stream_size_(const bide_http2 *http2);

/* Opens the session. Returns 0 or a negative errno. */
int bide_http2_open_session_(http2_connection *connection);

/* Reports an incident of the connection, and counts a flood that ends it. */
void bide_http2_report_(http2_connection *connection, const char *reason);
void bide_http2_report_flood_(http2_connection *connection);

/*
 * Charges for the frames that begin in bytes which nghttp2 has taken: session.c, 2. Before that,
 * bide_http2_settle_frames_ adds what earlier frames, and frames that were sent, have earned.
 */
void bide_http2_settle_frames_(http2_connection *connection);
void bide_http2_charge_frames_(http2_connection *connection, const unsigned char *data,
                               size_t size);

/* ---- Shared with clients (common.c) ---- */

/* A session that is to be created. */
typedef struct http2_opening {
    bool is_server;
    void (*set_callbacks)(nghttp2_session_callbacks *callbacks);
    const nghttp2_settings_entry *settings;
    size_t setting_count;
    uint32_t connection_window;
    void *user;
    nghttp2_mem *memory; /* NULL: malloc's */
} http2_opening;

/* Creates a session and submits its first frames. Returns 0 or a negative errno; *session is deleted by the caller. */
int bide_http2_session_create_(nghttp2_session **session, const http2_opening *opening);

typedef struct http2_frame_head {
    uint8_t type;
    uint8_t flags;
    int32_t id;
} http2_frame_head;

typedef void http2_see_frame(void *user, const http2_frame_head *head);

/*
 * Charges the budget, up to `max`, for frames that begin in received bytes, and passes the head of each to `see` (NULL:
 * none). Useful frames, and frames that were sent, have earned some before. Returns false if the budget is exhausted.
 */
bool bide_http2_frames_charge_(bide_http2_frames_ *frames, uint32_t max, const unsigned char *data,
                               size_t size, http2_see_frame *see, void *user);
bool bide_http2_frames_settle_(bide_http2_frames_ *frames, uint32_t max, uint64_t charge);

/*
 * Rings. The window that the peer may use is the default one until it has acknowledged the settings. Giving bytes back
 * takes those that were opened early from *opened, and returns for how many the connection's window is still to be opened.
 */
size_t bide_http2_ring_window_(nghttp2_session *session, int32_t id, size_t window);
void bide_http2_ring_put_(bide_http2_ring_ *ring, const char *data, size_t size);
size_t bide_http2_ring_take_(bide_http2_ring_ *ring, char *data, size_t size);
size_t bide_http2_ring_settle_(bide_http2_ring_ *ring, size_t count, size_t *opened);

/* Translates nghttp2's errors. */
int bide_http2_errno_(int error);

/* A field's value without the blanks at its ends, which are no part of it (RFC 9110, 5.5; RFC 9113, 8.2.1). */
bide_slice bide_http2_trim_(bide_slice value);

/*
 * Handles the result of a call of nghttp2: a fatal error ends the connection, and other results may
 * have produced output.
 */
void bide_http2_note_(http2_connection *connection, int error);

/* The life of a stream: request.c. */
http2_stream *bide_http2_make_stream_(http2_connection *connection, int32_t id);
void bide_http2_free_stream_(http2_stream *stream); /* if both holders have released it. */
void bide_http2_begin_stream_(
    http2_stream *stream); /* the head is complete: spawns the coroutine. */
void bide_http2_stop_stream_(http2_stream *stream, int error); /* nghttp2 has released it. */
void bide_http2_expire_stream_(http2_stream *stream);          /* the deadline has passed */
void bide_http2_end_stream_(http2_stream *stream);             /* the response is complete */
void bide_http2_reset_stream_(http2_stream *stream, uint32_t code);
void bide_http2_take_leave_(
    http2_connection *connection); /* accepts no more requests and sends GOAWAY */

/* The request's head and trailers, field by field, and the end of the head. */
void bide_http2_take_field_(http2_stream *stream, bide_slice name, bide_slice value);
void bide_http2_take_trailer_(http2_stream *stream, bide_slice name, bide_slice value);
void bide_http2_end_head_(http2_stream *stream, bool has_ended);

/* The response was sent before the request has ended: the rest of the request is dropped. */
void bide_http2_drain_stream_(http2_stream *stream);

/* Drops received bytes of the body, whose handler has ended. */
void bide_http2_drop_body_(http2_stream *stream, size_t size);

/* Removes all bytes from the ring. Returns how many of them still take part of the connection's window. */
size_t bide_http2_empty_ring_(http2_stream *stream);

/* Stores received bytes of the body. Returns 0 or -ENOMEM. */
int bide_http2_take_body_(http2_stream *stream, const char *data, size_t size);

/*
 * Submits the head of a response. Changes the text at `data`. Returns the size of the head, or a
 * negative errno.
 */
ptrdiff_t bide_http2_submit_head_(http2_stream *stream, char *data, size_t size);

/* Submits the trailers of a response. Changes the text at `data`. */
int bide_http2_submit_trailers_(http2_stream *stream, char *data, size_t size);

/*
 * Callbacks of nghttp2: the size of the next part of a body, and its copy to the connection's
 * output.
 */
ssize_t bide_http2_give_body_(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                              uint32_t *flags, nghttp2_data_source *source, void *connection);
int bide_http2_put_body_(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                         size_t length, nghttp2_data_source *source, void *connection);

/* The bide_stream of the exchange. */
bide_stream bide_http2_stream_of_(http2_stream *stream);

#endif
