/*
 * Notify and the auto-reset event: hand-overs that race with cancellation, closing and each other;
 * waits that begin during a notification of all; and memory that is freed as early as allowed.
 */
#include "kept.h"

#include "bide/auto_event.h"
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/notify.h"
#include "bide/stop.h"
#include "bide/task.h"

/* A coroutine that has been waiting since the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_notify *notify;
    bide_notify_waiter wait;
    int status;
};

typedef struct state {
    bide_notify notify;
    bide_auto_event event;
    bide_notify *allocated;
    struct early *early[2];
    int data;
    bide_atomic(uint32_t) flag;
    bide_atomic(uint32_t) passed;
    bide_notify_waiter begun, begun_too; /* in the setup */
} state;

static void setup(void *p)
{
    state *s = p;
    bide_notify_init(&s->notify);
    bide_auto_event_init(&s->event, false);
    bide_atomic_init(&s->flag, 0);
    bide_atomic_init(&s->passed, 0);
}

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_notify_wait(&self->wait, self->notify));
    bide_end();
}

static void enlist_for(state *s, int index, bide_notify *notify)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->notify = notify;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static void enlist(state *s, int index)
{
    enlist_for(s, index, &s->notify);
}

static int end_of(state *s, int index)
{
    int status = s->early[index]->status;
    if (status == 1)
        bide_destroy(&s->early[index]->task.frame);
    bide_check_free(s->early[index]);
    return status;
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
    bide_notify_one(&((state *)p)->notify);
}

static void notify_all(void *p)
{
    bide_notify_all(&((state *)p)->notify);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void close_it(void *p)
{
    bide_notify_close(&((state *)p)->notify);
}

static void wait_for_it(void *p)
{
    state *s = p;
    bide_notify_waiter wait;
    bide_check_assert(bide_check_await(bide_notify_wait(&wait, &s->notify)) == 0);
}

/* ---- One ---- */

static void write_and_notify_one(void *p)
{
    ((state *)p)->data = 1;
    notify_one(p);
}

static void wait_and_read(void *p)
{
    wait_for_it(p);
    bide_check_assert(((state *)p)->data == 1);
}

static void finish_nothing_left(void *p)
{
    bide_check_assert(!bide_notify_try_wait(&((state *)p)->notify));
}

static const bide_check_scenario one = {
    .name = "a_waiter_and_a_notifier",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_notify_one, wait_and_read},
    .finish = finish_nothing_left,
};

static void finish_two(void *p)
{
    bide_check_assert(end_of(p, 0) == 0 && end_of(p, 1) == 0);
    finish_nothing_left(p);
}

static const bide_check_scenario two = {
    .name = "two_wait_and_two_are_notified_at_once",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one, notify_one},
    .finish = finish_two,
};

/* One of the two has the notification: the first, unless it has left. */
static void finish_cancelled(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    int second = end_of(s, 1);
    bide_check_assert((first == 0 && second == 1) || (first == -ECANCELED && second == 0));
    finish_nothing_left(p);
}

static const bide_check_scenario cancelled = {
    .name = "the_first_is_asked_to_stop_as_it_is_notified",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_one, stop_first},
    .finish = finish_cancelled,
};

/* There is no other waiter: the notification is remembered. */
static void finish_cancelled_alone(void *p)
{
    state *s = p;
    bool is_left = bide_notify_try_wait(&s->notify);
    int status = end_of(s, 0);
    bide_check_assert(is_left ? status == -ECANCELED : status == 0);
    finish_nothing_left(p);
}

static const bide_check_scenario cancelled_alone = {
    .name = "the_only_waiter_is_asked_to_stop_as_it_is_notified",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_one, stop_first},
    .finish = finish_cancelled_alone,
};

/* Two notifications, one waiter: one is remembered, no more. */
static void finish_remembered(void *p)
{
    state *s = p;
    bide_check_assert(end_of(s, 0) == 0);
    bide_check_assert(bide_notify_try_wait(&s->notify));
    finish_nothing_left(p);
}

static const bide_check_scenario remembered = {
    .name = "three_notifications_for_one_waiter",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_one, notify_one, notify_one},
    .finish = finish_remembered,
};

static void finish_closed(void *p)
{
    state *s = p;
    int status = end_of(s, 0);
    bide_check_assert(status == 0 || status == -EPIPE);
    bide_check_assert(!bide_notify_try_wait(&s->notify));
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_as_a_waiter_is_notified",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {notify_one, close_it},
    .finish = finish_closed,
};

static void notify_one_and_close(void *p)
{
    notify_one(p);
    close_it(p);
}

static const bide_check_scenario closed_after = {
    .name = "a_notification_before_the_close_lets_a_waiter_pass",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {notify_one_and_close, wait_for_it},
    .finish = finish_nothing_left,
};

/*
 * Each thread makes one item known and notifies one; each of the others takes one, as at the top of
 * notify.h.
 */
static void make_and_notify_one(void *p)
{
    state *s = p;
    bide_atomic_fetch_add(&s->flag, 1, relaxed);
    bide_notify_one(&s->notify);
}

static void make_two_and_notify_each(void *p)
{
    make_and_notify_one(p);
    make_and_notify_one(p);
}

static bool take(state *s)
{
    uint32_t there = bide_atomic_load(&s->flag, relaxed);
    while (there != 0) {
        if (bide_atomic_compare_exchange(&s->flag, &there, there - 1, relaxed, relaxed))
            return true;
    }
    return false;
}

static void look_and_take(void *p)
{
    state *s = p;
    for (;;) {
        bide_notify_waiter wait;
        bide_awaiter *changed = bide_notify_wait(&wait, &s->notify);
        if (take(s))
            break;
        bide_check_assert(bide_check_await(changed) == 0);
    }
}

static const bide_check_scenario looked = {
    .name = "two_look_before_each_is_notified_and_none_waits_for_ever",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {make_two_and_notify_each, look_and_take, look_and_take},
};

/* The same while a server is at work: a notification that it cannot deliver is not lost. */
static void setup_begun_beside(void *p)
{
    state *s = p;
    setup_one(p);
    bide_await_later(bide_notify_wait(&s->begun, &s->notify));
    bide_await_later(bide_notify_wait(&s->begun_too, &s->notify));
}

static void notify_one_twice(void *p)
{
    notify_one(p);
    notify_one(p);
}

static bool has_ended(bide_notify_waiter *begun)
{
    bide_awaiter *awaiter = &begun->waiter.awaiter;
    return awaiter->ops->ready(awaiter);
}

static void finish_begun_beside(void *p)
{
    state *s = p;
    bide_check_assert(end_of(p, 0) == 0);
    bide_check_assert(has_ended(&s->begun) && has_ended(&s->begun_too));
}

static const bide_check_scenario begun_beside = {
    .name = "one_is_in_line_and_two_have_begun_when_three_are_notified",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_begun_beside,
    .threads = {notify_one, notify_one_twice},
    .finish = finish_begun_beside,
};

/* ---- All ---- */

static void set_and_notify_all(void *p)
{
    state *s = p;
    s->data = 1;
    bide_atomic_store(&s->flag, 1, relaxed);
    bide_notify_all(&s->notify);
}

/* As at the top of notify.h: the wait begins, then the waiter checks. */
static void look_and_wait(void *p)
{
    state *s = p;
    bide_notify_waiter wait;
    bide_awaiter *changed = bide_notify_wait(&wait, &s->notify);
    if (bide_atomic_load(&s->flag, relaxed) == 0) {
        bide_check_assert(bide_check_await(changed) == 0);
        bide_check_assert(s->data == 1);
    }
}

static const bide_check_scenario all = {
    .name = "a_look_after_the_wait_has_begun_misses_nothing",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_and_notify_all, look_and_wait, look_and_wait},
    .finish = finish_nothing_left,
};

static void finish_all(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    bide_check_assert(first == 0 || first == -ECANCELED);
    bide_check_assert(end_of(s, 1) == 0);
    finish_nothing_left(p);
}

static const bide_check_scenario all_cancelled = {
    .name = "all_are_notified_as_the_first_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_all, stop_first},
    .finish = finish_all,
};

/* The wait has begun before all are notified; later waits do not prevent its end. */
static void setup_begun(void *p)
{
    setup(p);
    bide_await_later(bide_notify_wait(&((state *)p)->begun, &((state *)p)->notify));
}

static void wait_as_begun(void *p)
{
    bide_check_assert(bide_check_await(&((state *)p)->begun.waiter.awaiter) == 0);
}

static void notify_all_and_wait(void *p)
{
    notify_all(p);
    wait_for_it(p); /* is ended by the next one */
}

static void notify_one_once_begun_has_passed(void *p)
{
    wait_as_begun(p);
    notify_one(p);
}

static const bide_check_scenario late = {
    .name = "a_waiter_late_in_line_is_notified_with_all",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_begun,
    .threads = {notify_all_and_wait, notify_one_once_begun_has_passed},
    .finish = finish_nothing_left,
};

/* The rest of a suspend that has found neither a notification nor the close. */
static bide_frame *suspend_late(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    bide_queue_waiter_start(waiter);
    bide_waiter_queue_enlist(waiter, &bide_notify_ops_);
    return bide_waiter_queue_arm(waiter) ? frame : NULL;
}

/* It joins a line with a waiter of a later phase. */
static void setup_late(void *p)
{
    static const bide_awaiter_ops late_ops = {
        .suspend = suspend_late,
        .resume = bide_notify_resume_,
        .name = "late",
    };
    state *s = p;
    setup_begun(p);
    s->begun.waiter.awaiter.ops = &late_ops;
    notify_all(p);
    enlist(p, 0);
}

static void finish_late_beside(void *p)
{
    bide_check_assert(end_of(p, 0) == -ECANCELED);
    finish_nothing_left(p);
}

static const bide_check_scenario late_beside = {
    .name = "a_waiter_late_in_line_has_been_notified_while_another_leaves",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_late,
    .threads = {wait_as_begun, stop_first},
    .finish = finish_late_beside,
};

static void finish_late_and_one(void *p)
{
    bide_check_assert(end_of(p, 0) == 0);
    finish_nothing_left(p);
}

static const bide_check_scenario late_and_one = {
    .name = "a_waiter_late_in_line_takes_nothing_from_those_in_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_late,
    .threads = {wait_as_begun, notify_one},
    .finish = finish_late_and_one,
};

static void finish_late_and_closed(void *p)
{
    bide_check_assert(end_of(p, 0) == -EPIPE);
}

static const bide_check_scenario late_and_closed = {
    .name = "a_waiter_late_in_line_has_been_notified_before_it_is_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_late,
    .threads = {wait_as_begun, close_it},
    .finish = finish_late_and_closed,
};

/* A wait that begins after all were notified is not ended by that notification. */
static void notify_the_other_later(void *p)
{
    state *s = p;
    if (bide_atomic_load(&s->flag, acquire) == 1) {
        s->data = 8;
        bide_notify_all(&s->notify);
    } else {
        bide_notify_close(&s->notify);
    }
}

static void notify_all_and_wait_for_another(void *p)
{
    state *s = p;
    bide_notify_waiter wait;
    notify_all(p);
    bide_awaiter *next = bide_notify_wait(&wait, &s->notify);
    bide_atomic_store(&s->flag, 1, release);
    int status = bide_check_await(next);
    bide_check_assert(status == -EPIPE || s->data == 8);
}

static void finish_not_remembered(void *p)
{
    state *s = p;
    int first = end_of(s, 0);
    int second = end_of(s, 1);
    bide_check_assert(first == 0 || first == -ECANCELED || first == -EPIPE);
    bide_check_assert(second == 0 || second == -EPIPE);
    finish_nothing_left(p);
}

static const bide_check_scenario not_remembered = {
    .name = "a_wait_that_begins_after_all_were_notified_waits_for_the_next",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {notify_all_and_wait_for_another, notify_the_other_later, stop_first},
    .finish = finish_not_remembered,
};

/* ---- Destroyed before it runs ---- */

static void setup_kept(void *p)
{
    setup_two(p);
    for (int i = 0; i < 2; i++)
        ((state *)p)->early[i]->context.scheduler = &kept;
}

/* The notification of one was not consumed: it is available. */
static void finish_one_left(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++)
        bide_check_assert(end_of(s, i) == 1); /* destroys it */
    bide_check_assert(bide_notify_try_wait(&s->notify));
    finish_nothing_left(p);
}

static void notify_all_of_them(void *p)
{
    bide_notify_all(&((state *)p)->notify);
}

/* Waiters that were notified with all had nothing to pass on. */
static void finish_none_left(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++)
        bide_check_assert(end_of(s, i) == 1);
    finish_nothing_left(p);
}

static const bide_check_scenario not_passed_on = {
    .name = "nothing_is_left_when_those_are_destroyed_that_were_notified_as_all_are",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_kept,
    .threads = {notify_all_of_them, notify_all_of_them},
    .finish = finish_none_left,
};

static const bide_check_scenario passed_on = {
    .name = "a_notification_of_one_is_left_when_those_are_destroyed_that_were_notified_as_all_were",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_kept,
    .threads = {notify_one, notify_all},
    .finish = finish_one_left,
};

/* The notification came before the close, or not. A wait that had it gives it back: one wait passes. */
static void setup_one_kept(void *p)
{
    setup_one(p);
    ((state *)p)->early[0]->context.scheduler = &kept;
}

static void close_notify(void *p)
{
    bide_notify_close(&((state *)p)->notify);
}

static void finish_given_back(void *p)
{
    state *s = p;
    bide_notify_waiter wait;
    bool had = s->early[0]->wait.waiter.awaiter.ops->withdraw == bide_notify_pass_on_;
    bide_check_assert(end_of(s, 0) == 1);
    bide_check_assert(bide_notify_try_wait(&s->notify) == had);
    bide_check_assert(bide_check_await(bide_notify_wait(&wait, &s->notify)) == -EPIPE);
}

static const bide_check_scenario given_back = {
    .name = "a_notification_that_is_given_back_is_there_although_it_was_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_kept,
    .threads = {notify_one, close_notify},
    .finish = finish_given_back,
};

/* ---- An event: reset, and a lock built on it ---- */

static void set_it(void *p)
{
    bide_auto_event_set(&((state *)p)->event);
}

static void setup_set(void *p)
{
    setup(p);
    set_it(p);
}

static void lock_by_it(void *p)
{
    state *s = p;
    bide_auto_event_waiter wait;
    bide_check_assert(bide_check_await(bide_auto_event_wait(&wait, &s->event)) == 0);
    s->data++;
    bide_auto_event_set(&s->event);
}

static void finish_lock(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 2);
    bide_check_assert(bide_auto_event_try_wait(&s->event));
    bide_check_assert(!bide_auto_event_try_wait(&s->event));
}

static const bide_check_scenario lock = {
    .name = "an_event_that_its_waiters_set_again_is_a_lock",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_set,
    .threads = {lock_by_it, lock_by_it},
    .finish = finish_lock,
};

static void write_and_set(void *p)
{
    state *s = p;
    bide_atomic_store(&s->flag, 1, relaxed);
    bide_auto_event_set(&s->event);
}

/* A thread that resets the event and sees no announcement is woken later. */
static void reset_look_and_wait(void *p)
{
    state *s = p;
    bide_auto_event_waiter wait;
    bide_auto_event_reset(&s->event);
    if (bide_atomic_load(&s->flag, relaxed) == 0)
        bide_check_assert(bide_check_await(bide_auto_event_wait(&wait, &s->event)) == 0);
}

static const bide_check_scenario reset = {
    .name = "a_reset_shows_what_was_announced",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_set, reset_look_and_wait},
};

static void wait_for_event(void *p)
{
    state *s = p;
    bide_auto_event_waiter wait;
    bide_check_assert(bide_check_await(bide_auto_event_wait(&wait, &s->event)) == 0);
}

static void reset_it(void *p)
{
    bide_auto_event_reset(&((state *)p)->event);
}

static void set_until_it_has_passed(void *p)
{
    state *s = p;
    bide_auto_event_set(&s->event);
    bide_auto_event_set(&s->event);
}

/* Two sets and one reset: at least one set is left, or came during the wait. */
static void wait_or_not(void *p)
{
    state *s = p;
    if (bide_auto_event_try_wait(&s->event))
        bide_atomic_fetch_add(&s->passed, 1, relaxed);
}

static void finish_reset(void *p)
{
    state *s = p;
    uint32_t passed = bide_atomic_load(&s->passed, relaxed);
    if (bide_auto_event_try_wait(&s->event))
        passed++;
    bide_check_assert(passed <= 2);
    bide_check_assert(!bide_auto_event_try_wait(&s->event));
}

static const bide_check_scenario reset_and_tried = {
    .name = "it_is_set_twice_reset_and_tried",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_until_it_has_passed, reset_it, wait_or_not},
    .finish = finish_reset,
};

/*
 * A set for a waiter is not removed by a reset: the wait ends, or the last set comes after the
 * reset.
 */
static void reset_and_set(void *p)
{
    reset_it(p);
    set_it(p);
}

static void finish_reset_beside(void *p)
{
    uintptr_t state_left = bide_atomic_load(&((state *)p)->event.notify.queue.state, relaxed);
    bide_check_assert(BIDE_QUEUE_VALUE(state_left) == state_left &&
                      bide_queue_number(state_left) <= 1);
}

static const bide_check_scenario reset_beside = {
    .name = "it_is_reset_while_a_waiter_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, wait_for_event, reset_and_set},
    .finish = finish_reset_beside,
};

/* A set with a waiter in line is for that waiter, and for no other. */
static void setup_in_line(void *p)
{
    state *s = p;
    setup(p);
    enlist_for(s, 0, &s->event.notify);
}

static void finish_in_line(void *p)
{
    state *s = p;
    bide_check_assert(end_of(s, 0) == 0);
    bide_check_assert(!bide_auto_event_try_wait(&s->event));
}

static const bide_check_scenario reset_in_line = {
    .name = "it_is_set_and_reset_while_a_waiter_is_in_line",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_in_line,
    .threads = {set_it, reset_it},
    .finish = finish_in_line,
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    setup(p);
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_notify_init(s->allocated);
}

static void notify_allocated(void *p)
{
    bide_notify_one(((state *)p)->allocated);
}

static void wait_and_free(void *p)
{
    state *s = p;
    bide_notify_waiter wait;
    bide_check_assert(bide_check_await(bide_notify_wait(&wait, s->allocated)) == 0);
    bide_check_free(s->allocated);
}

static const bide_check_scenario freed = {
    .name = "the_waiter_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {notify_allocated, wait_and_free},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const scenarios[] = {
        &one,
        &two,
        &cancelled,
        &cancelled_alone,
        &remembered,
        &looked,
        &begun_beside,
        &closed,
        &closed_after,
        &all,
        &all_cancelled,
        &late,
        &late_beside,
        &late_and_one,
        &late_and_closed,
        &not_remembered,
        &not_passed_on,
        &passed_on,
        &given_back,
        &lock,
        &reset,
        &reset_and_tried,
        &reset_beside,
        &reset_in_line,
        &freed,
        NULL,
    };
    static const char *const files[] = {"notify.h", "notify.c", "auto_event.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){scenarios, files, NULL});
}
