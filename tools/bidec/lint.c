/*
 * -Wasync-lock-held: an await, a yield or the like while a lock of the thread is held.
 *
 * Another coroutine of the thread that takes the lock would block the thread, which then never comes
 * back to the one that holds it. The walk follows the statements in their order. Where branches meet,
 * a lock counts as held only if it is held in each of them, so that the warning is seldom wrong.
 */
#include "bidec.h"

#include <stdio.h>
#include <stdlib.h>

bool lints_locks, lints_are_errors;
static bool any_error;

/* A lock that is held. Lists are never changed, so that branches share them. */
struct held {
    const struct held *next;
    const char *lock; /* the argument's text */
    const char *name; /* the function that took it */
    unsigned line;
};

struct flow {
    const struct held *held;
    bool is_dead; /* behind a jump */
};

static const char *const pairs[][2] = {
    {"pthread_mutex_lock", "pthread_mutex_unlock"},
    {"pthread_rwlock_rdlock", "pthread_rwlock_unlock"},
    {"pthread_rwlock_wrlock", "pthread_rwlock_unlock"},
    {"pthread_spin_lock", "pthread_spin_unlock"},
    {"mtx_lock", "mtx_unlock"},
    {"flockfile", "funlockfile"},
};

static struct flow walk(const struct node *node, struct flow flow);
static struct flow at_switch;
static const struct held *released; /* by the deferred statements of the block */

static const struct held *without(const struct held *list, const char *lock)
{
    if (list == NULL)
        return NULL;
    if (strcmp(list->lock, lock) == 0)
        return list->next;
    struct held *copy = allocate(sizeof *copy);
    *copy = *list;
    copy->next = without(list->next, lock);
    return copy;
}

static bool holds(const struct held *list, const char *lock)
{
    while (list != NULL && strcmp(list->lock, lock) != 0)
        list = list->next;
    return list != NULL;
}

/* Where two ways meet. */
static struct flow meet(struct flow a, struct flow b)
{
    if (a.is_dead || b.is_dead)
        return a.is_dead ? b : a;
    struct flow both = {NULL, false};
    for (; a.held != NULL; a.held = a.held->next) {
        if (!holds(b.held, a.held->lock))
            continue;
        struct held *copy = allocate(sizeof *copy);
        *copy = *a.held;
        copy->next = both.held;
        both.held = copy;
    }
    return both;
}

static const char *lock_of(const struct node *call)
{
    struct text text = {0};
    text_add(&text, "", 0);
    for (int i = call->list->first; i < call->list->end; i++)
        text_print(&text, "%s%s",
                   text.length != 0 && tokens[i - 1].kind == NAME && tokens[i].kind == NAME ? " "
                                                                                            : "",
                   spelling_of(i));
    return text_finish(&text);
}

/* The index of the pair whose function is called, or -1. */
static int called_of_pair(const struct node *node, unsigned which)
{
    if (node->kind != E_CALL || node->list == NULL || node->a->kind != E_TOKENS ||
        node->a->end != node->a->first + 1 || tokens[node->a->first].symbol != NULL)
        return -1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (token_is(node->a->first, pairs[i][which]))
            return (int)i;
    }
    return -1;
}

static void note_released(const struct node *node)
{
    if (node == NULL)
        return;
    if (called_of_pair(node, 1) >= 0) {
        struct held *one = allocate(sizeof *one);
        one->next = released;
        one->lock = lock_of(node);
        released = one;
    }
    const struct node *const parts[] = {node->a, node->b, node->c, node->d};
    for (size_t i = 0; i < 4; i++)
        note_released(parts[i]);
    for (const struct node *part = node->list; part != NULL; part = part->next)
        note_released(part);
}

static void warn(const struct node *node, struct flow flow)
{
    const struct token *t = &tokens[node->first];
    if (flow.is_dead || flow.held == NULL || t->system)
        return;
    fprintf(
        stderr,
        "%s:%u:%u: %s: this may suspend while the lock of line %u is held, %s(%s): a coroutine of "
        "the same thread that takes it would block the thread; unlock it before, or use a "
        "bide_mutex [-W%sasync-lock-held]\n",
        t->file, t->line, t->column, lints_are_errors ? "error" : "warning", flow.held->line,
        flow.held->name, flow.held->lock, lints_are_errors ? "error=" : "");
    any_error |= lints_are_errors;
}

static struct flow walk_list(const struct node *list, struct flow flow)
{
    for (; list != NULL; list = list->next)
        flow = walk(list, flow);
    return flow;
}

static struct flow walk_block(const struct node *node, struct flow flow)
{
    const struct held *outer = released;
    released = NULL;
    flow = walk_list(node->list, flow);
    for (; released != NULL; released = released->next)
        flow.held = without(flow.held, released->lock);
    released = outer;
    return flow;
}

static struct flow walk_loop(const struct node *node, struct flow flow)
{
    if (node->kind == S_FOR) {
        flow = walk(node->a, flow);
        flow = walk(node->b, flow);
        return meet(flow, walk(node->c, walk(node->d, flow)));
    }
    if (node->kind == S_DO) {
        struct flow end = walk(node->a, walk(node->b, flow));
        return end.is_dead ? flow : end;
    }
    flow = walk(node->a, flow);
    if (node->kind == S_EACH && synchronous_generator(node) == NULL)
        warn(node, flow);
    return meet(flow, walk(node->kind == S_EACH ? node->d : node->b, flow));
}

static struct flow walk_switch(const struct node *node, struct flow flow)
{
    struct flow outer = at_switch;
    at_switch = flow = walk(node->a, flow);
    struct flow end = meet(flow, walk(node->b, flow));
    at_switch = outer;
    return end;
}

static struct flow walk_select(const struct node *node, struct flow flow)
{
    struct flow end = {NULL, true};
    warn(node, flow);
    for (const struct node *part = node->list; part != NULL; part = part->next)
        end = meet(end, walk(part->b, flow));
    return node->passes_errors ? end : meet(end, flow);
}

static struct flow walk_label(const struct node *node, struct flow flow)
{
    if (token_is(node->first, "case") || token_is(node->first, "default"))
        flow = flow.is_dead ? at_switch : meet(flow, at_switch);
    else if (flow.is_dead)
        flow = (struct flow){NULL, false}; /* (what jumps there is not followed) */
    return walk(node->a, flow);
}

static struct flow walk_parts(const struct node *node, struct flow flow)
{
    const struct node *const parts[] = {node->a, node->b, node->c, node->d};
    for (const struct declarator *d = node->declarators; d != NULL; d = d->next) {
        if (node->kind == S_DECLARATION && d->initialiser != NULL)
            flow = walk(d->initialiser, flow);
    }
    for (size_t i = 0; i < 4; i++)
        flow = walk(parts[i], flow);
    return walk_list(node->list, flow);
}

static struct flow walk_call(const struct node *node, struct flow flow)
{
    flow = walk_parts(node, flow);
    int taken = called_of_pair(node, 0);
    if (taken >= 0) {
        struct held *one = allocate(sizeof *one);
        *one = (struct held){flow.held, lock_of(node), pairs[taken][0], tokens[node->first].line};
        flow.held = one;
    } else if (called_of_pair(node, 1) >= 0) {
        flow.held = without(flow.held, lock_of(node));
    }
    return flow;
}

static struct flow walk(const struct node *node, struct flow flow)
{
    if (node == NULL)
        return flow;
    switch (node->kind) {
    case S_BLOCK:
        return walk_block(node, flow);
    case S_WHILE:
    case S_DO:
    case S_FOR:
    case S_EACH:
        return walk_loop(node, flow);
    case S_SWITCH:
        return walk_switch(node, flow);
    case S_SELECT:
        return walk_select(node, flow);
    case S_LABEL:
        return walk_label(node, flow);
    case S_IF:
        flow = walk(node->a, flow);
        return meet(walk(node->b, flow), walk(node->c, flow));
    case S_DEFER:
        note_released(node->a);
        return flow;
    case E_SIZEOF:
        return flow;
    case E_CALL:
        return walk_call(node, flow);
    case E_AWAIT:
    case S_YIELD:
        flow = walk_parts(node, flow);
        warn(node, flow);
        return flow;
    case S_RETURN:
    case S_GOTO:
    case S_BREAK:
    case S_CONTINUE:
        flow = walk_parts(node, flow);
        flow.is_dead = true;
        return flow;
    default:
        return walk_parts(node, flow);
    }
}

void lint_function(void)
{
    released = NULL;
    if (lints_locks)
        walk(function->body, (struct flow){NULL, false});
}

void finish_lint(void)
{
    if (any_error)
        exit(1);
}
