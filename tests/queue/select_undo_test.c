/*
 * A select loses nothing, whatever its cases: channels, a rendezvous, a semaphore, another select, and
 * any two wrappers around them. Two cases complete in one turn; it is destroyed in between; it is woken
 * in vain; it is asked to stop. Cases that could not be undone are refused by name.
 */
#include "misuse.h"
#include "testing.h"

#include "bide/channel.h"
#include "bide/create.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/file.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/once.h"
#include "bide/rendezvous.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/select.h"
#include "bide/semaphore.h"
#include "bide/sleep.h"
#include "bide/socket.h"
#include "bide/then.h"
#include "bide/when.h"
#include "bide/with_stop.h"

#include <errno.h>

typedef bide_channel(uint64_t) numbers;
typedef bide_channel_slot(uint64_t) number_slot;
typedef bide_rendezvous(uint64_t) meeting;

typedef enum kind { CHANNEL, SEMAPHORE, RENDEZVOUS, KINDS } kind;
typedef enum wrap {
    BARE,
    THEN,
    FORWARD,
    DEADLINE,
    WITH_STOP,
    SHIELDED,
    RESUME_ON,
    SCHEDULE_ON,
    NESTED,
    WRAPS
} wrap;

enum { NUMBER = 42 };

static struct {
    number_slot memory[4];
    numbers channel;
    meeting meeting;
    bide_semaphore semaphore;
    bide_event event, never;
    bide_run_loop loop, other;
} the;

/* One wrapper of each kind. */
typedef struct wrapper {
    bide_then_operation then;
    bide_forward forward;
    bide_with_deadline_operation deadline;
    bide_with_stop_operation with_stop;
    bide_resume_on_operation resume_on;
    bide_schedule_on_operation schedule_on;
    bide_select_of(2) nested;
    bide_event_waiter never;
    uint32_t calls;
    int status;
} wrapper;

typedef struct selecting {
    bide_task task;
    bide_context context;
    bide_stop_source stop, token;
    kind kind;
    wrap wraps[2];
    uint64_t time;
    wrapper wrappers[2];
    bide_channel_waiter channel;
    bide_semaphore_waiter semaphore;
    bide_awaiter_ops semaphore_ops;
    bide_rendezvous_receiver rendezvous;
    bide_event_waiter event;
    bide_schedule_on_operation elsewhere;
    bool moves; /* the select runs on the other loop */
    bool in_order;
    bool event_first;
    bide_select_of(2) select;
    uint64_t number;
    int status;
    uint32_t ended;
} selecting;

static int note_status(void *self, int status)
{
    wrapper *w = self;
    w->calls++;
    w->status = status;
    return status;
}

static int forward_resume(bide_awaiter *awaiter)
{
    bide_forward *forward = (bide_forward *)(void *)awaiter;
    return note_status(bide_container_of(forward, wrapper, forward), bide_forward_take(forward));
}

static bide_awaiter *operation(selecting *self)
{
    switch (self->kind) {
    case SEMAPHORE: {
        bide_awaiter *awaiter = bide_semaphore_acquire(&self->semaphore, &the.semaphore);
        self->semaphore_ops = *awaiter->ops;
        self->semaphore_ops.undo = BIDE_UNDO_WITHDRAW;
        awaiter->ops = &self->semaphore_ops;
        return awaiter;
    }
    case RENDEZVOUS:
        return bide_rendezvous_recv(&self->rendezvous, &the.meeting, &self->number);
    case CHANNEL:
    case KINDS:
    default:
        return bide_channel_recv(&self->channel, &the.channel, &self->number);
    }
}

static bide_awaiter *wrapped(selecting *self, size_t level, bide_awaiter *inner)
{
    static const bide_wrapper_ops forward_ops = BIDE_FORWARD_OPS(forward_resume, "forward");
    wrapper *w = &self->wrappers[level];
    switch (self->wraps[level]) {
    case THEN:
        return bide_then(&w->then, inner, note_status, w);
    case FORWARD:
        return bide_forward_init(&w->forward, &forward_ops, inner);
    case DEADLINE:
        return bide_with_deadline(&w->deadline, self->time, inner);
    case WITH_STOP:
        return bide_with_stop(&w->with_stop, &self->token, inner);
    case SHIELDED:
        return bide_with_stop(&w->with_stop, NULL, inner);
    case RESUME_ON:
        return bide_resume_on(&w->resume_on, &the.loop.scheduler, inner);
    case SCHEDULE_ON:
        return bide_schedule_on(&w->schedule_on, &the.loop.scheduler, inner);
    case NESTED:
        w->nested.random = self->select.random + level;
        return bide_select_any_of(&w->nested, bide_event_wait(&w->never, &the.never), inner);
    case BARE:
    case WRAPS:
    default:
        return inner;
    }
}

static bide_awaiter *make_select(selecting *self)
{
    bide_awaiter *a = wrapped(self, 1, wrapped(self, 0, operation(self)));
    bide_awaiter *b = bide_event_wait(&self->event, &the.event);
    if (self->in_order)
        return self->event_first ? bide_select_any_of_in_order(&self->select, b, a)
                                 : bide_select_any_of_in_order(&self->select, a, b);
    return bide_select_any_of(&self->select, a, b);
}

bide_coroutine(selecting_body)
{
    bide_begin(selecting_body, selecting * self);
    bide_await_status(self->status, self->moves
                                        ? bide_schedule_on(&self->elsewhere, &the.other.scheduler,
                                                           make_select(self))
                                        : make_select(self));
    self->ended++;
    bide_end();
}

static void setup(void)
{
    bide_channel_init(&the.channel, the.memory, 4);
    bide_rendezvous_init(&the.meeting);
    bide_semaphore_init(&the.semaphore, 0);
    bide_event_init(&the.event, false);
    bide_event_init(&the.never, false);
    bide_run_loop_init(&the.loop);
    bide_run_loop_init(&the.other);
}

static void teardown(void)
{
    bide_channel_destroy(&the.channel);
    bide_rendezvous_destroy(&the.meeting);
    bide_semaphore_destroy(&the.semaphore);
    bide_event_destroy(&the.event);
    bide_event_destroy(&the.never);
}

static void run(void)
{
    while (bide_run_loop_run_ready(&the.loop) != 0)
        ;
}

static void begin(selecting *s)
{
    bide_stop_source_init(&s->stop);
    bide_stop_source_init(&s->token);
    if (s->time == 0)
        s->time = bide_platform.now() + UINT64_C(3600000000000);
    s->context = the.loop.context;
    s->context.stop = &s->stop;
    bide_start(&s->task.frame, &selecting_body, &s->context);
    bide_resume(&s->task.frame);
    run();
}

/* Returns true if a partner has got rid of it. */
static bool bring(kind kind)
{
    const uint64_t number = NUMBER;
    switch (kind) {
    case SEMAPHORE:
        bide_semaphore_release(&the.semaphore, 1);
        return true;
    case RENDEZVOUS:
        return bide_rendezvous_try_send(&the.meeting, &number) == 0;
    case CHANNEL:
    case KINDS:
    default:
        assert_int_equal(bide_channel_try_send(&the.channel, &number), 0);
        return true;
    }
}

/* Whether it is still there; takes it. */
static bool is_left(kind kind)
{
    uint64_t number = 0;
    switch (kind) {
    case SEMAPHORE:
        return bide_semaphore_try_acquire(&the.semaphore, 1);
    case RENDEZVOUS:
        return false;
    case CHANNEL:
    case KINDS:
    default:
        return bide_channel_try_recv(&the.channel, &number) == 0 && number == NUMBER;
    }
}

static size_t which(const selecting *s)
{
    size_t winner = bide_select_winner(&s->select.any);
    return s->event_first && winner < 2 ? 1 - winner : winner;
}

/* The select has ended, and case 0 was brought `brought`: it has that, or that is left. */
static void is_not_lost(const selecting *s, bool brought)
{
    assert_int_equal(s->ended, 1);
    assert_int_equal(s->status, 0);
    assert_true(which(s) < 2);
    assert_int_equal(is_left(s->kind), brought && which(s) == 1);
    if (s->kind != SEMAPHORE && which(s) == 0)
        assert_int_equal(s->number, NUMBER);
    for (size_t level = 0; level < 2; level++) {
        const wrapper *w = &s->wrappers[level];
        if (s->wraps[level] != THEN && s->wraps[level] != FORWARD)
            continue;
        if (which(s) == 0)
            assert_int_equal(w->calls, 1);
        else
            assert_int_equal(w->calls, 0);
        assert_int_equal(w->status, 0);
    }
}

typedef struct combination {
    kind kind;
    wrap inner, outer;
    uint64_t seed;
    bool in_order, event_first;
} combination;

static void for_all(void (*function)(const combination *combination))
{
    combination c;
    for (c.kind = 0; c.kind < KINDS; c.kind++)
        for (c.inner = 0; c.inner < WRAPS; c.inner++)
            for (c.outer = 0; c.outer < WRAPS; c.outer++)
                for (c.seed = 0; c.seed < 8; c.seed++) {
                    c.in_order = c.seed >= 6;
                    c.event_first = c.seed == 7;
                    setup();
                    function(&c);
                    teardown();
                }
}

static selecting made(const combination *c)
{
    selecting s;
    memset(&s, 0, sizeof s);
    s.kind = c->kind;
    s.wraps[0] = c->inner;
    s.wraps[1] = c->outer;
    s.select.random = c->seed;
    s.in_order = c->in_order;
    s.event_first = c->event_first;
    return s;
}

static void two_in_one_turn(const combination *c)
{
    for (int order = 0; order < 2; order++) {
        selecting s = made(c);
        bool brought = false;
        bide_event_reset(&the.event);
        begin(&s);
        assert_int_equal(s.ended, 0);
        if (order == 0)
            brought = bring(s.kind);
        bide_event_set(&the.event);
        if (order == 1)
            brought = bring(s.kind);
        run();
        is_not_lost(&s, brought);
        if (s.kind == RENDEZVOUS)
            assert_int_equal(brought, which(&s) == 0);
    }
}

static void the_loser_of_a_turn_loses_nothing(void **state)
{
    (void)state;
    for_all(two_in_one_turn);
}

static void both_at_once(const combination *c)
{
    selecting s = made(c);
    if (c->kind == RENDEZVOUS)
        return;
    bring(c->kind);
    bide_event_set(&the.event);
    begin(&s);
    is_not_lost(&s, true);
    if (c->in_order)
        assert_int_equal(which(&s), c->event_first ? 1 : 0);
}

static void of_two_that_are_ready_one_is_had(void **state)
{
    (void)state;
    for_all(both_at_once);
}

static void destroyed_between(const combination *c)
{
    for (int events = 0; events < 2; events++) {
        selecting s = made(c);
        bide_event_reset(&the.event);
        begin(&s);
        bool brought = bring(s.kind);
        if (events != 0)
            bide_event_set(&the.event);
        bide_destroy(&s.task.frame);
        run();
        assert_int_equal(s.ended, 0);
        if (s.kind == RENDEZVOUS) {
            assert_true(brought);
            assert_int_equal(which(&s), 0);
            assert_int_equal(s.number, NUMBER);
        } else {
            assert_int_equal(which(&s), 2);
            assert_true(is_left(s.kind));
        }
    }
}

static void destroyed_between_it_loses_nothing(void **state)
{
    (void)state;
    for_all(destroyed_between);
}

static void in_vain(const combination *c)
{
    selecting s = made(c);
    if (c->kind == RENDEZVOUS)
        return;
    begin(&s);
    for (int time = 0; time < 3; time++) {
        bring(s.kind);
        (void)is_left(s.kind); /* a semaphore has passed the permit on already */
        run();
        if (s.ended != 0)
            break;
    }
    if (s.ended == 0) {
        assert_int_equal(s.kind, CHANNEL);
        bring(s.kind);
        run();
    }
    is_not_lost(&s, true);
    assert_int_equal(which(&s), 0);
}

static void woken_in_vain_it_waits_on(void **state)
{
    (void)state;
    for_all(in_vain);
}

/* A channel wakes the select in vain, whose other case is of `c`. */
typedef struct pair {
    bide_task task;
    selecting s;
    bide_channel_waiter receive;
    uint64_t received;
    bide_select_of(2) select;
    int status;
    uint32_t ended;
} pair;

bide_coroutine(pair_body)
{
    bide_begin(pair_body, pair * self);
    bide_await_status(
        self->status,
        bide_select_any_of(&self->select,
                           bide_channel_recv(&self->receive, &the.channel, &self->received),
                           wrapped(&self->s, 1, wrapped(&self->s, 0, operation(&self->s)))));
    self->ended++;
    bide_end();
}

static void another_in_vain(const combination *c)
{
    uint64_t number;
    pair p;
    if (c->kind == CHANNEL)
        return;
    memset(&p, 0, sizeof p);
    p.s = made(c);
    p.s.time = bide_platform.now() + UINT64_C(3600000000000);
    p.select.random = c->seed;
    bide_stop_source_init(&p.s.token);
    bide_start(&p.task.frame, &pair_body, &the.loop.context);
    bide_resume(&p.task.frame);
    run();
    for (int time = 0; time < 3; time++) {
        bring(CHANNEL);
        assert_int_equal(bide_channel_try_recv(&the.channel, &number), 0);
        run();
        assert_int_equal(p.ended, 0);
    }
    assert_true(bring(c->kind));
    run();
    assert_int_equal(p.ended, 1);
    assert_int_equal(p.status, 0);
    assert_int_equal(bide_select_winner(&p.select.any), 1);
    assert_false(is_left(c->kind));
}

static void another_case_wakes_it_in_vain(void **state)
{
    (void)state;
    for_all(another_in_vain);
}

static void asked_to_stop(const combination *c)
{
    for (int brings = 0; brings < 2; brings++) {
        selecting s = made(c);
        bool brought = false;
        begin(&s);
        if (brings != 0)
            brought = bring(s.kind);
        bide_stop_request_with(&s.stop, -ETIMEDOUT);
        run();
        assert_int_equal(s.ended, 1);
        if (which(&s) == 0) {
            assert_true(brought);
            assert_int_equal(s.status, 0);
            assert_false(is_left(s.kind));
        } else {
            assert_int_equal(s.status, -ETIMEDOUT);
            assert_int_equal(which(&s), 2);
            assert_int_equal(is_left(s.kind), brought);
        }
    }
}

static void asked_to_stop_it_loses_nothing(void **state)
{
    (void)state;
    for_all(asked_to_stop);
}

/* The select has ended, and the coroutine that awaits it does not know yet. */
static void destroyed_behind(const combination *c)
{
    selecting s = made(c);
    if (c->kind == RENDEZVOUS || c->inner == SCHEDULE_ON || c->outer == SCHEDULE_ON)
        return;
    s.moves = true;
    begin(&s);
    while (bide_run_loop_run_ready(&the.other) != 0)
        ;
    bring(s.kind);
    while (bide_run_loop_run_ready(&the.other) != 0)
        ;
    assert_int_equal(s.ended, 0);
    assert_int_equal(which(&s), 0);
    bide_destroy(&s.task.frame);
    assert_int_equal(is_left(s.kind), s.kind == SEMAPHORE); /* a channel's receive stays done */
}

static void destroyed_behind_a_wrapper_it_gives_back(void **state)
{
    (void)state;
    for_all(destroyed_behind);
}

/* A deadline, or a token, of a case alone. */
static void ends_by_itself(const combination *c)
{
    bool deadline = c->inner == DEADLINE || c->outer == DEADLINE;
    bool token = c->inner == WITH_STOP || c->outer == WITH_STOP;
    if (deadline) {
        selecting s = made(c);
        s.time = bide_platform.now();
        begin(&s);
        while (s.ended == 0)
            bide_run_loop_run_ready(&the.loop);
        assert_int_equal(s.status, -ETIMEDOUT);
        assert_int_equal(which(&s), 0);
    }
    if (token) {
        selecting s = made(c);
        begin(&s);
        assert_int_equal(s.ended, 0);
        bide_stop_request(&s.token);
        run();
        assert_int_equal(s.ended, 1);
        assert_int_equal(s.status, -ECANCELED);
        assert_int_equal(which(&s), 0);
    }
    bring(c->kind);
    assert_int_equal(is_left(c->kind), c->kind != RENDEZVOUS);
}

static void the_deadline_or_token_of_a_case_ends_it(void **state)
{
    (void)state;
    for_all(ends_by_itself);
}

/* ---- What cannot be undone ---- */

bide_coroutine(counts_body)
{
    bide_begin(counts_body, bide_task * self);
    (void)self;
    bide_end();
}

typedef struct refused {
    bide_task task;
    bide_task child;
    bide_awaiter *operation;
    bide_event_waiter wait;
    bide_then_operation then;
    bide_select_of(2) select;
    int status;
    uint32_t ended;
} refused;

bide_coroutine(refused_body)
{
    bide_begin(refused_body, refused * self);
    bide_await_status(self->status,
                      bide_select_any_of(&self->select, bide_event_wait(&self->wait, &the.event),
                                         self->operation));
    self->ended++;
    bide_end();
}

static refused r;

static void run_refused(void)
{
    memset(&r.task, 0, sizeof r.task);
    r.ended = 0;
    bide_event_set(&the.event); /* even if another is ready */
    bide_start(&r.task.frame, &refused_body, &the.loop.context);
    bide_resume(&r.task.frame);
    run();
}

static void is_refused(const char *text)
{
#if BIDE_DEBUG
    assert_true(misuse_aborts_naming(run_refused, text, "refused_body"));
#else
    (void)text;
    run_refused();
    assert_int_equal(r.ended, 1);
    assert_int_equal(r.status, -EOPNOTSUPP);
    assert_int_equal(bide_select_winner(&r.select.any), 2);
    assert_int_equal(bide_select_try(&r.select.any, r.select.cases, 2, NULL), -EOPNOTSUPP);
#endif
}

static void what_cannot_be_undone_is_refused_by_name(void **state)
{
    (void)state;
    setup();
    bide_when when;
    bide_branch branches[1];
    r.operation = bide_task_init(&r.child, &counts_body);
    is_refused("bide: a select cannot give back what `counts_body` has taken");
    r.operation = bide_then(&r.then, bide_task_init(&r.child, &counts_body), note_status, NULL);
    is_refused("bide: a select cannot give back what `counts_body` has taken");
    bide_branch_init(&branches[0], bide_event_wait(&r.wait, &the.never));
    r.operation = bide_when_all(&when, branches, 1);
    is_refused("bide: a select cannot give back what `bide_when_all` has taken");
    bide_descriptor descriptor;
    bide_io_operation io;
    bide_file_operation file;
    bide_address address;
    char byte = 0;
    struct iovec vector = {&byte, 1};
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 1), 0);
    bide_descriptor_init_closed(&descriptor);
    r.operation = bide_send(&io, &descriptor, &byte, 1);
    is_refused("bide: a select cannot give back what `bide_send` has taken");
    r.operation = bide_write(&file, &descriptor, &byte, 1);
    is_refused("bide: a select cannot give back what `bide_write` has taken");
    r.operation = bide_read_at(&file, &descriptor, &byte, 1, 0);
    is_refused("bide: a select cannot give back what `bide_read_at` has taken");
    r.operation = bide_readv(&file, &descriptor, &vector, 1, 0);
    is_refused("bide: a select cannot give back what `bide_readv` has taken");
    r.operation = bide_connect(&io, &descriptor, &address);
    is_refused("bide: a select cannot give back what `bide_connect` has taken");
    bide_once once;
    bide_once_operation run;
    bide_once_init(&once);
    r.operation = bide_once_run(&run, &once, bide_event_wait(&r.wait, &the.never));
    is_refused("bide: a select cannot give back what `bide_once_run` has taken");
}

/* ---- A select as a case of another ---- */

/* A lock that another coroutine holds, or an event: the event comes. */
struct nested {
    bide_task task;
    bide_mutex mutex;
    bide_event event, other;
    bide_mutex_waiter lock;
    bide_event_waiter wait, wait_too;
    bide_select inner, outer;
    bide_select_case inner_cases[2], outer_cases[2];
    int status;
};

bide_coroutine(nested_body)
{
    bide_begin(nested_body, struct nested * self);
    bide_select_case_init(&self->inner_cases[0], bide_mutex_lock(&self->lock, &self->mutex));
    bide_select_case_init(&self->inner_cases[1], bide_event_wait(&self->wait, &self->event));
    bide_select_case_init(&self->outer_cases[0],
                          bide_select_any_in_order(&self->inner, self->inner_cases, 2));
    bide_select_case_init(&self->outer_cases[1], bide_event_wait(&self->wait_too, &self->other));
    bide_await_status(self->status, bide_select_any_in_order(&self->outer, self->outer_cases, 2));
    bide_end();
}

static void what_the_inner_of_two_selects_has_not_had_is_not_given_back(void **state)
{
    struct nested nested = {.status = 1};
    bide_mutex_waiter holder, another;
    (void)state;
    bide_mutex_init(&nested.mutex);
    bide_event_init(&nested.event, false);
    bide_event_init(&nested.other, false);
    assert_true(bide_mutex_try_lock(&holder, &nested.mutex));
    bide_start(&nested.task.frame, &nested_body, &bide_default_context);
    bide_resume(&nested.task.frame);
    assert_int_equal(nested.status, 1);
    bide_event_set(&nested.event);
    assert_int_equal(nested.status, 0);
    assert_int_equal(bide_select_winner(&nested.outer), 0);
    assert_int_equal(bide_select_winner(&nested.inner), 1);
    assert_false(bide_mutex_try_lock(&another, &nested.mutex)); /* it is held still */
    bide_mutex_unlock(&holder);
    assert_true(bide_mutex_try_lock(&another, &nested.mutex));
    bide_mutex_unlock(&another);
    bide_mutex_destroy(&nested.mutex);
    bide_event_destroy(&nested.event);
    bide_event_destroy(&nested.other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_inner_of_two_selects_has_not_had_is_not_given_back),
        cmocka_unit_test(the_loser_of_a_turn_loses_nothing),
        cmocka_unit_test(of_two_that_are_ready_one_is_had),
        cmocka_unit_test(destroyed_between_it_loses_nothing),
        cmocka_unit_test(woken_in_vain_it_waits_on),
        cmocka_unit_test(another_case_wakes_it_in_vain),
        cmocka_unit_test(asked_to_stop_it_loses_nothing),
        cmocka_unit_test(destroyed_behind_a_wrapper_it_gives_back),
        cmocka_unit_test(the_deadline_or_token_of_a_case_ends_it),
        cmocka_unit_test(what_cannot_be_undone_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
