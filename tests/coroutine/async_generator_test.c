/*
 * Asynchronous generators: they await between two values, alternate with their consumer, end early, and use no stack.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/async_generator.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <errno.h>

struct count {
    bide_async_generator generator;
    int i, n;
    int error;
    int finals;
    bide_event *gate; /* to wait for before each value; or NULL */
    const char *seen_name;
    bide_event_waiter wait;
};

bide_async_generator_coroutine(count_body)
{
    bide_begin(count_body, struct count * self);
    for (self->i = 0; self->i < self->n; self->i++) {
        if (self->gate != NULL)
            bide_await(bide_event_wait(&self->wait, self->gate));
        self->seen_name = bide_this_context()->name;
        bide_yield(&self->i);
    }
    bide_return(self->error);
    bide_finally();
    self->finals++;
    bide_end();
}

static bide_async_generator *count(struct count *self, int n, bide_event *gate, int error)
{
    *self = (struct count){.n = n, .gate = gate, .error = error};
    return bide_async_generator_init(&self->generator, &count_body);
}

struct consumer {
    bide_task task;
    struct count count;
    bide_async_generator_next_operation next;
    bide_event *gate;
    int n, error, stop_at;
    int sum, values;
    int status;
    bool again;
    bide_event *between;
    bide_event_waiter wait;
};

/* Asks by hand. */
bide_coroutine(asking_body)
{
    bide_begin(asking_body, struct consumer * self);
    count(&self->count, self->n, self->gate, self->error);
    for (;;) {
        int status;
        bide_await_status(status, bide_async_generator_next(&self->next, &self->count.generator));
        self->status = status;
        if (self->next.value == NULL)
            break;
        assert_int_equal(status, 0);
        self->sum += *(int *)self->next.value;
        self->values++;
    }
    /* and ever after */
    int status;
    bide_await_status(status, bide_async_generator_next(&self->next, &self->count.generator));
    self->again = self->next.value == NULL && status == self->status;
    bide_end();
}

bide_coroutine(looping_body)
{
    bide_begin(looping_body, struct consumer * self);
    bide_for_await (&self->next, count(&self->count, self->n, self->gate, self->error)) {
        if (self->between != NULL)
            bide_await(bide_event_wait(&self->wait, self->between));
        if (*(int *)self->next.value % 2 == 1)
            continue;
        self->sum += *(int *)self->next.value;
        self->values++;
        if (*(int *)self->next.value == self->stop_at)
            break;
    }
    bide_return(bide_async_generator_error(&self->count.generator));
    bide_end();
}

static void begin(struct consumer *consumer, const bide_point *body)
{
    bide_start(&consumer->task.frame, body, &bide_default_context);
    bide_resume(&consumer->task.frame);
}

static void values_come_one_at_a_time_and_the_end_stays(void **state)
{
    (void)state;
    struct consumer consumer = {.n = 5};
    begin(&consumer, &asking_body);
    assert_true(bide_done(&consumer.task.frame));
    assert_int_equal(consumer.sum, 10);
    assert_int_equal(consumer.values, 5);
    assert_int_equal(consumer.status, 0);
    assert_true(consumer.again);
    assert_int_equal(consumer.count.finals, 1);
}

static void an_error_is_the_status_of_the_end(void **state)
{
    (void)state;
    struct consumer consumer = {.n = 2, .error = -EIO};
    begin(&consumer, &asking_body);
    assert_int_equal(consumer.values, 2);
    assert_int_equal(consumer.status, -EIO);
    assert_true(consumer.again);
}

static void it_may_await_between_two_values(void **state)
{
    (void)state;
    struct consumer consumer = {.n = 3};
    bide_event gates[2];
    bide_event_init(&gates[0], false);
    bide_event_init(&gates[1], false);
    consumer.gate = &gates[0];
    begin(&consumer, &asking_body);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(consumer.values, i);
        assert_false(bide_done(&consumer.task.frame));
        /* the waiter resumes when set returns, so the next wait is for the other event */
        consumer.count.gate = &gates[(i + 1) % 2];
        bide_event_reset(&gates[(i + 1) % 2]);
        bide_event_set(&gates[i % 2]);
    }
    assert_true(bide_done(&consumer.task.frame));
    assert_int_equal(consumer.values, 3);
}

static void it_runs_in_the_context_of_its_consumer(void **state)
{
    (void)state;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "mine"};
    struct consumer consumer = {.n = 1};
    bide_sync_wait_in(&context, bide_task_init(&consumer.task, &asking_body));
    assert_string_equal(consumer.count.seen_name, "mine");
}

static void a_loop_takes_all_values_and_may_await(void **state)
{
    (void)state;
    bide_event between;
    bide_event_init(&between, false);
    struct consumer consumer = {.n = 7, .stop_at = -1, .between = &between};
    begin(&consumer, &looping_body);
    assert_false(bide_done(&consumer.task.frame));
    bide_event_set(&between);
    assert_true(bide_done(&consumer.task.frame));
    assert_int_equal(consumer.sum, 0 + 2 + 4 + 6);
    assert_int_equal(consumer.values, 4);
    assert_int_equal(consumer.count.finals, 1);
    assert_int_equal(bide_task_error(&consumer.task), 0);
}

static void break_ends_the_generator(void **state)
{
    (void)state;
    struct consumer consumer = {.n = 7, .stop_at = 4};
    begin(&consumer, &looping_body);
    assert_int_equal(consumer.sum, 0 + 2 + 4);
    assert_int_equal(consumer.count.finals, 1);
    assert_true(bide_done(&consumer.count.generator.frame));
    assert_int_equal(bide_task_error(&consumer.task), -ECANCELED);
}

static void a_loop_tells_of_an_error_afterwards(void **state)
{
    (void)state;
    struct consumer consumer = {.n = 1, .stop_at = -1, .error = -EDOM};
    begin(&consumer, &looping_body);
    assert_int_equal(bide_task_error(&consumer.task), -EDOM);
    assert_int_equal(consumer.values, 1);
}

static void end_runs_finally_once(void **state)
{
    (void)state;
    struct count frame;
    bide_async_generator_next_operation next;
    bide_async_generator *generator = count(&frame, 3, NULL, 0);
    assert_int_equal(bide_sync_wait(bide_async_generator_next(&next, generator)), 0);
    assert_int_equal(*(int *)next.value, 0);
    bide_async_generator_destroy(generator);
    bide_async_generator_destroy(generator);
    assert_int_equal(frame.finals, 1);
    assert_int_equal(bide_sync_wait(bide_async_generator_next(&next, generator)), -ECANCELED);
    assert_null(next.value);
}

/* Waits for an operation that can be withdrawn, and records that it was. */
struct parked {
    bide_awaiter awaiter;
    bool withdrawn;
};

static bide_frame *parked_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter, (void)frame;
    return NULL;
}

static bool parked_withdraw(bide_awaiter *awaiter)
{
    ((struct parked *)(void *)awaiter)->withdrawn = true;
    return true;
}

struct waiting {
    bide_async_generator generator;
    struct parked parked;
    int finals;
};

bide_async_generator_coroutine(waiting_body)
{
    static const bide_awaiter_ops ops = {
        .suspend = parked_suspend,
        .withdraw = parked_withdraw,
        .name = "parked",
    };
    bide_begin(waiting_body, struct waiting * self);
    self->parked.awaiter.ops = &ops;
    bide_await(&self->parked.awaiter);
    bide_finally();
    self->finals++;
    bide_end();
}

struct destroyed {
    bide_task task;
    struct waiting waiting;
    bide_async_generator_next_operation next;
    int finals;
};

bide_coroutine(destroyed_body)
{
    bide_begin(destroyed_body, struct destroyed * self);
    bide_await(bide_async_generator_next(
        &self->next, bide_async_generator_init(&self->waiting.generator, &waiting_body)));
    bide_finally();
    self->finals = self->waiting.finals + 1; /* the innermost first */
    bide_end();
}

static void a_consumer_destroyed_while_it_asks_takes_the_generator_along(void **state)
{
    (void)state;
    struct destroyed frame = {.finals = 0};
    bide_start(&frame.task.frame, &destroyed_body, &bide_default_context);
    bide_resume(&frame.task.frame);
    assert_false(bide_done(&frame.task.frame));
    bide_destroy(&frame.task.frame);
    assert_true(frame.waiting.parked.withdrawn);
    assert_true(bide_done(&frame.waiting.generator.frame));
    assert_int_equal(frame.waiting.finals, 1);
    assert_int_equal(frame.finals, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_one_at_a_time_and_the_end_stays),
        cmocka_unit_test(an_error_is_the_status_of_the_end),
        cmocka_unit_test(it_may_await_between_two_values),
        cmocka_unit_test(it_runs_in_the_context_of_its_consumer),
        cmocka_unit_test(a_loop_takes_all_values_and_may_await),
        cmocka_unit_test(break_ends_the_generator),
        cmocka_unit_test(a_loop_tells_of_an_error_afterwards),
        cmocka_unit_test(end_runs_finally_once),
        cmocka_unit_test(a_consumer_destroyed_while_it_asks_takes_the_generator_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
