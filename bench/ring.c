/*
 * One producer and one consumer coroutine over a ring of 16384 numbers: on one thread and on two (a run
 * loop each), claimed and published one at a time or in batches; beside a ring under a mutex and two
 * condition variables (peers/ring.sh adds the Disruptor for Java). The consumer takes all that is
 * published when it looks, as the Disruptor's does.
 */
#define _GNU_SOURCE
#include "bench.h"

#include "bide/bide.h"

#include "peers/locked_ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RING = 16384 };

struct setting {
    int threads;
    size_t batch;
    uint64_t items;
};

typedef bide_ring(uint64_t) number_ring;

struct shared {
    number_ring ring;
    bide_sequence_barrier published;
    bide_sequence_barrier consumed;
    bide_sequence_barrier *gate_members[1];
    bide_sequence_group gate;
};

struct producer {
    bide_task task;
    struct shared *shared;
    uint64_t items;
    size_t batch;
    uint64_t sent;
    bide_single_producer_sequencer sequencer;
    bide_claim claim;
};

bide_coroutine(producer_body)
{
    bide_begin(producer_body, struct producer * self);
    while (self->sent < self->items) {
        size_t most =
            self->items - self->sent < self->batch ? self->items - self->sent : self->batch;
        bide_try(bide_single_producer_sequencer_claim_up_to(&self->claim, &self->sequencer, most));
        number_ring ring = self->shared->ring;
        size_t first = self->claim.first;
        uint64_t number = self->sent;
        self->sent += self->claim.count;
        for (size_t i = 0; i < self->claim.count; i++)
            *bide_ring_at(&ring, first + i) = number + i;
        bide_single_producer_sequencer_publish_range(&self->sequencer, first, self->claim.count);
    }
    bide_finally();
    bide_single_producer_sequencer_close(&self->sequencer);
    bide_end();
}

struct consumer {
    bide_task task;
    struct shared *shared;
    size_t next;
    uint64_t sum;
    bide_sequence_waiter wait;
};

bide_coroutine(consumer_body)
{
    bide_begin(consumer_body, struct consumer * self);
    for (;;) {
        bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &self->shared->published,
                                                            self->next));
        number_ring ring = self->shared->ring;
        size_t next = self->next, last = self->wait.published;
        uint64_t sum = self->sum;
        for (; next != last + 1; next++)
            sum += *bide_ring_at(&ring, next);
        self->sum = sum;
        self->next = next;
        bide_sequence_barrier_publish(&self->shared->consumed, last);
    }
    bide_end();
}

struct pair {
    bide_task task;
    struct producer producer;
    struct consumer consumer;
    bide_spawned spawned_consumer;
    bide_event_waiter wait;
};

/* Both on the thread of whoever awaits this. */
bide_coroutine(pair_body)
{
    bide_begin(pair_body, struct pair * self);
    bide_spawn(&self->spawned_consumer, bide_this_context(),
               bide_task_init(&self->consumer.task, &consumer_body));
    bide_await(bide_task_init(&self->producer.task, &producer_body));
    bide_await(bide_event_wait(&self->wait, &self->spawned_consumer.ended));
    bide_end();
}

static void *run_consumer(void *argument)
{
    struct consumer *consumer = argument;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_run_loop_wait(&loop, bide_task_init(&consumer->task, &consumer_body));
    return NULL;
}

static void check_sum(uint64_t sum, uint64_t items)
{
    if (sum != items * (items - 1) / 2) {
        fprintf(stderr, "ring: the consumer's sum is wrong\n");
        exit(1);
    }
}

static uint64_t run_bide(const void *argument)
{
    static uint64_t slots[RING];
    static struct shared shared;
    static struct pair pair;
    const struct setting *setting = argument;
    bide_run_loop loop;
    bide_run_loop_init(&loop);

    bide_ring_init(&shared.ring, slots, RING);
    bide_sequence_barrier_init(&shared.published, bide_sequence_initial());
    bide_sequence_barrier_init(&shared.consumed, bide_sequence_initial());
    shared.gate_members[0] = &shared.consumed;
    bide_sequence_group_init(&shared.gate, shared.gate_members, 1);
    pair.producer =
        (struct producer){.shared = &shared, .items = setting->items, .batch = setting->batch};
    bide_single_producer_sequencer_init(&pair.producer.sequencer, &shared.published, &shared.gate,
                                        RING);
    pair.consumer = (struct consumer){.shared = &shared};

    if (setting->threads == 1) {
        bide_run_loop_wait(&loop, bide_task_init(&pair.task, &pair_body));
    } else {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_consumer, &pair.consumer) != 0)
            exit(1);
        bide_run_loop_wait(&loop, bide_task_init(&pair.producer.task, &producer_body));
        pthread_join(thread, NULL);
    }
    check_sum(pair.consumer.sum, setting->items);
    return setting->items;
}

struct locked {
    struct locked_ring ring;
    const struct setting *setting;
    uint64_t sum;
};

static void *run_locked_consumer(void *argument)
{
    struct locked *locked = argument;
    uint64_t items[256];
    for (uint64_t seen = 0; seen < locked->setting->items;) {
        size_t count = locked_ring_pop(&locked->ring, items, locked->setting->batch);
        for (size_t i = 0; i < count; i++)
            locked->sum += items[i];
        seen += count;
    }
    return NULL;
}

static uint64_t run_locked(const void *argument)
{
    struct locked locked = {.setting = argument};
    uint64_t items[256];
    pthread_t thread;
    if (locked_ring_init(&locked.ring, RING) != 0 ||
        pthread_create(&thread, NULL, run_locked_consumer, &locked) != 0)
        exit(1);
    for (uint64_t sent = 0; sent < locked.setting->items;) {
        size_t count = 0;
        for (; count < locked.setting->batch && sent < locked.setting->items; count++)
            items[count] = sent++;
        locked_ring_push(&locked.ring, items, count);
    }
    pthread_join(thread, NULL);
    locked_ring_destroy(&locked.ring);
    check_sum(locked.sum, locked.setting->items);
    return locked.setting->items;
}

#define PARAMS(threads, batch) "{\"threads\": " #threads ", \"batch\": " #batch ", \"ring\": 16384}"
#define BIDE(threads, batch, items)                                                              \
    {                                                                                            \
        "bide", run_bide, &(const struct setting){threads, batch, items}, PARAMS(threads, batch) \
    }
#define LOCKED(batch, items)                                                                 \
    {                                                                                        \
        "mutex+cond", run_locked, &(const struct setting){2, batch, items}, PARAMS(2, batch) \
    }

int main(void)
{
    const bench_subject subjects[] = {
        BIDE(1, 1, 10000000), BIDE(1, 10, 50000000), BIDE(1, 256, 100000000),
        BIDE(2, 1, 10000000), BIDE(2, 10, 50000000), BIDE(2, 256, 100000000),
        LOCKED(1, 1000000),   LOCKED(10, 10000000),  LOCKED(256, 50000000),
    };
    bench_run("ring", BENCH_ITEMS_PER_SECOND, subjects, sizeof subjects / sizeof subjects[0], 9);
    return 0;
}
