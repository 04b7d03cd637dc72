/*
 * The operations in flight, in debug builds: a table by address. An operation is in it from when a
 * coroutine suspends on it, or from when it is given to bide_spawn or a scope, until its result is
 * taken or the coroutine is destroyed. Suspending on an operation that is in it for another coroutine
 * is misuse: the struct of an operation is used again while it waits. Live roots, and live branches of
 * scopes, are in it too, so that their structs are not used again either. Floor: coroutine.
 *
 * Not in it: operations that were ready; operations that a hand-written frame awaits by
 * bide_frame_await, because it may withdraw them in ways of its own; and all of them under the model
 * checker.
 *
 * There are several tables, chosen by the address, so that threads seldom collide. Each is a hash table
 * with linear probing; a removal moves later entries back, so there are no marks of removed ones. So
 * adding, finding and removing take a few steps, whatever lives. Nothing is read through a key, except
 * in 4.
 *
 * Why it is correct:
 * 1. A table is consistent whenever its lock is free. No other lock is taken under it.
 * 2. Adding comes before `suspend`, and so before anything that can resume the coroutine. Removing
 *    comes when the coroutine continues, and so before the struct may be used again. Both are ordered
 *    by what hands the frame over (frame.h).
 * 3. `count` is read without the lock. The remover's own entry was added before, in the sense of 2, so
 *    it does not read a 0 while that is there.
 * 4. A coroutine that is left suspended, neither ended nor destroyed, leaves an entry behind, and its
 *    memory may have another use by now. So an entry counts only if the operation's `frame` still leads
 *    to its owner: init functions leave that alone, other uses of the memory do not. The price is that
 *    an operation whose memory is cleared before it is used again is not reported.
 *
 * A table that is half full doubles, where the system's platform table is linked (platform_linux.c). Elsewhere, and
 * where memory is short, what does not fit is not added: misuse of it is not reported.
 *
 * Source: Donald Knuth, The Art of Computer Programming, 6.4, algorithms L and R.
 */
#ifndef BIDE_FLIGHTS_H
#define BIDE_FLIGHTS_H

#include "bide/frame.h"

/* One entry. */
typedef struct bide_flight_ {
    const void *address;     /* of an operation, a root or a branch; NULL: the slot is free */
    const bide_frame *owner; /* the frame that waits for it; of a root or a branch: itself */
    const bide_frame *gate;  /* of the stop source in which it waits; NULL: none */
    const void *place; /* where: a bide_point if `line` is 0, otherwise a file; NULL: unknown */
    unsigned line;
} bide_flight_;

/*
 * Adds an entry. Returns false if there is one of another owner, and copies that to *other. If the owner is
 * the same, or the old entry is stale (4), the new one replaces it; it keeps the old place if it has none
 * itself. `operation` is what is at the address; NULL if it is not an operation. It need not be initialised
 * if there is no entry.
 */
bool bide_flights_add_(const bide_flight_ *flight, const bide_awaiter *operation,
                       bide_flight_ *other);

/* Finds the place at which an operation was given to `owner`, a root or a branch: true if it is known. */
bool bide_flights_find_(const void *address, const bide_frame *owner, bide_flight_ *found);

/* Whether there is an entry of this address whose owner is itself. */
bool bide_flights_have_(const bide_frame *frame);

/*
 * `frame` was given `awaiter`, in `function` of the caller's, and will await it. Reports misuse if it is in
 * flight.
 */
void bide_flights_attach_(const bide_awaiter *awaiter, const bide_frame *frame,
                          const char *function, const char *file, unsigned line);

/* `frame` is destroyed at an await: what it waits for is not in flight any more. */
void bide_flights_destroyed_(const bide_frame *frame);

/*
 * The system's memory: `size` bytes, zeroed, for a table, or NULL: there are none; and back. Said once, before
 * there are threads. Without it the tables do not grow.
 */
typedef void *bide_flights_map_(size_t size);
typedef void bide_flights_unmap_(void *memory, size_t size);
void bide_flights_use_(bide_flights_map_ *map, bide_flights_unmap_ *unmap);

/* How many slots are looked at to find an address: for tests. */
unsigned bide_flights_steps_(const void *address);

/* Around a fork, as for the live roots (roots.h). */
void bide_flights_before_fork_(void);
void bide_flights_after_fork_(void);
void bide_flights_in_child_(bool was_alone);

#endif
