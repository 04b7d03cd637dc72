/*
 * Seeded bugs: memory that is reused or freed while another thread still holds a pointer to it.
 */
#include "seeded.h"

typedef struct node {
    bide_atomic(struct node *) next;
    int value;
} node;

enum { NODES = 2, USERS = 2 };

typedef struct state {
    /* the stack of recycled nodes, by number: 0 is none; the number of changes in the upper half */
    bide_atomic(uint64_t) top;
    bide_atomic(uint32_t) below[NODES + 1];
    uint32_t taken[USERS];

    /* the stack, and the queue of allocated nodes */
    bide_atomic(node *) head, tail;
    bide_atomic(
        node *) hazards[USERS]; /* the objects that each thread holds; no thread frees them */
    node *left[USERS];          /* objects that a thread held */
} state;

#define SCENARIO(id, text, found, ...)      \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .expected = BIDE_CHECK_##found, __VA_ARGS__}

/* ---- ABA: a stack whose nodes are reused ---- */

static uint64_t changed(uint64_t top, uint32_t number, bool is_counted)
{
    return (is_counted ? (top >> 32) + 1 : 0) << 32 | number;
}

static void push_number(state *s, uint32_t number, bool is_counted)
{
    uint64_t top = bide_atomic_load(&s->top, relaxed);
    do
        bide_atomic_store(&s->below[number], (uint32_t)top, relaxed);
    while (!bide_atomic_compare_exchange(&s->top, &top, changed(top, number, is_counted), release,
                                         relaxed));
}

static uint32_t pop_number(state *s, bool is_counted)
{
    uint64_t top = bide_atomic_load(&s->top, acquire);
    uint32_t below;
    do {
        if ((uint32_t)top == 0)
            return 0;
        below = bide_atomic_load(&s->below[(uint32_t)top], relaxed);
    } while (!bide_atomic_compare_exchange(&s->top, &top, changed(top, below, is_counted), acquire,
                                           acquire));
    return (uint32_t)top;
}

static void stack_numbers(void *p)
{
    push_number(p, 2, false);
    push_number(p, 1, false);
}

static void pop_one(void *p, bool is_counted)
{
    state *s = p;
    s->taken[0] = pop_number(s, is_counted);
}

/* Takes two nodes, keeps the second, and reuses the first: from a free list of one. */
static void pop_two_and_recycle(void *p, bool is_counted)
{
    state *s = p;
    uint32_t free_list = pop_number(s, is_counted);
    s->taken[1] = pop_number(s, is_counted);
    if (free_list != 0)
        push_number(s, free_list, is_counted);
}

/* Each node is in one place. */
static void count_nodes(void *p)
{
    state *s = p;
    unsigned seen[NODES + 1] = {0};
    for (unsigned i = 0; i < USERS; i++)
        seen[s->taken[i]]++;
    for (uint32_t number; (number = pop_number(s, false)) != 0;)
        seen[number]++;
    bide_check_assert(seen[1] == 1);
    bide_check_assert(seen[2] == 1);
}

static void pop_one_bare(void *p)
{
    pop_one(p, false);
}

static void recycle_bare(void *p)
{
    pop_two_and_recycle(p, false);
}

static void pop_one_counted(void *p)
{
    pop_one(p, true);
}

static void recycle_counted(void *p)
{
    pop_two_and_recycle(p, true);
}

SCENARIO(aba_bug, "stack_with_aba", ASSERTION, .setup = stack_numbers,
         .threads = {pop_one_bare, recycle_bare}, .finish = count_nodes);
SCENARIO(aba_mended, "stack_with_counted_head", NOTHING, .setup = stack_numbers,
         .threads = {pop_one_counted, recycle_counted}, .finish = count_nodes);

/* ---- Hazard pointers, reduced to what is needed ---- */

/*
 * Returns the node that `from` points to, which no thread frees until the hazard points elsewhere.
 */
static node *hold(state *s, unsigned self, bide_atomic(node *) * from)
{
    node *held = bide_atomic_load(from, relaxed);
    for (;;) {
        /*
         * seq_cst: either this store is seen by a thread that scans before it frees, or that
         * thread's earlier changes are seen here.
         */
        bide_atomic_store(&s->hazards[self], held, seq_cst);
        node *again = bide_atomic_load(from, seq_cst);
        if (again == held)
            return held;
        held = again;
    }
}

static void retire(state *s, unsigned self, node *n)
{
    bide_atomic_store(&s->hazards[self], NULL, release);
    if (bide_atomic_load(&s->hazards[1 - self], seq_cst) == n)
        s->left[self] = n;
    else
        bide_check_free(n);
}

static void free_left(state *s)
{
    for (unsigned i = 0; i < USERS; i++)
        bide_check_free(s->left[i]);
}

static node *new_node(int value)
{
    node *n = bide_check_alloc(sizeof *n);
    bide_atomic_init(&n->next, NULL);
    n->value = value;
    return n;
}

/* ---- A stack whose nodes are freed ---- */

static void stack_two(void *p)
{
    state *s = p;
    node *below = new_node(2), *top = new_node(1);
    bide_atomic_store(&top->next, below, relaxed);
    bide_atomic_store(&s->head, top, relaxed);
}

static void pop_and_free(void *p)
{
    state *s = p;
    node *top = bide_atomic_load(&s->head, acquire);
    while (!bide_atomic_compare_exchange(&s->head, &top, bide_atomic_load(&top->next, relaxed),
                                         acq_rel, acquire)) {
    }
    bide_check_free(top);
}

static void pop_held(state *s, unsigned self)
{
    for (;;) {
        node *top = hold(s, self, &s->head);
        node *expected = top;
        if (bide_atomic_compare_exchange(&s->head, &expected, bide_atomic_load(&top->next, relaxed),
                                         seq_cst, relaxed)) {
            retire(s, self, top);
            return;
        }
    }
}

static void pop_held_0(void *p)
{
    pop_held(p, 0);
}

static void pop_held_1(void *p)
{
    pop_held(p, 1);
}

static void stack_is_empty(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->head, relaxed) == NULL);
    free_left(p);
}

SCENARIO(stack_bug, "stack_that_frees", USE_AFTER_FREE, .setup = stack_two,
         .threads = {pop_and_free, pop_and_free}, .finish = stack_is_empty);
SCENARIO(stack_mended, "stack_with_hazard_pointers", NOTHING, .setup = stack_two,
         .threads = {pop_held_0, pop_held_1}, .finish = stack_is_empty);

/* ---- The queue of Michael and Scott ---- */

static void begin_queue(void *p)
{
    state *s = p;
    node *dummy = new_node(0);
    bide_atomic_store(&s->head, dummy, relaxed);
    bide_atomic_store(&s->tail, dummy, relaxed);
}

/* Links `n` behind `last`, which was the tail; false if it has another successor. */
static bool link_behind(state *s, node *last, node *n)
{
    node *next = NULL;
    bool linked = bide_atomic_compare_exchange(&last->next, &next, n, acq_rel, acquire);
    node *expected = last;
    bide_atomic_compare_exchange(&s->tail, &expected, linked ? n : next, seq_cst, acquire);
    return linked;
}

static void enqueue(void *p)
{
    state *s = p;
    node *n = new_node(1);
    while (!link_behind(s, bide_atomic_load(&s->tail, acquire), n)) {
    }
}

/* The tail is moved first, so that it never points to a freed node. */
static void dequeue(void *p)
{
    state *s = p;
    node *first = bide_atomic_load(&s->head, acquire), *next, *expected;
    do {
        next = bide_atomic_load(&first->next, acquire);
        if (next == NULL)
            return;
        expected = first;
        bide_atomic_compare_exchange(&s->tail, &expected, next, acq_rel, relaxed);
    } while (!bide_atomic_compare_exchange(&s->head, &first, next, acq_rel, acquire));
    bide_check_assert(next->value == 1);
    bide_check_free(first);
}

static void enqueue_held(state *s, unsigned self)
{
    node *n = new_node(1);
    while (!link_behind(s, hold(s, self, &s->tail), n)) {
    }
    bide_atomic_store(&s->hazards[self], NULL, release);
}

static void dequeue_held(state *s, unsigned self)
{
    for (;;) {
        node *first = hold(s, self, &s->head);
        node *next = bide_atomic_load(&first->next, acquire);
        if (next == NULL) {
            bide_atomic_store(&s->hazards[self], NULL, release);
            return;
        }
        node *expected = first;
        /*
         * If another thread did that, acquire: its earlier hazards are then seen by a thread that
         * scans before it frees.
         */
        bide_atomic_compare_exchange(&s->tail, &expected, next, seq_cst, acquire);
        /* The value before the head: the node after it may be freed by another thread. */
        int value = next->value;
        expected = first;
        if (bide_atomic_compare_exchange(&s->head, &expected, next, seq_cst, relaxed)) {
            bide_check_assert(value == 1);
            retire(s, self, first);
            return;
        }
    }
}

static void enqueue_held_0(void *p)
{
    enqueue_held(p, 0);
}

static void pass_through(void *p)
{
    enqueue(p);
    dequeue(p);
}

static void pass_through_held_1(void *p)
{
    enqueue_held(p, 1);
    dequeue_held(p, 1);
}

static void free_queue(void *p)
{
    state *s = p;
    for (node *n = bide_atomic_load(&s->head, relaxed), *next; n != NULL; n = next) {
        next = bide_atomic_load(&n->next, relaxed);
        bide_check_free(n);
    }
    free_left(s);
}

SCENARIO(queue_bug, "queue_that_frees", USE_AFTER_FREE, .setup = begin_queue,
         .threads = {enqueue, pass_through}, .finish = free_queue);
SCENARIO(queue_mended, "queue_with_hazard_pointers", NOTHING, .setup = begin_queue,
         .threads = {enqueue_held_0, pass_through_held_1}, .finish = free_queue);

const bide_check_scenario *const seeded_reclaims[] = {
    &aba_bug, &aba_mended, &stack_bug, &stack_mended, &queue_bug, &queue_mended, NULL};
