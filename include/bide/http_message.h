/*
 * The common part of an HTTP/1.1 server and client: texts, fields, methods, dates, and the two
 * halves of a message in transit. Floor: http.
 *
 * Texts point into the buffer of a connection. They are not terminated, and stay valid until their
 * exchange has ended. The connection's loop uses all of this, on that loop's thread.
 *
 * A bide_http_input decodes the body of a message, a bide_http_output encodes a message. Servers
 * (http.h) and clients (http_client.h) have one of each, and functions of their own for them.
 *
 * Why it is correct: src/http/input.c, src/http/output.c, and src/http/parse.c.
 *
 * Source: RFC 9110 and RFC 9112.
 */
#ifndef BIDE_HTTP_MESSAGE_H
#define BIDE_HTTP_MESSAGE_H

#include "bide/auto_event.h"
#include "bide/stop.h"
#include "bide/stream.h"

BIDE_EXTERN_C_BEGIN

/* Bytes in a buffer. */
typedef struct bide_slice {
    const char *data;
    size_t size;
} bide_slice;

/* One line of a head, or of the trailers. */
typedef struct bide_http_field {
    bide_slice name;
    bide_slice value;
} bide_http_field;

typedef enum bide_http_method {
    BIDE_HTTP_OTHER, /* the name of the method says which */
    BIDE_HTTP_GET,
    BIDE_HTTP_HEAD,
    BIDE_HTTP_POST,
    BIDE_HTTP_PUT,
    BIDE_HTTP_PATCH,
    BIDE_HTTP_DELETE,
    BIDE_HTTP_OPTIONS,
    BIDE_HTTP_CONNECT,
    BIDE_HTTP_TRACE,
    BIDE_HTTP_METHODS
} bide_http_method;

/* A length that nobody knows yet; a limit that there is not. */
#define BIDE_HTTP_UNKNOWN UINT64_MAX

/*
 * Are these the same, but for upper and lower case? `name` is a C string.
 * Threads: any. Progress: wait-free.
 */
bool bide_http_is(bide_slice text, const char *name);

/*
 * The value of the first field of that name; its data is NULL if there is none.
 * Threads: any. Progress: wait-free, linear in the fields.
 */
bide_slice bide_http_find(const bide_http_field *fields, size_t count, const char *name);

/*
 * Whether a list, such as that of "Connection", contains this token.
 * Threads: any. Progress: wait-free.
 */
bool bide_http_has_token(bide_slice list, const char *token);

/*
 * The phrase that goes with a status: "Not Found" with 404. An empty one, if nobody has agreed on
 * any.
 * Threads: any. Progress: wait-free.
 */
const char *bide_http_reason(int status);

enum { BIDE_HTTP_DATE_SIZE = 29 };

/*
 * Writes a time, in seconds since 1970, as in "Sun, 06 Nov 1994 08:49:37 GMT": those 29 bytes, and
 * no more. The year is 0 to 9999.
 * Threads: any. Progress: wait-free.
 */
void bide_http_print_date(char date[BIDE_HTTP_DATE_SIZE], int64_t time);

/*
 * Reads a date, in the form above or one of the two older ones, into *time.
 * Threads: any. Errors: -EINVAL (it is none). Progress: wait-free.
 */
int bide_http_parse_date(bide_slice date, int64_t *time);

/* When what a connection waits for is to end. Of the library. */
typedef struct bide_http_watch {
    uint64_t until;    /* the earliest of the following; or what the connection itself waits for */
    uint64_t waits[2]; /* of the read and of the write that wait now; BIDE_FOREVER: none does */
    uint64_t whole;         /* the exchange */
    uint64_t between;       /* nanoseconds between two bytes; BIDE_FOREVER: without an end */
    uint64_t armed;         /* when it is looked at next */
    bide_auto_event *nudge; /* is set if that is too late */
} bide_http_watch;

/* A body that comes in. Of the library, but for what the server's and the client's functions say. */
typedef struct bide_http_input {
    bide_task task; /* of the operation that reads from it */
    bide_reader *reader;
    bide_http_watch *watch; /* or NULL */
    size_t base;            /* where in the buffer its bytes may stand; the head is before */
    size_t scanned;         /* of the line, or lines, that are looked at */
    uint64_t left;          /* bytes of the body, or of the chunk, that are to come */
    uint64_t taken;         /* bytes of the body that were read */
    uint64_t max;           /* bytes that it may have */
    bide_http_field *fields;
    size_t field_count;
    size_t trailer_count; /* behind the fields of the head */
    size_t max_fields;
    uint8_t state;
    bool is_bounded;    /* by its end alone, that of the connection */
    bool must_continue; /* the other side waits for "100 Continue" before it sends the body */
    int error;          /* what it is spoilt with; or 0 */

    /* of that operation */
    char *data;
    size_t size;
    size_t count; /* bytes that were read, whatever it ended with */
    int status;
    bool is_direct;
    struct bide_http_output *output; /* for "100 Continue" */
} bide_http_input;

/* A message that goes out. Of the library. */
typedef struct bide_http_output {
    bide_task task; /* of the operation that writes to it */
    bide_writer *writer;
    bide_http_watch *watch; /* or NULL */
    size_t head;            /* where in the buffer its head begins */
    size_t chunk;           /* where the chunk begins that is being gathered; SIZE_MAX: none */
    uint64_t left;          /* bytes of the body that are to follow */
    uint64_t length;        /* of the body, that was promised; or BIDE_HTTP_UNKNOWN */
    uint64_t body;          /* bytes of the body that were written */
    uint8_t state;
    uint8_t framing;
    bool is_request;
    bool is_old;      /* the other side is of HTTP/1.0 */
    bool is_framed;   /* what carries it says where its body ends */
    bool closes;      /* the connection ends after it */
    bool has_no_body; /* whatever is written: HEAD, 204 and 304 */
    bool is_bare;     /* its head says nothing of a body */
    bool is_sent;     /* some of it may have left */
    int error;        /* it is spoilt; or 0 */

    /* of that operation */
    const char *data;
    size_t size;
    size_t count; /* bytes of `data` that were taken, whatever it ended with */
    int status;
    bool is_flush;
    bool is_interim; /* the flush of an interim response */
    bool is_sending; /* a piece is under way */
    bool is_unfinished; /* it was made, and has not taken all its bytes */
    char line[20];
    struct iovec vectors[3];
    union {
        bide_writer_operation write;
        bide_auto_event_waiter returning;
    };

    /* of the output of earlier messages, which another coroutine may send meanwhile */
    bool is_sent_early; /* it is being sent: the buffer's bytes keep their place */
    int early_status;   /* of the last such send */
    bide_auto_event returned;
    bool has_continue;  /* "100 Continue" was put into the buffer, and may be there */
    bool is_sent_by_read; /* the read that waits for "100 Continue" sends it itself */
    bide_auto_event continued;
    bide_auto_event_waiter continuing;
    bide_auto_event *early_sender; /* starts that coroutine; NULL: there is none, or it sends nothing more */
    bide_stop_source *early_pause; /* ends the read that it does instead; NULL: it does not read */
} bide_http_output;

BIDE_EXTERN_C_END

#endif
