/*
 * Seeded bugs: the sequence barrier of an article, after cppcoro's. docs/seed-barrier.md describes the executions.
 *
 * The numbers have 8 bits. A waiter is the article's mock: there is no coroutine, and its end is counted. Each scenario has
 * the barrier with orders and repairs of its own; the memory orders are those of the article's last version but for what the
 * scenario's name says.
 */
#include "seeded.h"

#include <stdint.h>

/* Differences of a barrier from the article's. */
enum {
    LOOKS_NEVER = 1 << 0, /* an enlisted waiter does not look at `published` */
    JUDGES_AFTER =
        1 << 1, /* repair: who takes the list judges by what is published after that, not before */
    HALF_IS_AHEAD = 1 << 2, /* repair: a target at half the range is ahead for the taker too */
    MENDED = JUDGES_AFTER | HALF_IS_AHEAD
};

typedef struct mock {
    uint8_t target;
    struct mock *next;
    bide_atomic(unsigned) ends;
} mock;

typedef struct state {
    bide_atomic(uint8_t) published;
    bide_atomic(mock *) waiters;
    int data; /* of FIRST: written before it is published */
    mock *mocks[2];
} state;

enum { BEFORE = 254, FIRST = 255, SECOND = 0, HALF = 128, FAR = 100 };

/* Whether `b` is ahead of `a`: by 1 to half the range. */
static bool precedes(uint8_t a, uint8_t b)
{
    return (uint8_t)(b - a - 1) < HALF;
}

/* The same by the signed difference, as the article's taker has it: by 1 to half the range less 1. */
static bool is_after(uint8_t a, uint8_t b)
{
    return (uint8_t)(b - a - 1) < HALF - 1;
}

static void end_wait(state *s, mock *waiter)
{
    if (waiter->target == FIRST)
        bide_check_assert(s->data == 1);
    waiter->next = NULL;
    bide_atomic_fetch_add(&waiter->ends, 1, release);
}

static void end_all(state *s, mock *ended)
{
    while (ended != NULL) {
        mock *next = ended->next;
        end_wait(s, ended);
        ended = next;
    }
}

/*
 * The operations, with the orders of: the store of the number (C), the taking of the list (D), the putting back, the
 * enlisting (A), the look (B), and the taking by a waiter.
 */
#define BARRIER(name, does, store_order, take_order, back_order, enlist_order, look_order,       \
                retake_order)                                                                    \
    static void name##_publish(state *s, uint8_t number)                                         \
    {                                                                                            \
        bide_atomic_store(&s->published, number, store_order);                                   \
        mock *all = bide_atomic_exchange(&s->waiters, NULL, take_order), *next;                  \
        mock *stay = NULL, **stay_end = &stay, *ended = NULL, **ended_end = &ended;              \
        for (; all != NULL; all = next) {                                                        \
            mock ***end = precedes(number, all->target) ? &stay_end : &ended_end;                \
            next = all->next;                                                                    \
            **end = all;                                                                         \
            *end = &all->next;                                                                   \
        }                                                                                        \
        *stay_end = *ended_end = NULL;                                                           \
        if (stay != NULL) {                                                                      \
            mock *head = NULL;                                                                   \
            while (!bide_atomic_compare_exchange(&s->waiters, &head, stay, back_order, relaxed)) \
                *stay_end = head;                                                                \
        }                                                                                        \
        end_all(s, ended);                                                                       \
    }                                                                                            \
    static void name##_wait(state *s, mock *waiter)                                              \
    {                                                                                            \
        uint8_t target = waiter->target;                                                         \
        mock *stay = waiter, **stay_end = &waiter->next, *ended = NULL, **ended_end = &ended,    \
             *next;                                                                              \
        do {                                                                                     \
            mock *head = bide_atomic_load(&s->waiters, relaxed);                                 \
            do                                                                                   \
                *stay_end = head;                                                                \
            while (                                                                              \
                !bide_atomic_compare_exchange(&s->waiters, &head, stay, enlist_order, relaxed)); \
            if (((does)&LOOKS_NEVER) != 0)                                                       \
                break;                                                                           \
            uint8_t known = bide_atomic_load(&s->published, look_order);                         \
            if (precedes(known, target))                                                         \
                break;                                                                           \
            stay = NULL;                                                                         \
            stay_end = &stay;                                                                    \
            mock *all = bide_atomic_exchange(&s->waiters, NULL, retake_order);                   \
            if (((does)&JUDGES_AFTER) != 0)                                                      \
                known = bide_atomic_load(&s->published, look_order);                             \
            uint8_t nearest = HALF;                                                              \
            for (; all != NULL; all = next) {                                                    \
                bool stays = ((does)&HALF_IS_AHEAD) != 0 ? precedes(known, all->target)          \
                                                         : is_after(known, all->target);         \
                mock ***end = stays ? &stay_end : &ended_end;                                    \
                if (stays && (uint8_t)(all->target - known) < nearest)                           \
                    nearest = (uint8_t)(all->target - known);                                    \
                next = all->next;                                                                \
                **end = all;                                                                     \
                *end = &all->next;                                                               \
            }                                                                                    \
            *stay_end = NULL;                                                                    \
            target = (uint8_t)(known + nearest);                                                 \
        } while (stay != NULL);                                                                  \
        *ended_end = NULL;                                                                       \
        end_all(s, ended);                                                                       \
    }

/* ---- States ---- */

static mock *new_mock(state *s, int i, uint8_t target)
{
    mock *made = s->mocks[i] = bide_check_alloc(sizeof *made);
    made->target = target;
    made->next = NULL;
    bide_atomic_init(&made->ends, 0);
    return made;
}

static void setup(void *p)
{
    state *s = p;
    bide_atomic_init(&s->published, BEFORE);
    bide_atomic_init(&s->waiters, NULL);
}

static unsigned ends_of(const state *s, int i)
{
    return s->mocks[i] == NULL ? 0 : bide_atomic_load(&s->mocks[i]->ends, acquire);
}

static bool is_listed(state *s, int i)
{
    const mock *at = bide_atomic_load(&s->waiters, acquire);
    while (at != NULL && at != s->mocks[i])
        at = at->next;
    return at != NULL;
}

static void free_mocks(state *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->mocks[i] != NULL)
            bide_check_free(s->mocks[i]);
    }
}

/* The first has ended, once; the second, if there is one, waits. */
static void finish(void *p)
{
    state *s = p;
    bide_check_assert(ends_of(s, 0) == 1 && !is_listed(s, 0));
    bide_check_assert(ends_of(s, 1) == 0 && (s->mocks[1] == NULL || is_listed(s, 1)));
    free_mocks(s);
}

static void finish_waiting(void *p)
{
    state *s = p;
    bide_check_assert(ends_of(s, 1) == 0 && is_listed(s, 1));
    free_mocks(s);
}

/* ---- The threads ---- */

#define THREADS(name)                          \
    static void name##_publish_first(void *p)  \
    {                                          \
        ((state *)p)->data = 1;                \
        name##_publish(p, FIRST);              \
    }                                          \
    static void name##_wait_for_first(void *p) \
    {                                          \
        name##_wait(p, new_mock(p, 0, FIRST)); \
    }

#define THREAD_OF_SECOND(name)                  \
    static void name##_wait_for_second(void *p) \
    {                                           \
        name##_wait(p, new_mock(p, 1, SECOND)); \
    }

/* Those of waits far ahead, by one who has seen the number from which they are at most half the range ahead. */
#define FAR_THREADS(name)                                                                  \
    static void name##_publish_far(void *p)                                                \
    {                                                                                      \
        name##_publish_first(p);                                                           \
        name##_publish(p, (uint8_t)(FIRST + FAR));                                         \
    }                                                                                      \
    static void name##_wait_far(void *p)                                                   \
    {                                                                                      \
        if (bide_atomic_load(&((state *)p)->published, acquire) == (uint8_t)(FIRST + FAR)) \
            name##_wait(p, new_mock(p, 1, (uint8_t)(FIRST + 2 * FAR)));                    \
    }                                                                                      \
    static void name##_wait_half(void *p)                                                  \
    {                                                                                      \
        if (bide_atomic_load(&((state *)p)->published, acquire) == FIRST)                  \
            name##_wait(p, new_mock(p, 1, (uint8_t)(FIRST + HALF)));                       \
    }

#define SCENARIO(id, text, found, ...)                                      \
    static const bide_check_scenario id = {.name = text,                    \
                                           .size = sizeof(state),           \
                                           .expected = BIDE_CHECK_##found,  \
                                           .cxx20_release_sequences = true, \
                                           .never_spurious = true,          \
                                           __VA_ARGS__}

/* ---- The five timings of the article ---- */

BARRIER(article, 0, seq_cst, seq_cst, release, seq_cst, seq_cst, acquire)
THREADS(article)
THREAD_OF_SECOND(article)
FAR_THREADS(article)

SCENARIO(before_target, "barrier_timings_1_and_2_a_number_before_the_target", NOTHING,
         .setup = setup, .threads = {article_publish_first, article_wait_for_second},
         .finish = finish_waiting);
SCENARIO(at_target, "barrier_timings_3_and_4_the_number_of_the_target", NOTHING, .setup = setup,
         .threads = {article_publish_first, article_wait_for_first}, .finish = finish);
SCENARIO(two, "barrier_timing_5_two_waiters", NOTHING, .setup = setup,
         .threads = {article_publish_first, article_wait_for_first, article_wait_for_second},
         .finish = finish);

/* ---- What each part is for ---- */

BARRIER(blind, LOOKS_NEVER, seq_cst, seq_cst, release, seq_cst, seq_cst, acquire)
THREADS(blind)
SCENARIO(without_look, "barrier_timings_3_and_4_without_a_look", ASSERTION, .setup = setup,
         .threads = {blind_publish_first, blind_wait_for_first}, .finish = finish);

BARRIER(back, 0, seq_cst, seq_cst, relaxed, seq_cst, seq_cst, acquire)
THREADS(back)
THREAD_OF_SECOND(back)
SCENARIO(back_relaxed, "barrier_timing_5_that_puts_back_without_release", RACE, .setup = setup,
         .threads = {back_publish_first, back_wait_for_first, back_wait_for_second},
         .finish = finish);

/* ---- The orders that suffice: no single total order ---- */

BARRIER(light, MENDED, release, acq_rel, release, acq_rel, acquire, acquire)
THREADS(light)
THREAD_OF_SECOND(light)
SCENARIO(light_before, "barrier_with_lighter_orders_a_number_before_the_target", NOTHING,
         .setup = setup, .threads = {light_publish_first, light_wait_for_second},
         .finish = finish_waiting);
SCENARIO(light_at, "barrier_with_lighter_orders_the_number_of_the_target", NOTHING, .setup = setup,
         .threads = {light_publish_first, light_wait_for_first}, .finish = finish);
SCENARIO(light_two, "barrier_with_lighter_orders_two_waiters", NOTHING, .setup = setup,
         .threads = {light_publish_first, light_wait_for_first, light_wait_for_second},
         .finish = finish);

/* ... and none is lighter. */
BARRIER(no_release, MENDED, release, acquire, release, acq_rel, acquire, acquire)
THREADS(no_release)
SCENARIO(take_acquires, "barrier_with_lighter_orders_that_takes_without_release", ASSERTION,
         .setup = setup, .threads = {no_release_publish_first, no_release_wait_for_first},
         .finish = finish);
BARRIER(no_acquire, MENDED, release, acq_rel, release, release, acquire, acquire)
THREADS(no_acquire)
SCENARIO(enlist_releases, "barrier_with_lighter_orders_that_enlists_without_acquire", ASSERTION,
         .setup = setup, .threads = {no_acquire_publish_first, no_acquire_wait_for_first},
         .finish = finish);
BARRIER(no_data, MENDED, relaxed, acq_rel, release, acq_rel, acquire, acquire)
THREADS(no_data)
SCENARIO(store_relaxed, "barrier_with_lighter_orders_that_publishes_without_release", RACE,
         .setup = setup, .threads = {no_data_publish_first, no_data_wait_for_first},
         .finish = finish);
BARRIER(no_look, MENDED, release, acq_rel, release, acq_rel, relaxed, acquire)
THREADS(no_look)
SCENARIO(look_relaxed, "barrier_with_lighter_orders_that_looks_without_acquire", RACE,
         .setup = setup, .threads = {no_look_publish_first, no_look_wait_for_first},
         .finish = finish);
BARRIER(no_retake, MENDED, release, acq_rel, release, acq_rel, acquire, relaxed)
THREADS(no_retake)
THREAD_OF_SECOND(no_retake)
SCENARIO(retake_relaxed, "barrier_with_lighter_orders_that_retakes_without_acquire", RACE,
         .setup = setup,
         .threads = {no_retake_publish_first, no_retake_wait_for_first, no_retake_wait_for_second},
         .finish = finish);

/* ---- Faults of the article's barrier ---- */

static void finish_far(void *p)
{
    state *s = p;
    bide_check_assert(ends_of(s, 0) == 1);
    bide_check_assert(ends_of(s, 1) == 0);
    free_mocks(s);
}

BARRIER(mended, MENDED, seq_cst, seq_cst, release, seq_cst, seq_cst, acquire)
THREADS(mended)
FAR_THREADS(mended)

SCENARIO(stale, "barrier_far_ahead_judged_by_a_number_of_before", ASSERTION, .setup = setup,
         .threads = {article_publish_far, article_wait_for_first, article_wait_far},
         .finish = finish_far);
SCENARIO(stale_mended, "barrier_far_ahead", NOTHING, .setup = setup,
         .threads = {mended_publish_far, mended_wait_for_first, mended_wait_far},
         .finish = finish_far);
SCENARIO(half, "barrier_half_the_range_ahead_taken_for_past", ASSERTION, .setup = setup,
         .threads = {article_publish_first, article_wait_for_first, article_wait_half},
         .finish = finish_far);
SCENARIO(half_mended, "barrier_half_the_range_ahead", NOTHING, .setup = setup,
         .threads = {mended_publish_first, mended_wait_for_first, mended_wait_half},
         .finish = finish_far);

/* ---- A, B, A: a waiter at the same address, between a look at the head and the exchange ---- */

static void publish_twice(void *p)
{
    article_publish_first(p);
    article_publish(p, SECOND);
}

static void setup_first(void *p)
{
    setup(p);
    article_wait_for_first(p);
}

static void come_again(void *p)
{
    state *s = p;
    if (ends_of(s, 0) == 1) {
        s->mocks[0]->target = SECOND;
        article_wait(p, s->mocks[0]);
    }
}

static void finish_both(void *p)
{
    state *s = p;
    bide_check_assert(ends_of(s, 0) == 1 || ends_of(s, 0) == 2);
    bide_check_assert(ends_of(s, 1) == 1);
    bide_check_assert(bide_atomic_load(&s->waiters, acquire) == NULL);
    free_mocks(s);
}

SCENARIO(aba, "barrier_with_a_waiter_that_comes_again", NOTHING, .setup = setup_first,
         .threads = {publish_twice, come_again, article_wait_for_second}, .finish = finish_both);

const bide_check_scenario *const seeded_barrier[] = {&before_target,
                                                     &at_target,
                                                     &two,
                                                     &without_look,
                                                     &back_relaxed,
                                                     &light_before,
                                                     &light_at,
                                                     &light_two,
                                                     &take_acquires,
                                                     &enlist_releases,
                                                     &store_relaxed,
                                                     &look_relaxed,
                                                     &retake_relaxed,
                                                     &stale,
                                                     &stale_mended,
                                                     &half,
                                                     &half_mended,
                                                     &aba,
                                                     NULL};
