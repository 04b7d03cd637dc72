/*
 * Userspace RCU's queues, inlined. Their nodes are the user's: here one for each element, from
 * malloc. There are no batches.
 *
 *     urcu-wfcqueue    wait-free push. The consumer frees the node at once. Many consumers pop under
 *                      the queue's lock; a single one, in "-single", without
 *     urcu-lfqueue     lock-free. Push and pop are in a read-side section; a node is freed by
 *                      call_rcu, whose thread runs concurrently. A run ends when it has caught up
 */
#define _LGPL_SOURCE /* NOLINT(bugprone-reserved-identifier): urcu's name */
#include <urcu.h>
#include <urcu/rculfqueue.h>
#include <urcu/wfcqueue.h>

#include "../queue_subject.h"

/* ---- wfcqueue ---- */

struct wfc {
    _Alignas(QUEUE_LINE) struct cds_wfcq_head head;
    _Alignas(QUEUE_LINE) struct cds_wfcq_tail tail;
};

struct wfc_node {
    struct cds_wfcq_node node;
    uint64_t value;
};

static void *wfc_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct wfc *wfc = queue_allocate(sizeof *wfc);
    if (wfc != NULL)
        cds_wfcq_init(&wfc->head, &wfc->tail);
    return wfc;
}

static void wfc_destroy(void *queue)
{
    struct wfc *wfc = queue;
    cds_wfcq_destroy(&wfc->head, &wfc->tail);
    free(wfc);
}

static inline bool wfc_push_node(struct wfc *wfc, uint64_t value)
{
    struct wfc_node *node = malloc(sizeof *node);
    if (node == NULL)
        return false;
    cds_wfcq_node_init(&node->node);
    node->value = value;
    cds_wfcq_enqueue(&wfc->head, &wfc->tail, &node->node);
    return true;
}

static inline bool wfc_take_node(struct cds_wfcq_node *popped, uint64_t *to)
{
    if (popped == NULL)
        return false;
    struct wfc_node *node = caa_container_of(popped, struct wfc_node, node);
    *to = node->value;
    free(node);
    return true;
}

QUEUE_POINTER_HANDLE(wfc, struct wfc)

static inline bool wfc_push(wfc_handle *handle, uint64_t value)
{
    return wfc_push_node(*handle, value);
}

static inline bool wfc_pop(wfc_handle *handle, uint64_t *to)
{
    return wfc_take_node(cds_wfcq_dequeue_blocking(&(*handle)->head, &(*handle)->tail), to);
}

#define QUEUE wfc
#define QUEUE_IN_ONES
#include "../queue_loops.h"

QUEUE_POINTER_HANDLE(wfc_single, struct wfc)

static inline bool wfc_single_push(wfc_single_handle *handle, uint64_t value)
{
    return wfc_push_node(*handle, value);
}

static inline bool wfc_single_pop(wfc_single_handle *handle, uint64_t *to)
{
    return wfc_take_node(__cds_wfcq_dequeue_blocking(&(*handle)->head, &(*handle)->tail), to);
}

#define QUEUE wfc_single
#define QUEUE_IN_ONES
#include "../queue_loops.h"

/* ---- lfqueue ---- */

struct lfq_node {
    struct cds_lfq_node_rcu node;
    struct rcu_head rcu;
    uint64_t value;
};

static void *lfq_create(unsigned producers, unsigned consumers)
{
    (void)producers, (void)consumers;
    struct cds_lfq_queue_rcu *queue = queue_allocate(sizeof *queue);
    if (queue != NULL)
        cds_lfq_init_rcu(queue, call_rcu);
    return queue;
}

static void lfq_destroy(void *queue)
{
    cds_lfq_destroy_rcu(queue);
    rcu_barrier();
    free(queue);
}

typedef struct cds_lfq_queue_rcu *lfq_handle;

static void lfq_enter(lfq_handle *handle, void *queue, enum queue_role role)
{
    (void)role;
    *handle = queue;
    rcu_register_thread();
}

static void lfq_leave(lfq_handle *handle)
{
    (void)handle;
    rcu_unregister_thread();
}

static inline bool lfq_push(lfq_handle *handle, uint64_t value)
{
    struct lfq_node *node = malloc(sizeof *node);
    if (node == NULL)
        return false;
    cds_lfq_node_init_rcu(&node->node);
    node->value = value;
    rcu_read_lock();
    cds_lfq_enqueue_rcu(*handle, &node->node);
    rcu_read_unlock();
    return true;
}

static void lfq_free(struct rcu_head *rcu)
{
    free(caa_container_of(rcu, struct lfq_node, rcu));
}

static inline bool lfq_pop(lfq_handle *handle, uint64_t *to)
{
    rcu_read_lock();
    struct cds_lfq_node_rcu *popped = cds_lfq_dequeue_rcu(*handle);
    rcu_read_unlock();
    if (popped == NULL)
        return false;
    struct lfq_node *node = caa_container_of(popped, struct lfq_node, node);
    *to = node->value;
    call_rcu(&node->rcu, lfq_free);
    return true;
}

#define QUEUE lfq
#define QUEUE_IN_ONES
#include "../queue_loops.h"

const struct queue_subject queues_urcu[] = {
    QUEUE_SUBJECT("urcu-wfcqueue-single", QUEUE_MPSC_UNBOUNDED, wfc, wfc_single),
    QUEUE_SUBJECT("urcu-wfcqueue", QUEUE_MPMC_UNBOUNDED, wfc, wfc),
    QUEUE_SUBJECT("urcu-lfqueue", QUEUE_MPMC_UNBOUNDED, lfq, lfq),
    {0},
};
