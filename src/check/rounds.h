/*
 * Rounds of a loop that change nothing: see rounds.c.
 */
#ifndef BIDE_CHECK_ROUNDS_H
#define BIDE_CHECK_ROUNDS_H

#include "execution.h"
#include "locations.h"

/* Before a scenario. */
void rounds_reset(void);

/* Before each execution, for each thread. */
void rounds_begin(unsigned thread);

/*
 * The running thread is about to load an atomic object, or to take the load of a read-modify-write.
 * True: the load is not a step, because the thread is on trial (spin.h) or rehearses. A thread that
 * spins does not return, unless it is put on trial.
 */
bool rounds_arrive(const operation *op, uintptr_t address);

/* True if the state before the thread's step `position` is recorded, and is the last one that is. */
bool rounds_have(unsigned position);

/* What a thread changes. */
typedef enum act_kind {
    ACT_STORE, /* of an atomic object: where, address, value */
    ACT_WRITE, /* plain: the code, the address, the size */
    ACT_NOTE,  /* the text's hash */
    ACT_END,   /* of the thread: its result */
    ACT_OTHER,
} act_kind;

/*
 * The running thread is about to change something, or ends. Does not return to a thread that
 * rehearses; nor to one whose rounds were unnecessary, because another execution shows the same.
 */
void rounds_act(act_kind kind, const void *where, uintptr_t address, uint64_t value);

/* Forgets the states of the running thread: its next round is the first. */
void rounds_forget(void);

/* True if the thread of the event changes something by it. */
bool rounds_change(const event *e);

/* Steps of a thread that rehearses. The first returns the step whose value is read. */
const event *rounds_load(const operation *op, uintptr_t address, hidden which, reference *self);
void rounds_store(void); /* that changes nothing */
void rounds_fence(const operation *op);
void rounds_relax(void);

/* The thread rehearses, and does something else than before. */
_Noreturn void rounds_differ(void);

#endif
