/*
 * Includes BIDE_SEQUENCE_TEMPLATE once for each type of sequence, with
 *     BIDE_SEQUENCE        the unsigned type
 *     BIDE_SEQUENCE_BITS   what it has behind the objects of names: 8, 16, 32, 64, or nothing for size_t
 * For 64 bits only where an atomic of them needs no lock (BIDE_SEQUENCE_ATOMIC_64).
 *
 * Compiling the cases takes long, so on hosts a test of these is two programs: one for 8 bits, where numbers soon wrap
 * around (with -DTESTING_OTHER_WIDTHS=0), and one for the other types (with -DTESTING_8_BITS=0). The code of a test
 * outside the template is in the former. RUN_EACH_SEQUENCE(name) runs name8_run and so on, and is the number of failed
 * cases.
 */
#include "paste.h"

#ifndef TESTING_8_BITS
#define TESTING_8_BITS 1
#endif
#ifndef TESTING_OTHER_WIDTHS
#define TESTING_OTHER_WIDTHS 1
#endif

#include "bide/sequence16.h"
#include "bide/sequence32.h"
#include "bide/sequence64.h"
#include "bide/sequence8.h"

#if TESTING_8_BITS
#define BIDE_SEQUENCE      uint8_t
#define BIDE_SEQUENCE_BITS 8
#include BIDE_SEQUENCE_TEMPLATE
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

#define RUN_8_(name) name##8_run()
#else
#define RUN_8_(name) 0
#endif

#if TESTING_OTHER_WIDTHS
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

#if BIDE_SEQUENCE_ATOMIC_64
#define RUN_64_(name) name##64_run()
#else
#define RUN_64_(name) 0
#endif
#define RUN_OTHERS_(name) (name##16_run() + name##32_run() + RUN_64_(name) + name##_run())
#else
#define RUN_OTHERS_(name) 0
#endif

#define RUN_EACH_SEQUENCE(name) (RUN_8_(name) + RUN_OTHERS_(name))

#undef BIDE_SEQUENCE_TEMPLATE
