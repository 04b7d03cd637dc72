/*
 * pthread.h; and in its place on systems without it, what the library uses of it.
 *
 *     Windows    by SRWLOCK, CONDITION_VARIABLE and threads (pthreads_windows.h)
 *     WASI       there is one thread: locks are free, and nothing waits (pthreads_alone.h)
 */
#ifndef BIDE_SYSTEM_PTHREADS_H
#define BIDE_SYSTEM_PTHREADS_H

#if defined _WIN32
#include "pthreads_windows.h"
#elif defined __wasi__
#include "pthreads_alone.h"
#else
#include <pthread.h>
#endif

#endif
