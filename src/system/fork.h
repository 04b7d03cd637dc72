/* What the library has of its own in a process, beside the user's objects, survives a fork. */
#ifndef BIDE_SYSTEM_FORK_H
#define BIDE_SYSTEM_FORK_H

#include <stdint.h>

/* Once, at the program's begin. */
void bide_survive_forks_(void);

/*
 * Between these two the process does not fork: for calls of the system's libraries whose locks a
 * child would find held. Blocks; short, and not one inside another.
 */
void bide_delay_forks_(void);
void bide_allow_forks_(void);

/* Counts the forks that this process comes from, as far as the library was there. */
extern uint32_t bide_generation_;

#endif
