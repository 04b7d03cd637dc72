/*
 * Shared by the tests of the schedulers: a task that records the threads it runs on, and helpers for
 * threads. Bodies and threads only record; the test's own function asserts.
 */
#ifndef BIDE_SCHEDULE_TESTING_H
#define BIDE_SCHEDULE_TESTING_H

#include "testing.h"

#include "bide/event.h"
#include "bide/task.h"

#include <pthread.h>
#include <sched.h>

/* Lets other threads run until `condition` holds. */
#define schedule_until(condition) \
    do {                          \
        while (!(condition))      \
            sched_yield();        \
    } while (0)

static inline pthread_t schedule_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    return thread;
}

static inline void *schedule_pass_lock(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Whether the process may have so many threads more. Without them a deep join overflows the stack. */
static inline bool schedule_may_have_threads(unsigned wanted, size_t stack_size)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    unsigned count = 0;
    pthread_t *threads = calloc(wanted, sizeof *threads);
    assert_non_null(threads);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size);
    pthread_mutex_lock(&lock);
    while (count < wanted &&
           pthread_create(&threads[count], &attributes, schedule_pass_lock, &lock) == 0)
        count++;
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
    free(threads);
    if (count < wanted)
        printf("# the process may have %u of %u threads\n", count, wanted);
    return count == wanted;
}

/* Whether a waiter is registered. Any thread. */
static inline bool schedule_is_awaited(bide_event *event)
{
    return bide_atomic_load(&event->waiters.word, acquire) > BIDE_LIST_SHUT;
}

/* Spins for a random time of up to some microseconds, to shift one thread against another. */
static inline void schedule_jitter(uint64_t *random)
{
    uint64_t number = testing_random(random);
    if (number % 8 == 0)
        sched_yield();
    for (uint64_t i = 0; i < number / 8 % 256; i++)
        bide_cpu_relax();
}

/* A task that waits for `event`, if there is one, and ends with `status`. Writer: the task. */
typedef struct witness {
    bide_task task;
    bide_event *event; /* or NULL */
    int status;
    bide_event_waiter wait;
    bide_scheduler *scheduler;
    const char *context_name;
    pthread_t began_on;
    pthread_t ended_on;
    bide_atomic(unsigned) ends; /* how often it has ended */
} witness;

bide_coroutine(witness_body)
{
    bide_begin(witness_body, witness * self);
    self->began_on = pthread_self();
    if (self->event != NULL)
        bide_await(bide_event_wait(&self->wait, self->event));
    self->ended_on = pthread_self();
    self->scheduler = bide_this_context()->scheduler;
    self->context_name = bide_this_context()->name;
    bide_atomic_fetch_add(&self->ends, 1, relaxed);
    bide_return(self->status);
    bide_end();
}

static inline bide_awaiter *witness_run(witness *self, bide_event *event, int status)
{
    self->event = event;
    self->status = status;
    bide_atomic_init(&self->ends, 0);
    return bide_task_init(&self->task, &witness_body);
}

static inline unsigned witness_ends(witness *self)
{
    return bide_atomic_load(&self->ends, relaxed);
}

#endif
