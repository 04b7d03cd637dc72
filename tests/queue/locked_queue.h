/*
 * A queue under a mutex: the reference that the tests of queues are tried on, and what broken ones are made of.
 * Bounded; or it grows. An answer to each call as queues.h says.
 */
#ifndef BIDE_TESTS_LOCKED_QUEUE_H
#define BIDE_TESTS_LOCKED_QUEUE_H

#include "testing.h"

#include "bide/compiler.h"
#include "bide/errors.h"

#include <pthread.h>

typedef struct locked_queue {
    pthread_mutex_t mutex; /* for all that follows */
    uint64_t *values;      /* a ring */
    size_t capacity, head, count;
    bool grows, closed;
} locked_queue;

static inline void *locked_queue_create(size_t capacity, bool grows)
{
    locked_queue *q = calloc(1, sizeof *q);
    uint64_t *values = calloc(capacity, sizeof *values);
    if (q == NULL || values == NULL || pthread_mutex_init(&q->mutex, NULL) != 0)
        abort();
    q->values = values;
    q->capacity = capacity;
    q->grows = grows;
    return q;
}

static inline void locked_queue_destroy(void *queue)
{
    locked_queue *q = queue;
    pthread_mutex_destroy(&q->mutex);
    free(q->values);
    free(q);
}

/* The element behind `place` others. */
static inline uint64_t *locked_queue_at(locked_queue *q, size_t place)
{
    return &q->values[(q->head + place) % q->capacity];
}

static inline void locked_queue_grow(locked_queue *q)
{
    uint64_t *values = calloc(2 * q->capacity, sizeof *values);
    if (values == NULL)
        abort();
    for (size_t i = 0; i < q->count; i++)
        values[i] = *locked_queue_at(q, i);
    free(q->values);
    q->values = values;
    q->capacity *= 2;
    q->head = 0;
}

/* The caller has the mutex. */
static inline int locked_queue_put(locked_queue *q, uint64_t value)
{
    if (q->closed)
        return -EPIPE;
    if (q->count == q->capacity && !q->grows)
        return -ENOBUFS;
    if (q->count == q->capacity)
        locked_queue_grow(q);
    *locked_queue_at(q, q->count++) = value;
    return 0;
}

/* The caller has the mutex. */
static inline int locked_queue_take(locked_queue *q, uint64_t *value)
{
    if (q->count == 0)
        return q->closed ? -EPIPE : -EAGAIN;
    *value = *locked_queue_at(q, 0);
    q->head = (q->head + 1) % q->capacity;
    q->count--;
    return 0;
}

static inline ptrdiff_t locked_queue_push_many(void *queue, void *seat, const uint64_t *values,
                                               size_t count)
{
    locked_queue *q = queue;
    size_t done = 0;
    int status = 0;
    (void)seat;
    pthread_mutex_lock(&q->mutex);
    while (done < count && (status = locked_queue_put(q, values[done])) == 0)
        done++;
    pthread_mutex_unlock(&q->mutex);
    return done != 0 ? (ptrdiff_t)done : status;
}

static inline ptrdiff_t locked_queue_pop_many(void *queue, void *seat, uint64_t *values,
                                              size_t count)
{
    locked_queue *q = queue;
    size_t done = 0;
    int status = 0;
    (void)seat;
    pthread_mutex_lock(&q->mutex);
    while (done < count && (status = locked_queue_take(q, &values[done])) == 0)
        done++;
    pthread_mutex_unlock(&q->mutex);
    return done != 0 ? (ptrdiff_t)done : status;
}

static inline int locked_queue_push(void *queue, void *seat, const uint64_t *value)
{
    ptrdiff_t moved = locked_queue_push_many(queue, seat, value, 1);
    return moved < 0 ? (int)moved : 0;
}

static inline int locked_queue_pop(void *queue, void *seat, uint64_t *value)
{
    ptrdiff_t moved = locked_queue_pop_many(queue, seat, value, 1);
    return moved < 0 ? (int)moved : 0;
}

static inline void locked_queue_close(void *queue)
{
    locked_queue *q = queue;
    pthread_mutex_lock(&q->mutex);
    q->closed = true;
    pthread_mutex_unlock(&q->mutex);
}

#endif
