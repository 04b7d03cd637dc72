/*
 * The single-producer sequencer, for every type of sequence: what may be claimed when, and that everything
 * passes a ring in order, however often the sequence wraps.
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/single_producer_sequencer.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

#include <errno.h>

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/single_producer_sequencer_cases.h"
#include "each_sequence.h"

#if BIDE_DEBUG && TESTING_8_BITS
/* ---- Misuse: one line names the object, by its expression, and the calling function ---- */

static void begin(sequencer8_fixture *f, uint8_t *markers)
{
    uint8_t first;
    sequencer8_init(f, 255, 4);
    if (markers != NULL)
        bide_single_producer_sequencer8_set_markers(&f->sequencer, markers);
    bide_single_producer_sequencer8_try_claim(&f->sequencer, 2, &first);
}

static void publish_the_unclaimed(void)
{
    sequencer8_fixture f;
    begin(&f, NULL);
    bide_single_producer_sequencer8_publish(&f.sequencer, 2);
}

static void publish_twice(void)
{
    sequencer8_fixture f;
    begin(&f, NULL);
    bide_single_producer_sequencer8_publish(&f.sequencer, 1);
    bide_single_producer_sequencer8_publish(&f.sequencer, 0);
}

static void publish_past_the_claimed(void)
{
    sequencer8_fixture f;
    begin(&f, NULL);
    bide_single_producer_sequencer8_publish_range(&f.sequencer, 0, 3);
}

static void abandon_the_unclaimed(void)
{
    sequencer8_fixture f;
    uint8_t markers[4];
    begin(&f, markers);
    bide_single_producer_sequencer8_abandon(&f.sequencer, 1, 2);
}

static void abandon_without_markers(void)
{
    sequencer8_fixture f;
    begin(&f, NULL);
    bide_single_producer_sequencer8_abandon(&f.sequencer, 0, 1);
}

static void give_back_too_much(void)
{
    sequencer8_fixture f;
    begin(&f, NULL);
    bide_single_producer_sequencer8_publish(&f.sequencer, 0);
    bide_single_producer_sequencer8_unclaim(&f.sequencer, 2);
}

static void destroy_what_is_waited_for(void)
{
    sequencer8_fixture f;
    bide_sequence_waiter8 waiter;
    probe probe;
    begin(&f, NULL);
    probe_init(&probe);
    probe_await(&probe, bide_single_producer_sequencer8_wait_until_published(&waiter, &f.sequencer,
                                                                             0, 255));
    bide_single_producer_sequencer8_destroy(&f.sequencer);
}

static void misuse_is_told(void **state)
{
    (void)state;
    static const struct {
        void (*misuse)(void);
        const char *caller;
    } all[] = {
        {publish_the_unclaimed, "publish_the_unclaimed"},
        {publish_twice, "publish_twice"},
        {publish_past_the_claimed, "publish_past_the_claimed"},
        {abandon_the_unclaimed, "abandon_the_unclaimed"},
        {abandon_without_markers, "abandon_without_markers"},
        {give_back_too_much, "give_back_too_much"},
        {destroy_what_is_waited_for, "destroy_what_is_waited_for"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_true(misuse_aborts_naming(all[i].misuse, "&f.sequencer", all[i].caller));
}
#endif

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(sequencer);
#if BIDE_DEBUG && TESTING_8_BITS
    const struct CMUnitTest tests[] = {cmocka_unit_test(misuse_is_told)};
    failed += cmocka_run_group_tests(tests, NULL, NULL);
#endif
    return failed;
}
