/*
 * Which execution graphs are run: each that the memory model allows, once.
 *
 * A graph grows by the next event of the first thread that can go on. A load may read any store
 * that is there and not too old; a store may stand anywhere in its location's order that coherence
 * leaves. Loads that were added before a store are told of it too: the load is made to read it (it
 * is revisited), and what came after the load is taken away, but for what the store depends on. So
 * that no graph is reached twice, a load is revisited only from the one graph, among all that would
 * lead there, in which the load and all that is taken away had done the most natural thing: read,
 * and stood as, the newest.
 *
 * Source: the algorithm TruSt, from "Truly Stateless, Optimal Dynamic Partial Order Reduction"
 * (Kokologiannakis, Marmanis, Gladstein, Vafeiadis, 2022). It needs four things of the memory
 * model, which RC11 has: program order and reads-from have no cycle; coherence; what is taken from
 * the end of a consistent graph leaves it consistent; and a load that reads the newest store, or a
 * store that becomes the newest, never makes it inconsistent. The last also saves work: only other
 * choices are checked against the condition on seq_cst, which is the costly one.
 *
 * What is not yet decided about an event is kept as a list of options, on a stack (decide.h): to
 * try the next is to cut the graph back to the event and to run again from the start, along what is
 * left of the graph. Each revisit is explored to its end in a copy of the graph before the next
 * option is tried, so the memory needed grows with the length of executions, not with their number.
 *
 * Waiting. A thread that sleeps, or wants a lock, stands at a load that has not read what it waits
 * for: the load stays in the graph, blocked, and is revisited like any other. Only blocked loads of
 * the newest store are kept; an older one leads to nothing that another graph does not show.
 */
#include "explore.h"

#include "decide.h"
#include "execution.h"
#include "machine.h"
#include "progress.h"

/*
 * Was `e` there, or would it have been there, when only what is up to `stamp`, and what `porf`
 * holds, was?
 */
static bool is_previous(const graph *g, reference e, uint32_t stamp, const vector_clock *porf)
{
    return is_initial(e) || event_at(g, e)->stamp <= stamp || clock_has(porf, e);
}

/* Is `store` the newest of its location's stores that were previous? */
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
 * Did the event do the most natural thing, given what there was when it was added, and what the
 * revisiting store (whose porf it is) depends on?
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
                if (load->kind == EVENT_LOAD && same(load->rf, self))
                    return false; /* it was made to read what came later */
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
 * The store, the newest event of `g` and in no order yet, is read by `load`, which was there before
 * it. The option to do so has this share.
 */
static void revisit(const graph *g, reference store, reference load, double share)
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

/* Goes back to the last decision with an option that is possible, and takes it. */
static bool next_execution(graph *g, unsigned base)
{
    while (decide_depth() > base) {
        decision d = *decide_newest();
        option o;
        graph_cut(g, event_at(g, d.event)->stamp);
        while (decide_next(&o)) {
            if (o.kind == OPTION_REVISIT) {
                graph_displace(g, d.event);
                revisit(g, d.event, o.other, d.share);
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

static void run(graph *g)
{
    machine_run(g);
    is_enough = progress_end(decide_depth());
}

static void explore_from(graph *g, unsigned base)
{
    while (!the_checker.stopped && next_execution(g, base)) {
        if (is_enough)
            the_checker.stopped = the_checker.result->is_unfinished = true;
        else
            run(g);
    }
}

void explore_all(void)
{
    graph *g = graph_new();
    decide_begin();
    progress_begin();
    run(g);
    explore_from(g, 0);
    graph_free(g);
}
