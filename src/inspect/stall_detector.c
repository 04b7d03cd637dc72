/*
 * The watch over turns.
 *
 * Its thread sleeps for half a bound, then looks at each thread's outermost turn under that thread's
 * lock (observer.c, 1). What it reports it has copied, and the lock is free by then, but for the
 * report at a turn's end, which is made under the lock: so the end of the watch waits for that too
 * (observer.c, 2). `stopping` is what the thread sleeps on.
 */
#define _GNU_SOURCE
#include "bide/stall_detector.h"

#include "observer.h"

#include "../coroutine/internal.h"
#include "../system/fork.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct {
    uint64_t bound;
    bide_stall_report *report;
    void *argument;
    pthread_t thread;
    bide_atomic(uint32_t) stopping;
    uint32_t
        ending_in; /* the generation of the process in which a stop waits for the thread, and 1 */
} watch;

static void tell_on_stderr(void *argument, const bide_stall *turn)
{
    unsigned long long tenths = turn->nanoseconds / 100000;
    (void)argument;
    fprintf(stderr, "bide: %s has held thread %d%s%s%s for %llu.%llu ms since %s:%u%s\n",
            turn->name, turn->thread, turn->thread_name[0] != '\0' ? " (" : "", turn->thread_name,
            turn->thread_name[0] != '\0' ? ")" : "", tenths / 10, tenths % 10, turn->file,
            turn->line, turn->has_ended ? "" : ", and goes on");
}

static void report(const observed_thread *thread, const observed_turn *turn, uint64_t now,
                   bool has_ended)
{
    const bide_stall told = {
        .name = bide_point_name_(turn->point),
        .file = turn->point->code != NULL ? turn->point->code->file : "",
        .line = turn->point->line,
        .thread_name = thread->name,
        .thread = (int)thread->id,
        .has_ended = has_ended,
        .nanoseconds = now - turn->began,
    };
    watch.report(watch.argument, &told);
}

void bide_stall_detector_run_ended_(observed_thread *thread, const observed_turn *turn)
{
    uint64_t now = bide_platform.now();
    if (now - turn->began >= watch.bound)
        report(thread, turn, now, true);
}

static void look_at(observed_thread *thread)
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
        report(&copy, &copy.turns[0], now, false);
}

static void *look(void *argument)
{
    uint64_t pause = watch.bound / 2 + 1;
    (void)argument;
    while (bide_atomic_load(&watch.stopping, relaxed) == 0) {
        bide_platform.wait(&watch.stopping, 0, bide_platform.now() + pause);
        pthread_mutex_lock(&bide_observer_lock_);
        observed_thread *thread = bide_observer_threads_();
        pthread_mutex_unlock(&bide_observer_lock_);
        for (; thread != NULL; thread = thread->next)
            look_at(thread);
    }
    return NULL;
}

/* All signals are the program's other threads'. */
static int start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&watch.thread, NULL, look, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(watch.thread, "turn watch");
    return -error;
}

int bide_stall_detector_start(uint64_t bound, bide_stall_report *report, void *argument)
{
    int status = -EALREADY;
    pthread_mutex_lock(&bide_observer_lock_);
    if (!bide_observer_is_active_(OBSERVE_TURNS) && watch.ending_in != bide_generation_ + 1) {
        watch.bound = bound;
        watch.report = report != NULL ? report : tell_on_stderr;
        watch.argument = argument;
        bide_atomic_store(&watch.stopping, 0, relaxed);
        bide_observer_start_(OBSERVE_TURNS);
        status = start_thread();
        if (status != 0)
            bide_observer_stop_(OBSERVE_TURNS);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    return status;
}

int bide_stall_detector_stop(void)
{
    pthread_mutex_lock(&bide_observer_lock_);
    bool was_on = bide_observer_is_active_(OBSERVE_TURNS);
    pthread_t thread = watch.thread;
    if (was_on) {
        watch.ending_in = bide_generation_ + 1;
        bide_observer_stop_(OBSERVE_TURNS);
        bide_atomic_store(&watch.stopping, 1, relaxed);
        bide_platform.wake(&watch.stopping, 1);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    if (!was_on)
        return -EALREADY;
    pthread_join(thread, NULL);
    pthread_mutex_lock(&bide_observer_lock_);
    watch.ending_in = 0;
    pthread_mutex_unlock(&bide_observer_lock_);
    return 0;
}
