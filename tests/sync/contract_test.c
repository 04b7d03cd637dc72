/*
 * The contract that all waits share, shown for each primitive (primitives.h): a wait takes a stop token and a
 * deadline; it ends exactly once, with 0, -ECANCELED, -ETIMEDOUT or -EPIPE; after that nothing refers to it; a token
 * goes to the waiter, or to the next, and is never lost.
 */
#define _GNU_SOURCE
#include "small_stack.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"
#include "sync/primitives.h"

#include "../src/coroutine/internal.h"

#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/pollable.h"
#include "bide/run_loop.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/extend/choice.h"
#include "bide/extend/wrapper.h"

#include <poll.h>

enum { USERS = 5, WAITS = 1 /* the status of a wait that has not ended */ };

/* ---- Coroutines that wait once ---- */

/* A coroutine with a stop source of its own. Its waiter is retired as soon as the contract allows it. */
struct user {
    bide_task task;
    const primitive *primitive;
    void *object;
    void *waiter;
    by_hand *by_hand;
    bide_context context;
    bide_stop_source stop;
    bide_forward operation;
    char name;
    bool loses; /* what it has is given back for it: the waiter is kept until then */
    bool has;   /* something to hand on */
    int status;
    int ends;
};

static void user_ends(struct user *self)
{
    const primitive *p = self->primitive;
    self->ends++;
    self->has = self->status == 0 && p->hand_on != NULL;
    by_hand_note(self->by_hand, self->name);
    if (!self->loses && (!self->has || (p->traits & HAS_KEY) == 0))
        primitive_retire_waiter(p, self->waiter);
}

static int behind_a_wrapper_resume(bide_awaiter *awaiter)
{
    return bide_forward_take((bide_forward *)(void *)awaiter);
}

/* As in a branch: the wrapper can give back what the operation has. */
static bide_awaiter *begin_behind_a_wrapper(struct user *self)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(behind_a_wrapper_resume, "loses");
    return bide_forward_init(&self->operation, &ops,
                             self->primitive->begin(self->waiter, self->object));
}

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    if (self->loses)
        bide_await_status(self->status, begin_behind_a_wrapper(self));
    else
        bide_await_status(self->status, self->primitive->begin(self->waiter, self->object));
    user_ends(self);
    bide_end();
}

struct fixture {
    const primitive *primitive;
    void *object;
    by_hand by_hand;
    bide_stop_source stop; /* above all users' */
    struct user users[USERS + 1];
    int begun;
    int max; /* the maximum of waiters at a time */
};

static void fixture_init(struct fixture *f, void **state)
{
    memset(f, 0, sizeof *f);
    f->primitive = *state;
    f->object = primitive_new_object(f->primitive);
    f->max = f->primitive->max_waiting != 0 ? (int)f->primitive->max_waiting : USERS;
    by_hand_init(&f->by_hand);
    bide_stop_source_init(&f->stop);
}

/* Makes the next user, 'a' to 'f'; it starts later. */
static struct user *make_user(struct fixture *f)
{
    assert_true(f->begun <= USERS);
    struct user *user = &f->users[f->begun];
    user->primitive = f->primitive;
    user->object = f->object;
    user->waiter = primitive_new_waiter(f->primitive);
    user->by_hand = &f->by_hand;
    user->name = (char)('a' + f->begun++);
    user->status = WAITS;
    user->context = f->by_hand.context;
    user->context.stop = &user->stop;
    bide_stop_source_init(&user->stop);
    bide_stop_source_attach(&user->stop, &f->stop);
    bide_start(&user->task.frame, &user_body, &user->context);
    return user;
}

static struct user *begin_user(struct fixture *f)
{
    struct user *user = make_user(f);
    bide_resume(&user->task.frame);
    return user;
}

static void begin_all(struct fixture *f)
{
    for (int i = 0; i < f->max; i++)
        assert_int_equal(begin_user(f)->status, WAITS);
    assert_int_equal(f->by_hand.posted, 0);
}

static void hand_on(struct fixture *f, struct user *user)
{
    const primitive *p = f->primitive;
    assert_true(user->has);
    user->has = false;
    p->hand_on(f->object, user->waiter);
    if ((p->traits & HAS_KEY) != 0)
        primitive_retire_waiter(p, user->waiter);
}

/* Resumes woken users; each that was given a token hands it on, until none is left. */
static void run_and_hand_on(struct fixture *f)
{
    bool handed = true;
    while (handed) {
        handed = false;
        by_hand_run(&f->by_hand);
        for (int i = 0; i < f->begun && !handed; i++) {
            handed = f->users[i].has;
            if (handed)
                hand_on(f, &f->users[i]);
        }
    }
}

/* The order in which users ended; or, for primitives without an order, only the set of users. */
static void assert_ended(struct fixture *f, const char *names)
{
    if ((f->primitive->traits & IN_ORDER) == 0) {
        char *trace = f->by_hand.trace;
        assert_int_equal(strlen(trace), strlen(names));
        for (; *names != '\0'; names++)
            assert_non_null(strchr(trace, *names));
        trace[0] = '\0';
        return;
    }
    by_hand_assert_trace(&f->by_hand, names);
}

/* The first `count` users, in order, without the one called `without`. */
static const char *names_of(int count, char without)
{
    static char names[USERS + 1];
    int length = 0;
    for (int i = 0; i < count; i++) {
        if ('a' + i != without)
            names[length++] = (char)('a' + i);
    }
    names[length] = '\0';
    return names;
}

/* The remaining waiters are woken, in order; and each wait has ended once. */
static void fixture_end(struct fixture *f)
{
    const primitive *p = f->primitive;
    run_and_hand_on(f);
    assert_true(p->is_idle(f->object));
    primitive_free_object(p, f->object);
    for (int i = 0; i < f->begun; i++) {
        struct user *user = &f->users[i];
        assert_true(bide_done(&user->task.frame));
        if (user->ends == 0) /* it was destroyed */
            primitive_retire_waiter(p, user->waiter);
        else
            assert_int_equal(user->ends, 1);
        assert_int_equal(bide_atomic_load(&user->stop.word, relaxed) & ~3u, 0); /* it waits not */
        bide_stop_source_detach(&user->stop);
        assert_true(primitive_free_waiter(p, user->waiter));
    }
}

/* ---- Ready, or woken ---- */

static void what_is_ready_ends_at_once(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    f.primitive->wake(f.object);
    assert_int_equal(begin_user(&f)->status, 0);
    assert_int_equal(f.by_hand.posted, 0);
    assert_ended(&f, "a");
    fixture_end(&f);
}

static void what_one_has_the_next_waits_for(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    f.primitive->wake(f.object);
    struct user *first = begin_user(&f);
    assert_int_equal(first->status, 0);
    struct user *next = begin_user(&f);
    if (f.primitive->hand_on != NULL) {
        assert_int_equal(next->status, WAITS);
        hand_on(&f, first);
        by_hand_run(&f.by_hand);
    }
    assert_int_equal(next->status, 0);
    fixture_end(&f);
}

static void it_waits_until_it_is_woken_and_runs_on_its_scheduler(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    struct user *user = begin_user(&f);
    assert_int_equal(user->status, WAITS);
    assert_false(f.primitive->is_idle(f.object));
    assert_int_equal(by_hand_run(&f.by_hand), 0);
    f.primitive->wake(f.object);
    assert_int_equal(user->status, WAITS); /* it is only posted */
    by_hand_run(&f.by_hand);
    assert_int_equal(user->status, 0);
    fixture_end(&f);
}

static void all_end_in_the_order_in_which_they_came(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    f.primitive->wake(f.object);
    by_hand_run(&f.by_hand);
    assert_ended(&f, f.primitive->tokens != 0 ? "a" : names_of(f.max, 0));
    run_and_hand_on(&f);
    assert_ended(&f, f.primitive->tokens != 0 ? names_of(f.max, 'a') : "");
    for (int i = 0; i < f.max; i++)
        assert_int_equal(f.users[i].status, 0);
    fixture_end(&f);
}

static void so_many_tokens_let_so_many_end(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    for (unsigned i = 0; i < f.primitive->tokens; i++)
        f.primitive->wake(f.object);
    by_hand_run(&f.by_hand);
    if (f.primitive->tokens != 0)
        assert_ended(&f, names_of((int)f.primitive->tokens, 0));
    else
        f.primitive->wake(f.object);
    fixture_end(&f);
}

/* ---- Cancelled ---- */

static const int reasons[] = {-ECANCELED, -ETIMEDOUT};

static void asked_before_it_ends_at_once_and_leaves_what_there_is_to_the_next(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        fixture_init(&f, state);
        struct user *user = make_user(&f);
        bide_stop_request_with(&user->stop, reasons[i]);
        bide_resume(&user->task.frame);
        assert_int_equal(user->status, reasons[i]);
        assert_int_equal(f.by_hand.posted, 0);
        assert_true(f.primitive->is_idle(f.object));
        f.primitive->wake(f.object);
        assert_int_equal(begin_user(&f)->status, 0);
        fixture_end(&f);
    }
}

static void asked_before_it_still_has_what_is_ready(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    struct user *user = make_user(&f);
    bide_stop_request(&user->stop);
    f.primitive->wake(f.object);
    bide_resume(&user->task.frame);
    assert_int_equal(user->status, 0);
    fixture_end(&f);
}

/* Its budget is spent: it gives way at its next await, which is not begun if it was asked to stop. */
static void resume_with_a_spent_budget(struct user *user)
{
    int32_t full = bide_budget_full_;
    bide_budget_full_ = 0;
    bide_resume(&user->task.frame);
    bide_budget_full_ = full;
}

static void asked_before_it_has_nothing_of_what_is_ready_at_a_give_way(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        fixture_init(&f, state);
        if ((f.primitive->traits & AWAITS_NOTHING) != 0) {
            fixture_end(&f);
            skip();
        }
        struct user *user = make_user(&f);
        bide_stop_request_with(&user->stop, reasons[i]);
        f.primitive->wake(f.object);
        resume_with_a_spent_budget(user);
        assert_int_equal(user->status, WAITS); /* it is posted */
        by_hand_run(&f.by_hand);
        assert_int_equal(user->status, reasons[i]);
        assert_int_equal(begin_user(&f)->status, 0); /* the next has it */
        fixture_end(&f);
    }
}

static void asked_at_a_give_way_it_still_has_what_it_took(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    struct user *user = make_user(&f);
    f.primitive->wake(f.object);
    resume_with_a_spent_budget(user);
    bide_stop_request(&user->stop);
    by_hand_run(&f.by_hand);
    assert_int_equal(user->status, 0);
    fixture_end(&f);
}

static void asked_while_it_waits_it_ends_and_the_others_keep_their_order(void **state)
{
    const primitive *p = *state;
    int max = p->max_waiting != 0 ? (int)p->max_waiting : USERS;
    for (int which = 0; which < max; which++) {
        for (int i = 0; i < 2; i++) {
            struct fixture f;
            fixture_init(&f, state);
            begin_all(&f);
            struct user *user = &f.users[which];
            bide_stop_request_with(&user->stop, reasons[i]);
            assert_int_equal(user->status, WAITS);
            by_hand_run(&f.by_hand);
            assert_int_equal(user->status, reasons[i]);
            char name[2] = {user->name};
            by_hand_assert_trace(&f.by_hand, name);
            p->wake(f.object);
            run_and_hand_on(&f);
            assert_ended(&f, names_of(max, user->name));
            for (int other = 0; other < max; other++)
                assert_int_equal(f.users[other].status, other == which ? reasons[i] : 0);
            fixture_end(&f);
        }
    }
}

static void asked_all_together_they_end_and_what_there_is_stays(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    bide_stop_request_with(&f.stop, -ETIMEDOUT);
    bide_stop_request(&f.stop);
    by_hand_run(&f.by_hand);
    for (int i = 0; i < f.max; i++)
        assert_int_equal(f.users[i].status, -ETIMEDOUT);
    assert_true(f.primitive->is_idle(f.object));
    f.primitive->wake(f.object);
    assert_int_equal(begin_user(&f)->status, 0);
    fixture_end(&f);
}

/* It was handed a token, and has not run. If it may still end otherwise, another has the token. */
static void asked_after_it_was_woken_it_has_what_it_was_handed_or_the_next_has(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    f.primitive->wake(f.object);
    bide_stop_request(&f.users[0].stop);
    by_hand_run(&f.by_hand);
    if ((f.primitive->traits & HANDED) != 0)
        assert_int_equal(f.users[0].status, 0);
    assert_int_equal(f.users[0].ends, 1);
    if (f.users[0].status != 0)
        assert_int_equal(f.max > 1 ? f.users[1].status : begin_user(&f)->status, 0);
    run_and_hand_on(&f);
    for (int i = 1; i < f.max; i++)
        assert_int_equal(f.users[i].status, 0);
    fixture_end(&f);
}

static void asked_and_then_woken_it_ends_and_the_next_has_what_there_is(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    bide_stop_request(&f.users[0].stop); /* it is posted, and has not run */
    f.primitive->wake(f.object);
    if (f.max == 1) {
        by_hand_run(&f.by_hand);
        begin_user(&f);
    }
    by_hand_run(&f.by_hand);
    assert_int_equal(f.users[0].status, -ECANCELED);
    assert_int_equal(f.users[1].status, 0);
    fixture_end(&f);
}

/* ---- Closed ---- */

static void closed_before_it_ends_at_once(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    f.primitive->close(f.object);
    f.primitive->close(f.object);
    assert_int_equal(begin_user(&f)->status, -EPIPE);
    assert_int_equal(begin_user(&f)->status, -EPIPE);
    assert_int_equal(f.by_hand.posted, 0);
    fixture_end(&f);
}

static void closed_while_they_wait_they_end_in_order(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    f.primitive->close(f.object);
    f.primitive->close(f.object);
    by_hand_run(&f.by_hand);
    assert_ended(&f, names_of(f.max, 0));
    for (int i = 0; i < f.max; i++)
        assert_int_equal(f.users[i].status, -EPIPE);
    assert_int_equal(begin_user(&f)->status, -EPIPE);
    fixture_end(&f);
}

static void closed_after_it_was_woken_it_has_what_it_was_handed(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    begin_all(&f);
    f.primitive->wake(f.object);
    f.primitive->close(f.object);
    by_hand_run(&f.by_hand);
    if ((f.primitive->traits & HANDED) != 0)
        assert_int_equal(f.users[0].status, 0);
    else
        assert_int_equal(f.users[0].status, -EPIPE);
    for (int i = 1; i < f.max; i++)
        assert_int_equal(f.users[i].status, f.primitive->tokens != 0 ? -EPIPE : 0);
    fixture_end(&f);
}

static void closed_when_it_could_be_had_it_still_can_or_not_as_each_says(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    bool stays = (f.primitive->traits & STAYS_HAD) != 0;
    f.primitive->wake(f.object);
    f.primitive->close(f.object);
    assert_int_equal(begin_user(&f)->status, stays ? 0 : -EPIPE);
    fixture_end(&f);
}

static void the_first_end_is_the_only_one(void **state)
{
    /* 0: closed, then cancelled; 1: cancelled, then closed */
    for (int order = 0; order < 2; order++) {
        struct fixture f;
        fixture_init(&f, state);
        begin_all(&f);
        if (order == 0)
            f.primitive->close(f.object);
        bide_stop_request(&f.stop);
        if (order == 1)
            f.primitive->close(f.object);
        by_hand_run(&f.by_hand);
        for (int i = 0; i < f.max; i++) {
            bool was_closed = f.users[i].status == -EPIPE;
            assert_true(was_closed || f.users[i].status == -ECANCELED);
            if ((f.primitive->traits & HANDED) != 0)
                assert_int_equal(was_closed, order == 0);
        }
        fixture_end(&f);
    }
}

/* ---- Destroyed ---- */

static void a_destroyed_coroutine_leaves_and_the_others_keep_their_order(void **state)
{
    const primitive *p = *state;
    int max = p->max_waiting != 0 ? (int)p->max_waiting : USERS;
    for (int which = 0; which < max; which++) {
        struct fixture f;
        fixture_init(&f, state);
        begin_all(&f);
        bide_destroy(&f.users[which].task.frame);
        if (max == 1)
            assert_true(p->is_idle(f.object));
        bide_stop_request(&f.users[which].stop);
        int resumed = by_hand_run(&f.by_hand);
        if ((p->traits & HANDED) != 0)
            assert_int_equal(resumed, 0);
        assert_ended(&f, "");
        p->wake(f.object);
        run_and_hand_on(&f);
        assert_ended(&f, names_of(max, f.users[which].name));
        assert_int_equal(f.users[which].ends, 0);
        fixture_end(&f);
    }
}

static void one_that_was_cut_short_or_closed_may_be_destroyed_before_it_runs(void **state)
{
    for (int closed = 0; closed < (((const primitive *)*state)->close != NULL ? 2 : 1); closed++) {
        struct fixture f;
        fixture_init(&f, state);
        begin_all(&f);
        if (closed)
            f.primitive->close(f.object);
        else
            bide_stop_request(&f.users[0].stop);
        bide_destroy(&f.users[0].task.frame);
        if (!closed)
            f.primitive->wake(f.object);
        run_and_hand_on(&f);
        assert_ended(&f, names_of(f.max, 'a'));
        fixture_end(&f);
    }
}

/* It was woken. Its token goes to the next, or to the destroyer, which hands it on. */
static void destroy_woken(struct fixture *f, int which)
{
    bide_destroy(&f->users[which].task.frame);
    if ((f->primitive->traits & KEEPS_WHAT_IT_HAD) != 0)
        f->primitive->hand_on(f->object, f->users[which].waiter);
}

static void destroyed_after_it_was_woken_the_next_has_what_it_was_handed(void **state)
{
    for (int at_once = 0; at_once < 2; at_once++) {
        struct fixture f;
        fixture_init(&f, state);
        begin_all(&f);
        f.primitive->wake(f.object);
        destroy_woken(&f, 0);
        if (at_once && f.max > 1) /* it was handed on already; this one has not run either */
            destroy_woken(&f, 1);
        assert_int_equal(f.users[0].ends, 0);
        if (f.max == 1)
            assert_int_equal(begin_user(&f)->status, 0);
        run_and_hand_on(&f);
        for (int i = 1; i < f.begun; i++)
            assert_int_equal(f.users[i].ends, i > 1 || !at_once || f.max == 1);
        fixture_end(&f);
    }
}

/* ---- Raced against another, which is chosen: what it has is given back ---- */

/* Has ended, and its coroutine has the result, as that of a branch has. It loses. */
static void lose(struct user *user)
{
    assert_int_equal(user->status, 0);
    assert_true(user->loses);
    user->has = user->loses = false;
    bide_wrapper_release(&user->operation.inner);
    if ((user->primitive->traits & LEAVES_A_GAP) != 0)
        user->primitive->hand_on(user->object, user->waiter);
    primitive_retire_waiter(user->primitive, user->waiter);
}

static struct user *begin_loser(struct fixture *f)
{
    struct user *user = make_user(f);
    user->loses = true;
    bide_resume(&user->task.frame);
    return user;
}

static void lost_after_it_was_woken_the_next_in_line_has_what_it_had(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    struct user *loser = begin_loser(&f);
    struct user *next = f.max > 1 ? begin_user(&f) : NULL;
    assert_int_equal(loser->status, WAITS);
    f.primitive->wake(f.object);
    if (f.primitive->hand_on == NULL || next == NULL) {
        by_hand_run(&f.by_hand);
    } else {
        by_hand_run(&f.by_hand);
        assert_int_equal(next->status, WAITS);
    }
    lose(loser);
    if (next == NULL)
        next = begin_user(&f);
    by_hand_run(&f.by_hand);
    assert_int_equal(next->status, 0);
    assert_int_equal(loser->ends, 1);
    fixture_end(&f);
}

static void lost_after_it_was_ready_the_next_has_what_it_had(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    f.primitive->wake(f.object);
    struct user *loser = begin_loser(&f);
    assert_int_equal(loser->status, 0);
    lose(loser);
    struct user *next = begin_user(&f);
    assert_int_equal(next->status, 0);
    fixture_end(&f);
}

static void lost_after_it_was_closed_what_it_had_is_as_if_it_had_not_begun(void **state)
{
    for (int ready = 0; ready < 2; ready++) {
        struct fixture f;
        fixture_init(&f, state);
        if (ready)
            f.primitive->wake(f.object);
        struct user *loser = begin_loser(&f);
        if (!ready)
            f.primitive->wake(f.object);
        by_hand_run(&f.by_hand);
        f.primitive->close(f.object);
        lose(loser);
        assert_int_equal(begin_user(&f)->status,
                         (f.primitive->traits & STAYS_HAD) != 0 ? 0 : -EPIPE);
        fixture_end(&f);
    }
}

static void lost_after_it_was_cut_short_there_is_nothing_to_give_back(void **state)
{
    struct fixture f;
    fixture_init(&f, state);
    struct user *loser = begin_loser(&f);
    bide_stop_request(&loser->stop);
    by_hand_run(&f.by_hand);
    assert_int_equal(loser->status, -ECANCELED);
    bide_wrapper_release(&loser->operation.inner);
    primitive_retire_waiter(f.primitive, loser->waiter);
    f.primitive->wake(f.object);
    struct user *next = begin_user(&f);
    assert_int_equal(next->status, 0);
    fixture_end(&f);
}

/* A case of a select that is attempted: its wait takes nothing that the next in line is not given. */

struct attempting {
    bide_task task;
    bide_awaiter *wait;
    int status;
};

bide_coroutine(attempting_body)
{
    bide_begin(attempting_body, struct attempting * self);
    bide_await_status(self->status, self->wait);
    bide_end();
}

static void a_lost_wait_of_an_attempt_leaves_what_there_is_to_the_next(void **state)
{
    const primitive *p = *state;
    for (int waits = 0; waits < 3; waits++) {
        struct fixture f;
        fixture_init(&f, state);
        void *waiter = primitive_new_waiter(p);
        bide_awaiter *operation = p->begin(waiter, f.object);
        struct attempting attempting = {.status = WAITS};
        bide_choice choice = {.number = 1};
        bide_choice_init(&choice);
        assert_int_equal(operation->ops->attempt(operation, &choice), -EAGAIN);
        attempting.wait = choice.wait;
        bide_start(&attempting.task.frame, &attempting_body, &f.by_hand.context);
        if (waits == 0) /* another is chosen at once */
            bide_wrapper_abandon(&attempting.wait);
        if (waits != 0)
            bide_resume(&attempting.task.frame);
        if (waits == 2) /* its wait has ended when another is chosen */
            p->wake(f.object);
        by_hand_run(&f.by_hand);
        assert_int_equal(attempting.status, waits == 2 ? 0 : WAITS);
        if (waits == 2)
            bide_wrapper_release(&attempting.wait);
        else
            bide_destroy(&attempting.task.frame);
        if (waits != 2)
            p->wake(f.object);
        assert_int_equal(begin_user(&f)->status, 0);
        primitive_retire_waiter(p, waiter);
        assert_true(primitive_free_waiter(p, waiter));
        fixture_end(&f);
    }
}

static void an_attempt_after_the_wait_takes_what_there_is_and_gives_it_back(void **state)
{
    const primitive *p = *state;
    for (int loses = 0; loses < 2; loses++) {
        struct fixture f;
        fixture_init(&f, state);
        void *waiter = primitive_new_waiter(p);
        bide_awaiter *operation = p->begin(waiter, f.object);
        const bide_awaiter_ops *ops = operation->ops;
        struct attempting attempting = {.status = WAITS};
        bide_choice choice = {.number = 1};
        bide_choice_init(&choice);
        assert_int_equal(ops->attempt(operation, &choice), -EAGAIN);
        attempting.wait = choice.wait;
        bide_start(&attempting.task.frame, &attempting_body, &f.by_hand.context);
        bide_resume(&attempting.task.frame);
        p->wake(f.object);
        by_hand_run(&f.by_hand);
        assert_int_equal(attempting.status, 0);
        assert_int_equal(ops->attempt(operation, &choice), 0);
        if (loses && (ops->undo == BIDE_UNDO_WITHDRAW)) { /* it is destroyed before it knows */
            operation->ops = ops;
            operation->frame = NULL;
            bide_wrapper_release(&operation);
            if ((p->traits & LEAVES_A_GAP) != 0)
                p->hand_on(f.object, waiter);
        } else if (p->hand_on != NULL) {
            p->hand_on(f.object, waiter);
        }
        assert_int_equal(begin_user(&f)->status, 0);
        primitive_retire_waiter(p, waiter);
        assert_true(primitive_free_waiter(p, waiter));
        fixture_end(&f);
    }
}

static void an_attempt_of_what_is_closed_says_so(void **state)
{
    const primitive *p = *state;
    for (int waits = 0; waits < 2; waits++) {
        struct fixture f;
        fixture_init(&f, state);
        void *waiter = primitive_new_waiter(p);
        bide_awaiter *operation = p->begin(waiter, f.object);
        const bide_awaiter_ops *ops = operation->ops;
        struct attempting attempting = {.status = WAITS};
        bide_choice choice = {.number = 1};
        bide_choice_init(&choice);
        if (waits) {
            assert_int_equal(ops->attempt(operation, &choice), -EAGAIN);
            attempting.wait = choice.wait;
            bide_start(&attempting.task.frame, &attempting_body, &f.by_hand.context);
            bide_resume(&attempting.task.frame);
        }
        p->close(f.object);
        by_hand_run(&f.by_hand);
        assert_int_equal(attempting.status != WAITS, waits);
        assert_int_equal(ops->attempt(operation, &choice), -EPIPE);
        primitive_retire_waiter(p, waiter);
        assert_true(primitive_free_waiter(p, waiter));
        fixture_end(&f);
    }
}

/* ---- Deadlines ---- */

/* A coroutine on a run loop that waits until a deadline. */
struct hurried {
    bide_task task;
    const primitive *primitive;
    void *object;
    void *waiter;
    uint64_t deadline;
    bide_with_deadline_operation limited;
    int status;
};

bide_coroutine(hurried_body)
{
    bide_begin(hurried_body, struct hurried * self);
    self->status = WAITS;
    bide_await_status(self->status,
                      bide_with_deadline(&self->limited, self->deadline,
                                         self->primitive->begin(self->waiter, self->object)));
    if (self->status == 0 && self->primitive->hand_on != NULL)
        self->primitive->hand_on(self->object, self->waiter);
    primitive_retire_waiter(self->primitive, self->waiter);
    bide_end();
}

static bide_awaiter *hurried_init(struct hurried *self, const primitive *p, void *object,
                                  uint64_t deadline)
{
    self->primitive = p;
    self->object = object;
    self->waiter = primitive_new_waiter(p);
    self->deadline = deadline;
    return bide_task_init(&self->task, &hurried_body);
}

/* Nothing of it is left. */
static void hurried_end(struct hurried *self, bide_run_loop *loop)
{
    int status = self->status;
    assert_true(self->primitive->is_idle(self->object));
    assert_true(bide_run_loop_next_deadline(loop) == BIDE_FOREVER);
    bide_run_loop_run_ready(loop);
    assert_int_equal(self->status, status);
    assert_true(primitive_free_waiter(self->primitive, self->waiter));
}

static void when_its_deadline_has_passed_it_ends_and_the_next_has_what_there_is(void **state)
{
    const primitive *p = *state;
    void *object = primitive_new_object(p);
    bide_run_loop loop;
    struct hurried hurried;
    bide_run_loop_init(&loop);
    for (int i = 0; i < 2; i++) {
        uint64_t deadline = i == 0 ? 0 : bide_platform.now() + UINT64_C(1000000);
        bide_run_loop_wait(&loop, hurried_init(&hurried, p, object, deadline));
        assert_int_equal(hurried.status, -ETIMEDOUT);
        hurried_end(&hurried, &loop);
    }
    p->wake(object);
    bide_run_loop_wait(&loop, hurried_init(&hurried, p, object, 0));
    assert_int_equal(hurried.status, 0); /* if ready, the deadline does not matter */
    hurried_end(&hurried, &loop);
    primitive_free_object(p, object);
}

static void woken_before_its_deadline_it_ends_and_so_does_the_deadline(void **state)
{
    const primitive *p = *state;
    for (int closed = 0; closed < (p->close != NULL ? 2 : 1); closed++) {
        void *object = primitive_new_object(p);
        bide_run_loop loop;
        struct hurried hurried;
        bide_run_loop_init(&loop);
        bide_start(&hurried.task.frame, &hurried_body, &loop.context);
        hurried_init(&hurried, p, object, bide_platform.now() + UINT64_C(3600000000000));
        bide_resume(&hurried.task.frame);
        bide_run_loop_run_ready(&loop);
        assert_int_equal(hurried.status, WAITS);
        if (closed)
            p->close(object);
        else
            p->wake(object);
        bide_run_loop_run_ready(&loop);
        assert_int_equal(hurried.status, closed ? -EPIPE : 0);
        hurried_end(&hurried, &loop);
        primitive_free_object(p, object);
    }
}

static void destroyed_under_a_deadline_it_leaves_what_there_is_to_the_next(void **state)
{
    const primitive *p = *state;
    for (int woken = 0; woken < 2; woken++) {
        void *object = primitive_new_object(p);
        bide_run_loop loop;
        struct hurried hurried, next;
        bide_run_loop_init(&loop);
        bide_start(&hurried.task.frame, &hurried_body, &loop.context);
        hurried_init(&hurried, p, object, bide_platform.now() + UINT64_C(3600000000000));
        bide_resume(&hurried.task.frame);
        if (woken)
            p->wake(object);
        bide_destroy(&hurried.task.frame);
        assert_int_equal(hurried.status, WAITS);
        if (woken && (p->traits & KEEPS_WHAT_IT_HAD) != 0)
            p->hand_on(object, hurried.waiter);
        primitive_retire_waiter(p, hurried.waiter);
        hurried_end(&hurried, &loop);
        if (!woken)
            p->wake(object);
        bide_run_loop_wait(&loop, hurried_init(&next, p, object, BIDE_FOREVER));
        assert_int_equal(next.status, 0);
        hurried_end(&next, &loop);
        primitive_free_object(p, object);
    }
}

/* ---- Threads ---- */

struct thread {
    const primitive *primitive;
    void *object;
    uint64_t deadline;
    int status;
    pthread_t id;
};

/* Waits, and hands on its token. Returns the status of the wait; the waiter's memory is gone by then. */
static int wait_as_thread(const primitive *p, void *object, uint64_t deadline)
{
    void *waiter = primitive_new_waiter(p);
    int status = primitive_wait_blocking(p, waiter, object, deadline);
    if (status == 0 && p->hand_on != NULL)
        p->hand_on(object, waiter);
    primitive_retire_waiter(p, waiter);
    return primitive_free_waiter(p, waiter) ? status : WAITS;
}

static void *thread_waits(void *argument)
{
    struct thread *self = argument;
    self->status = wait_as_thread(self->primitive, self->object, self->deadline);
    return NULL;
}

static void a_thread_waits_until_it_is_woken_or_it_is_closed(void **state)
{
    const primitive *p = *state;
    for (int closed = 0; closed < (p->close != NULL ? 2 : 1); closed++) {
        for (int forever = 0; forever < 2; forever++) {
            void *object = primitive_new_object(p);
            struct thread thread = {.primitive = p, .object = object, .deadline = BIDE_FOREVER};
            uint32_t spins = 0;
            if (!forever)
                thread.deadline = bide_platform.now() + UINT64_C(3600000000000);
            start_thread(&thread.id, thread_waits, &thread);
            while (p->is_idle(object))
                wait_a_moment(&spins);
            if (closed)
                p->close(object);
            else
                p->wake(object);
            join_thread(thread.id);
            assert_int_equal(thread.status, closed ? -EPIPE : 0);
            assert_true(p->is_idle(object));
            primitive_free_object(p, object);
        }
    }
}

static void a_thread_waits_until_its_deadline(void **state)
{
    const primitive *p = *state;
    void *object = primitive_new_object(p);
    assert_int_equal(wait_as_thread(p, object, 0), -ETIMEDOUT);
    assert_int_equal(wait_as_thread(p, object, bide_platform.now() + UINT64_C(1000000)),
                     -ETIMEDOUT);
    assert_true(p->is_idle(object));
    p->wake(object);
    assert_int_equal(wait_as_thread(p, object, 0), 0);
    assert_int_equal(wait_as_thread(p, object, BIDE_FOREVER), 0);
    if (p->close != NULL) {
        p->close(object);
        int status = wait_as_thread(p, object, BIDE_FOREVER);
        assert_int_equal(status, (p->traits & STAYS_HAD) != 0 ? 0 : -EPIPE);
    }
    assert_true(p->is_idle(object));
    primitive_free_object(p, object);
}

/* ---- In a foreign event loop ---- */

struct polled {
    const primitive *primitive;
    void *object;
    void *waiter;
    bide_pollable pollable;
};

static void polled_begin(struct polled *self, void **state)
{
    self->primitive = *state;
    self->object = primitive_new_object(self->primitive);
    self->waiter = primitive_new_waiter(self->primitive);
    assert_int_equal(bide_pollable_init(&self->pollable), 0);
}

static void polled_start(struct polled *self)
{
    int status = WAITS;
    bide_pollable_start(&self->pollable, NULL, self->primitive->begin(self->waiter, self->object));
    assert_int_equal(bide_pollable_finish(&self->pollable, &status), -EINPROGRESS);
    assert_int_equal(status, WAITS);
}

static bool polled_is_readable(struct polled *self)
{
    struct pollfd fd = {.fd = bide_pollable_fd(&self->pollable), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/* It has ended, and its descriptor is readable; its token is handed on. */
static void polled_end(struct polled *self, int expected)
{
    const primitive *p = self->primitive;
    int status = WAITS;
    assert_true(polled_is_readable(self));
    assert_int_equal(bide_pollable_finish(&self->pollable, &status), 0);
    assert_int_equal(status, expected);
    assert_false(polled_is_readable(self));
    if (status == 0 && p->hand_on != NULL)
        p->hand_on(self->object, self->waiter);
    primitive_retire_waiter(p, self->waiter);
    assert_true(p->is_idle(self->object));
    bide_pollable_destroy(&self->pollable);
    primitive_free_object(p, self->object);
    assert_true(primitive_free_waiter(p, self->waiter));
}

static void a_descriptor_is_readable_when_it_is_woken_or_closed(void **state)
{
    for (int closed = 0; closed < (((const primitive *)*state)->close != NULL ? 2 : 1); closed++) {
        struct polled polled;
        polled_begin(&polled, state);
        polled_start(&polled);
        assert_false(polled_is_readable(&polled));
        if (closed)
            polled.primitive->close(polled.object);
        else
            polled.primitive->wake(polled.object);
        polled_end(&polled, closed ? -EPIPE : 0);
    }
}

static void a_descriptor_is_readable_when_it_is_cut_short(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct polled polled;
        polled_begin(&polled, state);
        polled_start(&polled);
        bide_pollable_cancel(&polled.pollable, reasons[i]);
        polled.primitive->wake(polled.object); /* too late */
        polled_end(&polled, reasons[i]);
    }
}

static void a_descriptor_is_readable_at_once_when_it_is_ready(void **state)
{
    struct polled polled;
    polled_begin(&polled, state);
    polled.primitive->wake(polled.object);
    bide_pollable_start(&polled.pollable, NULL,
                        polled.primitive->begin(polled.waiter, polled.object));
    polled_end(&polled, 0);
}

/* ---- A crowd, on a small stack: a million in the long tests ---- */

/* More than fits a small stack; a sanitizer needs more memory and time. */
enum { CROWD = SANITIZED ? 10 * 1000 : 20 * 1000 };

/* BIDE_ROUNDS in the environment multiplies them. */
static size_t crowd_size(void)
{
    const char *times = getenv("BIDE_ROUNDS");
    return (times != NULL ? strtoul(times, NULL, 10) : 1) * CROWD;
}

/* One of many. They are adjacent in memory, each with the waiter of its primitive. */
struct member {
    bide_task task;
    struct crowd *crowd;
    void *object;
    void *next; /* the object that it wakes, or NULL */
    int status;
    BIDE_ALIGNAS(16) unsigned char waiter[];
};

struct crowd {
    const primitive *primitive;
    size_t count;
    size_t member_size;
    unsigned char *members;
    size_t object_size;
    unsigned char *objects;
    bide_stop_source *sources; /* one for each, or NULL */
    bide_context *contexts;
    bide_stop_source *stop;
};

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    bide_await_status(self->status, self->crowd->primitive->begin(self->waiter, self->object));
    if (self->status == 0 && self->next != NULL)
        self->crowd->primitive->wake(self->next);
    else if (self->status == 0 && self->crowd->primitive->hand_on != NULL)
        self->crowd->primitive->hand_on(self->object, self->waiter);
    bide_end();
}

static struct member *member_of(struct crowd *crowd, size_t i)
{
    return (struct member *)(void *)(crowd->members + i * crowd->member_size);
}

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

static void crowd_init(struct crowd *crowd, const primitive *p, size_t objects)
{
    memset(crowd, 0, sizeof *crowd);
    crowd->primitive = p;
    size_t size = crowd_size();
    crowd->count = p->max_counted != 0 && p->max_counted < size ? p->max_counted : size;
    crowd->member_size = round_up(sizeof(struct member) + p->waiter_size, 16);
    crowd->members = aligned_alloc(16, crowd->count * crowd->member_size);
    crowd->object_size = round_up(p->object_size, BIDE_CACHE_LINE);
    crowd->objects = aligned_alloc(BIDE_CACHE_LINE, objects * crowd->object_size);
    assert_non_null(crowd->members);
    assert_non_null(crowd->objects);
    for (size_t i = 0; i < objects; i++)
        p->init(crowd->objects + i * crowd->object_size);
}

static void crowd_end(struct crowd *crowd, size_t objects)
{
    for (size_t i = 0; i < objects; i++)
        crowd->primitive->destroy(crowd->objects + i * crowd->object_size);
    free(crowd->members);
    free(crowd->objects);
    free(crowd->sources);
    free(crowd->contexts);
}

static void member_begins(struct crowd *crowd, size_t i, void *object, void *next)
{
    struct member *member = member_of(crowd, i);
    const bide_context *context = &bide_default_context;
    member->crowd = crowd;
    member->object = object;
    member->next = next;
    member->status = WAITS;
    if (crowd->sources != NULL) {
        bide_stop_source_init(&crowd->sources[i]);
        bide_stop_source_attach(&crowd->sources[i], crowd->stop);
        crowd->contexts[i] = bide_default_context;
        crowd->contexts[i].stop = &crowd->sources[i];
        context = &crowd->contexts[i];
    }
    bide_start(&member->task.frame, &member_body, context);
    bide_resume(&member->task.frame);
}

/* The number of waits that did not end with `status`. */
static size_t crowd_ended_otherwise(struct crowd *crowd, int status)
{
    size_t otherwise = 0;
    for (size_t i = 0; i < crowd->count; i++)
        otherwise += member_of(crowd, i)->status != status;
    return otherwise;
}

static void *wake_a_chain(void *argument)
{
    struct crowd *crowd = argument;
    bool one_object = crowd->primitive->hand_on != NULL && crowd->primitive->max_waiting == 0;
    for (size_t i = 0; i < crowd->count; i++) {
        unsigned char *own = crowd->objects + i * crowd->object_size;
        if (one_object)
            member_begins(crowd, i, crowd->objects, NULL);
        else
            member_begins(crowd, i, own, i + 1 < crowd->count ? own + crowd->object_size : NULL);
    }
    crowd->primitive->wake(crowd->objects);
    return NULL;
}

/* Of one object, if a token is handed to the next waiter; else each wakes the object of the next. */
static void a_crowd_of_which_each_wakes_the_next(void **state)
{
    const primitive *p = *state;
    size_t objects = p->hand_on != NULL && p->max_waiting == 0 ? 1 : crowd_size();
    struct crowd crowd;
    crowd_init(&crowd, p, objects);
    on_a_small_stack(wake_a_chain, &crowd);
    assert_int_equal(crowd_ended_otherwise(&crowd, 0), 0);
    crowd_end(&crowd, objects);
}

static void *wake_all(void *argument)
{
    struct crowd *crowd = argument;
    for (size_t i = 0; i < crowd->count; i++)
        member_begins(crowd, i, crowd->objects, NULL);
    crowd->primitive->wake(crowd->objects);
    return NULL;
}

static void *close_all(void *argument)
{
    struct crowd *crowd = argument;
    for (size_t i = 0; i < crowd->count; i++)
        member_begins(crowd, i, crowd->objects, NULL);
    crowd->primitive->close(crowd->objects);
    return NULL;
}

static void *stop_all(void *argument)
{
    struct crowd *crowd = argument;
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    crowd->stop = &stop;
    for (size_t i = 0; i < crowd->count; i++)
        member_begins(crowd, i, crowd->objects, NULL);
    bide_stop_request(&stop);
    return NULL;
}

static void a_crowd_whose_members_are_woken_at_once(void **state)
{
    struct crowd crowd;
    crowd_init(&crowd, *state, 1);
    on_a_small_stack(wake_all, &crowd);
    assert_int_equal(crowd_ended_otherwise(&crowd, 0), 0);
    crowd_end(&crowd, 1);
}

static void a_crowd_whose_members_are_closed_at_once(void **state)
{
    struct crowd crowd;
    crowd_init(&crowd, *state, 1);
    on_a_small_stack(close_all, &crowd);
    assert_int_equal(crowd_ended_otherwise(&crowd, -EPIPE), 0);
    crowd_end(&crowd, 1);
}

/* (searching the list for each would take days) */
static void a_crowd_whose_members_are_asked_to_stop_at_once(void **state)
{
    struct crowd crowd;
    crowd_init(&crowd, *state, 1);
    crowd.sources = calloc(crowd.count, sizeof *crowd.sources);
    crowd.contexts = calloc(crowd.count, sizeof *crowd.contexts);
    assert_non_null(crowd.sources);
    assert_non_null(crowd.contexts);
    on_a_small_stack(stop_all, &crowd);
    assert_int_equal(crowd_ended_otherwise(&crowd, -ECANCELED), 0);
    crowd_end(&crowd, 1);
}

/* ---- Each for each primitive ---- */

enum { ANY = 0, CLOSES = 1, MANY = 2, ALL = 4, HANDS = 8, UNDOES = 16, ATTEMPTS = 32 };

static const struct {
    const char *name;
    CMUnitTestFunction function;
    unsigned needs;
} cases[] = {
#define CASE(function, needs)      \
    {                              \
#function, function, needs \
    }
    CASE(what_is_ready_ends_at_once, ANY),
    CASE(what_one_has_the_next_waits_for, HANDS),
    CASE(it_waits_until_it_is_woken_and_runs_on_its_scheduler, ANY),
    CASE(all_end_in_the_order_in_which_they_came, MANY),
    CASE(so_many_tokens_let_so_many_end, HANDS),
    CASE(asked_before_it_ends_at_once_and_leaves_what_there_is_to_the_next, ANY),
    CASE(asked_before_it_still_has_what_is_ready, ANY),
    CASE(asked_before_it_has_nothing_of_what_is_ready_at_a_give_way, ANY),
    CASE(asked_at_a_give_way_it_still_has_what_it_took, ANY),
    CASE(asked_while_it_waits_it_ends_and_the_others_keep_their_order, ANY),
    CASE(asked_all_together_they_end_and_what_there_is_stays, ANY),
    CASE(asked_after_it_was_woken_it_has_what_it_was_handed_or_the_next_has, ANY),
    CASE(asked_and_then_woken_it_ends_and_the_next_has_what_there_is, ANY),
    CASE(closed_before_it_ends_at_once, CLOSES),
    CASE(closed_while_they_wait_they_end_in_order, CLOSES),
    CASE(closed_after_it_was_woken_it_has_what_it_was_handed, CLOSES),
    CASE(closed_when_it_could_be_had_it_still_can_or_not_as_each_says, CLOSES),
    CASE(the_first_end_is_the_only_one, CLOSES),
    CASE(a_destroyed_coroutine_leaves_and_the_others_keep_their_order, ANY),
    CASE(one_that_was_cut_short_or_closed_may_be_destroyed_before_it_runs, ANY),
    CASE(destroyed_after_it_was_woken_the_next_has_what_it_was_handed, ANY),
    CASE(lost_after_it_was_woken_the_next_in_line_has_what_it_had, UNDOES),
    CASE(lost_after_it_was_ready_the_next_has_what_it_had, UNDOES),
    CASE(lost_after_it_was_closed_what_it_had_is_as_if_it_had_not_begun, CLOSES | UNDOES),
    CASE(lost_after_it_was_cut_short_there_is_nothing_to_give_back, UNDOES),
    CASE(a_lost_wait_of_an_attempt_leaves_what_there_is_to_the_next, ATTEMPTS),
    CASE(an_attempt_after_the_wait_takes_what_there_is_and_gives_it_back, ATTEMPTS),
    CASE(an_attempt_of_what_is_closed_says_so, ATTEMPTS | CLOSES),
    CASE(when_its_deadline_has_passed_it_ends_and_the_next_has_what_there_is, ANY),
    CASE(woken_before_its_deadline_it_ends_and_so_does_the_deadline, ANY),
    CASE(destroyed_under_a_deadline_it_leaves_what_there_is_to_the_next, ANY),
    CASE(a_thread_waits_until_it_is_woken_or_it_is_closed, ANY),
    CASE(a_thread_waits_until_its_deadline, ANY),
    CASE(a_descriptor_is_readable_when_it_is_woken_or_closed, ANY),
    CASE(a_descriptor_is_readable_when_it_is_cut_short, ANY),
    CASE(a_descriptor_is_readable_at_once_when_it_is_ready, ANY),
    CASE(a_crowd_of_which_each_wakes_the_next, ANY),
    CASE(a_crowd_whose_members_are_woken_at_once, MANY | ALL),
    CASE(a_crowd_whose_members_are_closed_at_once, MANY | CLOSES),
    CASE(a_crowd_whose_members_are_asked_to_stop_at_once, MANY),
#undef CASE
};

enum { CASES = sizeof cases / sizeof cases[0] };

/* How a select undoes the operation: UNDOES, ATTEMPTS, or neither. */
static unsigned undone_by(const primitive *p)
{
    void *object = primitive_new_object(p);
    void *waiter = primitive_new_waiter(p);
    bide_awaiter *operation = p->begin(waiter, object);
    unsigned undone = (operation->ops->undo == BIDE_UNDO_WITHDRAW ? UNDOES : 0u) |
                      (operation->ops->attempt != NULL ? ATTEMPTS : 0u);
    bide_wrapper_abandon(&operation);
    primitive_retire_waiter(p, waiter);
    primitive_free_waiter(p, waiter);
    primitive_free_object(p, object);
    return undone;
}

static unsigned offers(const primitive *p)
{
    return undone_by(p) | (p->close != NULL ? CLOSES : 0u) | (p->max_waiting == 0 ? MANY : 0u) |
           (p->hand_on == NULL ? ALL : HANDS);
}

/* A test for each case and each primitive that the case applies to. */
static size_t all_tests(struct CMUnitTest *tests, char (*names)[160])
{
    size_t count = 0;
    for (size_t i = 0; i < primitives_count; i++) {
        for (size_t j = 0; j < CASES; j++) {
            if ((cases[j].needs & ~offers(primitives[i])) != 0)
                continue;
            snprintf(names[count], sizeof names[count], "%s: %s", primitives[i]->name,
                     cases[j].name);
            tests[count] = (struct CMUnitTest)cmocka_unit_test_prestate(
                cases[j].function, (void *)(uintptr_t)primitives[i]);
            tests[count].name = names[count];
            count++;
        }
    }
    return count;
}

int main(void)
{
    struct CMUnitTest *tests = calloc(primitives_count * CASES, sizeof *tests);
    char(*names)[160] = calloc(primitives_count * CASES, sizeof *names);
    int failed = 1;
    if (tests != NULL && names != NULL)
        failed = _cmocka_run_group_tests("contract", tests, all_tests(tests, names), NULL, NULL);
    free(tests);
    free(names);
    return failed;
}
