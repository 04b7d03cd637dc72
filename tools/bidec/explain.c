/*
 * bidec --explain LINE: what a line of the source has become, out of the translated text. Its line
 * markers say what came from where.
 */
#include "bidec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* `# 12 "file" 3`; false: it is none. With the 3, all that follows is generated for one line. */
static bool read_marker(const char *text, const char *end, unsigned *line, const char **file,
                        size_t *length, bool *generated)
{
    if (*text != '#' || text + 2 >= end || !isdigit((unsigned char)text[2]))
        return false;
    *line = (unsigned)strtoul(text + 2, NULL, 10);
    const char *open = memchr(text, '"', (size_t)(end - text));
    const char *close = open != NULL ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
    if (close != NULL) {
        *file = open + 1;
        *length = (size_t)(close - open - 1);
        *generated = memchr(close, '3', (size_t)(end - close)) != NULL;
    }
    return true;
}

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

/* In which of the things that a function becomes a line of text stands; NULL: in that before. */
static const char *part_of(const char *p, const char *end)
{
    static const struct {
        const char *begins, *has, *part;
    } parts[] = {
        {"struct async_", "{", "the frame"},
        {"static bide_next async_", "_step(bide_frame *bide_frame_, unsigned bide_depth_)",
         "the step function"},
        {"static const bide_point async_", "_points[]", "where it can stand"},
        {"extern ", "__error__", "its name, which is not to be called"},
        {"bide_awaiter *async_", "(", "the init function"},
        {"static inline bide_awaiter *async_", "(", "the init function"},
        {"bide_async_generator *async_", "(", "the init function"},
        {"static inline bide_async_generator *async_", "(", "the init function"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i].begins);
        if ((size_t)(end - p) > length && memcmp(p, parts[i].begins, length) == 0 &&
            memmem(p, (size_t)(end - p), parts[i].has, strlen(parts[i].has)) != NULL &&
            (end[-1] != ';' || i >= 3))
            return parts[i].part;
    }
    return NULL;
}

bool explain(const struct text *translated, const char *source, unsigned wanted)
{
    const char *file = "", *part = "the file", *printed_part = NULL;
    size_t file_length = 0;
    unsigned line = 0;
    bool found = false, is_generated = false;
    for (const char *p = translated->at, *end, *last = p + translated->length; p < last;
         p = end + 1) {
        end = memchr(p, '\n', (size_t)(last - p));
        if (end == NULL)
            end = last;
        if (read_marker(p, end, &line, &file, &file_length, &is_generated))
            continue;
        const char *text = skip_spaces(p, end), *its_part = part_of(text, end);
        if (its_part != NULL)
            part = its_part;
        if (line == wanted && text < end && strlen(source) == file_length &&
            memcmp(source, file, file_length) == 0) {
            if (printed_part != part)
                printf("%s%s:\n", found ? "\n" : "", part);
            printed_part = part;
            found = true;
            printf("    %.*s\n", (int)(end - text), text);
        }
        line += !is_generated;
        if (end > p && *p == '}' && (end - p == 1 || p[1] == ';'))
            part = "the file";
    }
    return found;
}
