/*
 * The estimate of the progress, the limits, and the lines of progress.
 */
#define _GNU_SOURCE
#include "progress.h"

#include "execution.h"
#include "seconds.h"

#include "bide/platform.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* Reading the clock costs as much as a small execution. Drawing one costs more. */
enum { EXECUTIONS_PER_LOOK = 64 };

static double share; /* of the execution that is running */
static double done;
static double begun, next_shown;
static unsigned unlooked;
static const char *shown;
static bool has_line; /* on a terminal; otherwise lines */
static bool is_one_of_several;
double progress_first = PROGRESS_FIRST;

void progress_begin(void)
{
    share = 1;
    done = 0;
    begun = seconds_now();
    next_shown = begun + (has_line ? 0.5 : progress_first);
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

/* The time that remains, if the rest takes as long for its share as the part that is done after `seconds`. */
static void print_remaining(char *text, size_t size, double seconds)
{
    static const struct {
        double seconds;
        const char *unit;
    } units[] = {{365 * 86400.0, "y"}, {86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    double left = done > 0 && done < 1 ? seconds * (1 - done) / done : done > 0 ? 0 : HUGE_VAL;
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && left < 2 * units[i].seconds)
        i++;
    if (left < 1000 * units[0].seconds)
        snprintf(text, size, ", about %.0f %s left", left / units[i].seconds, units[i].unit);
    else
        snprintf(text, size, ", more than 1000 y left");
}

/* One line by one write, so that lines of several processes do not mix. */
static void show_progress(double time, const char *where)
{
    const bide_check_result *r = the_checker.result;
    double seconds = time - begun;
    double count = (double)(r->executions + r->blocked);
    char left[64], line[512];
    if (shown == NULL || time < next_shown)
        return;
    next_shown = has_line ? time + 0.5 : begun + 2 * seconds;
    print_remaining(left, sizeof left, seconds);
    int length = snprintf(line, sizeof line,
                          "%s%s: %" PRIu64 " executions, %.0f a second, %sabout %.3g %% done%s%s",
                          has_line ? "\r" : "", shown, r->executions, count / seconds, where,
                          done * 100, left, has_line ? "\033[K" : "\n");
    fflush(stderr);
    if (length > 0 &&
        write(2, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1) < 0)
        shown = NULL; /* nobody reads it */
}

/* Reads the clock now and then. Returns true if the limit of time is reached. */
static bool look_at_clock(const char *where)
{
    const bide_check_scenario *s = the_checker.scenario;
    unlooked = 0;
    double time = seconds_now();
    show_progress(time, where);
    return s->max_seconds != 0 && time - begun >= s->max_seconds;
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
    char where[32];
    snprintf(where, sizeof where, "depth %u, ", depth);
    return look_at_clock(where);
}

bool progress_sampled(uint64_t run, uint64_t runs)
{
    done = (double)run / (double)runs;
    return look_at_clock("");
}

void progress_show(const char *name)
{
    if (has_line && shown != NULL)
        fputs("\r\033[K", stderr);
    has_line = !is_one_of_several && isatty(2) != 0;
    shown = name;
}

void progress_as_lines(void)
{
    is_one_of_several = true;
}
