/*
 * The estimate of the progress, the limits, and the progress line on a terminal.
 */
#define _GNU_SOURCE
#include "progress.h"

#include "execution.h"

#include "bide/platform.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { EXECUTIONS_PER_LOOK = 64 }; /* reading the clock costs as much as a small execution */

static double share; /* of the execution that is running */
static double done;
static double begun, next_shown;
static unsigned unlooked;
static const char *shown;
static bool is_hidden;

static double progress_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress_begin(void)
{
    share = 1;
    done = 0;
    begun = progress_clock();
    next_shown = begun + 0.5;
    unlooked = 0;
}

double progress_split(unsigned options)
{
    double each = options != 0 ? share / options : 0;
    if (options == 0)
        done += share;
    share = 0;
    return each;
}

void progress_take(double taken)
{
    share = taken;
}

void progress_drop(double dropped)
{
    done += dropped;
}

static void show_progress(double time, unsigned depth)
{
    const bide_check_result *r = the_checker.result;
    double seconds = time - begun;
    double count = (double)(r->executions + r->blocked);
    if (shown == NULL || time < next_shown)
        return;
    next_shown = time + 0.5;
    fprintf(stderr,
            "\r%s: %" PRIu64 " executions, %.0f a second, depth %u, about %.3g %% done\033[K",
            shown, r->executions, count / seconds, depth, done * 100);
    fflush(stderr);
}

bool progress_end(unsigned depth)
{
    const bide_check_scenario *s = the_checker.scenario;
    const bide_check_result *r = the_checker.result;
    done += share;
    bide_assert(done >= 0 && done < 1.001); /* rounding apart */
    share = 0;
    if (s->max_executions != 0 && r->executions + r->blocked >= s->max_executions)
        return true;
    if (++unlooked < EXECUTIONS_PER_LOOK)
        return false;
    unlooked = 0;
    double time = progress_clock();
    show_progress(time, depth);
    return s->max_seconds != 0 && time - begun >= s->max_seconds;
}

void progress_show(const char *name)
{
    bool is_terminal = isatty(2) != 0;
    if (is_terminal && shown != NULL)
        fputs("\r\033[K", stderr);
    shown = is_terminal && !is_hidden ? name : NULL;
}

void progress_hide(void)
{
    is_hidden = true;
}
