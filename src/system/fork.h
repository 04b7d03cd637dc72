/*
 * Surviving fork(2): the library's own state in a process, beside the user's objects, stays usable
 * in the parent and in the child.
 *
 * A part that keeps such state has a constant table of handlers, and registers it from a constructor
 * in the part's own source: so a program has the handlers of the parts that are linked into it.
 */
#ifndef BIDE_SYSTEM_FORK_H
#define BIDE_SYSTEM_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* The lock order: a thread that holds a lock of one floor may take locks of the floors below it. */
typedef enum bide_fork_floor_ {
    BIDE_FORK_SYSTEM_,
    BIDE_FORK_COROUTINE_,
    BIDE_FORK_SCHEDULE_,
    BIDE_FORK_INSPECT_,
    BIDE_FORK_IO_,
} bide_fork_floor_;

/* Each may be NULL. None of them may register handlers, delay forks or allow them. */
typedef struct bide_fork_handlers_ {
    bide_fork_floor_ floor;
    void (*before)(void); /* takes the part's locks: of a higher floor first */
    void (*after)(void);  /* frees them in the parent */

    /*
     * Repairs the part in the child, which has one thread. If the parent `was_alone`, the parent had
     * one thread too, and everything the part knew is still there.
     */
    void (*in_child)(bool was_alone);
} bide_fork_handlers_;

/* A link of the list of registered handlers. Never removed. */
typedef struct bide_fork_registration_ bide_fork_registration_;
struct bide_fork_registration_ {
    const bide_fork_handlers_ *handlers;
    bide_fork_registration_ *next; /* fork.c's */
};

/* Once for each registration. Any thread; delays forks meanwhile, as bide_delay_forks_ does. */
void bide_fork_register_(bide_fork_registration_ *registration);

/* Once, at program start: registers the handlers of floors that are freestanding, and itself. */
void bide_survive_forks_(void);

/*
 * The process does not fork between these two calls. For calls into system libraries whose locks a
 * child would find held. Blocks for a short time; does not nest.
 */
void bide_delay_forks_(void);
void bide_allow_forks_(void);

/* The number of forks between the first process that had the library and this one. */
extern uint32_t bide_generation_;

/*
 * Whether an object was made before a fork, in a parent of this process: `generation` is bide_generation_
 * of when it was made. Its threads, locks and descriptors are the parent's.
 */
static inline bool bide_is_inherited_(uint32_t generation)
{
    return generation != bide_generation_;
}

#endif
