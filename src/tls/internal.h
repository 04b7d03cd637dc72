/* The internal interface between the files of TLS. Floor: io. */
#ifndef BIDE_IO_TLS_INSIDE_H
#define BIDE_IO_TLS_INSIDE_H

#include "bide/tls.h"

#include <openssl/ssl.h>

/* ---- Certificates (certificates.c) ---- */

/* A certificate of a config's own, with its key. */
typedef struct tls_proof {
    X509 *leaf;
    EVP_PKEY *key;
    STACK_OF(X509) * chain;
    unsigned char *status; /* a response by OCSP, in DER; NULL: none */
    size_t status_size;
    ASN1_GENERALIZEDTIME *status_until; /* NULL: it has no end */
} tls_proof;

/* An entry of the index: a name, and the proof that has it. */
typedef struct tls_proof_name {
    char *name;
    size_t proof;
} tls_proof_name;

typedef struct tls_proofs {
    tls_proof *all;
    size_t count;
    tls_proof_name *names; /* sorted by name */
    size_t name_count;
} tls_proofs;

/*
 * Reads the certificates and keys of the options. 0, or a negative errno and *reason. The caller frees
 * the proofs in either case.
 */
int bide_tls_identities_read_(tls_proofs *proofs, const bide_tls_options *options,
                              const char **reason);
void bide_tls_identities_free_(tls_proofs *proofs);

/* Selects the proofs with this name for `ssl`. 1: selected; 0: none has the name; -1: an error. */
int bide_tls_identities_use_(const tls_proofs *proofs, SSL *ssl, const char *name);
bool bide_tls_identities_have_(const tls_proofs *proofs, const char *name);

/* Trusts the authorities of the options. 0, or a negative errno and *reason. */
int bide_tls_trust_(SSL_CTX *context, const bide_tls_options *options, const char **reason);

/* Opens text in a file or in memory. 0, or a negative errno and *reason. */
int bide_tls_open_text_(BIO **text, const char *file, const void *data, size_t size,
                        const char **reason);

/* ---- Status of certificates (status.c) ---- */

/* Reads the response of a certificate, if it has one. 0, or a negative errno and *reason. */
int bide_tls_status_read_(tls_proof *proof, const bide_tls_certificate *from, const char **reason);

/* A server sends its responses; a client asks for them, and verifies them. False: out of memory. */
void bide_tls_status_serve_(bide_tls_config *config);
bool bide_tls_status_ask_(bide_tls_config *config, bide_tls_stapling stapling);

/* ---- Sessions that a client keeps (sessions.c) ---- */

typedef struct tls_session tls_session;

typedef struct tls_sessions {
    bide_atomic(uint32_t) lock;
    tls_session *newest; /* the head of the list */
    size_t count;
    size_t max;
} tls_sessions;

void bide_tls_sessions_free_(tls_sessions *sessions);

/* Stores a session for a name, and takes its reference. False: out of memory. */
bool bide_tls_sessions_put_(tls_sessions *sessions, const char *name, SSL_SESSION *session);

/* A session for a name, with a reference, or NULL. A session of TLS 1.3 is returned only once. */
SSL_SESSION *bide_tls_sessions_take_(tls_sessions *sessions, const char *name);

/* Drops all sessions for a name. */
void bide_tls_sessions_drop_(tls_sessions *sessions, const char *name);

/* ---- Configs (config.c) ---- */

struct bide_tls_config {
    SSL_CTX *context;
    bide_atomic(size_t) references;
    bool is_server;
    bool verifies;
    bool requires_status;
    int key_log; /* a descriptor; -1: none */
    tls_proofs proofs;
    char **protocols;    /* terminated by NULL; or NULL */
    unsigned char *wire; /* the same in ALPN's form */
    size_t wire_size;
    tls_sessions sessions;
};

/* ---- The data flow (flow.c) ---- */

/* Bytes that OpenSSL has written. */
struct bide_tls_chunk_ {
    bide_tls_chunk_ *next;
    size_t size;
    size_t begin;
    size_t end;
    unsigned char data[];
};

enum {
    TLS_MORE = 32768,    /* bytes read below at once, when much arrives */
    TLS_BATCH = 69632,   /* bytes encrypted and written below at once */
    TLS_UNASKED = 16384, /* the maximum of output that reading causes while nothing is flushed */
};

/* A BIO over the connection's buffers, or NULL if memory is exhausted. */
BIO *bide_tls_flow_create_(bide_tls *tls);

/* Makes room for `size` more bytes in one chunk. Without memory, they go into several. */
void bide_tls_flow_reserve_(bide_tls *tls, size_t size);

/* Frees an empty chunk, or all chunks and buffers. */
void bide_tls_flow_tidy_(bide_tls *tls);
void bide_tls_flow_free_(bide_tls *tls);

/* Starts a read below, when OpenSSL has consumed the input; and ends it, with its count. */
bide_awaiter *bide_tls_fill_begin_(bide_tls *tls);
void bide_tls_fill_end_(bide_tls *tls, int status);

/* Starts a write of the first chunk below; and ends it, with its count. Both under the lock. */
bide_awaiter *bide_tls_flush_begin_(bide_tls *tls);
void bide_tls_flush_end_(bide_tls *tls);

/* ---- Connections (connection.c, failure.c) ---- */

/* The roles that an operation may be active in. */
enum { TLS_READING = 1, TLS_WRITING = 2 };

/* Leaves these roles. If the connection is closing and no role is left, it is freed. */
void bide_tls_leave_(bide_tls *tls, uint8_t roles);

/* Starts and ends a flush, under the lock, which they acquire. */
bide_awaiter *bide_tls_begin_flushing_(bide_tls *tls);
void bide_tls_end_flushing_(bide_tls *tls);

/* The status of a call of OpenSSL that returned `result`: 0, -EAGAIN, 1 (the end), or an error. */
int bide_tls_status_(bide_tls *tls, int result);

#endif
