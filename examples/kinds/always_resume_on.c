/*
 * A kind of coroutine that returns to its own executor after every await: ../always-resume-on in async and
 * await. Its await_transform wraps each awaited operation in a bide_resume_on. Here the executor is the main
 * thread's run loop. The coroutine starts on a thread pool, and the code after each await runs on the main
 * thread.
 */
#include <bide/async.h>
#include <bide/event.h>
#include <bide/run_loop.h>
#include <bide/schedule.h>
#include <bide/thread_pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The kind ---- */

typedef struct homing {
    bide_frame frame;
    bide_scheduler *home;
    bide_resume_on_operation resume_on;
} homing;

static bide_awaiter *homing_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    homing *promise = bide_promise(homing, frame);
    return bide_resume_on(&promise->resume_on, promise->home, awaiter);
}

static const bide_coroutine_type homing_type = {.name = "homing",
                                                .await_transform = homing_await_transform};

/* ---- Its use ---- */

static pthread_t main_thread;
static bool all_as_expected = true;

static void say_where(const char *when, bool expected_at_home)
{
    bool at_home = pthread_equal(pthread_self(), main_thread) != 0;
    printf("%s: %s\n", when, at_home ? "at home" : "elsewhere");
    all_as_expected = all_as_expected && at_home == expected_at_home;
}

async int child(void)
{
    say_where("a child on the pool", false);
    return -ENOENT;
}

async_kind(homing, .home = home) void worker(bide_scheduler *home, bide_scheduler *pool, bide_event *set)
{
    say_where("begun on the pool", false);
    await bide_event_wait(set);
    say_where("after an event that was set", true);
    int status = await bide_schedule_on(pool, child());
    say_where(status == -ENOENT ? "after the child, with its error" : "after the child", true);
    await bide_schedule(pool);
    say_where("after going to the pool", true);
}

int main(void)
{
    static bide_run_loop loop;
    static async_frame(worker) frame;
    bide_event set;
    bide_schedule_on_operation on_the_pool;
    bide_thread_pool *pool;
    main_thread = pthread_self();
    bide_run_loop_init(&loop);
    if (bide_thread_pool_create(&pool, 1) != 0)
        return EXIT_FAILURE;
    bide_scheduler *elsewhere = bide_thread_pool_scheduler(pool);
    bide_event_init(&set, true);
    int status = bide_run_loop_wait(
        &loop, bide_schedule_on(&on_the_pool, elsewhere,
                                async_worker(&frame, &loop.scheduler, elsewhere, &set)));
    say_where("who awaited it", true);
    bide_thread_pool_destroy(pool);
    return status == 0 && all_as_expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
