/*
 * The sequence barrier, 8 bits wide: one publisher, two waiters, targets on both sides of the
 * published number, around the wrap, and the close.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sequence8.h"
#include "bide/stop.h"
#include "bide/task.h"

#include "watched.h"

#include <errno.h>

typedef struct state {
    bide_sequence_barrier8 barrier;
    int data[4]; /* of sequence 254, 255, 0 and 1: written before the publication */
    int reason;  /* the reason of the close: written before it */
    bide_sequence_barrier8 *allocated;
    bide_event ended; /* the wait on it */
    bide_stop_source stop;
    bide_context context; /* with it */
    struct early *early[2];
} state;

static int *data_of(state *s, uint8_t sequence)
{
    return &s->data[(uint8_t)(sequence - 254)];
}

static void setup(void *p)
{
    state *s = p;
    bide_sequence_barrier8_init(&s->barrier, 253);
    WATCH(&s->barrier.waiters);
}

static void publish(state *s, uint8_t sequence)
{
    *data_of(s, sequence) = 1;
    bide_sequence_barrier8_publish(&s->barrier, sequence);
}

/* Waits for `target`; data published by then can be read. */
static int wait_for(state *s, uint8_t target)
{
    bide_sequence_waiter8 wait;
    int status =
        bide_check_await(bide_sequence_barrier8_wait_until_published(&wait, &s->barrier, target));
    bide_check_assert(status == 0 || status == -EPIPE);
    if (status == 0) {
        bide_check_assert(!bide_sequence8_precedes(wait.published, target));
        for (uint8_t i = 254; i != (uint8_t)(wait.published + 1); i++)
            bide_check_assert(*data_of(s, i) == 1);
    } else {
        bide_check_assert(bide_sequence8_precedes(wait.published, target));
        bide_check_assert(s->reason == 1);
    }
    return status;
}

static void publish_one(void *p)
{
    publish(p, 254);
}

static void publish_two(void *p)
{
    publish(p, 254);
    publish(p, 255);
}

static void publish_around(void *p)
{
    publish(p, 255);
    publish(p, 0);
}

static void close_it(void *p)
{
    state *s = p;
    s->reason = 1;
    bide_sequence_barrier8_close(&s->barrier);
}

static void publish_and_close(void *p)
{
    publish(p, 254);
    close_it(p);
}

static void wait_for_first(void *p)
{
    bide_check_assert(wait_for(p, 254) == 0);
}

static void wait_for_second(void *p)
{
    bide_check_assert(wait_for(p, 255) == 0);
}

static void wait_past_the_wrap(void *p)
{
    bide_check_assert(wait_for(p, 0) == 0);
}

static void wait_for_first_or_close(void *p)
{
    wait_for(p, 254);
}

static void wait_in_vain(void *p)
{
    bide_check_assert(wait_for(p, 255) == -EPIPE);
}

static const bide_check_scenario one_waiter = {
    .name = "a_waiter_waits_for_the_second_of_two",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {publish_two, wait_for_second},
};

static const bide_check_scenario two_for_one = {
    .name = "two_wait_for_one_number",
    .never_spurious = true,
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {publish_one, wait_for_first, wait_for_first},
};

static const bide_check_scenario closed = {
    .name = "the_publisher_closes_before_the_second_of_two_is_reached",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {publish_and_close, wait_for_first, wait_in_vain},
};

static const bide_check_scenario closed_by_another = {
    .name = "it_is_closed_while_a_waiter_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {publish_one, close_it, wait_for_first_or_close},
};

/* The publisher has taken the waiter out to check it, and cannot put it back. */
static const bide_check_scenario closed_while_taken = {
    .name = "another_closes_while_the_publisher_has_the_waiter",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {publish_one, close_it, wait_in_vain},
};

/* ---- Nothing is accessed after the end ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_sequence_barrier8_init(s->allocated, 253);
    bide_event_init(&s->ended, false);
}

/* A coroutine, so that it continues in the thread that ends its wait. */
struct teller {
    bide_task task;
    state *state;
    bide_sequence_waiter8 wait;
};

bide_coroutine(teller_body)
{
    bide_begin(teller_body, struct teller * self);
    bide_await(
        bide_sequence_barrier8_wait_until_published(&self->wait, self->state->allocated, 254));
    bide_event_set(&self->state->ended);
    bide_end();
}

static void wait_and_tell(void *p)
{
    struct teller teller = {.state = p};
    bide_check_await(bide_task_init(&teller.task, &teller_body));
}

/* Publishes, and frees the barrier once the wait has ended. */
static void publish_and_free(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_sequence_barrier8_publish(s->allocated, 254);
    bide_check_await(bide_event_wait(&wait, &s->ended));
    bide_check_free(s->allocated);
}

static const bide_check_scenario freed = {
    .name = "the_barrier_is_freed_once_its_wait_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {publish_and_free, wait_and_tell},
};

/* ---- A sweep, a publication and a close at once ----
 *
 * Two wait since the setup. One is cancelled: the canceller takes both, and finds the list shut when it should put the
 * other back. For that waiter, only `published` itself tells whether its number is published. */

struct early {
    bide_task task;
    state *state;
    uint8_t target;
    bide_sequence_waiter8 wait;
    int status;
};

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_sequence_barrier8_wait_until_published(
                                        &self->wait, &self->state->barrier, self->target));
    if (self->status == 0 && self->target >= 254)
        bide_check_assert(*data_of(self->state, self->target) == 1);
    bide_end();
}

static void begin_early(state *s, int i, uint8_t target, const bide_context *context)
{
    struct early *early = s->early[i] = bide_check_alloc(sizeof *early);
    early->state = s;
    early->target = target;
    bide_start(&early->task.frame, &early_body, context);
    bide_resume(&early->task.frame);
}

static void setup_early(void *p)
{
    state *s = p;
    setup(p);
    bide_stop_source_init(&s->stop);
    s->context = (bide_context){&bide_inline_scheduler, &s->stop, NULL, NULL, NULL};
    begin_early(s, 0, 254, &s->context);
    begin_early(s, 1, 254, &bide_default_context);
}

static void finish_early(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++) {
        if (s->early[i] == NULL)
            continue;
        bide_check_assert(bide_done(&s->early[i]->task.frame));
        bide_check_free(s->early[i]);
    }
}

static void ask_to_stop(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static const bide_check_scenario closed_while_sifted = {
    .name = "a_second_publishes_and_a_third_closes_while_the_first_sifts",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_early,
    .threads = {ask_to_stop, publish_one, close_it},
    .finish = finish_early,
};

/* ---- A waiter since the setup, and another that enlists before it, or after the wrap ---- */

static void setup_one_early(void *p)
{
    setup(p);
    begin_early(p, 0, 254, &bide_default_context);
}

static void setup_one_at_255(void *p)
{
    setup(p);
    publish(p, 254);
    begin_early(p, 0, 255, &bide_default_context);
}

/* There is no waiter, but there was one: the list is watched. */
static void setup_watched(void *p)
{
    setup_one_early(p);
    publish(p, 254);
}

static const bide_check_scenario two_waiters = {
    .name = "two_wait_on_both_sides_of_what_is_published",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_early,
    .threads = {publish_two, wait_for_second},
    .finish = finish_early,
};

static const bide_check_scenario around = {
    .name = "two_wait_around_the_wrap",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_at_255,
    .threads = {publish_around, wait_past_the_wrap},
    .finish = finish_early,
};

static const bide_check_scenario watched = {
    .name = "a_waiter_waits_where_another_has_waited",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_watched,
    .threads = {publish_around, wait_past_the_wrap},
    .finish = finish_early,
};

/* ---- The nearest: one is kept since the setup, another comes with a nearer target, or with one further away ---- */

enum { LATE = 2 }; /* a target that is published only at the end */

static void setup_kept(state *s, uint8_t target)
{
    bide_sequence_barrier8_init(&s->barrier, 251);
    WATCH(&s->barrier.waiters);
    begin_early(s, 0, target, &bide_default_context);
    bide_sequence_barrier8_publish(&s->barrier, 252);
}

static void setup_far_kept(void *p)
{
    setup_kept(p, LATE);
}

static void setup_near_kept(void *p)
{
    setup_kept(p, 255);
}

static void come_nearer(void *p)
{
    begin_early(p, 1, 255, &bide_default_context);
}

static void come_further_away(void *p)
{
    begin_early(p, 1, LATE, &bide_default_context);
}

/* it passes the targets without stopping there */
static void publish_past(void *p)
{
    bide_sequence_barrier8_publish(&((state *)p)->barrier, 253);
    *data_of(p, 254) = *data_of(p, 255) = 1;
    publish(p, 0);
    publish(p, 1);
}

/* The waiter of the reached target has ended, and the other has not. */
static void finish_reached(state *s, int reached)
{
    bide_check_assert(bide_done(&s->early[reached]->task.frame));
    bide_check_assert(!bide_done(&s->early[1 - reached]->task.frame));
    bide_sequence_barrier8_publish(&s->barrier, LATE);
    finish_early(s);
}

static void finish_nearer(void *p)
{
    finish_reached(p, 1);
}

static void finish_further_away(void *p)
{
    finish_reached(p, 0);
}

static const bide_check_scenario nearer = {
    .name = "a_waiter_comes_for_a_nearer_number",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_far_kept,
    .threads = {come_nearer, publish_past},
    .finish = finish_nearer,
};

static const bide_check_scenario further_away = {
    .name = "a_waiter_comes_for_a_number_further_away",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_near_kept,
    .threads = {come_further_away, publish_past},
    .finish = finish_further_away,
};

/* ---- Numbers that are far apart ----
 *
 * A cancelled waiter takes another waiter from the list, which came later and has seen more. Compared with the number
 * at the time of the first wait, the second target is more than half the range ahead, and so would count as
 * published. */

enum { BEFORE = 99, NEAR = 100, FAR = 227, FARTHER = 229 };

static void setup_far(void *p)
{
    state *s = p;
    bide_sequence_barrier8_init(&s->barrier, BEFORE);
    WATCH(&s->barrier.waiters);
    bide_stop_source_init(&s->stop);
    s->context = (bide_context){&bide_inline_scheduler, &s->stop, NULL, NULL, NULL};
    begin_early(s, 0, NEAR, &s->context);
}

static void publish_far_and_wait(void *p)
{
    state *s = p;
    bide_sequence_barrier8_publish(&s->barrier, NEAR);
    bide_sequence_barrier8_publish(&s->barrier, FAR);
    begin_early(s, 1, FARTHER, &bide_default_context);
}

static void finish_far(void *p)
{
    state *s = p;
    bide_check_assert(!bide_done(&s->early[1]->task.frame));
    bide_sequence_barrier8_publish(&s->barrier, FARTHER);
    finish_early(s);
}

static const bide_check_scenario far_apart = {
    .name = "a_wait_for_a_far_number_is_not_judged_by_an_old_one",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_far,
    .threads = {publish_far_and_wait, ask_to_stop},
    .finish = finish_far,
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &one_waiter,
        &freed,
        &closed_by_another,
        &closed_while_taken,
        &closed_while_sifted,
        &two_waiters,
        &around,
        &watched,
        &two_for_one,
        &closed,
        &far_apart,
        &nearer,
        &further_away,
        NULL,
    };
    static const char *const files[] = {"sequence_barrier.h", "sequence_barrier.c", "waiter_list.h",
                                        NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
