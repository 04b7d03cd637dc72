/*
 * Joining, leaving, and the waits of a barrier group, made once for each type of sequence.
 */
#include "bide/sequence_group.h"

#include "../coroutine/lock.h"

#define BIDE_SEQUENCE_TEMPLATE "../src/sync/sequence_group_slow.h"
#include "bide/detail/each_sequence.h"
