/*
 * The operations of TLS, over pipes in memory: each is awaited without its struct before a large await, and with it
 * in a function whose result takes over the memory of its variables. Translated by bidec.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/bide.h"
#include "bide/tls.h"

#include "tls_certificates.h"

struct big {
    long a[80]; /* 640 bytes */
};

/* Suspends with a frame full of a pattern. */
async void large(void)
{
    unsigned char pattern[3000];
    memset(pattern, 0xa5, sizeof pattern);
    await bide_sleep_for(1);
    for (size_t byte = 0; byte < sizeof pattern; byte++)
        assert_int_equal(pattern[byte], 0xa5);
}

static struct big filled(void)
{
    struct big big;
    for (int i = 0; i < 80; i++)
        big.a[i] = ~(long)i;
    return big;
}

static void check_filled(const struct big *big)
{
    for (int i = 0; i < 80; i++)
        assert_int_equal(big->a[i], ~(long)i);
}

static struct {
    bide_memory_pipe there, back;
    char memory[2][65536];
    bide_memory_end client, server;
    bide_tls_config *client_config, *server_config;
} objects;

/* Without structs; the counts are those of the headers. */
async int hidden_client(void)
{
    bide_tls tls;
    char bytes[16];
    assert_int_equal(await bide_tls_connect(&tls, objects.client_config,
                                            bide_memory_stream(&objects.client), "server.test"),
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
    assert_int_equal(
        await bide_tls_accept(&tls, objects.server_config, bide_memory_stream(&objects.server)), 0);
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
                                            bide_memory_stream(&objects.client), "server.test"),
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
    return filled();
}

async struct big named_server(void)
{
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_stream_operation write, read, end;
    char bytes[16];
    assert_int_equal(await bide_tls_accept(&handshake, &tls, objects.server_config,
                                           bide_memory_stream(&objects.server)),
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
    return filled();
}

static void set_up(void)
{
    bide_memory_pipe_init(&objects.there, objects.memory[0], sizeof objects.memory[0]);
    bide_memory_pipe_init(&objects.back, objects.memory[1], sizeof objects.memory[1]);
    objects.client = (bide_memory_end){&objects.back, &objects.there};
    objects.server = (bide_memory_end){&objects.there, &objects.back};
}

async int both(void)
{
    async_frame(hidden_client) client;
    async_frame(hidden_server) server;
    async_frame(named_client) named_to;
    async_frame(named_server) named_from;
    set_up();
    assert_int_equal(await all(async_hidden_client(&client), async_hidden_server(&server)), 0);
    assert_int_equal(client.result + server.result, 2);
    set_up();
    assert_int_equal(await all(async_named_client(&named_to), async_named_server(&named_from)), 0);
    check_filled(&named_to.result);
    check_filled(&named_from.result);
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
