/*
 * The event: set, reset, close, and two waiters.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

typedef struct state {
    bide_event event;
    int data[2];
    bide_event *allocated;
    bide_stop_source stop;
    bide_context context;
    struct beside *beside;
    bide_atomic(uint32_t) made; /* written by the setters */
    uint32_t taken;             /* by the thread that waits, resets and takes everything */
} state;

static void setup(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
    bide_atomic_init(&s->made, 0);
}

static void set_it(void *p)
{
    state *s = p;
    s->data[0] = 1;
    bide_event_set(&s->event);
}

static void wait_for_it(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_assert(bide_check_await(bide_event_wait(&wait, &s->event)) == 0);
    bide_check_assert(s->data[0] == 1);
}

static void ask(void *p)
{
    state *s = p;
    if (bide_event_is_set(&s->event))
        bide_check_assert(s->data[0] == 1);
}

/* Resets an event that may be set, and sets it again: every waiter is woken nevertheless. */
static void set_again(void *p)
{
    state *s = p;
    bide_event_reset(&s->event);
    s->data[1] = 1;
    bide_event_set(&s->event);
}

/* Reuses the announced object after the announcement. */
static void use_again(void *p)
{
    state *s = p;
    wait_for_it(p);
    bide_event_reset(&s->event);
    s->data[0] = 2;
    bide_check_assert(!bide_event_is_set(&s->event));
}

static void wait_only(void *p)
{
    bide_event_waiter wait;
    bide_check_assert(bide_check_await(bide_event_wait(&wait, &((state *)p)->event)) == 0);
}

/*
 * Each setter has produced an item. A consumer that waits, resets and takes all items misses none,
 * even without another set.
 */
static void make_and_set(void *p)
{
    state *s = p;
    bide_atomic_fetch_add(&s->made, 1, relaxed);
    bide_event_set(&s->event);
}

static void wait_reset_and_take(void *p)
{
    state *s = p;
    wait_only(p);
    bide_event_reset(&s->event);
    s->taken = bide_atomic_load(&s->made, relaxed);
}

static void finish_all_taken(void *p)
{
    state *s = p;
    bide_check_assert(s->taken == 2 || bide_event_is_set(&s->event));
}

/* The event is freed when the wait on it has ended. */
static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_event_init(s->allocated, false);
}

static void set_allocated(void *p)
{
    bide_event_set(((state *)p)->allocated);
}

static void wait_and_free(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_await(bide_event_wait(&wait, s->allocated));
    bide_check_free(s->allocated);
}

/* ---- Close ---- */

static void close_it(void *p)
{
    state *s = p;
    s->data[1] = 1;
    bide_event_close(&s->event);
}

static void check_ended(state *s, int status)
{
    bide_check_assert(status == 0 || status == -EPIPE);
    bide_check_assert(status == 0 ? s->data[0] == 1 : s->data[1] == 1);
}

static void wait_or_find_it_closed(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    check_ended(s, bide_check_await(bide_event_wait(&wait, &s->event)));
}

static void wait_twice(void *p)
{
    wait_or_find_it_closed(p);
    wait_or_find_it_closed(p);
}

static void set_reset_and_close(void *p)
{
    set_it(p);
    bide_event_reset(&((state *)p)->event);
    close_it(p);
}

static void close_and_reset(void *p)
{
    close_it(p);
    bide_event_reset(&((state *)p)->event);
}

static void finish_closed(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bool is_set = bide_event_is_set(&s->event);
    bide_event_close(&s->event);
    bide_event_reset(&s->event);
    bide_event_set(&s->event);
    bide_check_assert(bide_event_is_set(&s->event) == is_set);
    bide_check_assert(bide_check_await(bide_event_wait(&wait, &s->event)) == (is_set ? 0 : -EPIPE));
}

static void request(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static void wait_until_stopped(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    int status = bide_sync_wait_in(&s->context, bide_event_wait(&wait, &s->event));
    if (status != -ECANCELED)
        check_ended(s, status);
}

/*
 * A waiter from before the event is set, reset and closed is held meanwhile by the thread that
 * removes another waiter: the set ends its wait.
 */
typedef struct beside {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int status;
} beside;

bide_coroutine(beside_body)
{
    bide_begin(beside_body, beside * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
    bide_end();
}

static void setup_beside(void *p)
{
    state *s = p;
    setup(p);
    s->beside = bide_check_alloc(sizeof *s->beside);
    s->beside->event = &s->event;
    bide_start(&s->beside->task.frame, &beside_body, &bide_default_context);
    bide_resume(&s->beside->task.frame);
}

static void finish_beside(void *p)
{
    state *s = p;
    finish_closed(p);
    bide_check_assert(bide_done(&s->beside->task.frame) && s->beside->status == 0);
    bide_check_free(s->beside);
}

static void close_allocated(void *p)
{
    bide_event_close(((state *)p)->allocated);
}

static void wait_for_the_close_and_free(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_assert(bide_check_await(bide_event_wait(&wait, s->allocated)) == -EPIPE);
    bide_check_free(s->allocated);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_it_is_set",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, close_and_reset, wait_twice},
    .finish = finish_closed,
};

static const bide_check_scenario refused = {
    .name = "it_is_closed_after_it_was_reset",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_reset_and_close, wait_or_find_it_closed, wait_or_find_it_closed},
    .finish = finish_closed,
};

static const bide_check_scenario closed_and_cancelled = {
    .name = "it_is_closed_while_a_wait_is_cut_short",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup,
    .threads = {request, close_it, wait_until_stopped},
    .finish = finish_closed,
};

static const bide_check_scenario closed_beside = {
    .name = "it_is_closed_while_the_wait_beside_is_cut_short",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .never_spurious = true,
    .setup = setup_beside,
    .threads = {request, set_reset_and_close, wait_until_stopped},
    .finish = finish_beside,
};

static const bide_check_scenario freed_closed = {
    .name = "it_is_freed_once_the_close_has_ended_the_wait",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {close_allocated, wait_for_the_close_and_free},
};

static const bide_check_scenario two_waiters = {
    .name = "two_wait_for_a_set",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, wait_for_it, wait_for_it},
};

static const bide_check_scenario asked = {
    .name = "seeing_it_set_shows_what_it_announces",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, ask, ask},
};

static const bide_check_scenario reset_by_another = {
    .name = "another_resets_it_and_sets_it_again",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, set_again, wait_only},
};

static const bide_check_scenario used_again = {
    .name = "a_waiter_resets_it_and_uses_its_data",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_it, use_again},
};

static const bide_check_scenario taken = {
    .name = "a_waiter_resets_it_and_takes_all",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {make_and_set, make_and_set, wait_reset_and_take},
    .finish = finish_all_taken,
};

static const bide_check_scenario freed = {
    .name = "it_is_freed_once_the_wait_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {set_allocated, wait_and_free},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &two_waiters, &asked,   &reset_by_another,     &used_again,   &taken,         &freed,
        &closed,      &refused, &closed_and_cancelled, &freed_closed, &closed_beside, NULL};
    static const char *const files[] = {"event.h", "event.c", "waiter_list.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
