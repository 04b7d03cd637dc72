/*
 * Simulated I/O as users' tests apply it. Seeds reveal wrong assumptions of a server, and the same seed
 * reveals them again. Injected faults occur. Leaks are reported.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "testing.h"

#include <bide/bide.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MESSAGE = 8, MESSAGES = 4 };

/* ---- A server of messages of eight bytes, and its client ---- */

struct end {
    bide_task task;
    bide_address address;
    bide_descriptor listener, socket;
    bide_io_operation operation;
    bool is_careful; /* it does not assume that a message arrives in one piece */
    unsigned i;
    size_t got;
    char data[MESSAGE];
};

bide_coroutine(server_body)
{
    bide_begin(server_body, struct end * self);
    bide_try(bide_accept(&self->operation, &self->listener, &self->socket, NULL));
    for (self->i = 0; self->i < MESSAGES; self->i++) {
        self->got = 0;
        do {
            bide_try(bide_recv(&self->operation, &self->socket, self->data + self->got,
                               MESSAGE - self->got));
            self->got += self->operation.count;
        } while (self->is_careful && self->operation.count != 0 && self->got < MESSAGE);
        if (self->got != MESSAGE || memcmp(self->data, "message", MESSAGE) != 0)
            bide_return(-EBADMSG);
    }
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

bide_coroutine(client_body)
{
    bide_begin(client_body, struct end * self);
    bide_try(bide_connect(&self->operation, &self->socket, &self->address));
    for (self->i = 0; self->i < MESSAGES; self->i++)
        bide_try(bide_send(&self->operation, &self->socket, "message", MESSAGE));
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

struct subject {
    bool is_careful, is_broken;
};

static int run(bide_sim_loop *loop, void *subject_)
{
    const struct subject *subject = subject_;
    bide_memory_io *io;
    bide_memory_io_options options = bide_memory_io_rough();
    bide_memory_io_stats counts;
    struct end server = {.is_careful = subject->is_careful}, client = {0};
    bide_io_operation listen;
    bide_when_of(2) both;
    bide_with_deadline_operation limited;
    if (!subject->is_broken)
        options.broken = 0;
    int status = bide_memory_io_create(&io, loop, &options);
    if (status < 0)
        return status;
    bide_descriptor_init_closed(&server.socket);
    bide_descriptor_init_closed(&client.socket);
    bide_address_ip(&client.address, "192.0.2.1", 7);
    status = bide_sim_loop_wait(loop, bide_listen(&listen, &server.listener, &client.address, 1));
    bide_awaiter *all = bide_when_all_of(&both, bide_task_init(&server.task, &server_body),
                                         bide_task_init(&client.task, &client_body));
    if (subject->is_broken) /* (a server whose client was rejected would wait forever) */
        all =
            bide_with_deadline(&limited, bide_now(&loop->context) + 60 * UINT64_C(1000000000), all);
    int ended = bide_sim_loop_wait(loop, all);
    if (status == 0)
        status = ended;
    bide_close(&server.listener);
    bide_memory_io_get_stats(io, &counts);
    bide_memory_io_destroy(io);
    if (counts.descriptors != 0 || counts.in_flight != 0)
        return -EBUSY;
    return status;
}

static void wrong_assumptions_are_found(void **state)
{
    struct subject subject = {false, false};
    bide_sim_result first, again;
    bide_sim_options options = {.argument = &subject, .out = tmpfile(), .result = &first};
    (void)state;
    assert_int_equal(bide_sim_loop_explore_with(run, 1000, &options), -EBADMSG);
    options.result = &again;
    options.first_seed = first.seed;
    assert_int_equal(bide_sim_loop_explore_with(run, 1, &options), -EBADMSG);
    assert_true(again.seed == first.seed);
    printf("# found at seed %u\n", (unsigned)first.seed);
    fclose(options.out);
}

static void a_careful_server_handles_partial_messages(void **state)
{
    static const char *const faults[] = {"io: short receive", "io: short send", NULL};
    struct subject subject = {true, false};
    bide_sim_options options = {.argument = &subject, .faults = faults};
    (void)state;
    assert_int_equal(bide_sim_loop_explore_with(run, 500, &options), 0);
}

static int run_and_take_what_breaks(bide_sim_loop *loop, void *subject)
{
    int status = run(loop, subject);
    return status == -EBUSY ? status : 0;
}

/* Broken connections end with an error and leave nothing. */
static void broken_connections_leave_nothing(void **state)
{
    static const char *const faults[] = {"io: reset", "io: refused", "io: aborted", NULL};
    struct subject subject = {true, true};
    bide_sim_options options = {.argument = &subject, .faults = faults};
    (void)state;
    assert_int_equal(bide_sim_loop_explore_with(run_and_take_what_breaks, 500, &options), 0);
}

/* ---- Names ---- */

static bide_names *names;

static int look_up(bide_sim_loop *loop, const char *host, char *text, size_t size)
{
    bide_resolve_operation resolve;
    int status = bide_sim_loop_wait(loop, bide_resolve(&resolve, names, host, 80));
    text[0] = '\0';
    assert_true((status == 0) == (resolve.count != 0));
    for (unsigned i = 0; i < resolve.count; i++) {
        char one[BIDE_ADDRESS_TEXT];
        bide_address_print(&resolve.addresses[i], one, sizeof one);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s ", one);
    }
    return status;
}

static int look_up_in_memory(bide_sim_loop *loop, void *argument)
{
    bide_memory_io *io;
    bide_address addresses[2];
    char text[1000];
    (void)argument;
    /* without a world: not even that */
    assert_int_equal(look_up(loop, "localhost", text, sizeof text), -ENOTSUP);
    assert_int_equal(bide_memory_io_create(&io, loop, &(bide_memory_io_options){.delay = 50000000}),
                     0);
    assert_int_equal(look_up(loop, "localhost", text, sizeof text), 0);
    assert_string_equal(text, "[::1]:80 127.0.0.1:80 ");
    assert_int_equal(look_up(loop, "192.0.2.1", text, sizeof text), 0);
    assert_int_equal(look_up(loop, "example.org", text, sizeof text), -ENOENT);
    bide_address_ip(&addresses[0], "192.0.2.7", 1);
    bide_address_ip(&addresses[1], "2001:db8::7", 2);
    assert_int_equal(bide_memory_io_set_host(io, "example.org", addresses, 2), 0);
    assert_int_equal(look_up(loop, "Example.ORG.", text, sizeof text), 0);
    assert_string_equal(text, "192.0.2.7:80 [2001:db8::7]:80 ");
    assert_int_equal(look_up(loop, "example.or", text, sizeof text), -ENOENT);
    assert_int_equal(look_up(loop, "example.orga", text, sizeof text), -ENOENT);
    assert_int_equal(bide_memory_io_set_host(io, "localhost", addresses, 1), 0);
    assert_int_equal(look_up(loop, "localhost", text, sizeof text), 0);
    assert_string_equal(text, "192.0.2.7:80 ");
    assert_int_equal(bide_memory_io_set_host(io, "example.org", NULL, 0), 0);
    assert_int_equal(look_up(loop, "example.org", text, sizeof text), -ENOENT);
    assert_int_equal(bide_memory_io_set_host(io, "", addresses, 1), -EINVAL);
    assert_int_equal(bide_memory_io_set_host(io, "a", addresses, BIDE_RESOLVE_MAX + 1), -EINVAL);
    bide_memory_io_destroy(io);
    return 0;
}

/* Records, and the names of addresses. */
static int look_up_records_in_memory(bide_sim_loop *loop, void *argument)
{
    static bide_resolve_records_operation it;
    static const bide_name_record servers[] = {
        {.text = "b.test", .size = 6, .priority = 2, .weight = 3, .port = 4},
        {.text = "a.test", .size = 6, .priority = 1, .port = 5},
    };
    static char long_text[BIDE_RECORDS_TEXT];
    const bide_name_record too_long = {.text = long_text, .size = sizeof long_text};
    bide_memory_io *io;
    bide_address addresses[2];
    bide_with_deadline_operation limited;
    (void)argument;
    bide_address_ip(&addresses[0], "192.0.2.7", 1);
    bide_address_ip(&addresses[1], "2001:db8::7", 2);
    assert_int_equal(bide_sim_loop_wait(
                         loop, bide_resolve_records(&it, names, "s.test", BIDE_RECORD_SRV)),
                     -ENOTSUP);
    bide_memory_io_create(&io, loop, &(bide_memory_io_options){.delay = 50000000});
    assert_int_equal(bide_memory_io_set_records(io, "s.test", BIDE_RECORD_SRV, servers, 2), 0);
    assert_int_equal(bide_memory_io_set_host(io, "host.test", addresses, 2), 0);
    assert_int_equal(bide_sim_loop_wait(
                         loop, bide_resolve_records(&it, names, "S.test.", BIDE_RECORD_SRV)),
                     0);
    assert_int_equal(it.count, 2);
    assert_string_equal(it.records[0].text, "a.test");
    assert_int_equal(it.records[0].port, 5);
    assert_string_equal(it.records[1].text, "b.test");
    assert_int_equal(it.records[1].weight, 3);
    assert_int_equal(bide_sim_loop_wait(
                         loop, bide_resolve_records(&it, names, "s.test", BIDE_RECORD_TXT)),
                     -ENOENT);
    assert_int_equal(it.count, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            bide_sim_loop_wait(loop, bide_resolve_reverse(&it, names, &addresses[i])), 0);
        assert_string_equal(it.records[0].text, "host.test");
    }
    bide_address_ip(&addresses[0], "192.0.2.8", 1);
    assert_int_equal(bide_sim_loop_wait(loop, bide_resolve_reverse(&it, names, &addresses[0])),
                     -ENOENT);
    int limit = bide_sim_loop_wait(
        loop, bide_with_deadline(&limited, bide_now(&loop->context) + 1,
                                 bide_resolve_reverse(&it, names, &addresses[1])));
    assert_true(limit == 0 || limit == -ETIMEDOUT);
    assert_int_equal(it.count, limit == 0);
    assert_int_equal(bide_memory_io_set_records(io, "s.test", BIDE_RECORD_SRV, NULL, 0), 0);
    assert_int_equal(bide_sim_loop_wait(
                         loop, bide_resolve_records(&it, names, "s.test", BIDE_RECORD_SRV)),
                     -ENOENT);
    assert_int_equal(bide_memory_io_set_records(io, "", BIDE_RECORD_SRV, servers, 1), -EINVAL);
    assert_int_equal(bide_memory_io_set_records(io, "a", BIDE_RECORD_PTR_, servers, 1), -EINVAL);
    assert_int_equal(bide_memory_io_set_records(io, "a", BIDE_RECORD_TXT, &too_long, 1), -EINVAL);
    assert_int_equal(
        bide_memory_io_set_records(io, "a", BIDE_RECORD_SRV, servers, BIDE_RECORDS_MAX + 1), -EINVAL);
    bide_memory_io_destroy(io);
    return 0;
}

/* A connection by name reaches the server of that name; a deadline cuts a look-up short. */
static int connect_by_name(bide_sim_loop *loop, void *no_answers)
{
    bide_memory_io *io;
    bide_memory_io_options options = {.delay = 50000000,
                                      .broken = no_answers != NULL ? BIDE_MEMORY_IO_DRAWN : 0};
    bide_address address;
    bide_io_operation listen;
    bide_descriptor listener, socket;
    static bide_connect_by_name_operation connect;
    bide_resolve_operation resolve;
    bide_with_deadline_operation limited;
    bide_memory_io_create(&io, loop, &options);
    bide_address_ip(&address, "192.0.2.7", 80);
    bide_memory_io_set_host(io, "example.org", &address, 1);
    assert_int_equal(bide_sim_loop_wait(loop, bide_listen(&listen, &listener, &address, 1)), 0);
    bide_descriptor_init_closed(&socket);
    int status =
        bide_sim_loop_wait(loop, bide_connect_by_name(&connect, &socket, names, "example.org", 80));
    if (status == 0)
        bide_close(&socket);
    int limit = bide_sim_loop_wait(
        loop, bide_with_deadline(&limited, bide_now(&loop->context) + 1,
                                 bide_resolve(&resolve, names, "example.org", 80)));
    assert_int_equal(resolve.count, limit == 0);
    bide_close(&listener);
    bide_memory_io_destroy(io);
    if (no_answers != NULL)
        return 0;
    return status < 0 || limit == 0 || limit == -ETIMEDOUT ? status : limit;
}

static void names_are_those_of_the_world(void **state)
{
    static const char *const faults[] = {"io: no answer", NULL};
    (void)state;
    for (unsigned by_cares = 0; by_cares < 2; by_cares++) {
        bide_names_options kind = {.kind = by_cares != 0 ? BIDE_NAMES_CARES : BIDE_NAMES_SYSTEM};
        if (bide_names_create(&names, &kind) == -ENOTSUP)
            continue;
        assert_int_equal(bide_sim_loop_explore(look_up_in_memory, 20), 0);
        assert_int_equal(bide_sim_loop_explore(look_up_records_in_memory, 20), 0);
        assert_int_equal(bide_sim_loop_explore(connect_by_name, 100), 0);
        bide_sim_options options = {.argument = &kind, .faults = faults};
        assert_int_equal(bide_sim_loop_explore_with(connect_by_name, 200, &options), 0);
        bide_names_destroy(names);
    }
}

static void a_loop_has_one(void **state)
{
    bide_sim_loop loop;
    bide_memory_io *io, *other;
    (void)state;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    assert_int_equal(bide_memory_io_create(&other, &loop, NULL), -EBUSY);
    assert_string_equal(bide_memory_io_back_end(io).name, "memory");
    bide_memory_io_destroy(io);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&loop);
}

/* ---- Numbers without a descriptor ---- */

/* How a number loses its descriptor. */
typedef enum loses { BY_RELEASE, OF_A_PIPE, IN_A_MESSAGE, IN_A_SELECT, LOSES } loses;

/* Leaves one end without a descriptor: `number`. The other end is `other`. */
struct opener {
    bide_task task;
    loses how;
    bide_memory_io *io;
    bide_io_operation operation;
    bide_descriptor one, other, ways[2];
    bide_fds_operation pass;
    bide_event never;
    bide_event_waiter wait;
    bide_select_of(2) select;
    char byte;
    int number;
};

bide_coroutine(opener_body)
{
    bide_begin(opener_body, struct opener * self);
    bide_event_init(&self->never, false);
    if (self->how == OF_A_PIPE)
        bide_memory_io_pipe(self->io, &self->other, &self->one);
    else
        bide_try(bide_socket_pair(&self->operation, &self->one, &self->other));
    self->number = bide_descriptor_release(&self->one);
    if (self->how < IN_A_MESSAGE)
        bide_return(0);
    bide_try(bide_socket_pair(&self->operation, &self->ways[0], &self->ways[1]));
    bide_try(bide_send_fds(&self->pass, &self->ways[0], "x", 1, &self->number, 1));
    bide_descriptor_init(&self->one, self->number);
    bide_close(&self->one);
    if (self->how == IN_A_MESSAGE)
        bide_try(bide_recv_fds(&self->pass, &self->ways[1], &self->byte, 1, &self->number, 1));
    else
        bide_try(bide_select_any_of(
            &self->select, bide_event_wait(&self->wait, &self->never),
            bide_recv_fds(&self->pass, &self->ways[1], &self->byte, 1, &self->number, 1)));
    bide_finally();
    bide_close(&self->ways[0]);
    bide_close(&self->ways[1]);
    bide_end();
}

static bide_sim_loop loop;
static bide_memory_io *io;

static void open_without_descriptor(struct opener *opener, loses how)
{
    *opener = (struct opener){.how = how, .io = io, .number = -1};
    assert_int_equal(bide_sim_loop_wait(&loop, bide_task_init(&opener->task, &opener_body)), 0);
    assert_true(opener->number > 1024); /* not the system's */
}

static unsigned count_open(void)
{
    bide_memory_io_stats stats;
    bide_memory_io_get_stats(io, &stats);
    return stats.descriptors;
}

/* Closes it in a coroutine. */
struct closer {
    bide_task task;
    bide_descriptor one;
    int status;
};

bide_coroutine(closer_body)
{
    bide_begin(closer_body, struct closer * self);
    self->status = bide_close(&self->one);
    bide_end();
}

static void a_number_is_closed_before_its_first_operation(void **state)
{
    (void)state;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    for (loses how = 0; how < LOSES; how++) {
        for (int in_coroutine = 0; in_coroutine < 2; in_coroutine++) {
            struct opener opener;
            struct closer closer = {.status = 0};
            bide_file_operation read;
            open_without_descriptor(&opener, how);
            bide_descriptor_init(&closer.one, opener.number);
            assert_int_equal(count_open(), 2);
            if (in_coroutine != 0)
                bide_sim_loop_wait(&loop, bide_task_init(&closer.task, &closer_body));
            else
                closer.status = bide_close(&closer.one);
            assert_int_equal(closer.status, 0);
            assert_int_equal(count_open(), 1);
            assert_false(bide_descriptor_is_open(&closer.one));
            /* its other end sees that */
            assert_int_equal(
                bide_sim_loop_wait(&loop, bide_read(&read, &opener.other, &opener.byte, 1)), 0);
            assert_int_equal(read.operation.count, 0);
            assert_int_equal(bide_close(&opener.other), 0);
        }
    }
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&loop);
}

/* A coroutine's close finds the io of its loop; a function's does not, of two. */
static void of_two_ios_that_of_the_running_loop_is_meant(void **state)
{
    (void)state;
    bide_sim_loop other_loop;
    bide_memory_io *other;
    struct opener opener;
    struct closer closer = {.status = 0};
    bide_descriptor one;
    bide_sim_loop_init(&loop, 1);
    bide_sim_loop_init(&other_loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    assert_int_equal(bide_memory_io_create(&other, &other_loop, NULL), 0);
    open_without_descriptor(&opener, BY_RELEASE);
    bide_descriptor_init(&one, opener.number);
    assert_int_equal(bide_close(&one), -EBADF);
    assert_int_equal(count_open(), 2);
    bide_descriptor_init(&closer.one, opener.number);
    bide_sim_loop_wait(&loop, bide_task_init(&closer.task, &closer_body));
    assert_int_equal(closer.status, 0);
    assert_int_equal(count_open(), 1);
    bide_descriptor_init(&closer.one, opener.number); /* closed already */
    bide_sim_loop_wait(&other_loop, bide_task_init(&closer.task, &closer_body));
    assert_int_equal(closer.status, -EBADF);
    assert_int_equal(bide_close(&opener.other), 0);
    bide_memory_io_destroy(other);
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&other_loop);
    bide_sim_loop_destroy(&loop);
}

/* After close(2), which knows no such number. */
static void leave_open(loses how)
{
    struct opener opener;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    open_without_descriptor(&opener, how);
    if (close(opener.number) != -1 || errno != EBADF || count_open() != 2)
        return;
    bide_memory_io_destroy(io);
}

static void leave_a_released_one(void)
{
    leave_open(BY_RELEASE);
}

static void leave_one_of_a_pipe(void)
{
    leave_open(OF_A_PIPE);
}

static void leave_one_of_a_message(void)
{
    leave_open(IN_A_MESSAGE);
}

static void leave_one_of_a_select(void)
{
    leave_open(IN_A_SELECT);
}

static void leave_one_without_coroutine(void)
{
    bide_file_operation open;
    bide_descriptor file;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    assert_int_equal(
        bide_sim_loop_wait(&loop, bide_open(&open, &file, "/a", O_CREAT | O_RDWR, 0600)), 0);
    bide_descriptor_release(&file);
    bide_memory_io_destroy(io);
}

static void a_number_that_is_left_open_is_reported_where_it_was_opened(void **state)
{
    static const char left[] = "a number was left open in an io in memory";
    (void)state;
    assert_true(misuse_aborts_naming(leave_a_released_one, left, "opener_body"));
    assert_true(misuse_aborts_naming(leave_a_released_one, left, "memory_io_test.c"));
    assert_true(misuse_aborts_naming(leave_one_of_a_message, left, "opener_body"));
#if BIDE_DEBUG
    assert_true(misuse_aborts_naming(leave_one_of_a_pipe, left, "opener_body"));
    assert_true(misuse_aborts_naming(leave_one_of_a_select, left, "opener_body"));
#endif
    assert_true(misuse_aborts_naming(leave_one_without_coroutine, left, ": open ("));
}

/* What is open and has a descriptor is closed, as documented. */
static void open_descriptors_are_closed_with_their_io(void **state)
{
    (void)state;
    struct opener opener;
    struct closer closer = {.status = 0};
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &loop, NULL), 0);
    open_without_descriptor(&opener, BY_RELEASE);
    bide_descriptor_init(&closer.one, opener.number);
    bide_io_adopt(loop.io, &closer.one);
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_assumptions_are_found),
        cmocka_unit_test(a_careful_server_handles_partial_messages),
        cmocka_unit_test(broken_connections_leave_nothing),
        cmocka_unit_test(names_are_those_of_the_world),
        cmocka_unit_test(a_loop_has_one),
        cmocka_unit_test(a_number_is_closed_before_its_first_operation),
        cmocka_unit_test(of_two_ios_that_of_the_running_loop_is_meant),
        cmocka_unit_test(a_number_that_is_left_open_is_reported_where_it_was_opened),
        cmocka_unit_test(open_descriptors_are_closed_with_their_io),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
