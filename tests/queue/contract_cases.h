/*
 * The contract of queues (queues.h), by one thread: what each call returns when no other thread uses the queue. The
 * cases are functions that return whether they passed.
 */
#ifndef BIDE_TESTS_CONTRACT_CASES_H
#define BIDE_TESTS_CONTRACT_CASES_H

#include "queue/queues.h"

typedef struct contract_fixture {
    const queue_kind *kind;
    void *queue;
    void *seat;
    size_t capacity;
    uint64_t random;
    uint64_t pushed, popped; /* values are counted */
} contract_fixture;

typedef bool contract_case(contract_fixture *f);

/* Makes the queue, or another in its place. */
static inline void contract_renew(contract_fixture *f, size_t capacity)
{
    const queue_kind *kind = f->kind;
    if (f->queue != NULL) {
        kind->leave(f->queue, f->seat);
        kind->destroy(f->queue);
    }
    f->queue = kind->create(capacity);
    f->seat = kind->enter(f->queue);
    f->capacity = capacity;
    f->pushed = f->popped = 0;
}

static inline bool contract_run(const queue_kind *kind, contract_case *function, uint64_t seed)
{
    contract_fixture f = {.kind = kind, .random = seed};
    contract_renew(&f, 100);
    bool good = function(&f);
    kind->leave(f.queue, f.seat);
    kind->destroy(f.queue);
    return good;
}

/* ---- What is done again and again ---- */

static inline size_t contract_count(const contract_fixture *f)
{
    return (size_t)(f->pushed - f->popped);
}

static inline int contract_push(contract_fixture *f)
{
    uint64_t value = f->pushed;
    int answer = f->kind->push(f->queue, f->seat, &value);
    f->pushed += answer == 0;
    return answer;
}

/* 1: it was not the next value. */
static inline int contract_pop(contract_fixture *f)
{
    uint64_t value = UINT64_MAX;
    int answer = f->kind->pop(f->queue, f->seat, &value);
    if (answer != 0)
        return value == UINT64_MAX ? answer : 1; /* nothing was written */
    return value == f->popped++ ? 0 : 1;
}

enum { CONTRACT_BATCH = 40 };

static inline ptrdiff_t contract_push_many(contract_fixture *f, size_t count)
{
    uint64_t values[CONTRACT_BATCH];
    for (size_t i = 0; i < count; i++)
        values[i] = f->pushed + i;
    ptrdiff_t answer = f->kind->push_many(f->queue, f->seat, values, count);
    f->pushed += answer > 0 ? (uint64_t)answer : 0;
    return answer;
}

/* More than `count`: they are not the next values. */
static inline ptrdiff_t contract_pop_many(contract_fixture *f, size_t count)
{
    uint64_t values[CONTRACT_BATCH];
    memset(values, 0xff, sizeof values);
    ptrdiff_t answer = f->kind->pop_many(f->queue, f->seat, values, count);
    size_t moved = answer > 0 ? (size_t)answer : 0;
    bool good = moved <= count;
    for (size_t i = 0; i < CONTRACT_BATCH && good; i++)
        good = values[i] == (i < moved ? f->popped + i : UINT64_MAX);
    f->popped += moved;
    return good ? answer : CONTRACT_BATCH + 1;
}

/* Pops all; the last pop must return `end`. */
static inline bool contract_drain(contract_fixture *f, int end)
{
    while (contract_count(f) != 0)
        expect(contract_pop(f) == 0);
    expect(contract_pop(f) == end);
    expect(contract_pop_many(f, 3) == end);
    return true;
}

/* Pushes until there are `count`. */
static inline bool contract_fill(contract_fixture *f, size_t count)
{
    while (contract_count(f) < count)
        expect(contract_push(f) == 0);
    return true;
}

/* ---- The cases ---- */

static inline bool an_empty_queue_has_nothing(contract_fixture *f)
{
    expect(contract_pop(f) == -EAGAIN);
    expect(contract_pop_many(f, 5) == -EAGAIN);
    expect(contract_push(f) == 0);
    expect(contract_pop(f) == 0);
    expect(contract_pop(f) == -EAGAIN);
    return true;
}

static inline bool what_is_pushed_first_is_popped_first(contract_fixture *f)
{
    expect(contract_fill(f, 100));
    expect(contract_drain(f, -EAGAIN));
    for (int i = 0; i < 1000; i++) {
        expect(contract_fill(f, 3));
        expect(contract_pop(f) == 0);
        expect(contract_pop(f) == 0);
    }
    return contract_drain(f, -EAGAIN);
}

static const size_t contract_capacities[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 100, 1000};
enum { CONTRACT_CAPACITIES = sizeof contract_capacities / sizeof contract_capacities[0] };

static inline bool it_is_full(contract_fixture *f)
{
    for (int i = 0; i < 2; i++) {
        expect(contract_push(f) == -ENOBUFS);
        expect(contract_push_many(f, 3) == -ENOBUFS);
    }
    return true;
}

/* For each position of its first element. */
static inline bool it_is_full_at_its_capacity(contract_fixture *f)
{
    for (size_t i = 0; i < CONTRACT_CAPACITIES; i++) {
        size_t capacity = contract_capacities[i];
        contract_renew(f, capacity);
        for (size_t j = 0; j < 2 * capacity + 2 && j < 200; j++) {
            expect(contract_fill(f, capacity));
            expect(it_is_full(f));
            expect(contract_pop(f) == 0);
            expect(contract_push(f) == 0);
            expect(it_is_full(f));
            expect(contract_drain(f, -EAGAIN));
            expect(contract_push(f) == 0); /* and one further */
            expect(contract_pop(f) == 0);
        }
    }
    return true;
}

static inline bool a_batch_keeps_its_order(contract_fixture *f)
{
    for (int i = 0; i < 100; i++) {
        size_t count = contract_count(f) + CONTRACT_BATCH;
        for (size_t left; (left = count - contract_count(f)) != 0;)
            expect(contract_push_many(f, left) > 0);
        expect(contract_pop(f) == 0);
        expect(contract_push(f) == 0);
        for (size_t left; (left = contract_count(f)) != 0;) {
            ptrdiff_t moved = contract_pop_many(f, left);
            expect(moved > 0 && (size_t)moved <= left);
        }
        expect(contract_pop_many(f, CONTRACT_BATCH) == -EAGAIN);
    }
    return true;
}

/* A batch that does not fit, or is not complete, is moved in part. */
static inline bool a_batch_may_be_moved_in_part(contract_fixture *f)
{
    for (size_t i = 0; i < CONTRACT_CAPACITIES; i++) {
        size_t capacity = contract_capacities[i];
        contract_renew(f, capacity);
        for (int j = 0; j < 50; j++) {
            size_t already = testing_random(&f->random) % capacity;
            expect(contract_fill(f, already));
            while (contract_count(f) < capacity) {
                size_t room = capacity - contract_count(f);
                size_t count = queue_is(f->kind, QUEUE_BOUNDED) || room > CONTRACT_BATCH
                                   ? CONTRACT_BATCH
                                   : room;
                ptrdiff_t moved = contract_push_many(f, count);
                expect(moved > 0 && (size_t)moved <= room && (size_t)moved <= count);
            }
            if (queue_is(f->kind, QUEUE_BOUNDED))
                expect(it_is_full(f));
            for (size_t left; (left = contract_count(f)) != 0;) {
                ptrdiff_t moved = contract_pop_many(f, CONTRACT_BATCH);
                expect(moved > 0 && (size_t)moved <= left && moved <= CONTRACT_BATCH);
            }
            expect(contract_drain(f, -EAGAIN));
        }
    }
    return true;
}

static inline bool a_batch_of_none_moves_none(contract_fixture *f)
{
    expect(contract_push_many(f, 0) == 0);
    expect(contract_push(f) == 0);
    expect(contract_push_many(f, 0) == 0);
    expect(contract_pop_many(f, 0) == 0);
    expect(contract_count(f) == 1);
    return contract_drain(f, -EAGAIN);
}

static inline bool it_is_closed(contract_fixture *f)
{
    expect(contract_push(f) == -EPIPE);
    expect(contract_push_many(f, 3) == -EPIPE);
    return true;
}

static inline bool closed_it_takes_no_more_and_what_is_in_it_is_popped(contract_fixture *f)
{
    static const size_t counts[] = {0, 1, 2, 10, 99, 100};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        contract_renew(f, 100);
        expect(contract_fill(f, 7)); /* it does not begin where it was made */
        expect(contract_drain(f, -EAGAIN));
        expect(contract_fill(f, counts[i]));
        f->kind->close(f->queue);
        expect(it_is_closed(f));
        if (counts[i] > 1)
            expect(contract_pop(f) == 0);
        f->kind->close(f->queue);
        expect(it_is_closed(f));
        expect(contract_drain(f, -EPIPE));
        expect(it_is_closed(f));
        f->kind->close(f->queue);
        expect(contract_drain(f, -EPIPE));
    }
    return true;
}

static inline bool closed_it_gives_batches_to_the_end(contract_fixture *f)
{
    expect(contract_fill(f, 100));
    f->kind->close(f->queue);
    for (size_t left; (left = contract_count(f)) != 0;)
        expect(contract_pop_many(f, left < 7 ? left + 1 : 7) > 0);
    expect(contract_pop_many(f, 7) == -EPIPE);
    return contract_drain(f, -EPIPE);
}

/* A later consumer gets the elements that an earlier one has left. */
static inline bool one_comes_when_another_has_left(contract_fixture *f)
{
    for (int i = 0; i < 1000; i++) {
        expect(contract_fill(f, 5));
        f->kind->leave(f->queue, f->seat);
        f->seat = f->kind->enter(f->queue);
        expect(contract_pop(f) == 0);
        expect(contract_pop(f) == 0);
    }
    f->kind->leave(f->queue, f->seat);
    f->seat = f->kind->enter(f->queue);
    return contract_drain(f, -EAGAIN);
}

/* The capacity of a bounded queue, and many elements of an unbounded one. */
static inline bool after_heavy_use_a_burst_comes_out_whole(contract_fixture *f)
{
    size_t max = queue_is(f->kind, QUEUE_BOUNDED) ? 1000 : 30000;
    contract_renew(f, max);
    for (int i = 0; i < 20000; i++) {
        expect(contract_push(f) == 0);
        expect(contract_pop(f) == 0);
    }
    for (int i = 0; i < 3; i++) {
        expect(contract_fill(f, max));
        expect(contract_drain(f, -EAGAIN));
    }
    for (int i = 0; i < 50; i++) {
        expect(contract_fill(f, testing_random(&f->random) % 1000));
        expect(contract_drain(f, -EAGAIN));
    }
    return true;
}

/* Random operations, with the expected results. */
static inline bool one_at_random(contract_fixture *f)
{
    bool bounded = queue_is(f->kind, QUEUE_BOUNDED), closed = false;
    for (int i = 0; i < 200; i++) {
        uint64_t number = testing_random(&f->random);
        size_t room = f->capacity - contract_count(f), there = contract_count(f);
        size_t count = 1 + number / 8 % CONTRACT_BATCH;
        bool one = number / 1024 % 2 == 0;
        ptrdiff_t answer, wanted;
        if (number % 100 == 99) {
            f->kind->close(f->queue);
            closed = true;
        }
        if (number % 2 == 0) {
            if (!bounded && room < count)
                continue;
            answer = one ? contract_push(f) : contract_push_many(f, count);
            wanted = closed ? -EPIPE : room == 0 ? -ENOBUFS : 0;
            count = room < count ? room : count;
        } else {
            answer = one ? contract_pop(f) : contract_pop_many(f, count);
            wanted = there != 0 ? 0 : closed ? -EPIPE : -EAGAIN;
            count = there < count ? there : count;
        }
        if (one || wanted != 0)
            expect(answer == wanted);
        else
            expect(answer > 0 && (size_t)answer <= count);
    }
    return contract_drain(f, closed ? -EPIPE : -EAGAIN);
}

static inline bool at_random_it_answers_what_it_must(contract_fixture *f)
{
    for (int i = 0; i < 100; i++) {
        contract_renew(f, 1 + testing_random(&f->random) % 60);
        expect(one_at_random(f));
    }
    return true;
}

#endif
