/*
 * The barrier: a phase is complete for all or for none, even if arrivals are withdrawn or members
 * drop out at the same time; one arrival is the last; data written before an arrival is visible;
 * and memory that is freed as early as allowed.
 */
#include "bide/check.h"
#include "bide/cyclic_barrier.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

typedef struct state state;

/* A coroutine that arrived in the setup, and waits. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    state *state;
    bide_cyclic_barrier_waiter wait;
    bide_cyclic_barrier_token token;
    bool drops_out; /* if it is cancelled */
    int status;
};

struct state {
    bide_cyclic_barrier barrier;
    bide_cyclic_barrier *allocated;
    struct early *early[2];
    int data[2];
    bide_atomic(uint32_t) lasts;
    bide_atomic(uint32_t) users;
    int ended; /* the result of the scenario's thread */
};

static void setup(void *p)
{
    state *s = p;
    bide_cyclic_barrier_init(&s->barrier, 2);
    bide_atomic_init(&s->lasts, 0);
}

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status,
                      bide_cyclic_barrier_arrive_and_wait(&self->wait, &self->state->barrier));
    if (self->status == -ECANCELED && self->drops_out &&
        bide_cyclic_barrier_arrive_and_drop(&self->state->barrier))
        bide_atomic_fetch_add(&self->state->lasts, 1, relaxed);
    bide_end();
}

static struct early *make_early(state *s, int index)
{
    struct early *early = s->early[index] = bide_check_alloc(sizeof *early);
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->state = s;
    early->drops_out = false;
    early->status = 1;
    return early;
}

static void enlist(state *s, int index)
{
    struct early *early = make_early(s, index);
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
}

static int end_of(state *s, int index)
{
    int status = s->early[index]->status;
    if (status == 1)
        bide_destroy(&s->early[index]->task.frame);
    bide_check_free(s->early[index]);
    return status;
}

/* ---- Phases ---- */

static void meet(state *s, int index)
{
    bide_cyclic_barrier_waiter wait;
    s->data[index] = 1;
    bide_check_assert(bide_check_await(bide_cyclic_barrier_arrive_and_wait(&wait, &s->barrier)) ==
                      0);
    bide_check_assert(s->data[0] == 1 && s->data[1] == 1);
    if (bide_cyclic_barrier_is_last(&wait))
        bide_atomic_fetch_add(&s->lasts, 1, relaxed);
}

static void meet_first(void *p)
{
    meet(p, 0);
}

static void meet_second(void *p)
{
    meet(p, 1);
}

static void finish_met(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->lasts, relaxed) == 1);
}

static const bide_check_scenario met = {
    .name = "two_meet_and_the_second_is_the_last",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {meet_first, meet_second},
    .finish = finish_met,
};

static void arrive_and_wait_with_token(void *p)
{
    state *s = p;
    bide_cyclic_barrier_waiter wait;
    s->data[1] = 1;
    bide_cyclic_barrier_token token = bide_cyclic_barrier_arrive(&s->barrier);
    if (token.is_last)
        bide_atomic_fetch_add(&s->lasts, 1, relaxed);
    if (token.is_last || bide_cyclic_barrier_try_wait(&s->barrier, token))
        bide_check_assert(s->data[0] == 1);
    bide_check_assert(bide_check_await(bide_cyclic_barrier_wait(&wait, &s->barrier, token)) == 0);
    bide_check_assert(s->data[0] == 1);
}

static const bide_check_scenario token = {
    .name = "a_party_arrives_with_a_token",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {meet_first, arrive_and_wait_with_token},
    .finish = finish_met,
};

static void meet_twice(void *p)
{
    state *s = p;
    bide_cyclic_barrier_waiter wait;
    for (int i = 0; i < 2; i++) {
        bide_check_assert(
            bide_check_await(bide_cyclic_barrier_arrive_and_wait(&wait, &s->barrier)) == 0);
        if (bide_cyclic_barrier_is_last(&wait))
            bide_atomic_fetch_add(&s->lasts, 1, relaxed);
    }
}

static void finish_met_twice(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->lasts, relaxed) == 2);
}

static const bide_check_scenario phases = {
    .name = "two_meet_twice",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {meet_twice, meet_twice},
    .finish = finish_met_twice,
};

static void setup_three(void *p)
{
    setup(p);
    bide_cyclic_barrier_init(&((state *)p)->barrier, 3);
    ((state *)p)->data[0] = ((state *)p)->data[1] = 1;
}

static void meet_third(void *p)
{
    state *s = p;
    bide_cyclic_barrier_waiter wait;
    bide_check_assert(bide_check_await(bide_cyclic_barrier_arrive_and_wait(&wait, &s->barrier)) ==
                      0);
    if (bide_cyclic_barrier_is_last(&wait))
        bide_atomic_fetch_add(&s->lasts, 1, relaxed);
}

static const bide_check_scenario three = {
    .name = "three_meet",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_three,
    .threads = {meet_third, meet_third, meet_third},
    .finish = finish_met,
};

static void drop_out(void *p)
{
    state *s = p;
    if (bide_cyclic_barrier_arrive_and_drop(&s->barrier))
        bide_atomic_fetch_add(&s->lasts, 1, relaxed);
}

static void meet_and_be_alone(void *p)
{
    state *s = p;
    meet_third(p);
    bide_check_assert(bide_cyclic_barrier_parties(&s->barrier) == 1);
    bide_check_assert(bide_cyclic_barrier_arrive(&s->barrier).is_last);
}

static const bide_check_scenario dropped = {
    .name = "a_party_drops_out",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {drop_out, meet_and_be_alone},
    .finish = finish_met,
};

/* ---- Withdrawn arrivals ---- */

static void setup_one_waits(void *p)
{
    setup(p);
    enlist(p, 0);
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0]->stop);
}

static void arrive(void *p)
{
    state *s = p;
    if (bide_cyclic_barrier_arrive(&s->barrier).is_last)
        bide_atomic_fetch_add(&s->lasts, 1, relaxed);
}

/* Both see the same: the phase was complete, or it lacks a withdrawn arrival. */
static void finish_taken_back(void *p)
{
    state *s = p;
    uint32_t lasts = bide_atomic_load(&s->lasts, relaxed);
    int status = end_of(s, 0);
    bide_check_assert(lasts == 1 ? status == 0 : status == -ECANCELED);
    if (lasts == 0)
        bide_check_assert(bide_cyclic_barrier_arrive(&s->barrier).is_last);
    bide_check_assert(!bide_cyclic_barrier_arrive(&s->barrier).is_last);
    bide_check_assert(bide_cyclic_barrier_arrive(&s->barrier).is_last);
}

static const bide_check_scenario taken_back = {
    .name = "an_arrival_is_taken_back_or_completes_the_phase",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_waits,
    .threads = {arrive, stop_first},
    .finish = finish_taken_back,
};

/* The member that has withdrawn arrives again, and drops out. */
static void setup_three_one_drops_out(void *p)
{
    state *s = p;
    setup_three(p);
    enlist(s, 0);
    s->early[0]->drops_out = true;
    bide_cyclic_barrier_arrive(&s->barrier);
}

static void finish_dropped(void *p)
{
    state *s = p;
    int status = end_of(s, 0);
    finish_met(p);
    bide_check_assert(bide_cyclic_barrier_parties(&s->barrier) == (status == 0 ? 3 : 2));
    bide_check_assert(!bide_cyclic_barrier_arrive(&s->barrier).is_last);
    if (status == 0)
        bide_check_assert(!bide_cyclic_barrier_arrive(&s->barrier).is_last);
    bide_check_assert(bide_cyclic_barrier_arrive(&s->barrier).is_last);
}

static const bide_check_scenario taken_back_and_dropped = {
    .name = "an_arrival_is_taken_back_and_drops_out_while_the_last_arrives",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_three_one_drops_out,
    .threads = {arrive, stop_first},
    .finish = finish_dropped,
};

/* One member has arrived, and then waits by its token: it may stop waiting, but it has arrived. */
bide_coroutine(arrived_body)
{
    bide_begin(arrived_body, struct early * self);
    bide_await_status(self->status,
                      bide_cyclic_barrier_wait(&self->wait, &self->state->barrier, self->token));
    bide_end();
}

static void setup_arrived(void *p)
{
    state *s = p;
    setup(p);
    struct early *early = make_early(s, 0);
    early->token = bide_cyclic_barrier_arrive(&s->barrier);
    bide_start(&early->task.frame, &arrived_body, &early->context);
    bide_resume(&early->task.frame);
}

static void finish_arrived(void *p)
{
    state *s = p;
    int status = end_of(s, 0);
    bide_check_assert(status == 0 || status == -ECANCELED);
    finish_met(p);
    bide_check_assert(!bide_cyclic_barrier_arrive(&s->barrier).is_last);
    bide_check_assert(bide_cyclic_barrier_arrive(&s->barrier).is_last);
}

static const bide_check_scenario arrived = {
    .name = "a_wait_by_token_is_asked_to_stop_and_has_arrived",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_arrived,
    .threads = {arrive, stop_first},
    .finish = finish_arrived,
};

static void setup_two_wait(void *p)
{
    setup_three(p);
    enlist(p, 0);
    enlist(p, 1);
}

static void stop_second(void *p)
{
    bide_stop_request(&((state *)p)->early[1]->stop);
}

static void finish_two_taken_back(void *p)
{
    state *s = p;
    uint32_t lasts = bide_atomic_load(&s->lasts, relaxed);
    int first = end_of(s, 0);
    int second = end_of(s, 1);
    if (lasts == 1)
        bide_check_assert(first == 0 && second == 0);
    else
        bide_check_assert(first == -ECANCELED && second == -ECANCELED);
}

static const bide_check_scenario two_taken_back = {
    .name = "two_arrivals_are_taken_back_while_the_last_arrives",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_wait,
    .threads = {arrive, stop_first, stop_second},
    .finish = finish_two_taken_back,
};

/*
 * The coroutine of an arrival is destroyed during the last arrival, by the thread that would run
 * it.
 */
static void destroy_first(void *p)
{
    state *s = p;
    bide_destroy(&s->early[0]->task.frame);
    s->ended = 1;
}

static void setup_destroyed(void *p)
{
    setup_three(p);
    enlist(p, 0);
}

static void finish_destroyed(void *p)
{
    state *s = p;
    bide_check_assert(bide_atomic_load(&s->lasts, relaxed) == 0);
    bide_check_free(s->early[0]);
    bide_check_assert(!bide_cyclic_barrier_arrive(&s->barrier).is_last);
    bide_check_assert(bide_cyclic_barrier_arrive(&s->barrier).is_last);
}

static const bide_check_scenario destroyed = {
    .name = "the_arrival_of_a_destroyed_coroutine_is_taken_back_while_another_arrives",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_destroyed,
    .threads = {arrive, destroy_first},
    .finish = finish_destroyed,
};

/* ---- Closed ---- */

static void close_it(void *p)
{
    bide_cyclic_barrier_close(&((state *)p)->barrier);
}

static void finish_closed(void *p)
{
    state *s = p;
    uint32_t lasts = bide_atomic_load(&s->lasts, relaxed);
    int status = end_of(s, 0);
    bide_check_assert(lasts == 1 ? status == 0 : status == -EPIPE);
    bide_check_assert(s->ended == 0 || s->ended == -EPIPE);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_the_last_arrives",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_waits,
    .threads = {arrive, close_it},
    .finish = finish_closed,
};

static void meet_or_not(void *p)
{
    state *s = p;
    bide_cyclic_barrier_waiter wait;
    s->ended = bide_check_await(bide_cyclic_barrier_arrive_and_wait(&wait, &s->barrier));
    if (s->ended == 0 && bide_cyclic_barrier_is_last(&wait))
        bide_atomic_fetch_add(&s->lasts, 1, relaxed);
}

static const bide_check_scenario closed_and_stopped = {
    .name = "it_is_closed_while_two_meet",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_waits,
    .threads = {meet_or_not, close_it},
    .finish = finish_closed,
};

/* ---- The memory is freed as early as allowed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_cyclic_barrier_init(s->allocated, 2);
    bide_atomic_init(&s->users, 2);
}

static void meet_and_free(void *p)
{
    state *s = p;
    bide_cyclic_barrier_waiter wait;
    bide_check_assert(bide_check_await(bide_cyclic_barrier_arrive_and_wait(&wait, s->allocated)) ==
                      0);
    if (bide_atomic_fetch_sub(&s->users, 1, acq_rel) == 1)
        bide_check_free(s->allocated);
}

static const bide_check_scenario freed = {
    .name = "the_last_waiter_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {meet_and_free, meet_and_free},
};

static void arrive_there(void *p)
{
    bide_cyclic_barrier_arrive(((state *)p)->allocated);
}

static void meet_and_free_at_once(void *p)
{
    state *s = p;
    bide_cyclic_barrier_waiter wait;
    bide_check_assert(bide_check_await(bide_cyclic_barrier_arrive_and_wait(&wait, s->allocated)) ==
                      0);
    bide_check_free(s->allocated);
}

static const bide_check_scenario freed_at_once = {
    .name = "the_only_waiter_frees_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {arrive_there, meet_and_free_at_once},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const scenarios[] = {
        &met,
        &token,
        &phases,
        &three,
        &dropped,
        &taken_back,
        &taken_back_and_dropped,
        &arrived,
        &two_taken_back,
        &destroyed,
        &closed,
        &closed_and_stopped,
        &freed,
        &freed_at_once,
        NULL,
    };
    static const char *const files[] = {"cyclic_barrier.h", "cyclic_barrier.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){scenarios, files, NULL});
}
