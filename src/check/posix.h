/* The locks and threads of POSIX and of C11 by their own names: see posix.c. */
#ifndef BIDE_CHECK_POSIX_H
#define BIDE_CHECK_POSIX_H

#include <pthread.h>

/*
 * The type of a mutex, as pthread_mutexattr_settype() knows it. It is kept where the initialisers of
 * libc keep it. With a libc that is not known, each mutex is a normal one.
 */
int posix_type_of(const void *mutex);
void posix_set_type(void *mutex, int type);
int posix_type_in(const pthread_mutexattr_t *attributes);

/* Before each execution. */
void posix_begin(void);

/* The running thread ends: calls the destructors of its thread-specific values. */
void posix_end(void);

#endif
