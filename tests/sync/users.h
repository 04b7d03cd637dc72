/*
 * For tests of primitives with a line: coroutines, each with a stop source of its own, that start one wait and note
 * their names when it has ended. The test runs their scheduler by hand.
 */
#ifndef BIDE_TESTS_USERS_H
#define BIDE_TESTS_USERS_H

#include "sync/by_hand.h"

#include "bide/auto_event.h"
#include "bide/cyclic_barrier.h"
#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/latch.h"
#include "bide/notify.h"
#include "bide/stop.h"
#include "bide/wait_group.h"

typedef struct user user;

struct user {
    bide_task task;
    by_hand *by_hand;
    bide_awaiter *(*wait)(user *self); /* begins it */
    void *object;
    union {
        bide_auto_event_waiter auto_event;
        bide_cyclic_barrier_waiter cyclic_barrier;
        bide_latch_waiter latch;
        bide_notify_waiter notify;
        bide_wait_group_waiter wait_group;
    } waiter;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status; /* 1: the wait has not ended */
};

bide_coroutine(user_body)
{
    bide_begin(user_body, user * self);
    bide_await_status(self->status, self->wait(self));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static inline void user_begin(user *self, by_hand *by_hand, bide_awaiter *(*wait)(user *),
                              void *object, char name)
{
    self->by_hand = by_hand;
    self->wait = wait;
    self->object = object;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &user_body, &self->context);
    bide_resume(&self->task.frame);
}

/* Starts `count` of them, named from 'a'. */
static inline void users_begin(user *users, int count, by_hand *by_hand,
                               bide_awaiter *(*wait)(user *), void *object)
{
    for (int i = 0; i < count; i++)
        user_begin(&users[i], by_hand, wait, object, (char)('a' + i));
}

#endif
