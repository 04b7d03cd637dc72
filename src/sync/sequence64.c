/*
 * The sequence family's slow halves for sequences of 64 bits: the sources of the plain names,
 * included again under the names of sequence64.h.
 */
#include "bide/sequence64.h"

#if BIDE_SEQUENCE_ATOMIC_64
#define BIDE_SEQUENCE_NAME_(object, rest) object##64##rest
#include "bide/detail/sequence_names.inc"

/* (found from the include directory, the one directory that every build names) */
/* NOLINTBEGIN(bugprone-suspicious-include) */
#include "../src/sync/multi_producer_sequencer.c"
#include "../src/sync/sequence_barrier.c"
#include "../src/sync/sequence_group.c"
#include "../src/sync/single_producer_sequencer.c"
/* NOLINTEND(bugprone-suspicious-include) */
#endif
