/*
 * bidec --emit: the source file, with each async function replaced by its translation.
 *
 * Directives, macros and comments outside of async functions are kept. That is not possible if an
 * async function is declared in a header, shares a line with other code, or contains a directive;
 * then the preprocessed text is emitted.
 */
#include "bidec.h"

#include <ctype.h>
#include <stdio.h>

static const char *end_of_line(const char *p)
{
    return p + strcspn(p, "\n");
}

static const char *next_line(const char *p)
{
    p = end_of_line(p);
    return *p != 0 ? p + 1 : p;
}

static const char *after_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* True if a comment may begin on the line and continue on the next one. */
static bool leaves_comment_open(const char *line)
{
    const char *end = end_of_line(line), *last = NULL;
    for (const char *p = line; (p = strstr(p, "/*")) != NULL && p < end; p += 2)
        last = p;
    return last != NULL && ((last = strstr(last + 2, "*/")) == NULL || last > end);
}

static bool share_line(const struct token *a, const struct token *b)
{
    return a->kind != END && b->kind != END && a->line == b->line && strcmp(a->file, b->file) == 0;
}

static bool has_directive(const char *first, const char *end)
{
    for (const char *line = first; line < end; line = next_line(line)) {
        if (*after_blanks(line) == '#')
            return true;
    }
    return false;
}

/* ---- The translation of a function ---- */

/* Returns by how much the braces of a line change the depth, and counts its leading closing ones. */
static int depth_of(const char *line, const char *end, int *closes)
{
    int depth = 0;
    bool leads = true;
    *closes = 0;
    for (const char *p = line; p < end; p++) {
        if (*p == '"' || *p == '\'') {
            for (const char quote = *p++; p < end && *p != quote; p++)
                p += *p == '\\';
        } else if (*p == '{') {
            depth++;
        } else if (*p == '}') {
            depth--;
            *closes += leads;
        }
        leads &= *p == '}';
    }
    return depth;
}

/* Prints without line markers and empty lines, indented by the braces. */
static void print_piece(struct text *out, const char *line, const char *end)
{
    int depth = 0, closes;
    bool belongs = false; /* the line is the statement of the `if (...)` above it */
    for (; line < end; line = next_line(line)) {
        const char *first = after_blanks(line), *last = end_of_line(line);
        while (last > first && isspace((unsigned char)last[-1]))
            last--;
        if (first == last || (*first == '#' && isdigit((unsigned char)first[2])))
            continue;
        int change = depth_of(first, last, &closes);
        for (int i = closes; *first != '#' && i < depth + belongs; i++)
            text_add(out, "    ", 4);
        belongs = strncmp(first, "if (", 4) == 0 && last[-1] == ')';
        text_add(out, first, (size_t)(last - first));
        text_add(out, "\n", 1);
        depth += change;
    }
}

/* ---- The source ---- */

static bool reject_in_source(int token, const char *why)
{
    const struct token *t = &tokens[token];
    fprintf(stderr, "bidec: %s:%u: %s, so the preprocessed text is emitted\n", t->file, t->line,
            why);
    return false;
}

static bool is_in_source(const struct piece *piece, const char *source)
{
    return strcmp(tokens[piece->first].file, source) == 0 &&
           strcmp(tokens[piece->last].file, source) == 0;
}

bool emit_in_source(struct text *out, const struct text *translated, const char *source,
                    const struct text *text)
{
    text_expect(out, text->length * 4);
    text_print(out, "/* Made by bidec. The translated functions use bide/async.h. */\n"
                    "#define BIDE_EMITTED 1\n");
    const char *line = text->at;
    unsigned number = 1;
    for (const struct piece *piece = first_piece; piece != NULL; piece = piece->next) {
        const struct token *first = &tokens[piece->first], *last = &tokens[piece->last];
        if (!is_in_source(piece, source))
            return reject_in_source(piece->first, "an async function is declared in another file");
        const char *begin = line, *end;
        for (; number < first->line; number++)
            begin = next_line(begin);
        for (end = begin; number < last->line; number++)
            end = next_line(end);
        if (has_directive(begin, end))
            return reject_in_source(piece->first, "an async function contains a directive");
        if ((piece->first > 0 && share_line(first - 1, first)) || share_line(last, last + 1) ||
            !isalpha((unsigned char)*after_blanks(begin)) || leaves_comment_open(end))
            return reject_in_source(piece->first,
                                    "an async function shares a line with other code");
        text_add(out, line, (size_t)(begin - line));
        print_piece(out, translated->at + piece->begin, translated->at + piece->end);
        line = next_line(end);
        number++;
    }
    text_add(out, line, (size_t)(text->at + text->length - line));
    return true;
}

/* ---- For the compiler ---- */

static void mark_lines(struct text *out, const char *line, const char *last)
{
    const char *mark = line, *mark_end = line;
    struct marker marker = {0};
    bool is_marked = false;
    for (const char *end; line < last; line = end) {
        end = memchr(line, '\n', (size_t)(last - line));
        end = end != NULL ? end + 1 : last;
        if (read_marker(line, end, &marker)) {
            mark = line;
            mark_end = end;
        } else if (marker.system && *line != '#' && *line != '\n' && !is_marked) {
            text_add(out, mark, (size_t)(mark_end - mark));
        }
        text_add(out, line, (size_t)(end - line));
        is_marked = mark == line;
    }
}

void mark_generated_lines(struct text *out, const struct text *translated)
{
    size_t begin = 0;
    text_expect(out, translated->length * 2);
    for (const struct piece *piece = first_piece; piece != NULL; piece = piece->next) {
        text_add(out, translated->at + begin, piece->begin - begin);
        mark_lines(out, translated->at + piece->begin, translated->at + piece->end);
        begin = piece->end;
    }
    text_add(out, translated->at + begin, translated->length - begin);
}
