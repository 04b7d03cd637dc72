/*
 * A ring between many producers and many consumers: its bounds, its order, batches across the wrap, closing; slots
 * that are claimed and not committed; then threads.
 */
#include "sync/meeting.h"

#include "bide/mpmc_ring.h"
#include "bide/sequence.h"

#include "elements.h"

#define RING     mpmc_ring
#define POP      _pop
#define POP_MANY _pop_many

/* A ring of `type` whose words wrap around after so many laps. */
#define FIXTURE(name, type)                                                          \
    typedef struct name##_fixture {                                                  \
        bide_mpmc_ring_slot(type) memory[100];                                       \
        bide_mpmc_ring(type) ring;                                                   \
    } name##_fixture;                                                                \
    static void name##_fixture_init(name##_fixture *f, size_t capacity, size_t laps) \
    {                                                                                \
        bide_mpmc_ring_init(&f->ring, f->memory, capacity);                          \
        size_t start = (size_t)0 - laps * (f->ring.shape.lap);                       \
        atomic_store(&f->ring.ends.tail, start);                                     \
        atomic_store(&f->ring.ends.head, start);                                     \
        for (size_t i = 0; i < capacity; i++)                                        \
            atomic_store(&f->memory[i].turn, start);                                 \
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

/* The same with the pops of a single consumer. */
#undef POP
#undef POP_MANY
#define POP      _pop_single
#define POP_MANY _pop_many_single

FIXTURE(one_consumer, uint64_t)

#define ELEMENT        uint64_t
#define ELEMENT_NAME   one_consumer
#define ELEMENT_FROM   WORD_FROM
#define ELEMENT_NUMBER WORD_NUMBER
#include "bounded_cases.h"

/* ---- Operations in progress, made by hand: the first half of a push, or of a pop, that was suspended there ---- */

static void what_is_claimed_and_not_committed_is_not_there_yet(void **state)
{
    (void)state;
    word_fixture f;
    uint64_t number = 1, several[3] = {2, 3, 4};
    word_fixture_init(&f, 3, 0);
    atomic_store(&f.ring.ends.tail, BIDE_RING_STEP_); /* a push has claimed slot 0 */
    assert_int_equal(bide_mpmc_ring_push(&f.ring, &number), 0);
    assert_int_equal(bide_mpmc_ring_count(&f.ring), 2);
    assert_int_equal(bide_mpmc_ring_pop(&f.ring, &number), -EAGAIN);
    assert_int_equal(bide_mpmc_ring_pop_many(&f.ring, several, 3), -EAGAIN);
    assert_int_equal(bide_mpmc_ring_pop_single(&f.ring, &number), -EAGAIN);
    assert_int_equal(bide_mpmc_ring_push_many(&f.ring, several, 3), 1);
    assert_int_equal(bide_mpmc_ring_push(&f.ring, &number), -ENOBUFS);
    bide_mpmc_ring_close(&f.ring);
    assert_int_equal(bide_mpmc_ring_pop(&f.ring, &number), -EAGAIN);
    assert_int_equal(bide_mpmc_ring_pop_many_single(&f.ring, several, 3), -EAGAIN);
    f.memory[0].value = 7; /* and commits */
    atomic_store(&f.memory[0].turn, 1);
    assert_int_equal(bide_mpmc_ring_pop_many(&f.ring, several, 3), 3);
    assert_int_equal(several[0], 7);
    assert_int_equal(several[1], 1);
    assert_int_equal(several[2], 2);
    assert_int_equal(bide_mpmc_ring_pop(&f.ring, &number), -EPIPE);
}

static void what_is_being_taken_is_not_free_yet(void **state)
{
    (void)state;
    word_fixture f;
    uint64_t number, several[3] = {10, 11, 12};
    word_fixture_init(&f, 3, 0);
    for (number = 0; number < 3; number++)
        assert_int_equal(bide_mpmc_ring_push(&f.ring, &number), 0);
    atomic_store(&f.ring.ends.head, BIDE_RING_STEP_); /* a pop has claimed slot 0 */
    assert_int_equal(bide_mpmc_ring_count(&f.ring), 2);
    assert_int_equal(bide_mpmc_ring_push(&f.ring, &number), -ENOBUFS);
    assert_int_equal(bide_mpmc_ring_pop(&f.ring, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(bide_mpmc_ring_push_many(&f.ring, several, 3), -ENOBUFS);
    assert_int_equal(bide_mpmc_ring_pop_single(&f.ring, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(bide_mpmc_ring_pop(&f.ring, &number), -EAGAIN);
    atomic_store(&f.memory[0].turn, f.ring.shape.lap); /* and commits */
    assert_int_equal(bide_mpmc_ring_push_many(&f.ring, several, 3), 3);
    assert_int_equal(bide_mpmc_ring_pop(&f.ring, &number), 0);
    assert_int_equal(number, 10);
}

/* ---- Threads ---- */

enum { SIDE = 3, MAX_BATCH = 20 };

/* An element: its producer, and its number among that producer's. */
#define ITEM(producer, number) ((uint64_t)(producer) << 32 | (number))

typedef struct shared shared;

typedef struct party {
    shared *s;
    uint32_t which;
    uint64_t seed;
    uint32_t pushed;     /* the number of pushed elements, of a producer */
    uint64_t popped;     /* the number of popped elements, of a consumer */
    uint32_t next[SIDE]; /* of a consumer: no earlier element of that producer may follow */
    const char *wrong;
} party;

struct shared {
    triple_fixture f;
    uint32_t each; /* the number of elements that each producer pushes */
    bool one_consumer;
    bool closed_early;
    bide_atomic(uint32_t) pushing; /* the last closes it */
    bide_atomic(uint8_t) * seen;   /* the number of pops of each item */
    party producers[SIDE], consumers[SIDE];
};

static void *produce(void *argument)
{
    party *self = argument;
    shared *s = self->s;
    uint64_t random = self->seed;
    uint32_t spins = 0;
    while (self->pushed < s->each) {
        triple batch[MAX_BATCH];
        uint64_t number = testing_random(&random);
        uint32_t left = s->each - self->pushed;
        uint32_t count = number % 2 == 0 ? 1 : 1 + (uint32_t)(number >> 8) % MAX_BATCH;
        count = count < left ? count : left;
        for (uint32_t i = 0; i < count; i++)
            batch[i] = triple_from(ITEM(self->which, self->pushed + i));
        ptrdiff_t pushed = number % 2 == 0 ? bide_mpmc_ring_push(&s->f.ring, &batch[0])
                                           : bide_mpmc_ring_push_many(&s->f.ring, batch, count);
        if (number % 2 == 0 && pushed == 0)
            pushed = 1;
        if (pushed > 0) {
            self->pushed += (uint32_t)pushed;
            spins = 0;
        } else if (pushed == -ENOBUFS) {
            wait_a_moment(&spins);
        } else {
            if (pushed != -EPIPE || !s->closed_early)
                self->wrong = "a push answered what it should not";
            break;
        }
        /* One of them closes it in the middle, for all. */
        if (s->closed_early && self->which == 0 && self->pushed > s->each / 2)
            bide_mpmc_ring_close(&s->f.ring);
    }
    if (atomic_fetch_sub(&s->pushing, 1) == 1)
        bide_mpmc_ring_close(&s->f.ring);
    return NULL;
}

static void take(party *self, const triple *elements, ptrdiff_t count)
{
    shared *s = self->s;
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t item = triple_number(elements[i]);
        uint64_t producer = item >> 32;
        uint32_t number = (uint32_t)item;
        if (producer >= SIDE || number >= s->each) {
            self->wrong = "an element is torn";
            return;
        }
        if (number < self->next[producer])
            self->wrong = "a producer's elements are out of order";
        if (s->one_consumer && number != self->next[producer])
            self->wrong = "a producer's element was left out";
        self->next[producer] = number + 1;
        if (atomic_fetch_add(&s->seen[producer * s->each + number], 1) != 0)
            self->wrong = "an element came twice";
        self->popped++;
    }
}

static ptrdiff_t one(int status)
{
    return status == 0 ? 1 : status;
}

static void *consume(void *argument)
{
    party *self = argument;
    shared *s = self->s;
    uint64_t random = self->seed;
    for (uint32_t spins = 0;;) {
        triple batch[MAX_BATCH];
        uint64_t number = testing_random(&random);
        size_t count = 1 + (size_t)(number >> 8) % MAX_BATCH;
        ptrdiff_t popped;
        switch (number % 4 + (s->one_consumer ? 0 : 2)) {
        case 0:
            popped = one(bide_mpmc_ring_pop_single(&s->f.ring, batch));
            break;
        case 1:
            popped = bide_mpmc_ring_pop_many_single(&s->f.ring, batch, count);
            break;
        case 2:
        case 4:
            popped = one(bide_mpmc_ring_pop(&s->f.ring, batch));
            break;
        default:
            popped = bide_mpmc_ring_pop_many(&s->f.ring, batch, count);
        }
        take(self, batch, popped);
        if (popped > 0) {
            spins = 0;
        } else if (popped == -EAGAIN) {
            wait_a_moment(&spins);
        } else {
            if (popped != -EPIPE)
                self->wrong = "a pop answered what it should not";
            return NULL;
        }
    }
}

static void run_threads(uint64_t seed, size_t capacity, uint32_t consumers, bool closed_early)
{
    static shared s;
    pthread_t threads[2 * SIDE];
    uint64_t pushed = 0, popped = 0;
    s.each = rounds_of(4000);
    s.one_consumer = consumers == 1;
    s.closed_early = closed_early;
    s.seen = calloc((size_t)s.each * SIDE, sizeof *s.seen);
    assert_non_null(s.seen);
    bide_atomic_init(&s.pushing, SIDE);
    triple_fixture_init(&s.f, capacity, 50);
    for (uint32_t i = 0; i < SIDE; i++) {
        s.producers[i] = (party){.s = &s, .which = i, .seed = seed + i};
        s.consumers[i] = (party){.s = &s, .which = i, .seed = seed + SIDE + i};
        start_thread(&threads[i], produce, &s.producers[i]);
    }
    for (uint32_t i = 0; i < consumers; i++)
        start_thread(&threads[SIDE + i], consume, &s.consumers[i]);
    for (uint32_t i = 0; i < SIDE + consumers; i++)
        join_thread(threads[i]);
    for (uint32_t i = 0; i < SIDE; i++) {
        const party *producer = &s.producers[i], *consumer = &s.consumers[i];
        assert_null(producer->wrong);
        assert_null(consumer->wrong);
        if (!closed_early)
            assert_int_equal(producer->pushed, s.each);
        pushed += producer->pushed;
        popped += consumer->popped;
        /* Each pushed element was popped once, and no rejected one. */
        for (uint32_t j = 0; j < s.each; j++)
            assert_int_equal(atomic_load(&s.seen[(size_t)i * s.each + j]), j < producer->pushed);
    }
    assert_int_equal(pushed, popped);
    free(s.seen);
}

static const size_t capacities[] = {1, 2, 3, 5, 64, 100};
enum { CAPACITIES = sizeof capacities / sizeof capacities[0] };

static void what_many_push_many_pop_once_each_and_in_order(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (size_t i = 0; i < CAPACITIES; i++)
        run_threads(seed + 100 * i, capacities[i], SIDE, false);
}

static void what_many_push_a_single_consumer_pops(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (size_t i = 0; i < CAPACITIES; i++)
        run_threads(seed + 100 * i, capacities[i], 1, false);
}

static void what_was_pushed_before_it_was_closed_is_popped_and_nothing_else(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (size_t i = 0; i < (size_t)3 * CAPACITIES; i++)
        run_threads(seed + 100 * i, capacities[i % CAPACITIES], i % 2 == 0 ? SIDE : 1, true);
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
        CASES_OF(one_consumer),
        cmocka_unit_test(what_is_claimed_and_not_committed_is_not_there_yet),
        cmocka_unit_test(what_is_being_taken_is_not_free_yet),
        cmocka_unit_test(what_many_push_many_pop_once_each_and_in_order),
        cmocka_unit_test(what_many_push_a_single_consumer_pops),
        cmocka_unit_test(what_was_pushed_before_it_was_closed_is_popped_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
