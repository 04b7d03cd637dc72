/*
 * Descriptors by which a thread makes another thread's poll return. A thread may write to one after its
 * owner has released it. If it had been closed, its number could be that of a user's file by then. So
 * descriptors are never closed, but kept for the next owner, to which a late write is a spurious wake.
 */
#ifndef BIDE_SYSTEM_DESCRIPTORS_H
#define BIDE_SYSTEM_DESCRIPTORS_H

#include "bide/atomic.h"

/*
 * A copy of `fd` that has no number of a standard stream, if `fd` has one because that stream is closed;
 * then `fd` is closed. Otherwise `fd` itself. Or a negative errno, and `fd` stays open.
 */
int bide_descriptor_not_standard_(int fd);

/* Acquires a kept eventfd or a new one; or a negative errno. Any thread. */
int bide_descriptor_take_(void);

/* Releases it. Any thread. */
void bide_descriptor_give_(int fd);

/* Makes it readable. Any thread; keeps errno. */
void bide_descriptor_raise_(int fd);

/* Makes it unreadable. Its owner; keeps errno. */
void bide_descriptor_lower_(int fd);

#if BIDE_CHECK
/* Under the model checker there is one: a word that is 1 while it is readable. */
extern bide_atomic(uint32_t) bide_descriptor_word_;
#endif

/* In the child of a fork: forgets the parent's descriptors. */
void bide_descriptors_in_child_(void);

#endif
