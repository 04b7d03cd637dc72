/*
 * Statements.
 */
#include "bidec.h"

#include <string.h>

static struct node *loop, *breakable; /* that which continue and break are about */
struct node *last_loop;
bool has_labels;
int deferred;

static struct node *with(struct node *node, const struct node *part)
{
    if (part != NULL) {
        node->awaits |= part->awaits;
    }
    return node;
}

/* The body of a loop or a switch. */
static struct node *parse_inner(struct node *node, bool is_loop)
{
    struct node *outer_loop = loop, *outer_breakable = breakable;
    breakable = node;
    if (is_loop) {
        loop = node;
        node->previous_loop = last_loop;
        last_loop = node;
    }
    struct node *inner = parse_statement();
    loop = outer_loop;
    breakable = outer_breakable;
    return inner;
}

static struct node *parse_parenthesised(void)
{
    expect("(");
    struct node *node = parse_expression();
    expect(")");
    return node;
}

/* A block is a scope; that of a function's body has the parameters in it too. */
struct node *parse_block(struct scope *its_scope)
{
    struct node *node = new_node(S_BLOCK, at), **last = &node->list;
    expect("{");
    node->scope = its_scope != NULL ? its_scope : open_scope();
    while (!is(at, "}")) {
        if (tokens[at].kind == END)
            refuse(node->first, "this block is not closed");
        *last = parse_statement();
        with(node, *last);
        last = &(*last)->next;
    }
    at++;
    if (its_scope == NULL)
        close_scope();
    return finish(node);
}

static struct node *parse_for(void)
{
    struct node *node = new_node(S_FOR, at++);
    expect("(");
    node->scope = open_scope();
    if (is_type_start(at)) {
        node->a = parse_declaration();
    } else {
        if (!is(at, ";")) {
            node->a = new_node(S_EXPRESSION, at);
            node->a->a = parse_expression();
            with(node->a, node->a->a);
        }
        expect(";");
        if (node->a != NULL)
            finish(node->a);
    }
    if (!is(at, ";"))
        node->b = parse_expression();
    expect(";");
    if (!is(at, ")"))
        node->c = parse_expression();
    expect(")");
    node->d = parse_inner(node, true);
    close_scope();
    with(with(with(with(node, node->a), node->b), node->c), node->d);
    return finish(node);
}

/* async_for (declaration, generator, place of its status) statement */
static struct node *parse_each(void)
{
    struct node *node = new_node(S_EACH, at++);
    expect("(");
    node->scope = open_scope();
    awaits_here();
    struct specifiers *specifiers = parse_specifiers();
    struct declarator *d = parse_declarator(specifiers);
    if (specifiers->first == specifiers->end || d->name == 0 || specifiers->is_typedef ||
        specifiers->is_static || specifiers->is_extern || specifiers->is_automatic)
        refuse(node->first, "async_for begins with the declaration of a variable and its type: "
                            "async_for (int value, generator())");
    if (d->is_array || d->is_function || d->cleanup != 0)
        refuse(d->name, "the variable of async_for takes what is yielded: a number, a pointer or a "
                        "struct, without a cleanup function");
    expect(",");
    node->a = parse_assignment();
    if (accept(","))
        node->b = parse_assignment();
    if (node->b != NULL && node->b->awaits)
        refuse(node->b->first, "an await cannot stand in the place of a status");
    expect(")");
    d->symbol = declare(VARIABLE, d->name, d);
    node->declarators = d;
    node->specifiers = specifiers;
    node->d = parse_inner(node, true);
    close_scope();
    node->awaits = true;
    return finish(node);
}

static struct node *parse_yield(void)
{
    struct node *node = new_node(S_YIELD, at++);
    if (function->value == NULL)
        refuse(node->first, "only an async_generator yields");
    awaits_here();
    node->a = parse_expression();
    expect(";");
    node->awaits = true;
    return finish(node);
}

static struct node *parse_if(void)
{
    struct node *node = new_node(S_IF, at++);
    node->scope = open_scope();
    node->a = parse_parenthesised();
    node->b = parse_statement();
    if (accept("else"))
        node->c = parse_statement();
    close_scope();
    with(with(with(node, node->a), node->b), node->c);
    return finish(node);
}

static struct node *parse_do(void)
{
    struct node *node = new_node(S_DO, at++);
    node->b = parse_inner(node, true);
    expect("while");
    node->a = parse_parenthesised();
    expect(";");
    return finish(with(with(node, node->a), node->b));
}

/* A label belongs to the statement behind it. */
static struct node *parse_labelled(struct node *node)
{
    node->sign = at;
    if (!is(at, "}"))
        node->a = parse_statement();
    return finish(with(node, node->a));
}

static struct node *parse_case(void)
{
    struct node *node = new_node(S_LABEL, at);
    if (accept("default")) {
        expect(":");
    } else {
        at++;
        struct node *value = parse_condition();
        if (accept("..."))
            parse_condition();
        if (value->awaits)
            refuse(value->first, "a case is a constant: no await can stand in it");
        expect(":");
    }
    return parse_labelled(node);
}

static struct node *parse_copied(void)
{
    struct node *node = new_node(S_COPIED, at++);
    return finish(node);
}

/* Its operands are expressions, whose names are looked up; the rest is text. */
static struct node *parse_asm(void)
{
    struct node *node = new_node(S_COPIED, at++);
    while (is(at, "volatile") || is(at, "__volatile__") || is(at, "inline") || is(at, "__inline__"))
        at++;
    if (is(at, "goto"))
        refuse(at, "asm goto cannot stand in an async function");
    int end = closing(at);
    for (at++; at < end;) {
        if (is(at, "(")) {
            struct node *operand = parse_parenthesised();
            if (operand->kind == E_TOKENS && tokens[operand->first].symbol != NULL)
                tokens[operand->first].symbol->is_written = true;
            if (operand->awaits)
                refuse(operand->first, "an await cannot stand in an operand of asm");
        } else if (is(at, "[")) {
            at = closing(at) + 1;
        } else {
            at++;
        }
    }
    at = end + 1;
    expect(";");
    return finish(node);
}

static struct node *parse_defer(void)
{
    struct node *node = new_node(S_DEFER, at++);
    awaits_here();
    struct node *outer_loop = loop, *outer_breakable = breakable;
    loop = breakable = NULL;
    deferred++;
    node->a = parse_statement();
    deferred--;
    loop = outer_loop;
    breakable = outer_breakable;
    if (node->a->awaits)
        refuse(node->first,
               "a deferred statement cannot await: it runs when the frame is destroyed "
               "too");
    for (int i = node->a->first; i < node->a->end; i++) {
        if (is(i, "return") || is(i, "goto"))
            refuse(i, "a deferred statement cannot leave the function by '%s'", spelled(i));
    }
    node->awaits = true;
    return finish(node);
}

struct node *parse_statement(void)
{
    struct node *node;
    if (tokens[at].kind == PRAGMA || is(at, ";"))
        return parse_copied();
    if (is(at, "{"))
        return parse_block(NULL);
    if (is(at, "if"))
        return parse_if();
    if (is(at, "for"))
        return parse_for();
    if (is(at, "do"))
        return parse_do();
    if (is(at, "while") || is(at, "switch")) {
        bool is_loop = is(at, "while");
        node = new_node(is_loop ? S_WHILE : S_SWITCH, at++);
        node->a = parse_parenthesised();
        node->b = parse_inner(node, is_loop);
        return finish(with(with(node, node->a), node->b));
    }
    if (is(at, "case") || is(at, "default"))
        return parse_case();
    if (is(at, "goto")) {
        node = new_node(S_GOTO, at++);
        if (tokens[at].kind != NAME)
            refuse(at, "a goto to what is computed would miss what was kept");
        at++;
        expect(";");
        return finish(node);
    }
    if (is(at, "break") || is(at, "continue")) {
        bool is_break = is(at, "break");
        node = new_node(is_break ? S_BREAK : S_CONTINUE, at++);
        node->around = is_break ? breakable : loop;
        if (node->around == NULL)
            refuse(node->first, "a %s stands in a loop", spelled(node->first));
        if (!is_break)
            node->around->jumps = true;
        expect(";");
        return finish(node);
    }
    if (is(at, "return")) {
        node = new_node(S_RETURN, at++);
        if (!is(at, ";"))
            node->a = parse_expression();
        expect(";");
        return finish(with(node, node->a));
    }
    if (is(at, "asm") || is(at, "__asm__") || is(at, "__asm"))
        return parse_asm();
    if (is(at, "__label__"))
        refuse(at, "labels of a block's own are not translated");
    if (tokens[at].kind == NAME && is(at + 1, ":") && !is(at, "default")) {
        node = new_node(S_LABEL, at);
        struct symbol *label = take(sizeof *label);
        has_labels = true;
        label->kind = LABEL;
        label->name = spelled(at);
        label->scope = scope;
        label->token = at;
        label->next = scope->symbols;
        scope->symbols = label;
        at += 2;
        skip_attributes();
        return parse_labelled(node);
    }
    if (is(at, "defer") && find_symbol(at) == NULL)
        return parse_defer();
    if (is(at, "yield") && find_symbol(at) == NULL && !is(at + 1, "="))
        return parse_yield();
    if (is(at, "async_for") && is(at + 1, "("))
        return parse_each();
    if (is(at, "_Static_assert") || (is_type_start(at) && !is(at, "__extension__")) ||
        (is(at, "__extension__") && is_type_start(at + 1)))
        return parse_declaration();
    node = new_node(S_EXPRESSION, at);
    node->a = parse_expression();
    expect(";");
    return finish(with(node, node->a));
}
