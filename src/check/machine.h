/* Runs the code of a scenario along an execution graph, and takes the steps of that code. */
#ifndef BIDE_CHECK_MACHINE_H
#define BIDE_CHECK_MACHINE_H

#include "execution.h"
#include "locations.h"

/* Runs one execution: along `g`, and then to its end. */
void machine_run(graph *g);

/* Steps of the running thread. A load returns the value that it read. */
uint64_t machine_load(const operation *op, uintptr_t address, size_t size, hidden which,
                      const vector_clock *older, reference *self);
/* The same for a part of an atomic object, which `address` need not be the beginning of. */
uint64_t machine_load_part(const operation *op, uintptr_t address, size_t size,
                           const vector_clock *older);
void machine_store(const operation *op, uintptr_t address, size_t size, hidden which,
                   uint64_t value, const reference *load);
void machine_init(const operation *op, uintptr_t address, size_t size, uint64_t value);
void machine_fence(const operation *op);
unsigned machine_choose(const operation *op, unsigned count);

/* The running thread is about to do something: first takes the store that it has postponed. */
void machine_settle(void);

/* Returns the running thread's last step on an object, or NULL. */
const event *machine_last_use(uintptr_t address, hidden which);

/* True if the next step of the running thread may fail spuriously. */
bool machine_may_be_spurious(void);

/* True if an allocation that is the next step of the running thread may fail. */
bool machine_may_fail_to_allocate(void);

/* Starts a thread beside those of the scenario; returns its number, or 0 if there are too many. */
unsigned machine_spawn(void *(*function)(void *), void *argument, bide_check_site_ *site);
void machine_join(unsigned thread, bide_check_site_ *site, void **result);

/* Ends the running thread. */
_Noreturn void machine_exit(void *result);

#endif
