/*
 * A server's connection of HTTP/2, over pipes in memory, in async functions: it is awaited without its struct before a
 * large await, and with it in a function whose result takes over the memory of its variables. The handler is an async
 * function. Translated by bidec.
 */
#include "operations.h"

#include "bide/bide.h"
#include "bide/http.h"
#include "bide/http2.h"
#include "bide/http2_client.h"

#include <stdlib.h>

static struct {
    struct memory_pair pair;
    bide_http_server http;
    bide_http2 http2;
    bide_http2_client client;
    void *room;
} objects;

/* ---- The server ---- */

async struct big handle(bide_http_exchange *exchange)
{
    char bytes[8];
    assert_int_equal(exchange->request.major, 2);
    OWN(bide_http_read, exchange, bytes, sizeof bytes);
    assert_int_equal(exchange->count, 5);
    OWN(bide_http_write, exchange, bytes, 5);
    OWN(bide_http_flush, exchange);
    OWN(bide_http_read, exchange, bytes, sizeof bytes);
    assert_int_equal(exchange->count, 0);
    OWN(bide_http_write, exchange, "!", 1);
    return filled(0);
}

struct handler {
    bide_http_exchange exchange;
    async_frame(handle) frame;
};

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
    bide_try(async_handle(&self->frame, &self->exchange));
    check_filled(&self->frame.result, 0);
    bide_end();
}

async int hidden_serve(const char *protocol)
{
    int status = await bide_http2_serve(&objects.http2, bide_memory_stream(&objects.pair.server),
                                        objects.room, protocol);
    await large();
    return status;
}

async struct big named_serve(const char *protocol)
{
    bide_http_connection connection;
    int status =
        await bide_http2_serve(&connection, &objects.http2,
                               bide_memory_stream(&objects.pair.server), objects.room, protocol);
    await large();
    return filled(status);
}

/* ---- The client: frames as bytes ---- */

static const char request[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    "\0\0\0\4\0\0\0\0\0"                    /* SETTINGS */
    "\0\0\6\1\4\0\0\0\1\x83\x86\x84\x41\1h" /* HEADERS: POST http / of h */
    "\0\0\5\0\1\0\0\0\1hello";              /* DATA, the last */

enum { FRAME_HEAD = 9, FRAME_DATA = 0, FLAG_END_STREAM = 1 };

/* Reads frames until the response has ended; its body is in `bytes`, of `size` bytes. Returns their count. */
async long read_response(bide_reader *reader, char *bytes, size_t size)
{
    unsigned char head[FRAME_HEAD];
    char rest[256];
    size_t count = 0;
    do {
        assert_int_equal(await bide_reader_read_exact(reader, head, sizeof head), FRAME_HEAD);
        size_t length = (size_t)head[1] << 8 | head[2];
        assert_true(head[0] == 0 && length <= sizeof rest);
        if (length > 0)
            assert_int_equal(await bide_reader_read_exact(reader, rest, length), length);
        if (head[3] == FRAME_DATA) {
            assert_true(count + length <= size);
            memcpy(bytes + count, rest, length);
            count += length;
        }
    } while ((head[3] != FRAME_DATA && head[3] != 1) || (head[4] & FLAG_END_STREAM) == 0);
    return (long)count;
}

async struct big ask(void)
{
    bide_stream stream = bide_memory_stream(&objects.pair.client);
    char buffer[1024], bytes[16];
    bide_reader reader;
    bide_stream_operation end;
    bide_reader_init(&reader, stream, buffer, sizeof buffer);
    VALUE(bide_stream_write, (long)sizeof request - 1, stream, request, sizeof request - 1);
    assert_int_equal(await read_response(&reader, bytes, sizeof bytes), 6);
    assert_memory_equal(bytes, "hello!", 6);
    OWN(bide_stream_shutdown_output, &end, stream);
    return filled(7);
}

/* ---- The library's client ---- */

async struct big run_client(void)
{
    bide_stream_operation end;
    OWN(bide_http2_client_run, &objects.client);
    OWN(bide_stream_shutdown_output, &end, bide_memory_stream(&objects.pair.client));
    return filled(7);
}

async struct big request_twice(void)
{
    bide_http2_request request;
    for (int i = 0; i < 2; i++) {
        char bytes[8];
        size_t size = 0;
        assert_int_equal(bide_http2_request_init(&request, &objects.client, "POST", "/", "here"), 0);
        if (i == 1) {
            assert_int_equal(bide_http2_request_add(&request, "Expect", "100-continue"), 0);
            assert_int_equal(bide_http2_request_finish_head(&request, 5), 0);
            OWN(bide_http2_request_continue, &request);
            assert_true(request.continues);
        }
        OWN(bide_http2_request_write, &request, "hello", 5);
        OWN(bide_http2_request_recv, &request);
        assert_int_equal(request.response.status, 200);
        do {
            OWN(bide_http2_request_read, &request, bytes, sizeof bytes);
            size += request.count;
        } while (request.count > 0);
        assert_int_equal(size, 6);
        bide_http2_request_close(&request);
    }
    bide_http2_client_shut_down(&objects.client);
    return filled(7);
}

async int serve_the_client(void)
{
    async_frame(hidden_serve) server;
    async_frame(run_client) runner;
    async_frame(request_twice) client;
    memory_pair_init(&objects.pair);
    assert_int_equal(bide_http2_client_init(&objects.client, bide_memory_stream(&objects.pair.client), NULL), 0);
    assert_int_equal(await all(async_hidden_serve(&server, "h2"), async_run_client(&runner), async_request_twice(&client)), 0);
    assert_int_equal(server.result, 0);
    check_filled(&runner.result, 7);
    check_filled(&client.result, 7);
    bide_http2_client_destroy(&objects.client);
    return 0;
}

/* ---- */

/* By the protocol that was negotiated, and by the bytes that come first. */
async int serve_each(void)
{
    static const char *const protocols[] = {"h2", NULL};
    for (int i = 0; i < 2; i++) {
        async_frame(hidden_serve) hidden;
        async_frame(named_serve) named;
        async_frame(ask) client;
        memory_pair_init(&objects.pair);
        assert_int_equal(await all(async_hidden_serve(&hidden, protocols[i]), async_ask(&client)),
                         0);
        assert_int_equal(hidden.result, 0);
        check_filled(&client.result, 7);
        memory_pair_init(&objects.pair);
        assert_int_equal(await all(async_named_serve(&named, protocols[i]), async_ask(&client)), 0);
        check_filled(&named.result, 0);
        check_filled(&client.result, 7);
    }
    assert_int_equal(await serve_the_client(), 0);
    return 1;
}

static void test_each(void **state)
{
    static async_frame(serve_each) frame;
    bide_loop *loop;
    bide_http_options options = {.handler = {&handler_body, sizeof(struct handler)}};
    (void)state;
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_int_equal(bide_http_server_init(&objects.http, &options), 0);
    assert_int_equal(
        bide_http2_init(&objects.http2, &objects.http, &(bide_http2_options){.is_plain = true}), 0);
    objects.room = malloc(bide_http_memory_size(&objects.http));
    assert_non_null(objects.room);
    memset(&frame, 0xd5, sizeof frame);
    assert_int_equal(bide_loop_wait(loop, async_serve_each(&frame)), 0);
    assert_int_equal(frame.result, 1);
    assert_int_equal(objects.http2.stats.streams, 6);
    free(objects.room);
    bide_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
