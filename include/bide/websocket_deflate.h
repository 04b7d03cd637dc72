/*
 * Compressed messages of WebSockets: the extension permessage-deflate (RFC 7692), for servers and clients.
 * Floor: websocket.
 *
 *     bide_websocket_deflate_init(&self->deflate, NULL);
 *     bide_try(bide_http_accept_websocket(&self->upgrade, &self->exchange, &self->websocket,
 *                                         &(bide_websocket_options){.deflate = &self->deflate}, NULL));
 *     for (;;) {
 *         bide_try_or_break(bide_websocket_deflate_recv(&self->receive, &self->deflate, self->text,
 *                                                       sizeof self->text));
 *         bide_try(bide_websocket_deflate_send(&self->send, &self->deflate, self->receive.kind,
 *                                              self->text, self->receive.count));
 *     }
 *     ... bide_finally(); bide_websocket_deflate_destroy(&self->deflate);
 *
 * The handshake offers the extension, or accepts it if the peer has offered it: `is_agreed`. If it has not, the same
 * functions send and receive uncompressed messages, so the program need not care. Functions of websocket.h send
 * uncompressed messages, which is always allowed; receives are those of this header, because messages may be compressed.
 *
 * Bounds: a message is decompressed into the caller's memory, and to no more than bide_websocket_options.max_message
 * bytes. A message that is longer ends the websocket with -EMSGSIZE, no matter how few bytes arrived. Both directions
 * together allocate about 310 KB, from options.allocator, and for each message that is being sent its compressed size.
 *
 * Security: as with compressed responses, the size of a message depends on its text. A message that contains a secret
 * beside text of an attacker's choice should be sent by bide_websocket_send.
 *
 * Needs zlib; without it bide_websocket_deflate_init returns -ENOTSUP.
 */
#ifndef BIDE_WEBSOCKET_DEFLATE_H
#define BIDE_WEBSOCKET_DEFLATE_H

#include "bide/allocator.h"
#include "bide/websocket.h"

BIDE_EXTERN_C_BEGIN

struct bide_websocket_codec_;

/* Options. The comment of a member says what 0 or NULL means. Windows are powers of 2: 9 to 15. */
typedef struct bide_websocket_deflate_options {
    int level;           /* 1, the fastest, to 9, the smallest. 0: 4 */
    int window_bits;     /* of what is sent. 0: 15 */
    int max_peer_window_bits; /* of what is received; 8 to 15. 0: 15 */
    bool no_context;      /* what is sent: each message is compressed on its own */
    bool no_peer_context; /* what is received, likewise */
    size_t min_size; /* shorter messages are sent as they are. 0: 64 */
    size_t max_size; /* longer ones too; they are compressed without a pause. 0: 1 MiB */
    bide_allocator *allocator; /* NULL: the heap */
} bide_websocket_deflate_options;

enum { BIDE_WEBSOCKET_EXTENSION = 160 }; /* bytes that an offer or an answer has at most, with its zero */

/* The caller's memory while its websocket is used. */
typedef struct bide_websocket_deflate {
    bool is_agreed; /* both sides compress */
    uint64_t sent;  /* messages that were compressed */
    uint64_t received; /* likewise */

    /* of the library */
    bide_websocket_deflate_options options;
    bide_websocket *websocket;
    struct bide_websocket_codec_ *codec;
    bide_mutex turn; /* of senders that compress */
    size_t kept;     /* bytes of the message at hand, in the receiver's memory */
    uint8_t text_left, text_low, text_high; /* utf8.c */
    bool is_spoilt; /* a compressed message was not sent: no more are compressed */
} bide_websocket_deflate;

/*
 * Makes it ready for the options of a handshake. `options` is copied; NULL: all 0.
 * Threads: before it is shared. Errors: -EINVAL (a level or a window is out of range), -ENOTSUP (the library was built
 * without zlib). Progress: wait-free.
 */
int bide_websocket_deflate_init(bide_websocket_deflate *deflate,
                                const bide_websocket_deflate_options *options);

/*
 * Frees its memory. Nothing of its websocket is under way any more.
 * Threads: the websocket's. Progress: that of the allocator.
 */
void bide_websocket_deflate_destroy(bide_websocket_deflate *deflate);

/* ---- The handshake; bide/http_websocket.h calls these ---- */

/*
 * For servers: chooses the first of the offers in a line of Sec-WebSocket-Extensions that can be accepted, and prints the
 * answer. Returns 1, or 0 if there is none.
 * Threads: before it is shared. Errors: none. Progress: wait-free, linear in the line.
 */
int bide_websocket_deflate_accept(bide_websocket_deflate *deflate, bide_websocket_value offers,
                                  char answer[BIDE_WEBSOCKET_EXTENSION]);

/*
 * For clients: prints the offer.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_websocket_deflate_offer(const bide_websocket_deflate *deflate,
                                  char offer[BIDE_WEBSOCKET_EXTENSION]);

/*
 * For clients: reads the server's answer. An empty one agrees on nothing.
 * Threads: before it is shared. Errors: -EPROTO (it is no answer to the offer, or cannot be followed). Progress:
 * wait-free, linear in the answer.
 */
int bide_websocket_deflate_check(bide_websocket_deflate *deflate, bide_websocket_value answer);

/*
 * Begins, on a websocket behind the handshake.
 * Threads: before it is shared. Errors: -ENOMEM. Progress: that of the allocator.
 */
int bide_websocket_deflate_start(bide_websocket_deflate *deflate, bide_websocket *websocket);

/* ---- Messages ---- */

/* One receive. The caller's memory until it has ended. */
typedef struct bide_websocket_deflate_recv_operation {
    bide_task task;
    bide_websocket_deflate *deflate;
    char *data;
    size_t size;
    size_t count;             /* bytes of the message, decompressed */
    bide_websocket_kind kind; /* text or binary */
    int status;
    bide_websocket_recv_operation piece;
} bide_websocket_deflate_recv_operation;

/*
 * Receives a message of at most `size` bytes into `data`, as bide_websocket_recv, and decompresses it.
 * Threads: the websocket's, one receive at a time. Errors: as bide_websocket_recv; -EPROTO also if the compressed text is
 * malformed, -EMSGSIZE if the message is longer than `size` or max_message. Suspends: if it is not buffered. Cancel-safe:
 * yes, with the same memory. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(count);
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_deflate_recv(bide_websocket_deflate_recv_operation *operation,
                                          bide_websocket_deflate *deflate, void *data, size_t size);

/* One send. The caller's memory until it has ended. */
typedef struct bide_websocket_deflate_send_operation {
    bide_task task;
    bide_websocket_deflate *deflate;
    bide_websocket_kind kind;
    const char *data;
    size_t size;
    int status;
    bool has_turn;
    bool is_compressing;
    char *text; /* compressed */
    size_t text_size;
    size_t room;
    bide_mutex_waiter turn;
    bide_websocket_send_operation send;
} bide_websocket_deflate_send_operation;

/*
 * Sends a message, compressed if that was agreed on, it has min_size to max_size bytes, and there is memory. `data` stays
 * until it has ended. If it is cancelled, later messages are sent uncompressed, because the peer's context lacks this one.
 * Threads: the websocket's. Errors: as bide_websocket_send. Suspends: if others send, or the peer is slow. Cancel-safe:
 * no, as bide_websocket_send. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_websocket_deflate_send(bide_websocket_deflate_send_operation *operation,
                                          bide_websocket_deflate *deflate, bide_websocket_kind kind,
                                          const void *data, size_t size);

/*
 * Why it is correct: src/websocket/deflate.c.
 *
 * Source: RFC 7692.
 */

BIDE_EXTERN_C_END

#endif
