/*
 * Reads the executors of the process: loops, and workers of pools.
 *
 * The list of live objects is held while they are copied, so none of them is destroyed meanwhile. Their
 * counts are loaded relaxed: each is right on its own, and they need not be consistent.
 */
#define _GNU_SOURCE
#include "executors.h"

#include "../io/loop.h"

#include "../coroutine/roots.h"
#include "../inspect/safe_read.h"
#include "../schedule/registry.h"
#include "../schedule/pool/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXECUTORS_MAX = 2048 };

/* ---- Looking ---- */

/* A new entry, or NULL if there is no room. */
static executor *executors_add(executors *executors)
{
    if (executors->count == executors->room) {
        size_t room = executors->room != 0 ? 2 * executors->room : 8;
        executor *larger =
            room <= EXECUTORS_MAX ? realloc(executors->all, room * sizeof *larger) : NULL;
        if (larger == NULL) {
            executors->left_out = true;
            return NULL;
        }
        executors->all = larger;
        executors->room = room;
    }
    executor *executor = &executors->all[executors->count++];
    memset(executor, 0, sizeof *executor);
    return executor;
}

static void executors_add_loop(executors *executors, const bide_registry_ *live)
{
    loop_seen seen;
    executor *executor = bide_loop_note_events_(live, &seen) ? executors_add(executors) : NULL;
    if (executor == NULL)
        return;
    executor->number = seen.number;
    executor->is_run = seen.is_run;
    executor->is_asleep = seen.is_asleep;
    executor->thread = seen.thread;
    executor->back_end = seen.back_end;
    memcpy(executor->name, seen.name, sizeof executor->name);
    executor->values[EXECUTOR_RUNS] = seen.counts.runs;
    executor->values[EXECUTOR_SLEEPS] = seen.counts.sleeps;
    executor->values[EXECUTOR_LOOKS] = seen.counts.polls;
    executor->values[EXECUTOR_WAKES] = seen.counts.wakes;
    executor->values[EXECUTOR_COMPLETIONS] = seen.counts.completions;
    executor->values[EXECUTOR_BEGUN] = seen.counts.started;
    executor->values[EXECUTOR_IN_FLIGHT] = seen.counts.in_flight;
    executor->values[EXECUTOR_LONGEST] = seen.counts.longest_run;
}

static void executors_add_worker(executors *executors, const bide_thread_pool *pool,
                                 const bide_pool_worker *from)
{
    executor *executor = executors_add(executors);
    if (executor == NULL)
        return;
    executor->number = pool->live.number;
    executor->worker = from->index;
    executor->is_worker = true;
    /* all relaxed: independent numbers */
    executor->thread = bide_atomic_load(&from->thread, relaxed);
    executor->is_run = executor->thread != 0;
    executor->is_asleep = (bide_atomic_load(&from->parked, relaxed) & 1) != 0;
    memcpy(executor->name, pool->name, sizeof pool->name);
    executor->values[EXECUTOR_RUNS] = bide_atomic_load(&from->turns, relaxed);
    executor->values[EXECUTOR_SLEEPS] = bide_atomic_load(&from->sleeps, relaxed);
    executor->values[EXECUTOR_STEALS] = bide_atomic_load(&from->steals, relaxed);
    executor->values[EXECUTOR_LONGEST] = bide_atomic_load(&from->longest, relaxed);
}

static void executors_add_live(executors *executors, const bide_registry_ *live)
{
    if (live->kind == BIDE_LIVE_LOOP_) {
        executors_add_loop(executors, live);
        return;
    }
    const bide_thread_pool *pool = bide_container_of(live, bide_thread_pool, live);
    for (unsigned i = 0; i < pool->places; i++)
        executors_add_worker(executors, pool, &pool->workers[i]);
}

/* Reads the name from the system, because the program may rename its threads at any time. */
static void executor_read_thread_name(executor *executor)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", executor->thread);
    int fd = executor->thread != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t length = read(fd, executor->thread_name, sizeof executor->thread_name - 1);
    close(fd);
    executor->thread_name[length > 0 ? length : 0] = '\0';
    executor->thread_name[strcspn(executor->thread_name, "\n")] = '\0';
}

/* The same executor as another look found it, or NULL. */
static const executor *executors_find(const executors *among, const executor *of)
{
    size_t from = 0;
    size_t to = among->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const executor *found = &among->all[middle];
        if (found->number == of->number && found->worker == of->worker)
            return found;
        if (found->number < of->number ||
            (found->number == of->number && found->worker < of->worker))
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

static bool executor_is_busy(const executor *executor)
{
    return executor->is_run && !executor->is_asleep;
}

/* Stores since when it has been in the same turn, as far as its counts show. */
static void executor_note_busy(executor *executor, const executors *last, uint64_t now)
{
    const struct executor *before = executors_find(last, executor);
    bool has_moved = before == NULL || !executor_is_busy(before) ||
                     before->values[EXECUTOR_RUNS] != executor->values[EXECUTOR_RUNS] ||
                     before->values[EXECUTOR_LOOKS] != executor->values[EXECUTOR_LOOKS] ||
                     before->values[EXECUTOR_SLEEPS] != executor->values[EXECUTOR_SLEEPS];
    executor->busy_since = has_moved ? now : before->busy_since;
}

int bide_executors_collect_(executors *executors, const struct executors *last)
{
    bide_roots_look_(); /* only one thread peeks at a time */
    int error = bide_peek_begin_();
    if (error == 0) {
        for (const bide_registry_ *live = bide_registry_hold_(); live != NULL; live = live->next)
            executors_add_live(executors, live);
        bide_registry_release_();
        bide_peek_end_();
    }
    bide_roots_looked_();
    executors->at = bide_platform.now();
    for (size_t i = 0; i < executors->count; i++) {
        executor_read_thread_name(&executors->all[i]);
        executor_note_busy(&executors->all[i], last, executors->at);
    }
    return error;
}

bool bide_executors_copy_(executors *to, const executors *from)
{
    to->count = 0;
    to->at = from->at;
    if (to->room < from->count) {
        executor *larger = realloc(to->all, from->count * sizeof *larger);
        if (larger == NULL)
            return false;
        to->all = larger;
        to->room = from->count;
    }
    if (from->count != 0)
        memcpy(to->all, from->all, from->count * sizeof *to->all);
    to->count = from->count;
    return true;
}

/* ---- Reporting ---- */

static const char *const executor_value_names[EXECUTOR_VALUES][2] = {
    [EXECUTOR_RUNS] = {"runs", "runs_new"},
    [EXECUTOR_SLEEPS] = {"sleeps", "sleeps_new"},
    [EXECUTOR_STEALS] = {"steals", "steals_new"},
    [EXECUTOR_LOOKS] = {"looks", "looks_new"},
    [EXECUTOR_WAKES] = {"wakes", "wakes_new"},
    [EXECUTOR_COMPLETIONS] = {"completions", "completions_new"},
    [EXECUTOR_BEGUN] = {"begun", "begun_new"},
};

/* The counts of a pool's workers are of type size_t, and wrap. */
static uint64_t executor_difference(const executor *now, const executor *before, unsigned value)
{
    if (before == NULL)
        return 0;
    uint64_t new = now->values[value] - before->values[value];
    return now->is_worker ? (size_t) new : new;
}

static void executor_report_counts(monitor_report *report, const uint64_t *counts,
                                   const uint64_t *new, bool of_worker)
{
    for (unsigned i = 0; i < EXECUTOR_COUNTS; i++) {
        if (i == EXECUTOR_STEALS ? !of_worker : of_worker && i > EXECUTOR_STEALS)
            continue;
        bide_report_number_(report, executor_value_names[i][0], counts[i]);
        bide_report_number_(report, executor_value_names[i][1], new[i]);
    }
}

static const char *executor_state(const executor *executor)
{
    return !executor->is_run ? "idle" : executor->is_asleep ? "asleep" : "busy";
}

static void executor_report_thread(monitor_report *report, const executor *executor, uint64_t at)
{
    bide_report_number_(report, "thread", (uint64_t)executor->thread);
    bide_report_text_(report, "thread_name", executor->thread_name);
    bide_report_text_(report, "state", executor_state(executor));
    bide_report_number_(report, "busy_ms",
                        executor_is_busy(executor) ? (at - executor->busy_since) / 1000000 : 0);
}

static void executor_report(monitor_report *report, const executor *executor,
                            const struct executor *before, uint64_t at)
{
    uint64_t new[EXECUTOR_COUNTS];
    for (unsigned i = 0; i < EXECUTOR_COUNTS; i++)
        new[i] = executor_difference(executor, before, i);
    bide_report_start_(report, executor->is_worker ? "worker" : "loop");
    bide_report_number_(report, executor->is_worker ? "pool" : "loop", executor->number);
    if (executor->is_worker) {
        bide_report_number_(report, "worker", executor->worker);
    } else {
        bide_report_text_(report, "name", executor->name);
        bide_report_text_(report, "back_end", executor->back_end);
    }
    executor_report_thread(report, executor, at);
    if (!executor->is_worker)
        bide_report_number_(report, "in_flight", executor->values[EXECUTOR_IN_FLIGHT]);
    executor_report_counts(report, executor->values, new, executor->is_worker);
    bide_report_number_(report, "longest_turn_ns", executor->values[EXECUTOR_LONGEST]);
    bide_report_end_(report);
}

/* The sums of a pool's `count` workers, beginning with `first`. */
static void executors_report_pool(const executor *first, size_t count, const executors *before,
                                  monitor_report *report)
{
    uint64_t counts[EXECUTOR_COUNTS] = {0};
    uint64_t new[EXECUTOR_COUNTS] = {0};
    uint64_t longest = 0;
    uint64_t asleep = 0;
    for (size_t i = 0; i < count; i++) {
        const executor *last = executors_find(before, &first[i]);
        for (unsigned j = 0; j < EXECUTOR_COUNTS; j++) {
            counts[j] += first[i].values[j];
            new[j] += executor_difference(&first[i], last, j);
        }
        asleep += first[i].is_asleep;
        if (first[i].values[EXECUTOR_LONGEST] > longest)
            longest = first[i].values[EXECUTOR_LONGEST];
    }
    bide_report_start_(report, "pool");
    bide_report_number_(report, "pool", first->number);
    bide_report_text_(report, "name", first->name);
    bide_report_number_(report, "workers", count);
    bide_report_number_(report, "asleep", asleep);
    executor_report_counts(report, counts, new, true);
    bide_report_number_(report, "longest_turn_ns", longest);
    bide_report_end_(report);
}

void bide_executors_report_(const executors *executors, const struct executors *before,
                            monitor_report *report)
{
    for (size_t i = 0; i < executors->count; i++) {
        const executor *at = &executors->all[i];
        if (at->is_worker && (i == 0 || at[-1].number != at->number)) {
            size_t count = 1;
            while (i + count < executors->count && at[count].number == at->number)
                count++;
            executors_report_pool(at, count, before, report);
        }
        executor_report(report, at, executors_find(before, at), executors->at);
    }
}

void bide_executors_free_(executors *executors)
{
    free(executors->all);
    memset(executors, 0, sizeof *executors);
}
