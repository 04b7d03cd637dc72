/* The registry of the process's loops and pools: a list under a lock. See the header. */
#include "registry.h"

#include "../coroutine/lock.h"
#include "../system/fork.h"

static struct {
    bide_atomic(uint32_t) lock; /* LOCK_FREE */
    bide_registry_ *first;
    bide_registry_ **end; /* the last link; NULL: nothing was ever added */
    uint32_t numbers;     /* given so far */
} registry;

void bide_registry_add_(bide_registry_ *live, bide_registry_kind_ kind)
{
    lock_take(&registry.lock);
    if (registry.end == NULL)
        registry.end = &registry.first;
    live->kind = kind;
    live->number = ++registry.numbers;
    live->next = NULL;
    live->place = registry.end;
    *registry.end = live;
    registry.end = &live->next;
    lock_free(&registry.lock);
}

void bide_registry_remove_(bide_registry_ *live)
{
    lock_take(&registry.lock);
    if (live->place != NULL) { /* NULL: it was registered before a fork */
        bide_assert(*live->place == live);
        *live->place = live->next;
        if (live->next != NULL)
            live->next->place = live->place;
        else
            registry.end = live->place;
        live->place = NULL;
    }
    lock_free(&registry.lock);
}

const bide_registry_ *bide_registry_hold_(void)
{
    lock_take(&registry.lock);
    return registry.first;
}

void bide_registry_release_(void)
{
    lock_free(&registry.lock);
}

/* ---- Forks ---- */

static void live_before_fork(void)
{
    lock_take(&registry.lock);
}

static void live_after_fork(void)
{
    lock_free(&registry.lock);
}

/* The parent's loops and pools are not the child's. */
static void live_in_child(bool was_alone)
{
    (void)was_alone;
    for (bide_registry_ *next, *live = registry.first; live != NULL; live = next) {
        next = live->next;
        live->place = NULL;
    }
    registry.first = NULL;
    registry.end = NULL;
    bide_atomic_init(&registry.lock, LOCK_FREE);
}

static const bide_fork_handlers_ live_fork_handlers = {BIDE_FORK_SCHEDULE_, live_before_fork,
                                                       live_after_fork, live_in_child};

__attribute__((constructor)) static void live_register(void)
{
    static bide_fork_registration_ registration = {&live_fork_handlers, NULL};
    bide_fork_register_(&registration);
}
