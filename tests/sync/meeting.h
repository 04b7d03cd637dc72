/*
 * For tests with threads: meetings, at which threads wait for each other, and probes, which await an operation and
 * count how often it ends. Threads never assert; they report, and the test asserts after it has joined them.
 */
#ifndef BIDE_TESTS_MEETING_H
#define BIDE_TESTS_MEETING_H

#include "testing.h"

#include "bide/frame.h"

#if TESTING_HOSTED

#include <pthread.h>

/* Waits a moment for another thread; *spins counts from 0. */
static inline void wait_a_moment(uint32_t *spins)
{
    if (++*spins < 200)
        bide_cpu_relax();
    else
        bide_platform.yield();
}

/* Lets a random moment of up to `max` pauses pass, so that threads meet in many ways. */
static inline void random_moment(uint64_t *random, uint32_t max)
{
    for (uint64_t i = testing_random(random) % (max + 1); i != 0; i--)
        bide_cpu_relax();
}

static inline void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    assert_int_equal(pthread_create(thread, NULL, run, argument), 0);
}

static inline void join_thread(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A point at which `parties` threads wait for each other, any number of times. It makes all earlier writes visible. */
typedef struct meeting {
    uint32_t parties; /* a power of two, or few rounds */
    bide_atomic(uint32_t) arrivals;
} meeting;

static inline void meeting_init(meeting *meeting, uint32_t parties)
{
    meeting->parties = parties;
    bide_atomic_init(&meeting->arrivals, 0);
}

static inline void meet(meeting *meeting)
{
    uint32_t arrival = bide_atomic_fetch_add(&meeting->arrivals, 1, acq_rel);
    uint32_t all = (arrival / meeting->parties + 1) * meeting->parties;
    uint32_t spins = 0;
    while ((int32_t)(bide_atomic_load(&meeting->arrivals, acquire) - all) < 0)
        wait_a_moment(&spins);
}

/*
 * Whether a round is a storm's last: the usual number is done, and the rounds before it have shown every end that the
 * storm is about. The order of threads depends on the processors, so rounds are added for missing ends. An end that a
 * hundred times as many rounds do not show does not occur. The first thread decides before the round starts, the others
 * read the decision in the round.
 */
static inline bool is_last_round(uint32_t round, uint32_t usual, bool all_seen)
{
    return round + 1 >= usual && (all_seen || round + 1 >= (uint64_t)usual * 100);
}

#endif

/* A frame made by hand that awaits one operation. It has no code: it must never be resumed. */
typedef struct probe {
    bide_frame frame;
    bide_atomic(uint32_t) ended; /* how often the operation has ended; releases */
} probe;

/* The scheduler of all probes. */
static inline void probe_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    (void)scheduler;
    (void)last;
    while (first != NULL) {
        bide_awaiter *next = first->link; /* before the operation may be freed */
        bide_atomic_fetch_add(&bide_container_of(first->frame, probe, frame)->ended, 1, release);
        first = next;
    }
}

static bide_scheduler probe_scheduler = {.post = probe_post};
static const bide_context probe_context = {.scheduler = &probe_scheduler};

static inline void probe_init(probe *self)
{
    self->frame.awaiter.ops =
        &bide_point_finished.ops; /* it is at a point, so nobody takes it for a gate */
    self->frame.context = &probe_context;
    bide_atomic_init(&self->ended, 0);
}

/* Awaits; true if it ended at once, and was not or will not be posted. */
static inline bool probe_await(probe *self, bide_awaiter *awaiter)
{
    bide_budget_ = BIDE_BUDGET; /* each is a turn of its own: none yields */
    return bide_frame_await(&self->frame, awaiter) == &self->frame;
}

/*
 * The second half of an await alone, as if the operation had been found not ready and everything that
 * happened since had happened in between.
 */
static inline bool probe_suspend(probe *self, bide_awaiter *awaiter)
{
    self->frame.awaiter.link = awaiter;
    awaiter->frame = &self->frame;
    return awaiter->ops->suspend(awaiter, &self->frame) == &self->frame;
}

static inline uint32_t probe_ended(probe *self)
{
    return bide_atomic_load(&self->ended, acquire);
}

/* The result of an ended operation. */
static inline int probe_result(bide_awaiter *awaiter)
{
    return awaiter->ops->resume(awaiter);
}

#endif
