/*
 * The sequence barrier, for every type of sequence: which publish wakes which waiter, targets at half
 * the range, wrapping around, closing; and, with threads, that no wake-up is lost and none is doubled.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/sequence_barrier.h"

#include <errno.h>

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/sequence_barrier_cases.h"
#include "each_sequence.h"

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(barrier);
    return failed;
}
