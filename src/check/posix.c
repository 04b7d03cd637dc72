/*
 * The locks and threads of POSIX and of C11, by their own names, for code that is checked as it is.
 * They take the place of libc's in the whole program. Outside of a scenario they call those.
 *
 * The definitions are weak: in a program that is linked statically, libc's own may take their place.
 * Then code that uses them must include check_pthread.h. They are absent with AddressSanitizer.
 */
#define _GNU_SOURCE
#include "posix.h"

#include "execution.h"
#include "locks.h"
#include "machine.h"
#include "rounds.h"
#include "sanitizer.h"
#include "source_location.h"
#include "spin.h"

#include "bide/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#ifndef CHECKER_HAS_ASAN

#define WEAK __attribute__((weak))
#define SITE source_location_of_code(__builtin_return_address(0))

typedef void (*any_function)(void);

/* The function of that name that this file hides. */
static any_function hidden_function(const char *name)
{
    any_function function;
    void *found = NULL;
#ifdef __GLIBC__
    if (strncmp(name, "pthread_cond_", 13) == 0)
        found =
            dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* not the older ones, where there are any */
#endif
    if (found == NULL)
        found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "bide_check: there is no %s outside of a scenario\n", name);
        abort();
    }
    memcpy(&function, &found, sizeof function);
    return function;
}

#define HIDDEN(name)                                                   \
    __extension__({                                                    \
        static any_function hidden_;                                   \
        any_function f_ = __atomic_load_n(&hidden_, __ATOMIC_RELAXED); \
        if (f_ == NULL) {                                              \
            f_ = hidden_function(#name);                               \
            __atomic_store_n(&hidden_, f_, __ATOMIC_RELAXED);          \
        }                                                              \
        (__typeof__(&(name)))f_;                                       \
    })
#define IS_OUTSIDE      (!execution_is_in_scenario())
#define ADDRESS(object) ((uintptr_t)(object))

static _Noreturn void refuse(const char *name, const void *code)
{
    char where[256];
    source_location_describe_code(code, where, sizeof where);
    execution_found(BIDE_CHECK_BAD_SCENARIO, "the checker has no model of %s, called at %s", name,
                    where);
    abort(); /* not reached */
}

/* ---- Mutexes ---- */

WEAK int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_init)(mutex, attributes);
    posix_set_type(mutex, posix_type_in(attributes));
    lock_create(ADDRESS(mutex), SITE);
    return 0;
}

WEAK int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_destroy)(mutex);
    lock_destroy(ADDRESS(mutex), SITE);
    return 0;
}

WEAK int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_lock)(mutex);
    return lock_mutex(ADDRESS(mutex), posix_type_of(mutex), LOCK_WAIT, SITE);
}

WEAK int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_trylock)(mutex);
    return lock_mutex(ADDRESS(mutex), posix_type_of(mutex), LOCK_TRY, SITE);
}

WEAK int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_timedlock)(mutex, time);
    return lock_mutex(ADDRESS(mutex), posix_type_of(mutex), LOCK_DEADLINE, SITE);
}

WEAK int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_unlock)(mutex);
    return lock_release_mutex(ADDRESS(mutex), posix_type_of(mutex), SITE);
}

/* ---- Conditions ---- */

static int wait_on(void *condition, void *mutex, bool has_deadline, bide_check_site_ *site)
{
    return lock_wait(ADDRESS(condition), ADDRESS(mutex), posix_type_of(mutex), has_deadline, site);
}

WEAK int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    return IS_OUTSIDE ? HIDDEN(pthread_cond_init)(condition, attributes) : 0;
}

WEAK int pthread_cond_destroy(pthread_cond_t *condition)
{
    return IS_OUTSIDE ? HIDDEN(pthread_cond_destroy)(condition) : 0;
}

WEAK int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_cond_wait)(condition, mutex);
    return wait_on(condition, mutex, false, SITE);
}

WEAK int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_cond_timedwait)(condition, mutex, time);
    return wait_on(condition, mutex, true, SITE);
}

WEAK int pthread_cond_signal(pthread_cond_t *condition)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_cond_signal)(condition);
    sleepers_wake(ADDRESS(condition), SITE, 1);
    return 0;
}

WEAK int pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_cond_broadcast)(condition);
    sleepers_wake(ADDRESS(condition), SITE, UINT_MAX);
    return 0;
}

/* ---- Read-write locks ---- */

WEAK int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_rwlock_init)(lock, attributes);
    lock_create(ADDRESS(lock), SITE);
    return 0;
}

WEAK int pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_rwlock_destroy)(lock);
    lock_destroy(ADDRESS(lock), SITE);
    return 0;
}

#define RW_LOCK(name, verb, how)               \
    WEAK int name(pthread_rwlock_t *lock)      \
    {                                          \
        if (IS_OUTSIDE)                        \
            return HIDDEN(name)(lock);         \
        return verb(ADDRESS(lock), how, SITE); \
    }

#define RW_LOCK_TIMED(name, verb)                                      \
    WEAK int name(pthread_rwlock_t *lock, const struct timespec *time) \
    {                                                                  \
        if (IS_OUTSIDE)                                                \
            return HIDDEN(name)(lock, time);                           \
        return verb(ADDRESS(lock), LOCK_DEADLINE, SITE);               \
    }

RW_LOCK(pthread_rwlock_rdlock, lock_read, LOCK_WAIT)
RW_LOCK(pthread_rwlock_tryrdlock, lock_read, LOCK_TRY)
RW_LOCK_TIMED(pthread_rwlock_timedrdlock, lock_read)
RW_LOCK(pthread_rwlock_wrlock, lock_write, LOCK_WAIT)
RW_LOCK(pthread_rwlock_trywrlock, lock_write, LOCK_TRY)
RW_LOCK_TIMED(pthread_rwlock_timedwrlock, lock_write)

WEAK int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_rwlock_unlock)(lock);
    return lock_release_rw(ADDRESS(lock), SITE);
}

/* ---- Spin locks ---- */

WEAK int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_spin_init)(lock, shared);
    lock_create(ADDRESS(lock), SITE);
    return 0;
}

WEAK int pthread_spin_destroy(pthread_spinlock_t *lock)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_spin_destroy)(lock);
    lock_destroy(ADDRESS(lock), SITE);
    return 0;
}

WEAK int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_spin_lock)(lock);
    return lock_mutex(ADDRESS(lock), PTHREAD_MUTEX_NORMAL, LOCK_WAIT, SITE);
}

WEAK int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_spin_trylock)(lock);
    return lock_mutex(ADDRESS(lock), PTHREAD_MUTEX_NORMAL, LOCK_TRY, SITE);
}

WEAK int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_spin_unlock)(lock);
    return lock_release_mutex(ADDRESS(lock), PTHREAD_MUTEX_NORMAL, SITE);
}

/* ---- Semaphores ---- */

static int with_errno(int error)
{
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

WEAK int sem_init(sem_t *semaphore, int shared, unsigned value)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_init)(semaphore, shared, value);
    if (value > SEM_VALUE_MAX)
        return with_errno(EINVAL);
    semaphore_create(ADDRESS(semaphore), value, SITE);
    return 0;
}

WEAK int sem_destroy(sem_t *semaphore)
{
    return IS_OUTSIDE ? HIDDEN(sem_destroy)(semaphore) : 0;
}

WEAK int sem_wait(sem_t *semaphore)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_wait)(semaphore);
    return with_errno(semaphore_take(ADDRESS(semaphore), LOCK_WAIT, SITE));
}

WEAK int sem_trywait(sem_t *semaphore)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_trywait)(semaphore);
    return with_errno(semaphore_take(ADDRESS(semaphore), LOCK_TRY, SITE));
}

WEAK int sem_timedwait(sem_t *semaphore, const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_timedwait)(semaphore, time);
    return with_errno(semaphore_take(ADDRESS(semaphore), LOCK_DEADLINE, SITE));
}

WEAK int sem_post(sem_t *semaphore)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_post)(semaphore);
    semaphore_give(ADDRESS(semaphore), SITE);
    return 0;
}

WEAK int sem_getvalue(sem_t *semaphore, int *value)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_getvalue)(semaphore, value);
    *value = (int)semaphore_value(ADDRESS(semaphore), SITE);
    return 0;
}

/* ---- Barriers: the count is kept at the beginning of the object ---- */

WEAK int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes,
                              unsigned count)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_barrier_init)(barrier, attributes, count);
    if (count == 0)
        return EINVAL;
    barrier_create(ADDRESS(barrier), SITE);
    memcpy(barrier, &count, sizeof count);
    return 0;
}

WEAK int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    return IS_OUTSIDE ? HIDDEN(pthread_barrier_destroy)(barrier) : 0;
}

WEAK int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    unsigned count;
    if (IS_OUTSIDE)
        return HIDDEN(pthread_barrier_wait)(barrier);
    memcpy(&count, barrier, sizeof count);
    if (count == 0)
        return EINVAL;
    return barrier_wait(ADDRESS(barrier), count, SITE) ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

/* ---- Once ---- */

static void do_once(void *once, void (*function)(void), bide_check_site_ *site)
{
    if (!once_begin(ADDRESS(once), site))
        return;
    function();
    once_finish(ADDRESS(once), site);
}

WEAK int pthread_once(pthread_once_t *once, void (*function)(void))
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_once)(once, function);
    do_once(once, function, SITE);
    return 0;
}

/* ---- Keys of thread-specific values ---- */

enum { KEYS = 16 }; /* that each thread may make */

typedef void (*key_destructor)(void *value);

static struct thread_values {
    void *values[THREADS * KEYS];
    key_destructor destructors[KEYS]; /* of the keys that the thread has made */
    unsigned keys;
} specific[THREADS];
static bool values_are_set;

void posix_begin(void)
{
    if (values_are_set)
        memset(specific, 0, sizeof specific);
    values_are_set = false;
}

void posix_end(void)
{
    void **values = specific[the_execution.running].values;
    bool again = values_are_set;
    for (unsigned round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && again; round++) {
        again = false;
        for (unsigned key = 0; key < THREADS * KEYS; key++) {
            void *value = values[key];
            key_destructor destroy = specific[key / KEYS].destructors[key % KEYS];
            if (value == NULL || destroy == NULL)
                continue;
            values[key] = NULL;
            destroy(value);
            again = true;
        }
    }
}

/* The running thread changes something that its stack does not show. */
static void begin_plain_act(void)
{
    rounds_act(ACT_OTHER, NULL, 0, 0);
    machine_settle();
    values_are_set = true;
}

WEAK int pthread_key_create(pthread_key_t *key, key_destructor destructor)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_key_create)(key, destructor);
    begin_plain_act();
    struct thread_values *own = &specific[the_execution.running];
    if (own->keys == KEYS)
        return EAGAIN;
    *key = the_execution.running * KEYS + own->keys;
    own->destructors[own->keys++] = destructor;
    return 0;
}

WEAK int pthread_key_delete(pthread_key_t key)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_key_delete)(key);
    if (key >= THREADS * KEYS)
        return EINVAL;
    begin_plain_act();
    specific[key / KEYS].destructors[key % KEYS] = NULL;
    return 0;
}

WEAK int pthread_setspecific(pthread_key_t key, const void *value)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_setspecific)(key, value);
    if (key >= THREADS * KEYS)
        return EINVAL;
    begin_plain_act();
    specific[the_execution.running].values[key] = (void *)(uintptr_t)value;
    return 0;
}

WEAK void *pthread_getspecific(pthread_key_t key)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_getspecific)(key);
    return key < THREADS * KEYS ? specific[the_execution.running].values[key] : NULL;
}

/* ---- Threads ---- */

WEAK int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                        void *(*function)(void *), void *argument)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_create)(thread, attributes, function, argument);
    unsigned number = machine_spawn(function, argument, SITE);
    if (number == 0)
        return EAGAIN;
    *thread = number;
    return 0;
}

WEAK int pthread_join(pthread_t thread, void **result)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_join)(thread, result);
    machine_join((unsigned)thread, SITE, result);
    return 0;
}

WEAK int pthread_detach(pthread_t thread)
{
    return IS_OUTSIDE ? HIDDEN(pthread_detach)(thread) : 0;
}

WEAK pthread_t pthread_self(void)
{
    return IS_OUTSIDE ? HIDDEN(pthread_self)() : the_execution.running;
}

WEAK void pthread_exit(void *result)
{
    if (IS_OUTSIDE)
        HIDDEN(pthread_exit)(result);
    machine_exit(result);
}

WEAK int sched_yield(void)
{
    if (IS_OUTSIDE)
        return HIDDEN(sched_yield)();
    spin_relax();
    return 0;
}

/* Time does not pass: a sleep is a pause. */
WEAK int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (IS_OUTSIDE)
        return HIDDEN(nanosleep)(time, left);
    spin_relax();
    return 0;
}

WEAK int usleep(useconds_t time)
{
    if (IS_OUTSIDE)
        return HIDDEN(usleep)(time);
    spin_relax();
    return 0;
}

/* ---- C11: its objects are those of POSIX by other names ---- */

static int c11_status(int error)
{
    return error == 0           ? thrd_success
           : error == EBUSY     ? thrd_busy
           : error == ETIMEDOUT ? thrd_timedout
           : error == EAGAIN    ? thrd_nomem
                                : thrd_error;
}

WEAK int mtx_init(mtx_t *mutex, int type)
{
    if (IS_OUTSIDE)
        return HIDDEN(mtx_init)(mutex, type);
    posix_set_type(mutex,
                   (type & mtx_recursive) != 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
    lock_create(ADDRESS(mutex), SITE);
    return thrd_success;
}

WEAK void mtx_destroy(mtx_t *mutex)
{
    if (IS_OUTSIDE)
        HIDDEN(mtx_destroy)(mutex);
    else
        lock_destroy(ADDRESS(mutex), SITE);
}

static int type_of_c11(const mtx_t *mutex)
{
    return posix_type_of(mutex);
}

WEAK int mtx_lock(mtx_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(mtx_lock)(mutex);
    return c11_status(lock_mutex(ADDRESS(mutex), type_of_c11(mutex), LOCK_WAIT, SITE));
}

WEAK int mtx_trylock(mtx_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(mtx_trylock)(mutex);
    return c11_status(lock_mutex(ADDRESS(mutex), type_of_c11(mutex), LOCK_TRY, SITE));
}

WEAK int mtx_timedlock(mtx_t *mutex, const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(mtx_timedlock)(mutex, time);
    return c11_status(lock_mutex(ADDRESS(mutex), type_of_c11(mutex), LOCK_DEADLINE, SITE));
}

WEAK int mtx_unlock(mtx_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(mtx_unlock)(mutex);
    return c11_status(lock_release_mutex(ADDRESS(mutex), type_of_c11(mutex), SITE));
}

WEAK int cnd_init(cnd_t *condition)
{
    return IS_OUTSIDE ? HIDDEN(cnd_init)(condition) : thrd_success;
}

WEAK void cnd_destroy(cnd_t *condition)
{
    if (IS_OUTSIDE)
        HIDDEN(cnd_destroy)(condition);
}

WEAK int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    if (IS_OUTSIDE)
        return HIDDEN(cnd_wait)(condition, mutex);
    return c11_status(wait_on(condition, mutex, false, SITE));
}

WEAK int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(cnd_timedwait)(condition, mutex, time);
    return c11_status(wait_on(condition, mutex, true, SITE));
}

WEAK int cnd_signal(cnd_t *condition)
{
    if (IS_OUTSIDE)
        return HIDDEN(cnd_signal)(condition);
    sleepers_wake(ADDRESS(condition), SITE, 1);
    return thrd_success;
}

WEAK int cnd_broadcast(cnd_t *condition)
{
    if (IS_OUTSIDE)
        return HIDDEN(cnd_broadcast)(condition);
    sleepers_wake(ADDRESS(condition), SITE, UINT_MAX);
    return thrd_success;
}

WEAK void call_once(once_flag *once, void (*function)(void))
{
    if (IS_OUTSIDE)
        HIDDEN(call_once)(once, function);
    else
        do_once(once, function, SITE);
}

static struct c11_thread {
    thrd_start_t function;
    void *argument;
} c11_threads[THREADS];

static void *run_c11_thread(void *unused)
{
    const struct c11_thread *t = &c11_threads[the_execution.running];
    (void)unused;
    return (void *)(intptr_t)t->function(t->argument);
}

WEAK int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    if (IS_OUTSIDE)
        return HIDDEN(thrd_create)(thread, function, argument);
    unsigned number = machine_spawn(run_c11_thread, NULL, SITE);
    if (number == 0)
        return thrd_nomem;
    c11_threads[number] = (struct c11_thread){function, argument};
    *thread = number;
    return thrd_success;
}

WEAK int thrd_join(thrd_t thread, int *result)
{
    void *value;
    if (IS_OUTSIDE)
        return HIDDEN(thrd_join)(thread, result);
    machine_join((unsigned)thread, SITE, &value);
    if (result != NULL)
        *result = (int)(intptr_t)value;
    return thrd_success;
}

WEAK int thrd_detach(thrd_t thread)
{
    return IS_OUTSIDE ? HIDDEN(thrd_detach)(thread) : thrd_success;
}

WEAK thrd_t thrd_current(void)
{
    return IS_OUTSIDE ? HIDDEN(thrd_current)() : the_execution.running;
}

WEAK void thrd_exit(int result)
{
    if (IS_OUTSIDE)
        HIDDEN(thrd_exit)(result);
    machine_exit((void *)(intptr_t)result);
}

WEAK void thrd_yield(void)
{
    if (IS_OUTSIDE)
        HIDDEN(thrd_yield)();
    else
        spin_relax();
}

WEAK int thrd_sleep(const struct timespec *time, struct timespec *left)
{
    if (IS_OUTSIDE)
        return HIDDEN(thrd_sleep)(time, left);
    spin_relax();
    return 0;
}

WEAK int tss_create(tss_t *key, tss_dtor_t destructor)
{
    if (IS_OUTSIDE)
        return HIDDEN(tss_create)(key, destructor);
    pthread_key_t made;
    int error = pthread_key_create(&made, destructor);
    *key = made;
    return c11_status(error);
}

WEAK void tss_delete(tss_t key)
{
    if (IS_OUTSIDE)
        HIDDEN(tss_delete)(key);
    else
        pthread_key_delete(key);
}

WEAK int tss_set(tss_t key, void *value)
{
    if (IS_OUTSIDE)
        return HIDDEN(tss_set)(key, value);
    return c11_status(pthread_setspecific(key, value));
}

WEAK void *tss_get(tss_t key)
{
    return IS_OUTSIDE ? HIDDEN(tss_get)(key) : pthread_getspecific(key);
}

/* ---- With a clock that is named ---- */

#if defined __GLIBC__ && __GLIBC_PREREQ(2, 30)
WEAK int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                 const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_mutex_clocklock)(mutex, clock, time);
    return lock_mutex(ADDRESS(mutex), posix_type_of(mutex), LOCK_DEADLINE, SITE);
}

WEAK int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_cond_clockwait)(condition, mutex, clock, time);
    return wait_on(condition, mutex, true, SITE);
}

WEAK int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
                                    const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_rwlock_clockrdlock)(lock, clock, time);
    return lock_read(ADDRESS(lock), LOCK_DEADLINE, SITE);
}

WEAK int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
                                    const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_rwlock_clockwrlock)(lock, clock, time);
    return lock_write(ADDRESS(lock), LOCK_DEADLINE, SITE);
}

WEAK int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *time)
{
    if (IS_OUTSIDE)
        return HIDDEN(sem_clockwait)(semaphore, clock, time);
    return with_errno(semaphore_take(ADDRESS(semaphore), LOCK_DEADLINE, SITE));
}
#endif

/* ---- What has no model ---- */

WEAK int pthread_cancel(pthread_t thread)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_cancel)(thread);
    refuse("pthread_cancel", __builtin_return_address(0));
}

WEAK int pthread_kill(pthread_t thread, int signal)
{
    if (IS_OUTSIDE)
        return HIDDEN(pthread_kill)(thread, signal);
    refuse("pthread_kill", __builtin_return_address(0));
}

#ifdef __GLIBC__
#define REFUSE(name, declaration, ...)              \
    WEAK int name declaration                       \
    {                                               \
        if (IS_OUTSIDE)                             \
            return HIDDEN(name)(__VA_ARGS__);       \
        refuse(#name, __builtin_return_address(0)); \
    }

REFUSE(pthread_mutex_consistent, (pthread_mutex_t * mutex), mutex)
REFUSE(pthread_tryjoin_np, (pthread_t thread, void **result), thread, result)
REFUSE(pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *time), thread,
       result, time)
#endif

#else

void posix_begin(void)
{
}

void posix_end(void)
{
}

#endif
