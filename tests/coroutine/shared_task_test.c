/*
 * Shared tasks: the first awaiter starts the task, in a context of its own; all awaiters get one result, then
 * and later; with waiters on several threads.
 */
#define _GNU_SOURCE
#include "sync/meeting.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/shared_task.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/thread_pool.h"

#include <errno.h>

struct work {
    bide_shared_task shared;
    bide_event *waits_for; /* or NULL */
    bide_event_waiter wait;
    int error;
    int runs;
    int result;
    const bide_context *seen;
};

bide_shared_coroutine(work_body)
{
    bide_begin(work_body, struct work * self);
    self->runs++;
    self->seen = bide_this_context();
    if (self->waits_for != NULL)
        bide_await(bide_event_wait(&self->wait, self->waits_for));
    self->result = 42;
    bide_return(self->error);
    bide_finally();
    self->waits_for = NULL;
    bide_end();
}

static struct work *work_init(struct work *work, const bide_context *context)
{
    *work = (struct work){.error = 0};
    bide_shared_task_init(&work->shared, &work_body, context);
    return work;
}

struct waiter {
    bide_task task;
    struct work *work;
    char *said; /* the names of resumed waiters */
    char name;
    int status;
    int result;
    bide_shared_task_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    int status;
    bide_await_status(status, bide_shared_task_wait(&self->wait, &self->work->shared));
    self->status = status;
    self->result = self->work->result;
    if (self->said != NULL)
        strncat(self->said, &self->name, 1);
    bide_end();
}

static void begin_waiter(struct waiter *waiter, struct work *work, char *said, char name)
{
    *waiter = (struct waiter){.work = work, .said = said, .name = name, .status = 1};
    bide_await_later(bide_task_init(&waiter->task, &waiter_body));
    waiter->task.frame.context = &bide_default_context;
    waiter->task.frame.awaiter.frame = NULL;
    bide_resume(&waiter->task.frame);
}

static void it_starts_with_the_first_wait_and_runs_once(void **state)
{
    (void)state;
    struct work work;
    struct waiter waiters[3];
    work_init(&work, &bide_default_context);
    assert_int_equal(work.runs, 0);
    for (int i = 0; i < 3; i++) {
        begin_waiter(&waiters[i], &work, NULL, 'a');
        assert_int_equal(work.runs, 1);
        assert_int_equal(waiters[i].status, 0);
        assert_int_equal(waiters[i].result, 42);
    }
}

static void all_waiters_go_on_in_order_of_arrival(void **state)
{
    (void)state;
    struct work work;
    struct waiter waiters[3];
    char said[8] = "";
    bide_event event;
    bide_event_init(&event, false);
    work_init(&work, &bide_default_context)->waits_for = &event;
    for (int i = 0; i < 3; i++)
        begin_waiter(&waiters[i], &work, said, (char)('a' + i));
    assert_false(bide_shared_task_ended(&work.shared));
    assert_string_equal(said, "");
    bide_event_set(&event);
    assert_true(bide_shared_task_ended(&work.shared));
    assert_string_equal(said, "abc");
    assert_int_equal(work.runs, 1);
}

static void its_error_is_everybodys(void **state)
{
    (void)state;
    struct work work;
    struct waiter before, after;
    bide_event event;
    bide_event_init(&event, false);
    work_init(&work, &bide_default_context)->waits_for = &event;
    work.error = -EDOM;
    begin_waiter(&before, &work, NULL, 'a');
    bide_event_set(&event);
    begin_waiter(&after, &work, NULL, 'b');
    assert_int_equal(before.status, -EDOM);
    assert_int_equal(after.status, -EDOM);
    assert_int_equal(bide_shared_task_error(&work.shared), -EDOM);
}

/* Waiters get the error; the context's `unhandled` is for tasks without waiters. */
static int unhandled_count;

static void count_unhandled(const bide_context *context, const bide_coroutine_code *code, int error)
{
    (void)context, (void)code, (void)error;
    unhandled_count++;
}

static void a_failure_is_not_unhandled(void **state)
{
    (void)state;
    const bide_context context = {.scheduler = &bide_inline_scheduler,
                                  .on_unhandled_error = count_unhandled};
    struct work work;
    bide_shared_task_waiter wait;
    work_init(&work, &context)->error = -EIO;
    unhandled_count = 0;
    assert_int_equal(bide_sync_wait(bide_shared_task_wait(&wait, &work.shared)), -EIO);
    assert_int_equal(unhandled_count, 0);
}

static void it_runs_in_the_context_that_it_was_given(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    bide_run_loop loop;
    struct work work;
    bide_shared_task_waiter wait;
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool), .name = "pool"};
    bide_run_loop_init(&loop);
    work_init(&work, &context);
    assert_int_equal(bide_run_loop_wait(&loop, bide_shared_task_wait(&wait, &work.shared)), 0);
    assert_ptr_equal(work.seen, &context);
    assert_int_equal(work.result, 42);
    bide_thread_pool_destroy(pool);
}

static void it_may_be_used_again_after_its_end(void **state)
{
    (void)state;
    struct work work;
    bide_shared_task_waiter wait;
    for (int round = 0; round < 3; round++) {
        work_init(&work, &bide_default_context)->error = -round;
        assert_int_equal(bide_sync_wait(bide_shared_task_wait(&wait, &work.shared)), -round);
        assert_int_equal(work.runs, 1);
    }
}

static void a_cancelled_waiter_does_not_end_it_for_the_others(void **state)
{
    (void)state;
    struct work work;
    struct waiter first, other;
    bide_stop_source source;
    bide_event event;
    bide_stop_source_init(&source);
    const bide_context stoppable = {.scheduler = &bide_inline_scheduler, .stop = &source};
    bide_event_init(&event, false);
    work_init(&work, &bide_default_context)->waits_for = &event;
    first = (struct waiter){.work = &work, .status = 1};
    bide_start(&first.task.frame, &waiter_body, &stoppable);
    bide_resume(&first.task.frame); /* it starts the task */
    begin_waiter(&other, &work, NULL, 'b');
    bide_stop_request(&source);
    assert_int_equal(first.status, -ECANCELED);
    assert_true(bide_done(&first.task.frame));
    assert_int_equal(other.status, 1);
    bide_event_set(&event);
    assert_int_equal(other.status, 0);
    assert_int_equal(other.result, 42);
    assert_int_equal(work.runs, 1);
}

static void a_destroyed_waiter_is_not_woken(void **state)
{
    (void)state;
    struct work work;
    struct waiter waiters[3];
    char said[8] = "";
    bide_event event;
    bide_event_init(&event, false);
    work_init(&work, &bide_default_context)->waits_for = &event;
    for (int i = 0; i < 3; i++)
        begin_waiter(&waiters[i], &work, said, (char)('a' + i));
    bide_destroy(&waiters[1].task.frame);
    bide_event_set(&event);
    assert_string_equal(said, "ac");
}

/* Four threads await one task, and one of them sets what the task waits for. */
enum { THREADS = 4 };

struct contest {
    meeting meeting;
    struct work work;
    bide_event event;
    uint32_t rounds;
    uint64_t seed;
    bide_atomic(uint32_t) failures;
};

struct contestant {
    struct contest *contest;
    unsigned number;
};

static void *contend(void *argument)
{
    struct contestant *self = argument;
    struct contest *contest = self->contest;
    uint64_t random = contest->seed + self->number;
    for (uint32_t round = 0; round < contest->rounds; round++) {
        if (self->number == 0) {
            bide_event_init(&contest->event, round % 3 == 0);
            work_init(&contest->work, &bide_default_context)->waits_for = &contest->event;
            contest->work.error = -(int)(round % 100);
        }
        meet(&contest->meeting);
        bide_shared_task_waiter wait;
        random_moment(&random, 50);
        if (self->number == round % THREADS)
            bide_event_set(&contest->event);
        if (bide_sync_wait(bide_shared_task_wait(&wait, &contest->work.shared)) !=
                -(int)(round % 100) ||
            contest->work.result != 42 || contest->work.runs != 1)
            bide_atomic_fetch_add(&contest->failures, 1, relaxed);
        meet(&contest->meeting);
    }
    return NULL;
}

static void four_threads_wait_for_one_result(void **state)
{
    (void)state;
    static struct contest contest;
    struct contestant contestants[THREADS];
    pthread_t threads[THREADS];
    contest.rounds = rounds_of(2000);
    contest.seed = testing_seed();
    meeting_init(&contest.meeting, THREADS);
    bide_atomic_init(&contest.failures, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        contestants[i] = (struct contestant){&contest, i};
        start_thread(&threads[i], contend, &contestants[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        join_thread(threads[i]);
    assert_int_equal(bide_atomic_load(&contest.failures, relaxed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_with_the_first_wait_and_runs_once),
        cmocka_unit_test(all_waiters_go_on_in_order_of_arrival),
        cmocka_unit_test(its_error_is_everybodys),
        cmocka_unit_test(a_failure_is_not_unhandled),
        cmocka_unit_test(it_runs_in_the_context_that_it_was_given),
        cmocka_unit_test(it_may_be_used_again_after_its_end),
        cmocka_unit_test(a_cancelled_waiter_does_not_end_it_for_the_others),
        cmocka_unit_test(a_destroyed_waiter_is_not_woken),
        cmocka_unit_test(four_threads_wait_for_one_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
