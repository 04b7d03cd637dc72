/*
 * The barging mutex with two and three lockers: a woken waiter competes, loses, and is handed the
 * mutex; cancellation and closing at the same time; and memory that is freed as early as allowed.
 * waiter_queue_check.c checks the queue.
 */
#include "bide/barging_mutex.h"
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

/* A coroutine that has enlisted in the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_barging_mutex_waiter lock;
    int status;
};

typedef struct state {
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter holder; /* locked in the setup */
    bide_barging_mutex *allocated;
    struct early *early[3];
    bide_scheduler later; /* runs the woken coroutines on request */
    bide_awaiter *posted[8];
    bide_atomic(uint32_t) posted_count;
    uint32_t run_count;
    int data;
    int users;
} state;

static void setup(void *p)
{
    bide_barging_mutex_init(&((state *)p)->mutex);
}

static void lock_and_unlock(void *p)
{
    state *s = p;
    bide_barging_mutex_waiter lock;
    bide_check_assert(bide_check_await(bide_barging_mutex_lock(&lock, &s->mutex)) == 0);
    s->data++;
    bide_barging_mutex_unlock(&lock);
}

static void try_to_lock(void *p)
{
    state *s = p;
    bide_barging_mutex_waiter lock;
    if (bide_barging_mutex_try_lock(&lock, &s->mutex)) {
        s->data++;
        bide_barging_mutex_unlock(&lock);
    }
}

/* The mutex is free, and no waiter is woken or about to be handed it. */
static void finish_free(void *p)
{
    state *s = p;
    bide_check_assert(BIDE_QUEUE_VALUE(bide_atomic_load(&s->mutex.queue.state, relaxed)) == 0);
    bide_check_assert(bide_waiter_queue_is_idle(&s->mutex.queue));
}

static const bide_check_scenario two_lock = {
    .name = "two_lock_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {lock_and_unlock, lock_and_unlock},
    .finish = finish_free,
};

static const bide_check_scenario tried = {
    .name = "a_holder_and_two_that_try",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {lock_and_unlock, try_to_lock, try_to_lock},
    .finish = finish_free,
};

/* ---- One holds it, others are in line ---- */

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_barging_mutex_lock(&self->lock, &self->state->mutex));
    if (self->status == 0) {
        self->state->data++;
        bide_barging_mutex_unlock(&self->lock);
    }
    bide_end();
}

static void enlist_in(state *s, int index, bide_scheduler *scheduler)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static void enlist(state *s, int index)
{
    enlist_in(s, index, &bide_inline_scheduler);
}

static void setup_held(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_barging_mutex_try_lock(&s->holder, &s->mutex));
    enlist(s, 0);
}

static void setup_two_held(void *p)
{
    setup_held(p);
    enlist(p, 1);
}

static void unlock_it(void *p)
{
    state *s = p;
    s->data++;
    bide_barging_mutex_unlock(&s->holder);
}

static void unlock_and_try_again(void *p)
{
    unlock_it(p);
    try_to_lock(p);
}

/* Unlocks so often that the mutex is left to the woken waiter, which the other thread runs. */
static void pass(void *p)
{
    for (int i = 0; i < BIDE_BARGING_PASSES; i++)
        try_to_lock(p);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void close_it(void *p)
{
    bide_barging_mutex_close(&((state *)p)->mutex);
}

static void finish_one(state *s, int index, int otherwise)
{
    struct early *early = s->early[index];
    bide_check_assert(bide_done(&early->task.frame));
    bide_check_assert(early->status == 0 || early->status == otherwise);
    bide_check_free(early);
}

static void finish_held(void *p)
{
    finish_one(p, 0, 0);
    finish_free(p);
}

static void finish_cancelled(void *p)
{
    finish_one(p, 0, -ECANCELED);
    finish_free(p);
}

static void finish_two_held(void *p)
{
    finish_one(p, 0, -ECANCELED);
    finish_one(p, 1, 0);
    finish_free(p);
}

/* The woken waiter loses, twice at most, and is then handed the mutex. */
static const bide_check_scenario lost = {
    .name = "a_waiter_in_line_competes_with_two_that_come",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_and_try_again, try_to_lock},
    .finish = finish_held,
};

static const bide_check_scenario cancelled = {
    .name = "the_first_in_line_is_asked_to_stop_and_the_second_has_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {unlock_it, stop_first},
    .finish = finish_two_held,
};

static const bide_check_scenario cancelled_after_loss = {
    .name = "a_waiter_in_line_competes_with_two_and_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_and_try_again, try_to_lock, stop_first},
    .finish = finish_cancelled,
};

/* The mutex is left to the waiter, which takes it, leaves, or competes for it. */
static const bide_check_scenario left = {
    .name = "a_waiter_in_line_is_passed_and_then_has_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_it, pass},
    .finish = finish_held,
};

static const bide_check_scenario left_and_cancelled = {
    .name = "the_first_in_line_is_passed_and_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {unlock_it, pass, stop_first},
    .finish = finish_two_held,
};

static void finish_closed(void *p)
{
    finish_one(p, 0, -EPIPE);
    finish_one(p, 1, -EPIPE);
    finish_free(p);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_it_is_unlocked",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {unlock_it, try_to_lock, close_it},
    .finish = finish_closed,
};

static void write_and_close(void *p)
{
    state *s = p;
    s->users = 7;
    bide_barging_mutex_close(&s->mutex);
}

static void lock_or_see_why(void *p)
{
    state *s = p;
    bide_barging_mutex_waiter lock;
    if (bide_check_await(bide_barging_mutex_lock(&lock, &s->mutex)) == 0)
        bide_barging_mutex_unlock(&lock);
    else
        bide_check_assert(s->users == 7);
}

static const bide_check_scenario closed_with_reason = {
    .name = "finding_it_closed_shows_what_came_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_close, lock_or_see_why},
};

/* ---- The woken waiter runs later ---- */

static void post_for_later(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    state *s = bide_container_of(scheduler, state, later);
    (void)last;
    for (bide_awaiter *next; first != NULL; first = next) {
        next = first->link;
        s->posted[bide_atomic_fetch_add(&s->posted_count, 1, relaxed)] = first;
    }
}

static bool take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    state *s = bide_container_of(scheduler, state, later);
    for (uint32_t i = s->run_count; i < bide_atomic_load(&s->posted_count, relaxed); i++) {
        if (s->posted[i] == awaiter) {
            s->posted[i] = NULL;
            return true;
        }
    }
    return false;
}

static void run_next(void *p)
{
    state *s = p;
    bide_awaiter *awaiter = s->posted[s->run_count++];
    if (awaiter != NULL)
        bide_resume(awaiter->frame);
}

static void run_all(state *s)
{
    while (s->run_count < bide_atomic_load(&s->posted_count, relaxed))
        run_next(s);
}

static bool was_posted(state *s, int index)
{
    bool found = false;
    for (uint32_t i = 0; i < bide_atomic_load(&s->posted_count, relaxed); i++)
        found = found || s->posted[i] == &s->early[index]->lock.wait.awaiter;
    return found;
}

static void enlist_for_later(state *s, int count)
{
    setup(s);
    bide_atomic_init(&s->posted_count, 0);
    s->later = (bide_scheduler){.post = post_for_later, .take_back = take_back};
    bide_check_assert(bide_barging_mutex_try_lock(&s->holder, &s->mutex));
    for (int i = 0; i < count; i++)
        enlist_in(s, i, &s->later);
}

static void setup_two_later(void *p)
{
    enlist_for_later(p, 2);
}

static void setup_three_later(void *p)
{
    enlist_for_later(p, 3);
}

static void stop_third(void *p)
{
    bide_stop_request(&((state *)p)->early[2]->stop);
}

/* The first was woken, and the third left because it was cancelled. */
static void finish_one_woken(void *p)
{
    state *s = p;
    bide_check_assert(!was_posted(s, 1));
    run_all(s);
    finish_one(s, 0, 0);
    finish_one(s, 1, 0);
    finish_one(s, 2, -ECANCELED);
    finish_free(p);
}

static const bide_check_scenario one_woken = {
    .name = "while_a_waiter_is_on_its_way_no_other_is_woken",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_three_later,
    .threads = {unlock_and_try_again, stop_third},
    .finish = finish_one_woken,
};

static void setup_one_later(void *p)
{
    enlist_for_later(p, 1);
}

static void unlock_and_pass(void *p)
{
    unlock_it(p);
    pass(p);
}

static void finish_passed(void *p)
{
    state *s = p;
    bide_check_assert(s->data <= 1 + BIDE_BARGING_PASSES);
    run_all(s);
    finish_held(p);
}

static const bide_check_scenario passed = {
    .name = "a_woken_waiter_is_passed_so_often_and_no_more",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_later,
    .threads = {unlock_and_pass, try_to_lock},
    .finish = finish_passed,
};

/* The first in line was woken, and another holder has the mutex. */
static void barge_in(state *s)
{
    bide_barging_mutex_unlock(&s->holder);
    bide_check_assert(bide_barging_mutex_try_lock(&s->holder, &s->mutex));
}

static void setup_barged_in(void *p)
{
    setup_two_later(p);
    barge_in(p);
}

/* The second is not woken before the first, which came earlier, has had the mutex. */
static void finish_in_order(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->early[0]->task.frame) || !was_posted(s, 1));
    run_all(s);
    finish_one(s, 0, 0);
    finish_one(s, 1, 0);
    finish_free(p);
}

static const bide_check_scenario in_order = {
    .name = "a_waiter_that_loses_is_first_in_line_again",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_barged_in,
    .threads = {run_next, unlock_it},
    .finish = finish_in_order,
};

/* The first in line has lost as often as it may and was woken; another holder has the mutex. */
static void setup_about_to_lose(void *p)
{
    enlist_for_later(p, 1);
    for (int i = 0; i < BIDE_BARGING_LOSSES; i++) {
        barge_in(p);
        run_next(p);
    }
    barge_in(p);
}

/* If it competes in time, it gets the mutex first. */
static void unlock_and_try_after_it(void *p)
{
    state *s = p;
    unlock_it(p);
    uintptr_t found = bide_atomic_load(&s->mutex.queue.state, relaxed);
    bide_barging_mutex_waiter lock;
    if (bide_barging_mutex_try_lock(&lock, &s->mutex)) {
        bide_check_assert((found & BIDE_BARGING_HANDS_OVER_) == 0 || s->data == 2);
        bide_barging_mutex_unlock(&lock);
    }
}

static void finish_asked(void *p)
{
    run_all(p);
    finish_held(p);
}

static const bide_check_scenario asked = {
    .name = "a_waiter_that_has_asked_for_it_is_not_passed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_about_to_lose,
    .threads = {run_next, unlock_and_try_after_it},
    .finish = finish_asked,
};

/* The first in line is to be handed the mutex. */
static void lose_too_often(state *s, int count)
{
    enlist_for_later(s, count);
    for (int i = 0; i <= BIDE_BARGING_LOSSES; i++) {
        barge_in(s);
        run_next(s);
    }
}

static void setup_one_lost(void *p)
{
    lose_too_often(p, 1);
}

static void setup_two_lost(void *p)
{
    lose_too_often(p, 2);
}

/* It was handed over, and no other thread had it in between. */
static void finish_handed_over(void *p)
{
    state *s = p;
    bide_check_assert(bide_barging_mutex_is_locked(&s->mutex));
    bide_check_assert(s->data == 1);
    run_all(s);
    finish_held(p);
}

static const bide_check_scenario handed_over = {
    .name = "a_waiter_that_has_lost_too_often_is_handed_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_lost,
    .threads = {unlock_it, try_to_lock},
    .finish = finish_handed_over,
};

static void finish_lost_and_cancelled(void *p)
{
    run_all(p);
    finish_cancelled(p);
}

static const bide_check_scenario lost_and_cancelled = {
    .name = "a_waiter_that_has_lost_too_often_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_lost,
    .threads = {unlock_it, stop_first},
    .finish = finish_lost_and_cancelled,
};

/* The first is destroyed before it runs: the second continues. */
static void finish_destroyed(void *p)
{
    state *s = p;
    bide_check_assert(was_posted(s, 0) && !was_posted(s, 1));
    bide_destroy(&s->early[0]->task.frame);
    bide_check_assert(s->early[0]->status == 1);
    bide_check_free(s->early[0]);
    bide_check_assert(was_posted(s, 1));
    run_all(s);
    finish_one(s, 1, 0);
    finish_free(p);
}

static const bide_check_scenario destroyed = {
    .name = "a_woken_waiter_is_destroyed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_later,
    .threads = {unlock_it, try_to_lock},
    .finish = finish_destroyed,
};

static const bide_check_scenario destroyed_with_it = {
    .name = "the_new_holder_is_destroyed_before_it_runs",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_lost,
    .threads = {unlock_it, try_to_lock},
    .finish = finish_destroyed,
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_barging_mutex_init(s->allocated);
    s->users = 2;
}

/* The last user frees the mutex directly after its unlock. */
static void use_and_free(void *p)
{
    state *s = p;
    bide_barging_mutex_waiter lock;
    bide_check_await(bide_barging_mutex_lock(&lock, s->allocated));
    bool last = --s->users == 0;
    bide_barging_mutex_unlock(&lock);
    if (last)
        bide_check_free(s->allocated);
}

static const bide_check_scenario freed = {
    .name = "the_last_to_unlock_it_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {use_and_free, use_and_free},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &two_lock,
        &tried,
        &one_woken,
        &passed,
        &in_order,
        &asked,
        &handed_over,
        &lost_and_cancelled,
        &destroyed,
        &destroyed_with_it,
        &lost,
        &cancelled,
        &cancelled_after_loss,
        &left,
        &left_and_cancelled,
        &closed,
        &closed_with_reason,
        &freed,
        NULL,
    };
    static const char *const files[] = {"barging_mutex.h", "barging_mutex.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
