/* What the files of HTTP/2 have of each other. */
#ifndef BIDE_SRC_HTTP2_INSIDE_H
#define BIDE_SRC_HTTP2_INSIDE_H

#include "bide/http2.h"
#include "bide/schedule.h"
#include "bide/single_consumer_event.h"

#include <nghttp2/nghttp2.h>

enum {
    HTTP2_FRAME = 16384 + 9 + 256, /* the longest that nghttp2 gives at a time, and some */
    HTTP2_OUTPUT = 2 * HTTP2_FRAME,
    HTTP2_TRAILERS = 2048, /* bytes of a request's */
    HTTP2_TURN = 16,       /* requests of a connection that are begun in one: serve.c, 6 */
    HTTP2_SPARES = 32,     /* pieces that are kept; as many as there are connections, if that is more */
    MAX_HTTP2_SPARES = 256
};

typedef struct http2_connection http2_connection;
typedef struct http2_stream http2_stream;

/*
 * A request and its response.
 *
 *     head comes --its end--> runs --the handler has ended--> ends
 *
 * It is freed when its coroutine has ended (has_ended), or none was begun, and nghttp2 knows it no
 * more (is_closed).
 */
struct http2_stream {
    bide_task task;
    bide_branch branch;
    http2_connection *owner;
    http2_stream *next;
    http2_stream **before;
    int32_t id;
    int error; /* what cut it short; or 0 */
    int status;
    int refusal;       /* the status of the response in the handler's place; or 0 */
    bool has_begun;    /* its coroutine has */
    bool has_ended;    /* ... and has ended */
    bool is_closed;    /* nghttp2 knows it no more */
    bool is_waiting;   /* ... to run for the first time */
    bool is_submitted; /* the response's head is */
    bool is_finished;  /* nothing is added to the response any more */

    /* the head of the request, and its trailers */
    bide_slice method, path, authority;
    size_t head_size;
    size_t field_count;
    char *trailers; /* NULL: none */
    size_t trailers_size;

    /* the body that comes in: a ring */
    char *ring; /* NULL: nothing has come yet */
    size_t ring_size;
    size_t begin;
    size_t count;
    bool is_whole; /* no more comes */
    bide_single_consumer_auto_event came;

    /* what is to go out: the operation's, or, at the end, the writer's buffer */
    const struct iovec *vectors;
    size_t offset; /* in the first */
    size_t left;
    struct iovec only;
    bide_single_consumer_auto_event gone;

    bide_http_connection http;
};

/* One coroutine of a connection's. */
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

/* A connection. It is made when its preface has come. */
struct http2_connection {
    bide_http2 *http2;
    bide_http_connection *http; /* where it was accepted */
    nghttp2_session *session;
    nghttp2_mem memory;
    http2_stream *streams;
    size_t live;
    uint32_t resets_left;
    uint32_t idle_left;
    uint32_t begun;       /* requests of this turn of reading */
    uint64_t until;       /* without streams: when it ends */
    uint64_t write_until; /* what is being sent */
    uint64_t now;         /* at the beginning of a turn of reading, writing or watching */
    int error;            /* it is lost; or 0 */
    bool is_paused;       /* its turn is over before what has come is taken in */
    bool has_turn;        /* no other takes in anything */
    bool is_leaving;      /* GOAWAY was said */
    bool is_joining;      /* what reads and writes has ended */

    char *output; /* NULL: nothing is gathered */
    size_t filled;
    const uint8_t *rest; /* what nghttp2 has given, and found no room */
    size_t rest_size;

    bide_auto_event work;  /* there may be something to be sent */
    bide_auto_event nudge; /* a time is earlier than was known */
    uint64_t armed;
    bide_mutex_waiter turn;
    bide_schedule_operation after_others;
    bide_scope io;
    bide_scope scope; /* of streams */
    http2_task reader, writer, watcher;
    int status;
};

/* Memory that is counted. NULL: there is none, or it would be too much. */
void *bide_http2_allocate_(bide_http2 *http2, size_t size);
void *bide_http2_allocate_for_stream_(bide_http2 *http2, size_t size);
void bide_http2_deallocate_(bide_http2 *http2, void *memory, size_t size);
nghttp2_mem bide_http2_memory_(bide_http2 *http2);

/* The same of pieces of one size, some of which are kept: what is asked for by each request costs no call of the system. */
void *bide_http2_take_piece_(bide_http2_spare_ *spare); /* NULL: none is kept */
void bide_http2_give_piece_(bide_http2 *http2, bide_http2_spare_ *spare, void *piece, size_t size);
void bide_http2_free_pieces_(bide_http2 *http2, bide_http2_spare_ *spare, size_t size);

/* What a stream has, with all its memory. */
size_t bide_http2_stream_size_(const bide_http2 *http2);

/* The session: 0 or a negative errno. */
int bide_http2_open_session_(http2_connection *connection);

/* nghttp2's errors as ours. */
int bide_http2_errno_(int error);

/* The connection is lost, if `error` is one of nghttp2's that means that; there may be something to be sent. */
void bide_http2_note_(http2_connection *connection, int error);

/* A stream. */
http2_stream *bide_http2_make_stream_(http2_connection *connection, int32_t id);
void bide_http2_free_stream_(http2_stream *stream);            /* if nothing has it any more */
void bide_http2_begin_stream_(http2_stream *stream);           /* its head is whole */
void bide_http2_stop_stream_(http2_stream *stream, int error); /* nghttp2 knows it no more */
void bide_http2_expire_stream_(http2_stream *stream);          /* its time is over */
void bide_http2_end_stream_(http2_stream *stream);             /* nothing more is written */
void bide_http2_reset_stream_(http2_stream *stream, uint32_t code);
void bide_http2_take_leave_(http2_connection *connection); /* takes no more requests, and says so */

/* The request's head and trailers, field by field, and the end of the head. */
void bide_http2_take_field_(http2_stream *stream, bide_slice name, bide_slice value);
void bide_http2_take_trailer_(http2_stream *stream, bide_slice name, bide_slice value);
void bide_http2_end_head_(http2_stream *stream, bool has_ended);

/* Bytes of its body have come: 0, or -ENOMEM. */
int bide_http2_take_body_(http2_stream *stream, const char *data, size_t size);

/*
 * Submits the head of a response, whose text stands at `data` and may be changed: how many bytes it
 * was, or a negative errno.
 */
ptrdiff_t bide_http2_submit_head_(http2_stream *stream, char *data, size_t size);

/* ... and its trailers, of lines. */
int bide_http2_submit_trailers_(http2_stream *stream, char *data, size_t size);

/* What a stream's body is read from, and put into the connection's output. */
ssize_t bide_http2_give_body_(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                        uint32_t *flags, nghttp2_data_source *source, void *connection);
int bide_http2_put_body_(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                   size_t length, nghttp2_data_source *source, void *connection);

/* The bide_stream that the exchange reads from and writes to. */
bide_stream bide_http2_stream_of_(http2_stream *stream);

#endif
