/* The obvious queue: a ring, one mutex, two condition variables. */
#include "locked_ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int locked_ring_init(struct locked_ring *q, size_t capacity)
{
    int err;

    if (capacity == 0 || capacity > SIZE_MAX / 2 / sizeof *q->slots)
        return -EINVAL;
    memset(q, 0, sizeof *q);
    q->capacity = capacity;
    q->slots = calloc(capacity, sizeof *q->slots);
    if (q->slots == NULL)
        return -ENOMEM;
    err = pthread_mutex_init(&q->lock, NULL);
    if (err != 0)
        goto no_lock;
    err = pthread_cond_init(&q->not_empty, NULL);
    if (err != 0)
        goto no_not_empty;
    err = pthread_cond_init(&q->not_full, NULL);
    if (err != 0)
        goto no_not_full;
    return 0;

no_not_full:
    pthread_cond_destroy(&q->not_empty);
no_not_empty:
    pthread_mutex_destroy(&q->lock);
no_lock:
    free(q->slots);
    return -err;
}

void locked_ring_destroy(struct locked_ring *q)
{
    pthread_cond_destroy(&q->not_full);
    pthread_cond_destroy(&q->not_empty);
    pthread_mutex_destroy(&q->lock);
    free(q->slots);
}

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Copies in as many items as fit. */
static size_t put(struct locked_ring *q, const uint64_t *items, size_t n)
{
    size_t k = min(n, q->capacity - q->count);
    size_t tail = q->head + q->count;
    size_t first;

    if (tail >= q->capacity)
        tail -= q->capacity;
    first = min(k, q->capacity - tail);
    memcpy(q->slots + tail, items, first * sizeof *items);
    memcpy(q->slots, items + first, (k - first) * sizeof *items);
    q->count += k;
    return k;
}

/* Copies out as many items as there are, `max` at most. */
static size_t take(struct locked_ring *q, uint64_t *items, size_t max)
{
    size_t k = min(max, q->count);
    size_t first = min(k, q->capacity - q->head);

    memcpy(items, q->slots + q->head, first * sizeof *items);
    memcpy(items + first, q->slots, (k - first) * sizeof *items);
    q->head += k;
    if (q->head >= q->capacity)
        q->head -= q->capacity;
    q->count -= k;
    return k;
}

/*
 * One waiter is woken when the queue stops being empty (or full). If that waiter leaves something,
 * it wakes the next. So no waiter sleeps while there is work, and no condition is signalled twice.
 */

void locked_ring_push(struct locked_ring *q, const uint64_t *items, size_t n)
{
    bool wake_popper = false, wake_pusher;

    if (n == 0)
        return;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        bool was_empty;
        size_t k;

        while (q->count == q->capacity) {
            q->pushers++;
            pthread_cond_wait(&q->not_full, &q->lock);
            q->pushers--;
        }
        was_empty = q->count == 0;
        k = put(q, items, n);
        items += k;
        n -= k;
        wake_popper = was_empty && q->poppers > 0;
        if (n == 0)
            break;
        if (wake_popper)
            pthread_cond_signal(&q->not_empty);
    }
    wake_pusher = q->pushers > 0 && q->count < q->capacity;
    pthread_mutex_unlock(&q->lock);
    if (wake_popper)
        pthread_cond_signal(&q->not_empty);
    if (wake_pusher)
        pthread_cond_signal(&q->not_full);
}

size_t locked_ring_pop(struct locked_ring *q, uint64_t *items, size_t max)
{
    bool wake_pusher, wake_popper;
    size_t k;

    if (max == 0)
        return 0;
    pthread_mutex_lock(&q->lock);
    while (q->count == 0) {
        q->poppers++;
        pthread_cond_wait(&q->not_empty, &q->lock);
        q->poppers--;
    }
    wake_pusher = q->count == q->capacity && q->pushers > 0;
    k = take(q, items, max);
    wake_popper = q->poppers > 0 && q->count > 0;
    pthread_mutex_unlock(&q->lock);
    if (wake_pusher)
        pthread_cond_signal(&q->not_full);
    if (wake_popper)
        pthread_cond_signal(&q->not_empty);
    return k;
}
