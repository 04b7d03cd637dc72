/*
 * Forks. A child has one thread, and of all others whatever they were in the middle of. The live
 * roots, the open scopes and the inline scheduler's timers are known to the whole process, and
 * locked for moments by any thread; so the thread that forks takes those locks before, and frees
 * them after it, in the parent and in the child. What is the user's, a pool or a mutex, is in the
 * child as the fork found it.
 */
#define _GNU_SOURCE
#include "descriptors.h"
#include "fork.h"

#include "../coroutine/inline_timers.h"
#include "../coroutine/lock.h"
#include "../coroutine/observe.h"
#include "../coroutine/open_scopes.h"
#include "../coroutine/roots.h"
#include "../schedule/registry.h"

#include <pthread.h>

#include "single_threaded.h"

/* Had the process one thread when it forked? Of the thread that has the locks. */
static bool was_alone;

static bide_atomic(uint32_t) delayed; /* LOCK_FREE */

void bide_delay_forks_(void)
{
    lock_take(&delayed);
}

void bide_allow_forks_(void)
{
    lock_free(&delayed);
}

static void before(void)
{
    lock_take(&delayed);
    bide_live_before_fork_();
    bide_roots_before_fork_();
    bide_open_scopes_before_fork_();
    bide_inline_timers_before_fork_();
    was_alone = BIDE_IS_ALONE_;
}

static void after(void)
{
    bide_inline_timers_after_fork_();
    bide_open_scopes_after_fork_();
    bide_roots_after_fork_();
    bide_live_after_fork_();
    lock_free(&delayed);
}

uint32_t bide_generation_;

static void after_in_child(void)
{
    bide_generation_++;
    bide_observer_in_child_();
    bide_inline_timers_in_child_();
    bide_open_scopes_in_child_(was_alone);
    bide_roots_in_child_(was_alone);
    bide_live_in_child_();
    bide_descriptors_in_child_();
    bide_atomic_init(&delayed, LOCK_FREE);
}

void bide_survive_forks_(void)
{
    /* It fails for want of memory at most; then a child may find a list locked, as if it had not
     * been asked for. */
    (void)pthread_atfork(before, after, after_in_child);
}
