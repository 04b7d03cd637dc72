/*
 * Parses statements, with the loops, labels and deferred statements of a function.
 */
#include "bidec.h"

#include <string.h>

static struct node *loop, *breakable; /* the targets of continue and break */
int deferred;

/* The statement of an if, a loop or a switch is a block, with or without braces. */
struct node *parse_substatement(void)
{
    bool opens = !token_is(at, "{");
    if (opens)
        open_scope()->has_no_braces = true;
    struct node *node = parse_statement();
    if (opens)
        close_scope();
    return node;
}

/* Parses the body of a loop or a switch. */
static struct node *parse_inner(struct node *node, bool is_loop)
{
    struct node *outer_loop = loop, *outer_breakable = breakable;
    breakable = node;
    if (is_loop) {
        loop = node;
    }
    struct node *inner = parse_substatement();
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

/* The token behind the statement at `start`, which has an error: it ends at a ; or a }. */
static int end_of_wrong_statement(int start)
{
    const bool is_declaration = is_type_start(start);
    for (int i = start; tokens[i].kind != END; i++) {
        if (token_is(i, ";"))
            return i + 1;
        if (token_is(i, "}"))
            return i;
        if (!token_is(i, "(") && !token_is(i, "[") && !token_is(i, "{"))
            continue;
        bool is_block = token_is(i, "{") && !is_declaration;
        int close = find_closing_bracket(i);
        if (close == 0)
            continue;
        i = close;
        if (is_block && !token_is(i + 1, ";") && !token_is(i + 1, ",") && !token_is(i + 1, ")") &&
            !token_is(i + 1, "else") && !token_is(i + 1, "while"))
            return i + 1;
    }
    return token_count - 1;
}

/* Returns NULL if the statement has an error; the parser is behind it then. */
static struct node *parse_or_recover(void)
{
    struct node *const outer_loop = loop, *const outer_breakable = breakable;
    const int start = at, outer_deferred = deferred;
    struct recovery here = {.outer = recovery, .scope = scope, .nesting = nesting};
    if (setjmp(here.place) != 0) {
        recovery = here.outer;
        while (scope != here.scope)
            close_scope();
        nesting = here.nesting;
        loop = outer_loop;
        breakable = outer_breakable;
        deferred = outer_deferred;
        at = end_of_wrong_statement(start);
        return NULL;
    }
    recovery = &here;
    struct node *node = parse_statement();
    recovery = here.outer;
    return node;
}

/* A block is a scope; the scope of a function's body also holds the parameters. */
struct node *parse_block(struct scope *its_scope)
{
    struct node *node = new_node(S_BLOCK, at), **last = &node->list;
    expect("{");
    node->scope = its_scope != NULL ? its_scope : open_scope();
    if (its_scope != NULL && function->is_block)
        at = function->first_statement;
    while (!token_is(at, "}")) {
        if (tokens[at].kind == END)
            reject_at(node->first, "this block is not closed");
        struct node *statement = parse_or_recover();
        if (statement == NULL)
            continue;
        *last = statement;
        with_part(node, statement);
        last = &statement->next;
    }
    at++;
    if (its_scope == NULL)
        close_scope();
    return finish_node(node);
}

static struct node *parse_for(void)
{
    struct node *node = new_node(S_FOR, at++);
    expect("(");
    node->scope = open_scope();
    if (is_type_start(at)) {
        node->a = parse_declaration();
    } else {
        if (!token_is(at, ";")) {
            node->a = new_node(S_EXPRESSION, at);
            node->a->a = parse_expression();
            with_part(node->a, node->a->a);
        }
        expect(";");
        if (node->a != NULL)
            finish_node(node->a);
    }
    if (!token_is(at, ";"))
        node->b = parse_expression();
    expect(";");
    if (!token_is(at, ")"))
        node->c = parse_expression();
    expect(")");
    node->d = parse_inner(node, true);
    close_scope();
    with_part(with_part(with_part(with_part(node, node->a), node->b), node->c), node->d);
    return finish_node(node);
}

/* async_for (declaration, generator, status) statement */
static struct node *parse_each(void)
{
    struct node *node = new_node(S_EACH, at);
    if (accept("try"))
        function->passes_errors = node->passes_errors = true;
    at++;
    expect("(");
    node->scope = open_scope();
    awaits_here();
    struct specifiers *specifiers = parse_specifiers();
    struct declarator *d = parse_declarator(specifiers);
    if (specifiers->first == specifiers->end || d->name == 0 || specifiers->is_typedef ||
        specifiers->is_static || specifiers->is_extern || specifiers->is_automatic)
        reject_at(node->first, "async_for begins with the declaration of a variable: "
                               "async_for (int value, generator())");
    if (d->is_array || d->is_function || d->cleanup != 0)
        reject_at(d->name,
                  "the variable of async_for must be a number, a pointer or a struct, without a "
                  "cleanup function");
    expect(",");
    node->a = parse_assignment();
    if (accept(","))
        note_written(node->b = parse_assignment());
    if (node->b != NULL && node->b->awaits)
        reject_at(node->b->first, "await is not allowed in the status of async_for");
    expect(")");
    d->symbol = declare(VARIABLE, d->name, d);
    node->declarators = d;
    node->specifiers = specifiers;
    node->d = parse_inner(node, true);
    close_scope();
    node->awaits = true;
    return finish_node(node);
}

static struct node *parse_yield(void)
{
    struct node *node = new_node(S_YIELD, at);
    if (token_is(at++, "yield_from")) {
        if (function->value == NULL || strcmp(function->generator, "bide_recursive_generator") != 0)
            reject_at(node->first, "yield_from is allowed only in a recursive_generator");
        function->passes_errors = node->passes_errors = true;
    } else if (function->kind != NULL) {
        check_kind_yields(node->first);
    } else if (function->value == NULL) {
        reject_at(
            node->first,
            "yield is allowed only in an async_generator, a generator or a recursive_generator");
    }
    awaits_here();
    node->a = parse_expression();
    expect(";");
    node->awaits = true;
    return finish_node(node);
}

static struct node *parse_if(void)
{
    struct node *node = new_node(S_IF, at++);
    node->scope = open_scope();
    node->scope->has_no_braces = true;
    node->a = parse_parenthesised();
    node->b = parse_substatement();
    if (accept("else"))
        node->c = parse_substatement();
    close_scope();
    with_part(with_part(with_part(node, node->a), node->b), node->c);
    return finish_node(node);
}

static struct node *parse_do(void)
{
    struct node *node = new_node(S_DO, at++);
    open_scope()->has_no_braces = true;
    node->b = parse_inner(node, true);
    expect("while");
    node->a = parse_parenthesised();
    expect(";");
    close_scope();
    return finish_node(with_part(with_part(node, node->a), node->b));
}

/* A label belongs to the statement after it. */
static struct node *parse_labelled(struct node *node)
{
    node->sign = at;
    if (!token_is(at, "}"))
        node->a = parse_statement();
    return finish_node(with_part(node, node->a));
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
            reject_at(value->first, "await is not allowed in a case label, which is a constant");
        expect(":");
    }
    return parse_labelled(node);
}

static struct node *parse_copied(void)
{
    struct node *node = new_node(S_COPIED, at++);
    return finish_node(node);
}

/* The operands of asm are expressions; the rest of it is copied. */
static struct node *parse_asm(void)
{
    struct node *node = new_node(S_COPIED, at++);
    while (token_is(at, "volatile") || token_is(at, "__volatile__") || token_is(at, "inline") ||
           token_is(at, "__inline__"))
        at++;
    if (token_is(at, "goto"))
        reject_at(at, "asm goto is not allowed in an async function");
    int end = closing_bracket(at);
    for (at++; at < end;) {
        if (token_is(at, "(")) {
            struct node *operand = parse_parenthesised();
            note_written(operand);
            if (operand->awaits)
                reject_at(operand->first, "await is not allowed in an operand of asm");
        } else if (token_is(at, "[")) {
            at = closing_bracket(at) + 1;
        } else {
            at++;
        }
    }
    at = end + 1;
    expect(";");
    return finish_node(node);
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
        reject_at(node->first,
                  "a deferred statement cannot await, because it also runs when the frame is "
                  "destroyed");
    for (int i = node->a->first; i < node->a->end; i++) {
        if (token_is(i, "return") || token_is(i, "goto"))
            reject_at(i, "'%s' is not allowed in a deferred statement", spelling_of(i));
    }
    node->awaits = true;
    return finish_node(node);
}

static struct node *parse_any_statement(void)
{
    struct node *node;
    if (is_standard_attribute(at)) {
        const int first = at;
        skip_attributes();
        if (!token_is(at, ";") && !is_type_start(at))
            return parse_statement(); /* without them */
        const bool alone = token_is(at, ";");
        at = first;
        if (!alone)
            return parse_declaration();
        node = new_node(S_COPIED, first);
        skip_attributes();
        expect(";");
        return finish_node(node);
    }
    if (tokens[at].kind == PRAGMA || token_is(at, ";"))
        return parse_copied();
    if (token_is(at, "{"))
        return parse_block(NULL);
    if (token_is(at, "if"))
        return parse_if();
    if (token_is(at, "for"))
        return parse_for();
    if (token_is(at, "do"))
        return parse_do();
    if (token_is(at, "while") || token_is(at, "switch")) {
        bool is_loop = token_is(at, "while");
        node = new_node(is_loop ? S_WHILE : S_SWITCH, at++);
        open_scope()->has_no_braces = true;
        node->a = parse_parenthesised();
        node->b = parse_inner(node, is_loop);
        close_scope();
        return finish_node(with_part(with_part(node, node->a), node->b));
    }
    if (token_is(at, "case") || token_is(at, "default"))
        return parse_case();
    if (token_is(at, "goto")) {
        node = new_node(S_GOTO, at++);
        if (tokens[at].kind != NAME)
            reject_at(at, "a computed goto would bypass the cleanups");
        at++;
        expect(";");
        return finish_node(node);
    }
    if (token_is(at, "break") || token_is(at, "continue")) {
        bool is_break = token_is(at, "break");
        node = new_node(is_break ? S_BREAK : S_CONTINUE, at++);
        node->around = is_break ? breakable : loop;
        if (node->around == NULL)
            reject_at(node->first, "%s outside of a loop", spelling_of(node->first));
        if (!is_break)
            node->around->jumps = true;
        expect(";");
        return finish_node(node);
    }
    if (token_is(at, "return")) {
        node = new_node(S_RETURN, at++);
        if (!token_is(at, ";"))
            node->a = parse_expression();
        expect(";");
        return finish_node(with_part(node, node->a));
    }
    if (token_is(at, "asm") || token_is(at, "__asm__") || token_is(at, "__asm"))
        return parse_asm();
    if (token_is(at, "__label__"))
        reject_at(at, "local labels (__label__) are not supported");
    if (tokens[at].kind == NAME && token_is(at + 1, ":") && !token_is(at, "default")) {
        node = new_node(S_LABEL, at);
        at += 2;
        skip_attributes();
        return parse_labelled(node);
    }
    if (token_is(at, "defer") && find_symbol(at) == NULL)
        return parse_defer();
    if (token_is(at, "yield") && find_symbol(at) == NULL && !token_is(at + 1, "="))
        return parse_yield();
    if (token_is(at, "yield_from") && find_symbol(at) == NULL &&
        (tokens[at + 1].kind == NAME || token_is(at + 1, "&") || token_is(at + 1, "*")))
        return parse_yield();
    if (is_name(at, "async_capture") && tokens[at + 1].kind == NAME && find_symbol(at) == NULL)
        reject_at(at, "async_capture stands at the beginning of an async block");
    if (token_is(at + is_try(at), "async_select") && token_is(at + is_try(at) + 1, "("))
        return parse_select();
    if (token_is(at + is_try(at), "async_for") && token_is(at + is_try(at) + 1, "("))
        return parse_each();
    if (token_is(at, "_Static_assert") || (is_type_start(at) && !token_is(at, "__extension__")) ||
        (token_is(at, "__extension__") && is_type_start(at + 1)))
        return parse_declaration();
    node = new_node(S_EXPRESSION, at);
    node->a = parse_expression();
    expect(";");
    return finish_node(with_part(node, node->a));
}

struct node *parse_statement(void)
{
    nest();
    struct node *node = parse_any_statement();
    nesting--;
    return node;
}
