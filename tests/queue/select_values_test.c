/*
 * Receives from a broadcast, a watch and a oneshot, raced against another operation: an element, a change or an answer
 * that a loser could have taken stays for the next receive. So it does if the coroutine is destroyed between the
 * receive and its own resumption.
 */
#include "testing.h"

#include "bide/auto_event.h"
#include "bide/broadcast.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/oneshot.h"
#include "bide/run_loop.h"
#include "bide/select.h"
#include "bide/then.h"
#include "bide/watch.h"
#include "bide/when.h"
#include "bide/with_stop.h"

enum { ROUNDS = 100, CAPACITY = 2 };

typedef enum kind { BROADCAST, WATCH, ONESHOT, KINDS } kind;

static struct {
    bide_run_loop loop;
    bide_auto_event event;
    bide_broadcast(int) broadcast;
    bide_broadcast_slot(int) memory[CAPACITY];
    bide_broadcast_subscriber(int) subscriber;
    bide_watch(int) watch;
    bide_watch_receiver(int) receiver;
    bide_oneshot(int) oneshot;
} the;

static int setup(void **state)
{
    int first = 0;
    (void)state;
    bide_run_loop_init(&the.loop);
    bide_auto_event_init(&the.event, false);
    bide_broadcast_init(&the.broadcast, the.memory, CAPACITY);
    bide_broadcast_subscribe(&the.subscriber, &the.broadcast);
    bide_watch_init(&the.watch, &first);
    bide_watch_receiver_init(&the.receiver, &the.watch);
    bide_watch_mark_seen(&the.receiver);
    bide_oneshot_init(&the.oneshot);
    return 0;
}

static void send(kind kind, int value)
{
    int status = kind == BROADCAST ? bide_broadcast_send(&the.broadcast, &value)
                 : kind == WATCH   ? bide_watch_send(&the.watch, &value)
                                   : bide_oneshot_send(&the.oneshot, &value);
    assert_int_equal(status, 0);
}

static void close_it(kind kind)
{
    if (kind == BROADCAST)
        bide_broadcast_close(&the.broadcast);
    else if (kind == WATCH)
        bide_watch_close(&the.watch);
    else
        bide_oneshot_close(&the.oneshot);
}

static int try_recv(kind kind, int *to)
{
    return kind == BROADCAST ? bide_broadcast_try_recv(&the.subscriber, to)
           : kind == WATCH   ? bide_watch_try_recv(&the.receiver, to)
                             : bide_oneshot_try_recv(&the.oneshot, to);
}

/* It is there for one receive, with `missed` elements lost before it. */
static void assert_there(kind kind, int value, size_t missed)
{
    int got = 0;
    assert_int_equal(try_recv(kind, &got), 0);
    assert_int_equal(got, value);
    if (kind == BROADCAST)
        assert_int_equal(the.subscriber.missed, missed);
    assert_int_equal(try_recv(kind, &got), kind == ONESHOT ? -EPIPE : -EAGAIN);
}

typedef struct receive {
    union {
        bide_broadcast_waiter broadcast;
        bide_watch_waiter watch;
        bide_oneshot_waiter oneshot;
    } wait;
    int got;
} receive;

static bide_awaiter *receive_of(receive *self, kind kind)
{
    return kind == BROADCAST
               ? bide_broadcast_recv(&self->wait.broadcast, &the.subscriber, &self->got)
           : kind == WATCH ? bide_watch_recv(&self->wait.watch, &the.receiver, &self->got)
                           : bide_oneshot_recv(&self->wait.oneshot, &the.oneshot, &self->got);
}

/* ---- A select between an event and a receive ---- */

typedef struct racing {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    bide_select_case cases[2];
    bide_auto_event_waiter wait;
    receive receive;
    kind kind;
    uint64_t random;
    int status; /* 1: not ended */
    size_t winner;
} racing;

static bide_awaiter *select_one(racing *self)
{
    bide_select_case_init(&self->cases[0], bide_auto_event_wait(&self->wait, &the.event));
    bide_select_case_init(&self->cases[1], receive_of(&self->receive, self->kind));
    return bide_select_any(&self->select, self->cases, 2, &self->random);
}

bide_coroutine(racing_body)
{
    bide_begin(racing_body, racing * self);
    bide_await_status(self->status, select_one(self));
    self->winner = bide_select_winner(&self->select);
    bide_end();
}

static void begin(racing *self, kind kind, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->kind = kind;
    self->random = seed;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = the.loop.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &racing_body, &self->context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

/* Either case wins in some rounds. What the loser could have had is there. */
static void assert_one_was_had(const racing *race, int value, int wins[2])
{
    int got;
    assert_int_equal(race->status, 0);
    assert_true(race->winner < 2);
    wins[race->winner]++;
    if (race->winner == 0) {
        assert_there(race->kind, value, 0);
        return;
    }
    assert_int_equal(race->receive.got, value);
    assert_int_equal(try_recv(race->kind, &got), race->kind == ONESHOT ? -EPIPE : -EAGAIN);
}

static void both_complete_in_one_turn(void **state)
{
    for (kind kind = 0; kind < KINDS; kind++) {
        int wins[2] = {0, 0};
        for (int round = 0; round < 2 * ROUNDS; round++) {
            racing race;
            setup(state);
            begin(&race, kind, (uint64_t)round);
            assert_int_equal(race.status, 1);
            if (round % 2 == 0)
                bide_auto_event_set(&the.event);
            send(kind, 42);
            if (round % 2 != 0)
                bide_auto_event_set(&the.event);
            bide_run_loop_run_ready(&the.loop);
            assert_one_was_had(&race, 42, wins);
        }
        assert_true(wins[1] > 0);
    }
}

static void both_are_ready_at_once(void **state)
{
    for (kind kind = 0; kind < KINDS; kind++) {
        int wins[2] = {0, 0};
        for (int round = 0; round < ROUNDS; round++) {
            racing race;
            setup(state);
            bide_auto_event_set(&the.event);
            send(kind, 42);
            begin(&race, kind, (uint64_t)round);
            assert_one_was_had(&race, 42, wins);
        }
        assert_true(wins[0] > 0 && wins[1] > 0);
    }
}

static void the_receive_alone_completes(void **state)
{
    for (kind kind = 0; kind < KINDS; kind++) {
        int wins[2] = {0, 0};
        racing race;
        setup(state);
        begin(&race, kind, 1);
        send(kind, 42);
        bide_run_loop_run_ready(&the.loop);
        assert_one_was_had(&race, 42, wins);
        assert_int_equal(wins[1], 1);
    }
}

static void it_is_closed_while_the_select_waits(void **state)
{
    for (int round = 0; round < 2 * KINDS; round++) {
        racing race;
        setup(state);
        begin(&race, (kind)(round % KINDS), 1);
        if (round < KINDS)
            close_it(race.kind);
        else
            bide_stop_request(&race.stop);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(race.status, round < KINDS ? -EPIPE : -ECANCELED);
        if (round < KINDS)
            assert_int_equal(race.winner, 1);
        if (round >= KINDS) {
            send(race.kind, 42);
            assert_there(race.kind, 42, 0);
        }
    }
}

static void the_select_is_destroyed_after_its_case_completed(void **state)
{
    for (kind kind = 0; kind < KINDS; kind++) {
        racing race;
        setup(state);
        begin(&race, kind, 1);
        send(kind, 42);
        bide_destroy(&race.task.frame);
        assert_false(bide_run_loop_run_ready(&the.loop));
        assert_there(kind, 42, 0);
    }
}

/* The select has its winner, and the coroutine that awaits it never learns of it. */
static void the_result_of_the_select_has_no_user(void **state)
{
    for (kind kind = 0; kind < KINDS; kind++) {
        racing race;
        bide_branch branch;
        setup(state);
        memset(&race, 0, sizeof race);
        race.kind = kind;
        send(kind, 42);
        bide_branch_init(&branch, select_one(&race));
        race.select.task.frame.context = &the.loop.context;
        race.select.task.frame.awaiter.frame = NULL;
        bide_resume(&race.select.task.frame);
        assert_true(bide_done(&race.select.task.frame));
        assert_int_equal(race.receive.got, 42);
        bide_branch_release_(&branch);
        assert_there(kind, 42, 0);
    }
}

/* ---- Behind a wrapper, whose coroutine takes the result ---- */

typedef struct wrapped {
    bide_task task;
    receive receive;
    kind kind;
    int way;
    bide_with_deadline_operation limited;
    bide_then_operation then;
    bide_when_of(2) both;
    bide_auto_event_waiter wait;
    int status;
} wrapped;

static int same(void *argument, int status)
{
    (void)argument;
    return status;
}

static bide_awaiter *wrap(wrapped *self)
{
    bide_awaiter *inner = receive_of(&self->receive, self->kind);
    switch (self->way) {
    case 0:
        return inner;
    case 1:
        return bide_with_deadline(&self->limited, BIDE_FOREVER, inner);
    case 2:
        return bide_then(&self->then, inner, same, NULL);
    default:
        return bide_when_all_of(&self->both, inner, bide_auto_event_wait(&self->wait, &the.event));
    }
}

enum { WAYS = 4 };

bide_coroutine(wrapped_body)
{
    bide_begin(wrapped_body, wrapped * self);
    bide_await_status(self->status, wrap(self));
    bide_end();
}

/* The receive has completed, and its branch or wrapper may have taken the result; then the coroutine is destroyed. */
static void a_coroutine_is_destroyed_between(void **state)
{
    for (kind kind = 0; kind < KINDS; kind++) {
        for (int way = 0; way < WAYS; way++) {
            for (int is_there = 0; is_there < 2; is_there++) {
                wrapped self = {.kind = kind, .way = way, .status = 1};
                setup(state);
                if (is_there && way == 3)
                    send(kind, 42);
                bide_start(&self.task.frame, &wrapped_body, &the.loop.context);
                bide_resume(&self.task.frame);
                if (!is_there || way != 3)
                    send(kind, 42);
                if (way == 3) /* its branch has the result */
                    bide_run_loop_run_ready(&the.loop);
                assert_int_equal(self.status, 1);
                bide_destroy(&self.task.frame);
                bide_run_loop_run_ready(&the.loop);
                assert_there(kind, 42, 0);
            }
        }
    }
}

/* What was given back is received again with the right count of missed elements, and by a later one if it is lost. */
static void a_position_goes_back_over_what_was_missed(void **state)
{
    for (int more = 0; more < 4; more++) {
        wrapped self = {.kind = BROADCAST, .way = 3, .status = 1};
        int got;
        setup(state);
        for (int i = 1; i <= 5; i++)
            send(BROADCAST, i);
        bide_start(&self.task.frame, &wrapped_body, &the.loop.context);
        bide_resume(&self.task.frame);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(self.receive.got, 4);
        bide_destroy(&self.task.frame);
        for (int i = 0; i < more; i++)
            send(BROADCAST, 6 + i);
        assert_int_equal(try_recv(BROADCAST, &got), 0);
        assert_int_equal(got, 4 + more);
        assert_int_equal(the.subscriber.missed, 3 + more);
        assert_int_equal(try_recv(BROADCAST, &got), 0);
        assert_int_equal(got, 5 + more);
        assert_int_equal(the.subscriber.missed, 0);
        assert_int_equal(try_recv(BROADCAST, &got), -EAGAIN);
    }
}

/* A wait was made, and the position moved on before it was awaited: destroying the coroutine does not take it back. */
static void only_what_the_wait_itself_took_is_given_back(void **state)
{
    for (kind kind = 0; kind < ONESHOT; kind++) {
        receive receive;
        bide_branch branch;
        int got;
        setup(state);
        bide_branch_init(&branch, receive_of(&receive, kind));
        send(kind, 1);
        assert_int_equal(try_recv(kind, &got), 0);
        send(kind, 2);
        assert_true(bide_awaiter_had(branch.awaited));
        bide_branch_release_(&branch);
        assert_there(kind, 2, 0);
    }
}

/* A oneshot that was received before stays received. */
static void what_another_receive_took_is_not_given_back(void **state)
{
    receive receive;
    bide_branch branch;
    int got;
    setup(state);
    send(ONESHOT, 1);
    assert_int_equal(try_recv(ONESHOT, &got), 0);
    bide_awaiter *awaiter = receive_of(&receive, ONESHOT);
    bide_branch_init(&branch, awaiter);
    assert_true(bide_awaiter_had(awaiter));
    assert_int_equal(bide_awaiter_resume(awaiter, awaiter->ops), -EPIPE);
    bide_branch_release_(&branch);
    assert_int_equal(try_recv(ONESHOT, &got), -EPIPE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(both_complete_in_one_turn),
        TEST(both_are_ready_at_once),
        TEST(the_receive_alone_completes),
        TEST(it_is_closed_while_the_select_waits),
        TEST(the_select_is_destroyed_after_its_case_completed),
        TEST(the_result_of_the_select_has_no_user),
        TEST(a_coroutine_is_destroyed_between),
        TEST(a_position_goes_back_over_what_was_missed),
        TEST(only_what_the_wait_itself_took_is_given_back),
        TEST(what_another_receive_took_is_not_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
