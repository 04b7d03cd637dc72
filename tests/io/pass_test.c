/* Passing descriptors between processes: each is received once, or closed. Options of sockets. */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fixture {
    world *world;
    bide_descriptor one, other;
    bide_fds_operation pass;
    bide_io_operation helper;
    struct runner runner;
    int sent[BIDE_SCM_MAX_FDS + 1], got[BIDE_SCM_MAX_FDS + 1];
    char buffer[8];
} fixture;

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    assert_int_equal(world_wait(world, bide_socket_pair(&f->helper, &f->one, &f->other)), 0);
    return f;
}

static void end_fixture(fixture *f)
{
    bide_close(&f->one);
    bide_close(&f->other);
    free(f);
}

/* Sends `count` descriptors of /dev/null, with a byte. */
static int send_some(fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        f->sent[i] = world_open(f->world, "/dev/null", O_RDONLY);
        assert_true(f->sent[i] >= 0);
    }
    int status =
        world_wait(f->world, bide_send_fds(&f->pass, &f->other, "x", 1, f->sent, count));
    for (unsigned i = 0; i < count; i++)
        world_close(f->world, f->sent[i]);
    return status;
}

static bide_awaiter *receive(fixture *f, unsigned room)
{
    return bide_recv_fds(&f->pass, &f->one, f->buffer, sizeof f->buffer, f->got, room);
}

/* It refers to /dev/null and is closed on exec. */
static void check_null(fixture *f, int fd)
{
    bide_descriptor file;
    bide_file_operation read;
    bide_descriptor_init(&file, fd);
    if (f->world->memory == NULL)
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(world_wait(f->world, bide_read(&read, &file, f->buffer, 1)), 0);
    assert_int_equal(read.operation.count, 0);
    assert_int_equal(bide_descriptor_release(&file), fd);
}

static void passed_descriptors_are_received(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    int before = count_descriptors();
    for (unsigned count = 0; count <= BIDE_SCM_MAX_FDS; count++) {
        assert_int_equal(send_some(f, count), 0);
        assert_int_equal(f->pass.operation.count, 1);
        assert_int_equal(world_wait(f->world, receive(f, BIDE_SCM_MAX_FDS)), 0);
        assert_int_equal(f->pass.operation.count, 1);
        assert_int_equal(f->pass.passed, count);
        assert_false(f->pass.was_truncated);
        for (unsigned i = 0; i < count; i++) {
            check_null(f, f->got[i]);
            world_close(f->world, f->got[i]);
        }
    }
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(send_some(f, BIDE_SCM_MAX_FDS + 1), -EINVAL);
    bide_close(&f->other);
    assert_int_equal(world_wait(f->world, receive(f, 1)), 0);
    assert_int_equal(f->pass.operation.count, 0);
    end_fixture(f);
}

static void connections_without_a_slot_are_closed(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    int before = count_descriptors();
    assert_int_equal(send_some(f, 5), 0);
    assert_int_equal(world_wait(f->world, receive(f, 2)), 0);
    assert_int_equal(f->pass.passed, 2);
    assert_int_equal(f->pass.closed, 3);
    assert_int_equal(count_descriptors(), before + 2);
    world_close(f->world, f->got[0]);
    world_close(f->world, f->got[1]);
    if (getenv("MESON_EXE_WRAPPER") != NULL) { /* (QEMU does not report what it omits) */
        end_fixture(f);
        return;
    }
    /* more than the control data holds */
    enum { TOO_MANY = 2 * BIDE_SCM_MAX_FDS };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * TOO_MANY)];
    } control = {.bytes = {0}};
    struct iovec bytes = {"x", 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int) * TOO_MANY);
    for (int i = 0; i < TOO_MANY; i++)
        memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &(int){bide_descriptor_fd(&f->one)}, sizeof(int));
    assert_int_equal(world_wait(f->world, bide_sendmsg(&f->helper, &f->other, &message, 0)), 0);
    assert_int_equal(world_wait(f->world, receive(f, 1)), 0);
    assert_true(f->pass.was_truncated);
    assert_int_equal(f->pass.passed, 1);
    world_close(f->world, f->got[0]);
    assert_int_equal(count_descriptors(), before);
    end_fixture(f);
}

static void a_wait_that_ends_early_loses_and_leaks_nothing(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < CLOSE; how++) {
        fixture *f = begin_fixture(w);
        int before = count_descriptors();
        bide_fds_operation receiver;
        bide_awaiter *awaiter =
            bide_recv_fds(&receiver, &f->one, f->buffer, sizeof f->buffer, f->got, 4);
        begin_by(w, &f->runner, awaiter, how);
        if (how != TIME_OUT)
            turn(w);
        end_by(w, &f->runner, &f->one, how);
        assert_int_equal(send_some(f, 3), 0);
        assert_int_equal(world_wait(w, receive(f, 4)), 0);
        assert_int_equal(f->pass.passed, 3);
        for (int i = 0; i < 3; i++)
            world_close(f->world, f->got[i]);
        assert_int_equal(count_descriptors(), before);
        end_fixture(f);
    }
}

/* A receiver of descriptors, with each operation that can receive them. */
struct receiver {
    bide_fds_operation pass;
    bide_io_operation operation;
    bide_message message;
    struct iovec bytes;
    size_t control[CMSG_SPACE(sizeof(int) * 4) / sizeof(size_t)];
};

enum { BY_DESCRIPTORS, BY_MESSAGE, BY_BATCH, RECEIVERS };

static bide_awaiter *begin_receiver(fixture *f, struct receiver *it, int by)
{
    memset(it, 0, sizeof *it);
    it->bytes = (struct iovec){f->buffer, sizeof f->buffer};
    bide_message_init(&it->message, &it->bytes, NULL);
    it->message.header.msg_control = it->control;
    it->message.header.msg_controllen = sizeof it->control;
    if (by == BY_DESCRIPTORS)
        return bide_recv_fds(&it->pass, &f->one, f->buffer, sizeof f->buffer, f->got, 4);
    if (by == BY_MESSAGE)
        return bide_recvmsg(&it->operation, &f->one, &it->message.header, 0);
    return bide_recv_batch(&it->operation, &f->one, &it->message, 1);
}

/* Closes the descriptors of a receiver that has resumed. */
static void close_received(fixture *f, struct receiver *it, int by)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(&it->message.header);
    if (by == BY_DESCRIPTORS) {
        for (unsigned i = 0; i < it->pass.passed; i++)
            world_close(f->world, f->got[i]);
        return;
    }
    assert_non_null(header);
    for (size_t at = CMSG_LEN(0); at < header->cmsg_len; at += sizeof(int)) {
        int fd;
        memcpy(&fd, (char *)header + at, sizeof fd);
        world_close(f->world, fd);
    }
}

/* A byte wakes the destroyer. It destroys the receiver, which the next event has woken. */
struct destroyer {
    bide_task task;
    bide_io_operation operation;
    bide_descriptor wakes, writes;
    struct runner *victim;
    char byte;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    bide_try(bide_recv(&self->operation, &self->wakes, &self->byte, 1));
    bide_destroy(&self->victim->task.frame);
    bide_end();
}

/*
 * Sends both, and the loop polls neither in between: one turn in memory, two system calls
 * otherwise.
 */
struct both {
    bide_task task;
    fixture *fixture;
    struct destroyer *destroyer;
    bide_io_operation operation;
    int fds[3];
    struct iovec bytes;
    size_t control[CMSG_SPACE(sizeof(int) * 3) / sizeof(size_t)];
    struct msghdr message;
};

static void prepare_both(struct both *both)
{
    memset(both->control, 0, sizeof both->control);
    both->bytes = (struct iovec){"x", 1};
    both->message = (struct msghdr){.msg_iov = &both->bytes,
                                    .msg_iovlen = 1,
                                    .msg_control = both->control,
                                    .msg_controllen = sizeof both->control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&both->message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof both->fds);
    memcpy(CMSG_DATA(header), both->fds, sizeof both->fds);
}

static void send_both(void *both_)
{
    struct both *both = both_;
    assert_int_equal(write(bide_descriptor_fd(&both->destroyer->writes), "x", 1), 1);
    assert_int_equal(sendmsg(bide_descriptor_fd(&both->fixture->other), &both->message, 0), 1);
}

bide_coroutine(both_body)
{
    bide_begin(both_body, struct both * self);
    bide_try(bide_send(&self->operation, &self->destroyer->writes, "x", 1));
    bide_try(bide_sendmsg(&self->operation, &self->fixture->other, &self->message, 0));
    bide_end();
}

/*
 * The message has arrived, and the receiver is destroyed before it resumes: its descriptors are
 * closed.
 */
static void one_that_is_destroyed_after_it_was_done_leaks_nothing(void **state)
{
    world *w = world_of(state);
    for (int i = 0; i < 8 * RECEIVERS; i++) {
        fixture *f = begin_fixture(w);
        int by = i % RECEIVERS;
        struct receiver receiver;
        struct destroyer destroyer = {.victim = &f->runner};
        struct both both = {.fixture = f, .destroyer = &destroyer};
        bide_spawned spawned;
        bide_event_waiter wait;
        assert_int_equal(
            world_wait(w, bide_socket_pair(&f->helper, &destroyer.wakes, &destroyer.writes)), 0);
        int before = count_descriptors();
        bide_spawn(&spawned, w->context, bide_task_init(&destroyer.task, &destroyer_body));
        turn(w);
        start(w, &f->runner, begin_receiver(f, &receiver, by));
        turn(w);
        for (int n = 0; n < 3 && w->memory != NULL; n++)
            both.fds[n] = bide_descriptor_fd(&f->one);
        prepare_both(&both);
        if (w->memory != NULL)
            assert_int_equal(world_wait(w, bide_task_init(&both.task, &both_body)), 0);
        else
            call_inside(w, send_both, &both);
        assert_int_equal(world_wait(w, bide_event_wait(&wait, &spawned.ended)), 0);
        if (f->runner.has_ended)
            close_received(f, &receiver, by);
        bide_close(&f->one); /* (with the descriptors that were not received) */
        assert_int_equal(count_descriptors(), before - 1);
        bide_close(&destroyer.wakes);
        bide_close(&destroyer.writes);
        end_fixture(f);
    }
}

static void the_sender_is_reported(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    int value = 0;
    assert_int_equal(send_some(f, 1), 0);
    assert_int_equal(world_wait(f->world, receive(f, 1)), 0);
    assert_false(f->pass.has_credentials);
    world_close(f->world, f->got[0]);
    assert_int_equal(bide_set_socket_option(&f->one, BIDE_OPTION_PASS_CREDENTIALS, 1), 0);
    assert_int_equal(bide_socket_option(&f->one, BIDE_OPTION_PASS_CREDENTIALS, &value), 0);
    assert_int_equal(value, 1);
    assert_int_equal(send_some(f, 1), 0);
    assert_int_equal(world_wait(f->world, receive(f, 1)), 0);
    assert_true(f->pass.has_credentials);
    assert_int_equal(f->pass.credentials.process, getpid());
    assert_int_equal(f->pass.credentials.user, getuid());
    assert_int_equal(f->pass.credentials.group, getgid());
    assert_int_equal(f->pass.passed, 1);
    world_close(f->world, f->got[0]);
    end_fixture(f);
}

static void options_are_set_and_asked(void **state)
{
    static const bide_option numbers[] = {BIDE_OPTION_NO_DELAY,   BIDE_OPTION_KEEP_ALIVE,
                                          BIDE_OPTION_KEEP_IDLE,  BIDE_OPTION_KEEP_INTERVAL,
                                          BIDE_OPTION_KEEP_COUNT, BIDE_OPTION_USER_TIMEOUT,
                                          BIDE_OPTION_UNSENT,     BIDE_OPTION_REUSE_PORT};
    world *w = world_of(state);
    bide_io_operation listen;
    bide_descriptor listener;
    bide_address address;
    int value;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(w, bide_listen(&listen, &listener, &address, 4)), 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        value = -1;
        assert_int_equal(bide_set_socket_option(&listener, numbers[i], 1), 0);
        assert_int_equal(bide_socket_option(&listener, numbers[i], &value), 0);
        assert_int_equal(value, 1);
    }
    assert_int_equal(bide_set_socket_option(&listener, BIDE_OPTION_SEND_BUFFER, 20000), 0);
    assert_int_equal(bide_socket_option(&listener, BIDE_OPTION_SEND_BUFFER, &value), 0);
    assert_int_equal(value, 40000);
    assert_int_equal(bide_socket_option(&listener, BIDE_OPTION_ERROR, &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(bide_set_socket_option(&listener, (bide_option)99, 1), -EINVAL);
    bide_close(&listener);
    assert_int_equal(bide_socket_option(&listener, BIDE_OPTION_ERROR, &value), -EBADF);
}

/*
 * In a child, whose descriptors 3 and 4 may be anything. Returns the number of the first failing
 * line.
 */
static int inherit(void)
{
#define expect(condition)    \
    do {                     \
        if (!(condition))    \
            return __LINE__; \
    } while (0)
    bide_descriptor descriptor;
    char text[16];
    int fd = open("/dev/null", O_RDONLY);
    expect(bide_inherited_count() == 0);
    expect(bide_inherited_descriptor(&descriptor, 0) == -ENOENT);
    expect(fd == 3 || dup2(fd, 3) == 3);
    expect(fd == 4 || dup2(fd, 4) == 4);
    expect(fcntl(3, F_SETFD, 0) == 0 && fcntl(4, F_SETFD, 0) == 0);
    setenv("LISTEN_FDS", "2", 1);
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDNAMES", "web:admin", 1);
    expect(bide_inherited_count() == 0); /* they belong to another process */
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    expect(bide_inherited_count() == 2);
    expect(bide_inherited_descriptor(&descriptor, 0) == 0 && bide_descriptor_fd(&descriptor) == 3);
    expect(fcntl(3, F_GETFD) == FD_CLOEXEC && fcntl(4, F_GETFD) == 0);
    expect(bide_inherited_descriptor(&descriptor, 2) == -ENOENT &&
           bide_descriptor_fd(&descriptor) == -1);
    expect(bide_inherited_descriptor_named(&descriptor, "admin", 0) == 0 &&
           bide_descriptor_fd(&descriptor) == 4);
    expect(bide_inherited_descriptor_named(&descriptor, "admin", 1) == -ENOENT);
    expect(bide_inherited_descriptor_named(&descriptor, "adm", 0) == -ENOENT);
    setenv("LISTEN_FDNAMES", "web:web", 1);
    expect(bide_inherited_descriptor_named(&descriptor, "web", 1) == 0 &&
           bide_descriptor_fd(&descriptor) == 4);
    close(4);
    expect(bide_inherited_descriptor(&descriptor, 1) == -EBADF);
    setenv("LISTEN_FDS", "2x", 1);
    expect(bide_inherited_count() == 0);
    setenv("LISTEN_FDS", "-2", 1);
    expect(bide_inherited_count() == 0);
    setenv("LISTEN_FDS", "99999999999999999999", 1);
    expect(bide_inherited_count() == 0);
    return 0;
#undef expect
}

static void the_service_manager_hands_descriptors_over(void **state)
{
    int status, line = 0, ends[2];
    (void)state;
    fflush(NULL);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int high = fcntl(ends[1], F_DUPFD_CLOEXEC, 64);
    assert_true(high >= 0);
    pid_t child = fork();
    if (child == 0) {
        line = inherit();
        _exit(write(high, &line, sizeof line) == sizeof line ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(read(ends[0], &line, sizeof line), sizeof line);
    assert_int_equal(line, 0);
    close(high);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(passed_descriptors_are_received),
        world_test(connections_without_a_slot_are_closed),
        world_test(a_wait_that_ends_early_loses_and_leaks_nothing),
        world_test(one_that_is_destroyed_after_it_was_done_leaks_nothing),
        world_test(the_sender_is_reported),
        world_test(options_are_set_and_asked),
        cmocka_unit_test(the_service_manager_hands_descriptors_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
