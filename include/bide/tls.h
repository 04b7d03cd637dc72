/*
 * TLS, 1.2 and 1.3, over any stream: a connection is a stream again. Implemented with OpenSSL 3, in
 * a library of its own, bide-tls, so that other programs do not depend on OpenSSL. Floor: tls.
 *
 *     bide_tls_client_create(&config, NULL, NULL);                 // once, for many connections
 *
 *     bide_try(bide_connect(&self->connect, &self->socket, &address));
 *     bide_try(bide_tls_connect(&self->handshake, &self->tls, config,
 *                               bide_socket_stream(&self->socket), "example.org"));
 *     bide_reader_init(&self->reader, bide_tls_stream(&self->tls), self->in, sizeof self->in);
 *     ... read and write as on any stream (stream.h) ...
 *     bide_try(bide_stream_shutdown_output(&self->operation, bide_tls_stream(&self->tls)));
 *     bide_tls_close(&self->tls);                                  // the socket too
 *
 *     CLOSED --connect, accept--> handshake --0--> OPEN --close--> CLOSED
 *                                     +--an error----------close------^
 *
 * A client verifies the peer's chain and name, unless bide_tls_dangerously_verify_nothing was
 * called. A config is reference-counted and does not change while it is used. To use new
 * certificates a server makes a new config for later handshakes; connections keep the config that
 * they began with.
 *
 * One coroutine may read while another writes, on one thread or on two. Reading never waits for
 * writing: data that reading has to send, such as an answer to a key update, goes with the next
 * write. So two sides that both only send wait for each other only if neither reads.
 *
 * "How reading ends" and "Memory" are below.
 */
#ifndef BIDE_TLS_H
#define BIDE_TLS_H

#include "bide/detail/beside.h"
#include "bide/errors.h"
#include "bide/stream.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_tls bide_tls;
typedef struct bide_tls_config bide_tls_config;

/* ---- What many connections have in common ---- */

/* A certificate with its key, in PEM: from files or, where those are NULL, from memory. */
typedef struct bide_tls_certificate {
    const char *chain_file; /* its own certificate first, then the chain to an authority */
    const char *key_file;   /* not encrypted; NULL: it is in chain_file as well */
    const void *chain;
    size_t chain_size;
    const void *key;
    size_t key_size;

    /* Of a server: the status of the certificate, a response of its authority by OCSP in DER, for clients that ask for
     * it ("stapling"). NULL: none. It is not sent after its time has passed: then a new config is
     * to be made. */
    const char *ocsp_file;
    const void *ocsp;
    size_t ocsp_size;
} bide_tls_certificate;

typedef enum bide_tls_clients {
    BIDE_TLS_CLIENTS_ANONYMOUS, /* no certificate is asked for */
    BIDE_TLS_CLIENTS_OPTIONAL,  /* one that is sent must be good */
    BIDE_TLS_CLIENTS_REQUIRED,
} bide_tls_clients;

/*
 * Whether a server sends the status of its certificate, so that one that was revoked is refused. A certificate demands
 * that by a TLS feature (RFC 7633, "must-staple").
 */
typedef enum bide_tls_stapling {
    BIDE_TLS_STAPLING_NONE,     /* it is not asked for */
    BIDE_TLS_STAPLING_OPTIONAL, /* it must be good if it is sent, and be sent if it is demanded */
    BIDE_TLS_STAPLING_REQUIRED,
} bide_tls_stapling;

typedef enum bide_tls_min_version {
    BIDE_TLS_MIN_1_2,
    BIDE_TLS_MIN_1_3,
} bide_tls_min_version;

/* Options of a config. All zero is a good start for a client. They are copied. */
typedef struct bide_tls_options {
    /* The certificates that it proves itself by. A server has at least one, and takes the one
     * with the name that the client asks for; the first, if none has. A client has one at most. */
    const bide_tls_certificate *certificates;
    size_t certificate_count;

    /* Whom it trusts: authorities in PEM, in a file, a folder (made by `openssl rehash`), memory, or
     * several of them. A client that names none trusts those of the system. */
    const char *authorities_file;
    const char *authorities_directory;
    const void *authorities;
    size_t authorities_size;

    /* Of a server: whether clients prove who they are, to authorities that are named. */
    bide_tls_clients clients;

    /* By ALPN, such as {"h2", "http/1.1", NULL}: what it can speak, the best first; NULL: none. The
     * server chooses. It refuses a client with which it has none in common. */
    const char *const *protocols;

    bide_tls_min_version min_version;

    /* Of a client: how many sessions it keeps, to resume them with the same name; 0: 100. */
    size_t max_sessions;
    bool keeps_no_sessions;

    /* Of a client: whether servers send the status of their certificates. A resumed session was checked before. */
    bide_tls_stapling stapling;

    /* For debugging: the secrets of all connections are appended to this file, in the format that Wireshark reads. Who
     * reads the file can read the connections. It is made for its owner alone. NULL: none; SSLKEYLOGFILE of the
     * environment is not looked at. */
    const char *key_log_file;

    /* Of a server: sessions that began with this config can be resumed with the new one, if both
     * ask the same of clients. NULL: none can. */
    bide_tls_config *resumes;
} bide_tls_options;

/*
 * Makes a config for clients and puts it in *config: the caller has a reference. `options` NULL: all
 * zero. If it fails and `reason` is not NULL, *reason is set to why, a text that stays. It reads
 * files; those of the system's authorities take some 10 ms.
 * Also a macro, so that the linker names bide-tls if it is missing.
 * Threads: any. Errors: -EINVAL (options that do not go together, no PEM, a key that is not the
 * certificate's, no OCSP response for the certificate), -ENOMEM, and those of opening a file. Progress: blocks.
 */
int bide_tls_client_create(bide_tls_config **config, const bide_tls_options *options,
                           const char **reason);
#define bide_tls_client_create(...) \
    BIDE_BESIDE_(bide_link_with_lbide_tls_, bide_tls_client_create(__VA_ARGS__))

/*
 * The same for servers.
 * Also a macro, so that the linker names bide-tls if it is missing.
 * Threads: any. Errors: as bide_tls_client_create. Progress: blocks.
 */
int bide_tls_server_create(bide_tls_config **config, const bide_tls_options *options,
                           const char **reason);
#define bide_tls_server_create(...) \
    BIDE_BESIDE_(bide_link_with_lbide_tls_, bide_tls_server_create(__VA_ARGS__))

/*
 * Dangerous: connections of this client will be with whoever answers. Nothing is verified, and
 * whoever is in between reads and changes everything. For tests.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_tls_dangerously_verify_nothing(bide_tls_config *config);

/*
 * One more reference.
 * Threads: any. Progress: wait-free.
 */
void bide_tls_config_retain(bide_tls_config *config);

/*
 * Gives a reference up; NULL: nothing. With the last one, connections' among them, it is freed.
 * Threads: any. Progress: blocks for a moment at most.
 */
void bide_tls_config_release(bide_tls_config *config);

/* ---- A connection ---- */

typedef struct bide_tls_chunk_ bide_tls_chunk_;

enum { BIDE_TLS_ROOM_ = 512 };

struct bide_tls {
    struct ssl_st *ssl; /* NULL: closed */
    bide_tls_config *config;
    bide_stream below;
    char *name;                 /* that a client has asked for */
    const char *reason;         /* what has gone wrong */
    int failure;                /* after which nothing continues: a negative errno; or 0 */
    bide_atomic(uint32_t) lock; /* of all that reading and writing have in common */
    uint8_t roles;              /* who is at work */
    bool is_closing;
    bool is_server;
    bool has_ended;  /* the stream below has */
    bool is_filling; /* an operation of the stream below is under way */
    bool is_flushing;

    /* what has come from below, and OpenSSL has not taken: the reader's */
    char *input; /* `room`, or `more` */
    char *more;
    size_t input_size;
    size_t input_begin;
    size_t input_end;
    size_t wanted; /* bytes that OpenSSL would have had more */
    bide_stream_operation fill;

    /* what OpenSSL has given, and has not gone below */
    bide_tls_chunk_ *first;
    bide_tls_chunk_ *last;
    size_t pending;
    size_t unasked; /* of that, by reading */
    bide_stream_operation flush;

    char room[BIDE_TLS_ROOM_];
};

/* One handshake. The caller's memory until it has ended. */
typedef struct bide_tls_handshake {
    bide_task task;
    bide_tls *tls;
    bide_tls_config *config;
    const char *name;
    int status;
    int flushed;

    /*
     * A client may set it between bide_tls_connect and the await: the one protocol of the config's that is offered. The
     * string stays until the handshake has ended. If the config does not have it, the handshake ends with
     * -EPROTONOSUPPORT, and nothing is sent. NULL: all of the config's protocols are offered.
     */
    const char *protocol;
} bide_tls_handshake;

/*
 * Makes one that is closed: what a frame's connections are to be before they may be closed by its
 * `finally`. Memory that is all zero is closed too.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_tls_init_closed(bide_tls *tls)
{
    tls->ssl = NULL;
    tls->reason = NULL;
}

/*
 * Makes `tls`, which was closed or was nothing, a connection over a stream, as its client, and shakes
 * hands. `name` is the host's, or an address in text: the other side has to prove that it is that; it
 * stays until this has ended. NULL only where nothing is verified. A session that the config keeps
 * for that name is resumed. bide_tls_close is called in the end, also if this fails.
 * Threads: the stream's. Errors: -EKEYEXPIRED (the other side's certificate has), -EKEYREVOKED (it was),
 * -EKEYREJECTED (it is not good for another reason, such as its name, authority or status), -EREMOTEIO
 * (the other side has sent an alert), -EPROTONOSUPPORT (no version or cipher in common), -EPROTO
 * (what came is not TLS), -ECONNABORTED (the stream below has ended), -EINVAL (no name, or a server's
 * config), -EPROTONOSUPPORT (also: `protocol` is not one of the config's), -ENOMEM, those of the stream below. Suspends: if that does. Cancel-safe: no, the connection
 * is of no use then. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_tls_connect(bide_tls_handshake *handshake, bide_tls *tls,
                               bide_tls_config *config, bide_stream below, const char *name);

/*
 * The same as its server.
 * Threads: the stream's. Errors: as bide_tls_connect; -ENOKEY (the client has sent no certificate, and
 * must), -ENOPROTOOPT (no protocol in common). Suspends: as bide_tls_connect. Cancel-safe: no, the
 * connection is of no use then. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_tls_accept(bide_tls_handshake *handshake, bide_tls *tls, bide_tls_config *config,
                              bide_stream below);

/*
 * A stream over it, once its handshake has ended with 0.
 * Bytes that a cancelled write has counted are encrypted, and are sent before anything else.
 * The end of its output is close_notify.
 * Threads: any. Progress: wait-free.
 */
bide_stream bide_tls_stream(bide_tls *tls);

/*
 * Closes it and the stream below, at once: what waits on it ends with -EPIPE. One that is closed is
 * left as it is. The struct stays until what waited has ended.
 * Threads: the stream's. Errors: -EBADF (it was closed), and those of closing the stream below.
 * Progress: that of closing the stream below.
 */
int bide_tls_close(bide_tls *tls);

/*
 * The last error in words, as a static text: "" if there was none. Of verifying, what is wrong with
 * the certificate; of an alert, which. It may be asked after bide_tls_close as well.
 * Threads: the stream's. Progress: wait-free.
 */
BIDE_INLINE const char *bide_tls_reason(const bide_tls *tls)
{
    return tls->reason != NULL ? tls->reason : "";
}

/*
 * Whether a read would end without waiting for the stream below: with bytes, with the end, or with an error. Bytes
 * that have come from below are decrypted, and none are read there. False: also, it is closed. An answer, such as a
 * session ticket, that holds no bytes of the peer's is no input.
 * Threads: the stream's, as reading: not while a read is under way. Progress: blocks for a moment at most.
 */
bool bide_tls_has_input(bide_tls *tls);

/*
 * Which protocol was agreed on by ALPN; NULL: none. As long as its config stays.
 * Threads: the stream's. Progress: wait-free.
 */
const char *bide_tls_protocol(const bide_tls *tls);

/*
 * The name that the client has asked for; NULL: none. As long as it is open.
 * Threads: the stream's. Progress: wait-free.
 */
const char *bide_tls_server_name(const bide_tls *tls);

/*
 * "TLSv1.2" or "TLSv1.3"; a text that stays.
 * Threads: the stream's. Progress: wait-free.
 */
const char *bide_tls_version(const bide_tls *tls);

/*
 * Was a session resumed?
 * Threads: the stream's. Progress: wait-free.
 */
bool bide_tls_was_resumed(const bide_tls *tls);

/*
 * The proved identity of the other side: its certificate's subject, "CN=..., O=...", as RFC 2253
 * has it, into `text` of `size` bytes, cut off if it is longer. False, and "": it has sent none.
 * Threads: the stream's. Progress: blocks for a moment at most.
 */
bool bide_tls_peer(const bide_tls *tls, char *text, size_t size);

/*
 * OpenSSL's own object (an SSL *), for what else there is to be asked: not to read, to write or to
 * change by. NULL: it is closed.
 * Threads: the stream's, while nothing is under way. Progress: wait-free.
 */
BIDE_INLINE struct ssl_st *bide_tls_native(const bide_tls *tls)
{
    return tls->ssl;
}

/*
 * Why it is correct: src/tls/connection.c.
 */

/*
 * How reading ends:
 *
 *     a count of 0     the peer has closed cleanly (close_notify)
 *     -ECONNABORTED    the stream below has ended without that: the data may be truncated
 *     -EREMOTEIO       the peer has sent an alert
 *     -EPROTO          the data is not TLS, or was tampered with
 *     another          that of the stream below
 *
 * bide_tls_reason describes the same in words. After -EREMOTEIO and -EPROTO every operation ends
 * with the same error.
 *
 * The end of output is the peer's end of input; reading continues. So the stream below stays open:
 * only bide_tls_close closes it. Closing without an end of output appears to the peer as
 * truncation.
 *
 * Memory. A connection's struct is the caller's. OpenSSL allocates besides, and so does this
 * library, all of it with OpenSSL's allocator (CRYPTO_set_mem_functions). An idle server connection
 * uses less than 16 KB with the struct, up to 32 KB more while it reads, and up to 70 KB more while it
 * writes. OpenSSL's error queue, which each thread has, is empty after each operation.
 */

BIDE_EXTERN_C_END

#endif
