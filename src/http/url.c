/*
 * Parses, prints and resolves URLs with the schemes "http" and "https": RFC 3986. Pure functions; any
 * thread may call them.
 */
#define _GNU_SOURCE
#include "bide/http_url.h"

#include "characters.h"
#include "output.h"

#include <errno.h>
#include <string.h>

/* ---- Parsing ---- */

/* Valid in a path, a query and a fragment: unreserved, sub-delims, and a few others. */
static bool url_is_path_byte(char byte)
{
    return byte != '[' && byte != ']' &&
           (http_is_of(byte, HTTP_HOST) || byte == '@' || byte == '/' || byte == '?' ||
            byte == '|' || byte == '^');
}

/* Each "%" is followed by two hexadecimal digits. */
static bool url_are_escapes_whole(bide_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '%' && (text.size - i < 3 || !http_is_of(text.data[i + 1], HTTP_HEX) ||
                                    !http_is_of(text.data[i + 2], HTTP_HEX)))
            return false;
    return true;
}

static bool url_are_path_bytes(bide_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!url_is_path_byte(text.data[i]))
            return false;
    return url_are_escapes_whole(text);
}

/* Removes the text before the first byte of `ends` from the front of *text and returns it. */
static bide_slice url_split_before(bide_slice *text, const char *ends)
{
    bide_slice part = {text->data, 0};
    while (part.size != text->size && strchr(ends, part.data[part.size]) == NULL)
        part.size++;
    text->data += part.size;
    text->size -= part.size;
    return part;
}

static bool url_parse_port(bide_http_url *url, bide_slice text)
{
    unsigned port = 0;
    if (text.size == 0)
        return true; /* "host:" */
    if (text.size > 5)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!http_is_of(text.data[i], HTTP_DIGIT))
            return false;
        port = port * 10 + (unsigned)(text.data[i] - '0');
    }
    url->port = (uint16_t)port;
    url->has_port = true;
    return port != 0 && port <= UINT16_MAX;
}

static bool url_is_literal(bide_slice host)
{
    for (size_t i = 0; i < host.size; i++)
        if (!http_is_of(host.data[i], HTTP_HEX) && host.data[i] != ':' && host.data[i] != '.')
            return false;
    return host.size >= 2;
}

static bool url_is_name(bide_slice host)
{
    for (size_t i = 0; i < host.size; i++)
        if (!http_is_of(host.data[i], HTTP_HOST) || strchr(":[]", host.data[i]) != NULL)
            return false;
    return host.size != 0 && url_are_escapes_whole(host);
}

static bool url_parse_authority(bide_http_url *url, bide_slice authority)
{
    const char *at = authority.size != 0 ? memrchr(authority.data, '@', authority.size) : NULL;
    if (at != NULL) {
        url->user = (bide_slice){authority.data, (size_t)(at - authority.data)};
        authority.data = at + 1;
        authority.size -= url->user.size + 1;
        if (!url_are_path_bytes(url->user) || memchr(url->user.data, '@', url->user.size) != NULL)
            return false;
    }
    if (authority.size != 0 && authority.data[0] == '[') {
        const char *end = memchr(authority.data, ']', authority.size);
        if (end == NULL)
            return false;
        url->is_literal = true;
        url->host = (bide_slice){authority.data + 1, (size_t)(end - authority.data - 1)};
        authority.size -= url->host.size + 2;
        authority.data = end + 1;
        if (!url_is_literal(url->host) || (authority.size != 0 && *authority.data != ':'))
            return false;
    } else {
        url->host = url_split_before(&authority, ":");
        if (!url_is_name(url->host))
            return false;
    }
    if (authority.size == 0)
        return true;
    return url_parse_port(url, (bide_slice){authority.data + 1, authority.size - 1});
}

int bide_http_url_parse(bide_http_url *url, const char *text, size_t size)
{
    bide_slice rest = {text, size};
    memset(url, 0, sizeof *url);
    if (size != 0 && memchr(text, '\0', size) != NULL)
        return -EINVAL;
    url->is_secure = http_text_starts_with(rest, "https://");
    if (!url->is_secure && !http_text_starts_with(rest, "http://"))
        return -EINVAL;
    url->port = url->is_secure ? 443 : 80;
    rest.data += url->is_secure ? 8 : 7;
    rest.size -= url->is_secure ? 8 : 7;
    if (!url_parse_authority(url, url_split_before(&rest, "/?#")))
        return -EINVAL;
    url->target = url_split_before(&rest, "#");
    if (rest.size != 0)
        url->fragment = (bide_slice){rest.data + 1, rest.size - 1};
    bide_slice parts = url->target;
    url->path = url_split_before(&parts, "?");
    if (parts.size != 0)
        url->query = (bide_slice){parts.data + 1, parts.size - 1};
    return url_are_path_bytes(url->target) && url_are_path_bytes(url->fragment) ? 0 : -EINVAL;
}

/* ---- Printing and resolving ---- */

/* A terminated text under construction. `full`: the text did not fit. */
typedef struct url_builder {
    char *out;
    size_t size;
    size_t used;
    bool full;
} url_builder;

static void url_put(url_builder *to, const char *data, size_t size)
{
    if (size >= to->size - to->used) {
        to->full = true;
        return;
    }
    if (size != 0)
        memmove(to->out + to->used, data, size);
    to->used += size;
    to->out[to->used] = '\0';
}

static url_builder url_builder_of(char *out, size_t size)
{
    url_builder to = {out, size, 0, size == 0};
    if (size != 0)
        out[0] = '\0';
    return to;
}

static void url_put_authority(url_builder *to, const bide_http_url *url)
{
    char digits[20];
    if (url->is_literal)
        url_put(to, "[", 1);
    url_put(to, url->host.data, url->host.size);
    if (url->is_literal)
        url_put(to, "]", 1);
    if (url->port != (url->is_secure ? 443 : 80)) {
        url_put(to, ":", 1);
        url_put(to, digits, bide_http_print_number_(digits, url->port));
    }
}

int bide_http_url_target(const bide_http_url *url, char *out, size_t size)
{
    url_builder to = url_builder_of(out, size);
    if (url->path.size == 0)
        url_put(&to, "/", 1);
    url_put(&to, url->target.data, url->target.size);
    return to.full ? -EMSGSIZE : 0;
}

int bide_http_url_authority(const bide_http_url *url, char *out, size_t size)
{
    url_builder to = url_builder_of(out, size);
    url_put_authority(&to, url);
    return to.full ? -EMSGSIZE : 0;
}

/* Removes the last segment and its slash, but nothing before `root`. */
static void url_remove_segment(url_builder *to, size_t root)
{
    while (to->used > root && to->out[to->used - 1] != '/')
        to->used--;
    if (to->used > root)
        to->used--;
}

/* Appends a path that begins with "/" and removes its dot segments: RFC 3986, 5.2.4. */
static void url_put_path(url_builder *to, bide_slice path)
{
    size_t root = to->used;
    while (path.size != 0) {
        path.data++; /* the slash */
        path.size--;
        bide_slice segment = url_split_before(&path, "/");
        bool is_up = segment.size == 2 && memcmp(segment.data, "..", 2) == 0;
        bool is_here = segment.size == 1 && *segment.data == '.';
        if (is_up)
            url_remove_segment(to, root);
        if (!is_up && !is_here) {
            url_put(to, "/", 1);
            url_put(to, segment.data, segment.size);
        } else if (path.size == 0) {
            url_put(to, "/", 1);
        }
    }
}

static bool url_has_scheme(bide_slice reference)
{
    for (size_t i = 0; i < reference.size; i++) {
        if (reference.data[i] == ':')
            return i != 0;
        if (!http_is_of(reference.data[i], HTTP_TOKEN))
            return false;
    }
    return false;
}

static int url_resolve_absolute(const char *scheme, bide_slice rest, char *out, size_t size)
{
    bide_http_url url;
    url_builder to = url_builder_of(out, size);
    /* The text is written unchanged first, and then once more by its parts. */
    url_put(&to, scheme, strlen(scheme));
    url_put(&to, rest.data, rest.size);
    if (to.full)
        return -EMSGSIZE;
    int status = bide_http_url_parse(&url, out, to.used);
    if (status < 0)
        return status;
    to.used = (size_t)(url.target.data - out);
    if (url.path.size == 0) {
        if (url.target.size + 1 >= size - to.used)
            return -EMSGSIZE;
        memmove(out + to.used + 1, url.target.data, url.target.size);
        out[to.used] = '/';
        out[to.used + 1 + url.target.size] = '\0';
        return 0;
    }
    bide_slice query = {url.path.data + url.path.size, url.target.size - url.path.size};
    url_put_path(&to,
                 url.path); /* (the result is never longer than its source, and lies before it) */
    if (query.size != 0)
        memmove(out + to.used, query.data, query.size);
    out[to.used + query.size] = '\0';
    return 0;
}

int bide_http_url_resolve(const bide_http_url *base, bide_slice reference, char *out,
                          size_t size)
{
    const char *scheme = base->is_secure ? "https://" : "http://";
    url_builder to = url_builder_of(out, size);
    bide_slice rest = reference;
    if (reference.size != 0 && memchr(reference.data, '\0', reference.size) != NULL)
        return -EINVAL;
    if (url_has_scheme(reference))
        return url_resolve_absolute("", reference, out, size);
    if (http_text_starts_with(reference, "//"))
        return url_resolve_absolute(base->is_secure ? "https:" : "http:", reference, out, size);
    bide_slice whole = url_split_before(&rest, "#");
    rest = whole;
    bide_slice path = url_split_before(&rest, "?");
    if (!url_are_path_bytes(whole))
        return -EINVAL;
    url_put(&to, scheme, strlen(scheme));
    url_put_authority(&to, base);
    if (path.size != 0 && path.data[0] == '/') {
        url_put_path(&to, path);
    } else if (path.size == 0) {
        url_put_path(&to, base->path.size != 0 ? base->path : (bide_slice){"/", 1});
        if (rest.size == 0 && base->query.data != NULL) {
            url_put(&to, "?", 1);
            url_put(&to, base->query.data, base->query.size);
        }
    } else {
        /* relative to the last segment of the base's path */
        char merged[4096];
        url_builder joined = url_builder_of(merged, sizeof merged);
        const char *slash =
            base->path.size != 0 ? memrchr(base->path.data, '/', base->path.size) : NULL;
        if (slash != NULL)
            url_put(&joined, base->path.data, (size_t)(slash - base->path.data) + 1);
        else
            url_put(&joined, "/", 1);
        url_put(&joined, path.data, path.size);
        if (joined.full)
            return -EMSGSIZE;
        url_put_path(&to, (bide_slice){merged, joined.used});
    }
    url_put(&to, rest.data, rest.size);
    return to.full ? -EMSGSIZE : 0;
}
