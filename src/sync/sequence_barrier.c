/*
 * The slow halves of the sequence barrier, made once for each type of sequence.
 */
#include "bide/sequence_barrier.h"

/* (found from the include folder, the one folder that every build names) */
#define BIDE_SEQUENCE_TEMPLATE "../src/sync/sequence_barrier_slow.h"
#include "bide/detail/each_sequence.h"
