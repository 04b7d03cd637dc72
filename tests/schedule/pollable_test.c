/*
 * Operations in a foreign event loop: their end makes a descriptor readable, once, no matter which thread ends them.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "faults.h"
#include "misuse.h"

#include "bide/pollable.h"
#include "bide/run_loop.h"
#include "bide/single_consumer_event.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

enum { SHORT = 1000 * 1000 };

static bool is_readable(bide_pollable *pollable)
{
    struct pollfd polled = {.fd = bide_pollable_fd(pollable), .events = POLLIN};
    assert_in_range(poll(&polled, 1, 0), 0, 1);
    return (polled.revents & POLLIN) != 0;
}

/* Polls until it has ended; returns its status. */
static int poll_until_ended(bide_pollable *pollable)
{
    int status = 1, error;
    while ((error = bide_pollable_finish(pollable, &status)) == -EINPROGRESS) {
        struct pollfd polled = {.fd = bide_pollable_fd(pollable), .events = POLLIN};
        poll(&polled, 1, bide_pollable_timeout(pollable));
    }
    assert_int_equal(error, 0);
    return status;
}

static void init(bide_pollable *pollable)
{
    assert_int_equal(bide_pollable_init(pollable), 0);
}

/* ---- One ---- */

static void the_end_makes_it_readable_and_finishing_unreadable(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_event event;
    bide_event_waiter wait;
    int status = 1;
    init(&pollable);
    bide_event_init(&event, false);
    int fd = bide_pollable_fd(&pollable);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(bide_pollable_finish(&pollable, &status), -EINVAL);
        bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
        assert_false(is_readable(&pollable));
        assert_int_equal(bide_pollable_finish(&pollable, &status), -EINPROGRESS);
        assert_int_equal(status, 1);
        bide_event_set(&event);
        assert_true(is_readable(&pollable));
        assert_true(is_readable(&pollable));
        assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
        assert_int_equal(status, 0);
        assert_false(is_readable(&pollable));
        bide_event_reset(&event);
        assert_int_equal(bide_pollable_fd(&pollable), fd);
        status = 1;
    }
    bide_pollable_destroy(&pollable);
}

static void what_has_ended_at_once_is_readable_at_once(void **state)
{
    (void)state;
    bide_pollable pollable;
    witness task;
    int status = 1;
    init(&pollable);
    bide_pollable_start(&pollable, NULL, witness_run(&task, NULL, -EDOM));
    assert_true(is_readable(&pollable));
    assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
    assert_int_equal(status, -EDOM);
    bide_pollable_destroy(&pollable);
}

static void it_may_be_cancelled(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_event event;
    bide_event_waiter wait;
    init(&pollable);
    bide_event_init(&event, false);
    bide_pollable_cancel(&pollable, -ECANCELED); /* nothing is under way */
    for (int i = 0; i < 2; i++) {
        int reason = i == 0 ? -ECANCELED : -ETIMEDOUT, status = 1;
        bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
        bide_pollable_cancel(&pollable, reason);
        assert_true(is_readable(&pollable));
        bide_pollable_cancel(&pollable, -ECANCELED);
        assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
        assert_int_equal(status, reason);
        bide_event_destroy(&event);
    }
    /* Cancelling an ended operation changes nothing, and does not affect the next. */
    bide_event_set(&event);
    bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
    bide_pollable_cancel(&pollable, -ECANCELED);
    assert_int_equal(poll_until_ended(&pollable), 0);
    bide_event_reset(&event);
    bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
    bide_event_set(&event);
    assert_int_equal(poll_until_ended(&pollable), 0);
    bide_pollable_destroy(&pollable);
}

static void it_may_have_a_deadline(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_event event;
    bide_event_waiter wait;
    init(&pollable);
    bide_event_init(&event, false);
    assert_int_equal(bide_pollable_timeout(&pollable), -1);
    bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
    assert_int_equal(bide_pollable_timeout(&pollable), -1);
    uint64_t now = bide_platform.now();
    bide_pollable_set_deadline(&pollable, now + 3600 * UINT64_C(1000000000));
    assert_in_range(bide_pollable_timeout(&pollable), 3000 * 1000, 3600 * 1000);
    bide_pollable_set_deadline(&pollable, BIDE_FOREVER - 1);
    assert_int_equal(bide_pollable_timeout(&pollable), INT_MAX);
    bide_pollable_set_deadline(&pollable, BIDE_FOREVER);
    assert_int_equal(bide_pollable_timeout(&pollable), -1);
    uint64_t deadline = now + SHORT;
    bide_pollable_set_deadline(&pollable, deadline);
    assert_in_range(bide_pollable_timeout(&pollable), 0, 1);
    assert_int_equal(poll_until_ended(&pollable), -ETIMEDOUT);
    assert_true(bide_platform.now() >= deadline);
    bide_event_destroy(&event);

    /* A deadline is for one operation. An operation that ended in time succeeds, however late it is finished. */
    bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
    assert_int_equal(bide_pollable_timeout(&pollable), -1);
    bide_pollable_set_deadline(&pollable, now);
    assert_int_equal(bide_pollable_timeout(&pollable), 0);
    bide_event_set(&event);
    assert_int_equal(poll_until_ended(&pollable), 0);
    assert_int_equal(bide_pollable_timeout(&pollable), -1);
    bide_pollable_destroy(&pollable);
}

static void the_stop_source_of_the_context_reaches_it(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_event event;
    bide_event_waiter wait;
    bide_stop_source stop;
    init(&pollable);
    bide_event_init(&event, false);
    bide_stop_source_init(&stop);
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    bide_pollable_start(&pollable, &context, bide_event_wait(&wait, &event));
    bide_pollable_cancel(&pollable, -ETIMEDOUT);
    assert_false(bide_stop_requested(&stop));
    assert_int_equal(poll_until_ended(&pollable), -ETIMEDOUT);
    bide_pollable_start(&pollable, &context, bide_event_wait(&wait, &event));
    bide_stop_request(&stop);
    assert_int_equal(poll_until_ended(&pollable), -ECANCELED);
    assert_null(stop.first_child);
    bide_pollable_destroy(&pollable);
}

/* A loop inside a loop: an operation of a run loop starts and ends there. */
static void it_runs_where_its_context_says(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_pollable pollable;
    witness task;
    int status = 1;
    init(&pollable);
    bide_run_loop_init(&loop);
    bide_pollable_start(&pollable, &loop.context, witness_run(&task, NULL, -EDOM));
    assert_false(is_readable(&pollable));
    assert_int_equal(bide_pollable_finish(&pollable, &status), -EINPROGRESS);
    bide_run_loop_run_ready(&loop);
    assert_int_equal(poll_until_ended(&pollable), -EDOM);
    bide_pollable_destroy(&pollable);
}

/* ---- Failures ---- */

static int make_and_use(void *argument)
{
    (void)argument;
    bide_pollable pollable;
    bide_event event;
    bide_event_waiter wait;
    int error = bide_pollable_init(&pollable);
    if (error != 0)
        return error;
    bide_event_init(&event, false);
    bide_pollable_start(&pollable, NULL, bide_event_wait(&wait, &event));
    errno = EXDEV;
    bide_event_set(&event);
    if (errno != EXDEV)
        error = -EXDEV;
    if (poll_until_ended(&pollable) != 0)
        error = -EDOM;
    bide_pollable_destroy(&pollable);
    return error;
}

static void what_cannot_be_made_is_reported(void **state)
{
    (void)state;
    assert_int_equal(faults_for_each_n(FAULT_RAISED, EMFILE, make_and_use, NULL), 1);
    assert_int_equal(faults_for_each_n(FAULT_RAISED, ENFILE, make_and_use, NULL), 1);
    assert_int_equal(faults_for_each_n(FAULT_RAISED, ENOMEM, make_and_use, NULL), 1);
}

static void interruptions_go_unnoticed(void **state)
{
    (void)state;
    for (unsigned times = 1; times <= 3; times += 2) {
        assert_int_equal(faults_survive_each_n(FAULT_WRITE, times, EINTR, make_and_use, NULL), 1);
        assert_int_equal(faults_survive_each_n(FAULT_READ, times, EINTR, make_and_use, NULL), 1);
    }
    assert_int_equal(faults_survive_each_n(FAULT_CLOSE, 1, EIO, make_and_use, NULL),
                     FAULTS_RAISED_ENDS);
}

static void an_error_of_read_is_reported_and_it_may_be_finished_later(void **state)
{
    (void)state;
    bide_pollable pollable;
    witness task;
    int status = 1;
    faults_clear();
    init(&pollable);
    bide_pollable_start(&pollable, NULL, witness_run(&task, NULL, -EDOM));
    faults_fail(FAULT_READ, 1, 1, EIO);
    assert_int_equal(bide_pollable_finish(&pollable, &status), -EIO);
    assert_int_equal(status, 1);
    assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
    assert_int_equal(status, -EDOM);
    faults_clear();
    bide_pollable_destroy(&pollable);
}

static bide_pollable misused;
static bide_event never;
static bide_event_waiter never_wait;

static void begin_misuse(void)
{
    init(&misused);
    bide_event_init(&never, false);
    bide_pollable_start(&misused, NULL, bide_event_wait(&never_wait, &never));
}

static void start_it_twice(void)
{
    bide_event_waiter other;
    begin_misuse();
    bide_pollable_start(&misused, NULL, bide_event_wait(&other, &never));
}

static void destroy_it_while_it_waits(void)
{
    begin_misuse();
    bide_pollable_destroy(&misused);
}

/* The ender may be about to write. */
static void destroy_it_before_it_is_finished(void)
{
    begin_misuse();
    bide_event_set(&never);
    bide_pollable_destroy(&misused);
}

static void end_it_when_its_descriptor_is_closed(void)
{
    begin_misuse();
    close(bide_pollable_fd(&misused));
    bide_event_set(&never);
}

static void misuse_is_told(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(start_it_twice, "has not been finished", "bide_pollable"));
    assert_true(misuse_aborts_naming(destroy_it_while_it_waits, "while it is in use: &misused",
                                     "destroy_it"));
    assert_true(misuse_aborts_naming(destroy_it_before_it_is_finished,
                                     "while it is in use: &misused", "destroy_it"));
    assert_true(misuse_aborts_naming(end_it_when_its_descriptor_is_closed, "descriptor", "closed"));
}

/* ---- Several, ended by other threads ---- */

/*
 * A loop with epoll and several pollables, each waiting for an event of its own, which threads set in random order;
 * some are cancelled or have deadlines. Each ends once, and no set is lost.
 */
enum { POLLABLES = 8, SETTERS = 3 };

struct source {
    bide_single_consumer_auto_event event;
    bide_atomic(uint32_t) made;
    bide_single_consumer_auto_event_waiter wait;
    bide_pollable pollable;
    uint32_t taken;
};

struct loop {
    struct source sources[POLLABLES];
    bide_atomic(uint32_t) left; /* to be made */
    uint64_t seed;
};

struct setter {
    struct loop *loop;
    unsigned number;
};

static void *make_and_set(void *argument)
{
    struct setter *self = argument;
    struct loop *loop = self->loop;
    uint64_t random = loop->seed + 1 + self->number;
    for (;;) {
        uint32_t left = bide_atomic_load(&loop->left, relaxed);
        do {
            if (left == 0)
                return NULL;
        } while (!bide_atomic_compare_exchange(&loop->left, &left, left - 1, relaxed, relaxed));
        struct source *source = &loop->sources[testing_random(&random) % POLLABLES];
        bide_atomic_fetch_add(&source->made, 1, relaxed);
        bide_single_consumer_auto_event_set(&source->event);
        schedule_jitter(&random);
    }
}

static void start_wait(struct source *source, const bide_context *context, uint64_t *random)
{
    uint64_t number = testing_random(random);
    bide_pollable_start(&source->pollable, context,
                        bide_single_consumer_auto_event_wait(&source->wait, &source->event));
    if (number % 8 == 0)
        bide_pollable_cancel(&source->pollable, -ECANCELED);
    else if (number % 8 == 1)
        bide_pollable_set_deadline(&source->pollable, 0);
}

struct outcome {
    uint32_t taken, cancelled, late, wrong;
};

/* True: it has ended, and the next has been started. */
static bool finish_wait(struct source *source, struct outcome *outcome, const bide_context *context,
                        uint64_t *random)
{
    int status;
    int error = bide_pollable_finish(&source->pollable, &status);
    if (error != 0) {
        outcome->wrong += error != -EINPROGRESS;
        return false;
    }
    if (status == 0) {
        uint32_t made = bide_atomic_exchange(&source->made, 0, relaxed);
        source->taken += made;
        outcome->taken += made;
    }
    outcome->cancelled += status == -ECANCELED;
    outcome->late += status == -ETIMEDOUT;
    outcome->wrong += status != 0 && status != -ECANCELED && status != -ETIMEDOUT;
    start_wait(source, context, random);
    return true;
}

static void run_loop_of_all(const bide_context *context)
{
    static struct loop loop;
    struct setter setters[SETTERS];
    pthread_t threads[SETTERS];
    struct outcome outcome = {0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_true(epoll >= 0);
    loop.seed = testing_seed();
    uint64_t random = loop.seed;
    const uint32_t ends = rounds_of(20000);
    bide_atomic_init(&loop.left, ends);
    for (unsigned i = 0; i < POLLABLES; i++) {
        struct source *source = &loop.sources[i];
        struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = i};
        bide_single_consumer_auto_event_init(&source->event, false);
        bide_atomic_init(&source->made, 0);
        init(&source->pollable);
        assert_int_equal(
            epoll_ctl(epoll, EPOLL_CTL_ADD, bide_pollable_fd(&source->pollable), &wanted), 0);
        start_wait(source, context, &random);
    }
    for (unsigned i = 0; i < SETTERS; i++) {
        setters[i] = (struct setter){&loop, i};
        threads[i] = schedule_thread(make_and_set, &setters[i]);
    }
    while (outcome.taken < ends) {
        struct epoll_event events[3];
        int timeout = -1;
        for (unsigned i = 0; i < POLLABLES; i++) {
            if (bide_pollable_timeout(&loop.sources[i].pollable) == 0) {
                timeout = 0;
                finish_wait(&loop.sources[i], &outcome, context, &random);
            }
        }
        int count = outcome.taken < ends ? epoll_wait(epoll, events, 3, timeout) : 0;
        for (int i = 0; i < count; i++) {
            struct source *source = &loop.sources[events[i].data.u32];
            if (!finish_wait(source, &outcome, context, &random))
                outcome.wrong++; /* it was readable, so it had ended */
        }
    }
    for (unsigned i = 0; i < SETTERS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < POLLABLES; i++) {
        struct source *source = &loop.sources[i];
        bide_single_consumer_auto_event_close(&source->event);
        int status = poll_until_ended(&source->pollable);
        outcome.wrong +=
            status != 0 && status != -EPIPE && status != -ECANCELED && status != -ETIMEDOUT;
        outcome.wrong += bide_atomic_load(&source->made, relaxed) != 0;
        bide_pollable_destroy(&source->pollable);
        source->taken = 0;
    }
    close(epoll);
    printf("# %u cancelled, %u too late\n", outcome.cancelled, outcome.late);
    assert_int_equal(outcome.wrong, 0);
    assert_int_equal(outcome.taken, ends);
}

static void a_loop_waits_for_several_that_other_threads_end(void **state)
{
    (void)state;
    run_loop_of_all(NULL);
}

static void a_loop_waits_for_several_that_run_on_a_pool(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    run_loop_of_all(&context);
    bide_thread_pool_destroy(pool);
}

/* ---- Its memory is released as soon as it is finished ---- */

struct short_lived {
    bide_pollable pollable;
    bide_event event;
    bide_event_waiter wait;
};

struct mortal {
    bide_atomic(struct short_lived *) given;
    unsigned rounds;
};

static void *set_each(void *argument)
{
    struct mortal *self = argument;
    for (unsigned round = 0; round < self->rounds; round++) {
        struct short_lived *life;
        schedule_until((life = bide_atomic_exchange(&self->given, NULL, acquire)) != NULL);
        bide_event_set(&life->event);
    }
    return NULL;
}

static void it_may_go_as_soon_as_it_is_finished(void **state)
{
    (void)state;
    struct mortal mortal = {.rounds = rounds_of(5000)};
    bide_atomic_init(&mortal.given, NULL);
    pthread_t thread = schedule_thread(set_each, &mortal);
    for (unsigned round = 0; round < mortal.rounds; round++) {
        struct short_lived *life = malloc(sizeof *life);
        int status = 1, error;
        assert_non_null(life);
        init(&life->pollable);
        bide_event_init(&life->event, false);
        bide_pollable_start(&life->pollable, NULL, bide_event_wait(&life->wait, &life->event));
        bide_atomic_store(&mortal.given, life, release);
        schedule_until((error = bide_pollable_finish(&life->pollable, &status)) != -EINPROGRESS);
        assert_int_equal(error, 0);
        assert_int_equal(status, 0);
        bide_pollable_destroy(&life->pollable);
        memset((void *)life, 0x5a, sizeof *life);
        free(life);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_makes_it_readable_and_finishing_unreadable),
        cmocka_unit_test(what_has_ended_at_once_is_readable_at_once),
        cmocka_unit_test(it_may_be_cancelled),
        cmocka_unit_test(it_may_have_a_deadline),
        cmocka_unit_test(the_stop_source_of_the_context_reaches_it),
        cmocka_unit_test(it_runs_where_its_context_says),
        cmocka_unit_test(what_cannot_be_made_is_reported),
        cmocka_unit_test(interruptions_go_unnoticed),
        cmocka_unit_test(an_error_of_read_is_reported_and_it_may_be_finished_later),
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(a_loop_waits_for_several_that_other_threads_end),
        cmocka_unit_test(a_loop_waits_for_several_that_run_on_a_pool),
        cmocka_unit_test(it_may_go_as_soon_as_it_is_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
