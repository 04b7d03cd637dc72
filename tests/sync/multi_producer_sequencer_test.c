/*
 * The multi-producer sequencer, for every type of sequence: the order of claims; the consumers' view of slots that are
 * published in any order; and that nothing is lost or repeated, despite cancellation and closing.
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/multi_producer_sequencer.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

#include <errno.h>

enum { MAX_SLOTS = 4096, PRODUCERS = 3 };

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/multi_producer_sequencer_cases.h"
#include "each_sequence.h"

#if TESTING_8_BITS
/* ---- At random, with threads ----
 *
 * One thread starts claims and waits, one consumes, one cancels some, one closes, in half of the rounds. */

enum { STORM_SLOTS = 2, STORM_CLAIMS = 6, STORM_READERS = 3 };

struct storm {
    meeting meeting;
    uint32_t rounds;
    bool is_last;
    uint64_t seed;
    bide_sequence_barrier8 consumed;
    bide_sequence_barrier8 *members[1];
    bide_sequence_group8 gate;
    bide_sequence_slot8 slots[STORM_SLOTS];
    bide_multi_producer_sequencer8 sequencer;
    uint8_t initial;
    struct storm_claim {
        bide_task task;
        struct storm *storm;
        bide_multi_producer_claim8 claim;
        bide_context context;
        bide_stop_source stop;
        bide_atomic(uint32_t) ends;
        bool abandons;
        int status;
    } claims[STORM_CLAIMS];
    struct storm_reader {
        bide_task task;
        struct storm *storm;
        uint8_t target;
        bide_multi_producer_waiter8 wait;
        bide_context context;
        bide_stop_source stop;
        bide_atomic(uint32_t) ends;
        int status;
    } readers[STORM_READERS];
};

bide_coroutine(storm_claim_body)
{
    bide_begin(storm_claim_body, struct storm_claim * self);
    bide_await_status(self->status, bide_multi_producer_sequencer8_claim_one(
                                        &self->claim, &self->storm->sequencer));
    if (self->status == 0) {
        if (self->abandons)
            bide_multi_producer_sequencer8_abandon(&self->storm->sequencer, self->claim.first, 1);
        else
            bide_multi_producer_sequencer8_publish(&self->storm->sequencer, self->claim.first);
    }
    bide_atomic_fetch_add(&self->ends, 1, release);
    bide_end();
}

bide_coroutine(storm_reader_body)
{
    bide_begin(storm_reader_body, struct storm_reader * self);
    bide_await_status(self->status, bide_multi_producer_sequencer8_wait_until_published(
                                        &self->wait, &self->storm->sequencer, self->target,
                                        (uint8_t)(self->storm->initial + STORM_SLOTS)));
    bide_atomic_fetch_add(&self->ends, 1, release);
    bide_end();
}

/* Consumes the published slots, at random times, up to the first for which a reader waits. */
static void *storm_consume(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 1;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        for (uint64_t i = testing_random(&random) % 3; i != 0; i--) {
            random_moment(&random, 200);
            uint8_t done = bide_sequence_barrier8_last_published(&s->consumed);
            if (done != (uint8_t)(s->initial + STORM_SLOTS))
                bide_sequence_barrier8_publish(&s->consumed, (uint8_t)(done + 1));
        }
        meet(&s->meeting);
        meet(&s->meeting);
    }
    return NULL;
}

static void *storm_ask(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 2;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        for (uint64_t i = testing_random(&random) % 4; i != 0; i--) {
            random_moment(&random, 100);
            bide_stop_request(&s->claims[testing_random(&random) % STORM_CLAIMS].stop);
        }
        bide_stop_request(&s->readers[testing_random(&random) % STORM_READERS].stop);
        meet(&s->meeting);
        meet(&s->meeting);
    }
    return NULL;
}

static void *storm_close(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 3;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        random_moment(&random, 300);
        if (testing_random(&random) % 2 == 0)
            bide_multi_producer_sequencer8_close(&s->sequencer);
        meet(&s->meeting);
        meet(&s->meeting);
    }
    return NULL;
}

static void storm_begin(struct storm *s, uint64_t *random)
{
    uint8_t first = 0;
    s->initial = (uint8_t)testing_random(random);
    bide_sequence_barrier8_init(&s->consumed, s->initial);
    s->members[0] = &s->consumed;
    bide_sequence_group8_init(&s->gate, s->members, 1);
    bide_multi_producer_sequencer8_init(&s->sequencer, s->slots, STORM_SLOTS, &s->gate, s->initial);
    bide_multi_producer_sequencer8_try_claim(&s->sequencer, STORM_SLOTS, &first);
    bide_multi_producer_sequencer8_publish_range(&s->sequencer, first, STORM_SLOTS);
    for (int i = 0; i < STORM_CLAIMS; i++) {
        struct storm_claim *claim = &s->claims[i];
        claim->storm = s;
        claim->context = (bide_context){&bide_inline_scheduler, &claim->stop, NULL, NULL, NULL};
        claim->abandons = testing_random(random) % 4 == 0;
        bide_stop_source_init(&claim->stop);
        bide_atomic_init(&claim->ends, 0);
    }
    for (int i = 0; i < STORM_READERS; i++) {
        struct storm_reader *reader = &s->readers[i];
        reader->storm = s;
        reader->target = (uint8_t)(s->initial + STORM_SLOTS + 1 + i % 2);
        reader->context = (bide_context){&bide_inline_scheduler, &reader->stop, NULL, NULL, NULL};
        bide_stop_source_init(&reader->stop);
        bide_atomic_init(&reader->ends, 0);
    }
}

/* The number of mistakes: everything has ended once, and exactly the claimed numbers exist, each once. */
static uint32_t storm_look(struct storm *s, uint32_t ended[3])
{
    uint8_t full = (uint8_t)(s->initial + STORM_SLOTS);
    uint8_t last = bide_multi_producer_sequencer8_last_published_after(&s->sequencer, full);
    bool claimed[STORM_SLOTS + 1] = {false};
    uint32_t wrong = 0;
    for (int i = 0; i < STORM_CLAIMS; i++) {
        struct storm_claim *claim = &s->claims[i];
        uint8_t which = (uint8_t)(claim->claim.first - full - 1);
        wrong += bide_atomic_load(&claim->ends, acquire) != 1;
        ended[claim->status == 0 ? 0 : claim->status == -EPIPE ? 1 : 2]++;
        if (claim->status == 0) {
            bool abandoned =
                bide_multi_producer_sequencer8_is_abandoned(&s->sequencer, claim->claim.first);
            wrong += which >= STORM_SLOTS || claimed[which] || abandoned != claim->abandons;
            claimed[which < STORM_SLOTS ? which : STORM_SLOTS] = true;
        } else {
            wrong += claim->status != -EPIPE &&
                     (claim->status != -ECANCELED || !bide_stop_requested(&claim->stop));
        }
    }
    for (uint8_t next = (uint8_t)(full + 1); next != (uint8_t)(last + 1); next++)
        wrong += !claimed[(uint8_t)(next - full - 1)] &&
                 !bide_multi_producer_sequencer8_is_abandoned(&s->sequencer, next);
    for (int i = 0; i < STORM_SLOTS; i++)
        wrong += claimed[i] && bide_sequence8_precedes(last, (uint8_t)(full + 1 + i));
    for (int i = 0; i < STORM_READERS; i++) {
        struct storm_reader *reader = &s->readers[i];
        bool reached = !bide_sequence8_precedes(reader->wait.published, reader->target);
        wrong += bide_atomic_load(&reader->ends, acquire) != 1;
        if (reader->status == -ECANCELED)
            wrong += !bide_stop_requested(&reader->stop);
        else
            wrong += reader->status != (reached ? 0 : -EPIPE) ||
                     (!reached && reader->wait.published != last);
    }
    return wrong;
}

static void each_claim_and_wait_ends_once_whatever_ends_it(void **state)
{
    (void)state;
    struct storm s = {.rounds = rounds_of(4000), .seed = testing_seed()};
    static void *(*const threads[3])(void *) = {storm_consume, storm_ask, storm_close};
    pthread_t ids[3];
    uint64_t random = s.seed;
    uint32_t wrong = 0, ended[3] = {0};
    meeting_init(&s.meeting, 4);
    for (int i = 0; i < 3; i++)
        start_thread(&ids[i], threads[i], &s);
    for (uint32_t round = 0; !s.is_last; round++) {
        s.is_last = is_last_round(round, s.rounds, ended[0] > 0 && ended[1] > 0 && ended[2] > 0);
        storm_begin(&s, &random);
        meet(&s.meeting);
        for (int i = 0; i < STORM_CLAIMS; i++) {
            random_moment(&random, 40);
            if (i < STORM_READERS) {
                bide_start(&s.readers[i].task.frame, &storm_reader_body, &s.readers[i].context);
                bide_resume(&s.readers[i].task.frame);
            }
            bide_start(&s.claims[i].task.frame, &storm_claim_body, &s.claims[i].context);
            bide_resume(&s.claims[i].task.frame);
        }
        meet(&s.meeting);
        bide_multi_producer_sequencer8_close(&s.sequencer); /* ends the remaining waits */
        wrong += storm_look(&s, ended);
        bide_multi_producer_sequencer8_destroy(&s.sequencer);
        meet(&s.meeting);
    }
    for (int i = 0; i < 3; i++)
        join_thread(ids[i]);
    printf("# %u claims succeeded, %u were closed, %u cut short\n", ended[0], ended[1], ended[2]);
    assert_int_equal(wrong, 0);
    assert_true(ended[0] > 0 && ended[1] > 0 && ended[2] > 0);
}

#if BIDE_DEBUG
/* ---- Misuse: one line names the object, by its expression, and the calling function ---- */

static void publish_the_unclaimed(void)
{
    multi8_fixture f;
    multi8_init(&f, 255, 4);
    bide_multi_producer_sequencer8_publish(&f.sequencer, 0);
}

static void publish_past_the_claimed(void)
{
    multi8_fixture f;
    multi8_init(&f, 255, 4);
    multi8_try(&f, 2);
    bide_multi_producer_sequencer8_publish_range(&f.sequencer, 0, 3);
}

static void publish_twice(void)
{
    multi8_fixture f;
    multi8_init(&f, 255, 4);
    multi8_try(&f, 2);
    bide_multi_producer_sequencer8_publish(&f.sequencer, 1);
    bide_multi_producer_sequencer8_publish_range(&f.sequencer, 0, 2);
}

static void abandon_the_published(void)
{
    multi8_fixture f;
    multi8_init(&f, 255, 4);
    multi8_try(&f, 2);
    bide_multi_producer_sequencer8_publish(&f.sequencer, 1);
    bide_multi_producer_sequencer8_abandon(&f.sequencer, 1, 1);
}

static void destroy_what_is_waited_for(void)
{
    multi8_fixture f;
    multi8_reader reader;
    multi8_init(&f, 255, 4);
    multi8_begin_reader(&reader, &f, 'r', 0, 255);
    bide_multi_producer_sequencer8_destroy(&f.sequencer);
}

static void destroy_what_is_claimed_of(void)
{
    multi8_fixture f;
    multi8_claim claim;
    multi8_init(&f, 255, 1);
    multi8_try(&f, 1);
    multi8_begin_claim(&claim, &f, 'a', 0);
    bide_multi_producer_sequencer8_destroy(&f.sequencer);
}

static void misuse_is_told(void **state)
{
    (void)state;
    static const struct {
        void (*misuse)(void);
        const char *caller;
    } all[] = {
        {publish_the_unclaimed, "publish_the_unclaimed"},
        {publish_past_the_claimed, "publish_past_the_claimed"},
        {publish_twice, "publish_twice"},
        {abandon_the_published, "abandon_the_published"},
        {destroy_what_is_waited_for, "destroy_what_is_waited_for"},
        {destroy_what_is_claimed_of, "destroy_what_is_claimed_of"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_true(misuse_aborts_naming(all[i].misuse, "&f.sequencer", all[i].caller));
}
#endif
#endif

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(multi);
#if TESTING_8_BITS
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_claim_and_wait_ends_once_whatever_ends_it),
#if BIDE_DEBUG
        cmocka_unit_test(misuse_is_told),
#endif
    };
    failed += cmocka_run_group_tests(tests, NULL, NULL);
#endif
    return failed;
}
