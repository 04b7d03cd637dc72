/*
 * Locks, conditions and threads of the system, as the structs of public headers hold them. POSIX:
 * those of pthread.h. Windows: what an SRWLOCK, a CONDITION_VARIABLE and a thread are, without
 * windows.h. WASI has one thread. Not for programs.
 */
#ifndef BIDE_DETAIL_SYSTEM_TYPES_H
#define BIDE_DETAIL_SYSTEM_TYPES_H

#if defined _WIN32

typedef struct bide_system_lock_ {
    void *word;
} bide_system_lock_;

typedef struct bide_system_condition_ {
    void *word;
} bide_system_condition_;

typedef struct bide_system_thread_ {
    void *handle;
    unsigned long number;
} bide_system_thread_;

#elif defined __wasi__

typedef int bide_system_lock_, bide_system_condition_, bide_system_thread_;

#else

#include <pthread.h>

typedef pthread_mutex_t bide_system_lock_;
typedef pthread_cond_t bide_system_condition_;
typedef pthread_t bide_system_thread_;

#endif

#endif
