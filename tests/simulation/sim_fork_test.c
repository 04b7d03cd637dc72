/* Forks on a test loop: whether a parent waits for its child, runs beside it or before it is drawn. */
#include "testing.h"

#include "bide/deadline.h"
#include "bide/fork.h"
#include "bide/schedule.h"
#include "bide/sim_loop.h"
#include "bide/sleep.h"
#include "bide/task.h"
#include "bide/when.h"

#include <errno.h>

/* ---- Recursion ---- */

struct fib {
    bide_fork_task forking;
    unsigned n;
    long *result;
    long one, two;
    bide_schedule_operation yield;
};

bide_fork_coroutine(fib_body)
{
    bide_begin(fib_body, struct fib * self);
    if (self->n < 2) {
        *self->result = self->n;
        bide_return(0);
    }
    bide_await(bide_fork(self, struct fib, &fib_body, n = self->n - 1, result = &self->one));
    if (self->n % 3 == 0)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_try(bide_fork_call(self, struct fib, &fib_body, n = self->n - 2, result = &self->two));
    bide_try(bide_fork_join(self));
    *self->result = self->one + self->two;
    bide_end();
}

/* In a branch, whose context has a stop source, and without one. */
static int compute_fib(bide_sim_loop *loop, void *argument)
{
    long results[2] = {0, 0};
    struct fib roots[2] = {{.n = 9, .result = &results[0]}, {.n = 8, .result = &results[1]}};
    bide_when_of(2) both;
    (void)argument;
    int status = bide_sim_loop_wait(
        loop, bide_when_all_of(&both, bide_fork_task_init(&roots[0].forking, &fib_body),
                               bide_fork_task_init(&roots[1].forking, &fib_body)));
    if (status < 0 || results[0] != 34 || results[1] != 21)
        return status < 0 ? status : -EINVAL;
    roots[0] = (struct fib){.n = 7, .result = &results[0]};
    status = bide_sim_loop_wait(loop, bide_fork_task_init(&roots[0].forking, &fib_body));
    return status < 0 ? status : results[0] == 13 ? 0 : -EINVAL;
}

static void results_do_not_depend_on_the_order(void **state)
{
    (void)state;
    assert_int_equal(bide_sim_loop_explore(compute_fib, 1000), 0);
}

/* ---- Many children, of different sizes, again and again ---- */

struct leaf {
    bide_fork_task forking;
    unsigned *count;
    unsigned naps;
    bide_sleep sleep;
    char room[3000];
};

bide_fork_coroutine(leaf_body)
{
    bide_begin(leaf_body, struct leaf * self);
    memset(self->room, 'x', sizeof self->room);
    for (; self->naps != 0; self->naps--)
        bide_try(bide_sleep_for(&self->sleep, 1000));
    for (size_t i = 0; i < sizeof self->room; i++)
        if (self->room[i] != 'x')
            bide_return(-EFAULT);
    ++*self->count;
    bide_end();
}

struct spreader {
    bide_fork_task forking;
    unsigned count, i, round;
};

bide_fork_coroutine(spreader_body)
{
    bide_begin(spreader_body, struct spreader * self);
    for (self->round = 0; self->round < 3; self->round++) {
        for (self->i = 0; self->i < 6; self->i++)
            bide_await(
                bide_fork(self, struct leaf, &leaf_body, count = &self->count, naps = self->i % 3));
        if (self->round < 2) /* the last children are waited for at its end */
            bide_try(bide_fork_join(self));
    }
    bide_end();
}

static int spread(bide_sim_loop *loop, void *argument)
{
    struct spreader root = {.count = 0};
    (void)argument;
    int status = bide_sim_loop_wait(loop, bide_fork_task_init(&root.forking, &spreader_body));
    return status < 0 ? status : root.count == 18 ? 0 : -EINVAL;
}

static void a_join_and_an_end_wait_for_all_children(void **state)
{
    (void)state;
    assert_int_equal(bide_sim_loop_explore(spread, 1000), 0);
}

/* ---- Faults that the order of the program hides ---- */

static char said[20000];

static int explore(bide_sim_body *body, bide_sim_result *result)
{
    FILE *out = tmpfile();
    int status = bide_sim_loop_explore_with(
        body, 1000, &(bide_sim_options){.out = out, .result = result, .simplify_seconds = 3600});
    rewind(out);
    said[fread(said, 1, sizeof said - 1, out)] = '\0';
    fclose(out);
    return status;
}

struct writer {
    bide_fork_task forking;
    int *to;
};

bide_fork_coroutine(writer_body)
{
    bide_begin(writer_body, struct writer * self);
    *self->to = 7;
    bide_end();
}

struct hasty {
    bide_fork_task forking;
    int value, seen;
};

bide_fork_coroutine(hasty_body)
{
    bide_begin(hasty_body, struct hasty * self);
    bide_await(bide_fork(self, struct writer, &writer_body, to = &self->value));
    self->seen = self->value; /* the bug: it has not joined */
    bide_try(bide_fork_join(self));
    bide_end();
}

static int read_too_early(bide_sim_loop *loop, void *argument)
{
    struct hasty root = {.value = 0};
    (void)argument;
    int status = bide_sim_loop_wait(loop, bide_fork_task_init(&root.forking, &hasty_body));
    return status < 0 ? status : root.seen == 7 ? 0 : -EINVAL;
}

static void a_parent_that_reads_before_its_join_is_found(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(read_too_early, &result), -EINVAL);
    assert_int_equal(result.draws_left, 1);
    assert_non_null(strstr(said, "the parent runs before the child that it forks"));
    assert_non_null(strstr(said, "BIDE_TEST_DRAWS=fork.0:2\n"));
}

struct adder {
    bide_fork_task forking;
    int *sum;
    int seen;
    bide_schedule_operation yield;
};

bide_fork_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    self->seen = *self->sum;
    bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    *self->sum = self->seen + 1;
    bide_end();
}

struct adding {
    bide_fork_task forking;
    int sum;
};

bide_fork_coroutine(adding_body)
{
    bide_begin(adding_body, struct adding * self);
    bide_await(bide_fork(self, struct adder, &adder_body, sum = &self->sum));
    bide_await(bide_fork(self, struct adder, &adder_body, sum = &self->sum));
    bide_try(bide_fork_join(self));
    bide_end();
}

static int add_both(bide_sim_loop *loop, void *argument)
{
    struct adding root = {.sum = 0};
    (void)argument;
    int status = bide_sim_loop_wait(loop, bide_fork_task_init(&root.forking, &adding_body));
    return status < 0 ? status : root.sum == 2 ? 0 : -EINVAL;
}

static void two_children_that_lose_an_update_are_found(void **state)
{
    bide_sim_result result;
    (void)state;
    assert_int_equal(explore(add_both, &result), -EINVAL);
    assert_non_null(strstr(said, "the parent runs "));
}

/* ---- Errors, and requests to stop ---- */

struct failing {
    bide_fork_task forking;
    int error;
    bide_sleep sleep;
};

bide_fork_coroutine(failing_body)
{
    bide_begin(failing_body, struct failing * self);
    bide_try(bide_sleep_for(&self->sleep, 1000));
    bide_return(self->error);
    bide_end();
}

struct chooser {
    bide_fork_task forking;
    unsigned count;
    int joined;
};

bide_fork_coroutine(chooser_body)
{
    bide_begin(chooser_body, struct chooser * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, count = &self->count, naps = 2));
    bide_await(bide_fork(self, struct failing, &failing_body, error = -EXDEV));
    bide_await(bide_fork(self, struct leaf, &leaf_body, count = &self->count, naps = 0));
    bide_await_status(self->joined, bide_fork_join(self));
    bide_end();
}

static int fail_in_one(bide_sim_loop *loop, void *argument)
{
    struct chooser root = {.count = 0};
    (void)argument;
    int status = bide_sim_loop_wait(loop, bide_fork_task_init(&root.forking, &chooser_body));
    if (status < 0)
        return status;
    return root.joined == -EXDEV && root.count == 2 ? 0 : -EINVAL;
}

static void the_error_of_a_child_is_that_of_the_join(void **state)
{
    (void)state;
    assert_int_equal(bide_sim_loop_explore(fail_in_one, 1000), 0);
}

struct patient {
    bide_fork_task forking;
    unsigned count;
    int joined;
};

bide_fork_coroutine(patient_body)
{
    bide_begin(patient_body, struct patient * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, count = &self->count, naps = 1000));
    bide_await(bide_fork(self, struct leaf, &leaf_body, count = &self->count, naps = 1000));
    bide_await_status(self->joined, bide_fork_join(self));
    bide_end();
}

static int stop_all(bide_sim_loop *loop, void *argument)
{
    struct patient root = {.count = 0};
    bide_with_deadline_operation limited;
    (void)argument;
    (void)bide_sim_loop_wait(
        loop,
        bide_with_timeout(&limited, 10000, bide_fork_task_init(&root.forking, &patient_body)));
    return root.joined == -ETIMEDOUT && root.count == 0 ? 0 : -EINVAL;
}

static void a_deadline_reaches_all_children(void **state)
{
    (void)state;
    assert_int_equal(bide_sim_loop_explore(stop_all, 1000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_do_not_depend_on_the_order),
        cmocka_unit_test(a_join_and_an_end_wait_for_all_children),
        cmocka_unit_test(a_parent_that_reads_before_its_join_is_found),
        cmocka_unit_test(two_children_that_lose_an_update_are_found),
        cmocka_unit_test(the_error_of_a_child_is_that_of_the_join),
        cmocka_unit_test(a_deadline_reaches_all_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
