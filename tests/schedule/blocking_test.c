/*
 * Blocking calls: they run on threads of a pool while the coroutine's loop continues. Reads of files and
 * pipes, and their interruption.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/blocking.h"
#include "bide/deadline.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

static bide_blocking *create(unsigned threads)
{
    bide_blocking *blocking;
    assert_int_equal(bide_blocking_create(&blocking, threads), 0);
    return blocking;
}

/* ---- Calls ---- */

struct call {
    bide_task task;
    bide_blocking *blocking;
    bide_blocking_call call;
    int status;
    pthread_t before, during, after;
};

static void note_thread(void *argument)
{
    *(pthread_t *)argument = pthread_self();
}

bide_coroutine(call_body)
{
    bide_begin(call_body, struct call * self);
    self->before = pthread_self();
    bide_await_status(self->status,
                      bide_blocking_run(&self->call, self->blocking, note_thread, &self->during));
    self->after = pthread_self();
    bide_end();
}

static void a_call_is_made_elsewhere_and_the_coroutine_resumes_on_its_loop(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (int i = 0; i < 500; i++) {
        struct call call = {.blocking = blocking, .status = -1};
        assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&call.task, &call_body)), 0);
        assert_int_equal(call.status, 0);
        assert_true(pthread_equal(call.before, pthread_self()));
        assert_false(pthread_equal(call.during, pthread_self()));
        assert_true(pthread_equal(call.after, pthread_self()));
    }
    bide_blocking_destroy(blocking);
}

struct meeting {
    unsigned expected;
    bide_atomic(unsigned) arrived;
};

static void meet(void *argument)
{
    struct meeting *meeting = argument;
    bide_atomic_fetch_add(&meeting->arrived, 1, relaxed);
    schedule_until(bide_atomic_load(&meeting->arrived, relaxed) == meeting->expected);
}

static void as_many_calls_as_threads_run_side_by_side(void **state)
{
    (void)state;
    enum { CALLS = 3 };
    bide_blocking *blocking = create(CALLS);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (int round = 0; round < 100; round++) {
        struct meeting meeting = {.expected = CALLS};
        bide_blocking_call calls[CALLS];
        bide_spawned spawned[CALLS];
        for (int i = 0; i < CALLS; i++)
            bide_spawn(&spawned[i], &loop.context,
                       bide_blocking_run(&calls[i], blocking, meet, &meeting));
        for (int i = 0; i < CALLS; i++) {
            bide_event_waiter wait;
            bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
            assert_int_equal(spawned[i].root.status, 0);
        }
    }
    bide_blocking_destroy(blocking);
}

/* ---- Cancelled calls ---- */

struct gate {
    bide_atomic(bool) begun, open;
};

static void pass(void *argument)
{
    struct gate *gate = argument;
    bide_atomic_store(&gate->begun, true, release);
    schedule_until(bide_atomic_load(&gate->open, acquire));
}

static void count(void *argument)
{
    ++*(int *)argument;
}

static void a_call_that_is_queued_is_cut_short_and_one_that_has_begun_is_not(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = loop.context;
    context.stop = &stop;
    struct gate gate = {false, false};
    int counts[2] = {0, 0};
    char byte;
    bide_blocking_call calls[3];
    bide_blocking_reader reader;
    bide_spawned spawned[4];
    bide_spawn(&spawned[0], &context, bide_blocking_run(&calls[0], blocking, pass, &gate));
    bide_run_loop_run_ready(&loop);
    schedule_until(bide_atomic_load(&gate.begun, acquire));
    bide_spawn(&spawned[1], &context, bide_blocking_run(&calls[1], blocking, count, &counts[0]));
    bide_spawn(&spawned[2], &context, bide_blocking_read(&reader, blocking, 0, &byte, 1));
    bide_spawn(&spawned[3], &loop.context,
               bide_blocking_run(&calls[2], blocking, count, &counts[1]));
    bide_run_loop_run_ready(&loop);
    bide_stop_request(&stop);
    bide_run_loop_run_ready(&loop);
    for (int i = 1; i < 3; i++) {
        assert_true(bide_event_is_set(&spawned[i].ended));
        assert_int_equal(spawned[i].root.status, -ECANCELED);
    }
    assert_int_equal(reader.result, -ECANCELED);
    assert_false(bide_event_is_set(&spawned[0].ended));

    bide_atomic_store(&gate.open, true, release);
    for (int i = 0; i < 4; i += 3) {
        bide_event_waiter wait;
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(spawned[i].root.status, 0);
    }
    assert_int_equal(counts[0], 0);
    assert_int_equal(counts[1], 1);
    bide_blocking_destroy(blocking);
}

/* ---- Many queued calls ---- */

struct queued {
    bide_blocking_call call;
    bide_spawned spawned;
    bide_stop_source stop;
    bide_context context;
    bool is_cancelled;
    bide_awaiter *link; /* while it is hidden */
};

struct queue {
    bide_blocking *blocking;
    bide_run_loop loop;
    struct gate gate;
    bide_blocking_call busy;
    bide_spawned busy_spawned;
    size_t count;
    unsigned made;
    struct queued *calls;
};

static void make_queued(void *argument)
{
    ++*(unsigned *)argument;
}

/* The pool's only thread is in a call, and `count` calls are queued. */
static struct queue *queue_begin(size_t count)
{
    static struct queue the_queue;
    struct queue *queue = &the_queue;
    memset(queue, 0, sizeof *queue);
    queue->blocking = create(1);
    queue->count = count;
    queue->calls = calloc(count, sizeof *queue->calls);
    assert_non_null(queue->calls);
    bide_run_loop_init(&queue->loop);
    bide_spawn(&queue->busy_spawned, &queue->loop.context,
               bide_blocking_run(&queue->busy, queue->blocking, pass, &queue->gate));
    bide_run_loop_run_ready(&queue->loop);
    schedule_until(bide_atomic_load(&queue->gate.begun, acquire));
    for (size_t i = 0; i < count; i++) {
        struct queued *one = &queue->calls[i];
        bide_stop_source_init(&one->stop);
        one->context = queue->loop.context;
        one->context.stop = &one->stop;
        bide_spawn(&one->spawned, &one->context,
                   bide_blocking_run(&one->call, queue->blocking, make_queued, &queue->made));
    }
    bide_run_loop_run_ready(&queue->loop);
    bide_blocking_stats stats;
    bide_blocking_get_stats(queue->blocking, &stats);
    assert_int_equal(stats.queued, count);
    return queue;
}

static void queue_cancel(struct queue *queue, size_t at)
{
    struct queued *one = &queue->calls[at];
    one->is_cancelled = true;
    bide_stop_request(&one->stop);
    bide_run_loop_run_ready(&queue->loop);
    assert_true(bide_event_is_set(&one->spawned.ended));
    assert_int_equal(one->spawned.root.status, -ECANCELED);
}

/* The calls that were not cancelled are made, and no other. */
static void queue_end(struct queue *queue)
{
    unsigned left = 0;
    bide_event_waiter wait;
    bide_atomic_store(&queue->gate.open, true, release);
    for (size_t i = 0; i < queue->count; i++) {
        struct queued *one = &queue->calls[i];
        bide_run_loop_wait(&queue->loop, bide_event_wait(&wait, &one->spawned.ended));
        assert_int_equal(one->spawned.root.status, one->is_cancelled ? -ECANCELED : 0);
        left += !one->is_cancelled;
    }
    bide_run_loop_wait(&queue->loop, bide_event_wait(&wait, &queue->busy_spawned.ended));
    assert_int_equal(queue->made, left);
    bide_blocking_destroy(queue->blocking);
    free(queue->calls);
}

/* Cuts the queue into single calls, all but `at` and its neighbours; or joins it again. */
static void queue_hide(struct queue *queue, size_t at, bool hides)
{
    for (size_t i = 0; i < queue->count; i++) {
        struct queued *one = &queue->calls[i];
        if (i + 1 >= at && i <= at + 1)
            continue;
        if (hides)
            one->link = one->call.awaiter.link;
        one->call.awaiter.link = hides ? NULL : one->link;
    }
}

static const size_t queue_sizes[] = {10, 1000, 100000};

/* So the cost of a cancellation is that of two neighbours, however many calls are queued. */
static void cancelling_a_queued_call_needs_its_neighbours_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof queue_sizes / sizeof queue_sizes[0]; i++) {
        size_t count = queue_sizes[i];
        const size_t places[] = {count / 2, count - 3, 2, 0, count - 1};
        struct queue *queue = queue_begin(count);
        for (size_t j = 0; j < sizeof places / sizeof places[0]; j++) {
            queue_hide(queue, places[j], true);
            queue_cancel(queue, places[j]);
            queue_hide(queue, places[j], false);
        }
        queue_end(queue);
    }
}

static void many_queued_calls_are_cancelled_in_any_order(void **state)
{
    (void)state;
    enum { OLDEST_FIRST, NEWEST_FIRST, SHUFFLED, ORDERS, MANY = 10000 };
    uint64_t random = testing_seed();
    for (int order = 0; order < ORDERS; order++) {
        struct queue *queue = queue_begin(MANY);
        size_t count = MANY;
        for (size_t i = 0; i < count; i++) {
            size_t at = order == OLDEST_FIRST   ? i
                        : order == NEWEST_FIRST ? count - 1 - i
                                                : i * 7919 % count;
            if (testing_random(&random) % 64 != 0)
                queue_cancel(queue, at);
        }
        queue_end(queue);
    }
}

struct order {
    unsigned *next;
    unsigned place;
};

static void take_place(void *argument)
{
    struct order *order = argument;
    order->place = (*order->next)++;
}

static void calls_begin_in_the_order_in_which_they_were_awaited(void **state)
{
    (void)state;
    enum { CALLS = 100 };
    bide_blocking *blocking = create(1);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    unsigned next = 0;
    struct order orders[CALLS];
    bide_blocking_call calls[CALLS];
    bide_spawned spawned[CALLS];
    for (unsigned i = 0; i < CALLS; i++) {
        orders[i].next = &next;
        bide_spawn(&spawned[i], &loop.context,
                   bide_blocking_run(&calls[i], blocking, take_place, &orders[i]));
    }
    for (unsigned i = 0; i < CALLS; i++) {
        bide_event_waiter wait;
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(orders[i].place, i);
    }
    bide_blocking_destroy(blocking);
}

static void no_thread_at_all_and_far_too_many_are_EINVAL(void **state)
{
    (void)state;
    bide_blocking *blocking;
    assert_int_equal(bide_blocking_create(&blocking, 0), -EINVAL);
    assert_int_equal(bide_blocking_create(&blocking, 65537), -EINVAL);
    assert_int_equal(bide_blocking_create(&blocking, UINT_MAX), -EINVAL);
}

static void sets_of_threads_come_and_go(void **state)
{
    (void)state;
    int lowest = dup(STDIN_FILENO);
    close(lowest);
    for (unsigned i = 0; i < 200; i++) {
        bide_blocking *blocking = create(1 + i % 3);
        pthread_t thread;
        bide_blocking_call call;
        assert_int_equal(bide_sync_wait(bide_blocking_run(&call, blocking, note_thread, &thread)),
                         0);
        bide_blocking_destroy(blocking);
    }
    int lowest_after = dup(STDIN_FILENO);
    close(lowest_after);
    assert_int_equal(lowest_after, lowest);
}

/* ---- Files ---- */

enum { FILE_SIZE = 300000 };

struct copy {
    bide_task task;
    bide_blocking *blocking;
    int fd;
    uint64_t random;
    size_t piece;
    size_t total;
    size_t reads;
    bide_blocking_reader reader;
    unsigned char bytes[FILE_SIZE + 8192];
};

/* Reads to the end of the file in pieces of random sizes. */
bide_coroutine(copy_body)
{
    bide_begin(copy_body, struct copy * self);
    do {
        self->piece = 1 + testing_random(&self->random) % 8192;
        bide_try(bide_blocking_read(&self->reader, self->blocking, self->fd,
                                    self->bytes + self->total, self->piece));
        if (self->reader.result > (ptrdiff_t)self->piece)
            bide_return(-EOVERFLOW);
        self->total += (size_t)self->reader.result;
        self->reads++;
    } while (self->reader.result > 0 && self->total <= FILE_SIZE);
    bide_end();
}

static int temporary_file(const unsigned char *bytes, size_t size)
{
    char name[] = "/tmp/bide-test-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void a_file_read_in_pieces_gives_its_bytes(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    static unsigned char bytes[FILE_SIZE];
    for (size_t i = 0; i < FILE_SIZE; i++)
        bytes[i] = (unsigned char)testing_random(&random);
    bide_blocking *blocking = create(2);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    static struct copy copy;
    copy.blocking = blocking;
    copy.fd = temporary_file(bytes, FILE_SIZE);
    copy.random = random;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&copy.task, &copy_body)), 0);
    assert_int_equal(copy.total, FILE_SIZE);
    assert_memory_equal(copy.bytes, bytes, FILE_SIZE);
    assert_int_equal(copy.reader.result, 0);
    close(copy.fd);
    bide_blocking_destroy(blocking);
}

/* Reads from a plain thread. Returns the result, after checking that the status is the same if it is an error. */
static ptrdiff_t read_now(bide_blocking *blocking, int fd, void *buffer, size_t size)
{
    bide_blocking_reader reader = {.result = 12345};
    int status = bide_sync_wait(bide_blocking_read(&reader, blocking, fd, buffer, size));
    assert_int_equal(status, reader.result < 0 ? reader.result : 0);
    return reader.result;
}

static void the_end_of_a_file_is_0(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    int fd = temporary_file((const unsigned char *)"abc", 3);
    char buffer[8];
    assert_int_equal(read_now(blocking, fd, buffer, sizeof buffer), 3);
    assert_memory_equal(buffer, "abc", 3);
    assert_int_equal(read_now(blocking, fd, buffer, sizeof buffer), 0);
    assert_int_equal(read_now(blocking, fd, buffer, sizeof buffer), 0);
    close(fd);
    bide_blocking_destroy(blocking);
}

static void a_descriptor_that_is_not_open_is_EBADF(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    char byte;
    int fd = dup(STDIN_FILENO);
    close(fd);
    assert_int_equal(read_now(blocking, fd, &byte, 1), -EBADF);
    assert_int_equal(read_now(blocking, -1, &byte, 1), -EBADF);
    bide_blocking_destroy(blocking);
}

static void a_directory_is_EISDIR(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    char byte;
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    assert_int_equal(read_now(blocking, fd, &byte, 1), -EISDIR);
    close(fd);
    bide_blocking_destroy(blocking);
}

/* ---- Pipes ---- */

struct tube {
    int out; /* to read from */
    int in;
};

static struct tube make_pipe(int flags)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | flags), 0);
    return (struct tube){fds[0], fds[1]};
}

static void close_pipe(struct tube pipe)
{
    close(pipe.out);
    close(pipe.in);
}

static void a_descriptor_that_is_not_open_for_reading_is_EBADF(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    struct tube pipe = make_pipe(0);
    char byte;
    assert_int_equal(read_now(blocking, pipe.in, &byte, 1), -EBADF);
    close_pipe(pipe);
    bide_blocking_destroy(blocking);
}

static void short_reads_of_a_pipe_are_returned_as_they_are(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    struct tube pipe = make_pipe(0);
    char buffer[100];
    assert_int_equal(write(pipe.in, "abc", 3), 3);
    assert_int_equal(read_now(blocking, pipe.out, buffer, sizeof buffer), 3);
    assert_memory_equal(buffer, "abc", 3);
    assert_int_equal(write(pipe.in, "defgh", 5), 5);
    assert_int_equal(read_now(blocking, pipe.out, buffer, 4), 4);
    assert_memory_equal(buffer, "defg", 4);
    close(pipe.in);
    assert_int_equal(read_now(blocking, pipe.out, buffer, sizeof buffer), 1);
    assert_int_equal(read_now(blocking, pipe.out, buffer, sizeof buffer), 0);
    close(pipe.out);
    bide_blocking_destroy(blocking);
}

/* Alternates with another of its kind; the one with a pipe finally writes to it. */
struct busy {
    bide_task task;
    bide_spawned spawned;
    bide_event_waiter wait;
    bide_event *mine;
    bide_event *theirs;
    unsigned turns;
    int fd; /* written to at the end, or -1 */
};

bide_coroutine(busy_body)
{
    bide_begin(busy_body, struct busy * self);
    for (self->turns = 0; self->turns < 1000; self->turns++) {
        bide_await(bide_event_wait(&self->wait, self->mine));
        bide_event_reset(self->mine);
        bide_event_set(self->theirs);
    }
    if (self->fd >= 0 && write(self->fd, "abc", 3) != 3)
        bide_return(-errno);
    bide_end();
}

static void a_loop_goes_on_while_a_read_waits_for_data(void **state)
{
    (void)state;
    const int flags[] = {0, O_NONBLOCK};
    for (int i = 0; i < 2; i++) {
        bide_blocking *blocking = create(1);
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        struct tube pipe = make_pipe(flags[i]);
        char buffer[100];
        bide_blocking_reader reader;
        bide_spawned read;
        bide_spawn(&read, &loop.context,
                   bide_blocking_read(&reader, blocking, pipe.out, buffer, sizeof buffer));

        bide_event events[2];
        bide_event_init(&events[0], true);
        bide_event_init(&events[1], false);
        struct busy busy[2];
        for (int j = 0; j < 2; j++) {
            busy[j].mine = &events[j];
            busy[j].theirs = &events[1 - j];
            busy[j].fd = j == 0 ? -1 : pipe.in;
            bide_spawn(&busy[j].spawned, &loop.context, bide_task_init(&busy[j].task, &busy_body));
        }
        bide_event_waiter wait;
        assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &read.ended)), 0);
        assert_int_equal(read.root.status, 0);
        assert_int_equal(reader.result, 3);
        assert_memory_equal(buffer, "abc", 3);
        for (int j = 0; j < 2; j++) {
            assert_true(bide_event_is_set(&busy[j].spawned.ended));
            assert_int_equal(busy[j].spawned.root.status, 0);
            assert_int_equal(busy[j].turns, 1000);
        }
        close_pipe(pipe);
        bide_blocking_destroy(blocking);
    }
}

static void *write_bytes(void *argument)
{
    struct tube *pipe = argument;
    for (unsigned i = 0; i < 256; i++) {
        unsigned char byte = (unsigned char)i;
        if (write(pipe->in, &byte, 1) != 1)
            break;
        if (i % 16 == 0)
            sched_yield();
    }
    close(pipe->in);
    return NULL;
}

static void what_another_thread_writes_is_read_until_the_pipe_is_closed(void **state)
{
    (void)state;
    const int flags[] = {0, O_NONBLOCK};
    for (int i = 0; i < 2; i++) {
        bide_blocking *blocking = create(1);
        struct tube pipe = make_pipe(flags[i]);
        pthread_t thread = schedule_thread(write_bytes, &pipe);
        unsigned char buffer[300];
        size_t total = 0;
        ptrdiff_t got;
        while ((got = read_now(blocking, pipe.out, buffer + total, sizeof buffer - total)) > 0)
            total += (size_t)got;
        assert_int_equal(got, 0);
        assert_int_equal(total, 256);
        for (unsigned j = 0; j < 256; j++)
            assert_int_equal(buffer[j], j);
        pthread_join(thread, NULL);
        close(pipe.out);
        bide_blocking_destroy(blocking);
    }
}

/* ---- Interrupting ---- */

static bide_blocking *to_interrupt;

static void interrupt_on_signal(int number)
{
    (void)number;
    bide_blocking_interrupt(to_interrupt);
}

static void interrupt_from_handler(bide_blocking *blocking)
{
    to_interrupt = blocking;
    struct sigaction action = {.sa_handler = interrupt_on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    errno = EXDEV;
    raise(SIGUSR1);
    assert_int_equal(errno, EXDEV);
    sigaction(SIGUSR1, &before, NULL);
}

/* Several reads wait, one of them still for a thread. */
static void interrupt_waiting_reads(void (*interrupt)(bide_blocking *), uint64_t *random)
{
    enum { READS = 3 };
    bide_blocking *blocking = create(2);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct tube pipes[READS];
    char bytes[READS];
    bide_blocking_reader readers[READS];
    bide_spawned spawned[READS];
    for (int i = 0; i < READS; i++) {
        pipes[i] = make_pipe(i == 0 ? O_NONBLOCK : 0);
        bide_spawn(&spawned[i], &loop.context,
                   bide_blocking_read(&readers[i], blocking, pipes[i].out, &bytes[i], 1));
    }
    assert_int_equal(bide_run_loop_run_ready(&loop), READS);
    for (uint64_t i = testing_random(random) % 32; i > 0; i--)
        schedule_jitter(random); /* in most rounds they wait already when it ends */
    interrupt(blocking);
    for (int i = 0; i < READS; i++) {
        bide_event_waiter wait;
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(spawned[i].root.status, -ECANCELED);
        assert_int_equal(readers[i].result, -ECANCELED);
    }
    /* It stays interrupted, and available bytes are not read. */
    assert_int_equal(write(pipes[0].in, "a", 1), 1);
    assert_int_equal(read_now(blocking, pipes[0].out, &bytes[0], 1), -ECANCELED);
    interrupt(blocking);
    assert_int_equal(read_now(blocking, pipes[0].out, &bytes[0], 1), -ECANCELED);
    assert_int_equal(read(pipes[0].out, &bytes[0], 1), 1);
    assert_int_equal(bytes[0], 'a');
    for (int i = 0; i < READS; i++)
        close_pipe(pipes[i]);
    bide_blocking_destroy(blocking);
}

static void interrupt_ends_reads_that_wait_and_later_ones(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    for (int i = 0; i < 200; i++)
        interrupt_waiting_reads(bide_blocking_interrupt, &random);
}

static void interrupt_works_from_a_signal_handler(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    for (int i = 0; i < 50; i++)
        interrupt_waiting_reads(interrupt_from_handler, &random);
}

static void other_calls_are_not_interrupted(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    bide_blocking_interrupt(blocking);
    bide_blocking_call call;
    pthread_t thread = pthread_self();
    assert_int_equal(bide_sync_wait(bide_blocking_run(&call, blocking, note_thread, &thread)), 0);
    assert_false(pthread_equal(thread, pthread_self()));
    bide_blocking_destroy(blocking);
}

/* ---- Pools that grow, and do not hold up each other ---- */

static bide_blocking *create_with(const bide_blocking_options *options)
{
    bide_blocking *blocking;
    assert_int_equal(bide_blocking_create_with(&blocking, options), 0);
    return blocking;
}

static bide_blocking_stats counts_of(bide_blocking *blocking)
{
    bide_blocking_stats counts;
    bide_blocking_get_stats(blocking, &counts);
    return counts;
}

/* Runs the function whose result is its status, on its thread. */
static int wait_on(bide_run_loop *loop, bide_spawned *spawned)
{
    bide_event_waiter wait;
    bide_run_loop_wait(loop, bide_event_wait(&wait, &spawned->ended));
    return spawned->root.status;
}

/* ThreadSanitizer reports a thread that has ended, and is neither joined nor detached. */
static void no_ended_thread_of_a_pool_that_stays_waits_to_be_joined(void **state)
{
    (void)state;
    static bide_blocking *blocking;
    blocking = create_with(
        &(bide_blocking_options){.max_threads = 2, .idle_timeout = 1, .is_for_good = true});
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (unsigned round = rounds_of(100); round > 0; round--) {
        pthread_t threads[2];
        bide_blocking_call calls[2];
        bide_spawned spawned[2];
        for (int i = 0; i < 2; i++)
            bide_spawn(&spawned[i], &loop.context,
                       bide_blocking_run(&calls[i], blocking, note_thread, &threads[i]));
        for (int i = 0; i < 2; i++)
            assert_int_equal(wait_on(&loop, &spawned[i]), 0);
        schedule_until(counts_of(blocking).threads == 0);
    }
    bide_run_loop_destroy(&loop);
}

static void threads_are_started_when_none_is_idle_and_end_when_they_are(void **state)
{
    (void)state;
    enum { MOST = 3, CALLS = 5 };
    for (unsigned min = 0; min < MOST; min++) {
        bide_blocking_options options = {
            .max_threads = MOST, .min_threads = min, .idle_timeout = 1};
        bide_blocking *blocking = create_with(&options);
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        assert_int_equal(counts_of(blocking).threads, min);
        for (unsigned round = rounds_of(100); round > 0; round--) {
            struct gate gate = {false, false};
            bide_blocking_call calls[CALLS];
            bide_spawned spawned[CALLS];
            for (unsigned i = 0; i < CALLS; i++) {
                bide_spawn(&spawned[i], &loop.context,
                           bide_blocking_run(&calls[i], blocking, pass, &gate));
                bide_run_loop_run_ready(&loop);
                assert_in_range(counts_of(blocking).threads, i + 1 < MOST ? i + 1 : MOST, MOST);
            }
            schedule_until(counts_of(blocking).queued == CALLS - MOST);
            bide_atomic_store(&gate.open, true, release);
            for (int i = 0; i < CALLS; i++)
                assert_int_equal(wait_on(&loop, &spawned[i]), 0);
            if (round % 2 == 0)
                schedule_until(counts_of(blocking).threads == min);
        }
        bide_blocking_destroy(blocking);
        bide_run_loop_destroy(&loop);
    }
}

/* Calls that wait until a gate opens take all threads but one spare thread, or all. */
static void calls_that_take_long_hold_up_no_others(void **state)
{
    (void)state;
    enum { MAX = 2, SPARE = 6, MOST = MAX + SPARE };
    for (unsigned waiting = MAX; waiting <= MOST; waiting++) {
        bide_blocking_options options = {.max_threads = MAX,
                                         .spare_threads = SPARE,
                                         .interrupt_signal = waiting % 2 == 0 ? SIGURG : 0};
        bide_blocking *blocking = create_with(&options);
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        struct gate gate = {false, false};
        int counted = 0;
        bide_blocking_call calls[MOST], short_call;
        bide_spawned spawned[MOST], short_spawned;
        for (unsigned i = 0; i < waiting; i++)
            bide_spawn(&spawned[i], &loop.context,
                       bide_blocking_run(&calls[i], blocking, pass, &gate));
        bide_spawn(&short_spawned, &loop.context,
                   bide_blocking_run(&short_call, blocking, count, &counted));
        bide_run_loop_run_ready(&loop);
        if (waiting < MOST)
            assert_int_equal(wait_on(&loop, &short_spawned), 0);
        else
            schedule_until(counts_of(blocking).threads == MOST && counts_of(blocking).queued == 1);
        bide_atomic_store(&gate.open, true, release);
        if (waiting == MOST)
            assert_int_equal(wait_on(&loop, &short_spawned), 0);
        for (unsigned i = 0; i < waiting; i++)
            assert_int_equal(wait_on(&loop, &spawned[i]), 0);
        assert_int_equal(counted, 1);
        schedule_until(counts_of(blocking).threads <= MAX);
        bide_blocking_destroy(blocking);
        bide_run_loop_destroy(&loop);
    }
}

struct name {
    char name[16];
};

static void read_name(void *argument)
{
    struct name *name = argument;
    pthread_getname_np(pthread_self(), name->name, sizeof name->name);
}

static void threads_have_the_name_of_their_pool(void **state)
{
    (void)state;
    static const char *const names[] = {"files", "names that are looked up"};
    for (int i = 0; i < 2; i++) {
        bide_blocking_options options = {.max_threads = 1, .name = names[i]};
        bide_blocking *blocking = create_with(&options);
        bide_blocking_call call;
        struct name name;
        assert_int_equal(bide_sync_wait(bide_blocking_run(&call, blocking, read_name, &name)), 0);
        assert_true(strncmp(name.name, names[i], 15) == 0);
        bide_blocking_destroy(blocking);
    }
}

static void a_pool_that_is_full_does_not_hold_up_another(void **state)
{
    (void)state;
    enum { CALLS = 4 };
    bide_blocking_options options = {.max_threads = 1};
    bide_blocking *names = create_with(&options), *files = create_with(&options);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct gate gate = {false, false};
    int made = 0;
    bide_blocking_call calls[CALLS];
    bide_spawned spawned[CALLS];
    bide_spawn(&spawned[0], &loop.context, bide_blocking_run(&calls[0], names, pass, &gate));
    for (int i = 1; i < CALLS; i++)
        bide_spawn(&spawned[i], &loop.context, bide_blocking_run(&calls[i], names, count, &made));
    bide_run_loop_run_ready(&loop);
    schedule_until(bide_atomic_load(&gate.begun, acquire));
    assert_int_equal(counts_of(names).queued, CALLS - 1);

    int other = 0;
    bide_blocking_call call;
    assert_int_equal(bide_run_loop_wait(&loop, bide_blocking_run(&call, files, count, &other)), 0);
    assert_int_equal(other, 1);
    bide_with_deadline_operation deadline;
    assert_int_equal(bide_run_loop_wait(
                         &loop, bide_with_deadline(&deadline, bide_platform.now() + 1,
                                                   bide_blocking_run(&call, names, count, &other))),
                     -ETIMEDOUT);
    assert_int_equal(other, 1);

    bide_atomic_store(&gate.open, true, release);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(wait_on(&loop, &spawned[i]), 0);
    assert_int_equal(made, CALLS - 1);
    bide_blocking_destroy(files);
    bide_blocking_destroy(names);
    bide_run_loop_destroy(&loop);
}

static void options_that_make_no_sense_are_EINVAL(void **state)
{
    (void)state;
    static const bide_blocking_options wrong[] = {{.max_threads = 0},
                                                  {.max_threads = 65537},
                                                  {.max_threads = 2, .min_threads = 3},
                                                  {.max_threads = 2, .spare_threads = 65535},
                                                  {.max_threads = 1, .interrupt_signal = -1},
                                                  {.max_threads = 1, .interrupt_signal = SIGKILL}};
    bide_blocking *blocking;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(bide_blocking_create_with(&blocking, &wrong[i]), -EINVAL);
}

/* ---- Calls that are interrupted ---- */

enum { SIGNAL = SIGURG };

static const bide_blocking_options with_signal = {.max_threads = 1, .interrupt_signal = SIGNAL};

static void a_signal_of_the_users_is_EBUSY(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = interrupt_on_signal}, before;
    bide_blocking_options options = {.max_threads = 1, .interrupt_signal = SIGUSR2};
    bide_blocking *blocking;
    sigaction(SIGUSR2, &action, &before);
    assert_int_equal(bide_blocking_create_with(&blocking, &options), -EBUSY);
    sigaction(SIGUSR2, &before, NULL);
    assert_int_equal(bide_blocking_create_with(&blocking, &options), 0);
    bide_blocking_destroy(blocking);
}

/* One system call, started some time after the call. */
struct waiting_read {
    int fd;
    uint64_t random;
    char byte;
    bide_atomic(bool) begun;
};

static int wait_for_byte(void *argument)
{
    struct waiting_read *self = argument;
    bide_atomic_store(&self->begun, true, release);
    schedule_jitter(&self->random);
    return read(self->fd, &self->byte, 1) == 1 ? 0 : -errno;
}

static void no_signal_waits(void *argument)
{
    sigset_t set, blocked;
    sigpending(&set);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    *(bool *)argument = sigismember(&set, SIGNAL) == 0 && sigismember(&blocked, SIGNAL) == 1;
}

/*
 * The request comes before the system call starts, while it waits, or after it has ended. Either the byte was read, or
 * the wait was cancelled and the byte is still there. The next call on the thread is not affected.
 */
static void a_call_that_waits_in_the_system_is_interrupted_wherever_it_is(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    bide_blocking *blocking = create_with(&with_signal);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct tube pipe = make_pipe(0);
    for (unsigned round = rounds_of(500); round > 0; round--) {
        struct waiting_read read = {.fd = pipe.out, .random = testing_random(&random)};
        bool writes = testing_random(&random) % 2 == 0, quiet = false;
        bide_blocking_call calls[2];
        bide_spawned spawned;
        bide_stop_source stop;
        bide_context context = loop.context;
        bide_stop_source_init(&stop);
        context.stop = &stop;
        bide_spawn(&spawned, &context,
                   bide_blocking_run_interruptible(&calls[0], blocking, wait_for_byte, &read));
        bide_run_loop_run_ready(&loop);
        schedule_until(bide_atomic_load(&read.begun, acquire));
        schedule_jitter(&random);
        if (writes)
            assert_int_equal(write(pipe.in, "a", 1), 1);
        schedule_jitter(&random);
        bide_stop_request_with(&stop, round % 3 == 0 ? -ETIMEDOUT : -ECANCELED);
        int status = wait_on(&loop, &spawned);
        if (status == 0) {
            assert_true(writes);
            assert_int_equal(read.byte, 'a');
        } else {
            assert_int_equal(status, round % 3 == 0 ? -ETIMEDOUT : -ECANCELED);
            if (writes)
                assert_int_equal(read_now(blocking, pipe.out, &read.byte, 1), 1);
        }
        assert_int_equal(bide_run_loop_wait(&loop, bide_blocking_run(&calls[1], blocking,
                                                                     no_signal_waits, &quiet)),
                         0);
        assert_true(quiet);
    }
    close_pipe(pipe);
    bide_blocking_destroy(blocking);
    bide_run_loop_destroy(&loop);
}

static int compute_until_interrupted(void *argument)
{
    bide_atomic_store((bide_atomic(bool) *)argument, true, release);
    schedule_until(bide_blocking_is_interrupted());
    return -EDOM;
}

static void a_computation_may_ask_whether_it_is_interrupted(void **state)
{
    (void)state;
    bide_blocking *blocking = create_with(&with_signal);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_atomic(bool) begun;
    bide_atomic_init(&begun, false);
    bide_blocking_call call;
    bide_spawned spawned;
    bide_stop_source stop;
    bide_context context = loop.context;
    bide_stop_source_init(&stop);
    context.stop = &stop;
    assert_false(bide_blocking_is_interrupted());
    bide_spawn(&spawned, &context,
               bide_blocking_run_interruptible(&call, blocking, compute_until_interrupted, &begun));
    bide_run_loop_run_ready(&loop);
    schedule_until(bide_atomic_load(&begun, acquire));
    bide_stop_request(&stop);
    assert_int_equal(wait_on(&loop, &spawned), -EDOM); /* its return value is the status */
    bide_blocking_destroy(blocking);
    bide_run_loop_destroy(&loop);
}

static void a_read_that_waits_is_interrupted_alone(void **state)
{
    (void)state;
    bide_blocking_options options = {.max_threads = 2, .interrupt_signal = SIGNAL};
    bide_blocking *blocking = create_with(&options);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (unsigned round = rounds_of(200); round > 0; round--) {
        struct tube pipes[2];
        bide_blocking_reader readers[2];
        bide_spawned spawned[2];
        bide_stop_source stop;
        char bytes[2];
        bide_stop_source_init(&stop);
        bide_context context = loop.context;
        for (int i = 0; i < 2; i++) {
            pipes[i] = make_pipe(0);
            context.stop = i == 0 ? &stop : NULL;
            bide_spawn(&spawned[i], &context,
                       bide_blocking_read(&readers[i], blocking, pipes[i].out, &bytes[i], 1));
        }
        bide_run_loop_run_ready(&loop);
        if (round % 2 == 0)
            schedule_until(counts_of(blocking).queued == 0);
        bide_stop_request(&stop);
        assert_int_equal(wait_on(&loop, &spawned[0]), -ECANCELED);
        assert_int_equal(readers[0].result, -ECANCELED);
        assert_false(bide_event_is_set(&spawned[1].ended));
        assert_int_equal(write(pipes[1].in, "b", 1), 1);
        assert_int_equal(wait_on(&loop, &spawned[1]), 0);
        assert_int_equal(readers[1].result, 1);
        for (int i = 0; i < 2; i++)
            close_pipe(pipes[i]);
    }
    bide_blocking_destroy(blocking);
    bide_run_loop_destroy(&loop);
}

static void without_a_signal_a_call_goes_on_to_its_end(void **state)
{
    (void)state;
    bide_blocking *blocking = create(1);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct tube pipe = make_pipe(0);
    struct waiting_read read = {.fd = pipe.out};
    bide_blocking_call call;
    bide_spawned spawned;
    bide_stop_source stop;
    bide_context context = loop.context;
    bide_stop_source_init(&stop);
    context.stop = &stop;
    bide_spawn(&spawned, &context,
               bide_blocking_run_interruptible(&call, blocking, wait_for_byte, &read));
    bide_run_loop_run_ready(&loop);
    schedule_until(bide_atomic_load(&read.begun, acquire));
    bide_stop_request(&stop);
    bide_run_loop_run_ready(&loop);
    assert_false(bide_event_is_set(&spawned.ended));
    assert_int_equal(write(pipe.in, "a", 1), 1);
    assert_int_equal(wait_on(&loop, &spawned), 0);
    close_pipe(pipe);
    bide_blocking_destroy(blocking);
    bide_run_loop_destroy(&loop);
}

/* ---- Misuse ---- */

/* Without a scheduler of its own the coroutine resumes on the thread that made the call. */
struct destroyer {
    bide_task task;
    bide_blocking *blocking;
    bide_blocking_call call;
    int calls;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    bide_await(bide_blocking_run(&self->call, self->blocking, count, &self->calls));
    bide_blocking_destroy(self->blocking);
    bide_end();
}

static void destroy_it_after_a_call(void)
{
    struct destroyer destroyer = {.blocking = create(2)};
    bide_sync_wait(bide_task_init(&destroyer.task, &destroyer_body));
}

static void destroy_one_that_is_for_good(void)
{
    bide_blocking_destroy(
        create_with(&(bide_blocking_options){.max_threads = 1, .is_for_good = true}));
}

static void to_destroy_one_that_is_for_good_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_one_that_is_for_good, "stay for good",
                                     "blocking_test.c"));
}

static void to_destroy_it_on_one_of_its_threads_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_after_a_call, "destroyed on one of them",
                                     "blocking_test.c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_made_elsewhere_and_the_coroutine_resumes_on_its_loop),
        cmocka_unit_test(as_many_calls_as_threads_run_side_by_side),
        cmocka_unit_test(a_call_that_is_queued_is_cut_short_and_one_that_has_begun_is_not),
        cmocka_unit_test(cancelling_a_queued_call_needs_its_neighbours_only),
        cmocka_unit_test(many_queued_calls_are_cancelled_in_any_order),
        cmocka_unit_test(calls_begin_in_the_order_in_which_they_were_awaited),
        cmocka_unit_test(no_thread_at_all_and_far_too_many_are_EINVAL),
        cmocka_unit_test(sets_of_threads_come_and_go),
        cmocka_unit_test(a_file_read_in_pieces_gives_its_bytes),
        cmocka_unit_test(the_end_of_a_file_is_0),
        cmocka_unit_test(a_descriptor_that_is_not_open_is_EBADF),
        cmocka_unit_test(a_directory_is_EISDIR),
        cmocka_unit_test(a_descriptor_that_is_not_open_for_reading_is_EBADF),
        cmocka_unit_test(short_reads_of_a_pipe_are_returned_as_they_are),
        cmocka_unit_test(a_loop_goes_on_while_a_read_waits_for_data),
        cmocka_unit_test(what_another_thread_writes_is_read_until_the_pipe_is_closed),
        cmocka_unit_test(interrupt_ends_reads_that_wait_and_later_ones),
        cmocka_unit_test(interrupt_works_from_a_signal_handler),
        cmocka_unit_test(other_calls_are_not_interrupted),
        cmocka_unit_test(no_ended_thread_of_a_pool_that_stays_waits_to_be_joined),
        cmocka_unit_test(threads_are_started_when_none_is_idle_and_end_when_they_are),
        cmocka_unit_test(calls_that_take_long_hold_up_no_others),
        cmocka_unit_test(threads_have_the_name_of_their_pool),
        cmocka_unit_test(a_pool_that_is_full_does_not_hold_up_another),
        cmocka_unit_test(options_that_make_no_sense_are_EINVAL),
        cmocka_unit_test(a_signal_of_the_users_is_EBUSY),
        cmocka_unit_test(a_call_that_waits_in_the_system_is_interrupted_wherever_it_is),
        cmocka_unit_test(a_computation_may_ask_whether_it_is_interrupted),
        cmocka_unit_test(a_read_that_waits_is_interrupted_alone),
        cmocka_unit_test(without_a_signal_a_call_goes_on_to_its_end),
        cmocka_unit_test(to_destroy_one_that_is_for_good_is_misuse),
        cmocka_unit_test(to_destroy_it_on_one_of_its_threads_is_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
