/*
 * The exploration of all execution graphs, and the running of one.
 *
 * explore.c decides which graphs are looked at; machine.c runs the scenario's code along a graph, and where
 * the graph ends asks explore.c for more.
 */
#ifndef BIDE_CHECK_EXPLORE_H
#define BIDE_CHECK_EXPLORE_H

#include "graph.h"

/* What is being checked; one at a time. */
typedef struct checker {
    const bide_check_scenario *scenario;
    bide_check_result *result;
    unsigned most_steps;
    unsigned most_spurious;
    graph *g;     /* that is being run */
    bool stopped; /* something was found */

    /* replaying a text: the decisions are its, not ours */
    const struct script *script;
} checker;

extern checker the_checker;

/* ---- explore.c ---- */

/* What a thread does next. They decide what it reads or where it stands, and leave behind what else is to be
 * tried. False: nothing is possible; give this execution up. */
bool explore_load(graph *g, unsigned thread, const operation *op, unsigned location,
                  const vector_clock *older);
bool explore_store(graph *g, unsigned thread, const operation *op, unsigned location,
                   uint64_t value, reference read);
bool explore_choice(graph *g, unsigned thread, const operation *op, unsigned count);

/* The same where there is nothing to decide: a fence, and the first store of a new location. */
void explore_fence(graph *g, unsigned thread, const operation *op);
void explore_init(graph *g, unsigned thread, const operation *op, unsigned location,
                  uint64_t value);

/* What came before the next event of a thread. */
void clock_before(const graph *g, reference next, vector_clock *hb, vector_clock *porf);

/* May one more step of the thread of `next`, before which it is asked, fail for no reason? */
bool explore_spurious_left(const graph *g, reference next);

/* Runs everything. */
void explore_all(void);

/* ---- machine.c ---- */

/* Runs one execution: along `g`, and on to its end. */
void machine_run(graph *g);

/* Ends the running execution, with something found. From inside or outside a thread of the scenario. */
void machine_found(bide_check_finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
