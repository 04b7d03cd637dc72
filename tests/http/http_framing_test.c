/*
 * Ambiguous and invalid requests: each gets the expected status and ends the connection, so that no bytes
 * after it are read as a request. Unusual but valid requests are accepted.
 */
#include "http_peer.h"

/* Follows each body. It must not be answered if the connection has to end. */
#define NEXT "GET /hello HTTP/1.1\r\nHost: next\r\n\r\n"

#define GET(fields)  "GET /hello HTTP/1.1\r\n" fields "\r\n" NEXT
#define POST(fields, body) "POST /count HTTP/1.1\r\nHost: a\r\n" fields "\r\n" body NEXT
#define CHUNKED "Transfer-Encoding: chunked\r\n"

struct attempt {
    const char *what;
    const char *bytes;
    int status; /* of the first response */
    bool ends;  /* the connection ends: NEXT is not answered */
};

static const struct attempt attempts[] = {
    /* lengths */
    {"two lengths", POST("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), 400, true},
    {"the same length twice", POST("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), 400, true},
    {"a list of lengths", POST("Content-Length: 3, 3\r\n", "abc"), 400, true},
    {"length and chunks", POST("Content-Length: 3\r\n" CHUNKED, "0\r\n\r\n"), 400, true},
    {"chunks and length", POST(CHUNKED "Content-Length: 5\r\n", "0\r\n\r\n"), 400, true},
    {"length with a sign", POST("Content-Length: +3\r\n", "abc"), 400, true},
    {"negative length", POST("Content-Length: -3\r\n", "abc"), 400, true},
    {"hexadecimal length", POST("Content-Length: 0x3\r\n", "abc"), 400, true},
    {"empty length", POST("Content-Length: \r\n", ""), 400, true},
    {"length with a space in it", POST("Content-Length: 1 0\r\n", "0123456789"), 400, true},
    {"length with letters behind", POST("Content-Length: 3a\r\n", "abc"), 400, true},
    {"length that overflows", POST("Content-Length: 18446744073709551619\r\n", "abc"), 400, true},
    {"length of 20 digits", POST("Content-Length: 00000000000000000003\r\n", "abc"), 400, true},
    {"length with a quote", POST("Content-Length: \"3\"\r\n", "abc"), 400, true},
    {"length with a vertical tab", POST("Content-Length: \0133\r\n", "abc"), 400, true},
    {"length too long for the server", POST("Content-Length: 99999999999\r\n", ""), 413, true},

    /* codings */
    {"two codings, chunked last", POST("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501, true},
    {"chunked first", POST("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), 400, true},
    {"chunked twice", POST("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), 400, true},
    {"two fields of codings", POST(CHUNKED CHUNKED, "0\r\n\r\n"), 400, true},
    {"chunked and identity in two fields", POST(CHUNKED "Transfer-Encoding: identity\r\n", "0\r\n\r\n"), 400, true},
    {"identity", POST("Transfer-Encoding: identity\r\n", ""), 400, true},
    {"unknown coding", POST("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 400, true},
    {"coding with a vertical tab", POST("Transfer-Encoding: \013chunked\r\n", "0\r\n\r\n"), 400, true},
    {"coding with a quote", POST("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), 400, true},
    {"coding with a parameter", POST("Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n"), 400, true},
    {"empty coding", POST("Transfer-Encoding:\r\n", ""), 400, true},
    {"coding with a comma", POST("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n"), 400, true},
    {"coding in HTTP/1.0", "POST /count HTTP/1.0\r\nHost: a\r\n" CHUNKED "\r\n0\r\n\r\n" NEXT, 400, true},
    {"name with a space before its colon", POST("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 400, true},
    {"length with a space before its colon", POST("Content-Length : 3\r\n", "abc"), 400, true},
    {"name with a tab before its colon", POST("Content-Length\t: 3\r\n", "abc"), 400, true},
    {"name with a control character", POST("Transfer\001-Encoding: chunked\r\n", "0\r\n\r\n"), 400, true},
    {"name that is empty", POST(": chunked\r\n", ""), 400, true},
    {"line without a colon", POST("Transfer-Encoding chunked\r\n", ""), 400, true},
    {"name with a byte past ASCII", POST("Content-Length\xc3: 3\r\n", "abc"), 400, true},

    /* lines */
    {"bare line feeds", "GET /hello HTTP/1.1\nHost: a\n\n" NEXT, 400, true},
    {"a bare line feed", "GET /hello HTTP/1.1\r\nHost: a\nX: b\r\n\r\n" NEXT, 400, true},
    {"a bare line feed at the end", "GET /hello HTTP/1.1\r\nHost: a\r\n\n" NEXT, 400, true},
    {"a bare carriage return", GET("Host: a\rX: b\r\n"), 400, true},
    {"an extra carriage return", GET("Host: a\r\r\n"), 400, true},
    {"a folded line", GET("Host: a\r\nX: b\r\n c\r\n"), 400, true},
    {"a line folded with a tab", GET("Host: a\r\nX: b\r\n\tc\r\n"), 400, true},
    {"a space before the first field", "GET /hello HTTP/1.1\r\n Host: a\r\n\r\n" NEXT, 400, true},
    {"a folded field that smuggles", POST("X: b\r\n Content-Length: 3\r\n", "abc"), 400, true},
    {"a control character in a value", GET("Host: a\r\nX: \001\r\n"), 400, true},
    {"a delete in a value", GET("Host: a\r\nX: \177\r\n"), 400, true},

    /* the first line */
    {"no version", "GET /hello\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"two spaces", "GET  /hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"two spaces before the version", "GET /hello  HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a space behind the version", "GET /hello HTTP/1.1 \r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a tab for a space", "GET\t/hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a space before the method", " GET /hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a version in lower case", "GET /hello http/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a version of two digits", "GET /hello HTTP/1.10\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"version 2.0", "GET /hello HTTP/2.0\r\nHost: a\r\n\r\n" NEXT, 505, true},
    {"version 0.9", "GET /hello HTTP/0.9\r\nHost: a\r\n\r\n" NEXT, 505, true},
    {"version 1.2", "GET /hello HTTP/1.2\r\nHost: a\r\n\r\n" NEXT, 505, true},
    {"another protocol", "GET /hello RTSP/1.0\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, true},
    {"an unknown method", "BREW /hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 501, true},
    {"a method in lower case", "get /hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 501, true},
    {"an invalid method", "G(T /hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"an invalid target", "GET hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a star for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a fragment", "GET /hello#x HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a target with bytes past ASCII", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a target with a control character", "GET /\001 HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"an authority with a user", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"an empty authority", "GET http:///hello HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"CONNECT without a port", "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"a TLS hello", "\026\003\001\002", 400, true},
    {"three empty lines before", "\r\n\r\n\r\n" NEXT, 400, true},

    /* hosts */
    {"no host", "GET /hello HTTP/1.1\r\n\r\n" NEXT, 400, true},
    {"two hosts", GET("Host: a\r\nHost: b\r\n"), 400, true},
    {"the same host twice", GET("Host: a\r\nHost: a\r\n"), 400, true},
    {"a host with a space", GET("Host: a b\r\n"), 400, true},
    {"a host with a path", GET("Host: a/b\r\n"), 400, true},
    {"a host with a user", GET("Host: u@a\r\n"), 400, true},

    {"a host with two ports", GET("Host: a:1:2\r\n"), 400, true},
    {"a host with letters for a port", GET("Host: a:b\r\n"), 400, true},
    {"a port that is too large", GET("Host: a:65536\r\n"), 400, true},
    {"a port without a host", GET("Host: :80\r\n"), 400, true},
    {"a bracket that is not closed", GET("Host: [::1\r\n"), 400, true},
    {"a bracket that is not opened", GET("Host: ::1]\r\n"), 400, true},
    {"an address of IPv6 without brackets", GET("Host: ::1\r\n"), 400, true},
    {"brackets around a name", GET("Host: [a]\r\n"), 400, true},
    {"brackets around nothing", GET("Host: []\r\n"), 400, true},
    {"brackets around IPv4", GET("Host: [127.0.0.1]\r\n"), 400, true},
    {"text behind a bracket", GET("Host: [::1]a\r\n"), 400, true},
    {"nine groups", GET("Host: [1:2:3:4:5:6:7:8:9]\r\n"), 400, true},
    {"a zone", GET("Host: [fe80::1%25eth0]\r\n"), 400, true},
    {"an escape that is none", GET("Host: %zz\r\n"), 400, true},
    {"an escape that is cut", GET("Host: a%4\r\n"), 400, true},
    {"a list of hosts", GET("Host: a b, c\r\n"), 400, true},
    {"a target whose port is none", "GET http://a:b/hello HTTP/1.1\r\nHost: b\r\n\r\n" NEXT, 400, true},
    {"a target with a port and no host", "GET http://:80/hello HTTP/1.1\r\nHost: b\r\n\r\n" NEXT, 400, true},
    {"CONNECT with an empty port", "CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},
    {"CONNECT to an address without a port", "CONNECT [::1] HTTP/1.1\r\nHost: a\r\n\r\n" NEXT, 400, true},

    /* chunks: the body follows the head, and the handler reads it */
    {"a chunk without a size", POST(CHUNKED, "\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"an invalid size", POST(CHUNKED, "g\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a size with a prefix", POST(CHUNKED, "0x3\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a size with a sign", POST(CHUNKED, "+3\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a negative size", POST(CHUNKED, "-3\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a size that overflows", POST(CHUNKED, "10000000000000003\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a size of 17 digits", POST(CHUNKED, "00000000000000003\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a space before the size", POST(CHUNKED, " 3\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a space behind the size", POST(CHUNKED, "3 \r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a size that ends by a bare line feed", POST(CHUNKED, "3\nabc\r\n0\r\n\r\n"), 400, true},
    {"a size that ends by a bare carriage return", POST(CHUNKED, "3\rabc\r\n0\r\n\r\n"), 400, true},
    {"an extension with a bare carriage return", POST(CHUNKED, "3;a\rb\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"an extension with a line feed", POST(CHUNKED, "3;a\nb\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a chunk shorter than its size", POST(CHUNKED, "4\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a chunk longer than its size", POST(CHUNKED, "2\r\nabc\r\n0\r\n\r\n"), 400, true},
    {"a chunk that ends by a bare line feed", POST(CHUNKED, "3\r\nabc\n0\r\n\r\n"), 400, true},
    {"a last chunk by a bare line feed", POST(CHUNKED, "3\r\nabc\r\n0\n\n"), 400, true},
    {"a trailer with a bare line feed", POST(CHUNKED, "0\r\nX: a\n\r\n"), 400, true},
    {"a trailer that is folded", POST(CHUNKED, "0\r\nX: a\r\n b\r\n\r\n"), 400, true},
    {"a trailer without a colon", POST(CHUNKED, "0\r\nX\r\n\r\n"), 400, true},
    {"a trailer with a space before its colon", POST(CHUNKED, "0\r\nX : a\r\n\r\n"), 400, true},
    {"a chunk longer than the server takes", POST(CHUNKED, "fffffff\r\nabc"), 413, true},

    /* expectations */
    {"another expectation", POST("Expect: miracles\r\nContent-Length: 3\r\n", "abc"), 417, true},

    /* unusual but valid */
    {"an empty line before", "\r\n" GET("Host: a\r\n"), 200, false},
    {"two empty lines before", "\r\n\r\n" GET("Host: a\r\n"), 200, false},
    {"no space behind a colon", GET("Host:a\r\n"), 200, false},
    {"spaces around a value", POST("Content-Length:   3  \r\n", "abc"), 200, false},
    {"names in other cases", POST("CONTENT-LENGTH: 3\r\n", "abc"), 200, false},
    {"a coding in other cases", POST("transfer-encoding: ChunKed\r\n", "3\r\nabc\r\n0\r\n\r\n"), 200, false},
    {"an empty host", GET("Host:\r\n"), 200, false},
    {"a host with a port", GET("Host: a.example:80\r\n"), 200, false},
    {"a host of IPv6", GET("Host: [::1]:80\r\n"), 200, false},
    {"a host with an empty port", GET("Host: a:\r\n"), 200, false},
    {"a host of IPv4", GET("Host: 127.0.0.1:65535\r\n"), 200, false},
    {"a host of IPv6 that ends with IPv4", GET("Host: [::ffff:127.0.0.1]\r\n"), 200, false},
    {"a host of a future version", GET("Host: [v1.fe:a]:1\r\n"), 200, false},
    {"a host with an escape", GET("Host: a%C3%A4\r\n"), 200, false},
    {"a host with an underscore", GET("Host: a_b-c.d~e!\r\n"), 200, false},
    {"a value with bytes past ASCII", GET("Host: a\r\nX: \xc3\xa4\r\n"), 200, false},
    {"a value with a tab", GET("Host: a\r\nX: a\tb\r\n"), 200, false},
    {"a value that is empty", GET("Host: a\r\nX:\r\n"), 200, false},
    {"a target with its authority", "GET http://a.example/hello HTTP/1.1\r\nHost: b\r\n\r\n" NEXT, 200, false},
    {"a query", "GET /hello?a=/b?c HTTP/1.1\r\nHost: b\r\n\r\n" NEXT, 200, false},
    {"a length of 0", POST("Content-Length: 0\r\n", ""), 200, false},
    {"a length with leading zeros", POST("Content-Length: 0003\r\n", "abc"), 200, false},
    {"a chunk with an extension", POST(CHUNKED, "3;a=b;c=\"d e\"\r\nabc\r\n0;x\r\n\r\n"), 200, false},
    {"a size with noughts before", POST(CHUNKED, "0003\r\nabc\r\n000\r\n\r\n"), 200, false},
    {"a size in capitals", POST(CHUNKED, "A\r\n0123456789\r\n0\r\n\r\n"), 200, false},
    {"a trailer", POST(CHUNKED, "0\r\nX: a\r\nY:\r\n\r\n"), 200, false},
    {"a trailer that looks like a length", POST(CHUNKED, "0\r\nContent-Length: 5\r\n\r\n"), 200, false},
    {"GET with a body", "GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" NEXT, 200, false},
    {"HTTP/1.0 without a host", "GET /hello HTTP/1.0\r\n\r\n" NEXT, 200, true},
    {"HTTP/1.0 that keeps", "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" NEXT, 200, false},
    {"a connection that closes", GET("Host: a\r\nConnection: close\r\n"), 200, true},
    {"a list with close", GET("Host: a\r\nConnection: x, CLOSE ,y\r\n"), 200, true},
    {"close and keep-alive", GET("Host: a\r\nConnection: keep-alive\r\nConnection: close\r\n"), 200, true},
};

/* The number of responses in `output`. */
static int responses_in(const char *output)
{
    int count = 0;
    for (const char *at = output; (at = strstr(at, "HTTP/1.1 ")) != NULL; at += 9)
        count++;
    return count;
}

/* Tries a request. Returns a description of the first mismatch, or NULL. */
static const char *try_it(peer *peer, const struct attempt *attempt)
{
    peer_say(peer, attempt->bytes);
    bool has_two = strstr(attempt->bytes, NEXT) != NULL && !attempt->ends;
    if (strlen(peer->output) < 12 || atoi(peer->output + 9) != attempt->status)
        return "another status";
    if (responses_in(peer->output) != (has_two ? 2 : 1))
        return has_two ? "the next request was not answered" : "the next request was answered";
    if (attempt->ends && strstr(peer->output, "Connection: close\r\n") == NULL)
        return "the client was not told that the connection ends";
    if (handled.begun != handled.ended)
        return "a handler was left";
    return NULL;
}

static void try_all(peer *peer, const char *how)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const char *fault = try_it(peer, &attempts[i]);
        if (fault != NULL) {
            wrong++;
            printf("# %s, %s: %s\n%.*s\n", attempts[i].what, how, fault, 200, peer->output);
        }
    }
    assert_int_equal(wrong, 0);
}

static void ambiguous_requests_are_rejected(void **state)
{
    static peer peer;
    (void)state;
    peer_init(&peer, NULL);
    try_all(&peer, "at once");
    peer_end(&peer);
}

static void ambiguous_requests_are_rejected_byte_by_byte(void **state)
{
    static peer peer;
    (void)state;
    peer_init(&peer, NULL);
    peer.piece = 1;
    try_all(&peer, "byte by byte");
    peer_end(&peer);
}

static void ambiguous_requests_are_rejected_however_they_are_split(void **state)
{
    static peer peer;
    (void)state;
    peer_init(&peer, NULL);
    for (size_t cut = 1; cut < 160; cut++) {
        char how[32];
        peer.cut = cut;
        snprintf(how, sizeof how, "cut at %zu", cut);
        try_all(&peer, how);
    }
    peer_end(&peer);
}

/*
 * Pipelined requests fill the input buffer, and the head of the last one ends near the end of the buffer.
 * The server can still read its body.
 */
static void a_head_at_the_end_of_the_buffer_leaves_room_for_its_body(void **state)
{
    enum { INPUT = 2048 };
    static peer peer;
    static char input[2 * INPUT];
    static const char *const posts[] = {
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" CHUNKED "\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 600\r\n\r\n"};
    static char sent[601];
    memset(sent, 'x', 600);
    (void)state;
    peer_init(&peer, &(bide_http_options){.read_buffer_size = INPUT});
    for (size_t end = INPUT - 400; end <= INPUT + 10; end++)
        for (size_t i = 0; i < 2; i++) {
            int padding = (int)(end - strlen(posts[i]) - strlen("GET /nothing?1 HTTP/1.1\r\nHost: a\r\n\r\n") * 2);
            int size = snprintf(input, sizeof input,
                                "GET /nothing?%0*d HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing?%0*d HTTP/1.1\r\nHost: a\r\n\r\n%s",
                                1 + padding / 2, 0, 1 + padding - padding / 2, 0, posts[i]);
            assert_int_equal(size, end);
            size += snprintf(input + size, sizeof input - (size_t)size, "%s%s%s", i == 0 ? "258\r\n" : "", sent,
                             i == 0 ? "\r\n0\r\nX-Trailer: yes\r\n\r\n" : "");
            assert_int_equal(peer_say_bytes(&peer, input, (size_t)size), 0);
            assert_int_equal(handled.read, 600);
            assert_string_equal(handled.trailer, i == 0 ? "yes" : "");
        }
    peer_end(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ambiguous_requests_are_rejected),
        cmocka_unit_test(ambiguous_requests_are_rejected_byte_by_byte),
        cmocka_unit_test(ambiguous_requests_are_rejected_however_they_are_split),
        cmocka_unit_test(a_head_at_the_end_of_the_buffer_leaves_room_for_its_body),
    };
    return cmocka_run_group_tests_name("http_framing", tests, NULL, NULL);
}
