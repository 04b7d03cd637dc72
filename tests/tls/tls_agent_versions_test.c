/*
 * An HTTP agent does the same by HTTP/1.1 and HTTP/2, plain and over TLS. An option fixes the version.
 */
#define _GNU_SOURCE
#include "agent_server.h"

#define each_transport(t) for (transport t = 0; t < TRANSPORTS; t++)

/* ---- The version ---- */

/* One agent, four fetches: each has a connection of its own version. */
static void each_fetch_may_have_its_version(void **state)
{
    static const struct {
        transport transport;
        bide_http_version version;
        bool is_http2;
    } rows[] = {
        {PLAIN_1, BIDE_HTTP_VERSION_ANY, false}, {PLAIN_1, BIDE_HTTP_VERSION_1, false},
        {PLAIN_1, BIDE_HTTP_VERSION_2, true},    {TLS_1, BIDE_HTTP_VERSION_ANY, true},
        {TLS_1, BIDE_HTTP_VERSION_1, false},     {TLS_1, BIDE_HTTP_VERSION_2, true},
    };
    for (int tls = 0; tls < 2; tls++) {
        (void)world_of_a_loop(world_of(state));
        open_peer(state, tls ? TLS_1 : PLAIN_1, (bide_http_options){0});
        make_agent((bide_http_agent_options){0});
        for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
            size_t row = i % (sizeof rows / sizeof *rows);
            if (rows[row].transport != f.transport)
                continue;
            assert_int_equal(open_fetch("GET", "/x"), 0);
            assert_int_equal(f.fetch.version, BIDE_HTTP_VERSION_ANY);
            f.fetch.version = rows[row].version;
            assert_int_equal(send_fetch(), 0);
            assert_int_equal(f.fetch.is_http2, rows[row].is_http2);
            assert_int_equal(read_page(), 0);
            assert_string_equal(f.page, "hello");
        }
        assert_int_equal(f.server.stats.accepted, tls ? 3 : 2); /* (of "http", any is 1) */
        close_transport();
    }
}

static void a_version_that_is_none_is_refused(void **state)
{
    bide_http_agent *agent;
    (void)world_of_a_loop(world_of(state));
    open_transport(state, PLAIN_1);
    bide_http_agent_options options = {.version = (bide_http_version)3};
    assert_int_equal(bide_http_agent_create(&agent, &options), -EINVAL);
    assert_null(agent);
    assert_int_equal(open_fetch("GET", "/x"), 0);
    f.fetch.version = (bide_http_version)3;
    assert_int_equal(send_fetch(), -EINVAL);
    assert_int_equal(f.server.stats.accepted, 0);
    close_transport();
}

static void version_2_needs_http2(void **state)
{
    each_transport(t)
    {
        (void)world_of_a_loop(world_of(state));
        open_peer(state, t, (bide_http_options){0});
        bide_http_agent_options options = {.ignores_environment = true,
                                           .version = BIDE_HTTP_VERSION_2};
        assert_int_equal(bide_http_agent_create(&f.agent, &options), 0);
        bide_http_agent_use_tls(f.agent, f.client);
        assert_int_equal(get("/x"), -EPROTONOSUPPORT);
        assert_string_equal(f.fetch.reason,
                            "HTTP/2 needs bide_http_agent_use_http2() and -lbide-http2");
        assert_int_equal(f.server.stats.accepted, 0);
        close_transport();
    }
}

/* Without HTTP/2, a config that names no protocol is enough for HTTP/1.1. */
static void version_1_needs_no_alpn(void **state)
{
    bide_tls_config *config = usual_client();
    (void)world_of_a_loop(world_of(state));
    open_peer(state, TLS_1, (bide_http_options){0});
    bide_http_agent_options options = {.ignores_environment = true, .version = BIDE_HTTP_VERSION_1};
    assert_int_equal(bide_http_agent_create(&f.agent, &options), 0);
    bide_http_agent_use_tls(f.agent, config);
    assert_works();
    bide_tls_config_release(config);
    close_transport();
}

/* A server that is asked for HTTP/2 and does not speak it. */
static void version_2_does_not_fall_back(void **state)
{
    static const char *const only_http1[] = {"http/1.1", NULL};
    for (int tls = 0; tls < 2; tls++) {
        (void)world_of_a_loop(world_of(state));
        open_peer(state, tls ? TLS_1 : PLAIN_1, (bide_http_options){0});
        assert_int_equal(bide_http2_init(&f.http2, &f.http, NULL), 0); /* without is_plain */
        bide_tls_config_release(f.config);
        bide_tls_certificate room;
        bide_tls_options asking = options_of(&server_proof, &room);
        asking.protocols = only_http1;
        f.config = server_with(&asking);
        make_agent((bide_http_agent_options){.version = BIDE_HTTP_VERSION_2});
        assert_int_equal(get("/x"), tls ? -EPROTONOSUPPORT : -EBADMSG);
        assert_string_equal(f.fetch.reason, tls ? "the server has not chosen HTTP/2" : "");
        assert_int_equal(f.requests, 0);
        assert_int_equal(open_fetch("GET", "/x"), 0); /* the other version still works */
        f.fetch.version = BIDE_HTTP_VERSION_1;
        assert_int_equal(send_fetch(), 0);
        assert_int_equal(f.requests, 1);
        close_transport();
    }
}

/* ---- What an agent does ---- */

static void a_page_is_got(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        for (int i = 0; i < 3; i++)
            assert_works();
        assert_int_equal(open_fetch("HEAD", "/x"), 0);
        assert_int_equal(send_fetch(), 0);
        assert_int_equal(f.fetch.response.length, 5);
        assert_int_equal(read_page(), 0);
        assert_string_equal(f.page, "");
        assert_string_equal(f.seen, "HEAD /x 0");
        assert_int_equal(f.server.stats.accepted, 1);
        close_transport();
    }
}

static void a_body_in_memory_is_sent(void **state)
{
    static const size_t sizes[] = {0, 1, 20000, sizeof zeros};
    each_transport(t)
    {
        open_transport(state, t);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char expected[64];
            snprintf(expected, sizeof expected, "POST /x %zu", sizes[i]);
            assert_int_equal(open_fetch("POST", "/x"), 0);
            assert_int_equal(bide_http_fetch_set_body(&f.fetch, zeros, sizes[i]), 0);
            assert_int_equal(send_fetch(), 0);
            assert_int_equal(read_page(), 0);
            assert_string_equal(f.page, "hello");
            assert_string_equal(f.seen, expected);
        }
        assert_int_equal(f.server.stats.accepted, 1);
        close_transport();
    }
}

static void redirects_keep_or_change_the_method(void **state)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT"};
    static const int codes[] = {301, 302, 303, 307, 308};
    each_transport(t)
    {
        open_transport(state, t);
        for (size_t i = 0; i < 20; i++) {
            const char *method = methods[i % 4];
            int code = codes[i / 4];
            char path[20], expected[64];
            bool has_body = i % 4 >= 2;
            bool changes = (code == 303 && has_body) || (code <= 302 && i % 4 == 2);
            snprintf(path, sizeof path, "/moved/%d", code);
            snprintf(expected, sizeof expected, "%s /what %d", changes ? "GET" : method,
                     has_body && !changes ? 3 : 0);
            assert_int_equal(open_fetch(method, path), 0);
            if (has_body)
                assert_int_equal(bide_http_fetch_set_body(&f.fetch, "abc", 3), 0);
            assert_int_equal(send_fetch(), 0);
            assert_int_equal(f.fetch.response.status, 200);
            assert_int_equal(f.fetch.redirects, 1);
            assert_int_equal(f.fetch.is_http2, is_http2());
            assert_int_equal(read_page(), 0);
            if (strcmp(f.seen, expected) != 0)
                fail_msg("%s, %s, %d: %s", transports[t], method, code, f.seen);
        }
        assert_int_equal(f.server.stats.accepted, 1);
        close_transport();
    }
}

static void a_body_is_decompressed(void **state)
{
    each_transport(t)
    {
        open_transport(state, t);
        assert_int_equal(get("/gzip"), 0);
        assert_int_equal(f.fetch.is_decoded, bide_http_has_inflate_);
        if (bide_http_has_inflate_)
            assert_string_equal(f.page, COMPRESSED_TEXT);
        else
            assert_memory_equal(f.page, gzipped, sizeof gzipped);
        close_transport();
    }
}

static void cookies_are_kept_and_sent(void **state)
{
    each_transport(t)
    {
        bide_http_cookies *cookies = NULL;
        assert_int_equal(bide_http_cookies_create(&cookies, NULL), 0);
        open_transport_with(state, t, (bide_http_agent_options){.cookies = cookies});
        assert_int_equal(get("/set"), 0);
        assert_int_equal(get("/cookie"), 0);
        assert_string_equal(f.page, "a=b");
        close_transport();
        bide_http_cookies_destroy(cookies);
    }
}

/* The server ends a kept connection as a request comes. Only a request that may be repeated is. */
static void an_idempotent_request_is_repeated(void **state)
{
    static const char *const methods[] = {"GET",    "HEAD", "OPTIONS", "PUT",
                                          "DELETE", "POST", "PATCH"};
    each_transport(t)
    {
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
            open_transport(state, t);
            assert_works();
            f.cuts = 1;
            assert_int_equal(open_fetch(methods[i], "/cut"), 0);
            int status = send_fetch();
            if (i < 5)
                assert_int_equal(status == 0 ? read_page() : status, 0);
            else
                assert_true(status == -EPIPE || status == -ECONNRESET || status == -ECONNABORTED);
            assert_int_equal(f.requests, i < 5 ? 3 : 2);
            assert_works();
            assert_int_equal(f.server.stats.accepted, 2);
            close_transport();
        }
    }
}

static void the_environments_proxy_is_used(void **state)
{
    each_transport(t)
    {
        char proxy[80];
        (void)world_of_a_loop(world_of(state));
        open_peer(state, t, (bide_http_options){0});
        f.is_proxy = true;
        snprintf(proxy, sizeof proxy, "http://%s", f.address);
        setenv("http_proxy", proxy, 1);
        setenv("https_proxy", proxy, 1);
        make_agent((bide_http_agent_options){.version = version_of(t)});
        unsetenv("http_proxy");
        unsetenv("https_proxy");
        for (int i = 0; i < 3; i++)
            assert_works();
        assert_int_equal(f.server.stats.accepted, 1);
        assert_int_equal(f.tunnels, t != PLAIN_1); /* HTTP/2 needs one, also without TLS */
        close_transport();
    }
}

static void a_response_is_not_larger_than_allowed(void **state)
{
    each_transport(t)
    {
        open_transport_with(state, t, (bide_http_agent_options){.max_body = sizeof zeros});
        assert_int_equal(get("/big"), 0);
        assert_int_equal(f.fetch.count, sizeof zeros);
        close_transport();
        open_transport_with(state, t, (bide_http_agent_options){.max_body = sizeof zeros - 1});
        assert_int_equal(get("/big"), -EFBIG);
        assert_int_equal(f.fetch.response.status, 0);
        assert_works();
        close_transport();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_fetch_may_have_its_version),
        world_test(a_version_that_is_none_is_refused),
        world_test(version_2_needs_http2),
        world_test(version_1_needs_no_alpn),
        world_test(version_2_does_not_fall_back),
        world_test(a_page_is_got),
        world_test(a_body_in_memory_is_sent),
        world_test(redirects_keep_or_change_the_method),
        world_test(a_body_is_decompressed),
        world_test(cookies_are_kept_and_sent),
        world_test(an_idempotent_request_is_repeated),
        world_test(the_environments_proxy_is_used),
        world_test(a_response_is_not_larger_than_allowed),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
