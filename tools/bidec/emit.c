/*
 * bidec --emit: the source as it stands, with what has become of each async function in its place.
 *
 * That keeps directives, macros and comments outside of async functions. It cannot be done where
 * an async function is declared in a header, shares a line with something else, or has a directive
 * in it; then all of it is emitted preprocessed.
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

static const char *behind_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* Does a comment begin on the line that goes on behind it? (Or does it look so.) */
static bool leaves_comment_open(const char *line)
{
    const char *end = end_of_line(line), *last = NULL;
    for (const char *p = line; (p = strstr(p, "/*")) != NULL && p < end; p += 2)
        last = p;
    return last != NULL && ((last = strstr(last + 2, "*/")) == NULL || last > end);
}

/* Both tokens stand on one line. */
static bool share_line(const struct token *a, const struct token *b)
{
    return a->kind != END && b->kind != END && a->line == b->line && strcmp(a->file, b->file) == 0;
}

static bool has_directive(const char *first, const char *end)
{
    for (const char *line = first; line < end; line = next_line(line)) {
        if (*behind_blanks(line) == '#')
            return true;
    }
    return false;
}

/* ---- What a function has become ---- */

/* How much deeper a line ends than it begins, and how much of that its first characters close. */
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

/* Without line markers and empty lines, and indented by its braces. */
static void print_piece(struct text *out, const char *line, const char *end)
{
    int depth = 0, closes;
    bool belongs = false; /* to the `if (...)` above it */
    for (; line < end; line = next_line(line)) {
        const char *first = behind_blanks(line), *last = end_of_line(line);
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

static bool refuses(int token, const char *why)
{
    const struct token *t = &tokens[token];
    fprintf(stderr, "bidec: %s:%u: %s, so what is emitted is preprocessed\n", t->file, t->line, why);
    return false;
}

static bool is_sources_own(const struct piece *piece, const char *source)
{
    return strcmp(tokens[piece->first].file, source) == 0 &&
           strcmp(tokens[piece->last].file, source) == 0;
}

bool emit_in_source(struct text *out, const struct text *translated, const char *source,
                    const struct text *text)
{
    text_expect(out, text->length * 4);
    text_print(out, "/* Made by bidec. bide/async.h gives what the translated functions use. */\n"
                    "#define BIDE_EMITTED 1\n");
    const char *line = text->at;
    unsigned number = 1;
    for (const struct piece *piece = first_piece; piece != NULL; piece = piece->next) {
        const struct token *first = &tokens[piece->first], *last = &tokens[piece->last];
        if (!is_sources_own(piece, source))
            return refuses(piece->first, "an async function is declared elsewhere");
        const char *begin = line, *end;
        for (; number < first->line; number++)
            begin = next_line(begin);
        for (end = begin; number < last->line; number++)
            end = next_line(end);
        if (has_directive(begin, end))
            return refuses(piece->first, "an async function has a directive in it");
        if ((piece->first > 0 && share_line(first - 1, first)) || share_line(last, last + 1) ||
            !isalpha((unsigned char)*behind_blanks(begin)) || leaves_comment_open(end))
            return refuses(piece->first, "an async function shares a line with something else");
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
