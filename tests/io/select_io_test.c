/*
 * Receives, reads and accepts as cases of a select: one that loses has taken nothing, whatever ends the
 * select, and on whichever thread. Each kind of operation, behind each wrapper.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum kind {
    RECV,
    RECVMSG,
    RECV_FROM,
    RECV_BATCH,
    RECV_FDS,
    READ,
    READ_BLOCKING, /* of a pipe in blocking mode */
    READV,
    ACCEPT,
    KINDS
} kind;

typedef enum wrap { BARE, THEN, DEADLINE, WITH_STOP, RESUME_ON, SCHEDULE_ON, NESTED, WRAPS } wrap;

/* One receiving operation of each kind, with its memory. */
typedef struct receiver {
    bide_io_operation plain;
    bide_file_operation file;
    bide_datagram datagram;
    bide_fds_operation pass;
    struct msghdr header;
    struct iovec vector;
    bide_message batch;
    bide_address from;
    bide_descriptor accepted;
    int fds[2];
    uint64_t number;
} receiver;

typedef struct fixture {
    world *world;
    kind kind;
    wrap wrap;
    bide_descriptor input, output, peers[4];
    unsigned connected;
    bide_address address, own;
    receiver receiver, left;
    uint64_t sent; /* the number that was sent last */

    bide_then_operation then;
    bide_with_deadline_operation deadline;
    bide_with_stop_operation with_stop;
    bide_resume_on_operation resume_on;
    bide_schedule_on_operation schedule_on;
    bide_stop_source token;
    bide_select_of(2) nested;
    bide_event never, event;
    bide_event_waiter never_wait, wait;
    unsigned calls;
    bide_select_of(2) select;
    struct runner runner, bringer;

    /* the coroutine that brings */
    bide_task task;
    bide_io_operation send;
    bide_file_operation write;
    bide_datagram datagram;
    bide_fds_operation pass;
    bool is_brought, event_first, event_too, event_last;
    void (*then_calls)(void *runner);
} fixture;

/* ---- The two sides of a kind ---- */

static void open_kind(fixture *f)
{
    bide_io_operation operation;
    switch (f->kind) {
    case RECV:
    case RECVMSG:
    case RECV_FDS:
        assert_int_equal(world_wait(f->world, bide_socket_pair(&operation, &f->input, &f->output)),
                         0);
        break;
    case RECV_FROM:
    case RECV_BATCH:
        assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
        assert_int_equal(world_wait(f->world, bide_bind(&operation, &f->output, &f->address, 0)),
                         0);
        assert_int_equal(world_wait(f->world, bide_bind(&operation, &f->input, &f->address, 0)), 0);
        assert_int_equal(bide_local_address(&f->input, &f->address), 0);
        assert_int_equal(bide_local_address(&f->output, &f->own), 0);
        break;
    case READ:
    case READV:
        world_pipe_with(f->world, &f->input, &f->output, O_NONBLOCK);
        break;
    case READ_BLOCKING:
        world_pipe(f->world, &f->input, &f->output);
        break;
    case ACCEPT:
    case KINDS:
    default:
        assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
        assert_int_equal(world_wait(f->world, bide_listen(&operation, &f->input, &f->address, 16)),
                         0);
        assert_int_equal(bide_local_address(&f->input, &f->address), 0);
        break;
    }
}

static bide_awaiter *receive(fixture *f, receiver *r)
{
    memset(r, 0, sizeof *r);
    r->vector = (struct iovec){&r->number, sizeof r->number};
    bide_descriptor_init_closed(&r->accepted);
    switch (f->kind) {
    case RECVMSG:
        r->header.msg_iov = &r->vector;
        r->header.msg_iovlen = 1;
        return bide_recvmsg(&r->plain, &f->input, &r->header, 0);
    case RECV_FROM:
        return bide_recv_from(&r->datagram, &f->input, &r->number, sizeof r->number, &r->from);
    case RECV_BATCH:
        bide_message_init(&r->batch, &r->vector, NULL);
        return bide_recv_batch(&r->plain, &f->input, &r->batch, 1);
    case RECV_FDS:
        return bide_recv_fds(&r->pass, &f->input, &r->number, sizeof r->number, r->fds, 2);
    case READ:
    case READ_BLOCKING:
        return bide_read(&r->file, &f->input, &r->number, sizeof r->number);
    case READV:
        return bide_readv(&r->file, &f->input, &r->vector, 1, -1);
    case ACCEPT:
        return bide_accept(&r->plain, &f->input, &r->accepted, &r->from);
    case RECV:
    case KINDS:
    default:
        return bide_recv(&r->plain, &f->input, &r->number, sizeof r->number);
    }
}

static bide_awaiter *bringing(fixture *f)
{
    f->sent++;
    switch (f->kind) {
    case RECV_FROM:
    case RECV_BATCH:
        return bide_send_to(&f->datagram, &f->output, &f->sent, sizeof f->sent, &f->address);
    case RECV_FDS:
        return bide_send_fds(&f->pass, &f->output, &f->sent, sizeof f->sent, NULL, 0);
    case READ:
    case READ_BLOCKING:
    case READV:
        return bide_write(&f->write, &f->output, &f->sent, sizeof f->sent);
    case ACCEPT:
        return bide_connect(&f->send, &f->peers[f->connected++], &f->address);
    case RECV:
    case RECVMSG:
    case KINDS:
    default:
        return bide_send(&f->send, &f->output, &f->sent, sizeof f->sent);
    }
}

static void bring(fixture *f)
{
    assert_int_equal(world_wait(f->world, bringing(f)), 0);
}

static size_t count_of(const fixture *f, const receiver *r)
{
    switch (f->kind) {
    case RECV_FROM:
        return r->datagram.operation.count;
    case RECV_BATCH:
        return r->plain.count == 1 ? r->batch.size : 0;
    case RECV_FDS:
        return r->pass.operation.count;
    case READ:
    case READ_BLOCKING:
    case READV:
        return r->file.operation.count;
    default:
        return r->plain.count;
    }
}

/* It has received `number`, whole. */
static void has(fixture *f, receiver *r, uint64_t number)
{
    if (f->kind == ACCEPT) {
        bide_address peer;
        bool is_peer = false;
        assert_true(bide_descriptor_is_open(&r->accepted));
        for (unsigned i = 0; i < f->connected; i++)
            is_peer |= bide_local_address(&f->peers[i], &peer) == 0 &&
                       bide_address_port(&peer) == bide_address_port(&r->from);
        assert_true(is_peer);
        bide_close(&r->accepted);
        return;
    }
    assert_int_equal(count_of(f, r), sizeof r->number);
    assert_int_equal(r->number, number);
    if (f->kind == RECV_FROM)
        assert_int_equal(bide_address_port(&r->from), bide_address_port(&f->own));
}

static void has_nothing(fixture *f, const receiver *r)
{
    assert_int_equal(count_of(f, r), 0);
    assert_int_equal(r->number, 0);
    assert_false(bide_descriptor_is_open(&r->accepted));
}

/* The number that was sent is still there; or nothing is. */
static void is_left(fixture *f)
{
    assert_int_equal(world_wait(f->world, receive(f, &f->left)), 0);
    has(f, &f->left, f->sent);
}

static void nothing_is_left(fixture *f)
{
    bide_with_deadline_operation limited;
    assert_int_equal(world_wait(f->world, bide_with_deadline(&limited, world_now(f->world) + 1000,
                                                             receive(f, &f->left))),
                     -ETIMEDOUT);
    has_nothing(f, &f->left);
}

/* ---- A fixture ---- */

static fixture *begin_fixture(world *world, kind kind, wrap wrap)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    f->kind = kind;
    f->wrap = wrap;
    for (int i = 0; i < 4; i++)
        bide_descriptor_init_closed(&f->peers[i]);
    bide_descriptor_init_closed(&f->output);
    bide_event_init(&f->never, false);
    bide_event_init(&f->event, false);
    bide_stop_source_init(&f->token);
    open_kind(f);
    return f;
}

static void end_fixture(fixture *f)
{
    bide_close(&f->input);
    bide_close(&f->output);
    for (int i = 0; i < 4; i++)
        bide_close(&f->peers[i]);
    bide_event_destroy(&f->never);
    bide_event_destroy(&f->event);
    free(f);
}

static void for_kinds(void **state, void (*function)(fixture *f))
{
    world *world = world_of(state);
    for (kind kind = 0; kind < KINDS; kind++) {
        fixture *f = begin_fixture(world, kind, BARE);
        function(f);
        end_fixture(f);
    }
}

static void for_kinds_and_wraps(void **state, void (*function)(fixture *f))
{
    world *world = world_of(state);
    for (kind kind = 0; kind < KINDS; kind++) {
        for (wrap wrap = 0; wrap < WRAPS; wrap++) {
            fixture *f = begin_fixture(world, kind, wrap);
            function(f);
            end_fixture(f);
        }
    }
}

static int note(void *argument, int status)
{
    ((fixture *)argument)->calls++;
    return status;
}

static bide_awaiter *wrapped(fixture *f)
{
    bide_awaiter *inner = receive(f, &f->receiver);
    bide_scheduler *here = f->world->context->scheduler;
    f->calls = 0;
    switch (f->wrap) {
    case THEN:
        return bide_then(&f->then, inner, note, f);
    case DEADLINE:
        return bide_with_deadline(&f->deadline, world_now(f->world) + UINT64_C(3600000000000),
                                  inner);
    case WITH_STOP:
        return bide_with_stop(&f->with_stop, &f->token, inner);
    case RESUME_ON:
        return bide_resume_on(&f->resume_on, here, inner);
    case SCHEDULE_ON:
        return bide_schedule_on(&f->schedule_on, here, inner);
    case NESTED:
        return bide_select_any_of(&f->nested, bide_event_wait(&f->never_wait, &f->never), inner);
    case BARE:
    case WRAPS:
    default:
        return inner;
    }
}

static bide_awaiter *case_or_event(fixture *f)
{
    return bide_select_any_of(&f->select, wrapped(f), bide_event_wait(&f->wait, &f->event));
}

static size_t winner_of(const fixture *f)
{
    return bide_select_winner(&f->select.any);
}

/* The select has ended, and one was brought. */
static void is_had_or_left(fixture *f)
{
    assert_true(winner_of(f) < 2);
    if (winner_of(f) == 0) {
        has(f, &f->receiver, f->sent);
        nothing_is_left(f);
    } else {
        has_nothing(f, &f->receiver);
        is_left(f);
    }
    if (f->wrap == THEN)
        assert_int_equal(f->calls, winner_of(f) == 0);
}

/* ---- One select ---- */

static void waits_and_has(fixture *f)
{
    begin(f->world, &f->runner, case_or_event(f));
    turn(f->world);
    assert_false(f->world->pool == NULL && f->runner.has_ended);
    bring(f);
    assert_int_equal(end(f->world, &f->runner), 0);
    assert_int_equal(winner_of(f), 0);
    is_had_or_left(f);
}

static void a_case_waits_and_receives(void **state)
{
    for_kinds_and_wraps(state, waits_and_has);
}

static void is_had_at_once(fixture *f)
{
    for (int event_too = 0; event_too < 2; event_too++) {
        bring(f);
        if (event_too)
            bide_event_set(&f->event);
        assert_int_equal(
            world_wait(f->world, bide_select_any_of_in_order(&f->select, wrapped(f),
                                                             bide_event_wait(&f->wait, &f->event))),
            0);
        assert_int_equal(winner_of(f), 0);
        is_had_or_left(f);
    }
    bring(f); /* the event wins, if it is in front */
    assert_int_equal(
        world_wait(f->world, bide_select_any_of_in_order(
                                 &f->select, bide_event_wait(&f->wait, &f->event), wrapped(f))),
        0);
    assert_int_equal(winner_of(f), 0);
    has_nothing(f, &f->receiver);
    is_left(f);
}

static void the_first_of_two_that_are_ready_wins(void **state)
{
    for_kinds_and_wraps(state, is_had_at_once);
}

bide_coroutine(bring_body)
{
    bide_begin(bring_body, struct runner * self);
    fixture *f = bide_container_of(self, fixture, bringer);
    if (f->event_first)
        bide_event_set(&f->event);
    bide_await_status(self->status, bringing(f));
    f = bide_container_of(self, fixture, bringer);
    if (f->event_last)
        bide_event_set(&f->event);
    if (f->then_calls != NULL)
        f->then_calls(&f->runner);
    bide_end();
}

/* Brings one, and does the rest in the same turn, if sending takes none. */
static void bring_and(fixture *f)
{
    assert_int_equal(world_wait(f->world, bide_task_init(&f->bringer.task, &bring_body)), 0);
    assert_int_equal(f->bringer.status, 0);
}

static void two_in_one_turn(fixture *f)
{
    for (int order = 0; order < 2; order++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            bide_event_reset(&f->event);
            f->event_first = order == 0;
            f->event_last = order == 1;
            f->select.random = seed;
            if (f->connected == 4)
                return;
            begin(f->world, &f->runner, case_or_event(f));
            turn(f->world);
            bring_and(f);
            assert_int_equal(end(f->world, &f->runner), 0);
            is_had_or_left(f);
        }
    }
}

static void of_two_in_one_turn_the_loser_takes_nothing(void **state)
{
    for_kinds_and_wraps(state, two_in_one_turn);
}

static void destroy_unless_ended(void *runner)
{
    struct runner *r = runner;
    if (!r->has_ended)
        bide_destroy(&r->task.frame);
}

static void destroyed_between(fixture *f)
{
    f->then_calls = destroy_unless_ended;
    start(f->world, &f->runner, case_or_event(f));
    turn(f->world);
    bring_and(f);
    if (f->runner.has_ended) {
        assert_int_equal(winner_of(f), 0);
        has(f, &f->receiver, f->sent);
    } else {
        assert_int_equal(winner_of(f), 2);
        has_nothing(f, &f->receiver);
        is_left(f);
    }
}

static void destroyed_between_it_takes_nothing(void **state)
{
    for_kinds_and_wraps(state, destroyed_between);
}

static void stopped_between(fixture *f)
{
    f->then_calls = stop;
    begin(f->world, &f->runner, case_or_event(f));
    turn(f->world);
    bring_and(f);
    int status = end(f->world, &f->runner);
    if (status == 0) {
        is_had_or_left(f);
    } else {
        assert_int_equal(status, -ECANCELED);
        assert_int_equal(winner_of(f), 2);
        has_nothing(f, &f->receiver);
        is_left(f);
    }
}

static void asked_to_stop_it_takes_nothing(void **state)
{
    for_kinds_and_wraps(state, stopped_between);
}

/* Stopped by the loop and from outside, timed out, and destroyed, before anything has come. */
static void ended_early(fixture *f)
{
    for (int how = STOP; how <= DESTROY; how++) {
        begin_by(f->world, &f->runner, case_or_event(f), how);
        turn(f->world);
        end_by(f->world, &f->runner, &f->input, how);
        assert_int_equal(winner_of(f), 2);
        has_nothing(f, &f->receiver);
    }
    bring(f);
    is_left(f);
}

static void ended_early_it_takes_nothing(void **state)
{
    for_kinds_and_wraps(state, ended_early);
}

static void closed_while_waiting(fixture *f)
{
    begin(f->world, &f->runner, case_or_event(f));
    turn(f->world);
    call_inside(f->world, close_it, &f->input);
    assert_int_equal(end(f->world, &f->runner), -EPIPE);
    assert_int_equal(winner_of(f), 0);
    assert_int_equal(world_wait(f->world, case_or_event(f)), -EBADF);
    assert_int_equal(winner_of(f), 0);
}

static void a_closed_descriptor_ends_the_case(void **state)
{
    for_kinds_and_wraps(state, closed_while_waiting);
}

static void peer_ends(fixture *f)
{
    if (f->kind == RECV_FROM || f->kind == RECV_BATCH || f->kind == ACCEPT)
        return;
    begin(f->world, &f->runner, case_or_event(f));
    turn(f->world);
    call_inside(f->world, close_it, &f->output);
    assert_int_equal(end(f->world, &f->runner), 0);
    assert_int_equal(winner_of(f), 0);
    assert_int_equal(count_of(f, &f->receiver), 0);
}

static void the_end_of_the_input_is_received(void **state)
{
    for_kinds(state, peer_ends);
}

/* ---- Several receivers ---- */

static void it_does_not_pass_the_line(fixture *f)
{
    struct runner plain;
    receiver first;
    begin(f->world, &plain, receive(f, &first));
    turn(f->world);
    begin(f->world, &f->runner, case_or_event(f));
    turn(f->world);
    bring(f);
    assert_int_equal(end(f->world, &plain), 0);
    has(f, &first, 1);
    turn(f->world);
    bring(f);
    assert_int_equal(end(f->world, &f->runner), 0);
    assert_int_equal(winner_of(f), 0);
    is_had_or_left(f);
}

static void a_case_waits_behind_those_in_the_line(void **state)
{
    for_kinds(state, it_does_not_pass_the_line);
}

static void two_selects(fixture *f)
{
    receiver other_receiver;
    bide_event_waiter other_wait;
    bide_select_of(2) other;
    struct runner runner;
    other.random = 1;
    begin(f->world, &f->runner, case_or_event(f));
    begin(f->world, &runner,
          bide_select_any_of(&other, receive(f, &other_receiver),
                             bide_event_wait(&other_wait, &f->event)));
    turn(f->world);
    bring(f);
    turn(f->world);
    turn(f->world);
    bide_event_set(&f->event);
    assert_int_equal(end(f->world, &f->runner), 0);
    assert_int_equal(end(f->world, &runner), 0);
    size_t one = winner_of(f), two = bide_select_winner(&other.any);
    assert_int_equal(one + two >= 1, true); /* not both */
    if (one == 0)
        has(f, &f->receiver, f->sent);
    else
        has_nothing(f, &f->receiver);
    if (two == 0)
        has(f, &other_receiver, f->sent);
    else
        has_nothing(f, &other_receiver);
    if (one == 1 && two == 1)
        is_left(f);
    else
        nothing_is_left(f);
}

static void one_of_two_selects_has_it(void **state)
{
    for_kinds(state, two_selects);
}

/* ---- At once, in a set, of a file ---- */

static void try_inside(void *argument)
{
    fixture *f = argument;
    bide_select_case_init(&f->select.cases[0], wrapped(f));
    f->bringer.status = bide_select_try(&f->select.any, f->select.cases, 1, NULL);
}

static void tried(fixture *f)
{
    call_inside(f->world, try_inside, f);
    assert_int_equal(f->bringer.status, -EAGAIN);
    has_nothing(f, &f->receiver);
    bring(f);
    call_inside(f->world, try_inside, f);
    if (f->wrap == SCHEDULE_ON && f->bringer.status == -EAGAIN) {
        is_left(f);
        return;
    }
    assert_int_equal(f->bringer.status, 0);
    has(f, &f->receiver, f->sent);
}

static void a_select_that_does_not_wait_takes_it_or_nothing(void **state)
{
    for_kinds_and_wraps(state, tried);
}

struct set_user {
    bide_task task;
    fixture *f;
    bide_select_set set;
    bide_select_member receives, waits, *next;
    bide_event_waiter wait;
    int status;
};

bide_coroutine(set_body)
{
    bide_begin(set_body, struct set_user * self);
    bide_select_set_init(&self->set);
    bide_select_set_add(&self->set, &self->receives, wrapped(self->f));
    bide_select_set_add(&self->set, &self->waits, bide_event_wait(&self->wait, &self->f->event));
    bide_await_status(self->status, bide_select_set_poll(&self->set, &self->next));
    assert_int_equal(self->status, -EAGAIN);
    bide_event_set(&self->f->event);
    bide_await_status(self->status, bide_select_set_next(&self->set, &self->next));
    assert_int_equal(self->status, 0);
    assert_ptr_equal(self->next, &self->waits);
    bide_await_status(self->status, bringing(self->f));
    assert_int_equal(self->status, 0);
    bide_await_status(self->status, bide_select_set_next(&self->set, &self->next));
    assert_int_equal(self->status, 0);
    assert_ptr_equal(self->next, &self->receives);
    assert_int_equal(self->next->status, 0);
    has(self->f, &self->f->receiver, self->f->sent);
    /* a member that is taken out has taken nothing, or is had */
    bide_select_set_add(&self->set, &self->receives, wrapped(self->f));
    bide_await_status(self->status, bide_select_set_poll(&self->set, &self->next));
    assert_int_equal(self->status, -EAGAIN);
    bide_await_status(self->status, bringing(self->f));
    assert_int_equal(self->status, 0);
    bide_await(bide_select_set_end(&self->set));
    bide_end();
}

static void in_a_set(fixture *f)
{
    struct set_user user = {.f = f};
    assert_int_equal(world_wait(f->world, bide_task_init(&user.task, &set_body)), 0);
    if (user.receives.status == 0) {
        has(f, &f->receiver, f->sent);
    } else {
        assert_int_equal(user.receives.status, -ECANCELED);
        has_nothing(f, &f->receiver);
        is_left(f);
    }
}

static void a_member_of_a_set_loses_nothing(void **state)
{
    for_kinds_and_wraps(state, in_a_set);
}

static void a_file_is_no_case(void **state)
{
    fixture *f = begin_fixture(world_of(state), RECV, BARE);
    char path[] = "/tmp/bide-select-XXXXXX";
    bide_file_operation file;
    bide_descriptor opened;
    char byte = 'x';
    if (f->world->memory == NULL) {
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(world_wait(f->world, bide_open(&file, &opened, path, O_RDWR | O_CREAT, 0600)),
                     0);
    assert_int_equal(world_wait(f->world, bide_write_at(&file, &opened, "a", 1, 0)), 0);
    assert_int_equal(
        world_wait(f->world, bide_select_any_of(&f->select, bide_read(&file, &opened, &byte, 1),
                                                bide_event_wait(&f->wait, &f->event))),
        -EOPNOTSUPP);
    assert_int_equal(winner_of(f), 0);
    assert_int_equal(byte, 'x');
    assert_int_equal(world_wait(f->world, bide_read(&file, &opened, &byte, 1)), 0);
    assert_int_equal(byte, 'a');
    bide_close(&opened);
    if (f->world->memory == NULL)
        unlink(path);
    end_fixture(f);
}

/* ---- Ten thousand, with random races ---- */

enum { NUMBERS = 10000, /* multiplied by BIDE_ROUNDS */ READERS = 3 };

typedef struct race race;

struct reader {
    bide_task task;
    bide_spawned spawned;
    race *race;
    bide_io_operation receive;
    bide_with_deadline_operation limited;
    bide_schedule_on_operation elsewhere;
    bide_semaphore_waiter acquire;
    bide_sleep sleep;
    bide_event_waiter wait;
    bide_select_of(4) select;
    bide_schedule_operation turn;
    uint64_t number;
    uint64_t random;
    int status;
    unsigned cut;
};

struct race {
    bide_task sender;
    bide_context context;
    bide_scheduler *of_io; /* if the readers run elsewhere */
    bide_descriptor input, output;
    bide_semaphore permits;
    bide_event over;
    bide_spawned sending;
    bide_io_operation send;
    bide_schedule_operation turn;
    uint64_t random, number;
    uint32_t numbers;
    int status;
    bide_atomic(uint32_t) received, sum, permitted, slept, cancelled;
    struct reader readers[READERS];
};

bide_coroutine(race_sender_body)
{
    bide_begin(race_sender_body, race * self);
    for (self->number = 1; self->number <= self->numbers; self->number++) {
        bide_await_status(self->status, bide_send(&self->send, &self->output, &self->number,
                                                  sizeof self->number));
        assert_int_equal(self->status, 0);
        if (testing_random(&self->random) % 4 == 0)
            bide_semaphore_release(&self->permits, 1);
        if (testing_random(&self->random) % 8 == 0)
            bide_await(bide_schedule(&self->turn, bide_this_context()->scheduler));
    }
    bide_end();
}

static bide_awaiter *make_select(struct reader *self)
{
    race *race = self->race;
    uint64_t random = testing_random(&self->random);
    bide_awaiter *receives =
        bide_recv(&self->receive, &race->input, &self->number, sizeof self->number);
    if (race->of_io != NULL)
        receives = bide_schedule_on(&self->elsewhere, race->of_io, receives);
    bide_awaiter *acquires = bide_semaphore_acquire(&self->acquire, &race->permits);
    bide_awaiter *sleeps =
        bide_sleep_until(&self->sleep, bide_now(&race->context) + random / 16 % 100000);
    bide_awaiter *over = bide_event_wait(&self->wait, &race->over);
    self->cut = random % 8;
    bide_awaiter *all =
        random / 8 % 2 != 0
            ? bide_select_any_of(&self->select, receives, acquires, sleeps, over)
            : bide_select_any_of_in_order(&self->select, acquires, receives, over, sleeps);
    if (random / 8 % 2 == 0)
        self->cut |= 16;
    if ((self->cut & 7) == 0)
        return bide_with_deadline(&self->limited, bide_now(&race->context) + random / 32 % 50000,
                                  all);
    return all;
}

/* Returns false if it is over. */
static bool take_account(struct reader *self)
{
    enum { RECEIVED, ACQUIRED, SLEPT, OVER, NONE };
    static const int in_order[] = {ACQUIRED, RECEIVED, OVER, SLEPT, NONE};
    race *race = self->race;
    size_t winner = bide_select_winner(&self->select.any);
    int what = (self->cut & 16) != 0 ? in_order[winner] : (int)winner;
    if (what != RECEIVED)
        assert_int_equal(self->receive.count, 0);
    switch (what) {
    case RECEIVED:
        assert_int_equal(self->status, 0);
        assert_int_equal(self->receive.count, sizeof self->number);
        bide_atomic_fetch_add(&race->sum, (uint32_t)self->number, relaxed);
        if (bide_atomic_fetch_add(&race->received, 1, relaxed) + 1 == race->numbers)
            bide_event_set(&race->over);
        return true;
    case ACQUIRED:
        bide_atomic_fetch_add(&race->permitted, 1, relaxed);
        return true;
    case SLEPT:
        bide_atomic_fetch_add(&race->slept, 1, relaxed);
        return true;
    case OVER:
        return false;
    default:
        assert_int_equal(self->status, -ETIMEDOUT);
        bide_atomic_fetch_add(&race->cancelled, 1, relaxed);
        return true;
    }
}

bide_coroutine(race_reader_body)
{
    bide_begin(race_reader_body, struct reader * self);
    for (;;) {
        bide_await_status(self->status, make_select(self));
        if (!take_account(self))
            break;
        if (testing_random(&self->random) % 8 == 0)
            bide_await(bide_schedule(&self->turn, self->race->context.scheduler));
    }
    bide_end();
}

static race *new_race(const bide_context *context)
{
    race *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->context = *context;
    r->random = testing_seed();
    r->numbers = rounds_of(NUMBERS);
    bide_semaphore_init(&r->permits, 0);
    bide_event_init(&r->over, false);
    for (int i = 0; i < READERS; i++) {
        r->readers[i].race = r;
        r->readers[i].random = testing_random(&r->random);
        r->readers[i].select.random = testing_random(&r->random);
    }
    return r;
}

static void start_race(race *r, const bide_context *sender)
{
    for (int i = 0; i < READERS; i++)
        bide_spawn(&r->readers[i].spawned, &r->context,
                   bide_task_init(&r->readers[i].task, &race_reader_body));
    bide_spawn(&r->sending, sender, bide_task_init(&r->sender, &race_sender_body));
}

static void end_race(race *r)
{
    uint32_t received = bide_atomic_load(&r->received, relaxed);
    printf("# %u received, %u permits, %u sleeps, %u deadlines\n", received,
           bide_atomic_load(&r->permitted, relaxed), bide_atomic_load(&r->slept, relaxed),
           bide_atomic_load(&r->cancelled, relaxed));
    assert_int_equal(received, r->numbers);
    assert_int_equal(bide_atomic_load(&r->sum, relaxed), r->numbers * (r->numbers + 1) / 2);
    bide_close(&r->input);
    bide_close(&r->output);
    bide_semaphore_destroy(&r->permits);
    bide_event_destroy(&r->over);
    free(r);
}

static void nothing_is_lost_of_ten_thousand(void **state)
{
    world *world = world_of(state);
    race *r = new_race(world->context);
    bide_event_waiter wait;
    bide_io_operation operation;
    assert_int_equal(world_wait(world, bide_socket_pair(&operation, &r->input, &r->output)), 0);
    start_race(r, world->context);
    for (int i = 0; i < READERS; i++)
        world_wait(world, bide_event_wait(&wait, &r->readers[i].spawned.ended));
    world_wait(world, bide_event_wait(&wait, &r->sending.ended));
    end_race(r);
}

/* The readers move between the workers of a pool, each with a loop. */
static void nothing_is_lost_in_a_pool_of_loops(void **state)
{
    const bide_io_pool_options options = {.threads = {.threads = 4},
                                          .loop = {.kind = world_kind()}};
    bide_thread_pool *pool;
    bide_io_operation operation;
    (void)state;
    if (world_is("memory") || world_is("pool"))
        skip();
    int error = bide_io_pool_create(&pool, &options);
    if (error != 0 && options.loop.kind == BIDE_LOOP_URING)
        skip();
    assert_int_equal(error, 0);
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    race *r = new_race(&context);
    assert_int_equal(
        bide_sync_wait_in(&context, bide_socket_pair(&operation, &r->input, &r->output)), 0);
    start_race(r, &context);
    for (int i = 0; i < READERS; i++)
        bide_event_wait_blocking(&r->readers[i].spawned.ended, BIDE_FOREVER);
    bide_event_wait_blocking(&r->sending.ended, BIDE_FOREVER);
    end_race(r);
    bide_thread_pool_destroy(pool);
}

/* The readers run in a pool without loops; each receive waits on the world's loop. */
static void nothing_is_lost_on_the_loop_of_another_thread(void **state)
{
    world *world = world_of_a_loop(world_of_the_system(state, "it has several threads"));
    bide_thread_pool *pool;
    bide_event_waiter wait;
    bide_io_operation operation;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    race *r = new_race(&context);
    r->of_io = world->context->scheduler;
    assert_int_equal(world_wait(world, bide_socket_pair(&operation, &r->input, &r->output)), 0);
    start_race(r, world->context);
    for (int i = 0; i < READERS; i++)
        world_wait(world, bide_event_wait(&wait, &r->readers[i].spawned.ended));
    world_wait(world, bide_event_wait(&wait, &r->sending.ended));
    bide_thread_pool_destroy(pool);
    end_race(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_case_waits_and_receives),
        world_test(the_first_of_two_that_are_ready_wins),
        world_test(of_two_in_one_turn_the_loser_takes_nothing),
        world_test(destroyed_between_it_takes_nothing),
        world_test(asked_to_stop_it_takes_nothing),
        world_test(ended_early_it_takes_nothing),
        world_test(a_closed_descriptor_ends_the_case),
        world_test(the_end_of_the_input_is_received),
        world_test(a_case_waits_behind_those_in_the_line),
        world_test(one_of_two_selects_has_it),
        world_test(a_select_that_does_not_wait_takes_it_or_nothing),
        world_test(a_member_of_a_set_loses_nothing),
        world_test(a_file_is_no_case),
        world_test(nothing_is_lost_of_ten_thousand),
        cmocka_unit_test(nothing_is_lost_in_a_pool_of_loops),
        world_test(nothing_is_lost_on_the_loop_of_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
