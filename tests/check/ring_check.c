/*
 * Sequencer, group and ring: one producer, one and two consumers, 8-bit sequences that wrap. A slot
 * is plain memory, so a write while the slot may still be read is a race.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/ring.h"
#include "bide/sequence8.h"
#include "bide/task.h"

#include "watched.h"

#include <errno.h>

enum { MAX_SLOTS = 2, FIRST = 254 };

typedef struct state {
    bide_sequence_barrier8 cursor;
    bide_sequence_barrier8 consumed[2];
    bide_sequence_barrier8 *members[2];
    bide_sequence_group8 gate;
    bide_single_producer_sequencer8 sequencer;
    int slots[MAX_SLOTS];
    unsigned total;  /* the number of elements */
    bool never_ends; /* the last one is not published */
    bide_ring(int) ring;
} state;

static void setup_for(state *s, unsigned consumers, unsigned slots, unsigned total)
{
    s->total = total;
    bide_sequence_barrier8_init(&s->cursor, FIRST - 1);
    WATCH(&s->cursor.waiters);
    for (unsigned i = 0; i < consumers; i++) {
        bide_sequence_barrier8_init(&s->consumed[i], FIRST - 1);
        WATCH(&s->consumed[i].waiters);
        s->members[i] = &s->consumed[i];
    }
    bide_sequence_group8_init(&s->gate, s->members, consumers);
    bide_check_assert(bide_single_producer_sequencer8_init(&s->sequencer, &s->cursor, &s->gate,
                                                           (uint8_t)slots) == 0);
    bide_check_assert(bide_ring_init(&s->ring, s->slots, slots));
}

static void produce_first(state *s)
{
    bide_claim8 claim;
    bide_check_await(bide_single_producer_sequencer8_claim_up_to(&claim, &s->sequencer, 1));
    *bide_ring_at(&s->ring, claim.first) = 1;
    bide_single_producer_sequencer8_publish_range(&s->sequencer, claim.first, 1);
}

/* One of the two slots is full. */
static void setup_one(void *p)
{
    setup_for(p, 1, 2, 3);
    produce_first(p);
}

/* The one slot is full. */
static void setup_two(void *p)
{
    state *s = p;
    setup_for(s, 2, 1, 2);
    s->never_ends = true;
    produce_first(s);
}

/* ---- The producer: one slot at a time, and as many as are free ---- */

static unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

struct producer {
    bide_task task;
    state *state;
    unsigned max; /* at once */
    unsigned produced;
    int status;
    bide_claim8 claim;
};

bide_coroutine(producer_body)
{
    bide_begin(producer_body, struct producer * self);
    while (self->produced < self->state->total) {
        bide_await_status(self->status,
                          bide_single_producer_sequencer8_claim_up_to(
                              &self->claim, &self->state->sequencer,
                              (uint8_t)min(self->max, self->state->total - self->produced)));
        if (self->status < 0)
            bide_return(self->status);
        bide_check_assert(self->claim.count >= 1 && self->claim.count <= self->max);
        for (uint8_t i = 0; i < self->claim.count; i++)
            *bide_ring_at(&self->state->ring, (uint8_t)(self->claim.first + i)) =
                (int)++self->produced;
        if (self->produced == self->state->total && self->state->never_ends)
            bide_return(0);
        bide_single_producer_sequencer8_publish_range(&self->state->sequencer, self->claim.first,
                                                      self->claim.count);
    }
    bide_single_producer_sequencer8_close(&self->state->sequencer);
    bide_end();
}

static void produce(state *s, unsigned max, unsigned produced)
{
    struct producer producer = {.state = s, .max = max, .produced = produced};
    int status = bide_check_await(bide_task_init(&producer.task, &producer_body));
    bide_check_assert(status == 0 || status == -EPIPE);
}

static void produce_one_by_one(void *p)
{
    produce(p, 1, 1);
}

static void produce_at_once(void *p)
{
    produce(p, MAX_SLOTS, 1);
}

/* ---- Consumers: everything, in order, each once ---- */

static void consume(state *s, unsigned which, unsigned max)
{
    uint8_t next = FIRST;
    unsigned seen = 0;
    while (seen < max) {
        bide_sequence_waiter8 wait;
        int status =
            bide_check_await(bide_sequence_barrier8_wait_until_published(&wait, &s->cursor, next));
        if (status < 0) {
            bide_check_assert(status == -EPIPE && seen == s->total);
            break;
        }
        while (!bide_sequence8_precedes(wait.published, next) && seen < max)
            bide_check_assert(*bide_ring_at(&s->ring, next++) == (int)++seen);
        bide_sequence_barrier8_publish(&s->consumed[which], (uint8_t)(next - 1));
    }
    bide_sequence_barrier8_close(&s->consumed[which]);
}

static void consume_all(void *p)
{
    consume(p, 0, 3);
}

static void consume_until_closed(void *p)
{
    consume(p, 0, 4);
}

static void consume_one_and_leave(void *p)
{
    consume(p, 0, 1);
}

static void consume_first(state *s, unsigned which)
{
    bide_sequence_waiter8 wait;
    bide_check_assert(bide_check_await(bide_sequence_barrier8_wait_until_published(
                          &wait, &s->cursor, FIRST)) == 0);
    bide_check_assert(*bide_ring_at(&s->ring, FIRST) == 1);
    bide_sequence_barrier8_publish(&s->consumed[which], FIRST);
}

static void consume_one(void *p)
{
    consume_first(p, 0);
}

static void consume_one_too(void *p)
{
    consume_first(p, 1);
}

static const bide_check_scenario one_at_a_time = {
    .name = "three_through_two_slots_one_at_a_time",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {produce_one_by_one, consume_all},
    .never_spurious = true,
};

/* bounded: all interleavings take half a minute */
static const bide_check_scenario at_once = {
    .name = "three_through_two_slots_as_many_as_are_free",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {produce_at_once, consume_until_closed},
    .never_spurious = true,
    .preemptions = 2,
};

static const bide_check_scenario consumer_leaves = {
    .name = "the_consumer_leaves_while_the_producer_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {produce_one_by_one, consume_one_and_leave},
    .never_spurious = true,
};

/* The second claim of the one slot waits until both have read it. */
static const bide_check_scenario two_consumers = {
    .name = "a_claim_waits_for_both_of_two_consumers",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {produce_one_by_one, consume_one, consume_one_too},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one_at_a_time, &at_once, &consumer_leaves,
                                                     &two_consumers, NULL};
    static const char *const files[] = {
        "sequence_barrier.h", "sequence_group.h", "single_producer_sequencer.h",
        "sequence_barrier.c", "waiter_list.h",    NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
