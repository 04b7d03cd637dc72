/*
 * The condition: no notification is lost between the unlock and the wait; notifications that race
 * with new waiters, with cancellation and with closing. waiter_queue_check.c checks the queue.
 */
#include "kept.h"

#include "bide/check.h"
#include "bide/condition.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/when.h"

/* A coroutine that has been waiting since the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bool notifies; /* if it is not the first to lock the mutex before it waits */
    int place;
    int status;
};

/* A coroutine that waits for another predicate. */
struct double_waiter {
    bide_task task;
    struct state *state;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bide_event event;
    bide_event_waiter other;
    bide_branch branches[2];
    bide_when when;
};

typedef struct state {
    bide_mutex mutex;
    bide_mutex_waiter holder; /* locked in the setup */
    bide_condition condition;
    bide_condition *allocated;
    struct early *early[3];
    struct double_waiter *waits_for_two;
    int come;
    int tokens;
} state;

static void setup(void *p)
{
    state *s = p;
    bide_mutex_init(&s->mutex);
    bide_condition_init(&s->condition);
}

static void finish_free(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_check_assert(bide_mutex_try_lock(&lock, &s->mutex));
    bide_check_assert(BIDE_QUEUE_VALUE(bide_atomic_load(&s->condition.queue.state, relaxed)) == 0);
    bide_check_assert(bide_waiter_queue_is_idle(&s->condition.queue));
}

/* ---- Tokens are added and taken ---- */

static void bring(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_check_assert(bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == 0);
    s->tokens++;
    bide_mutex_unlock(&lock);
    bide_condition_notify_one(&s->condition);
}

static void bring_inside(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_check_assert(bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == 0);
    s->tokens++;
    bide_condition_notify_all(&s->condition);
    bide_mutex_unlock(&lock);
}

static void take(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bide_check_assert(bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == 0);
    while (s->tokens == 0) {
        bide_check_assert(bide_check_await(bide_condition_wait(&wait, &s->condition, &lock)) == 0);
        bide_check_assert(wait.is_locked);
    }
    s->tokens--;
    bide_mutex_unlock(&lock);
}

static const bide_check_scenario brought = {
    .name = "a_consumer_takes_what_a_producer_brings",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {bring, take},
    .finish = finish_free,
};

static const bide_check_scenario brought_inside = {
    .name = "a_consumer_takes_what_a_producer_notifies_with_the_mutex",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {bring_inside, take},
    .finish = finish_free,
};

/* ---- With waiters ---- */

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_try(bide_mutex_lock(&self->lock, &self->state->mutex));
    self->place = self->state->come++;
    if (self->notifies && self->place != 0)
        bide_condition_notify_one(&self->state->condition);
    bide_await_status(self->status,
                      bide_condition_wait(&self->wait, &self->state->condition, &self->lock));
    bide_check_assert(self->wait.is_locked);
    self->state->tokens--;
    bide_mutex_unlock(&self->lock);
    bide_end();
}

static void enlist_in(state *s, int index, bool notifies, bide_scheduler *scheduler)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->notifies = notifies;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static void enlist(state *s, int index)
{
    enlist_in(s, index, false, &bide_inline_scheduler);
}

static void setup_one(void *p)
{
    setup(p);
    enlist(p, 0);
}

static void setup_two(void *p)
{
    setup_one(p);
    enlist(p, 1);
}

static void notify_one(void *p)
{
    bide_condition_notify_one(&((state *)p)->condition);
}

static void notify_all(void *p)
{
    bide_condition_notify_all(&((state *)p)->condition);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void close_it(void *p)
{
    bide_condition_close(&((state *)p)->condition);
}

static int end_of(state *s, int index)
{
    struct early *early = s->early[index];
    bide_check_assert(bide_done(&early->task.frame));
    int status = early->status;
    bide_check_free(early);
    return status;
}

/* One of the two has the token; the other was cancelled, or was notified for the first. */
static void finish_one_notified(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    if (first == 0) {
        bide_check_assert(!bide_done(&s->early[1]->task.frame));
        bide_condition_notify_one(&s->condition);
    }
    bide_check_assert(end_of(s, 1) == 0);
    finish_free(p);
}

static const bide_check_scenario cancelled = {
    .name = "the_first_is_asked_to_stop_or_is_notified_and_otherwise_the_second",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one, stop_first},
    .finish = finish_one_notified,
};

static void finish_two_told(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    bide_check_assert(end_of(s, 1) == 0);
    finish_free(p);
}

static const bide_check_scenario cancelled_of_all = {
    .name = "all_are_told_and_the_first_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_all, stop_first},
    .finish = finish_two_told,
};

/* A waiter that comes after a notification is not woken by it, whoever was. */
static void notify_and_wait(void *p)
{
    state *s = p;
    notify_all(p);
    enlist(s, 1);
}

static void finish_late(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    bide_check_assert(!bide_done(&s->early[1]->task.frame));
    bide_condition_notify_one(&s->condition);
    bide_check_assert(end_of(s, 1) == 0);
    finish_free(p);
}

static const bide_check_scenario late = {
    .name = "a_waiter_is_not_woken_by_its_own_notification",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_and_wait, stop_first},
    .finish = finish_late,
};

/*
 * Two wait, and one or both leave: notifications are for them, in their order, and not for the
 * third.
 */
static void notify_one_and_wait(void *p)
{
    notify_one(p);
    enlist(p, 2);
}

static void stop_second(void *p)
{
    bide_stop_request(&((state *)p)->early[1]->stop);
}

static void stop_both(void *p)
{
    stop_second(p);
    stop_first(p);
}

/* The third was not notified. */
static void finish_third(state *s)
{
    bide_check_assert(!bide_done(&s->early[2]->task.frame));
    bide_condition_notify_one(&s->condition);
    bide_check_assert(end_of(s, 2) == 0);
    finish_free(s);
}

static void finish_both_left(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    int second = end_of(s, 1);
    bide_check_assert(first == 0 || first == -ECANCELED);
    bide_check_assert(second == 0 || second == -ECANCELED);
    bide_check_assert(first != 0 || second != 0);
    finish_third(s);
}

static const bide_check_scenario both_leave = {
    .name = "two_are_asked_to_stop_and_a_notification_is_not_for_a_later_waiter",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one_and_wait, stop_both},
    .finish = finish_both_left,
};

static void finish_first_told(void *p)
{
    state *s = p;
    bide_check_assert(end_of(s, 0) == 0);
    bide_check_assert(end_of(s, 1) == -ECANCELED);
    finish_third(s);
}

static const bide_check_scenario second_leaves = {
    .name = "the_second_is_asked_to_stop_and_the_first_is_told",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one_and_wait, stop_second},
    .finish = finish_first_told,
};

static void finish_first_left(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    if (first == 0) {
        bide_check_assert(!bide_done(&s->early[1]->task.frame));
        bide_condition_notify_one(&s->condition);
    }
    bide_check_assert(end_of(s, 1) == 0);
    finish_third(s);
}

static const bide_check_scenario first_leaves = {
    .name = "the_first_is_asked_to_stop_and_the_second_notified_but_not_a_later_waiter",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one_and_wait, stop_first},
    .finish = finish_first_left,
};

static void finish_closed(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -EPIPE);
    bide_check_assert(end_of(s, 1) == -EPIPE);
    finish_free(p);
}

static const bide_check_scenario closed = {
    .name = "a_waiter_is_notified_and_it_is_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one, close_it},
    .finish = finish_closed,
};

static void finish_cancelled_and_closed(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == -ECANCELED || first == -EPIPE);
    bide_check_assert(end_of(s, 1) == -EPIPE);
    finish_free(p);
}

static const bide_check_scenario cancelled_and_closed = {
    .name = "the_first_is_asked_to_stop_and_it_is_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {stop_first, close_it},
    .finish = finish_cancelled_and_closed,
};

static void write_and_close(void *p)
{
    state *s = p;
    s->early[0] = NULL;
    bide_condition_close(&s->condition);
}

static void wait_and_see_why(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bide_check_assert(bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == 0);
    bide_check_assert(bide_check_await(bide_condition_wait(&wait, &s->condition, &lock)) == -EPIPE);
    bide_check_assert(s->early[0] == NULL);
    bide_mutex_unlock(&lock);
}

static const bide_check_scenario closed_with_reason = {
    .name = "finding_it_closed_shows_what_came_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_close, wait_and_see_why},
};

/* ---- Waiters are notified in the order of arrival ---- */

static void wait_as_first(void *p)
{
    enlist(p, 0);
}

static void notify_if_second_and_wait(void *p)
{
    enlist_in(p, 1, true, &bide_inline_scheduler);
}

static void finish_in_order(void *p)
{
    state *s = p;
    bool was_told = s->early[1]->place != 0;
    bide_check_assert(bide_done(&s->early[0]->task.frame) == was_told);
    bide_check_assert(!bide_done(&s->early[1]->task.frame));
    bide_condition_notify_all(&s->condition);
    bide_check_assert(end_of(s, 0) == 0);
    bide_check_assert(end_of(s, 1) == 0);
    finish_free(p);
}

static const bide_check_scenario in_order = {
    .name = "a_waiter_is_notified_by_one_that_waits_then",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {wait_as_first, notify_if_second_and_wait},
    .finish = finish_in_order,
};

/* There is one waiter, so the second notification is for nobody. */
static void notify_twice_and_wait(void *p)
{
    notify_one(p);
    notify_one(p);
    enlist(p, 1);
}

static const bide_check_scenario twice = {
    .name = "two_notifications_pass_over_a_later_waiter",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_twice_and_wait, stop_first},
    .finish = finish_late,
};

/* ---- Notified and closed, one after the other ---- */

static void notify_and_close(void *p)
{
    notify_one(p);
    close_it(p);
}

static void finish_told_and_closed(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    finish_free(p);
}

static const bide_check_scenario told_and_closed = {
    .name = "nothing_is_left_of_a_notified_waiter_that_is_asked_to_stop_and_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_and_close, stop_first},
    .finish = finish_told_and_closed,
};

static void close_and_notify(void *p)
{
    close_it(p);
    notify_one(p);
}

static const bide_check_scenario told_too_late = {
    .name = "a_close_is_not_a_notification",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {close_and_notify, stop_first},
    .finish = finish_cancelled_and_closed,
};

/* ---- Destroyed after its notification ---- */

static void setup_kept(void *p)
{
    setup(p);
    enlist_in(p, 0, false, &kept);
    enlist(p, 1);
}

static void destroy_first(state *s)
{
    bide_check_assert(!bide_done(&s->early[1]->task.frame));
    bide_destroy(&s->early[0]->task.frame);
    bide_check_assert(s->early[0]->status == 1);
    bide_check_free(s->early[0]);
}

static void finish_destroyed(void *p)
{
    destroy_first(p);
    bide_check_assert(end_of(p, 1) == 0);
    finish_free(p);
}

static const bide_check_scenario destroyed = {
    .name = "a_notified_waiter_is_destroyed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_kept,
    .threads = {notify_one},
    .finish = finish_destroyed,
};

static void setup_two_and_lock(void *p)
{
    state *s = p;
    setup_two(p);
    bide_check_assert(bide_mutex_try_lock(&s->holder, &s->mutex));
}

static void finish_destroyed_in_line(void *p)
{
    state *s = p;
    destroy_first(s);
    bide_mutex_unlock(&s->holder);
    bide_check_assert(end_of(s, 1) == 0);
    finish_free(p);
}

static const bide_check_scenario destroyed_in_line = {
    .name = "a_notified_waiter_is_destroyed_in_line_for_the_mutex",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_and_lock,
    .threads = {notify_one},
    .finish = finish_destroyed_in_line,
};

bide_coroutine(double_body)
{
    bide_begin(double_body, struct double_waiter * self);
    bide_try(bide_mutex_lock(&self->lock, &self->state->mutex));
    bide_branch_init(&self->branches[0],
                     bide_condition_wait(&self->wait, &self->state->condition, &self->lock));
    bide_branch_init(&self->branches[1], bide_event_wait(&self->other, &self->event));
    bide_try(bide_when_all(&self->when, self->branches, 2));
    bide_mutex_unlock(&self->lock);
    bide_end();
}

static void setup_double(void *p)
{
    state *s = p;
    setup(p);
    struct double_waiter *waiter = s->waits_for_two = bide_check_alloc(sizeof *waiter);
    waiter->state = s;
    bide_event_init(&waiter->event, false);
    bide_start(&waiter->task.frame, &double_body, &bide_default_context);
    bide_resume(&waiter->task.frame);
    enlist(s, 0);
}

static void finish_destroyed_with_mutex(void *p)
{
    state *s = p;
    bide_check_assert(s->waits_for_two->wait.is_locked);
    bide_check_assert(!bide_done(&s->early[0]->task.frame));
    bide_destroy(&s->waits_for_two->task.frame);
    bide_check_free(s->waits_for_two);
    bide_check_assert(end_of(s, 0) == 0);
    finish_free(p);
}

static const bide_check_scenario destroyed_with_mutex = {
    .name = "a_notified_waiter_is_destroyed_with_the_mutex",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_double,
    .threads = {notify_one},
    .finish = finish_destroyed_with_mutex,
};

static void notify_wait_and_close(void *p)
{
    notify_one(p);
    enlist(p, 1);
    close_it(p);
}

static void finish_late_and_closed(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    bide_check_assert(end_of(s, 1) == -EPIPE);
    finish_free(p);
}

static const bide_check_scenario late_and_closed = {
    .name = "a_notification_is_not_for_a_later_waiter_when_it_is_closed",
    .preemptions = 2,
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_wait_and_close, stop_first},
    .finish = finish_late_and_closed,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &brought,
        &brought_inside,
        &cancelled,
        &cancelled_of_all,
        &late,
        &both_leave,
        &first_leaves,
        &second_leaves,
        &closed,
        &cancelled_and_closed,
        &closed_with_reason,
        &in_order,
        &twice,
        &told_and_closed,
        &told_too_late,
        &destroyed,
        &destroyed_in_line,
        &destroyed_with_mutex,
        &late_and_closed,
        NULL,
    };
    static const char *const files[] = {"condition.h", "condition.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
