/* Two sides that talk TLS in a test: over pipes in memory, or over sockets of the world. */
#ifndef BIDE_TESTS_IO_TLS_PAIR_H
#define BIDE_TESTS_IO_TLS_PAIR_H

#include "../io/runner.h"
#include "tls_certificates.h"

#include <bide/tls.h>

#include <openssl/ssl.h>

typedef enum below { PIPES, SMALL_PIPES, SOCKETS, BELOWS } below;

static const char *const belows[] = {"pipes", "small pipes", "sockets"};

enum { PIPE = 65536, SMALL_PIPE = 700 };

/* One side. */
typedef struct side {
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_stream stream; /* the TLS stream */
    bide_stream below;
    bide_stream_operation read, write;
    struct runner reading, writing;
    bide_memory_end end;
    bide_descriptor socket;
} side;

typedef struct pair {
    world *world;
    below kind;
    side client, server;
    bide_memory_pipe there, back;
    char memory[2][PIPE];
    const char *protocol; /* the only one that the client offers; NULL: those of its config */
} pair;

/* Opens the streams below. */
static inline void pair_open(pair *p, world *world, below kind)
{
    size_t size = kind == SMALL_PIPES ? SMALL_PIPE : PIPE;
    p->world = world;
    p->kind = kind;
    bide_tls_init_closed(&p->client.tls);
    bide_tls_init_closed(&p->server.tls);
    bide_descriptor_init_closed(&p->client.socket);
    bide_descriptor_init_closed(&p->server.socket);
    if (kind == SOCKETS) {
        bide_io_operation operation;
        assert_int_equal(
            world_wait(world, bide_socket_pair(&operation, &p->client.socket, &p->server.socket)),
            0);
        p->client.below = bide_socket_stream(&p->client.socket);
        p->server.below = bide_socket_stream(&p->server.socket);
    } else {
        bide_memory_pipe_init(&p->there, p->memory[0], size);
        bide_memory_pipe_init(&p->back, p->memory[1], size);
        p->client.end = (bide_memory_end){.input = &p->back, .output = &p->there};
        p->server.end = (bide_memory_end){.input = &p->there, .output = &p->back};
        p->client.below = bide_memory_stream(&p->client.end);
        p->server.below = bide_memory_stream(&p->server.end);
    }
    p->client.stream = bide_tls_stream(&p->client.tls);
    p->server.stream = bide_tls_stream(&p->server.tls);
}

static inline void close_side(void *of)
{
    side *s = of;
    if (bide_tls_close(&s->tls) == -EBADF)
        bide_stream_close(s->below);
}

static inline void pair_close(pair *p)
{
    call_inside(p->world, close_side, &p->client);
    call_inside(p->world, close_side, &p->server);
    assert_null(p->client.tls.ssl);
    assert_null(p->server.tls.ssl);
}

/* Both sides shake hands. Sets the status of both. */
static inline void pair_greet(pair *p, bide_tls_config *client, bide_tls_config *server,
                              const char *name, int *client_status, int *server_status)
{
    begin(p->world, &p->server.reading,
          bide_tls_accept(&p->server.handshake, &p->server.tls, server, p->server.below));
    bide_awaiter *connect =
        bide_tls_connect(&p->client.handshake, &p->client.tls, client, p->client.below, name);
    p->client.handshake.protocol = p->protocol;
    begin(p->world, &p->client.reading, connect);
    while (!p->client.reading.has_ended && !p->server.reading.has_ended)
        turn(p->world);
    side *first = p->client.reading.has_ended ? &p->client : &p->server;
    if (first->reading.status != 0)
        call_inside(p->world, close_side, first); /* (the other side may wait for more) */
    *client_status = end(p->world, &p->client.reading);
    if (*client_status != 0)
        call_inside(p->world, close_side, &p->client);
    *server_status = end(p->world, &p->server.reading);
}

static inline void pair_greet_well(pair *p, bide_tls_config *client, bide_tls_config *server,
                                   const char *name)
{
    int client_status, server_status;
    pair_greet(p, client, server, name, &client_status, &server_status);
    if (client_status != 0 || server_status != 0)
        print_error("client: %s; server: %s\n", bide_tls_reason(&p->client.tls),
                    bide_tls_reason(&p->server.tls));
    assert_int_equal(client_status, 0);
    assert_int_equal(server_status, 0);
}

/* One side sends data and the other receives it, in one piece if it is small. */
static inline void pair_send(pair *p, side *from, side *to, const void *data, size_t size)
{
    static char got[1 << 20];
    assert_true(size <= sizeof got);
    begin(p->world, &from->writing, bide_stream_write(&from->write, from->stream, data, size));
    for (size_t count = 0; count != size;) {
        int status = world_wait(
            p->world, bide_stream_read(&to->read, to->stream, got + count, sizeof got - count));
        assert_int_equal(status, 0);
        assert_true(bide_stream_count(&to->read, to->stream) != 0);
        count += bide_stream_count(&to->read, to->stream);
        assert_true(count <= size);
    }
    assert_int_equal(end(p->world, &from->writing), 0);
    assert_int_equal(bide_stream_count(&from->write, from->stream), size);
    assert_memory_equal(got, data, size);
}

/* One side ends its output, and the other reads the end. */
static inline void pair_end(pair *p, side *from, side *to)
{
    char byte;
    begin(p->world, &from->writing, bide_stream_shutdown_output(&from->write, from->stream));
    assert_int_equal(world_wait(p->world, bide_stream_read(&to->read, to->stream, &byte, 1)), 0);
    assert_int_equal(bide_stream_count(&to->read, to->stream), 0);
    assert_int_equal(end(p->world, &from->writing), 0);
}

/* ---- Identities ---- */

static maker authority, stranger, server_proof, client_proof;

static inline int make_everyone(void **state)
{
    (void)state;
    make_certificate(&authority, &(certificate_wish){.subject = "Authority", .is_authority = true});
    make_certificate(&stranger, &(certificate_wish){.subject = "Stranger", .is_authority = true});
    make_certificate(&server_proof,
                     &(certificate_wish){.subject = "server",
                                         .names = "DNS:server.test,DNS:*.wild.test,IP:127.0.0.1",
                                         .by = &authority});
    make_certificate(&client_proof, &(certificate_wish){.subject = "client", .by = &authority});
    return 0;
}

static inline int free_everyone(void **state)
{
    (void)state;
    free_certificate(&authority);
    free_certificate(&stranger);
    free_certificate(&server_proof);
    free_certificate(&client_proof);
    return 0;
}

/* Options for a side with this certificate that trusts the authority. */
static inline bide_tls_options options_of(const maker *proof, bide_tls_certificate *room)
{
    if (proof != NULL)
        *room = proof_of(proof);
    return (bide_tls_options){.certificates = room,
                              .certificate_count = proof != NULL,
                              .authorities = authority.chain,
                              .authorities_size = strlen(authority.chain)};
}

static inline bide_tls_config *client_with(const bide_tls_options *options)
{
    bide_tls_config *config = NULL;
    const char *reason = "";
    int status = bide_tls_client_create(&config, options, &reason);
    if (status != 0)
        print_error("%s\n", reason);
    assert_int_equal(status, 0);
    return config;
}

static inline bide_tls_config *server_with(const bide_tls_options *options)
{
    bide_tls_config *config = NULL;
    const char *reason = "";
    int status = bide_tls_server_create(&config, options, &reason);
    if (status != 0)
        print_error("%s\n", reason);
    assert_int_equal(status, 0);
    return config;
}

static inline bide_tls_config *usual_client(void)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(NULL, &room);
    return client_with(&options);
}

static inline bide_tls_config *usual_server(void)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(&server_proof, &room);
    return server_with(&options);
}

#endif
