/*
 * Litmus programs: a few threads, each with a few atomic operations on a few locations that are all 0 at
 * first; and outcomes, as texts.
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
 * A program may begin with `init:` (see `initialised`), `C++20:` (the release sequences of C++20) and `spurious N:` (how
 * often the weak compare-exchanges of each thread may fail spuriously; the default is never).
 *
 * An outcome has the values that the loads have read, thread by thread, with `+` or `-` after a compare-exchange that
 * succeeded or failed, and then the last value of each location: `10 11`. A number of two digits is in brackets.
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
    uint32_t spurious; /* how often a thread's compare-exchanges fail spuriously, at most */
    bool cxx20;        /* with C++20's release sequences */
    bool
        initialised; /* the locations are, by atomic_init, and not only zeroed; that changes nothing */
} litmus_program;

/* The outcome of one execution. */
typedef struct litmus_results {
    uint32_t read[LITMUS_THREADS][LITMUS_OPS];
    bool succeeded[LITMUS_THREADS][LITMUS_OPS];
    uint32_t last[LITMUS_LOCATIONS];
} litmus_results;

/* All outcomes of a program, sorted, with the number of executions (graphs) of each. */
typedef struct litmus_outcomes {
    char (*texts)[LITMUS_TEXT];
    size_t count;
    size_t capacity;
    uint64_t executions;
} litmus_outcomes;

bool litmus_is_read(litmus_kind kind);
bool litmus_is_compare_exchange(litmus_kind kind);

/* Aborts if the text is invalid. */
void litmus_parse(litmus_program *program, const char *text);

/* The same, to be printed. */
void litmus_print(const litmus_program *program, char *text, size_t size);

/* Writes the outcome as text. */
void litmus_describe(const litmus_program *program, const litmus_results *results,
                     char text[LITMUS_TEXT]);

void litmus_add_outcome(litmus_outcomes *outcomes, const char *text);
bool litmus_has_outcome(const litmus_outcomes *outcomes, const char *text);
bool litmus_same_outcomes(const litmus_outcomes *a, const litmus_outcomes *b);
void litmus_free_outcomes(litmus_outcomes *outcomes);

/* Prints the outcomes that only one of the two has; each line begins with `#`. */
void litmus_print_difference(const char *name_a, const litmus_outcomes *a, const char *name_b,
                             const litmus_outcomes *b);

/*
 * Explores the program with the checker. Returns false, and prints a line, if there is a finding.
 */
bool litmus_explore(const litmus_program *program, litmus_outcomes *outcomes);

/* Draws executions of the program. Returns false, and prints a line, if there is a finding. */
bool litmus_sample(const litmus_program *program, const bide_check_sampling *sampling,
                   litmus_outcomes *outcomes);

/* Operations that order nothing, and may be inserted between a program's operations. */
typedef enum litmus_sprinkle {
    LITMUS_NO_SPRINKLE,
    LITMUS_CHOICE, /* of two: each execution occurs twice */
    LITMUS_RELAXED_FENCE,
    LITMUS_LIGHT_FENCE, /* in a program without heavy fences */
    LITMUS_NO_SLEEP,    /* on a word of the thread's own that has already changed */
    LITMUS_SLEEP,       /* on that word, until a deadline */
    LITMUS_WAKE,        /* of the sleepers on it */
    LITMUS_WAKE_ALL,    /* of the sleepers on a word that the threads share: in every order */
    LITMUS_SPRINKLES
} litmus_sprinkle;

const char *litmus_sprinkle_name(litmus_sprinkle sprinkle);

/* The insertions before each operation of each thread, and after the last one. */
typedef struct litmus_sprinkled {
    litmus_sprinkle before[LITMUS_THREADS][LITMUS_OPS + 1];
} litmus_sprinkled;

bool litmus_explore_sprinkled(const litmus_program *program, const litmus_sprinkled *sprinkled,
                              litmus_outcomes *outcomes);

#endif
