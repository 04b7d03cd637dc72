/*
 * Surviving fork(2).
 *
 * A child has one thread, and sees the library's own state as the other threads left it, possibly in
 * the middle of a change. That state is process-wide and guarded by locks that are held for a short
 * time: live roots, open scopes, the inline scheduler's timers, the registry of loops and pools. So
 * the forking thread acquires all those locks before the fork, and frees them after it, in the parent
 * and in the child. User objects, such as a pool or a mutex, are in the child as the fork found them.
 *
 * 1. `delayed` guards the list of handlers. A registration holds it, and so does a fork from before
 *    the first handler until after the last. Hence a fork sees all of a registration or nothing of
 *    it, and `before` and `after` run for the same handlers.
 * 2. The list is ordered by floor, the highest first; equal floors stay in the order in which they
 *    were registered. `before` takes locks in this order, which is the library's lock order.
 * 3. The child initialises `delayed` last, so it may register handlers and fork in its turn.
 * 4. Constructors run before main(), so from there on every part is registered. A constructor of the
 *    program that forks before that gets a child that is not repaired.
 */
#define _GNU_SOURCE
#include "descriptors.h"
#include "fork.h"

#include "../coroutine/inline_timers.h"
#include "../coroutine/lock.h"
#include "../coroutine/flights.h"
#include "../coroutine/open_scopes.h"
#include "../coroutine/roots.h"

#include <pthread.h>
#include <sys/stat.h>

#include "single_threaded.h"

uint32_t bide_generation_;

static bide_atomic(uint32_t) delayed;          /* LOCK_FREE */
static bide_fork_registration_ *fork_handlers; /* 2; guarded by `delayed` */
static bool fork_was_alone; /* whether the forking process had one thread; guarded by `delayed` */

void bide_delay_forks_(void)
{
    lock_take(&delayed);
}

void bide_allow_forks_(void)
{
    lock_free(&delayed);
}

void bide_fork_register_(bide_fork_registration_ *registration)
{
    bide_delay_forks_();
    bide_fork_registration_ **place = &fork_handlers;
    while (*place != NULL && (*place)->handlers->floor >= registration->handlers->floor)
        place = &(*place)->next;
    registration->next = *place;
    *place = registration;
    bide_allow_forks_();
}

/* ---- Parts that are freestanding have no constructors ---- */

static void repair_inline_timers(bool was_alone)
{
    (void)was_alone;
    bide_inline_timers_in_child_();
}

static void repair_descriptors(bool was_alone)
{
    (void)was_alone;
    bide_descriptors_in_child_();
}

static const bide_fork_handlers_ own_parts[] = {
    {BIDE_FORK_COROUTINE_, bide_roots_before_fork_, bide_roots_after_fork_, bide_roots_in_child_},
    {BIDE_FORK_COROUTINE_, bide_open_scopes_before_fork_, bide_open_scopes_after_fork_,
     bide_open_scopes_in_child_},
#if BIDE_FLIGHTS_
    {BIDE_FORK_COROUTINE_, bide_flights_before_fork_, bide_flights_after_fork_,
     bide_flights_in_child_},
#endif
    {BIDE_FORK_COROUTINE_, bide_inline_timers_before_fork_, bide_inline_timers_after_fork_,
     repair_inline_timers},
    {BIDE_FORK_SYSTEM_, NULL, NULL, repair_descriptors},
};

enum { OWN_PARTS = sizeof own_parts / sizeof own_parts[0] };

/* ---- The fork ---- */

/*
 * Whether the process has one thread. If the C library does not know, /proc does: its directory of the
 * process's threads has a link for each, beside its own two. Where it cannot be read, the process counts
 * as one of several threads.
 */
static bool fork_is_alone(void)
{
    struct stat tasks;
    if (BIDE_IS_ALONE_KNOWN_)
        return BIDE_IS_ALONE_;
#ifdef __APPLE__
    return pthread_is_threaded_np() == 0;
#endif
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

static void fork_prepare(void)
{
    bide_delay_forks_();
    for (const bide_fork_registration_ *at = fork_handlers; at != NULL; at = at->next) {
        if (at->handlers->before != NULL)
            at->handlers->before();
    }
    fork_was_alone = fork_is_alone();
}

static void fork_in_parent(void)
{
    for (const bide_fork_registration_ *at = fork_handlers; at != NULL; at = at->next) {
        if (at->handlers->after != NULL)
            at->handlers->after();
    }
    bide_allow_forks_();
}

static void fork_in_child(void)
{
    bide_generation_++;
    for (const bide_fork_registration_ *at = fork_handlers; at != NULL; at = at->next) {
        if (at->handlers->in_child != NULL)
            at->handlers->in_child(fork_was_alone);
    }
    bide_atomic_init(&delayed, LOCK_FREE); /* 3 */
}

void bide_survive_forks_(void)
{
    static bide_fork_registration_ registrations[OWN_PARTS];
    for (size_t i = 0; i < OWN_PARTS; i++) {
        registrations[i].handlers = &own_parts[i];
        bide_fork_register_(&registrations[i]);
    }
    /* ENOMEM is its only error; a child may then find a lock held. */
    (void)pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
}
