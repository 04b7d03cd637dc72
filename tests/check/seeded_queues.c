/*
 * Seeded bugs: the queues of a book, as printed (see printed_queue.h). Each bug is an algorithm
 * with all repairs but one; its twin has all of them. docs/seed-queues.md describes the executions.
 */
#include "printed_queue.h"
#include "seeded.h"

typedef struct state {
    printed_queue queue;
    printed_push delayed; /* a push that has begun before the threads */
} state;

#define SCENARIO(id, text, found, ...)      \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .expected = BIDE_CHECK_##found, __VA_ARGS__}

/* A setup that begins with a queue that has these repairs. */
#define SETUP(name, repairs, ...)              \
    static void name(void *p)                  \
    {                                          \
        state *s = p;                          \
        printed_construct(&s->queue, repairs); \
        __VA_ARGS__;                           \
    }

/* The earlier queue, 7.15 and 7.16, and the later one, 7.20 and 7.21, with all repairs. */
enum { COUNTED = ALL_REPAIRS, HELPING = HELPS | ALL_REPAIRS };

/* ---- The operations of the threads ---- */

static void push_1(void *p)
{
    bide_check_assert(printed_push_value(p, 1));
}

static void push_2(void *p)
{
    bide_check_assert(printed_push_value(p, 2));
}

static void pop(void *p)
{
    printed_take(p);
}

static void push_2_and_pop(void *p)
{
    push_2(p);
    pop(p);
}

/* Begins to push 1: has read the tail, and holds a reference to it unless that step is skipped. */
static void delay(state *s)
{
    bide_check_assert(printed_push_look(&s->queue, &s->delayed, 1));
    printed_push_refer(&s->queue, &s->delayed);
}

static void go_on(void *p)
{
    state *s = p;
    bide_check_assert(printed_push_go_on(&s->queue, &s->delayed));
}

/* ---- Final checks ---- */

static void finish(void *p)
{
    printed_destroy(p);
}

static void finish_1(void *p)
{
    finish(p);
    bide_check_assert(printed_times_taken(p, 1) == 1);
}

static void finish_1_and_2(void *p)
{
    finish_1(p);
    bide_check_assert(printed_times_taken(p, 2) == 1);
}

/* ---- Initial queues ---- */

SETUP(helping, HELPING, (void)s)
SETUP(two, HELPING, push_1(s), push_2(s))

/*
 * ---- 7.13: one producer, one consumer. It is correct as printed, and also with acquire and
 * release ----
 */

typedef struct linked_node {
    int data;
    struct linked_node *next;
} linked_node;

typedef struct linked_queue {
    bide_atomic(linked_node *) head, tail;
} linked_queue;

static void linked_construct(void *p)
{
    linked_queue *q = p;
    linked_node *first = bide_check_alloc(sizeof *first);
    first->next = NULL;
    bide_atomic_init(&q->head, first);
    bide_atomic_init(&q->tail, first);
}

static void linked_destroy(void *p)
{
    linked_queue *q = p;
    for (linked_node *n = bide_atomic_load(&q->head, relaxed), *next; n != NULL; n = next) {
        next = n->next;
        bide_check_free(n);
    }
}

#define LINKED(name, push_order, pop_order)                              \
    static void name##_push(void *p)                                     \
    {                                                                    \
        linked_queue *q = p;                                             \
        for (int i = 1; i <= 2; i++) {                                   \
            linked_node *new_tail = bide_check_alloc(sizeof *new_tail);  \
            new_tail->next = NULL;                                       \
            linked_node *old_tail = bide_atomic_load(&q->tail, relaxed); \
            old_tail->data = i;                                          \
            old_tail->next = new_tail;                                   \
            bide_atomic_store(&q->tail, new_tail, push_order);           \
        }                                                                \
    }                                                                    \
    static void name##_pop(void *p)                                      \
    {                                                                    \
        linked_queue *q = p;                                             \
        for (int expected = 1, i = 0; i < 3; i++) {                      \
            linked_node *old_head = bide_atomic_load(&q->head, relaxed); \
            if (old_head == bide_atomic_load(&q->tail, pop_order))       \
                continue;                                                \
            bide_atomic_store(&q->head, old_head->next, relaxed);        \
            bide_check_assert(old_head->data == expected);               \
            expected++;                                                  \
            bide_check_free(old_head);                                   \
        }                                                                \
    }

LINKED(linked_relaxed, relaxed, acquire)
LINKED(linked_unseen, release, relaxed)
LINKED(linked_ordered, release, acquire)

#define LINKED_SCENARIO(id, text, found, ...) \
    SCENARIO(id, text, found, .setup = linked_construct, .finish = linked_destroy, __VA_ARGS__)

LINKED_SCENARIO(linked_store_bug, "linked_queue_with_relaxed_store", RACE,
                .threads = {linked_relaxed_push, linked_relaxed_pop});
LINKED_SCENARIO(linked_look_bug, "linked_queue_with_relaxed_look", RACE,
                .threads = {linked_unseen_push, linked_unseen_pop});
LINKED_SCENARIO(linked_producers_bug, "linked_queue_with_two_producers", RACE,
                .threads = {linked_ordered_push, linked_ordered_push});
LINKED_SCENARIO(linked_mended, "linked_queue_with_acquire_and_release", NOTHING,
                .threads = {linked_ordered_push, linked_ordered_pop});

/* ---- 7.14: the tail is read, and then its node ---- */

SETUP(delayed_first, COUNTED | FIRST_PUSH, delay(s), push_2(s))
SETUP(delayed_counted, COUNTED, delay(s), push_2(s))

SCENARIO(first_bug, "delayed_push_without_a_reference", USE_AFTER_FREE, .setup = delayed_first,
         .threads = {go_on, pop}, .finish = finish_1_and_2);
SCENARIO(first_mended, "delayed_push_with_a_reference", NOTHING, .setup = delayed_counted,
         .threads = {go_on, pop}, .finish = finish_1_and_2);

/* ---- 7.16 and 7.20: a delayed thread finds room in a node that is freed ---- */

SETUP(delayed_clears, COUNTED & ~LEAVES_DATA, delay(s), push_2(s))
SETUP(helping_clears, HELPING & ~LEAVES_DATA, (void)s)

SCENARIO(cleared_bug, "delayed_push_into_a_node_that_was_cleared", ASSERTION,
         .setup = delayed_clears, .threads = {go_on, pop}, .finish = finish_1_and_2);
SCENARIO(cleared_mended, "delayed_push_into_a_node_that_was_left", NOTHING,
         .setup = delayed_counted, .threads = {go_on, pop}, .finish = finish_1_and_2);
SCENARIO(lost_bug, "helping_queue_that_clears_the_data", ASSERTION, .setup = helping_clears,
         .threads = {push_1, push_2_and_pop}, .finish = finish_1_and_2);
SCENARIO(lost_mended, "helping_queue_that_leaves_the_data", NOTHING, .setup = helping,
         .threads = {push_1, push_2_and_pop}, .finish = finish_1_and_2);

/* ---- A node that is reused ---- */

/* The tail is what was read, node and count, but has changed in between. */
static void look_and_recycle(void *p)
{
    state *s = p;
    printed_construct(&s->queue, HELPING | RECYCLES);
    bide_check_assert(printed_push_look(&s->queue, &s->delayed, 1));
    push_2_and_pop(s);
    bide_check_assert(printed_push_value(&s->queue, 3));
    bide_check_assert(bide_atomic_load(&s->queue.tail, relaxed) == s->delayed.old_tail);
}

static void refer_and_go_on(void *p)
{
    state *s = p;
    printed_push_refer(&s->queue, &s->delayed);
    go_on(p);
}

SCENARIO(recycled, "delayed_push_to_a_node_that_was_recycled", NOTHING, .setup = look_and_recycle,
         .threads = {refer_and_go_on, pop}, .finish = finish_1_and_2);

/* ---- 7.17 and 7.19: counts that only acquire ---- */

SETUP(two_acquire, HELPING & ~COUNTS_WITH_RELEASE, push_1(s), push_2(s))

SCENARIO(count_bug, "two_pops_that_count_without_release", USE_AFTER_FREE, .setup = two_acquire,
         .threads = {pop, pop}, .finish = finish_1_and_2);
SCENARIO(count_mended, "two_pops_that_count_with_release", NOTHING, .setup = two,
         .threads = {pop, pop}, .finish = finish_1_and_2);

/* ---- 7.16 and 7.20: two poppers, neither of which makes progress ---- */

/*
 * One thread plays both, so that there is only this order: each round of one comes directly after
 * the other has changed the head's count, by taking the next reference or returning the last. Two
 * threads may continue like that for ever.
 */
static void pop_in_turns(void *p)
{
    printed_queue *q = p;
    uint64_t held[2];
    int *data;
    bool counts_back = (q->repairs & COUNTS_BACK) != 0, ended[2] = {false, false};
    for (int i = 0; i < 2; i++) {
        held[i] = bide_atomic_load(&q->head, relaxed);
        printed_increase(q, &q->head, &held[i]);
    }
    while (!ended[0] || !ended[1]) {
        for (int i = 0; i < 2; i++) {
            if (ended[i])
                continue;
            ended[i] = printed_pop_round(q, &held[i], &data);
            if (ended[i])
                bide_check_assert(printed_taken(q, data));
            else if (!counts_back)
                printed_increase(q, &q->head, &held[i]);
        }
        for (int i = 0; i < 2; i++) {
            if (!ended[i] && counts_back)
                printed_increase(q, &q->head, &held[i]);
        }
    }
}

SETUP(two_hinder, HELPING & ~(POPS_ON | COUNTS_BACK), push_1(s), push_2(s))
SETUP(two_pop_on, HELPING & ~COUNTS_BACK, push_1(s), push_2(s))
SETUP(two_hinder_back, HELPING & ~POPS_ON, push_1(s), push_2(s))

SCENARIO(hinder_bug, "two_pops_in_turns_that_want_the_same_count", LIVELOCK, .setup = two_hinder,
         .threads = {pop_in_turns}, .finish = finish_1_and_2, .max_steps = 500);
SCENARIO(hinder_mended, "two_pops_in_turns_that_want_the_same_node", NOTHING, .setup = two_pop_on,
         .threads = {pop_in_turns}, .finish = finish_1_and_2, .max_steps = 500);
SCENARIO(hinder_back_bug, "two_pops_in_turns_that_count_back", LIVELOCK, .setup = two_hinder_back,
         .threads = {pop_in_turns}, .finish = finish_1_and_2, .max_steps = 500);
SCENARIO(hinder_back_mended, "two_pops_in_turns_that_count_back_and_want_the_same_node", NOTHING,
         .setup = two, .threads = {pop_in_turns}, .finish = finish_1_and_2, .max_steps = 500);

/* ---- 7.20: pop of an empty queue ---- */

static void pop_push_and_pop(void *p)
{
    pop(p);
    push_1(p);
    pop(p);
}

SETUP(keeps, HELPING & ~RELEASES_IF_EMPTY, (void)s)

SCENARIO(empty_bug, "empty_queue_that_keeps_a_reference", LEAK, .setup = keeps,
         .threads = {pop_push_and_pop}, .finish = finish_1);
SCENARIO(empty_mended, "empty_queue_that_keeps_no_reference", NOTHING, .setup = helping,
         .threads = {pop_push_and_pop}, .finish = finish_1);

/* ---- 7.16: polling an empty queue makes the external count grow; here it has three bits ---- */

static void poll(void *p)
{
    for (int i = 0; i < 8; i++)
        pop(p);
    push_1(p);
    pop(p);
}

#define THREE_BITS 7

SETUP(poll_signed, (HELPING & ~COUNTS_BACK) | IS_SIGNED, s->queue.external_mask = THREE_BITS)
SETUP(poll_narrow, HELPING & ~COUNTS_BACK, s->queue.external_mask = THREE_BITS)
SETUP(poll_alike, HELPING & ~COUNTS_BACK, s->queue.external_mask = THREE_BITS,
      s->queue.internal_mask = THREE_BITS)
SETUP(poll_back, HELPING | IS_SIGNED, s->queue.external_mask = THREE_BITS)

SCENARIO(overflow_bug, "polled_queue_whose_count_overflows", ASSERTION, .setup = poll_signed,
         .threads = {poll}, .finish = finish_1);
SCENARIO(overflow_mended, "polled_queue_that_counts_back", NOTHING, .setup = poll_back,
         .threads = {poll}, .finish = finish_1);
SCENARIO(narrow_bug, "polled_queue_whose_external_count_is_narrower", LEAK, .setup = poll_narrow,
         .threads = {poll}, .finish = finish_1);
SCENARIO(narrow_mended, "polled_queue_whose_counts_wrap_around_alike", NOTHING, .setup = poll_alike,
         .threads = {poll}, .finish = finish_1);

/* ---- 7.15: a thread that is suspended between the data and the new tail ---- */

static void stop_in_push(state *s)
{
    delay(s);
    bide_check_assert(printed_push_claim(&s->queue, &s->delayed));
}

static void finish_stopped(void *p)
{
    state *s = p;
    printed_push_end(&s->queue, &s->delayed);
    finish_1(p);
}

static void finish_stopped_and_2(void *p)
{
    finish_stopped(p);
    bide_check_assert(printed_times_taken(p, 2) == 1);
}

SETUP(stopped_spins, COUNTED, stop_in_push(s))
SETUP(stopped_helps, HELPING, stop_in_push(s))

SCENARIO(stopped_bug, "push_behind_a_stopped_push_that_spins", LIVELOCK, .setup = stopped_spins,
         .threads = {push_2}, .finish = finish_stopped_and_2, .max_steps = 500);
SCENARIO(stopped_mended, "push_behind_a_stopped_push_that_helps", NOTHING, .setup = stopped_helps,
         .threads = {push_2}, .finish = finish_stopped_and_2, .max_steps = 500);

/* ---- 7.21: new throws while a reference is held ---- */

static void push_2_without_memory(void *p)
{
    printed_queue *q = p;
    q->nodes_left = 2; /* its first node, with which it helps the suspended thread */
    bide_check_assert(!printed_push_value(q, 2));
    q->nodes_left = 0;
}

SETUP(throws_keeps, HELPING & ~RELEASES_BEFORE_NEW, stop_in_push(s))

SCENARIO(throws_bug, "push_without_memory_that_keeps_a_reference", LEAK, .setup = throws_keeps,
         .threads = {push_2_without_memory}, .finish = finish_stopped);
SCENARIO(throws_mended, "push_without_memory_that_keeps_no_reference", NOTHING,
         .setup = stopped_helps, .threads = {push_2_without_memory}, .finish = finish_stopped);

/* ---- 7.21: a counted pointer has padding, which a compare-exchange may compare ---- */

static void push_both(void *p)
{
    push_1(p);
    push_2(p);
}

SETUP(padded, HELPING & ~IGNORES_PADDING, (void)s)

SCENARIO(padding_bug, "helping_queue_whose_padding_is_compared", ASSERTION, .setup = padded,
         .threads = {push_both}, .finish = finish_1_and_2);
SCENARIO(padding_mended, "helping_queue_whose_padding_is_not", NOTHING, .setup = helping,
         .threads = {push_both}, .finish = finish_1_and_2);

/* ---- The end: no destructor is printed ---- */

SETUP(undestroyed, HELPING & ~HAS_DESTRUCTOR, (void)s)

SCENARIO(destroy_bug, "queue_with_elements_that_is_left", LEAK, .setup = undestroyed,
         .threads = {push_1}, .finish = finish);
SCENARIO(destroy_mended, "queue_with_elements_that_is_destroyed", NOTHING, .setup = helping,
         .threads = {push_1}, .finish = finish);

/* ---- With all repairs, three threads ---- */

SCENARIO(two_producers, "helping_queue_with_two_producers", NOTHING, .setup = helping,
         .threads = {push_1, push_2, pop}, .finish = finish_1_and_2, .never_spurious = true);
SCENARIO(two_consumers, "helping_queue_with_two_consumers", NOTHING, .setup = helping,
         .threads = {push_1, pop, pop}, .finish = finish_1);

const bide_check_scenario *const seeded_queues[] = {
    &linked_store_bug,   &linked_look_bug, &linked_producers_bug,
    &linked_mended,

    &first_bug,          &first_mended,    &cleared_bug,
    &cleared_mended,     &lost_bug,        &lost_mended,
    &recycled,           &count_bug,       &count_mended,
    &hinder_bug,         &hinder_mended,   &hinder_back_bug,
    &hinder_back_mended, &empty_bug,       &empty_mended,
    &overflow_bug,       &overflow_mended, &narrow_bug,
    &narrow_mended,      &stopped_bug,     &stopped_mended,
    &throws_bug,         &throws_mended,   &padding_bug,
    &padding_mended,     &destroy_bug,     &destroy_mended,
    &two_producers,      &two_consumers,   NULL};
