/* Parts of HTTP agents: decoding of compressed bodies in pieces of any size, proxies, and hosts without one. */
#define _GNU_SOURCE
#include "testing.h"

#include "http_compressed.h"

#include <bide/http_agent.h>

#include "../../src/http/inflate.h"
#include "../../src/http/proxies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Decoding ---- */

/*
 * Decodes input that arrives in pieces into pieces of `out_size` bytes. Returns the number of bytes in `out`, or an
 * error: -ENODATA if the input has ended too early.
 */
static ptrdiff_t decode(http_coding coding, const void *data, size_t size, size_t piece,
                        size_t out_size, char *out, size_t room)
{
    http_inflate *inflate;
    size_t got = 0, at = 0;
    ptrdiff_t count;
    assert_int_equal(bide_http_inflate_create_(&inflate, coding), 0);
    for (;;) {
        /* (exactly as many bytes as there are, for AddressSanitizer) */
        size_t next = size - at < piece ? size - at : piece;
        char *copy = malloc(next + (next == 0));
        memcpy(copy, (const char *)data + at, next);
        bide_slice input = {copy, next};
        while ((count = bide_http_inflate_run_(inflate, &input, out + got,
                                               room - got < out_size ? room - got : out_size)) >
               0) {
            got += (size_t)count;
            assert_true(got < room);
        }
        assert_true(count < 0 || input.size == 0);
        free(copy);
        at += next;
        if (count < 0 || at == size)
            break;
    }
    if (count == 0 && !bide_http_inflate_is_whole_(inflate))
        count = -ENODATA;
    if (count < 0 && count != -ENODATA) { /* it stays spoilt */
        bide_slice input = {data, size};
        assert_int_equal(bide_http_inflate_run_(inflate, &input, out, 1), count);
    }
    bide_http_inflate_destroy_(inflate);
    return count < 0 ? count : (ptrdiff_t)got;
}

static bool has_zlib(void)
{
    if (!bide_http_has_inflate_) {
        http_inflate *inflate;
        assert_int_equal(bide_http_inflate_create_(&inflate, HTTP_CODING_GZIP), -ENOTSUP);
        print_message("# built without zlib\n");
    }
    return bide_http_has_inflate_;
}

static const struct body {
    http_coding coding;
    const unsigned char *data;
    size_t size;
    const char *text;
} bodies[] = {
    {HTTP_CODING_GZIP, gzipped, sizeof gzipped, COMPRESSED_TEXT},
    {HTTP_CODING_DEFLATE, deflated, sizeof deflated, COMPRESSED_TEXT},
    {HTTP_CODING_DEFLATE, bare, sizeof bare, COMPRESSED_TEXT},
    {HTTP_CODING_DEFLATE, stored_bare, sizeof stored_bare, "stored"},
};

static void bodies_are_decoded_in_pieces_of_any_size(void **state)
{
    static char out[400];
    (void)state;
    if (!has_zlib())
        skip();
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        size_t size = strlen(bodies[i].text);
        for (size_t piece = 1; piece <= bodies[i].size; piece++) {
            for (size_t out_size = 1; out_size < sizeof out; out_size = out_size * 3 + 1) {
                assert_int_equal(decode(bodies[i].coding, bodies[i].data, bodies[i].size, piece,
                                        out_size, out, sizeof out),
                                 size);
                assert_memory_equal(out, bodies[i].text, size);
            }
        }
    }
}

static void gzip_may_have_several_members(void **state)
{
    static char out[800];
    unsigned char twice[2 * sizeof gzipped + 1];
    (void)state;
    if (!has_zlib())
        skip();
    memcpy(twice, gzipped, sizeof gzipped);
    memcpy(twice + sizeof gzipped, gzipped, sizeof gzipped);
    for (size_t piece = 1; piece < sizeof twice; piece++) {
        assert_int_equal(
            decode(HTTP_CODING_GZIP, twice, sizeof twice - 1, piece, 100, out, sizeof out),
            2 * strlen(COMPRESSED_TEXT));
        assert_memory_equal(out, COMPRESSED_TEXT COMPRESSED_TEXT, 2 * strlen(COMPRESSED_TEXT));
    }
    twice[sizeof twice - 1] = 'x'; /* and nothing else behind them */
    assert_true(decode(HTTP_CODING_GZIP, twice, sizeof twice, 7, 100, out, sizeof out) < 0);
    assert_int_equal(decode(HTTP_CODING_GZIP, "no gzip", 7, 7, 100, out, sizeof out), -EBADMSG);
}

static void cut_and_spoilt_bodies_are_errors(void **state)
{
    static char out[800];
    unsigned char copy[sizeof gzipped];
    (void)state;
    if (!has_zlib())
        skip();
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_int_equal(decode(bodies[i].coding, "", 0, 1, 100, out, sizeof out), 0); /* no body */
        for (size_t size = 1; size < bodies[i].size; size++)
            assert_int_equal(
                decode(bodies[i].coding, bodies[i].data, size, 5, 100, out, sizeof out), -ENODATA);
        unsigned char *longer = malloc(bodies[i].size + 1);
        memcpy(longer, bodies[i].data, bodies[i].size);
        longer[bodies[i].size] = 0;
        assert_true(decode(bodies[i].coding, longer, bodies[i].size + 1, 4, 100, out, sizeof out) <
                    0);
        free(longer);
    }
    for (size_t i = sizeof gzipped - 8; i < sizeof gzipped; i++) { /* the sum and the length */
        memcpy(copy, gzipped, sizeof copy);
        copy[i] ^= 0x10;
        assert_int_equal(decode(HTTP_CODING_GZIP, copy, sizeof copy, 11, 100, out, sizeof out),
                         -EBADMSG);
    }
}

/* Whatever is changed, it ends, within its memory. */
static void changed_bodies_end(void **state)
{
    static char out[400];
    uint64_t seed = testing_seed();
    (void)state;
    if (!has_zlib())
        skip();
    for (uint32_t round = 0; round < rounds_of(4000); round++) {
        const struct body *body = &bodies[testing_random(&seed) % (sizeof bodies / sizeof *bodies)];
        unsigned char copy[64];
        memcpy(copy, body->data, body->size);
        for (size_t changes = 1 + testing_random(&seed) % 3; changes != 0; changes--)
            copy[testing_random(&seed) % body->size] = (unsigned char)testing_random(&seed);
        ptrdiff_t count = 0;
        http_inflate *inflate;
        assert_int_equal(bide_http_inflate_create_(&inflate, body->coding), 0);
        bide_slice input = {(char *)copy, body->size};
        for (int i = 0; i < 10000; i++) {
            count = bide_http_inflate_run_(inflate, &input, out, sizeof out);
            if (count <= 0)
                break;
        }
        assert_true(count <= 0 && (count < 0 || input.size == 0));
        bide_http_inflate_destroy_(inflate);
    }
}

/* ---- Proxies ---- */

static void proxies_are_parsed(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *host;
        uint16_t port;
        const char *authorization;
    } cases[] = {
        {"http://proxy.example:3128", 0, "proxy.example", 3128, ""},
        {"proxy.example:3128", 0, "proxy.example", 3128, ""},
        {"http://proxy.example/", 0, "proxy.example", 80, ""},
        {"http://[::1]:8080", 0, "::1", 8080, ""},
        {"http://Aladdin:open%20sesame@p", 0, "p", 80, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
        {"a:b@p:1", 0, "p", 1, "Basic YTpi"},
        {"a@p", 0, "p", 80, "Basic YTo="},
        {"http://a:@p", 0, "p", 80, "Basic YTo="},
        {"https://p", -EPROTONOSUPPORT, NULL, 0, NULL},
        {"socks5://p", -EPROTONOSUPPORT, NULL, 0, NULL},
        {"http://p/path", -EINVAL, NULL, 0, NULL},
        {"http://p?q", -EINVAL, NULL, 0, NULL},
        {"http://", -EINVAL, NULL, 0, NULL},
        {"p:99999", -EINVAL, NULL, 0, NULL},
    };
    char text[1100];
    http_proxy proxy;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(bide_http_proxy_parse_(&proxy, cases[i].text), cases[i].status);
        if (cases[i].status != 0)
            continue;
        assert_string_equal(proxy.host, cases[i].host);
        assert_int_equal(proxy.port, cases[i].port);
        assert_string_equal(proxy.authorization, cases[i].authorization);
    }
    for (size_t size = 1; size < sizeof text - 10; size++) { /* users and hosts that do not fit */
        memset(text, 'u', size);
        strcpy(text + size, "@p");
        int status = bide_http_proxy_parse_(&proxy, text);
        assert_int_equal(status, size < 384 ? 0 : -EMSGSIZE);
        strcpy(text + size, ":1");
        assert_int_equal(bide_http_proxy_parse_(&proxy, text), size < 256 ? 0 : -EMSGSIZE);
    }
}

static void hosts_without_a_proxy_are_listed(void **state)
{
    static const struct {
        const char *list, *url;
        bool is_listed;
    } cases[] = {
        {"", "http://a/", false},
        {"*", "http://a/", true},
        {"a", "http://a/", true},
        {"A", "http://a./", true},
        {"example.org", "http://example.org/", true},
        {"example.org", "http://www.EXAMPLE.org/", true},
        {".example.org", "http://www.example.org/", true},
        {".example.org", "http://example.org/", true},
        {"*.example.org", "http://a.b.example.org/", true},
        {"example.org", "http://badexample.org/", false},
        {"example.org", "http://example.org.bad/", false},
        {"x, y example.org,z", "http://example.org/", true},
        {",, ,", "http://a/", false},
        {"example.org:8080", "http://example.org:8080/", true},
        {"example.org:8080", "http://example.org/", false},
        {"example.org:80", "http://example.org/", true},
        {"example.org:443", "https://example.org/", true},
        {"example.org:x", "http://example.org/", false},
        {"example.org:", "http://example.org/", false},
        {"127.0.0.1", "http://127.0.0.1:8000/", true},
        {"127.0.0.1:8000", "http://127.0.0.1:8000/", true},
        {"0.0.1", "http://127.0.0.1/", false},
        {"1", "http://127.0.0.1/", false},
        {"::1", "http://[::1]/", true},
        {"0:0:0:0:0:0:0:1", "http://[::1]/", true},
        {"[::1]", "http://[::1]:81/", true},
        {"[::1]:81", "http://[::1]:81/", true},
        {"[::1]:82", "http://[::1]:81/", false},
        {"::2", "http://[::1]/", false},
        {"[", "http://a/", false},
        {":", "http://a/", false},
        {".", "http://a/", false},
        {"*.", "http://a/", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bide_http_url url;
        assert_int_equal(bide_http_url_parse(&url, cases[i].url, strlen(cases[i].url)), 0);
        if (bide_http_is_excepted_(cases[i].list, &url) != cases[i].is_listed)
            fail_msg("\"%s\" of \"%s\"", cases[i].url, cases[i].list);
    }
}

static void clear_environment(void)
{
    static const char *const names[] = {"http_proxy",  "https_proxy", "no_proxy",      "HTTP_PROXY",
                                        "HTTPS_PROXY", "NO_PROXY",    "REQUEST_METHOD"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static const http_proxy *proxy_for(const http_proxies *proxies, const char *text)
{
    bide_http_url url;
    assert_int_equal(bide_http_url_parse(&url, text, strlen(text)), 0);
    return bide_http_proxy_for_(proxies, &url);
}

static void the_environment_names_proxies(void **state)
{
    http_proxies proxies;
    (void)state;
    clear_environment();
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_null(proxy_for(&proxies, "http://a/"));
    bide_http_proxies_free_(&proxies);

    setenv("HTTP_PROXY", "capital", 1);
    setenv("HTTPS_PROXY", "capital-s", 1);
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_string_equal(proxy_for(&proxies, "http://a/")->host, "capital");
    assert_string_equal(proxy_for(&proxies, "https://a/")->host, "capital-s");
    bide_http_proxies_free_(&proxies);

    setenv("REQUEST_METHOD", "GET", 1); /* a CGI program: HTTP_PROXY is the field "Proxy" */
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_null(proxy_for(&proxies, "http://a/"));
    assert_string_equal(proxy_for(&proxies, "https://a/")->host, "capital-s");
    bide_http_proxies_free_(&proxies);

    setenv("http_proxy", "small", 1);
    setenv("https_proxy", "small-s", 1);
    setenv("NO_PROXY", "x", 1);
    setenv("no_proxy", "b", 1);
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_string_equal(proxy_for(&proxies, "http://a/")->host, "small");
    assert_string_equal(proxy_for(&proxies, "https://x/")->host, "small-s");
    assert_null(proxy_for(&proxies, "https://b/"));
    bide_http_proxies_free_(&proxies);

    /* one that names no proxy: a problem of the URLs that would use it */
    setenv("http_proxy", "https://p", 1);
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_int_equal(proxy_for(&proxies, "http://a/")->status, -EPROTONOSUPPORT);
    assert_non_null(strstr(proxy_for(&proxies, "http://a/")->problem, " http_proxy "));
    assert_null(proxy_for(&proxies, "http://b/"));
    assert_null(proxy_for(&proxies, "https://x/")->problem);
    bide_http_proxies_free_(&proxies);
    unsetenv("https_proxy");
    setenv("HTTPS_PROXY", "http://a b", 1);
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_int_equal(proxy_for(&proxies, "https://x/")->status, -EINVAL);
    assert_non_null(strstr(proxy_for(&proxies, "https://x/")->problem, " HTTPS_PROXY "));
    bide_http_proxies_free_(&proxies);
    setenv("http_proxy", "", 1); /* none */
    assert_int_equal(bide_http_proxies_read_(&proxies), 0);
    assert_null(proxy_for(&proxies, "http://a/"));
    bide_http_proxies_free_(&proxies);
    clear_environment();
}

/* ---- Options ---- */

static void sizes_that_no_memory_has_are_refused(void **state)
{
    static const bide_http_agent_options rows[] = {
        {.max_fields = SIZE_MAX},
        {.max_fields = SIZE_MAX / sizeof(bide_http_field) + 1}, /* no bytes, if it wraps */
        {.max_fields = SIZE_MAX / 2},
        {.max_head = SIZE_MAX},
        {.max_head = SIZE_MAX - 11264},
        {.max_head = SIZE_MAX / 2 + 1, .max_fields = SIZE_MAX / 2 / sizeof(bide_http_field) + 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_http_agent *agent = (bide_http_agent *)(uintptr_t)&rows[i];
        assert_int_equal(bide_http_agent_create(&agent, &rows[i]), -EINVAL);
        assert_null(agent);
    }
    bide_http_agent *agent;
    assert_int_equal(bide_http_agent_create(&agent, &(bide_http_agent_options){.max_fields = 1000}),
                     0);
    bide_http_agent_destroy(agent);
}

static void a_clients_fields_do_not_wrap(void **state)
{
    static char memory[BIDE_HTTP_CLIENT_MEMORY];
    bide_http_client client;
    bide_http_client_options options = {.max_fields = SIZE_MAX / sizeof(bide_http_field) + 1};
    bide_memory_end end = {NULL, NULL};
    (void)state;
    assert_int_equal(
        bide_http_client_init(&client, bide_memory_stream(&end), memory, sizeof memory, &options),
        -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded_in_pieces_of_any_size),
        cmocka_unit_test(gzip_may_have_several_members),
        cmocka_unit_test(cut_and_spoilt_bodies_are_errors),
        cmocka_unit_test(changed_bodies_end),
        cmocka_unit_test(proxies_are_parsed),
        cmocka_unit_test(hosts_without_a_proxy_are_listed),
        cmocka_unit_test(the_environment_names_proxies),
        cmocka_unit_test(sizes_that_no_memory_has_are_refused),
        cmocka_unit_test(a_clients_fields_do_not_wrap),
    };
    return cmocka_run_group_tests_name("http_agent_parts", tests, NULL, NULL);
}
