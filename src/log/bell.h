/*
 * The bell of a process: a word in shared memory by which other processes wake its coroutines. A
 * coroutine that finds nothing asks for the bell under the log's lock. A process that has made a
 * change under the lock rings the bells afterwards. A thread of each process sleeps on its own bell,
 * and notifies the coroutines. Floor: log.
 *
 *     bits   ASKED << kind   coroutines of the process wait for this kind
 *            RUNG << kind    there may be some of that kind
 *            JOINED          a process has come or gone
 *
 * 1. Ringing a kind that is asked for replaces ASKED by RUNG. A kind that is not asked for is not
 *    rung: nobody waits for it.
 * 2. A coroutine asks in the section in which it looks. Either that section is before the one with
 *    the change, and then the ringing, which comes later, finds ASKED; or the coroutine sees the
 *    change.
 * 3. A coroutine that asks while RUNG is set has both bits. Taking clears RUNG only, so it is rung
 *    again by the next change.
 * 4. A coroutine that is notified looks in a section after that with the change, by the lock alone. If
 *    its section were the earlier one, then taking would happen before ringing, whose bits it has read.
 *    So all is relaxed here.
 * 5. The thread sleeps while no RUNG bit is set. A bit that is set does not mean that the thread was
 *    woken for it: the process that has set it may have been killed before the wake. So a process
 *    wakes the thread for each bit that it sets, whatever else is set. That is a call per look of a
 *    coroutine, because ringing clears ASKED.
 * 6. A process that is killed between the change and the wake is noticed by the others, which then
 *    ring all bells and wake all threads (shm_threads.c).
 */
#ifndef BIDE_SRC_LOG_BELL_H
#define BIDE_SRC_LOG_BELL_H

#include "bide/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/* The kinds are LOG_ROOM and LOG_NEWS. */
enum { BELL_KINDS = 3, BELL_RUNG = 2 /* so many bits higher */, BELL_JOINED = 1 << 4 };

#define BELL_ANY_RUNG ((uint32_t)BELL_KINDS << BELL_RUNG | BELL_JOINED)

/* Asks for these kinds; under the log's lock. */
static inline void bell_ask(bide_atomic(uint32_t) * bell, uint32_t kinds)
{
    bide_atomic_fetch_or(bell, kinds, relaxed); /* 2: the lock orders it */
}

/* Rings; true: the thread that sleeps on it is to be woken, 5. */
static inline bool bell_ring(bide_atomic(uint32_t) * bell, uint32_t kinds)
{
    uint32_t found = bide_atomic_load(bell, relaxed), rung;
    do {
        if ((found & kinds) == 0)
            return false;
        rung = (found & ~kinds) | (found & kinds) << BELL_RUNG;
    } while (!bide_atomic_compare_exchange_weak(bell, &found, rung, relaxed, relaxed));
    return true;
}

/* Rings these bits also if nobody has asked. The thread is to be woken, 5. */
static inline void bell_ring_always(bide_atomic(uint32_t) * bell, uint32_t bits)
{
    bide_atomic_fetch_or(bell, bits, relaxed);
}

/* True: nothing has rung, so the thread may sleep. */
static inline bool bell_is_silent(uint32_t found)
{
    return (found & BELL_ANY_RUNG) == 0;
}

/* The kinds that have rung since the last call, and JOINED. */
static inline uint32_t bell_take(bide_atomic(uint32_t) * bell)
{
    uint32_t found = bide_atomic_fetch_and(bell, ~BELL_ANY_RUNG, relaxed);
    return (found >> BELL_RUNG & BELL_KINDS) | (found & BELL_JOINED);
}

#endif
