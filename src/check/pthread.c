/*
 * The mutexes, conditions and threads of check_pthread.h, as steps of the machine.
 *
 * A mutex is a hidden word that is 0 when the mutex is free. Locking is a read-modify-write that waits
 * for 0. A condition is a list of sleepers (platform.c). A waiter enlists before it unlocks the mutex,
 * so it misses no signal that is sent under the mutex. A thread is started and joined by machine.c.
 */
#include "bide/check_pthread.h"

#include "locks.h"
#include "machine.h"
#include "memory.h"

#include <errno.h>

static const operation lock = {.step = STEP_LOCK,
                               .order = bide_check_acquire_,
                               .is_rmw = true,
                               .wait = WAIT_UNTIL_EQUAL,
                               .expected = 0};

int bide_check_mutex_lock_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    operation op = lock;
    reference load;
    op.site = site;
    machine_load(&op, (uintptr_t)mutex, 1, HIDDEN_LOCK, NULL, &load);
    machine_store(&op, (uintptr_t)mutex, 1, HIDDEN_LOCK, 1, &load);
    return 0;
}

int bide_check_mutex_trylock_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    operation op = {
        .site = site, .step = STEP_COMPARE_EXCHANGE, .order = bide_check_acquire_, .is_rmw = true};
    reference load;
    machine_load(&op, (uintptr_t)mutex, 1, HIDDEN_LOCK, NULL, &load);
    if (!execution_event(load)->is_rmw)
        return EBUSY;
    machine_store(&op, (uintptr_t)mutex, 1, HIDDEN_LOCK, 1, &load);
    return 0;
}

int bide_check_mutex_unlock_(bide_check_site_ *site, pthread_mutex_t *mutex)
{
    operation op = {.site = site, .step = STEP_UNLOCK, .order = bide_check_release_};
    machine_store(&op, (uintptr_t)mutex, 1, HIDDEN_LOCK, 0, NULL);
    return 0;
}

static int cond_wait(bide_check_site_ *site, pthread_cond_t *condition, pthread_mutex_t *mutex,
                     bool has_deadline)
{
    sleepers_enlist((uintptr_t)condition, site);
    bide_check_mutex_unlock_(site, mutex);
    int status = sleepers_wait((uintptr_t)condition, site, has_deadline);
    bide_check_mutex_lock_(site, mutex);
    return -status;
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
