/*
 * Litmus programs: a few threads, each with a few atomic operations on a few locations that are all 0 at
 * first; and what came of one, as a text.
 *
 * A program is written like this, its threads apart by `|` and their operations by `;`:
 *
 *     W x 1 rel          store 1 to x
 *     R x acq            load x
 *     X x 2 ar           exchange
 *     A x 1 rlx          fetch_add
 *     C x 0 1 ar rlx     compare_exchange of 0 by 1; the order if it fails
 *     c x 0 1 ar rlx     compare_exchange_weak
 *     F sc               fence; also `light` and `heavy`
 *
 * In front of it may stand `init:` (see `initialised`), `C++20:` (its release sequences) and `spurious N:` (so often
 * each thread's weak compare-exchanges may fail for no reason; otherwise never).
 *
 * An outcome is what the loads read, thread by thread (`+` or `-` after it: a compare-exchange that succeeded or
 * failed), then the last value of each location: `10 11`. A number of two digits is in brackets.
 */
#ifndef BIDE_TESTS_LITMUS_H
#define BIDE_TESTS_LITMUS_H

#include "bide/check.h"

enum { LITMUS_THREADS = 4, LITMUS_OPS = 8, LITMUS_LOCATIONS = 4, LITMUS_TEXT = 96 };

typedef enum litmus_kind {
    LITMUS_LOAD,
    LITMUS_STORE,
    LITMUS_EXCHANGE,
    LITMUS_FETCH_ADD,
    LITMUS_COMPARE_EXCHANGE,
    LITMUS_COMPARE_EXCHANGE_WEAK,
    LITMUS_FENCE,
    LITMUS_KINDS
} litmus_kind;

/* As bide_check_relaxed_ and so on. */
typedef enum litmus_order {
    LITMUS_RLX,
    LITMUS_ACQ,
    LITMUS_REL,
    LITMUS_AR,
    LITMUS_SC,
    LITMUS_LIGHT, /* of fences */
    LITMUS_HEAVY,
    LITMUS_ORDERS
} litmus_order;

typedef struct litmus_op {
    litmus_kind kind;
    litmus_order order;
    litmus_order order_if_failed; /* of a compare-exchange */
    uint32_t location;
    uint32_t expected; /* by a compare-exchange */
    uint32_t value;    /* stored, or added */
} litmus_op;

typedef struct litmus_program {
    uint32_t threads;
    uint32_t locations;
    uint32_t counts[LITMUS_THREADS];
    litmus_op ops[LITMUS_THREADS][LITMUS_OPS];
    uint32_t spurious; /* how often a thread's compare-exchanges fail for no reason, at most */
    bool cxx20;        /* with C++20's release sequences */
    bool
        initialised; /* the locations are, by atomic_init, and not only zeroed; that changes nothing */
} litmus_program;

/* What happened in one execution. */
typedef struct litmus_results {
    uint32_t read[LITMUS_THREADS][LITMUS_OPS];
    bool succeeded[LITMUS_THREADS][LITMUS_OPS];
    uint32_t last[LITMUS_LOCATIONS];
} litmus_results;

/* Every outcome of a program once, sorted, and in how many executions (graphs) they were met. */
typedef struct litmus_outcomes {
    char (*texts)[LITMUS_TEXT];
    size_t count;
    size_t capacity;
    uint64_t executions;
} litmus_outcomes;

bool litmus_is_read(litmus_kind kind);
bool litmus_is_compare_exchange(litmus_kind kind);

/* Aborts if the text is none. */
void litmus_parse(litmus_program *program, const char *text);

/* The same, to be printed. */
void litmus_print(const litmus_program *program, char *text, size_t size);

/* What happened, as an outcome. */
void litmus_describe(const litmus_program *program, const litmus_results *results,
                     char text[LITMUS_TEXT]);

void litmus_add_outcome(litmus_outcomes *outcomes, const char *text);
bool litmus_has_outcome(const litmus_outcomes *outcomes, const char *text);
bool litmus_same_outcomes(const litmus_outcomes *a, const litmus_outcomes *b);
void litmus_free_outcomes(litmus_outcomes *outcomes);

/* Prints what only one of the two has; each line begins with `#`. */
void litmus_print_difference(const char *name_a, const litmus_outcomes *a, const char *name_b,
                             const litmus_outcomes *b);

/* Explores the program with the checker. False, with a line printed, if something was found. */
bool litmus_explore(const litmus_program *program, litmus_outcomes *outcomes);

/* What orders nothing, and may stand between a program's operations. */
typedef enum litmus_sprinkle {
    LITMUS_NO_SPRINKLE,
    LITMUS_CHOICE, /* of two: each execution is there twice */
    LITMUS_RELAXED_FENCE,
    LITMUS_LIGHT_FENCE, /* in a program without heavy ones */
    LITMUS_NO_SLEEP,    /* on a word of the thread's own that has changed already */
    LITMUS_SLEEP,       /* on that word, until a deadline */
    LITMUS_WAKE,        /* of those on it */
    LITMUS_WAKE_ALL,    /* of those on a word that the threads share: in every order */
    LITMUS_SPRINKLES
} litmus_sprinkle;

const char *litmus_sprinkle_name(litmus_sprinkle sprinkle);

/* What stands in front of each operation of each thread, and behind the last. */
typedef struct litmus_sprinkled {
    litmus_sprinkle before[LITMUS_THREADS][LITMUS_OPS + 1];
} litmus_sprinkled;

bool litmus_explore_sprinkled(const litmus_program *program, const litmus_sprinkled *sprinkled,
                              litmus_outcomes *outcomes);

#endif
