/*
 * The locks of POSIX and of C11, and sleeping and waking, as steps of the machine.
 *
 * A lock is a hidden word at its address. What a thread holds is also in a list of its own, so that
 * misuse is found: an unlock of what the thread does not hold, a destroy of what is held, and the
 * thread's end while it holds something.
 */
#ifndef BIDE_CHECK_LOCKS_H
#define BIDE_CHECK_LOCKS_H

#include "graph.h"

/* ---- Sleeping and waking (platform.c) ---- */

/* Adds the running thread to the sleepers of an address. */
void sleepers_enlist(uintptr_t address, bide_check_site_ *site);

/* Sleeps, after sleepers_enlist(). Returns 0, or -ETIMEDOUT if there is a deadline. */
int sleepers_wait(uintptr_t address, bide_check_site_ *site, bool has_deadline);

void sleepers_wake(uintptr_t address, bide_check_site_ *site, unsigned count);

/* ---- Locks (locks.c) ---- */

/* Before each execution, for each thread. */
void locks_begin(unsigned thread);

/* The running thread ends. */
void locks_end(void);

typedef enum lock_try {
    LOCK_WAIT,    /* until it is free */
    LOCK_TRY,     /* or return EBUSY */
    LOCK_DEADLINE /* or return ETIMEDOUT, which may be at any moment */
} lock_try;

/*
 * These return 0 or a positive error code, like the functions of POSIX. `size`: of the object, which
 * is watched as memory.
 */

/* `type`: one of pthread_mutexattr_settype(). EBUSY, EDEADLK, EPERM, ETIMEDOUT. */
int lock_mutex(uintptr_t mutex, int type, lock_try how, bide_check_site_ *site);
int lock_release_mutex(uintptr_t mutex, int type, bide_check_site_ *site);

/*
 * Sleeps on a condition without the mutex, and locks it again. EPERM (a mutex of a type that is told about it is not
 * the thread's: nothing is done; of another type: misuse), ETIMEDOUT.
 */
int lock_wait(uintptr_t condition, uintptr_t mutex, int type, bool has_deadline,
              bide_check_site_ *site);

/* EBUSY, EDEADLK (the thread has it to write), ETIMEDOUT. */
int lock_read(uintptr_t rw_lock, lock_try how, bide_check_site_ *site);
int lock_write(uintptr_t rw_lock, lock_try how, bide_check_site_ *site);
int lock_release_rw(uintptr_t rw_lock, bide_check_site_ *site);

/* A lock of any of these kinds is made, or ends. */
void lock_create(uintptr_t lock, bide_check_site_ *site);
void lock_destroy(uintptr_t lock, bide_check_site_ *site);

/* EAGAIN (the value is 0), ETIMEDOUT. */
void semaphore_create(uintptr_t semaphore, unsigned value, bide_check_site_ *site);
int semaphore_take(uintptr_t semaphore, lock_try how, bide_check_site_ *site);
void semaphore_give(uintptr_t semaphore, bide_check_site_ *site);
unsigned semaphore_value(uintptr_t semaphore, bide_check_site_ *site);

/* Waits until `count` threads have arrived. True for the last of them. */
void barrier_create(uintptr_t barrier, bide_check_site_ *site);
bool barrier_wait(uintptr_t barrier, unsigned count, bide_check_site_ *site);

/* True: the running thread is to do it, and then to call once_finish(). False: it is done. */
bool once_begin(uintptr_t once, bide_check_site_ *site);
void once_finish(uintptr_t once, bide_check_site_ *site);

#endif
