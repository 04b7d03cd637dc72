/*
 * POSIX mutexes, condition variables and threads under the model checker, by their names in traces.
 * Floor: check.
 *
 *     #include "bide/check_pthread.h"                 // in place of <pthread.h>
 *
 * With BIDE_CHECK set to 1, macros replace the pthread functions listed below, and the checker
 * explores what they may do. Otherwise this header only includes <pthread.h>. Signal masks have no
 * effect.
 *
 *     mutex       not fair: every order in which threads may lock it is explored. With glibc, also
 *                 recursive and error-checking ones
 *     condition   a signal wakes any one waiter. A wait may end spuriously (max_spurious), and a
 *                 timed wait may time out at any moment, because time does not pass in a scenario
 *     thread      pthread_create returns EAGAIN if an execution has six threads already, counting
 *                 the scenario's
 *
 * Without this header the same functions are checked too, and many others: docs/checking-memory.md.
 * In traces an object then has no name, only its place. This header is needed if the program is
 * linked statically.
 *
 * Any thread of a scenario may call these functions, with two exceptions: `setup` must not join a
 * thread, and `finish` must not create one.
 */
#ifndef BIDE_CHECK_PTHREAD_H
#define BIDE_CHECK_PTHREAD_H

#include "bide/compiler.h"

#include <pthread.h>

#if BIDE_CHECK

#include "bide/check.h"

#include <signal.h>

BIDE_EXTERN_C_BEGIN

int bide_check_mutex_init_(bide_check_site_ *site, pthread_mutex_t *mutex,
                           const pthread_mutexattr_t *attributes);
int bide_check_mutex_destroy_(bide_check_site_ *site, pthread_mutex_t *mutex);
int bide_check_mutex_lock_(bide_check_site_ *site, pthread_mutex_t *mutex);
int bide_check_mutex_trylock_(bide_check_site_ *site, pthread_mutex_t *mutex);
int bide_check_mutex_unlock_(bide_check_site_ *site, pthread_mutex_t *mutex);
int bide_check_cond_wait_(bide_check_site_ *site, pthread_cond_t *condition,
                          pthread_mutex_t *mutex);
int bide_check_cond_timedwait_(bide_check_site_ *site, pthread_cond_t *condition,
                               pthread_mutex_t *mutex, const struct timespec *time);
int bide_check_cond_wake_(bide_check_site_ *site, pthread_cond_t *condition, unsigned count);
int bide_check_create_(bide_check_site_ *site, pthread_t *thread, void *(*function)(void *),
                       void *argument);
int bide_check_join_(bide_check_site_ *site, pthread_t thread, void **result);

/* For calls that have nothing to do. */
BIDE_INLINE int bide_check_nothing_(const void *object, const void *attributes)
{
    (void)object;
    (void)attributes;
    return 0;
}

#define pthread_mutex_init(mutex, attributes) \
    bide_check_mutex_init_(BIDE_CHECK_SITE_(#mutex), mutex, attributes)
#define pthread_mutex_destroy(mutex)             bide_check_mutex_destroy_(BIDE_CHECK_SITE_(#mutex), mutex)
#define pthread_mutex_lock(mutex)                bide_check_mutex_lock_(BIDE_CHECK_SITE_(#mutex), mutex)
#define pthread_mutex_trylock(mutex)             bide_check_mutex_trylock_(BIDE_CHECK_SITE_(#mutex), mutex)
#define pthread_mutex_unlock(mutex)              bide_check_mutex_unlock_(BIDE_CHECK_SITE_(#mutex), mutex)
#define pthread_cond_init(condition, attributes) bide_check_nothing_(condition, attributes)
#define pthread_cond_destroy(condition)          bide_check_nothing_(condition, NULL)
#define pthread_condattr_init(attributes)        bide_check_nothing_(attributes, NULL)
#define pthread_condattr_destroy(attributes)     bide_check_nothing_(attributes, NULL)
#define pthread_condattr_setclock(attributes, clock) \
    ((void)(clock), bide_check_nothing_(attributes, NULL))
#define pthread_cond_wait(condition, mutex) \
    bide_check_cond_wait_(BIDE_CHECK_SITE_(#condition), condition, mutex)
#define pthread_cond_timedwait(condition, mutex, time) \
    bide_check_cond_timedwait_(BIDE_CHECK_SITE_(#condition), condition, mutex, time)
#define pthread_cond_signal(condition) \
    bide_check_cond_wake_(BIDE_CHECK_SITE_(#condition), condition, 1)
#define pthread_cond_broadcast(condition) \
    bide_check_cond_wake_(BIDE_CHECK_SITE_(#condition), condition, UINT32_MAX)
#define pthread_create(thread, attributes, function, argument) \
    bide_check_create_(BIDE_CHECK_SITE_(#thread), thread, function, argument)
#define pthread_join(thread, result)   bide_check_join_(BIDE_CHECK_SITE_(#thread), thread, result)
#define pthread_sigmask(how, set, old) bide_check_nothing_(set, old)

BIDE_EXTERN_C_END

#endif

#endif
