/*
 * The HTTP client is cancelled at each of its waits in each way. Operations that are cancel-safe resume
 * and lose nothing; the others report that they cannot.
 */
#define _GNU_SOURCE
#include "../io/runner.h"

#include <bide/http_client.h>

#include <errno.h>
#include <stdlib.h>

enum { MUCH = 4 << 20, ROOM = 1 << 16 };

enum place { WRITES, FLUSHES, SENDS_HEAD, CONTINUES, RECEIVES, READS };

/* A place where the client waits: the server's output before it, and after it. */
struct row {
    enum place place;
    const char *before, *after;
    const char *body; /* received afterwards; NULL: the client reads no body */
    bool ends;        /* the body ends with the connection */
    int closed;       /* the status if the socket is closed meanwhile */
};

#define OK "HTTP/1.1 200 OK\r\n"
#define TEN OK "Content-Length: 10\r\n\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static const struct row rows[] = {
    {WRITES, "", "", NULL, false, -EPIPE},
    {FLUSHES, "", "", NULL, false, -EPIPE},
    {SENDS_HEAD, "", TEN "helloworld", "helloworld", false, -EBADF},
    {CONTINUES, "", "HTTP/1.1 100 Continue\r\n\r\n", NULL, false, -EPIPE},
    {CONTINUES, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 1", "00 Continue\r\n\r\n", NULL, false, -EPIPE},
    {RECEIVES, "", TEN "helloworld", "helloworld", false, -EPIPE},
    {RECEIVES, "HTTP/1.1 200 OK\r\nContent-Le", "ngth: 10\r\n\r\nhelloworld", "helloworld", false, -EPIPE},
    {RECEIVES, "HTTP/1.1 103 Early Hints\r\n\r\n", TEN "helloworld", "helloworld", false, -EPIPE},
    {READS, TEN "hello", "world", "world", false, -EPIPE},
    {READS, CHUNKED "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n", "world", false, -EPIPE},
    {READS, CHUNKED "5\r\nhello\r\n5", "\r\nworld\r\n0\r\nx-sum: 1\r\n\r\n", "world", false, -EPIPE},
    {READS, CHUNKED "5\r\nhello\r\n5\r", "\nworld\r\n0\r\n\r\n", "world", false, -EPIPE},
    {READS, OK "\r\nhello", "world", "world", true, -EPIPE},
};

static struct fixture {
    world *world;
    bide_descriptor ours, theirs;
    bide_http_client client;
    _Alignas(16) char memory[BIDE_HTTP_CLIENT_MEMORY];
    char much[MUCH];
    char got[ROOM];
    size_t filler; /* bytes that block the connection */
    struct runner runner;
} f;

static void say(const char *text)
{
    if (text[0] != 0)
        world_send(f.world, &f.theirs, text, strlen(text));
}

/* Fills the socket. */
static void fill(void)
{
    bide_io_operation operation;
    bide_with_deadline_operation limited;
    int status;
    do {
        status = world_wait(f.world, bide_with_deadline(&limited, world_now(f.world) + 1000000,
                                                        bide_send(&operation, &f.ours, f.much, MUCH)));
        f.filler += operation.count;
    } while (status == 0);
    assert_int_equal(status, -ETIMEDOUT);
}

/* The server receives the bytes that block the connection. */
static void take_filler(void)
{
    bide_io_operation operation;
    while (f.filler != 0) {
        size_t size = f.filler < ROOM ? f.filler : ROOM;
        assert_int_equal(world_wait(f.world, bide_recv(&operation, &f.theirs, f.got, size)), 0);
        assert_true(operation.count > 0);
        f.filler -= operation.count;
    }
}

/* The server receives exactly this text. */
static void gets(const char *text)
{
    bide_io_operation operation;
    bide_with_deadline_operation limited;
    size_t size = strlen(text);
    assert_int_equal(world_wait(f.world, bide_recv(&operation, &f.theirs, f.got, size)), 0);
    assert_int_equal(operation.count, size);
    assert_memory_equal(f.got, text, size);
    assert_int_equal(world_wait(f.world, bide_with_deadline(&limited, world_now(f.world) + 1000000,
                                                            bide_recv(&operation, &f.theirs, f.got, 1))),
                     -ETIMEDOUT);
}

/* Brings the client to its wait. */
static void come_to(const struct row *row)
{
    bide_http_client *client = &f.client;
    bide_io_operation operation;
    assert_int_equal(world_wait(f.world, bide_socket_pair(&operation, &f.ours, &f.theirs)), 0);
    f.filler = 0;
    assert_int_equal(bide_http_client_init(client, bide_socket_stream(&f.ours), f.memory, sizeof f.memory, NULL), 0);
    if (row->place == FLUSHES || row->place == SENDS_HEAD)
        fill();
    bool has_body = row->place <= FLUSHES || row->place == CONTINUES;
    assert_int_equal(bide_http_client_start_request(client, has_body ? "PUT" : "GET", "/x", "example.org"), 0);
    if (row->place == CONTINUES)
        assert_int_equal(bide_http_client_add(client, "Expect", "100-continue"), 0);
    if (has_body)
        assert_int_equal(bide_http_client_finish_head(client, row->place == WRITES ? MUCH : 5), 0);
    say(row->before);
    if (row->place == FLUSHES)
        assert_int_equal(world_wait(f.world, bide_http_client_write(client, "hello", 5)), 0);
    if (row->place == READS) {
        assert_int_equal(world_wait(f.world, bide_http_client_recv(client)), 0);
        assert_int_equal(client->response.status, 200);
        assert_int_equal(world_wait(f.world, bide_http_client_read(client, f.got, 5)), 0);
        assert_int_equal(client->count, 5);
        assert_memory_equal(f.got, "hello", 5);
    }
}

static bide_awaiter *wait_at(enum place place)
{
    switch (place) {
    case WRITES:
        return bide_http_client_write(&f.client, f.much, MUCH);
    case FLUSHES:
        return bide_http_client_flush(&f.client);
    case CONTINUES:
        return bide_http_client_continue(&f.client);
    case READS:
        return bide_http_client_read(&f.client, f.got, ROOM);
    default:
        return bide_http_client_recv(&f.client);
    }
}

/* Reads the whole body. */
static void read_all(const char *body)
{
    size_t size = 0;
    do {
        assert_int_equal(world_wait(f.world, bide_http_client_read(&f.client, f.got + size, 3)), 0);
        size += f.client.count;
    } while (f.client.count != 0);
    assert_int_equal(size, strlen(body));
    assert_memory_equal(f.got, body, size);
}

static void goes_on(const struct row *row)
{
    if (f.filler != 0)
        take_filler();
    say(row->after);
    if (row->ends)
        bide_shutdown(&f.theirs, BIDE_HALF_OUTPUT);
    if (row->place != READS)
        assert_int_equal(world_wait(f.world, wait_at(row->place)), 0);
    if (row->place == FLUSHES)
        gets("PUT /x HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\r\nhello");
    if (row->place == SENDS_HEAD)
        gets("GET /x HTTP/1.1\r\nHost: example.org\r\n\r\n");
    if (row->place == CONTINUES)
        assert_true(f.client.continues);
    if (row->body != NULL) {
        read_all(row->body);
        assert_int_equal(bide_http_client_is_reusable(&f.client), !row->ends);
    }
}

static void close_both(void *unused)
{
    (void)unused;
    bide_close(&f.ours);
    bide_close(&f.theirs);
}

static void cut(const struct row *row, int how)
{
    come_to(row);
    begin_by(f.world, &f.runner, wait_at(row->place), how);
    turn(f.world);
    assert_false(f.runner.has_ended && how != TIME_OUT);
    if (how == CLOSE) {
        call_inside(f.world, close_it, &f.ours);
        assert_int_equal(end(f.world, &f.runner), row->closed);
    } else {
        end_by(f.world, &f.runner, &f.ours, how);
    }
    assert_false(bide_http_client_is_reusable(&f.client));
    if (how != CLOSE && row->place == WRITES) {
        /* part of the body may have been sent: nothing may follow */
        int reason = how == TIME_OUT ? -ETIMEDOUT : -ECANCELED;
        assert_int_equal(world_wait(f.world, bide_http_client_write(&f.client, "x", 1)), reason);
        assert_int_equal(world_wait(f.world, bide_http_client_flush(&f.client)), reason);
    } else if (how != CLOSE) {
        goes_on(row);
    }
    call_inside(f.world, close_both, NULL);
}

static void it_can_end_early_at_each_await(void **state)
{
    f.world = world_of(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int how = 0; how < WAYS; how++)
            cut(&rows[i], how);
}

/* They are counted for the request: waits that are cut and begun again do not add up to more. */
static void interim_responses_have_a_limit(void **state)
{
    static const char early[] = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    static const struct row row = {RECEIVES, "", "", NULL, false, 0};
    enum { MAX = 32 };
    bide_with_deadline_operation limited;
    f.world = world_of(state);
    for (int count = MAX; count <= MAX + 1; count++) {
        for (int cuts = 0; cuts < 3; cuts++) {
            come_to(&row);
            for (int i = 0, cut = 1; i < count; i++) {
                say(early);
                if (cut <= cuts && i == 10 * cut) {
                    assert_int_equal(world_wait(f.world, bide_with_deadline(&limited, world_now(f.world) + 1000000,
                                                                            bide_http_client_recv(&f.client))),
                                     -ETIMEDOUT);
                    cut++;
                }
            }
            say(TEN "helloworld");
            int status = world_wait(f.world, bide_http_client_recv(&f.client));
            assert_int_equal(status, count <= MAX ? 0 : -EBADMSG);
            if (count <= MAX)
                assert_int_equal(f.client.response.status, 200);
            else /* that was its end */
                assert_int_equal(world_wait(f.world, bide_http_client_recv(&f.client)), -EINVAL);
            assert_false(bide_http_client_is_reusable(&f.client));
            call_inside(f.world, close_both, NULL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(it_can_end_early_at_each_await),
        world_test(interim_responses_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
