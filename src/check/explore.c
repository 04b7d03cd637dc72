/*
 * The exploration: runs each execution graph that the memory model allows, once.
 *
 * A graph grows by the next event of the first thread that can continue. A load may read any store
 * of the graph that is not too old; a store may have any position in its location's order that
 * coherence allows. A load that was added before a store may read that store too: the load is
 * revisited, which means that it is made to read the store, and that the events added after the load
 * are removed, except for events that the store depends on. Several graphs may lead to one and the
 * same revisited graph. The revisit is made only from one of them: the graph in which the load and
 * all removed events are natural, that is, loads read the newest store, and stores are the newest.
 *
 * Source: the algorithm TruSt, from "Truly Stateless, Optimal Dynamic Partial Order Reduction"
 * (Kokologiannakis, Marmanis, Gladstein, Vafeiadis, 2022). It requires four properties of the memory
 * model, which RC11 has:
 *
 * 1. Program order and reads-from have no cycle.
 * 2. Coherence.
 * 3. A consistent graph stays consistent when events are removed from its end.
 * 4. A load that reads the newest store, and a store that becomes the newest, never make a graph
 *    inconsistent. This also saves work: only other options are checked against the condition on
 *    seq_cst, which is the costly one.
 *
 * The untried options of an event are on a stack (decide.h). To try the next option, the graph is cut
 * back to the event, and the scenario runs again from its start along the rest of the graph. Each
 * revisit is explored to its end in a copy of the graph before the next option is tried, so the
 * memory grows with the length of executions, not with their number.
 *
 * Waiting. A thread that sleeps or waits for a lock is at a load that has not read the value that it
 * waits for: the load stays in the graph, blocked, and is revisited like any other. Only blocked
 * loads of the newest store are kept; a blocked load of an older store leads to no execution that
 * another graph does not show.
 */
#include "explore.h"

#include "decide.h"
#include "execution.h"
#include "machine.h"
#include "progress.h"

#include "bide/platform.h"

/* True if `e` was added up to `stamp`, or is one of the events in `porf`. */
static bool is_previous(const graph *g, reference e, uint32_t stamp, const vector_clock *porf)
{
    return is_initial(e) || event_at(g, e)->stamp <= stamp || clock_has(porf, e);
}

/* True if `store` is the newest of its location's previous stores. */
static bool is_newest_previous(const graph *g, unsigned location, reference store, uint32_t stamp,
                               const vector_clock *porf)
{
    const struct location *l = &g->locations[location];
    for (unsigned i = position_of(g, store) + 1; i < l->count; i++) {
        if (is_previous(g, l->stores[i], stamp, porf))
            return false;
    }
    return true;
}

/*
 * True if the event is natural, among the events up to its own stamp and the events that the
 * revisiting store, whose porf is given, depends on.
 */
static bool is_natural(const graph *g, reference self, const vector_clock *porf)
{
    const event *e = event_at(g, self);
    switch (e->kind) {
    case EVENT_LOAD:
        return !e->spurious && is_previous(g, e->rf, e->stamp, porf) &&
               is_newest_previous(g, e->location, e->rf, e->stamp, porf);
    case EVENT_STORE:
        for (unsigned t = 0; t < THREADS; t++) {
            for (unsigned i = 0; i < g->threads[t].count; i++) {
                const event *load = &g->threads[t].events[i];
                if (load->stamp > e->stamp)
                    break;
                if (load->kind == EVENT_LOAD && same_reference(load->rf, self))
                    return false; /* an earlier load was revisited by this store */
            }
        }
        return is_newest_previous(g, e->location, self, e->stamp, porf);
    case EVENT_CHOICE:
        return e->value == 0;
    default:
        return true;
    }
}

static void explore_from(graph *g, unsigned base);

/*
 * Explores the graphs in which `load`, an earlier event, reads `store`, the newest event of `g`, which
 * is in no modification order. `share` is the share of this option: see progress.h.
 */
static void explore_revisit(const graph *g, reference store, reference load, double share)
{
    const event *e = event_at(g, store);
    uint32_t stamp = event_at(g, load)->stamp;
    unsigned keep[THREADS];
    for (unsigned t = 0; t < THREADS; t++) {
        unsigned n = 0, count = g->threads[t].count;
        while (n < count && (g->threads[t].events[n].stamp <= stamp || n < e->porf.seen[t]))
            n++;
        keep[t] = n;
        for (; n < count; n++) {
            if (!is_natural(g, (reference){(uint16_t)t, (uint16_t)n}, &e->porf)) {
                progress_drop(share);
                return;
            }
        }
    }
    if (!is_natural(g, load, &e->porf)) {
        progress_drop(share);
        return;
    }

    graph *copy = graph_copy(g, keep);
    unsigned base = decide_depth();
    progress_take(share);
    decide_revisited(copy, store, load);
    explore_from(copy, base);
    graph_free(copy);
}

/* Backtracks to the newest decision with a possible option, and takes that option. */
static bool next_execution(graph *g, unsigned base)
{
    while (decide_depth() > base) {
        decision d = *decide_newest();
        option o;
        graph_cut(g, event_at(g, d.event)->stamp);
        while (decide_next(&o)) {
            if (o.kind == OPTION_REVISIT) {
                graph_displace(g, d.event);
                explore_revisit(g, d.event, o.other, d.share);
                if (the_checker.stopped)
                    return false;
            } else if (decide_apply(g, d.event, &o)) {
                progress_take(d.share);
                return true;
            } else {
                progress_drop(d.share);
            }
        }
        decide_drop();
    }
    return false;
}

static bool is_enough; /* a limit is reached */

/*
 * Asserts the invariants of the graph: after each of the first executions, and then after one in 16,
 * which costs less than 2 % of the time. A graph that was given up may have a newest store that is in
 * no modification order.
 */
static void assert_run(const graph *g)
{
    const bide_check_result *r = the_checker.result;
    uint64_t count = r->executions + r->blocked;
    if (!the_execution.given_up && (count < 1000 || count % 16 == 0))
        graph_assert_consistent(g);
}

static void run_graph(graph *g)
{
    do
        machine_run(g);
    while (the_execution.runs_again);
    assert_run(g);
    is_enough = progress_end(decide_depth());
}

static void explore_from(graph *g, unsigned base)
{
    while (!the_checker.stopped && next_execution(g, base)) {
        if (is_enough)
            the_checker.stopped = the_checker.result->is_unfinished = true;
        else
            run_graph(g);
    }
}

void explore_all(void)
{
    graph *g = graph_new();
    decide_begin();
    progress_begin();
    run_graph(g);
    explore_from(g, 0);
    bide_assert(the_checker.stopped || decide_depth() == 0);
    graph_free(g);
}
