/*
 * The run loop: the order and the thread of its coroutines; how it stops, sleeps and is woken.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/run_loop.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/stop.h"

#include <errno.h>

/* The loop's word while its thread sleeps or is about to. */
static bool is_parked(bide_run_loop *loop)
{
    return bide_atomic_load(&loop->posted, relaxed) == 1;
}

/* ---- A task's end ---- */

struct parent {
    bide_task task;
    witness child;
    bide_event *event;
};

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    bide_try(witness_run(&self->child, self->event, 0));
    bide_try(witness_run(&self->child, self->event, -EDOM));
    bide_end();
}

static void wait_runs_a_task_to_its_end_and_returns_its_status(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    witness task;
    assert_int_equal(bide_run_loop_wait(&loop, witness_run(&task, NULL, 0)), 0);
    assert_int_equal(witness_ends(&task), 1);
    struct parent parent = {.event = NULL};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&parent.task, &parent_body)), -EDOM);
    assert_int_equal(bide_task_error(&parent.task), -EDOM);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
}

static void *set_once_awaited(void *argument)
{
    bide_event *event = argument;
    schedule_until(schedule_is_awaited(event));
    bide_event_set(event);
    return NULL;
}

static void a_coroutine_woken_by_another_thread_resumes_on_the_loops_thread(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_event event;
    bide_event_init(&event, false);
    witness task;
    pthread_t thread = schedule_thread(set_once_awaited, &event);
    assert_int_equal(bide_run_loop_wait(&loop, witness_run(&task, &event, -EDOM)), -EDOM);
    assert_true(pthread_equal(task.began_on, pthread_self()));
    assert_true(pthread_equal(task.ended_on, pthread_self()));
    pthread_join(thread, NULL);
}

/* ---- The order ---- */

enum { LISTED = 64 };

struct list {
    unsigned count;
    unsigned numbers[LISTED];
};

/* Waits for `event`, if there is one, and then adds its number to the list. */
struct listed {
    bide_task task;
    bide_spawned spawned;
    bide_event_waiter wait;
    bide_event *event;
    struct list *list;
    unsigned number;
};

bide_coroutine(listed_body)
{
    bide_begin(listed_body, struct listed * self);
    if (self->event != NULL)
        bide_await(bide_event_wait(&self->wait, self->event));
    self->list->numbers[self->list->count++] = self->number;
    bide_end();
}

/* Spawns some of them, in order. `many.event` may make all of them wait. */
struct many {
    bide_task task;
    const bide_context *context;
    bide_event *event;
    unsigned from, to;
    struct list *list;
    struct listed listed[LISTED];
};

static void spawn_many(struct many *many)
{
    for (unsigned i = many->from; i < many->to; i++) {
        struct listed *listed = &many->listed[i];
        listed->event = many->event;
        listed->list = many->list;
        listed->number = i;
        bide_spawn(&listed->spawned, many->context, bide_task_init(&listed->task, &listed_body));
    }
}

static void *spawn_many_here(void *argument)
{
    spawn_many(argument);
    return NULL;
}

static void *set_here(void *argument)
{
    bide_event_set(argument);
    return NULL;
}

static void in_a_thread(void *(*function)(void *), void *argument)
{
    pthread_join(schedule_thread(function, argument), NULL);
}

bide_coroutine(spawn_many_body)
{
    bide_begin(spawn_many_body, struct many * self);
    spawn_many(self);
    bide_end();
}

struct ordered {
    bide_run_loop loop;
    struct list list;
    struct many many;
};

static void ordered_init(struct ordered *ordered, bide_event *event)
{
    bide_run_loop_init(&ordered->loop);
    ordered->list.count = 0;
    ordered->many.context = &ordered->loop.context;
    ordered->many.event = event;
    ordered->many.from = 0;
    ordered->many.to = LISTED;
    ordered->many.list = &ordered->list;
}

static void assert_in_order(const struct list *list, unsigned count)
{
    assert_int_equal(list->count, count);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(list->numbers[i], i);
}

static void posts_of_another_thread_run_in_their_order(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    in_a_thread(spawn_many_here, &ordered.many);
    assert_int_equal(bide_run_loop_run_ready(&ordered.loop), LISTED);
    assert_in_order(&ordered.list, LISTED);
}

static void posts_of_the_loops_own_thread_run_in_their_order(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    bide_run_loop_wait(&ordered.loop, bide_task_init(&ordered.many.task, &spawn_many_body));
    bide_run_loop_run_ready(&ordered.loop);
    assert_in_order(&ordered.list, LISTED);
}

/* Alternates: another thread posts one, and is done before the next is posted here. */
bide_coroutine(spawn_by_turns_body)
{
    bide_begin(spawn_by_turns_body, struct many * self);
    for (unsigned i = 0; i < LISTED; i++) {
        self->from = i;
        self->to = i + 1;
        if (i % 2 == 0)
            in_a_thread(spawn_many_here, self);
        else
            spawn_many(self);
    }
    bide_end();
}

static void a_post_that_happens_before_another_runs_before_it(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    bide_run_loop_wait(&ordered.loop, bide_task_init(&ordered.many.task, &spawn_by_turns_body));
    bide_run_loop_run_ready(&ordered.loop);
    assert_in_order(&ordered.list, LISTED);
}

static void waiters_of_an_event_resume_in_their_order(void **state)
{
    (void)state;
    for (int by_another_thread = 0; by_another_thread < 2; by_another_thread++) {
        struct ordered ordered;
        bide_event event;
        bide_event_init(&event, false);
        ordered_init(&ordered, &event);
        spawn_many(&ordered.many);
        assert_int_equal(bide_run_loop_run_ready(&ordered.loop), LISTED);
        assert_int_equal(ordered.list.count, 0);
        if (by_another_thread)
            in_a_thread(set_here, &event);
        else
            bide_event_set(&event);
        assert_int_equal(bide_run_loop_run_ready(&ordered.loop), LISTED);
        assert_in_order(&ordered.list, LISTED);
    }
}

/* ---- Stopping ---- */

static void stop_ends_run_after_what_was_posted_before_it(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    ordered.many.to = 10;
    spawn_many(&ordered.many);
    bide_run_loop_stop(&ordered.loop);
    ordered.many.from = 10;
    ordered.many.to = 15;
    spawn_many(&ordered.many);
    bide_run_loop_run(&ordered.loop);
    assert_in_order(&ordered.list, 10);
    assert_int_equal(bide_run_loop_run_ready(&ordered.loop), 5);
    assert_in_order(&ordered.list, 15);
}

struct stopper {
    bide_task task;
    bide_run_loop *loop;
    struct many *many;
};

bide_coroutine(stopper_body)
{
    bide_begin(stopper_body, struct stopper * self);
    spawn_many(self->many);
    bide_run_loop_stop(self->loop);
    bide_end();
}

static void a_coroutine_of_the_loop_may_stop_it(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    struct stopper stopper = {.loop = &ordered.loop, .many = &ordered.many};
    bide_spawned spawned;
    bide_spawn(&spawned, &ordered.loop.context, bide_task_init(&stopper.task, &stopper_body));
    bide_run_loop_run(&ordered.loop);
    assert_true(bide_event_is_set(&spawned.ended));
    assert_in_order(&ordered.list, LISTED);
}

/* Has another thread post, and then stops the loop. */
bide_coroutine(late_stopper_body)
{
    bide_begin(late_stopper_body, struct stopper * self);
    pthread_join(schedule_thread(spawn_many_here, self->many), NULL);
    bide_run_loop_stop(self->loop);
    bide_end();
}

static void a_coroutines_stop_comes_after_what_other_threads_posted_before_it(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    struct stopper stopper = {.loop = &ordered.loop, .many = &ordered.many};
    bide_spawned spawned;
    bide_spawn(&spawned, &ordered.loop.context, bide_task_init(&stopper.task, &late_stopper_body));
    bide_run_loop_run(&ordered.loop);
    assert_in_order(&ordered.list, LISTED);
}

static void stop_before_run_ends_that_run(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_run_loop_stop(&loop);
    bide_run_loop_run(&loop);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
}

static void a_second_stop_before_the_end_of_run_does_nothing(void **state)
{
    (void)state;
    struct ordered ordered;
    ordered_init(&ordered, NULL);
    bide_run_loop_stop(&ordered.loop);
    bide_run_loop_stop(&ordered.loop);
    bide_run_loop_run(&ordered.loop);
    assert_int_equal(bide_run_loop_run_ready(&ordered.loop), 0);
    /* It does not end the next run early either. */
    spawn_many(&ordered.many);
    bide_run_loop_stop(&ordered.loop);
    bide_run_loop_run(&ordered.loop);
    assert_in_order(&ordered.list, LISTED);
}

static void a_loop_runs_again_after_stop(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (int i = 0; i < 10; i++) {
        witness task;
        bide_spawned spawned;
        bide_spawn(&spawned, &loop.context, witness_run(&task, NULL, -i));
        bide_run_loop_stop(&loop);
        bide_run_loop_run(&loop);
        assert_true(bide_event_is_set(&spawned.ended));
        assert_int_equal(spawned.root.status, -i);
    }
}

static void *stop_once_parked(void *argument)
{
    bide_run_loop *loop = argument;
    schedule_until(is_parked(loop));
    bide_run_loop_stop(loop);
    return NULL;
}

static void stop_wakes_a_loop_that_sleeps(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        bide_run_loop *loop = aligned_alloc(BIDE_CACHE_LINE, sizeof *loop);
        assert_non_null(loop);
        bide_run_loop_init(loop);
        pthread_t thread = schedule_thread(stop_once_parked, loop);
        bide_run_loop_run(loop);
        free(loop); /* the other thread may still be inside stop */
        pthread_join(thread, NULL);
    }
}

/* ---- run_ready ---- */

static void run_ready_returns_how_many_it_resumed_and_does_not_sleep(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);

    bide_event event;
    bide_event_init(&event, false);
    witness tasks[3];
    bide_spawned spawned[3];
    for (int i = 0; i < 3; i++)
        bide_spawn(&spawned[i], &loop.context, witness_run(&tasks[i], i == 0 ? NULL : &event, 0));
    assert_int_equal(bide_run_loop_run_ready(&loop), 3);
    assert_true(bide_event_is_set(&spawned[0].ended));
    assert_false(bide_event_is_set(&spawned[1].ended));
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);

    bide_event_set(&event);
    assert_int_equal(bide_run_loop_run_ready(&loop), 2);
    assert_true(bide_event_is_set(&spawned[1].ended));
    assert_true(bide_event_is_set(&spawned[2].ended));
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
}

/* Sets `set`, then waits for `wait_for`. */
struct relay {
    bide_task task;
    bide_event set;
    bide_event *wait_for;
    bide_event_waiter wait;
};

bide_coroutine(relay_body)
{
    bide_begin(relay_body, struct relay * self);
    bide_event_set(&self->set);
    bide_await(bide_event_wait(&self->wait, self->wait_for));
    bide_end();
}

static void run_ready_resumes_what_becomes_ready_meanwhile(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct relay relays[3];
    bide_spawned spawned[3];
    for (int i = 0; i < 3; i++)
        bide_event_init(&relays[i].set, false);
    for (int i = 0; i < 3; i++) {
        relays[i].wait_for = &relays[(i + 1) % 3].set;
        bide_spawn(&spawned[i], &loop.context, bide_task_init(&relays[i].task, &relay_body));
    }
    /* Three starts; the first two waits suspend, the third finds its event set. */
    assert_int_equal(bide_run_loop_run_ready(&loop), 5);
    for (int i = 0; i < 3; i++)
        assert_true(bide_event_is_set(&spawned[i].ended));
}

/* Drives `inner`, and wakes the waiters for `event` on both loops. */
struct driver {
    bide_task task;
    bide_run_loop *inner;
    bide_event *event;
    size_t resumed;
};

bide_coroutine(driver_body)
{
    bide_begin(driver_body, struct driver * self);
    bide_event_set(self->event);
    self->resumed = bide_run_loop_run_ready(self->inner);
    bide_end();
}

static void a_loop_may_be_driven_from_another(void **state)
{
    (void)state;
    bide_run_loop outer, inner;
    bide_run_loop_init(&outer);
    bide_run_loop_init(&inner);
    bide_event event;
    bide_event_init(&event, false);
    witness inside, outside;
    bide_spawned in_inner, in_outer;
    bide_spawn(&in_inner, &inner.context, witness_run(&inside, &event, 0));
    bide_spawn(&in_outer, &outer.context, witness_run(&outside, &event, 0));
    assert_int_equal(bide_run_loop_run_ready(&inner), 1);
    assert_int_equal(bide_run_loop_run_ready(&outer), 1);

    struct driver driver = {.inner = &inner, .event = &event};
    assert_int_equal(bide_run_loop_wait(&outer, bide_task_init(&driver.task, &driver_body)), 0);
    assert_int_equal(driver.resumed, 1);
    assert_true(bide_event_is_set(&in_inner.ended));
    bide_run_loop_run_ready(&outer);
    assert_true(bide_event_is_set(&in_outer.ended));
}

/* ---- Sleeping ---- */

enum { SLEEPS = 2000 };

struct sleeper {
    bide_task task;
    bide_run_loop loop;
    bide_event event;
    bide_event_waiter wait;
    unsigned wakes;
    uint64_t random; /* the waker's */
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    for (self->wakes = 0; self->wakes < SLEEPS; self->wakes++) {
        bide_await(bide_event_wait(&self->wait, &self->event));
        bide_event_reset(&self->event);
    }
    bide_end();
}

static void *wake_when_parked(void *argument)
{
    struct sleeper *sleeper = argument;
    for (unsigned i = 0; i < SLEEPS; i++) {
        schedule_until(schedule_is_awaited(&sleeper->event) && is_parked(&sleeper->loop));
        schedule_jitter(&sleeper->random);
        bide_event_set(&sleeper->event);
    }
    return NULL;
}

static void an_idle_loop_sleeps_and_a_post_wakes_it(void **state)
{
    (void)state;
    struct sleeper sleeper = {.random = testing_seed()};
    bide_run_loop_init(&sleeper.loop);
    bide_event_init(&sleeper.event, false);
    pthread_t thread = schedule_thread(wake_when_parked, &sleeper);
    bide_run_loop_wait(&sleeper.loop, bide_task_init(&sleeper.task, &sleeper_body));
    assert_int_equal(sleeper.wakes, SLEEPS);
    pthread_join(thread, NULL);
}

static void once_by_run(bide_run_loop *loop)
{
    bide_run_loop_stop(loop);
    bide_run_loop_run(loop);
}

static void once_by_wait(bide_run_loop *loop)
{
    witness task;
    bide_run_loop_wait(loop, witness_run(&task, NULL, 0));
}

static void once_by_run_ready(bide_run_loop *loop)
{
    bide_run_loop_run_ready(loop);
}

struct visit {
    bide_run_loop loop;
    bide_event event;
    witness task;
};

static void *wait_here(void *argument)
{
    struct visit *visit = argument;
    bide_run_loop_wait(&visit->loop, witness_run(&visit->task, &visit->event, 0));
    return NULL;
}

static void a_loop_may_go_from_one_thread_to_another(void **state)
{
    (void)state;
    void (*const once[])(bide_run_loop *) = {once_by_run, once_by_wait, once_by_run_ready};
    for (int i = 0; i < 3; i++) {
        struct visit visit;
        bide_run_loop_init(&visit.loop);
        bide_event_init(&visit.event, false);
        once[i](&visit.loop);
        pthread_t thread = schedule_thread(wait_here, &visit);
        schedule_until(schedule_is_awaited(&visit.event) && is_parked(&visit.loop));
        bide_event_set(&visit.event);
        pthread_join(thread, NULL);
        assert_true(pthread_equal(visit.task.ended_on, thread));
    }
}

/* ---- The context ---- */

struct nested {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    const bide_context *at_start; /* (may be gone afterwards) */
    const bide_context *after_wait;
    struct nested *child; /* or NULL */
};

bide_coroutine(nested_body)
{
    bide_begin(nested_body, struct nested * self);
    self->at_start = bide_this_context();
    if (self->child != NULL)
        bide_try(bide_task_init(&self->child->task, &nested_body));
    bide_await(bide_event_wait(&self->wait, self->event));
    self->after_wait = bide_this_context();
    bide_end();
}

static void coroutines_inherit_the_context(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    loop.context.stop = &stop;
    loop.context.name = "loop";
    bide_context copy = {.scheduler = loop.context.scheduler, .name = "copy"};

    /* Each root has a copy of its own. The first has a stop source, so its coroutines have their own. */
    const bide_context *contexts[] = {&loop.context, &copy};
    for (int i = 0; i < 2; i++) {
        bide_event event;
        bide_event_init(&event, false);
        struct nested grandchild = {.event = &event};
        struct nested child = {.event = &event, .child = &grandchild};
        struct nested first = {.event = &event, .child = &child};
        bide_spawned spawned;
        bide_spawn(&spawned, contexts[i], bide_task_init(&first.task, &nested_body));
        bide_run_loop_run_ready(&loop);
        bide_event_set(&event);
        bide_run_loop_run_ready(&loop);
        assert_true(bide_event_is_set(&spawned.ended));

        assert_ptr_equal(first.at_start, &spawned.root.context);
        assert_ptr_equal(first.at_start->scheduler, contexts[i]->scheduler);
        assert_string_equal(first.at_start->name, contexts[i]->name);
        assert_true((first.at_start->stop == NULL) == (contexts[i]->stop == NULL));
        struct nested *all[] = {&first, &child, &grandchild};
        for (int j = 0; j < 3; j++) {
            assert_ptr_equal(all[j]->at_start, first.at_start);
            assert_ptr_equal(all[j]->after_wait, first.at_start);
        }
    }
    assert_ptr_equal(loop.context.scheduler, &loop.scheduler);
    assert_ptr_equal(loop.context.stop, &stop);
    assert_string_equal(loop.context.name, "loop");
}

/* ---- Two loops ---- */

enum { HOPS = 20000 };

struct player {
    bide_task task;
    bide_event_waiter wait;
    bide_event *mine;
    bide_event *theirs;
    pthread_t home;
    unsigned hops;
    unsigned hops_elsewhere;
};

bide_coroutine(player_body)
{
    bide_begin(player_body, struct player * self);
    for (self->hops = 0; self->hops < HOPS; self->hops++) {
        bide_await(bide_event_wait(&self->wait, self->mine));
        if (!pthread_equal(pthread_self(), self->home))
            self->hops_elsewhere++;
        bide_event_reset(self->mine);
        bide_event_set(self->theirs);
    }
    bide_end();
}

static void *play(void *argument)
{
    struct player *player = argument;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    player->home = pthread_self();
    bide_run_loop_wait(&loop, bide_task_init(&player->task, &player_body));
    return NULL;
}

static void two_loops_wake_each_other_each_on_its_own_thread(void **state)
{
    (void)state;
    bide_event ping, pong;
    bide_event_init(&ping, true);
    bide_event_init(&pong, false);
    struct player pinger = {.mine = &ping, .theirs = &pong};
    struct player ponger = {.mine = &pong, .theirs = &ping};
    pthread_t thread = schedule_thread(play, &ponger);
    play(&pinger);
    pthread_join(thread, NULL);
    assert_int_equal(pinger.hops, HOPS);
    assert_int_equal(ponger.hops, HOPS);
    assert_int_equal(pinger.hops_elsewhere, 0);
    assert_int_equal(ponger.hops_elsewhere, 0);
    assert_true(bide_event_is_set(&ping));
    assert_false(bide_event_is_set(&pong));
}

/* ---- A busy loop ---- */

enum { MAX_TURNS_AT = 1000000 };

/* Stops the restless coroutines. */
struct ender {
    bide_task task;
    bide_spawned spawned;
    bide_run_loop *loop;
    bool ended;
};

bide_coroutine(ender_body)
{
    bide_begin(ender_body, struct ender * self);
    self->ended = true;
    bide_end();
}

static void *spawn_ender(void *argument)
{
    struct ender *ender = argument;
    bide_spawn(&ender->spawned, &ender->loop->context, bide_task_init(&ender->task, &ender_body));
    return NULL;
}

/* Alternates with another of its kind; meanwhile another thread posts the coroutine that stops both. */
struct restless {
    bide_task task;
    bide_spawned spawned;
    bide_event_waiter wait;
    bide_event *mine;
    bide_event *theirs;
    struct ender *ender;
    bool spawns;
    unsigned turns;
};

bide_coroutine(restless_body)
{
    bide_begin(restless_body, struct restless * self);
    for (self->turns = 0; !self->ender->ended && self->turns < MAX_TURNS_AT; self->turns++) {
        bide_await(bide_event_wait(&self->wait, self->mine));
        bide_event_reset(self->mine);
        bide_event_set(self->theirs);
        if (self->spawns && self->turns == 10)
            pthread_join(schedule_thread(spawn_ender, self->ender), NULL);
    }
    bide_event_set(self->theirs);
    bide_end();
}

static void a_loop_that_is_never_idle_takes_what_other_threads_post(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct ender ender = {.loop = &loop};
    bide_event events[2];
    struct restless restless[2];
    for (int i = 0; i < 2; i++)
        bide_event_init(&events[i], i == 0);
    for (int i = 0; i < 2; i++) {
        restless[i] = (struct restless){
            .mine = &events[i], .theirs = &events[1 - i], .ender = &ender, .spawns = i == 0};
        bide_spawn(&restless[i].spawned, &loop.context,
                   bide_task_init(&restless[i].task, &restless_body));
    }
    bide_run_loop_run_ready(&loop);
    assert_true(ender.ended);
    assert_true(restless[0].turns < MAX_TURNS_AT);
}

/* ---- Many posters ---- */

enum { POSTERS = 4, TASKS_EACH = 10000 };

struct crowd {
    bide_run_loop loop;
    pthread_t home;
    /* of the loop's thread */
    unsigned ended;
    unsigned elsewhere;
    bide_event all_ended;
};

struct member {
    bide_task task;
    bide_spawned spawned;
    struct crowd *crowd;
    bide_event *event; /* or NULL */
    bide_event_waiter wait;
    unsigned ends;
};

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    if (self->event != NULL)
        bide_await(bide_event_wait(&self->wait, self->event));
    self->ends++;
    if (!pthread_equal(pthread_self(), self->crowd->home))
        self->crowd->elsewhere++;
    if (++self->crowd->ended == POSTERS * TASKS_EACH)
        bide_event_set(&self->crowd->all_ended);
    bide_end();
}

struct poster {
    struct crowd *crowd;
    uint64_t random;
    struct member members[TASKS_EACH];
    bide_event events[TASKS_EACH];
};

/* Spawns tasks in groups of up to 16; the tasks of a group may wait for an event that follows them. */
static void *post_members(void *argument)
{
    struct poster *poster = argument;
    unsigned next = 0;
    while (next < TASKS_EACH) {
        bide_event *event = &poster->events[next];
        bide_event_init(event, false);
        unsigned end = next + 1 + (unsigned)(testing_random(&poster->random) % 16);
        for (; next < end && next < TASKS_EACH; next++) {
            struct member *member = &poster->members[next];
            member->crowd = poster->crowd;
            member->event = testing_random(&poster->random) % 2 == 0 ? event : NULL;
            member->ends = 0;
            bide_spawn(&member->spawned, &poster->crowd->loop.context,
                       bide_task_init(&member->task, &member_body));
        }
        schedule_jitter(&poster->random);
        bide_event_set(event);
    }
    return NULL;
}

static void what_many_threads_post_ends_exactly_once(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    struct crowd crowd = {.home = pthread_self()};
    bide_run_loop_init(&crowd.loop);
    bide_event_init(&crowd.all_ended, false);
    struct poster *posters = malloc(POSTERS * sizeof *posters);
    assert_non_null(posters);
    pthread_t threads[POSTERS];
    for (unsigned i = 0; i < POSTERS; i++) {
        posters[i].crowd = &crowd;
        posters[i].random = seed + i;
        threads[i] = schedule_thread(post_members, &posters[i]);
    }
    bide_event_waiter wait;
    assert_int_equal(bide_run_loop_wait(&crowd.loop, bide_event_wait(&wait, &crowd.all_ended)), 0);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(bide_run_loop_run_ready(&crowd.loop), 0);
    assert_int_equal(crowd.ended, POSTERS * TASKS_EACH);
    assert_int_equal(crowd.elsewhere, 0);
    for (unsigned i = 0; i < POSTERS; i++) {
        for (unsigned j = 0; j < TASKS_EACH; j++) {
            assert_int_equal(posters[i].members[j].ends, 1);
            assert_true(bide_event_is_set(&posters[i].members[j].spawned.ended));
        }
    }
    free(posters);
}

/* ---- The loop's memory ---- */

enum { LIVES = 5000 };

/* One life of a loop: another thread wakes its task, and the loop is destroyed when the task has ended. */
struct life {
    bide_run_loop loop;
    bide_event event;
    witness task;
};

struct waker {
    bide_atomic(bide_event *) event; /* set once it has a waiter; NULL: none now */
    bide_atomic(bool) ending;
};

static void *set_what_is_awaited(void *argument)
{
    struct waker *waker = argument;
    while (!bide_atomic_load(&waker->ending, relaxed)) {
        bide_event *event = bide_atomic_exchange(&waker->event, NULL, acquire);
        if (event == NULL) {
            sched_yield();
        } else {
            schedule_until(schedule_is_awaited(event));
            bide_event_set(event);
        }
    }
    return NULL;
}

static int live(struct life *life, struct waker *waker)
{
    bide_run_loop_init(&life->loop);
    bide_event_init(&life->event, false);
    bide_awaiter *task = witness_run(&life->task, &life->event, -EDOM);
    bide_atomic_store(&waker->event, &life->event, release);
    return bide_run_loop_wait(&life->loop, task);
}

static int live_on_the_heap(struct waker *waker)
{
    struct life *life = aligned_alloc(BIDE_CACHE_LINE, sizeof *life);
    assert_non_null(life);
    int status = live(life, waker);
    free(life);
    return status;
}

static __attribute__((noinline)) int live_on_the_stack(struct waker *waker)
{
    struct life life;
    return live(&life, waker);
}

static void live_often(int (*once)(struct waker *))
{
    struct waker waker;
    bide_atomic_init(&waker.event, NULL);
    bide_atomic_init(&waker.ending, false);
    pthread_t thread = schedule_thread(set_what_is_awaited, &waker);
    for (int i = 0; i < LIVES; i++)
        assert_int_equal(once(&waker), -EDOM);
    bide_atomic_store(&waker.ending, true, relaxed);
    pthread_join(thread, NULL);
}

static void the_loop_may_be_freed_when_its_task_has_ended(void **state)
{
    (void)state;
    live_often(live_on_the_heap);
}

static void the_loop_may_leave_the_stack_when_its_task_has_ended(void **state)
{
    (void)state;
    live_often(live_on_the_stack);
}

/* ---- The end ---- */

struct late {
    bide_task task;
    bide_sleep sleep;
};

bide_coroutine(late_body)
{
    bide_begin(late_body, struct late * self);
    bide_try(bide_sleep_until(&self->sleep, bide_platform.now() + UINT64_C(3600000000000)));
    bide_end();
}

/* The loop's own posts, for a cleared timer and a late stop, do not keep it in use. */
static void a_loop_with_nothing_left_may_go(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_timer timer;
    bide_frame frame = {.context = &loop.context};
    witness task;
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, witness_run(&task, NULL, -EDOM)), -EDOM);
    bide_timer_init(&timer, bide_platform.now() + UINT64_C(3600000000000));
    timer.awaiter.frame = &frame;
    assert_int_equal(loop.scheduler.set_timer(&loop.scheduler, &timer), 0);
    assert_true(loop.scheduler.clear_timer(&loop.scheduler, &timer));
    bide_run_loop_stop(&loop);
    bide_run_loop_destroy(&loop);
}

#if BIDE_DEBUG
static void destroy_it_while_one_sleeps(void)
{
    bide_run_loop loop;
    struct late late;
    bide_spawned spawned;
    bide_run_loop_init(&loop);
    bide_spawn(&spawned, &loop.context, bide_task_init(&late.task, &late_body));
    bide_run_loop_run_ready(&loop);
    bide_run_loop_destroy(&loop);
}

static void destroy_it_while_one_waits(void)
{
    bide_run_loop loop;
    bide_event event;
    witness task;
    bide_spawned spawned;
    bide_run_loop_init(&loop);
    bide_event_init(&event, false);
    bide_spawn(&spawned, &loop.context, witness_run(&task, &event, 0));
    bide_run_loop_run_ready(&loop);
    bide_run_loop_destroy(&loop);
}

/* The posted coroutine is not a root. */
static void destroy_it_while_one_is_queued(void)
{
    bide_run_loop precious;
    witness one;
    bide_run_loop_init(&precious);
    bide_await_later(bide_task_init(&one.task, &witness_body));
    one.task.frame.context = &precious.context;
    one.task.frame.awaiter.frame = &one.task.frame;
    bide_wake_one(&one.task.frame.awaiter);
    bide_run_loop_destroy(&precious);
}

struct destroys {
    bide_task task;
    bide_run_loop *loop;
};

bide_coroutine(destroys_body)
{
    bide_begin(destroys_body, struct destroys * self);
    bide_run_loop_destroy(self->loop);
    bide_end();
}

static void destroy_it_while_it_runs(void)
{
    bide_run_loop loop;
    struct destroys destroys = {.loop = &loop};
    bide_run_loop_init(&loop);
    bide_run_loop_wait(&loop, bide_task_init(&destroys.task, &destroys_body));
}

static void to_destroy_it_while_something_of_it_is_left_is_misuse(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_it_while_one_sleeps, "a timer of it is set", "late_body"));
    assert_true(
        misuse_aborts_naming(destroy_it_while_one_waits, "a task of it waits", "witness_body"));
    assert_true(misuse_aborts_naming(destroy_it_while_one_is_queued, "in use: &precious",
                                     "destroy_it_while_one_is_queued"));
    assert_true(
        misuse_aborts_naming(destroy_it_while_it_runs, "in use: self->loop", "destroys_body"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_runs_a_task_to_its_end_and_returns_its_status),
        cmocka_unit_test(a_coroutine_woken_by_another_thread_resumes_on_the_loops_thread),
        cmocka_unit_test(posts_of_another_thread_run_in_their_order),
        cmocka_unit_test(posts_of_the_loops_own_thread_run_in_their_order),
        cmocka_unit_test(a_post_that_happens_before_another_runs_before_it),
        cmocka_unit_test(waiters_of_an_event_resume_in_their_order),
        cmocka_unit_test(stop_ends_run_after_what_was_posted_before_it),
        cmocka_unit_test(a_coroutine_of_the_loop_may_stop_it),
        cmocka_unit_test(a_coroutines_stop_comes_after_what_other_threads_posted_before_it),
        cmocka_unit_test(stop_before_run_ends_that_run),
        cmocka_unit_test(a_second_stop_before_the_end_of_run_does_nothing),
        cmocka_unit_test(a_loop_runs_again_after_stop),
        cmocka_unit_test(stop_wakes_a_loop_that_sleeps),
        cmocka_unit_test(run_ready_returns_how_many_it_resumed_and_does_not_sleep),
        cmocka_unit_test(run_ready_resumes_what_becomes_ready_meanwhile),
        cmocka_unit_test(a_loop_may_be_driven_from_another),
        cmocka_unit_test(an_idle_loop_sleeps_and_a_post_wakes_it),
        cmocka_unit_test(a_loop_may_go_from_one_thread_to_another),
        cmocka_unit_test(a_loop_that_is_never_idle_takes_what_other_threads_post),
        cmocka_unit_test(coroutines_inherit_the_context),
        cmocka_unit_test(two_loops_wake_each_other_each_on_its_own_thread),
        cmocka_unit_test(what_many_threads_post_ends_exactly_once),
        cmocka_unit_test(the_loop_may_be_freed_when_its_task_has_ended),
        cmocka_unit_test(the_loop_may_leave_the_stack_when_its_task_has_ended),
        cmocka_unit_test(a_loop_with_nothing_left_may_go),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_something_of_it_is_left_is_misuse),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
