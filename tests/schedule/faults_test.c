/*
 * The schedulers when system calls fail: a failed creation is reported and leaks nothing, and reads survive
 * interruptions.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "faults.h"

#include "bide/blocking.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include "../../src/schedule/blocking_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { THREADS = 4 };

/* ---- Creating ---- */

/* Creates and destroys one; returns the status of the creation. */
static int make_pool(void *argument)
{
    (void)argument;
    bide_thread_pool *pool;
    int status = bide_thread_pool_create(&pool, THREADS);
    if (status == 0)
        bide_thread_pool_destroy(pool);
    return status;
}

static int make_blocking(void *argument)
{
    (void)argument;
    bide_blocking *blocking;
    int status = bide_blocking_create(&blocking, THREADS);
    if (status == 0)
        bide_blocking_destroy(blocking);
    return status;
}

/* Threads are started with all signals blocked; the creator's own mask is restored. */
static void assert_each_is_reported(faults_scenario *make, fault function, int error,
                                    unsigned calls)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(faults_for_each_n(function, error, make, NULL), calls);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < SIGRTMAX; signal++)
        assert_int_equal(sigismember(&after, signal), sigismember(&before, signal));
}

static void a_pool_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    assert_each_is_reported(make_pool, FAULT_MALLOC, ENOMEM, 1);
    assert_each_is_reported(make_pool, FAULT_PTHREAD_CREATE, EAGAIN, THREADS);
}

static void threads_for_blocking_calls_that_cannot_be_made_leave_nothing(void **state)
{
    (void)state;
    assert_each_is_reported(make_blocking, FAULT_MALLOC, ENOMEM, 1);
    assert_each_is_reported(make_blocking, FAULT_RAISED, EMFILE, 1);
    assert_each_is_reported(make_blocking, FAULT_RAISED, ENFILE, 1);
    assert_each_is_reported(make_blocking, FAULT_PTHREAD_CREATE, EAGAIN, THREADS);
}

/* Nobody can react to the error, and the descriptor is closed anyway. */
static void an_error_of_close_goes_unnoticed(void **state)
{
    (void)state;
    assert_int_equal(faults_survive_each_n(FAULT_CLOSE, 1, EIO, make_blocking, NULL),
                     FAULTS_RAISED_ENDS);
}

static void what_is_made_holds_what_is_counted(void **state)
{
    (void)state;
    faults_clear();
    long blocks = faults_blocks();
    long threads = faults_threads();
    long descriptors = faults_descriptors();
    bide_blocking *blocking;
    assert_int_equal(bide_blocking_create(&blocking, THREADS), 0);
    assert_int_equal(faults_blocks(), blocks + 1);
    assert_int_equal(faults_threads(), threads + THREADS);
    assert_int_equal(faults_descriptors(), descriptors + FAULTS_RAISED_ENDS);
    bide_blocking_destroy(blocking);
}

/* ---- Growing ---- */

static void pass_by(void *argument)
{
    bide_atomic_fetch_add((bide_atomic(unsigned) *)argument, 1, relaxed);
}

static int make_growing(void *argument)
{
    bide_blocking_options options = {.max_threads = THREADS, .interrupt_signal = SIGURG};
    bide_blocking *blocking;
    bide_blocking_call call;
    int status = bide_blocking_create_with(&blocking, &options);
    if (status != 0)
        return status;
    status = bide_sync_wait(bide_blocking_run(&call, blocking, pass_by, argument));
    bide_blocking_destroy(blocking);
    return status;
}

/* The supervisor of the pool is one thread, and the thread for the call is the other. */
static void a_call_for_which_no_thread_can_be_had_is_told(void **state)
{
    (void)state;
    bide_atomic(unsigned) made;
    bide_atomic_init(&made, 0);
    assert_int_equal(faults_for_each_n(FAULT_PTHREAD_CREATE, EAGAIN, make_growing, &made), 2);
    assert_int_equal(bide_atomic_load(&made, relaxed), 1);
}

struct held {
    bide_atomic(bool) begun, open;
};

static void hold(void *argument)
{
    struct held *held = argument;
    bide_atomic_store(&held->begun, true, release);
    schedule_until(bide_atomic_load(&held->open, acquire));
}

static void where_there_is_a_thread_a_call_waits_for_it(void **state)
{
    (void)state;
    bide_blocking_options options = {.max_threads = THREADS};
    bide_blocking *blocking;
    bide_run_loop loop;
    struct held held = {false, false};
    bide_atomic(unsigned) made;
    bide_blocking_call calls[2];
    bide_spawned spawned[2];
    bide_event_waiter wait;
    bide_atomic_init(&made, 0);
    bide_run_loop_init(&loop);
    faults_clear();
    assert_int_equal(bide_blocking_create_with(&blocking, &options), 0);
    bide_spawn(&spawned[0], &loop.context, bide_blocking_run(&calls[0], blocking, hold, &held));
    bide_run_loop_run_ready(&loop);
    schedule_until(bide_atomic_load(&held.begun, acquire));
    faults_fail(FAULT_PTHREAD_CREATE, 2, FAULTS_ALWAYS, EAGAIN);
    bide_spawn(&spawned[1], &loop.context, bide_blocking_run(&calls[1], blocking, pass_by, &made));
    bide_run_loop_run_ready(&loop);
    assert_int_equal(faults_hits(FAULT_PTHREAD_CREATE), 1);
    assert_false(bide_event_is_set(&spawned[1].ended));
    bide_atomic_store(&held.open, true, release);
    for (int i = 0; i < 2; i++) {
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(spawned[i].root.status, 0);
    }
    assert_int_equal(bide_atomic_load(&made, relaxed), 1);
    bide_blocking_destroy(blocking);
    faults_clear();
    bide_run_loop_destroy(&loop);
}

static void let_go(void *argument)
{
    bide_atomic_store(&((struct held *)argument)->open, true, release);
}

/* Whether the supervisor will look for slow calls by itself. */
static bool is_watched(bide_blocking *blocking)
{
    pthread_mutex_lock(&blocking->lock);
    bool watched = blocking->is_watched;
    pthread_mutex_unlock(&blocking->lock);
    return watched;
}

/* The only thread waits for the second call. */
static void a_thread_that_could_not_be_started_is_started_later(void **state)
{
    (void)state;
    bide_blocking_options options = {.max_threads = 2, .spare_threads = 1};
    bide_blocking *blocking;
    bide_run_loop loop;
    struct held held = {false, false};
    bide_blocking_call calls[2];
    bide_spawned spawned[2];
    bide_event_waiter wait;
    bide_run_loop_init(&loop);
    faults_clear();
    faults_fail(FAULT_PTHREAD_CREATE, 3, FAULTS_ALWAYS, EAGAIN); /* the supervisor is the first */
    assert_int_equal(bide_blocking_create_with(&blocking, &options), 0);
    bide_spawn(&spawned[0], &loop.context, bide_blocking_run(&calls[0], blocking, hold, &held));
    bide_run_loop_run_ready(&loop);
    schedule_until(bide_atomic_load(&held.begun, acquire) && !is_watched(blocking));
    bide_spawn(&spawned[1], &loop.context, bide_blocking_run(&calls[1], blocking, let_go, &held));
    bide_run_loop_run_ready(&loop);
    assert_int_not_equal(faults_hits(FAULT_PTHREAD_CREATE), 0);
    faults_clear();
    for (int i = 0; i < 2; i++) {
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(spawned[i].root.status, 0);
    }
    bide_blocking_destroy(blocking);
    bide_run_loop_destroy(&loop);
}

/* ---- Reading ---- */

static const char text[] = "What is read must be what was written, whatever comes in between.";

/* A pipe that holds the text, to be read on one thread. */
struct reading {
    bide_blocking *blocking;
    int out, in;
    char buffer[sizeof text];
};

static void open_reading(struct reading *reading)
{
    int fds[2];
    assert_int_equal(bide_blocking_create(&reading->blocking, 1), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    reading->out = fds[0];
    reading->in = fds[1];
    assert_int_equal(write(reading->in, text, sizeof text), sizeof text);
    memset(reading->buffer, 0, sizeof reading->buffer);
}

static void close_reading(struct reading *reading)
{
    close(reading->out);
    close(reading->in);
    bide_blocking_destroy(reading->blocking);
}

/* For tests that set faults in between, by hand. */
static void begin_reading(struct reading *reading)
{
    faults_clear();
    open_reading(reading);
}

static void end_reading(struct reading *reading)
{
    close_reading(reading);
    faults_clear();
}

/* Reads up to `size` bytes to `at` in the buffer; returns the result. */
static ptrdiff_t read_once(struct reading *reading, size_t at, size_t size)
{
    bide_blocking_reader reader;
    int status = bide_sync_wait(
        bide_blocking_read(&reader, reading->blocking, reading->out, reading->buffer + at, size));
    assert_int_equal(status, reader.result < 0 ? reader.result : 0);
    return reader.result;
}

static void read_the_text(struct reading *reading, size_t piece)
{
    for (size_t at = 0; at < sizeof text;) {
        size_t left = sizeof text - at;
        ptrdiff_t count = read_once(reading, at, left < piece ? left : piece);
        assert_in_range(count, 1, piece);
        at += (size_t)count;
    }
    assert_memory_equal(reading->buffer, text, sizeof text);
}

enum { PIECE = 10, PIECES = (sizeof text + PIECE - 1) / PIECE };

/* The argument: the function whose calls may fail. Each failure costs exactly one more call. */
static int read_in_pieces(void *argument)
{
    const fault *function = argument;
    struct reading reading;
    open_reading(&reading);
    read_the_text(&reading, PIECE);
    assert_int_equal(faults_calls(*function), PIECES + faults_hits(*function));
    close_reading(&reading);
    return 0;
}

/* Makes each call of `function` in turn fail, `times` times; the text is read anyway. */
static void survive_each(fault function, unsigned times, int error)
{
    assert_int_equal(faults_survive_each_n(function, times, error, read_in_pieces, &function),
                     PIECES);
}

static void an_interrupted_read_is_begun_again(void **state)
{
    (void)state;
    survive_each(FAULT_READ, 1, EINTR);
    survive_each(FAULT_READ, 3, EINTR);
}

static void an_interrupted_wait_is_begun_again(void **state)
{
    (void)state;
    survive_each(FAULT_POLL, 1, EINTR);
    survive_each(FAULT_POLL, 3, EINTR);
}

static void a_read_that_finds_nothing_waits_again(void **state)
{
    (void)state;
    survive_each(FAULT_READ, 1, EAGAIN);
    struct reading reading;
    begin_reading(&reading);
    faults_fail(FAULT_READ, 1, 5, EAGAIN);
    read_the_text(&reading, sizeof text);
    assert_int_equal(faults_calls(FAULT_READ), 6);
    assert_int_equal(faults_calls(FAULT_POLL), 6);
    end_reading(&reading);
}

/* `function` fails once with `error`: so does the read, and the next read works. */
static void report(fault function, int error)
{
    struct reading reading;
    begin_reading(&reading);
    faults_fail(function, 2, 1, error);
    assert_int_equal(read_once(&reading, 0, 10), 10);
    assert_int_equal(read_once(&reading, 10, 10), -error);
    assert_int_equal(faults_hits(function), 1);
    assert_int_equal(read_once(&reading, 10, sizeof text - 10), sizeof text - 10);
    assert_memory_equal(reading.buffer, text, sizeof text);
    end_reading(&reading);
}

static void an_error_of_read_is_reported_and_a_later_read_goes_on(void **state)
{
    (void)state;
    report(FAULT_READ, EIO);
    report(FAULT_READ, EISDIR);
}

static void an_error_of_poll_is_reported_and_a_later_read_goes_on(void **state)
{
    (void)state;
    report(FAULT_POLL, ENOMEM);
    report(FAULT_POLL, EINVAL);
}

static void an_error_of_fcntl_is_reported_and_a_later_read_goes_on(void **state)
{
    (void)state;
    report(FAULT_FCNTL, EBADF);
}

/* A full counter of interrupts is the only possible error, and not one: readers see the interrupt. */
static void an_interrupt_that_cannot_be_written_leaves_errno_alone(void **state)
{
    (void)state;
    struct reading reading;
    begin_reading(&reading);
    faults_fail(FAULT_WRITE, 2, 1, EAGAIN); /* (the first writes the text) */
    errno = EXDEV;
    bide_blocking_interrupt(reading.blocking);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(faults_hits(FAULT_WRITE), 1);
    end_reading(&reading);
}

static void short_reads_are_returned_as_they_are(void **state)
{
    (void)state;
    for (size_t max = 1; max <= sizeof text; max++) {
        struct reading reading;
        begin_reading(&reading);
        faults_shorten_reads(max);
        assert_int_equal(read_once(&reading, 0, sizeof text), max);
        assert_int_equal(faults_calls(FAULT_READ), 1);
        assert_memory_equal(reading.buffer, text, max);
        end_reading(&reading);

        begin_reading(&reading);
        faults_shorten_reads(max);
        read_the_text(&reading, sizeof text);
        assert_int_equal(faults_calls(FAULT_READ), (sizeof text + max - 1) / max);
        end_reading(&reading);
    }
}

/* ---- Reads that wait ---- */

static void *write_once_polled(void *argument)
{
    struct reading *reading = argument;
    schedule_until(faults_calls(FAULT_POLL) >= 2);
    return (void *)(intptr_t)write(reading->in, text, sizeof text);
}

static void a_read_waits_for_data_that_is_written_later(void **state)
{
    (void)state;
    struct reading reading;
    begin_reading(&reading);
    read_the_text(&reading, sizeof text);
    memset(reading.buffer, 0, sizeof reading.buffer);
    pthread_t thread = schedule_thread(write_once_polled, &reading);
    assert_int_equal(read_once(&reading, 0, sizeof text), sizeof text);
    assert_memory_equal(reading.buffer, text, sizeof text);
    void *written;
    pthread_join(thread, &written);
    assert_int_equal((intptr_t)written, sizeof text);
    end_reading(&reading);
}

static void *interrupt_once_polled(void *argument)
{
    struct reading *reading = argument;
    schedule_until(faults_calls(FAULT_POLL) >= 20);
    bide_blocking_interrupt(reading->blocking);
    return NULL;
}

/* The read retries all the time, because read() fails with `error` each time. */
static void interrupt_while_it_fails(int error)
{
    struct reading reading;
    begin_reading(&reading);
    faults_fail(FAULT_READ, 1, FAULTS_ALWAYS, error);
    pthread_t thread = schedule_thread(interrupt_once_polled, &reading);
    assert_int_equal(read_once(&reading, 0, sizeof text), -ECANCELED);
    assert_true(faults_hits(FAULT_READ) >= 19);
    pthread_join(thread, NULL);
    faults_clear();
    char buffer[sizeof text];
    assert_int_equal(read(reading.out, buffer, sizeof buffer), sizeof text);
    end_reading(&reading);
}

static void a_read_that_is_begun_again_can_be_interrupted(void **state)
{
    (void)state;
    interrupt_while_it_fails(EAGAIN);
    interrupt_while_it_fails(EINTR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_that_cannot_be_made_leaves_nothing),
        cmocka_unit_test(threads_for_blocking_calls_that_cannot_be_made_leave_nothing),
        cmocka_unit_test(an_error_of_close_goes_unnoticed),
        cmocka_unit_test(what_is_made_holds_what_is_counted),
        cmocka_unit_test(a_call_for_which_no_thread_can_be_had_is_told),
        cmocka_unit_test(where_there_is_a_thread_a_call_waits_for_it),
        cmocka_unit_test(a_thread_that_could_not_be_started_is_started_later),
        cmocka_unit_test(an_interrupted_read_is_begun_again),
        cmocka_unit_test(an_interrupted_wait_is_begun_again),
        cmocka_unit_test(a_read_that_finds_nothing_waits_again),
        cmocka_unit_test(an_error_of_read_is_reported_and_a_later_read_goes_on),
        cmocka_unit_test(an_error_of_poll_is_reported_and_a_later_read_goes_on),
        cmocka_unit_test(an_error_of_fcntl_is_reported_and_a_later_read_goes_on),
        cmocka_unit_test(an_interrupt_that_cannot_be_written_leaves_errno_alone),
        cmocka_unit_test(short_reads_are_returned_as_they_are),
        cmocka_unit_test(a_read_waits_for_data_that_is_written_later),
        cmocka_unit_test(a_read_that_is_begun_again_can_be_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
