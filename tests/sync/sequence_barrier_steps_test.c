/*
 * The sequence barrier, step by step: one call on it is interrupted before each of its atomic operations, and the
 * possible actions of other threads are run right there, in every distribution over the steps. So each interleaving
 * of a call with others that are not interrupted themselves is tried once, without a race and without luck. (This
 * finds mistakes in the order of the steps, not in their memory orders.)
 *
 * For this, the barrier is instantiated again from the library's templates, for an 8-bit sequence type of this file,
 * with atomic operations that call `step` first.
 */
#include "testing.h"

#include "bide/atomic.h"

static void step(void);

#undef bide_atomic_load
#undef bide_atomic_store
#undef bide_atomic_exchange
#undef bide_atomic_compare_exchange
#undef bide_atomic_compare_exchange_weak
#define bide_atomic_load(object, order) (step(), atomic_load_explicit(object, BIDE_ORDER_(order)))
#define bide_atomic_store(object, value, order) \
    (step(), atomic_store_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_exchange(object, value, order) \
    (step(), atomic_exchange_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_compare_exchange_weak(object, expected, value, order, order_if_failed)      \
    (step(), atomic_compare_exchange_weak_explicit(object, expected, value, BIDE_ORDER_(order), \
                                                   BIDE_ORDER_(order_if_failed)))

#define bide_atomic_compare_exchange(object, expected, value, order, order_if_failed)             \
    (step(), atomic_compare_exchange_strong_explicit(object, expected, value, BIDE_ORDER_(order), \
                                                     BIDE_ORDER_(order_if_failed)))

/* The waiter list is compiled again too. */
#define bide_waiter_list_cut_           stepped_cut
#define bide_waiter_list_make_plain_    stepped_make_plain
#define bide_waiter_list_suspend        stepped_suspend
#define bide_waiter_list_announce       stepped_announce
#define bide_waiter_list_sweep_cancelled stepped_sift_cancelled
#define bide_waiter_list_sweep       stepped_sift_out
#define bide_waiter_list_close          stepped_close
#define bide_sweep_cancelled             stepped_sift_rules

#include "sync/meeting.h"

#include "bide/sequence_barrier.h"

#include <errno.h>

/* The barrier again, for 8 bits, over that list (sequence8.h). */
typedef uint8_t bide_sequence_stepped;
typedef int8_t bide_sequence_stepped_signed;
typedef uintptr_t bide_sequence_stepped_counter_;
#define BIDE_SEQUENCE_NAME_(object, rest) object##_stepped##rest
#include "bide/detail/sequence_names.inc"
#undef BIDE_SEQUENCE_H
#undef BIDE_SEQUENCE_BARRIER_H
#include "../src/sync/sequence_barrier.c" /* NOLINT(bugprone-suspicious-include) */
#include "bide/detail/sequence_names_end.inc"

#include "../src/sync/waiter_list.c" /* NOLINT(bugprone-suspicious-include) */
#include "../src/sync/biased_list.c" /* NOLINT(bugprone-suspicious-include) */

/* An action of a thread. Numbers are counted from the start of the course. */
typedef struct action {
    enum { NOTHING, PUBLISH, WAIT, CLOSE, FOLLOW, TURN } kind;
    uint8_t
        number; /* of FOLLOW the size of the ring; of TURN how many become free, and are claimed */
} action;

enum { MAX_ACTIONS = 4, MAX_WAITS = 8, MAX_STEPS = 40 };

/*
 * `before` is done first; then `call`, and at its steps, or after it, `others`, in their order. One thread does all
 * publishing, so either `call` publishes or `others` do.
 */
typedef struct course {
    action before[MAX_ACTIONS];
    action call;
    action others[MAX_ACTIONS];
} course;

typedef struct wait {
    bide_sequence_waiter_stepped waiter;
    probe probe;
    uint8_t known; /* the published number when it began */
    uint32_t ended_at_once;
} wait;

static struct {
    const course *course;
    uint8_t initial;

    bide_sequence_barrier_stepped barrier;
    uint8_t published;
    bool closed;
    wait waits[MAX_WAITS];
    int wait_count;

    bide_atomic(uintptr_t) next; /* to be claimed, by the publisher of the follower */
    bide_sequence_follower_stepped follower;
    probe follows;
    uint32_t follower_ended; /* at once */

    bool interruptible;   /* `call` runs, and no other */
    int steps;            /* of `call`, until now */
    int at[MAX_ACTIONS]; /* before which step each of the others is done */
    int others_done;
    const wait *in_call; /* the wait that `call` begins */
} the;

static void act(const action *action);

static void do_others(int until)
{
    while (the.others_done < MAX_ACTIONS && the.at[the.others_done] <= until)
        act(&the.course->others[the.others_done++]);
}

static void step(void)
{
    if (!the.interruptible)
        return;
    the.interruptible = false;
    do_others(the.steps);
    /* Its own suspend still runs, so no thread may resume it. */
    if (the.in_call != NULL)
        assert_int_equal(atomic_load(&the.in_call->probe.ended), 0);
    the.steps++;
    the.interruptible = true;
}

static void begin_wait(uint8_t target)
{
    wait *wait = &the.waits[the.wait_count++];
    bool is_call = the.interruptible;
    if (is_call)
        the.in_call = wait;
    wait->known = atomic_load(&the.barrier.published);
    probe_init(&wait->probe);
    wait->ended_at_once = probe_await(
        &wait->probe,
        bide_sequence_barrier_stepped_wait_until_published(&wait->waiter, &the.barrier, target));
    if (is_call)
        the.in_call = NULL;
}

static void act(const action *action)
{
    uint8_t number = (uint8_t)(the.initial + action->number);
    switch (action->kind) {
    case NOTHING:
        break;
    case PUBLISH:
        the.published = number;
        bide_sequence_barrier_stepped_publish_(&the.barrier, number);
        break;
    case WAIT:
        begin_wait(number);
        break;
    case CLOSE:
        the.closed = true;
        bide_sequence_barrier_stepped_close(&the.barrier);
        break;
    case FOLLOW:
        probe_init(&the.follows);
        the.follower_ended =
            probe_await(&the.follows, bide_sequence_barrier_stepped_follow_(
                                          &the.follower, &the.barrier, &the.next, action->number));
        break;
    case TURN:
        for (int i = 0; i < action->number; i++) {
            bide_sequence_barrier_stepped_publish_(&the.barrier, ++the.published);
            atomic_fetch_add(&the.next, 1);
        }
        break;
    }
}

static bool reaches(uint8_t published, uint8_t target)
{
    return bide_sequence_stepped_distance(published, target) == 0;
}

static bool closes_in_the_publishers_thread(const course *course)
{
    return course->call.kind != PUBLISH && course->call.kind != CLOSE;
}

static int result_of(const wait *wait)
{
    return probe_result((bide_awaiter *)&wait->waiter.waiting.listed.awaiter);
}

/* Everything has been done: every wait that had to end has ended, once, and no other. */
static void check_waits(void)
{
    for (int i = 0; i < the.wait_count; i++) {
        wait *wait = &the.waits[i];
        uint8_t target = wait->waiter.target;
        uint32_t ended = wait->ended_at_once + probe_ended(&wait->probe);
        bool reached = reaches(the.published, target);
        assert_int_equal(ended, reached || the.closed);
        if (ended == 0)
            continue;
        uint8_t result = wait->waiter.published;
        assert_int_equal(result_of(wait), reaches(result, target) ? 0 : -EPIPE);
        assert_true(the.closed || result_of(wait) == 0);
        if (closes_in_the_publishers_thread(the.course))
            assert_int_equal(result_of(wait), reached ? 0 : -EPIPE);
        /* The result is no older than the number that it knew, and no newer than the published one. */
        assert_true((uint8_t)(result - wait->known) <= (uint8_t)(the.published - wait->known));
    }
}

/* Publishes one by one until all must have ended; each wait ends at exactly its number. */
static void finish_waits(void)
{
    bool waits[MAX_WAITS] = {false};
    for (int i = 0; i < the.wait_count; i++)
        waits[i] = the.waits[i].ended_at_once + probe_ended(&the.waits[i].probe) == 0;
    for (int i = 0; i < 255 && !the.closed; i++)
        bide_sequence_barrier_stepped_publish_(&the.barrier, ++the.published);
    for (int i = 0; i < the.wait_count; i++) {
        const wait *wait = &the.waits[i];
        assert_int_equal(wait->ended_at_once + probe_ended(&the.waits[i].probe), 1);
        if (waits[i]) {
            assert_int_equal(result_of(wait), 0);
            assert_int_equal(wait->waiter.published, wait->waiter.target);
        }
    }
}

static void run_schedule(const course *course, uint8_t initial)
{
    the.course = course;
    the.initial = the.published = initial;
    the.closed = false;
    the.wait_count = the.steps = the.others_done = 0;
    bide_sequence_barrier_stepped_init(&the.barrier, initial);
    for (int i = 0; i < MAX_ACTIONS; i++)
        act(&course->before[i]);
    the.interruptible = true;
    act(&course->call);
    the.interruptible = false;
    assert_true(the.steps <= MAX_STEPS);
    do_others(MAX_STEPS);
    check_waits();
    finish_waits();
}

/* Sets the next distribution of the others over the steps; false after the last. */
static bool next_schedule(const course *course, int steps)
{
    for (int i = MAX_ACTIONS - 1; i >= 0; i--) {
        if (course->others[i].kind == NOTHING || the.at[i] > steps)
            continue;
        int at = the.at[i] + 1;
        for (int j = i; j < MAX_ACTIONS; j++)
            the.at[j] = at;
        return true;
    }
    return false;
}

/* Runs a course in every schedule. Returns the number of schedules. */
static uint32_t run_course(const course *course, uint8_t initial)
{
    uint32_t schedules = 0;
    for (int i = 0; i < MAX_ACTIONS; i++)
        the.at[i] = 0;
    do {
        run_schedule(course, initial);
        schedules++;
    } while (next_schedule(course, the.steps));
    return schedules;
}

static void run_courses(const course *courses, size_t count)
{
    uint32_t schedules = 0;
    for (size_t i = 0; i < count; i++) {
        schedules += run_course(&courses[i], 0);
        schedules += run_course(&courses[i], 126);
        schedules += run_course(&courses[i], 254);
    }
    printf("# %u interleavings\n", schedules);
}

#define RUN_COURSES(courses) run_courses(courses, sizeof(courses) / sizeof(courses)[0])

static void a_wait_can_be_interrupted_anywhere(void **state)
{
    (void)state;
    static const course courses[] = {
        {{{0}}, {WAIT, 1}, {{PUBLISH, 1}}},
        {{{0}}, {WAIT, 1}, {{CLOSE, 0}}},
        {{{0}}, {WAIT, 2}, {{PUBLISH, 1}, {PUBLISH, 2}, {PUBLISH, 3}}},
        {{{0}}, {WAIT, 1}, {{PUBLISH, 1}, {CLOSE, 0}}},
        {{{0}}, {WAIT, 2}, {{PUBLISH, 1}, {CLOSE, 0}}},
        {{{WAIT, 2}, {WAIT, 3}}, {WAIT, 1}, {{PUBLISH, 1}, {PUBLISH, 2}, {PUBLISH, 3}}},
        {{{WAIT, 3}, {WAIT, 2}}, {WAIT, 1}, {{PUBLISH, 1}, {PUBLISH, 2}, {PUBLISH, 3}}},
        {{{WAIT, 3}, {WAIT, 1}, {WAIT, 2}}, {WAIT, 1}, {{PUBLISH, 1}, {PUBLISH, 2}}},
        {{{WAIT, 3}, {WAIT, 2}}, {WAIT, 1}, {{PUBLISH, 2}, {CLOSE, 0}}},
        {{{WAIT, 2}, {WAIT, 3}}, {WAIT, 1}, {{PUBLISH, 1}, {PUBLISH, 2}, {CLOSE, 0}}},
        {{{WAIT, 3}}, {WAIT, 1}, {{PUBLISH, 1}, {WAIT, 2}, {PUBLISH, 2}}},
        {{{WAIT, 2}}, {WAIT, 2}, {{WAIT, 1}, {PUBLISH, 1}, {WAIT, 3}, {PUBLISH, 2}}},
        {{{WAIT, 2}}, {WAIT, 1}, {{PUBLISH, 1}, {WAIT, 3}, {PUBLISH, 2}, {CLOSE, 0}}},
        /* at half the range, when another sorts the list */
        {{{0}}, {WAIT, 1}, {{PUBLISH, 1}, {WAIT, 129}, {PUBLISH, 2}}},
        {{{WAIT, 128}}, {WAIT, 1}, {{WAIT, 1}, {PUBLISH, 1}, {WAIT, 129}, {PUBLISH, 2}}},
        /* half the range ahead of a number that the interrupted one has not seen: behind, by its own number */
        {{{0}}, {WAIT, 0}, {{PUBLISH, 120}, {WAIT, 248}}},
        {{{0}}, {WAIT, 1}, {{PUBLISH, 1}, {PUBLISH, 120}, {WAIT, 248}}},
        {{{WAIT, 2}}, {WAIT, 1}, {{PUBLISH, 1}, {PUBLISH, 120}, {WAIT, 248}, {WAIT, 121}}},
    };
    RUN_COURSES(courses);
}

static void a_publish_can_be_interrupted_anywhere(void **state)
{
    (void)state;
    static const course courses[] = {
        {{{0}}, {PUBLISH, 1}, {{WAIT, 1}}},
        {{{0}}, {PUBLISH, 1}, {{WAIT, 1}, {WAIT, 2}, {WAIT, 1}}},
        {{{WAIT, 1}}, {PUBLISH, 1}, {{WAIT, 1}, {WAIT, 1}}},
        {{{WAIT, 1}, {WAIT, 2}}, {PUBLISH, 1}, {{WAIT, 1}, {WAIT, 2}, {WAIT, 3}}},
        {{{WAIT, 2}, {WAIT, 1}}, {PUBLISH, 1}, {{WAIT, 2}, {WAIT, 1}}},
        {{{WAIT, 1}, {WAIT, 3}}, {PUBLISH, 2}, {{CLOSE, 0}}},
        {{{WAIT, 1}, {WAIT, 3}}, {PUBLISH, 2}, {{WAIT, 2}, {CLOSE, 0}, {WAIT, 3}}},
        {{{WAIT, 1}, {WAIT, 3}, {WAIT, 2}}, {PUBLISH, 2}, {{WAIT, 4}, {CLOSE, 0}, {CLOSE, 0}}},
        {{{WAIT, 128}, {WAIT, 1}}, {PUBLISH, 127}, {{WAIT, 128}, {WAIT, 127}, {WAIT, 128}}},
    };
    RUN_COURSES(courses);
}

static void a_close_can_be_interrupted_anywhere(void **state)
{
    (void)state;
    static const course courses[] = {
        {{{0}}, {CLOSE, 0}, {{WAIT, 1}}},
        {{{WAIT, 1}}, {CLOSE, 0}, {{PUBLISH, 1}}},
        {{{WAIT, 1}, {WAIT, 2}}, {CLOSE, 0}, {{PUBLISH, 1}, {WAIT, 2}, {WAIT, 1}}},
        {{{WAIT, 2}}, {CLOSE, 0}, {{WAIT, 1}, {PUBLISH, 1}, {CLOSE, 0}, {WAIT, 2}}},
        {{{WAIT, 3}, {WAIT, 2}}, {CLOSE, 0}, {{PUBLISH, 1}, {PUBLISH, 2}, {CLOSE, 0}}},
    };
    RUN_COURSES(courses);
}

/*
 * The ring is full, and turns while a follower is being enlisted, so far that its numbers look as if it were not
 * full. The follower is woken for the next free slot, if it was not before.
 */
static void a_follower_misses_no_room_however_far_the_ring_turns(void **state)
{
    (void)state;
    enum { SIZE = 64 };
    uint32_t schedules = 0;
    for (uint8_t turn = 0; turn < 255; turn++) {
        const course course = {.call = {FOLLOW, SIZE}, .others = {{TURN, turn}, {TURN, turn}}};
        for (int i = 0; i < MAX_ACTIONS; i++)
            the.at[i] = 0;
        do {
            the.course = &course;
            the.initial = the.published = turn;
            the.steps = the.others_done = 0;
            bide_sequence_barrier_stepped_init(&the.barrier, the.published);
            atomic_init(&the.next, 256 + the.published + SIZE + 1U);
            the.interruptible = true;
            act(&course.call);
            the.interruptible = false;
            do_others(MAX_STEPS);
            assert_int_equal(atomic_load(&the.next) % 256, (the.published + SIZE + 1) % 256);
            if (turn == 0)
                assert_int_equal(the.follower_ended + probe_ended(&the.follows), 0);
            bide_sequence_barrier_stepped_publish_(&the.barrier, ++the.published);
            assert_int_equal(the.follower_ended + probe_ended(&the.follows), 1);
            schedules++;
        } while (next_schedule(&course, the.steps));
    }
    printf("# %u interleavings\n", schedules);
}

/* The next action of another thread; `published` is the number that it has published. */
static action random_action(uint64_t *random, bool may_publish, uint8_t *published)
{
    uint64_t number = testing_random(random);
    if (number % 8 == 0)
        return (action){CLOSE, 0};
    if (number % 8 <= 3 && may_publish)
        return (action){PUBLISH, *published = (uint8_t)(*published + 1 + number / 8 % 2)};
    /* Some ahead, some behind by now, some at half the range. */
    return (action){WAIT, number % 8 == 7 ? 128 : (uint8_t)(number / 8 % 6)};
}

static void any_call_can_be_interrupted_anywhere(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    uint32_t schedules = 0;
    for (uint32_t i = rounds_of(300); i != 0; i--) {
        course course = {.call = {NOTHING, 0}};
        uint8_t published = 0;
        for (uint64_t j = testing_random(&random) % 4; j != 0; j--)
            course.before[j - 1] = (action){WAIT, (uint8_t)(testing_random(&random) % 5)};
        course.call = random_action(&random, true, &published);
        bool may_publish = course.call.kind != PUBLISH;
        for (uint64_t j = 0; j < 3; j++) {
            course.others[j] = random_action(&random, may_publish, &published);
            may_publish = may_publish && course.others[j].kind != CLOSE;
        }
        schedules += run_course(&course, (uint8_t)testing_random(&random));
    }
    printf("# %u interleavings\n", schedules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_can_be_interrupted_anywhere),
        cmocka_unit_test(a_publish_can_be_interrupted_anywhere),
        cmocka_unit_test(a_close_can_be_interrupted_anywhere),
        cmocka_unit_test(a_follower_misses_no_room_however_far_the_ring_turns),
        cmocka_unit_test(any_call_can_be_interrupted_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
