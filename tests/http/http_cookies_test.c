/* Cookies of clients: which are kept, to which requests they go, and the bounds of a jar. */
#include "testing.h"

#include <bide/http_cookies.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOW = 1000000000 }; /* 2001-09-09 01:46:40 */

static int64_t now;

static int64_t get_now(void)
{
    return now;
}

static bide_http_cookies *make_jar(size_t max_count, size_t max_per_domain)
{
    bide_http_cookies *jar;
    const bide_http_cookies_options options = {
        .max_count = max_count, .max_per_domain = max_per_domain, .clock = get_now};
    now = NOW;
    assert_int_equal(bide_http_cookies_create(&jar, &options), 0);
    return jar;
}

static int set_slice(bide_http_cookies *jar, const char *url, const char *line, size_t size)
{
    bide_http_url parsed;
    assert_int_equal(bide_http_url_parse(&parsed, url, strlen(url)), 0);
    /* (exactly as many bytes as there are, for AddressSanitizer) */
    char *copy = malloc(size + (size == 0));
    memcpy(copy, line, size);
    int status = bide_http_cookies_set(jar, &parsed, (bide_slice){copy, size});
    free(copy);
    return status;
}

static int set(bide_http_cookies *jar, const char *url, const char *line)
{
    return set_slice(jar, url, line, strlen(line));
}

static const char *sent(bide_http_cookies *jar, const char *url)
{
    static char text[8192];
    bide_http_url parsed;
    assert_int_equal(bide_http_url_parse(&parsed, url, strlen(url)), 0);
    size_t size = bide_http_cookies_write(jar, &parsed, text, sizeof text);
    assert_int_equal(strlen(text), size);
    return text;
}

/* ---- Which requests ---- */

static void a_cookie_goes_where_it_belongs(void **state)
{
    static const struct row {
        const char *from, *line;
        int status;
        const char *to, *expected;
    } rows[] = {
        /* hosts and domains */
        {"http://a.test/", "n=v", 0, "http://a.test/", "n=v"},
        {"http://a.test/", "n=v", 0, "http://A.TEST:81/x?y", "n=v"},
        {"http://a.test/", "n=v", 0, "http://b.a.test/", ""},
        {"http://a.test/", "n=v", 0, "http://test/", ""},
        {"http://b.a.test/", "n=v; Domain=a.test", 0, "http://a.test/", "n=v"},
        {"http://b.a.test/", "n=v; domain=.A.Test", 0, "http://c.a.test/", "n=v"},
        {"http://a.test/", "n=v; Domain=a.test", 0, "http://ba.test/", ""},
        {"http://a.test/", "n=v; Domain=a.test", 0, "http://x.y.a.test/", "n=v"},
        {"http://a.test/", "n=v; Domain=b.a.test", -EPERM, "http://b.a.test/", ""},
        {"http://a.test/", "n=v; Domain=other.test", -EPERM, "http://other.test/", ""},
        {"http://ba.test/", "n=v; Domain=a.test", -EPERM, "http://a.test/", ""},
        {"http://a.test/", "n=v; Domain=test", -EPERM, "http://b.test/", ""},
        {"http://test/", "n=v; Domain=test", 0, "http://test/", "n=v"},
        {"http://test/", "n=v; Domain=test", 0, "http://a.test/", ""},
        {"http://a.test/", "n=v; Domain=", 0, "http://b.a.test/", ""},
        {"http://a.test/", "n=v; Domain=b.test; Domain=a.test", 0, "http://b.a.test/", "n=v"},
        {"http://127.0.0.1/", "n=v", 0, "http://127.0.0.1/", "n=v"},
        {"http://127.0.0.1/", "n=v; Domain=0.0.1", -EPERM, "http://127.0.0.1/", ""},
        {"http://127.0.0.1/", "n=v; Domain=127.0.0.1", 0, "http://127.0.0.1/", "n=v"},
        {"http://[::1]/", "n=v", 0, "http://[::1]:8080/", "n=v"},
        /* paths */
        {"http://a.test/x/y", "n=v", 0, "http://a.test/x/z/w", "n=v"},
        {"http://a.test/x/y", "n=v", 0, "http://a.test/x", "n=v"},
        {"http://a.test/x/y", "n=v", 0, "http://a.test/", ""},
        {"http://a.test/x/y", "n=v", 0, "http://a.test/xy", ""},
        {"http://a.test", "n=v", 0, "http://a.test", "n=v"},
        {"http://a.test/x", "n=v", 0, "http://a.test?q", "n=v"},
        {"http://a.test/", "n=v; Path=/x/", 0, "http://a.test/x", ""},
        {"http://a.test/", "n=v; Path=/x/", 0, "http://a.test/x/", "n=v"},
        {"http://a.test/", "n=v; Path=/x", 0, "http://a.test/x?y", "n=v"},
        {"http://a.test/", "n=v; Path=/x", 0, "http://a.test/xx", ""},
        {"http://a.test/x/y", "n=v; Path=y", 0, "http://a.test/x/", "n=v"},
        {"http://a.test/x/y", "n=v; Path=/y; Path", 0, "http://a.test/x/", "n=v"},
        /* Secure and prefixes */
        {"https://a.test/", "n=v; Secure", 0, "https://a.test/", "n=v"},
        {"https://a.test/", "n=v; Secure", 0, "http://a.test/", ""},
        {"http://a.test/", "n=v; Secure", -EPERM, "https://a.test/", ""},
        {"http://a.test/", "n=v", 0, "https://a.test/", "n=v"},
        {"https://a.test/", "__Secure-n=v; Secure", 0, "https://a.test/", "__Secure-n=v"},
        {"https://a.test/", "__Secure-n=v", -EPERM, "https://a.test/", ""},
        {"https://a.test/", "__secure-n=v", -EPERM, "https://a.test/", ""},
        {"https://a.test/", "__Host-n=v; Secure; Path=/", 0, "https://a.test/x", "__Host-n=v"},
        {"https://a.test/", "__Host-n=v; Secure", -EPERM, "https://a.test/", ""},
        {"https://a.test/", "__Host-n=v; Path=/", -EPERM, "https://a.test/", ""},
        {"https://a.test/", "__Host-n=v; Secure; Path=/; Domain=a.test", -EPERM, "https://a.test/",
         ""},
        {"https://a.test/x/", "__Host-n=v; Secure; Path=/x", -EPERM, "https://a.test/x/", ""},
        {"http://a.test/", "n=v; HttpOnly; SameSite=Strict; Unknown=1", 0, "http://a.test/", "n=v"},
        /* forms */
        {"http://a.test/", "  n  =  v w  ;Path=/", 0, "http://a.test/", "n=v w"},
        {"http://a.test/", "n=\"v\"", 0, "http://a.test/", "n=\"v\""},
        {"http://a.test/", "n=v=w", 0, "http://a.test/", "n=v=w"},
        {"http://a.test/", "n=", 0, "http://a.test/", "n="},
        {"http://a.test/", "n", -EINVAL, "http://a.test/", ""},
        {"http://a.test/", "=v", -EINVAL, "http://a.test/", ""},
        {"http://a.test/", "", -EINVAL, "http://a.test/", ""},
        {"http://a.test/", ";", -EINVAL, "http://a.test/", ""},
        {"http://a.test/", "n=v\r\nX: y", -EINVAL, "http://a.test/", ""},
        {"http://a.test/", "n=v\x7f", -EINVAL, "http://a.test/", ""},
        {"http://a.test/", "n=v;;;", 0, "http://a.test/", "n=v"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_http_cookies *jar = make_jar(0, 0);
        int status = set(jar, rows[i].from, rows[i].line);
        if (status != rows[i].status)
            print_error("%s: %s\n", rows[i].from, rows[i].line);
        assert_int_equal(status, rows[i].status);
        if (strcmp(sent(jar, rows[i].to), rows[i].expected) != 0)
            print_error("%s: %s\n", rows[i].from, rows[i].line);
        assert_string_equal(sent(jar, rows[i].to), rows[i].expected);
        bide_http_cookies_destroy(jar);
    }
}

static void times_are_kept(void **state)
{
    static const struct {
        const char *attributes;
        int64_t life; /* in seconds; 0: it is not kept */
    } rows[] = {
        {"Max-Age=5", 5},
        {"max-age=0", 0},
        {"Max-Age=-1", 0},
        {"Max-Age=5; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 5},
        {"Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=5", 5},
        {"Max-Age=x; Expires=Sun, 09 Sep 2001 01:46:50 GMT", 10},
        {"Max-Age=99999999999999999999", 400 * 86400},
        {"Expires=Sun, 09 Sep 2001 01:46:41 GMT", 1},
        {"Expires=Sun, 09 Sep 2001 01:46:40 GMT", 0},
        {"Expires=Sunday, 09-Sep-01 01:47:40 GMT", 60},
        {"Expires=Sun Sep  9 01:46:50 2001", 10},
        {"Expires=Tue, 19 Jan 2038 03:14:08 GMT", 400 * 86400},
        {"Expires=1:46:50 9 september 2001", 10},
        {"Expires=Mon, 10 Sep 2001 01:46:40 GMT", 86400},
        {"Expires=Mon, 09 Sep 2002 01:46:40 GMT", 365 * 86400},
        {"Expires=Wed, 01 Mar 2000 00:00:00 GMT", 0},
        {"Expires=Fri, 01 Mar 2002 01:46:40 GMT", 173 * 86400},
    };
    static const char *const invalid[] = {
        "Expires=Sun, 31 Sep 2001 01:46:50 GMT",
        "Expires=Sun, 29 Feb 2001 01:46:50 GMT",
        "Expires=Sun, 09 Sep 2001 24:46:50 GMT",
        "Expires=Sun, 09 Sep 1600 01:46:50 GMT",
        "Expires=Sun, 09 Sep 2001",
        "Expires=09 01:46:50 2001",
        "Expires=tomorrow",
        "Expires=",
        "Max-Age=",
        "Max-Age=1x",
        "Max-Age=-",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[200];
        bide_http_cookies *jar = make_jar(0, 0);
        snprintf(line, sizeof line, "n=v; %s", rows[i].attributes);
        assert_int_equal(set(jar, "http://a.test/", line), 0);
        const bide_http_cookie *kept = bide_http_cookies_next(jar, NULL);
        if ((kept != NULL ? kept->expires - NOW : 0) != rows[i].life)
            print_error("%s\n", line);
        assert_int_equal(kept != NULL ? kept->expires - NOW : 0, rows[i].life);
        now = NOW + rows[i].life - 1;
        assert_string_equal(sent(jar, "http://a.test/"), rows[i].life != 0 ? "n=v" : "");
        now++;
        assert_string_equal(sent(jar, "http://a.test/"), "");
        bide_http_cookies_destroy(jar);
    }
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) { /* as without the attribute */
        char line[200];
        bide_http_cookies *jar = make_jar(0, 0);
        snprintf(line, sizeof line, "n=v; %s", invalid[i]);
        assert_int_equal(set(jar, "http://a.test/", line), 0);
        assert_true(bide_http_cookies_next(jar, NULL)->expires == INT64_MAX);
        bide_http_cookies_destroy(jar);
    }
}

/* ---- Several ---- */

static void cookies_are_replaced_and_sorted(void **state)
{
    bide_http_cookies *jar = make_jar(0, 0);
    (void)state;
    assert_int_equal(set(jar, "http://a.test/", "a=1"), 0);
    assert_int_equal(set(jar, "http://a.test/", "b=2; Path=/x"), 0);
    assert_int_equal(set(jar, "http://a.test/", "c=3"), 0);
    assert_int_equal(set(jar, "http://a.test/", "a=4"), 0);
    assert_int_equal(set(jar, "http://a.test/", "a=5; Path=/x/y"), 0);
    assert_int_equal(set(jar, "http://a.test/", "a=6; Domain=a.test"), 0); /* another cookie */
    assert_string_equal(sent(jar, "http://a.test/x/y"), "a=5; b=2; a=4; c=3; a=6");
    assert_int_equal(set(jar, "http://a.test/", "a=; Max-Age=0"), 0);
    assert_int_equal(set(jar, "http://a.test/", "z=; Max-Age=0"), 0);
    assert_string_equal(sent(jar, "http://a.test/x/y"), "a=5; b=2; c=3; a=6");
    bide_http_cookies_clear(jar);
    assert_null(bide_http_cookies_next(jar, NULL));
    assert_string_equal(sent(jar, "http://a.test/x/y"), "");
    bide_http_cookies_destroy(jar);
    bide_http_cookies_destroy(NULL);
}

static void http_replaces_no_secure_cookie(void **state)
{
    bide_http_cookies *jar = make_jar(0, 0);
    (void)state;
    assert_int_equal(set(jar, "https://a.test/x", "n=v; Secure; Path=/x"), 0);
    assert_int_equal(set(jar, "http://a.test/", "n=w; Path=/x"), -EPERM);
    assert_int_equal(set(jar, "http://a.test/", "n=w; Path=/x/y"), -EPERM);
    assert_int_equal(set(jar, "http://b.a.test/", "n=w; Domain=a.test; Path=/x"), -EPERM);
    assert_int_equal(set(jar, "http://a.test/", "n=; Path=/x; Max-Age=0"), -EPERM);
    assert_int_equal(set(jar, "http://a.test/", "n=w; Path=/"), 0);
    assert_int_equal(set(jar, "http://other.test/", "n=w; Path=/x"), 0);
    assert_int_equal(set(jar, "http://dot.test./", "n=w; Domain=test."), -EPERM);
    assert_string_equal(sent(jar, "https://a.test/x"), "n=v; n=w");
    assert_int_equal(set(jar, "https://a.test/", "n=u; Path=/x"), 0);
    assert_string_equal(sent(jar, "http://a.test/x"), "n=u; n=w");
    bide_http_cookies_destroy(jar);
}

static void a_cookie_has_its_attributes(void **state)
{
    bide_http_cookies *jar = make_jar(0, 0);
    (void)state;
    assert_int_equal(
        set(jar, "https://B.a.test/x/y", "n=v; HttpOnly; Secure; Domain=A.test; Max-Age=7"), 0);
    const bide_http_cookie *it = bide_http_cookies_next(jar, NULL);
    assert_string_equal(it->name, "n");
    assert_string_equal(it->value, "v");
    assert_string_equal(it->domain, "a.test");
    assert_string_equal(it->path, "/x");
    assert_true(it->is_http_only && it->is_secure && !it->is_host_only);
    assert_int_equal(it->expires, NOW + 7);
    assert_null(bide_http_cookies_next(jar, it));
    bide_http_cookies_clear(jar);
    assert_int_equal(set(jar, "http://B.a.test/", "n=v"), 0);
    it = bide_http_cookies_next(jar, NULL);
    assert_string_equal(it->domain, "b.a.test");
    assert_true(!it->is_http_only && !it->is_secure && it->is_host_only);
    bide_http_cookies_destroy(jar);
}

/* ---- Bounds ---- */

static void a_full_jar_loses_what_was_sent_long_ago(void **state)
{
    bide_http_cookies *jar = make_jar(4, 2);
    (void)state;
    assert_int_equal(set(jar, "http://a.test/", "a=1; Path=/a"), 0);
    assert_int_equal(set(jar, "http://a.test/", "b=2; Path=/b"), 0);
    assert_string_equal(sent(jar, "http://a.test/a"), "a=1");
    assert_int_equal(set(jar, "http://a.test/", "c=3; Path=/c"), 0); /* in the place of b */
    assert_string_equal(sent(jar, "http://a.test/b"), "");
    assert_string_equal(sent(jar, "http://a.test/a"), "a=1");
    assert_int_equal(set(jar, "http://b.test/", "d=4"), 0);
    assert_int_equal(set(jar, "http://c.test/", "e=5; Max-Age=10"), 0);
    assert_int_equal(set(jar, "http://d.test/", "f=6"), 0); /* in the place of c */
    assert_string_equal(sent(jar, "http://a.test/c"), "");
    now += 10;
    assert_int_equal(set(jar, "http://e.test/", "g=7"), 0); /* in that of e, which has expired */
    assert_string_equal(sent(jar, "http://a.test/a"), "a=1");
    assert_string_equal(sent(jar, "http://b.test/"), "d=4");
    assert_string_equal(sent(jar, "http://d.test/"), "f=6");
    assert_string_equal(sent(jar, "http://e.test/"), "g=7");
    bide_http_cookies_destroy(jar);
}

static void long_texts_are_refused(void **state)
{
    static char line[6000];
    bide_http_cookies *jar = make_jar(0, 0);
    (void)state;
    memset(line, 'x', sizeof line);
    line[1] = '=';
    assert_int_equal(set_slice(jar, "http://a.test/", line, 4097), 0);
    assert_int_equal(strlen(sent(jar, "http://a.test/")), 4097);
    assert_int_equal(set_slice(jar, "http://a.test/", line, 4098), -EMSGSIZE);
    bide_http_cookies_clear(jar);
    memcpy(line, "n=v; Path=/", 11); /* an attribute that is too long does not count */
    assert_int_equal(set_slice(jar, "http://a.test/y/z", line, 2000), 0);
    assert_string_equal(sent(jar, "http://a.test/y/"), "n=v");
    memcpy(line, "http://a.test/", 14);
    line[2000] = '/';
    line[2001] = '\0';
    assert_int_equal(set(jar, line, "m=v"), -EMSGSIZE);
    bide_http_cookies_destroy(jar);
}

static void a_cookie_without_room_is_left_out(void **state)
{
    bide_http_cookies *jar = make_jar(0, 0);
    bide_http_url url;
    char text[12];
    (void)state;
    assert_int_equal(bide_http_url_parse(&url, "http://a.test/", 14), 0);
    assert_int_equal(set(jar, "http://a.test/", "a=1"), 0);
    assert_int_equal(set(jar, "http://a.test/", "bb=22222"), 0);
    assert_int_equal(set(jar, "http://a.test/", "c=3"), 0);
    assert_int_equal(bide_http_cookies_write(jar, &url, text, 12), 8);
    assert_string_equal(text, "a=1; c=3");
    assert_int_equal(bide_http_cookies_write(jar, &url, text, 8), 3);
    assert_int_equal(bide_http_cookies_write(jar, &url, text, 1), 0);
    assert_string_equal(text, "");
    bide_http_cookies_destroy(jar);
}

static bool is_listed(void *argument, const char *domain)
{
    return strcmp(domain, argument) == 0;
}

static void suffixes_may_be_asked_for(void **state)
{
    static char listed[] = "co.test";
    bide_http_cookies *jar;
    const bide_http_cookies_options options = {.is_public_suffix = is_listed, .argument = listed};
    (void)state;
    assert_int_equal(bide_http_cookies_create(&jar, &options), 0);
    assert_int_equal(set(jar, "http://a.co.test/", "n=v; Domain=CO.test"), -EPERM);
    assert_int_equal(set(jar, "http://co.test/", "n=v; Domain=CO.test"), 0);
    assert_string_equal(sent(jar, "http://a.co.test/"), "");
    assert_int_equal(set(jar, "http://a.test/", "n=w; Domain=test"), 0);
    assert_string_equal(sent(jar, "http://b.test/"), "n=w");
    bide_http_cookies_destroy(jar);
}

/* Whatever comes, nothing is read outside of the line, and the bounds hold. */
static void lines_of_any_bytes_do_no_harm(void **state)
{
    static const char *const pieces[] = {"n",        "=",   ";",        " ",        "Path=/",
                                         "Domain=",  ".",   "a.test",   "Max-Age=", "9",
                                         "Expires=", "Sun", "01:02:03", "Sep",      "2001",
                                         "-",        "\t",  "__Host-",  "Secure",   "\xff"};
    uint64_t random = testing_seed();
    bide_http_cookies *jar = make_jar(8, 4);
    (void)state;
    for (uint32_t i = 0; i < rounds_of(3000); i++) {
        char line[200] = "";
        for (unsigned j = testing_random(&random) % 16; j != 0; j--)
            strcat(line, pieces[testing_random(&random) % (sizeof pieces / sizeof *pieces)]);
        (void)set(jar, i % 2 != 0 ? "https://x.a.test/p/q" : "http://a.test", line);
        (void)sent(jar, "https://x.a.test/p/q/r");
        size_t count = 0;
        for (const bide_http_cookie *at = NULL; (at = bide_http_cookies_next(jar, at)) != NULL;)
            count++;
        assert_true(count <= 8);
    }
    bide_http_cookies_destroy(jar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_goes_where_it_belongs),
        cmocka_unit_test(times_are_kept),
        cmocka_unit_test(cookies_are_replaced_and_sorted),
        cmocka_unit_test(http_replaces_no_secure_cookie),
        cmocka_unit_test(a_cookie_has_its_attributes),
        cmocka_unit_test(a_full_jar_loses_what_was_sent_long_ago),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(a_cookie_without_room_is_left_out),
        cmocka_unit_test(suffixes_may_be_asked_for),
        cmocka_unit_test(lines_of_any_bytes_do_no_harm),
    };
    return cmocka_run_group_tests_name("http_cookies", tests, NULL, NULL);
}
