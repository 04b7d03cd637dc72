/*
 * Makes each function of a program async, with an await before each statement, in each condition and
 * in some of the operands. A plain function with the old name runs the async function to its end, so
 * the program behaves as before. Reads preprocessed text from standard input, and writes text for the
 * translator to standard output.
 *
 * usage: torture [seed]
 */
#include "../../tools/bidec/bidec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long random_state;

static bool chance(unsigned in)
{
    random_state = random_state * 6364136223846793005ul + 1442695040888963407ul;
    return (random_state >> 33) % in == 0;
}

/* Outer nodes are wrapped first. */
static void wrap(int first, int end, const char *before, const char *after)
{
    struct mark *left = mark_at(first), *right = mark_at(end - 1);
    left->before = format_text("%s%s", left->before != NULL ? left->before : "", before);
    right->after = format_text("%s%s", after, right->after != NULL ? right->after : "");
}

static void wrap_value(struct node *node)
{
    if (node == NULL || node->kind == E_INITIALISER)
        return;
    wrap(node->first, node->end, "(await bide_torture_pause(0), ", ")");
}

static void value(struct node *node)
{
    if (node == NULL)
        return;
    if (node->kind == E_CALL) {
        bool is_builtin = tokens[node->a->first].length > 10 &&
                          memcmp(tokens[node->a->first].at, "__builtin_", 10) == 0;
        for (struct node *part = node->list; part != NULL && !is_builtin; part = part->next) {
            if (chance(4))
                wrap_value(part);
        }
    }
    if ((node->kind == E_BINARY || node->kind == E_ASSIGN || node->kind == E_INDEX) && chance(4))
        wrap_value(node->b);
    value(node->a);
    value(node->b);
    value(node->c);
    if (node->kind == E_INITIALISER) {
        for (struct node *part = node->list; part != NULL; part = part->next)
            value(part->a);
        return;
    }
    for (struct node *part = node->list; part != NULL; part = part->next)
        value(part);
}

static void statement(struct node *node, bool returns_nothing);

static void inner(struct node *node, bool returns_nothing)
{
    if (node == NULL)
        return;
    wrap(node->first, node->end, "{ await bide_torture_pause(0); ", " }");
    statement(node, returns_nothing);
}

static void statement(struct node *node, bool returns_nothing)
{
    if (node == NULL)
        return;
    switch (node->kind) {
    case S_DECLARATION:
        for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
            if (!node->specifiers->is_static)
                value(d->initialiser);
        }
        break;
    case S_BLOCK:
        for (struct node *s = node->list; s != NULL; s = s->next) {
            if (s->kind != S_LABEL)
                wrap(s->first, s->first + 1, "await bide_torture_pause(0); ", "");
            statement(s, returns_nothing);
        }
        break;
    case S_LABEL:
        if (node->a != NULL && node->a->kind != S_LABEL && node->a->kind != S_DECLARATION)
            inner(node->a, returns_nothing);
        else
            statement(node->a, returns_nothing);
        break;
    case S_IF:
        wrap_value(node->a);
        value(node->a);
        inner(node->b, returns_nothing);
        inner(node->c, returns_nothing);
        break;
    case S_WHILE:
    case S_DO:
        wrap_value(node->a);
        value(node->a);
        inner(node->b, returns_nothing);
        break;
    case S_SWITCH:
        wrap_value(node->a);
        value(node->a);
        statement(node->b, returns_nothing);
        break;
    case S_FOR:
        statement(node->a, returns_nothing);
        wrap_value(node->b);
        value(node->b);
        wrap_value(node->c);
        value(node->c);
        inner(node->d, returns_nothing);
        break;
    case S_RETURN:
        if (!returns_nothing)
            wrap_value(node->a);
        value(node->a);
        break;
    case S_EXPRESSION:
        value(node->a);
        break;
    default:
        break;
    }
}

static void print_range(struct text *out, int first, int end)
{
    unsigned line = tokens[first].line;
    const char *file = "";
    for (int i = first; i < end; i++) {
        const struct token *t = &tokens[i];
        if (t->kind == PRAGMA || t->line != line || strcmp(t->file, file) != 0)
            text_print(out, "\n# %u \"%s\"\n", t->line, t->file);
        line = t->line;
        file = t->file;
        text_print(out, " %s%.*s%s", mark_of(t)->before != NULL ? mark_of(t)->before : "",
                   (int)t->length, t->at, mark_of(t)->after != NULL ? mark_of(t)->after : "");
        if (t->kind == PRAGMA)
            line = 0;
    }
}

static bool is_plain(const struct specifiers *specifiers, const struct declarator *d)
{
    if (token_is(specifiers->first, "extern") || token_is(specifiers->first, "__extension__"))
        return false;
    for (int i = d->first; i < d->name; i++) {
        if (!token_is(i, "*") && !token_is(i, "const"))
            return false;
    }
    int open = d->parameters, close = closing_bracket(open);
    for (int i = open; i < close; i++) {
        if (token_is(i, "..."))
            return false;
    }
    return close == open + 1 || is_type_start(open + 1);
}

/* The parser is at the body of a function definition. */
static bool torture(struct text *out, struct specifiers *specifiers, struct declarator *d)
{
    int name = d->name, first = specifiers->first, open = d->parameters, brace = at;
    if (tokens[name].system || !token_is(at, "{") || !is_plain(specifiers, d))
        return false;
    struct function f = {.name = "x"};
    function = &f;
    scope = NULL;
    definitions = NULL;
    open_scope();
    at = open;
    struct declarator *parameters = parse_parameters();
    skip_attributes();
    struct node *node = parse_block(scope);
    int end = at;
    function = NULL;
    scope = NULL;
    const char *type = plain_specifiers(specifiers, false);
    if (type[strspn(type, " ")] == 0)
        type = "int";
    bool returns_nothing = strcmp(type + strspn(type, " "), "void") == 0 && d->first == name;
    print_range(out, first, closing_bracket(open) + 1);
    text_print(out, ";\nasync %s ", type);
    print_range(out, d->first, name);
    text_print(out, " tortured_%s", spelling_of(name));
    print_range(out, open, closing_bracket(open) + 1);
    statement(node, returns_nothing);
    bool is_main = token_is(name, "main");
    if (is_main)
        mark_at(end - 1)->before = format_text("return 0; ");
    print_range(out, brace, end);
    text_print(out, "\n");
    print_range(out, first, brace);
    text_print(out, "{ struct async_tortured_%s frame; bide_sync_wait(async_tortured_%s(&frame",
               spelling_of(name), spelling_of(name));
    for (struct declarator *p = parameters; p != NULL; p = p->next)
        text_print(out, ", %s", spelling_of(p->name));
    text_print(out, ")); %s }\n", returns_nothing ? "" : "return frame.result;");
    return true;
}

int main(int count, char **words)
{
    struct text input = {0}, out = {0};
    static char block[1 << 16];
    random_state = count > 1 ? strtoul(words[1], NULL, 10) : 1;
    text_add(&input, "", 0);
    text_add(&out, "", 0);
    for (ssize_t n; (n = read(0, block, sizeof block)) > 0;)
        text_add(&input, block, (size_t)n);
    lex(input.at, input.length);
    on_function = torture;
    translate(&out, input.at);
    fwrite(out.at, 1, out.length, stdout);
    return 0;
}
