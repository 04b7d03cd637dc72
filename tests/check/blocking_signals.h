/*
 * Included before blocking.c and blocking_call.c, where blocking_check.c runs them: replaces signals,
 * and what else they ask of the system, with the model of that file.
 */
#ifndef BLOCKING_SIGNALS_H
#define BLOCKING_SIGNALS_H

#include <pthread.h>
#include <stdint.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

void model_mask(int how);
int model_kill(pthread_t thread);
int model_take_pending(void);
uint64_t model_slow_call(void);
int model_action(struct sigaction *old);
int model_name(pthread_t thread);
int model_timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);

#define SLOW_CALL model_slow_call()
#undef pthread_sigmask
#define pthread_sigmask(how, set, old)   ((void)(set), model_mask(how))
#define pthread_kill(thread, number)     ((void)(number), model_kill(thread))
#define sigtimedwait(set, info, time)    ((void)(set), (void)(time), model_take_pending())
#define sigaction(number, action, old)   ((void)(number), (void)(action), model_action(old))
#define pthread_setname_np(thread, name) ((void)(name), model_name(thread))
#undef pthread_cond_timedwait
#define pthread_cond_timedwait(condition, mutex, time) \
    ((void)(time), model_timed_wait(condition, mutex))

#endif
