/* Digital search trees of the open scopes, for debug builds. Any thread; each tree has a lock.
 * open_scopes.h has the argument. */
#include "open_scopes.h"

#include "short_lock.h"

/* One if there is one thread. */
enum { TREES = __STDC_HOSTED__ && !BIDE_CHECK ? 16 : 1, KEY_BITS = sizeof(uintptr_t) * CHAR_BIT };

typedef struct tree {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_short_lock_ lock;
    bide_scope *root;
} tree;

static tree trees[TREES];
static bide_atomic(uint32_t) open_scope_count;

/*
 * The topmost bits are the best mixed: they choose the tree, and the path begins behind them.
 */
typedef uintptr_t path;

static path scope_path_of(const bide_frame *owner)
{
    /* 2 to the number of bits over the golden ratio */
    return (uintptr_t)owner * (uintptr_t)UINT64_C(0x9e3779b97f4a7c15);
}

static tree *tree_of(path *p)
{
    uintptr_t number = *p >> (KEY_BITS - 4);
    *p <<= 4;
    return &trees[number % TREES];
}

/* The next bit of the path; zeros after the last. */
static unsigned next_turn(path *p)
{
    unsigned turn = (unsigned)(*p >> (KEY_BITS - 1));
    *p <<= 1;
    return turn;
}

void bide_open_scopes_add_(bide_scope *scope)
{
    path p = scope_path_of(scope->owner);
    tree *t = tree_of(&p);
    scope->below[0] = scope->below[1] = NULL;
    bide_short_lock_take_(&t->lock);
    bide_scope **place = &t->root;
    while (*place != NULL)
        place = &(*place)->below[next_turn(&p)];
    *place = scope;
    /* relaxed: the owner sees its own; a hint for all others. */
    bide_atomic_fetch_add(&open_scope_count, 1, relaxed);
    bide_short_lock_free_(&t->lock);
}

/* Removes a scope that has none below it, from *place on. */
static bide_scope *take_lowest(bide_scope **place)
{
    for (;;) {
        bide_scope *scope = *place;
        unsigned turn = scope->below[0] != NULL ? 0 : 1;
        if (scope->below[turn] == NULL) {
            *place = NULL;
            return scope;
        }
        place = &scope->below[turn];
    }
}

/*
 * Any scope below another may take its place: the path there is a prefix of its own.
 */
static void replace_by_lowest(bide_scope **place)
{
    bide_scope *scope = *place;
    bide_scope *lowest = take_lowest(place);
    if (lowest == scope)
        return;
    lowest->below[0] = scope->below[0];
    lowest->below[1] = scope->below[1];
    *place = lowest;
}

void bide_open_scopes_remove_(bide_scope *scope)
{
    path p = scope_path_of(scope->owner);
    tree *t = tree_of(&p);
    bide_short_lock_take_(&t->lock);
    bide_scope **place = &t->root;
    while (*place != scope && *place != NULL)
        place = &(*place)->below[next_turn(&p)];
    if (*place != NULL) { /* otherwise a fork has dropped it from the child */
        replace_by_lowest(place);
        bide_atomic_fetch_sub(&open_scope_count, 1, relaxed);
    }
    bide_short_lock_free_(&t->lock);
}

bool bide_open_scopes_has_(const bide_frame *owner)
{
    if (bide_atomic_load(&open_scope_count, relaxed) == 0)
        return false;
    path p = scope_path_of(owner);
    tree *t = tree_of(&p);
    bide_short_lock_take_(&t->lock);
    const bide_scope *scope = t->root;
    while (scope != NULL && scope->owner != owner)
        scope = scope->below[next_turn(&p)];
    bide_short_lock_free_(&t->lock);
    return scope != NULL;
}

/* ---- Forks ---- */

void bide_open_scopes_before_fork_(void)
{
    for (unsigned i = 0; i < TREES; i++)
        bide_short_lock_take_(&trees[i].lock);
}

void bide_open_scopes_after_fork_(void)
{
    for (unsigned i = 0; i < TREES; i++)
        bide_short_lock_free_(&trees[i].lock);
}

void bide_open_scopes_in_child_(bool was_alone)
{
    for (unsigned i = 0; i < TREES; i++) {
        if (!was_alone)
            trees[i].root = NULL;
        bide_short_lock_init_(&trees[i].lock);
    }
    if (!was_alone)
        bide_atomic_store(&open_scope_count, 0, relaxed);
}
