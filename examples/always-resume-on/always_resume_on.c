/*
 * A custom coroutine type that returns to its own executor after every await: its await_transform
 * wraps each awaited operation in a bide_resume_on. Here the executor is the main thread's run
 * loop. The coroutine starts on a thread pool, and the code after each await runs on the main
 * thread.
 */
#include <bide/bide.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The type ---- */

/* The first member of the frame of such a coroutine. */
struct homing {
    bide_frame frame;
    bide_scheduler *home;
    bide_resume_on_operation resume_on;
};

static bide_awaiter *homing_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    struct homing *homing = bide_promise(struct homing, frame);
    return bide_resume_on(&homing->resume_on, homing->home, awaiter);
}

static const bide_coroutine_type homing_type = {.name = "homing",
                                                .await_transform = homing_await_transform};

#define homing_coroutine(name) bide_coroutine_of(homing_type, name)

static bide_awaiter *homing_init(struct homing *homing, const bide_point *body,
                                 bide_scheduler *home)
{
    homing->home = home;
    return bide_frame_init(&homing->frame, body);
}

/* ---- Its use ---- */

static pthread_t main_thread;
static bool all_as_expected = true;

static void say_where(const char *when, bool expected_at_home)
{
    bool at_home = pthread_equal(pthread_self(), main_thread) != 0;
    printf("%s: %s\n", when, at_home ? "at home" : "elsewhere");
    all_as_expected = all_as_expected && at_home == expected_at_home;
}

struct child {
    bide_task task;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    (void)self;
    say_where("a child on the pool", false);
    bide_return(-ENOENT);
    bide_end();
}

struct worker {
    struct homing homing;
    bide_scheduler *pool;
    bide_event set;
    bide_event_waiter wait;
    struct child child;
    bide_schedule_on_operation schedule_on;
    bide_schedule_operation schedule;
};

homing_coroutine(worker_body)
{
    bide_begin(worker_body, struct worker * self);
    say_where("begun on the pool", false);
    bide_await(bide_event_wait(&self->wait, &self->set));
    say_where("after an event that was set", true);
    int status;
    bide_await_status(status, bide_schedule_on(&self->schedule_on, self->pool,
                                               bide_task_init(&self->child.task, &child_body)));
    say_where(status == -ENOENT ? "after the child, with its error" : "after the child", true);
    bide_await(bide_schedule(&self->schedule, self->pool));
    say_where("after going to the pool", true);
    bide_end();
}

int main(void)
{
    static bide_run_loop loop;
    static struct worker worker;
    bide_schedule_on_operation on_the_pool;
    bide_thread_pool *pool;
    main_thread = pthread_self();
    bide_run_loop_init(&loop);
    if (bide_thread_pool_create(&pool, 1) != 0)
        return EXIT_FAILURE;
    worker.pool = bide_thread_pool_scheduler(pool);
    bide_event_init(&worker.set, true);
    int status = bide_run_loop_wait(
        &loop, bide_schedule_on(&on_the_pool, worker.pool,
                                homing_init(&worker.homing, &worker_body, &loop.scheduler)));
    say_where("who awaited it", true);
    bide_thread_pool_destroy(pool);
    return status == 0 && all_as_expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
