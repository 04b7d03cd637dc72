/*
 * URLs, and the resolution of references: RFC 3986, 5.2, by its own steps. The input is a base, and behind a newline a
 * reference. Beyond the grammar, "|" and "^" are taken in paths, and a colon in the first segment of a relative path.
 */
#include "bide/http_url.h"
#include "uri.h"

#include <errno.h>
#include <strings.h>

const unsigned fuzz_executions = 20000;
const char *const fuzz_words[] = {"http://", "HTTPS://", "https://a", "//", "/./", "/../", "..", ".", "../../", "?", "#",
                                  "@", ":", ":80", ":443", ":65536", "[::1]", "[v1.a]", "[1::2%25eth0]", "[::1.2.3.4]",
                                  "\n", "%2e", "%", "a/b", "///", NULL};

enum { MAX = 20000 };

struct part {
    const char *at; /* NULL: it is missing */
    size_t size;
};

/* The components of a reference. */
struct reference {
    struct part scheme, authority, path, query, fragment;
};

/* 3, appendix B */
static struct reference split(const char *text, size_t size)
{
    struct reference it = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    const char *at = text, *end = text + size;
    size_t i = 0;
    while (i < size && (uri_is_letter(text[i]) ||
                        (i != 0 && (uri_is_digit(text[i]) || text[i] == '+' || text[i] == '-' || text[i] == '.'))))
        i++;
    if (i != 0 && i < size && text[i] == ':') {
        it.scheme = (struct part){text, i};
        at = text + i + 1;
    }
    if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
        it.authority.at = at + 2;
        for (at += 2; at != end && *at != '/' && *at != '?' && *at != '#'; at++)
            it.authority.size++;
    }
    it.path.at = at;
    for (; at != end && *at != '?' && *at != '#'; at++)
        it.path.size++;
    if (at != end && *at == '?') {
        it.query.at = ++at;
        for (; at != end && *at != '#'; at++)
            it.query.size++;
    }
    if (at != end) {
        it.fragment.at = at + 1;
        it.fragment.size = (size_t)(end - at) - 1;
    }
    return it;
}

static bool is_path(struct part text)
{
    return uri_is_made_of(text.at, text.size, ":@/?|^");
}

/* The parts of a valid authority. */
struct authority {
    struct part user, host;
    bool is_literal;
    long port; /* -1: none */
};

static bool split_authority(struct part text, struct authority *it)
{
    *it = (struct authority){{NULL, 0}, {NULL, 0}, false, -1};
    for (size_t i = text.size; i-- != 0;) {
        if (text.at[i] == '@') {
            it->user = (struct part){text.at, i};
            text.at += i + 1;
            text.size -= i + 1;
            break;
        }
    }
    if (it->user.at != NULL && !uri_is_made_of(it->user.at, it->user.size, ":|^"))
        return false;
    size_t host = uri_host(text.at, text.size);
    if (host == 0 || text.size - host > 6)
        return false;
    it->port = uri_port(text.at, text.size, host);
    it->is_literal = text.at[0] == '[';
    it->host = it->is_literal ? (struct part){text.at + 1, host - 2} : (struct part){text.at, host};
    return it->port != 0 && it->port <= 65535;
}

static bool is_scheme(struct part scheme, const char *name)
{
    return scheme.size == strlen(name) && strncasecmp(scheme.at, name, scheme.size) == 0;
}

static bool is_valid(const struct reference *it, struct authority *authority)
{
    return (is_scheme(it->scheme, "http") || is_scheme(it->scheme, "https")) && it->authority.at != NULL &&
           split_authority(it->authority, authority) && is_path(it->path) && (it->query.at == NULL || is_path(it->query)) &&
           (it->fragment.at == NULL || is_path(it->fragment));
}

static bool is_same(struct part one, bide_slice other)
{
    return one.size == other.size && (one.size == 0 || one.at == other.data) &&
           (one.at == NULL) == (other.data == NULL);
}

/* ---- 5.2.4 ---- */

static void shift(char *text, size_t count)
{
    memmove(text, text + count, strlen(text + count) + 1);
}

static void remove_dot_segments(char *in, char *out)
{
    *out = '\0';
    while (*in != '\0') {
        if (strncmp(in, "../", 3) == 0) {
            shift(in, 3);
        } else if (strncmp(in, "./", 2) == 0) {
            shift(in, 2);
        } else if (strncmp(in, "/./", 3) == 0) {
            shift(in, 2);
        } else if (strcmp(in, "/.") == 0) {
            in[1] = '\0';
        } else if (strncmp(in, "/../", 4) == 0 || strcmp(in, "/..") == 0) {
            char *slash = strrchr(out, '/');
            if (in[3] == '/')
                shift(in, 3);
            else
                in[1] = '\0';
            *(slash != NULL ? slash : out) = '\0';
        } else if (strcmp(in, ".") == 0 || strcmp(in, "..") == 0) {
            *in = '\0';
        } else {
            size_t size = strcspn(in + 1, "/") + 1;
            strncat(out, in, size);
            shift(in, size);
        }
    }
}

static void add(char *to, struct part text)
{
    if (text.size != 0)
        strncat(to, text.at, text.size);
}

static void add_normal(char *to, char *path)
{
    static char normal[MAX];
    remove_dot_segments(path, normal);
    strcat(to, normal[0] != '\0' ? normal : "/");
}

/* 5.2.2. Returns false if the result is no URL. */
static bool second_resolve(const struct reference *base, const struct authority *authority, const char *text, size_t size,
                           char *out)
{
    static char path[MAX];
    struct reference it = split(text, size);
    struct authority other;
    char port[32];
    bool is_secure = is_scheme(base->scheme, "https");
    path[0] = '\0';
    if (it.scheme.at != NULL || it.authority.at != NULL) {
        if (it.scheme.at == NULL)
            it.scheme = base->scheme;
        if (!is_valid(&it, &other))
            return false;
        strcpy(out, is_scheme(it.scheme, "https") ? "https://" : "http://");
        add(out, it.authority);
        add(path, it.path);
        add_normal(out, path);
    } else {
        if (!is_path(it.path) || (it.query.at != NULL && !is_path(it.query)) ||
            (it.fragment.at != NULL && !is_path(it.fragment)))
            return false;
        strcpy(out, is_secure ? "https://" : "http://");
        if (authority->is_literal)
            strcat(out, "[");
        add(out, authority->host);
        if (authority->is_literal)
            strcat(out, "]");
        if (authority->port > 0 && authority->port != (is_secure ? 443 : 80)) {
            snprintf(port, sizeof port, ":%ld", authority->port);
            strcat(out, port);
        }
        if (it.path.size == 0) {
            add(path, base->path);
            if (it.query.at == NULL)
                it.query = base->query;
        } else if (it.path.at[0] != '/') { /* 5.2.3 */
            struct part directory = base->path;
            while (directory.size != 0 && directory.at[directory.size - 1] != '/')
                directory.size--;
            add(path, directory);
            if (directory.size == 0)
                strcat(path, "/");
            add(path, it.path);
        } else {
            add(path, it.path);
        }
        add_normal(out, path);
    }
    if (it.query.at != NULL) {
        strcat(out, "?");
        add(out, it.query);
    }
    return true;
}

static void check_resolution(const bide_http_url *url, const struct reference *base, const struct authority *authority,
                             const char *text, size_t size)
{
    static char ours[MAX], second[MAX];
    bool is_possible = memchr(text, '\0', size) == NULL && second_resolve(base, authority, text, size, second);
    int status = bide_http_url_resolve(url, (bide_slice){text, size}, ours, sizeof ours);
    FUZZ_REQUIRE(status == (is_possible ? 0 : -EINVAL));
    if (status != 0)
        return;
    size_t length = strlen(second);
    FUZZ_REQUIRE(strcmp(ours, second) == 0);
    char *exact = malloc(length + 1);
    FUZZ_REQUIRE(exact != NULL);
    FUZZ_REQUIRE(bide_http_url_resolve(url, (bide_slice){text, size}, exact, length + 1) == 0);
    FUZZ_REQUIRE(strcmp(exact, second) == 0);
    FUZZ_REQUIRE(bide_http_url_resolve(url, (bide_slice){text, size}, exact, length) == -EMSGSIZE);
    bide_http_url again; /* the result is a URL, and means itself */
    FUZZ_REQUIRE(bide_http_url_parse(&again, second, length) == 0);
    FUZZ_REQUIRE(bide_http_url_resolve(url, (bide_slice){second, length}, exact, length + 1) == 0);
    FUZZ_REQUIRE(strcmp(exact, second) == 0);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    const char *newline = size != 0 && size < 8192 ? memchr(input, '\n', size) : NULL;
    if (newline == NULL)
        return 0;
    size_t first = (size_t)(newline - (const char *)input), rest = size - first - 1;
    char *base = fuzz_copy(input, first), *reference = fuzz_copy(newline + 1, rest);
    struct reference it = split(base, first);
    struct authority authority;
    bide_http_url url;
    int status = bide_http_url_parse(&url, base, first);
    bool is_good = memchr(base, '\0', first) == NULL && is_valid(&it, &authority);
    FUZZ_REQUIRE(status == (is_good ? 0 : -EINVAL));
    if (is_good) {
        bool is_secure = is_scheme(it.scheme, "https");
        FUZZ_REQUIRE(url.is_secure == is_secure && url.has_port == (authority.port >= 0));
        FUZZ_REQUIRE(url.port == (authority.port >= 0 ? authority.port : is_secure ? 443 : 80));
        FUZZ_REQUIRE(is_same(authority.user, url.user) && is_same(authority.host, url.host));
        FUZZ_REQUIRE(url.is_literal == authority.is_literal);
        FUZZ_REQUIRE(is_same(it.path, url.path) && is_same(it.query, url.query) && is_same(it.fragment, url.fragment));
        check_resolution(&url, &it, &authority, reference, rest);
    }
    free(base);
    free(reference);
    return 0;
}
