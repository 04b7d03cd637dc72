/*
 * Bodies that an HTTP agent sends in pieces, by HTTP/1.1 and HTTP/2, plain and over TLS; responses that come before a body
 * has ended; and trailers of responses.
 */
#define _GNU_SOURCE
#include "agent_server.h"

#define each_transport(t) for (transport t = 0; t < TRANSPORTS; t++)

static int start_fetch(uint64_t length)
{
    return world_wait(f.world, bide_http_fetch_start(&f.fetch, length));
}

static int write_piece(size_t size)
{
    return world_wait(f.world, bide_http_fetch_write(&f.fetch, zeros, size));
}

/* Sends a body in pieces, as far as the server takes it. Returns the bytes that it took. */
static uint64_t upload(uint64_t size, size_t piece)
{
    uint64_t taken = 0;
    while (taken != size) {
        size_t count = size - taken < piece ? (size_t)(size - taken) : piece;
        assert_int_equal(write_piece(count), 0);
        if (f.fetch.count == 0)
            break;
        assert_int_equal(f.fetch.count, count);
        taken += count;
    }
    return taken;
}

static void bodies_go_in_pieces(void **state)
{
    static const uint64_t sizes[] = {0, 1, 5000, 1000000};
    static const size_t pieces[] = {1000, sizeof zeros};
    each_transport(t)
    {
        open_transport(state, t);
        for (int i = 0; i < 16; i++) {
            uint64_t size = sizes[i % 4];
            bool is_known = i / 8 == 0;
            char expected[64];
            snprintf(expected, sizeof expected, "POST /x %d", (int)size);
            assert_int_equal(open_fetch("POST", "/x"), 0);
            assert_int_equal(start_fetch(is_known ? size : BIDE_HTTP_UNKNOWN), 0);
            assert_int_equal(upload(size, pieces[i / 4 % 2]), size);
            assert_int_equal(write_piece(0), 0); /* (nothing, and not the end) */
            assert_int_equal(send_fetch(), 0);
            assert_int_equal(f.fetch.response.status, 200);
            assert_int_equal(f.fetch.is_http2, is_http2());
            assert_int_equal(read_page(), 0);
            assert_string_equal(f.page, "hello");
            assert_string_equal(f.seen, expected);
        }
        assert_int_equal(f.server.stats.accepted, 1);
        close_transport();
    }
}

/* The server has each piece before the next one is written. */
static void a_piece_is_sent_when_it_is_written(void **state)
{
    each_transport(t)
    {
        bide_event_waiter wait;
        open_transport(state, t);
        assert_int_equal(open_fetch("POST", "/pieces"), 0);
        assert_int_equal(start_fetch(BIDE_HTTP_UNKNOWN), 0);
        for (int i = 0; i < 3; i++) {
            bide_event_init(&f.began, false);
            assert_int_equal(write_piece(1), 0);
            assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.began)), 0);
        }
        assert_int_equal(send_fetch(), 0);
        assert_string_equal(f.seen, "POST /pieces 3");
        close_transport();
    }
}

static void calls_out_of_order_are_refused(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        assert_int_equal(open_fetch("POST", "/x"), 0);
        assert_int_equal(write_piece(1), -EINVAL); /* not started */
        assert_int_equal(bide_http_fetch_set_body(&f.fetch, "abc", 3), 0);
        assert_int_equal(start_fetch(3), -EINVAL); /* its body is in memory */
        assert_int_equal(send_fetch(), 0);
        assert_string_equal(f.seen, "POST /x 3");
        assert_int_equal(start_fetch(3), -EINVAL); /* sent */
        assert_int_equal(write_piece(1), -EINVAL);

        assert_int_equal(open_fetch("POST", "/x"), 0);
        assert_int_equal(start_fetch(3), 0);
        assert_int_equal(start_fetch(3), -EINVAL);
        assert_int_equal(bide_http_fetch_set_body(&f.fetch, "abc", 3), -EINVAL);
        assert_int_equal(bide_http_fetch_add(&f.fetch, "A", "b"), -EINVAL);
        assert_int_equal(write_piece(4), -EMSGSIZE);
        bide_http_fetch_close(&f.fetch);

        assert_int_equal(open_fetch("POST", "/x"), 0);
        assert_int_equal(start_fetch(3), 0);
        assert_int_equal(write_piece(2), 0);
        assert_int_equal(send_fetch(), -EINVAL); /* less than promised */
        assert_works();
        close_transport();
    }
}

/* The operation is made, and not awaited. */
static void a_start_that_does_not_begin_changes_nothing(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        assert_int_equal(open_fetch("POST", "/x"), 0);
        assert_non_null(bide_http_fetch_start(&f.fetch, 3));
        assert_int_equal(send_fetch(), 0);
        assert_string_equal(f.seen, "POST /x 0");
        close_transport();
    }
}

/* Nobody listens any more. */
static void errors_of_connecting_end_the_start(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        bide_close(&f.server.listener);
        assert_int_equal(open_fetch("POST", "/x"), 0);
        assert_int_equal(start_fetch(3), -ECONNREFUSED);
        assert_int_equal(write_piece(1), -EINVAL);
        assert_int_equal(send_fetch(), -EINVAL);
        close_transport();
    }
}

/* The body cannot be written again, so a redirect that keeps it is a response like another. */
static void redirects_are_followed_if_they_drop_the_body(void **state)
{
    static const int codes[] = {301, 302, 303, 307, 308};
    each_transport(t)
    {
        open_transport(state, t);
        for (int i = 0; i < 10; i++) {
            const char *method = i % 2 ? "PUT" : "POST";
            int code = codes[i / 2];
            char path[20];
            bool follows = code == 303 || (code <= 302 && i % 2 == 0);
            snprintf(path, sizeof path, "/moved/%d", code);
            assert_int_equal(open_fetch(method, path), 0);
            assert_int_equal(start_fetch(3), 0);
            assert_int_equal(write_piece(3), 0);
            assert_int_equal(send_fetch(), 0);
            assert_int_equal(f.fetch.response.status, follows ? 200 : code);
            assert_int_equal(f.fetch.redirects, follows);
            assert_int_equal(read_page(), 0);
            assert_string_equal(f.page, follows ? "hello" : "gone");
            if (follows)
                assert_string_equal(f.seen, "GET /what 0");
        }
        assert_int_equal(f.server.stats.accepted, 1);
        close_transport();
    }
}

/* This holds for each method. */
static void an_upload_is_not_repeated(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        assert_works();
        f.cuts = 1;
        assert_int_equal(open_fetch("PUT", "/cut"), 0);
        assert_int_equal(start_fetch(3), 0);
        assert_int_equal(write_piece(3), 0);
        int status = send_fetch();
        assert_true(status == -EPIPE || status == -ECONNRESET || status == -ECONNABORTED);
        assert_int_equal(f.requests, 2);
        assert_works();
        close_transport();
    }
}

/* The server responds before it has read the body, and reads no more of it. */
static void an_early_response_is_received(void **state)
{
    each_transport(t)
    {
        for (int is_known = 0; is_known < 2; is_known++) {
            (void)world_of_a_loop(world_of(state));
            open_peer(state, t, (bide_http_options){.max_body = 1000});
            make_agent((bide_http_agent_options){.version = version_of(t)});
            assert_int_equal(open_fetch("POST", "/early"), 0);
            assert_int_equal(start_fetch(is_known ? 900 : BIDE_HTTP_UNKNOWN), 0);
            assert_in_range(upload(900, 300), 0, 900);
            assert_int_equal(send_fetch(), 0);
            assert_int_equal(f.fetch.response.status, 413);
            assert_int_equal(read_page(), 0);
            assert_string_equal(f.page, "no");
            assert_works();
            close_transport();
        }
    }
}

/* Nor does it take all of it: the writer learns that, and the response is not lost. */
static void a_server_stops_a_large_upload(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        f.http.options.max_body = 1000;
        assert_int_equal(open_fetch("POST", "/early"), 0);
        assert_int_equal(start_fetch(BIDE_HTTP_UNKNOWN), 0);
        assert_in_range(upload(BIDE_HTTP_UNKNOWN, 50000), 0, HUGE);
        assert_int_equal(f.fetch.count, 0);
        assert_int_equal(write_piece(5), 0);
        assert_int_equal(f.fetch.count, 0);
        assert_int_equal(send_fetch(), 0);
        assert_int_equal(f.fetch.response.status, 413);
        assert_int_equal(read_page(), 0);
        assert_string_equal(f.page, "no");
        assert_works();
        close_transport();
    }
}

/* "Expect: 100-continue": the server wants the body, or responds without it, or says nothing for a second. */
static void an_expectation_saves_a_body_that_is_not_wanted(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        assert_int_equal(open_fetch("POST", "/x"), 0);
        f.fetch.expects_continue = true;
        assert_int_equal(start_fetch(5), 0);
        assert_int_equal(write_piece(5), 0);
        assert_int_equal(f.fetch.count, 5);
        assert_int_equal(send_fetch(), 0);
        assert_string_equal(f.seen, "POST /x 5");
        assert_int_equal(read_page(), 0);

        assert_int_equal(open_fetch("POST", "/early"), 0);
        f.fetch.expects_continue = true;
        assert_int_equal(start_fetch(5), 0);
        assert_int_equal(write_piece(5), 0);
        assert_int_equal(f.fetch.count, 0);
        assert_int_equal(send_fetch(), 0);
        assert_int_equal(f.fetch.response.status, 413);
        assert_int_equal(read_page(), 0);
        assert_string_equal(f.page, "no");
        assert_works();
        close_transport();
    }
}

static void a_server_that_says_nothing_gets_the_body(void **state)
{
    each_transport(t)
    {
        open_transport_with(state, t, (bide_http_agent_options){.continue_timeout = 1});
        assert_int_equal(open_fetch("POST", "/stuck"), 0);
        f.fetch.expects_continue = true;
        assert_int_equal(start_fetch(5), 0);
        assert_int_equal(write_piece(5), 0);
        assert_int_equal(f.fetch.count, 5);
        assert_works();
        close_transport();
    }
}

static int send_file(const char *method, const char *path, uint64_t offset, uint64_t length)
{
    assert_int_equal(open_fetch(method, path), 0);
    assert_int_equal(bide_http_fetch_set_file(&f.fetch, &f.file, offset, length), 0);
    return send_fetch();
}

static void files_are_sent(void **state)
{
    static const struct {
        uint64_t size, offset, length, expected;
    } rows[] = {
        {0, 0, BIDE_HTTP_UNKNOWN, 0},
        {5, 0, BIDE_HTTP_UNKNOWN, 5},
        {5, 3, BIDE_HTTP_UNKNOWN, 2},
        {5, 5, BIDE_HTTP_UNKNOWN, 0},
        {5, 1, 3, 3},
        {200000, 0, BIDE_HTTP_UNKNOWN, 200000},
        {200000, 1, 131072, 131072},
    };
    each_transport(t)
    {
        open_transport(state, t);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            char expected[64];
            snprintf(expected, sizeof expected, "PUT /x %d", (int)rows[i].expected);
            make_file(rows[i].size);
            assert_int_equal(send_file("PUT", "/x", rows[i].offset, rows[i].length), 0);
            assert_int_equal(bide_http_fetch_set_file(&f.fetch, &f.file, 0, 1), -EINVAL); /* sent */
            assert_int_equal(f.fetch.response.status, 200);
            assert_int_equal(read_page(), 0);
            assert_string_equal(f.seen, expected);
            bide_close(&f.file);
        }
        assert_int_equal(f.server.stats.accepted, 1);
        close_transport();
    }
}

/* As bodies in memory: by redirects, and when a connection was closed. */
static void files_are_sent_again(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        make_file(100000);
        assert_int_equal(send_file("POST", "/moved/307", 0, BIDE_HTTP_UNKNOWN), 0);
        assert_string_equal(f.seen, "POST /what 100000");
        assert_int_equal(read_page(), 0);
        assert_int_equal(send_file("POST", "/moved/303", 0, BIDE_HTTP_UNKNOWN), 0);
        assert_string_equal(f.seen, "GET /what 0");
        assert_int_equal(read_page(), 0);
        f.cuts = 1;
        assert_int_equal(send_file("PUT", "/cut", 0, 50), 0);
        assert_string_equal(f.seen, "PUT /cut 50");
        assert_int_equal(f.server.stats.accepted, 2);
        bide_close(&f.file);
        close_transport();
    }
}

static void files_that_cannot_be_sent_end_the_request(void **state)
{
    each_transport(t)
    {
        bide_descriptor end;
        open_transport(state, t);
        make_file(100000);
        assert_int_equal(send_file("PUT", "/x", 0, 100001), -ENODATA); /* it has become shorter */
        assert_int_equal(send_file("PUT", "/x", 100001, BIDE_HTTP_UNKNOWN), -EINVAL);
        bide_close(&f.file);
        world_pipe(f.world, &f.file, &end);
        assert_int_equal(send_file("PUT", "/x", 0, BIDE_HTTP_UNKNOWN),
                         -EINVAL); /* it has no size */
        bide_close(&f.file);
        bide_close(&end);
        assert_string_equal(f.seen, ""); /* no handler took a part of it for the whole */
        assert_works();
        close_transport();
    }
}

static void a_server_stops_a_large_file(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        f.http.options.max_body = 1000;
        make_file(HUGE);
        assert_int_equal(send_file("POST", "/early", 0, BIDE_HTTP_UNKNOWN), 0);
        assert_int_equal(f.fetch.response.status, 413);
        assert_int_equal(read_page(), 0);
        assert_int_equal(f.requests, 0); /* (its length is announced, and too large) */
        assert_works();
        bide_close(&f.file);
        close_transport();
    }
}

static void trailers_come_behind_the_body(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        assert_int_equal(open_fetch("GET", "/trailers"), 0);
        assert_null(bide_http_fetch_trailer(&f.fetch, "x-sum").data);
        assert_int_equal(send_fetch(), 0);
        assert_null(bide_http_fetch_trailer(&f.fetch, "x-none").data);
        assert_int_equal(read_page(), 0);
        assert_string_equal(f.page, "hello");
        bide_slice sum = bide_http_fetch_trailer(&f.fetch, "x-sum");
        assert_int_equal(sum.size, 2);
        assert_memory_equal(sum.data, "42", 2);
        assert_null(bide_http_fetch_trailer(&f.fetch, "x-none").data);
        bide_http_fetch_close(&f.fetch);
        assert_null(bide_http_fetch_trailer(&f.fetch, "x-sum").data);
        close_transport();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(bodies_go_in_pieces),
        world_test(a_piece_is_sent_when_it_is_written),
        world_test(calls_out_of_order_are_refused),
        world_test(a_start_that_does_not_begin_changes_nothing),
        world_test(errors_of_connecting_end_the_start),
        world_test(redirects_are_followed_if_they_drop_the_body),
        world_test(an_upload_is_not_repeated),
        world_test(an_early_response_is_received),
        world_test(a_server_stops_a_large_upload),
        world_test(an_expectation_saves_a_body_that_is_not_wanted),
        world_test(a_server_that_says_nothing_gets_the_body),
        world_test(files_are_sent),
        world_test(files_are_sent_again),
        world_test(files_that_cannot_be_sent_end_the_request),
        world_test(a_server_stops_a_large_file),
        world_test(trailers_come_behind_the_body),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
