/*
 * Includes BIDE_SEQUENCE_TEMPLATE once for each type of sequence, with
 *     BIDE_SEQUENCE        the unsigned type
 *     BIDE_SEQUENCE_BITS   what it has behind the objects of names: 8, 16, 32, 64, or nothing for size_t
 * For 64 bits only where an atomic of them needs no lock (BIDE_SEQUENCE_ATOMIC_64).
 */
#include "paste.h"

#include "bide/sequence16.h"
#include "bide/sequence32.h"
#include "bide/sequence64.h"
#include "bide/sequence8.h"

#define BIDE_SEQUENCE      uint8_t
#define BIDE_SEQUENCE_BITS 8
#include BIDE_SEQUENCE_TEMPLATE
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

#define BIDE_SEQUENCE      uint16_t
#define BIDE_SEQUENCE_BITS 16
#include BIDE_SEQUENCE_TEMPLATE
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

#define BIDE_SEQUENCE      uint32_t
#define BIDE_SEQUENCE_BITS 32
#include BIDE_SEQUENCE_TEMPLATE
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

#if BIDE_SEQUENCE_ATOMIC_64
#define BIDE_SEQUENCE      uint64_t
#define BIDE_SEQUENCE_BITS 64
#include BIDE_SEQUENCE_TEMPLATE
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS
#endif

#define BIDE_SEQUENCE size_t
#define BIDE_SEQUENCE_BITS
#include BIDE_SEQUENCE_TEMPLATE
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

#undef BIDE_SEQUENCE_TEMPLATE
