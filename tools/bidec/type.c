/*
 * Types and declarations as text at file scope.
 *
 * The compiler finds the types. A value that is kept across an await has the type of its expression,
 * by a typeof in the declaration of the struct; the locals that the expression names do not exist
 * there. So each of them has a probe: a variable of its type that is declared and never defined.
 */
#include "bidec.h"

#include <string.h>

struct text outer;

/* ---- Text at file scope ---- */

static const char *probe_name(struct symbol *symbol)
{
    if (symbol->probe == NULL) {
        symbol->probe =
            format_text("bide_type_of_%s_%s_%u", function->name, symbol->name, ++serial);
        const char *declaration = declared_as(symbol, symbol->probe, false);
        text_print(&outer, "extern %s;\n", declaration);
    }
    return symbol->probe;
}

static void print_file_scope_text(struct text *out, int first, int end);

static const char *type_of_block(const struct node *node)
{
    const struct node *last = NULL;
    for (struct node *s = node->a->list; s != NULL; s = s->next)
        last = s;
    while (last != NULL && last->kind == S_LABEL)
        last = last->a;
    if (last == NULL || last->kind != S_EXPRESSION)
        return "((void)0)";
    return format_text("(%s)", file_scope_text(last->a->first, last->a->end));
}

/* The type of a literal, with the length that its braces give. */
const char *type_of_literal(const struct node *node)
{
    int open = 0;
    for (int i = node->type; i < node->type_end; i++) {
        if (token_is(i, "[") && token_is(i + 1, "]"))
            open = i;
    }
    if (open == 0)
        return format_text("__typeof__(%s)", file_scope_text(node->type, node->type_end));
    return format_text("__typeof__(%s%s%s)", file_scope_text(node->type, open + 1),
                       open_bound(node->a), file_scope_text(open + 1, node->type_end));
}

static void print_file_scope_text(struct text *out, int first, int end)
{
    for (int i = first; i < end; i++) {
        struct token *t = &tokens[i];
        if (t->kind == PRAGMA)
            continue;
        if (i > first && (t->space || (t->kind == NAME && tokens[i - 1].kind == NAME)))
            text_add(out, " ", 1);
        if (mark_of(t)->replaced != NULL) {
            const struct node *node = mark_of(t)->replaced;
            const char *text = node->kind == E_BLOCK ? type_of_block(node)
                               : node->kind == E_LITERAL
                                   ? format_text("(*(%s *)0)", type_of_literal(node))
                                   : await_status_of(node);
            text_add(out, text, strlen(text));
            i = node->end - 1;
            continue;
        }
        if (mark_of(t)->hoisted != 0) {
            i = mark_of(t)->hoisted;
            continue;
        }
        if (mark_of(t)->named != NULL) {
            text_print(out, "%s", mark_of(t)->named);
            continue;
        }
        struct symbol *symbol = t->symbol;
        if (symbol == NULL) {
            text_add(out, t->at, t->length);
        } else if (symbol->kind == VARIABLE) {
            const char *name = probe_name(symbol);
            text_add(out, name, strlen(name));
        } else if (symbol->kind == TAG && symbol->token == 0) {
            text_print(out, "%.*s %s", (int)t->length, t->at,
                       symbol->member != NULL ? symbol->member : "");
        } else if (symbol->member != NULL) {
            text_add(out, symbol->member, strlen(symbol->member));
        } else {
            text_add(out, t->at, t->length);
        }
    }
}

const char *file_scope_text(int first, int end)
{
    struct text text = {0};
    text_add(&text, "", 0);
    print_file_scope_text(&text, first, end);
    return text_finish(&text);
}

const char *type_of(const struct node *node)
{
    const char *value = file_scope_text(node->first, node->end);
    return format_text("__typeof__(0 ? (%s) : (%s))", value, value);
}

/* ---- Declarations at file scope ---- */

bool is_gnu_attribute(int token)
{
    return (token_is(token, "__attribute__") || token_is(token, "__attribute")) &&
           token_is(token + 1, "(");
}

bool is_pack(int token)
{
    const struct token *t = &tokens[token];
    static const char word[] = "pragma pack";
    if (t->kind != PRAGMA)
        return false;
    const char *p = t->at + 1, *end = t->at + t->length;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return (size_t)(end - p) >= sizeof word - 1 && memcmp(p, word, sizeof word - 1) == 0;
}

bool file_packs(void)
{
    static int packs = -1;
    for (int i = 0; packs < 0 && i < token_count; i++) {
        if (is_pack(i))
            packs = 1;
    }
    if (packs < 0)
        packs = 0;
    return packs == 1;
}

/* An attribute that changes the type. */
static bool is_type_attribute(int token)
{
    static const char *const words[] = {
        "aligned",         "__aligned__", "mode",          "__mode__",      "vector_size",
        "__vector_size__", "may_alias",   "__may_alias__", "address_space", "transparent_union"};
    for (int i = token, close = closing_bracket(token + 1); i < close; i++) {
        for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
            if (token_is(i, words[n]))
                return true;
        }
    }
    return false;
}

/* Returns the specifiers of the type, without those of the declaration, such as `static`. */
const char *plain_specifiers(const struct specifiers *specifiers, bool drop_const)
{
    static const char *const storage[] = {"static",        "extern",   "register", "auto",
                                          "typedef",       "inline",   "__inline", "__inline__",
                                          "_Thread_local", "__thread", "async",    "async_created",
                                          "__extension__"};
    struct text text = {0};
    text_add(&text, "", 0);
    for (int i = specifiers->first; i < specifiers->end; i++) {
        bool skip = false;
        for (size_t n = 0; n < sizeof storage / sizeof *storage; n++)
            skip |= token_is(i, storage[n]);
        if (drop_const &&
            (token_is(i, "const") || token_is(i, "__const") || token_is(i, "__const__")))
            skip = true;
        if (token_is(i, "async_sized") || token_is(i, "async_generator"))
            i = closing_bracket(i + 1);
        if (skip || token_is(i, ")"))
            continue;
        if (is_gnu_attribute(i) && !is_type_attribute(i)) {
            i = closing_bracket(i + 1);
            continue;
        }
        int end = i + 1;
        if (token_is(i, "struct") || token_is(i, "union") || token_is(i, "enum")) {
            while (end < specifiers->end && !token_is(end, "{") && !token_is(end - 1, "}"))
                end++;
            if (token_is(end, "{")) {
                int hoisted = mark_of(&tokens[end])->hoisted; /* with its attributes */
                end = (hoisted != 0 ? hoisted : closing_bracket(end)) + 1;
            }
        } else if (end < specifiers->end && token_is(end, "(")) {
            end = closing_bracket(end) + 1;
        }
        if (text.length != 0)
            text_add(&text, " ", 1);
        print_file_scope_text(&text, i, end);
        i = end - 1;
    }
    return text_finish(&text);
}

/* Returns the number of elements in braces, as an expression; designators set the index of an element. */
static const char *count_of(const struct node *node)
{
    const char *max = "0";
    const char *next = "0";
    for (const struct node *e = node->list; e != NULL; e = e->next) {
        if (token_is(e->first, "[")) {
            int close = closing_bracket(e->first), first = e->first + 1;
            for (int i = first; i < close; i++) {
                if (token_is(i, "..."))
                    first = i + 1;
            }
            next = format_text("(%s)", file_scope_text(first, close));
        }
        next = format_text("%s + 1", next);
        if (token_is(e->first, "["))
            max = format_text("((%s) > (%s) ? (%s) : (%s))", max, next, max, next);
        else if (e->next == NULL || token_is(e->next->first, "["))
            max = format_text("((%s) > (%s) ? (%s) : (%s))", max, next, max, next);
    }
    if (strncmp(max, "((0) > ", 7) == 0 && node->list != NULL) {
        bool plain = true;
        unsigned count = 0;
        for (const struct node *e = node->list; e != NULL; e = e->next, count++)
            plain &= !token_is(e->first, "[");
        if (plain)
            return format_text("%u", count);
    }
    return max;
}

const char *open_bound(const struct node *initialiser)
{
    if (initialiser == NULL)
        return "";
    if (initialiser->kind == E_INITIALISER && initialiser->list != NULL &&
        initialiser->list->next == NULL && initialiser->list->a->kind == E_STRING)
        initialiser = initialiser->list->a;
    if (initialiser->kind == E_STRING) {
        const char *string = file_scope_text(initialiser->first, initialiser->end);
        return format_text("sizeof(%s) / sizeof *(%s)", string, string);
    }
    return initialiser->kind == E_INITIALISER ? count_of(initialiser) : "";
}

/* A typedef of an array; a parameter of that type is a pointer. */
static bool is_array_type(const struct specifiers *specifiers)
{
    for (int i = specifiers->first; i < specifiers->end; i++) {
        const struct symbol *symbol = tokens[i].symbol;
        if (symbol != NULL ? symbol->kind == TYPE_NAME && symbol->declarator->is_array
                           : is_global_array(i))
            return true;
    }
    return false;
}

const char *declared_as(const struct symbol *symbol, const char *name, bool as_member)
{
    const struct declarator *d = symbol->declarator;
    struct text text = {0};
    bool stars = false;
    for (int i = d->first; i < d->suffix; i++)
        stars |= token_is(i, "*");
    if (d->specifiers->is_automatic && d->initialiser != NULL)
        return format_text("%s %s", type_of(d->initialiser), name);
    if (d->is_parameter && as_member && !stars && !d->is_array && !d->is_function &&
        is_array_type(d->specifiers))
        return format_text("__typeof__((0, *(%s *)0)) %s", plain_specifiers(d->specifiers, true),
                           name);
    bool drop = as_member && d->is_const;
    text_print(&text, "%s ", plain_specifiers(d->specifiers, drop && !stars));
    int from = d->first;
    for (int i = d->first; drop && i < d->name; i++) {
        if (token_is(i, "const")) {
            bool last = true;
            for (int n = i; n < d->name; n++)
                last &= !token_is(n, "*");
            if (last) {
                print_file_scope_text(&text, from, i);
                from = i + 1;
            }
        }
    }
    int behind = d->name != 0 ? d->name + 1 : d->suffix;
    print_file_scope_text(&text, from, behind - (d->name != 0));
    if (d->is_parameter && d->is_array) {
        text_print(&text, "(*%s)", name);
        print_file_scope_text(&text, behind, d->bound);
        behind = closing_bracket(d->bound) + 1;
    } else if (d->is_parameter && d->is_function) {
        text_print(&text, "(*%s)", name);
    } else {
        char last = text.at[text.length - 1];
        text_print(&text, "%s%s", last == ' ' || last == '*' || last == '(' ? "" : " ", name);
    }
    if (d->open_bound != 0 && !d->is_parameter) {
        print_file_scope_text(&text, behind, d->open_bound + 1);
        text_print(&text, "%s", open_bound(d->initialiser));
        behind = d->open_bound + 1;
    }
    print_file_scope_text(&text, behind, d->end);
    for (int i = d->end; is_gnu_attribute(i); i = closing_bracket(i + 1) + 1) {
        if (is_type_attribute(i))
            text_print(&text, " %s", file_scope_text(i, closing_bracket(i + 1) + 1));
    }
    return text_finish(&text);
}

/* Returns a parameter as the init function declares it. */
const char *member_declaration(const struct declarator *d, const char *name)
{
    struct symbol symbol = {.declarator = (struct declarator *)d};
    return declared_as(&symbol, name, true);
}
