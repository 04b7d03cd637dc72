/*
 * The barging mutex: locking by two and three, who was woken competes, loses and is handed it, cancellation and closing
 * on the way, and memory that goes as soon as it may. (What it has from its queue is checked in waiter_queue_check.c.)
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
    struct early *early[2];
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

/* Nobody has it, is on his way or is to be handed it. */
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
    .name = "one_locks_it_and_two_try",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {lock_and_unlock, try_to_lock, try_to_lock},
    .finish = finish_free,
};

/* ---- One has it, others are in line ---- */

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

static void enlist(state *s, int index)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL};
    early->state = s;
    early->status = 1;
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
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

/* So often that it is left to who was woken, whom the other thread is running. */
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

static void finish_canceled(void *p)
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

/* Who was woken loses, twice at most, and is then handed it. */
static const bide_check_scenario lost = {
    .name = "one_in_line_competes_with_two_who_come",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_and_try_again, try_to_lock},
    .finish = finish_held,
};

static const bide_check_scenario canceled = {
    .name = "the_first_in_line_is_asked_to_stop_and_the_second_has_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_held,
    .threads = {unlock_it, stop_first},
    .finish = finish_two_held,
};

static const bide_check_scenario canceled_after_loss = {
    .name = "one_in_line_competes_with_two_and_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_and_try_again, try_to_lock, stop_first},
    .finish = finish_canceled,
};

/* It is left to him, and he has it, or gives up, or asks for it all the same. */
static const bide_check_scenario left = {
    .name = "one_in_line_is_passed_and_it_is_left_to_him",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_held,
    .threads = {unlock_it, pass},
    .finish = finish_held,
};

static const bide_check_scenario left_and_canceled = {
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
    .name = "who_finds_it_closed_sees_what_came_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {write_and_close, lock_or_see_why},
};

/* ---- The memory goes as soon as it may ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_barging_mutex_init(s->allocated);
    s->users = 2;
}

/* The last user frees it, right after it has unlocked it. */
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
        &lost,
        &canceled,
        &canceled_after_loss,
        &left,
        &left_and_canceled,
        &closed,
        &closed_with_reason,
        &freed,
        NULL,
    };
    static const char *const files[] = {"barging_mutex.h", "barging_mutex.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
