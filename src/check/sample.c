/*
 * 1. Every consistent graph can be sampled. Take an order of its events in which each follows the
 *    events that it depends on. Each prefix of that order is a consistent graph (property 3 in
 *    explore.c), so the next event can be added, with what it reads and its place: it is one of the
 *    options of its thread's next step.
 *
 * 2. Every sampled graph is consistent: it is built by the functions of decide.c, which the
 *    exploration uses.
 *
 * 3. In one half of the runs each load reads the newest store, and each store becomes the newest:
 *    an interleaving. In the other half all options are equally probable.
 *
 * 4. With a depth d, the schedule is that of "A Randomized Scheduler with Probabilistic Guarantees
 *    of Finding Bugs" (Burckhardt, Kothari, Musuvathi, Nagarakatte, 2010). Threads have priorities
 *    in a drawn order, and the thread with the highest one runs. After each of d - 1 drawn steps the
 *    thread that has taken it gets a priority below all of those. A thread that cannot continue takes
 *    no step, so no change is spent on it. Let a bug need d orderings of steps. A run of n threads
 *    and at most k steps finds it with a probability of at least 1 / (n * k^(d - 1)). The paper's
 *    argument is about interleavings, so by 3 the bound is half of that. k is the number of steps of
 *    a run before all others, which is always drawn from the same seed: so a run depends on its own
 *    seed alone. The bound is reported unless a run has shown that it does not hold: a run of more
 *    than k steps, or one in which a priority was lowered by 6.
 *
 * 5. A thread that waits for a value that it cannot read takes no step until an event was added. If
 *    all threads wait, they are blocked one after the other, and judged by machine.c.
 *
 * 6. No run is endless. With priorities, a thread that has read the same twice, calls
 *    bide_cpu_relax(), or has taken more than LONG_ROW steps in a row and more than k or an eighth of
 *    max_steps, gets a priority below all others; the bound
 *    in 4 does not hold for such runs. With equal probabilities every thread runs again and again. A load of l stores
 *    reads the newest with a probability of at least 1/l. Coherence lets a thread never go back, so
 *    a loop is left after few rounds when the value that ends it is there. A thread that takes more
 *    than max_steps is a livelock.
 */
#include "sample.h"

#include "decide.h"
#include "machine.h"
#include "progress.h"
#include "rounds.h"

#include "bide/platform.h"

#include <string.h>

enum { LONG_ROW = 500, MAX_ROUND = 64 };

static uint64_t sample_state;   /* of the generator */
static unsigned sample_depth;   /* 0: each thread is equally probable */
static uint64_t sample_length;  /* k in 4 */
static unsigned sample_threads; /* that have taken a step, a bit each */
static bool bound_holds;        /* of 4, as far as the runs show */

/* Of one run. */
static struct {
    bool is_strong;     /* each load reads the newest store */
    unsigned turn;      /* the thread that takes the next step, or NOBODY if it is not drawn */
    bool is_forced;     /* its step is a blocked load */
    bool is_held;       /* the running thread takes the next steps, too */
    uint64_t steps;     /* of the scenario's threads */
    unsigned last, row; /* the thread of the last step, and how many it took in a row */
    uint32_t waits_since[THREADS]; /* the stamp of the graph + 1 */

    int priorities[THREADS];
    int lowest;
    bool is_lowered;                    /* a priority was, by 6 */
    uint64_t changes[SAMPLE_MAX_DEPTH]; /* after these steps a priority changes */
} sampled;

static uint64_t sample_random(void)
{
    uint64_t z = (sample_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number below `count`. */
static unsigned sample_below(uint64_t count)
{
    return (unsigned)((sample_random() >> 32) * count >> 32);
}

static void draw_priorities(void)
{
    for (unsigned t = 1; t < LAST; t++) {
        unsigned other = 1 + sample_below(t);
        sampled.priorities[t] = sampled.priorities[other];
        sampled.priorities[other] = (int)(sample_depth + t);
    }
    sampled.lowest = 0;
    for (unsigned i = 0; i + 1 < sample_depth; i++)
        sampled.changes[i] = 1 + sample_below(sample_length);
}

static void begin_sampled_run(uint64_t seed, unsigned depth)
{
    memset(&sampled, 0, sizeof sampled);
    sampled.turn = sampled.last = NOBODY;
    sample_state = seed;
    sample_depth = depth;
    sampled.is_strong = sample_below(2) == 0;
    if (depth != 0)
        draw_priorities();
}

/* ---- Schedules ---- */

static bool is_runnable(unsigned t)
{
    thread_state state = the_execution.threads[t].state;
    return state == WAITING_TO_START || state == READY;
}

static void lower_priority(unsigned thread)
{
    sampled.is_lowered = true;
    sampled.priorities[thread] = --sampled.lowest;
}

static unsigned highest_of(const unsigned *threads, unsigned count)
{
    unsigned highest = threads[0];
    for (unsigned i = 1; i < count; i++) {
        if (sampled.priorities[threads[i]] > sampled.priorities[highest])
            highest = threads[i];
    }
    return highest;
}

/* The thread has taken the step that is counted last. */
static void change_priority(unsigned thread)
{
    for (unsigned i = 0; i + 1 < sample_depth; i++) {
        if (sampled.changes[i] == sampled.steps)
            sampled.priorities[thread] = (int)i + 1;
    }
}

static unsigned draw_thread(void)
{
    unsigned threads[THREADS], count = 0;
    if (sampled.is_held)
        return sampled.last;
    for (unsigned t = 1; t < LAST; t++) {
        if (is_runnable(t) && the_execution.threads[t].in_rmw)
            return t;
    }
    for (unsigned t = 1; t < LAST; t++) {
        if (is_runnable(t) && sampled.waits_since[t] != the_checker.g->stamp + 1)
            threads[count++] = t;
    }
    if (count == 0) {
        sampled.is_forced = true;
        for (unsigned t = 1; t < LAST; t++) {
            if (is_runnable(t))
                threads[count++] = t;
        }
    }
    if (count == 0)
        return NOBODY;
    return sample_depth != 0 ? highest_of(threads, count) : threads[sample_below(count)];
}

unsigned sample_next_thread(void)
{
    if (sampled.turn == NOBODY || !is_runnable(sampled.turn))
        sampled.turn = draw_thread();
    return sampled.turn;
}

bool sample_is_turn_of(unsigned thread)
{
    return thread == SETUP || thread == LAST || sample_next_thread() == thread;
}

bool sample_waits(void)
{
    if (sampled.is_forced || execution_thread() == SETUP || execution_thread() == LAST)
        return false;
    sampled.waits_since[execution_thread()] = the_checker.g->stamp + 1;
    sampled.turn = NOBODY;
    return true;
}

void sample_hold(bool is_held)
{
    if (execution_thread() == SETUP || execution_thread() == LAST)
        return;
    sampled.is_held = is_held;
    sampled.last = execution_thread();
}

void sample_spins(void)
{
    if (sample_draws() && sample_depth != 0)
        lower_priority(execution_thread());
}

/* True if the thread has read this value here before, and has changed nothing since. */
static bool reads_again(reference self)
{
    const event *events = the_checker.g->threads[self.thread].events, *e = &events[self.index];
    if (e->kind != EVENT_LOAD)
        return false;
    for (unsigned i = self.index; i-- > 0 && i + MAX_ROUND >= self.index;) {
        const event *before = &events[i];
        if (rounds_change(before))
            return false;
        if (before->kind == EVENT_LOAD && before->op.site == e->op.site &&
            before->op.step == e->op.step && before->location == e->location &&
            before->value == e->value)
            return true;
    }
    return false;
}

void sample_step(reference self)
{
    if (self.thread == SETUP || self.thread == LAST)
        return;
    sampled.turn = NOBODY;
    sampled.is_forced = false;
    sampled.steps++;
    sampled.row = sampled.last == self.thread ? sampled.row + 1 : 1;
    sampled.last = self.thread;
    sample_threads |= 1u << self.thread;
    if (sample_depth == 0)
        return;
    bool is_long = sampled.row > LONG_ROW &&
                   (sampled.row > sample_length || sampled.row > the_checker.max_steps / 8);
    if (is_long || reads_again(self)) {
        sampled.row = 0;
        lower_priority(self.thread);
    }
    change_priority(self.thread);
}

unsigned sample_option(event_kind kind, unsigned count)
{
    return sampled.is_strong && kind != EVENT_CHOICE ? 0 : sample_below(count);
}

/* ---- Runs ---- */

static void run_sampled(uint64_t seed, unsigned depth)
{
    bide_check_result *r = the_checker.result;
    uint64_t before = r->executions, blocked = r->blocked;
    graph *g = graph_new();
    begin_sampled_run(seed, depth);
    machine_run(g);
    if (!the_execution.given_up)
        graph_assert_consistent(g);
    graph_free(g);
    r->blocked = blocked + (r->finding == BIDE_CHECK_NOTHING && r->executions == before);
    r->seed = seed;
    bool breaks_bound = sampled.is_lowered || (depth != 0 && sampled.steps > sample_length);
    bound_holds = bound_holds && !(sampled.is_strong && breaks_bound);
}

/* The bound of 4; 0 if it does not hold. */
static double pct_bound(unsigned depth)
{
    double odds = 2.0 * __builtin_popcount(sample_threads);
    if (depth == 0 || !bound_holds || sample_threads == 0)
        return 0;
    for (unsigned i = 1; i < depth; i++)
        odds *= (double)sample_length;
    return 1 / odds;
}

void sample_all(const bide_check_sampling *sampling)
{
    unsigned depth = sampling->depth < SAMPLE_MAX_DEPTH ? sampling->depth : SAMPLE_MAX_DEPTH;
    bide_check_result *r = the_checker.result;
    r->is_sampled = true;
    sample_threads = 0;
    bound_holds = true;
    decide_begin();
    progress_begin();
    if (depth != 0) {
        run_sampled(0, 0);
        sample_length = sampled.steps != 0 ? sampled.steps : 1;
        bound_holds = !the_checker.stopped;
    }
    for (uint64_t i = 0; i < sampling->runs && !the_checker.stopped; i++) {
        run_sampled(sampling->seed + i, depth);
        if (progress_sampled(i + 1, sampling->runs) && !the_checker.stopped &&
            i + 1 < sampling->runs)
            the_checker.stopped = r->is_unfinished = true; /* nothing was found */
    }
    r->bound = pct_bound(depth);
    if (r->finding == BIDE_CHECK_NOTHING || r->executions + r->blocked == 0)
        r->seed = sampling->seed;
}
