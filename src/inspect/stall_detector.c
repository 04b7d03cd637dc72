/*
 * The turn watch: reports turns that hold a thread for too long.
 *
 * Its thread sleeps for half the bound, and then checks the outermost turn of each thread under the
 * lock of that thread's record (observer.c, 1). It copies what it reports, and releases the lock
 * before the report. Only the report at a turn's end is made under the lock, so the stop of the watch
 * waits for it too (observer.c, 2). The thread sleeps on `stopping`.
 */
#define _GNU_SOURCE
#include "bide/stall_detector.h"

#include "observer.h"

#include "../coroutine/internal.h"
#include "../system/fork.h"
#include "../system/portable.h"
#include "../system/threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct {
    uint64_t bound;
    bide_stall_report *report;
    void *argument;
    pthread_t thread;
    bide_atomic(uint32_t) stopping;
    uint32_t stopping_in; /* the process's generation, plus 1, while the stop joins the thread */
} watch;

static void watch_print(void *argument, const bide_stall *turn)
{
    unsigned long long tenths = turn->nanoseconds / 100000;
    (void)argument;
    fprintf(stderr, "bide: %s has held thread %d%s%s%s for %llu.%llu ms since %s:%u%s\n",
            turn->name, turn->thread, turn->thread_name[0] != '\0' ? " (" : "", turn->thread_name,
            turn->thread_name[0] != '\0' ? ")" : "", tenths / 10, tenths % 10, turn->file,
            turn->line, turn->has_ended ? "" : ", and still runs");
}

static void watch_report(const observed_thread *thread, const observed_turn *turn, uint64_t now,
                         bool has_ended)
{
    const bide_stall reported = {
        .name = bide_point_name_(turn->point),
        .file = turn->point->code != NULL ? turn->point->code->file : "",
        .line = turn->point->line,
        .thread_name = thread->name,
        .thread = (int)thread->id,
        .has_ended = has_ended,
        .nanoseconds = now - turn->began,
    };
    watch.report(watch.argument, &reported);
}

static void bide_stall_detector_run_ended_(observed_thread *thread, const observed_turn *turn)
{
    if (thread->depth != 0)
        return;
    uint64_t now = bide_platform.now();
    if (now - turn->began >= watch.bound)
        watch_report(thread, turn, now, true);
}

static const observer_user watch_user = {.turn_ends = bide_stall_detector_run_ended_};

static void watch_check_thread(observed_thread *thread)
{
    observed_thread copy;
    uint64_t now = bide_platform.now();
    pthread_mutex_lock(&thread->lock);
    bool is_long = thread->in_use && thread->depth != 0 && !thread->is_reported &&
                   now > thread->turns[0].began && now - thread->turns[0].began >= watch.bound;
    if (is_long) {
        thread->is_reported = true;
        copy.id = thread->id;
        copy.turns[0] = thread->turns[0];
        memcpy(copy.name, thread->name, sizeof copy.name);
    }
    pthread_mutex_unlock(&thread->lock);
    if (is_long)
        watch_report(&copy, &copy.turns[0], now, false);
}

static void *watch_main(void *argument)
{
    uint64_t pause = watch.bound / 2 + 1;
    (void)argument;
    while (bide_atomic_load(&watch.stopping, relaxed) == 0) {
        bide_platform.wait(&watch.stopping, 0, bide_platform.now() + pause);
        pthread_mutex_lock(&bide_observer_lock_);
        observed_thread *thread = bide_observer_threads_();
        pthread_mutex_unlock(&bide_observer_lock_);
        for (; thread != NULL; thread = thread->next)
            watch_check_thread(thread);
    }
    return NULL;
}

static void watch_undo(void *argument)
{
    (void)argument; /* the only thread was not started */
}

static int watch_start_thread(void)
{
    int error = bide_threads_start_(&watch.thread, 1, watch_main, NULL, watch_undo);
    if (error == 0)
        portable_name_thread(watch.thread, "turn watch");
    return error;
}

int bide_stall_detector_start(uint64_t bound, bide_stall_report *report, void *argument)
{
    int status = -EALREADY;
    pthread_mutex_lock(&bide_observer_lock_);
    if (!bide_observer_is_active_(&watch_user) && watch.stopping_in != bide_generation_ + 1) {
        watch.bound = bound;
        watch.report = report != NULL ? report : watch_print;
        watch.argument = argument;
        bide_atomic_store(&watch.stopping, 0, relaxed);
        bide_observer_start_(&watch_user);
        status = watch_start_thread();
        if (status != 0)
            bide_observer_stop_(&watch_user);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    return status;
}

int bide_stall_detector_stop(void)
{
    pthread_mutex_lock(&bide_observer_lock_);
    bool was_on = bide_observer_is_active_(&watch_user);
    pthread_t thread = watch.thread;
    if (was_on) {
        watch.stopping_in = bide_generation_ + 1;
        bide_observer_stop_(&watch_user);
        bide_atomic_store(&watch.stopping, 1, relaxed);
        bide_platform.wake(&watch.stopping, 1);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    if (!was_on)
        return -EALREADY;
    pthread_join(thread, NULL);
    pthread_mutex_lock(&bide_observer_lock_);
    watch.stopping_in = 0;
    pthread_mutex_unlock(&bide_observer_lock_);
    return 0;
}
