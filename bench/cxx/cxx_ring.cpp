// A producer and a consumer over a ring, as tasks of bide on one run loop or on one each. As in ring_bide.c.

#include "cxx.h"

#include "../ring_bide.h"

#include "bide/bide.hpp"

#include <algorithm>

namespace
{

struct shared {
    uint64_t *ring;
    uint64_t items;
    size_t batch;
    uint64_t sum = 0;
    alignas(BIDE_CACHE_LINE) bide_sequence_barrier cursor;
    alignas(BIDE_CACHE_LINE) bide_sequence_barrier consumed;
    bide_sequence_barrier *members[1];
    bide_sequence_group gate;
    bide_single_producer_sequencer sequencer;
};

bide::task<> produce(shared &s)
{
    uint64_t *ring = s.ring;
    for (uint64_t sent = 0; sent < s.items;) {
        size_t max = static_cast<size_t>(std::min<uint64_t>(s.batch, s.items - sent));
        auto wait = bide::wait(bide_single_producer_sequencer_claim_up_to, &s.sequencer, max);
        (co_await wait).value();
        const bide_sequence first = wait.waiter().first;
        const size_t count = wait.waiter().count;
        for (size_t i = 0; i < count; i++)
            ring[(first + i) & (BENCH_RING - 1)] = sent++;
        bide_single_producer_sequencer_publish_range(&s.sequencer, first, count);
    }
}

bide::task<> consume(shared &s)
{
    const uint64_t *ring = s.ring;
    uint64_t sum = 0;
    for (bide_sequence next = 0; next < s.items;) {
        const bide_sequence last =
            (co_await bide::wait(bide_sequence_barrier_wait_until_published, &s.cursor, next))
                .value();
        for (; next != last + 1; next++)
            sum += ring[next & (BENCH_RING - 1)];
        bide_sequence_barrier_publish(&s.consumed, last);
    }
    s.sum = sum;
}

uint64_t run(uint64_t items, size_t batch, unsigned loops)
{
    static uint64_t numbers[BENCH_RING];
    static bench_party parties[2];
    shared s;
    s.ring = numbers;
    s.items = items;
    s.batch = batch;
    s.members[0] = &s.consumed;
    bide_sequence_barrier_init(&s.cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&s.consumed, bide_sequence_initial());
    bide_sequence_group_init(&s.gate, s.members, 1);
    bide_single_producer_sequencer_init(&s.sequencer, &s.cursor, &s.gate, BENCH_RING);
    bide::task<> producer = produce(s), consumer = consume(s);
    parties[0].awaiter = producer.awaiter();
    parties[0].loop = 0;
    parties[1].awaiter = consumer.awaiter();
    parties[1].loop = loops - 1;
    bench_loops_run(parties, 2, BENCH_LOOKS);
    return s.sum;
}

} // namespace

const struct cxx_ring PEER(cxx_ring) = {run};
