/*
 * Members of a barrier group that join and leave on threads of their own while a ring runs, for every type of sequence:
 * no message is lost, repeated, or overwritten before it is read, and each wait ends once.
 */
#include "sync/meeting.h"

#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/single_producer_sequencer.h"
#include "bide/stop.h"

#include <errno.h>

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/sequence_group_stress_cases.h"
#include "each_sequence.h"

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(stress);
    return failed;
}
