/*
 * The library's own threads. They block signals that are sent to the program, so these are handled on
 * the user's threads. Signals for faults stay unblocked.
 */
#ifndef BIDE_SYSTEM_THREADS_H
#define BIDE_SYSTEM_THREADS_H

#include "pthreads.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A limit that no machine reaches, and by which sizes cannot overflow. */
enum { BIDE_THREADS_MAX_ = 65536 };

/*
 * Starts `count` threads that run function(argument). On failure it calls give_up(argument), which makes
 * the started threads return, joins them, and returns a negative errno.
 */
int bide_threads_start_(pthread_t *threads, unsigned count, void *(*function)(void *),
                        void *argument, void (*give_up)(void *));

/* The same with stacks of at least so many bytes, which may be -EINVAL; 0: BIDE_THREAD_STACK. */
int bide_threads_start_sized_(pthread_t *threads, unsigned count, size_t stack_size,
                              void *(*function)(void *), void *argument, void (*give_up)(void *));

/*
 * Starts one thread with a stack of at least so many bytes, not 0. Returns 0 or a negative errno. Each
 * platform has its own.
 */
int bide_threads_start_one_(pthread_t *thread, size_t stack_size, void *(*function)(void *),
                            void *argument);

/* Whether threads may have stacks of so many bytes: 0, or -EINVAL. */
int bide_threads_check_stack_(size_t stack_size);

/*
 * How many bytes of its stack the calling thread has below its current frame, and the lowest address; 0: unknown. (The
 * system puts the thread's own variables on the same memory, which may be much of it.) Not of the first thread.
 */
size_t bide_threads_stack_(uintptr_t *low);

/* Whether the calling thread is one of them, and so cannot join them. */
bool bide_threads_have_this_(const pthread_t *threads, unsigned count);

void bide_threads_join_(pthread_t *threads, unsigned count);

/* Names the calling thread: `name`, a dash and the number, cut to the system's limit. */
void bide_threads_name_this_(const char *name, unsigned number);

/* Whether this process may use the processor, and threads can be pinned to it: on Linux only. */
bool bide_threads_may_use_(unsigned processor);

/* Pins the calling thread to the processor. */
void bide_threads_keep_this_on_(unsigned processor);

#endif
