/*
 * What the library uses of pthread.h, by Windows: locks are SRWLOCKs, and conditions
 * CONDITION_VARIABLEs, both of which begin as zeros and need no end. (Functions of the library in
 * place of windows.h, which has macros for common names.)
 */
#ifndef BIDE_SYSTEM_PTHREADS_WINDOWS_H
#define BIDE_SYSTEM_PTHREADS_WINDOWS_H

#include "bide/compiler.h"
#include "bide/detail/system_types.h"

#include <stdbool.h>
#include <stddef.h>

void bide_windows_lock_(bide_system_lock_ *lock);
void bide_windows_unlock_(bide_system_lock_ *lock);
void bide_windows_wait_(bide_system_condition_ *condition, bide_system_lock_ *lock);
void bide_windows_wake_(bide_system_condition_ *condition);
void bide_windows_wake_all_(bide_system_condition_ *condition);
bide_system_thread_ bide_windows_this_thread_(void);
void bide_windows_join_(bide_system_thread_ thread);

#define pthread_mutex_t bide_system_lock_
#define pthread_cond_t  bide_system_condition_
#define pthread_t       bide_system_thread_

#define pthread_mutex_init(mutex, attributes) ((void)((mutex)->word = NULL))
#define pthread_mutex_destroy(mutex)          ((void)(mutex))
#define pthread_mutex_lock(mutex)             bide_windows_lock_(mutex)
#define pthread_mutex_unlock(mutex)           bide_windows_unlock_(mutex)

#define pthread_cond_init(condition, attributes) ((void)((condition)->word = NULL))
#define pthread_cond_destroy(condition)          ((void)(condition))
#define pthread_cond_signal(condition)           bide_windows_wake_(condition)
#define pthread_cond_broadcast(condition)        bide_windows_wake_all_(condition)
#define pthread_cond_wait(condition, mutex)      bide_windows_wait_(condition, mutex)

#define pthread_self()               bide_windows_this_thread_()
#define pthread_equal(one, other)    ((one).number == (other).number)
#define pthread_join(thread, result) bide_windows_join_(thread)

#endif
