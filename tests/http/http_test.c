/*
 * The HTTP server: its responses, when it ends a connection, and requests that arrive in pieces, late,
 * several at once, or incomplete.
 */
#include "http_peer.h"
#include "bide/http.h"

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

/* ---- Complete responses are not held back, and not lost ---- */

#define COUNTED "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 7\r\n\r\ncounted"
#define GET_HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(path, size) "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: " size "\r\n\r\n"

static void responses_to_complete_requests_are_sent_together(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, GET_HELLO POST("/count", "3") "abc" GET_HELLO "GET /h"), -ENODATA);
    assert_string_equal(one.output, HELLO COUNTED HELLO);
    assert_int_equal(one.first_size, one.output_size);
}

/* The bodies of the second requests break off. */
static void a_later_request_that_breaks_off_loses_no_response(void **state)
{
    static const char *const later[] = {
        POST("/count", "9") "abc",
        POST("/echo", "9") "abc", /* (some of its response is buffered) */
        POST("/reads-slowly", "9") "abc",
        "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "GET /short HTTP/1.1\r\nHost: a\r\n\r\n", /* (the handler writes too little) */
    };
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        for (size_t piece = 0; piece < 3; piece++) {
            char input[300];
            snprintf(input, sizeof input, "%s%s%s", GET_HELLO, GET_HELLO, later[i]);
            one.piece = piece;
            assert_int_equal(peer_say(&one, input), -ENODATA);
            assert_string_equal(one.output, HELLO HELLO);
        }
    one.piece = 0;
}

static void a_client_may_wait_for_a_response_before_it_sends_the_next_body(void **state)
{
    static const char input[] = GET_HELLO POST("/count", "9") "abcdefghi";
    (void)state;
    one.cut_until = sizeof HELLO - 1;
    for (one.cut = sizeof GET_HELLO; one.cut < sizeof input - 1; one.cut++) {
        assert_int_equal(peer_say(&one, input), 0);
        assert_string_equal(one.output, HELLO COUNTED);
        assert_int_equal(one.first_output, 0);
    }
    one.cut = 0;
    one.cut_until = 0;
}

static void a_handler_that_waits_holds_no_earlier_response(void **state)
{
    static const char *const later[] = {"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", POST("/reads-slowly", "3") "abc",
        "GET /stays HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        char input[300];
        snprintf(input, sizeof input, "%s%s%s%s", GET_HELLO, GET_HELLO, later[i], GET_HELLO);
        assert_int_equal(peer_say(&one, input), 0);
        assert_int_equal(one.first_output, 0);
        assert_int_equal(one.first_size, 2 * (sizeof HELLO - 1));
        assert_true(one.took >= 5 * SECOND);
        assert_memory_equal(one.output, HELLO HELLO, 2 * (sizeof HELLO - 1));
        assert_string_equal(one.output + one.output_size - (sizeof HELLO - 1), HELLO);
    }
}

/* Two handlers wait one after the other, while the client's window takes little. */
static void earlier_responses_leave_slowly_while_handlers_wait(void **state)
{
    (void)state;
    for (one.piece = 64; one.piece < 300; one.piece += 7) {
        assert_int_equal(peer_say(&one, GET_HELLO "GET /stays HTTP/1.1\r\nHost: a\r\n\r\n" GET_HELLO
                                        "GET /chunks HTTP/1.1\r\nHost: a\r\n\r\n" GET_HELLO POST("/reads-slowly", "3") "abc"
                                        GET_HELLO), 0);
        assert_int_equal(one.first_output, 0);
        const char *at = one.output;
        static const char *const bodies[] = {"\r\n\r\nhello", "\r\n\r\nstayed", "\r\n\r\nhello", "\r\n0\r\nX-Sum: 15\r\n\r\n", "\r\n\r\nhello",
                                             "\r\n\r\nread", "\r\n\r\nhello"};
        for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
            assert_memory_equal(at, "HTTP/1.1 200 OK\r\n", 17);
            at = strstr(at, bodies[i]);
            assert_non_null(at);
            at += strlen(bodies[i]);
        }
        assert_string_equal(at, "");
    }
    one.piece = 0;
}

/* The client reads 700 bytes a second. Each exchange has its room in the buffer, whatever is being sent of the earlier ones. */
static void a_head_fits_while_earlier_responses_leave(void **state)
{
    (void)state;
    one.piece = 700;
    one.read_pause = SECOND;
    for (int size = 500; size < 6500; size += 100) {
        char input[300];
        snprintf(input, sizeof input, "GET /so-many?%d HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
                 "GET /so-many?700 HTTP/1.1\r\nHost: a\r\n\r\nGET /pauses HTTP/1.1\r\nHost: a\r\n\r\n"
                 "GET /field HTTP/1.1\r\nHost: a\r\n\r\n", size);
        assert_int_equal(peer_say(&one, input), 0);
        assert_int_equal(handled.begun, 5);
        assert_non_null(strstr(one.output, "pppHTTP/1.1 200 OK\r\n"));
        assert_string_equal(one.output + one.output_size - 9, "\r\n\r\nfield");
    }
    one.piece = 0;
    one.read_pause = 0;
}

/* A head that is too long, and invalid behind its limit. */
static void the_status_of_a_bad_head_does_not_depend_on_how_it_arrives(void **state)
{
    static char request[8000];
    (void)state;
    for (one.piece = 0; one.piece < 2; one.piece++) {
        memset(request, 'a', sizeof request - 1);
        memcpy(request, "GET /", 5);
        request[7500] = '\n';
        assert_int_equal(peer_say(&one, request), -EBADMSG);
        assert_memory_equal(one.output, "HTTP/1.1 414 ", 13);
    }
    one.piece = 0;
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


/* ---- Responses ---- */

#define HEAD(status) "HTTP/1.1 " status "\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define HOST         " HTTP/1.1\r\nHost: a\r\n\r\n"
#define REFUSAL(status, length)                                                                         \
    HEAD(status) "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: " length \
                 "\r\n\r\n" status "\n"
#define STATUS(status, length)                                                                     \
    HEAD(status) "Content-Type: text/plain; charset=utf-8\r\nContent-Length: " length "\r\n\r\n" status "\n"

static void responses_without_a_body_have_none(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "HEAD /hello" HOST "GET /nothing" HOST "HEAD /chunks" HOST "HEAD /nowhere" HOST
                                    "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\n"
                        HEAD("204 No Content") "\r\n"
                        HEAD("200 OK") "Transfer-Encoding: chunked\r\n\r\n"
                        HEAD("404 Not Found") "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 14\r\n\r\n"
                        HELLO);
}

static void a_status_may_be_set_after_fields(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /late-status" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("404 Not Found") "X-One: 1\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\nno" HELLO);
}

static void a_failing_handler_is_reported(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /fails" HOST "GET /fails-early" HOST "GET /nowhere" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, STATUS("500 Internal Server Error", "26") STATUS("500 Internal Server Error", "26")
                                    STATUS("404 Not Found", "14") HELLO);
}

static void a_response_that_was_begun_is_not_ended_by_a_failure(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /fails-late" HOST "GET /hello" HOST), -EIO);
    assert_string_equal(one.output, HEAD("200 OK") "Transfer-Encoding: chunked\r\n\r\n0004\r\nsome\r\n");
    assert_int_equal(peer_say(&one, "GET /short" HOST "GET /hello" HOST), -ENODATA);
    assert_null(strstr(one.output, "hello"));
}

static void clients_of_http_1_0_are_answered_in_their_way(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                                    "GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Type: text/plain\r\nConnection: keep-alive\r\n"
                        "Content-Length: 5\r\n\r\nhello" HEAD("200 OK") "Connection: close\r\n\r\nabcdeabcdeabcde");
}

static void large_responses_wait_for_the_client(void **state)
{
    (void)state;
    one.piece = 4096;
    assert_int_equal(peer_say(&one, "GET /large" HOST "GET /hello" HOST), 0);
    const char *body = strstr(one.output, "\r\n\r\n") + 4;
    assert_int_equal(strspn(body, "x"), 300000);
    assert_string_equal(body + 300000, HELLO);
}

static void reading_a_body_sends_100_continue(void **state)
{
    (void)state;
    one.ends = false;
    assert_int_equal(peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"), -ETIMEDOUT);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408 ", 38), 0);
    one.ends = true;
    /* the body arrived without a "100 Continue" */
    assert_int_equal(peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"), 0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    /* and the connection goes on: the body was read, so the next request begins behind it */
    assert_int_equal(peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
                                    "abcGET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 7\r\n\r\ncounted"
                                    HEAD("200 OK") "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    /* also if only a part of the body arrived with its head */
    static const char half[] = "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc";
    one.cut = sizeof half - 1;
    assert_int_equal(peer_say(&one, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "3\r\nabc\r\n0\r\n\r\nGET /hello" HOST), 0);
    assert_null(strstr(one.output, "100 Continue"));
    assert_null(strstr(one.output, "Connection: close"));
    assert_non_null(strstr(one.output, "hello"));
    one.cut = 0;
    /* also if the handler reads less at once than there is, and all of a body that ends with its memory */
    static const size_t sizes[] = {255, 256, 257, 300, 512};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        static char request[1000];
        int size = sprintf(request, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %zu\r\n\r\n", sizes[i]);
        memset(request + size, 'x', sizes[i]);
        strcpy(request + size + sizes[i], "GET /hello" HOST);
        assert_int_equal(peer_say(&one, request), 0);
        assert_null(strstr(one.output, "100 Continue"));
        assert_null(strstr(one.output, "Connection: close"));
        assert_string_equal(one.output + one.output_size - strlen(HELLO), HELLO);
    }
    /* the handler does not read the body, so it is unknown whether it follows. */
    assert_int_equal(peer_say(&one, "POST /hello HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
                                    "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
}

static void an_unread_body_is_skipped(void **state)
{
    (void)state;
    static char request[300000];
    assert_int_equal(peer_say(&one, "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /hello" HOST
                                    "POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                                    "GET /hello" HOST), 0);
    assert_string_equal(one.output, HELLO HELLO HELLO HELLO);
    /* unless it is too long */
    int size = snprintf(request, sizeof request, "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    memset(request + size, 'x', 200000);
    strcpy(request + size + 200000, "GET /hello" HOST);
    assert_int_equal(peer_say(&one, request), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
}

static void an_upgrade_keeps_the_bytes_behind_the_head(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\nfirst words"), 0);
    assert_string_equal(one.output, "HTTP/1.1 101 Switching Protocols\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                    "X-Accept: yes\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst words");
    /* the client did not ask for an upgrade. */
    assert_int_equal(peer_say(&one, "GET /upgrade" HOST), 0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 500 ", 13), 0);
    assert_int_equal(peer_say(&one, "GET /upgrade HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\n"), 0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 500 ", 13), 0);
}

/* ---- Limits ---- */

static void use(const bide_http_options *options)
{
    peer_end(&one);
    peer_init(&one, options);
}

static void oversized_requests_are_rejected(void **state)
{
    (void)state;
    static char request[20000];
    char *at;
    use(&(bide_http_options){.max_head = 1000, .max_target = 100, .max_fields = 4, .max_body = 10});

    at = request + sprintf(request, "GET /");
    memset(at, 'x', 200);
    strcpy(at + 200, HOST);
    peer_say(&one, request);
    assert_string_equal(one.output, REFUSAL("414 URI Too Long", "17"));
    memset(at, 'x', 5000); /* a head that never ends */
    strcpy(at + 5000, HOST);
    peer_say(&one, request);
    assert_string_equal(one.output, REFUSAL("414 URI Too Long", "17"));

    at = request + sprintf(request, "GET /hello HTTP/1.1\r\nHost: a\r\nX: ");
    memset(at, 'x', 2000);
    strcpy(at + 2000, "\r\n\r\n");
    peer_say(&one, request);
    assert_string_equal(one.output, REFUSAL("431 Request Header Fields Too Large", "36"));
    peer_say(&one, "GET /hello HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n");
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    peer_say(&one, "GET /hello HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n");
    assert_string_equal(one.output, REFUSAL("431 Request Header Fields Too Large", "36"));

    peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789");
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789a");
    assert_string_equal(one.output, REFUSAL("413 Content Too Large", "22"));
    peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n4\r\n6789\r\n0\r\n\r\n");
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n5\r\n6789a\r\n0\r\n\r\n");
    assert_string_equal(one.output, REFUSAL("413 Content Too Large", "22"));
}

static void a_long_extension_is_rejected(void **state)
{
    (void)state;
    char request[1000];
    int size = sprintf(request, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;");
    memset(request + size, 'x', 300);
    strcpy(request + size + 300, "\r\nabc\r\n0\r\n\r\n");
    peer_say(&one, request);
    assert_string_equal(one.output, REFUSAL("400 Bad Request", "16"));
}

static void long_trailers_are_rejected(void **state)
{
    (void)state;
    static char request[20000];
    int size = sprintf(request, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ");
    memset(request + size, 'x', 10000);
    strcpy(request + size + 10000, "\r\n\r\n");
    peer_say(&one, request);
    assert_string_equal(one.output, REFUSAL("431 Request Header Fields Too Large", "36"));
    strcpy(request + size, "\r\n");
    for (int i = 0; i < 70; i++)
        strcat(request, "X: a\r\n");
    strcat(request, "\r\n");
    peer_say(&one, request);
    assert_string_equal(one.output, REFUSAL("431 Request Header Fields Too Large", "36"));
}

static void a_connection_ends_after_so_many_requests(void **state)
{
    (void)state;
    use(&(bide_http_options){.max_requests = 2});
    assert_int_equal(peer_say(&one, "GET /hello" HOST "GET /hello" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, HELLO HEAD("200 OK") "Content-Type: text/plain\r\nConnection: close\r\n"
                                    "Content-Length: 5\r\n\r\nhello");
}

/* ---- Times ---- */

static void between(uint64_t min, uint64_t took, uint64_t max)
{
    if (took < min || took > max)
        printf("# it took %llu ms\n", (unsigned long long)(took / MILLISECOND));
    assert_in_range(took, min, max);
}

static void a_silent_peer_is_dropped(void **state)
{
    (void)state;
    one.ends = false;
    assert_int_equal(peer_say(&one, ""), -ETIMEDOUT);
    assert_string_equal(one.output, "");
    between(10 * SECOND, one.took, 11 * SECOND);
    assert_int_equal(peer_say(&one, "GET /hello" HOST), -ETIMEDOUT);
    assert_string_equal(one.output, HELLO);
    between(60 * SECOND, one.took, 61 * SECOND);
}

static void a_head_that_drips_is_not_waited_for(void **state)
{
    (void)state;
    one.ends = false;
    one.piece = 1;
    one.pause = SECOND;
    assert_int_equal(peer_say(&one, "GET /hello HTTP/1.1\r\nHost: a\r\nX-Very: slow\r\n\r\n"), -ETIMEDOUT);
    assert_string_equal(one.output, REFUSAL("408 Request Timeout", "20"));
    between(9 * SECOND, one.took, 14 * SECOND);
}

/* Its begin came while the handler of the request before it waited. */
static void a_head_that_stops_behind_a_response_is_not_waited_for(void **state)
{
    (void)state;
    one.ends = false;
    assert_int_equal(peer_say(&one, "GET /slow" HOST "GET /hello HTTP/1.1\r\nHo"), -ETIMEDOUT);
    assert_non_null(strstr(one.output, REFUSAL("408 Request Timeout", "20")));
    between(9 * SECOND, one.took, 40 * SECOND);
}

static void a_body_that_stops_is_not_waited_for(void **state)
{
    (void)state;
    one.ends = false;
    assert_int_equal(peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234"), -ETIMEDOUT);
    assert_string_equal(one.output, REFUSAL("408 Request Timeout", "20"));
    between(30 * SECOND, one.took, 33 * SECOND);
    /* a slow client, for as long as an exchange may take. */
    one.piece = 1;
    one.pause = SECOND / 4;
    one.ends = true;
    assert_int_equal(peer_say(&one, "POST /count HTTP/1.1\r\nA: b\r\n\r\n"), -EBADMSG);
    use(&(bide_http_options){.header_timeout = 100 * SECOND, .request_timeout = 5 * SECOND});
    one.piece = 1;
    one.pause = SECOND;
    assert_int_equal(peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789"), -ETIMEDOUT);
    assert_string_equal(one.output, REFUSAL("408 Request Timeout", "20"));
}

static void a_handler_has_a_time(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /slow" HOST), 0);
    use(&(bide_http_options){.request_timeout = 3 * SECOND});
    one.ends = false;
    assert_int_equal(peer_say(&one, "GET /slow" HOST "GET /hello" HOST), -ETIMEDOUT);
    assert_string_equal(one.output, REFUSAL("503 Service Unavailable", "24"));
    between(3 * SECOND, one.took, 6 * SECOND);
}

static void a_peer_that_does_not_read_is_dropped(void **state)
{
    (void)state;
    one.reads_not = true;
    one.ends = false;
    assert_int_equal(peer_say(&one, "GET /large" HOST), -ETIMEDOUT);
    between(30 * SECOND, one.took, 33 * SECOND);
}

/* ---- Ends ---- */

static void a_vanished_client_leaves_nothing(void **state)
{
    (void)state;
    static const char request[] = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (size_t size = 0; size < sizeof request - 1; size++) {
        int status = peer_say_bytes(&one, request, size);
        assert_int_equal(status, size == 0 ? 0 : -ENODATA);
    }
    assert_int_equal(peer_say(&one, request), 0);
}

static void shutting_down_ends_the_idle_and_says_so_to_the_others(void **state)
{
    (void)state;
    one.ends = false;
    one.drain_at = SECOND;
    assert_int_equal(peer_say(&one, "GET /hello" HOST), 0);
    assert_string_equal(one.output, HELLO);
    between(SECOND, one.took, 2 * SECOND);
    assert_int_equal(peer_say(&one, ""), 0);
    between(SECOND, one.took, 2 * SECOND);
    assert_int_equal(peer_say(&one, "GET /slow" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Connection: close\r\nContent-Length: 4\r\n\r\nslow");
    between(5 * SECOND, one.took, 8 * SECOND);
}

static const char mixed[] = "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n0\r\nX: y\r\n\r\nGET /chunks" HOST "GET /large" HOST
                            "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /hello" HOST "\001";
static const char waiting[] = "GET /slow" HOST "POST /reads-slowly HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                              "GET /hello" HOST "GET /slow" HOST "GET /hello" HOST;

static void it_can_be_cancelled_at_each_place(void **state)
{
    (void)state;
    unsigned turns = 0;
    for (unsigned after = 1;; after += 1 + after / 100) { /* (most of the later ones are similar) */
        one.piece = 7;
        one.stop_after = after;
        int status = peer_say(&one, mixed);
        assert_int_equal(one.server.stats.live, 0);
        if (status != -ECANCELED && after > 20)
            turns++;
        if (turns == 10)
            break;
        assert_true(after < 20000);
    }
}

static void destroy_at_each_place(const char *input, uint64_t enough)
{
    FILE *before = stderr; /* the loop reports its waiters. */
    stderr = fopen("/dev/null", "w");
    assert_non_null(stderr);
    int status = -ELOOP;
    uint64_t turns = 0;
    while (status == -ELOOP) {
        one.piece = 7;
        bide_awaiter *awaiter = peer_begin(&one, input, strlen(input));
        turns += 1 + turns / 100; /* (most of the later ones are similar) */
        one.loop.max_turns = turns;
        status = bide_sim_loop_wait(&one.loop, awaiter);
        if (one.server.stats.live != 0 || handled.begun != handled.ended)
            status = -EINVAL;
    }
    fclose(stderr);
    stderr = before;
    assert_int_equal(status, 0);
    assert_true(turns > enough);
}

static void it_may_be_destroyed_at_each_place(void **state)
{
    (void)state;
    destroy_at_each_place(mixed, 100);
    destroy_at_each_place(waiting, 40);
    one.server.options.allows_half_close = false;
    destroy_at_each_place(waiting, 40);
}

static int ended_status, ended_error;

static void note_end(bide_http_exchange *exchange, int error)
{
    ended_status = exchange->status;
    ended_error = error;
}

/* ---- Refused requests ---- */

static char refused_line[300];
static int refused_status;
static unsigned refused_count;

static void note_refused(bide_http_connection *connection, bide_slice line, int status)
{
    assert_ptr_equal(connection, &one.connection);
    assert_true(line.size < sizeof refused_line);
    memset(refused_line, 0, sizeof refused_line);
    if (line.size != 0)
        memcpy(refused_line, line.data, line.size);
    refused_status = status;
    refused_count++;
}

static void a_refused_request_is_reported(void **state)
{
    static const struct {
        const char *request, *line;
        int status;
    } rows[] = {
        {"GET /x HTTP/1.1\r\nbad header\r\n\r\n", "GET /x HTTP/1.1", 400},
        {"GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /x HTTP/1.1", 400},
        {"GET /x HTTP/2.0\r\nHost: a\r\n\r\n", "GET /x HTTP/2.0", 505},
        {"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\nabc", "POST /x HTTP/1.1", 413},
        {"\026\003\001\002", "\026\003\001\002", 400},
        {"GET /x\n\n", "GET /x", 400},
        {"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nBREW / HTTP/1.1\r\nHost: a\r\n\r\n", "BREW / HTTP/1.1", 501},
    };
    static char memory[4096], line[1000];
    bide_descriptor file;
    bide_http_log log;
    (void)state;
    bide_descriptor_init_closed(&file);
    use(&(bide_http_options){.refused = note_refused, .ended = note_end, .log = &log});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int bytewise = 0; bytewise < 2; bytewise++) {
            bide_http_log_init(&log, &file, memory, sizeof memory, BIDE_HTTP_LOG_COMBINED);
            one.piece = bytewise;
            refused_count = 0;
            assert_int_equal(peer_say(&one, rows[i].request), -EBADMSG);
            assert_int_equal(refused_count, 1);
            assert_int_equal(refused_status, rows[i].status);
            assert_int_equal(strncmp(refused_line, rows[i].line, bytewise ? 1 : sizeof refused_line), 0);
            assert_int_equal(log.lines, 1 + handled.begun);
        }
    snprintf(line, sizeof line, "- - - [06/Nov/1994:08:49:37 +0000] \"BREW / HTTP/1.1\" 501 0 \"-\" \"-\"\n");
    assert_non_null(memmem(memory, log.filled, line, strlen(line)));
    bide_http_log_init(&log, &file, memory, sizeof memory, BIDE_HTTP_LOG_COMMON);
    bide_http_log_refused(&log, &one.server, "peer", (bide_slice){"\x16\"", 2}, 400);
    bide_http_log_refused(&log, &one.server, "peer", (bide_slice){NULL, 0}, 400);
    snprintf(line, sizeof line, "peer - - [06/Nov/1994:08:49:37 +0000] \"\\x16\\x22\" 400 0\n"
                                "peer - - [06/Nov/1994:08:49:37 +0000] \"-\" 400 0\n");
    assert_int_equal(log.filled, strlen(line));
    assert_memory_equal(memory, line, log.filled);
    /* a head that is too slow */
    bide_http_log_init(&log, &file, memory, sizeof memory, BIDE_HTTP_LOG_COMMON);
    one.ends = false;
    one.piece = 0;
    assert_int_equal(peer_say(&one, "GET /x HTTP/1.1\r\nHos"), -ETIMEDOUT);
    assert_int_equal(refused_status, 408);
    assert_string_equal(refused_line, "GET /x HTTP/1.1");
    /* one that never began, is none */
    refused_count = 0;
    assert_int_equal(peer_say(&one, ""), -ETIMEDOUT);
    assert_int_equal(refused_count, 0);
}

/* ---- Early ends ---- */

/* A request with a body that the handler does not read. Returns the size. */
static size_t long_request(char *request, const char *head, size_t body)
{
    size_t size = (size_t)sprintf(request, "%sContent-Length: %zu\r\n\r\n", head, body);
    memset(request + size, 'x', body);
    return size + body;
}

static void a_body_is_dropped_before_the_connection_ends(void **state)
{
    static const struct {
        const char *head, *status;
        size_t body;
        int end;
    } rows[] = {
        {"POST /hello HTTP/1.1\r\nHost: a\r\n", "HTTP/1.1 200 ", 900000, 0},
        {"POST /fails HTTP/1.1\r\nHost: a\r\n", "HTTP/1.1 500 ", 900000, 0},
        {"POST /hello HTTP/1.1\r\nHost: a\r\n", "HTTP/1.1 413 ", 1048577, -EBADMSG},
        {"POST /hello HTTP/1.1\r\n", "HTTP/1.1 400 ", 900000, -EBADMSG},
    };
    static char request[3 << 20];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t size = long_request(request, rows[i].head, rows[i].body);
        one.piece = 60000;
        one.pause = SECOND; /* (shorter than linger_timeout, and much longer in all) */
        assert_int_equal(peer_say_bytes(&one, request, size), rows[i].end);
        assert_memory_equal(one.output, rows[i].status, strlen(rows[i].status));
        assert_int_equal(one.fed, size);
        between(15 * SECOND, one.took, 20 * SECOND);
    }
    /* too much */
    size_t size = long_request(request, rows[0].head, 3000000);
    one.pause = 0;
    assert_int_equal(peer_say_bytes(&one, request, size), -EBADMSG);
    assert_memory_equal(one.output, "HTTP/1.1 413 ", 13);
    assert_in_range(one.fed, 1048576, 1048576 + 2 * PEER_PIPE);
    /* too slow */
    size = long_request(request, rows[0].head, 900000);
    one.pause = 3 * SECOND;
    assert_int_equal(peer_say_bytes(&one, request, size), 0);
    between(2 * SECOND, one.took, 4 * SECOND);
    one.piece = 1000;
    one.pause = SECOND;
    assert_int_equal(peer_say_bytes(&one, request, size), 0);
    between(30 * SECOND, one.took, 31 * SECOND);
}

static void an_upgraded_connection_lingers(void **state)
{
    static char request[300000];
    (void)state;
    int size = sprintf(request, "GET /upgrade-and-ends HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    memset(request + size, 'x', 200000);
    one.piece = 20000;
    one.pause = SECOND;
    assert_int_equal(peer_say_bytes(&one, request, (size_t)size + 200000), 0);
    assert_string_equal(strstr(one.output, "\r\n\r\n"), "\r\n\r\nbye");
    assert_int_equal(one.fed, size + 200000);
    /* the client neither sends nor ends its output */
    one.ends = false;
    request[size] = '\0';
    assert_int_equal(peer_say(&one, request), 0);
    between(2 * SECOND, one.took, 4 * SECOND);
}

/* ---- Clients that leave ---- */

static void use_leaving(void)
{
    ended_status = ended_error = 0;
    use(&(bide_http_options){.ended = note_end});
    one.server.options.allows_half_close = false;
}

static void a_handler_that_waits_is_cancelled_when_its_client_leaves(void **state)
{
    (void)state;
    use_leaving();
    assert_int_equal(peer_say(&one, "GET /slow" HOST), -ECONNRESET);
    assert_int_equal(handled.slept, -ECANCELED);
    assert_string_equal(one.output, "");
    assert_int_equal(ended_status, 499);
    assert_int_equal(ended_error, -ECONNRESET);
    between(0, one.took, SECOND);
    /* a response that was complete before, or is complete nevertheless, is sent */
    assert_int_equal(peer_say(&one, "GET /hello" HOST "GET /stays" HOST), 0);
    assert_string_equal(one.output, HELLO HEAD("200 OK") "Content-Length: 6\r\n\r\nstayed");
    assert_int_equal(handled.slept, -ECANCELED);
    between(0, one.took, SECOND);
    assert_int_equal(ended_status, 200);
    assert_int_equal(peer_say(&one, "GET /hello" HOST), 0);
    assert_string_equal(one.output, HELLO);
    /* a client that leaves later */
    one.pause = 2 * SECOND;
    assert_int_equal(peer_say(&one, "GET /slow" HOST), -ECONNRESET);
    between(2 * SECOND, one.took, 3 * SECOND);
    assert_int_equal(handled.slept, -ECANCELED);
    /* one that stays is served, and may leave then */
    one.pause = 8 * SECOND;
    assert_int_equal(peer_say(&one, "GET /slow" HOST), 0);
    assert_int_equal(handled.slept, 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 4\r\n\r\nslow");
    between(8 * SECOND, one.took, 9 * SECOND);
}

static void bytes_that_come_while_a_handler_waits_are_the_next_request(void **state)
{
    static const char both[] = "POST /reads-slowly HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                               "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\ndefGET /hello" HOST;
    (void)state;
    use_leaving();
    one.ends = false;
    for (size_t cut = 1; cut < sizeof both - 1; cut++)
        for (int how = 0; how < 3; how++) {
            one.cut = cut; /* (the first handler waits for six seconds) */
            one.piece = how == 1 ? 1 : 0;
            one.pause = how == 2 ? 7 * SECOND : 0;
            assert_int_equal(peer_say(&one, both), -ETIMEDOUT); /* idle at last */
            assert_string_equal(one.output,
                                HEAD("200 OK") "Content-Length: 4\r\n\r\nread"
                                HEAD("200 OK") "Content-Length: 7\r\n\r\ncounted" HELLO);
            assert_int_equal(handled.read, 6);
            assert_memory_equal(handled.body, "abcdef", 6);
        }
}

/* More requests than the buffer holds arrive while the first handler waits. */
static void a_full_buffer_pauses_the_guard(void **state)
{
    static char requests[30000] = "GET /slow" HOST;
    (void)state;
    use_leaving();
    for (int i = 0; i < 500; i++)
        strcat(requests, "GET /hello" HOST);
    one.ends = false;
    assert_int_equal(peer_say(&one, requests), -ETIMEDOUT);
    assert_int_equal(handled.begun, 501);
    assert_int_equal(handled.slept, 0);
}

static bide_auto_event first_ended;

static void note_first_end(bide_http_exchange *exchange, int error)
{
    (void)exchange;
    (void)error;
    bide_auto_event_set(&first_ended);
}

/* The shutdown comes after the first response, and before the second head is parsed. */
static void a_request_that_came_while_a_handler_waited_is_served_in_spite_of_a_shutdown(void **state)
{
    (void)state;
    use(&(bide_http_options){.ended = note_first_end});
    one.server.options.allows_half_close = false;
    one.ends = false;
    bide_auto_event_init(&first_ended, false);
    one.drain_on = &first_ended;
    assert_int_equal(peer_say(&one, "GET /slow" HOST "GET /hello" HOST), 0);
    assert_int_equal(handled.begun, 2);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 4\r\n\r\nslow"
                        HEAD("200 OK") "Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
}

/* The shutdown comes while the response leaves slowly. */
static void a_shutdown_waits_for_the_last_response(void **state)
{
    (void)state;
    use(&(bide_http_options){.ended = note_first_end});
    one.ends = false;
    one.piece = 64;
    bide_auto_event_init(&first_ended, false);
    one.drain_on = &first_ended;
    assert_int_equal(peer_say(&one, "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
}

static void a_body_is_read_before_its_client_is_watched(void **state)
{
    static const char *const requests[] = {
        "POST /reads-slowly HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "POST /reads-slowly HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        use_leaving();
        one.pause = 2 * SECOND;
        assert_int_equal(peer_say(&one, requests[i]), -ECONNRESET);
        assert_int_equal(handled.slept, -ECANCELED);
        assert_int_equal(handled.read, 3);
        between(2 * SECOND, one.took, 3 * SECOND);
        one.server.options.allows_half_close = true;
        assert_int_equal(peer_say(&one, requests[i]), 0);
        assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 4\r\n\r\nread");
    }
}

static void a_client_that_has_ended_its_output_may_be_served(void **state)
{
    (void)state;
    use_leaving();
    one.server.options.allows_half_close = true;
    assert_int_equal(peer_say(&one, "GET /slow" HOST "GET /slow" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 4\r\n\r\nslow" HEAD("200 OK") "Content-Length: 4\r\n\r\nslow");
    between(10 * SECOND, one.took, 11 * SECOND);
    for (int allowed = 0; allowed < 2; allowed++) { /* one handler allows it for a while */
        one.server.options.allows_half_close = allowed;
        one.pause = 2 * SECOND;
        assert_int_equal(peer_say(&one, "GET /half" HOST), -ECONNRESET);
        assert_int_equal(handled.slept, -ECANCELED);
        between(5 * SECOND, one.took, 6 * SECOND);
    }
}

static void a_cancelled_connection_does_not_look_as_if_its_client_had_left(void **state)
{
    (void)state;
    use_leaving();
    one.ends = false;
    one.stop_after = 5;
    assert_int_equal(peer_say(&one, "GET /slow" HOST), -ECANCELED);
    assert_int_equal(handled.slept, -ECANCELED);
    assert_int_equal(ended_error, -ECANCELED);
}

/* If a handler's upstream fails, the status says how. */
static void each_upstream_error_has_a_status(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /fails-behind HTTP/1.1\r\nHost: a\r\n\r\n"
                                    "GET /fails-to-find HTTP/1.1\r\nHost: a\r\n\r\n"
                                    "GET /fails-in-time HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_non_null(strstr(one.output, "HTTP/1.1 502 Bad Gateway\r\n"));
    assert_non_null(strstr(one.output, "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_non_null(strstr(one.output, "HTTP/1.1 504 Gateway Timeout\r\n"));
}

static void a_complete_response_is_not_replaced(void **state)
{
    (void)state;
    use_leaving();
    one.server.options.allows_half_close = true;
    assert_int_equal(peer_say(&one, "GET /responds-and-fails" HOST), 0);
    assert_string_equal(one.output, HEAD("426 Upgrade Required") "Content-Length: 8\r\n\r\ncomplete");
    assert_int_equal(ended_status, 426);
    assert_int_equal(ended_error, -EINVAL);
    assert_int_equal(peer_say(&one, "HEAD /responds-and-fails" HOST "GET /responds-and-fails" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("426 Upgrade Required") "Content-Length: 8\r\n\r\n"
                        HEAD("426 Upgrade Required") "Content-Length: 8\r\n\r\ncomplete" HELLO);
    assert_int_equal(ended_error, 0);
    assert_int_equal(peer_say(&one, "GET /unchanged-and-fails" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("304 Not Modified") "\r\n" HELLO);
    /* the handler's time is over */
    use(&(bide_http_options){.request_timeout = 3 * SECOND});
    assert_int_equal(peer_say(&one, "GET /responds-and-waits" HOST "GET /hello" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 8\r\n\r\ncomplete");
    between(3 * SECOND, one.took, 6 * SECOND);
    /* the client has left */
    use_leaving();
    assert_int_equal(peer_say(&one, "GET /responds-and-waits" HOST), 0);
    assert_string_equal(one.output, HEAD("200 OK") "Content-Length: 8\r\n\r\ncomplete");
    assert_int_equal(ended_error, -ECANCELED);
}

static void an_error_of_a_handler_does_not_blame_the_client(void **state)
{
    static const struct {
        int error, status;
    } rows[] = {{ENOENT, 404}, {EACCES, 403}, {EPERM, 403}, {EREMOTEIO, 502}, {EHOSTDOWN, 503}, {ENOMEM, 503}, {EMFILE, 503},
                {ETIMEDOUT, 504}, {EBADMSG, 500}, {EFBIG, 500}, {EMSGSIZE, 500}, {EINVAL, 500}, {ENODATA, 500}, {EIO, 500},
                {EPIPE, 500}, {ECONNRESET, 500}, {ECANCELED, 500}, {EAGAIN, 500}, {4095, 500}};
    (void)state;
    use_leaving();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int reads = 0; reads < 2; reads++) {
            char request[200];
            snprintf(request, sizeof request, "%sGET /fails-by?%d" HOST "GET /hello" HOST,
                     reads ? "POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" : "", rows[i].error);
            assert_int_equal(peer_say(&one, request), 0);
            const char *first = reads ? strstr(one.output, "\r\n\r\n") + 4 : one.output;
            assert_int_equal(atoi(first + 9), rows[i].status);
            assert_non_null(strstr(one.output, HELLO));
        }
    (void)peer_say(&one, "GET /fails-by?5" HOST);
    assert_int_equal(ended_status, 500);
    assert_int_equal(ended_error, -EIO);
    /* the same errors, of the request */
    (void)peer_say(&one, "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n");
    assert_int_equal(ended_status, 400);
    assert_int_equal(ended_error, -EBADMSG);
}

static void a_handler_may_end_the_connection(void **state)
{
    (void)state;
    assert_int_equal(peer_say(&one, "GET /last HTTP/1.1\r\nHost: a\r\n\r\n"
                                    "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_int_equal(handled.begun, 1);
    assert_non_null(strstr(one.output, "Connection: close\r\n"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_peer, end_peer)
    const struct CMUnitTest tests[] = {
        TEST(answers_with_the_length),
        TEST(requests_that_come_together_are_answered_in_order),
        TEST(responses_to_complete_requests_are_sent_together),
        TEST(a_later_request_that_breaks_off_loses_no_response),
        TEST(a_client_may_wait_for_a_response_before_it_sends_the_next_body),
        TEST(a_handler_that_waits_holds_no_earlier_response),
        TEST(earlier_responses_leave_slowly_while_handlers_wait),
        TEST(a_head_fits_while_earlier_responses_leave),
        TEST(the_status_of_a_bad_head_does_not_depend_on_how_it_arrives),
        TEST(bodies_come_and_go_in_chunks),
        TEST(responses_without_a_body_have_none),
        TEST(a_status_may_be_set_after_fields),
        TEST(a_failing_handler_is_reported),
        TEST(a_response_that_was_begun_is_not_ended_by_a_failure),
        TEST(clients_of_http_1_0_are_answered_in_their_way),
        TEST(large_responses_wait_for_the_client),
        TEST(reading_a_body_sends_100_continue),
        TEST(an_unread_body_is_skipped),
        TEST(an_upgrade_keeps_the_bytes_behind_the_head),
        TEST(oversized_requests_are_rejected),
        TEST(a_long_extension_is_rejected),
        TEST(long_trailers_are_rejected),
        TEST(a_connection_ends_after_so_many_requests),
        TEST(a_silent_peer_is_dropped),
        TEST(a_head_that_drips_is_not_waited_for),
        TEST(a_head_that_stops_behind_a_response_is_not_waited_for),
        TEST(a_body_that_stops_is_not_waited_for),
        TEST(a_handler_has_a_time),
        TEST(a_peer_that_does_not_read_is_dropped),
        TEST(a_vanished_client_leaves_nothing),
        TEST(shutting_down_ends_the_idle_and_says_so_to_the_others),
        TEST(it_can_be_cancelled_at_each_place),
        TEST(it_may_be_destroyed_at_each_place),
        TEST(a_refused_request_is_reported),
        TEST(a_body_is_dropped_before_the_connection_ends),
        TEST(an_upgraded_connection_lingers),
        TEST(a_complete_response_is_not_replaced),
        TEST(an_error_of_a_handler_does_not_blame_the_client),
        TEST(a_handler_that_waits_is_cancelled_when_its_client_leaves),
        TEST(bytes_that_come_while_a_handler_waits_are_the_next_request),
        TEST(a_full_buffer_pauses_the_guard),
        TEST(a_request_that_came_while_a_handler_waited_is_served_in_spite_of_a_shutdown),
        TEST(a_shutdown_waits_for_the_last_response),
        TEST(a_body_is_read_before_its_client_is_watched),
        TEST(a_client_that_has_ended_its_output_may_be_served),
        TEST(a_cancelled_connection_does_not_look_as_if_its_client_had_left),
        cmocka_unit_test_setup_teardown(each_upstream_error_has_a_status, begin_peer, end_peer),
        cmocka_unit_test_setup_teardown(a_handler_may_end_the_connection, begin_peer, end_peer),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
