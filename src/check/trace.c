/*
 * Prints the steps of an execution, and collects the outcomes.
 */
#define _GNU_SOURCE
#include "trace.h"

#include "execution.h"
#include "locations.h"
#include "machine.h"
#include "memory.h"
#include "orders.h"
#include "replay.h"
#include "rounds.h"
#include "source_location.h"
#include "storage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Steps ---- */

/* Returns the number of a step in the trace, or 0. */
static unsigned number_of(reference r)
{
    unsigned count;
    const reference *order = execution_order(&count);
    for (unsigned i = 0; i < count; i++) {
        if (same_reference(order[i], r))
            return i + 1;
    }
    return 0;
}

static void print_value(FILE *out, uint64_t value)
{
    if (value < 1 << 20)
        fprintf(out, "%" PRIu64, value);
    else
        fprintf(out, "%#" PRIx64, value);
}

/*
 * Returns the step of the first store after `position` that has been run, or 0.
 */
static unsigned newer_step(const location *l, unsigned position, const unsigned run[THREADS])
{
    while (++position < l->count) {
        if (is_run(run, l->stores[position]))
            return number_of(l->stores[position]);
    }
    return 0;
}

static void print_source(FILE *out, const event *load, const unsigned run[THREADS])
{
    const graph *g = the_checker.g;
    if (is_initial(load->rf))
        fputs(", its initial value", out);
    else
        fprintf(out, ", stored by step %u", number_of(load->rf));
    unsigned newer = newer_step(&g->locations[load->location], position_of(g, load->rf), run);
    if (newer != 0)
        fprintf(out, " (a stale value: step %u had stored another)", newer);
}

/* Returns the object's name in the source, or else its place in memory. */
static const char *object_of(const event *e)
{
    static char where[64];
    const char *object = e->op.site->object;
    if (*object != '\0' || e->kind > EVENT_STORE)
        return *object == '&' ? object + 1 : object;
    memory_describe(location_address(the_checker.g, e->location), where, sizeof where);
    return where;
}

static void print_step(FILE *out, const event *e, const unsigned run[THREADS])
{
    const char *object = object_of(e);
    if (e->kind == EVENT_CHOICE) {
        fprintf(out, "choose %" PRIu64, e->value);
    } else if (e->kind == EVENT_FENCE) {
        fprintf(out, "fence (%s)", order_name(e->order));
    } else if (e->kind == EVENT_LOAD) {
        fprintf(out, "%s%s %s: read ", step_name(e->op.step),
                e->op.step == STEP_COMPARE_EXCHANGE ? (e->is_rmw ? "" : ", failed,") : "", object);
        print_value(out, e->value);
        fprintf(out, " (%s)", order_name(e->order));
        print_source(out, e, run);
        if (e->spurious)
            fputs("; it failed spuriously", out);
        if (e->blocked)
            fputs("; it waits for another value", out);
    } else {
        fprintf(out, "%s %s = ", step_name(e->op.step), object);
        print_value(out, e->value);
        fprintf(out, " (%s)", e->op.step == STEP_INIT ? "plain" : order_name(e->order));
        unsigned newer = newer_step(&the_checker.g->locations[e->location], e->position, run);
        if (newer != 0)
            fprintf(out, ", ordered before the store of step %u", newer);
    }
}

static char *trace_steps(void)
{
    char *text = NULL;
    size_t size = 0;
    unsigned count;
    const reference *order = execution_order(&count);
    unsigned run[THREADS] = {0};
    FILE *out = open_memstream(&text, &size);
    for (unsigned i = 0; i < count; i++) {
        const event *e = event_at(the_checker.g, order[i]);
        char where[256], *what = NULL;
        size_t what_size;
        FILE *one = open_memstream(&what, &what_size);
        print_step(one, e, run);
        fclose(one);
        source_location_describe(e->op.site, where, sizeof where);
        const char *who = order[i].thread == SETUP  ? "setup "
                          : order[i].thread == LAST ? "finish"
                                                    : "thread";
        fprintf(out, "%4u  %s ", i + 1, who);
        if (order[i].thread != SETUP && order[i].thread != LAST)
            fprintf(out, "%u", order[i].thread);
        else
            fputc(' ', out);
        fprintf(out, "  %-60s  %s", what, where);
        if (e->op.site->line != 0)
            fprintf(out, ", in %s", e->op.site->function);
        fputc('\n', out);
        run[order[i].thread]++;
        free(what);
    }
    fclose(out);
    return text;
}

void trace_finding(void)
{
    the_checker.result->trace = trace_steps();
    the_checker.result->replay = replay_write();
}

void trace_blocked(unsigned thread, bool spins)
{
    const thread_events *t = &the_checker.g->threads[thread];
    const event *e = &t->events[t->count - 1];
    while (e->kind != EVENT_LOAD && e != t->events) /* a spin may end in a fence */
        e--;
    char where[256];
    source_location_describe(e->op.site, where, sizeof where);
    if (spins)
        execution_found(BIDE_CHECK_LIVELOCK,
                        "thread %u spins for ever: it reads %s, at %s, which no thread "
                        "will change",
                        thread, object_of(e), where);
    else
        execution_found(BIDE_CHECK_DEADLOCK, "thread %u waits for ever, at %s (%s %s)", thread,
                        where, step_name(e->op.step), object_of(e));
}

/* ---- Outcomes ---- */

static char *note;
static size_t note_length;
static unsigned note_capacity;

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

void bide_check_note(const char *format, ...)
{
    va_list arguments;
    char text[256];
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || !execution_is_running() || execution_is_on_trial())
        return;
    the_execution.caller = __builtin_return_address(0);
    rounds_act(ACT_NOTE, NULL, 0, hash_of(text));
    machine_settle();
    size_t added = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    note = grown(note, &note_capacity, (unsigned)(note_length + added + 2), 1);
    if (note_length != 0)
        note[note_length++] = ' ';
    memcpy(note + note_length, text, added + 1);
    note_length += added;
}

void trace_execution_began(void)
{
    note_length = 0;
}

void trace_execution_ended(void)
{
    bide_check_result *r = the_checker.result;
    if (note_length == 0)
        return;
    size_t low = 0, high = r->outcomes_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(note, r->outcomes[middle]);
        if (order == 0) {
            r->counts[middle]++;
            return;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    static unsigned outcomes_capacity, counts_capacity;
    if (r->outcomes_count == 0)
        outcomes_capacity = counts_capacity = 0;
    unsigned needed = (unsigned)r->outcomes_count + 1;
    r->outcomes = grown(r->outcomes, &outcomes_capacity, needed, sizeof *r->outcomes);
    r->counts = grown(r->counts, &counts_capacity, needed, sizeof *r->counts);
    memmove(&r->outcomes[low + 1], &r->outcomes[low],
            (r->outcomes_count - low) * sizeof *r->outcomes);
    memmove(&r->counts[low + 1], &r->counts[low], (r->outcomes_count - low) * sizeof *r->counts);
    r->outcomes[low] = strdup(note);
    r->counts[low] = 1;
    r->outcomes_count++;
}
