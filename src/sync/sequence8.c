/*
 * The sequence family's slow halves for sequences of 8 bits: the sources of the plain names,
 * included again under the names of sequence8.h.
 */
#include "bide/sequence8.h"

#define BIDE_SEQUENCE_NAME_(object, rest) object##8##rest
#include "bide/detail/sequence_names.inc"

/* (found from the include directory, the one directory that every build names) */
/* NOLINTBEGIN(bugprone-suspicious-include) */
#include "../src/sync/multi_producer_sequencer.c"
#include "../src/sync/sequence_barrier.c"
#include "../src/sync/sequence_group.c"
#include "../src/sync/single_producer_sequencer.c"
/* NOLINTEND(bugprone-suspicious-include) */
