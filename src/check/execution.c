/*
 * The running execution: the order of its steps, how its threads leave, and its finding.
 */
#define _GNU_SOURCE
#include "execution.h"

#include "machine.h"
#include "source_location.h"
#include "storage.h"

#include "bide/platform.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

checker the_checker;
execution the_execution = {.running = NOBODY};

static reference *order;
static unsigned order_count, order_capacity;
static idle_run *idle_runs;
static unsigned idle_runs_count, idle_runs_capacity;
static unsigned turn_began; /* the number of steps when the running thread began to run */

void execution_begin(void)
{
    the_execution.in_checker = 0;
    the_execution.given_up = the_execution.runs_again = false;
    order_count = idle_runs_count = 0;
}

/* ---- The order of steps ---- */

const reference *execution_order(unsigned *count)
{
    *count = order_count;
    return order;
}

const idle_run *execution_idle_runs(unsigned *count)
{
    *count = idle_runs_count;
    return idle_runs;
}

void execution_add(reference step)
{
    bide_assert(execution_has_run(step) && step.index + 1u == execution_running()->position);
    order = grown(order, &order_capacity, order_count + 1, sizeof *order);
    order[order_count++] = step;
    the_execution.moves++;
}

void execution_turn_begins(void)
{
    turn_began = order_count;
    the_execution.moves++;
}

bool execution_turn_was_idle(void)
{
    unsigned running = the_execution.running;
    if (turn_began != order_count || running == SETUP || running == LAST)
        return false;
    idle_runs = grown(idle_runs, &idle_runs_capacity, idle_runs_count + 1, sizeof *idle_runs);
    idle_runs[idle_runs_count++] = (idle_run){running, order_count};
    return true;
}

/* ---- Leaving ---- */

void execution_leave(void)
{
    unsigned self = the_execution.running;
    int error = errno; /* each thread has its own */
    fiber_leave();
    the_execution.running = self;
    errno = error;
}

void execution_give_up(void)
{
    the_execution.given_up = true;
    for (;;)
        execution_leave();
}

void execution_block(void)
{
    execution_running()->state = BLOCKED;
    for (;;)
        execution_leave();
}

void execution_halt(void)
{
    execution_running()->halted = true;
    execution_block();
}

void execution_found(bide_check_finding finding, const char *format, ...)
{
    va_list arguments;
    if (execution_is_on_trial())
        execution_gave_up_spinning();
    if (execution_is_running())
        machine_settle();
    va_start(arguments, format);
    if (!the_checker.stopped) {
        bide_check_result *r = the_checker.result;
        if (execution_is_running())
            execution_turn_was_idle();
        r->finding = finding;
        execution_enter_checker();
        if (vasprintf(&r->message, format, arguments) < 0)
            r->message = NULL;
        execution_leave_checker();
    }
    va_end(arguments);
    the_checker.stopped = true;
    if (execution_is_running())
        execution_give_up();
}

/* ---- A spinning thread on trial ---- */

void execution_end_trial(void)
{
    if (execution_is_on_trial())
        execution_block();
}

void execution_gave_up_spinning(void)
{
    thread_record *t = execution_running();
    unsigned number = the_execution.running;
    char where[256];
    t->on_trial = false;
    source_location_describe(the_checker.g->threads[number].events[t->position - 1].op.site, where,
                             sizeof where);
    execution_found(
        BIDE_CHECK_BAD_SCENARIO,
        "thread %u gives up a loop after %u more rounds that read the same, at %s: the code after "
        "that is not checked. Let the loop look once, or for ever",
        number, t->more, where);
    abort(); /* not reached: execution_found() does not return inside a thread */
}
