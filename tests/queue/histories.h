/*
 * Threads use a queue at random for a short while, and record their operations and times: the history must be that of a
 * queue (fifo_history.h). The queue may be closed in the middle. Then also:
 *
 *     1. No push that began after a close had ended succeeds, and none fails with -EPIPE before a close has begun.
 *     2. Once a pop has returned -EPIPE, no pop succeeds any more.
 *     3. Each consumer ends with -EPIPE, and then nothing is left: the accepted elements are exactly the popped ones.
 */
#ifndef BIDE_TESTS_HISTORIES_H
#define BIDE_TESTS_HISTORIES_H

#include "sync/meeting.h"
#include "queue/fifo_history.h"
#include "queue/queues.h"

enum {
    HISTORY_THREADS = 6,
    HISTORY_BATCH = 4,
    HISTORY_EMPTY =
        64, /* pops of nothing that a thread records, besides one for each of its operations */
};

typedef struct history history;

typedef struct history_thread {
    history *history;
    unsigned number;
    bool pushes, pops;
    uint64_t random;
    uint64_t value; /* of its next push */
    fifo_log log;
    size_t empties;
    uint64_t close_began, close_ended; /* the following are UINT64_MAX if they have not happened */
    uint64_t told;                     /* the end of the first operation that returned -EPIPE */
    uint64_t finished;                 /* ... the first such pop */
    bool wrong;                        /* an invalid result */
    pthread_t id;
} history_thread;

/* Draws the options of a round; then runs it. */
struct history {
    const queue_kind *kind;
    unsigned count; /* of threads */
    uint32_t rounds;
    size_t operations, reserve; /* of a thread */
    bool batches, closes;
    unsigned closer;
    size_t close_at; /* which of its operations */
    uint32_t pause;
    void *queue;
    meeting meeting;
    fifo_clock clock;
    history_thread threads[HISTORY_THREADS];
    fifo_operation *all;
    uint64_t pushed, empties, closed, told; /* in all rounds */
};

/* ---- What threads do ---- */

static inline uint64_t history_min(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

static inline void history_close(history_thread *self)
{
    history *h = self->history;
    uint64_t began = fifo_stamp(&h->clock);
    h->kind->close(h->queue);
    uint64_t ended = fifo_stamp(&h->clock);
    self->close_began = history_min(self->close_began, began);
    self->close_ended = history_min(self->close_ended, ended);
}

/* Now and then yields the processor. */
static inline void history_in_vain(history_thread *self)
{
    if (testing_random(&self->random) % 8 == 0)
        bide_platform.yield();
}

static inline void history_push(history_thread *self, void *seat)
{
    history *h = self->history;
    uint64_t values[HISTORY_BATCH];
    size_t count = h->batches ? 1 + testing_random(&self->random) % HISTORY_BATCH : 1;
    for (size_t i = 0; i < count; i++)
        values[i] = self->value + i;
    bool many = h->batches && testing_random(&self->random) % 4 != 0;
    count = many ? count : 1;
    uint64_t began = fifo_stamp(&h->clock);
    ptrdiff_t moved = many ? h->kind->push_many(h->queue, seat, values, count)
                           : h->kind->push(h->queue, seat, values);
    uint64_t ended = fifo_stamp(&h->clock);
    moved = !many && moved == 0 ? 1 : moved;
    if (moved > 0 && (size_t)moved <= count) {
        fifo_log_add(&self->log, FIFO_PUSH, values, (size_t)moved, began, ended);
        self->value += (uint64_t)moved;
    } else if (moved == -EPIPE) {
        self->told = history_min(self->told, ended);
    } else {
        self->wrong = self->wrong || !queue_is_full(h->kind, moved);
        history_in_vain(self);
    }
}

/* Only if the row is exact when empty; and only a limited number, so that there is room for all others. */
static inline void history_found_nothing(history_thread *self, uint64_t began, uint64_t ended)
{
    history *h = self->history;
    if (queue_is(h->kind, QUEUE_EXACT_EMPTY) && self->empties < h->operations + HISTORY_EMPTY) {
        fifo_log_add(&self->log, FIFO_EMPTY, NULL, 1, began, ended);
        self->empties++;
    }
}

static inline ptrdiff_t history_pop(history_thread *self, void *seat)
{
    history *h = self->history;
    uint64_t values[HISTORY_BATCH];
    bool many = h->batches && testing_random(&self->random) % 4 != 0;
    size_t count = many ? 1 + testing_random(&self->random) % HISTORY_BATCH : 1;
    uint64_t began = fifo_stamp(&h->clock);
    ptrdiff_t moved = many ? h->kind->pop_many(h->queue, seat, values, count)
                           : h->kind->pop(h->queue, seat, values);
    uint64_t ended = fifo_stamp(&h->clock);
    moved = !many && moved == 0 ? 1 : moved;
    if (moved > 0 && (size_t)moved <= count && fifo_log_has_room(&self->log, (size_t)moved)) {
        fifo_log_add(&self->log, FIFO_POP, values, (size_t)moved, began, ended);
    } else if (moved == -EAGAIN) {
        history_found_nothing(self, began, ended);
        history_in_vain(self);
    } else if (moved == -EPIPE) {
        fifo_log_add(&self->log, FIFO_EMPTY, NULL, 1, began, ended);
        self->told = history_min(self->told, ended);
        self->finished = history_min(self->finished, ended);
    } else {
        self->wrong = true;
    }
    return moved;
}

static inline void history_act(history_thread *self)
{
    history *h = self->history;
    void *seat = h->kind->enter(h->queue);
    bool closes = h->closes && h->closer == self->number;
    for (size_t i = 0; i < h->operations; i++) {
        if (closes && i == h->close_at)
            history_close(self);
        bool push = self->pushes && (!self->pops || testing_random(&self->random) % 2 == 0);
        if (push)
            history_push(self, seat);
        else if (self->finished == UINT64_MAX)
            history_pop(self, seat);
        random_moment(&self->random, h->pause);
    }
    if (closes)
        history_close(self); /* or again */
    uint32_t spins = 0;
    while (h->closes && self->pops && self->finished == UINT64_MAX && !self->wrong)
        if (history_pop(self, seat) == -EAGAIN)
            wait_a_moment(&spins);
    h->kind->leave(h->queue, seat);
}

/* ---- The expected result ---- */

/* All other threads have ended: pops the remaining elements. */
static inline bool history_drain(history *h)
{
    history_thread *self = &h->threads[0];
    void *seat = h->kind->enter(h->queue);
    ptrdiff_t answer;
    while ((answer = history_pop(self, seat)) > 0)
        expect(!h->closes); /* 3 */
    expect(answer == (h->closes ? -EPIPE : -EAGAIN));
    h->kind->leave(h->queue, seat);
    return true;
}

static inline bool history_is_good(history *h)
{
    uint64_t close_began = UINT64_MAX, close_ended = UINT64_MAX, finished = UINT64_MAX;
    uint64_t told = UINT64_MAX;
    size_t count = 0, popped = 0, pushed = 0;
    expect(history_drain(h));
    for (unsigned i = 0; i < h->count; i++) {
        history_thread *t = &h->threads[i];
        expect(!t->wrong);
        close_began = history_min(close_began, t->close_began);
        close_ended = history_min(close_ended, t->close_ended);
        told = history_min(told, t->told);
        finished = history_min(finished, t->finished);
        memcpy(&h->all[count], t->log.operations, t->log.count * sizeof *h->all);
        count += t->log.count;
        h->empties += t->empties;
        h->told += t->told != UINT64_MAX;
    }
    expect(close_began <= told);
    for (size_t i = 0; i < count; i++) {
        const fifo_operation *operation = &h->all[i];
        expect(operation->kind != FIFO_PUSH || operation->began < close_ended);
        expect(operation->kind != FIFO_POP || operation->began < finished);
        pushed += operation->kind == FIFO_PUSH;
        popped += operation->kind == FIFO_POP;
    }
    fifo_verdict verdict = fifo_history_check(h->all, count);
    fifo_verdict_print(&verdict);
    expect(verdict.fault == FIFO_GOOD);
    expect(pushed == popped);
    h->pushed += pushed;
    h->closed += h->closes;
    return true;
}

/* ---- Rounds ---- */

static inline void *history_others(void *argument)
{
    history_thread *self = argument;
    for (;;) {
        meet(&self->history->meeting);
        if (self->history->count == 0)
            return NULL;
        history_act(self);
        meet(&self->history->meeting);
    }
}

static inline void history_begin_round(history *h, uint64_t *random)
{
    const queue_kind *kind = h->kind;
    size_t capacity = 1 + testing_random(random) % 8;
    if (!queue_is(kind, QUEUE_BOUNDED) || testing_random(random) % 4 == 0)
        capacity = h->count * h->operations * HISTORY_BATCH;
    h->queue = kind->create(capacity);
    h->batches = testing_random(random) % 2 == 0;
    h->pause = testing_random(random) % 2 == 0 ? 0 : 60;
    h->close_at = testing_random(random) % (h->operations + 1);
    do
        h->closer = testing_random(random) % h->count;
    while (queue_is(kind, QUEUE_ONE_PRODUCER) && !h->threads[h->closer].pushes);
    fifo_clock_init(&h->clock);
    for (unsigned i = 0; i < h->count; i++) {
        history_thread *t = &h->threads[i];
        t->value = (uint64_t)(i + 1) << 32;
        t->log.count = t->empties = 0;
        t->close_began = t->close_ended = t->told = t->finished = UINT64_MAX;
        t->wrong = false;
    }
}

static inline void history_init(history *h, const queue_crew *crew, uint64_t *random)
{
    /* Pushes of all threads, all of which one thread may pop; its own pushes; and pops of nothing. */
    size_t max =
        (h->count + 1) * h->operations * HISTORY_BATCH + h->operations + HISTORY_EMPTY + 8;
    meeting_init(&h->meeting, h->count);
    h->all = calloc(h->count * max, sizeof *h->all);
    assert_non_null(h->all);
    for (unsigned i = 0; i < h->count; i++) {
        history_thread *t = &h->threads[i];
        t->history = h;
        t->number = i;
        t->pushes = crew->consumers == 0 || i < crew->producers;
        t->pops = crew->consumers == 0 || !t->pushes;
        t->random = testing_random(random);
        t->log.operations = calloc(max, sizeof *t->log.operations);
        t->log.max = max;
        assert_non_null(t->log.operations);
    }
}

/* Runs so many rounds with one crew. No consumers: all threads push and pop. */
static inline bool history_rounds(const queue_kind *kind, const queue_crew *crew, uint32_t rounds,
                                  size_t operations, bool closes, uint64_t *random)
{
    static history h;
    bool good = true;
    memset(&h, 0, sizeof h);
    h.kind = kind;
    h.count = crew->producers + crew->consumers;
    h.operations = operations;
    h.closes = closes;
    history_init(&h, crew, random);
    unsigned count = h.count;
    for (unsigned i = 1; i < count; i++)
        start_thread(&h.threads[i].id, history_others, &h.threads[i]);
    for (uint32_t round = 0; round < rounds && good; round++) {
        history_begin_round(&h, random);
        meet(&h.meeting);
        history_act(&h.threads[0]);
        meet(&h.meeting);
        good = history_is_good(&h);
        kind->destroy(h.queue);
    }
    h.count = 0;
    meet(&h.meeting);
    for (unsigned i = 1; i < count; i++)
        join_thread(h.threads[i].id);
    for (unsigned i = 0; i < count; i++)
        free(h.threads[i].log.operations);
    free(h.all);
    printf("# %u to %u: %llu pushed, %llu times nothing, %llu were told that it is closed\n",
           crew->producers, crew->consumers, (unsigned long long)h.pushed,
           (unsigned long long)h.empties, (unsigned long long)h.told);
    return good;
}

/* All crews that the queue allows, and a crew whose threads push and pop. */
static inline bool history_run(const queue_kind *kind, uint32_t rounds, size_t operations,
                               bool closes, uint64_t seed)
{
    static const queue_crew all = {.producers = 4};
    uint64_t random = seed;
    for (unsigned i = 0; i < QUEUE_CREWS; i++)
        if (queue_allows(kind, &queue_crews[i]))
            expect(history_rounds(kind, &queue_crews[i], rounds, operations, closes, &random));
    if ((kind->traits & (QUEUE_ONE_PRODUCER | QUEUE_ONE_CONSUMER)) == 0)
        expect(history_rounds(kind, &all, rounds, operations, closes, &random));
    return true;
}

#endif
