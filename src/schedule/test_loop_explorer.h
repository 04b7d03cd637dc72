/* What the files of exploring ask of each other: runs by given draws, and their making simpler. */
#ifndef BIDE_SCHEDULE_TEST_LOOP_EXPLORER_H
#define BIDE_SCHEDULE_TEST_LOOP_EXPLORER_H

#include "test_loop.h"

#include <stdio.h>

enum {
    DRAWS_MOST = 1 << 20,
    LINES_MOST = 1 << 16,
    TEXT_MOST = 1 << 15,
    EXIT_FAILED = 99,
};

/* What a child tells. */
typedef struct shared {
    uint64_t seed;
    uint64_t runs; /* that passed */
    bide_test_failure failure;
    int status;
    size_t draws_count;
    size_t lines_count;
    bide_test_fault faults[BIDE_TEST_FAULTS_MOST]; /* of runs that passed */
    size_t faults_count;
    char text[TEXT_MOST];
    uint16_t draws[DRAWS_MOST];
    uint8_t kinds[DRAWS_MOST];
    test_line lines[LINES_MOST];
} shared;

/* Draws that fail. Behind the first `count` all are 0. */
typedef struct recipe {
    uint16_t *draws;
    size_t count;
    size_t nonzero;
    uint64_t sum;

    /* As its run has told. */
    uint8_t *kinds;
    size_t length; /* how many draws it made, as far as that is known; not less than count */
    size_t preemptions;
} recipe;

typedef struct explorer {
    bide_test_body *body;
    const bide_test_options *options;
    bide_test_result *result;
    FILE *out;
    shared *shared;
    bool is_child;
    bool is_quiet; /* what the children write to stdout and stderr is dropped */
    bide_test_failure failure;
    int status;
    uint64_t seed;
    uint64_t retries_most;
    bool draws_first; /* fewer draws are simpler than fewer preemptions */
    recipe best;
    recipe trial;
    recipe found; /* before it was made simpler */
    recipe other; /* by another order */
} explorer;

/*
 * Runs the draws of `r` in a child. Does it fail in the same way? Then the kinds of its draws, and
 * how many they were, are put into `r`.
 */
bool test_fails_alike(explorer *self, recipe *r);

/* The first `count` of best.draws have failed. False: they do not fail again in the same way. */
bool test_best_is(explorer *self, size_t count);

/* Makes `best` simpler. */
void test_simplify(explorer *self);

#endif
