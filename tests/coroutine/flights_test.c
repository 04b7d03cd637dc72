/*
 * Operations in flight (src/coroutine/flights.h). Reported: each kind of operation whose struct a second coroutine uses
 * while the first waits, with the bodies' names. Not reported: structs that are used again when the wait has ended, or its
 * coroutine was destroyed, by whatever path; memory of coroutines that were left. And the tables, with many entries.
 */
#include "misuse.h"

#include "../../src/base/thread_sanitizer.h"
#include "../../src/coroutine/flights.h"

#include "bide/auto_event.h"
#include "bide/barging_mutex.h"
#include "bide/broadcast.h"
#include "bide/channel.h"
#include "bide/condition.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/latch.h"
#include "bide/mutex.h"
#include "bide/notify.h"
#include "bide/oneshot.h"
#include "bide/rendezvous.h"
#include "bide/rw_lock.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/semaphore.h"
#include "bide/sequence_barrier.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/spsc_channel.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/then.h"
#include "bide/unbounded_channel.h"
#include "bide/wait_group.h"
#include "bide/watch.h"
#include "bide/when.h"
#include "bide/with_stop.h"

#if !BIDE_DEBUG /* what is reported is left out */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#endif

/* ---- Each kind of operation ---- */

struct user {
    bide_task task;
    bide_awaiter *(*operation)(void);
};

bide_coroutine(first_user)
{
    bide_begin(first_user, struct user * self);
    bide_await(self->operation());
    bide_end();
}

bide_coroutine(second_user)
{
    bide_begin(second_user, struct user * self);
    bide_await(self->operation());
    bide_end();
}

static int taken;
static bide_event event;

static bide_awaiter *event_wait(void)
{
    static bide_event_waiter waiter;
    return bide_event_wait(&waiter, &event);
}

static bide_awaiter *auto_event_wait(void)
{
    static bide_auto_event of;
    static bide_auto_event_waiter waiter;
    return bide_auto_event_wait(&waiter, &of);
}

static bide_mutex mutex;

static bide_awaiter *mutex_lock(void)
{
    static bide_mutex_waiter holder, waiter;
    (void)bide_mutex_try_lock(&holder, &mutex);
    return bide_mutex_lock(&waiter, &mutex);
}

static bide_awaiter *barging_mutex_lock(void)
{
    static bide_barging_mutex of;
    static bide_barging_mutex_waiter holder, waiter;
    (void)bide_barging_mutex_try_lock(&holder, &of);
    return bide_barging_mutex_lock(&waiter, &of);
}

static bide_awaiter *semaphore_acquire(void)
{
    static bide_semaphore of;
    static bide_semaphore_waiter waiter;
    return bide_semaphore_acquire(&waiter, &of);
}

static bide_awaiter *rw_lock_read(void)
{
    static bide_rw_lock of;
    static bide_rw_lock_waiter holder, waiter;
    (void)bide_rw_lock_try_write(&holder, &of);
    return bide_rw_lock_read(&waiter, &of);
}

static bide_awaiter *notify_wait(void)
{
    static bide_notify of;
    static bide_notify_waiter waiter;
    return bide_notify_wait(&waiter, &of);
}

static bide_awaiter *latch_wait(void)
{
    static bide_latch of;
    static bide_latch_waiter waiter;
    static bool is_made;
    if (!is_made)
        bide_latch_init(&of, 1);
    is_made = true;
    return bide_latch_wait(&waiter, &of);
}

static bide_awaiter *wait_group_wait(void)
{
    static bide_wait_group of;
    static bide_wait_group_waiter waiter;
    bide_wait_group_add(&of, 1);
    return bide_wait_group_wait(&waiter, &of);
}

static bide_awaiter *channel_recv(void)
{
    static bide_channel(int) of;
    static bide_channel_slot(int) slots[1];
    static bide_channel_waiter waiter;
    static bool is_made;
    if (!is_made)
        bide_channel_init(&of, slots, 1);
    is_made = true;
    return bide_channel_recv(&waiter, &of, &taken);
}

static bide_awaiter *rendezvous_recv(void)
{
    static bide_rendezvous(int) of;
    static bide_rendezvous_receiver receiver;
    static bool is_made;
    if (!is_made)
        bide_rendezvous_init(&of);
    is_made = true;
    return bide_rendezvous_recv(&receiver, &of, &taken);
}

static bide_awaiter *oneshot_recv(void)
{
    static bide_oneshot(int) of;
    static bide_oneshot_waiter waiter;
    static bool is_made;
    if (!is_made)
        bide_oneshot_init(&of);
    is_made = true;
    return bide_oneshot_recv(&waiter, &of, &taken);
}

static bide_awaiter *sequence_wait(void)
{
    static bide_sequence_barrier of;
    static bide_sequence_waiter waiter;
    return bide_sequence_barrier_wait_until_published(&waiter, &of, 1);
}

/*
 * The mistake itself is a race: it writes to a struct that the thread of the timers has, though the sleep is so
 * long that this thread never takes it out. So ThreadSanitizer reports it before the library does.
 */
#if !BIDE_UNDER_TSAN_
#define SLEEPS sleeps,
static bide_awaiter *sleeps(void)
{
    static bide_sleep sleep;
    return bide_sleep_for(&sleep, UINT64_MAX / 4);
}
#else
#define SLEEPS
#endif

static int same(void *argument, int status)
{
    (void)argument;
    return status;
}

static bide_awaiter *then_event(void)
{
    static bide_then_operation then;
    static bide_event_waiter waiters[2];
    static unsigned i;
    return bide_then(&then, bide_event_wait(&waiters[i++], &event), same, NULL);
}

static bide_awaiter *event_then(void)
{
    static bide_then_operation thens[2];
    static bide_event_waiter waiter;
    static unsigned i;
    return bide_then(&thens[i++], bide_event_wait(&waiter, &event), same, NULL);
}

static bide_awaiter *with_deadline(void)
{
    static bide_with_deadline_operation operation;
    static bide_event_waiter waiters[2];
    static unsigned i;
    return bide_with_deadline(&operation, UINT64_MAX - 1, bide_event_wait(&waiters[i++], &event));
}

static bide_awaiter *event_with_deadline(void)
{
    static bide_with_deadline_operation operations[2];
    static bide_event_waiter waiter;
    static unsigned i;
    return bide_with_deadline(&operations[i++], UINT64_MAX - 1, bide_event_wait(&waiter, &event));
}

static bide_awaiter *event_with_stop(void)
{
    static bide_with_stop_operation operations[2];
    static bide_event_waiter waiter;
    static unsigned i;
    return bide_with_stop(&operations[i++], NULL, bide_event_wait(&waiter, &event));
}

static bide_awaiter *when_all(void)
{
    static bide_when_of(1) when;
    static bide_event_waiter waiters[2];
    static unsigned i;
    return bide_when_all_of(&when, bide_event_wait(&waiters[i++], &event));
}

static bide_awaiter *event_in_when(void)
{
    static bide_when_of(1) whens[2];
    static bide_event_waiter waiter;
    static unsigned i;
    bide_awaiter *wait = bide_event_wait(&waiter, &event);
    i++;
    return bide_when_all_of(&whens[i - 1], wait);
}

struct child {
    bide_task task;
    bide_event_waiter wait;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    bide_await(bide_event_wait(&self->wait, &event));
    bide_end();
}

static bide_awaiter *child(void)
{
    static struct child frame;
    return bide_task_init(&frame.task, &child_body);
}

static bide_context context;
static bide_stop_source source;

#if BIDE_DEBUG

static bide_awaiter *(*operation)(void);

/* Two coroutines wait with one struct. */
static void use_it_twice(void)
{
    static bide_spawned spawned[2];
    static struct user users[2];
    users[0].operation = users[1].operation = operation;
    bide_spawn(&spawned[0], &context, bide_task_init(&users[0].task, &first_user));
    bide_spawn(&spawned[1], &context, bide_task_init(&users[1].task, &second_user));
}

static void a_struct_that_is_used_again_while_it_waits_is_reported(void **state)
{
    static bide_awaiter *(*const operations[])(void) = {
        event_wait,        auto_event_wait,
        mutex_lock,        barging_mutex_lock,
        semaphore_acquire, rw_lock_read,
        notify_wait,       latch_wait,
        wait_group_wait,   channel_recv,
        rendezvous_recv,   oneshot_recv,
        sequence_wait,     SLEEPS
        then_event,        event_then,
        with_deadline,     event_with_deadline,
        event_with_stop,   when_all,
        event_in_when,     child,
    };
    (void)state;
    bide_event_init(&event, false);
    for (unsigned stoppable = 0; stoppable < 2; stoppable++) {
        context = bide_default_context;
        bide_stop_source_init(&source);
        context.stop = stoppable != 0 ? &source : NULL;
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
            operation = operations[i];
            if (!misuse_aborts_naming(use_it_twice, "again", "first used by first_user"))
                fail_msg("operation %zu, stoppable %u", i, stoppable);
            if (!misuse_aborts_naming(use_it_twice, "second_user", "flights_test.c"))
                fail_msg("operation %zu, stoppable %u", i, stoppable);
        }
    }
}
#endif

/* ---- What is not reported ---- */

/* Each of them waits again with the structs that the one before has used. */
static void structs_are_used_again_when_the_wait_has_ended(void **state)
{
    static bide_awaiter *(*const operations[])(void) = {event_wait, child};
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        for (unsigned stoppable = 0; stoppable < 2; stoppable++) {
            static bide_spawned spawned[3];
            static struct user users[3];
            bide_stop_source_init(&source);
            context = bide_default_context;
            context.stop = stoppable != 0 ? &source : NULL;
            for (unsigned user = 0; user < 3; user++) {
                users[user].operation = operations[i];
                bide_event_init(&event, false);
                bide_spawn(&spawned[user], &context,
                           bide_task_init(&users[user].task, &first_user));
                bide_event_set(&event);
                assert_true(bide_event_is_set(&spawned[user].ended));
            }
        }
    }
}

struct owner {
    bide_task task;
    unsigned way;
    bide_awaiter *given;
    bide_with_stop_operation with_stop;
    bide_with_deadline_operation with_deadline;
    bide_then_operation then;
    bide_when_of(2) when;
    bide_event_waiter other;
    bide_scope scope;
    bide_branch branch;
    bide_resume_on_operation resume_on;
};

enum { WAYS = 8 };

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    if (self->way == 0)
        bide_await(self->given);
    if (self->way == 1)
        bide_await(bide_with_stop(&self->with_stop, NULL, self->given));
    if (self->way == 2)
        bide_await(bide_with_deadline(&self->with_deadline, UINT64_MAX - 1, self->given));
    if (self->way == 3)
        bide_await(bide_then(&self->then, self->given, same, NULL));
    if (self->way == 4)
        bide_await(
            bide_when_all_of(&self->when, bide_event_wait(&self->other, &event), self->given));
    if (self->way == 5) {
        bide_scope_init(&self->scope, bide_this_frame());
        bide_scope_spawn(&self->scope, &self->branch, self->given);
        bide_await(bide_scope_join(&self->scope));
    }
    if (self->way == 6)
        bide_await(bide_resume_on(&self->resume_on, &bide_inline_scheduler, self->given));
    if (self->way == 7) {
        bide_scope_init(&self->scope, bide_this_frame());
        bide_scope_spawn(&self->scope, &self->branch, self->given);
        bide_scope_destroy(&self->scope);
    }
    bide_end();
}

static void structs_are_used_again_when_the_coroutine_was_destroyed(void **state)
{
    static bide_awaiter *(*const operations[])(void) = {event_wait, child, auto_event_wait};
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        for (unsigned way = 0; way < WAYS; way++) {
            static struct owner owners[2];
            bide_event_init(&event, false);
            for (unsigned o = 0; o < 2; o++) {
                owners[o].way = way;
                owners[o].given = operations[i]();
                bide_start(&owners[o].task.frame, &owner_body, &bide_default_context);
                bide_resume(&owners[o].task.frame);
                assert_int_equal(bide_done(&owners[o].task.frame), way == 7);
                bide_destroy(&owners[o].task.frame);
            }
        }
    }
}

/* A coroutine that was left suspended, and its memory is that of others. */
static void memory_of_a_coroutine_that_was_left_is_used_again(void **state)
{
    static union {
        struct child child;
        unsigned char bytes[4096];
    } memory;
    static bide_spawned spawned;
    (void)state;
    bide_event_init(&event, false);
    bide_start(&memory.child.task.frame, &child_body, &bide_default_context);
    bide_resume(&memory.child.task.frame);
    /* (the event forgets it) */
    bide_event_init(&event, false);
    for (size_t at = 0; at + sizeof(bide_event_waiter) <= 256; at += 8) {
        memset(&memory, (int)at, sizeof memory);
        bide_event_waiter *waiter = (bide_event_waiter *)(void *)(memory.bytes + at);
        bide_event_init(&event, false);
        bide_spawn(&spawned, &bide_default_context, bide_event_wait(waiter, &event));
        bide_event_set(&event);
        assert_true(bide_event_is_set(&spawned.ended));
    }
}

#if BIDE_DEBUG

/* ---- Many ---- */

struct many {
    bide_task task;
    bide_event_waiter wait;
};

bide_coroutine(many_body)
{
    bide_begin(many_body, struct many * self);
    bide_await(bide_event_wait(&self->wait, &event));
    bide_end();
}

enum { MANY = 100000 };
static struct many tasks[MANY];
static bide_spawned roots[MANY];
static unsigned again;

static void spawn_again(void)
{
    bide_spawn(&roots[again], &bide_default_context,
               bide_task_init(&tasks[(again + 1) % MANY].task, &many_body));
}

static void wait_again(void)
{
    static bide_spawned spawned;
    bide_spawn(&spawned, &bide_default_context, bide_event_wait(&tasks[again].wait, &event));
}

static void each_of_many_is_known(void **state)
{
    (void)state;
    bide_event_init(&event, false);
    for (unsigned i = 0; i < MANY; i++)
        bide_spawn(&roots[i], &bide_default_context, bide_task_init(&tasks[i].task, &many_body));
    for (again = 0; again < MANY; again += MANY / 3) {
        assert_true(
            misuse_aborts_naming(spawn_again, "a bide_spawned is used again", "spawn_again"));
        assert_true(misuse_aborts_naming(wait_again, "used again while it waits", "many_body"));
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_true(bide_flights_have_(&roots[i].root.frame));
    bide_event_set(&event);
    for (unsigned i = 0; i < MANY; i++)
        assert_false(bide_flights_have_(&roots[i].root.frame));
}

/* The mean number of slots that are looked at to find one of so many tasks and their operations. */
static double steps_beside(unsigned count)
{
    unsigned steps = 0;
    bide_event_init(&event, false);
    for (unsigned i = 0; i < count; i++)
        bide_spawn(&roots[i], &bide_default_context, bide_task_init(&tasks[i].task, &many_body));
    for (unsigned i = 0; i < count; i++)
        steps += bide_flights_steps_(&roots[i].root.frame) + bide_flights_steps_(&tasks[i].wait) +
                 bide_flights_steps_(&tasks[i].task);
    bide_event_set(&event);
    return (double)steps / (3.0 * count);
}

static void an_entry_is_found_in_as_many_steps_whatever_lives(void **state)
{
    (void)state;
    double beside_few = steps_beside(10);
    double beside_many = steps_beside(MANY);
    printf("# steps: %.2f beside 10, %.2f beside %d\n", beside_few, beside_many, MANY);
    assert_true(beside_many < 4 * beside_few);
}

/* Adding and removing in a random order, compared with a plain array. */
static void a_table_is_what_was_added_and_not_removed(void **state)
{
    enum { KEYS = 3000 };
    static bide_frame keys[KEYS];
    static bool is_in[KEYS];
    uint64_t random = testing_seed();
    bide_flight_ other;
    (void)state;
    for (unsigned i = 0; i < 100 * KEYS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t at = (size_t)(random >> 33) % KEYS;
        assert_int_equal(bide_flights_have_(&keys[at]), is_in[at]);
        if (is_in[at])
            bide_flights_remove_(&keys[at]);
        else
            assert_true(bide_flights_add_(&(bide_flight_){.address = &keys[at], .owner = &keys[at]},
                                          NULL, &other));
        is_in[at] = !is_in[at];
    }
    for (size_t at = 0; at < KEYS; at++) {
        assert_int_equal(bide_flights_have_(&keys[at]), is_in[at]);
        bide_flights_remove_(&keys[at]);
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if BIDE_DEBUG
        cmocka_unit_test(a_struct_that_is_used_again_while_it_waits_is_reported),
        cmocka_unit_test(each_of_many_is_known), /* before there are threads: see roots.h, forks */
        cmocka_unit_test(an_entry_is_found_in_as_many_steps_whatever_lives),
        cmocka_unit_test(a_table_is_what_was_added_and_not_removed),
#endif
        cmocka_unit_test(structs_are_used_again_when_the_wait_has_ended),
        cmocka_unit_test(structs_are_used_again_when_the_coroutine_was_destroyed),
        cmocka_unit_test(memory_of_a_coroutine_that_was_left_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
