/*
 * Concurrency Kit's ring, for one producer and one consumer and for many of both. It has no
 * batches, and holds one element less than its size.
 */
#include "../queue_subject.h"

#include <ck_ring.h>

struct number {
    uint64_t value;
};

CK_RING_PROTOTYPE(number, number)

struct ck {
    _Alignas(QUEUE_LINE) ck_ring_t ring;
    _Alignas(QUEUE_LINE) struct number slots[QUEUE_CAPACITY];
};

static void *ck_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct ck *ck = queue_allocate(sizeof *ck);
    if (ck != NULL)
        ck_ring_init(&ck->ring, QUEUE_CAPACITY);
    return ck;
}

static void ck_destroy(void *queue)
{
    free(queue);
}

QUEUE_POINTER_HANDLE(ck_spsc, struct ck)

static inline bool ck_spsc_push(ck_spsc_handle *handle, uint64_t value)
{
    struct number number = {value};
    return CK_RING_ENQUEUE_SPSC(number, &(*handle)->ring, (*handle)->slots, &number);
}

static inline bool ck_spsc_pop(ck_spsc_handle *handle, uint64_t *to)
{
    struct number number;
    bool popped = CK_RING_DEQUEUE_SPSC(number, &(*handle)->ring, (*handle)->slots, &number);
    if (popped)
        *to = number.value;
    return popped;
}

#define QUEUE ck_spsc
#define QUEUE_IN_ONES
#include "../queue_loops.h"

QUEUE_POINTER_HANDLE(ck_mpmc, struct ck)

static inline bool ck_mpmc_push(ck_mpmc_handle *handle, uint64_t value)
{
    struct number number = {value};
    return CK_RING_ENQUEUE_MPMC(number, &(*handle)->ring, (*handle)->slots, &number);
}

static inline bool ck_mpmc_pop(ck_mpmc_handle *handle, uint64_t *to)
{
    struct number number;
    bool popped = CK_RING_DEQUEUE_MPMC(number, &(*handle)->ring, (*handle)->slots, &number);
    if (popped)
        *to = number.value;
    return popped;
}

#define QUEUE ck_mpmc
#define QUEUE_IN_ONES
#include "../queue_loops.h"

const struct queue_subject queues_ck[] = {
    QUEUE_SUBJECT("ck-spsc", QUEUE_SPSC_BOUNDED, ck, ck_spsc),
    QUEUE_SUBJECT("ck-mpmc", QUEUE_MPMC_BOUNDED, ck, ck_mpmc),
    {0},
};
