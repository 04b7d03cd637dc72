/*
 * The barrier group, for every type of sequence: waiting for the slowest of several barriers.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/sequence_group.h"
#include "bide/sync_wait.h"

#include <errno.h>

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/sequence_group_cases.h"
#include "each_sequence.h"

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(group);
    return failed;
}
