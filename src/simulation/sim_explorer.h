/* What the files of exploring ask of each other: runs by given draws, and their making simpler. */
#ifndef BIDE_SCHEDULE_TEST_LOOP_EXPLORER_H
#define BIDE_SCHEDULE_TEST_LOOP_EXPLORER_H

#include "sim_loop.h"

#include <stdio.h>

enum {
    MAX_DRAWS = 1 << 20,
    MAX_LINES = 1 << 16,
    MAX_TEXT = 1 << 15,
    EXIT_FAILED = 99,
};

/* What a child tells. */
typedef struct shared {
    uint64_t seed;
    uint64_t runs; /* that passed */
    bide_sim_failure failure;
    int status;
    size_t draws_count;
    size_t lines_count;
    bide_sim_fault faults[BIDE_SIM_FAULTS_MAX]; /* of runs that passed */
    size_t faults_count;
    char text[MAX_TEXT];
    uint16_t draws[MAX_DRAWS];
    uint8_t kinds[MAX_DRAWS];
    test_line lines[MAX_LINES];
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
    bide_sim_body *body;
    const bide_sim_options *options;
    bide_sim_result *result;
    FILE *out;
    shared *shared;
    bool is_child;
    bool is_quiet; /* what the children write to stdout and stderr is dropped */
    bide_sim_failure failure;
    int status;
    uint64_t seed;
    uint64_t max_retries;
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
bool bide_sim_fails_alike_(explorer *self, recipe *r);

/* The first `count` of best.draws have failed. False: they do not fail again in the same way. */
bool bide_sim_best_is_(explorer *self, size_t count);

/* Makes `best` simpler. */
void bide_sim_simplify_(explorer *self);

#endif
