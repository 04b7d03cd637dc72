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
static bool all_braced(const struct node *node);
static const char *constant_braces(const struct node *node);

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

static int open_bound_of_literal(const struct node *node)
{
    int open = 0;
    for (int i = node->type; i < node->type_end && open == 0; i++) {
        if (token_is(i, "[") && token_is(i + 1, "]"))
            open = i;
    }
    return open;
}

/* The type of a literal, with the length that its braces give. */
const char *type_of_literal(const struct node *node)
{
    int open = open_bound_of_literal(node);
    const char *type = file_scope_text(node->type, node->type_end);
    if (open == 0)
        return format_text("__typeof__(%s)", type);
    return format_text("__typeof__(%s%s%s)", file_scope_text(node->type, open + 1),
                       open_bound(node->a, type), file_scope_text(open + 1, node->type_end));
}

/* True if the type's length may be too large, where inner braces are left out. */
bool literal_may_be_shorter(const struct node *node)
{
    return open_bound_of_literal(node) != 0 && constant_braces(node->a) == NULL &&
           !all_braced(node->a);
}

static void print_file_scope_text(struct text *out, int first, int end)
{
    for (int i = first; i < end; i++) {
        struct token *t = &tokens[i];
        if (t->kind == PRAGMA)
            continue;
        if (is_attribute_of_tag(i)) {
            i = closing_bracket(i);
            continue;
        }
        if (i > first && (t->space || (t->kind == NAME && tokens[i - 1].kind == NAME)))
            text_add(out, " ", 1);
        const struct node *probed = mark_of(t)->probed;
        while (probed != NULL && probed->end > end)
            probed = probed->probed;
        if (probed != NULL) {
            text_print(out, "%s", probed->probe);
            i = probed->end - 1;
            continue;
        }
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

/* ---- Parameters that point at rows of a length which another parameter gives: int a[n][m] ---- */

/*
 * Such a type has no name outside of the function, so the member is a void *, which is cast wherever the
 * parameter stands. The first length is of no consequence in C.
 */
static int first_row(const struct declarator *d)
{
    return d->is_array && d->bound != 0 ? closing_bracket(d->bound) + 1 : d->name + 1;
}

bool has_variable_rows(const struct declarator *d)
{
    int depth = 0;
    if (!d->is_parameter || d->name == 0 || d->is_function)
        return false;
    for (int i = first_row(d); i < d->end; i++) {
        depth += token_is(i, "[");
        depth -= token_is(i, "]");
        if (token_is(i, "sizeof") && token_is(i + 1, "("))
            i = closing_bracket(i + 1);
        else if (depth > 0 && tokens[i].symbol != NULL && tokens[i].symbol->kind == VARIABLE)
            return true;
    }
    return false;
}

void check_variable_rows(const struct declarator *d)
{
    if (d->symbol->is_written)
        reject_at(d->name,
                  "'%s' points at rows whose length is not constant, so it cannot be changed: use "
                  "another variable as index",
                  d->symbol->name);
    for (int i = first_row(d); i < d->end; i++) {
        if (tokens[i].symbol != NULL && tokens[i].symbol->is_written)
            reject_at(i, "'%s' is the length of the rows of '%s', so it cannot be changed",
                      spelling_of(i), d->symbol->name);
    }
}

/* No constant has these words, so the length would be evaluated. */
void check_row_effects(const struct declarator *d)
{
    int depth = 0;
    if (!d->is_parameter || d->name == 0 || d->is_function)
        return;
    for (int i = first_row(d); i < d->end; i++) {
        depth += token_is(i, "[");
        depth -= token_is(i, "]");
        if (depth > 0 && (token_is(i, "++") || token_is(i, "--")))
            reject_at(i,
                      "the length of the rows of '%s' has a side effect: give them a length that "
                      "is a parameter",
                      spelling_of(d->name));
    }
}

const char *cast_to_rows(const struct declarator *d)
{
    return format_text("(%s %s%s%s)", step_text(d->specifiers->first, d->specifiers->end),
                       step_text(d->first, d->name), d->is_array ? "(*)" : "",
                       step_text(first_row(d), d->end));
}

/* How many rows of such a length are in what the value points at; 0: its type is that of the probe. */
static int variable_rows(struct node *node);

static int count_variable_rows(const struct node *node)
{
    int a = node->a != NULL ? variable_rows(node->a) : 0;
    int b = node->b != NULL ? variable_rows(node->b) : 0;
    switch (node->kind) {
    case E_PARENTHESES:
    case E_ASSIGN:
        return a;
    case E_COMMA:
        return b;
    case E_CONDITION: {
        int c = variable_rows(node->c);
        return c > b ? c : b;
    }
    case E_BINARY:
        return a != 0 && b != 0 ? 0 : a + b;
    case E_INDEX:
        return a != 0 ? a - 1 : 0;
    case E_UNARY:
        if (token_is(node->sign, "*"))
            return a != 0 ? a - 1 : 0;
        return token_is(node->sign, "__extension__") || (token_is(node->sign, "&") && a != 0)
                   ? a + token_is(node->sign, "&")
                   : 0;
    case E_TOKENS: {
        const struct symbol *symbol = tokens[node->first].symbol;
        int rows = 0;
        if (node->end != node->first + 1 || symbol == NULL || symbol->kind != VARIABLE ||
            !has_variable_rows(symbol->declarator))
            return 0;
        for (int i = first_row(symbol->declarator); i < symbol->declarator->end; i++) {
            if (token_is(i, "[")) {
                rows++;
                i = closing_bracket(i);
            }
        }
        return rows;
    }
    default:
        return 0;
    }
}

static int variable_rows(struct node *node)
{
    if (!node->knows_rows)
        node->rows = count_variable_rows(node);
    node->knows_rows = true;
    return node->rows;
}

/* Their lengths as 1, for a probe. */
static const char *rows_of_one(const struct declarator *d)
{
    struct text text = {0};
    text_add(&text, "", 0);
    for (int i = first_row(d); i < d->end; i++) {
        if (token_is(i, "[")) {
            text_print(&text, "[1]");
            i = closing_bracket(i);
        } else {
            text_print(&text, "%s", spelling_of(i));
        }
    }
    return text_finish(&text);
}

/*
 * The type of each part of a long expression may be asked for, and the text of a part contains those of its own
 * parts. So that all of them together are no longer than the expression, a long part gets a probe, a variable of its
 * type, and its probe stands for it in what is around it. Only for operators and choices, whose values are no objects.
 */
enum { LONG_PART = 100 }; /* tokens */

static void probe_parts(struct node *node);

static void probe_part(struct node *node)
{
    if (node == NULL || node->probe != NULL || node->end - node->first < LONG_PART)
        return;
    probe_parts(node);
    if (node->kind != E_BINARY && node->kind != E_CONDITION)
        return;
    const char *value = file_scope_text(node->first, node->end);
    node->probe = format_text("bide_part_of_%s_%u", function->name, ++serial);
    text_print(&outer, "extern __typeof__(0 ? (%s) : (%s)) %s;\n", value, value, node->probe);
    struct node **place = &mark_at(node->first)->probed;
    while (*place != NULL && (*place)->end > node->end)
        place = &(*place)->probed;
    node->probed = *place;
    *place = node;
}

static void probe_parts(struct node *node)
{
    if (node->kind != E_PARENTHESES && node->kind != E_BINARY && node->kind != E_CONDITION)
        return;
    probe_part(node->a);
    probe_part(node->b);
    probe_part(node->c);
}

const char *type_of(struct node *node)
{
    if (variable_rows(node) != 0)
        reject_at(node->first,
                  "a pointer at rows whose length is not constant cannot be kept across an await");
    if (node->end - node->first >= LONG_PART)
        probe_parts(node);
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
    static const char *const storage[] = {
        "static",    "extern",   "register",   "auto",          "typedef",
        "inline",    "__inline", "__inline__", "_Thread_local", "thread_local",
        "constexpr", "__thread", "async",      "async_created", "__extension__"};
    struct text text = {0};
    text_add(&text, "", 0);
    for (int i = specifiers->first; i < specifiers->end; i++) {
        bool skip = false;
        for (size_t n = 0; n < sizeof storage / sizeof *storage; n++)
            skip |= token_is(i, storage[n]);
        if (drop_const &&
            (token_is(i, "const") || token_is(i, "__const") || token_is(i, "__const__")))
            skip = true;
        if (is_word_with_type(i))
            i = closing_bracket(i + 1);
        if (skip || token_is(i, ")"))
            continue;
        if (is_gnu_attribute(i) && !is_type_attribute(i)) {
            i = closing_bracket(i + 1);
            continue;
        }
        if (is_standard_attribute(i)) {
            const int close = closing_bracket(i);
            if (is_type_attribute(i - 1))
                text_print(&text, "%s ", file_scope_text(i, close + 1));
            i = close;
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

/* ---- The length that an initialiser gives ---- */

static bool all_braced(const struct node *node)
{
    bool all = true;
    for (const struct node *e = node->list; e != NULL; e = e->next)
        all &= e->a->kind == E_INITIALISER;
    return all;
}

/*
 * Something constant of the node's kind: 0 for a number or pointer, a literal for a struct. NULL: which of
 * them it is, only the compiler knows.
 */
static const char *constant_like(const struct node *node)
{
    const struct symbol *symbol = tokens[node->first].symbol;
    const struct declarator *d = symbol != NULL ? symbol->declarator : NULL;
    switch (node->kind) {
    case E_INITIALISER:
        return constant_braces(node);
    case E_STRING:
        return file_scope_text(node->first, node->end);
    case E_PARENTHESES:
    case E_ASSIGN:
        return constant_like(node->a);
    case E_COMMA:
        return constant_like(node->b);
    case E_CONDITION:
        return constant_like(node->c);
    case E_CONSTANT:
    case E_SIZEOF:
    case E_CAST:
    case E_BINARY:
    case E_POSTFIX:
    case E_SPAWN:
        return "0";
    case E_UNARY:
        if (token_is(node->sign, "__extension__"))
            return constant_like(node->a);
        return token_is(node->sign, "*") ? NULL : "0";
    case E_AWAIT: {
        const struct function *f = called_function(node->a);
        return f != NULL && (!f->is_async || !f->returns_struct) ? "0" : NULL;
    }
    case E_INDEX:
        return d != NULL && symbol->kind == VARIABLE && is_scalar(d->specifiers) &&
                       (node->a->kind == E_TOKENS || node->a->kind == E_INDEX)
                   ? "0"
                   : NULL;
    case E_TOKENS:
        if (d == NULL || symbol->kind != VARIABLE || node->end != node->first + 1)
            return NULL;
        if (d->is_pointer || d->is_array || d->is_function || is_scalar(d->specifiers))
            return "0";
        return token_is(d->specifiers->first, "struct") || token_is(d->specifiers->first, "union")
                   ? format_text("(__typeof__(%s)){0}", file_scope_text(node->first, node->end))
                   : NULL;
    default:
        return NULL;
    }
}

/* True for a number or a pointer, false if it may be a struct. */
bool is_scalar_value(const struct node *node)
{
    const char *constant = node->kind != E_INITIALISER ? constant_like(node) : NULL;
    return constant != NULL && *constant != '(';
}

/* Braces with the same shape and constant elements, or NULL. */
static const char *constant_braces(const struct node *node)
{
    struct text text = {0};
    text_add(&text, "{", 1);
    for (const struct node *e = node->list; e != NULL; e = e->next) {
        const char *constant = constant_like(e->a);
        if (constant == NULL)
            return NULL;
        text_print(&text, "%s%s, ", file_scope_text(e->first, e->sign), constant);
    }
    text_add(&text, "}", 1);
    return text_finish(&text);
}

const char *open_bound(const struct node *initialiser, const char *type)
{
    if (initialiser == NULL)
        return "";
    if (initialiser->kind == E_INITIALISER && !all_braced(initialiser)) {
        const char *braces = constant_braces(initialiser);
        if (braces != NULL) {
            /* gcc takes a literal of a struct for constant in the initialiser of a variable only */
            const char *name = format_text("bide_shape_in_%s_%u", function->name, ++serial);
            text_print(&outer, "static __attribute__((__unused__)) __typeof__(%s) %s = %s;\n", type,
                       name, braces);
            return format_text("sizeof %s / sizeof *%s", name, name);
        }
    }
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

/* The type of an array that is declared without its length. */
static const char *open_type(const struct declarator *d)
{
    return format_text("%s %s%s", plain_specifiers(d->specifiers, false),
                       file_scope_text(d->first, d->name), file_scope_text(d->name + 1, d->end));
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
    if (has_variable_rows(d))
        return as_member ? format_text("void *%s", name)
                         : format_text("%s %s%s%s%s%s", plain_specifiers(d->specifiers, false),
                                       file_scope_text(d->first, d->name), d->is_array ? "(*" : "",
                                       name, d->is_array ? ")" : "", rows_of_one(d));
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
        text_print(&text, "%s", open_bound(d->initialiser, open_type(d)));
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
    if (has_variable_rows(d)) {
        struct text text = {0};
        text_add(&text, "", 0);
        for (int i = d->specifiers->first; i < d->end; i++)
            text_print(&text, "%s ", spelling_of(i));
        return text_finish(&text);
    }
    return declared_as(&symbol, name, true);
}
