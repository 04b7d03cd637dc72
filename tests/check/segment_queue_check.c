/*
 * The segment queue, with segments of one or two cells: pushes and pops in a cell, cells that are
 * given up, segments that are linked, left and reclaimed, and closing.
 */
#include "checked_allocator.h"

#include "bide/segment_queue.h"

typedef bide_segment_queue(uint64_t) number_queue;

enum { NUMBERS = 8, SEATS = BIDE_CHECK_THREADS + 1 };

typedef struct state {
    bide_allocator allocator;
    bide_hazard_domain domain;
    bide_hazard_seat seats[SEATS];
    bide_hazard_seat *mine[SEATS]; /* by bide_check_thread() */
    number_queue queue;
    uint64_t taken[SEATS][NUMBERS]; /* the thread that popped it */
    uint32_t counts[SEATS];
    int pushed[SEATS]; /* the result of the push */
} state;

static bide_hazard_seat *seat_of(state *s)
{
    return s->mine[bide_check_thread()];
}

static int push(state *s, uint64_t number)
{
    return bide_segment_queue_push(&s->queue, seat_of(s), &number);
}

static int keep(state *s, int status, uint64_t number)
{
    unsigned me = bide_check_thread();
    if (status == 0) {
        bide_check_assert(number != 0);
        s->taken[me][s->counts[me]++] = number;
    } else {
        bide_check_assert(status == -EAGAIN || status == -EPIPE);
    }
    return status;
}

static int pop(state *s)
{
    uint64_t number = 0;
    int status = bide_segment_queue_pop(&s->queue, seat_of(s), &number);
    return keep(s, status, number);
}

static int pop_single(state *s)
{
    uint64_t number = 0;
    int status = bide_segment_queue_pop_single(&s->queue, seat_of(s), &number);
    return keep(s, status, number);
}

/* Two threads and the setup have seats: a scan reads few. */
static void setup_cells(state *s, size_t cells, unsigned threads)
{
    checked_allocator_init(&s->allocator);
    bide_hazard_init(&s->domain, s->seats, threads + 1);
    for (unsigned i = 0; i <= threads; i++)
        s->mine[i] = bide_hazard_join(&s->domain);
    bide_check_assert(bide_segment_queue_init(&s->queue, &s->domain, &s->allocator, cells) == 0);
}

/* Pops the rest; the numbers up to `count` were each popped once. */
static void finish_with(state *s, uint64_t count)
{
    uint32_t seen[NUMBERS + 1] = {0};
    uint64_t total = 0;
    while (pop(s) == 0)
        continue;
    for (unsigned i = 0; i < SEATS; i++)
        for (uint32_t j = 0; j < s->counts[i]; j++, total++)
            seen[s->taken[i][j]]++;
    bide_check_assert(total == count);
    for (uint64_t number = 1; number <= count; number++)
        bide_check_assert(seen[number] == 1);
    for (unsigned i = 0; i < SEATS; i++)
        if (s->mine[i] != NULL)
            bide_hazard_leave(&s->domain, s->mine[i]);
    bide_segment_queue_destroy(&s->queue);
    bide_hazard_destroy(&s->domain);
}

static void finish_one(void *p)
{
    finish_with(p, 1);
}

static void finish_two(void *p)
{
    finish_with(p, 2);
}

static void finish_three(void *p)
{
    finish_with(p, 3);
}

static void setup(void *p)
{
    setup_cells(p, 2, 2);
}

static void setup_one_cell(void *p)
{
    setup_cells(p, 1, 2);
}

static void setup_three(void *p)
{
    setup_cells(p, 2, 3);
}

static void setup_crowded(void *p)
{
    state *s = p;
    setup(p);
    for (unsigned i = 0; i <= 2; i++)
        s->mine[i]->crowded = BIDE_SEGMENT_CROWDED_;
}

static void setup_four_cells(void *p)
{
    setup_cells(p, 4, 3);
}

static void setup_with_one(void *p)
{
    setup(p);
    push(p, 1);
}

static void setup_with_two(void *p)
{
    setup_with_one(p);
    push(p, 2);
}

/* As a thread that has left: the protection of its push is gone. */
static void push_and_let_go(void *p, uint64_t number)
{
    push(p, number);
    bide_hazard_clear(seat_of(p), 0);
}

static void setup_full(void *p)
{
    setup_one_cell(p);
    push_and_let_go(p, 1);
}

static void push_1(void *p)
{
    push(p, 1);
}

static void push_2(void *p)
{
    push(p, 2);
}

static void push_3(void *p)
{
    push(p, 3);
}

static void push_1_2(void *p)
{
    push(p, 1);
    push(p, 2);
}

static void push_2_3(void *p)
{
    push(p, 2);
    push(p, 3);
}

static void pop_one(void *p)
{
    pop(p);
}

static void pop_two(void *p)
{
    pop(p);
    pop(p);
}

static void pop_two_single(void *p)
{
    pop_single(p);
    pop_single(p);
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(push_pop, "a_producer_pushes_while_a_consumer_pops", .setup = setup,
         .threads = {push_1, pop_one}, .finish = finish_one);
SCENARIO(push_push, "two_push", .setup = setup, .threads = {push_1, push_2}, .finish = finish_two);
SCENARIO(push_crowded, "two_push_where_it_is_crowded", .setup = setup_crowded,
         .threads = {push_1, push_2}, .finish = finish_two);
SCENARIO(pop_pop, "two_pop", .setup = setup_with_two, .threads = {pop_one, pop_one},
         .finish = finish_two);
SCENARIO(pop_last, "two_pop_the_last", .setup = setup_with_one, .threads = {pop_one, pop_one},
         .finish = finish_one);
SCENARIO(link_both, "two_link_a_segment", .setup = setup_full, .threads = {push_2, push_3},
         .finish = finish_three);

/* ---- In order ---- */

static void finish_in_order(void *p)
{
    state *s = p;
    bide_check_assert(s->counts[2] < 1 || s->taken[2][0] == 1);
    finish_two(p);
}

static void push_both(void *p)
{
    state *s = p;
    const uint64_t both[] = {1, 2};
    bide_check_assert(bide_segment_queue_push_many(&s->queue, seat_of(s), both, 2) == 2);
}

static void pop_both(void *p)
{
    state *s = p;
    uint64_t numbers[2] = {0};
    ptrdiff_t count = bide_segment_queue_pop_many(&s->queue, seat_of(s), numbers, 2);
    for (ptrdiff_t i = 0; i < count; i++)
        keep(s, 0, numbers[i]);
    if (count <= 0)
        keep(s, (int)count, 0);
}

SCENARIO(in_order, "what_a_producer_pushes_comes_in_its_order", .setup = setup_one_cell,
         .threads = {push_1_2, pop_two}, .finish = finish_in_order);
SCENARIO(in_order_single, "a_single_consumer_gets_it_in_order", .setup = setup_one_cell,
         .threads = {push_1_2, pop_two_single}, .finish = finish_in_order);
SCENARIO(many, "a_batch_comes_in_its_order", .setup = setup, .threads = {push_both, pop_both},
         .finish = finish_in_order);
SCENARIO(many_linked, "a_batch_goes_over_the_end_of_a_segment", .setup = setup_one_cell,
         .threads = {push_both, pop_both}, .finish = finish_in_order);
SCENARIO(early, "two_come_early_to_a_batch", .setup = setup_four_cells,
         .threads = {push_both, pop_one, pop_one}, .finish = finish_two, .preemptions = 1);

/* ---- Empty is empty ---- */

/*
 * One element was pushed before, and each thread pushes before it pops, so no thread finds the
 * queue empty.
 */
static void push_2_and_pop(void *p)
{
    push(p, 2);
    bide_check_assert(pop(p) == 0);
}

static void push_3_and_pop(void *p)
{
    push(p, 3);
    bide_check_assert(pop(p) == 0);
}

static void push_1_and_pop(void *p)
{
    push(p, 1);
    bide_check_assert(pop(p) == 0);
}

SCENARIO(never_empty, "a_thread_that_has_pushed_does_not_find_it_empty", .setup = setup,
         .threads = {push_1_and_pop, push_2_and_pop}, .finish = finish_two);
SCENARIO(never_empty_linked, "nor_where_a_segment_ends", .setup = setup_full,
         .threads = {push_2_and_pop, push_3_and_pop}, .finish = finish_three);

/* ---- Segments that are reclaimed ---- */

static void pop_two_and_scan(void *p)
{
    state *s = p;
    pop(s);
    pop(s);
    bide_hazard_scan(&s->domain, seat_of(s));
}

SCENARIO(reclaimed_push, "a_segment_is_reclaimed_while_a_producer_pushes", .setup = setup_full,
         .threads = {push_2_3, pop_two_and_scan}, .finish = finish_three);

/*
 * The thread that has linked a segment no longer protects the previous one, so another must not
 * find that one in the tail.
 */
static void push_2_and_let_go(void *p)
{
    push_and_let_go(p, 2);
}

static void setup_full_three(void *p)
{
    setup_cells(p, 1, 3);
    push_and_let_go(p, 1);
}

SCENARIO(reclaimed_behind, "a_segment_is_reclaimed_behind_the_producer_that_has_linked_the_next",
         .setup = setup_full_three, .threads = {push_2_and_let_go, pop_two_and_scan, push_3},
         .finish = finish_three, .preemptions = 1);

static void setup_two_segments(void *p)
{
    setup_full(p);
    push_and_let_go(p, 2);
}

SCENARIO(reclaimed_pop, "a_segment_is_reclaimed_while_a_consumer_pops", .setup = setup_two_segments,
         .threads = {pop_one, pop_two_and_scan}, .finish = finish_two);

SCENARIO(pop_linked, "two_pop_what_a_producer_has_linked", .setup = setup_full_three,
         .threads = {push_2, pop_two, pop_one}, .finish = finish_two);

/* ---- Closing ---- */

static void close_it(void *p)
{
    state *s = p;
    bide_segment_queue_close(&s->queue, seat_of(s));
}

static void push_or_not(void *p)
{
    state *s = p;
    s->pushed[bide_check_thread()] = push(s, 1);
}

static void pop_and_learn(void *p)
{
    state *s = p;
    if (pop(s) == -EPIPE)
        bide_check_assert(pop(s) == -EPIPE);
}

/* The rest is popped, and then the queue reports that it is closed. */
static void drain_closed(state *s)
{
    int status;
    while ((status = pop(s)) == 0)
        continue;
    bide_check_assert(status == -EPIPE);
}

static void finish_closed(void *p)
{
    state *s = p;
    bide_check_assert(push(s, 7) == -EPIPE);
    drain_closed(s);
    bide_check_assert(s->pushed[2] == 0 || s->pushed[2] == -EPIPE);
    finish_with(s, s->pushed[2] == 0 ? 1 : 0);
}

static void push_2_or_not(void *p)
{
    state *s = p;
    s->pushed[bide_check_thread()] = push(s, 2);
}

static void finish_closed_full(void *p)
{
    state *s = p;
    bide_check_assert(push(s, 7) == -EPIPE);
    drain_closed(s);
    bide_check_assert(s->pushed[2] == 0 || s->pushed[2] == -EPIPE);
    finish_with(s, s->pushed[2] == 0 ? 2 : 1);
}

SCENARIO(closed_push, "it_is_closed_while_a_producer_pushes", .setup = setup,
         .threads = {close_it, push_or_not}, .finish = finish_closed);
SCENARIO(closed_crowded, "it_is_closed_while_a_producer_pushes_where_it_is_crowded",
         .setup = setup_crowded, .threads = {close_it, push_or_not}, .finish = finish_closed);
SCENARIO(closed_link, "it_is_closed_while_a_producer_links_a_segment", .setup = setup_full,
         .threads = {close_it, push_2_or_not}, .finish = finish_closed_full);
SCENARIO(closed_pop, "it_is_closed_while_a_producer_pushes_and_a_consumer_pops",
         .setup = setup_three, .threads = {close_it, push_or_not, pop_and_learn},
         .finish = finish_closed);

/* Elements that were pushed before the close are visible to a thread that knows of the close. */
static void push_and_close(void *p)
{
    push(p, 1);
    close_it(p);
}

static void pop_until_closed(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++)
        if (pop(s) == -EPIPE)
            bide_check_assert(s->counts[2] == 1);
}

SCENARIO(drained, "it_is_not_closed_before_it_is_empty", .setup = setup,
         .threads = {push_and_close, pop_until_closed}, .finish = finish_one);
SCENARIO(drained_full, "nor_where_a_segment_ends_with_it", .setup = setup_one_cell,
         .threads = {push_and_close, pop_until_closed}, .finish = finish_one);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &push_pop,       &push_push,     &push_crowded,     &pop_pop,
        &pop_last,       &link_both,     &in_order,         &in_order_single,
        &many,           &many_linked,   &never_empty,      &never_empty_linked,
        &reclaimed_push, &reclaimed_pop, &closed_push,      &closed_crowded,
        &closed_link,    &closed_pop,    &drained,          &drained_full,
        &pop_linked,     &early,         &reclaimed_behind, NULL};
    static const char *const files[] = {"segment_queue.h", "segment_queue.c", NULL};
    static const bide_check_reason reasons[] = {
        {"bide_segment_queue_close_", "compare_exchange", "&last->next", "relaxed",
         "C11 asks that the order if failed is no stronger"},
        {0}};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
