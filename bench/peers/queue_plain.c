/*
 * Queues as one would write them by hand.
 *
 *     vyukov        a bounded ring of slots with turns, one compare-exchange for each element (Vyukov,
 *                   Bounded MPMC queue)
 *     mutex+ring    a ring under a pthread mutex; a batch under one lock
 */
#include "../queue_subject.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- Vyukov's ring ---- */

struct vyukov_slot {
    _Atomic size_t turn; /* its number: free for that push; one more: to be popped */
    uint64_t value;
};

struct vyukov {
    _Alignas(QUEUE_LINE) _Atomic size_t tail;
    _Alignas(QUEUE_LINE) _Atomic size_t head;
    _Alignas(QUEUE_LINE) struct vyukov_slot slots[QUEUE_CAPACITY];
};

static void *vyukov_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct vyukov *ring = queue_allocate(sizeof *ring);
    if (ring == NULL)
        return NULL;
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->head, 0);
    for (size_t i = 0; i < QUEUE_CAPACITY; i++)
        atomic_init(&ring->slots[i].turn, i);
    return ring;
}

static void vyukov_destroy(void *queue)
{
    free(queue);
}

QUEUE_POINTER_HANDLE(vyukov, struct vyukov)

/*
 * Claims the next slot at `end` whose turn is `ahead` of its number; returns NULL if it is not
 * ready. *at is the number.
 */
static inline struct vyukov_slot *vyukov_claim(struct vyukov *ring, _Atomic size_t *end,
                                               size_t ahead, size_t *at)
{
    *at = atomic_load_explicit(end, memory_order_relaxed);
    for (;;) {
        struct vyukov_slot *slot = &ring->slots[*at % QUEUE_CAPACITY];
        size_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        ptrdiff_t early = (ptrdiff_t)(turn - (*at + ahead));
        if (early < 0)
            return NULL;
        if (early > 0)
            *at = atomic_load_explicit(end, memory_order_relaxed);
        else if (atomic_compare_exchange_weak_explicit(end, at, *at + 1, memory_order_relaxed,
                                                       memory_order_relaxed))
            return slot;
    }
}

static inline bool vyukov_push(vyukov_handle *handle, uint64_t value)
{
    size_t at;
    struct vyukov_slot *slot = vyukov_claim(*handle, &(*handle)->tail, 0, &at);
    if (slot == NULL)
        return false;
    slot->value = value;
    atomic_store_explicit(&slot->turn, at + 1, memory_order_release);
    return true;
}

static inline bool vyukov_pop(vyukov_handle *handle, uint64_t *to)
{
    size_t at;
    struct vyukov_slot *slot = vyukov_claim(*handle, &(*handle)->head, 1, &at);
    if (slot == NULL)
        return false;
    *to = slot->value;
    atomic_store_explicit(&slot->turn, at + QUEUE_CAPACITY, memory_order_release);
    return true;
}

#define QUEUE vyukov
#define QUEUE_IN_ONES
#include "../queue_loops.h"

/* ---- A ring under a mutex ---- */

struct mutex_ring {
    pthread_mutex_t mutex;
    size_t head; /* the oldest element's number */
    size_t tail; /* the next one's */
    uint64_t slots[QUEUE_CAPACITY];
};

static void *mutex_ring_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct mutex_ring *ring = queue_allocate(sizeof *ring);
    if (ring == NULL)
        return NULL;
    pthread_mutex_init(&ring->mutex, NULL);
    ring->head = 0;
    ring->tail = 0;
    return ring;
}

static void mutex_ring_destroy(void *queue)
{
    struct mutex_ring *ring = queue;
    pthread_mutex_destroy(&ring->mutex);
    free(ring);
}

QUEUE_POINTER_HANDLE(mutex_ring, struct mutex_ring)

static inline size_t mutex_ring_push_many(mutex_ring_handle *handle, const uint64_t *from,
                                          size_t count)
{
    struct mutex_ring *ring = *handle;
    size_t done = 0;
    pthread_mutex_lock(&ring->mutex);
    while (done < count && ring->tail - ring->head < QUEUE_CAPACITY)
        ring->slots[ring->tail++ % QUEUE_CAPACITY] = from[done++];
    pthread_mutex_unlock(&ring->mutex);
    return done;
}

static inline size_t mutex_ring_pop_many(mutex_ring_handle *handle, uint64_t *to, size_t count)
{
    struct mutex_ring *ring = *handle;
    size_t done = 0;
    pthread_mutex_lock(&ring->mutex);
    while (done < count && ring->head != ring->tail)
        to[done++] = ring->slots[ring->head++ % QUEUE_CAPACITY];
    pthread_mutex_unlock(&ring->mutex);
    return done;
}

static inline bool mutex_ring_push(mutex_ring_handle *handle, uint64_t value)
{
    return mutex_ring_push_many(handle, &value, 1) == 1;
}

static inline bool mutex_ring_pop(mutex_ring_handle *handle, uint64_t *to)
{
    return mutex_ring_pop_many(handle, to, 1) == 1;
}

#define QUEUE mutex_ring
#include "../queue_loops.h"

const struct queue_subject queues_plain[] = {
    QUEUE_SUBJECT("vyukov", QUEUE_MPMC_BOUNDED, vyukov, vyukov),
    QUEUE_SUBJECT("mutex+ring", QUEUE_MPMC_BOUNDED, mutex_ring, mutex_ring),
    {0},
};
