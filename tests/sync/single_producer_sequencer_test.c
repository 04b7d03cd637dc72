/*
 * The single-producer sequencer, for every type of sequence: what may be claimed when, and that everything
 * comes through a ring in order, however often the sequence wraps.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/single_producer_sequencer.h"
#include "bide/sync_wait.h"

#include <errno.h>

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/single_producer_sequencer_cases.h"
#include "bide/detail/each_sequence.h"

int main(void)
{
    int failed = sequencer8_run();
    failed += sequencer16_run();
    failed += sequencer32_run();
#if BIDE_SEQUENCE_ATOMIC_64
    failed += sequencer64_run();
#endif
    failed += sequencer_run();
    return failed;
}
