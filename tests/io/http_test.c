/*
 * The HTTP server: what it answers, when it ends the connection, and what becomes of requests that come in pieces, late,
 * several at once, or not to their end.
 */
#include "http_peer.h"

static peer one;

static int begin_peer(void **state)
{
    (void)state;
    peer_init(&one, NULL);
    return 0;
}

static int end_peer(void **state)
{
    (void)state;
    peer_end(&one);
    return 0;
}

#define HELLO "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n" \
              "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

static void answers_with_the_length(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_string_equal(one.output, HELLO);
}

static void requests_that_come_together_are_answered_in_order(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
                                    "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                                    "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_string_equal(one.output, HELLO
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 7\r\n\r\n"
                        "counted" HELLO);
    assert_int_equal(handled.begun, 3);
}

static void bodies_come_and_go_in_chunks(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "3\r\nabc\r\n0a;x=\"y\"\r\n0123456789\r\n0\r\nX-Trailer: t\r\n\r\n"
                                    "GET /chunks HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_string_equal(one.output,
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "000d\r\nabc0123456789\r\n0\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "0005\r\nabcde\r\n0005\r\nabcde\r\n0005\r\nabcde\r\n0\r\nX-Sum: 15\r\n\r\n");
    assert_string_equal(handled.trailer, "t");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_with_the_length, begin_peer, end_peer),
        cmocka_unit_test_setup_teardown(requests_that_come_together_are_answered_in_order, begin_peer, end_peer),
        cmocka_unit_test_setup_teardown(bodies_come_and_go_in_chunks, begin_peer, end_peer),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
