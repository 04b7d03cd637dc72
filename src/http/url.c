/*
 * Parses, prints and resolves URLs with the schemes "http" and "https": RFC 3986. Pure functions; any
 * thread may call them.
 */
#define _GNU_SOURCE
#include "bide/http_url.h"

#include "characters.h"
#include "output.h"
#include "parse.h"

#include "../system/portable.h"

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

static bool url_is_name(bide_slice host)
{
    for (size_t i = 0; i < host.size; i++)
        if (!http_is_of(host.data[i], HTTP_HOST) || strchr(":[]", host.data[i]) != NULL)
            return false;
    return host.size != 0 && url_are_escapes_whole(host);
}

static bool url_parse_authority(bide_http_url *url, bide_slice authority)
{
    const char *at =
        authority.size != 0 ? portable_find_last(authority.data, '@', authority.size) : NULL;
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
        if (!bide_http_is_literal_(url->host.data, url->host.size) || (authority.size != 0 && *authority.data != ':'))
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

/* Parses the text behind "http://" or "https://". */
static int url_parse_rest(bide_http_url *url, bool is_secure, bide_slice rest)
{
    memset(url, 0, sizeof *url);
    url->is_secure = is_secure;
    url->port = is_secure ? 443 : 80;
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

int bide_http_url_parse(bide_http_url *url, const char *text, size_t size)
{
    bide_slice all = {text, size};
    bool is_secure = http_text_starts_with(all, "https://");
    size_t scheme = is_secure ? 8 : 7;
    memset(url, 0, sizeof *url);
    if ((size != 0 && memchr(text, '\0', size) != NULL) ||
        (!is_secure && !http_text_starts_with(all, "http://")))
        return -EINVAL;
    return url_parse_rest(url, is_secure, (bide_slice){text + scheme, size - scheme});
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
    if (to->full || size >= to->size - to->used) {
        to->full = true;
        return;
    }
    if (size != 0)
        memcpy(to->out + to->used, data, size);
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

/* Removes the last segment from *text and returns true. text->data is NULL if there is none left. */
static bool url_take_last_segment(bide_slice *text, bide_slice *segment)
{
    if (text->data == NULL)
        return false;
    const char *slash = text->size != 0 ? portable_find_last(text->data, '/', text->size) : NULL;
    *segment = *text;
    text->size = 0;
    if (slash == NULL) {
        text->data = NULL;
        return true;
    }
    segment->data = slash + 1;
    segment->size -= (size_t)(slash + 1 - text->data);
    text->size = (size_t)(slash - text->data);
    return true;
}

static bool url_is_segment(bide_slice segment, const char *dots)
{
    return segment.size == strlen(dots) && memcmp(segment.data, dots, segment.size) == 0;
}

/*
 * Writes the segments of `directory` and `path`, in this order, without dot segments, so that they end
 * at `end`. If `end` is NULL, nothing is written. Returns the number of bytes. It walks from the last
 * segment to the first: a segment is dropped if a later ".." refers to it (RFC 3986, 5.2.4).
 */
static size_t url_write_segments(bide_slice directory, bide_slice path, char *end)
{
    size_t size = 0, ups = 0;
    bide_slice segment;
    while (url_take_last_segment(&path, &segment) || url_take_last_segment(&directory, &segment)) {
        bool is_up = url_is_segment(segment, "..");
        bool is_dots = is_up || url_is_segment(segment, ".");
        bool is_kept = !is_dots && ups == 0;
        if (is_up)
            ups++;
        else if (!is_dots && ups != 0)
            ups--;
        if (is_dots && size == 0) { /* the last segment: the path ends with a slash */
            is_kept = true;
            segment.size = 0;
        }
        if (!is_kept)
            continue;
        size += segment.size + 1;
        if (end == NULL)
            continue;
        end[-(ptrdiff_t)size] = '/';
        if (segment.size != 0)
            memcpy(end - size + 1, segment.data, segment.size);
    }
    return size;
}

/*
 * Appends a path without dot segments. `path` has no leading slash. It is relative to `directory`, which
 * has neither a leading nor a trailing slash; data is NULL: the root.
 */
static void url_put_path(url_builder *to, bide_slice directory, bide_slice path)
{
    size_t size = url_write_segments(directory, path, NULL);
    if (to->full || size >= to->size - to->used) {
        to->full = true;
        return;
    }
    to->used += size;
    (void)url_write_segments(directory, path, to->out + to->used);
    to->out[to->used] = '\0';
}

/* Appends a path that is empty or begins with a slash. */
static void url_put_whole_path(url_builder *to, bide_slice path)
{
    bide_slice rest = {"", 0};
    if (path.size != 0)
        rest = (bide_slice){path.data + 1, path.size - 1};
    url_put_path(to, (bide_slice){NULL, 0}, rest);
}

/* The text begins with a scheme and a colon. Otherwise a colon belongs to the first segment. */
static bool url_has_scheme(bide_slice reference)
{
    for (size_t i = 0; i < reference.size; i++) {
        char byte = http_lower(reference.data[i]);
        bool is_letter = byte >= 'a' && byte <= 'z';
        if (byte == ':')
            return i != 0;
        if (!is_letter && (i == 0 || (!http_is_of(byte, HTTP_DIGIT) && byte != '+' && byte != '-' &&
                                      byte != '.')))
            return false;
    }
    return false;
}

/* Resolves a reference that has an authority, and a scheme unless it begins with "//". */
static int url_resolve_absolute(const bide_http_url *base, bide_slice reference, char *out,
                                size_t size)
{
    bide_http_url url;
    url_builder to = url_builder_of(out, size);
    bool is_secure = http_text_starts_with(reference, "https://") ||
                     (base->is_secure && http_text_starts_with(reference, "//"));
    size_t scheme = http_text_starts_with(reference, "//")         ? 2
                    : http_text_starts_with(reference, "http://")  ? 7
                    : http_text_starts_with(reference, "https://") ? 8
                                                                   : 0;
    if (scheme == 0)
        return -EINVAL;
    const char *authority = reference.data + scheme;
    int status = url_parse_rest(&url, is_secure, (bide_slice){authority, reference.size - scheme});
    if (status < 0)
        return status;
    url_put(&to, is_secure ? "https://" : "http://", is_secure ? 8 : 7);
    url_put(&to, authority, (size_t)(url.target.data - authority));
    url_put_whole_path(&to, url.path);
    url_put(&to, url.path.data + url.path.size, url.target.size - url.path.size);
    return to.full ? -EMSGSIZE : 0;
}

int bide_http_url_resolve(const bide_http_url *base, bide_slice reference, char *out, size_t size)
{
    const char *scheme = base->is_secure ? "https://" : "http://";
    bide_slice rest = reference;
    if (reference.size != 0 && memchr(reference.data, '\0', reference.size) != NULL)
        return -EINVAL;
    if (url_has_scheme(reference) || http_text_starts_with(reference, "//"))
        return url_resolve_absolute(base, reference, out, size);
    url_builder to = url_builder_of(out, size);
    bide_slice whole = url_split_before(&rest, "#");
    if (!url_are_path_bytes(whole) ||
        (rest.size != 0 && !url_are_path_bytes((bide_slice){rest.data + 1, rest.size - 1})))
        return -EINVAL;
    rest = whole;
    bide_slice path = url_split_before(&rest, "?");
    url_put(&to, scheme, strlen(scheme));
    url_put_authority(&to, base);
    if (path.size == 0) {
        url_put_whole_path(&to, base->path);
        if (rest.size == 0 && base->query.data != NULL) {
            url_put(&to, "?", 1);
            url_put(&to, base->query.data, base->query.size);
        }
    } else if (path.data[0] == '/') {
        url_put_whole_path(&to, path);
    } else {
        bide_slice directory = {NULL, 0};
        const char *slash =
            base->path.size != 0 ? portable_find_last(base->path.data, '/', base->path.size) : NULL;
        if (slash != NULL && slash != base->path.data)
            directory = (bide_slice){base->path.data + 1, (size_t)(slash - base->path.data) - 1};
        url_put_path(&to, directory, path);
    }
    url_put(&to, rest.data, rest.size);
    return to.full ? -EMSGSIZE : 0;
}
