/*
 * Parses expressions of GNU C, with await.
 */
#include "bidec.h"

#include <string.h>

void awaits_here(void)
{
    for (struct scope *s = scope; s != NULL && !s->awaits; s = s->up)
        s->awaits = true;
}

struct node *with_part(struct node *node, const struct node *part)
{
    if (part == NULL)
        return node;
    node->awaits |= part->awaits;
    if (node->depth <= part->depth)
        node->depth = part->depth + 1;
    if (node->depth > MAX_DEPTH)
        reject_at(node->first, "this has more parts than the translator can follow");
    return node;
}

int nesting;

void nest(void)
{
    if (++nesting > MAX_NESTING)
        reject_at(at, "this is nested more deeply than the translator can follow");
}

void append_part(struct node *node, struct node *part)
{
    struct node **last = &node->list;
    while (*last != NULL)
        last = &(*last)->next;
    *last = part;
    with_part(node, part);
}

static void reject_await(const struct node *node, const char *where)
{
    if (node->awaits)
        reject_at(node->first, "await is not allowed in %s", where);
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
        if (token_is(token, names[i]))
            return true;
    }
    return false;
}

/* The arguments are types and expressions; the member names of an offsetof are not looked up. */
static struct node *parse_builtin(void)
{
    struct node *node = new_node(E_TOKENS, at++);
    bool is_offset = token_is(node->first, "__builtin_offsetof");
    expect("(");
    while (!token_is(at, ")")) {
        if (is_type_start(at)) {
            parse_type_name();
        } else if (is_offset && tokens[at].kind == NAME) {
            at++;
            while (token_is(at, ".") || token_is(at, "[") || token_is(at, "->")) {
                if (token_is(at, "[")) {
                    at++;
                    reject_await(parse_expression(), "offsetof");
                    expect("]");
                } else {
                    at += 2;
                }
            }
        } else {
            reject_await(parse_assignment(), "a call of this builtin");
        }
        if (!accept(","))
            break;
    }
    expect(")");
    return finish_node(node);
}

static struct node *parse_generic(void)
{
    struct node *node = new_node(E_TOKENS, at++);
    expect("(");
    if (is_type_start(at))
        parse_type_name();
    else
        reject_await(parse_assignment(), "_Generic");
    while (accept(",")) {
        if (!accept("default"))
            parse_type_name();
        expect(":");
        reject_await(parse_assignment(), "_Generic");
    }
    expect(")");
    return finish_node(node);
}

static struct node *parse_initial(void)
{
    if (!token_is(at, "{"))
        return parse_assignment();
    struct node *node = new_node(E_INITIALISER, at++);
    while (!token_is(at, "}")) {
        struct node *element = new_node(E_ELEMENT, at);
        bool designated = false;
        while (token_is(at, ".") || token_is(at, "[")) {
            designated = true;
            if (accept(".")) {
                at++;
                continue;
            }
            at++;
            reject_await(parse_condition(), "a designator");
            if (accept("..."))
                reject_await(parse_condition(), "a designator");
            expect("]");
        }
        if (designated) {
            expect("=");
        } else if (tokens[at].kind == NAME && token_is(at + 1, ":") && find_symbol(at) == NULL) {
            at += 2; /* GNU's old designator */
        }
        element->sign = at;
        element->a = parse_initialiser();
        append_part(node, finish_node(with_part(element, element->a)));
        if (!accept(","))
            break;
    }
    expect("}");
    return finish_node(node);
}

struct node *parse_initialiser(void)
{
    nest();
    struct node *node = parse_initial();
    nesting--;
    return node;
}

static void reject_word(int token)
{
    static const char *const words[][2] = {
        {"setjmp", "setjmp saves a stack that is gone after an await"},
        {"_setjmp", "setjmp saves a stack that is gone after an await"},
        {"__sigsetjmp", "setjmp saves a stack that is gone after an await"},
        {"__builtin_setjmp", "setjmp saves a stack that is gone after an await"},
        {"alloca", "alloca's memory is gone after an await"},
        {"__builtin_alloca", "alloca's memory is gone after an await"},
        {"__builtin_va_start", "an async function cannot be variadic"},
        {"__builtin_return_address", "the caller of an async function is the code that resumes it"},
        {"__builtin_frame_address", "an async function's frame is not on the stack"},
        {"__builtin_apply_args", "an async function has no arguments on the stack"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (token_is(token, words[i][0]) && find_symbol(token) == NULL)
            reject_at(token, "%s", words[i][1]);
    }
}

static struct node *parse_primary(void)
{
    struct node *node;
    if (token_is(at, "(")) {
        node = new_node(E_PARENTHESES, at++);
        node->a = parse_expression();
        expect(")");
        return finish_node(with_part(node, node->a));
    }
    if (tokens[at].kind == STRING) {
        node = new_node(E_STRING, at);
        while (tokens[at].kind == STRING)
            at++;
        return finish_node(node);
    }
    if (tokens[at].kind == NUMBER) {
        node = new_node(E_CONSTANT, at++);
        return finish_node(node);
    }
    if (tokens[at].kind != NAME)
        reject_at(at, "expected an expression, not '%s'", spelling_of(at));
    if (token_is(at, "_Generic"))
        return parse_generic();
    if (is_block_builtin(at) && token_is(at + 1, "("))
        return parse_builtin();
    if (is_type_start(at))
        reject_at(at, "expected an expression, not the type '%s'", spelling_of(at));
    if (token_is(at + 1, "("))
        reject_word(at);
    if (token_is(at, "__func__") || token_is(at, "__FUNCTION__") ||
        token_is(at, "__PRETTY_FUNCTION__")) {
        node = new_node(E_STRING, at);
        mark_at(at++)->named = format_text("\"%s\"", function->name);
        return finish_node(node);
    }
    node = new_node(E_TOKENS, at);
    tokens[at].symbol = find_symbol(at);
    if (tokens[at].symbol != NULL && tokens[at].symbol->kind == ENUMERATOR)
        node->kind = E_CONSTANT;
    if (tokens[at].symbol != NULL)
        tokens[at].symbol->needs_memory |= deferred != 0;
    else
        note_outside(at);
    at++;
    return finish_node(node);
}

static struct node *parse_block_expression(void)
{
    struct node *node = new_node(E_BLOCK, at++);
    mark_at(node->first)->replaced = node;
    node->a = parse_block(NULL);
    expect(")");
    return finish_node(with_part(node, node->a));
}

/*
 * Returns the tokens that may name the variable of a place. A _Generic and a __builtin_choose_expr may
 * be any variable in them. The element of a vector belongs to the variable.
 */
static const struct node *place_of(const struct node *node)
{
    while (node->kind == E_PARENTHESES || node->kind == E_UNARY || node->kind == E_INDEX)
        node = node->a;
    return node;
}

static bool is_variable(const struct symbol *symbol, bool is_element)
{
    return symbol != NULL && symbol->kind == VARIABLE &&
           !(is_element && (symbol->declarator->is_pointer || symbol->declarator->is_array));
}

static bool has_element(const struct node *node)
{
    for (; node->kind == E_PARENTHESES || node->kind == E_UNARY || node->kind == E_INDEX;
         node = node->a) {
        if (node->kind == E_INDEX)
            return true;
    }
    return false;
}

/* A variable whose address is taken cannot be a local of the step function. */
static void note_address(const struct node *node)
{
    const struct node *place = place_of(node);
    for (int i = place->first; place->kind == E_TOKENS && i < place->end; i++) {
        if (is_variable(tokens[i].symbol, has_element(node)))
            tokens[i].symbol->needs_memory = true;
    }
}

void note_written(const struct node *node)
{
    const struct node *place = place_of(node);
    for (int i = place->first; place->kind == E_TOKENS && i < place->end; i++) {
        if (is_variable(tokens[i].symbol, has_element(node)))
            tokens[i].symbol->is_written = true;
    }
}

static struct node *parse_postfix(struct node *node)
{
    for (;;) {
        struct node *next;
        if (token_is(at, "(")) {
            next = new_node(E_CALL, node->first);
            at++;
            while (!token_is(at, ")")) {
                append_part(next, parse_assignment());
                if (!accept(","))
                    break;
            }
            expect(")");
            if (node->kind == E_TOKENS && token_is(node->first, "spawn") &&
                tokens[node->first].symbol == NULL && find_function("spawn", 5) == NULL) {
                if (is_synchronous(function))
                    reject_at(next->first, "spawn is not allowed in %s, which is a generator(...)",
                              function->name);
                next->kind = E_SPAWN;
                awaits_here();
                next->awaits = true;
                mark_at(next->first)->replaced = next;
            }
        } else if (token_is(at, "[")) {
            next = new_node(E_INDEX, node->first);
            at++;
            next->b = parse_expression();
            with_part(next, next->b);
            expect("]");
        } else if (token_is(at, ".") || token_is(at, "->")) {
            next = new_node(E_MEMBER, node->first);
            next->sign = at++;
            if (tokens[at].kind != NAME)
                reject_at(at, "expected the name of a member, not '%s'", spelling_of(at));
            at++;
        } else if (token_is(at, "++") || token_is(at, "--")) {
            next = new_node(E_POSTFIX, node->first);
            next->sign = at++;
            note_written(node);
        } else {
            return node;
        }
        next->a = node;
        node = finish_node(with_part(next, node));
    }
}

static struct node *parse_unary(void);

/* The parser is at the literal's braces. A literal is kept in the frame if its scope is. */
static struct node *parse_literal(struct node *node)
{
    node->kind = E_LITERAL;
    mark_at(node->first)->replaced = node;
    node->a = parse_initialiser();
    return finish_node(with_part(node, node->a));
}

static struct node *parse_cast_or_literal(void)
{
    struct node *node = new_node(E_CAST, at++);
    node->type = at;
    parse_type_name();
    node->type_end = at;
    expect(")");
    if (token_is(at, "{"))
        return parse_postfix(parse_literal(node));
    node->a = parse_unary();
    return finish_node(with_part(node, node->a));
}

/* An await in the operand is not run: what it would give has a size all the same. */
static struct node *parse_sizeof(void)
{
    struct node *node = new_node(E_SIZEOF, at++), *operand = NULL;
    if (token_is(at, "(") && is_type_start(at + 1)) {
        int open = at++;
        parse_type_name();
        expect(")");
        if (token_is(at, "{")) {
            struct node *literal = new_node(E_CAST, open);
            literal->type = open + 1;
            literal->type_end = at - 1;
            operand = parse_postfix(parse_literal(literal));
        }
    } else {
        operand = parse_unary();
    }
    if (operand != NULL && operand->awaits)
        *mark_at(node->first) = (struct mark){.unevaluated = at, .operand = operand};
    return finish_node(node);
}

static struct node *parse_await(void)
{
    struct node *node = new_node(E_AWAIT, at);
    if (accept("try"))
        function->passes_errors = node->passes_errors = true;
    if (is_synchronous(function))
        reject_at(at,
                  "await is not allowed in %s, which is a generator(...): async_generator(...) "
                  "may await",
                  function->name);
    at++;
    awaits_here();
    node->a = parse_unary();
    node->awaits = true;
    mark_at(node->first)->replaced = node;
    return finish_node(node);
}

/* Two names in a row, of which the first is no name of the program. */
bool is_try(int token)
{
    return is_name(token, "try") && tokens[token + 1].kind == NAME && find_symbol(token) == NULL &&
           !is_global_name(token);
}

static struct node *parse_operand(void)
{
    struct node *node;
    if (token_is(at, "(") && token_is(at + 1, "{"))
        return parse_postfix(parse_block_expression());
    if (token_is(at, "(") && is_type_start(at + 1))
        return parse_cast_or_literal();
    if (token_is(at, "await") && find_symbol(at) == NULL)
        return parse_await();
    if (is_async_block(at))
        return parse_async_block();
    if (is_try(at)) {
        if (!token_is(at + 1, "await"))
            reject_at(at, "try stands before an await, whose errors it passes on: try await %s",
                      spelling_of(at + 1));
        return parse_await();
    }
    if (token_is(at, "sizeof") || token_is(at, "_Alignof") || token_is(at, "alignof") ||
        token_is(at, "__alignof__") || token_is(at, "__alignof"))
        return parse_sizeof();
    if (token_is(at, "&&"))
        reject_at(at,
                  "the address of a label cannot be taken: a goto to it would bypass the cleanups");
    static const char *const operators[] = {
        "++",       "--",       "&",      "*",     "+", "-", "~", "!", "__extension__",
        "__real__", "__imag__", "__real", "__imag"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (token_is(at, operators[i])) {
            node = new_node(E_UNARY, at);
            node->sign = at++;
            node->a = parse_unary();
            if (token_is(node->sign, "&"))
                note_address(node->a);
            if (token_is(node->sign, "++") || token_is(node->sign, "--"))
                note_written(node->a);
            return finish_node(with_part(node, node->a));
        }
    }
    return parse_postfix(parse_primary());
}

static struct node *parse_unary(void)
{
    nest();
    struct node *node = parse_operand();
    nesting--;
    return node;
}

static int operator_precedence(int token)
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
        if (token_is(token, known[i].text))
            return known[i].precedence;
    }
    return 0;
}

static struct node *parse_binary(int min_precedence)
{
    struct node *left = parse_unary();
    for (int p; (p = operator_precedence(at)) >= min_precedence && p > 0;) {
        struct node *node = new_node(E_BINARY, left->first);
        node->sign = at++;
        node->a = left;
        node->b = parse_binary(p + 1);
        with_part(with_part(node, node->a), node->b);
        left = finish_node(node);
    }
    return left;
}

static struct node *parse_choice(void)
{
    struct node *left = parse_binary(1);
    if (!token_is(at, "?"))
        return left;
    struct node *node = new_node(E_CONDITION, left->first);
    node->sign = at++;
    node->a = left;
    if (!token_is(at, ":"))
        node->b = parse_expression();
    expect(":");
    node->c = parse_condition();
    with_part(with_part(with_part(node, node->a), node->b), node->c);
    return finish_node(node);
}

struct node *parse_condition(void)
{
    nest();
    struct node *node = parse_choice();
    nesting--;
    return node;
}

static struct node *parse_assigned(void)
{
    static const char *const operators[] = {
        "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|="};
    struct node *left = parse_condition();
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (tokens[at].kind == PUNCTUATOR && token_is(at, operators[i])) {
            struct node *node = new_node(E_ASSIGN, left->first);
            node->sign = at++;
            node->a = left;
            note_written(left);
            node->b = parse_assignment();
            with_part(with_part(node, node->a), node->b);
            return finish_node(node);
        }
    }
    return left;
}

struct node *parse_assignment(void)
{
    nest();
    struct node *node = parse_assigned();
    nesting--;
    return node;
}

struct node *parse_expression(void)
{
    struct node *left = parse_assignment();
    while (token_is(at, ",")) {
        struct node *node = new_node(E_COMMA, left->first);
        node->sign = at++;
        node->a = left;
        node->b = parse_assignment();
        with_part(with_part(node, node->a), node->b);
        left = finish_node(node);
    }
    return left;
}
