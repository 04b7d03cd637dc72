/*
 * Expressions of GNU C, and await.
 */
#include "bidec.h"

#include <string.h>

/* An await stands here: what is declared around it is kept in the frame. */
void awaits_here(void)
{
    for (struct scope *s = scope; s != NULL; s = s->up)
        s->awaits = true;
}

static struct node *with(struct node *node, struct node *part)
{
    if (part != NULL)
        node->awaits |= part->awaits;
    return node;
}

static void append(struct node *node, struct node *part)
{
    struct node **last = &node->list;
    while (*last != NULL)
        last = &(*last)->next;
    *last = part;
    with(node, part);
}

static void refuse_await(const struct node *node, const char *where)
{
    if (node->awaits)
        refuse(node->first, "an await cannot stand in %s", where);
}

static bool is_block_builtin(int token)
{
    static const char *const names[] = {"__builtin_va_arg",
                                        "__builtin_offsetof",
                                        "offsetof",
                                        "__builtin_types_compatible_p",
                                        "__builtin_choose_expr",
                                        "__builtin_convertvector",
                                        "__builtin_tgmath"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is(token, names[i]))
            return true;
    }
    return false;
}

/* Types and expressions, as these take them; the names in a member's place are nobody's. */
static struct node *parse_builtin(void)
{
    struct node *node = new_node(E_TOKENS, at++);
    bool is_offset = is(node->first, "__builtin_offsetof");
    expect("(");
    while (!is(at, ")")) {
        if (is_type_start(at)) {
            parse_type_name();
        } else if (is_offset && tokens[at].kind == NAME) {
            at++;
            while (is(at, ".") || is(at, "[") || is(at, "->")) {
                if (is(at, "[")) {
                    at++;
                    refuse_await(parse_expression(), "this");
                    expect("]");
                } else {
                    at += 2;
                }
            }
        } else {
            refuse_await(parse_assignment(), "this");
        }
        if (!accept(","))
            break;
    }
    expect(")");
    return finish(node);
}

static struct node *parse_generic(void)
{
    struct node *node = new_node(E_TOKENS, at++);
    expect("(");
    if (is_type_start(at))
        parse_type_name();
    else
        refuse_await(parse_assignment(), "_Generic");
    while (accept(",")) {
        if (!accept("default"))
            parse_type_name();
        expect(":");
        refuse_await(parse_assignment(), "_Generic");
    }
    expect(")");
    return finish(node);
}

struct node *parse_initialiser(void)
{
    if (!is(at, "{"))
        return parse_assignment();
    struct node *node = new_node(E_INITIALISER, at++);
    while (!is(at, "}")) {
        struct node *element = new_node(E_ELEMENT, at);
        bool designated = false;
        while (is(at, ".") || is(at, "[")) {
            designated = true;
            if (accept(".")) {
                at++;
                continue;
            }
            at++;
            refuse_await(parse_condition(), "a designator");
            if (accept("..."))
                refuse_await(parse_condition(), "a designator");
            expect("]");
        }
        if (designated) {
            expect("=");
        } else if (tokens[at].kind == NAME && is(at + 1, ":") && find_symbol(at) == NULL) {
            at += 2; /* GNU's old designator */
        }
        element->sign = at;
        element->a = parse_initialiser();
        append(node, finish(with(element, element->a)));
        if (!accept(","))
            break;
    }
    expect("}");
    return finish(node);
}

static void refuse_word(int token)
{
    static const char *const words[][2] = {
        {"setjmp", "setjmp remembers a stack that is gone after an await"},
        {"_setjmp", "setjmp remembers a stack that is gone after an await"},
        {"__sigsetjmp", "setjmp remembers a stack that is gone after an await"},
        {"__builtin_setjmp", "setjmp remembers a stack that is gone after an await"},
        {"alloca", "alloca's memory is gone after an await"},
        {"__builtin_alloca", "alloca's memory is gone after an await"},
        {"__builtin_va_start", "an async function has no arguments without a name"},
        {"__builtin_return_address", "an async function is called by whatever resumes it"},
        {"__builtin_frame_address", "an async function's frame is not on the stack"},
        {"__builtin_apply_args", "an async function has no arguments on the stack"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (is(token, words[i][0]) && find_symbol(token) == NULL)
            refuse(token, "%s", words[i][1]);
    }
}

static struct node *parse_primary(void)
{
    struct node *node;
    if (is(at, "(")) {
        node = new_node(E_PARENTHESES, at++);
        node->a = parse_expression();
        expect(")");
        return finish(with(node, node->a));
    }
    if (tokens[at].kind == STRING) {
        node = new_node(E_STRING, at);
        while (tokens[at].kind == STRING)
            at++;
        return finish(node);
    }
    if (tokens[at].kind == NUMBER) {
        node = new_node(E_CONSTANT, at++);
        return finish(node);
    }
    if (tokens[at].kind != NAME)
        refuse(at, "here should stand an expression, not '%s'", spelled(at));
    if (is(at, "_Generic"))
        return parse_generic();
    if (is_block_builtin(at) && is(at + 1, "("))
        return parse_builtin();
    if (is_type_start(at))
        refuse(at, "here should stand an expression, not the type '%s'", spelled(at));
    if (is(at + 1, "("))
        refuse_word(at);
    if (is(at, "__func__") || is(at, "__FUNCTION__") || is(at, "__PRETTY_FUNCTION__")) {
        node = new_node(E_STRING, at);
        mark(at++)->named = print("\"%s\"", function->name);
        return finish(node);
    }
    node = new_node(E_TOKENS, at);
    tokens[at].symbol = find_symbol(at);
    if (tokens[at].symbol != NULL && tokens[at].symbol->kind == ENUMERATOR)
        node->kind = E_CONSTANT;
    if (tokens[at].symbol != NULL) {
        tokens[at].symbol->last_use = at;
        tokens[at].symbol->needs_memory |= deferred != 0;
    }
    at++;
    return finish(node);
}

static struct node *parse_block_expression(void)
{
    struct node *node = new_node(E_BLOCK, at++);
    node->a = parse_block(NULL);
    expect(")");
    return finish(with(node, node->a));
}

static struct symbol *variable_of(const struct node *node)
{
    while (node->kind == E_PARENTHESES || node->kind == E_UNARY)
        node = node->a;
    return node->kind == E_TOKENS ? tokens[node->first].symbol : NULL;
}

/* A variable whose address is taken is in memory all the time. */
static void note_address(const struct node *node)
{
    struct symbol *symbol = variable_of(node);
    if (symbol != NULL)
        symbol->needs_memory = true;
}

static void note_written(const struct node *node)
{
    struct symbol *symbol = variable_of(node);
    if (symbol != NULL)
        symbol->is_written = true;
}

static struct node *parse_postfix(struct node *node)
{
    for (;;) {
        struct node *next;
        if (is(at, "(")) {
            next = new_node(E_CALL, node->first);
            at++;
            while (!is(at, ")")) {
                append(next, parse_assignment());
                if (!accept(","))
                    break;
            }
            expect(")");
            if (node->kind == E_TOKENS && is(node->first, "spawn") &&
                tokens[node->first].symbol == NULL && find_function("spawn", 5) == NULL) {
                next->kind = E_SPAWN;
                awaits_here();
                next->awaits = true;
                mark(next->first)->replaced = next;
            }
        } else if (is(at, "[")) {
            next = new_node(E_INDEX, node->first);
            at++;
            next->b = parse_expression();
            with(next, next->b);
            expect("]");
        } else if (is(at, ".") || is(at, "->")) {
            next = new_node(E_MEMBER, node->first);
            next->sign = at++;
            if (tokens[at].kind != NAME)
                refuse(at, "here should stand a member's name");
            at++;
        } else if (is(at, "++") || is(at, "--")) {
            next = new_node(E_POSTFIX, node->first);
            next->sign = at++;
            note_written(node);
        } else {
            return node;
        }
        next->a = node;
        node = finish(with(next, node));
    }
}

static struct node *parse_unary(void);

/* The literal's braces follow: it is kept where its scope is kept. */
static struct node *parse_literal(struct node *node)
{
    node->kind = E_LITERAL;
    mark(node->first)->replaced = node;
    node->a = parse_initialiser();
    return finish(with(node, node->a));
}

static struct node *parse_cast_or_literal(void)
{
    struct node *node = new_node(E_CAST, at++);
    node->type = at;
    parse_type_name();
    node->type_end = at;
    expect(")");
    if (is(at, "{"))
        return parse_postfix(parse_literal(node));
    node->a = parse_unary();
    return finish(with(node, node->a));
}

static struct node *parse_sizeof(void)
{
    struct node *node = new_node(E_SIZEOF, at++);
    if (is(at, "(") && is_type_start(at + 1)) {
        int open = at++;
        parse_type_name();
        expect(")");
        if (is(at, "{")) {
            struct node *literal = new_node(E_CAST, open);
            literal->type = open + 1;
            literal->type_end = at - 1;
            refuse_await(parse_postfix(parse_literal(literal)), "sizeof");
        }
    } else {
        refuse_await(parse_unary(), "sizeof");
    }
    return finish(node);
}

static struct node *parse_await(void)
{
    struct node *node = new_node(E_AWAIT, at++);
    awaits_here();
    node->a = parse_unary();
    node->awaits = true;
    mark(node->first)->replaced = node;
    return finish(node);
}

static struct node *parse_unary(void)
{
    struct node *node;
    if (is(at, "(") && is(at + 1, "{"))
        return parse_postfix(parse_block_expression());
    if (is(at, "(") && is_type_start(at + 1))
        return parse_cast_or_literal();
    if (is(at, "await") && find_symbol(at) == NULL)
        return parse_await();
    if (is(at, "sizeof") || is(at, "_Alignof") || is(at, "alignof") || is(at, "__alignof__") ||
        is(at, "__alignof"))
        return parse_sizeof();
    if (is(at, "&&"))
        refuse(at, "the address of a label cannot be had: a goto to it would miss what was kept");
    static const char *const operators[] = {
        "++",       "--",       "&",      "*",     "+", "-", "~", "!", "__extension__",
        "__real__", "__imag__", "__real", "__imag"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (is(at, operators[i])) {
            node = new_node(E_UNARY, at);
            node->sign = at++;
            node->a = parse_unary();
            if (is(node->sign, "&"))
                note_address(node->a);
            if (is(node->sign, "++") || is(node->sign, "--"))
                note_written(node->a);
            return finish(with(node, node->a));
        }
    }
    return parse_postfix(parse_primary());
}

static int precedence(int token)
{
    static const struct {
        const char *text;
        int precedence;
    } known[] = {{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9},  {"-", 9},  {"<<", 8},
                 {">>", 8}, {"<", 7},  {">", 7},  {"<=", 7}, {">=", 7}, {"==", 6},
                 {"!=", 6}, {"&", 5},  {"^", 4},  {"|", 3},  {"&&", 2}, {"||", 1}};
    if (tokens[token].kind != PUNCTUATOR)
        return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (is(token, known[i].text))
            return known[i].precedence;
    }
    return 0;
}

static struct node *parse_binary(int least)
{
    struct node *left = parse_unary();
    for (int p; (p = precedence(at)) >= least && p > 0;) {
        struct node *node = new_node(E_BINARY, left->first);
        node->sign = at++;
        node->a = left;
        node->b = parse_binary(p + 1);
        with(with(node, node->a), node->b);
        left = finish(node);
    }
    return left;
}

struct node *parse_condition(void)
{
    struct node *left = parse_binary(1);
    if (!is(at, "?"))
        return left;
    struct node *node = new_node(E_CONDITION, left->first);
    node->sign = at++;
    node->a = left;
    if (!is(at, ":"))
        node->b = parse_expression();
    expect(":");
    node->c = parse_condition();
    with(with(with(node, node->a), node->b), node->c);
    return finish(node);
}

struct node *parse_assignment(void)
{
    static const char *const operators[] = {
        "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|="};
    struct node *left = parse_condition();
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (tokens[at].kind == PUNCTUATOR && is(at, operators[i])) {
            struct node *node = new_node(E_ASSIGN, left->first);
            node->sign = at++;
            node->a = left;
            note_written(left);
            node->b = parse_assignment();
            with(with(node, node->a), node->b);
            return finish(node);
        }
    }
    return left;
}

struct node *parse_expression(void)
{
    struct node *left = parse_assignment();
    while (is(at, ",")) {
        struct node *node = new_node(E_COMMA, left->first);
        node->sign = at++;
        node->a = left;
        node->b = parse_assignment();
        with(with(node, node->a), node->b);
        left = finish(node);
    }
    return left;
}
