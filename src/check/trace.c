/*
 * Prints the steps of an execution, and collects the outcomes.
 */
#define _GNU_SOURCE
#include "trace.h"

#include "dot.h"
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

/* The number of each step in the trace; 0: it has not been run. */
static unsigned *numbers[THREADS];

static void number_steps(void)
{
    static unsigned capacities[THREADS];
    unsigned count;
    const reference *order = execution_order(&count);
    for (unsigned t = 0; t < THREADS; t++) {
        unsigned events = the_checker.g->threads[t].count;
        numbers[t] = grown(numbers[t], &capacities[t], events + 1, sizeof *numbers[t]);
        memset(numbers[t], 0, events * sizeof *numbers[t]);
    }
    for (unsigned i = 0; i < count; i++)
        numbers[order[i].thread][order[i].index] = i + 1;
}

unsigned trace_number(reference r)
{
    return is_initial(r) ? 0 : numbers[r.thread][r.index];
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
            return trace_number(l->stores[position]);
    }
    return 0;
}

static void print_source(FILE *out, const event *load, const unsigned run[THREADS])
{
    const graph *g = the_checker.g;
    if (is_initial(load->rf))
        fputs(", its initial value", out);
    else
        fprintf(out, ", stored by step %u", trace_number(load->rf));
    unsigned newer = newer_step(&g->locations[load->location], position_of(g, load->rf), run);
    if (newer != 0)
        fprintf(out, " (a stale value: step %u had stored another)", newer);
}

const char *trace_object(const event *e)
{
    static char where[64];
    const char *object = e->op.site->object;
    if (*object != '\0' || e->kind > EVENT_STORE)
        return *object == '&' ? object + 1 : object;
    memory_describe(location_address(the_checker.g, e->location), where, sizeof where);
    return where;
}

void trace_choice(FILE *out, const event *e)
{
    if (e->op.step == STEP_ALLOCATE)
        fprintf(out, "allocate %" PRIu64 " bytes: it %s", e->op.operand,
                e->value != 0 ? "fails" : "succeeds");
    else
        fprintf(out, "choose %" PRIu64, e->value);
}

static void print_step(FILE *out, const event *e, const unsigned run[THREADS])
{
    const char *object = trace_object(e);
    if (e->kind == EVENT_CHOICE) {
        trace_choice(out, e);
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

static void print_line(FILE *out, unsigned number, reference r, const unsigned run[THREADS])
{
    const event *e = event_at(the_checker.g, r);
    char where[256], *what = NULL;
    size_t what_size;
    FILE *one = open_memstream(&what, &what_size);
    print_step(one, e, run);
    fclose(one);
    source_location_describe(e->op.site, where, sizeof where);
    const char *who = r.thread == SETUP ? "setup " : r.thread == LAST ? "finish" : "thread";
    fprintf(out, "%4u  %s ", number, who);
    if (r.thread != SETUP && r.thread != LAST)
        fprintf(out, "%u", r.thread);
    else
        fputc(' ', out);
    fprintf(out, "  %-60s  %s", what, where);
    if (e->op.site->line != 0)
        fprintf(out, ", in %s", e->op.site->function);
    fputc('\n', out);
    free(what);
}

/* ---- Rounds ---- */

/*
 * Steps that are repeated are printed once: `round` of them, `rounds` times in all. If only the values
 * differ, the last round is printed too.
 */
typedef struct repetition {
    unsigned round, rounds;
    bool values_differ;
} repetition;

enum { LONGEST_ROUND = 32, SAME_ROUNDS = 3, LIKE_ROUNDS = 8 };

/* True for the same operation of the same thread; with `and_value`, also of the same value. */
static bool are_alike(reference a, reference b, bool and_value)
{
    const event *x = event_at(the_checker.g, a), *y = event_at(the_checker.g, b);
    if (a.thread != b.thread || x->kind != y->kind || x->op.step != y->op.step ||
        x->op.site != y->op.site || x->order != y->order || x->blocked != y->blocked ||
        x->spurious != y->spurious || (x->kind <= EVENT_STORE && x->location != y->location))
        return false;
    return !and_value || x->kind == EVENT_FENCE || x->value == y->value;
}

static unsigned rounds_from(const reference *order, unsigned count, unsigned begin, unsigned round,
                            bool and_value)
{
    unsigned i = begin;
    while (i + round < count && are_alike(order[i], order[i + round], and_value))
        i++;
    return (i - begin) / round + 1;
}

static repetition repetition_at(const reference *order, unsigned count, unsigned begin)
{
    static const struct {
        bool and_value;
        unsigned min_rounds;
    } ways[] = {{true, SAME_ROUNDS}, {false, LIKE_ROUNDS}};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        for (unsigned round = 1; round <= LONGEST_ROUND && begin + 2 * round <= count; round++) {
            unsigned rounds = rounds_from(order, count, begin, round, ways[way].and_value);
            if (rounds >= ways[way].min_rounds)
                return (repetition){round, rounds, !ways[way].and_value};
        }
    }
    return (repetition){1, 1, false};
}

static void print_folded(FILE *out, const repetition *r, unsigned begin)
{
    unsigned hidden = r->rounds - (r->values_differ ? 2 : 1);
    unsigned first = begin + r->round + 1;
    fprintf(out, "      (steps %u to %u: %s %u times%s)\n", first, first + hidden * r->round - 1,
            r->round == 1 ? "the same step again," : "these steps again,", hidden,
            r->values_differ ? ", with other values" : "");
}

static char *trace_steps(void)
{
    char *text = NULL;
    size_t size = 0;
    unsigned count;
    const reference *order = execution_order(&count);
    unsigned run[THREADS] = {0};
    FILE *out = open_memstream(&text, &size);
    bool folds = the_checker.replay == NULL;
    for (unsigned i = 0; i < count;) {
        repetition r = folds ? repetition_at(order, count, i) : (repetition){1, 1, false};
        unsigned begin = i, end = i + r.round * r.rounds;
        unsigned last_round = end - (r.values_differ ? r.round : 0);
        for (; i < end; i++) {
            if (r.rounds > 1 && i == begin + r.round)
                print_folded(out, &r, begin);
            if (i < begin + r.round || i >= last_round)
                print_line(out, i + 1, order[i], run);
            run[order[i].thread]++;
        }
    }
    fclose(out);
    return text;
}

void trace_finding(void)
{
    number_steps();
    the_checker.result->trace = trace_steps();
    the_checker.result->replay = replay_write();
    the_checker.result->graph = dot_execution();
}

void trace_replayed(void)
{
    number_steps();
    the_checker.result->graph = dot_execution();
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
                        thread, trace_object(e), where);
    else
        execution_found(BIDE_CHECK_DEADLOCK, "thread %u waits for ever, at %s (%s %s)", thread,
                        where, step_name(e->op.step), trace_object(e));
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
