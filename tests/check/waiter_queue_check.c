/*
 * The waiter queue, by a mutex and a semaphore: locking by two and three, hand-overs that race with
 * cancellation and with closing, and memory that is freed as early as allowed.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/notify.h"
#include "bide/semaphore.h"
#include "bide/stop.h"
#include "bide/task.h"

/* A coroutine that has enlisted in the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_mutex_waiter lock;
    bide_semaphore_waiter wait;
    bide_notify_waiter look;
    uint32_t permits; /* of the semaphore; 0: it locks the mutex */
    int status;
};

typedef struct state {
    bide_mutex mutex;
    bide_semaphore semaphore;
    bide_mutex_waiter holder; /* locked in the setup */
    bide_mutex *allocated;
    bide_semaphore *allocated_semaphore;
    bide_notify notify;
    bide_notify_waiter late; /* made in the setup, awaited later */
    struct early *early[3];
    int data;
    int users;
} state;

static void setup(void *p)
{
    state *s = p;
    bide_mutex_init(&s->mutex);
    bide_semaphore_init(&s->semaphore, 0);
    s->allocated_semaphore = NULL;
}

/* ---- Locking ---- */

static void lock_and_unlock(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_check_assert(bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == 0);
    s->data++;
    bide_mutex_unlock(&lock);
}

static void try_to_lock(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    if (bide_mutex_try_lock(&lock, &s->mutex)) {
        s->data++;
        bide_mutex_unlock(&lock);
    }
}

static void finish_free(void *p)
{
    bide_mutex_waiter lock;
    bide_check_assert(bide_mutex_try_lock(&lock, &((state *)p)->mutex));
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
    if (self->permits != 0) {
        bide_semaphore *semaphore = self->state->allocated_semaphore;
        if (semaphore == NULL)
            semaphore = &self->state->semaphore;
        bide_await_status(self->status,
                          bide_semaphore_acquire_many(&self->wait, semaphore, self->permits));
    } else {
        bide_await_status(self->status, bide_mutex_lock(&self->lock, &self->state->mutex));
        if (self->status == 0) {
            self->state->data++;
            bide_mutex_unlock(&self->lock);
        }
    }
    bide_end();
}

static void enlist_with(state *s, int index, uint32_t permits, const bide_point *body)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->permits = permits;
    early->status = 1;
    bide_start(&early->task.frame, body, &early->context);
    bide_resume(&early->task.frame);
}

static void enlist(state *s, int index, uint32_t permits)
{
    enlist_with(s, index, permits, &early_body);
}

static void setup_held(void *p)
{
    state *s = p;
    setup(p);
    bide_check_assert(bide_mutex_try_lock(&s->holder, &s->mutex));
    enlist(s, 0, 0);
}

static void setup_two_held(void *p)
{
    setup_held(p);
    enlist(p, 1, 0);
}

static void unlock_it(void *p)
{
    state *s = p;
    s->data++;
    bide_mutex_unlock(&s->holder);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void close_it(void *p)
{
    bide_mutex_close(&((state *)p)->mutex);
}

static void finish_one(state *s, int index, int otherwise)
{
    struct early *early = s->early[index];
    bide_check_assert(bide_done(&early->task.frame));
    bide_check_assert(early->status == 0 || early->status == otherwise);
    bide_check_free(early);
}

static void finish_cancelled(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 1 + (s->early[0]->status == 0));
    finish_one(s, 0, -ECANCELED);
    finish_free(p);
}

static const bide_check_scenario cancelled = {
    .name = "it_is_handed_over_to_a_waiter_that_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_it, stop_first},
    .finish = finish_cancelled,
};

static void finish_cancelled_and_come(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 2 + (s->early[0]->status == 0));
    finish_one(s, 0, -ECANCELED);
    finish_free(p);
}

static void finish_two_cancelled(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 2 + (s->early[0]->status == 0));
    finish_one(s, 1, 0);
    finish_one(s, 0, -ECANCELED);
    finish_free(p);
}

static const bide_check_scenario first_cancelled = {
    .name = "the_first_in_line_is_asked_to_stop_and_the_second_has_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {unlock_it, stop_first},
    .finish = finish_two_cancelled,
};

static const bide_check_scenario cancelled_while_another_comes = {
    .name = "a_waiter_is_asked_to_stop_while_another_comes",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_it, stop_first, lock_and_unlock},
    .finish = finish_cancelled_and_come,
};

static void stop_second(void *p)
{
    bide_stop_request(&((state *)p)->early[1]->stop);
}

static void finish_both_cancelled(void *p)
{
    state *s = p;
    bide_check_assert(s->data == 1 + (s->early[0]->status == 0) + (s->early[1]->status == 0));
    finish_one(s, 0, -ECANCELED);
    finish_one(s, 1, -ECANCELED);
    finish_free(p);
}

static const bide_check_scenario both_cancelled = {
    .name = "both_in_line_are_asked_to_stop_while_it_is_unlocked",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {unlock_it, stop_first, stop_second},
    .finish = finish_both_cancelled,
};

/*
 * Removes the second waiter. Meanwhile the first may be named for removal, with its canceller
 * serving on its behalf. Then a third arrives and is named too: it may still be among the arrivals.
 */
static void stop_second_and_who_comes(void *p)
{
    state *s = p;
    bide_stop_request(&s->early[1]->stop);
    enlist(s, 2, 0);
    bide_stop_request(&s->early[2]->stop);
}

static void finish_all_cancelled(void *p)
{
    for (int i = 0; i < 3; i++) {
        bide_check_assert(((state *)p)->early[i]->status == -ECANCELED);
        finish_one(p, i, -ECANCELED);
    }
}

static const bide_check_scenario named_as_it_comes = {
    .name = "a_waiter_comes_and_is_asked_to_stop_while_another_is_removed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {stop_first, stop_second_and_who_comes},
    .finish = finish_all_cancelled,
};

static const bide_check_scenario three_lock = {
    .name = "three_lock_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {lock_and_unlock, lock_and_unlock, lock_and_unlock},
    .finish = finish_free,
};

static void finish_closed(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    finish_one(s, 0, -EPIPE);
    bide_check_assert(!bide_mutex_is_locked(&s->mutex));
    bide_check_assert(bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == -EPIPE);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_it_is_handed_over",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_it, close_it},
    .finish = finish_closed,
};

static void finish_cancelled_and_closed(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0]->status == -ECANCELED || s->early[0]->status == -EPIPE);
    bide_check_assert(s->early[1]->status == -EPIPE);
    finish_one(s, 0, s->early[0]->status);
    finish_one(s, 1, -EPIPE);
}

static const bide_check_scenario cancelled_and_closed = {
    .name = "a_waiter_in_line_is_asked_to_stop_and_it_is_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {stop_first, close_it},
    .finish = finish_cancelled_and_closed,
};

static void lock_or_not(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    int status = bide_check_await(bide_mutex_lock(&lock, &s->mutex));
    bide_check_assert(status == 0 || status == -EPIPE);
    if (status == 0) {
        s->data++;
        bide_mutex_unlock(&lock);
    }
}

static void write_and_close(void *p)
{
    state *s = p;
    s->users = 7;
    bide_mutex_close(&s->mutex);
}

static void lock_or_see_why(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    if (bide_check_await(bide_mutex_lock(&lock, &s->mutex)) == 0)
        bide_mutex_unlock(&lock);
    else
        bide_check_assert(s->users == 7);
}

static const bide_check_scenario closed_by_third = {
    .name = "a_third_closes_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {lock_or_not, lock_or_not, close_it},
};

static const bide_check_scenario closed_with_reason = {
    .name = "finding_it_closed_shows_what_came_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_close, lock_or_see_why},
};

/* The same while the close ends a waiter in line. */
static void finish_closed_held(void *p)
{
    finish_one(p, 0, -EPIPE);
}

static const bide_check_scenario closed_held_with_reason = {
    .name = "finding_it_being_closed_shows_what_came_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {write_and_close, lock_or_see_why},
    .finish = finish_closed_held,
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_mutex_init(s->allocated);
    s->users = 2;
}

/* The last user frees it directly after its unlock. */
static void use_and_free(void *p)
{
    state *s = p;
    bide_mutex_waiter lock;
    bide_check_await(bide_mutex_lock(&lock, s->allocated));
    bool last = --s->users == 0;
    bide_mutex_unlock(&lock);
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

static void setup_allocated_semaphore(void *p)
{
    state *s = p;
    s->allocated_semaphore = bide_check_alloc(sizeof *s->allocated_semaphore);
    bide_semaphore_init(s->allocated_semaphore, 0);
}

static void release_one(void *p)
{
    bide_semaphore_release(((state *)p)->allocated_semaphore, 1);
}

static void acquire_two_and_free(void *p)
{
    state *s = p;
    bide_semaphore_waiter wait;
    bide_check_await(bide_semaphore_acquire_many(&wait, s->allocated_semaphore, 2));
    bide_check_free(s->allocated_semaphore);
}

static const bide_check_scenario freed_semaphore = {
    .name = "acquiring_all_lets_the_holder_free_the_semaphore",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated_semaphore,
    .threads = {release_one, release_one, acquire_two_and_free},
};

/* Continues in the releasing thread, and frees the object that this thread has waited on. */
struct freeing {
    bide_task task;
    state *state;
    bide_semaphore_waiter wait;
};

bide_coroutine(freeing_body)
{
    bide_begin(freeing_body, struct freeing * self);
    bide_await(bide_semaphore_acquire(&self->wait, self->state->allocated_semaphore));
    bide_check_free(self->state->allocated_semaphore);
    bide_end();
}

static void acquire_and_free(void *p)
{
    struct freeing freeing = {.state = p};
    bide_check_await(bide_task_init(&freeing.task, &freeing_body));
}

static void setup_one_waits(void *p)
{
    setup_allocated_semaphore(p);
    enlist(p, 0, 1);
}

static void release_two(void *p)
{
    bide_semaphore_release(((state *)p)->allocated_semaphore, 2);
}

static void finish_one_waited(void *p)
{
    finish_one(p, 0, 0);
}

/* The server of the other waiter may find the new arrival before that has announced itself. */
static const bide_check_scenario freed_elsewhere = {
    .name = "it_is_freed_in_the_thread_that_has_released",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_waits,
    .threads = {release_two, acquire_and_free},
    .finish = finish_one_waited,
};

/* ---- Many permits ---- */

static void setup_two_sizes(void *p)
{
    setup(p);
    enlist(p, 0, 2);
    enlist(p, 1, 1);
}

static void give_one(void *p)
{
    bide_semaphore_release(&((state *)p)->semaphore, 1);
}

/* The first waiter, which wants two permits, blocks the second until it has left. */
static void finish_two_sizes(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0]->status == -ECANCELED && s->early[1]->status == 0);
    bide_check_assert(bide_semaphore_available(&s->semaphore) == 0);
    finish_one(s, 0, -ECANCELED);
    finish_one(s, 1, 0);
}

static const bide_check_scenario two_sizes = {
    .name = "a_smaller_wish_goes_on_when_a_larger_one_has_gone",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_sizes,
    .threads = {give_one, stop_first},
    .finish = finish_two_sizes,
};

static void close_semaphore(void *p)
{
    bide_semaphore_close(&((state *)p)->semaphore);
}

/*
 * The permits do not suffice for the first waiter, and it is the first one's turn, so the second
 * gets none either.
 */
static void finish_two_sizes_closed(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0]->status == -EPIPE && s->early[1]->status == -EPIPE);
    bide_check_assert(bide_semaphore_available(&s->semaphore) == 1);
    finish_one(s, 0, -EPIPE);
    finish_one(s, 1, -EPIPE);
}

static const bide_check_scenario two_sizes_closed = {
    .name = "a_smaller_wish_does_not_pass_a_larger_one_where_it_is_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_sizes,
    .threads = {give_one, close_semaphore},
    .finish = finish_two_sizes_closed,
};

static void try_one(void *p)
{
    state *s = p;
    if (bide_semaphore_try_acquire(&s->semaphore, 1))
        bide_semaphore_release(&s->semaphore, 1);
}

static void acquire_one(void *p)
{
    state *s = p;
    bide_semaphore_waiter wait;
    bide_check_assert(bide_check_await(bide_semaphore_acquire(&wait, &s->semaphore)) == 0);
}

static const bide_check_scenario tried_semaphore = {
    .name = "a_waiter_and_a_try",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {give_one, acquire_one, try_one},
};

/* ---- Out of turn ---- */

bide_coroutine(look_body)
{
    bide_begin(look_body, struct early * self);
    bide_await_status(self->status, bide_notify_wait(&self->look, &self->state->notify));
    bide_end();
}

static void setup_one_late(void *p)
{
    state *s = p;
    bide_notify_init(&s->notify);
    bide_await_later(bide_notify_wait(&s->late, &s->notify));
}

/* Serves as it removes the second waiter; meanwhile the late one may arrive behind the first. */
static void notify_and_enlist_and_stop(void *p)
{
    state *s = p;
    bide_notify_all(&s->notify);
    enlist_with(s, 0, 0, &look_body);
    enlist_with(s, 1, 0, &look_body);
    bide_stop_request(&s->early[1]->stop);
}

static void await_late(void *p)
{
    bide_check_assert(bide_check_await(&((state *)p)->late.waiter.awaiter) == 0);
}

static void finish_late(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0]->status == 1 && s->early[1]->status == -ECANCELED);
    bide_notify_all(&s->notify);
    bide_check_assert(s->early[0]->status == 0);
    finish_one(s, 0, 0);
    finish_one(s, 1, -ECANCELED);
}

static const bide_check_scenario late = {
    .name = "a_due_waiter_comes_behind_one_that_is_not_while_another_serves",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_late,
    .threads = {notify_and_enlist_and_stop, await_late},
    .finish = finish_late,
    .preemptions = 2,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &two_lock,
        &three_lock,
        &tried,
        &cancelled,
        &first_cancelled,
        &closed,
        &closed_by_third,
        &closed_with_reason,
        &closed_held_with_reason,
        &freed,
        &freed_semaphore,
        &freed_elsewhere,
        &cancelled_and_closed,
        &two_sizes,
        &tried_semaphore,
        &cancelled_while_another_comes,
        &both_cancelled,
        &named_as_it_comes,
        &two_sizes_closed,
        &late,
        NULL,
    };
    static const char *const files[] = {"waiter_queue.h", "waiter_queue.c", "mutex.h", "mutex.c",
                                        "semaphore.h",    "semaphore.c",    NULL};
    static const bide_check_reason reasons[] = {
        {"queue_announce", "compare_exchange", "&queue->state", "relaxed",
         "the push, which comes before it, would have to read from the exchange that comes after: "
         "C11 allows it, the checker's model does not"},
        {"queue_request_sweep", "fetch_or", "&queue->leaving", "relaxed",
         "the same for the push, which comes before it; for a waiter that was asked to stop "
         "(event_count) NOT SHOWN: it takes a server that finds SWEEP before CANCEL is said, and "
         "leaves, and another that comes in the same state"},
        {"bide_waiter_queue_cancel", "compare_exchange", "&queue->state", "release to relaxed",
         "the same for the name, which comes before it"},
        {"serving_run", "fetch_and", "&queue->state", "relaxed",
         "the same for the exchanges that take arrivals and names, which come after it"},
        {"bide_waiter_queue_put", "compare_exchange", "&queue->state", "acquire",
         "no mutex and no semaphore looks at the value beside a server; for those that do, see "
         "notify"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
