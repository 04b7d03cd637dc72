/*
 * A thread that is suspended in the middle of an operation, for any time, blocks no other. One thread, the victim, does
 * one operation on a queue, and is parked before its n-th atomic operation, for each n until it completes. In the
 * meantime one or two other threads push and pop: each of their operations must complete, with a correct result. Then
 * the victim continues. All results must be a history of a queue (fifo_history.h), and nothing is lost.
 *
 * A blocked operation of the others would never end: so its number of atomic operations is limited, not its time.
 *
 * Included before the sources that are stepped through (stepped_atomic.h). These tests check the order of the steps, and
 * not memory orders.
 */
#ifndef BIDE_TESTS_STEPS_H
#define BIDE_TESTS_STEPS_H

#include "sync/meeting.h"
#include "queue/fifo_history.h"

#include <semaphore.h>

enum { MAX_STEPS = 100000 /* the most of one operation, before it counts as held up */ };

/* A thread, in an operation. */
typedef struct stepper {
    bool counts;
    bool held_up;
    uint32_t steps;   /* of this operation */
    uint32_t park_at; /* before which step */
    sem_t parked, go;
    jmp_buf out; /* where it continues if it is held up */
} stepper;

static _Thread_local stepper *stepper_me;

static inline void stepper_wait(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) /* a signal */
        ;
}

static void step(void)
{
    stepper *self = stepper_me;
    if (self == NULL || !self->counts)
        return;
    uint32_t number = self->steps++;
    if (number == self->park_at) {
        sem_post(&self->parked);
        stepper_wait(&self->go);
    } else if (number >= MAX_STEPS) {
        longjmp(self->out, 1);
    }
}

static inline void stepper_init(stepper *self, uint32_t park_at)
{
    self->counts = self->held_up = false;
    self->park_at = park_at;
    assert_int_equal(sem_init(&self->parked, 0, 0), 0);
    assert_int_equal(sem_init(&self->go, 0, 0), 0);
}

static inline void stepper_destroy(stepper *self)
{
    sem_destroy(&self->parked);
    sem_destroy(&self->go);
}

/* False: it was held up. Then the queue is not in a usable state. */
static inline bool stepper_try(stepper *self, void (*operation)(void *argument), void *argument)
{
    stepper_me = self;
    self->steps = 0;
    if (setjmp(self->out) != 0) {
        self->counts = false;
        self->held_up = true;
        return false;
    }
    self->counts = true;
    operation(argument);
    self->counts = false;
    return true;
}

#include "queue/stepped_atomic.h"

#endif
