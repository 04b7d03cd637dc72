/*
 * The multi-producer sequencer, for every type of sequence: what may be claimed when, and by whom; what consumers see
 * of what is published in any order; and that nothing is lost or repeated, whoever is cut short and whoever closes.
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/multi_producer_sequencer.h"
#include "bide/sync_wait.h"

#include <errno.h>

enum { MOST_SLOTS = 64, PRODUCERS = 3 };

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/multi_producer_sequencer_cases.h"
#include "bide/detail/each_sequence.h"

#if BIDE_DEBUG
/* ---- Misuse: one line names the object, as it is written there, and who has called ---- */

static void publish_the_unclaimed(void)
{
    multi8_fixture f;
    multi8_init(&f, 255, 4);
    bide_multi_producer_sequencer8_publish(&f.sequencer, 0);
}

static void publish_past_the_claimed(void)
{
    multi_fixture f;
    multi_init(&f, 255, 4);
    multi_try(&f, 2);
    bide_multi_producer_sequencer_publish_range(&f.sequencer, 256, 3);
}

static void publish_twice(void)
{
    multi16_fixture f;
    multi16_init(&f, 255, 4);
    multi16_try(&f, 2);
    bide_multi_producer_sequencer16_publish(&f.sequencer, 257);
    bide_multi_producer_sequencer16_publish_range(&f.sequencer, 256, 2);
}

static void abandon_the_published(void)
{
    multi32_fixture f;
    multi32_init(&f, 255, 4);
    multi32_try(&f, 2);
    bide_multi_producer_sequencer32_publish(&f.sequencer, 257);
    bide_multi_producer_sequencer32_abandon(&f.sequencer, 257, 1);
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

int main(void)
{
    int failed = multi8_run();
    failed += multi16_run();
    failed += multi32_run();
#if BIDE_SEQUENCE_ATOMIC_64
    failed += multi64_run();
#endif
    failed += multi_run();
#if BIDE_DEBUG
    const struct CMUnitTest tests[] = {cmocka_unit_test(misuse_is_told)};
    failed += cmocka_run_group_tests(tests, NULL, NULL);
#endif
    return failed;
}
