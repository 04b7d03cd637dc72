/* Sleeping and waking inside a scenario, for the platform table and for locks: see platform.c. */
#ifndef BIDE_CHECK_LOCKS_H
#define BIDE_CHECK_LOCKS_H

#include "graph.h"

/* Adds the running thread to the sleepers of an address. */
void sleepers_enlist(uintptr_t address, bide_check_site_ *site);

/* Sleeps, after sleepers_enlist(). Returns 0, or -ETIMEDOUT if there is a deadline. */
int sleepers_wait(uintptr_t address, bide_check_site_ *site, bool has_deadline);

void sleepers_wake(uintptr_t address, bide_check_site_ *site, unsigned count);

#endif
