/*
 * A scheduler that a test runs by hand: woken coroutines are queued until the test resumes them. So a
 * test sees what was woken, by which call, and in which order. One thread.
 */
#ifndef BIDE_TESTS_BY_HAND_H
#define BIDE_TESTS_BY_HAND_H

#include "testing.h"

#include "bide/task.h"

typedef struct by_hand {
    bide_scheduler scheduler;
    bide_context context;
    bide_awaiter_chain queue;
    int posted; /* operations, since the start */
    char trace[64];
} by_hand;

static inline void by_hand_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    by_hand *self = bide_container_of(scheduler, by_hand, scheduler);
    assert_null(last->link);
    bide_awaiter_chain_append(&self->queue, first, last);
    self->posted++;
    for (; first != last; first = first->link) {
        assert_non_null(first); /* the chain leads from first to last */
        self->posted++;
    }
}

static inline bool by_hand_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    return bide_awaiter_chain_remove(&bide_container_of(scheduler, by_hand, scheduler)->queue,
                                     awaiter);
}

static inline void by_hand_init(by_hand *self)
{
    memset(self, 0, sizeof *self);
    self->scheduler.post = by_hand_post;
    self->scheduler.take_back = by_hand_take_back;
    self->context.scheduler = &self->scheduler;
}

/* Starts a task that nobody awaits; it runs until it suspends. */
static inline void by_hand_begin(by_hand *self, bide_task *task)
{
    task->frame.context = &self->context;
    task->frame.awaiter.frame = NULL;
    bide_resume(&task->frame);
}

/* Resumes woken coroutines until none is left. Returns the number of resumptions. */
static inline int by_hand_run(by_hand *self)
{
    int count = 0;
    bide_awaiter *awaiter;
    while ((awaiter = bide_awaiter_chain_take(&self->queue)) != NULL) {
        bide_resume(awaiter->frame);
        count++;
    }
    return count;
}

/* For a coroutine to note that it was here. */
static inline void by_hand_note(by_hand *self, char name)
{
    size_t length = strlen(self->trace);
    assert_true(length + 1 < sizeof self->trace);
    self->trace[length] = name;
    self->trace[length + 1] = '\0';
}

/* The notes since the last call. */
#define by_hand_assert_trace(self, expected)          \
    do {                                              \
        assert_string_equal((self)->trace, expected); \
        (self)->trace[0] = '\0';                      \
    } while (0)

#endif
