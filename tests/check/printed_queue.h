/*
 * The queues of a book, listings 7.13 to 7.21, in C, with the memory orders of the listings. The scenarios of
 * seeded_queues.c find their mistakes, and docs/seed-queues.md describes them. Each repair is a flag, so that a scenario
 * is an algorithm with some of the repairs.
 *
 * The counted queue is a list of nodes that begins with the head and ends with the tail, a node without data. A push
 * stores the data in the tail, and links a new node behind it.
 *
 * The references to a node are counted in two parts. `head` and `tail` hold, beside a node, an external count: how often
 * the node was reached through them, beginning at 1. The node itself has the internal count, from which each returned
 * reference is subtracted, and the number of external counts that still exist: of the tail, and of the head or the
 * previous node. An external count that is given up is added to the internal count. If no external count is left and the
 * internal count is 0, there are no references.
 *
 * The book's counted pointer is two words. Here it is one: the number of the node in the lower half, the external count
 * in the upper half; 0 is no node.
 */
#ifndef BIDE_TESTS_CHECK_PRINTED_QUEUE_H
#define BIDE_TESTS_CHECK_PRINTED_QUEUE_H

#include "bide/check.h"

/* The listings, and the repairs. */
enum {
    FIRST_PUSH = 1 << 0, /* 7.14: the tail is not counted */
    HELPS = 1 << 1,      /* 7.20 and 7.21, not 7.15 and 7.16 */

    RELEASES_IF_EMPTY = 1 << 2, /* pop returns its reference if the queue is empty */
    COUNTS_WITH_RELEASE =
        1 << 3,           /* so that a free comes after the other threads' accesses to the node */
    LEAVES_DATA = 1 << 4, /* the place of the popped data, so that no thread finds room there */
    POPS_ON = 1 << 5,     /* if the head still points to its node, whatever its count */
    COUNTS_BACK = 1 << 6, /* a reference returns into an existing external count */
    RELEASES_BEFORE_NEW = 1 << 7, /* no reference is held during an allocation */
    IGNORES_PADDING = 1 << 8,     /* the padding between the count and the pointer */
    HAS_DESTRUCTOR = 1 << 9,

    ALL_REPAIRS = RELEASES_IF_EMPTY | COUNTS_WITH_RELEASE | LEAVES_DATA | POPS_ON | COUNTS_BACK |
                  RELEASES_BEFORE_NEW | IGNORES_PADDING | HAS_DESTRUCTOR,

    /* Not in the book: parameters of a scenario. */
    RECYCLES = 1 << 10,  /* the next allocation takes a freed node */
    IS_SIGNED = 1 << 11, /* the external count must not overflow */
};

enum {
    PRINTED_NODES_EACH = 6, /* one more than each thread makes, the setup included */
    PRINTED_NODES = PRINTED_NODES_EACH * (BIDE_CHECK_THREADS + 1),
    PRINTED_VALUES = 4,
    PRINTED_PADDING = 1 << 16, /* a bit of a counted pointer without a meaning */
};

typedef struct printed_node {
    bide_atomic(int *) data;
    bide_atomic(uint32_t)
        count; /* internal count in the lower 30 bits; the number of external counts in the others */
    bide_atomic(uint64_t) next;
    uint64_t plain_next; /* the same before 7.20, which made it atomic */
} printed_node;

typedef struct printed_queue {
    bide_atomic(uint64_t) head, tail;

    unsigned repairs;
    uint64_t external_mask; /* of the external count; 0: 32 bits */
    uint32_t internal_mask; /* of the internal one; 0: 30 bits */

    printed_node *nodes[PRINTED_NODES]; /* by number */
    unsigned made[BIDE_CHECK_THREADS + 1];
    unsigned nodes_left; /* 0: any number; otherwise one more than the limit on allocations */
    bide_atomic(uint32_t) spare; /* the next node to reuse */

    unsigned char taken[BIDE_CHECK_THREADS + 1][PRINTED_VALUES]; /* how often, by each thread */
} printed_queue;

/* The state of a push. */
typedef struct printed_push {
    int *data;
    uint64_t new_next, old_tail;
} printed_push;

/* ---- Counted pointers ---- */

static inline uint64_t printed_counted(uint32_t number, uint64_t count)
{
    return count << 32 | number;
}

static inline uint32_t printed_number(uint64_t counted)
{
    return (uint32_t)counted & (PRINTED_PADDING - 1);
}

static inline printed_node *printed_at(printed_queue *q, uint64_t counted)
{
    bide_check_assert(printed_number(counted) != 0);
    return q->nodes[printed_number(counted)];
}

/* ---- Nodes ---- */

/* A number, or 0: there is no memory. */
static inline uint32_t printed_new_node(printed_queue *q)
{
    if (q->nodes_left != 0 && --q->nodes_left == 0)
        return 0;
    uint32_t number = 0;
    if ((q->repairs & RECYCLES) != 0)
        number = bide_atomic_exchange(&q->spare, 0, acq_rel);
    if (number == 0) {
        unsigned thread = bide_check_thread();
        unsigned made = ++q->made[thread];
        bide_check_assert(made < PRINTED_NODES_EACH);
        number = thread * PRINTED_NODES_EACH + made;
        q->nodes[number] = bide_check_alloc(sizeof(printed_node));
    }
    printed_node *n = q->nodes[number];
    uint32_t external_counts = (q->repairs & FIRST_PUSH) != 0 ? 1 : 2;
    bide_atomic_init(&n->data, NULL);
    bide_atomic_init(&n->count, external_counts << 30);
    bide_atomic_init(&n->next, (q->repairs & IGNORES_PADDING) != 0 ? 0 : PRINTED_PADDING);
    n->plain_next = 0;
    return number;
}

static inline void printed_delete(printed_queue *q, uint64_t counted)
{
    uint32_t number = printed_number(counted);
    if ((q->repairs & RECYCLES) != 0)
        number = bide_atomic_exchange(&q->spare, number, acq_rel);
    if (number != 0)
        bide_check_free(q->nodes[number]);
}

/*
 * Adds to the internal count, subtracts from the number of external counts, and frees the node if
 * nothing is left.
 */
static inline void printed_count(printed_queue *q, uint64_t counted, uint32_t internal,
                                 uint32_t external_counts)
{
    printed_node *n = printed_at(q, counted);
    const uint32_t mask = (UINT32_C(1) << 30) - 1,
                   used = q->internal_mask != 0 ? q->internal_mask : mask;
    uint32_t old_count = bide_atomic_load(&n->count, relaxed), new_count;
    for (;;) {
        new_count =
            ((old_count + internal) & used) | ((old_count & ~mask) - (external_counts << 30));
        if ((q->repairs & COUNTS_WITH_RELEASE) != 0
                ? bide_atomic_compare_exchange(&n->count, &old_count, new_count, acq_rel, relaxed)
                : bide_atomic_compare_exchange(&n->count, &old_count, new_count, acquire, relaxed))
            break;
        bide_atomic_retry();
    }
    if (new_count == 0)
        printed_delete(q, counted);
}

/* 7.17 */
static inline void printed_release_ref(printed_queue *q, uint64_t counted)
{
    printed_count(q, counted, (uint32_t)-1, 0);
}

/* 7.18; the same as increase_head_count in 7.12. */
static inline void printed_increase(printed_queue *q, bide_atomic(uint64_t) * counter,
                                    uint64_t *old_counter)
{
    const uint64_t mask = q->external_mask != 0 ? q->external_mask : UINT32_MAX;
    uint64_t new_counter;
    for (unsigned failed = 0;; failed++) {
        uint64_t count = *old_counter >> 32;
        if ((q->repairs & IS_SIGNED) != 0)
            bide_check_assert(count < mask);
        new_counter = printed_counted((uint32_t)*old_counter, (count + 1) & mask);
        if (bide_atomic_compare_exchange(counter, old_counter, new_counter, acquire, relaxed))
            break;
        if (failed != 0)
            bide_atomic_retry();
    }
    *old_counter = new_counter;
}

/* 7.19; with one external count a node it is the end of pop in 7.11. */
static inline void printed_free_external(printed_queue *q, uint64_t old_counter)
{
    printed_count(q, old_counter, (uint32_t)(old_counter >> 32) - 2, 1);
}

/*
 * Returns a reference that came from `counter`. If that still points to the node, the count goes
 * back there: it cannot have pointed elsewhere in between, because the node is held. release: for
 * the thread that takes the count from there and adds it.
 */
static inline void printed_release(printed_queue *q, bide_atomic(uint64_t) * counter,
                                     uint64_t held)
{
    if ((q->repairs & COUNTS_BACK) != 0) {
        uint64_t old_counter = bide_atomic_load(counter, relaxed);
        while (printed_number(old_counter) == printed_number(held)) {
            uint64_t less = old_counter - printed_counted(0, 1);
            if (bide_atomic_compare_exchange(counter, &old_counter, less, release, relaxed))
                return;
            bide_atomic_retry();
        }
    }
    printed_release_ref(q, held);
}

/* ---- pop: 7.16, or 7.20 ---- */

/* A round of pop, with the reference in *old_head; false if another round is needed. */
static inline bool printed_pop_round(printed_queue *q, uint64_t *old_head, int **data)
{
    const uint64_t held = *old_head;
    printed_node *n = printed_at(q, held);
    if (printed_number(held) == printed_number(bide_atomic_load(&q->tail, seq_cst))) {
        if ((q->repairs & (HELPS | RELEASES_IF_EMPTY)) != HELPS)
            printed_release(q, &q->head, held);
        *data = NULL;
        return true;
    }
    uint64_t next = (q->repairs & HELPS) != 0 ? bide_atomic_load(&n->next, seq_cst) : n->plain_next;
    do {
        if (bide_atomic_compare_exchange(&q->head, old_head, next, seq_cst, seq_cst)) {
            *data = (q->repairs & LEAVES_DATA) != 0 ? bide_atomic_load(&n->data, seq_cst)
                                                    : bide_atomic_exchange(&n->data, NULL, seq_cst);
            printed_free_external(q, *old_head);
            return true;
        }
    } while ((q->repairs & POPS_ON) != 0 && printed_number(*old_head) == printed_number(held));
    printed_release(q, &q->head, held);
    return false;
}

/* Returns the popped data, which the caller owns; or NULL. */
static inline int *printed_pop(printed_queue *q)
{
    int *data;
    uint64_t old_head = bide_atomic_load(&q->head, relaxed);
    do
        printed_increase(q, &q->head, &old_head);
    while (!printed_pop_round(q, &old_head, &data));
    return data;
}

/* ---- push: 7.14, 7.15 or 7.21 ---- */

/* A push up to the read of the tail; false without memory. */
static inline bool printed_push_look(printed_queue *q, printed_push *p, int value)
{
    p->data = bide_check_alloc(sizeof *p->data);
    *p->data = value;
    uint32_t number = printed_new_node(q);
    if (number == 0) {
        bide_check_free(p->data);
        return false;
    }
    p->new_next = printed_counted(number, 1);
    p->old_tail = bide_atomic_load(&q->tail, seq_cst);
    return true;
}

/* The next step, which is not in 7.14: the reference to the tail. */
static inline void printed_push_refer(printed_queue *q, printed_push *p)
{
    if ((q->repairs & FIRST_PUSH) == 0)
        printed_increase(q, &q->tail, &p->old_tail);
}

/* The next step: true if the data got its place. */
static inline bool printed_push_claim(printed_queue *q, printed_push *p)
{
    int *old_data = NULL;
    return bide_atomic_compare_exchange(&printed_at(q, p->old_tail)->data, &old_data, p->data,
                                        seq_cst, seq_cst);
}

/* 7.21 */
static inline void printed_set_new_tail(printed_queue *q, uint64_t *old_tail, uint64_t new_tail)
{
    const uint64_t current = *old_tail;
    while (!bide_atomic_compare_exchange_weak(&q->tail, old_tail, new_tail, seq_cst, seq_cst) &&
           printed_number(*old_tail) == printed_number(current)) {
    }
    if (printed_number(*old_tail) == printed_number(current))
        printed_free_external(q, *old_tail);
    else
        printed_release_ref(q, current);
}

/* The step after the data got its place. */
static inline void printed_push_end(printed_queue *q, printed_push *p)
{
    printed_node *n = printed_at(q, p->old_tail);
    if ((q->repairs & HELPS) != 0) {
        uint64_t old_next = 0;
        if (!bide_atomic_compare_exchange(&n->next, &old_next, p->new_next, seq_cst, seq_cst)) {
            printed_delete(q, p->new_next);
            p->new_next = old_next;
        }
        printed_set_new_tail(q, &p->old_tail, p->new_next);
    } else {
        n->plain_next = p->new_next;
        if ((q->repairs & FIRST_PUSH) != 0)
            bide_atomic_store(&q->tail, p->new_next, seq_cst);
        else
            printed_free_external(q, bide_atomic_exchange(&q->tail, p->new_next, seq_cst));
    }
}

/*
 * The step if another thread's data is present, up to the reference to the new tail; false without
 * memory.
 */
static inline bool printed_push_again(printed_queue *q, printed_push *p)
{
    if ((q->repairs & FIRST_PUSH) != 0) {
        bide_cpu_relax();
        p->old_tail = bide_atomic_load(&q->tail, seq_cst);
        return true;
    }
    if ((q->repairs & HELPS) == 0) {
        printed_release(q, &q->tail, p->old_tail);
    } else {
        bool releases_first = (q->repairs & RELEASES_BEFORE_NEW) != 0;
        uint64_t old_next = 0;
        bool linked = bide_atomic_compare_exchange(&printed_at(q, p->old_tail)->next, &old_next,
                                                   p->new_next, seq_cst, seq_cst);
        if (linked)
            old_next = p->new_next;
        if (releases_first)
            printed_set_new_tail(q, &p->old_tail, old_next);
        if (linked) {
            uint32_t number = printed_new_node(q);
            if (number == 0) { /* an exception, which frees the unique_ptr's object */
                bide_check_free(p->data);
                return false;
            }
            p->new_next = printed_counted(number, 1);
        }
        if (!releases_first)
            printed_set_new_tail(q, &p->old_tail, old_next);
    }
    printed_push_refer(q, p);
    return true;
}

/* The rest of a push that has begun; false without memory. */
static inline bool printed_push_go_on(printed_queue *q, printed_push *p)
{
    while (!printed_push_claim(q, p)) {
        if (!printed_push_again(q, p))
            return false;
    }
    printed_push_end(q, p);
    return true;
}

static inline bool printed_push_value(printed_queue *q, int value)
{
    printed_push p;
    if (!printed_push_look(q, &p, value))
        return false;
    printed_push_refer(q, &p);
    return printed_push_go_on(q, &p);
}

/* ---- Construction and destruction: the book has no constructor and no destructor ---- */

static inline void printed_construct(printed_queue *q, unsigned repairs)
{
    q->repairs = repairs;
    uint64_t first = printed_counted(printed_new_node(q), 1);
    bide_atomic_init(&q->head, first);
    bide_atomic_init(&q->tail, first);
}

/* Records the popped value, and frees it; false if the queue was empty. */
static inline bool printed_taken(printed_queue *q, int *data)
{
    if (data == NULL)
        return false;
    q->taken[bide_check_thread()][*data]++;
    bide_check_free(data);
    return true;
}

static inline bool printed_take(printed_queue *q)
{
    return printed_taken(q, printed_pop(q));
}

/* Pops the rest; then the last node is freed. */
static inline void printed_destroy(printed_queue *q)
{
    if ((q->repairs & HAS_DESTRUCTOR) == 0)
        return;
    while (printed_take(q)) {
    }
    bide_check_free(printed_at(q, bide_atomic_load(&q->head, relaxed)));
    uint32_t spare = bide_atomic_load(&q->spare, relaxed);
    if (spare != 0)
        bide_check_free(q->nodes[spare]);
}

/* How often a value was popped, by all threads. */
static inline unsigned printed_times_taken(const printed_queue *q, int value)
{
    unsigned times = 0;
    for (unsigned thread = 0; thread <= BIDE_CHECK_THREADS; thread++)
        times += q->taken[thread][value];
    return times;
}

#endif
