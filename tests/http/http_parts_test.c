/*
 * The parts of HTTP: dates, URLs, routes and fields; and files of a system directory, over a connection in
 * memory.
 */
#define _GNU_SOURCE
#include "http_peer.h"
#include "has_nowait.h"
#include "bide/http.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

static bide_slice text(const char *string)
{
    return (bide_slice){string, strlen(string)};
}

/* ---- Dates ---- */

static void dates_are_written_and_read(void **state)
{
    (void)state;
    char date[BIDE_HTTP_DATE_SIZE + 1] = "";
    int64_t time;
    bide_http_print_date(date, 784111777);
    assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(bide_http_parse_date(text("Sunday, 06-Nov-94 08:49:37 GMT"), &time), 0);
    assert_int_equal(time, 784111777);
    assert_int_equal(bide_http_parse_date(text("Sun Nov  6 08:49:37 1994"), &time), 0);
    assert_int_equal(time, 784111777);
    uint64_t random = testing_seed();
    for (int i = 0; i < 20000; i++) {
        int64_t moment = (int64_t)(testing_random(&random) % 253402300800) - 62000000000 / 2;
        struct tm parts;
        char expected[64];
        time_t system = (time_t)moment;
        gmtime_r(&system, &parts);
        strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        bide_http_print_date(date, moment);
        if (strlen(expected) == BIDE_HTTP_DATE_SIZE && system == moment) /* (a time_t may have 32 bits) */
            assert_string_equal(date, expected);
        assert_int_equal(bide_http_parse_date((bide_slice){date, BIDE_HTTP_DATE_SIZE}, &time), 0);
        assert_int_equal(time, moment);
    }
}

static void invalid_dates_are_rejected(void **state)
{
    (void)state;
    static const char *const none[] = {"", "Sun", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 24:49:37 GMT",
                                       "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nop 1994 08:49:37 GMT",
                                       "Sun, 06 Nov 19x4 08:49:37 GMT", "Sun, 06 Nov 1994 08-49:37 GMT",
                                       "Sunday, 06-Nov-94 08:49:37 XYZ", "Sun Nov  6 08:49:37 19 4",
                                       "0123456789012345678901234567890123456789"};
    int64_t time;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(bide_http_parse_date(text(none[i]), &time), -EINVAL);
}

/* ---- URLs ---- */

static void urls_are_parsed(void **state)
{
    (void)state;
    bide_http_url url;
    char out[100];
    assert_int_equal(bide_http_url_parse(&url, "HTTPS://user:pw@Example.org:8443/a/b?c=d#e", 42), 0);
    assert_true(url.is_secure);
    assert_int_equal(url.port, 8443);
    assert_memory_equal(url.user.data, "user:pw", url.user.size);
    assert_int_equal(bide_http_url_target(&url, out, sizeof out), 0);
    assert_string_equal(out, "/a/b?c=d");
    assert_int_equal(bide_http_url_authority(&url, out, sizeof out), 0);
    assert_string_equal(out, "Example.org:8443");
    assert_memory_equal(url.fragment.data, "e", url.fragment.size);
    assert_int_equal(bide_http_url_parse(&url, "http://[::1]:80?x", 17), 0);
    assert_int_equal(bide_http_url_authority(&url, out, sizeof out), 0);
    assert_string_equal(out, "[::1]");
    assert_int_equal(bide_http_url_target(&url, out, sizeof out), 0);
    assert_string_equal(out, "/?x");
    assert_int_equal(bide_http_url_target(&url, out, 3), -EMSGSIZE);
}

static void invalid_urls_are_rejected(void **state)
{
    (void)state;
    static const char *const none[] = {"", "example.org", "ftp://a/", "http:/a", "http://", "http:///a", "http://a b/",
                                       "http://a/ b", "http://a:0/", "http://a:65536/", "http://a:8x/", "http://[::1/",
                                       "http://[::1]x/", "http://[g]/", "http://a/%", "http://a/%4", "http://a/%zz",
                                       "http://u@v@a/", "http://a/\x80", "http://a/\r\nX: y", "http://a/#b#c", "http://a%/",
                                       "http://:80/", "http://a/<", "http://[....]/", "http://[1:2]/", "http://[fe80::1%25lo]/"};
    bide_http_url url;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        if (bide_http_url_parse(&url, none[i], strlen(none[i])) == 0)
            printf("# %s was accepted\n", none[i]);
        assert_int_equal(bide_http_url_parse(&url, none[i], strlen(none[i])), -EINVAL);
    }
    assert_int_equal(bide_http_url_parse(&url, "http://a\0b/", 11), -EINVAL);
    assert_int_equal(bide_http_url_parse(&url, "http://[v1.a:b]/", 16), 0); /* (a literal of the future) */
}

static void references_are_resolved(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"g", "http://a/b/c/g"}, {"./g", "http://a/b/c/g"}, {"g/", "http://a/b/c/g/"}, {"/g", "http://a/g"},
        {"//g", "http://g/"}, {"?y", "http://a/b/c/d;p?y"}, {"g?y", "http://a/b/c/g?y"}, {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"}, {";x", "http://a/b/c/;x"}, {"", "http://a/b/c/d;p?q"}, {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"}, {"..", "http://a/b/"}, {"../", "http://a/b/"}, {"../g", "http://a/b/g"},
        {"../..", "http://a/"}, {"../../g", "http://a/g"}, {"../../../g", "http://a/g"}, {"/./g", "http://a/g"},
        {"/../g", "http://a/g"}, {"g.", "http://a/b/c/g."}, {"..g", "http://a/b/c/..g"}, {"./../g", "http://a/b/g"},
        {"g/./h", "http://a/b/c/g/h"}, {"g/../h", "http://a/b/c/h"}, {"https://x:1/y/../z?w", "https://x:1/z?w"},
        {"http://x", "http://x/"}, {"http://x?q", "http://x/?q"},
        {"http://o.example/a/b?q", "http://o.example/a/b?q"}, {"//o.example/x", "http://o.example/x"},
        {"https://o.example/a#f", "https://o.example/a"}, {"http://o/y/../z", "http://o/z"},
        {"HTTP://O:80/a", "http://O:80/a"}, {"https://u@[::1]:8443/a/./b?c/../d", "https://u@[::1]:8443/a/b?c/../d"},
        {"http://o/a/..", "http://o/"}, {"http://o/a//../b", "http://o/a/b"}, {"/..//a/.", "http://a//a/"},
    };
    bide_http_url base;
    char out[64];
    assert_int_equal(bide_http_url_parse(&base, "http://a/b/c/d;p?q", 18), 0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(bide_http_url_resolve(&base, text(pairs[i][0]), out, sizeof out), 0);
        assert_string_equal(out, pairs[i][1]);
        for (size_t size = 0; size < strlen(pairs[i][1]) + 1; size++)
            assert_int_equal(bide_http_url_resolve(&base, text(pairs[i][0]), out, size), -EMSGSIZE);
        assert_int_equal(bide_http_url_resolve(&base, text(pairs[i][0]), out, strlen(pairs[i][1]) + 1), 0);
        assert_string_equal(out, pairs[i][1]);
    }
    assert_int_equal(bide_http_url_resolve(&base, text("mailto:x"), out, sizeof out), -EINVAL);
    assert_int_equal(bide_http_url_resolve(&base, text("a b"), out, sizeof out), -EINVAL);
}

/*
 * A second implementation, by the pseudocode of RFC 3986, 5.2. `base` has a scheme, an authority and a path.
 */
struct parts {
    bide_slice scheme, authority, path, query, fragment; /* data is NULL: undefined */
};

/* The regular expression of RFC 3986, appendix B, with the grammar of a scheme: others are a part of the path. */
static struct parts split_by_the_rfc(const char *at)
{
    struct parts parts = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    if (size != 0 && at[size] == ':' && *at >= 'a' && *at <= 'z') {
        parts.scheme = (bide_slice){at, size};
        at += size + 1;
    }
    if (strncmp(at, "//", 2) == 0) {
        parts.authority = (bide_slice){at + 2, strcspn(at + 2, "/?#")};
        at += 2 + parts.authority.size;
    }
    parts.path = (bide_slice){at, strcspn(at, "?#")};
    at += parts.path.size;
    if (*at == '?') {
        parts.query = (bide_slice){at + 1, strcspn(at + 1, "#")};
        at += 1 + parts.query.size;
    }
    if (*at == '#')
        parts.fragment = text(at + 1);
    return parts;
}

/* 5.2.4: moves segments from an input buffer to an output buffer. */
static void remove_dot_segments_by_the_rfc(char *path)
{
    char in[2000], out[2000] = "";
    const char *at = strcpy(in, path);
    while (*at != '\0') {
        if (strncmp(at, "../", 3) == 0) {
            at += 3;
        } else if (strncmp(at, "./", 2) == 0 || strncmp(at, "/./", 3) == 0) {
            at += 2;
        } else if (strcmp(at, "/.") == 0) {
            at = "/";
        } else if (strncmp(at, "/../", 4) == 0 || strcmp(at, "/..") == 0) {
            at = at[3] == '/' ? at + 3 : "/";
            char *slash = strrchr(out, '/');
            *(slash != NULL ? slash : out) = '\0';
        } else if (strcmp(at, ".") == 0 || strcmp(at, "..") == 0) {
            at = "";
        } else {
            size_t size = strcspn(at + 1, "/") + 1;
            strncat(out, at, size);
            at += size;
        }
    }
    strcpy(path, out);
}

enum { RESOLVED_MAX = 2000 };

static void resolve_by_the_rfc(const char *base_text, const char *reference_text, char out[RESOLVED_MAX])
{
    struct parts base = split_by_the_rfc(base_text), r = split_by_the_rfc(reference_text);
    bide_slice scheme = r.scheme.data != NULL ? r.scheme : base.scheme, authority = r.authority, query = r.query;
    char path[2000];
    snprintf(path, sizeof path, "%.*s", (int)r.path.size, r.path.data);
    if (r.scheme.data == NULL && r.authority.data == NULL) {
        authority = base.authority;
        if (r.path.size == 0) {
            snprintf(path, sizeof path, "%.*s", (int)base.path.size, base.path.data);
            query = r.query.data != NULL ? r.query : base.query;
        } else if (*r.path.data != '/') {
            size_t size = base.path.size; /* 5.2.3: up to the last slash of the base */
            while (size != 0 && base.path.data[size - 1] != '/')
                size--;
            snprintf(path, sizeof path, "%.*s%.*s", size != 0 ? (int)size : 1, size != 0 ? base.path.data : "/",
                     (int)r.path.size, r.path.data);
        }
    }
    remove_dot_segments_by_the_rfc(path);
    int length = snprintf(out, RESOLVED_MAX, "%.*s://%.*s%s%s%.*s", (int)scheme.size, scheme.data, (int)authority.size, authority.data,
            *path == '\0' ? "/" : path, query.data != NULL ? "?" : "", (int)query.size, query.data != NULL ? query.data : "");
    assert_in_range(length, 1, RESOLVED_MAX - 1);
}

static void append_random(char *to, const char *const *pieces, size_t count, size_t max, uint64_t *random)
{
    for (size_t n = (size_t)(testing_random(random) % (max + 1)); n != 0; n--)
        strcat(to, pieces[testing_random(random) % count]);
}

static void resolution_agrees_with_a_second_implementation(void **state)
{
    (void)state;
    static const char *const pieces[] = {"/", "/", "/", ".", "..", "../", "./", "a", "b;c", "%2e", "g=", "...", "//", ":", "@"};
    static const char *const authorities[] = {"http://o.example", "https://o:8443", "//[::1]:1", "http://u:p@o", "//o", "https://o"};
    static const char *const ends[] = {"", "", "?", "?q", "?q/../r?s", "#", "#f", "?q#f/../g"};
    uint64_t random = testing_seed(), compared = 0;
    uint32_t rounds = rounds_of(20000);
    for (uint32_t round = rounds; round != 0; round--) {
        char base_text[500] = "http://a", reference[500] = "", out[RESOLVED_MAX], expected[RESOLVED_MAX];
        bide_http_url base;
        strcat(base_text, testing_random(&random) % 8 == 0 ? "" : "/");
        if (base_text[8] != '\0')
            append_random(base_text, pieces, sizeof pieces / sizeof *pieces, 8, &random);
        strcat(base_text, ends[testing_random(&random) % 8]);
        if (testing_random(&random) % 3 == 0) {
            strcpy(reference, authorities[testing_random(&random) % 6]);
            if (testing_random(&random) % 8 != 0)
                strcat(reference, "/");
        }
        if (*reference == '\0' || reference[strlen(reference) - 1] == '/')
            append_random(reference, pieces, sizeof pieces / sizeof *pieces, 10, &random);
        strcat(reference, ends[testing_random(&random) % 8]);
        assert_int_equal(bide_http_url_parse(&base, base_text, strlen(base_text)), 0);
        int status = bide_http_url_resolve(&base, text(reference), out, sizeof out);
        if (status == -EINVAL) /* "a:b" has another scheme, and "//a@b@c" is no authority */
            continue;
        assert_int_equal(status, 0);
        resolve_by_the_rfc(base_text, reference, expected);
        if (strcmp(out, expected) != 0)
            printf("# %s + %s: %s\n", base_text, reference, out);
        assert_string_equal(out, expected);
        compared++;
        assert_int_equal(bide_http_url_resolve(&base, text(reference), out, strlen(expected) + 1), 0);
        assert_string_equal(out, expected);
        assert_int_equal(bide_http_url_resolve(&base, text(reference), out, strlen(expected)), -EMSGSIZE);
    }
    assert_true(rounds < 1000 || compared > rounds / 2);
}

/* ---- Routes ---- */

struct shows {
    bide_http_exchange exchange;
    char text[200];
};

bide_coroutine(shows_body)
{
    bide_begin(shows_body, struct shows * self);
    bide_slice a = bide_http_parameter(&self->exchange, "a");
    bide_slice b = bide_http_parameter(&self->exchange, "b");
    int size = snprintf(self->text, sizeof self->text, "%s %.*s %.*s", (const char *)self->exchange.argument,
                        (int)a.size, a.data != NULL ? a.data : "", (int)b.size, b.data != NULL ? b.data : "");
    bide_try(bide_http_respond(&self->exchange, self->text, (size_t)size));
    bide_end();
}

static peer one;

static const char *body_of(const char *request)
{
    (void)peer_say(&one, request);
    const char *body = strstr(one.output, "\r\n\r\n");
    return body != NULL ? body + 4 : "";
}

static int status_of(const char *request)
{
    (void)peer_say(&one, request);
    return one.output_size > 12 ? atoi(one.output + 9) : 0;
}

#define HOST " HTTP/1.1\r\nHost: a\r\n\r\n"

static void requests_find_their_routes(void **state)
{
    (void)state;
    static char names[4][8] = {"root", "user", "put", "rest"};
    const bide_http_handler shows = {&shows_body, sizeof(struct shows)};
    const bide_http_route routes[] = {{"GET", "/", shows, names[0]},
                                      {"GET", "/users/{a}/at/{b}", shows, names[1]},
                                      {"PUT", "/users/{a}/at/{b}", shows, names[2]},
                                      {NULL, "/rest/{a...}", shows, names[3]}};
    bide_http_router router;
    assert_int_equal(bide_http_router_init(&router, routes, 4), 0);
    peer_init(&one, &(bide_http_options){.select_handler = bide_http_route_request, .argument = &router, .max_frame_size = router.frame});
    assert_string_equal(body_of("GET /" HOST), "root  ");
    assert_string_equal(body_of("GET /users/x%20y/at/z?q" HOST), "user x%20y z");
    assert_string_equal(body_of("PUT /users/1/at/2" HOST), "put 1 2");
    assert_string_equal(body_of("DELETE /rest/x/y/z" HOST), "rest x/y/z ");
    assert_string_equal(body_of("GET /rest/" HOST), "rest  ");
    assert_int_equal(status_of("HEAD /" HOST), 200);
    assert_int_equal(status_of("GET /users//at/2" HOST), 404);
    assert_int_equal(status_of("GET /users/1/at" HOST), 404);
    assert_int_equal(status_of("GET /users/1/at/2/" HOST), 404);
    assert_int_equal(status_of("GET /rest" HOST), 404);
    assert_int_equal(status_of("OPTIONS *" HOST), 404);
    assert_int_equal(status_of("POST /users/1/at/2" HOST), 405);
    assert_non_null(strstr(one.output, "\r\nAllow: GET, HEAD, PUT, OPTIONS\r\n"));
    assert_int_equal(status_of("OPTIONS /users/1/at/2" HOST), 204);
    assert_non_null(strstr(one.output, "\r\nAllow: GET, HEAD, PUT, OPTIONS\r\n"));
    peer_end(&one);
}

static void invalid_patterns_are_rejected(void **state)
{
    (void)state;
    static const char *const none[] = {"", "x", "/{", "/{}", "/}", "/x{a}", "/{a}x", "/{a...}/x", "/{...}", "/{a{b}}", "/{a/b}",
                                       "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}"};
    bide_http_router router;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        bide_http_route route = {"GET", none[i], {&shows_body, sizeof(struct shows)}, NULL};
        assert_int_equal(bide_http_router_init(&router, &route, 1), -EINVAL);
    }
}

static void escapes_are_decoded(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(bide_http_decode(text("a%20b%2Fc"), out, sizeof out), 5);
    assert_memory_equal(out, "a b/c", 5);
    assert_int_equal(bide_http_decode(text("%"), out, sizeof out), -EINVAL);
    assert_int_equal(bide_http_decode(text("%4"), out, sizeof out), -EINVAL);
    assert_int_equal(bide_http_decode(text("%4g"), out, sizeof out), -EINVAL);
    assert_int_equal(bide_http_decode(text("123456789"), out, sizeof out), -EMSGSIZE);
}

/* ---- Files ---- */

static char directory_path[64];

static const char *in_directory(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", directory_path, name);
    return path;
}

static void make_file(const char *name, const char *content, size_t size)
{
    const struct timespec times[2] = {{784111777, 0}, {784111777, 0}};
    int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), size);
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static char large[200000];

static int make_directory(void **state)
{
    (void)state;
    strcpy(directory_path, "/tmp/bide_http_XXXXXX");
    assert_non_null(mkdtemp(directory_path));
    memset(large, 'x', sizeof large);
    make_file("a.txt", "0123456789abcdefghij", 20);
    make_file("large.bin", large, sizeof large);
    make_file("empty", "", 0);
    make_file(".hidden", "secret", 6);
    make_file("b.js", "plain", 5);
    make_file("b.js.gz", "zipped", 6);
    make_file("b.js.br", "brotli", 6);
    assert_int_equal(mkdir(in_directory("sub"), 0700), 0);
    make_file("sub/index.html", "sub", 3);
    assert_int_equal(mkdir(in_directory("bare"), 0700), 0);
    make_file("bare/<&>.txt", "x", 1);
    assert_int_equal(symlink("/etc/passwd", in_directory("out")), 0);
    assert_int_equal(symlink("a.txt", in_directory("in")), 0);
    assert_int_equal(symlink("..", in_directory("sub/up")), 0);
    assert_int_equal(mkfifo(in_directory("fifo"), 0600), 0);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    static const char *const names[] = {"a.txt", "large.bin", "empty", ".hidden", "b.js", "b.js.gz", "b.js.br", "sub/index.html",
                                        "sub/up", "bare/<&>.txt", "out", "in", "fifo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_directory(names[i]));
    rmdir(in_directory("sub"));
    rmdir(in_directory("bare"));
    assert_int_equal(rmdir(directory_path), 0);
    return 0;
}

static bide_http_files files;

/* Kernels that have no openat2(2), or a filter that forbids it, or no look-up in the cache alone (before Linux 5.12). */
enum { TODAY, WITHOUT_OPENAT2, WITH_OPENAT2_FORBIDDEN, WITHOUT_CACHED, KERNELS };

#if defined BIDE_HAS_OPENAT2 && !BIDE_HAS_OPENAT2
enum { HAS_OPENAT2 = 0 };
#else
enum { HAS_OPENAT2 = 1 };
#endif

static int kernel;
static unsigned refused; /* calls of it */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* (It reads six arguments, and most calls have fewer.) */
UNCHECKED_BY_MSAN __attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
    enum { CACHED = 0x20 };
    static const int errors[KERNELS] = {0, ENOSYS, EPERM, EINVAL};
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2 && kernel != TODAY) {
        const uint64_t *how = (const uint64_t *)a[2]; /* flags, mode, restrictions */
        if (kernel != WITHOUT_CACHED || (how[2] & CACHED) != 0) {
            refused++;
            errno = errors[kernel];
            return -1;
        }
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void serve_files(bide_http_files_options options)
{
    options.root = directory_path;
    assert_int_equal(bide_http_files_open(&files, &options), 0);
    peer_init(&one, &(bide_http_options){.handler = bide_http_files_handler, .argument = &files});
}

static void end_files(void)
{
    bide_http_files_close(&files);
    peer_end(&one);
}

#define ASK(path, fields) "GET " path " HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

static void has(const char *field)
{
    if (strstr(one.output, field) == NULL)
        printf("# %s is missing in\n%s\n", field, one.output);
    assert_non_null(strstr(one.output, field));
}

static void files_are_served_with_their_metadata(void **state)
{
    (void)state;
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    serve_files((bide_http_files_options){.cache_control = "max-age=60"});
    assert_string_equal(body_of("GET /a.txt" HOST), "0123456789abcdefghij");
    has("\r\nContent-Type: text/plain; charset=utf-8\r\n");
    has("\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    has("\r\nETag: \"2ebc98a1.0-14\"\r\n");
    has("\r\nAccept-Ranges: bytes\r\n");
    has("\r\nCache-Control: max-age=60\r\n");
    has("\r\nContent-Length: 20\r\n");
    assert_string_equal(body_of("HEAD /a.txt" HOST), "");
    has("\r\nContent-Length: 20\r\n");
    assert_string_equal(body_of("GET /empty" HOST), "");
    has("\r\nContent-Type: application/octet-stream\r\n");
    assert_string_equal(body_of("GET /sub/" HOST), "sub");
    assert_int_equal(status_of("GET /sub?x=y" HOST), 301);
    has("\r\nLocation: /sub/?x=y\r\n");
    assert_int_equal(status_of("GET //sub" HOST), 301);
    has("\r\nLocation: /sub/\r\n");
    assert_int_equal(status_of("POST /a.txt" HOST), 405);
    has("\r\nAllow: GET, HEAD\r\n");
    assert_int_equal(strspn(body_of("GET /large.bin" HOST), "x"), sizeof large);
    end_files();
}

static void nothing_outside_the_directory_is_reached(void **state)
{
    (void)state;
    static const char *const none[] = {"/../etc/passwd", "/sub/../a.txt", "/%2e%2e/etc/passwd", "/%2e%2e%2fetc/passwd",
                                       "/sub/..", "/..", "/./a.txt", "/%2fetc/passwd", "/out", "/out/", "/sub/up/a.txt",
                                       "/a.txt/", "/fifo", "/nothing", "/.hidden", "/bare/", "/a.txt%2fx", "/%5c..%5c"};
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    for (int way = 0; way < 2 * KERNELS; way++) {
        bool follows = way % 2 == 1;
        kernel = way / 2;
        refused = 0;
        serve_files((bide_http_files_options){.follows_links = follows});
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            char request[100];
            snprintf(request, sizeof request, "GET %s" HOST, none[i]);
            int expected = follows && strcmp(none[i], "/sub/up/a.txt") == 0 ? 200 : 404;
            if (status_of(request) != expected)
                printf("# %s, way %d: %.60s\n", none[i], way, one.output);
            assert_int_equal(status_of(request), expected);
        }
        assert_int_equal(status_of("GET /a%00.txt" HOST), 400);
        assert_int_equal(status_of("GET /%zz" HOST), 400);
        assert_int_equal(status_of("GET /in" HOST), follows ? 200 : 404);
        assert_int_equal(status_of("GET /sub/" HOST), 200);
        assert_int_equal(status_of("GET /sub//index.html" HOST), 200);
        end_files();
        if (HAS_OPENAT2 && kernel != TODAY)
            assert_in_range(refused, 1, 1000);
    }
    kernel = TODAY;
}

static void an_unchanged_file_is_not_sent_again(void **state)
{
    (void)state;
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    serve_files((bide_http_files_options){.never_compressed = true});
#define TAG  "\"2ebc98a1.0-14\""
#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
    assert_int_equal(status_of(ASK("/a.txt", "If-None-Match: " TAG "\r\n")), 304);
    has("\r\nETag: " TAG "\r\n");
    assert_null(strstr(one.output, "Content-Length"));
    assert_int_equal(status_of(ASK("/a.txt", "If-None-Match: \"x\", W/" TAG "\r\n")), 304);
    assert_int_equal(status_of(ASK("/a.txt", "If-None-Match: *\r\n")), 304);
    assert_int_equal(status_of(ASK("/a.txt", "If-None-Match: \"x\"\r\nIf-Modified-Since: " DATE "\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "If-Modified-Since: " DATE "\r\n")), 304);
    assert_int_equal(status_of(ASK("/a.txt", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "If-Modified-Since: never\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "If-Match: \"x\"\r\n")), 412);
    assert_int_equal(status_of(ASK("/a.txt", "If-Match: \"x\", " TAG "\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "If-Match: W/" TAG "\r\n")), 412);
    assert_int_equal(status_of(ASK("/a.txt", "If-Match: \"x\"\r\nIf-Match: " TAG "\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "If-Match: \"x\"\r\nIf-Match: \"y\"\r\n")), 412);
    assert_int_equal(status_of(ASK("/a.txt", "If-None-Match: \"x\"\r\nX: y\r\nif-none-match: " TAG "\r\n")), 304);
    assert_int_equal(status_of(ASK("/a.txt", "If-None-Match: \"x\"\r\nIf-None-Match: \"y\"\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n")), 412);
    assert_int_equal(status_of(ASK("/a.txt", "If-Unmodified-Since: " DATE "\r\n")), 200);
    end_files();
}

static void ranges_are_parts(void **state)
{
    (void)state;
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    serve_files((bide_http_files_options){.never_compressed = true});
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=2-4\r\n")), "234");
    has("HTTP/1.1 206 ");
    has("\r\nContent-Range: bytes 2-4/20\r\n");
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=15-\r\n")), "fghij");
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=-3\r\n")), "hij");
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=18-99\r\n")), "ij");
    assert_string_equal(body_of(ASK("/a.txt", "Range: BYTES= 0-0 \r\n")), "0");
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=0-1, 99-\r\n")), "01");
    assert_int_equal(status_of(ASK("/a.txt", "Range: bytes=20-\r\n")), 416);
    has("\r\nContent-Range: bytes */20\r\n");
    assert_int_equal(status_of(ASK("/a.txt", "Range: bytes=-0\r\n")), 416);
    static const char *const whole[] = {"bytes=4-2", "bytes=", "bytes=x", "bytes=1", "lines=1-2", "bytes=1-2x", "bytes=--1",
                                        "bytes=0-19,0-19", "bytes=99999999999999999999-", "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        char request[200];
        snprintf(request, sizeof request, "GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: %s\r\n\r\n", whole[i]);
        assert_int_equal(status_of(request), 200);
    }
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=2-4\r\nIf-Range: " TAG "\r\n")), "234");
    assert_string_equal(body_of(ASK("/a.txt", "Range: bytes=2-4\r\nIf-Range: " DATE "\r\n")), "234");
    assert_int_equal(status_of(ASK("/a.txt", "Range: bytes=2-4\r\nIf-Range: \"x\"\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "Range: bytes=2-4\r\nIf-Range: W/" TAG "\r\n")), 200);
    assert_int_equal(status_of(ASK("/a.txt", "Range: bytes=2-4\r\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT\r\n")), 200);
    assert_int_equal(status_of("HEAD /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\n\r\n"), 200);
    end_files();
}

static void several_ranges_are_parts_of_one_body(void **state)
{
    (void)state;
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    serve_files((bide_http_files_options){.never_compressed = true});
    const char *body = body_of(ASK("/a.txt", "Range: bytes=0-1,5-6,-2\r\n") ASK("/empty", ""));
    char boundary[17], expected[600];
    const char *at = strstr(one.output, "boundary=");
    assert_non_null(at);
    memcpy(boundary, at + 9, 16);
    boundary[16] = '\0';
    snprintf(expected, sizeof expected,
             "--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/20\r\n\r\n01\r\n"
             "--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 5-6/20\r\n\r\n56\r\n"
             "--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 18-19/20\r\n\r\nij\r\n--%s--\r\n",
             boundary, boundary, boundary, boundary);
    assert_int_equal(strncmp(body, expected, strlen(expected)), 0);
    assert_int_equal(strncmp(body + strlen(expected), "HTTP/1.1 200 OK", 15), 0); /* so the announced length was correct */
    end_files();
}

/* They are random: nothing of the server's memory or time is in them. */
static void boundaries_differ(void **state)
{
    static char boundaries[64][17];
    uint64_t ones = 0, zeros = 0;
    (void)state;
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    serve_files((bide_http_files_options){.never_compressed = true});
    for (int i = 0; i < 64; i++) { /* (the loop's time and the exchange's address are the same each time) */
        assert_int_equal(status_of(ASK("/a.txt", "Range: bytes=0-1,5-6\r\n")), 206);
        memcpy(boundaries[i], strstr(one.output, "boundary=") + 9, 16);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(boundaries[i], boundaries[k]);
        ones |= strtoull(boundaries[i], NULL, 16);
        zeros |= ~strtoull(boundaries[i], NULL, 16);
    }
    assert_true(ones == UINT64_MAX && zeros == UINT64_MAX); /* (by chance otherwise: one in 2^57) */
    end_files();
}

static void compressed_files_go_to_clients_that_accept_them(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"gzip", "zipped"}, {"br", "brotli"}, {"gzip, br", "brotli"}, {"gzip;q=1.0, br;q=0", "zipped"}, {"identity", "plain"},
        {"*", "brotli"}, {"*;q=0", "plain"}, {"br;q=0, *", "zipped"}, {"gzip;q=0.000", "plain"}, {"gzip;q=0.001", "zipped"},
        {"x-gzip", "zipped"}, {"deflate", "plain"}, {"", "plain"}, {"GZIP ; Q=1", "zipped"},
    };
    if (!has_nowait()) /* such files are sent by threads, and this loop is simulated */
        skip();
    serve_files((bide_http_files_options){.root = NULL});
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char request[200];
        snprintf(request, sizeof request, "GET /b.js HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n\r\n", pairs[i][0]);
        assert_string_equal(body_of(request), pairs[i][1]);
        has("\r\nContent-Type: text/javascript; charset=utf-8\r\n");
        has("\r\nVary: Accept-Encoding\r\n");
    }
    has("\r\nETag: \"2ebc98a1.0-6-gz\"\r\n");
    assert_string_equal(body_of(ASK("/b.js", "Accept-Encoding: deflate\r\nAccept-Encoding: gzip\r\n")), "zipped");
    assert_string_equal(body_of(ASK("/b.js", "Accept-Encoding: *\r\nAccept-Encoding: br;q=0\r\n")), "zipped");
    has("\r\nContent-Encoding: gzip\r\n");
    assert_string_equal(body_of("GET /b.js" HOST), "plain");
    end_files();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_written_and_read),
        cmocka_unit_test(invalid_dates_are_rejected),
        cmocka_unit_test(urls_are_parsed),
        cmocka_unit_test(invalid_urls_are_rejected),
        cmocka_unit_test(references_are_resolved),
        cmocka_unit_test(resolution_agrees_with_a_second_implementation),
        cmocka_unit_test(requests_find_their_routes),
        cmocka_unit_test(invalid_patterns_are_rejected),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test_setup_teardown(files_are_served_with_their_metadata, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(nothing_outside_the_directory_is_reached, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(an_unchanged_file_is_not_sent_again, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(ranges_are_parts, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(several_ranges_are_parts_of_one_body, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(boundaries_differ, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(compressed_files_go_to_clients_that_accept_them, make_directory, remove_directory),
    };
    return cmocka_run_group_tests_name("http_parts", tests, NULL, NULL);
}
