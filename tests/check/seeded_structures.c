/*
 * Seeded bugs: rings, buffers, reference counts, and guarantees that compare-exchange and sleep do
 * not give.
 */
#include "seeded.h"

#include "bide/platform.h"

#include <errno.h>

typedef struct object {
    bide_atomic(uint32_t) references;
    int value;
} object;

typedef struct state {
    bide_atomic(uint32_t) head, tail; /* of the ring */
    int slots[2];
    object *shared;
    bide_atomic(uint32_t) full, bell, number;
    int item;
} state;

#define SCENARIO(id, text, found, ...)      \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .expected = BIDE_CHECK_##found, __VA_ARGS__}

/* ---- A ring for one producer and one consumer ---- */

#define RING(name, publish_order, look_order)                       \
    static void name##_produce(void *p)                             \
    {                                                               \
        state *s = p;                                               \
        for (uint32_t i = 0; i < 3; i++) {                          \
            while (i - bide_atomic_load(&s->head, look_order) == 2) \
                bide_cpu_relax();                                   \
            s->slots[i % 2] = (int)i + 1;                           \
            bide_atomic_store(&s->tail, i + 1, publish_order);      \
        }                                                           \
    }                                                               \
    static void name##_consume(void *p)                             \
    {                                                               \
        state *s = p;                                               \
        for (uint32_t i = 0; i < 3; i++) {                          \
            while (bide_atomic_load(&s->tail, look_order) == i)     \
                bide_cpu_relax();                                   \
            bide_check_assert(s->slots[i % 2] == (int)i + 1);       \
            bide_atomic_store(&s->head, i + 1, publish_order);      \
        }                                                           \
    }

RING(ring_relaxed, relaxed, acquire)
RING(ring_unseen, release, relaxed)
RING(ring_ordered, release, acquire)

SCENARIO(ring_bug, "ring_with_relaxed_index", RACE,
         .threads = {ring_relaxed_produce, ring_relaxed_consume});
SCENARIO(ring_look_bug, "ring_with_relaxed_look", RACE,
         .threads = {ring_unseen_produce, ring_unseen_consume});
SCENARIO(ring_mended, "ring_with_acquire_and_release", NOTHING,
         .threads = {ring_ordered_produce, ring_ordered_consume});

/* ---- A reference count ---- */

static void share(void *p)
{
    state *s = p;
    s->shared = bide_check_alloc(sizeof *s->shared);
    bide_atomic_init(&s->shared->references, 2);
    s->shared->value = 0;
}

/* The thread that drops the last reference must come after all accesses of the others. */
#define DROP(name, order, fence)                                    \
    static void name(void *p)                                       \
    {                                                               \
        object *o = ((state *)p)->shared;                           \
        (void)*(volatile int *)&o->value;                           \
        if (bide_atomic_fetch_sub(&o->references, 1, order) == 1) { \
            fence;                                                  \
            o->value = -1;                                          \
            bide_check_free(o);                                     \
        }                                                           \
    }

/* The same without a last access to the object. */
#define DROP_ONLY(name, order)                                    \
    static void name(void *p)                                     \
    {                                                             \
        object *o = ((state *)p)->shared;                         \
        (void)*(volatile int *)&o->value;                         \
        if (bide_atomic_fetch_sub(&o->references, 1, order) == 1) \
            bide_check_free(o);                                   \
    }

DROP(drop_relaxed, relaxed, (void)0)
DROP(drop_fenced, release, bide_atomic_fence(acquire))
DROP(drop_ordered, acq_rel, (void)0)
DROP_ONLY(drop_only_relaxed, relaxed)
DROP_ONLY(drop_only_release, release)
DROP_ONLY(drop_only_ordered, acq_rel)

SCENARIO(count_bug, "reference_count_with_relaxed_decrement", RACE, .setup = share,
         .threads = {drop_relaxed, drop_relaxed});
SCENARIO(count_mended, "reference_count_with_acq_rel", NOTHING, .setup = share,
         .threads = {drop_ordered, drop_ordered});
SCENARIO(count_fenced, "reference_count_with_release_and_fence", NOTHING, .setup = share,
         .threads = {drop_fenced, drop_fenced});
SCENARIO(free_bug, "reference_count_relaxed_then_free", USE_AFTER_FREE, .setup = share,
         .threads = {drop_only_relaxed, drop_only_relaxed});
SCENARIO(free_release_bug, "reference_count_without_acquire_then_free", USE_AFTER_FREE,
         .setup = share, .threads = {drop_only_release, drop_only_release});
SCENARIO(free_mended, "reference_count_with_acq_rel_then_free", NOTHING, .setup = share,
         .threads = {drop_only_ordered, drop_only_ordered});

/* ---- A buffer of one item, with sleep ---- */

static void ring_the_bell(state *s)
{
    bide_atomic_fetch_add(&s->bell, 1, release);
    bide_platform.wake(&s->bell, UINT32_MAX);
}

/*
 * Sleeps until the buffer is full, or empty. Reads the bell too late: a ring between the check of
 * the buffer and the read of the bell is missed.
 */
static void sleep_until_late(state *s, uint32_t full)
{
    while (bide_atomic_load(&s->full, acquire) != full)
        bide_platform.wait(&s->bell, bide_atomic_load(&s->bell, acquire), BIDE_FOREVER);
}

static void sleep_until(state *s, uint32_t full)
{
    for (;;) {
        uint32_t heard = bide_atomic_load(&s->bell, acquire);
        if (bide_atomic_load(&s->full, acquire) == full)
            return;
        bide_platform.wait(&s->bell, heard, BIDE_FOREVER);
    }
}

#define BUFFER(name, sleep)                          \
    static void name##_put(void *p)                  \
    {                                                \
        state *s = p;                                \
        for (int i = 0; i < 2; i++) {                \
            sleep(s, 0);                             \
            s->item = i;                             \
            bide_atomic_store(&s->full, 1, release); \
            ring_the_bell(s);                        \
        }                                            \
    }                                                \
    static void name##_take(void *p)                 \
    {                                                \
        state *s = p;                                \
        for (int i = 0; i < 2; i++) {                \
            sleep(s, 1);                             \
            bide_check_assert(s->item == i);         \
            bide_atomic_store(&s->full, 0, release); \
            ring_the_bell(s);                        \
        }                                            \
    }

BUFFER(buffer_late, sleep_until_late)
BUFFER(buffer, sleep_until)

SCENARIO(buffer_bug, "buffer_that_checks_and_then_sleeps", DEADLOCK,
         .threads = {buffer_late_put, buffer_late_take});
SCENARIO(buffer_mended, "buffer_that_checks_again", NOTHING, .threads = {buffer_put, buffer_take});

/* ---- Guarantees that are not given ---- */

static void claim_weakly(void *p)
{
    uint32_t none = 0;
    bide_check_assert(
        bide_atomic_compare_exchange_weak(&((state *)p)->number, &none, 1, relaxed, relaxed));
}

static void claim_strongly(void *p)
{
    uint32_t none = 0;
    bide_check_assert(
        bide_atomic_compare_exchange(&((state *)p)->number, &none, 1, relaxed, relaxed));
}

static void claim_until_it_is(void *p)
{
    uint32_t none = 0;
    while (!bide_atomic_compare_exchange_weak(&((state *)p)->number, &none, 1, relaxed, relaxed))
        bide_check_assert(none == 0);
}

SCENARIO(weak_bug, "weak_compare_exchange_that_must_not_fail", ASSERTION,
         .threads = {claim_weakly});
SCENARIO(weak_strong, "strong_compare_exchange", NOTHING, .threads = {claim_strongly});
SCENARIO(weak_mended, "weak_compare_exchange_in_a_loop", NOTHING, .threads = {claim_until_it_is});

static void wake_it(void *p)
{
    state *s = p;
    bide_atomic_store(&s->number, 1, release);
    bide_platform.wake(&s->number, 1);
}

static void sleep_once(void *p)
{
    state *s = p;
    bide_platform.wait(&s->number, 0, BIDE_FOREVER);
    bide_check_assert(bide_atomic_load(&s->number, acquire) == 1);
}

static void sleep_until_it_is(void *p)
{
    state *s = p;
    while (bide_atomic_load(&s->number, acquire) == 0)
        bide_platform.wait(&s->number, 0, BIDE_FOREVER);
}

SCENARIO(spurious_bug, "sleep_that_must_not_end_for_no_reason", ASSERTION,
         .threads = {wake_it, sleep_once});
SCENARIO(spurious_mended, "sleep_in_a_loop", NOTHING, .threads = {wake_it, sleep_until_it_is});

/* Sleeping orders nothing: the waker's writes are visible only through an acquire load. */
static void announce(void *p)
{
    ((state *)p)->item = 1;
    wake_it(p);
}

#define SLEEP_AND_TAKE(name, order)                          \
    static void name(void *p)                                \
    {                                                        \
        state *s = p;                                        \
        while (bide_atomic_load(&s->number, order) == 0)     \
            bide_platform.wait(&s->number, 0, BIDE_FOREVER); \
        bide_check_assert(s->item == 1);                     \
    }

SLEEP_AND_TAKE(take_relaxed, relaxed)
SLEEP_AND_TAKE(take_acquired, acquire)

SCENARIO(order_bug, "sleep_that_must_order", RACE, .threads = {announce, take_relaxed});
SCENARIO(order_mended, "sleep_and_acquire", NOTHING, .threads = {announce, take_acquired});

static void sleep_until_a_deadline(state *s, bool is_known)
{
    int status = 0;
    while (bide_atomic_load(&s->number, acquire) == 0 && status == 0)
        status = bide_platform.wait(&s->number, 0, 1000);
    bide_check_assert(status == 0 || (is_known && status == -ETIMEDOUT));
    bide_check_note("%s", status == 0 ? "woken" : "too late");
}

static void sleep_with_a_deadline(void *p)
{
    sleep_until_a_deadline(p, false);
}

static void sleep_with_a_known_deadline(void *p)
{
    sleep_until_a_deadline(p, true);
}

SCENARIO(deadline_bug, "deadline_that_must_not_pass", ASSERTION,
         .threads = {wake_it, sleep_with_a_deadline});
SCENARIO(deadline_mended, "deadline_that_may_pass", NOTHING,
         .threads = {wake_it, sleep_with_a_known_deadline});
/* With a deadline, no wake is needed. */
SCENARIO(deadline_alone, "deadline_and_no_other_comes", NOTHING,
         .threads = {sleep_with_a_known_deadline});

const bide_check_scenario *const seeded_structures[] = {&ring_bug,       &ring_look_bug,
                                                        &ring_mended,    &count_bug,
                                                        &count_mended,   &count_fenced,
                                                        &free_bug,       &free_release_bug,
                                                        &free_mended,    &buffer_bug,
                                                        &buffer_mended,  &weak_bug,
                                                        &weak_strong,    &weak_mended,
                                                        &spurious_bug,   &spurious_mended,
                                                        &order_bug,      &order_mended,
                                                        &deadline_bug,   &deadline_mended,
                                                        &deadline_alone, NULL};
