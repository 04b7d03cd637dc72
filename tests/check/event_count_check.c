/*
 * The event count: items that one thread takes or waits for while others add them, watched or not.
 * No thread waits for an available item, and no item is lost with a waiter that is cancelled or
 * destroyed.
 */
#include "taking.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { WATCHED = 2 };

struct state;

/* A coroutine that has been waiting since the setup. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    unsigned index;
    int status;
    int ended;
};

typedef struct state {
    bide_event_count event_count;
    bide_atomic(uint32_t) items;
    bide_atomic(uint32_t) waits; /* there is a waiter */
    bool unwatched_and_seen;
    bide_event_count event_count_of_more;
    bide_atomic(uint32_t) more;
    uint32_t data[2]; /* plain data, written before each item */
    taking takings[5];
    int statuses[2];
    struct early early[5];
} state;

static bide_awaiter *take(state *s, unsigned i)
{
    return taking_begin(&s->takings[i], &s->items, &s->event_count);
}

static void bring(state *s, uint32_t count)
{
    /* release: the data of the item. */
    bide_atomic_fetch_add(&s->items, count, release);
    bide_event_count_notify(&s->event_count, count);
}

static void setup(void *p)
{
    state *s = p;
    bide_event_count_init(&s->event_count);
    bide_atomic_init(&s->items, 0);
    bide_atomic_init(&s->waits, 0);
}

/* As if there had been a waiter lately. */
static void setup_watched(void *p)
{
    state *s = p;
    setup(p);
    bide_atomic_init(&s->event_count.watch, (uintptr_t)WATCHED);
}

static void take_one(void *p)
{
    state *s = p;
    unsigned i = bide_check_thread() - 1;
    s->statuses[i] = bide_check_await(take(s, i));
}

static void bring_one(void *p)
{
    bring(p, 1);
}

static void finish(void *p)
{
    state *s = p;
    bide_check_assert(s->statuses[0] == 0 && s->statuses[1] == 0);
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == 0);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(one, "a_waiter_and_a_bringer", .setup = setup, .threads = {take_one, bring_one},
         .finish = finish);
SCENARIO(one_watched, "a_thread_waits_where_another_has_waited", .setup = setup_watched,
         .threads = {take_one, bring_one}, .finish = finish);
/* ---- The event count ceases to be watched ---- */

/* The first may see no waiter; the second then sees it unwatched. */
static void bring_nothing_and_one(void *p)
{
    state *s = p;
    bide_event_count_notify(&s->event_count, 1);
    bring(s, 1);
}

SCENARIO(unwatched, "it_is_unwatched_while_a_waiter_comes", .setup = setup_watched,
         .threads = {take_one, bring_nothing_and_one}, .finish = finish);

static void notify_in_vain(void *p)
{
    state *s = p;
    bide_event_count_notify(&s->event_count, 1);
}

SCENARIO(unwatched_by_another, "another_makes_it_unwatched", .setup = setup_watched,
         .threads = {take_one, notify_in_vain, bring_one}, .finish = finish);

/* ---- The fences alone ---- */

/* One arms, one waits, one adds: the waiter sees the item, or is seen. */
static void arm_it(void *p)
{
    bide_event_count_watch_(&((state *)p)->event_count);
}

static void come(void *p)
{
    state *s = p;
    bide_atomic_store(&s->waits, 1, relaxed);
    bide_event_count_watch_(&s->event_count);
    s->statuses[0] = bide_atomic_load(&s->items, relaxed) != 0;
}

static void bring_and_look(void *p)
{
    state *s = p;
    bide_atomic_store(&s->items, 1, relaxed);
    bide_atomic_fence_light();
    if (bide_atomic_load(&s->event_count.watch, relaxed) != BIDE_EVENT_COUNT_UNWATCHED_) {
        bide_atomic_fence(seq_cst);
        s->statuses[1] = bide_atomic_load(&s->waits, relaxed) != 0;
    }
}

static void finish_seen(void *p)
{
    state *s = p;
    bide_check_assert(s->statuses[0] || s->statuses[1]);
}

SCENARIO(fences, "a_comer_sees_it_or_is_seen", .setup = setup,
         .threads = {arm_it, come, bring_and_look}, .finish = finish_seen);

/* A fourth thread makes it unwatched in between, and looks for waiters. */
static void unwatch_and_look(void *p)
{
    state *s = p;
    bide_event_count_poll_(&s->event_count, 1, WATCHED);
    s->unwatched_and_seen = bide_atomic_load(&s->waits, relaxed) != 0;
}

static void finish_seen_by_any(void *p)
{
    state *s = p;
    bide_check_assert(s->statuses[0] || s->statuses[1] || s->unwatched_and_seen);
}

SCENARIO(fences_again, "or_the_unwatching_thread_sees_it", .setup = setup_watched,
         .threads = {arm_it, come, bring_and_look, unwatch_and_look}, .finish = finish_seen_by_any);

/* The same without an earlier waiter, so that it becomes unwatched as soon as it is armed. */
static void notify_and_look(void *p)
{
    state *s = p;
    notify_in_vain(p);
    s->unwatched_and_seen = bide_atomic_load(&s->waits, relaxed) != 0;
}

SCENARIO(fences_armed, "or_the_unwatching_thread_sees_it_at_once", .setup = setup,
         .threads = {arm_it, come, bring_and_look, notify_and_look}, .finish = finish_seen_by_any);
SCENARIO(unwatched_armed, "another_makes_it_unwatched_as_it_is_armed", .setup = setup,
         .threads = {take_one, notify_in_vain, bring_one}, .finish = finish);

/* ---- Data seen with the item ---- */

static void bring_data(void *p)
{
    state *s = p;
    bide_plain_store(&s->data[0], 7);
    bring(s, 1);
}

static void take_data(void *p)
{
    state *s = p;
    take_one(p);
    bide_check_assert(bide_plain_load(&s->data[0]) == 7);
}

SCENARIO(data, "what_came_with_it_is_seen", .setup = setup, .threads = {take_data, bring_data},
         .finish = finish);

/* ---- With waiters ---- */

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, take(self->state, self->index));
    self->ended++;
    bide_end();
}

static void prepare_early_body(state *s, unsigned index, const bide_point *body)
{
    struct early *early = &s->early[index];
    early->state = s;
    early->index = index;
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    early->status = 1;
    bide_start(&early->task.frame, body, &early->context);
}

static void begin_early_body(state *s, unsigned index, const bide_point *body)
{
    prepare_early_body(s, index, body);
    bide_resume(&s->early[index].task.frame);
}

static void begin_early(state *s, unsigned index)
{
    begin_early_body(s, index, &early_body);
}

static void setup_early(void *p)
{
    state *s = p;
    setup(p);
    begin_early(s, 0);
    begin_early(s, 1);
}

static void setup_one_early(void *p)
{
    setup(p);
    begin_early(p, 1);
}

static void bring_two(void *p)
{
    bring(p, 2);
}

static void finish_both(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0].ended == 1 && s->early[0].status == 0);
    bide_check_assert(s->early[1].ended == 1 && s->early[1].status == 0);
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == 0);
}

static void finish_with_one_early(void *p)
{
    state *s = p;
    bide_check_assert(s->early[1].ended == 1 && s->early[1].status == 0);
    bide_check_assert(s->statuses[0] == 0 && bide_atomic_load(&s->items, relaxed) == 0);
}

SCENARIO(two, "two_bring_to_two_waiters", .setup = setup_early, .threads = {bring_one, bring_one},
         .finish = finish_both);
SCENARIO(two_at_once, "two_are_brought_at_once", .setup = setup_early, .threads = {bring_two},
         .finish = finish_both);
SCENARIO(joined, "a_waiter_comes_behind_another_while_two_are_brought", .setup = setup_one_early,
         .threads = {take_one, bring_two}, .finish = finish_with_one_early);

/*
 * Another thread takes the item before the released waiter attempts, which then continues to wait.
 */
static void take_now(void *p)
{
    state *s = p;
    s->takings[0].items = &s->items;
    s->statuses[0] = taking_attempt(&s->takings[0].retry);
}

static void finish_snatched(void *p)
{
    state *s = p;
    if (s->statuses[0] == 0) {
        bide_check_assert(s->early[1].ended == 0);
        bring(s, 1);
    }
    bide_check_assert(s->early[1].ended == 1);
}

SCENARIO(snatched, "an_item_is_taken_before_the_woken_waiter_has_it", .setup = setup_one_early,
         .threads = {bring_one, take_now}, .finish = finish_snatched);

/* ---- Cancellation ---- */

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0].stop);
}

/* One item was taken, and there is no waiter beside an item. */
static void finish_stopped(void *p)
{
    state *s = p;
    bring(s, 2);
    uint32_t taken = 0;
    for (unsigned i = 0; i < 2; i++) {
        bide_check_assert(s->early[i].ended == 1);
        bide_check_assert(s->early[i].status == 0 || (i == 0 && s->early[i].status == -ECANCELED));
        taken += s->early[i].status == 0;
    }
    bide_check_assert(bide_atomic_load(&s->items, relaxed) + taken == 3);
}

SCENARIO(stopped, "the_first_is_asked_to_stop_as_an_item_is_brought", .setup = setup_early,
         .threads = {bring_one, stop_first}, .finish = finish_stopped);

/* A server holds the waiter meanwhile, attempts in vain, and puts it back. */
static void finish_stopped_alone(void *p)
{
    state *s = p;
    bide_check_assert(s->early[1].ended == 1 && s->early[1].status == -ECANCELED);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

static void stop_second(void *p)
{
    bide_stop_request(&((state *)p)->early[1].stop);
}

SCENARIO(stopped_in_vain, "a_waiter_is_asked_to_stop_as_it_is_attempted_in_vain",
         .setup = setup_one_early, .threads = {notify_in_vain, stop_second},
         .finish = finish_stopped_alone);

/* The same with two waiters, so the waiter that is put back is behind the other. */
static void finish_second_stopped(void *p)
{
    state *s = p;
    bring(s, 1);
    bide_check_assert(s->early[0].ended == 1 && s->early[0].status == 0);
    finish_stopped_alone(p);
}

static void finish_first_stopped(void *p)
{
    state *s = p;
    bring(s, 1);
    bide_check_assert(s->early[0].ended == 1 && s->early[0].status == -ECANCELED);
    bide_check_assert(s->early[1].ended == 1 && s->early[1].status == 0);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

SCENARIO(first_stopped_in_vain, "the_first_is_asked_to_stop_as_it_is_attempted_in_vain",
         .setup = setup_early, .threads = {notify_in_vain, stop_first},
         .finish = finish_first_stopped);
SCENARIO(second_stopped_in_vain, "the_second_is_asked_to_stop_as_the_first_is_attempted_in_vain",
         .setup = setup_early, .threads = {notify_in_vain, stop_second},
         .finish = finish_second_stopped);

/*
 * The same while another thread serves the line: a waiter that lines up again and sees its
 * cancellation asks the server to check all waiters.
 */
static void stop_first_and_notify_in_vain(void *p)
{
    stop_first(p);
    notify_in_vain(p);
}

SCENARIO(first_stopped_beside_a_server,
         "the_first_is_asked_to_stop_as_it_is_put_back_beside_a_server", .setup = setup_early,
         .threads = {notify_in_vain, stop_first_and_notify_in_vain}, .finish = finish_first_stopped,
         .preemptions = 2);

/*
 * Three waiters are in line, and the event count is not watched: 3 leaves it so for a new waiter
 * that lines up behind them and arms it. Items are added meanwhile without a notification. The new
 * waiter sees them and releases the first waiter, which releases the next, and so on. It is
 * cancelled meanwhile, and so is the last of the three. So it may take the last item together with
 * the first; but the last waiter releases nobody.
 */
enum { COMES = 4 };

static bool bring_as_one_comes(bide_awaiter *awaiter)
{
    bring(bide_container_of(awaiter, state, takings[COMES].retry.waiter.awaiter), 4);
    return false;
}

/* Cancellation reaches a waiter only while it is enlisted, or after it was. */
static bool is_possible_and_stands(bide_event_count_waiter *retry)
{
    bide_atomic_store(&bide_container_of(retry, state, takings[COMES].retry)->waits, 1, relaxed);
    return taking_is_possible(retry);
}

static const bide_event_count_ops coming_rules = {taking_attempt, is_possible_and_stands, NULL};

static bide_awaiter *come_behind(state *s)
{
    static const bide_awaiter_ops ops = BIDE_EVENT_COUNT_WAITER_OPS(bring_as_one_comes, "come_behind");
    s->takings[COMES].items = &s->items;
    return bide_event_count_waiter_init_(&s->takings[COMES].retry, &ops, &coming_rules, &s->event_count);
}

bide_coroutine(coming_body)
{
    bide_begin(coming_body, struct early * self);
    bide_await_status(self->status, come_behind(self->state));
    self->ended++;
    bide_end();
}

static void setup_three_in_line(void *p)
{
    state *s = p;
    setup_early(p);
    begin_early(s, 2);
    begin_early(s, 3);
    bring(s, 1); /* for the waiter in the place */
    bide_check_assert(s->early[0].ended == 1);
    prepare_early_body(s, COMES, &coming_body);
    bide_atomic_store(&s->event_count.watch, (uintptr_t)BIDE_EVENT_COUNT_UNWATCHED_, relaxed);
}

static void begin_coming(void *p)
{
    bide_resume(&((state *)p)->early[COMES].task.frame);
}

static void stop_both(void *p)
{
    state *s = p;
    bide_stop_request(&s->early[COMES].stop);
    bide_stop_request(&s->early[3].stop);
}

static void finish_all_let_go(void *p)
{
    state *s = p;
    if (bide_atomic_load(&s->waits, relaxed) == 0)
        return; /* it was cancelled before it enlisted */
    for (unsigned i = 1; i <= COMES; i++) {
        bide_check_assert(s->early[i].ended == 1);
        bide_check_assert(s->early[i].status == 0 || (i > 2 && s->early[i].status == -ECANCELED));
    }
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

SCENARIO(stopped_behind, "a_waiter_comes_behind_three_and_is_asked_to_stop_with_the_last",
         .setup = setup_three_in_line, .threads = {begin_coming, stop_both},
         .finish = finish_all_let_go, .never_spurious = true, .preemptions = 1);

/* ---- A waiter with a source arrives: its coroutine is held while it suspends ---- */

static void begin_second(void *p)
{
    begin_early(p, 1);
}

static void finish_second(void *p)
{
    state *s = p;
    bide_check_assert(s->early[1].ended == 1 && s->early[1].status == 0);
    bide_check_assert(bide_atomic_load(&s->items, relaxed) == 0);
    bide_check_assert(bide_event_count_is_idle(&s->event_count));
}

/* A server holds the waiter meanwhile, in vain. */
static void finish_second_and_bring(void *p)
{
    state *s = p;
    bide_check_assert(s->early[1].ended == 0);
    bring(s, 1);
    finish_second(p);
}

SCENARIO(held, "a_waiter_in_a_source_and_a_bringer", .setup = setup,
         .threads = {begin_second, bring_one}, .finish = finish_second);
SCENARIO(held_in_vain, "a_waiter_in_a_source_comes_and_is_attempted_in_vain",
         .setup = setup_watched, .threads = {begin_second, notify_in_vain},
         .finish = finish_second_and_bring);
SCENARIO(held_twice, "a_waiter_in_a_source_comes_while_two_notify", .setup = setup_watched,
         .threads = {begin_second, notify_in_vain, bring_one}, .finish = finish_second,
         .preemptions = 3);

/* ---- All waits of late were on one thread ---- */

/* On the thread that adds items, the second. */
static void setup_where_one_brings(void *p)
{
    state *s = p;
    setup(p);
    bide_atomic_init(&s->event_count.watch, (uintptr_t)(2 + 1) * 4);
}

/* On the waiter's thread. */
static void setup_where_one_takes(void *p)
{
    state *s = p;
    setup(p);
    bide_atomic_init(&s->event_count.watch, (uintptr_t)(1 + 1) * 4);
}

SCENARIO(one_elsewhere, "a_thread_waits_where_only_the_other_has_waited",
         .setup = setup_where_one_brings, .threads = {take_one, bring_one}, .finish = finish);
SCENARIO(one_again, "a_thread_waits_where_only_it_has_waited", .setup = setup_where_one_takes,
         .threads = {take_one, bring_one}, .finish = finish);

/* The third thread sees the state that the first is changing. */
static void come_as_well(void *p)
{
    bide_event_count_watch_(&((state *)p)->event_count);
}

SCENARIO(one_behind_another, "a_waiter_stands_where_another_comes_from_elsewhere",
         .setup = setup_where_one_brings, .threads = {take_one, bring_one, come_as_well},
         .finish = finish);
SCENARIO(elsewhere_unwatched, "it_is_unwatched_where_only_one_thread_has_waited",
         .setup = setup_where_one_takes, .threads = {take_one, bring_nothing_and_one},
         .finish = finish);

/* ---- A taken item enables another ---- */

/* Takes one of `items`, and adds one of `more`. */
static int attempt_to_pass(bide_event_count_waiter *retry)
{
    state *s = bide_container_of(retry, state, takings[1].retry);
    if (taking_attempt(retry) != 0)
        return -EAGAIN;
    bide_atomic_fetch_add(&s->more, 1, release); /* as in `bring` */
    return 0;
}

static bide_event_count *more_come(bide_event_count_waiter *retry)
{
    return &bide_container_of(retry, state, takings[1].retry)->event_count_of_more;
}

static const bide_event_count_ops passing_rules = {attempt_to_pass, taking_is_possible, more_come};

static bide_awaiter *passing(state *s)
{
    s->takings[1].items = &s->items;
    return bide_event_count_wait(&s->takings[1].retry, &s->event_count, &passing_rules);
}

bide_coroutine(passing_body)
{
    bide_begin(passing_body, struct early * self);
    bide_await_status(self->status, passing(self->state));
    self->ended++;
    bide_end();
}

static void setup_one_passing(void *p)
{
    state *s = p;
    setup(p);
    bide_event_count_init(&s->event_count_of_more);
    bide_atomic_init(&s->more, 0);
    begin_early_body(s, 1, &passing_body);
}

static void take_one_more(void *p)
{
    state *s = p;
    s->statuses[0] =
        bide_check_await(taking_begin(&s->takings[0], &s->more, &s->event_count_of_more));
}

static void finish_passed(void *p)
{
    state *s = p;
    bide_check_assert(s->early[1].ended == 1 && s->early[1].status == 0 && s->statuses[0] == 0);
    bide_check_assert(bide_event_count_is_idle(&s->event_count_of_more));
}

SCENARIO(passed_on, "what_is_taken_for_a_waiter_makes_another_possible", .setup = setup_one_passing,
         .threads = {take_one_more, bring_one}, .finish = finish_passed);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one,
                                                     &one_watched,
                                                     &unwatched,
                                                     &unwatched_by_another,
                                                     &data,
                                                     &two,
                                                     &two_at_once,
                                                     &joined,
                                                     &snatched,
                                                     &fences,
                                                     &fences_again,
                                                     &fences_armed,
                                                     &unwatched_armed,
                                                     &stopped,
                                                     &stopped_in_vain,
                                                     &first_stopped_in_vain,
                                                     &second_stopped_in_vain,
                                                     &stopped_behind,
                                                     &one_elsewhere,
                                                     &one_again,
                                                     &one_behind_another,
                                                     &elsewhere_unwatched,
                                                     &passed_on,
                                                     &held,
                                                     &held_in_vain,
                                                     &held_twice,
                                                     &first_stopped_beside_a_server,
                                                     NULL};
    static const char *const files[] = {"event_count.h", "event_count.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
