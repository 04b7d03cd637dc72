/*
 * A pool whose workers sleep in loops: an operation that begins outside starts on its own loop, a
 * completion wakes the loop's worker, posts to the pool wake workers that sleep there, and the pool
 * ends. A descriptor gets its home from outside; a worker that waits for another loop serves its own.
 * A pool that cannot be created leaves nothing. The loops perform no operation; completions are posted
 * to them, as by a thread for blocking calls.
 */
#include "../src/io/offload.h"
#include "../src/schedule/pool/worker.h"
#include "../src/system/threads.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/io_pool.h"
#include "bide/schedule.h"
#include "bide/task.h"

#include <errno.h>

enum { LATER = 5, WORKERS = 2, NUMBER = 3 /* of a descriptor */ };

typedef struct state {
    bide_thread_pool *pool;
    bide_context context;
    bide_event event;
    bide_event begun;
    bide_loop *loops[WORKERS]; /* of the pool */
    unsigned asked;            /* loops that the pool has asked for */
    unsigned refused;          /* the number of the loop that is refused; 0: none */
    int files_error;
    bool ends_sleeps; /* at their deadlines: where no timer is set, since time does not pass */
    bool are_files_own;
    bide_descriptor descriptor, closed;
    unsigned released; /* descriptors, by their home */
    bide_frame relay;
    unsigned relayed;
    bide_run_loop loop; /* of the thread outside */
    bide_io io;
} state;

/* ---- Loops that sleep on their word ---- */

typedef struct counted_loop {
    bide_loop loop;
    unsigned looks, takes;
    bool has_entered, has_left;
} counted_loop;

static state *only;

static counted_loop *counted_loop_of(bide_run_loop *run)
{
    return (counted_loop *)bide_container_of(run, bide_loop, run);
}

static void look(bide_run_loop *run)
{
    bide_check_assert(counted_loop_of(run)->loop.is_run);
    counted_loop_of(run)->looks++;
}

static bool sleep_on_word(bide_run_loop *run)
{
    uint32_t parked;
    bide_atomic(uint32_t) *word = bide_run_loop_word_(run, &parked);
    if (!bide_run_loop_park_(run))
        return false;
    bide_platform.wait(word, parked, only->ends_sleeps ? run->deadline : BIDE_FOREVER);
    bide_run_loop_unpark_(run);
    return true;
}

static void take(bide_run_loop *run)
{
    counted_loop_of(run)->takes++;
}

static void enter(bide_run_loop *run)
{
    counted_loop_of(run)->has_entered = true;
}

static void leave(bide_run_loop *run)
{
    counted_loop_of(run)->has_left = true;
}

static const struct bide_run_loop_events_ events = {look, sleep_on_word, take, enter, leave};

static void release(bide_io *io, bide_descriptor *descriptor)
{
    bide_check_assert(io_of(descriptor) == io);
    only->released++;
}

static const bide_io_table table = {.name = "none", .release = release};

/* The blocking calls of the options. They are not used. */
static bide_blocking *given_files(void)
{
    return (bide_blocking *)(void *)only;
}

int bide_loop_create(bide_loop **created, const bide_loop_options *options)
{
    bide_check_assert(!options->times_runs && options->files != NULL);
    bide_check_assert(only->are_files_own == (options->files != given_files()));
    if (++only->asked == only->refused) {
        *created = (bide_loop *)(uintptr_t)8; /* (it means nothing then) */
        return -ENOMEM;
    }
    counted_loop *counted = bide_check_alloc(sizeof *counted);
    bide_loop *loop = &counted->loop;
    counted->looks = counted->takes = 0;
    counted->has_entered = counted->has_left = loop->is_run = false;
    bide_run_loop_init(&loop->run);
    loop->run.pace.spins = 0;
    loop->run.events = &events;
    loop->back_end = (bide_loop_back_end){.name = "none"};
    bide_io_init(&loop->io, &table, &loop->run.scheduler);
    *created = only->loops[only->asked - 1] = loop;
    return 0;
}

void bide_loop_destroy(bide_loop *loop)
{
    const counted_loop *counted = counted_loop_of(&loop->run);
    bide_check_assert(counted->has_left == counted->has_entered && !loop->is_run);
    bide_run_loop_destroy(&loop->run);
    bide_check_free(loop);
}

int bide_loop_create_file_pool_(bide_blocking **files)
{
    bide_check_assert(only->are_files_own);
    if (only->files_error == 0)
        *files = bide_check_alloc(1);
    return only->files_error;
}

void bide_blocking_destroy(bide_blocking *blocking)
{
    bide_check_assert(blocking != NULL && blocking != given_files());
    bide_check_free(blocking);
}

void bide_io_release(bide_io_operation *operation)
{
    (void)operation;
}

int bide_io_close_number_(bide_io *io, int fd)
{
    (void)io;
    bide_check_assert(fd == NUMBER);
    return 0;
}

bide_frame *bide_io_begin_(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    (void)frame;
    bide_check_assert(operation->io == io && bide_io_on_owner_thread_(io));
    bide_check_assert(loop_of(io)->is_run);
    operation->state |= IO_WAITING;
    bide_event_set(&only->begun);
    return NULL;
}

static void set_up(void *p)
{
    state *s = only = p;
    bide_event_init(&s->event, false);
    bide_event_init(&s->begun, false);
    bide_descriptor_init(&s->descriptor, NUMBER);
    bide_descriptor_init_closed(&s->closed);
}

static int try_create(state *s, unsigned workers)
{
    bide_io_pool_options options = {
        .threads = {.threads = workers},
        .loop = {.files = s->are_files_own ? NULL : given_files(), .times_runs = true}};
    s->asked = 0;
    return bide_io_pool_create(&s->pool, &options);
}

static void create(state *s, unsigned workers)
{
    bide_check_assert(try_create(s, workers) == 0);
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

/* ---- The driver ---- */

static bide_next count_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    bide_container_of(frame, state, relay)->relayed++;
    return bide_next_none();
}

static const bide_coroutine_code count_code = {count_step, "counter", __FILE__, NULL, NULL};
static const bide_point count_point = BIDE_POINT_START(&count_code);

/* Posts a frame to the loop of the first worker. */
static void post_to_loop(state *s, const bide_point *point)
{
    bide_loop *loop = s->loops[0];
    bide_frame_init_in(&s->relay, point, &loop->io.context);
    s->relay.awaiter.frame = &s->relay;
    loop->run.scheduler.post(&loop->run.scheduler, &s->relay.awaiter, &s->relay.awaiter);
}

/* On the worker's thread, which posts to its own loop. */
static void use_driver(state *s)
{
    bide_pool_driver *driver = s->pool->driver;
    const counted_loop *own = counted_loop_of(&s->loops[0]->run);
    unsigned looks = own->looks, takes = own->takes;
    post_to_loop(s, &count_point);
    driver->look(driver, 0);
    bide_check_assert(s->relayed == 1 && own->looks == looks + 1);
    post_to_loop(s, &count_point);
    driver->sleep(driver, 0, BIDE_FOREVER); /* it does not: there is something to run */
    driver->take(driver, 0);
    bide_check_assert(s->relayed == 2 && own->takes == takes + 1);
    driver->sleep(driver, 0, LATER);
}

bide_coroutine(driving_body)
{
    bide_begin(driving_body, struct mover * self);
    bide_try(bide_schedule(&self->move, self->state->context.scheduler));
    use_driver(self->state);
    bide_event_set(&self->state->event);
    bide_end();
}

static void drive(void *p)
{
    state *s = p;
    struct mover mover = {.state = s};
    s->ends_sleeps = true;
    create(s, 1);
    bide_start(&mover.task.frame, &driving_body, &s->context);
    bide_resume(&mover.task.frame);
    wait_for(&s->event);
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario driven = {
    .name = "a_worker_looks_and_sleeps_in_its_loop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {drive},
    .never_spurious = true,
    .preemptions = 1,
};

/* Twice, with or without a run of the frame between. */
static void wake_twice(void *p)
{
    state *s = p;
    create(s, 1);
    for (unsigned i = 0; i < 2; i++) {
        pthread_mutex_lock(&s->pool->lock);
        s->pool->driver->wake(s->pool->driver, 0);
        pthread_mutex_unlock(&s->pool->lock);
    }
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario woken = {
    .name = "a_worker_is_woken_twice",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {wake_twice},
    .never_spurious = true,
    .preemptions = 1,
};

/* ---- Creating one ---- */

static void fail_to_create(void *p)
{
    state *s = p;
    static bide_pool_driver other;
    s->refused = 1;
    bide_check_assert(try_create(s, BIDE_THREADS_MAX_ + 1) == -EINVAL && s->asked == 0);
    s->refused = 2;
    bide_check_assert(try_create(s, 2) == -ENOMEM && s->asked == 2);
    s->are_files_own = true;
    bide_check_assert(try_create(s, 2) == -ENOMEM && s->asked == 2);
    s->asked = 0;
    bide_check_assert(bide_io_pool_create(&s->pool, NULL) == -ENOMEM && s->asked == 2);
    s->files_error = -EAGAIN;
    bide_check_assert(try_create(s, 2) == -EAGAIN && s->asked == 0);
    /* a pool without loops, and one with others */
    bide_thread_pool *plain = bide_pool_make_(1, 0);
    bide_check_assert(!bide_io_pool_is(plain));
    bide_check_assert(bide_io_pool_assign(plain, 0, &s->descriptor) == -EINVAL);
    plain->driver = &other;
    bide_check_assert(!bide_io_pool_is(plain));
    bide_pool_free_(plain);
}

static const bide_check_scenario uncreated = {
    .name = "a_pool_that_is_not_created_leaves_nothing",
    .size = sizeof(state),
    .setup = set_up,
    .threads = {fail_to_create},
};

/* With blocking calls of its own. */
static void compare_back_ends(void *p)
{
    state *s = p;
    s->are_files_own = true;
    create(s, 2);
    s->loops[0]->back_end = (bide_loop_back_end){.name = "uring", .limits = 1};
    s->loops[1]->back_end = (bide_loop_back_end){.name = "epoll", .error = -ENOSYS, .limits = 2};
    bide_loop_back_end of_pool = bide_io_pool_backend(s->pool);
    bide_check_assert(of_pool.error == -ENOSYS && of_pool.limits == 3);
    s->loops[1]->back_end = s->loops[0]->back_end;
    bide_check_assert(bide_io_pool_backend(s->pool).name == s->loops[0]->back_end.name);
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario compared = {
    .name = "two_workers_with_different_back_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {compare_back_ends},
    .never_spurious = true,
    .max_executions = 1000,
};

/* ---- Homes of descriptors ---- */

static int assign(state *s, unsigned worker, bide_descriptor *descriptor)
{
    return bide_io_pool_assign(s->pool, worker, descriptor);
}

static void assign_outside(void *p)
{
    state *s = p;
    create(s, 1);
    const bide_io *home = &s->loops[0]->io;
    bide_check_assert(bide_io_pool_is(s->pool));
    bide_check_assert(assign(s, 1, &s->descriptor) == -EINVAL);
    bide_check_assert(assign(s, 0, &s->closed) == -EBADF);
    bide_check_assert(assign(s, 0, &s->descriptor) == 0);
    bide_check_assert(io_of(&s->descriptor) == home && home->descriptors == &s->descriptor);
    bide_check_assert(assign(s, 0, &s->descriptor) == -EBUSY);
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario assigned = {
    .name = "a_home_is_given_outside",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {assign_outside},
    .never_spurious = true,
    .preemptions = 1,
};

static void assign_in_other_pool(void *p)
{
    state *s = p;
    bide_thread_pool *other = bide_pool_make_(1, 0);
    create(s, 1);
    bide_pool_enter_(&other->workers[0]);
    bide_check_assert(assign(s, 0, &s->descriptor) == 0);
    bide_pool_enter_(NULL);
    bide_thread_pool_destroy(s->pool);
    bide_pool_free_(other);
}

static const bide_check_scenario assigned_elsewhere = {
    .name = "a_home_is_given_by_a_worker_of_another_pool",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {assign_in_other_pool},
    .never_spurious = true,
    .preemptions = 1,
};

static bide_next close_step(bide_frame *frame, unsigned depth)
{
    state *s = bide_container_of(frame, state, relay);
    (void)depth;
    bide_check_assert(bide_close(&s->descriptor) == 0);
    bide_event_set(&s->event);
    return bide_next_none();
}

static const bide_coroutine_code close_code = {close_step, "closer", __FILE__, NULL, NULL};
static const bide_point close_point = BIDE_POINT_START(&close_code);

/* A descriptor that had a home was released there. */
static void assign_while_closed(void *p)
{
    state *s = p;
    create(s, 1);
    post_to_loop(s, &close_point);
    int result = assign(s, 0, &s->descriptor);
    wait_for(&s->event);
    bide_check_assert(result == (s->released != 0 ? 0 : -EBADF));
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario assigned_closed = {
    .name = "a_descriptor_is_closed_while_its_home_is_given",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {assign_while_closed},
    .never_spurious = true,
    .preemptions = 1,
};

/* ---- A worker and a thread outside call each other's loops ---- */

static void note_call(bide_io *io, void *argument)
{
    bide_check_assert(bide_io_on_owner_thread_(io));
    *(bool *)argument = true;
}

bide_coroutine(calling_body)
{
    bide_begin(calling_body, struct mover * self);
    bide_try(bide_schedule(&self->move, self->state->context.scheduler));
    bool is_called = false;
    bide_io_call_remote_(&self->state->io, note_call, &is_called);
    bide_check_assert(is_called);
    bide_event_set(&self->state->event);
    bide_end();
}

static void call_each_other(void *p)
{
    state *s = p;
    struct mover mover = {.state = s};
    bide_event_waiter wait;
    bool is_called = false;
    create(s, 1);
    bide_run_loop_init(&s->loop);
    bide_io_init(&s->io, &table, &s->loop.scheduler);
    s->io.group = s->loops[0]->io.group;
    bide_start(&mover.task.frame, &calling_body, &s->context);
    bide_resume(&mover.task.frame);
    bide_io_call_remote_(&s->loops[0]->io, note_call, &is_called);
    bide_check_assert(is_called);
    bide_run_loop_wait(&s->loop, bide_event_wait(&wait, &s->event));
    bide_thread_pool_destroy(s->pool);
    bide_run_loop_destroy(&s->loop);
}

static const bide_check_scenario called = {
    .name = "a_worker_and_another_thread_call_each_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = set_up,
    .threads = {call_each_other},
    .never_spurious = true,
    .max_executions = 1000,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &uncreated, &driven, &woken, &assigned,        &assigned_elsewhere, &called,
        &done,      &posted, &poked, &assigned_closed, &compared,           NULL};
    static const char *const files[] = {"io_pool.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
