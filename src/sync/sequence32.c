/*
 * The sequence family's slow halves for sequences of 32 bits: the sources of the plain names,
 * included again under the names of sequence32.h.
 */
#include "bide/sequence32.h"

#define BIDE_SEQUENCE_NAME_(object, rest) object##32##rest
#include "bide/detail/sequence_names.inc"

/* (found from the include directory, the one directory that every build names) */
/* NOLINTBEGIN(bugprone-suspicious-include) */
#include "../src/sync/multi_producer_sequencer.c"
#include "../src/sync/sequence_barrier.c"
#include "../src/sync/sequence_group.c"
#include "../src/sync/single_producer_sequencer.c"
/* NOLINTEND(bugprone-suspicious-include) */
