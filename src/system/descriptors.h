/*
 * Descriptors by which a thread makes another thread's poll return. A thread may write to one after its
 * owner has released it. If it had been closed, its number could be that of a user's file by then. So
 * descriptors are never closed, but kept for the next owner, to which a late write is a spurious wake.
 *
 * On Linux a descriptor is an eventfd. On other systems, and with -Dplatform=posix, it is the reading end of a
 * pipe. Both ends of the pipe do not block, and are closed on exec.
 */
#ifndef BIDE_SYSTEM_DESCRIPTORS_H
#define BIDE_SYSTEM_DESCRIPTORS_H

#include "bide/atomic.h"

#ifndef BIDE_HAS_EVENTFD
#ifdef __linux__
#define BIDE_HAS_EVENTFD 1
#else
#define BIDE_HAS_EVENTFD 0
#endif
#endif

/*
 * A copy of `fd` that has no number of a standard stream, if `fd` has one because that stream is closed;
 * then `fd` is closed. Otherwise `fd` itself. Or a negative errno, and `fd` stays open.
 */
int bide_descriptor_not_standard_(int fd);

/* A new one of the caller's own, unreadable and no standard stream; or a negative errno. Any thread. */
int bide_descriptor_create_(void);

/* Closes one that bide_descriptor_create_ made, or take_; then nothing else may use it. Any thread. */
void bide_descriptor_close_(int fd);

/* Acquires a kept one or a new one; or a negative errno. Any thread. */
int bide_descriptor_take_(void);

/* Releases it. Any thread. */
void bide_descriptor_give_(int fd);

/* Makes it readable. Any thread; keeps errno. */
void bide_descriptor_raise_(int fd);

/*
 * The same in two steps: the end to write to, which stays valid until the descriptor is closed; and the write,
 * which returns 0 or a negative errno and keeps errno. Any thread.
 */
int bide_descriptor_writing_end_(int fd);
int bide_descriptor_write_(int end);

/* Makes it unreadable. Its owner; keeps errno. */
void bide_descriptor_lower_(int fd);

#if BIDE_CHECK
/* Under the model checker there is one: a word that is 1 while it is readable. */
extern bide_atomic(uint32_t) bide_descriptor_word_;
#endif

/* In the child of a fork: forgets the parent's descriptors. */
void bide_descriptors_in_child_(void);

#endif
