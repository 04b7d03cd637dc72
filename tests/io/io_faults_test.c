/*
 * Makes each system call and each allocation of a loop fail in turn. Each failure is a clear errno, and
 * nothing is left behind. An interrupted call is repeated.
 */
#define _GNU_SOURCE
#include "by_readiness.h"
#include "faults.h"
#include "has_nowait.h"

#include <bide/bide.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A connection that carries five bytes in each direction. */
struct talk {
    bide_task task;
    bide_descriptor listener, one, other;
    bide_io_operation operation;
    bide_address address;
    char buffer[8];
};

bide_coroutine(talk_body)
{
    bide_begin(talk_body, struct talk * self);
    bide_descriptor_init_closed(&self->listener);
    bide_descriptor_init_closed(&self->one);
    bide_descriptor_init_closed(&self->other);
    bide_address_ip(&self->address, "127.0.0.1", 0);
    bide_try(bide_listen(&self->operation, &self->listener, &self->address, 4));
    bide_local_address(&self->listener, &self->address);
    bide_try(bide_connect(&self->operation, &self->one, &self->address));
    bide_try(bide_accept(&self->operation, &self->listener, &self->other, NULL));
    bide_try(bide_send(&self->operation, &self->one, "hello", 5));
    bide_try(bide_recv(&self->operation, &self->other, self->buffer, sizeof self->buffer));
    bide_try(bide_send(&self->operation, &self->other, self->buffer, self->operation.count));
    bide_try(bide_recv(&self->operation, &self->one, self->buffer, sizeof self->buffer));
    bide_finally();
    bide_close(&self->one);
    bide_close(&self->other);
    bide_close(&self->listener);
    bide_end();
}

/* Runs the awaiter on a new loop. */
static int wait_by_readiness(bide_awaiter *awaiter)
{
    bide_loop *loop;
    bide_loop_options options = {.kind = BY_READINESS};
    int status = bide_loop_create(&loop, &options);
    if (status < 0)
        return status;
    status = bide_loop_wait(loop, awaiter);
    bide_loop_destroy(loop);
    return status;
}

static int talk(void *argument)
{
    struct talk frame;
    (void)argument;
    return wait_by_readiness(bide_task_init(&frame.task, &talk_body));
}

/* Waits for data that arrives later, so that the kernel has to report it. */
struct sender {
    bide_task task;
    bide_descriptor *to;
    bide_sleep pause;
    bide_io_operation operation;
};

bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    bide_try(bide_sleep_for(&self->pause, 1000000));
    bide_try(bide_send(&self->operation, self->to, "hello", 5));
    bide_end();
}

static int wait_for_five(void *argument)
{
    struct sender sender;
    bide_spawned spawned;
    bide_event_waiter wait;
    bide_io_operation operation;
    bide_descriptor one, other;
    char buffer[8];
    bide_loop *loop;
    bide_loop_options options = {.kind = BY_READINESS};
    int status = bide_loop_create(&loop, &options);
    (void)argument;
    if (status < 0)
        return status;
    assert_int_equal(bide_loop_wait(loop, bide_socket_pair(&operation, &one, &other)), 0);
    sender.to = &other;
    bide_spawn(&spawned, bide_loop_context(loop), bide_task_init(&sender.task, &sender_body));
    status = bide_loop_wait(loop, bide_recv(&operation, &one, buffer, sizeof buffer));
    int sent = bide_loop_wait(loop, bide_event_wait(&wait, &spawned.ended));
    bide_close(&one);
    bide_close(&other);
    bide_loop_destroy(loop);
    return status < 0 ? status : sent;
}

/* The same with an acceptor and leased buffers. */
struct lent_talk {
    bide_task task;
    bide_descriptor listener, one, other;
    bide_io_operation operation;
    bide_address address;
    bide_acceptor acceptor;
    int queue[2];
    bide_buffer_pool pool;
    char memory[2][64];
};

bide_coroutine(lent_talk_body)
{
    bide_begin(lent_talk_body, struct lent_talk * self);
    bide_descriptor_init_closed(&self->listener);
    bide_descriptor_init_closed(&self->one);
    bide_descriptor_init_closed(&self->other);
    bide_acceptor_init(&self->acceptor, &self->listener, self->queue, 2);
    bide_buffer_pool_init(&self->pool, self->memory, sizeof self->memory[0], 2);
    bide_address_ip(&self->address, "127.0.0.1", 0);
    bide_try(bide_listen(&self->operation, &self->listener, &self->address, 4));
    bide_local_address(&self->listener, &self->address);
    bide_try(bide_connect(&self->operation, &self->one, &self->address));
    bide_try(bide_acceptor_next(&self->operation, &self->acceptor, &self->other, NULL));
    bide_try(bide_send_zero_copy(&self->operation, &self->one, "hello", 5));
    bide_try(bide_recv_provided(&self->operation, &self->other, &self->pool));
    bide_buffer_release(&self->pool, bide_provided_buffer(&self->operation));
    bide_finally();
    bide_acceptor_destroy(&self->acceptor);
    bide_close(&self->one);
    bide_close(&self->other);
    bide_close(&self->listener);
    bide_buffer_pool_destroy(&self->pool);
    bide_end();
}

static int lent_talk(void *argument)
{
    struct lent_talk frame;
    (void)argument;
    return wait_by_readiness(bide_task_init(&frame.task, &lent_talk_body));
}

static void calls_that_fail_lose_no_connection_and_no_buffer(void **state)
{
    (void)state;
    assert_int_equal(lent_talk(NULL), 0);
    assert_in_range(faults_for_each_n(FAULT_ACCEPT4, ECONNABORTED, lent_talk, NULL), 1, 10);
    assert_in_range(faults_for_each_n(FAULT_RECV, ECONNRESET, lent_talk, NULL), 1, 10);
    assert_in_range(faults_for_each_n(FAULT_SEND, ECONNRESET, lent_talk, NULL), 1, 10);
    assert_in_range(faults_survive_each_n(FAULT_ACCEPT4, 3, EINTR, lent_talk, NULL), 1, 10);
    assert_in_range(faults_survive_each_n(FAULT_RECV, 3, EINTR, lent_talk, NULL), 1, 10);
    assert_in_range(faults_survive_each_n(FAULT_SEND, 3, EINTR, lent_talk, NULL), 1, 10);
    faults_clear();
}

/* ---- Batches, files to sockets, splices, directories and maps ---- */

enum { MESSAGES = 3, FILE_SIZE = 100000 };

struct bulk {
    bide_task task;
    bide_descriptor one, other, file, opened_directory;
    bide_io_operation operation;
    bide_file_operation file_operation;
    bide_message messages[MESSAGES];
    struct iovec pieces[MESSAGES];
    bide_send_file_operation send_file;
    bide_splice_operation splice;
    bide_between copy;
    bool copies;
    bide_directory directory;
    bide_entry_operation entry;
    unsigned entries;
    uint64_t left;
    char buffer[4096];
};

static void prepare(struct bulk *self)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        self->pieces[i] = (struct iovec){self->buffer + 100 * i, 100};
        bide_message_init(&self->messages[i], &self->pieces[i], NULL);
    }
}

static int open_pair(struct bulk *self, int type)
{
    int fds[2];
    bide_descriptor_init_closed(&self->file);
    bide_descriptor_init_closed(&self->opened_directory);
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        return -errno;
    bide_descriptor_init(&self->one, fds[0]);
    bide_descriptor_init(&self->other, fds[1]);
    return 0;
}

static void close_all(struct bulk *self)
{
    bide_close(&self->one);
    bide_close(&self->other);
    bide_close(&self->file);
    bide_close(&self->opened_directory);
}

bide_coroutine(batch_body)
{
    bide_begin(batch_body, struct bulk * self);
    assert_int_equal(open_pair(self, SOCK_DGRAM), 0);
    prepare(self);
    bide_try(bide_send_batch(&self->operation, &self->one, self->messages, MESSAGES));
    prepare(self);
    bide_try(bide_recv_batch(&self->operation, &self->other, self->messages, MESSAGES));
    if (self->operation.count != MESSAGES)
        bide_return(-EBADMSG);
    bide_finally();
    close_all(self);
    bide_end();
}

static int open_file(struct bulk *self)
{
    static char text[FILE_SIZE];
    char path[] = "/tmp/bide-faults-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, FILE_SIZE), 0);
    assert_int_equal(pwrite(fd, text, sizeof text, 0), sizeof text);
    bide_descriptor_init(&self->file, fd);
    return 0;
}

static bool is_cold; /* no part of the file is in the page cache */

/* Sends a whole file, which fits into the socket's buffer. */
bide_coroutine(send_file_body)
{
    bide_begin(send_file_body, struct bulk * self);
    assert_int_equal(open_pair(self, SOCK_STREAM), 0);
    open_file(self);
    if (is_cold)
        faults_fail(FAULT_PREADV2, 1, FAULTS_ALWAYS, EAGAIN);
    bide_try(bide_send_file(&self->send_file, &self->one, &self->file, 0, FILE_SIZE));
    if (self->send_file.count != FILE_SIZE)
        bide_return(-EBADMSG);
    bide_finally();
    close_all(self);
    bide_end();
}

static bide_awaiter *send_and_shut(struct bulk *self)
{
    return bide_send(&self->operation, &self->one, self->buffer, sizeof self->buffer);
}

/* Data that one end sends returns to it. */
bide_coroutine(copy_body)
{
    bide_begin(copy_body, struct bulk * self);
    self->copies = false;
    assert_int_equal(open_pair(self, SOCK_STREAM), 0);
    bide_try(send_and_shut(self));
    bide_shutdown(&self->one, BIDE_HALF_OUTPUT);
    int error = bide_copy_between_init(&self->copy, &self->other, &self->other);
    if (error != 0)
        bide_return(error);
    self->copies = true;
    bide_try(bide_copy_between(&self->copy));
    if (self->copy.count != sizeof self->buffer || self->copy.held != 0)
        bide_return(-EBADMSG);
    bide_finally();
    if (self->copies)
        bide_copy_between_destroy(&self->copy);
    close_all(self);
    bide_end();
}

bide_coroutine(tee_body)
{
    bide_begin(tee_body, struct bulk * self);
    int fds[4];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(fds + 2), 0);
    bide_descriptor_init(&self->one, fds[0]);
    bide_descriptor_init(&self->other, fds[1]);
    bide_descriptor_init(&self->file, fds[2]);
    bide_descriptor_init(&self->opened_directory, fds[3]);
    bide_try(bide_write(&self->file_operation, &self->other, self->buffer, 100));
    bide_try(bide_tee(&self->splice, &self->one, &self->opened_directory, 1000));
    bide_try(bide_read(&self->file_operation, &self->file, self->buffer, 1000));
    if (self->splice.count != 100 || self->file_operation.operation.count != 100)
        bide_return(-EBADMSG);
    bide_finally();
    close_all(self);
    bide_end();
}

bide_coroutine(directory_body)
{
    bide_begin(directory_body, struct bulk * self);
    self->entries = 0;
    assert_int_equal(open_pair(self, SOCK_STREAM), 0);
    open_file(self);
    bide_try(bide_open(&self->file_operation, &self->opened_directory, "/proc/self/fdinfo",
                       O_RDONLY | O_DIRECTORY, 0));
    bide_directory_init(&self->directory, &self->opened_directory, self->buffer, 512);
    for (;; self->entries++)
        bide_try_or_break(bide_next_entry(&self->entry, &self->directory));
    if (self->entries < 4)
        bide_return(-EBADMSG);
    bide_try(
        bide_map_file(&self->file_operation, &self->file, 0, FILE_SIZE, PROT_READ, MAP_SHARED));
    munmap(self->file_operation.operation.arguments.map.at, FILE_SIZE);
    bide_finally();
    close_all(self);
    bide_end();
}

static int run_bulk(void *point)
{
    static struct bulk frame;
    return wait_by_readiness(bide_task_init(&frame.task, point));
}

static void bulk_calls_that_fail_are_reported_and_leave_nothing(void **state)
{
    static const struct {
        fault function;
        int error;
        const bide_point *point;
        bool is_cold;
    } faults[] = {
        {FAULT_SENDMMSG, ENOBUFS, &batch_body, false},
        {FAULT_RECVMMSG, ECONNREFUSED, &batch_body, false},
        {FAULT_SENDFILE, EIO, &send_file_body, false},
        {FAULT_PIPE2, EMFILE, &send_file_body, true},
        {FAULT_SPLICE, EIO, &send_file_body, true},
        {FAULT_PIPE2, ENFILE, &copy_body, false},
        {FAULT_SPLICE, ECONNRESET, &copy_body, false},
        {FAULT_TEE, ENOMEM, &tee_body, false},
        {FAULT_GETDENTS64, EIO, &directory_body, false},
        {FAULT_MMAP, ENODEV, &directory_body, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        void *point = (void *)(uintptr_t)faults[i].point;
        if (faults[i].function == FAULT_SENDFILE && !has_nowait())
            continue; /* without it a pipe is used */
        is_cold = faults[i].is_cold;
        assert_int_equal(run_bulk(point), 0);
        assert_in_range(faults_for_each_n(faults[i].function, faults[i].error, run_bulk, point), 1,
                        100);
        if (faults[i].function == FAULT_PIPE2 || faults[i].function == FAULT_MMAP ||
            faults[i].function == FAULT_GETDENTS64)
            continue; /* these calls are never interrupted */
        assert_in_range(faults_survive_each_n(faults[i].function, 3, EINTR, run_bulk, point), 1,
                        100);
    }
    faults_clear();
}

/* If the page cache cannot be queried, or the file cannot be sent directly, a pipe is used. */
static void a_file_that_cannot_be_sent_at_once_is_sent_all_the_same(void **state)
{
    static const struct {
        fault function;
        int error;
    } faults[] = {
        {FAULT_PREADV2, EAGAIN},     {FAULT_PREADV2, EINTR},  {FAULT_PREADV2, ENOSYS},
        {FAULT_PREADV2, EOPNOTSUPP}, {FAULT_PREADV2, EINVAL}, {FAULT_SENDFILE, EINVAL},
        {FAULT_SENDFILE, ENOSYS},
    };
    void *point = (void *)(uintptr_t)(const bide_point *)&send_file_body;
    (void)state;
    if (!has_nowait())
        skip();
    is_cold = false;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_in_range(
            faults_survive_each_n(faults[i].function, 1, faults[i].error, run_bulk, point), 1, 100);
}

static void each_call_that_fails_is_reported(void **state)
{
    static const struct {
        fault function;
        int error;
    } faults[] = {
#if HAS_EPOLL
        {FAULT_MALLOC, ENOMEM},
        {FAULT_EPOLL_CREATE1, EMFILE},
#else
        {FAULT_CALLOC, ENOMEM},
        {FAULT_REALLOC, ENOMEM},
#endif
        {FAULT_ALIGNED_ALLOC, ENOMEM},
        {FAULT_SOCKET, EMFILE},
        {FAULT_ACCEPT4, EMFILE},
        {FAULT_ACCEPT4, ECONNABORTED},
        {FAULT_CONNECT, EACCES},
        {FAULT_SEND, ECONNRESET},
        {FAULT_SEND, EPIPE},
        {FAULT_RECV, ECONNRESET},
    };
    (void)state;
    assert_int_equal(talk(NULL),
                     0); /* (whatever one loop keeps for the next one has been allocated by now) */
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_in_range(faults_for_each_n(faults[i].function, faults[i].error, talk, NULL), 1, 10);
    for (unsigned nth = 1; nth <= 2 * HAS_EPOLL; nth++) { /* (later calls remove descriptors) */
        faults_clear();
        faults_fail(FAULT_EPOLL_CTL, nth, 1, ENOSPC);
        assert_int_equal(wait_for_five(NULL), -ENOSPC);
    }
    faults_clear();
}

static void a_call_that_is_interrupted_is_made_again(void **state)
{
    static const fault functions[] = {FAULT_ACCEPT4, FAULT_CONNECT, FAULT_SEND, FAULT_RECV};
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        assert_in_range(faults_survive_each_n(functions[i], 1, EINTR, talk, NULL), 1, 10);
        assert_in_range(faults_survive_each_n(functions[i], 3, EINTR, talk, NULL), 1, 10);
    }
    faults_survive_each_n(FAULT_EPOLL_WAIT, 1, EINTR, wait_for_five, NULL);
}

static void short_reads_and_writes_lose_nothing(void **state)
{
    (void)state;
    faults_clear();
    faults_shorten_writes(1);
    assert_int_equal(talk(NULL), 0);
    assert_in_range(faults_calls(FAULT_SEND), 6, 10); /* five calls for the first five bytes */
    faults_clear();
}

/*
 * If there is no io_uring, epoll is used, and the reason is reported, also if BIDE_IO requests one. A
 * value of BIDE_IO that is no back end is an error.
 */
static void a_loop_says_why(void **state)
{
    bide_loop *loop;
    (void)state;
    setenv("BIDE_IO", BY_READINESS_NAME, 1);
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_string_equal(bide_loop_backend(loop).name, BY_READINESS_NAME);
    assert_string_equal(bide_loop_backend(loop).why, "BIDE_IO selects it");
    bide_loop_destroy(loop);
    unsetenv("BIDE_IO");
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    bide_loop_back_end back_end = bide_loop_backend(loop);
    if (back_end.error != 0)
        assert_string_equal(back_end.why, HAS_EPOLL ? "io_uring is not available"
                                                    : "neither io_uring nor epoll is available");
    else
        assert_string_equal(back_end.why, "io_uring is available");
    bide_loop_destroy(loop);
    setenv("BIDE_IO", "uring", 1);
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_string_equal(bide_loop_backend(loop).why,
                        back_end.error != 0 ? "BIDE_IO selects io_uring, which is not available"
                                            : "BIDE_IO selects it");
    assert_int_equal(bide_loop_backend(loop).error, back_end.error);
    bide_loop_destroy(loop);
    setenv("BIDE_IO", "io_uring", 1);
    assert_int_equal(bide_loop_create(&loop, NULL), -EINVAL);
    setenv("BIDE_IO", "", 1);
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_string_equal(bide_loop_backend(loop).why, back_end.why);
    bide_loop_destroy(loop);
    unsetenv("BIDE_IO");
}

/* If there is no epoll either, poll is used. For another reason it is not. */
static void where_there_is_no_epoll_poll_is_used(void **state)
{
    static const int missing[] = {ENOSYS, EPERM, EACCES};
    bide_loop *loop;
    (void)state;
    setenv("BIDE_IO", "epoll", 1);
    if (!HAS_EPOLL) { /* the library was built without it */
        assert_int_equal(bide_loop_create(&loop, NULL), 0);
        bide_loop_back_end back_end = bide_loop_backend(loop);
        bide_loop_destroy(loop);
        assert_string_equal(back_end.name, "poll");
        assert_string_equal(back_end.why, "BIDE_IO selects epoll, which is not available");
        assert_int_equal(back_end.error, -ENOSYS);
        unsetenv("BIDE_IO");
        return;
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        faults_clear();
        faults_fail(FAULT_EPOLL_CREATE1, 1, FAULTS_ALWAYS, missing[i]);
        int status = bide_loop_create(&loop, NULL);
        faults_clear();
        assert_int_equal(status, 0);
        bide_loop_back_end back_end = bide_loop_backend(loop);
        assert_string_equal(back_end.name, "poll");
        assert_string_equal(back_end.why, "BIDE_IO selects epoll, which is not available");
        assert_int_equal(back_end.error, -missing[i]);
        assert_int_equal(back_end.limits, BIDE_LOOP_LINEAR);
        bide_loop_destroy(loop);
    }
    faults_fail(FAULT_EPOLL_CREATE1, 1, FAULTS_ALWAYS, EMFILE);
    int status = bide_loop_create(&loop, NULL);
    faults_clear();
    assert_int_equal(status, -EMFILE);
    unsetenv("BIDE_IO");
}

static int sleep_on(bide_loop *loop, uint64_t nanoseconds)
{
    bide_sleep sleep;
    return bide_loop_wait(loop, bide_sleep_for(&sleep, nanoseconds));
}

/* Systems may refuse the calls whose timeouts are in nanoseconds. */
static void a_loop_without_nanoseconds_says_so_and_sleeps_in_milliseconds(void **state)
{
    enum { SHORT = 1500000 };
    static const bide_loop_kind kinds[] = {BIDE_LOOP_EPOLL, BIDE_LOOP_POLL};
    static const fault refused[] = {FAULT_EPOLL_PWAIT2, FAULT_PPOLL};
    static const int errors[] = {ENOSYS, EPERM};
    (void)state;
    for (int i = !HAS_EPOLL; i < 2; i++) {
        for (int j = 0; j < 4; j++) {
            const bide_loop_options options = {.kind = kinds[i]};
            bool later = j >= 2; /* it is refused by a filter that the program sets up later */
            bide_loop *loop;
            faults_clear();
            faults_fail(refused[i], later ? 2 : 1, FAULTS_ALWAYS, errors[j % 2]);
            assert_int_equal(bide_loop_create(&loop, &options), 0);
            bide_loop_back_end back_end = bide_loop_backend(loop);
            if (later && (back_end.limits & BIDE_LOOP_MILLISECONDS) != 0) {
                faults_clear(); /* the system has no such call from the beginning */
                bide_loop_destroy(loop);
                continue;
            }
            while (later &&
                   faults_calls(refused[i]) < 2) /* (a sleep that is late asks for nothing) */
                assert_int_equal(sleep_on(loop, SHORT), 0);
            unsigned asked = faults_calls(refused[i]);
            uint64_t before = bide_platform.now();
            int status = sleep_on(loop, SHORT);
            uint64_t after = bide_platform.now();
            bool asked_again = faults_calls(refused[i]) != asked;
            faults_clear();
            bide_loop_destroy(loop);
            if (!later)
                assert_int_equal(back_end.limits,
                                 BIDE_LOOP_MILLISECONDS | (i == 1 ? BIDE_LOOP_LINEAR : 0));
            assert_int_equal(status, 0);
            assert_true(after - before >= SHORT);
            assert_false(asked_again);
        }
    }
}

/* While the system cannot poll, a loop looks about a thousand times a second, and no more. */
static void a_loop_whose_polls_fail_goes_on_and_rests(void **state)
{
    enum { SPAN = 50000000, POLLS_MAX = 120 };
    static const int errors[] = {ENOMEM, EPERM, EAGAIN};
    static const bide_loop_options options = {.kind = BIDE_LOOP_POLL};
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct sender sender;
        bide_spawned spawned;
        bide_event_waiter wait;
        bide_io_operation operation;
        bide_descriptor one, other;
        bide_loop *loop;
        char buffer[8];
        faults_clear();
        assert_int_equal(bide_loop_create(&loop, &options), 0);
        assert_int_equal(bide_loop_wait(loop, bide_socket_pair(&operation, &one, &other)), 0);
        sender.to = &other;
        faults_fail(FAULT_PPOLL, 1, FAULTS_ALWAYS, errors[i]);
        faults_fail(FAULT_POLL, 1, FAULTS_ALWAYS, errors[i]);
        int slept = sleep_on(loop, SPAN);
        unsigned polls = faults_calls(FAULT_PPOLL) + faults_calls(FAULT_POLL);
        bide_spawn(&spawned, bide_loop_context(loop), bide_task_init(&sender.task, &sender_body));
        int received = bide_loop_wait(loop, bide_recv(&operation, &one, buffer, sizeof buffer));
        int sent = bide_loop_wait(loop, bide_event_wait(&wait, &spawned.ended));
        faults_clear();
        bide_close(&one);
        bide_close(&other);
        bide_loop_destroy(loop);
        assert_int_equal(slept, 0);
        assert_in_range(polls, 1, POLLS_MAX);
        assert_int_equal(received, 0);
        assert_int_equal(sent, 0);
    }
}

/* A connection to a listener whose queue is full. */
struct stuck {
    bide_task task;
    bide_descriptor listener, others[4];
    bide_address address;
    bide_io_operation operation;
    bide_with_deadline_operation limited;
    int i, status;
};

bide_coroutine(stuck_body)
{
    bide_begin(stuck_body, struct stuck * self);
    bide_descriptor_init_closed(&self->listener);
    for (int i = 0; i < 4; i++)
        bide_descriptor_init_closed(&self->others[i]);
    bide_address_ip(&self->address, "127.0.0.1", 0);
    bide_try(bide_listen(&self->operation, &self->listener, &self->address, 1));
    bide_local_address(&self->listener, &self->address);
    for (self->i = 0, self->status = 0; self->i < 4 && self->status == 0; self->i++) {
        if (self->i != 0) { /* (the first one is connected in any case) */
            faults_fail(FAULT_PPOLL, 1, FAULTS_ALWAYS, ENOMEM);
            faults_fail(FAULT_POLL, 1, FAULTS_ALWAYS, ENOMEM);
        }
        bide_await_status(
            self->status,
            bide_with_deadline(
                &self->limited,
                self->i == 0 ? BIDE_FOREVER : bide_now(bide_this_context()) + 30000000,
                bide_connect(&self->operation, &self->others[self->i], &self->address)));
    }
    bide_finally();
    faults_clear();
    for (int i = 0; i < 4; i++)
        bide_close(&self->others[i]);
    bide_close(&self->listener);
    bide_end();
}

static void a_connect_that_is_under_way_does_not_succeed_because_a_poll_fails(void **state)
{
    static const bide_loop_options options = {.kind = BIDE_LOOP_POLL};
    struct stuck stuck;
    bide_loop *loop;
    (void)state;
    assert_int_equal(bide_loop_create(&loop, &options), 0);
    int status = bide_loop_wait(loop, bide_task_init(&stuck.task, &stuck_body));
    bide_loop_destroy(loop);
    assert_int_equal(status, 0);
    assert_int_equal(stuck.status, -ETIMEDOUT);
}

static void addresses_are_parsed_and_printed(void **state)
{
    static const char *const good[][2] = {
        {"127.0.0.1:80", "127.0.0.1:80"},
        {"[::1]:443", "[::1]:443"},
        {"[fe80::1%7]:5", "[fe80::1%7]:5"},
        {"unix:/run/x", "unix:/run/x"},
        {"unix:@hidden", "unix:@hidden"},
        {"0.0.0.0:0", "0.0.0.0:0"},
        {"255.255.255.255:65535", "255.255.255.255:65535"},
    };
    static const char *const bad[] = {
        "",           ":",     "1.2.3.4", "1.2.3.4:",    "1.2.3.4:65536", "1.2.3.4:-1",
        "1.2.3:80",   "::1:5", "[::1:80", "[1.2.3.4]:5", "name.at:9",     "[::1%none-such]:1",
        "1.2.3.4:8x", "unix:",
    };
    bide_address address;
    char text[BIDE_ADDRESS_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(bide_address_parse(&address, good[i][0]), 0);
        assert_int_equal(bide_address_print(&address, text, sizeof text), strlen(good[i][1]));
        assert_string_equal(text, good[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(bide_address_parse(&address, bad[i]), -EINVAL);
    assert_int_equal(bide_address_parse(&address, "8080"), 0);
    assert_int_equal(bide_address_port(&address), 8080);
    char path[200] = "unix:/";
    memset(path + 6, 'x', 150);
    assert_int_equal(bide_address_parse(&address, path), -ENAMETOOLONG);
}

static void addresses_are_made_of_bytes(void **state)
{
    static const uint8_t v4[4] = {192, 0, 2, 1}, v6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
    bide_address address, same;
    char text[BIDE_ADDRESS_TEXT];
    (void)state;
    memset(&address, 0xff, sizeof address);
    assert_int_equal(bide_address_bytes(&address, v4, sizeof v4, 80), 0);
    bide_address_print(&address, text, sizeof text);
    assert_string_equal(text, "192.0.2.1:80");
    memset(&address, 0xff, sizeof address);
    assert_int_equal(bide_address_bytes(&address, v6, sizeof v6, 65535), 0);
    bide_address_print(&address, text, sizeof text);
    assert_string_equal(text, "[2001:db8::1]:65535");
    assert_int_equal(bide_address_parse(&same, text), 0);
    assert_int_equal(same.length, address.length);
    assert_memory_equal(&same.any, &address.any, sizeof same.any);
    assert_int_equal(bide_address_bytes(&address, v6, 15, 80), -EINVAL);
    assert_int_equal(bide_address_bytes(&address, v6, 0, 80), -EINVAL);
}

/* ---- The monitor ---- */

static char monitor_path[64]; /* of this process */
static const bide_monitor_options monitor_options = {.path = monitor_path};

static int start_and_stop(void *argument)
{
    (void)argument;
    int error = bide_monitor_start(&monitor_options);
    if (error == 0)
        error = bide_monitor_stop();
    assert_int_equal(access(monitor_options.path, F_OK), -1);
    return error;
}

static void a_monitor_that_cannot_start_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(faults_for_each_n(FAULT_CALLOC, ENOMEM, start_and_stop, NULL), 1);
    assert_int_equal(faults_for_each_n(FAULT_SOCKET, EMFILE, start_and_stop, NULL), 1);
    assert_int_equal(faults_for_each_n(FAULT_RAISED, EMFILE, start_and_stop, NULL), 1);
    assert_int_equal(faults_for_each_n(FAULT_PTHREAD_CREATE, EAGAIN, start_and_stop, NULL), 1);
}

static int join_monitor(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, monitor_options.path);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Reads up to the last record of an answer, or to the end. Returns the number of bytes. */
static size_t read_answer(int fd)
{
    static char text[65536];
    size_t length = 0;
    ssize_t count;
    do {
        count = recv(fd, text + length, sizeof text - 1 - length, 0);
        length += count > 0 ? (size_t)count : 0;
        text[length] = '\0';
    } while (count > 0 && strstr(text, "\"is\":\"end\"") == NULL);
    return length;
}

static void look_at_monitor(void)
{
    int fd = join_monitor();
    char byte = '\0';
    while (byte != '\n' && recv(fd, &byte, 1, 0) == 1) {
    }
    if (send(fd, "look\n", 5, MSG_NOSIGNAL) == 5) /* (if there was a greeting) */
        read_answer(fd);
    close(fd);
}

/* Each look ends, with fewer records or with the connection. The next look is complete. */
static void a_monitor_without_memory_reports_less_and_continues(void **state)
{
    (void)state;
    static const fault functions[] = {FAULT_REALLOC, FAULT_CALLOC};
    enum { MOST = 12 };
    bide_loop *loop;
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    long blocks = faults_blocks();
    assert_int_equal(bide_monitor_start(&monitor_options), 0);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        for (unsigned n = 1; n <= MOST; n++) {
            faults_clear();
            faults_fail(functions[i], n, 1, ENOMEM);
            look_at_monitor();
        }
    }
    faults_clear();
    int fd = join_monitor();
    assert_int_equal(send(fd, "look\n", 5, 0), 5);
    assert_true(read_answer(fd) > 300);
    close(fd);
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(faults_blocks(), blocks);
    bide_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_that_fails_is_reported),
        cmocka_unit_test(a_call_that_is_interrupted_is_made_again),
        cmocka_unit_test(calls_that_fail_lose_no_connection_and_no_buffer),
        cmocka_unit_test(bulk_calls_that_fail_are_reported_and_leave_nothing),
        cmocka_unit_test(a_file_that_cannot_be_sent_at_once_is_sent_all_the_same),
        cmocka_unit_test(short_reads_and_writes_lose_nothing),
        cmocka_unit_test(a_monitor_that_cannot_start_leaves_nothing),
        cmocka_unit_test(a_monitor_without_memory_reports_less_and_continues),
        cmocka_unit_test(a_loop_says_why),
        cmocka_unit_test(where_there_is_no_epoll_poll_is_used),
        cmocka_unit_test(a_loop_without_nanoseconds_says_so_and_sleeps_in_milliseconds),
        cmocka_unit_test(a_loop_whose_polls_fail_goes_on_and_rests),
        cmocka_unit_test(a_connect_that_is_under_way_does_not_succeed_because_a_poll_fails),
        cmocka_unit_test(addresses_are_parsed_and_printed),
        cmocka_unit_test(addresses_are_made_of_bytes),
    };
    snprintf(monitor_path, sizeof monitor_path, "/tmp/bide-io-faults-%d", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
