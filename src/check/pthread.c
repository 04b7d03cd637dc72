/* The functions of check_pthread.h. */
#define _GNU_SOURCE
#include "bide/check_pthread.h"

#include "locks.h"
#include "machine.h"
#include "posix.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

int posix_type_of(const void *mutex)
{
#ifdef __GLIBC__
    int kind;
    memcpy(&kind, (const char *)mutex + offsetof(pthread_mutex_t, __data.__kind), sizeof kind);
    kind &= 3; /* the other bits say that it is robust, shared, ... */
    return kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK
               ? kind
               : PTHREAD_MUTEX_NORMAL;
#else
    (void)mutex;
    return PTHREAD_MUTEX_NORMAL;
#endif
}

void posix_set_type(void *mutex, int type)
{
#ifdef __GLIBC__
    memcpy((char *)mutex + offsetof(pthread_mutex_t, __data.__kind), &type, sizeof type);
#else
    (void)mutex;
    (void)type;
#endif
}

int posix_type_in(const pthread_mutexattr_t *attributes)
{
    int type = PTHREAD_MUTEX_NORMAL;
    if (attributes != NULL)
        pthread_mutexattr_gettype(attributes, &type);
    return type;
}

int bide_check_mutex_init_(bide_check_site_ *site, pthread_mutex_t *mutex,
                           const pthread_mutexattr_t *attributes)
{
    posix_set_type(mutex, posix_type_in(attributes));
    lock_create((uintptr_t)mutex, site);
    return 0;
}

int bide_check_mutex_destroy_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    lock_destroy((uintptr_t)mutex, site);
    return 0;
}

int bide_check_mutex_lock_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    return lock_mutex((uintptr_t)mutex, posix_type_of(mutex), LOCK_WAIT, site);
}

int bide_check_mutex_trylock_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    return lock_mutex((uintptr_t)mutex, posix_type_of(mutex), LOCK_TRY, site);
}

int bide_check_mutex_unlock_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    return lock_release_mutex((uintptr_t)mutex, posix_type_of(mutex), site);
}

static int cond_wait(bide_check_site_ *site, pthread_cond_t *condition, pthread_mutex_t *mutex,
                     bool has_deadline)
{
    return lock_wait((uintptr_t)condition, (uintptr_t)mutex, posix_type_of(mutex), has_deadline,
                     site);
}

int bide_check_cond_wait_(bide_check_site_ *site, pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return cond_wait(site, condition, mutex, false);
}

/* The time may come at any moment, whatever it is. */
int bide_check_cond_timedwait_(bide_check_site_ *site, pthread_cond_t *condition,
                               pthread_mutex_t *mutex, const struct timespec *time)
{
    (void)time;
    return cond_wait(site, condition, mutex, true);
}

int bide_check_cond_wake_(bide_check_site_ *site, pthread_cond_t *condition, unsigned count)
{
    sleepers_wake((uintptr_t)condition, site, count);
    return 0;
}

int bide_check_create_(bide_check_site_ *site, pthread_t *thread, void *(*function)(void *),
                       void *argument)
{
    unsigned number = machine_spawn(function, argument, site);
    if (number == 0)
        return EAGAIN;
    *thread = number;
    return 0;
}

int bide_check_join_(bide_check_site_ *site, pthread_t thread, void **result)
{
    machine_join((unsigned)thread, site, result);
    return 0;
}
