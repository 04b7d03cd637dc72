/* Producers, consumers and their barriers in the topologies of ring_bide.h. Each party runs on its loop's thread. */
#include "ring_bide.h"

#include "bench.h"
#include "loops.h"

#include "bide/bide.h"
#include "bide/multi_producer_sequencer.h"

enum { MAX_PRODUCERS = 3, MAX_CONSUMERS = 3, MAX_PARTIES = 4 };

static const struct {
    unsigned producers;
    unsigned first; /* consumers right after them */
    unsigned after; /* consumers after all of these */
} topologies[] = {[RING_1_1] = {1, 1, 0},
                  [RING_1_3] = {1, 3, 0},
                  [RING_3_1] = {3, 1, 0},
                  [RING_1_2_1] = {1, 2, 1}};

typedef bide_ring(uint64_t) number_ring;

/* A stage: the barriers on which its consumers publish consumed numbers. */
struct stage {
    bide_sequence_barrier *members[MAX_CONSUMERS];
    bide_sequence_group group;
};

struct shared {
    number_ring ring;
    uint64_t items;
    size_t batch;
    bool spins;
    struct stage first;
    struct stage last;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_sequence_barrier cursor;
    bide_single_producer_sequencer single;
    bide_multi_producer_sequencer multi;
};

struct producer {
    bide_task task;
    struct shared *shared;
    uint64_t items; /* the numbers to send: 0 to items - 1 */
    uint64_t sent;
    bide_claim claim;
    bide_multi_producer_claim multi_claim;
};

struct consumer {
    bide_task task;
    struct shared *shared;
    size_t next;
    uint64_t sum;
    bide_sequence_waiter wait;
    bide_multi_producer_waiter multi_wait;
    bide_sequence_group_waiter group_wait;
    bide_adaptive_spin spin;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_sequence_barrier consumed;
};

static inline size_t max_producer(const struct producer *self)
{
    uint64_t left = self->items - self->sent;
    return left < self->shared->batch ? (size_t)left : self->shared->batch;
}

static inline void produce(struct producer *self, size_t first, size_t count)
{
    number_ring ring = self->shared->ring;
    uint64_t number = self->sent;
    self->sent += count;
    for (size_t i = 0; i < count; i++)
        *bide_ring_at(&ring, first + i) = number + i;
}

bide_coroutine(single_producer_body)
{
    bide_begin(single_producer_body, struct producer * self);
    while (self->sent < self->items) {
        bide_try(bide_single_producer_sequencer_claim_up_to(&self->claim, &self->shared->single,
                                                            max_producer(self)));
        produce(self, self->claim.first, self->claim.count);
        bide_single_producer_sequencer_publish_range(&self->shared->single, self->claim.first,
                                                     self->claim.count);
    }
    bide_end();
}

bide_coroutine(multi_producer_body)
{
    bide_begin(multi_producer_body, struct producer * self);
    while (self->sent < self->items) {
        bide_try(bide_multi_producer_sequencer_claim_up_to(&self->multi_claim, &self->shared->multi,
                                                           max_producer(self)));
        produce(self, self->multi_claim.first, self->multi_claim.count);
        bide_multi_producer_sequencer_publish_range(&self->shared->multi, self->multi_claim.first,
                                                    self->multi_claim.count);
    }
    bide_end();
}

static inline void consume(struct consumer *self, size_t last)
{
    number_ring ring = self->shared->ring;
    size_t next = self->next;
    uint64_t sum = self->sum;
    for (; next != last + 1; next++)
        sum += *bide_ring_at(&ring, next);
    self->sum = sum;
    self->next = next;
    bide_sequence_barrier_publish(&self->consumed, last);
}

bide_coroutine(consumer_body)
{
    bide_begin(consumer_body, struct consumer * self);
    while (self->next < self->shared->items) {
        if (self->shared->spins)
            bide_spin_until(
                &self->spin,
                !bide_sequence_precedes(bide_sequence_barrier_last_published(&self->shared->cursor),
                                        self->next));
        bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &self->shared->cursor,
                                                            self->next));
        consume(self, self->wait.published);
    }
    bide_end();
}

bide_coroutine(multi_consumer_body)
{
    bide_begin(multi_consumer_body, struct consumer * self);
    while (self->next < self->shared->items) {
        if (self->shared->spins)
            bide_spin_until(&self->spin, bide_multi_producer_sequencer_is_published(
                                             &self->shared->multi, self->next));
        bide_try(bide_multi_producer_sequencer_wait_until_published(
            &self->multi_wait, &self->shared->multi, self->next, self->next - 1));
        consume(self, self->multi_wait.published);
    }
    bide_end();
}

/* Comes after the consumers of the first stage. */
bide_coroutine(later_consumer_body)
{
    bide_begin(later_consumer_body, struct consumer * self);
    while (self->next < self->shared->items) {
        if (self->shared->spins)
            bide_spin_until(&self->spin,
                            bide_sequence_group_is_published(&self->shared->first.group, self->next,
                                                             &self->group_wait.published));
        bide_try(bide_sequence_group_wait_until_published(&self->group_wait,
                                                          &self->shared->first.group, self->next));
        consume(self, self->group_wait.published);
    }
    bide_end();
}

static bide_awaiter *init_consumer(struct consumer *consumer, struct shared *shared,
                                   struct stage *stage, unsigned index, const bide_point *body)
{
    consumer->shared = shared;
    consumer->next = 0;
    consumer->sum = 0;
    consumer->spin = (bide_adaptive_spin){0};
    bide_sequence_barrier_init(&consumer->consumed, bide_sequence_initial());
    stage->members[index] = &consumer->consumed;
    return bide_task_init(&consumer->task, body);
}

static unsigned loop_of(enum ring_placement placement, bool is_consumer, unsigned index)
{
    switch (placement) {
    case RING_APART:
        return is_consumer;
    case RING_DEALT:
        return index % BENCH_LOOPS;
    default:
        return 0;
    }
}

static void check_sum(uint64_t sum, uint64_t items, unsigned producers)
{
    uint64_t each = items / producers;
    if (sum != each * (each - 1) / 2 * producers)
        bench_fail("ring", "a consumer's sum is wrong");
}

uint64_t ring_bide_run(const void *argument)
{
    static uint64_t numbers[BENCH_RING];
    static bide_sequence_slot slots[BENCH_RING];
    static struct shared shared;
    static struct producer producers[MAX_PRODUCERS];
    static struct consumer consumers[MAX_CONSUMERS];
    static bench_party parties[MAX_PARTIES];

    const struct ring_setting *setting = argument;
    const unsigned producer_count = topologies[setting->topology].producers;
    const unsigned first = topologies[setting->topology].first;
    const unsigned after = topologies[setting->topology].after;
    const bool is_multi = producer_count > 1;

    shared.items = setting->items / producer_count * producer_count;
    shared.batch = setting->batch;
    shared.spins = setting->spins;
    bide_ring_init(&shared.ring, numbers, BENCH_RING);
    bide_sequence_barrier_init(&shared.cursor, bide_sequence_initial());

    unsigned party = 0;
    for (unsigned i = 0; i < producer_count; i++) {
        producers[i] = (struct producer){.shared = &shared, .items = shared.items / producer_count};
        parties[party].awaiter = bide_task_init(
            &producers[i].task, is_multi ? &multi_producer_body : &single_producer_body);
        parties[party].loop = loop_of(setting->placement, false, party);
        party++;
    }
    for (unsigned i = 0; i < first + after; i++) {
        bool is_later = i >= first;
        parties[party].awaiter =
            init_consumer(&consumers[i], &shared, is_later ? &shared.last : &shared.first,
                          is_later ? i - first : i,
                          is_later   ? &later_consumer_body
                          : is_multi ? &multi_consumer_body
                                     : &consumer_body);
        parties[party].loop = loop_of(setting->placement, true, party);
        party++;
    }

    bide_sequence_group_init(&shared.first.group, shared.first.members, first);
    bide_sequence_group_init(&shared.last.group, shared.last.members, after);
    bide_sequence_group *gate = after != 0 ? &shared.last.group : &shared.first.group;
    bide_single_producer_sequencer_init(&shared.single, &shared.cursor, gate, BENCH_RING);
    bide_multi_producer_sequencer_init(&shared.multi, slots, BENCH_RING, gate,
                                       bide_sequence_initial());

    bench_loops_run(parties, party, BENCH_LOOKS);

    for (unsigned i = 0; i < first + after; i++)
        check_sum(consumers[i].sum, shared.items, producer_count);
    return shared.items;
}
