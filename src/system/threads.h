/*
 * Threads of the library's own. They block the signals that are sent to the program, so that those
 * handlers run on the user's threads; a fault of what runs on them is handled where it is.
 */
#ifndef BIDE_SYSTEM_THREADS_H
#define BIDE_SYSTEM_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* More than any machine runs, and few enough that sizes cannot overflow. */
enum { BIDE_THREADS_MAX_ = 65536 };

/*
 * Starts `count` threads that run function(argument). 0, or a negative errno with none left
 * running, after `give_up(argument)`, which tells those that were started to end.
 */
int bide_threads_start_(pthread_t *threads, unsigned count, void *(*function)(void *),
                        void *argument, void (*give_up)(void *));

/* Is the calling thread one of them? Then they cannot be joined here. */
bool bide_threads_have_this_(const pthread_t *threads, unsigned count);

void bide_threads_join_(pthread_t *threads, unsigned count);

/* Names the calling thread: `name`, a dash and the number, cut to what the system takes. */
void bide_threads_name_this_(const char *name, unsigned number);

/* May this process use the processor of this number? */
bool bide_threads_may_use_(unsigned processor);

/* Has the calling thread stay on it. */
void bide_threads_keep_this_on_(unsigned processor);

#endif
