/*
 * Small queues that test the harness of steps.h: a queue and a bag that are lock-free; two queues in which a suspended
 * thread blocks others; and one in which it does damage. None of them reuses a node, and none can be closed.
 */
#ifndef BIDE_TESTS_STEPS_QUEUES_H
#define BIDE_TESTS_STEPS_QUEUES_H

#include "queue/queues.h"

#include "bide/atomic.h"

enum { STEPPED_NODES = 8192, STEPPED_NONE = 0 };

typedef struct stepped_node {
    uint64_t value;
    bide_atomic(uint32_t) next;
} stepped_node;

typedef struct stepped_queue {
    bide_atomic(uint32_t) head, tail; /* the bag has only a head */
    bide_atomic(uint32_t) used;
    bide_atomic(uint32_t) lock;
    stepped_node nodes[STEPPED_NODES];
} stepped_queue;

static void *stepped_create(size_t capacity)
{
    stepped_queue *q = queue_memory(sizeof *q);
    (void)capacity;
    bide_atomic_init(&q->head, STEPPED_NONE);
    bide_atomic_init(&q->tail, STEPPED_NONE);
    bide_atomic_init(&q->used, 1);
    bide_atomic_init(&q->lock, 0);
    for (uint32_t i = 0; i < STEPPED_NODES; i++)
        bide_atomic_init(&q->nodes[i].next, STEPPED_NONE);
    return q;
}

static uint32_t stepped_new_node(stepped_queue *q, uint64_t value)
{
    uint32_t node = bide_atomic_fetch_add(&q->used, 1, relaxed);
    if (node >= STEPPED_NODES)
        abort();
    q->nodes[node].value = value;
    return node;
}

/* ---- A queue: Michael and Scott (1996); node 0 is the first dummy ---- */

/* `helps`: every thread may advance the tail; otherwise only the thread with the linked node may. */
static int push_and_help(void *queue, const uint64_t *value, bool helps)
{
    stepped_queue *q = queue;
    uint32_t node = stepped_new_node(q, *value);
    for (;;) {
        uint32_t tail = bide_atomic_load(&q->tail, acquire), none = STEPPED_NONE;
        if (bide_atomic_compare_exchange(&q->nodes[tail].next, &none, node, acq_rel, acquire)) {
            bide_atomic_compare_exchange(&q->tail, &tail, node, release, relaxed);
            return 0;
        }
        if (helps)
            bide_atomic_compare_exchange(&q->tail, &tail, none, release, relaxed);
    }
}

static int linked_push(void *queue, void *seat, const uint64_t *value)
{
    (void)seat;
    return push_and_help(queue, value, true);
}

static int unhelped_push(void *queue, void *seat, const uint64_t *value)
{
    (void)seat;
    return push_and_help(queue, value, false);
}

static int linked_pop(void *queue, void *seat, uint64_t *value)
{
    stepped_queue *q = queue;
    (void)seat;
    uint32_t head = bide_atomic_load(&q->head, acquire);
    for (;;) {
        uint32_t next = bide_atomic_load(&q->nodes[head].next, acquire);
        if (next == STEPPED_NONE)
            return -EAGAIN;
        if (bide_atomic_compare_exchange(&q->head, &head, next, acq_rel, acquire)) {
            *value = q->nodes[next].value;
            return 0;
        }
    }
}

/* It loads, and then it stores. */
static int careless_pop(void *queue, void *seat, uint64_t *value)
{
    stepped_queue *q = queue;
    (void)seat;
    uint32_t head = bide_atomic_load(&q->head, acquire);
    uint32_t next = bide_atomic_load(&q->nodes[head].next, acquire);
    if (next == STEPPED_NONE)
        return -EAGAIN;
    *value = q->nodes[next].value;
    bide_atomic_store(&q->head, next, release);
    return 0;
}

/* ---- A bag: Treiber's stack (1986) ---- */

static int bag_push(void *queue, void *seat, const uint64_t *value)
{
    stepped_queue *q = queue;
    (void)seat;
    uint32_t node = stepped_new_node(q, *value);
    uint32_t head = bide_atomic_load(&q->head, relaxed);
    do
        bide_atomic_store(&q->nodes[node].next, head, relaxed);
    while (!bide_atomic_compare_exchange(&q->head, &head, node, acq_rel, relaxed));
    return 0;
}

static int bag_pop(void *queue, void *seat, uint64_t *value)
{
    stepped_queue *q = queue;
    (void)seat;
    uint32_t head = bide_atomic_load(&q->head, acquire);
    while (head != STEPPED_NONE) {
        uint32_t next = bide_atomic_load(&q->nodes[head].next, relaxed);
        if (bide_atomic_compare_exchange(&q->head, &head, next, acq_rel, acquire)) {
            *value = q->nodes[head].value;
            return 0;
        }
    }
    return -EAGAIN;
}

/* ---- A queue under a lock ---- */

static void spin_lock(stepped_queue *q)
{
    while (bide_atomic_exchange(&q->lock, 1, acquire) != 0)
        bide_cpu_relax();
}

static int spinning_push(void *queue, void *seat, const uint64_t *value)
{
    stepped_queue *q = queue;
    spin_lock(q);
    int answer = linked_push(queue, seat, value);
    bide_atomic_store(&q->lock, 0, release);
    return answer;
}

static int spinning_pop(void *queue, void *seat, uint64_t *value)
{
    stepped_queue *q = queue;
    spin_lock(q);
    int answer = linked_pop(queue, seat, value);
    bide_atomic_store(&q->lock, 0, release);
    return answer;
}

/* ---- Rows ---- */

static void *stepped_enter(void *queue)
{
    return queue;
}

static void stepped_leave(void *queue, void *seat)
{
    (void)queue;
    (void)seat;
}

#define STEPPED_ROW(row, row_name, row_traits, row_push, row_pop)                            \
    static ptrdiff_t row##_push_many(void *queue, void *seat, const uint64_t *values,        \
                                     size_t count)                                           \
    {                                                                                        \
        for (size_t i = 0; i < count; i++)                                                   \
            row_push(queue, seat, &values[i]);                                               \
        return (ptrdiff_t)count;                                                             \
    }                                                                                        \
    static ptrdiff_t row##_pop_many(void *queue, void *seat, uint64_t *values, size_t count) \
    {                                                                                        \
        size_t done = 0;                                                                     \
        while (done < count && row_pop(queue, seat, &values[done]) == 0)                     \
            done++;                                                                          \
        return done != 0 ? (ptrdiff_t)done : -EAGAIN;                                        \
    }                                                                                        \
    static const queue_kind row = {                                                          \
        .name = (row_name),                                                                  \
        .traits = (row_traits) | QUEUE_EXACT_EMPTY,                                          \
        .slowness = 1,                                                                       \
        .create = stepped_create,                                                            \
        .destroy = free,                                                                     \
        .enter = stepped_enter,                                                              \
        .leave = stepped_leave,                                                              \
        .push = (row_push),                                                                  \
        .pop = (row_pop),                                                                    \
        .push_many = row##_push_many,                                                        \
        .pop_many = row##_pop_many,                                                          \
    }

STEPPED_ROW(stepped_linked, "its own queue", 0, linked_push, linked_pop);
STEPPED_ROW(stepped_unhelped, "its own queue, without help", 0, unhelped_push, linked_pop);
STEPPED_ROW(stepped_careless, "its own queue, without care", 0, linked_push, careless_pop);
STEPPED_ROW(stepped_bag, "its own bag", QUEUE_ANY_ORDER, bag_push, bag_pop);
STEPPED_ROW(stepped_spinning, "its own queue under a lock", 0, spinning_push, spinning_pop);

#endif
