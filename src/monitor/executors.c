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

enum { MAX_RUNNERS = 2048 };

/* ---- Looking ---- */

/* NULL: there is no room. */
static runner *add_runner(runners *runners)
{
    if (runners->count == runners->room) {
        size_t room = runners->room != 0 ? 2 * runners->room : 8;
        runner *larger =
            room <= MAX_RUNNERS ? realloc(runners->all, room * sizeof *larger) : NULL;
        if (larger == NULL) {
            runners->left_out = true;
            return NULL;
        }
        runners->all = larger;
        runners->room = room;
    }
    runner *runner = &runners->all[runners->count++];
    memset(runner, 0, sizeof *runner);
    return runner;
}

static void add_loop(runners *runners, const bide_live_ *live)
{
    loop_seen seen;
    runner *runner = bide_loop_note_events_(live, &seen) ? add_runner(runners) : NULL;
    if (runner == NULL)
        return;
    runner->number = seen.number;
    runner->is_run = seen.is_run;
    runner->is_asleep = seen.is_asleep;
    runner->thread = seen.thread;
    runner->back_end = seen.back_end;
    memcpy(runner->name, seen.name, sizeof runner->name);
    runner->values[RUNNER_RUNS] = seen.counts.runs;
    runner->values[RUNNER_SLEEPS] = seen.counts.sleeps;
    runner->values[RUNNER_LOOKS] = seen.counts.polls;
    runner->values[RUNNER_WAKES] = seen.counts.wakes;
    runner->values[RUNNER_COMPLETIONS] = seen.counts.completions;
    runner->values[RUNNER_BEGUN] = seen.counts.started;
    runner->values[RUNNER_IN_FLIGHT] = seen.counts.in_flight;
    runner->values[RUNNER_LONGEST] = seen.counts.longest_run;
}

static void add_worker(runners *runners, const bide_thread_pool *pool, const bide_pool_worker *from)
{
    runner *runner = add_runner(runners);
    if (runner == NULL)
        return;
    runner->number = pool->live.number;
    runner->worker = from->index;
    runner->is_worker = true;
    /* relaxed, all of them: numbers that say nothing about others */
    runner->thread = bide_atomic_load(&from->thread, relaxed);
    runner->is_run = runner->thread != 0;
    runner->is_asleep = (bide_atomic_load(&from->parked, relaxed) & 1) != 0;
    memcpy(runner->name, pool->name, sizeof pool->name);
    runner->values[RUNNER_RUNS] = bide_atomic_load(&from->turns, relaxed);
    runner->values[RUNNER_SLEEPS] = bide_atomic_load(&from->sleeps, relaxed);
    runner->values[RUNNER_STEALS] = bide_atomic_load(&from->steals, relaxed);
    runner->values[RUNNER_LONGEST] = bide_atomic_load(&from->longest, relaxed);
}

static void add_live(runners *runners, const bide_live_ *live)
{
    if (live->kind == BIDE_LIVE_LOOP_) {
        add_loop(runners, live);
        return;
    }
    const bide_thread_pool *pool = bide_container_of(live, bide_thread_pool, live);
    for (unsigned i = 0; i < pool->count; i++)
        add_worker(runners, pool, &pool->workers[i]);
}

/* By the system: the program may rename its threads at any time. */
static void name_thread(runner *runner)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", runner->thread);
    int fd = runner->thread != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t length = read(fd, runner->thread_name, sizeof runner->thread_name - 1);
    close(fd);
    runner->thread_name[length > 0 ? length : 0] = '\0';
    runner->thread_name[strcspn(runner->thread_name, "\n")] = '\0';
}

/* The same as it was found by another look; NULL: it was not there. */
static const runner *find(const runners *among, const runner *of)
{
    size_t from = 0;
    size_t to = among->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const runner *found = &among->all[middle];
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

static bool is_busy(const runner *runner)
{
    return runner->is_run && !runner->is_asleep;
}

/* Has it been in the same turn since then, as far as its counts tell? */
static void note_busy(runner *runner, const runners *last, uint64_t now)
{
    const struct runner *before = find(last, runner);
    bool has_moved = before == NULL || !is_busy(before) ||
                     before->values[RUNNER_RUNS] != runner->values[RUNNER_RUNS] ||
                     before->values[RUNNER_LOOKS] != runner->values[RUNNER_LOOKS] ||
                     before->values[RUNNER_SLEEPS] != runner->values[RUNNER_SLEEPS];
    runner->busy_since = has_moved ? now : before->busy_since;
}

int bide_executors_collect_(runners *runners, const struct runners *last)
{
    bide_roots_look_(); /* (one peeks at a time) */
    int error = bide_peek_begin_();
    if (error == 0) {
        for (const bide_live_ *live = bide_live_hold_(); live != NULL; live = live->next)
            add_live(runners, live);
        bide_live_let_go_();
        bide_peek_end_();
    }
    bide_roots_looked_();
    runners->at = bide_platform.now();
    for (size_t i = 0; i < runners->count; i++) {
        name_thread(&runners->all[i]);
        note_busy(&runners->all[i], last, runners->at);
    }
    return error;
}

bool bide_executors_copy_(runners *to, const runners *from)
{
    to->count = 0;
    to->at = from->at;
    if (to->room < from->count) {
        runner *larger = realloc(to->all, from->count * sizeof *larger);
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

static const char *const value_names[RUNNER_VALUES][2] = {
    [RUNNER_RUNS] = {"runs", "runs_new"},
    [RUNNER_SLEEPS] = {"sleeps", "sleeps_new"},
    [RUNNER_STEALS] = {"steals", "steals_new"},
    [RUNNER_LOOKS] = {"looks", "looks_new"},
    [RUNNER_WAKES] = {"wakes", "wakes_new"},
    [RUNNER_COMPLETIONS] = {"completions", "completions_new"},
    [RUNNER_BEGUN] = {"begun", "begun_new"},
};

/* Those of a pool's workers are a size_t each, and go round. */
static uint64_t difference(const runner *now, const runner *before, unsigned value)
{
    if (before == NULL)
        return 0;
    uint64_t new = now->values[value] - before->values[value];
    return now->is_worker ? (size_t) new : new;
}

static void report_counts(report *report, const uint64_t *counts, const uint64_t *new,
                          bool of_worker)
{
    for (unsigned i = 0; i < RUNNER_COUNTS; i++) {
        if (i == RUNNER_STEALS ? !of_worker : of_worker && i > RUNNER_STEALS)
            continue;
        bide_report_number_(report, value_names[i][0], counts[i]);
        bide_report_number_(report, value_names[i][1], new[i]);
    }
}

static const char *state_of(const runner *runner)
{
    return !runner->is_run ? "idle" : runner->is_asleep ? "asleep" : "busy";
}

static void report_thread(report *report, const runner *runner, uint64_t at)
{
    bide_report_number_(report, "thread", (uint64_t)runner->thread);
    bide_report_text_(report, "thread_name", runner->thread_name);
    bide_report_text_(report, "state", state_of(runner));
    bide_report_number_(report, "busy_ms", is_busy(runner) ? (at - runner->busy_since) / 1000000 : 0);
}

static void report_runner(report *report, const runner *runner, const struct runner *before,
                          uint64_t at)
{
    uint64_t new[RUNNER_COUNTS];
    for (unsigned i = 0; i < RUNNER_COUNTS; i++)
        new[i] = difference(runner, before, i);
    bide_report_begin_(report, runner->is_worker ? "worker" : "loop");
    bide_report_number_(report, runner->is_worker ? "pool" : "loop", runner->number);
    if (runner->is_worker) {
        bide_report_number_(report, "worker", runner->worker);
    } else {
        bide_report_text_(report, "name", runner->name);
        bide_report_text_(report, "back_end", runner->back_end);
    }
    report_thread(report, runner, at);
    if (!runner->is_worker)
        bide_report_number_(report, "in_flight", runner->values[RUNNER_IN_FLIGHT]);
    report_counts(report, runner->values, new, runner->is_worker);
    bide_report_number_(report, "longest_turn_ns", runner->values[RUNNER_LONGEST]);
    bide_report_end_(report);
}

/* What its workers have done together; `first` of `count`. */
static void report_pool(const runner *first, size_t count, const runners *before, report *report)
{
    uint64_t counts[RUNNER_COUNTS] = {0};
    uint64_t new[RUNNER_COUNTS] = {0};
    uint64_t longest = 0;
    uint64_t asleep = 0;
    for (size_t i = 0; i < count; i++) {
        const runner *last = find(before, &first[i]);
        for (unsigned j = 0; j < RUNNER_COUNTS; j++) {
            counts[j] += first[i].values[j];
            new[j] += difference(&first[i], last, j);
        }
        asleep += first[i].is_asleep;
        if (first[i].values[RUNNER_LONGEST] > longest)
            longest = first[i].values[RUNNER_LONGEST];
    }
    bide_report_begin_(report, "pool");
    bide_report_number_(report, "pool", first->number);
    bide_report_text_(report, "name", first->name);
    bide_report_number_(report, "workers", count);
    bide_report_number_(report, "asleep", asleep);
    report_counts(report, counts, new, true);
    bide_report_number_(report, "longest_turn_ns", longest);
    bide_report_end_(report);
}

void bide_executors_report_(const runners *runners, const struct runners *before, report *report)
{
    for (size_t i = 0; i < runners->count; i++) {
        const runner *at = &runners->all[i];
        if (at->is_worker && (i == 0 || at[-1].number != at->number)) {
            size_t count = 1;
            while (i + count < runners->count && at[count].number == at->number)
                count++;
            report_pool(at, count, before, report);
        }
        report_runner(report, at, find(before, at), runners->at);
    }
}

void bide_executors_free_(runners *runners)
{
    free(runners->all);
    memset(runners, 0, sizeof *runners);
}
