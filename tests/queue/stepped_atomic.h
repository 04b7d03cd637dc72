/*
 * From here on atomic operations call `step` first, which the including file has defined. Included before the
 * headers and sources that are stepped through, and after all others.
 */
#ifndef BIDE_TESTS_STEPPED_ATOMIC_H
#define BIDE_TESTS_STEPPED_ATOMIC_H

#include "bide/atomic.h"

#undef bide_atomic_load
#undef bide_atomic_store
#undef bide_atomic_exchange
#undef bide_atomic_compare_exchange
#undef bide_atomic_compare_exchange_weak
#undef bide_atomic_fetch_add
#undef bide_atomic_fetch_sub
#undef bide_atomic_fetch_or
#undef bide_atomic_fetch_and
#define bide_atomic_load(object, order) (step(), atomic_load_explicit(object, BIDE_ORDER_(order)))
#define bide_atomic_store(object, value, order) \
    (step(), atomic_store_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_exchange(object, value, order) \
    (step(), atomic_exchange_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_compare_exchange(object, expected, value, order, order_if_failed)             \
    (step(), atomic_compare_exchange_strong_explicit(object, expected, value, BIDE_ORDER_(order), \
                                                     BIDE_ORDER_(order_if_failed)))
/* (one that fails for no reason would only change the numbers) */
#define bide_atomic_compare_exchange_weak(object, expected, value, order, order_if_failed) \
    bide_atomic_compare_exchange(object, expected, value, order, order_if_failed)
#define bide_atomic_fetch_add(object, value, order) \
    (step(), atomic_fetch_add_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_fetch_sub(object, value, order) \
    (step(), atomic_fetch_sub_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_fetch_or(object, value, order) \
    (step(), atomic_fetch_or_explicit(object, value, BIDE_ORDER_(order)))
#define bide_atomic_fetch_and(object, value, order) \
    (step(), atomic_fetch_and_explicit(object, value, BIDE_ORDER_(order)))

#endif
