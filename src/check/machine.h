/* Runs the code of a scenario along an execution graph; and the steps that the code takes. */
#ifndef BIDE_CHECK_MACHINE_H
#define BIDE_CHECK_MACHINE_H

#include "execution.h"
#include "locations.h"

/* Runs one execution: along `g`, and on to its end. */
void machine_run(graph *g);

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

/* The running thread's last step on an object; NULL if there is none. */
const event *machine_last_use(uintptr_t address, hidden which);

/* May the next step of the running thread go wrong for no reason? */
bool machine_may_be_spurious(void);

/* Starts a thread beside those of the scenario; returns its number, or 0 if there are too many. */
unsigned machine_spawn(void *(*function)(void *), void *argument, bide_check_site_ *site);
void machine_join(unsigned thread, bide_check_site_ *site, void **result);

#endif
