/*
 * The cases for each bounded ring, with each type of element, each capacity, and any start of its positions; included
 * once for each. The including file defines:
 *
 *     RING              the prefix of its functions, as spsc_ring
 *     ELEMENT           the type of its elements; ELEMENT_NAME, a part of the cases' names
 *     ELEMENT_FROM(n)   the element for a number, ELEMENT_NUMBER(element) the number again, modulo 251 at least
 *     POP, POP_MANY     the suffixes of its pop functions: _pop and _pop_many
 *     (name)_fixture    a struct with the ring as `ring`; (name)_fixture_init(f, capacity, laps) makes it empty, with
 *                       words that wrap around after so many laps; 0: not soon
 *
 * ELEMENT... are undefined afterwards.
 */
#include "paste.h"

#define CASE_(name) PASTE3(ELEMENT_NAME, _, name)
#define CALL_(verb) PASTE3(bide_, RING, verb)
#define FIXTURE_    CASE_(fixture)
#define SAME_(a, b) (ELEMENT_NUMBER(a) == ELEMENT_NUMBER(b))

/* A ring and a model of its content: the numbers from `taken` to before `put`. */
typedef struct CASE_(model) {
    FIXTURE_ *f;
    size_t capacity;
    uint64_t put, taken;
    bool closed;
} CASE_(model);

static void CASE_(model_init)(CASE_(model) * m, FIXTURE_ *f, size_t capacity, size_t laps)
{
    CASE_(fixture_init)(f, capacity, laps);
    *m = (CASE_(model)){.f = f, .capacity = capacity};
}

static size_t CASE_(count_of)(CASE_(model) * m)
{
    return (size_t)(m->put - m->taken);
}

static void CASE_(push)(CASE_(model) * m)
{
    ELEMENT element = ELEMENT_FROM(m->put);
    int status = CALL_(_push)(&m->f->ring, &element);
    if (m->closed) {
        assert_int_equal(status, -EPIPE);
    } else if (CASE_(count_of)(m) == m->capacity) {
        assert_int_equal(status, -ENOBUFS);
    } else {
        assert_int_equal(status, 0);
        m->put++;
    }
    assert_int_equal(CALL_(_count)(&m->f->ring), CASE_(count_of)(m));
}

static void CASE_(pop)(CASE_(model) * m)
{
    ELEMENT element = ELEMENT_FROM(m->taken + 100), expected = ELEMENT_FROM(m->taken);
    int status = CALL_(POP)(&m->f->ring, &element);
    if (CASE_(count_of)(m) == 0) {
        assert_int_equal(status, m->closed ? -EPIPE : -EAGAIN);
        ELEMENT unchanged = ELEMENT_FROM(m->taken + 100);
        assert_true(SAME_(element, unchanged));
    } else {
        assert_int_equal(status, 0);
        assert_true(SAME_(element, expected));
        m->taken++;
    }
    assert_int_equal(CALL_(_count)(&m->f->ring), CASE_(count_of)(m));
}

enum { CASE_(MOST) = 210 };

static void CASE_(push_many)(CASE_(model) * m, size_t count)
{
    ELEMENT elements[CASE_(MOST)];
    size_t room = m->capacity - CASE_(count_of)(m);
    for (size_t i = 0; i < count; i++)
        elements[i] = ELEMENT_FROM(m->put + i);
    ptrdiff_t pushed = CALL_(_push_many)(&m->f->ring, elements, count);
    if (count == 0) {
        assert_int_equal(pushed, 0);
    } else if (m->closed) {
        assert_int_equal(pushed, -EPIPE);
    } else if (room == 0) {
        assert_int_equal(pushed, -ENOBUFS);
    } else {
        assert_int_equal(pushed, count < room ? count : room);
        m->put += (uint64_t)pushed;
    }
    assert_int_equal(CALL_(_count)(&m->f->ring), CASE_(count_of)(m));
}

static void CASE_(pop_many)(CASE_(model) * m, size_t count)
{
    ELEMENT elements[CASE_(MOST)];
    size_t there = CASE_(count_of)(m);
    ptrdiff_t popped = CALL_(POP_MANY)(&m->f->ring, elements, count);
    if (count == 0) {
        assert_int_equal(popped, 0);
    } else if (there == 0) {
        assert_int_equal(popped, m->closed ? -EPIPE : -EAGAIN);
    } else {
        assert_int_equal(popped, count < there ? count : there);
        for (ptrdiff_t i = 0; i < popped; i++) {
            ELEMENT expected = ELEMENT_FROM(m->taken);
            assert_true(SAME_(elements[i], expected));
            m->taken++;
        }
    }
    assert_int_equal(CALL_(_count)(&m->f->ring), CASE_(count_of)(m));
}

/* Calls `run` for each capacity, with positions that start at 0, and with positions that are about to wrap around. */
static void CASE_(for_each_ring)(void (*run)(CASE_(model) * m))
{
    static const size_t sizes[] = {1, 2, 3, 5, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t laps = 0; laps < 4; laps++) {
            CASE_(model) m;
            FIXTURE_ f;
            CASE_(model_init)(&m, &f, sizes[i], laps);
            run(&m);
        }
    }
}

static void CASE_(fill_and_empty)(CASE_(model) * m)
{
    assert_int_equal(CALL_(_capacity)(&m->f->ring), m->capacity);
    for (int lap = 0; lap < 7; lap++) {
        for (size_t i = 0; i < m->capacity + 2; i++)
            CASE_(push)(m);
        assert_int_equal(CASE_(count_of)(m), m->capacity);
        for (size_t i = 0; i < m->capacity + 2; i++)
            CASE_(pop)(m);
        assert_int_equal(CASE_(count_of)(m), 0);
        /* (so that the next lap begins in another slot) */
        CASE_(push)(m);
        CASE_(pop)(m);
    }
}

static void CASE_(is_full_at_its_capacity_and_empty_at_none)(void **state)
{
    (void)state;
    CASE_(for_each_ring)(CASE_(fill_and_empty));
}

static void CASE_(keep_some)(CASE_(model) * m)
{
    for (size_t kept = 0; kept < m->capacity; kept++) {
        for (size_t i = 0; i < 3 * m->capacity; i++) {
            while (CASE_(count_of)(m) < kept + 1)
                CASE_(push)(m);
            CASE_(pop)(m);
        }
    }
}

static void CASE_(is_first_in_first_out_at_every_fill)(void **state)
{
    (void)state;
    CASE_(for_each_ring)(CASE_(keep_some));
}

/* Batches of each length, from each fill level: the popped elements are right, in order, across the wrap too. */
static void CASE_(move_batches)(CASE_(model) * m)
{
    size_t max = m->capacity < 6 ? m->capacity + 2 : 8;
    for (size_t fill = 0; fill <= m->capacity; fill += m->capacity < 6 ? 1 : 33) {
        for (size_t count = 0; count <= max; count++) {
            while (CASE_(count_of)(m) < fill)
                CASE_(push)(m);
            CASE_(push_many)(m, count);
            CASE_(pop_many)(m, count);
            while (CASE_(count_of)(m) > fill)
                CASE_(pop)(m);
        }
    }
    for (int i = 0; i < 3; i++) {
        CASE_(push_many)(m, 2 * m->capacity + 1);
        CASE_(push_many)(m, 1);
        CASE_(pop_many)(m, 2 * m->capacity + 1);
        CASE_(pop_many)(m, 1);
        CASE_(push)(m);
        CASE_(pop)(m);
    }
}

static void CASE_(takes_of_a_batch_what_it_has_room_for)(void **state)
{
    (void)state;
    CASE_(for_each_ring)(CASE_(move_batches));
}

static void CASE_(close_and_drain)(CASE_(model) * m)
{
    for (size_t i = 0; i < (m->capacity + 1) / 2; i++)
        CASE_(push)(m);
    CALL_(_close)(&m->f->ring);
    m->closed = true;
    CASE_(push)(m);
    CASE_(push_many)(m, 3);
    CASE_(push_many)(m, 0);
    CALL_(_close)(&m->f->ring);
    while (CASE_(count_of)(m) > 2)
        CASE_(pop_many)(m, 2);
    while (CASE_(count_of)(m) != 0)
        CASE_(pop)(m);
    for (int i = 0; i < 3; i++) {
        CASE_(pop)(m);
        CASE_(pop_many)(m, 3);
        CASE_(pop_many)(m, 0);
        CASE_(push)(m);
    }
}

static void CASE_(takes_nothing_once_closed_and_gives_what_it_has)(void **state)
{
    (void)state;
    CASE_(for_each_ring)(CASE_(close_and_drain));
}

/* Closed when it is full, or empty. */
static void CASE_(close_when_full)(CASE_(model) * m)
{
    while (CASE_(count_of)(m) != m->capacity)
        CASE_(push)(m);
    CALL_(_close)(&m->f->ring);
    m->closed = true;
    CASE_(push)(m);
    CASE_(pop_many)(m, m->capacity);
    CASE_(pop)(m);
    CASE_(push)(m);
}

static void CASE_(close_when_empty)(CASE_(model) * m)
{
    CASE_(push)(m);
    CASE_(pop)(m);
    CALL_(_close)(&m->f->ring);
    m->closed = true;
    CASE_(pop)(m);
    CASE_(push)(m);
    CASE_(pop_many)(m, 1);
}

static void CASE_(may_be_closed_full_and_empty)(void **state)
{
    (void)state;
    CASE_(for_each_ring)(CASE_(close_when_full));
    CASE_(for_each_ring)(CASE_(close_when_empty));
}

static void CASE_(walk)(CASE_(model) * m)
{
    static uint64_t random = 1;
    for (int i = 0; i < 3000; i++) {
        uint64_t number = testing_random(&random);
        size_t count = (size_t)(number >> 32) % (m->capacity + 2);
        switch (number % 4) {
        case 0:
            CASE_(push)(m);
            break;
        case 1:
            CASE_(pop)(m);
            break;
        case 2:
            CASE_(push_many)(m, count);
            break;
        default:
            CASE_(pop_many)(m, count);
        }
    }
}

static void CASE_(agrees_with_its_model_on_a_random_walk)(void **state)
{
    (void)state;
    CASE_(for_each_ring)(CASE_(walk));
}

#undef CASE_
#undef CALL_
#undef FIXTURE_
#undef SAME_
#undef ELEMENT
#undef ELEMENT_NAME
#undef ELEMENT_FROM
#undef ELEMENT_NUMBER
