/*
 * Running a thread further never holds up another, so each thread is run until it must stop: at its
 * end, or at a load of a store that has not been run. Only the choice of the next thread remains,
 * which is a search as deep as the bound.
 *
 * A revisited graph comes from graphs with more events, which may need more preemptions than it does
 * itself. So the bound is raised by twice the number of threads other than those of the load and the
 * store. "Reconciling Preemption Bounding with DPOR" (Marmanis, Kokologiannakis, Vafeiadis, 2023)
 * shows that once that number suffices if no thread waits. Twice was enough in every comparison with
 * an exploration without a bound.
 */
#include "preemptions.h"

#include "execution.h"

/* True for the threads of the scenario, whether or not they have started. */
static bool is_in_scenario(unsigned t)
{
    const bide_check_scenario *scenario = the_checker.scenario;
    for (unsigned i = 0; i < BIDE_CHECK_THREADS && scenario->threads[i] != NULL; i++) {
        if (i + 1 == t)
            return true;
    }
    return false;
}

/* Returns the next event of a thread that has one, if it must wait for another thread; or NULL. */
static const event *held_up(const graph *g, const unsigned position[THREADS], unsigned t)
{
    const event *e = &g->threads[t].events[position[t]];
    return e->kind == EVENT_LOAD && !is_run(position, e->rf) ? e : NULL;
}

static bool is_reportable(const graph *g, const unsigned before[THREADS], unsigned preemptions)
{
    bool all_done = true;
    for (unsigned t = 1; t < LAST; t++) {
        if (before[t] == g->threads[t].count)
            continue;
        all_done = false;
        if (held_up(g, before, t) != NULL)
            continue;
        unsigned position[THREADS];
        for (unsigned i = 0; i < THREADS; i++)
            position[i] = before[i];
        const event *e = NULL;
        while (position[t] < g->threads[t].count && (e = held_up(g, position, t)) == NULL)
            position[t]++;
        unsigned cost = e != NULL && (e->op.wait == WAIT_NEVER || e->op.is_tried);
        if (cost <= preemptions && is_reportable(g, position, preemptions - cost))
            return true;
    }
    return all_done;
}

bool is_within_bound(const graph *g)
{
    unsigned bound = the_checker.scenario->preemptions;
    if (bound == 0)
        return true;
    unsigned position[THREADS] = {0}, threads = 0;
    position[SETUP] = g->threads[SETUP].count;
    for (unsigned t = 1; t < LAST; t++)
        threads += g->threads[t].count != 0 || is_in_scenario(t);
    return is_reportable(g, position, bound + (threads > 2 ? 2 * (threads - 2) : 0));
}
