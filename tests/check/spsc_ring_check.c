/*
 * A ring between two threads: elements and slots are handed over and back, one by one, in spans and
 * in batches, in rings of one slot and of two; closing. An element is two words of plain memory, so
 * a read during a write is a race.
 */
#include "bide/check.h"
#include "bide/spsc_ring.h"

enum { SLOTS = 2, TOTAL = 3 };

typedef struct element {
    uint64_t number, twice;
} element;

typedef struct state {
    bide_spsc_ring(element) ring;
    element memory[SLOTS];
    uint64_t written; /* before it was closed */
    uint64_t popped;
} state;

static element make(uint64_t number)
{
    element element = {number, 2 * number};
    return element;
}

/* The next element, complete. */
static void expect(state *s, uint64_t number, uint64_t twice)
{
    bide_check_assert(number == s->popped && twice == 2 * number);
    s->popped++;
}

static void setup_one(void *p)
{
    state *s = p;
    bide_spsc_ring_init(&s->ring, s->memory, 1);
}

static void setup_two(void *p)
{
    state *s = p;
    bide_spsc_ring_init(&s->ring, s->memory, 2);
}

/* ---- One by one: each thread tries as often as there are elements, and the rest stays ---- */

static void push_some(void *p)
{
    state *s = p;
    uint64_t pushed = 0;
    for (int i = 0; i < TOTAL; i++) {
        element element = make(pushed);
        int status = bide_spsc_ring_push(&s->ring, &element);
        bide_check_assert(status == 0 || status == -ENOBUFS);
        pushed += status == 0;
    }
}

static void pop_some(void *p)
{
    state *s = p;
    for (int i = 0; i < TOTAL; i++) {
        element element;
        int status = bide_spsc_ring_pop(&s->ring, &element);
        bide_check_assert(status == 0 || status == -EAGAIN);
        if (status == 0)
            expect(s, element.number, element.twice);
    }
}

static void finish(void *p)
{
    state *s = p;
    element element;
    size_t left = bide_spsc_ring_count(&s->ring);
    while (bide_spsc_ring_pop(&s->ring, &element) == 0) {
        expect(s, element.number, element.twice);
        left--;
    }
    bide_check_assert(left == 0);
}

static const bide_check_scenario one_slot = {
    .name = "one_slot_goes_to_and_fro",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {push_some, pop_some},
    .finish = finish,
};

static const bide_check_scenario two_slots = {
    .name = "two_slots_go_to_and_fro",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {push_some, pop_some},
    .finish = finish,
};

/* ---- In batches, and in place ---- */

static void push_batches(void *p)
{
    state *s = p;
    element elements[2] = {make(0), make(1)}, *start;
    bide_check_assert(bide_spsc_ring_push_many(&s->ring, elements, 2) == 2);
    for (uint64_t pushed = 2, i = 0; i < 2; i++) {
        ptrdiff_t free = bide_spsc_ring_reserve(&s->ring, &start, 2);
        bide_check_assert((free > 0 && free <= 2) || free == -ENOBUFS);
        for (ptrdiff_t j = 0; j < free; j++, pushed++) {
            bide_plain_store(&start[j].number, pushed);
            bide_plain_store(&start[j].twice, 2 * pushed);
        }
        if (free > 0)
            bide_spsc_ring_commit(&s->ring, (size_t)free);
    }
}

static void pop_batches(void *p)
{
    state *s = p;
    element elements[3], *start;
    ptrdiff_t there = bide_spsc_ring_peek(&s->ring, &start, 1);
    bide_check_assert(there == 1 || there == -EAGAIN);
    if (there == 1) {
        expect(s, bide_plain_load(&start->number), bide_plain_load(&start->twice));
        bide_spsc_ring_release(&s->ring, 1);
    }
    there = bide_spsc_ring_pop_many(&s->ring, elements, 3);
    bide_check_assert((there > 0 && there <= 2) || there == -EAGAIN);
    for (ptrdiff_t i = 0; i < there; i++)
        expect(s, elements[i].number, elements[i].twice);
}

static const bide_check_scenario batches = {
    .name = "batches_and_spans_go_to_and_fro",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {push_batches, pop_batches},
    .finish = finish,
};

/* ---- Closing ---- */

static void push_and_close(void *p)
{
    state *s = p;
    for (uint64_t i = 0; i < 2; i++) {
        element element = make(i);
        bide_check_assert(bide_spsc_ring_push(&s->ring, &element) == 0);
    }
    bide_plain_store(&s->written, 1);
    bide_spsc_ring_close(&s->ring);
    element element = make(2), *start;
    bide_check_assert(bide_spsc_ring_push(&s->ring, &element) == -EPIPE);
    bide_check_assert(bide_spsc_ring_reserve(&s->ring, &start, 1) == -EPIPE);
}

static void pop_until_closed(void *p)
{
    state *s = p;
    int status;
    for (int i = 0; i < 3; i++) {
        element element;
        status = bide_spsc_ring_pop(&s->ring, &element);
        if (status == 0)
            expect(s, element.number, element.twice);
    }
    if (status == -EPIPE) {
        element element;
        bide_check_assert(s->popped == 2);
        bide_check_assert(bide_plain_load(&s->written) == 1);
        bide_check_assert(bide_spsc_ring_pop_many(&s->ring, &element, 1) == -EPIPE);
    } else {
        bide_check_assert(status == 0 || status == -EAGAIN);
    }
}

static void finish_closed(void *p)
{
    state *s = p;
    element element;
    finish(s);
    bide_check_assert(s->popped == 2);
    bide_check_assert(bide_spsc_ring_pop(&s->ring, &element) == -EPIPE);
}

static const bide_check_scenario closed = {
    .name = "a_consumer_that_finds_it_closed_has_had_everything",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {push_and_close, pop_until_closed},
    .finish = finish_closed,
};

/* ---- A third thread reads the count ---- */

static void push_one(void *p)
{
    state *s = p;
    element element = make(0);
    bide_check_assert(bide_spsc_ring_push(&s->ring, &element) == 0);
}

static void count_at_most_one(void *p)
{
    bide_check_assert(bide_spsc_ring_count(&((state *)p)->ring) <= 1);
}

static const bide_check_scenario counted_slot = {
    .name = "one_slot_is_counted_while_it_goes_to_and_fro",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {push_some, pop_some, count_at_most_one},
    .finish = finish,
};

/* There was at most one element, with room for two. */
static const bide_check_scenario counted_element = {
    .name = "one_element_is_counted_while_it_is_pushed_and_popped",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {push_one, pop_some, count_at_most_one},
    .finish = finish,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &one_slot, &two_slots, &batches, &closed, &counted_slot, &counted_element, NULL};
    static const char *const files[] = {"spsc_ring.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
