/*
 * Memory, text, and the tokens of preprocessed C.
 */
#include "bidec.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct token *tokens;
int token_count;
static int token_room;

/* exit releases the memory: a sanitizer must not report it. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

static void *check_allocation(void *memory)
{
    if (memory != NULL)
        return memory;
    fputs("bidec: no memory\n", stderr);
    exit(1);
}

/*
 * Maps the pages of a range at once, if the system can: page faults one by one took a third of the
 * run time. A failure is harmless.
 */
static void prefault_pages(void *memory, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    enum { PAGE = 4096 };
    uintptr_t first = ((uintptr_t)memory + PAGE - 1) / PAGE * PAGE;
    uintptr_t end = ((uintptr_t)memory + size) / PAGE * PAGE;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
    (void)memory;
    (void)size;
#endif
}

/* Cuts blocks from large pieces, one after the other, which touches fewer pages than malloc does. */
void *allocate(size_t size)
{
    enum { PIECE = 1 << 18, ALIGNMENT = 8 };
    static char *piece;
    static size_t left;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > PIECE / 8)
        return check_allocation(calloc(1, size));
    if (size > left) {
        piece = check_allocation(calloc(1, PIECE));
        prefault_pages(piece, PIECE);
        left = PIECE;
    }
    void *memory = piece;
    piece += size;
    left -= size;
    return memory;
}

static void text_reserve(struct text *text, size_t length)
{
    if (text->length + length + 1 <= text->room)
        return;
    text->room = (text->length + length + 1) * 2;
    text->at = check_allocation(realloc(text->at, text->room));
}

void text_expect(struct text *text, size_t length)
{
    text->room = length + 1;
    text->at = check_allocation(malloc(text->room));
    text->at[0] = 0;
    prefault_pages(text->at, text->room);
}

void text_add(struct text *text, const char *at, size_t length)
{
    text_reserve(text, length);
    memcpy(text->at + text->length, at, length);
    text->length += length;
    text->at[text->length] = 0;
}

const char *text_finish(struct text *text)
{
    char *kept = memcpy(allocate(text->length + 1), text->at, text->length);
    free(text->at);
    *text = (struct text){0};
    return kept;
}

static void text_vprint(struct text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    size_t room = text->room - text->length;
    int length = vsnprintf(room != 0 ? text->at + text->length : NULL, room, format, arguments);
    if ((size_t)length >= room) {
        text_reserve(text, (size_t)length);
        vsnprintf(text->at + text->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    text->length += (size_t)length;
}

void text_print(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_vprint(text, format, arguments);
    va_end(arguments);
}

const char *format_text(const char *format, ...)
{
    static struct text text;
    va_list arguments;
    text.length = 0;
    va_start(arguments, format);
    text_vprint(&text, format, arguments);
    va_end(arguments);
    return memcpy(allocate(text.length + 1), text.at, text.length);
}

/* ---- Errors ---- */

struct recovery *recovery;
unsigned error_count;
static const char *input_start, *input_end; /* what lex() has read */

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

/* The line of the token in the preprocessed text. */
static struct text preprocessed_line(const struct token *t)
{
    const char *first = t->at, *end = t->at;
    while (first > input_start && first[-1] != '\n')
        first--;
    while (end < input_end && *end != '\n')
        end++;
    struct text line = {0};
    text_add(&line, first, (size_t)(end - first));
    return line;
}

/* The line of the token in the source. False if the source cannot be read. */
static bool read_source_line(const struct token *t, struct text *line)
{
    struct stat status;
    if (stat(t->file, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    FILE *file = fopen(t->file, "r");
    if (file == NULL)
        return false;
    unsigned number = 1;
    int c = 0;
    while (number < t->line && (c = getc(file)) != EOF)
        number += c == '\n';
    while (c != EOF && (c = getc(file)) != EOF && c != '\n') {
        if (c != '\r')
            text_add(line, &(char){(char)c}, 1);
    }
    fclose(file);
    return number == t->line && line->length != 0;
}

/*
 * The preprocessor removes space, so the token may be further right in the source. Returns the place of the
 * token's spelling there, as often as it stands before; (size_t)-1: it comes from a macro.
 */
static size_t place_in_line(int token, const struct text *line)
{
    const struct token *t = &tokens[token];
    size_t found = (size_t)-1;
    unsigned before = 0;
    for (int i = token - 1; i >= 0 && tokens[i].line == t->line && tokens[i].file == t->file; i--)
        before += tokens[i].length == t->length && memcmp(tokens[i].at, t->at, t->length) == 0;
    for (size_t i = 0; i + t->length <= line->length && t->length != 0; i++) {
        bool is_part = is_of_name(*t->at) &&
                       ((i > 0 && is_of_name(line->at[i - 1])) ||
                        (i + t->length < line->length && is_of_name(line->at[i + t->length])));
        if (is_part || memcmp(line->at + i, t->at, t->length) != 0)
            continue;
        found = i;
        if (before-- == 0)
            break;
        i += t->length - 1;
    }
    return found;
}

static void print_line(unsigned number, const struct text *line, size_t place, unsigned length)
{
    enum { LONGEST = 400 };
    if (line->length == 0 || line->length > LONGEST)
        return;
    fprintf(stderr, "%5u | %s\n", number, line->at);
    if (place >= line->length)
        return;
    fputs("      | ", stderr);
    for (size_t i = 0; i < place; i++)
        putc(line->at[i] == '\t' ? '\t' : ' ', stderr);
    putc('^', stderr);
    for (unsigned i = 1; i < length && place + i < line->length; i++)
        putc('~', stderr);
    putc('\n', stderr);
}

static void print_error(int token, const char *message)
{
    const struct token *t = &tokens[token];
    struct text line = {0};
    size_t place = t->column - 1u;
    if (read_source_line(t, &line)) {
        place = place_in_line(token, &line);
    } else {
        line = preprocessed_line(t);
    }
    fprintf(stderr, "%s:%u:%u: error: %s\n", t->file, t->line,
            place < line.length ? (unsigned)place + 1 : t->column, message);
    print_line(t->line, &line, place, t->length);
    free(line.at);
}

static void report(int token, const char *format, va_list arguments)
{
    static int last = -1;
    struct text text = {0};
    if (token == last && error_count != 0)
        return; /* one error for a token */
    last = token;
    text_vprint(&text, format, arguments);
    print_error(token, text.at);
    free(text.at);
    if (++error_count < MAX_ERRORS)
        return;
    fputs("bidec: too many errors\n", stderr);
    exit(1);
}

void report_at(int token, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(token, format, arguments);
    va_end(arguments);
}

void reject_at(int token, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(token, format, arguments);
    va_end(arguments);
    if (recovery == NULL)
        exit(1);
    longjmp(recovery->place, 1);
}

const char *spelling_of(int token)
{
    const struct token *t = &tokens[token];
    return memcpy(allocate(t->length + 1), t->at, t->length);
}

struct mark *mark_at(int token)
{
    if (tokens[token].mark == NULL)
        tokens[token].mark = allocate(sizeof *tokens[token].mark);
    return tokens[token].mark;
}

const struct mark *mark_of(const struct token *token)
{
    static const struct mark none;
    return token->mark != NULL ? token->mark : &none;
}

static int *
    closing; /* of each opening bracket: the bracket that closes it; 0: none; NULL: not known yet */

/* A bracket that is not closed ends at the } around it, and one that was not opened is nothing. */
static void find_closing_brackets(void)
{
    int *open = check_allocation(malloc((size_t)token_count * sizeof *open)), depth = 0;
    closing = check_allocation(calloc((size_t)token_count, sizeof *closing));
    for (int i = 0; i < token_count; i++) {
        if (token_is(i, "(") || token_is(i, "[") || token_is(i, "{")) {
            open[depth++] = i;
            continue;
        }
        const char *of = token_is(i, ")")   ? "("
                         : token_is(i, "]") ? "["
                         : token_is(i, "}") ? "{"
                                            : NULL;
        int found = depth - 1;
        while (of != NULL && found >= 0 && !token_is(open[found], of) &&
               (*of == '{' || !token_is(open[found], "{")))
            found--;
        if (of == NULL || found < 0 || !token_is(open[found], of))
            continue;
        closing[open[found]] = i;
        depth = found;
    }
    free(open);
}

int find_closing_bracket(int token)
{
    if (closing == NULL)
        find_closing_brackets();
    return token < token_count ? closing[token] : 0;
}

int closing_bracket(int token)
{
    if (find_closing_bracket(token) == 0)
        reject_at(token, "this bracket is not closed");
    return closing[token];
}

static struct token *add_token(enum token_kind kind, const char *at)
{
    if (token_count == token_room) {
        token_room = token_room * 2;
        tokens = check_allocation(realloc(tokens, (size_t)token_room * sizeof *tokens));
    }
    struct token *t = &tokens[token_count++];
    memset(t, 0, sizeof *t);
    t->kind = (unsigned char)kind;
    t->at = at;
    return t;
}

static bool starts_name(char c)
{
    return is_of_name(c) && !isdigit((unsigned char)c);
}

static const char *punctuators[] = {
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
    "&&",  "||",  "*=",  "/=", "%=", "+=", "-=", "&=", "^=", "|=", "##", NULL,
};

static const char *end_of_string(const char *p, const char *end)
{
    char quote = *p++;
    while (p < end && *p != quote && *p != '\n')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    return p < end ? p + 1 : end;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static bool begins_with_word(const char *p, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - p) > length && memcmp(p, word, length) == 0;
}

bool read_marker(const char *p, const char *end, struct marker *marker)
{
    if (p == end || *p != '#')
        return false;
    p = skip_blanks(p + 1, end);
    if (begins_with_word(p, end, "line"))
        p = skip_blanks(p + 4, end);
    if (p == end || !isdigit((unsigned char)*p))
        return false;
    marker->line = (unsigned)strtoul(p, (char **)(void *)&p, 10);
    while (p < end && *p == ' ')
        p++;
    if (p < end && *p == '"') {
        const char *close = end_of_string(p, end);
        marker->file = p + 1;
        marker->length = (size_t)(close - p) - 2;
        marker->system = memchr(close, '3', (size_t)(end - close)) != NULL;
    }
    return true;
}

void lex(const char *input, size_t length)
{
    const char *p = input, *end = input + length, *line_start = input;
    unsigned line = 1;
    const char *file = "<stdin>";
    struct marker marker = {.file = file, .length = strlen(file)};
    bool at_start = true, space = false;
    enum { LENGTH_OF_A_TOKEN = 8 }; /* an average, with the space around it */
    token_count = 0;
    input_start = input;
    input_end = end;
    free(closing);
    closing = NULL;
    token_room = (int)(length / LENGTH_OF_A_TOKEN) + 64;
    tokens = check_allocation(malloc((size_t)token_room * sizeof *tokens));
    prefault_pages(tokens, (size_t)token_room * sizeof *tokens);
    while (p < end) {
        if (*p == '\n') {
            line++;
            p++;
            line_start = p;
            at_start = space = true;
            continue;
        }
        if (isspace((unsigned char)*p)) {
            p++;
            space = true;
            continue;
        }
        if (p[0] == '\\' && p + 1 < end && p[1] == '\n') {
            line++;
            p += 2;
            continue;
        }
        if (p[0] == '/' && p + 1 < end && p[1] == '*') {
            for (p += 2; p + 1 < end && !(p[0] == '*' && p[1] == '/'); p++)
                line += *p == '\n';
            p = p + 1 < end ? p + 2 : end;
            space = true;
            continue;
        }
        if (p[0] == '/' && p + 1 < end && p[1] == '/') {
            while (p < end && *p != '\n')
                p++;
            continue;
        }
        struct token *t;
        const char *start = p;
        if (*p == '#' && at_start) {
            while (p < end && *p != '\n')
                p++;
            if (read_marker(start, p, &marker)) {
                line = marker.line - 1;
                if (strlen(file) != marker.length || memcmp(file, marker.file, marker.length) != 0)
                    file = format_text("%.*s", (int)marker.length, marker.file);
                continue;
            }
            t = add_token(PRAGMA, start);
        } else if (starts_name(*p)) {
            while (p < end && (starts_name(*p) || isdigit((unsigned char)*p)))
                p++;
            size_t prefix = (size_t)(p - start);
            if (p < end && (*p == '"' || *p == '\'') &&
                ((prefix == 1 && strchr("LuU", *start)) ||
                 (prefix == 2 && memcmp(start, "u8", 2) == 0))) {
                t = add_token(*p == '"' ? STRING : NUMBER, start);
                p = end_of_string(p, end);
            } else {
                t = add_token(NAME, start);
            }
        } else if (isdigit((unsigned char)*p) ||
                   (*p == '.' && p + 1 < end && isdigit((unsigned char)p[1]))) {
            while (p < end && (starts_name(*p) || isdigit((unsigned char)*p) || *p == '.' ||
                               (*p == '\'' && p + 1 < end && isalnum((unsigned char)p[1])) ||
                               ((*p == '+' || *p == '-') && strchr("eEpP", p[-1]))))
                p++;
            t = add_token(NUMBER, start);
        } else if (*p == '"' || *p == '\'') {
            t = add_token(*p == '"' ? STRING : NUMBER, start);
            p = end_of_string(p, end);
        } else {
            t = add_token(PUNCTUATOR, start);
            p++;
            bool alone = strchr("(){}[];,:?~", *start) != NULL;
            for (const char **known = punctuators; !alone && *known != NULL; known++) {
                size_t n = strlen(*known);
                if ((size_t)(end - start) >= n && memcmp(start, *known, n) == 0) {
                    p = start + n;
                    break;
                }
            }
        }
        t->length = (unsigned)(p - start);
        t->line = line;
        t->column =
            start - line_start < USHRT_MAX ? (unsigned short)(start - line_start + 1) : USHRT_MAX;
        t->file = file;
        t->system = marker.system;
        t->space = space;
        at_start = space = false;
    }
    struct token *t = add_token(END, end);
    t->line = line;
    t->file = file;
    t->column = 1;
}
