/*
 * Async blocks: async_block({ async_capture int n = count; statements }).
 *
 * A block is a function of its own in front of the one around it. Its captures are the parameters, and
 * their initialisers the arguments of a call that stands in the block's place. So it is read first, from
 * the tokens where it stands; the function around it then reads the initialisers alone. A name that the
 * block does not declare is one of the file. It is an error if the function around it declares that name.
 */
#include "bidec.h"

#include <string.h>

bool is_async_block(int token)
{
    return is_name(token, "async_block") && token_is(token + 1, "(") && token_is(token + 2, "{");
}

/* The captures as the parameters of a function. */
const char *captures_text(void)
{
    struct text text = {0};
    text_add(&text, "", 0);
    for (const struct declarator *d = function->parameters; d != NULL; d = d->next)
        text_print(&text, "%s%s", d == function->parameters ? "" : ", ",
                   member_declaration(d, d->symbol->name));
    return function->parameters != NULL ? text_finish(&text) : "void";
}

/* The parser is at the initialiser, which belongs to the function around the block. */
static void skip_initialiser(void)
{
    while (tokens[at].kind != END && !token_is(at, ",") && !token_is(at, ";") && !token_is(at, "}"))
        at = (token_is(at, "(") || token_is(at, "[") || token_is(at, "{") ? closing_bracket(at)
                                                                          : at) +
             1;
}

static void read_captures(struct function *f)
{
    struct declarator **last = &f->parameters;
    while (accept("async_capture")) {
        struct specifiers *specifiers = parse_specifiers();
        if (specifiers->first == specifiers->end)
            reject_at(at, "unknown type name '%s'", spelling_of(at));
        if (specifiers->is_typedef || specifiers->is_static || specifiers->is_extern ||
            specifiers->is_automatic || specifiers->is_constexpr || specifiers->has_body)
            reject_at(specifiers->first,
                      "async_capture stands before the declaration of a variable with its type: "
                      "async_capture int n = count;");
        do {
            struct declarator *d = parse_declarator(specifiers);
            if (d->name == 0)
                reject_at(at, "expected the name of a capture, not '%s'", spelling_of(at));
            if (d->is_array || d->is_function || d->cleanup != 0)
                reject_at(d->name, "a capture is a number, a pointer or a struct: an array is "
                                   "captured in a struct");
            if (!accept("="))
                reject_at(d->name, "a capture needs a value: async_capture int n = count;");
            d->is_parameter = true;
            d->symbol = declare(VARIABLE, d->name, d);
            d->initialiser_first = at;
            skip_initialiser();
            f->parameter_count++;
            *last = d;
            last = &d->next;
        } while (accept(","));
        expect(";");
    }
}

static const char *name_of_block(struct function *around)
{
    const char *name;
    do {
        name = format_text("%s_block_%u", around->name, ++around->last_block);
    } while (is_name_of_file(name));
    return name;
}

static void read_body(struct text *out, struct function *f)
{
    const unsigned errors = error_count;
    scope = NULL;
    definitions = NULL;
    open_scope();
    f->scope = scope;
    at = f->open + 1;
    read_captures(f);
    f->first_statement = at;
    f->close = at - 1;
    at = f->open;
    f->body = parse_block(f->scope);
    f->body->awaits = true; /* each statement is written, and not the captures */
    f->scope->first = f->body->first;
    f->scope->last = at - 1;
    if (error_count != errors)
        return;
    check_function();
    lint_function();
    print_function(out);
    if (plain != NULL && error_count == 0)
        print_plain_function(NULL, at);
}

/* Reads the block at the word. What its tokens mean there is of no concern to the function around it. */
static void read_block(struct text *out, struct function *around, int token)
{
    struct function *f = allocate(sizeof *f);
    struct recovery here = {.outer = recovery};
    f->name = name_of_block(around);
    f->result = " int ";
    f->around = around->name;
    f->is_async = f->is_block = f->is_static = true;
    f->name_token = token;
    f->open = f->close = token + 2;
    function = f;
    if (setjmp(here.place) == 0) {
        recovery = &here;
        read_body(out, f);
    } else {
        f->is_wrong = true;
        nesting = 0;
        memset(&whole, 0, sizeof whole);
    }
    recovery = here.outer;
    f->defined = f->has_body = true;
    for (int i = token, end = closing_bracket(token + 1); i <= end; i++) {
        tokens[i].symbol = NULL;
        tokens[i].mark = NULL;
    }
    mark_at(token)->block = f;
}

bool has_blocks(int first, int end)
{
    for (int i = first; i < end; i++) {
        if (is_async_block(i))
            return true;
    }
    return false;
}

/* The inner blocks first. */
void read_blocks(struct text *out, struct function *around, int first, int end)
{
    for (int i = first; i < end; i++) {
        if (!is_async_block(i))
            continue;
        const int close = closing_bracket(i + 1);
        read_blocks(out, around, i + 2, close);
        read_block(out, around, i);
        i = close;
    }
}

/* ---- In the function around it ---- */

static void check_outside(const struct function *f, int token)
{
    const struct symbol *symbol = find_symbol(token);
    const bool is_tag = token_is(token - 1, "struct") || token_is(token - 1, "union") ||
                        token_is(token - 1, "enum");
    if (is_tag)
        symbol = find_tag(token);
    if (symbol == NULL)
        return;
    if (symbol->kind == VARIABLE)
        report_at(
            token,
            "'%s' is a variable of %s, which may end before this block: begin the block with a "
            "copy of it, or of a pointer, async_capture ... = %s;",
            spelling_of(token), f->around, spelling_of(token));
    else
        report_at(token,
                  "'%s' is declared in %s, and this block is a function of its own: declare it "
                  "outside of functions",
                  spelling_of(token), f->around);
}

struct node *parse_async_block(void)
{
    struct node *node = new_node(E_CALL, at);
    struct function *f = mark_of(&tokens[at])->block;
    const int close = closing_bracket(at + 1);
    node->a = new_node(E_TOKENS, at++);
    finish_node(node->a);
    node->block = f;
    for (const struct declarator *d = f->parameters; d != NULL; d = d->next) {
        at = d->initialiser_first;
        append_part(node, parse_assignment());
        if (!token_is(at, ",") && !token_is(at, ";"))
            reject_at(at, "expected ';', not '%s'", spelling_of(at));
    }
    for (int i = f->open; i < close; i++) {
        if (tokens[i].is_outside)
            check_outside(f, i);
    }
    at = close + 1;
    return finish_node(node);
}

/* Captures are declarations, each behind the one before it: of several, one has an effect. */
bool captures_have_order(const struct node *list)
{
    bool has_effect = false;
    for (const struct node *part = list; part != NULL && list->next != NULL; part = part->next) {
        for (int i = part->first; i < part->end; i++) {
            const struct token *t = &tokens[i];
            const bool is_call =
                token_is(i, "(") && i > part->first &&
                (tokens[i - 1].kind == NAME || token_is(i - 1, ")") || token_is(i - 1, "]"));
            const bool is_assignment = t->kind == PUNCTUATOR && t->at[t->length - 1] == '=' &&
                                       !token_is(i, "==") && !token_is(i, "!=") &&
                                       !token_is(i, "<=") && !token_is(i, ">=");
            has_effect |= is_call || is_assignment || token_is(i, "++") || token_is(i, "--");
        }
    }
    return has_effect;
}

/* ---- What a spawned block is given ---- */

/*
 * The scope whose variable or literal an expression points at, and the name in messages; NULL if it points at none,
 * or nobody knows: `&a`, `&a.b[1]`, `a` and `a + 1` of an array.
 */
static const struct scope *pointed_at(const struct node *node, const char **name)
{
    bool takes_address = false, is_element = false;
    while (node->kind == E_PARENTHESES || node->kind == E_CAST || node->kind == E_INDEX ||
           node->kind == E_BINARY || (node->kind == E_MEMBER && token_is(node->sign, ".")) ||
           (node->kind == E_UNARY && token_is(node->sign, "&"))) {
        takes_address |= node->kind == E_UNARY;
        is_element |= node->kind == E_INDEX;
        node = node->a;
    }
    if (node->kind == E_LITERAL) {
        bool is_array = false;
        for (int i = node->type; i < node->type_end; i++)
            is_array |= token_is(i, "[");
        *name = "this literal";
        return takes_address || (is_array && !is_element) ? node->scope : NULL;
    }
    const struct symbol *symbol = node->kind == E_TOKENS ? tokens[node->first].symbol : NULL;
    if (symbol == NULL || symbol->kind != VARIABLE)
        return NULL;
    const struct declarator *d = symbol->declarator;
    const bool is_array = d->is_array && !d->is_parameter;
    *name = symbol->name;
    if (d->specifiers->is_static || d->specifiers->is_extern || (is_element && d->is_pointer))
        return NULL;
    return takes_address || (is_array && !is_element) ? symbol->scope : NULL;
}

/*
 * The coroutines of a scope have ended where the scope does. So a variable may be pointed at if its block
 * is around that of the bide_scope, or the same.
 */
void check_spawned_block(const struct node *to, const struct node *block)
{
    const char *name = NULL;
    const struct scope *scope_of = pointed_at(to, &name);
    for (const struct node *part = block->list; part != NULL; part = part->next) {
        const struct scope *pointed = pointed_at(part, &name), *in = scope_of;
        while (in != NULL && in != pointed)
            in = in->up;
        if (pointed != NULL && in == NULL)
            reject_at(
                part->first,
                "%s may be gone before this block has ended: it has to be declared in the block of "
                "the bide_scope, or around it",
                name);
    }
}
