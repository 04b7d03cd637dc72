/*
 * Forks of coroutines: parents that are popped at the end of their children, stolen by another
 * worker, or left on the deque while a child waits; and joins at which each of these is the last.
 * Every forked coroutine has run once when the first one ends, and its writes are visible.
 */
#include "bide/check.h"
#include "bide/check_pthread.h"
#include "bide/event.h"
#include "bide/fork.h"
#include "bide/with_stop.h"

#include "../../src/schedule/pool/fork_stacks.h"

#include <errno.h>

enum { WORKERS = 3, LEAVES = 4 };

typedef struct family family;

/* The body records what it does. */
struct first {
    bide_fork_task forking;
    family *of;
    int status;
    int sum;
};

struct leaf {
    bide_fork_task forking;
    family *of;
    int *result;
    int error;
};

/* Waits until it is asked to stop. */
struct stopped_leaf {
    bide_fork_task forking;
    family *of;
    int *result;
    bide_event_waiter wait;
    int status;
};

/* Waits for an event that its parent sets. */
struct waiting_leaf {
    bide_fork_task forking;
    family *of;
    int *result;
    unsigned index;
    bide_awaiter wait;
};

struct family {
    bide_thread_pool *pool;
    bide_context context;
    struct first first;
    int results[LEAVES];
    bide_atomic(bide_awaiter *) waits[2]; /* of the waiting children */
    bide_frame *held;                     /* one thread only: a waiting child */
    bide_awaiter woken;                   /* instead of forking, which is optional */
    bide_event never;
    bide_stop_source stop;  /* of the context, where it has one */
    bide_stop_source token; /* of a join */
    bide_with_stop_operation under;
};

/* ---- Bodies ---- */

bide_fork_coroutine(leaf_body)
{
    bide_begin(leaf_body, struct leaf * self);
    bide_check_assert(*self->result == 0);
    *self->result = 1;
    bide_return(self->error);
    bide_end();
}

bide_fork_coroutine(branch_body)
{
    bide_begin(branch_body, struct leaf * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[1], error = 0));
    *self->result = 1;
    bide_try(bide_fork_join(self));
    bide_check_assert(self->of->results[1] == 1);
    bide_end();
}

bide_fork_coroutine(one_body)
{
    bide_begin(one_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = -EIO));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0];
    bide_end();
}

bide_fork_coroutine(two_body)
{
    bide_begin(two_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = -EIO));
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[1], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1];
    bide_end();
}

/* The second value was written by a child's child; then it forks on the joined one. */
bide_fork_coroutine(nested_body)
{
    bide_begin(nested_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &branch_body, of = self->of,
                         result = &self->of->results[0], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1];
    bide_end();
}

bide_fork_coroutine(again_body)
{
    bide_begin(again_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = 0));
    bide_try(bide_fork_join(self));
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[1], error = -EIO));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1];
    bide_end();
}

bide_fork_coroutine(calling_body)
{
    bide_begin(calling_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = 0));
    bide_try(bide_fork_call(self, struct leaf, &branch_body, of = self->of,
                            result = &self->of->results[2], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1] + self->of->results[2];
    bide_end();
}

bide_fork_coroutine(unjoined_body)
{
    bide_begin(unjoined_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = -EIO));
    self->sum = 1;
    self->status = -EIO;
    bide_end();
}

/* ---- A wait ---- */

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    struct waiting_leaf *self = bide_container_of(awaiter, struct waiting_leaf, wait);
    return bide_atomic_exchange(&self->of->waits[self->index], awaiter, acq_rel) == NULL ? NULL
                                                                                         : frame;
}

static int wait_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bide_awaiter *wait_for(bide_awaiter *wait)
{
    static const bide_awaiter_ops ops = {.suspend = wait_suspend, .resume = wait_resume};
    wait->ops = &ops;
    return wait;
}

bide_fork_coroutine(waiting_leaf_body)
{
    bide_begin(waiting_leaf_body, struct waiting_leaf * self);
    bide_await(wait_for(&self->wait));
    *self->result = 1;
    bide_return(-EIO);
    bide_end();
}

static void wake(family *f, unsigned index)
{
    bide_awaiter *waits = bide_atomic_exchange(&f->waits[index], &f->woken, acq_rel);
    if (waits != NULL)
        bide_wake_one(waits);
}

/* The parent wakes its child, and forks another one in between. */
bide_fork_coroutine(waking_body)
{
    bide_begin(waking_body, struct first * self);
    bide_await(bide_fork(self, struct waiting_leaf, &waiting_leaf_body, of = self->of,
                         result = &self->of->results[0], index = 0));
    wake(self->of, 0);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[1], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1];
    bide_end();
}

/* The same again, after the parent may have been stolen. */
bide_fork_coroutine(waking_twice_body)
{
    bide_begin(waking_twice_body, struct first * self);
    bide_await(bide_fork(self, struct waiting_leaf, &waiting_leaf_body, of = self->of,
                         result = &self->of->results[0], index = 0));
    wake(self->of, 0);
    bide_await(bide_fork(self, struct waiting_leaf, &waiting_leaf_body, of = self->of,
                         result = &self->of->results[1], index = 1));
    wake(self->of, 1);
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1];
    bide_end();
}

/* ---- A child that ends while its parent is on the deque for another ---- */

static bide_frame *hold_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    struct waiting_leaf *self = bide_container_of(awaiter, struct waiting_leaf, wait);
    bide_frame *held = self->of->held;
    self->of->held = frame;
    return held; /* the other continues, on this stack of the thread */
}

static bide_awaiter *hold(bide_awaiter *wait)
{
    static const bide_awaiter_ops ops = {.suspend = hold_suspend, .resume = wait_resume};
    wait->ops = &ops;
    return wait;
}

bide_fork_coroutine(held_body)
{
    bide_begin(held_body, struct waiting_leaf * self);
    bide_await(hold(&self->wait));
    *self->result = 1;
    bide_end();
}

/* One thread. The first child waits; the second waits too, and lets the first continue. */
bide_fork_coroutine(holding_body)
{
    bide_begin(holding_body, struct first * self);
    bide_await(bide_fork(self, struct waiting_leaf, &held_body, of = self->of,
                         result = &self->of->results[0]));
    bide_await(bide_fork(self, struct waiting_leaf, &held_body, of = self->of,
                         result = &self->of->results[1]));
    bide_check_assert(self->of->results[0] == 1 && self->of->results[1] == 0);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[2], error = 0));
    bide_wake_one(&bide_container_of(self->of->held, struct waiting_leaf, forking.frame)->wait);
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1] + self->of->results[2];
    bide_end();
}

bide_fork_coroutine(holding_branch_body)
{
    bide_begin(holding_branch_body, struct leaf * self);
    bide_await(bide_fork(self, struct waiting_leaf, &held_body, of = self->of,
                         result = &self->of->results[1]));
    *self->result = 1;
    bide_try(bide_fork_join(self));
    bide_end();
}

/* Likewise, with the parent of another as the last entry of the deque. */
bide_fork_coroutine(holding_deeper_body)
{
    bide_begin(holding_deeper_body, struct first * self);
    bide_await(bide_fork(self, struct waiting_leaf, &held_body, of = self->of,
                         result = &self->of->results[0]));
    bide_await(bide_fork(self, struct leaf, &holding_branch_body, of = self->of,
                         result = &self->of->results[2], error = 0));
    bide_check_assert(self->of->results[0] == 1 && self->of->results[1] == 0);
    bide_wake_one(&bide_container_of(self->of->held, struct waiting_leaf, forking.frame)->wait);
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0] + self->of->results[1] + self->of->results[2];
    bide_end();
}

bide_fork_coroutine(unjoined_well_body)
{
    bide_begin(unjoined_well_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = 0));
    self->sum = 1;
    self->status = -EIO;
    bide_end();
}

/* ---- Requests to stop ---- */

bide_fork_coroutine(stopped_leaf_body)
{
    bide_begin(stopped_leaf_body, struct stopped_leaf * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, &self->of->never));
    bide_check_assert(self->status == -ECANCELED);
    *self->result = 1;
    bide_return(self->status);
    bide_end();
}

bide_fork_coroutine(unasked_leaf_body)
{
    bide_begin(unasked_leaf_body, struct leaf * self);
    bide_check_assert(!bide_stop_requested(bide_this_context()->stop));
    *self->result = 1;
    bide_end();
}

bide_fork_coroutine(stopped_branch_body)
{
    bide_begin(stopped_branch_body, struct leaf * self);
    bide_await(bide_fork(self, struct stopped_leaf, &stopped_leaf_body, of = self->of,
                         result = &self->of->results[1]));
    bide_try(bide_fork_join(self));
    bide_end();
}

/* The parent goes on while its child waits; and perhaps there is no second child any more. */
bide_fork_coroutine(stopped_body)
{
    bide_begin(stopped_body, struct first * self);
    bide_await(bide_fork(self, struct stopped_leaf, &stopped_leaf_body, of = self->of,
                         result = &self->of->results[0]));
    bide_await(bide_fork(self, struct stopped_leaf, &stopped_leaf_body, of = self->of,
                         result = &self->of->results[1]));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = 1;
    bide_end();
}

bide_fork_coroutine(stopped_below_body)
{
    bide_begin(stopped_below_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &stopped_branch_body, of = self->of,
                         result = &self->of->results[0], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = 1;
    bide_end();
}

/* It is asked when its children have ended, which lay in the same memory. */
bide_fork_coroutine(stopped_late_body)
{
    bide_begin(stopped_late_body, struct first * self);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[0], error = 0));
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[1], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    bide_stop_request(&self->of->stop);
    bide_await(bide_fork(self, struct leaf, &leaf_body, of = self->of,
                         result = &self->of->results[2], error = 0));
    bide_await_status(self->status, bide_fork_join(self));
    self->sum = self->of->results[0];
    bide_end();
}

/* Only the join is asked: what is forked after it is not. */
bide_fork_coroutine(stopped_join_body)
{
    bide_begin(stopped_join_body, struct first * self);
    bide_await(bide_fork(self, struct stopped_leaf, &stopped_leaf_body, of = self->of,
                         result = &self->of->results[0]));
    bide_await_status(self->status,
                      bide_with_stop(&self->of->under, &self->of->token, bide_fork_join(self)));
    bide_check_assert(self->of->results[0] == 1);
    bide_await(bide_fork(self, struct leaf, &unasked_leaf_body, of = self->of,
                         result = &self->of->results[1], error = 0));
    bide_try(bide_fork_join(self));
    self->sum = self->of->results[1];
    bide_end();
}

/* ---- Threads ---- */

static bide_pool_worker *become(family *f, unsigned index)
{
    bide_pool_worker *worker = &f->pool->workers[index];
    bide_join_here_ = &worker->join;
    return worker;
}

static void begin(family *f, const bide_point *body)
{
    bide_pool_worker *worker = become(f, 0);
    f->first.of = f;
    bide_await_later(bide_fork_task_init(&f->first.forking, body));
    bide_frame_init_in(&f->first.forking.frame, body, &f->context);
    bide_resume(&f->first.forking.frame);
    bide_fork_task_leave_(worker);
}

static void take_from(family *f, unsigned self, unsigned victim)
{
    become(f, self);
    bide_join_half_ *taken = bide_join_steal_(&f->pool->workers[victim].join, NULL);
    if (taken != NULL)
        bide_fork_task_continue_(taken);
}

static void set_up(void *p);

static void set_up_stopping(void *p)
{
    family *f = p;
    set_up(p);
    bide_event_init(&f->never, false);
    bide_stop_source_init(&f->stop);
    bide_stop_source_init(&f->token);
    f->context.stop = &f->stop;
}

static void set_up(void *p)
{
    family *f = p;
    f->pool = bide_pool_make_(WORKERS, 0);
    f->context = (bide_context){.scheduler = &f->pool->scheduler};
    for (unsigned i = 0; i < WORKERS; i++)
        bide_join_deque_init_(&f->pool->workers[i].join, 0);
    for (unsigned i = 0; i < LEAVES; i++)
        f->results[i] = 0;
    f->first.sum = 0;
    bide_atomic_init(&f->waits[0], NULL);
    bide_atomic_init(&f->waits[1], NULL);
    f->held = NULL;
    f->first.status = 1;
}

static void check_end(family *f, int sum, int status)
{
    bide_check_assert(bide_done(&f->first.forking.frame));
    bide_check_assert(f->first.sum == sum);
    bide_check_assert(f->first.status == status);
    for (unsigned i = 0; i < WORKERS; i++)
        bide_check_assert(bide_join_deque_is_empty_(&f->pool->workers[i].join));
    bide_pool_free_(f->pool);
}

static void finish_one(void *p)
{
    check_end(p, 1, -EIO);
}

static void finish_two(void *p)
{
    check_end(p, 2, -EIO);
}

static void finish_nested(void *p)
{
    check_end(p, 2, 0);
}

static void finish_calling(void *p)
{
    check_end(p, 3, 0);
}

static void one(void *p)
{
    begin(p, &one_body);
}

static void two(void *p)
{
    begin(p, &two_body);
}

static void nested(void *p)
{
    begin(p, &nested_body);
}

static void again(void *p)
{
    begin(p, &again_body);
}

static void calling(void *p)
{
    begin(p, &calling_body);
}

static void unjoined(void *p)
{
    begin(p, &unjoined_body);
}

static bide_awaiter *take_injected(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bide_awaiter *awaiter = bide_awaiter_chain_take(&pool->injected);
    pthread_mutex_unlock(&pool->lock);
    return awaiter;
}

/* Runs the coroutines in its own ring and the woken ones. */
static void run_rest(family *f, unsigned index)
{
    bide_pool_worker *worker = &f->pool->workers[index];
    bide_awaiter *awaiter;
    while ((awaiter = bide_run_queue_take_(&worker->queue)) != NULL ||
           (awaiter = take_injected(f->pool)) != NULL) {
        bide_resume(awaiter->frame);
        bide_fork_task_leave_(worker);
    }
}

static void stopped(void *p)
{
    begin(p, &stopped_body);
    run_rest(p, 0);
}

static void stopped_below(void *p)
{
    begin(p, &stopped_below_body);
    run_rest(p, 0);
}

static void stopped_late(void *p)
{
    begin(p, &stopped_late_body);
}

static void stopped_join(void *p)
{
    begin(p, &stopped_join_body);
    run_rest(p, 0);
}

static void stop_family(void *p)
{
    become(p, 2);
    bide_stop_request(&((family *)p)->stop);
    run_rest(p, 2);
}

static void stop_join(void *p)
{
    become(p, 2);
    bide_stop_request(&((family *)p)->token);
    run_rest(p, 2);
}

static void finish_stopped(void *p)
{
    family *f = p;
    bide_check_assert(f->stop.first_child == NULL);
    bide_check_assert(f->token.first_child == NULL);
    bide_check_assert(
        bide_waiter_list_word_is_idle(bide_atomic_load(&f->never.waiters.word, relaxed)));
    check_end(p, 1, -ECANCELED);
}

static void waking(void *p)
{
    begin(p, &waking_body);
    run_rest(p, 0);
}

static void holding(void *p)
{
    begin(p, &holding_body);
    run_rest(p, 0);
}

static void holding_deeper(void *p)
{
    begin(p, &holding_deeper_body);
    run_rest(p, 0);
}

static void waking_twice(void *p)
{
    begin(p, &waking_twice_body);
    run_rest(p, 0);
}

static void unjoined_well(void *p)
{
    begin(p, &unjoined_well_body);
}

static void thief(void *p)
{
    take_from(p, 1, 0);
}

static void thief_that_runs(void *p)
{
    take_from(p, 1, 0);
    run_rest(p, 1);
}

static void thief_of_thief(void *p)
{
    take_from(p, 2, 1);
}

static void other_thief(void *p)
{
    take_from(p, 2, 0);
}

#define SCENARIO(variable, text, ...)                                             \
    static const bide_check_scenario variable = {.name = text,                    \
                                                 .size = sizeof(family),          \
                                                 .setup = set_up,                 \
                                                 .cxx20_release_sequences = true, \
                                                 .never_spurious = true,          \
                                                 __VA_ARGS__}

SCENARIO(s_one, "a_parent_is_popped_or_taken", .finish = finish_one, .threads = {one, thief});
SCENARIO(s_unjoined, "a_parent_waits_at_its_end", .finish = finish_one,
         .threads = {unjoined, thief});
SCENARIO(s_nested, "a_childs_child_is_seen", .finish = finish_nested, .threads = {nested, thief});
SCENARIO(s_again, "a_parent_forks_after_a_join", .finish = finish_two, .threads = {again, thief});
SCENARIO(s_calling, "a_parent_calls_when_it_has_forked", .finish = finish_calling,
         .threads = {calling, thief});
SCENARIO(s_two, "two_children_end_on_two_workers", .finish = finish_two,
         .threads = {two, thief, thief_of_thief});
SCENARIO(s_two_thieves, "a_parent_is_taken_by_one_of_two", .finish = finish_one,
         .threads = {one, thief, other_thief});
SCENARIO(s_waking, "a_child_waits_while_its_parent_goes_on", .finish = finish_two,
         .threads = {waking, thief_that_runs});

SCENARIO(s_holding, "a_child_ends_while_its_parent_stands_there_for_another",
         .finish = finish_calling, .threads = {holding});

SCENARIO(s_holding_deeper, "a_child_ends_while_anothers_parent_stands_there",
         .finish = finish_calling, .threads = {holding_deeper});
SCENARIO(s_unjoined_well, "a_parent_that_has_ended_ends_with_its_child", .finish = finish_one,
         .threads = {unjoined_well, thief});
SCENARIO(s_waking_twice, "a_parent_that_was_taken_has_a_child_that_waits", .finish = finish_two,
         .preemptions = 2, .threads = {waking_twice, thief_that_runs});

#define STOPPING(variable, text, ...)                                             \
    static const bide_check_scenario variable = {.name = text,                    \
                                                 .size = sizeof(family),          \
                                                 .setup = set_up_stopping,        \
                                                 .cxx20_release_sequences = true, \
                                                 .never_spurious = true,          \
                                                 .finish = finish_stopped,        \
                                                 __VA_ARGS__}

STOPPING(s_stopped, "a_family_is_asked_to_stop_while_it_forks", .preemptions = 1,
         .threads = {stopped, stop_family});
STOPPING(s_stopped_late, "a_family_is_asked_to_stop_when_its_children_have_ended",
         .threads = {stopped_late, thief});
STOPPING(s_stopped_below, "a_childs_child_is_asked_to_stop", .preemptions = 1,
         .threads = {stopped_below, stop_family});
STOPPING(s_stopped_join, "the_source_of_a_join_is_asked_to_stop",
         .threads = {stopped_join, stop_join});

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &s_one,           &s_unjoined,     &s_nested,        &s_again,   &s_calling,
        &s_two,           &s_two_thieves,  &s_waking,        &s_holding, &s_holding_deeper,
        &s_unjoined_well, &s_waking_twice,

        &s_stopped_late,  &s_stopped_join, &s_stopped_below, &s_stopped, NULL};
    static const char *const files[] = {"fork.h", "pool/fork.c", NULL};
    static const bide_check_reason reasons[] = {
        {NULL, NULL, NULL, NULL, NULL},
    };
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
