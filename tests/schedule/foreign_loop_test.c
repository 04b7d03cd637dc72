/*
 * A run loop in a foreign one: its descriptor is readable when there is something to run, no matter which thread woke
 * it, and no wake-up is lost between running and polling.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "faults.h"

#include "bide/auto_event.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"

#include <errno.h>
#include <poll.h>

#define HOUR (3600 * UINT64_C(1000000000))

static bool is_readable(const bide_run_loop *loop)
{
    struct pollfd fd = {.fd = loop->fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/* Polls until there is something to run, without a timeout, and runs it. */
static void poll_and_run(bide_run_loop *loop)
{
    struct pollfd fd = {.fd = loop->fd, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, -1), 1);
    bide_run_loop_run_ready(loop);
}

static void open_loop(bide_run_loop *loop)
{
    bide_run_loop_init(loop);
    assert_true(bide_run_loop_fd(loop) >= 0);
    assert_int_equal(bide_run_loop_fd(loop), loop->fd);
}

static void close_loop(bide_run_loop *loop)
{
    bide_run_loop_close_fd(loop);
    bide_run_loop_destroy(loop);
}

/* ---- When it is readable ---- */

static void it_is_readable_when_there_is_something_to_run(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_event event;
    witness task;
    bide_spawned spawned;
    open_loop(&loop);
    bide_event_init(&event, false);
    assert_true(is_readable(&loop)); /* a coroutine may have been posted before */
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    assert_false(is_readable(&loop));

    bide_spawn(&spawned, &loop.context, witness_run(&task, &event, 0));
    assert_true(is_readable(&loop));
    assert_true(bide_run_loop_run_ready(&loop) > 0);
    assert_false(is_readable(&loop));

    bide_event_set(&event); /* on the loop's own thread, by a callback of the foreign loop */
    assert_true(is_readable(&loop));
    bide_run_loop_run_ready(&loop);
    assert_false(is_readable(&loop));
    assert_int_equal(witness_ends(&task), 1);
    close_loop(&loop);
}

static void it_is_readable_also_after_the_loop_ran_by_itself(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_event event;
    witness tasks[2];
    bide_spawned spawned;
    open_loop(&loop);
    bide_event_init(&event, false);
    bide_spawn(&spawned, &loop.context, witness_run(&tasks[0], &event, 0));
    bide_run_loop_wait(&loop, witness_run(&tasks[1], NULL, 0));
    bide_run_loop_run_ready(&loop);
    bide_run_loop_wait(&loop, witness_run(&tasks[1], NULL, 0));
    assert_false(is_readable(&loop));
    bide_event_set(&event);
    assert_true(is_readable(&loop));
    bide_run_loop_run_ready(&loop);
    assert_int_equal(witness_ends(&tasks[0]), 1);
    close_loop(&loop);
}

struct yielder {
    bide_task task;
    bide_schedule_operation yield;
    const bool *end;
};

bide_coroutine(yielder_body)
{
    bide_begin(yielder_body, struct yielder * self);
    while (!*self->end)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_end();
}

static void a_loop_that_is_never_idle_lets_the_foreign_loop_go_on(void **state)
{
    (void)state;
    bool end = false;
    bide_run_loop loop;
    struct yielder yielder = {.end = &end};
    bide_spawned spawned;
    open_loop(&loop);
    bide_spawn(&spawned, &loop.context, bide_task_init(&yielder.task, &yielder_body));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bide_run_loop_run_ready(&loop), BIDE_LOOP_TURN_);
        assert_true(is_readable(&loop));
    }
    end = true;
    assert_in_range(bide_run_loop_run_ready(&loop), 1, 2);
    assert_false(is_readable(&loop));
    close_loop(&loop);
}

/* ---- Other threads ---- */

enum { PAIRS = 4, ROUNDS = 5000 };

/* Waits for an event that a thread sets, and lets the thread continue. */
struct answerer {
    bide_task task;
    bide_spawned spawned;
    bide_auto_event asked;
    bide_auto_event_waiter wait;
    bide_atomic(uint32_t) answers;
    uint32_t rounds;
};

bide_coroutine(answerer_body)
{
    bide_begin(answerer_body, struct answerer * self);
    while (bide_atomic_load(&self->answers, relaxed) < self->rounds) {
        bide_try(bide_auto_event_wait(&self->wait, &self->asked));
        bide_atomic_fetch_add(&self->answers, 1, release);
    }
    bide_end();
}

static void *ask(void *argument)
{
    struct answerer *answerer = argument;
    uint64_t random = (uintptr_t)argument;
    for (uint32_t i = 0; i < answerer->rounds; i++) {
        bide_auto_event_set(&answerer->asked);
        schedule_until(bide_atomic_load(&answerer->answers, acquire) == i + 1);
        schedule_jitter(&random);
    }
    return NULL;
}

static void no_wake_of_another_thread_is_lost(void **state)
{
    (void)state;
    bide_run_loop loop;
    static struct answerer answerers[PAIRS];
    pthread_t threads[PAIRS];
    open_loop(&loop);
    for (int i = 0; i < PAIRS; i++) {
        bide_auto_event_init(&answerers[i].asked, false);
        bide_atomic_init(&answerers[i].answers, 0);
        answerers[i].rounds = rounds_of(ROUNDS);
        bide_spawn(&answerers[i].spawned, &loop.context,
                   bide_task_init(&answerers[i].task, &answerer_body));
        threads[i] = schedule_thread(ask, &answerers[i]);
    }
    for (int i = 0; i < PAIRS; i++) {
        while (!bide_event_is_set(&answerers[i].spawned.ended))
            poll_and_run(&loop);
        pthread_join(threads[i], NULL);
    }
    close_loop(&loop);
}

struct sleep_setter {
    bide_run_loop *loop;
    bide_timer timer;
    bide_frame frame;
};

static bide_next nothing_step(bide_frame *frame, unsigned depth)
{
    (void)frame;
    (void)depth;
    return bide_next_none();
}

static const bide_coroutine_code nothing_code = {nothing_step, "nothing", __FILE__, NULL, NULL};
static const bide_point nothing_point = BIDE_POINT_START(&nothing_code);

static void *set_timer(void *argument)
{
    struct sleep_setter *self = argument;
    bide_scheduler *scheduler = &self->loop->scheduler;
    scheduler->set_timer(scheduler, &self->timer);
    return NULL;
}

static void a_timer_that_another_thread_sets_is_told(void **state)
{
    (void)state;
    bide_run_loop loop;
    struct sleep_setter setter = {.loop = &loop};
    open_loop(&loop);
    bide_run_loop_run_ready(&loop);
    bide_timer_init(&setter.timer, bide_platform.now() + HOUR);
    setter.timer.awaiter.ops = &nothing_point.ops;
    setter.timer.awaiter.frame = &setter.frame;
    setter.frame.awaiter.ops = &nothing_point.ops;
    setter.frame.context = &loop.context;
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    pthread_t thread = schedule_thread(set_timer, &setter);
    poll_and_run(&loop);
    pthread_join(thread, NULL);
    assert_true(bide_run_loop_next_deadline(&loop) == setter.timer.time);
    assert_true(loop.scheduler.clear_timer(&loop.scheduler, &setter.timer));
    close_loop(&loop);
}

/* ---- The descriptor ---- */

static void one_that_was_given_up_is_the_next_ones(void **state)
{
    (void)state;
    bide_run_loop loops[2];
    bide_event event;
    witness task;
    bide_spawned spawned;
    open_loop(&loops[0]);
    int fd = loops[0].fd;
    close_loop(&loops[0]);
    faults_clear();
    long descriptors = faults_descriptors();
    open_loop(&loops[1]);
    assert_int_equal(loops[1].fd, fd);
    assert_int_equal(faults_descriptors(), descriptors);
    bide_event_init(&event, false);
    bide_spawn(&spawned, &loops[1].context, witness_run(&task, &event, 0));
    bide_run_loop_run_ready(&loops[1]);
    assert_false(is_readable(&loops[1]));
    bide_run_loop_close_fd(&loops[1]);
    bide_event_set(&event); /* goes to the loop, which has no descriptor now */
    assert_int_equal(bide_run_loop_run_ready(&loops[1]), 1);
    assert_int_equal(witness_ends(&task), 1);
    bide_run_loop_destroy(&loops[1]);
}

static void one_that_cannot_be_opened_is_reported(void **state)
{
    (void)state;
    bide_run_loop loops[2];
    open_loop(&loops[0]); /* takes the kept descriptor */
    bide_run_loop_init(&loops[1]);
    faults_clear();
    faults_fail(FAULT_RAISED, 1, 1, EMFILE);
    assert_int_equal(bide_run_loop_fd(&loops[1]), -EMFILE);
    witness task;
    assert_int_equal(bide_run_loop_wait(&loops[1], witness_run(&task, NULL, 0)), 0);
    assert_true(bide_run_loop_fd(&loops[1]) >= 0);
    faults_clear();
    for (int i = 0; i < 2; i++)
        close_loop(&loops[i]);
}

/* No signal in between is noticed. */
static void an_interrupted_write_or_read_is_begun_again(void **state)
{
    (void)state;
    static const fault functions[] = {FAULT_WRITE, FAULT_READ};
    for (int i = 0; i < 2; i++) {
        bide_run_loop loop;
        witness task;
        bide_spawned spawned;
        open_loop(&loop);
        bide_run_loop_run_ready(&loop);
        faults_clear();
        faults_fail(functions[i], 1, 3, EINTR);
        bide_spawn(&spawned, &loop.context, witness_run(&task, NULL, 0));
        assert_true(is_readable(&loop));
        assert_true(bide_run_loop_run_ready(&loop) > 0);
        assert_int_equal(faults_hits(functions[i]), 3);
        assert_false(is_readable(&loop));
        faults_clear();
        close_loop(&loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_readable_when_there_is_something_to_run),
        cmocka_unit_test(it_is_readable_also_after_the_loop_ran_by_itself),
        cmocka_unit_test(a_loop_that_is_never_idle_lets_the_foreign_loop_go_on),
        cmocka_unit_test(no_wake_of_another_thread_is_lost),
        cmocka_unit_test(a_timer_that_another_thread_sets_is_told),
        cmocka_unit_test(one_that_was_given_up_is_the_next_ones),
        cmocka_unit_test(one_that_cannot_be_opened_is_reported),
        cmocka_unit_test(an_interrupted_write_or_read_is_begun_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
