/*
 * bidec --explain LINE: the generated code of a line of the source, found by the line markers of the
 * translated text.
 */
#include "bidec.h"

#include <ctype.h>
#include <stdio.h>

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

/* Returns the part of a function's translation that begins on this line, or NULL. */
static const char *part_of(const char *p, const char *end)
{
    static const struct {
        const char *begins, *has, *part;
    } parts[] = {
        {"struct async_", "{", "the frame"},
        {"struct bide_async_", "{", "the frame"},
        {"static bide_next bide_async_", "_step_(bide_frame *bide_frame_, unsigned bide_depth_)",
         "the step function"},
        {"static const bide_point bide_async_", "_points_[]", "the suspension points"},
        {"extern ", "__error__", "the declaration that rejects a plain call"},
        {"bide_awaiter *async_", "(", "the init function"},
        {"static inline bide_awaiter *async_", "(", "the init function"},
        {"bide_async_generator *async_", "(", "the init function"},
        {"static inline bide_async_generator *async_", "(", "the init function"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i].begins);
        if ((size_t)(end - p) > length && memcmp(p, parts[i].begins, length) == 0 &&
            memmem(p, (size_t)(end - p), parts[i].has, strlen(parts[i].has)) != NULL &&
            (end[-1] != ';' || i >= 4))
            return parts[i].part;
    }
    return NULL;
}

bool explain(const struct text *translated, const char *source, unsigned wanted)
{
    const char *part = "the file", *printed_part = NULL;
    struct marker at_line = {.file = ""}; /* `system`: the next lines are generated for one line */
    bool found = false;
    for (const char *p = translated->at, *end, *last = p + translated->length; p < last;
         p = end + 1) {
        end = memchr(p, '\n', (size_t)(last - p));
        if (end == NULL)
            end = last;
        if (read_marker(p, end, &at_line))
            continue;
        const char *text = skip_spaces(p, end), *its_part = part_of(text, end);
        if (its_part != NULL)
            part = its_part;
        if (at_line.line == wanted && text < end && strlen(source) == at_line.length &&
            memcmp(source, at_line.file, at_line.length) == 0) {
            if (printed_part != part)
                printf("%s%s:\n", found ? "\n" : "", part);
            printed_part = part;
            found = true;
            printf("    %.*s\n", (int)(end - text), text);
        }
        at_line.line += !at_line.system;
        if (end > p && *p == '}' && (end - p == 1 || p[1] == ';'))
            part = "the file";
    }
    return found;
}
