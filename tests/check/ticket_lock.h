/*
 * A ticket lock, and the order in which threads hold it. It stands at the head of a scenario's state, so that the
 * functions are threads of that scenario.
 */
#ifndef TICKET_LOCK_H
#define TICKET_LOCK_H

#include "bide/check.h"

#include <stdatomic.h>

typedef struct ticket_lock {
    atomic_int next, owner;
    int order; /* a digit for each thread that has held the lock */
} ticket_lock;

/* Of the program, if it is linked with AddressSanitizer. */
extern void __asan_init(void) __attribute__((weak));

static inline void order_is(void *p)
{
    ticket_lock *lock = p;
    lock->order = lock->order * 10 + (int)bide_check_thread();
}

static inline void note_order(void *p)
{
    bide_check_note("%d", ((ticket_lock *)p)->order);
}

static inline void take_ticket_lock(void *p)
{
    ticket_lock *lock = p;
    int ticket = atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed);
    while (atomic_load_explicit(&lock->owner, memory_order_acquire) != ticket) {
    }
    order_is(p);
    atomic_store_explicit(&lock->owner, ticket + 1, memory_order_release);
}

static inline void take_ticket_lock_twice(void *p)
{
    take_ticket_lock(p);
    take_ticket_lock(p);
}

#endif
