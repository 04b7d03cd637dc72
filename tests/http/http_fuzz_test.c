/*
 * Randomly corrupted requests and responses. The server sends complete responses or none, and the client
 * ends. The sanitizers check that neither accesses memory out of bounds.
 */
#include "http_peer.h"
#include "bide/http.h"

static const char *const requests[] = {
    "GET /hello HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde",
    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX-Trailer: t\r\n\r\n",
    "POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "HEAD http://example.org/chunks?a=b HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    "GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nwords",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /late-status HTTP/1.1\r\nHost: a\r\n\r\n",
};

static const char *const responses[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nto the end",
    "HTTP/1.1 200 \r\nTransfer-Encoding: gzip\r\n\r\nto the end",
    "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
};

static uint64_t random_state;

static size_t draw(size_t below)
{
    return below == 0 ? 0 : (size_t)(testing_random(&random_state) % below);
}

/* Draws a byte with a meaning, or any byte. */
static char draw_byte(void)
{
    static const char telling[] = "\r\n :;,\t0\"/?#%-+\0\x7f\xff";
    return draw(2) == 0 ? telling[draw(sizeof telling)] : (char)draw(256);
}

/* Changes a few places of `text`, whose memory has room for more bytes. */
static size_t spoil(char *text, size_t size)
{
    for (size_t times = draw(4); times != 0 && size != 0; times--) {
        size_t at = draw(size);
        size_t count = 1 + draw(8);
        if (count > size - at)
            count = size - at;
        switch (draw(5)) {
        case 0:
            text[at] = draw_byte();
            break;
        case 1: /* inserts a byte */
            memmove(text + at + 1, text + at, size - at);
            text[at] = draw_byte();
            size++;
            break;
        case 2: /* removes some */
            memmove(text + at, text + at + count, size - at - count);
            size -= count;
            break;
        case 3: /* repeats some */
            memmove(text + at + count, text + at, size - at);
            size += count;
            break;
        default: /* removes the end */
            size = draw(4) == 0 ? at : size;
            break;
        }
    }
    return size;
}

static size_t compose(char *text, const char *const *parts, size_t count, size_t max)
{
    size_t size = 0;
    for (size_t n = 1 + draw(max); n != 0; n--) {
        const char *part = parts[draw(count)];
        memcpy(text + size, part, strlen(part));
        size += spoil(text + size, strlen(part));
    }
    return size;
}

/* The output is a sequence of responses; the last may be incomplete. */
static bool is_row_of_responses(const char *output, size_t size)
{
    return size == 0 || (size >= 9 && memcmp(output, "HTTP/1.1 ", 9) == 0);
}

static void corrupted_requests_are_answered_or_rejected(void **state)
{
    static peer peer;
    (void)state;
    random_state = testing_seed();
    peer_init(&peer, &(bide_http_options){.read_buffer_size = 2048, .write_buffer_size = 1024});
    for (uint32_t round = rounds_of(20000); round != 0; round--) {
        char text[4096];
        size_t size = compose(text, requests, sizeof requests / sizeof *requests, 4);
        peer.seed = draw(2) == 0 ? 0 : 1 + draw(1000000);
        peer.piece = draw(3) == 0 ? 1 + draw(20) : 0;
        peer.cut = draw(size + 1);
        peer.ends = draw(3) != 0;
        (void)peer_say_bytes(&peer, text, size);
        assert_true(is_row_of_responses(peer.output, peer.output_size));
        assert_int_equal(peer.server.stats.live, 0);
    }
    peer_end(&peer);
}

/* ---- The client ---- */

static struct spoilt {
    bide_sim_loop loop;
    bide_memory_pipe in, out;
    bide_memory_end end;
    char in_memory[4096], out_memory[4096];
    _Alignas(16) char memory[8192];
    bide_http_client client;
    char buffer[100];
    size_t size;
    struct asker {
        bide_task task;
    } asker;
} c;

bide_coroutine(ask)
{
    bide_begin(ask, struct asker * self);
    (void)self;
    bide_try(bide_http_client_recv(&c.client));
    do {
        bide_try(bide_http_client_read(&c.client, c.buffer, sizeof c.buffer));
        c.size += c.client.count;
    } while (c.client.count != 0);
    bide_end();
}

static void corrupted_responses_are_accepted_or_rejected(void **state)
{
    (void)state;
    random_state = testing_seed();
    for (uint32_t round = rounds_of(20000); round != 0; round--) {
        char text[4096];
        size_t size = compose(text, responses, sizeof responses / sizeof *responses, 2);
        bide_sim_loop_init(&c.loop, 1);
        bide_memory_pipe_init(&c.in, c.in_memory, sizeof c.in_memory);
        bide_memory_pipe_init(&c.out, c.out_memory, sizeof c.out_memory);
        c.end = (bide_memory_end){&c.in, &c.out};
        bide_memory_end other = {NULL, &c.in};
        bide_stream_operation operation;
        if (size != 0)
            assert_int_equal(bide_sim_loop_wait(&c.loop, bide_stream_write(&operation, bide_memory_stream(&other),
                                                                            text, size)), 0);
        bide_memory_pipe_destroy(&c.in);
        assert_int_equal(bide_http_client_init(&c.client, bide_memory_stream(&c.end), c.memory, sizeof c.memory,
                                               &(bide_http_client_options){.max_fields = 32}), 0);
        assert_int_equal(bide_http_client_start_request(&c.client, draw(4) == 0 ? "HEAD" : "GET", "/", "a"), 0);
        c.size = 0;
        int status = bide_sim_loop_wait(&c.loop, bide_task_init(&c.asker.task, &ask));
        assert_true(status == 0 || status == -EBADMSG || status == -ENODATA || status == -EPIPE || status == -EMSGSIZE);
        assert_true(c.size <= size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corrupted_requests_are_answered_or_rejected),
        cmocka_unit_test(corrupted_responses_are_accepted_or_rejected),
    };
    return cmocka_run_group_tests_name("http_fuzz", tests, NULL, NULL);
}
