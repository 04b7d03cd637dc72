/*
 * What the library uses of pthread.h, for systems with one thread. A wait of a condition would
 * never end: misuse.
 */
#ifndef BIDE_SYSTEM_PTHREADS_ALONE_H
#define BIDE_SYSTEM_PTHREADS_ALONE_H

#include "bide/compiler.h"
#include "bide/detail/system_types.h"
#include "bide/platform.h"

#define pthread_mutex_init(mutex, attributes) ((void)(*(mutex) = 0))
#define pthread_mutex_destroy(mutex)          ((void)(mutex))
#define pthread_mutex_lock(mutex)             ((void)(mutex))
#define pthread_mutex_unlock(mutex)           ((void)(mutex))

#define pthread_cond_init(condition, attributes) ((void)(*(condition) = 0))
#define pthread_cond_destroy(condition)          ((void)(condition))
#define pthread_cond_signal(condition)           ((void)(condition))
#define pthread_cond_wait(condition, mutex)                                                       \
    ((void)(condition), (void)(mutex),                                                            \
     bide_platform.misuse("the only thread waits for another one", "pthread_cond_wait", __FILE__, \
                          __LINE__))

#define pthread_equal(one, other) ((one) == (other))
#define pthread_self()            0

#endif
