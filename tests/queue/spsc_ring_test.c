/*
 * A ring between one producer and one consumer: its bounds, its order, batches and spans across the wrap, closing;
 * then both in threads of their own.
 */
#include "sync/meeting.h"

#include "bide/spsc_ring.h"
#include "bide/sequence.h"

#include "elements.h"

#define RING     spsc_ring
#define POP      _pop
#define POP_MANY _pop_many

/* A ring of `type` whose words wrap around after so many laps. */
#define FIXTURE(name, type)                                                          \
    typedef struct name##_fixture {                                                  \
        type memory[100];                                                            \
        bide_spsc_ring(type) ring;                                                   \
    } name##_fixture;                                                                \
    static void name##_fixture_init(name##_fixture *f, size_t capacity, size_t laps) \
    {                                                                                \
        bide_spsc_ring_init(&f->ring, f->memory, capacity);                          \
        size_t start = (size_t)0 - laps * (2 * capacity);                            \
        atomic_store(&f->ring.ends.tail, start);                                     \
        atomic_store(&f->ring.ends.head, start);                                     \
        f->ring.ends.limit = start + 2 * capacity;                                   \
        f->ring.ends.seen = start;                                                   \
    }

FIXTURE(byte, uint8_t)
FIXTURE(word, uint64_t)
FIXTURE(pointer, address)
FIXTURE(triple, triple)

#define ELEMENT        uint8_t
#define ELEMENT_NAME   byte
#define ELEMENT_FROM   BYTE_FROM
#define ELEMENT_NUMBER BYTE_NUMBER
#include "bounded_cases.h"

#define ELEMENT        uint64_t
#define ELEMENT_NAME   word
#define ELEMENT_FROM   WORD_FROM
#define ELEMENT_NUMBER WORD_NUMBER
#include "bounded_cases.h"

#define ELEMENT        address
#define ELEMENT_NAME   pointer
#define ELEMENT_FROM   POINTER_FROM
#define ELEMENT_NUMBER POINTER_NUMBER
#include "bounded_cases.h"

#define ELEMENT        triple
#define ELEMENT_NAME   triple
#define ELEMENT_FROM   TRIPLE_FROM
#define ELEMENT_NUMBER TRIPLE_NUMBER
#include "bounded_cases.h"

/* ---- Spans ---- */

static void slots_are_reserved_in_the_memory_given_and_count_when_committed(void **state)
{
    (void)state;
    word_fixture f;
    uint64_t *start = NULL, number;
    word_fixture_init(&f, 5, 0);
    assert_int_equal(bide_spsc_ring_reserve(&f.ring, &start, 3), 3);
    assert_ptr_equal(start, &f.memory[0]);
    start[0] = 10;
    start[1] = 11;
    assert_int_equal(bide_spsc_ring_count(&f.ring), 0);
    assert_int_equal(bide_spsc_ring_pop(&f.ring, &number), -EAGAIN);
    bide_spsc_ring_commit(&f.ring, 2); /* the third is abandoned */
    assert_int_equal(bide_spsc_ring_count(&f.ring), 2);
    assert_int_equal(bide_spsc_ring_reserve(&f.ring, &start, SIZE_MAX), 3);
    assert_ptr_equal(start, &f.memory[2]);
    bide_spsc_ring_commit(&f.ring, 0);
    number = 12;
    assert_int_equal(bide_spsc_ring_push(&f.ring, &number), 0);
    for (uint64_t expected = 10; expected < 13; expected++) {
        assert_int_equal(bide_spsc_ring_pop(&f.ring, &number), 0);
        assert_int_equal(number, expected);
    }
    assert_int_equal(bide_spsc_ring_pop(&f.ring, &number), -EAGAIN);
}

/* From each position and each fill level the spans end at the end of the memory, or of the free or filled slots. */
static void a_span_ends_where_the_memory_does(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= 7; capacity++) {
        for (size_t place = 0; place < capacity; place++) {
            for (size_t fill = 0; fill <= capacity; fill++) {
                word_fixture f;
                uint64_t *start = NULL, number = 0;
                word_fixture_init(&f, capacity, 1);
                for (size_t i = 0; i < place; i++) {
                    assert_int_equal(bide_spsc_ring_push(&f.ring, &number), 0);
                    assert_int_equal(bide_spsc_ring_pop(&f.ring, &number), 0);
                }
                for (size_t i = 0; i < fill; i++)
                    assert_int_equal(bide_spsc_ring_push(&f.ring, &number), 0);
                size_t tail = (place + fill) % capacity;
                size_t left = capacity - tail, free = capacity - fill;
                assert_int_equal(bide_spsc_ring_reserve(&f.ring, &start, capacity + 1),
                                 free == 0     ? -ENOBUFS
                                 : free < left ? (ptrdiff_t)free
                                               : (ptrdiff_t)left);
                assert_ptr_equal(start, &f.memory[tail]);
                left = capacity - place;
                assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, capacity + 1),
                                 fill == 0     ? -EAGAIN
                                 : fill < left ? (ptrdiff_t)fill
                                               : (ptrdiff_t)left);
                assert_ptr_equal(start, &f.memory[place]);
                assert_int_equal(bide_spsc_ring_reserve(&f.ring, &start, 0), 0);
                assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, 0), 0);
                assert_int_equal(bide_spsc_ring_count(&f.ring), fill);
            }
        }
    }
}

static void what_is_peeked_at_stays_until_it_is_released(void **state)
{
    (void)state;
    word_fixture f;
    uint64_t *start = NULL, number = 0;
    word_fixture_init(&f, 3, 0);
    for (number = 0; number < 3; number++)
        assert_int_equal(bide_spsc_ring_push(&f.ring, &number), 0);
    assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, 2), 2);
    assert_int_equal(start[0], 0);
    assert_int_equal(start[1], 1);
    assert_int_equal(bide_spsc_ring_push(&f.ring, &number), -ENOBUFS);
    bide_spsc_ring_release(&f.ring, 1);
    assert_int_equal(bide_spsc_ring_push(&f.ring, &number), 0);
    assert_int_equal(bide_spsc_ring_push(&f.ring, &number), -ENOBUFS);
    assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, 3), 2);
    assert_ptr_equal(start, &f.memory[1]);
    bide_spsc_ring_close(&f.ring);
    assert_int_equal(bide_spsc_ring_reserve(&f.ring, &start, 1), -EPIPE);
    assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, 3), 2);
    bide_spsc_ring_release(&f.ring, 2);
    assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, 3), 1);
    assert_int_equal(start[0], 3);
    bide_spsc_ring_release(&f.ring, 1);
    assert_int_equal(bide_spsc_ring_peek(&f.ring, &start, 3), -EPIPE);
}

/* ---- Two threads ---- */

enum { MAX_BATCH = 40 };

typedef struct shared {
    triple_fixture f;
    uint64_t seeds[2];
    uint64_t total, produced, consumed;
    uint64_t wrong;   /* the first element that was not the expected one */
    const char *told; /* the first other failure */
} shared;

static void *produce(void *argument)
{
    shared *s = argument;
    uint64_t random = s->seeds[0];
    uint32_t spins = 0;
    while (s->produced < s->total) {
        triple batch[MAX_BATCH], *start = NULL;
        uint64_t number = testing_random(&random), left = s->total - s->produced;
        size_t count = 1 + (size_t)(number >> 8) % MAX_BATCH;
        if (count > left)
            count = (size_t)left;
        ptrdiff_t pushed;
        switch (number % 4) {
        case 0:
            for (size_t i = 0; i < count; i++)
                batch[i] = triple_from(s->produced + i);
            pushed = bide_spsc_ring_push_many(&s->f.ring, batch, count);
            break;
        case 1:
            pushed = bide_spsc_ring_reserve(&s->f.ring, &start, count);
            for (ptrdiff_t i = 0; i < pushed; i++)
                start[i] = triple_from(s->produced + (uint64_t)i);
            if (pushed > 0)
                bide_spsc_ring_commit(&s->f.ring, (size_t)pushed);
            break;
        default:
            batch[0] = triple_from(s->produced);
            pushed = bide_spsc_ring_push(&s->f.ring, &batch[0]);
            pushed = pushed == 0 ? 1 : pushed;
        }
        if (pushed > 0) {
            s->produced += (uint64_t)pushed;
            spins = 0;
        } else if (pushed == -ENOBUFS) {
            wait_a_moment(&spins);
        } else {
            s->told = "a push answered what it should not";
            break;
        }
    }
    bide_spsc_ring_close(&s->f.ring);
    return NULL;
}

static void take(shared *s, const triple *elements, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++, s->consumed++)
        if (triple_number(elements[i]) != s->consumed && s->wrong == UINT64_MAX)
            s->wrong = s->consumed;
}

static void *consume(void *argument)
{
    shared *s = argument;
    uint64_t random = s->seeds[1];
    for (uint32_t spins = 0;;) {
        triple batch[MAX_BATCH], *start = NULL;
        uint64_t number = testing_random(&random);
        size_t count = 1 + (size_t)(number >> 8) % MAX_BATCH;
        ptrdiff_t popped;
        switch (number % 4) {
        case 0:
            popped = bide_spsc_ring_pop_many(&s->f.ring, batch, count);
            take(s, batch, popped);
            break;
        case 1:
            popped = bide_spsc_ring_peek(&s->f.ring, &start, count);
            take(s, start, popped);
            if (popped > 0)
                bide_spsc_ring_release(&s->f.ring, (size_t)popped);
            break;
        default:
            popped = bide_spsc_ring_pop(&s->f.ring, &batch[0]);
            popped = popped == 0 ? 1 : popped;
            take(s, batch, popped);
        }
        if (popped > 0) {
            spins = 0;
        } else if (popped == -EAGAIN) {
            wait_a_moment(&spins);
        } else {
            if (popped != -EPIPE)
                s->told = "a pop answered what it should not";
            return NULL;
        }
    }
}

static void what_one_thread_pushes_another_pops_in_order(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 2, 3, 5, 64, 100};
    static shared shared;
    uint64_t seed = testing_seed();
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        pthread_t threads[2];
        shared.seeds[0] = seed + 2 * i;
        shared.seeds[1] = seed + 2 * i + 1;
        shared.total = rounds_of(20000);
        shared.produced = shared.consumed = 0;
        shared.wrong = UINT64_MAX;
        shared.told = NULL;
        triple_fixture_init(&shared.f, capacities[i], 50);
        start_thread(&threads[0], produce, &shared);
        start_thread(&threads[1], consume, &shared);
        join_thread(threads[0]);
        join_thread(threads[1]);
        assert_null(shared.told);
        assert_int_equal(shared.wrong, UINT64_MAX);
        assert_int_equal(shared.produced, shared.total);
        assert_int_equal(shared.consumed, shared.total);
    }
}

/* (its argument is expanded before cmocka makes a name of it) */
#define TESTING_CASE(function) cmocka_unit_test(function)
#define CASES_OF(name)                                                        \
    TESTING_CASE(name##_is_full_at_its_capacity_and_empty_at_none),           \
        TESTING_CASE(name##_is_first_in_first_out_at_every_fill),             \
        TESTING_CASE(name##_takes_of_a_batch_what_it_has_room_for),           \
        TESTING_CASE(name##_takes_nothing_once_closed_and_gives_what_it_has), \
        TESTING_CASE(name##_may_be_closed_full_and_empty),                    \
        TESTING_CASE(name##_agrees_with_its_model_on_a_random_walk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES_OF(byte),
        CASES_OF(word),
        CASES_OF(pointer),
        CASES_OF(triple),
        cmocka_unit_test(slots_are_reserved_in_the_memory_given_and_count_when_committed),
        cmocka_unit_test(a_span_ends_where_the_memory_does),
        cmocka_unit_test(what_is_peeked_at_stays_until_it_is_released),
        cmocka_unit_test(what_one_thread_pushes_another_pops_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
