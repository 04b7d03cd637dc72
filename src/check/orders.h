/*
 * The atomic operations that were met, each with its orders, and the orders that they have instead
 * while the checker looks whether a weaker one would do.
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
    bool if_failed; /* the order that counts when a compare-exchange fails */
    uint8_t to;
} weakening;

/* The n-th way to weaken what is known; false if there are not so many. */
bool orders_weakening(unsigned n, weakening *w);

/* Puts it in force, until `orders_restore`. */
void orders_weaken(const weakening *w);
void orders_restore(void);

const char *order_name(int order);

/* What kind of operation, as a word. */
const char *step_name(step_kind step);

#endif
