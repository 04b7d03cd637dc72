/*
 * TLS: a server of bide on a loop, beside a server of blocking OpenSSL calls. The client is the
 * same: blocking OpenSSL on a thread of its own, over pairs of Unix sockets; TLS 1.3, a P-256 key.
 *
 *     handshakes        connections per second, from the first byte until both handshakes are done
 *     sent, received    bytes per second, in writes and reads of 64 KB
 */
#include "bench.h"

#include <bide/bide.h>
#include <bide/tls.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 65536, BYTES = 64 << 20, CONNECTIONS = 400, ROUNDS = 9 };

static SSL_CTX *blocking_client, *blocking_server;
static bide_tls_config *config;
static bide_loop *loop;
static char piece[PIECE];

/* ---- What is done ---- */

struct work {
    int connections;
    uint64_t sent, received; /* by the server, on each */
};

static struct work current;
static int sockets[CONNECTIONS][2]; /* the server's, and the client's */

static void check(int good, const char *what)
{
    if (!good)
        bench_fail("tls", what);
}

static void exchange(SSL *ssl, uint64_t sends, uint64_t receives)
{
    size_t count;
    for (uint64_t sent = 0; sent < sends; sent += count)
        check(SSL_write_ex(ssl, piece, PIECE, &count), "sending");
    for (uint64_t received = 0; received < receives; received += count)
        check(SSL_read_ex(ssl, piece, PIECE, &count), "receiving");
}

static void *be_client(void *unused)
{
    static char received[PIECE];
    bench_place_thread(1);
    (void)unused;
    for (int i = 0; i < current.connections; i++) {
        SSL *ssl = SSL_new(blocking_client);
        size_t count;
        SSL_set_fd(ssl, sockets[i][1]);
        check(SSL_connect(ssl) == 1, "the client's handshake");
        for (uint64_t got = 0; got < current.sent; got += count)
            check(SSL_read_ex(ssl, received, PIECE, &count), "the client receives");
        for (uint64_t sent = 0; sent < current.received; sent += count)
            check(SSL_write_ex(ssl, received, PIECE, &count), "the client sends");
        while (read(sockets[i][1], received, PIECE) > 0) { /* until the server has closed */
        }
        SSL_free(ssl);
        close(sockets[i][1]);
    }
    return NULL;
}

/* ---- The subjects ---- */

static void serve_blocking(void)
{
    for (int i = 0; i < current.connections; i++) {
        SSL *ssl = SSL_new(blocking_server);
        SSL_set_fd(ssl, sockets[i][0]);
        check(SSL_accept(ssl) == 1, "the server's handshake");
        exchange(ssl, current.sent, current.received);
        SSL_free(ssl);
        close(sockets[i][0]);
    }
}

struct server {
    bide_task task;
    int next;
    uint64_t moved;
    bide_descriptor socket;
    bide_tls tls;
    bide_stream stream;
    bide_tls_handshake handshake;
    bide_stream_operation operation;
};

bide_coroutine(server_body)
{
    bide_begin(server_body, struct server * self);
    for (self->next = 0; self->next < current.connections; self->next++) {
        bide_descriptor_init(&self->socket, sockets[self->next][0]);
        bide_try(bide_tls_accept(&self->handshake, &self->tls, config,
                                 bide_socket_stream(&self->socket)));
        self->stream = bide_tls_stream(&self->tls);
        for (self->moved = 0; self->moved < current.sent; self->moved += PIECE)
            bide_try(bide_stream_write(&self->operation, self->stream, piece, PIECE));
        for (self->moved = 0; self->moved < current.received;) {
            bide_try(bide_stream_read(&self->operation, self->stream, piece, PIECE));
            self->moved += bide_stream_count(&self->operation, self->stream);
        }
        bide_tls_close(&self->tls);
    }
    bide_end();
}

static void serve_by_bide(void)
{
    static struct server server;
    check(bide_loop_wait(loop, bide_task_init(&server.task, &server_body)) == 0, "bide's server");
}

static uint64_t run(const struct work *work, void (*serve)(void))
{
    current = *work;
    for (int i = 0; i < current.connections; i++)
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[i]) == 0, "sockets");
    pthread_t client = bench_start_thread(be_client, NULL);
    serve();
    pthread_join(client, NULL);
    return current.sent + current.received != 0 ? current.sent + current.received
                                                : (uint64_t)current.connections;
}

static uint64_t run_blocking(const void *work)
{
    return run(work, serve_blocking);
}

static uint64_t run_bide(const void *work)
{
    return run(work, serve_by_bide);
}

/* ---- Setting up ---- */

static size_t text_of(BIO *memory, char *text, size_t size)
{
    int count = BIO_read(memory, text, (int)size);
    BIO_free(memory);
    check(count > 0, "PEM");
    return (size_t)count;
}

static void set_up(void)
{
    static char chain[4096], secret[4096];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)"bench", -1, -1,
                               0);
    X509_set_version(certificate, 2);
    X509_set_issuer_name(certificate, name);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -1000);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 100000);
    X509_set_pubkey(certificate, key);
    check(X509_sign(certificate, key, EVP_sha256()) > 0, "a certificate");
    BIO *memory = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(memory, certificate);
    bide_tls_certificate proof = {.chain = chain,
                                  .chain_size = text_of(memory, chain, sizeof chain)};
    memory = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL);
    proof.key = secret;
    proof.key_size = text_of(memory, secret, sizeof secret);
    const bide_tls_options options = {.certificates = &proof, .certificate_count = 1};
    check(bide_tls_server_create(&config, &options, NULL) == 0, "bide's config");
    blocking_client = SSL_CTX_new(TLS_client_method());
    blocking_server = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_session_cache_mode(blocking_server, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(blocking_server, 1);
    check(SSL_CTX_use_cert_and_key(blocking_server, certificate, key, NULL, 1) == 1, "OpenSSL's");
    X509_free(certificate);
    EVP_PKEY_free(key);
    check(bide_loop_create(&loop, NULL) == 0, "a loop");
}

int main(void)
{
    static const struct {
        const char *name;
        struct work work;
        const char *params;
    } works[] = {
        {"tls_handshakes", {CONNECTIONS, 0, 0}, "{\"version\": \"1.3\", \"key\": \"P-256\"}"},
        {"tls_sent", {1, BYTES, 0}, "{\"piece\": 65536}"},
        {"tls_received", {1, 0, BYTES}, "{\"piece\": 65536}"},
    };
    set_up();
    bench_place_thread(0);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const bench_subject subjects[] = {
            {"bide", run_bide, &works[i].work, works[i].params},
            {"OpenSSL, blocking", run_blocking, &works[i].work, works[i].params},
        };
        bench_run(works[i].name, BENCH_ITEMS_PER_SECOND, subjects, 2, ROUNDS);
    }
    bide_loop_destroy(loop);
    bide_tls_config_release(config);
    SSL_CTX_free(blocking_client);
    SSL_CTX_free(blocking_server);
}
