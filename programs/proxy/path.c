/* The normal form of a path: segment by segment. */
#define _GNU_SOURCE
#include "path.h"

#include <errno.h>
#include <string.h>

/* One segment, decoded. */
struct segment {
    const char *text;
    size_t size;
    bool has_escapes;
};

static int digit_value(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

/* The byte of the escape at `at`, which has `size` bytes; -1 if it is none, or one that servers read differently. */
static int decode_escape(const char *at, size_t size)
{
    int high = size > 2 ? digit_value(at[1]) : -1;
    int low = size > 2 ? digit_value(at[2]) : -1;
    int byte = high * 16 + low;
    return high < 0 || low < 0 || byte < ' ' || byte == 0x7f || byte == '/' || byte == '\\' ? -1
                                                                                            : byte;
}

/*
 * Decodes the segment at the front of *path into `out`, with or without its parameters, and removes it. Returns false if
 * servers read it differently.
 */
static bool decode_segment(bide_slice *path, bool has_parameters, char *out,
                           struct segment *segment)
{
    bool is_parameter = false;
    *segment = (struct segment){.text = out};
    while (path->size != 0 && *path->data != '/') {
        bool is_escape = *path->data == '%';
        int byte = is_escape ? decode_escape(path->data, path->size) : (unsigned char)*path->data;
        if (byte < 0 || (byte == '\\' && !is_escape))
            return false;
        is_parameter |= byte == ';' && !is_escape && !has_parameters;
        if (!is_parameter) {
            out[segment->size++] = (char)byte;
            segment->has_escapes |= is_escape;
        }
        path->data += is_escape ? 3 : 1;
        path->size -= is_escape ? 3 : 1;
    }
    return true;
}

/* 1 or 2 for "." and "..", also with parameters; otherwise 0. */
static unsigned count_dots(const struct segment *segment)
{
    const char *end = segment->size != 0 ? memchr(segment->text, ';', segment->size) : NULL;
    size_t size = end != NULL ? (size_t)(end - segment->text) : segment->size;
    return size == 0 || size > 2 || memcmp(segment->text, "..", size) != 0 ? 0 : (unsigned)size;
}

/* The size of the text without its last segment and the slash before that. */
static size_t without_last_segment(const char *text, size_t size)
{
    const char *slash = size != 0 ? memrchr(text, '/', size) : NULL;
    return slash != NULL ? (size_t)(slash - text) : 0;
}

static int normalize(bide_slice path, bool has_parameters, char *out, size_t *size)
{
    bool has_empty = false;
    size_t used = 0;
    if (path.size == 0 || *path.data != '/') {
        if (path.size != 0)
            memcpy(out, path.data, path.size);
        *size = path.size;
        return 0;
    }
    while (path.size != 0) { /* it begins with a slash */
        struct segment segment;
        path.data++;
        path.size--;
        out[used] = '/';
        if (!decode_segment(&path, has_parameters, out + used + 1, &segment))
            return -EINVAL;
        unsigned dots = count_dots(&segment);
        if (dots != 0 && (segment.has_escapes || segment.size != dots || (dots == 2 && has_empty)))
            return -EINVAL;
        if (dots == 2)
            used = without_last_segment(out, used);
        else if (dots == 0 && segment.size != 0)
            used += segment.size + 1;
        if (path.size == 0 && (dots != 0 || segment.size == 0)) /* it ends with a slash */
            out[used++] = '/';
        has_empty |= segment.size == 0;
    }
    *size = used;
    return 0;
}

int path_normalize(bide_slice path, char *out, size_t *size)
{
    return normalize(path, true, out, size);
}

int path_normalize_without_parameters(bide_slice path, char *out, size_t *size)
{
    return normalize(path, false, out, size);
}
