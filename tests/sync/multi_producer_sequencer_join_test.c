/*
 * Consumers that join the gate of a multi-producer sequencer and leave it while producers on threads of their own claim
 * and publish, with 8 bits, so that sequences wrap often. Each consumer gets everything that is claimed after its
 * start, each once, and no slot is overwritten before the consumer has released it.
 */
#include "sync/meeting.h"

#include "bide/sequence8.h"

enum { PRODUCERS = 3, VISITORS = 2, MAX_SIZE = 32 };

/* A producer writes its number, and the count of its writes. */
typedef struct message {
    uint32_t producer;
    uint32_t number;
    uint32_t inverse; /* of number, to detect a slot that is half written */
    uint8_t sequence;
} message;

typedef struct flow {
    bide_sequence_barrier8 consumed;
    bide_sequence_barrier8 *members[1];
    bide_sequence_group8 gate;
    bide_sequence_slot8 words[MAX_SIZE];
    bide_multi_producer_sequencer8 sequencer;
    message messages[MAX_SIZE];
    uint8_t size;
    uint8_t initial;
    uint32_t visits;
    uint64_t seed;
    bide_atomic(uint32_t) visiting; /* visitors that have not finished */
} flow;

typedef struct party {
    flow *flow;
    uint32_t which;
    uint64_t wrong;
    uint64_t count; /* messages written, or read */
    pthread_t thread;
} party;

static message *message_of(flow *flow, uint8_t sequence)
{
    return &flow->messages[sequence & (uint8_t)(flow->size - 1)];
}

/* Runs until every visitor has finished. */
static void *produce(void *argument)
{
    party *self = argument;
    flow *flow = self->flow;
    bide_multi_producer_sequencer8 *sequencer = &flow->sequencer;
    uint64_t random = flow->seed + self->which;
    while (bide_atomic_load(&flow->visiting, acquire) != 0) {
        bide_multi_producer_claim8 claim;
        uint8_t max = (uint8_t)(1 + testing_random(&random) % flow->size);
        self->wrong += bide_multi_producer_sequencer8_claim_up_to_blocking(&claim, sequencer, max,
                                                                           BIDE_FOREVER) != 0;
        random_moment(&random, 30);
        if (testing_random(&random) % 8 == 0) {
            bide_multi_producer_sequencer8_abandon(sequencer, claim.first, claim.count);
            continue;
        }
        for (uint8_t i = 0; i < claim.count; i++) {
            uint32_t number = (uint32_t)self->count++;
            *message_of(flow, (uint8_t)(claim.first + i)) =
                (message){self->which, number, ~number, (uint8_t)(claim.first + i)};
        }
        if (testing_random(&random) % 2 == 0) {
            bide_multi_producer_sequencer8_publish_range(sequencer, claim.first, claim.count);
        } else {
            for (uint8_t i = claim.count; i != 0; i--)
                bide_multi_producer_sequencer8_publish(sequencer, (uint8_t)(claim.first + i - 1));
        }
    }
    return NULL;
}

/*
 * Reads everything after `start`, until it is past `max` or the end. The numbers of each producer come without a gap,
 * from any on (`whole`: from 0 on).
 */
static bool read_on(party *self, bide_sequence_barrier8 *own, uint8_t start, bool whole,
                    uint64_t max, uint64_t *random)
{
    flow *flow = self->flow;
    uint32_t expected[PRODUCERS] = {0};
    bool seen[PRODUCERS] = {whole, whole, whole};
    uint8_t known = start;
    for (uint64_t passed = 0; passed < max;) {
        bide_multi_producer_waiter8 wait;
        int status = bide_multi_producer_sequencer8_wait_until_published_blocking(
            &wait, &flow->sequencer, (uint8_t)(known + 1), known, BIDE_FOREVER);
        if (status != 0) {
            self->wrong += status != -EPIPE;
            return false;
        }
        uint8_t many = (uint8_t)(wait.published - known);
        self->wrong += many < 1 || many > flow->size;
        random_moment(random, 20);
        for (; many != 0; many--, passed++) {
            known++;
            if (bide_multi_producer_sequencer8_is_abandoned(&flow->sequencer, known))
                continue;
            message m = *message_of(flow, known);
            if (m.producer >= PRODUCERS || m.inverse != ~m.number || m.sequence != known) {
                self->wrong++;
                continue;
            }
            self->wrong += seen[m.producer] && m.number != expected[m.producer];
            seen[m.producer] = true;
            expected[m.producer] = m.number + 1;
            self->count++;
        }
        bide_sequence_barrier8_publish(own, known);
    }
    return true;
}

/* The fixed member: it gets all. */
static void *stay(void *argument)
{
    party *self = argument;
    uint64_t random = self->flow->seed + self->which;
    read_on(self, &self->flow->consumed, self->flow->initial, true, UINT64_MAX, &random);
    return NULL;
}

static void *visit(void *argument)
{
    party *self = argument;
    flow *flow = self->flow;
    uint64_t random = flow->seed + self->which;
    for (uint32_t i = 0; i < flow->visits; i++) {
        bide_sequence_group_member8 member;
        bide_sequence_barrier8 own;
        uint8_t start;
        self->wrong +=
            bide_multi_producer_sequencer8_join(&flow->sequencer, &member, &own, &start) != 0;
        random_moment(&random, testing_random(&random) % 4 == 0 ? 1000 : 10);
        self->wrong +=
            !read_on(self, &own, start, false, 1 + testing_random(&random) % 40, &random);
        bide_sequence_group8_leave_blocking(&flow->gate, &member);
        memset(&member, 0x5a, sizeof member);
        memset(&own, 0x5a, sizeof own);
        random_moment(&random, testing_random(&random) % 4 == 0 ? 2000 : 50);
    }
    bide_atomic_fetch_sub(&flow->visiting, 1, release);
    return NULL;
}

static void run_flow(uint8_t size, uint32_t visits, uint64_t seed)
{
    enum { STAYER = PRODUCERS + VISITORS, PARTIES };
    static flow flow;
    static party parties[PARTIES];
    memset(&flow, 0, sizeof flow);
    memset(parties, 0, sizeof parties);
    flow.size = size;
    flow.initial = (uint8_t)seed;
    flow.visits = visits;
    flow.seed = seed;
    flow.members[0] = &flow.consumed;
    bide_sequence_barrier8_init(&flow.consumed, flow.initial);
    bide_sequence_group8_init(&flow.gate, flow.members, 1);
    assert_int_equal(bide_multi_producer_sequencer8_init(&flow.sequencer, flow.words, size,
                                                         &flow.gate, flow.initial),
                     0);
    bide_atomic_init(&flow.visiting, VISITORS);
    for (uint32_t i = 0; i < PARTIES; i++) {
        parties[i].flow = &flow;
        parties[i].which = i;
        start_thread(&parties[i].thread,
                     i == STAYER     ? stay
                     : i < PRODUCERS ? produce
                                     : visit,
                     &parties[i]);
    }
    uint64_t written = 0, read = 0;
    for (uint32_t i = 0; i < STAYER; i++) {
        join_thread(parties[i].thread);
        *(i < PRODUCERS ? &written : &read) += parties[i].count;
    }
    bide_multi_producer_sequencer8_close(&flow.sequencer);
    join_thread(parties[STAYER].thread);
    for (uint32_t i = 0; i < PARTIES; i++)
        assert_int_equal(parties[i].wrong, 0);
    assert_int_equal(parties[STAYER].count, written);
    assert_true(read > visits); /* they did read */
    bide_multi_producer_sequencer8_destroy(&flow.sequencer);
    bide_sequence_group8_destroy(&flow.gate);
}

static void a_consumer_that_comes_and_goes_gets_all_that_is_claimed_meanwhile(void **state)
{
    (void)state;
    const uint8_t sizes[] = {1, 4, MAX_SIZE};
    uint64_t seed = testing_seed();
    for (int i = 0; i < 3; i++)
        run_flow(sizes[i], rounds_of(i == 0 ? 400 : 6000), seed + (uint64_t)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_consumer_that_comes_and_goes_gets_all_that_is_claimed_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
