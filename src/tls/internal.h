/* What the parts of TLS know of each other. Floor: io. */
#ifndef BIDE_IO_TLS_INSIDE_H
#define BIDE_IO_TLS_INSIDE_H

#include "bide/tls.h"

#include <openssl/ssl.h>

/* ---- Certificates (certificates.c) ---- */

/* One that a config proves itself by. */
typedef struct tls_proof {
    X509 *leaf;
    EVP_PKEY *key;
    STACK_OF(X509) * chain;
} tls_proof;

/* Names of the proofs; those of one name stand beside each other. */
typedef struct tls_proof_name {
    char *name;
    size_t proof;
} tls_proof_name;

typedef struct tls_proofs {
    tls_proof *all;
    size_t count;
    tls_proof_name *names; /* in order */
    size_t name_count;
} tls_proofs;

/* Reads them. 0 or a negative errno, and then *reason; what was read is freed by the next. */
int bide_tls_identities_read_(tls_proofs *proofs, const bide_tls_options *options, const char **reason);
void bide_tls_identities_free_(tls_proofs *proofs);

/* Has `ssl` prove itself by those that have this name. 1: it does; 0: none has it; -1: an error. */
int bide_tls_identities_use_(const tls_proofs *proofs, SSL *ssl, const char *name);
bool bide_tls_identities_have_(const tls_proofs *proofs, const char *name);

/* Trusts the authorities that the options name. */
int bide_tls_trust_(SSL_CTX *context, const bide_tls_options *options, const char **reason);

/* ---- Sessions that a client keeps (sessions.c) ---- */

typedef struct tls_session tls_session;

typedef struct tls_sessions {
    bide_atomic(uint32_t) lock;
    tls_session *newest; /* first in a list */
    size_t count;
    size_t max;
} tls_sessions;

void bide_tls_sessions_free_(tls_sessions *sessions);

/* Keeps a session, whose reference it takes, for a name. False: there is no memory. */
bool bide_tls_sessions_put_(tls_sessions *sessions, const char *name, SSL_SESSION *session);

/* A session for a name, with a reference; NULL: there is none. One of TLS 1.3 is had only once. */
SSL_SESSION *bide_tls_sessions_take_(tls_sessions *sessions, const char *name);

/* No session for this name is good. */
void bide_tls_sessions_drop_(tls_sessions *sessions, const char *name);

/* ---- Configs (config.c) ---- */

struct bide_tls_config {
    SSL_CTX *context;
    bide_atomic(size_t) references;
    bool is_server;
    bool verifies;
    tls_proofs proofs;
    char **protocols;    /* ending with NULL; or NULL */
    unsigned char *wire; /* the same as ALPN sends them */
    size_t wire_size;
    tls_sessions sessions;
};

/* ---- What goes in and out (flow.c) ---- */

/* Bytes that OpenSSL has given. */
struct bide_tls_chunk_ {
    bide_tls_chunk_ *next;
    size_t size;
    size_t begin;
    size_t end;
    unsigned char data[];
};

enum {
    TLS_MORE = 32768,    /* what is read from below at once, where much comes */
    TLS_BATCH = 32768,   /* what is encrypted and written below at once */
    TLS_UNASKED = 16384, /* what reading may have to send while nothing is written */
};

/* A BIO over the connection's buffers. NULL: there is no memory. */
BIO *bide_tls_flow_create_(bide_tls *tls);

/* There is room for `size` more bytes in one chunk; if there is no memory, it is several. */
void bide_tls_flow_reserve_(bide_tls *tls, size_t size);

/* Frees what is empty, or all. */
void bide_tls_flow_tidy_(bide_tls *tls);
void bide_tls_flow_free_(bide_tls *tls);

/* Reads from the stream below, once all that came was taken; and counts what it read. */
bide_awaiter *bide_tls_fill_begin_(bide_tls *tls);
void bide_tls_fill_end_(bide_tls *tls, int status);

/* Writes the first chunk below; and counts what it wrote. Under the lock each. */
bide_awaiter *bide_tls_flush_begin_(bide_tls *tls);
void bide_tls_flush_end_(bide_tls *tls);

/* ---- Connections (connection.c, failure.c) ---- */

/* The roles of those who are at work on one. */
enum { TLS_READING = 1, TLS_WRITING = 2 };

/* Is at work no more in these. If it was closed, and nobody else is, it is freed. */
void bide_tls_leave_(bide_tls *tls, uint8_t roles);

/* Flushing, with the lock taken for it. */
bide_awaiter *bide_tls_begin_flushing_(bide_tls *tls);
void bide_tls_end_flushing_(bide_tls *tls);

/* What a call of OpenSSL that returned `result` means: -EAGAIN, 1 (the end), or an error. */
int bide_tls_status_(bide_tls *tls, int result);

#endif
