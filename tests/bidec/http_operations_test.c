/*
 * The operations of HTTP and of its connections, over pipes in memory: each is awaited without the struct that it
 * may go without, before a large await, and with it in a function whose result takes over the memory of its
 * variables. Translated by bidec.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/bide.h"
#include "bide/http.h"

/* ---- What takes over memory ---- */

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

static struct big filled(int status)
{
    struct big big;
    for (int i = 0; i < 80; i++)
        big.a[i] = i == 40 ? status : ~(long)i;
    return big;
}

static void check_filled(const struct big *big, int status)
{
    for (int i = 0; i < 80; i++)
        assert_int_equal(big->a[i], i == 40 ? status : ~(long)i);
}

/* ---- The server ---- */

struct echo {
    bide_http_exchange exchange;
    char bytes[32];
};

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct echo * self);
    do {
        bide_try(bide_http_read(&self->exchange, self->bytes, sizeof self->bytes));
        bide_try(bide_http_write(&self->exchange, self->bytes, self->exchange.count));
    } while (self->exchange.count > 0);
    bide_end();
}

static struct {
    bide_memory_pipe there, back;
    char memory[2][4096];
    bide_memory_end client, server;
    bide_http_server http;
    void *room;
} objects;

/* Serves without a struct, and with one. */
async int hidden_serve(void)
{
    int status =
        await bide_http_serve(&objects.http, bide_memory_stream(&objects.server), objects.room);
    await large();
    return status;
}

async struct big named_serve(void)
{
    bide_http_connection connection;
    int status = await bide_http_serve(&connection, &objects.http,
                                       bide_memory_stream(&objects.server), objects.room);
    await large();
    return filled(status);
}

/* ---- The client: its struct is beside the result ---- */

async struct big request(void)
{
    static char memory[BIDE_HTTP_CLIENT_MEMORY];
    bide_http_client client;
    char bytes[32];
    assert_int_equal(bide_http_client_init(&client, bide_memory_stream(&objects.client), memory,
                                           sizeof memory, NULL),
                     0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bide_http_client_start_request(&client, "POST", "/echo", "here"), 0);
        if (i == 2) {
            assert_int_equal(bide_http_client_add(&client, "Expect", "100-continue"), 0);
            assert_int_equal(bide_http_client_finish_head(&client, 5), 0);
            assert_int_equal(await bide_http_client_continue(&client), 0);
            assert_true(client.continues);
            await large();
        }
        assert_int_equal(await bide_http_client_write(&client, "hello", 5), 0);
        await large();
        assert_int_equal(await bide_http_client_flush(&client), 0);
        await large();
        assert_int_equal(await bide_http_client_recv(&client), 0);
        await large();
        assert_int_equal(client.response.status, 200);
        assert_int_equal(await bide_http_client_read(&client, bytes, sizeof bytes), 0);
        await large();
        assert_int_equal(client.count, 5);
        assert_memory_equal(bytes, "hello", 5);
        assert_int_equal(await bide_http_client_read(&client, bytes, sizeof bytes), 0);
        assert_int_equal(client.count, 0);
    }
    bide_stream_operation end;
    assert_int_equal(await bide_stream_shutdown_output(&end, bide_memory_stream(&objects.client)),
                     0);
    await large();
    return filled(7);
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
    async_frame(hidden_serve) hidden;
    async_frame(named_serve) named;
    async_frame(request) client;
    set_up();
    assert_int_equal(await all(async_hidden_serve(&hidden), async_request(&client)), 0);
    assert_int_equal(hidden.result, 0);
    check_filled(&client.result, 7);
    set_up();
    assert_int_equal(await all(async_named_serve(&named), async_request(&client)), 0);
    check_filled(&named.result, 0);
    check_filled(&client.result, 7);
    return 1;
}

static void test_each(void **state)
{
    static async_frame(both) frame;
    bide_loop *loop;
    (void)state;
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_int_equal(
        bide_http_server_init(&objects.http,
                              &(bide_http_options){.handler = {&echo_body, sizeof(struct echo)}}),
        0);
    objects.room = malloc(bide_http_memory_size(&objects.http));
    assert_non_null(objects.room);
    memset(&frame, 0xd5, sizeof frame);
    assert_int_equal(bide_loop_wait(loop, async_both(&frame)), 0);
    assert_int_equal(frame.result, 1);
    free(objects.room);
    bide_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
