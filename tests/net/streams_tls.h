/*
 * For streams_test.c: streams of TLS, over a pipe in memory that is smaller than a record, or over
 * sockets.
 */
#ifndef BIDE_TESTS_IO_STREAMS_TLS_H
#define BIDE_TESTS_IO_STREAMS_TLS_H

#include "../tls/tls_certificates.h"

static struct over_tls {
    bide_tls sides[2]; /* the client, which writes, and the server */
    bide_tls_handshake handshakes[2];
    bide_memory_pipe pipes[2];
    bide_memory_end ends[2];
    char memory[2][MEMORY];
    bide_tls_config *configs[2];
} over_tls;

static void configure_tls(void)
{
    maker made;
    if (over_tls.configs[0] != NULL)
        return;
    make_certificate(&made, &(certificate_wish){.subject = "server", .names = "DNS:server.test"});
    const bide_tls_certificate proof = proof_of(&made);
    const bide_tls_options server = {.certificates = &proof, .certificate_count = 1};
    const bide_tls_options client = {.authorities = made.chain,
                                     .authorities_size = strlen(made.chain)};
    assert_int_equal(bide_tls_client_create(&over_tls.configs[0], &client, NULL), 0);
    assert_int_equal(bide_tls_server_create(&over_tls.configs[1], &server, NULL), 0);
    free_certificate(&made);
}

static void shake_hands(fixture *f, bide_stream client, bide_stream server)
{
    bide_event_waiter wait;
    configure_tls();
    act(f, &f->feeder,
        bide_tls_accept(&over_tls.handshakes[1], &over_tls.sides[1], over_tls.configs[1], server));
    assert_int_equal(run(f, bide_tls_connect(&over_tls.handshakes[0], &over_tls.sides[0],
                                             over_tls.configs[0], client, "server.test")),
                     0);
    assert_int_equal(run(f, bide_event_wait(&wait, &f->feeder.spawned.ended)), 0);
    assert_int_equal(f->feeder.status, 0);
    f->feeder.has_begun = false;
    f->output = bide_tls_stream(&over_tls.sides[0]);
    f->input = bide_tls_stream(&over_tls.sides[1]);
}

static void open_tls(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        bide_memory_pipe_init(&over_tls.pipes[i], over_tls.memory[i], MEMORY);
        over_tls.ends[i] = (bide_memory_end){&over_tls.pipes[1 - i], &over_tls.pipes[i]};
    }
    shake_hands(f, bide_memory_stream(&over_tls.ends[0]),
                bide_memory_stream(&over_tls.ends[1]));
}

static void open_tls_of_sockets(fixture *f)
{
    open_pair(f);
    shake_hands(f, f->output, f->input);
}

static void close_tls(void)
{
    bide_tls_close(&over_tls.sides[0]);
    bide_tls_close(&over_tls.sides[1]);
}

#endif
