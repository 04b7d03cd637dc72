/*
 * A ring between many threads: two push, two pop, both at once, in rings of one slot and of two;
 * batches, a single consumer, closing. An element is plain memory, so a read during a write is a
 * race.
 */
#include "bide/check.h"
#include "bide/mpmc_ring.h"

enum { SLOTS = 2, MOST = 8 };

typedef struct state {
    bide_mpmc_ring(uint64_t) ring;
    bide_mpmc_ring_slot(uint64_t) memory[SLOTS];
    uint64_t had[BIDE_CHECK_THREADS + 1]
                [MOST]; /* the elements that each thread has popped, in order; 0 is for finish */
    unsigned count[BIDE_CHECK_THREADS + 1];
    uint64_t pushed[BIDE_CHECK_THREADS + 1]; /* the number of each */
    uint64_t written;                        /* before it was closed */
} state;

/* The next element that the running thread pushes. */
static uint64_t next_of(const state *s)
{
    unsigned self = bide_check_thread();
    return 100 * (uint64_t)self + s->pushed[self];
}

static int push(state *s)
{
    uint64_t number = next_of(s);
    int status = bide_mpmc_ring_push(&s->ring, &number);
    if (status == 0)
        s->pushed[bide_check_thread()]++;
    return status;
}

static ptrdiff_t push_two(state *s)
{
    uint64_t numbers[2] = {next_of(s), next_of(s) + 1};
    ptrdiff_t pushed = bide_mpmc_ring_push_many(&s->ring, numbers, 2);
    bide_check_assert(pushed < 3 && pushed != 0);
    if (pushed > 0)
        s->pushed[bide_check_thread()] += (uint64_t)pushed;
    return pushed;
}

static void have(state *s, uint64_t number)
{
    unsigned self = bide_check_thread();
    bide_check_assert(s->count[self] < MOST);
    s->had[self][s->count[self]++] = number;
}

static int pop(state *s)
{
    uint64_t number;
    int status = bide_mpmc_ring_pop(&s->ring, &number);
    if (status == 0)
        have(s, number);
    return status;
}

static int pop_single(state *s)
{
    uint64_t number;
    int status = bide_mpmc_ring_pop_single(&s->ring, &number);
    if (status == 0)
        have(s, number);
    return status;
}

static ptrdiff_t pop_two(state *s, bool single)
{
    uint64_t numbers[2];
    ptrdiff_t popped = single ? bide_mpmc_ring_pop_many_single(&s->ring, numbers, 2)
                              : bide_mpmc_ring_pop_many(&s->ring, numbers, 2);
    bide_check_assert(popped < 3 && popped != 0);
    for (ptrdiff_t i = 0; i < popped; i++)
        have(s, numbers[i]);
    return popped;
}

/*
 * Drains the ring: no element is missing or duplicated, and the elements of one producer were
 * popped in order.
 */
static void finish(void *p)
{
    state *s = p;
    size_t left = bide_mpmc_ring_count(&s->ring);
    unsigned seen[BIDE_CHECK_THREADS + 1][MOST] = {{0}};
    while (pop(s) == 0)
        left--;
    bide_check_assert(left == 0);
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++) {
        uint64_t last[BIDE_CHECK_THREADS + 1] = {0};
        for (unsigned j = 0; j < s->count[i]; j++) {
            uint64_t who = s->had[i][j] / 100, number = s->had[i][j] % 100;
            bide_check_assert(who <= BIDE_CHECK_THREADS && number < s->pushed[who]);
            bide_check_assert(seen[who][number]++ == 0);
            bide_check_assert(number + 1 > last[who]);
            last[who] = number + 1;
        }
    }
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++)
        for (unsigned j = 0; j < s->pushed[i]; j++)
            bide_check_assert(seen[i][j] == 1);
}

static void setup_one(void *p)
{
    state *s = p;
    bide_mpmc_ring_init(&s->ring, s->memory, 1);
}

static void setup_two(void *p)
{
    state *s = p;
    bide_mpmc_ring_init(&s->ring, s->memory, 2);
}

static void setup_full(void *p)
{
    state *s = p;
    setup_two(s);
    bide_check_assert(push_two(s) == 2);
}

/* A thread that comes second, so that places wrap around. */
static void setup_second(void *p)
{
    state *s = p;
    setup_two(s);
    bide_check_assert(push(s) == 0 && pop(s) == 0);
}

static bool is_push(int status)
{
    return status == 0 || status == -ENOBUFS;
}

static bool is_pop(int status)
{
    return status == 0 || status == -EAGAIN;
}

static void push_once(void *p)
{
    bide_check_assert(is_push(push(p)));
}

static void push_twice(void *p)
{
    push_once(p);
    push_once(p);
}

static void pop_once(void *p)
{
    bide_check_assert(is_pop(pop(p)));
}

static void pop_twice(void *p)
{
    pop_once(p);
    pop_once(p);
}

/* With room for all, and with elements for all, no operation fails. */
static void push_for_sure(void *p)
{
    bide_check_assert(push(p) == 0);
}

static void pop_for_sure(void *p)
{
    bide_check_assert(pop(p) == 0);
}

#define SCENARIO(object, title, set_up, ...)    \
    static const bide_check_scenario object = { \
        .name = title,                          \
        .size = sizeof(state),                  \
        .cxx20_release_sequences = true,        \
        .setup = set_up,                        \
        .threads = {__VA_ARGS__},               \
        .finish = finish,                       \
    }

SCENARIO(one_slot, "one_slot_goes_to_and_fro", setup_one, push_twice, pop_twice);
SCENARIO(one_slot_two_push, "two_push_into_one_slot", setup_one, push_twice, push_once, pop_twice);
SCENARIO(one_slot_two_pop, "two_pop_from_one_slot", setup_one, push_twice, pop_once, pop_once);
SCENARIO(two_slots, "two_push_into_two_slots", setup_second, push_for_sure, push_for_sure,
         pop_twice);
SCENARIO(two_pop, "two_pop_from_a_full_ring", setup_full, pop_for_sure, pop_for_sure, push_once);
SCENARIO(four_one, "two_push_and_two_pop_by_one_slot", setup_one, push_twice, push_once, pop_twice,
         pop_once);
SCENARIO(four_two, "two_push_and_two_pop_by_two_slots", setup_second, push_twice, push_once,
         pop_twice, pop_once);

/* ---- Batches ---- */

static void push_batch(void *p)
{
    push_two(p);
}

static void pop_batch(void *p)
{
    pop_two(p, false);
}

SCENARIO(batch, "a_batch_is_pushed_and_popped", setup_second, push_batch, pop_batch);
SCENARIO(two_batches, "two_push_a_batch", setup_two, push_batch, push_batch, pop_batch);
SCENARIO(batches_popped, "two_pop_a_batch", setup_full, pop_batch, pop_batch, push_once);
SCENARIO(batch_and_one, "a_batch_and_single_elements", setup_second, push_batch, push_once,
         pop_twice);
SCENARIO(four_batches, "two_push_a_batch_and_two_pop_single_elements", setup_second, push_batch,
         push_batch, pop_batch, pop_batch);

/* Beside a single push or pop there is an element for a batch, whichever is first. */
static void push_batch_for_sure(void *p)
{
    bide_check_assert(push_two(p) > 0);
}

static void pop_batch_for_sure(void *p)
{
    bide_check_assert(pop_two(p, false) > 0);
}

SCENARIO(batch_beside_one, "a_batch_is_pushed_beside_a_single_element", setup_two, push_once,
         push_batch_for_sure);
SCENARIO(popped_beside_one, "a_batch_is_popped_beside_a_single_element", setup_full, pop_once,
         pop_batch_for_sure);

/* ---- A single consumer ---- */

static void pop_single_twice(void *p)
{
    bide_check_assert(is_pop(pop_single(p)));
    bide_check_assert(is_pop(pop_single(p)));
}

static void pop_single_batch_and_one(void *p)
{
    pop_two(p, true);
    bide_check_assert(is_pop(pop_single(p)));
}

SCENARIO(single, "a_single_consumer_and_two_that_push", setup_one, push_twice, push_once,
         pop_single_twice);
SCENARIO(single_batch, "a_single_consumer_pops_a_batch", setup_second, push_twice, push_once,
         pop_single_batch_and_one);

/* ---- Closing ---- */

static void close_it(void *p)
{
    state *s = p;
    bide_plain_store(&s->written, 1);
    bide_mpmc_ring_close(&s->ring);
    bide_check_assert(push(s) == -EPIPE);
    bide_check_assert(push_two(s) == -EPIPE);
}

/* with no data to be seen after it */
static void just_close_it(void *p)
{
    state *s = p;
    bide_mpmc_ring_close(&s->ring);
    bide_check_assert(push(s) == -EPIPE);
}

static void push_until_closed(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++) {
        int status = push(s);
        bide_check_assert(status == 0 || status == -EPIPE);
        if (status == -EPIPE)
            bide_check_assert(bide_plain_load(&s->written) == 1);
    }
}

static void push_once_until_closed(void *p)
{
    int status = push(p);
    bide_check_assert(status == 0 || status == -EPIPE);
}

static void push_batch_until_closed(void *p)
{
    state *s = p;
    ptrdiff_t pushed = push_two(s);
    bide_check_assert(pushed == 2 || pushed == -EPIPE);
    if (pushed == -EPIPE)
        bide_check_assert(bide_plain_load(&s->written) == 1);
}

/*
 * -EPIPE is final, and a thread that sees it sees all earlier elements, so that `finish` finds the
 * ring drained.
 */
static void pop_until_closed(void *p)
{
    state *s = p;
    for (int i = 0; i < 3; i++) {
        int status = pop(s);
        if (status == -EPIPE) {
            bide_check_assert(bide_plain_load(&s->written) == 1);
            bide_check_assert(pop_two(s, false) == -EPIPE);
            bide_check_assert(pop_single(s) == -EPIPE);
            bide_check_assert(bide_mpmc_ring_count(&s->ring) == 0);
            return;
        }
        bide_check_assert(is_pop(status));
    }
}

static void pop_to_the_end(void *p)
{
    for (int i = 0; i < 2; i++) {
        int status = pop(p);
        if (status == -EPIPE)
            bide_check_assert(pop(p) == -EPIPE);
        else
            bide_check_assert(is_pop(status));
    }
}

static void finish_closed(void *p)
{
    state *s = p;
    finish(s);
    bide_check_assert(pop(s) == -EPIPE);
    bide_check_assert(push(s) == -EPIPE);
    bide_check_assert(bide_mpmc_ring_reserve_(BIDE_MPMC_RING_VIEW_(&s->ring)) == -EPIPE);
}

static void setup_with_one(void *p)
{
    state *s = p;
    setup_two(s);
    bide_check_assert(push(s) == 0);
}

static void pop_once_until_closed(void *p)
{
    state *s = p;
    int status = pop(s);
    if (status == -EPIPE)
        bide_check_assert(bide_plain_load(&s->written) == 1);
    else
        bide_check_assert(is_pop(status));
}

#define CLOSED_SCENARIO(object, title, set_up, ...) \
    static const bide_check_scenario object = {     \
        .name = title,                              \
        .size = sizeof(state),                      \
        .cxx20_release_sequences = true,            \
        .setup = set_up,                            \
        .threads = {__VA_ARGS__},                   \
        .finish = finish_closed,                    \
    }

CLOSED_SCENARIO(closed_push, "it_is_closed_while_another_pushes", setup_two, close_it,
                push_until_closed);
CLOSED_SCENARIO(closed_batch, "it_is_closed_while_another_pushes_a_batch", setup_two, close_it,
                push_batch_until_closed, pop_once_until_closed);
CLOSED_SCENARIO(closed_pop, "it_is_closed_while_another_pops", setup_with_one, close_it,
                pop_until_closed);
CLOSED_SCENARIO(closed_all, "it_is_closed_while_there_are_a_push_and_a_pop", setup_two, close_it,
                push_until_closed, pop_until_closed);
CLOSED_SCENARIO(closed_twice, "two_close_it_while_there_are_a_push_and_a_pop", setup_two,
                just_close_it, just_close_it, push_once_until_closed, pop_to_the_end);

/* ---- Reserved slots: as a channel uses them ---- */

/* A push, or a reservation that is used at once, need not find room. */
static int push_any(state *s)
{
    uint64_t number = next_of(s);
    int status = bide_mpmc_ring_push(&s->ring, &number);
    if (status == -EBUSY)
        status = bide_mpmc_ring_push_beside_(BIDE_MPMC_RING_VIEW_(&s->ring), &number);
    if (status == 0)
        s->pushed[bide_check_thread()]++;
    return status;
}

static void push_any_once(void *p)
{
    bide_check_assert(is_push(push_any(p)));
}

static void push_beside(void *p)
{
    state *s = p;
    uint64_t number = next_of(s);
    int status = bide_mpmc_ring_push_beside_(BIDE_MPMC_RING_VIEW_(&s->ring), &number);
    bide_check_assert(is_push(status));
    s->pushed[bide_check_thread()] += status == 0;
}

static int reserve(state *s)
{
    return bide_mpmc_ring_reserve_(BIDE_MPMC_RING_VIEW_(&s->ring));
}

static void push_reserved(void *p)
{
    state *s = p;
    uint64_t number = next_of(s);
    bide_mpmc_ring_push_reserved_(BIDE_MPMC_RING_VIEW_(&s->ring), &number);
    s->pushed[bide_check_thread()]++;
}

static void unreserve(void *p)
{
    (void)bide_mpmc_ring_unreserve_(BIDE_MPMC_RING_VIEW_(&((state *)p)->ring));
}

static void reserve_and_push(void *p)
{
    int status = reserve(p);
    bide_check_assert(is_push(status));
    if (status == 0)
        push_reserved(p);
}

static void reserve_and_unreserve(void *p)
{
    int status = reserve(p);
    bide_check_assert(is_push(status));
    if (status == 0)
        unreserve(p);
}

static void setup_reserved_one(void *p)
{
    setup_one(p);
    bide_check_assert(reserve(p) == 0);
}

static void setup_reserved_two(void *p)
{
    setup_second(p);
    bide_check_assert(reserve(p) == 0);
}

static void setup_reserved_and_one(void *p)
{
    setup_reserved_two(p);
    push_any_once(p);
}

static void pop_all(void *p)
{
    pop_for_sure(p);
    pop_for_sure(p);
}

SCENARIO(reserved, "a_slot_is_reserved_beside_a_push", setup_full, pop_all, reserve_and_push,
         push_any_once);
SCENARIO(reserved_late, "another_push_takes_the_slot_that_was_reserved_first", setup_full, pop_all,
         reserve_and_push, push_beside);
SCENARIO(reserved_twice, "two_reserve", setup_full, pop_all, reserve_and_push, reserve_and_push);
SCENARIO(reserved_last, "two_reserve_the_only_slot", setup_one, reserve_and_push, reserve_and_push,
         pop_once);
SCENARIO(given_up, "a_reservation_is_given_up", setup_full, pop_for_sure, reserve_and_unreserve,
         push_any_once);
SCENARIO(two_beside, "two_push_beside_a_reserved_slot", setup_reserved_two, push_any_once,
         push_any_once, push_reserved, pop_once);
SCENARIO(given_up_beside, "a_push_comes_as_a_reservation_is_given_up", setup_reserved_one,
         push_any_once, unreserve, pop_once);
SCENARIO(reserved_full, "a_reserved_slot_is_used_as_an_element_leaves", setup_reserved_and_one,
         push_reserved, pop_for_sure, push_any_once);

static void give_up(void *p)
{
    state *s = p;
    bide_plain_store(&s->written, 1);
    unreserve(s);
}

static void push_the_reserved(void *p)
{
    state *s = p;
    bide_plain_store(&s->written, 1);
    push_reserved(s);
}

static void close_only(void *p)
{
    bide_mpmc_ring_close(&((state *)p)->ring);
}

/* What the holder of the reservation has written is visible. */
static void pop_until_drained(void *p)
{
    state *s = p;
    for (int i = 0; i < 2; i++) {
        int status = pop(s);
        if (status == -EPIPE) {
            bide_check_assert(bide_plain_load(&s->written) == 1);
            bide_check_assert(pop(s) == -EPIPE);
            return;
        }
        bide_check_assert(is_pop(status));
    }
}

static void reserve_until_closed(void *p)
{
    int status = reserve(p);
    bide_check_assert(status == 0 || status == -EPIPE);
    if (status == -EPIPE)
        bide_check_assert(bide_plain_load(&((state *)p)->written) == 1);
    else
        push_reserved(p);
}

static void push_beside_until_closed(void *p)
{
    state *s = p;
    uint64_t number = next_of(s);
    int status = bide_mpmc_ring_push_beside_(BIDE_MPMC_RING_VIEW_(&s->ring), &number);
    bide_check_assert(status == 0 || status == -EPIPE);
    if (status == -EPIPE)
        bide_check_assert(bide_plain_load(&s->written) == 1);
    s->pushed[bide_check_thread()] += status == 0;
}

static void write_and_close(void *p)
{
    state *s = p;
    bide_plain_store(&s->written, 1);
    close_only(s);
}

/* ---- A pop in two halves: as a channel drops elements ---- */

static bool pop_in_place(state *s, bool if_full)
{
    bide_mpmc_ring_view_ ring = BIDE_MPMC_RING_VIEW_(&s->ring);
    size_t position;
    const uint64_t *element = (const uint64_t *)bide_mpmc_ring_pop_begin_(ring, if_full, &position);
    if (element == NULL)
        return false;
    have(s, bide_plain_load(element));
    bide_mpmc_ring_pop_end_(ring, position);
    return true;
}

static void pop_in_place_twice(void *p)
{
    pop_in_place(p, false);
    pop_in_place(p, false);
}

static void pop_in_place_for_sure(void *p)
{
    bide_check_assert(pop_in_place(p, false));
}

/* Another's pop, or push, that is under way may be in the way of both. */
static void push_or_drop(void *p)
{
    state *s = p;
    if (push(s) == -ENOBUFS && pop_in_place(s, true))
        bide_check_assert(is_push(push(s)));
}

static void push_or_drop_for_sure(void *p)
{
    state *s = p;
    bide_check_assert(push(s) == -ENOBUFS);
    bide_check_assert(pop_in_place(s, true));
    bide_check_assert(push(s) == 0);
    bide_check_assert(bide_mpmc_ring_count(&s->ring) == 2);
}

static void drop_if_full(void *p)
{
    pop_in_place(p, true);
}

/* One of the two elements is popped by either, and the other stays. */
static void finish_one_left(void *p)
{
    bide_check_assert(bide_mpmc_ring_count(&((state *)p)->ring) == 1);
    finish(p);
}

SCENARIO(in_place, "one_slot_is_emptied_in_place", setup_one, push_twice, pop_in_place_twice);
SCENARIO(in_place_two, "two_pop_in_place_from_a_full_ring", setup_full, pop_in_place_for_sure,
         pop_in_place_for_sure, push_once);
SCENARIO(dropped, "a_push_drops_the_first_element", setup_full, push_or_drop_for_sure);
SCENARIO(dropped_beside, "two_pushes_drop_the_first_element", setup_full, push_or_drop,
         push_or_drop, pop_once);
static const bide_check_scenario dropped_once = {
    .name = "an_element_is_dropped_only_if_the_ring_is_full",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_full,
    .threads = {drop_if_full, drop_if_full},
    .finish = finish_one_left,
};

CLOSED_SCENARIO(closed_given_up, "it_is_closed_and_a_reservation_given_up", setup_reserved_one,
                close_only, give_up, pop_until_drained);
CLOSED_SCENARIO(closed_used, "it_is_closed_and_a_reservation_used", setup_reserved_one, close_only,
                push_the_reserved, pop_until_drained);
CLOSED_SCENARIO(closed_reserve, "it_is_closed_as_slots_are_reserved", setup_two, write_and_close,
                reserve_until_closed, push_beside_until_closed);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one_slot,
                                                     &one_slot_two_push,
                                                     &one_slot_two_pop,
                                                     &two_slots,
                                                     &two_pop,
                                                     &four_one,
                                                     &four_two,
                                                     &batch,
                                                     &two_batches,
                                                     &batches_popped,
                                                     &batch_and_one,
                                                     &four_batches,
                                                     &single,
                                                     &single_batch,
                                                     &closed_push,
                                                     &closed_batch,
                                                     &closed_pop,
                                                     &closed_all,
                                                     &closed_twice,
                                                     &batch_beside_one,
                                                     &popped_beside_one,
                                                     &reserved,
                                                     &reserved_late,
                                                     &reserved_twice,
                                                     &reserved_last,
                                                     &given_up,
                                                     &two_beside,
                                                     &given_up_beside,
                                                     &reserved_full,
                                                     &in_place,
                                                     &in_place_two,
                                                     &dropped,
                                                     &dropped_beside,
                                                     &dropped_once,
                                                     &closed_given_up,
                                                     &closed_used,
                                                     &closed_reserve,
                                                     NULL};
    static const char *const files[] = {"mpmc_ring.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
