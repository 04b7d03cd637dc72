/*
 * Threads move many elements through a queue, at full speed, one by one or in batches, to the end. Nothing is lost or
 * doubled, and each consumer sees the elements of each producer in their order. Nothing else orders the threads, not
 * even stamps: here ThreadSanitizer sees the ordering by the queue itself.
 */
#ifndef BIDE_TESTS_MOVES_H
#define BIDE_TESTS_MOVES_H

#include "sync/meeting.h"
#include "queue/queues.h"

enum {
    MOVES_PRODUCERS = 4,
    MOVES_CONSUMERS = 4,
    MOVES_BATCH = 32,
    MOVES_MANY = 10000000, /* with little room, more than this take too long */
    MOVES_WINDOW = 4096,   /* the most in an unbounded queue, besides a burst of each producer */
    MOVES_BURST = 64,
    MOVES_SHIFT = 40, /* a value has its producer in the upper bits, its number in the lower */
};

typedef struct moves moves;

/* A consumer's record of a producer's elements. */
typedef struct moves_seen {
    uint64_t next; /* no number below this is expected any more */
    uint64_t count, sum;
} moves_seen;

typedef struct mover {
    BIDE_ALIGNAS(BIDE_CACHE_LINE)
    bide_atomic(uint64_t) moved; /* written by the owner, read by producers */
    moves *moves;
    unsigned number;
    uint64_t random;
    uint64_t in_vain; /* how often it was full or empty */
    bool wrong;
    moves_seen seen[MOVES_PRODUCERS]; /* a consumer's */
    pthread_t id;
} mover;

struct moves {
    const queue_kind *kind;
    queue_crew crew;
    uint64_t each; /* elements of a producer */
    bool batches;
    void *queue;
    meeting meeting;
    bide_atomic(uint32_t) producing, consuming; /* threads */
    mover producers[MOVES_PRODUCERS], consumers[MOVES_CONSUMERS];
};

/* This sum over all numbers almost never matches if some occur twice and others are missing. */
static inline uint64_t moves_mix(uint64_t number)
{
    uint64_t product = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return product ^ product >> 32;
}

static inline uint64_t moves_count(const mover *movers, unsigned count)
{
    uint64_t moved = 0;
    for (unsigned i = 0; i < count; i++)
        moved += bide_atomic_load(&movers[i].moved, relaxed);
    return moved;
}

/* Waits while there are too many elements in the queue. Stops waiting when all consumers have ended. */
static inline void moves_wait_for_room(moves *m)
{
    uint32_t spins = 0;
    while (bide_atomic_load(&m->consuming, relaxed) != 0) {
        uint64_t popped = moves_count(m->consumers, m->crew.consumers);
        if (moves_count(m->producers, m->crew.producers) - popped <= MOVES_WINDOW)
            return;
        wait_a_moment(&spins);
    }
}

/*
 * The queue was full, or empty. Now and then the thread pauses for long, and then runs for long: in step, threads would
 * hand each other every element.
 */
static inline void moves_in_vain(mover *self, uint32_t *spins)
{
    self->in_vain++;
    wait_a_moment(spins);
    if (testing_random(&self->random) % 4 == 0)
        random_moment(&self->random, 300);
}

static inline ptrdiff_t moves_push(mover *self, void *seat, uint64_t first, size_t count)
{
    moves *m = self->moves;
    uint64_t values[MOVES_BATCH];
    for (size_t i = 0; i < count; i++)
        values[i] = (uint64_t)self->number << MOVES_SHIFT | (first + i);
    if (m->batches)
        return m->kind->push_many(m->queue, seat, values, count);
    int answer = m->kind->push(m->queue, seat, values);
    return answer == 0 ? 1 : answer;
}

static inline ptrdiff_t moves_pop(moves *m, void *seat, uint64_t *values, size_t count)
{
    if (m->batches)
        return m->kind->pop_many(m->queue, seat, values, count);
    int answer = m->kind->pop(m->queue, seat, values);
    return answer == 0 ? 1 : answer;
}

static inline size_t moves_batch(mover *self, uint64_t max)
{
    if (!self->moves->batches)
        return 1;
    uint64_t count = 1 + testing_random(&self->random) % MOVES_BATCH;
    return (size_t)(count < max ? count : max);
}

static inline void *moves_produce(void *argument)
{
    mover *self = argument;
    moves *m = self->moves;
    bool bounded = queue_is(m->kind, QUEUE_BOUNDED);
    void *seat = m->kind->enter(m->queue);
    uint64_t checked = 0;
    uint32_t spins = 0;
    meet(&m->meeting);
    for (uint64_t done = 0; done < m->each && !self->wrong;) {
        if (!bounded && done >= checked) {
            moves_wait_for_room(m);
            checked = done + MOVES_BURST;
        }
        size_t count = moves_batch(self, m->each - done);
        ptrdiff_t moved = moves_push(self, seat, done, count);
        if (moved > 0 && (size_t)moved <= count) {
            done += (uint64_t)moved;
            bide_atomic_store(&self->moved, done, relaxed);
            spins = 0;
        } else {
            moves_in_vain(self, &spins);
            self->wrong =
                !queue_is_full(m->kind, moved) || bide_atomic_load(&m->consuming, relaxed) == 0;
        }
    }
    /* The last producer closes; acq_rel: after all others have pushed. */
    if (bide_atomic_fetch_sub(&m->producing, 1, acq_rel) == 1)
        m->kind->close(m->queue);
    m->kind->leave(m->queue, seat);
    return NULL;
}

static inline void moves_see(mover *self, uint64_t value)
{
    uint64_t producer = value >> MOVES_SHIFT, number = value & ((UINT64_C(1) << MOVES_SHIFT) - 1);
    if (producer >= self->moves->crew.producers || number < self->seen[producer].next) {
        self->wrong = true;
        return;
    }
    moves_seen *seen = &self->seen[producer];
    seen->next = number + 1;
    seen->count++;
    seen->sum += moves_mix(number);
}

static inline void *moves_consume(void *argument)
{
    mover *self = argument;
    moves *m = self->moves;
    void *seat = m->kind->enter(m->queue);
    uint64_t values[MOVES_BATCH], done = 0;
    uint32_t spins = 0;
    ptrdiff_t moved;
    meet(&m->meeting);
    do {
        size_t count = moves_batch(self, MOVES_BATCH);
        moved = moves_pop(m, seat, values, count);
        if (moved > 0 && (size_t)moved <= count) {
            for (ptrdiff_t i = 0; i < moved; i++)
                moves_see(self, values[i]);
            done += (uint64_t)moved;
            bide_atomic_store(&self->moved, done, relaxed);
            spins = 0;
        } else if (moved == -EAGAIN) {
            moves_in_vain(self, &spins);
        }
    } while (moved > 0 || moved == -EAGAIN);
    if (moved != -EPIPE)
        self->wrong = true;
    bide_atomic_fetch_sub(&m->consuming, 1, relaxed);
    m->kind->leave(m->queue, seat);
    return NULL;
}

/* All threads have ended: each element has been seen once. */
static inline bool moves_are_good(const moves *m)
{
    uint64_t sum = 0;
    for (uint64_t number = 0; number < m->each; number++)
        sum += moves_mix(number);
    for (unsigned i = 0; i < m->crew.consumers; i++)
        expect(!m->consumers[i].wrong);
    for (unsigned i = 0; i < m->crew.producers; i++) {
        moves_seen all = {0};
        for (unsigned j = 0; j < m->crew.consumers; j++) {
            all.count += m->consumers[j].seen[i].count;
            all.sum += m->consumers[j].seen[i].sum;
        }
        expect(!m->producers[i].wrong);
        expect(all.count == m->each);
        expect(all.sum == sum);
    }
    return true;
}

static inline void mover_init(mover *self, moves *moves, unsigned number, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->moves = moves;
    self->number = number;
    self->random = seed;
    bide_atomic_init(&self->moved, 0);
}

/* One crew moves `count` elements, or a few fewer. */
static inline bool moves_one(moves *m, uint64_t count, size_t capacity, uint64_t *random)
{
    uint64_t in_vain = 0;
    m->each = count / m->crew.producers;
    m->queue = m->kind->create(capacity);
    meeting_init(&m->meeting, m->crew.producers + m->crew.consumers);
    bide_atomic_init(&m->producing, m->crew.producers);
    bide_atomic_init(&m->consuming, m->crew.consumers);
    for (unsigned i = 0; i < m->crew.producers; i++)
        mover_init(&m->producers[i], m, i, testing_random(random));
    for (unsigned i = 0; i < m->crew.consumers; i++)
        mover_init(&m->consumers[i], m, i, testing_random(random));
    uint64_t begun = bide_platform.now();
    for (unsigned i = 0; i < m->crew.producers; i++)
        start_thread(&m->producers[i].id, moves_produce, &m->producers[i]);
    for (unsigned i = 0; i < m->crew.consumers; i++)
        start_thread(&m->consumers[i].id, moves_consume, &m->consumers[i]);
    for (unsigned i = 0; i < m->crew.producers; i++, in_vain += m->producers[i - 1].in_vain)
        join_thread(m->producers[i].id);
    for (unsigned i = 0; i < m->crew.consumers; i++, in_vain += m->consumers[i - 1].in_vain)
        join_thread(m->consumers[i].id);
    uint64_t milliseconds = (bide_platform.now() - begun) / 1000000;
    printf("# %u to %u, %s: %llu in %llu ms, %llu times in vain\n", m->crew.producers,
           m->crew.consumers, m->batches ? "batches" : "one by one",
           (unsigned long long)moves_count(m->producers, m->crew.producers),
           (unsigned long long)milliseconds, (unsigned long long)in_vain);
    m->kind->destroy(m->queue);
    return moves_are_good(m);
}

/* All crews that the queue allows move `count` elements in total, or a few fewer. */
static inline bool moves_run(const queue_kind *kind, uint64_t count, uint64_t seed)
{
    uint64_t runs = 0;
    uint64_t random = seed;
    for (unsigned i = 0; i < QUEUE_CREWS; i++)
        runs += queue_allows(kind, &queue_crews[i]) ? 2 : 0;
    for (unsigned i = 0; i < 2 * QUEUE_CREWS; i++) {
        static moves m;
        size_t capacity = 1 + testing_random(&random) % 1000;
        if (count > MOVES_MANY)
            capacity += 1000;
        m.kind = kind;
        m.crew = queue_crews[i / 2];
        m.batches = i % 2 != 0;
        if (!queue_is(kind, QUEUE_BOUNDED))
            capacity = MOVES_WINDOW + MOVES_PRODUCERS * (MOVES_BURST + MOVES_BATCH);
        if (queue_allows(kind, &m.crew))
            expect(moves_one(&m, count / runs, capacity, &random));
    }
    return true;
}

#endif
