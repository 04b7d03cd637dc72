/*
 * The shutdown of a run loop, and of a loop with input and output, with a deadline: it runs what ends, counts what does
 * not, and may be continued.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/descriptor.h"
#include "bide/handle.h"
#include "bide/loop.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/sleep.h"
#include "bide/socket.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <unistd.h>

/* Far away, for what a test does not wait for: about an hour. */
#define LATER (bide_platform.now() + UINT64_C(3600000000000))

enum { ENDS, SLEEPS, WAITS, YIELDS };

struct member {
    bide_task task;
    int kind;
    uint64_t pause;
    bide_event *event;
    bide_sleep sleep;
    bide_event_waiter wait;
    bide_schedule_operation hop;
    bool has_ended;
    bide_spawned spawned;
};

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    if (self->kind == SLEEPS)
        bide_await(bide_sleep_for(&self->sleep, self->pause));
    else if (self->kind == WAITS)
        bide_await(bide_event_wait(&self->wait, self->event));
    while (self->kind == YIELDS)
        bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
    self->has_ended = true;
    bide_end();
}

static void begin(struct member *self, bide_context *context, int kind, bide_event *event)
{
    self->kind = kind;
    self->event = event;
    self->has_ended = false;
    bide_spawn(&self->spawned, context, bide_task_init(&self->task, &member_body));
}

static void assert_remaining(const bide_run_loop_remaining *remaining, size_t tasks, size_t ready,
                             bool has_timers)
{
    assert_int_equal(remaining->tasks, tasks);
    assert_int_equal(remaining->ready, ready);
    assert_int_equal(remaining->has_timers, has_timers);
}

/* ---- The same tests for both kinds ---- */

struct subject {
    bide_run_loop run;
    bide_loop *loop; /* or NULL: `run` */
};

static void open_subject(struct subject *self, bool has_io)
{
    self->loop = NULL;
    if (has_io)
        assert_int_equal(bide_loop_create(&self->loop, NULL), 0);
    else
        bide_run_loop_init(&self->run);
}

static bide_context *context_of(struct subject *self)
{
    return self->loop != NULL ? bide_loop_context(self->loop) : &self->run.context;
}

static int shut_down(struct subject *self, uint64_t deadline, bide_run_loop_remaining *remaining)
{
    return self->loop != NULL ? bide_loop_shutdown(self->loop, deadline, remaining)
                              : bide_run_loop_shutdown(&self->run, deadline, remaining);
}

static void close_subject(struct subject *self)
{
    if (self->loop != NULL)
        bide_loop_destroy(self->loop);
    else
        bide_run_loop_destroy(&self->run);
}

#define EACH_KIND(name)                \
    static void name(void **state)     \
    {                                  \
        struct subject subject;        \
        (void)state;                   \
        for (int i = 0; i < 2; i++) {  \
            open_subject(&subject, i); \
            name##_of(&subject);       \
            close_subject(&subject);   \
        }                              \
    }                                  \
    static void name(void **state)

static void a_loop_without_work_ends_of(struct subject *subject)
{
    bide_run_loop_remaining remaining;
    assert_int_equal(shut_down(subject, BIDE_FOREVER, &remaining), 0);
    assert_remaining(&remaining, 0, 0, false);
    assert_int_equal(shut_down(subject, 0, NULL), 0);
}
EACH_KIND(a_loop_without_work_ends);

static void *set_event(void *event)
{
    bide_event_set(event);
    return NULL;
}

static void it_runs_what_ends_sleeps_and_waits_of(struct subject *subject)
{
    enum { MEMBERS = 3 };
    struct member members[MEMBERS];
    bide_run_loop_remaining remaining;
    bide_event event;
    bide_event_init(&event, false);
    begin(&members[0], context_of(subject), ENDS, NULL);
    begin(&members[1], context_of(subject), WAITS, &event);
    members[2].pause = 3000000;
    begin(&members[2], context_of(subject), SLEEPS, NULL);
    pthread_t setter = schedule_thread(set_event, &event);
    assert_int_equal(shut_down(subject, BIDE_FOREVER, &remaining), 0);
    pthread_join(setter, NULL);
    assert_remaining(&remaining, 0, 0, false);
    for (int i = 0; i < MEMBERS; i++)
        assert_true(members[i].has_ended);
}
EACH_KIND(it_runs_what_ends_sleeps_and_waits);

/* By a deadline in the past nothing runs; by one in the future what can. */
static void what_is_left_is_counted_and_may_be_gone_on_with_of(struct subject *subject)
{
    struct member waits, ends, sleeps = {.pause = UINT64_C(3600000000000)};
    bide_run_loop_remaining remaining;
    bide_event event;
    bide_event_init(&event, false);
    begin(&ends, context_of(subject), ENDS, NULL);
    begin(&waits, context_of(subject), WAITS, &event);
    begin(&sleeps, context_of(subject), SLEEPS, NULL);
    assert_int_equal(shut_down(subject, 0, &remaining), -ETIMEDOUT);
    assert_remaining(&remaining, 3, 3, false);
    while (!ends.has_ended || !schedule_is_awaited(&event))
        assert_int_equal(shut_down(subject, bide_platform.now() + 1000000, NULL), -ETIMEDOUT);
    shut_down(subject, 0, &remaining);
    while (!remaining.has_timers)
        assert_int_equal(shut_down(subject, bide_platform.now() + 1000000, &remaining), -ETIMEDOUT);
    assert_remaining(&remaining, 2, 0, true);
    bide_event_set(&event);
    assert_int_equal(shut_down(subject, 0, &remaining), -ETIMEDOUT);
    assert_remaining(&remaining, 2, 1, true);
    while (!waits.has_ended)
        assert_int_equal(shut_down(subject, bide_platform.now() + 1000000, &remaining), -ETIMEDOUT);
    bide_destroy(&sleeps.spawned.root.frame);
    assert_int_equal(shut_down(subject, BIDE_FOREVER, &remaining), 0);
    assert_remaining(&remaining, 0, 0, false);
}
EACH_KIND(what_is_left_is_counted_and_may_be_gone_on_with);

static void one_that_is_always_ready_is_left_of(struct subject *subject)
{
    struct member yields;
    bide_run_loop_remaining remaining;
    begin(&yields, context_of(subject), YIELDS, NULL);
    assert_int_equal(shut_down(subject, bide_platform.now() + 1000000, &remaining), -ETIMEDOUT);
    assert_remaining(&remaining, 1, 1, false);
    bide_destroy(&yields.spawned.root.frame);
    assert_int_equal(shut_down(subject, LATER, &remaining), 0);
}
EACH_KIND(one_that_is_always_ready_is_left);

/* ---- Tasks that run elsewhere in between ---- */

struct away {
    bide_task task;
    bide_scheduler *home, *other;
    unsigned turns;
    bide_schedule_operation hop;
    bool has_ended;
    bide_spawned spawned;
};

bide_coroutine(away_body)
{
    bide_begin(away_body, struct away * self);
    while (self->turns-- != 0) {
        bide_await(bide_schedule(&self->hop, self->other));
        bide_await(bide_schedule(&self->hop, self->home));
    }
    self->has_ended = true;
    bide_end();
}

static void it_waits_for_tasks_that_are_elsewhere_of(struct subject *subject)
{
    enum { TASKS = 3, TURNS = 50 };
    struct away tasks[TASKS];
    bide_thread_pool *pool;
    bide_run_loop_remaining remaining;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct away){.home = context_of(subject)->scheduler,
                                 .other = bide_thread_pool_scheduler(pool),
                                 .turns = TURNS};
        bide_spawn(&tasks[i].spawned, context_of(subject),
                   bide_task_init(&tasks[i].task, &away_body));
    }
    assert_int_equal(shut_down(subject, BIDE_FOREVER, &remaining), 0);
    assert_remaining(&remaining, 0, 0, false);
    for (int i = 0; i < TASKS; i++)
        assert_true(tasks[i].has_ended);
    bide_thread_pool_destroy(pool);
}
EACH_KIND(it_waits_for_tasks_that_are_elsewhere);

/* ---- Input and output ---- */

struct reader {
    bide_task task;
    bide_descriptor in;
    char byte;
    bide_io_operation recv;
    bide_spawned spawned;
};

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    bide_await(bide_recv(&self->recv, &self->in, &self->byte, 1));
    bide_end();
}

static void an_operation_that_waits_is_a_task_that_is_left(void **state)
{
    (void)state;
    bide_loop *loop;
    int ends[2];
    bide_run_loop_remaining remaining;
    struct reader reader = {.byte = 0};
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    bide_descriptor_init(&reader.in, ends[0]);
    bide_spawn(&reader.spawned, bide_loop_context(loop),
               bide_task_init(&reader.task, &reader_body));
    do
        assert_int_equal(bide_loop_shutdown(loop, bide_platform.now() + 1000000, &remaining),
                         -ETIMEDOUT);
    while (remaining.ready != 0);
    assert_remaining(&remaining, 1, 0, false);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(bide_loop_shutdown(loop, BIDE_FOREVER, &remaining), 0);
    assert_int_equal(reader.byte, 'x');
    assert_int_equal(bide_close(&reader.in), 0);
    close(ends[1]);
    bide_loop_destroy(loop);
}

/* ---- Misuse ---- */

struct shutting {
    bide_task task;
    bide_run_loop *loop;
};

bide_coroutine(shutting_body)
{
    bide_begin(shutting_body, struct shutting * self);
    bide_run_loop_shutdown(self->loop, 0, NULL);
    bide_end();
}

static void shuts_down_from_inside(void)
{
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct shutting shutting = {.loop = &loop};
    bide_run_loop_wait(&loop, bide_task_init(&shutting.task, &shutting_body));
}

static void from_inside_the_loop_it_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(shuts_down_from_inside, "shut down by one of its coroutines",
                                     "bide_run_loop_shutdown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_without_work_ends),
        cmocka_unit_test(it_runs_what_ends_sleeps_and_waits),
        cmocka_unit_test(what_is_left_is_counted_and_may_be_gone_on_with),
        cmocka_unit_test(one_that_is_always_ready_is_left),
        cmocka_unit_test(it_waits_for_tasks_that_are_elsewhere),
        cmocka_unit_test(an_operation_that_waits_is_a_task_that_is_left),
        cmocka_unit_test(from_inside_the_loop_it_is_misuse),
    };
    return cmocka_run_group_tests_name("loop_shutdown", tests, NULL, NULL);
}
