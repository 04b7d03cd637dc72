/*
 * Descriptors by which one thread makes another's poll return. A thread may write to one when its
 * owner has given it up already. If it had been closed, the number could be that of a file of the
 * user's by then. So they are never closed, but kept for the next owner, to whom a late write is a
 * look for nothing.
 */
#ifndef BIDE_SYSTEM_DESCRIPTORS_H
#define BIDE_SYSTEM_DESCRIPTORS_H

#include "bide/atomic.h"

/* An eventfd that is kept, or a new one; or a negative errno. Any thread. */
int bide_descriptor_take_(void);

/* Gives it up. Any thread. */
void bide_descriptor_give_(int fd);

/* Makes it readable: the counter is not 0 any more. Any thread; keeps errno. */
void bide_descriptor_raise_(int fd);

/* Makes it unreadable. Its owner; keeps errno. */
void bide_descriptor_lower_(int fd);

#if BIDE_CHECK
/* To the model checker there is one, and it is a word: 1 while it is readable. */
extern bide_atomic(uint32_t) bide_descriptor_word_;
#endif

/* In the child of a fork: those that are kept are the parent's. */
void bide_descriptors_in_child_(void);

#endif
