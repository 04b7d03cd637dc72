/*
 * A pool whose workers sleep in loops: an operation that begins outside starts on its own loop, a
 * completion wakes the loop's worker, posts to the pool wake workers that sleep there, and the pool
 * ends. The loops perform no operation; completions are posted to them, as by a thread for blocking
 * calls.
 */
#include "../src/io/offload.h"
#include "../src/schedule/pool/worker.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/io_pool.h"
#include "bide/schedule.h"
#include "bide/task.h"

#include <errno.h>

enum { LATER = 5 };

typedef struct state {
    bide_thread_pool *pool;
    bide_context context;
    bide_event event;
    bide_event begun;
} state;

/* ---- Loops that sleep on their word ---- */

static state *only; /* with `begun` set */

static void look(bide_run_loop *run)
{
    (void)run;
}

static bool sleep_on_word(bide_run_loop *run)
{
    uint32_t parked;
    bide_atomic(uint32_t) *word = bide_run_loop_word_(run, &parked);
    if (!bide_run_loop_park_(run))
        return false;
    bide_platform.wait(word, parked, BIDE_FOREVER); /* no timer is waited for */
    bide_run_loop_unpark_(run);
    return true;
}

static void enter(bide_run_loop *run)
{
    (void)run;
}

static const struct bide_run_loop_events_ events = {look, sleep_on_word, look, enter, NULL};

static const bide_io_table table = {.name = "none"};

int bide_loop_create(bide_loop **created, const bide_loop_options *options)
{
    bide_loop *loop = bide_check_alloc(sizeof *loop);
    (void)options;
    bide_run_loop_init(&loop->run);
    loop->run.pace.spins = 0;
    loop->run.events = &events;
    bide_io_init(&loop->io, &table, &loop->run.scheduler);
    *created = loop;
    return 0;
}

void bide_loop_destroy(bide_loop *loop)
{
    bide_run_loop_destroy(&loop->run);
    bide_check_free(loop);
}

/* not called: the options provide blocking calls */
int bide_loop_create_file_pool_(bide_blocking **files)
{
    (void)files;
    return -1;
}

void bide_blocking_destroy(bide_blocking *blocking)
{
    (void)blocking;
}

void bide_io_release(bide_io_operation *operation)
{
    (void)operation;
}

int bide_io_close_number_(bide_io *io, int fd)
{
    (void)io, (void)fd; /* no scenario has descriptors */
    return -EBADF;
}

bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    (void)frame;
    bide_check_assert(operation->io == io && bide_io_on_owner_thread_(io));
    operation->state |= IO_WAITING;
    bide_event_set(&only->begun);
    return NULL;
}

static void set_up(void *p)
{
    state *s = only = p;
    bide_event_init(&s->event, false);
    bide_event_init(&s->begun, false);
}

static void create(state *s, unsigned workers)
{
    bide_blocking *none = (bide_blocking *)(void *)s; /* not used */
    bide_io_pool_options options = {.threads = {.threads = workers}, .loop = {.files = none}};
    bide_check_assert(bide_io_pool_create(&s->pool, &options) == 0);
    s->context = (bide_context){.scheduler = bide_thread_pool_scheduler(s->pool)};
}

/* ---- Operations that are awaited outside, and complete ---- */

struct waiter {
    bide_task task;
    state *state;
    bide_io_operation operation;
    bide_frame relay;
};

static bide_frame *wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    return bide_io_forward_(frame->context->scheduler->io(frame->context->scheduler), operation);
}

static int wait_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_io_operation, awaiter)->status;
}

static bide_awaiter *begin(struct waiter *self)
{
    static const bide_awaiter_ops ops = {
        .suspend = wait_suspend, .resume = wait_resume, .name = "wait"};
    bide_io_operation_init(&self->operation, &ops, BIDE_IO_RECV, NULL);
    return &self->operation.awaiter;
}

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_try(begin(self));
    bide_event_set(&self->state->event);
    bide_end();
}

static bide_next relay_step(bide_frame *frame, unsigned depth)
{
    struct waiter *waiter = bide_container_of(frame, struct waiter, relay);
    (void)depth;
    bide_io_finish_waiting(&waiter->operation, BIDE_IO_DONE);
    return bide_next_none();
}

static const bide_coroutine_code relay_code = {relay_step, "relay", __FILE__, NULL, NULL};
static const bide_point relay_point = BIDE_POINT_START(&relay_code);

static void wait_for(bide_event *event)
{
    bide_event_waiter wait;
    bide_check_await(bide_event_wait(&wait, event));
}

static void begin_and_do(void *p)
{
    state *s = p;
    struct waiter waiter = {.state = s};
    create(s, 1);
    bide_start(&waiter.task.frame, &waiter_body, &s->context);
    bide_resume(&waiter.task.frame);
    wait_for(&s->begun);
    bide_io *io = waiter.operation.io;
    bide_frame_init_in(&waiter.relay, &relay_point, &io->context);
    waiter.relay.awaiter.frame = &waiter.relay;
    io->scheduler->post(io->scheduler, &waiter.relay.awaiter, &waiter.relay.awaiter);
    wait_for(&s->event);
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario done = {
    .name = "what_begins_outside_is_done_at_home",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {begin_and_do},
    .never_spurious = true,
    .preemptions = 2,
};

/* ---- Operations of the pool ---- */

/* Begins outside, and moves to the pool. */
struct mover {
    bide_task task;
    state *state;
    bide_schedule_operation move;
};

bide_coroutine(mover_body)
{
    bide_begin(mover_body, struct mover * self);
    bide_try(bide_schedule(&self->move, self->state->context.scheduler));
    bide_event_set(&self->state->event);
    bide_end();
}

static void run_one(state *s, unsigned workers)
{
    struct mover mover = {.state = s};
    create(s, workers);
    bide_start(&mover.task.frame, &mover_body, &s->context);
    bide_resume(&mover.task.frame);
    wait_for(&s->event);
    bide_thread_pool_destroy(s->pool);
}

static void post_outside(void *p)
{
    run_one(p, 1);
}

/* The worker that is the timekeeper is kicked, and woken then. */
static void set_timer_and_post(void *p)
{
    state *s = p;
    struct mover mover = {.state = s};
    bide_timer timer;
    create(s, 1);
    timer.time = LATER;
    s->context.scheduler->set_timer(s->context.scheduler, &timer);
    bide_check_assert(s->context.scheduler->clear_timer(s->context.scheduler, &timer));
    bide_start(&mover.task.frame, &mover_body, &s->context);
    bide_resume(&mover.task.frame);
    wait_for(&s->event);
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario poked = {
    .name = "a_worker_is_poked_and_woken",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {set_timer_and_post},
    .never_spurious = true,
    .preemptions = 2,
};

static const bide_check_scenario posted = {
    .name = "what_is_posted_outside_runs",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {post_outside},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&done, &posted, &poked, NULL};
    static const char *const files[] = {"io_pool.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
