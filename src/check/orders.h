/*
 * The atomic operations that the scenarios have run, each with its memory orders, and the weaker
 * orders that replace them while the checker tests whether they suffice.
 */
#ifndef BIDE_CHECK_ORDERS_H
#define BIDE_CHECK_ORDERS_H

#include "graph.h"

typedef struct effective_orders {
    uint8_t order;
    uint8_t order_if_failed;
} effective_orders;

typedef struct known_operation {
    const bide_check_site_ *site;
    step_kind step;
    effective_orders written;
    effective_orders now;
} known_operation;

effective_orders orders_of(bide_check_site_ *site, step_kind step, int order, int order_if_failed);

known_operation *orders_known(unsigned *count);

/* One way to weaken an operation by one step. */
typedef struct weakening {
    unsigned operation;
    bool if_failed; /* the order of a failed compare-exchange */
    uint8_t to;
} weakening;

/* The n-th way to weaken one of the known operations; false if there are fewer. */
bool orders_weakening(unsigned n, weakening *w);

/* Applies a weakening, until orders_restore(). */
void orders_weaken(const weakening *w);
void orders_restore(void);

const char *order_name(int order);

/* The kind of an operation, as a word. */
const char *step_name(step_kind step);

#endif
