/*
 * WebSockets (RFC 6455): messages in both directions over any stream, as a server or as a client.
 * Floor: websocket.
 *
 *     bide_websocket_init(&self->websocket, stream, &(bide_websocket_options){
 *         .role = BIDE_WEBSOCKET_SERVER,
 *         .read_buffer = self->in, .read_buffer_size = sizeof self->in,
 *         .write_buffer = self->out, .write_buffer_size = sizeof self->out});
 *     for (;;) {
 *         bide_try_or_break(bide_websocket_recv(&self->receive, &self->websocket, self->text,
 *                                                  sizeof self->text));
 *         bide_try(bide_websocket_send(&self->send, &self->websocket, self->receive.kind,
 *                                      self->text, self->receive.count));
 *     }
 *     ... self->websocket.end.code ...
 *     bide_try(bide_websocket_close(&self->close, &self->websocket, BIDE_WEBSOCKET_NORMAL, ""));
 *
 * It begins where the handshake has ended: with a stream, and the bytes that the peer has already
 * sent. The handshake is HTTP's; functions here compute and check its headers' values.
 *
 * One coroutine receives; any number send, in the order of their calls. A sender of fragments keeps
 * its turn from the first fragment to the last; pings and closes go between frames. The receiver
 * answers pings and closes while it waits, and each sender does in its turn, without blocking on a
 * peer that only sends.
 *
 * A websocket, its two buffers and its operations are the caller's memory. Nothing allocates. One
 * thread at a time uses it: a loop's, or a strand's on a pool. The caller closes the stream at the
 * end; a server does so first. "How a receive ends" is below.
 */
#ifndef BIDE_WEBSOCKET_H
#define BIDE_WEBSOCKET_H

#include "bide/deadline.h"
#include "bide/detail/beside.h"
#include "bide/event.h"
#include "bide/mutex.h"
#include "bide/stream.h"
#include "bide/task.h"
#include "bide/when.h"

BIDE_EXTERN_C_BEGIN

/* ---- The handshake ---- */

/* The value of a header, of the caller's memory; data is NULL if there is no such header. */
typedef struct bide_websocket_value {
    const char *data;
    size_t size;
} bide_websocket_value;

enum { BIDE_WEBSOCKET_KEY = 24, BIDE_WEBSOCKET_ACCEPT = 28 };

/* The headers of a request or its answer that are about it. */
typedef struct bide_websocket_headers {
    bide_websocket_value upgrade;    /* Upgrade */
    bide_websocket_value connection; /* Connection */
    bide_websocket_value version;    /* Sec-WebSocket-Version; of a request */
    bide_websocket_value key;        /* Sec-WebSocket-Key; of a request */
    bide_websocket_value accept;     /* Sec-WebSocket-Accept; of an answer */
    bide_websocket_value protocol;   /* Sec-WebSocket-Protocol */
    bide_websocket_value extensions; /* Sec-WebSocket-Extensions */
} bide_websocket_headers;

/*
 * For servers: is this a request for a WebSocket, as version 13 has it? If so, `accept` gets the
 * value of Sec-WebSocket-Accept, with a zero behind it. The method, which is to be GET, and the
 * version of HTTP, 1.1 or later, are the caller's to check; so is the Origin of a page that others
 * may not open one from.
 * Threads: any. Errors: -EINVAL (it is none; the answer is 400), -EPROTONOSUPPORT (of another
 * version; the answer is 426 with "Sec-WebSocket-Version: 13"). Progress: wait-free.
 */
int bide_websocket_check_request(const bide_websocket_headers *headers,
                                 char accept[BIDE_WEBSOCKET_ACCEPT + 1]);

/*
 * For clients: a new value of Sec-WebSocket-Key, with a zero behind it.
 * Threads: any. Errors: those of getrandom(2). Progress: that of getrandom.
 */
int bide_websocket_make_key(char key[BIDE_WEBSOCKET_KEY + 1]);

/*
 * For clients: does the answer with this status accept the request with this key? `protocols` are
 * the subprotocols that were asked for, with commas between, or NULL.
 * Threads: any. Errors: -ECONNREFUSED (the status is not 101), -EPROTO (it is 101, but no right
 * answer). Progress: wait-free.
 */
int bide_websocket_check_answer(int status, const bide_websocket_headers *headers,
                                const char key[BIDE_WEBSOCKET_KEY + 1], const char *protocols);

/*
 * Whether the token is in a header's list of tokens, whatever its case.
 * Threads: any. Progress: wait-free.
 */
bool bide_websocket_has_token(bide_websocket_value list, const char *token);

/*
 * For servers: the first of `ours`, subprotocols with commas between, that the other side offers,
 * by its exact name; its data is NULL if there is none. It points into `ours`.
 * Threads: any. Progress: wait-free.
 */
bide_websocket_value bide_websocket_select_protocol(bide_websocket_value offered, const char *ours);

/* ---- A websocket ---- */

typedef enum bide_websocket_role {
    BIDE_WEBSOCKET_SERVER, /* what it receives is masked */
    BIDE_WEBSOCKET_CLIENT  /* what it sends is */
} bide_websocket_role;

typedef enum bide_websocket_kind {
    BIDE_WEBSOCKET_CONTINUATION, /* of a message that is sent in fragments: all but the first */
    BIDE_WEBSOCKET_TEXT,
    BIDE_WEBSOCKET_BINARY
} bide_websocket_kind;

/* Why a websocket is closed. Programs have 4000 to 4999 for themselves. */
typedef enum bide_websocket_code {
    BIDE_WEBSOCKET_NORMAL = 1000,
    BIDE_WEBSOCKET_GOING_AWAY = 1001,
    BIDE_WEBSOCKET_PROTOCOL_ERROR = 1002,
    BIDE_WEBSOCKET_UNSUPPORTED = 1003,
    BIDE_WEBSOCKET_NO_CODE = 1005,  /* is never sent: the close had none */
    BIDE_WEBSOCKET_ABNORMAL = 1006, /* is never sent: there was no close */
    BIDE_WEBSOCKET_NOT_UTF8 = 1007,
    BIDE_WEBSOCKET_POLICY = 1008,
    BIDE_WEBSOCKET_TOO_BIG = 1009,
    BIDE_WEBSOCKET_NO_EXTENSION = 1010,
    BIDE_WEBSOCKET_INTERNAL_ERROR = 1011,
    BIDE_WEBSOCKET_RESTART = 1012,
    BIDE_WEBSOCKET_TRY_LATER = 1013
} bide_websocket_code;

enum {
    BIDE_WEBSOCKET_CONTROL = 125, /* bytes that a ping may have at most */
    BIDE_WEBSOCKET_REASON = 123,  /* bytes that a close's reason may have at most */
    BIDE_WEBSOCKET_BUFFER_MIN = 288
};

struct bide_websocket_deflate;

/* Options of a websocket. */
typedef struct bide_websocket_options {
    bide_websocket_role role;

    /* The buffers, of BIDE_WEBSOCKET_BUFFER_MIN bytes or more. */
    void *read_buffer;
    size_t read_buffer_size;
    void *write_buffer;
    size_t write_buffer_size;

    /* Compression, which the handshake of bide/http_websocket.h agrees on. NULL: none. */
    struct bide_websocket_deflate *deflate;

    /* Bytes from behind the peer's handshake. They are copied, and may be in `read_buffer`. */
    const void *initial;
    size_t initial_size;

    /* Bounds on what is received. Of 0 the default. */
    uint64_t max_message;   /* bytes; default 1 MiB */
    uint64_t max_frame;     /* bytes; default as max_message */
    uint64_t max_fragments; /* frames of a message; default 65,536 */

    /* Nanoseconds; 0: none. The scheduler needs timers for them. */
    uint64_t ping_interval;
    uint64_t silence;

    /* Nanoseconds: for how long the receiver tries to tell the other side what it did wrong. 0: 5 s */
    uint64_t patience;

    /* Fills memory with random bytes, for masks; 0 or a negative errno. NULL: getrandom(2). */
    int (*random)(void *data, size_t size);
} bide_websocket_options;

/* How a websocket has ended. */
typedef struct bide_websocket_destroy {
    uint16_t code; /* that the other side has sent, or NO_CODE, or ABNORMAL; 0: it has not ended */
    uint16_t sent; /* that this side has sent; 0: none */
    bool is_clean; /* both sides have sent a close, in order */
    uint8_t size;  /* of the other side's reason */
    char reason[BIDE_WEBSOCKET_REASON + 1]; /* UTF-8, with a zero behind it */
} bide_websocket_destroy;

/* A frame that is to be sent when there is a turn. */
typedef struct bide_websocket_control_ {
    bool is_pending;
    uint8_t size;
    char data[BIDE_WEBSOCKET_CONTROL];
} bide_websocket_control_;

typedef struct bide_websocket_send_operation bide_websocket_send_operation;

/* The caller's memory until nothing of it is under way. */
typedef struct bide_websocket {
    bide_websocket_destroy end; /* the user reads it */
    uint64_t pings;             /* that were received */
    uint64_t pongs;             /* likewise */

    bide_websocket_options options;
    bide_reader reader;
    bide_writer writer;

    /* the receiver's: the frame at hand */
    uint64_t left; /* bytes of it that have not been taken */
    uint8_t key[4];
    uint8_t phase; /* of the key */
    uint8_t opcode;
    bool is_final;
    bool is_in_frame;
    bool takes_compressed; /* messages: this was agreed on */
    bool is_compressed;    /* the message at hand */
    /* and the message at hand */
    uint8_t kind;
    bool is_in_message;
    bool is_whole;          /* it has come to its end, in the memory of one who was not told */
    bool is_first;          /* nothing of it has been reported */
    bool was_not_reported;  /* the piece that is lent was lent to one who was destroyed */
    bool is_provided_first; /* it is its message's first, or last */
    bool is_provided_last;
    size_t provided; /* bytes at the reader's beginning: a piece */
    size_t kept;     /* bytes in the memory of one whose wait was cancelled */
    uint64_t total;  /* bytes, with those of frames whose header has come */
    uint64_t fragments;
    uint8_t text_left, text_low, text_high; /* utf8.c */
    size_t wanted;                          /* bytes that are to be buffered before it can go on */
    uint64_t silent_for;
    uint64_t next_ping; /* when it was silent for so long */
    int status;         /* with what it has ended; 0: not yet */
    bool has_reported;  /* it has tried to tell the other side */
    bool is_receiving;
    bide_event news; /* a receive has ended */

    /* of senders */
    bide_mutex message_turn;
    bide_mutex frame_turn; /* its holder uses the writer */
    bide_websocket_control_ pong, close;
    uint8_t keys[64]; /* random */
    uint8_t unused_keys;
    bool has_ping;                               /* is to be sent */
    bide_websocket_send_operation *in_fragments; /* it is between two of a message */
    bool must_flush;
    bool is_closing; /* a close is queued, or was sent */
    int send_status; /* with what sends end: a frame was cut off, or the stream has failed; or 0 */
} bide_websocket;

/*
 * Makes a websocket of a stream behind its handshake. `options` is copied. The buffers are the
 * websocket's until it is not used any more.
 * Also a macro, so that the linker names bide-http if it is missing.
 * Threads: before it is shared. Errors: -EINVAL (a buffer is missing or too small), -EMSGSIZE (what
 * has come already does not fit into `read_buffer`). Progress: wait-free.
 */
int bide_websocket_init(bide_websocket *websocket, bide_stream stream,
                        const bide_websocket_options *options);
#define bide_websocket_init(...) \
    BIDE_BESIDE_(bide_link_with_lbide_http_, bide_websocket_init(__VA_ARGS__))

/* ---- Receiving ---- */

/* Sends what is to be answered, in turn. */
typedef struct bide_websocket_answering_ {
    bide_task task;
    bide_websocket *websocket;
    bide_mutex_waiter turn;
    bool has_turn;
    bide_writer_operation write;
} bide_websocket_answering_;

/* One receive. The caller's memory until it has ended. */
typedef struct bide_websocket_recv_operation {
    bide_task task;
    bide_websocket *websocket;
    char *data;               /* the caller's memory, or the piece */
    size_t count;             /* of bytes there */
    size_t size;              /* that may be there */
    bide_websocket_kind kind; /* of the message: text or binary */
    bool is_first;            /* of a piece: nothing of the message stands before it */
    bool is_last;             /* nothing follows */
    bool is_compressed;       /* the message: websocket_deflate.h decompresses it */

    bool is_piece;
    bool has_begun;
    bool is_timed;
    bool is_direct; /* it reads into the caller's memory */
    bool is_both;   /* it reads and answers */
    bool waits;
    int status;
    size_t buffered; /* when it began to wait */
    uint64_t began;
    uint64_t due;
    bide_reader_operation read;
    bide_websocket_answering_ answering;
    bide_when_of(2) both;
    bide_with_deadline_operation limited;
} bide_websocket_recv_operation;

/*
 * Receives a message of at most `size` bytes into `data`, in whole: `kind` and `count` say what it
 * is. If the wait is cancelled, or the coroutine destroyed, the received part of the message stays
 * in `data`: the next receive is given the same memory and continues behind it.
 * Threads: the websocket's, one receive at a time. Errors: -EPIPE (closed), -ENODATA, -EPROTO,
 * -EILSEQ, -EMSGSIZE, -EHOSTDOWN (see above), those of the stream. Suspends: if it is not buffered.
 * Cancel-safe: yes, with the same memory. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(count);
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_recv(bide_websocket_recv_operation *operation,
                                  bide_websocket *websocket, void *data, size_t size);

/*
 * Receives the available part of a message, for messages that are too large for memory. `data`
 * and `count` say where it is, until the next receive: in the websocket's buffer, where the caller
 * may also write. `is_first` and `is_last` say which piece of its message it is; only a last one
 * can be empty. A piece of text may end within a character.
 * Threads: the websocket's, one receive at a time. Errors: as bide_websocket_recv. Suspends: if
 * nothing is buffered. Cancel-safe: yes. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(count);
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_recv_piece(bide_websocket_recv_operation *operation,
                                        bide_websocket *websocket);

/* ---- Sending ---- */

/* One send. The caller's memory until it has ended; of fragments, until all have. */
struct bide_websocket_send_operation {
    bide_task task;
    bide_websocket *websocket;
    const char *data;
    size_t size;
    size_t count; /* of bytes that were taken */

    uint8_t opcode;
    bool is_last;
    bool is_control;
    bool stays; /* in the buffer, until somebody flushes */
    bool is_compressed;
    bool has_message_turn;
    bool has_frame_turn;
    uint8_t key[4];
    bool is_writing; /* the frame, past the buffer */
    int status;
    size_t done; /* bytes of the frame that were taken, its header among them */
    uint8_t header_size;
    uint8_t header[14];
    bide_mutex_waiter message_turn, frame_turn;
    bide_writer_operation write;
    struct iovec vectors[2];
};

/*
 * Sends a message in whole, in one frame. `data` stays until it has ended. It is not looked at
 * whether a text is UTF-8; the other side will. With 0 it was handed to the stream.
 *
 * Before it has its turn it can be cancelled without having sent anything: `count` is 0. A message
 * that fits into the buffer is taken in whole then, and goes out with whatever is sent next: `count`
 * is `size`. If a larger one is cut off nothing can follow it, and sends end with -ECONNABORTED.
 * Threads: the websocket's. Errors: -EPIPE (a close is under way, or the other side has gone),
 * -ECONNABORTED (another was cut off), those of the stream. Suspends: if others send, or the other
 * side is slow. Cancel-safe: no, see `count`. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_send(bide_websocket_send_operation *operation,
                                  bide_websocket *websocket, bide_websocket_kind kind,
                                  const void *data, size_t size);

/*
 * The same, but if it fits into the buffer it stays there, until the next send, flush, or answer.
 * Threads: as bide_websocket_send. Errors: as bide_websocket_send. Suspends: if others send, or it
 * does not fit and the other side is slow. Cancel-safe: as bide_websocket_send. Progress: that of
 * the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_put(bide_websocket_send_operation *operation,
                                 bide_websocket *websocket, bide_websocket_kind kind,
                                 const void *data, size_t size);

/*
 * Sends a fragment of a message. `kind` is the message's for its first, and
 * BIDE_WEBSOCKET_CONTINUATION for the others. `operation` is the same for all of them: it has the
 * turn from the first to the last, and while it has, other messages wait. One that is given up
 * between two fragments is ended by an empty last one, or by the end of the connection.
 * Threads: as bide_websocket_send. Errors: as bide_websocket_send, -EINVAL (a continuation of
 * nothing). Suspends: as bide_websocket_send. Cancel-safe: as bide_websocket_send. Progress: that
 * of the stream.
 */
BIDE_KEY_SCOPED(bide_websocket_send_fragment);
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_send_fragment(bide_websocket_send_operation *operation,
                                           bide_websocket *websocket, bide_websocket_kind kind,
                                           const void *data, size_t size, bool is_last);

/*
 * Sends a ping with at most BIDE_WEBSOCKET_CONTROL bytes. The answer is counted in `pongs` by the
 * receiver.
 * Threads: as bide_websocket_send. Errors: as bide_websocket_send, -EMSGSIZE (too many bytes).
 * Suspends: as bide_websocket_send. Cancel-safe: as bide_websocket_send. Progress: that of the
 * stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_send_ping(bide_websocket_send_operation *operation,
                                       bide_websocket *websocket, const void *data, size_t size);

/*
 * Sends what is in the buffer.
 * Threads: as bide_websocket_send. Errors: as bide_websocket_send. Suspends: as
 * bide_websocket_send. Cancel-safe: yes, what was not sent stays. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_flush(bide_websocket_send_operation *operation,
                                   bide_websocket *websocket);

/* ---- Closing ---- */

/* One close. The caller's memory until it has ended. */
typedef struct bide_websocket_close_operation {
    bide_task task;
    bide_websocket *websocket;
    int code;
    const char *reason;
    int status;
    bide_websocket_answering_ answering;
    bide_event_waiter wait;
    bide_websocket_recv_operation receive;
} bide_websocket_close_operation;

/*
 * Closes: sends a close with that code and reason, unless one was sent, and waits for the other
 * side's. Messages that come until then go to the receiver, or are dropped if there is none. Sends
 * that have not had their turn end with -EPIPE, as all later ones do. It waits for as long as the
 * other side does not answer, so it wants a deadline. Afterwards the stream is to be closed.
 *
 * `code` is 1000, 1001, 1003, 1007 to 1014 or 3000 to 4999, or BIDE_WEBSOCKET_NO_CODE and then
 * without a reason. `reason` is UTF-8 of at most BIDE_WEBSOCKET_REASON bytes; it stays until it has
 * ended.
 * Threads: the websocket's. Errors: -EINVAL (none of those codes, or the reason), those of
 * bide_websocket_recv but -EPIPE, those of the stream. Suspends: if the other side has not
 * closed. Cancel-safe: no, it stays in closing; again, it continues to wait. Progress: that of the
 * stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_close(bide_websocket_close_operation *operation,
                                   bide_websocket *websocket, int code, const char *reason);

/*
 * Why it is correct: src/websocket/receive.c, and src/websocket/send.c.
 */

/*
 * How a receive ends; the first reason is kept:
 *
 *     0              a message, or a part of it
 *     -EPIPE         the peer has closed: end.code and end.reason say why
 *     -ENODATA       the stream has ended without a close
 *     -EPROTO        the peer has violated the protocol, and got a close with 1002
 *     -EILSEQ        a text message is not UTF-8; 1007
 *     -EMSGSIZE      the message is larger than allowed, or in more pieces; 1009
 *     -EHOSTDOWN     the peer was silent for too long
 *     another        the stream's own
 *
 * -ECANCELED and -ETIMEDOUT end only the wait.
 *
 *     open --close queued--> closing --both closes--> ended, and that was clean
 *       |                       +-----the stream ends----> ended with 1006
 *       +--an error of the peer: a close with 1002, 1007 or 1009--> ended
 *
 * The receiver may also watch the peer: if it has received nothing for `ping_interval` it sends a
 * ping, and if it has received nothing for `silence` the connection has ended. Only time in which
 * it waits counts.
 *
 * Answers to the peer never wait for the peer to read them while there is something to be received:
 * two sides that send without end do not block each other.
 */

BIDE_EXTERN_C_END

#endif
