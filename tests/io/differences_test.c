/*
 * Operations beside the bare system calls: cases that have no counterpart in a table (cells_test.c has the tables).
 */
#define _GNU_SOURCE
#include "subjects.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* ---- Cases without a counterpart ---- */

/* Other changes of a connection whose other end sends no more are no reason to end, nor to look again and again. */
static void take_what_is_sent(world *world, const subject *it, unsigned times)
{
    char text[100];
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(send(it->fd, "abc", 3, 0), 3);
        assert_int_equal(recv(it->peer, text, 3, MSG_WAITALL), 3);
        turn(world);
    }
}

static uint64_t completions(world *world)
{
    bide_loop_stats counts;
    bide_loop_get_stats(world->loop, &counts);
    return counts.completions;
}

static void a_poll_ends_for_what_was_asked(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation polling;
    struct runner runner;
    subject it = make(TCP);
    bide_descriptor_init(&descriptor, it.fd);
    fcntl(it.peer, F_SETFL, 0);
    assert_int_equal(shutdown(it.peer, SHUT_WR), 0);
    begin(world, &runner, bide_poll(&polling, &descriptor, POLLPRI));
    turn(world);
    uint64_t before = completions(world);
    take_what_is_sent(world, &it, 20);
    assert_false(runner.has_ended);
    assert_in_range(completions(world) - before, 0, 200);
    bide_stop_request(&runner.stop);
    assert_int_equal(end(world, &runner), -ECANCELED);
    begin(world, &runner, bide_poll(&polling, &descriptor, POLLPRI | POLLIN));
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(polling.arguments.poll.found, POLLIN);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

static void a_poll_sees_what_comes_later(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation polling;
    struct runner runner;
    char text[4096];
    subject it = make(TCP);
    bide_descriptor_init(&descriptor, it.fd);
    assert_int_equal(shutdown(it.peer, SHUT_WR), 0);
    while (send(it.fd, pattern, sizeof pattern, MSG_DONTWAIT) > 0) {
    }
    begin(world, &runner, bide_poll(&polling, &descriptor, POLLOUT));
    for (int i = 0; i < 3; i++)
        turn(world);
    assert_false(runner.has_ended);
    assert_in_range(completions(world), 0, 100);
    while (
        !runner
             .has_ended) { /* (a blocking receive would hold the loop if all is taken before the poll ends) */
        (void)!recv(it.peer, text, sizeof text, MSG_DONTWAIT);
        turn(world);
    }
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(polling.arguments.poll.found, POLLOUT);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

/* A send whose calls are made after a poll. */
static void a_full_connection_whose_peer_sends_no_more_is_waited_for(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation sending;
    struct runner runner;
    static char text[65536];
    struct iovec bytes = {pattern, sizeof pattern};
    static bide_message messages[40];
    size_t got = 0;
    subject it = make(TCP);
    for (size_t i = 0; i < 40; i++)
        messages[i] = (bide_message){.header = {.msg_iov = &bytes, .msg_iovlen = 1}};
    bide_descriptor_init(&descriptor, it.fd);
    assert_int_equal(shutdown(it.peer, SHUT_WR), 0);
    while (send(it.fd, pattern, sizeof pattern, MSG_DONTWAIT) > 0) {
    }
    begin(world, &runner, bide_send_batch(&sending, &descriptor, messages, 40));
    turn(world);
    uint64_t before = completions(world);
    for (int i = 0; i < 5; i++)
        turn(world);
    assert_in_range(completions(world) - before, 0, 20);
    assert_false(runner.has_ended);
    while (!runner.has_ended) {
        ptrdiff_t count = recv(it.peer, text, sizeof text, MSG_DONTWAIT);
        got += count > 0 ? (size_t)count : 0;
        turn(world);
    }
    assert_int_equal(end(world, &runner), 0);
    assert_true(got != 0);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

static void a_number_may_have_two_structs(void **state)
{
    world *world = world_of(state);
    bide_descriptor one, other;
    bide_io_operation first, second;
    struct runner receiver, poller;
    char byte;
    subject it = make(STREAMS);
    bide_descriptor_init(&one, it.fd);
    bide_descriptor_init(&other, it.fd);
    for (int round = 0; round < 3; round++) {
        begin(world, &receiver, bide_recv(&first, &one, &byte, 1));
        begin(world, &poller, bide_poll(&second, &other, POLLIN));
        turn(world);
        assert_false(receiver.has_ended || poller.has_ended);
        assert_int_equal(write(it.peer, "x", 1), 1);
        assert_int_equal(end(world, &receiver), 0);
        if (!poller.has_ended) /* (the byte was gone) */
            bide_stop_request(&poller.stop);
        (void)end(world, &poller);
        if (round == 1) { /* the first goes; the second stays */
            assert_int_equal(bide_descriptor_release(&one), it.fd);
            bide_descriptor_init(&one, it.fd);
        }
    }
    assert_int_equal(bide_descriptor_release(&other), it.fd);
    assert_int_equal(bide_close(&one), 0);
    close(it.peer);
}

static void bytes_behind_an_urgent_one_are_received(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation receiving;
    char text[100];
    size_t count = 0;
    subject it = make(TCP);
    bide_descriptor_init(&descriptor, it.fd);
    struct runner runner;
    begin(world, &runner, bide_recv(&receiving, &descriptor, text, sizeof text));
    turn(world);
    assert_int_equal(send(it.peer, "abc", 3, 0), 3);
    assert_int_equal(send(it.peer, "!", 1, MSG_OOB), 1);
    assert_int_equal(send(it.peer, "def", 3, 0), 3);
    assert_int_equal(end(world, &runner), 0);
    for (count = receiving.count; count < 6; count += receiving.count) {
        assert_int_equal(world_wait(world, bide_recv(&receiving, &descriptor, text, sizeof text)),
                         0);
        assert_int_not_equal(receiving.count, 0);
    }
    assert_int_equal(count, 6);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

/* A listener whose queue is full, so that a connect waits. */
static int make_full_listener(bide_address *address, int *clients, int count)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bide_address_parse(address, "127.0.0.1:0"), 0);
    assert_int_equal(bind(listener, &address->any.generic, address->length), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, &address->any.generic, &address->length), 0);
    for (int i = 0; i < count; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(clients[i], &address->any.generic, address->length);
    }
    return listener;
}

static void close_all(int listener, const int *clients, int count)
{
    close(listener);
    for (int i = 0; i < count; i++)
        close(clients[i]);
}

static bide_descriptor connection;
static int result_of_leaving;

static void close_connection(void *argument)
{
    (void)argument;
    result_of_leaving = bide_close(&connection);
}

static void release_connection(void *argument)
{
    (void)argument;
    result_of_leaving = bide_descriptor_release(&connection);
}

static void a_descriptor_may_leave_while_it_connects(void **state)
{
    world *world = world_of(state);
    bide_io_operation connecting;
    struct runner runner;
    bide_address address;
    int clients[3];
    int listener = make_full_listener(&address, clients, 3);
    bide_descriptor_init_closed(&connection);
    begin(world, &runner, bide_connect(&connecting, &connection, &address));
    turn(world);
    assert_false(runner.has_ended);
    call_inside(world, close_connection, NULL);
    assert_int_equal(result_of_leaving, 0);
    assert_int_equal(end(world, &runner), -EPIPE);
    begin(world, &runner, bide_connect(&connecting, &connection, &address));
    turn(world);
    call_inside(world, release_connection, NULL);
    assert_int_equal(result_of_leaving, -EBADF); /* its end has closed it: there is none to have */
    assert_int_equal(end(world, &runner), -EPIPE);
    assert_false(bide_descriptor_is_open(&connection));
    close_all(listener, clients, 3);
}

/* The child of a fork keeps the open file: what the loop knows of it has to go when the connect ends. */
static void a_connect_that_is_given_up_is_forgotten(void **state)
{
    enum { WAYS_TO_GIVE_UP = 3 };
    world *world = world_of(state);
    for (int way = 0; way < WAYS_TO_GIVE_UP; way++) {
        bide_descriptor *made = malloc(sizeof *made);
        bide_io_operation connecting;
        struct runner runner;
        bide_address address;
        int clients[3], status;
        int listener = make_full_listener(&address, clients, 3);
        bide_descriptor_init_closed(made);
        bide_awaiter *awaiter = bide_connect(&connecting, made, &address);
        begin_by(world, &runner, awaiter, way == 0 ? STOP : way == 1 ? DESTROY : CLOSE);
        turn(world);
        pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        end_by(world, &runner, made, way == 0 ? STOP : way == 1 ? DESTROY : CLOSE);
        memset(made, 0x55, sizeof *made);
        free(made);
        close_all(listener, clients,
                  3); /* the child's connection is reset: an event, if it were still known */
        for (int i = 0; i < 3; i++)
            turn(world);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        turn(world);
    }
}

/* Another process takes the connection between the loop's poll and its accept. */
static void a_shared_listener_in_blocking_mode_blocks_no_loop(void **state)
{
    world *world = world_of(state);
    bide_descriptor listener, accepted;
    bide_io_operation accepting;
    struct runner runner;
    bide_address address;
    int client;
    int fd = make_full_listener(&address, &client, 1);
    int other = accept(fd, NULL, NULL);
    const struct timeval soon = {.tv_usec =
                                     10000}; /* (for the accept below: a ring may be faster) */
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    bide_descriptor_init(&listener, fd);
    bide_descriptor_init_closed(&accepted);
    begin(world, &runner, bide_accept(&accepting, &listener, &accepted, NULL));
    turn(world);
    for (int i = 0; i < 20; i++) {
        int next = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(next, &address.any.generic, address.length), 0);
        int taken = accept4(fd, NULL, NULL, SOCK_NONBLOCK); /* (the loop's thread is this one) */
        assert_true(taken >= 0 || errno == EAGAIN);
        turn(world);
        close(next);
        if (taken >= 0)
            close(taken);
        if (runner.has_ended)
            break;
    }
    int last = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* nobody is faster */
    assert_int_equal(connect(last, &address.any.generic, address.length), 0);
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(bide_close(&accepted), 0);
    close(last);
    if (world_is_by_readiness()) /* whose call has no other way not to wait */
        assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_int_equal(bide_close(&listener), 0);
    close(other);
    close(client);
}

static void a_fifo_that_nobody_reads_is_waited_for(void **state)
{
    world *world = world_of(state);
    char path[] = "/tmp/bide_difference_XXXXXX", name[64];
    bide_descriptor fifo;
    bide_file_operation opening;
    struct runner runner;
    assert_non_null(mkdtemp(path));
    snprintf(name, sizeof name, "%s/fifo", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    begin(world, &runner, bide_open(&opening, &fifo, name, O_WRONLY, 0));
    for (int i = 0; i < 3; i++)
        turn(world);
    assert_false(runner.has_ended);
    int reader = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(bide_close(&fifo), 0);
    begin(world, &runner, bide_open(&opening, &fifo, name, O_WRONLY | O_NONBLOCK, 0));
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(bide_close(&fifo), 0);
    close(reader);
    begin(world, &runner, bide_open(&opening, &fifo, name, O_WRONLY | O_NONBLOCK, 0));
    assert_int_equal(end(world, &runner), -ENXIO);
    unlink(name);
    rmdir(path);
}

/* ---- Calls that wait on a thread ---- */

/* More opens than there are threads that make such calls. */
static void opens_that_wait_can_be_given_up(void **state)
{
    enum { OPENS = 6 };
    world *world = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        char path[] = "/tmp/bide_difference_XXXXXX", name[64], text[10];
        static struct runner runners[OPENS];
        bide_file_operation opening[OPENS], reading;
        bide_descriptor opened[OPENS], file;
        if (how == CLOSE) /* (there is nothing to close) */
            continue;
        make_fifo(path, name, sizeof name);
        for (int i = 0; i < OPENS; i++) {
            bide_descriptor_init_closed(&opened[i]);
            begin_by(
                world, &runners[i],
                bide_open(&opening[i], &opened[i], name, how % 2 == 0 ? O_RDONLY : O_WRONLY, 0),
                how);
        }
        for (int i = 0; i < OPENS; i++)
            end_by(world, &runners[i], NULL, how);
        assert_int_equal(
            world_wait(world, bide_open(&opening[0], &file, "/proc/self/cmdline", O_RDONLY, 0)), 0);
        assert_int_equal(world_wait(world, bide_read(&reading, &file, text, sizeof text)), 0);
        assert_int_equal(bide_close(&file), 0);
        for (int i = 0; i < OPENS; i++)
            assert_false(bide_descriptor_is_open(&opened[i]));
        remove_fifo(path, name);
    }
}

/* Many more opens than there are threads, of the library or the kernel, for calls that are short. */
static void opens_that_wait_hold_up_no_other_file(void **state)
{
    enum { OPENS = 64 };
    world *world = world_of(state);
    char path[] = "/tmp/bide_difference_XXXXXX", name[64], text[10];
    static struct runner runners[OPENS];
    static bide_file_operation opening[OPENS];
    static bide_descriptor opened[OPENS];
    bide_file_operation other;
    bide_descriptor file;
    struct stat status;
    make_fifo(path, name, sizeof name);
    for (int i = 0; i < OPENS; i++) {
        bide_descriptor_init_closed(&opened[i]);
        begin_by(world, &runners[i], bide_open(&opening[i], &opened[i], name, O_RDONLY, 0), STOP);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            world_wait(world, bide_open(&other, &file, "/proc/self/cmdline", O_RDONLY, 0)), 0);
        assert_int_equal(world_wait(world, bide_read(&other, &file, text, sizeof text)), 0);
        assert_int_equal(world_wait(world, bide_stat(&other, &file, &status)), 0);
        assert_int_equal(bide_close(&file), 0);
    }
    for (int i = 0; i < OPENS; i++)
        assert_false(runners[i].has_ended);
    for (int i = 0; i < OPENS; i++)
        end_by(world, &runners[i], NULL, STOP);
    for (int i = 0; i < OPENS; i++)
        assert_false(bide_descriptor_is_open(&opened[i]));
    remove_fifo(path, name);
}

/* (on the loop, so that it does not end in between) */
static void destroy_unless_ended(void *argument)
{
    struct runner *runner = argument;
    if (!runner->has_ended)
        destroy_inside(runner);
}

/* The open and its end by a request meet: there is a descriptor exactly if it succeeds. */
static void an_open_that_is_interrupted_leaves_no_descriptor(void **state)
{
    world *world = world_of(state);
    char path[] = "/tmp/bide_difference_XXXXXX", name[64];
    bide_file_operation opening;
    bide_descriptor opened;
    struct runner runner;
    unsigned succeeded = 0;
    make_fifo(path, name, sizeof name);
    int before = count_descriptors();
    for (int i = 0; i < 200; i++) {
        int how = i % 3 == 0 ? STOP_OUTSIDE : i % 3 == 1 ? STOP : DESTROY;
        bide_descriptor_init_closed(&opened);
        begin_by(world, &runner, bide_open(&opening, &opened, name, O_RDONLY, 0), how);
        if (i % 2 == 0)
            turn(world);
        int writer =
            open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC); /* (it is there if the reader is) */
        if (how == STOP_OUTSIDE)
            stop(&runner);
        else
            call_inside(world, how == STOP ? stop : destroy_unless_ended, &runner);
        if (how != DESTROY) {
            int status = end(world, &runner);
            assert_true(status == 0 || status == -ECANCELED);
            assert_true(bide_descriptor_is_open(&opened) == (status == 0));
            succeeded += status == 0;
            if (status == 0)
                assert_int_equal(bide_close(&opened), 0);
        } else if (runner.has_ended && bide_descriptor_is_open(&opened)) {
            assert_int_equal(bide_close(&opened), 0);
        }
        assert_false(bide_descriptor_is_open(&opened));
        if (writer >= 0)
            close(writer);
    }
    printf("# %u opens succeeded in spite of the request\n", succeeded);
    assert_in_range(count_descriptors(), before,
                    before + KEPT_DESCRIPTORS); /* (that of the threads, which stay) */
    remove_fifo(path, name);
}

/* Each begins before the one in front of it has ended. */
static void writes_of_a_file_end_in_their_order(void **state)
{
    enum { WRITES = 64, PART = 3000, ROUNDS = 10 };
    world *world = world_of(state);
    static struct runner runners[WRITES];
    static bide_file_operation writing[WRITES];
    static char part[WRITES][PART], got[WRITES * PART];
    for (int round = 0; round < ROUNDS; round++) {
        bide_descriptor file;
        bide_descriptor_init(&file, make_file(round % 2 == 0 ? O_APPEND | O_TRUNC : O_TRUNC));
        for (int i = 0; i < WRITES; i++) {
            memset(part[i], 'A' + i, PART);
            begin(world, &runners[i], bide_write(&writing[i], &file, part[i], PART));
        }
        for (int i = 0; i < WRITES; i++)
            assert_int_equal(end(world, &runners[i]), 0);
        assert_int_equal(pread(bide_descriptor_fd(&file), got, sizeof got, 0), sizeof got);
        for (int i = 0; i < WRITES; i++)
            assert_memory_equal(got + (size_t)i * PART, part[i], PART);
        assert_int_equal(bide_close(&file), 0);
    }
}

/* Operations of a file that wait behind others end in each way, and the others go on. */
static void an_operation_leaves_the_middle_of_its_line(void **state)
{
    enum { WRITES = 16, PART = 100000 };
    world *world = world_of(state);
    static struct runner runners[WRITES];
    static bide_file_operation writing[WRITES];
    static char part[PART];
    for (int how = 0; how < WAYS; how++) {
        bide_descriptor file;
        if (how == TIME_OUT) /* (may be late) */
            continue;
        bide_descriptor_init(&file, make_file(O_APPEND | O_TRUNC));
        for (int i = 0; i < WRITES; i++)
            begin_by(world, &runners[i], bide_write(&writing[i], &file, part, PART), how);
        if (how == CLOSE) {
            call_inside(world, close_it, &file);
        } else {
            for (int i = 0; i < WRITES; i += 3) {
                if (how == STOP_OUTSIDE)
                    stop(&runners[i]);
                else
                    call_inside(world, how == STOP ? stop : destroy_unless_ended, &runners[i]);
            }
        }
        for (int i = 0; i < WRITES; i++) {
            if (how == DESTROY) {
                while (i % 3 != 0 && !runners[i].has_ended)
                    turn(world);
                continue;
            }
            int status = end(world, &runners[i]);
            if (how == CLOSE)
                assert_true(status == 0 || status == -EPIPE);
            else
                assert_true(status == 0 || (status == -ECANCELED && i % 3 == 0));
        }
        if (how != CLOSE)
            assert_int_equal(bide_close(&file), 0);
    }
}

static void a_slow_reader_of_a_terminal_holds_no_loop(void **state)
{
    world *world = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        bide_descriptor terminal;
        bide_file_operation writing, second;
        struct runner runner, behind;
        static char got[SIZE];
        subject it = make_terminal();
        size_t size = 0;
        bide_descriptor_init(&terminal, it.fd);
        begin_by(world, &runner, bide_write(&writing, &terminal, pattern, sizeof pattern), how);
        begin(world, &behind, bide_write(&second, &terminal, "after", 5));
        for (int i = 0; i < 3; i++)
            turn(world);
        assert_int_equal(fcntl(it.peer, F_SETFL, O_NONBLOCK), 0);
        if (how == STOP_OUTSIDE) { /* it goes on when it is read */
            while (!behind.has_ended || size < sizeof pattern + 5) {
                ptrdiff_t count = read(it.peer, got, sizeof got);
                for (ptrdiff_t i = 0; i < count; i++, size++)
                    assert_int_equal(got[i], size < sizeof pattern
                                                 ? pattern[size]
                                                 : "after"[size - sizeof pattern]);
                turn(world);
            }
            assert_int_equal(end(world, &runner), 0);
            assert_int_equal(writing.operation.count, sizeof pattern);
        } else {
            end_by(world, &runner, &terminal, how);
            assert_true(writing.operation.count < sizeof pattern);
            while (!behind.has_ended) {
                (void)!read(it.peer, got, sizeof got);
                turn(world);
            }
        }
        assert_int_equal(end(world, &behind), how == CLOSE ? -EPIPE : 0);
        if (how != CLOSE) {
            assert_int_equal(fcntl(it.fd, F_GETFL) & O_NONBLOCK,
                             0); /* it is as the others know it */
            assert_int_equal(bide_close(&terminal), 0);
        }
        close(it.peer);
    }
}

/* Of processes that share a terminal, another one is faster. */
static void input_of_a_terminal_that_another_takes_holds_no_loop(void **state)
{
    world *world = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        bide_descriptor terminal;
        bide_file_operation reading;
        struct runner runner;
        char text[10];
        subject it = make_terminal();
        bide_descriptor_init(&terminal, it.fd);
        begin_by(world, &runner, bide_read(&reading, &terminal, text, sizeof text), how);
        if (how == STOP_OUTSIDE) {
            turn(world);
            assert_int_equal(write(it.peer, "abc", 3), 3);
            assert_int_equal(end(world, &runner), 0);
            assert_int_equal(reading.operation.count, 3);
        } else {
            end_by(world, &runner, &terminal, how);
        }
        if (how != CLOSE)
            assert_int_equal(bide_close(&terminal), 0);
        close(it.peer);
    }
}

/* Also while threads of the kernel take them, and find that they would wait. */
static void reads_of_terminals_are_given_up_at_any_moment(void **state)
{
    enum { TERMINALS = 8, ROUNDS = 100 };
    world *world = world_of(state);
    static bide_descriptor terminals[TERMINALS];
    static bide_file_operation reading[TERMINALS];
    static struct runner runners[TERMINALS];
    static char text[TERMINALS][10];
    subject of[TERMINALS];
    for (int i = 0; i < TERMINALS; i++) {
        of[i] = make_terminal();
        bide_descriptor_init(&terminals[i], of[i].fd);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TERMINALS; i++)
            begin(world, &runners[i],
                  bide_read(&reading[i], &terminals[i], text[i], sizeof text[i]));
        if (round % 2 == 1)
            turn(world);
        for (int i = 0; i < TERMINALS; i++) {
            if (i % 2 == 0)
                stop(&runners[i]);
            else
                call_inside(world, stop, &runners[i]);
        }
        for (int i = 0; i < TERMINALS; i++)
            assert_int_equal(end(world, &runners[i]), -ECANCELED);
    }
    for (int i = 0; i < TERMINALS; i++) {
        assert_int_equal(bide_close(&terminals[i]), 0);
        close(of[i].peer);
    }
}

/* Of a process that may pin little memory. */
static int send_without_a_copy(void)
{
    static char text[65536];
    subject it = make(TCP);
    bide_descriptor descriptor;
    bide_io_operation sending;
    struct runner runner;
    void *state;
    size_t got = 0;
    static char large[1 << 20];
    const struct rlimit little = {500000, 500000};
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = pattern[i % sizeof pattern];
    setrlimit(RLIMIT_MEMLOCK, &little);
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
        return 2;
    world_begin(&state);
    if (((world *)state)->context == NULL)
        return 2;
    bide_descriptor_init(&descriptor, it.fd);
    begin(state, &runner, bide_send_zero_copy(&sending, &descriptor, large, sizeof large));
    while (!runner.has_ended || (runner.status == 0 && got < sizeof large)) {
        ptrdiff_t count = recv(it.peer, text, sizeof text, MSG_DONTWAIT);
        if (count > 0 && memcmp(text, large + got, (size_t)count) != 0)
            return 3;
        got += count > 0 ? (size_t)count : 0;
        turn(state);
    }
    return end(state, &runner) == 0 && sending.count == sizeof large && got == sizeof large ? 0 : 4;
}

static void what_may_not_be_pinned_is_copied(void **state)
{
    int status;
    (void)world_of(state);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(send_without_a_copy());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* it cannot become another user, or has no ring there */
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    fill_pattern();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        world_test(a_poll_ends_for_what_was_asked),
        world_test(a_poll_sees_what_comes_later),
        world_test(a_full_connection_whose_peer_sends_no_more_is_waited_for),
        world_test(a_number_may_have_two_structs),
        world_test(bytes_behind_an_urgent_one_are_received),
        world_test(a_descriptor_may_leave_while_it_connects),
        world_test(a_connect_that_is_given_up_is_forgotten),
        world_test(a_shared_listener_in_blocking_mode_blocks_no_loop),
        world_test(a_fifo_that_nobody_reads_is_waited_for),
        world_test(opens_that_wait_can_be_given_up),
        world_test(opens_that_wait_hold_up_no_other_file),
        world_test(an_open_that_is_interrupted_leaves_no_descriptor),
        world_test(writes_of_a_file_end_in_their_order),
        world_test(an_operation_leaves_the_middle_of_its_line),
        world_test(a_slow_reader_of_a_terminal_holds_no_loop),
        world_test(input_of_a_terminal_that_another_takes_holds_no_loop),
        world_test(reads_of_terminals_are_given_up_at_any_moment),
        world_test(what_may_not_be_pinned_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
