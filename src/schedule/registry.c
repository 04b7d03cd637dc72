#include "registry.h"

#include "../coroutine/lock.h"

static struct {
    bide_atomic(uint32_t) lock; /* LOCK_FREE */
    bide_live_ *first;
    bide_live_ **end; /* where the next goes; NULL: there has been none */
    uint32_t numbers; /* that were given */
} all;

void bide_live_add_(bide_live_ *live, bide_live_kind_ kind)
{
    lock_take(&all.lock);
    if (all.end == NULL)
        all.end = &all.first;
    live->kind = kind;
    live->number = ++all.numbers;
    live->next = NULL;
    live->place = all.end;
    *all.end = live;
    all.end = &live->next;
    lock_free(&all.lock);
}

void bide_live_remove_(bide_live_ *live)
{
    lock_take(&all.lock);
    if (live->place != NULL) { /* (it may have been the parent's) */
        *live->place = live->next;
        if (live->next != NULL)
            live->next->place = live->place;
        else
            all.end = live->place;
        live->place = NULL;
    }
    lock_free(&all.lock);
}

const bide_live_ *bide_live_hold_(void)
{
    lock_take(&all.lock);
    return all.first;
}

void bide_live_let_go_(void)
{
    lock_free(&all.lock);
}

void bide_live_before_fork_(void)
{
    lock_take(&all.lock);
}

void bide_live_after_fork_(void)
{
    lock_free(&all.lock);
}

void bide_live_in_child_(void)
{
    for (bide_live_ *next, *live = all.first; live != NULL; live = next) {
        next = live->next;
        live->place = NULL;
    }
    all.first = NULL;
    all.end = NULL;
    bide_atomic_init(&all.lock, LOCK_FREE);
}
