/*
 * Calls that need an await and have none, and awaits where there can be none. Each gets a sentence that
 * says what to do; the compiler would speak of arguments and types.
 */
#include "bidec.h"

static void check_calls(const struct node *node);

static void check_list(const struct node *list)
{
    for (; list != NULL; list = list->next)
        check_calls(list);
}

/* What is awaited, or given to what is awaited. */
static void check_awaited(const struct node *node)
{
    while (node->kind == E_PARENTHESES || is_discarded(node))
        node = node->a;
    const struct function *f = called_function(node);
    if (is_pointer_call(node)) {
        check_pointer_call(node);
        check_list(node->list);
    } else if (group_of(node) != NULL) {
        for (const struct node *part = node->list; part != NULL; part = part->next)
            check_awaited(part);
    } else if (f != NULL && f->makes_awaiter) {
        int number = needs_waiter(f, node) && !is_here(node->list) ? 1 : 0;
        for (const struct node *part = node->list; part != NULL; part = part->next, number++) {
            if (number < 16 && f->takes_awaiter[number])
                check_awaited(part);
            else
                check_calls(part);
        }
    } else if (f != NULL && f->is_async) {
        check_list(node->list);
    } else {
        check_calls(node);
    }
}

/* The name of an async function as a value. */
static void check_name(int token)
{
    const struct token *t = &tokens[token];
    const struct function *f = t->kind == NAME ? find_function(t->at, t->length) : NULL;
    if (f != NULL && f->is_async)
        report_at(token, "%s is %s: a pointer at it is async_pointer_to(%s)", f->name,
                  is_synchronous(f) ? "a generator" : "async", f->name);
}

/* The initialiser of a variable of the file. */
void check_initialiser(int first, int end)
{
    for (int i = first; i < end; i++) {
        if (!token_is(i - 1, ".") && !token_is(i - 1, "->") && !token_is(i - 1, "(") &&
            !token_is(i + 1, "("))
            check_name(i);
    }
}

static void check_call(const struct node *node)
{
    const struct function *f = called_function(node);
    if (is_pointer_call(node))
        report_at(node->first, "async_call is awaited or spawned: await async_call(pointer, ...)");
    if (f == NULL)
        return;
    if (f->is_block)
        reject_at(node->first, "an async block is begun by await, by spawn(), or by an "
                               "operation that is awaited and takes it");
    if (f->is_async)
        report_at(node->first, "%s is %s: %s, or start it with async_%s(frame, ...)", f->name,
                  is_synchronous(f) ? "a generator" : "async",
                  f->value != NULL ? "iterate it with async_for" : "await it", f->name);
    if (f->makes_awaiter && needs_waiter(f, node))
        report_at(node->first,
                  "%s is an operation: await it; without an await it takes its %s * as first "
                  "argument",
                  f->shown, f->waiter);
}

/* A function without a result that passes errors on: only another try sees them. */
static void check_errors(const struct node *await)
{
    const struct node *of = await->a;
    while (of->kind == E_PARENTHESES)
        of = of->a;
    const struct function *f = called_function(of);
    if (f != NULL && f->is_async && f->returns_nothing && f->passes_errors && !await->passes_errors)
        reject_at(
            await->first,
            "%s passes errors on and returns nothing, so they would be lost: try await it, or "
            "cast the await to void",
            f->name);
}

/* The await that a cast to void discards, or NULL. */
static const struct node *discarded_await(const struct node *node)
{
    if (!is_discarded(node))
        return NULL;
    for (node = node->a; node->kind == E_PARENTHESES;)
        node = node->a;
    return node->kind == E_AWAIT ? node : NULL;
}

static void check_calls(const struct node *node)
{
    for (const struct declarator *d = node->declarators; d != NULL; d = d->next) {
        if (node->kind == S_DECLARATION && d->initialiser != NULL)
            check_calls(d->initialiser);
    }
    switch (node->kind) {
    case E_AWAIT:
        check_kind_awaits(node->first);
        check_errors(node);
        check_awaited(node->a);
        return;
    case E_CAST:
        if (discarded_await(node) == NULL)
            break;
        check_awaited(discarded_await(node)->a);
        return;
    case E_SPAWN:
        for (const struct node *part = node->list; part != NULL; part = part->next)
            check_awaited(part);
        return;
    case S_SELECT:
        check_kind_awaits(node->first);
        break;
    case S_WHEN:
        check_awaited(node->a);
        check_calls(node->b);
        return;
    case S_YIELD:
        if (!node->passes_errors)
            break;
        check_awaited(node->a);
        return;
    case S_EACH:
        if (synchronous_generator(node) == NULL)
            check_kind_awaits(node->first);
        check_awaited(node->a);
        if (node->b != NULL)
            check_calls(node->b);
        check_calls(node->d);
        return;
    case E_CALL:
        check_call(node);
        if (node->a->kind == E_TOKENS) {
            check_list(node->list);
            return;
        }
        break;
    case E_TOKENS:
        if (node->end == node->first + 1 && tokens[node->first].symbol == NULL)
            check_name(node->first);
        break;
    default:
        break;
    }
    const struct node *const parts[] = {node->a, node->b, node->c, node->d};
    for (size_t i = 0; i < 4; i++) {
        if (parts[i] != NULL)
            check_calls(parts[i]);
    }
    check_list(node->list);
}

void check_function(void)
{
    check_calls(function->body);
}

/* True if the word is declared earlier in the body, or names a tag. */
static bool is_named_here(int first, int token)
{
    static const char *const ends[] = {";", ",", "=", "["};
    if (token_is(token - 1, "struct") || token_is(token - 1, "union") ||
        token_is(token - 1, "enum"))
        return true;
    for (int i = first; i < token; i++) {
        for (size_t n = 0; n < sizeof ends / sizeof *ends; n++) {
            if (is_name(i, spelling_of(token)) && token_is(i + 1, ends[n]))
                return true;
        }
    }
    return false;
}

static bool is_member(int token)
{
    return token_is(token - 1, ".") || token_is(token - 1, "->");
}

/*
 * A call of `spawn`: it is not declared between `from`, the name of the function, and here, by a name or a star in front
 * or otherwise than by a call.
 */
static bool is_spawn(int from, int token)
{
    if (!is_name(token, "spawn") || !token_is(token + 1, "(") || is_member(token))
        return false;
    for (int i = from; i <= token; i++) {
        bool is_call = tokens[i - 1].kind != NAME && !token_is(i - 1, "*") && token_is(i + 1, "(");
        is_call = is_call || token_is(i - 1, "return") || token_is(i - 1, "else") ||
                  token_is(i - 1, "do");
        if (is_name(i, "spawn") && !is_member(i) && !is_call)
            return false;
    }
    return true;
}

/* A plain function: two words in a row, of which the first is a word of async functions. */
void check_plain_body(int function_name, int first, int end)
{
    const char *name = spelling_of(function_name);
    for (int i = first; i < end; i++) {
        enum token_kind next = (enum token_kind)tokens[i + 1].kind;
        bool is_await = is_name(i, "await") && (next == NAME || token_is(i + 1, "("));
        bool is_each =
            (is_name(i, "async_for") || is_name(i, "async_select") || is_name(i, "async_call")) &&
            token_is(i + 1, "(");
        bool is_yield = is_name(i, "yield") && (next == NAME || next == NUMBER || next == STRING);
        bool is_defer = is_name(i, "defer") && (next == NAME || token_is(i + 1, "{"));
        bool spawns = is_spawn(function_name, i);
        if (!is_await && !is_each && !is_yield && !is_defer && !spawns && !is_async_block(i))
            continue;
        if (tokens[i].system || is_global_name(i) || is_named_here(first, i))
            continue;
        if (is_yield)
            report_at(i,
                      "yield is used in %s, which is a plain function: declare that "
                      "async_generator(type), and iterate it with async_for",
                      name);
        if (is_defer)
            report_at(i,
                      "defer is used in %s, which is a plain function: declare that async, or give "
                      "a variable the attribute cleanup",
                      name);
        if (spawns)
            report_at(
                i,
                "spawn is used in %s, which is a plain function: declare that async, or start "
                "the async function with bide_spawn",
                name);
        report_at(
            i,
            "%s is used in %s, which is a plain function: declare that async, or run an async "
            "function from here with bide_sync_wait",
            spelling_of(i), name);
    }
}
