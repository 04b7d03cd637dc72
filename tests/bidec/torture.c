/*
 * Makes each function of a program async, with an await before each statement, in each condition and
 * in some of the operands. A plain function with the old name runs the async function to its end, so
 * the program behaves as before. Reads preprocessed text from standard input, and writes text for the
 * translator to standard output.
 *
 * With --bare it protects nothing: half of the literals become an await, each function is created, and
 * each call of one that is defined before is awaited, all without parentheses and braces around them.
 *
 * usage: torture [--bare] [seed]
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

/* ---- Bare ---- */

static bool bare;

struct tortured {
    struct tortured *next;
    const char *name;
    unsigned parameters;
};

static struct tortured *all_tortured;

static const struct tortured *find_tortured(int name)
{
    const struct tortured *one = all_tortured;
    while (one != NULL && !token_is(name, one->name))
        one = one->next;
    return one;
}

/* A decimal number of type int. A 0 may be a null pointer, unless it is an operand of arithmetic. */
static bool is_plain_literal(const struct node *node, const struct node *parent)
{
    const struct token *t = &tokens[node->first];
    if (t->kind != NUMBER || t->length > 9 || token_is(node->end, "["))
        return false;
    for (unsigned i = 0; i < t->length; i++) {
        if (t->at[i] < '0' || t->at[i] > '9')
            return false;
    }
    if (token_is(node->first, "0"))
        return parent != NULL && parent->kind == E_BINARY &&
               (token_is(parent->sign, "+") || token_is(parent->sign, "-") ||
                token_is(parent->sign, "*") || token_is(parent->sign, "<") ||
                token_is(parent->sign, ">"));
    return *t->at != '0';
}

static void bare_call(struct node *node, const struct node *parent)
{
    const struct tortured *of = node->a->kind == E_TOKENS && tokens[node->a->first].symbol == NULL
                                    ? find_tortured(node->a->first)
                                    : NULL;
    unsigned count = 0;
    for (const struct node *part = node->list; part != NULL; part = part->next)
        count++;
    if (of == NULL || of->parameters != count)
        return;
    bool is_base = parent != NULL && parent->a == node &&
                   (parent->kind == E_INDEX || parent->kind == E_MEMBER || parent->kind == E_CALL ||
                    parent->kind == E_POSTFIX);
    wrap(node->first, node->end, is_base ? "(await tortured_" : "await tortured_",
         is_base ? ")" : "");
}

static void bare_node(struct node *node, const struct node *parent)
{
    if (node == NULL || node->kind == S_DEFER || node->kind == E_TOKENS)
        return;
    if (node->kind == E_CONSTANT && is_plain_literal(node, parent) && chance(2))
        mark_at(node->first)->instead =
            format_text("await bide_tortured_literal(%s)", spelling_of(node->first));
    if (node->kind == E_CALL) {
        bool is_builtin =
            tokens[node->a->first].length > 2 && memcmp(tokens[node->a->first].at, "__", 2) == 0;
        if (is_builtin)
            return;
        bare_call(node, parent);
    }
    if (node->kind == S_DECLARATION) {
        for (struct declarator *d = node->declarators; d != NULL; d = d->next) {
            if (!node->specifiers->is_static && !node->specifiers->is_extern)
                bare_node(d->initialiser, node);
        }
        return;
    }
    bare_node(node->a, node);
    bare_node(node->b, node);
    bare_node(node->c, node);
    bare_node(node->d, node);
    for (struct node *part = node->list; part != NULL; part = part->next)
        bare_node(part, node);
}

static void note_tortured(int name, const struct declarator *parameters)
{
    struct tortured *one = allocate(sizeof *one);
    one->name = spelling_of(name);
    for (; parameters != NULL; parameters = parameters->next)
        one->parameters++;
    one->next = all_tortured;
    all_tortured = one;
}

/* ---- Protected ---- */

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
        const char *instead = mark_of(t)->instead;
        text_print(out, " %s%.*s%s", mark_of(t)->before != NULL ? mark_of(t)->before : "",
                   instead != NULL ? (int)strlen(instead) : (int)t->length,
                   instead != NULL ? instead : t->at,
                   mark_of(t)->after != NULL ? mark_of(t)->after : "");
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
    if (bare && all_tortured == NULL)
        text_print(
            out,
            "async int bide_tortured_literal(int n) { await bide_torture_pause(0); return n; }\n");
    note_tortured(name, parameters);
    print_range(out, first, closing_bracket(open) + 1);
    text_print(out, ";\n%s %s ", bare ? "async_created" : "async", type);
    print_range(out, d->first, name);
    text_print(out, " tortured_%s", spelling_of(name));
    print_range(out, open, closing_bracket(open) + 1);
    if (bare)
        bare_node(node, NULL);
    else
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
    bare = count > 1 && strcmp(words[1], "--bare") == 0;
    count -= bare;
    words += bare;
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
