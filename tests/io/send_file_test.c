/*
 * Sending files to sockets. The loop sends pages of the page cache itself, and other pages through a pipe.
 * The test replaces the calls that query the cache and send, so it chooses the way; each test runs in all
 * of them.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGE = 8 << 20 };

/* ---- The page cache ---- */

enum {
    HOT,    /* all pages */
    COLD,   /* no pages: each piece takes the pipe */
    MIXED,  /* some pages are missing */
    UNSAID, /* the file system cannot tell */
    MEMORIES
};

static struct {
    int memory;
    unsigned looks; /* queries of the cache */
    unsigned sends; /* sends that moved bytes */
    unsigned pipes;
    size_t max;      /* the limit of a send; 0: what the socket accepts */
    bool interrupts; /* every other send */
    bool pretends;   /* sends only pretend: the socket is never full */
    unsigned turn;
    int to;           /* the socket of the last send */
    unsigned changes; /* of the socket */
} calls;

ssize_t __wrap_preadv64v2(int fd, const struct iovec *vectors, int count, off_t offset, int flags);
ssize_t __real_preadv64v2(int fd, const struct iovec *vectors, int count, off_t offset, int flags);
ssize_t __wrap_sendfile64(int to, int from, off_t *offset, size_t size);
ssize_t __real_sendfile64(int to, int from, off_t *offset, size_t size);
int __wrap_pipe2(int *fds, int flags);
int __real_pipe2(int *fds, int flags);

ssize_t __wrap_preadv64v2(int fd, const struct iovec *vectors, int count, off_t offset, int flags)
{
    if (offset < 0 || calls.memory < 0) /* not a file; or as the system reports */
        return __real_preadv64v2(fd, vectors, count, offset, flags);
    unsigned look = calls.looks++;
    if (calls.memory == UNSAID) {
        errno = ENOSYS;
        return -1;
    }
    if (calls.memory == COLD || (calls.memory == MIXED && look % 3 == 2)) {
        errno = EAGAIN;
        return -1;
    }
    return preadv(fd, vectors, count, offset);
}

ssize_t __wrap_sendfile64(int to, int from, off_t *offset, size_t size)
{
    if (calls.interrupts && calls.turn++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (calls.max != 0 && size > calls.max)
        size = calls.max;
    ssize_t result = calls.pretends ? (ssize_t)size : __real_sendfile64(to, from, offset, size);
    calls.sends += result > 0;
    calls.changes += to != calls.to;
    calls.to = to;
    return result;
}

int __wrap_pipe2(int *fds, int flags)
{
    calls.pipes++;
    return __real_pipe2(fds, flags);
}

/* ---- A file, and two sockets ---- */

typedef struct fixture {
    world *world;
    bide_descriptor one, other, file;
    bide_io_operation helper;
    bide_file_operation on_file;
    struct runner runner;
    bide_send_file_operation send;
    char path[64];
    bool changes; /* the file, so the expected bytes are unknown */
} fixture;

static char *large(void)
{
    static char data[LARGE];
    static bool is_filled;
    for (size_t i = 0; i < LARGE && !is_filled; i++)
        data[i] = (char)(i % 251);
    is_filled = true;
    return data;
}

static void open_file(fixture *f, size_t size)
{
    snprintf(f->path, sizeof f->path, "/tmp/bide-send-file-%d", (int)getpid());
    assert_int_equal(world_wait(f->world, bide_open(&f->on_file, &f->file, f->path,
                                                    O_RDWR | O_CREAT | O_EXCL, 0600)),
                     0);
    assert_int_equal(world_wait(f->world, bide_unlink(&f->on_file, f->path, 0)), 0);
    assert_int_equal(world_wait(f->world, bide_write_at(&f->on_file, &f->file, large(), size, 0)),
                     0);
}

static void open_tcp(fixture *f)
{
    bide_descriptor listener;
    bide_address address;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_listen(&f->helper, &listener, &address, 4)), 0);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    assert_int_equal(world_wait(f->world, bide_connect(&f->helper, &f->one, &address)), 0);
    assert_int_equal(world_wait(f->world, bide_accept(&f->helper, &listener, &f->other, NULL)), 0);
    bide_close(&listener);
}

static fixture *begin_fixture(world *world, int memory, bool local, size_t size)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    memset(&calls, 0, sizeof calls);
    if (local)
        assert_int_equal(world_wait(world, bide_socket_pair(&f->helper, &f->one, &f->other)), 0);
    else
        open_tcp(f);
    open_file(f, size);
    calls.memory = memory;
    return f;
}

static void end_fixture(fixture *f)
{
    bide_close(&f->one);
    bide_close(&f->other);
    bide_close(&f->file);
    free(f);
}

static void enter_blocking_mode(const bide_descriptor *descriptor)
{
    int fd = bide_descriptor_fd(descriptor);
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

/* In memory there is only the pipe. */
static int memories_of(const world *world)
{
    return world->memory != NULL ? 1 : MEMORIES;
}

static bide_awaiter *send_all(fixture *f)
{
    return bide_send_file(&f->send, &f->one, &f->file, 0, UINT64_MAX);
}

/*
 * Receives bytes of a total of `total`, until it has `max`, or until the end, or until nothing has arrived
 * for `patience` nanoseconds. Returns the number of bytes.
 */
static size_t drain_on(fixture *f, size_t total, size_t max, uint64_t patience)
{
    static char got[1 << 20];
    while (total < max) {
        bide_with_deadline_operation limited;
        bide_awaiter *receive = bide_recv(&f->helper, &f->other, got, sizeof got);
        uint64_t deadline = world_now(f->world) + patience;
        int status = world_wait(f->world, bide_with_deadline(&limited, deadline, receive));
        if (status < 0 || f->helper.count == 0)
            break;
        for (size_t i = 0; i < f->helper.count && !f->changes; i += i % 65536 == 0 ? 1 : 997)
            assert_int_equal((unsigned char)got[i], (total + i) % 251);
        total += f->helper.count;
    }
    return total;
}

static size_t drain(fixture *f, size_t max)
{
    return drain_on(f, 0, max, 20000000000);
}

/* Receives bytes of a total of `total` until the sender has ended, and then the rest. */
static size_t drain_until_it_ends(fixture *f, size_t total)
{
    while (!f->runner.has_ended)
        total = drain_on(f, total, total + 1, 1000000);
    bide_close(&f->one);
    return drain_on(f, total, LARGE, 20000000000);
}

/* The file was sent in the expected way. */
static void check_way(const fixture *f)
{
    if (f->world->memory != NULL)
        return;
    if (KEPT_DESCRIPTORS == 1) /* (otherwise a loop is woken by a pipe) */
        assert_int_equal(calls.pipes, calls.memory != HOT);
    if (calls.memory == COLD || calls.memory == UNSAID)
        assert_int_equal(calls.sends, 0);
    else
        assert_true(calls.sends >= 1);
    if (calls.memory == UNSAID)
        assert_int_equal(calls.looks, 1);
}

/* ---- A whole file, or a part ---- */

static void a_file_is_sent(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        for (int local = 0; local < 2; local++) {
            fixture *f = begin_fixture(w, memory, local, LARGE - 1000);
            begin(w, &f->runner, send_all(f));
            assert_int_equal(drain(f, LARGE - 1000), LARGE - 1000);
            assert_int_equal(end(w, &f->runner), 0);
            assert_int_equal(f->send.count, LARGE - 1000);
            check_way(f);
            end_fixture(f);
        }
    }
}

static void a_part_of_a_file_is_sent(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        fixture *f = begin_fixture(w, memory, memory % 2 != 0, 1000000);
        bide_send_file_operation *send = &f->send;
        char rest[16];
        assert_int_equal(world_wait(w, bide_send_file(send, &f->one, &f->file, 251 * 10 + 3, 5)),
                         0);
        assert_int_equal(send->count, 5);
        assert_int_equal(world_wait(w, bide_recv(&f->helper, &f->other, rest, sizeof rest)), 0);
        assert_int_equal(f->helper.count, 5);
        assert_memory_equal(rest, "\3\4\5\6\7", 5);
        /* nothing, up to the end, at the end and behind it */
        assert_int_equal(world_wait(w, bide_send_file(send, &f->one, &f->file, 0, 0)), 0);
        assert_int_equal(send->count, 0);
        assert_int_equal(world_wait(w, bide_send_file(send, &f->one, &f->file, 999990, 100)), 0);
        assert_int_equal(send->count, 10);
        assert_int_equal(world_wait(w, bide_recv(&f->helper, &f->other, rest, sizeof rest)), 0);
        assert_int_equal(f->helper.count, 10);
        for (int64_t past = 1000000; past <= 2000000; past += 1000000) {
            assert_int_equal(world_wait(w, bide_send_file(send, &f->one, &f->file, past, 5)), 0);
            assert_int_equal(send->count, 0);
        }
        end_fixture(f);
    }
}

/* Sends that are short or interrupted. */
static void short_sends_lose_nothing(void **state)
{
    world *w = world_of_the_system(state, "the system calls are shortened");
    for (int memory = HOT; memory <= MIXED; memory += MIXED - HOT) {
        fixture *f = begin_fixture(w, memory, true, 1000000);
        calls.max = 4097;
        calls.interrupts = true;
        begin(w, &f->runner, send_all(f));
        assert_int_equal(drain(f, 1000000), 1000000);
        assert_int_equal(end(w, &f->runner), 0);
        assert_int_equal(f->send.count, 1000000);
        check_way(f);
        end_fixture(f);
    }
}

/* ---- Ends ---- */

static void a_splice_to_a_closed_end_is_an_error_and_no_signal(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        for (int local = 0; local < 2; local++) {
            fixture *f = begin_fixture(w, memory, local, LARGE);
            int status = 0;
            bide_close(&f->other);
            for (int i = 0; i < 3 && status == 0; i++)
                status = world_wait(w, send_all(f));
            assert_true(status == -EPIPE || status == -ECONNRESET);
            /* while it waits for room */
            bide_close(&f->one);
            if (local)
                assert_int_equal(world_wait(w, bide_socket_pair(&f->helper, &f->one, &f->other)),
                                 0);
            else
                open_tcp(f);
            begin(w, &f->runner, send_all(f));
            for (int turns = 0; turns < 3; turns++)
                turn(w);
            assert_false(f->runner.has_ended);
            bide_close(&f->other);
            status = end(w, &f->runner);
            assert_true(status == -EPIPE || status == -ECONNRESET);
            end_fixture(f);
        }
    }
}

/* A signal that is pending and blocked is still pending afterwards. */
static void a_pending_signal_of_the_program_stays_pending(void **state)
{
    world *w = world_of_the_system(state, "memory has no signals");
    sigset_t pipe_signal, before, pending;
    int taken;
    world_of_a_loop(w);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    for (int memory = 0; memory < MEMORIES; memory++) {
        for (int is_there = 0; is_there < 2; is_there++) {
            fixture *f = begin_fixture(w, memory, true, 100000);
            bide_close(&f->other);
            pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
            if (is_there)
                assert_int_equal(pthread_kill(pthread_self(), SIGPIPE), 0);
            assert_int_equal(world_wait(w, send_all(f)), -EPIPE);
            sigpending(&pending);
            assert_int_equal(sigismember(&pending, SIGPIPE), is_there);
            if (is_there)
                assert_int_equal(sigwait(&pipe_signal, &taken), 0);
            pthread_sigmask(SIG_SETMASK, &before, NULL);
            end_fixture(f);
        }
    }
}

static void cut_short(fixture *f, int how)
{
    if (how != TIME_OUT) {
        turn(f->world);
        assert_false(f->runner.has_ended);
    }
    end_by(f->world, &f->runner, &f->one, how);
}

static void sending_a_file_ends_early(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        for (int local = 0; local < 2; local++) {
            for (int how = 0; how < WAYS; how++) {
                fixture *f = begin_fixture(w, memory, local, LARGE);
                begin_by(w, &f->runner, send_all(f), how);
                for (int turns = 0; turns < 3 && how != TIME_OUT; turns++)
                    turn(w);
                cut_short(f, how);
                bide_close(&f->one);
                size_t came = drain(f, LARGE);
                assert_in_range(came, 0, LARGE - 1);
                if (how != DESTROY && how != CLOSE)
                    assert_int_equal(f->send.count, came);
                end_fixture(f);
            }
        }
    }
}

/*
 * A socket in blocking mode, whose peer reads slowly or not at all. Others may share the mode, so it stays as
 * it is. No pipe is needed: the bytes are copied.
 */
static void a_socket_in_blocking_mode_holds_no_loop(void **state)
{
    world *w = world_of_the_system(state, "memory has no modes");
    for (int local = 0; local < 2; local++) {
        for (int how = 0; how < WAYS; how++) {
            fixture *f = begin_fixture(w, HOT, local, LARGE);
            enter_blocking_mode(&f->one);
            int before = count_descriptors();
            begin_by(w, &f->runner, send_all(f), how);
            for (int turns = 0; turns < 3 && how != TIME_OUT; turns++)
                turn(w);
            assert_true(how == TIME_OUT || !f->runner.has_ended);
            assert_int_equal(count_descriptors(), before);
            cut_short(f, how);
            if (how != CLOSE)
                assert_int_equal(fcntl(bide_descriptor_fd(&f->one), F_GETFL) & O_NONBLOCK, 0);
            bide_close(&f->one);
            size_t came = drain(f, LARGE);
            assert_in_range(came, 0, LARGE - 1);
            if (how != DESTROY && how != CLOSE)
                assert_int_equal(f->send.count, came);
            assert_int_equal(calls.sends, 0);
            end_fixture(f);
        }
    }
}

/* The whole file, a part of it, and nothing behind its end; and an error when the peer is gone. */
static void a_socket_in_blocking_mode_gets_a_file(void **state)
{
    world *w = world_of_the_system(state, "memory has no modes");
    for (int memory = 0; memory < MEMORIES; memory++) {
        fixture *f = begin_fixture(w, memory, memory % 2 != 0, 1000000);
        char rest[16];
        enter_blocking_mode(&f->one);
        begin(w, &f->runner, send_all(f));
        assert_int_equal(drain(f, 1000000), 1000000);
        assert_int_equal(end(w, &f->runner), 0);
        assert_int_equal(f->send.count, 1000000);
        assert_int_equal(
            world_wait(w, bide_send_file(&f->send, &f->one, &f->file, 251 * 10 + 3, 5)), 0);
        assert_int_equal(f->send.count, 5);
        assert_int_equal(world_wait(w, bide_recv(&f->helper, &f->other, rest, sizeof rest)), 0);
        assert_int_equal(f->helper.count, 5);
        assert_memory_equal(rest, "\3\4\5\6\7", 5);
        assert_int_equal(world_wait(w, bide_send_file(&f->send, &f->one, &f->file, 2000000, 5)), 0);
        assert_int_equal(f->send.count, 0);
        bide_close(&f->other);
        int status = 0;
        for (int i = 0; i < 3 && status == 0; i++)
            status = world_wait(w, send_all(f));
        assert_true(status == -EPIPE || status == -ECONNRESET);
        end_fixture(f);
    }
}

/* Cancelled at each point before it waits for the socket: right after its start. */
static void a_send_that_has_just_started_ends_early(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        for (int how = 0; how < WAYS; how++) {
            if (how == TIME_OUT || how == STOP_OUTSIDE)
                continue;
            fixture *f = begin_fixture(w, memory, true, LARGE);
            begin_by(w, &f->runner, send_all(f), how);
            if (how == STOP)
                call_inside(w, stop, &f->runner);
            else if (how == DESTROY)
                destroy(w, &f->runner);
            else
                call_inside(w, close_it, &f->one);
            if (how != DESTROY) {
                int status = end(w, &f->runner);
                assert_true(status == (how == STOP ? -ECANCELED : -EPIPE));
            }
            bide_close(&f->one);
            size_t came = drain(f, LARGE);
            if (how == STOP)
                assert_int_equal(f->send.count, came);
            end_fixture(f);
        }
    }
}

static void a_closed_descriptor_is_rejected(void **state)
{
    world *w = world_of(state);
    for (int which = 0; which < 2; which++) {
        fixture *f = begin_fixture(w, HOT, true, 10);
        bide_close(which == 0 ? &f->one : &f->file);
        assert_int_equal(world_wait(w, send_all(f)), -EBADF);
        end_fixture(f);
    }
}

/* While the socket is full, the file is closed, and its number is reused. */
static void a_file_that_is_closed_during_a_send_is_not_confused(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        fixture *f = begin_fixture(w, memory, true, LARGE);
        bide_descriptor another;
        char zeros[4096] = "";
        begin(w, &f->runner, send_all(f));
        size_t came = drain(f, 1);
        turn(w);
        assert_false(f->runner.has_ended);
        call_inside(w, close_it, &f->file);
        assert_int_equal(world_wait(w, bide_open(&f->on_file, &another, f->path,
                                                 O_RDWR | O_CREAT | O_EXCL, 0600)),
                         0);
        assert_int_equal(world_wait(w, bide_unlink(&f->on_file, f->path, 0)), 0);
        for (int i = 0; i < 256; i++)
            assert_int_equal(world_wait(w, bide_write(&f->on_file, &another, zeros, sizeof zeros)),
                             0);
        came = drain_until_it_ends(f, came);
        assert_int_equal(end(w, &f->runner), -EPIPE);
        assert_int_equal(f->send.count, came);
        assert_in_range(came, 1, LARGE - 1);
        bide_close(&another);
        end_fixture(f);
    }
}

/*
 * The file shrinks while it is sent: the sent bytes are reported, and the end of the file is its
 * end.
 */
static void a_file_that_shrinks_ends_early(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        for (int max = 0; max < 2; max++) {
            fixture *f = begin_fixture(w, memory, true, LARGE);
            begin(w, &f->runner,
                  bide_send_file(&f->send, &f->one, &f->file, 0, max ? LARGE : UINT64_MAX));
            size_t came = drain(f, 1);
            assert_false(f->runner.has_ended);
            f->changes = true; /* (the socket refers to pages of the file) */
            assert_int_equal(world_wait(w, bide_truncate(&f->on_file, &f->file, 1000)), 0);
            came = drain_until_it_ends(f, came);
            assert_int_equal(end(w, &f->runner), 0);
            assert_int_equal(f->send.count, came);
            assert_in_range(came, 1, LARGE - 1);
            end_fixture(f);
        }
    }
}

/* ---- Resources ---- */

/* Without descriptors it fails if it needs a pipe, and leaves nothing. */
static void only_where_the_file_is_waited_for_it_needs_descriptors(void **state)
{
    world *w = world_of(state);
    for (int memory = 0; memory < memories_of(w); memory++) {
        fixture *f = begin_fixture(w, memory, true, 300000);
        assert_int_equal(world_wait(w, bide_send_file(&f->send, &f->one, &f->file, 0, 1)), 0);
        assert_int_equal(drain(f, 1), 1);
        int before = count_descriptors();
        bool needs = w->memory != NULL || memory != HOT;
        world_lack_descriptors(w, true);
        int status = world_wait(w, bide_send_file(&f->send, &f->one, &f->file, 0, 100000));
        world_lack_descriptors(w, false);
        assert_int_equal(status, needs ? -EMFILE : 0);
        assert_int_equal(count_descriptors(), before);
        end_fixture(f);
    }
}

/* A socket that is never full does not block the loop: two sends alternate. */
static void a_large_file_lets_others_run(void **state)
{
    world *w = world_of_a_loop(world_of_the_system(state, "memory has only the pipe"));
    if (BIDE_BUDGET == 0)
        skip();
    fixture *f = begin_fixture(w, HOT, true, LARGE);
    bide_send_file_operation other;
    struct runner runner;
    calls.pretends = true;
    begin(w, &f->runner, send_all(f));
    begin(w, &runner, bide_send_file(&other, &f->other, &f->file, 0, UINT64_MAX));
    assert_int_equal(end(w, &f->runner), 0);
    assert_int_equal(end(w, &runner), 0);
    assert_int_equal(f->send.count, LARGE);
    assert_int_equal(other.count, LARGE);
    assert_in_range(calls.changes, LARGE >> 20,
                    LARGE); /* (each sends no more than 1 MB in a turn) */
    if (KEPT_DESCRIPTORS == 1)
        assert_int_equal(calls.pipes, 0);
    end_fixture(f);
}

/* A file system in memory cannot report cached pages. All its pages are in memory. */
static void a_file_in_memory_is_sent_at_once(void **state)
{
    world *w = world_of_the_system(state, "the test is about a file system");
    char path[] = "/dev/shm/bide-send-file-XXXXXX";
    bide_send_file_operation send;
    bide_descriptor file;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        skip();
    unlink(path);
    bide_descriptor_init(&file, fd);
    assert_int_equal(
        world_wait(w, bide_write_at(&(bide_file_operation){0}, &file, large(), 100000, 0)), 0);
    fixture *f = begin_fixture(w, HOT, true, 1);
    calls.memory = -1;
    assert_int_equal(world_wait(w, bide_send_file(&send, &f->one, &file, 0, UINT64_MAX)), 0);
    assert_int_equal(send.count, 100000);
    assert_int_equal(drain(f, 100000), 100000);
    if (KEPT_DESCRIPTORS == 1)
        assert_int_equal(calls.pipes, 0);
    bide_close(&file);
    end_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_file_is_sent),
        world_test(a_part_of_a_file_is_sent),
        world_test(short_sends_lose_nothing),
        world_test(a_splice_to_a_closed_end_is_an_error_and_no_signal),
        world_test(a_pending_signal_of_the_program_stays_pending),
        world_test(sending_a_file_ends_early),
        world_test(a_socket_in_blocking_mode_holds_no_loop),
        world_test(a_socket_in_blocking_mode_gets_a_file),
        world_test(a_send_that_has_just_started_ends_early),
        world_test(a_closed_descriptor_is_rejected),
        world_test(a_file_that_is_closed_during_a_send_is_not_confused),
        world_test(a_file_that_shrinks_ends_early),
        world_test(only_where_the_file_is_waited_for_it_needs_descriptors),
        world_test(a_large_file_lets_others_run),
        world_test(a_file_in_memory_is_sent_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
