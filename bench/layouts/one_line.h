/*
 * Must be included first: both words of a sequence barrier are on one cache line; everything else
 * is laid out as usual.
 */
#include "bide/sequence.h"
#include "bide/sync_wait.h"
#include "bide/extend/waiter_list.h"

#undef BIDE_CACHE_LINE
#define BIDE_CACHE_LINE 8
#include "bide/sequence_barrier.h"
#undef BIDE_CACHE_LINE
#define BIDE_CACHE_LINE 64

BIDE_STATIC_ASSERT(sizeof(bide_sequence_barrier) < BIDE_CACHE_LINE, "a barrier is on one line");
