/*
 * A barrier group: waits for the slowest of several sequence barriers. What a consumer that comes after
 * several others waits for, and what a producer must not overtake. Floor: sync.
 *
 * The waits on the members run one after the other, in a small coroutine inside the waiter, so the awaiting
 * coroutine is resumed once. Threads and memory orders are the barriers'. There is a set of types and
 * functions for each type of sequence, as in sequence.h.
 *
 * Source: the disruptor's dependent consumers.
 */
#ifndef BIDE_SEQUENCE_GROUP_H
#define BIDE_SEQUENCE_GROUP_H

#include "bide/sequence_barrier.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/sequence_group_template.h"
#include "bide/detail/each_sequence.h"

BIDE_EXTERN_C_END

#endif
