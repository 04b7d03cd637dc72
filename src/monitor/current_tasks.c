/* The current tasks of threads, from the records of the observer (inspect/observer.c). */
#define _GNU_SOURCE
#include "current_tasks.h"

#include "../coroutine/internal.h"
#include "../inspect/observer.h"
#include "turn_counts.h"

#include <string.h>

static void note_turn(observed_thread *thread, const observed_turn *turn)
{
    if (thread->depth == 1)
        bide_turn_counts_begin_(thread, turn);
}

static void note_turn_end(observed_thread *thread, const observed_turn *turn)
{
    if (thread->depth != 0)
        return;
    uint64_t now = bide_platform.now();
    uint64_t time = now - turn->began;
    bide_turn_counts_end_(thread, turn, now);
    if (time > thread->longest_time) {
        thread->longest_time = time;
        thread->longest = *turn;
    }
}

static const observer_user turns_user = {.turn = note_turn, .turn_ends = note_turn_end};

void bide_current_tasks_start_(void)
{
    pthread_mutex_lock(&bide_observer_lock_);
    bide_observer_start_(&turns_user);
    bide_turn_counts_clear_();
    for (observed_thread *thread = bide_observer_threads_(); thread != NULL;
         thread = thread->next) {
        pthread_mutex_lock(&thread->lock);
        thread->longest_time = 0;
        pthread_mutex_unlock(&thread->lock);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
}

void bide_current_tasks_stop_(void)
{
    pthread_mutex_lock(&bide_observer_lock_);
    bide_observer_stop_(&turns_user);
    bide_turn_counts_clear_();
    pthread_mutex_unlock(&bide_observer_lock_);
}

typedef struct seen_thread {
    bool is_there;
    pid_t id;
    char name[OBSERVED_NAME];
    bool has_turn;
    observed_turn turn; /* the outermost that is running */
    observed_turn longest;
    uint64_t longest_time;
} seen_thread;

/* Copies the record. The thread needs this lock to begin and end a turn, so it is held briefly. */
static seen_thread turns_copy_thread(observed_thread *thread)
{
    seen_thread seen;
    pthread_mutex_lock(&thread->lock);
    seen.is_there = thread->in_use;
    seen.id = thread->id;
    memcpy(seen.name, thread->name, sizeof seen.name);
    seen.has_turn = thread->depth != 0;
    seen.turn = thread->turns[0];
    seen.longest = thread->longest;
    seen.longest_time = thread->longest_time;
    thread->longest_time = 0;
    pthread_mutex_unlock(&thread->lock);
    return seen;
}

static void turns_report_turn(monitor_report *report, const observed_turn *turn,
                              const char *const names[4], uint64_t time)
{
    const bide_coroutine_code *code = turn->point->code;
    bide_report_text_(report, names[0], bide_point_name_(turn->point));
    bide_report_text_(report, names[1], code != NULL && code->file != NULL ? code->file : "");
    bide_report_number_(report, names[2], turn->point->line);
    bide_report_number_(report, names[3], time);
}

static void turns_report_thread(monitor_report *report, const seen_thread *thread)
{
    static const char *const running[] = {"runs", "runs_file", "runs_line", "runs_ns"};
    static const char *const longest[] = {"longest", "longest_file", "longest_line", "longest_ns"};
    uint64_t now = bide_platform.now();
    bide_report_start_(report, "thread");
    bide_report_number_(report, "thread", (uint64_t)thread->id);
    bide_report_text_(report, "thread_name", thread->name);
    if (thread->has_turn)
        turns_report_turn(report, &thread->turn, running,
                          now > thread->turn.began ? now - thread->turn.began : 0);
    if (thread->longest_time != 0)
        turns_report_turn(report, &thread->longest, longest, thread->longest_time);
    bide_report_end_(report);
}

void bide_current_tasks_report_(monitor_report *report)
{
    pthread_mutex_lock(&bide_observer_lock_);
    observed_thread *thread = bide_observer_threads_();
    pthread_mutex_unlock(&bide_observer_lock_);
    for (; thread != NULL; thread = thread->next) { /* records are never freed */
        seen_thread seen = turns_copy_thread(thread);
        if (seen.is_there)
            turns_report_thread(report, &seen);
    }
}
