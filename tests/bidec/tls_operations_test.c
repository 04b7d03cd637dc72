/*
 * The operations of TLS, over pipes in memory: each is awaited without its struct before a large await, and with it
 * in a function whose result takes over the memory of its variables. Translated by bidec.
 */
#include "operations.h"

#include "bide/bide.h"
#include "bide/tls.h"

#include "tls_certificates.h"

static struct {
    struct memory_pair pair;
    bide_tls_config *client_config, *server_config;
} objects;

/* Without structs; the counts are those of the headers. */
async int hidden_client(void)
{
    bide_tls tls;
    char bytes[16];
    assert_int_equal(await bide_tls_connect(&tls, objects.client_config,
                                            bide_memory_stream(&objects.pair.client),
                                            "server.test"),
                     0);
    await large();
    bide_stream stream = bide_tls_stream(&tls);
    assert_int_equal(await bide_stream_write(stream, "hello", 5), 5);
    await large();
    assert_int_equal(await bide_stream_read(stream, bytes, sizeof bytes), 3);
    await large();
    assert_memory_equal(bytes, "yes", 3);
    assert_int_equal(await bide_stream_shutdown_output(stream), 0);
    await large();
    assert_int_equal(await bide_stream_read(stream, bytes, sizeof bytes), 0);
    bide_tls_close(&tls);
    return 1;
}

async int hidden_server(void)
{
    bide_tls tls;
    char bytes[16];
    assert_int_equal(await bide_tls_accept(&tls, objects.server_config,
                                           bide_memory_stream(&objects.pair.server)),
                     0);
    await large();
    bide_stream stream = bide_tls_stream(&tls);
    assert_int_equal(await bide_stream_read(stream, bytes, sizeof bytes), 5);
    await large();
    assert_memory_equal(bytes, "hello", 5);
    assert_int_equal(await bide_stream_write(stream, "yes", 3), 3);
    await large();
    assert_int_equal(await bide_stream_read(stream, bytes, sizeof bytes), 0);
    await large();
    assert_int_equal(await bide_stream_shutdown_output(stream), 0);
    bide_tls_close(&tls);
    return 1;
}

/* With structs, which are variables beside the result. */
async struct big named_client(void)
{
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_stream_operation write, read, end;
    char bytes[16];
    assert_int_equal(await bide_tls_connect(&handshake, &tls, objects.client_config,
                                            bide_memory_stream(&objects.pair.client),
                                            "server.test"),
                     0);
    await large();
    bide_stream stream = bide_tls_stream(&tls);
    assert_int_equal(await bide_stream_write(&write, stream, "hello", 5), 0);
    await large();
    assert_int_equal(bide_stream_count(&write, stream), 5);
    assert_int_equal(await bide_stream_read(&read, stream, bytes, sizeof bytes), 0);
    await large();
    assert_int_equal(bide_stream_count(&read, stream), 3);
    assert_int_equal(await bide_stream_shutdown_output(&end, stream), 0);
    await large();
    assert_int_equal(await bide_stream_read(&read, stream, bytes, sizeof bytes), 0);
    assert_int_equal(bide_stream_count(&read, stream), 0);
    bide_tls_close(&tls);
    return filled(0);
}

async struct big named_server(void)
{
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_stream_operation write, read, end;
    char bytes[16];
    assert_int_equal(await bide_tls_accept(&handshake, &tls, objects.server_config,
                                           bide_memory_stream(&objects.pair.server)),
                     0);
    await large();
    bide_stream stream = bide_tls_stream(&tls);
    assert_int_equal(await bide_stream_read(&read, stream, bytes, sizeof bytes), 0);
    await large();
    assert_int_equal(bide_stream_count(&read, stream), 5);
    assert_int_equal(await bide_stream_write(&write, stream, "yes", 3), 0);
    await large();
    assert_int_equal(bide_stream_count(&write, stream), 3);
    assert_int_equal(await bide_stream_read(&read, stream, bytes, sizeof bytes), 0);
    assert_int_equal(await bide_stream_shutdown_output(&end, stream), 0);
    bide_tls_close(&tls);
    return filled(0);
}

async int both(void)
{
    async_frame(hidden_client) client;
    async_frame(hidden_server) server;
    async_frame(named_client) named_to;
    async_frame(named_server) named_from;
    memory_pair_init(&objects.pair);
    assert_int_equal(await all(async_hidden_client(&client), async_hidden_server(&server)), 0);
    assert_int_equal(client.result + server.result, 2);
    memory_pair_init(&objects.pair);
    assert_int_equal(await all(async_named_client(&named_to), async_named_server(&named_from)), 0);
    check_filled(&named_to.result, 0);
    check_filled(&named_from.result, 0);
    return 1;
}

static void test_each(void **state)
{
    static async_frame(both) frame;
    static maker authority, proof;
    bide_loop *loop;
    (void)state;
    make_certificate(&authority, &(certificate_wish){.subject = "Authority", .is_authority = true});
    make_certificate(
        &proof,
        &(certificate_wish){.subject = "server", .names = "DNS:server.test", .by = &authority});
    bide_tls_certificate certificate = proof_of(&proof);
    assert_int_equal(
        bide_tls_client_create(&objects.client_config,
                               &(bide_tls_options){.authorities = authority.chain,
                                                   .authorities_size = strlen(authority.chain)},
                               NULL),
        0);
    assert_int_equal(bide_tls_server_create(
                         &objects.server_config,
                         &(bide_tls_options){.certificates = &certificate, .certificate_count = 1},
                         NULL),
                     0);
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    memset(&frame, 0xd5, sizeof frame);
    assert_int_equal(bide_loop_wait(loop, async_both(&frame)), 0);
    assert_int_equal(frame.result, 1);
    bide_loop_destroy(loop);
    bide_tls_config_release(objects.client_config);
    bide_tls_config_release(objects.server_config);
    free_certificate(&authority);
    free_certificate(&proof);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
