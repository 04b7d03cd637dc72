/*
 * Traces and the turn watch. With the argument "write", writes a trace of various tasks to the standard
 * output, for check_trace.py.
 */
#define _GNU_SOURCE
#include "by_readiness.h"
#include "faults.h"
#include "testing.h"

#include "../schedule/forking_fib.h"

#include "bide/deadline.h"
#include "bide/with_stop.h"
#include "bide/address.h"
#include "bide/dump.h"
#include "bide/event.h"
#include "bide/file.h"
#include "bide/loop.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/socket.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/thread_pool.h"
#include "bide/trace.h"
#include "bide/stall_detector.h"
#include "bide/when.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The traced tasks ---- */

struct waiter {
    bide_task task;
    bide_event *event, *again;
    bide_event_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_await(bide_event_wait(&self->wait, self->again));
    bide_end();
}

struct setter {
    bide_task task;
    bide_event *event, *again;
    bide_schedule_operation schedule;
};

bide_coroutine(setter_body)
{
    bide_begin(setter_body, struct setter * self);
    bide_await(bide_schedule(&self->schedule, bide_this_context()->scheduler));
    bide_event_set(self->event);
    bide_await(bide_schedule(&self->schedule, bide_this_context()->scheduler));
    bide_event_set(self->again);
    bide_end();
}

struct both {
    bide_task task;
    bide_event event, again;
    struct waiter waiter;
    struct setter setter;
    bide_when_of(2) all;
};

bide_coroutine(both_body)
{
    bide_begin(both_body, struct both * self);
    bide_event_init(&self->event, false);
    bide_event_init(&self->again, false);
    self->waiter.event = self->setter.event = &self->event;
    self->waiter.again = self->setter.again = &self->again;
    bide_await(bide_when_all_of(&self->all, bide_task_init(&self->waiter.task, &waiter_body),
                                bide_task_init(&self->setter.task, &setter_body)));
    bide_end();
}

struct echo {
    bide_task task;
    bide_descriptor in, out;
    bide_file_operation operation;
    bide_schedule_operation schedule;
    char byte;
};

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct echo * self);
    bide_await(bide_read(&self->operation, &self->in, &self->byte, 1));
    bide_end();
}

bide_coroutine(writer_body)
{
    bide_begin(writer_body, struct echo * self);
    bide_await(bide_schedule(&self->schedule, bide_this_context()->scheduler));
    bide_await(bide_write(&self->operation, &self->out, "x", 1));
    bide_end();
}

struct through_pipe {
    bide_task task;
    struct echo reader, writer;
    bide_when_of(2) all;
    int ends[2];
};

bide_coroutine(pipe_body)
{
    bide_begin(pipe_body, struct through_pipe * self);
    bide_descriptor_init(&self->reader.in, self->ends[0]);
    bide_descriptor_init(&self->writer.out, self->ends[1]);
    bide_await(bide_when_all_of(&self->all, bide_task_init(&self->reader.task, &reader_body),
                                bide_task_init(&self->writer.task, &writer_body)));
    bide_close(&self->reader.in);
    bide_close(&self->writer.out);
    bide_end();
}

static void run_loop_once(void)
{
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct both both;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&both.task, &both_body)), 0);
    bide_run_loop_destroy(&loop);
}

static void run_pipe_once(void)
{
    bide_loop *loop;
    struct through_pipe piped;
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_int_equal(pipe(piped.ends), 0);
    assert_int_equal(bide_loop_wait(loop, bide_task_init(&piped.task, &pipe_body)), 0);
    bide_loop_destroy(loop);
}

static void run_pool_once(bide_thread_pool *pool)
{
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    uint64_t result = 0;
    struct fib fib = {.n = 12, .result = &result};
    assert_int_equal(bide_sync_wait_in(&context, bide_fork_task_init(&fib.forking, &fib_body)), 0);
    assert_int_equal(result, 144);
    struct both both;
    assert_int_equal(bide_sync_wait_in(&context, bide_task_init(&both.task, &both_body)), 0);
}

/* ---- Traces ---- */

typedef struct text {
    char *bytes;
    size_t length;
    FILE *file;
} text;

static void begin(text *to)
{
    to->file = open_memstream(&to->bytes, &to->length);
    assert_non_null(to->file);
    assert_int_equal(bide_trace_start(to->file), 0);
}

static void end(text *to)
{
    assert_int_equal(bide_trace_stop(), 0);
    fclose(to->file);
}

static size_t count(const text *in, const char *what)
{
    size_t found = 0;
    for (const char *at = in->bytes; (at = strstr(at, what)) != NULL; at++)
        found++;
    return found;
}

static void assert_has(const text *in, const char *what)
{
    if (count(in, what) == 0)
        printf("# not there: %s\n# in:\n%s\n", what, in->bytes);
    assert_true(count(in, what) != 0);
}

static void a_trace_shows_turns_tasks_and_what_they_waited_for(void **state)
{
    text written;
    (void)state;
    begin(&written);
    run_loop_once();
    end(&written);
    assert_has(&written, "\"ph\":\"B\"");
    assert_has(&written, "\"name\":\"waiter_body\",\"args\":{\"task\":\"0x");
    assert_has(&written, "\"after\":\"bide_event_wait\"");
    assert_has(&written, "observe_test.c:");
    assert_has(&written, "\"cat\":\"task\"");
    assert_has(&written, "\"name\":\"both_body\"");
    assert_has(&written, "\"name\":\"wait: bide_event_wait\"");
    assert_has(&written, "\"lost\":0}");
    assert_int_equal(count(&written, "\"ph\":\"b\""), count(&written, "\"ph\":\"e\""));
    assert_int_equal(count(&written, "\"ph\":\"B\""), count(&written, "\"ph\":\"E\""));
    free(written.bytes);
}

static void an_operation_that_waits_is_shown_with_its_descriptor(void **state)
{
    text written;
    (void)state;
    begin(&written);
    run_pipe_once();
    end(&written);
    assert_has(&written, "\"cat\":\"io\"");
    assert_has(&written, "\"name\":\"bide_read\",\"args\":{\"fd\":");
    assert_has(&written, "\"args\":{\"bytes\":1,\"status\":0}");
    assert_has(&written, "\"name\":\"sleep\"");
    assert_has(&written, "\"after\":\"bide_read\"");
    free(written.bytes);
}

static void there_is_one_trace_at_a_time(void **state)
{
    text written;
    (void)state;
    assert_int_equal(bide_trace_stop(), -EALREADY);
    begin(&written);
    assert_int_equal(bide_trace_start(stderr), -EALREADY);
    end(&written);
    assert_int_equal(bide_trace_stop(), -EALREADY);
    free(written.bytes);
    begin(&written);
    end(&written);
    assert_has(&written, "\"marks\":0,");
    free(written.bytes);
}

struct busy {
    bide_thread_pool *pool;
    bide_atomic(uint32_t) stop;
};

static void *be_busy(void *argument)
{
    struct busy *busy = argument;
    while (bide_atomic_load(&busy->stop, relaxed) == 0) {
        run_pool_once(busy->pool);
        run_loop_once();
    }
    return NULL;
}

static void traces_begin_and_end_while_everything_runs(void **state)
{
    struct busy busy = {.stop = 0};
    pthread_t threads[2];
    (void)state;
    assert_int_equal(bide_thread_pool_create(&busy.pool, 3), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, &busy), 0);
    for (uint32_t i = 0; i < rounds_of(40); i++) {
        text written;
        begin(&written);
        run_pool_once(busy.pool);
        end(&written);
        assert_has(&written, "\"name\":\"fib_body\"");
        free(written.bytes);
    }
    bide_atomic_store(&busy.stop, 1, relaxed);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    bide_thread_pool_destroy(busy.pool);
}

static void without_memory_marks_are_lost_and_counted(void **state)
{
    text written;
    (void)state;
    begin(&written);
    faults_clear();
    faults_fail(FAULT_MALLOC, 1, FAULTS_ALWAYS, ENOMEM);
    run_loop_once();
    assert_true(faults_hits(FAULT_MALLOC) != 0);
    assert_int_equal(bide_trace_stop(), -ENOMEM);
    faults_clear();
    fclose(written.file);
    assert_int_equal(written.length, 0);
    free(written.bytes);

    begin(&written);
    faults_fail(FAULT_MALLOC, 1, FAULTS_ALWAYS, ENOMEM);
    run_loop_once();
    faults_clear();
    run_loop_once();
    end(&written);
    assert_int_equal(count(&written, "\"lost\":0}"), 0);
    assert_has(&written, "\"name\":\"waiter_body\"");
    free(written.bytes);
}

static void a_child_of_fork_has_no_trace_and_may_have_its_own(void **state)
{
    text written;
    (void)state;
    begin(&written);
    run_loop_once();
    pid_t child = fork();
    if (child == 0) {
        text own;
        int was = bide_trace_stop();
        run_loop_once();
        begin(&own);
        run_loop_once();
        end(&own);
        _exit(was == -EALREADY && count(&own, "\"name\":\"waiter_body\"") != 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end(&written);
    assert_has(&written, "\"name\":\"waiter_body\"");
    free(written.bytes);
}

/* ---- The watch ---- */

struct heard {
    bide_atomic(uint32_t) going_on, ended, in_hog;
    bide_atomic(uint64_t) shortest;
};

static void hear(void *argument, const bide_stall *turn)
{
    struct heard *heard = argument;
    bool is_hog = strcmp(turn->name, "hog_body") == 0 &&
                  strstr(turn->file, "observe_test") != NULL && turn->line != 0 &&
                  turn->thread != 0;
    if (is_hog)
        bide_atomic_fetch_add(&heard->in_hog, 1, relaxed);
    /* release: the hog ends after it has seen this, and its end is reported later */
    bide_atomic_fetch_add(turn->has_ended ? &heard->ended : &heard->going_on, 1, release);
    bide_atomic_store(&heard->shortest, turn->nanoseconds, relaxed);
}

struct hog {
    bide_task task;
    struct heard *heard; /* until it was reported; NULL: not at all */
};

bide_coroutine(hog_body)
{
    bide_begin(hog_body, struct hog * self);
    while (self->heard != NULL && bide_atomic_load(&self->heard->going_on, acquire) == 0)
        sched_yield();
    bide_end();
}

static void hog(struct heard *until)
{
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct hog self = {.heard = until};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &hog_body)), 0);
    bide_run_loop_destroy(&loop);
}

static void a_turn_that_goes_on_is_told_once_and_again_at_its_end(void **state)
{
    struct heard heard = {.going_on = 0};
    (void)state;
    assert_int_equal(bide_stall_detector_start(1000000, hear, &heard), 0);
    assert_int_equal(bide_stall_detector_start(1000000, hear, &heard), -EALREADY);
    hog(&heard);
    assert_int_equal(bide_stall_detector_stop(), 0);
    assert_int_equal(bide_stall_detector_stop(), -EALREADY);
    assert_int_equal(bide_atomic_load(&heard.going_on, relaxed), 1);
    assert_int_equal(bide_atomic_load(&heard.ended, relaxed), 1);
    assert_int_equal(bide_atomic_load(&heard.in_hog, relaxed), 2);
    assert_true(bide_atomic_load(&heard.shortest, relaxed) >= 1000000);
}

static void a_turn_that_is_short_is_not_told(void **state)
{
    struct heard heard = {.going_on = 0};
    (void)state;
    assert_int_equal(bide_stall_detector_start(UINT64_MAX / 4, hear, &heard), 0);
    hog(NULL);
    run_loop_once();
    assert_int_equal(bide_stall_detector_stop(), 0);
    assert_int_equal(bide_atomic_load(&heard.going_on, relaxed), 0);
    assert_int_equal(bide_atomic_load(&heard.ended, relaxed), 0);
}

static void a_watch_and_traces_go_together_and_begin_and_end(void **state)
{
    struct busy busy = {.stop = 0};
    struct heard heard = {.going_on = 0};
    pthread_t thread;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&busy.pool, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, be_busy, &busy), 0);
    for (uint32_t i = 0; i < rounds_of(40); i++) {
        text written;
        assert_int_equal(bide_stall_detector_start(1, hear, &heard), 0);
        begin(&written);
        run_pool_once(busy.pool);
        assert_int_equal(bide_stall_detector_stop(), 0);
        run_pool_once(busy.pool);
        end(&written);
        free(written.bytes);
    }
    assert_true(bide_atomic_load(&heard.ended, relaxed) != 0);
    bide_atomic_store(&busy.stop, 1, relaxed);
    pthread_join(thread, NULL);
    bide_thread_pool_destroy(busy.pool);
}

static void the_watch_without_a_thread_does_not_begin(void **state)
{
    (void)state;
    faults_clear();
    faults_fail(FAULT_PTHREAD_CREATE, 1, 1, EAGAIN);
    assert_int_equal(bide_stall_detector_start(1, NULL, NULL), -EAGAIN);
    faults_clear();
    assert_int_equal(bide_stall_detector_stop(), -EALREADY);
}

/* ---- Descriptors of operations, and counts of loops ---- */

struct receiver {
    bide_task task;
    bide_descriptor *on;
    bide_io_operation operation;
    bide_descriptor accepted;
    bide_with_deadline_operation limited;
    bide_with_stop_operation stoppable;
    bide_stop_source source;
    char byte;
    bool accepts, calls;
    bide_task inner;
};

bide_coroutine(called_body)
{
    bide_begin(called_body, bide_task * self);
    struct receiver *receiver = bide_container_of(self, struct receiver, inner);
    bide_await(bide_recv(&receiver->operation, receiver->on, &receiver->byte, 1));
    bide_end();
}

/* Wrapped twice. */
static bide_awaiter *wrap(struct receiver *self, bide_awaiter *inner)
{
    bide_stop_source_init(&self->source);
    return bide_with_deadline(&self->limited, BIDE_FOREVER - 1,
                              bide_with_stop(&self->stoppable, &self->source, inner));
}

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    if (self->accepts)
        bide_await(bide_accept(&self->operation, self->on, &self->accepted, NULL));
    else if (self->calls)
        bide_await(wrap(self, bide_task_init(&self->inner, &called_body)));
    else
        bide_await(wrap(self, bide_recv(&self->operation, self->on, &self->byte, 1)));
    bide_end();
}

struct dumped {
    bide_task task;
    bide_descriptor listener, one, other;
    bide_io_operation operation;
    bide_address address;
    struct receiver accepting, receiving, at_pair;
    bide_spawned spawned[3];
    bide_schedule_operation schedule;
    bide_descriptor pair[2];
    char *text;
    size_t length;
    char expected[2][200];
};

bide_coroutine(dumped_body)
{
    bide_begin(dumped_body, struct dumped * self);
    FILE *file;
    assert_int_equal(bide_address_ip(&self->address, "127.0.0.1", 0), 0);
    bide_await(bide_listen(&self->operation, &self->listener, &self->address, 5));
    assert_int_equal(bide_local_address(&self->listener, &self->address), 0);
    bide_await(bide_connect(&self->operation, &self->one, &self->address));
    bide_await(bide_accept(&self->operation, &self->listener, &self->other, NULL));
    bide_await(bide_socket_pair(&self->operation, &self->pair[0], &self->pair[1]));
    self->accepting = (struct receiver){.on = &self->listener, .accepts = true};
    self->receiving = (struct receiver){.on = &self->one};
    self->at_pair = (struct receiver){.on = &self->pair[0], .calls = true};
    bide_spawn(&self->spawned[0], bide_this_context(),
               bide_task_init(&self->accepting.task, &receiver_body));
    bide_spawn(&self->spawned[1], bide_this_context(),
               bide_task_init(&self->receiving.task, &receiver_body));
    bide_spawn(&self->spawned[2], bide_this_context(),
               bide_task_init(&self->at_pair.task, &receiver_body));
    bide_await(bide_schedule(&self->schedule, bide_this_context()->scheduler));
    file = open_memstream(&self->text, &self->length);
    assert_int_equal(bide_dump(file), 0);
    fclose(file);
    snprintf(self->expected[0], sizeof self->expected[0],
             "waiting for bide_accept on descriptor %d, at 127.0.0.1:%u\n",
             bide_descriptor_fd(&self->listener), bide_address_port(&self->address));
    snprintf(self->expected[1], sizeof self->expected[1],
             "waiting for bide_with_deadline of bide_with_stop of bide_recv on descriptor %d, peer "
             "127.0.0.1:%u\n",
             bide_descriptor_fd(&self->one), bide_address_port(&self->address));
    bide_close(&self->listener);
    bide_close(&self->one);
    bide_close(&self->other);
    bide_close(&self->pair[0]);
    bide_close(&self->pair[1]);
    bide_await(bide_schedule(&self->schedule, bide_this_context()->scheduler));
    bide_end();
}

static void a_dump_says_what_an_operation_is_on_and_a_loop_counts(void **state)
{
    static const bide_loop_kind kinds[] = {BY_READINESS, BIDE_LOOP_ANY};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const bide_loop_options options = {.kind = kinds[i], .times_runs = true};
        bide_loop *loop;
        bide_loop_stats counts;
        struct dumped self;
        assert_int_equal(bide_loop_create(&loop, &options), 0);
        assert_int_equal(bide_loop_wait(loop, bide_task_init(&self.task, &dumped_body)), 0);
        text dumped = {.bytes = self.text};
        assert_has(&dumped, self.expected[0]);
        assert_has(&dumped, self.expected[1]);
        assert_has(&dumped, "waiting for bide_recv on descriptor"); /* inside the call */
        assert_has(&dumped, "called_body");
        free(self.text);
        bide_loop_get_stats(loop, &counts);
        assert_true(counts.runs >= 5);
        assert_true(counts.longest_run != 0);
        assert_true(counts.polls >= counts.sleeps);
        assert_int_equal(counts.in_flight, 0);
        bide_loop_destroy(loop);
    }
}

static void write_trace(void)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    run_pool_once(pool); /* (its workers were seen to begin) */
    assert_int_equal(bide_trace_start(stdout), 0);
    run_pool_once(pool);
    run_loop_once();
    run_pipe_once();
    bide_thread_pool_destroy(pool);
    assert_int_equal(bide_trace_stop(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_shows_turns_tasks_and_what_they_waited_for),
        cmocka_unit_test(an_operation_that_waits_is_shown_with_its_descriptor),
        cmocka_unit_test(there_is_one_trace_at_a_time),
        cmocka_unit_test(traces_begin_and_end_while_everything_runs),
        cmocka_unit_test(without_memory_marks_are_lost_and_counted),
        cmocka_unit_test(a_child_of_fork_has_no_trace_and_may_have_its_own),
        cmocka_unit_test(a_turn_that_goes_on_is_told_once_and_again_at_its_end),
        cmocka_unit_test(a_turn_that_is_short_is_not_told),
        cmocka_unit_test(a_watch_and_traces_go_together_and_begin_and_end),
        cmocka_unit_test(a_dump_says_what_an_operation_is_on_and_a_loop_counts),
        cmocka_unit_test(the_watch_without_a_thread_does_not_begin),
    };
    if (argc > 1 && strcmp(argv[1], "write") == 0) {
        write_trace();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
