/*
 * What the rest of the checker asks of the running execution.
 */
#ifndef BIDE_CHECK_MACHINE_H
#define BIDE_CHECK_MACHINE_H

#include "explore.h"
#include "locations.h"

/* Is a thread of a scenario running? Otherwise the operations are plain ones, on memory. */
bool machine_is_running(void);
unsigned machine_thread(void);

/* What the running thread has seen. */
const vector_clock *machine_clock(void);

/* Steps of the running thread. Each returns what was read, if it reads. */
uint64_t machine_load(const operation *op, uintptr_t address, size_t size, hidden which,
                      const vector_clock *older, reference *self);
/* The same of an atomic object that `address` may lie in the middle of. */
uint64_t machine_load_part(const operation *op, uintptr_t address, size_t size,
                           const vector_clock *older);
void machine_store(const operation *op, uintptr_t address, size_t size, hidden which,
                   uint64_t value, const reference *load);
void machine_init(const operation *op, uintptr_t address, size_t size, uint64_t value);
void machine_fence(const operation *op);
unsigned machine_choose(const operation *op, unsigned count);

/* Everything that is still known of an event. */
const event *machine_event(reference r);

/* The running thread's last step on an object; NULL if there is none. */
const event *machine_last_use(uintptr_t address, hidden which);

/* Is it one of the steps that the running execution has come to? */
bool machine_has_run(reference r);

/* The running thread begins another round of a loop. If it reads the same again, it will until another thread does
 * something: a spin. */
void machine_relax(void);

/* Is the running thread one that spins, and is let go on to see whether it gives up? What it does then is no part of the
 * execution. */
bool machine_goes_on(void);

/* Whether it does cannot be seen, since it does what cannot be repeated. */
void machine_stop_going_on(void);

/* The running thread has looked at the clock. */
void machine_look_at_time(void);

/* Before a scenario. */
void machine_forget_spins(void);

/* The running thread is in an execution that does not exist, or is like another that is looked at. It goes no further; the others do, for a step of theirs
 * may show it another value. */
_Noreturn void machine_halt(void);

/* May the next step of the running thread go wrong for no reason? */
bool machine_may_be_spurious(void);

/* Starts a thread beside those of the scenario; returns its number, or 0 if there are too many. */
unsigned machine_spawn(void *(*function)(void *), void *argument, bide_check_site_ *site);
void machine_join(unsigned thread, bide_check_site_ *site, void **result);

/* The steps of the running execution, in the order in which they were run. */
const reference *machine_order(unsigned *count);

/* A thread was run after so many steps, and took none: it ended, or something was found, before it came to one. Its
 * plain accesses have their place among the others' all the same. */
typedef struct idle_run {
    unsigned thread;
    unsigned steps;
} idle_run;

const idle_run *machine_idle_runs(unsigned *count);

#endif
