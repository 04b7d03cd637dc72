/* The internal interface between sim_explore.c, sim_search.c, sim_corpus.c and sim_simplify.c. Floor: simulation. */
#ifndef BIDE_SIMULATION_SIM_EXPLORER_H
#define BIDE_SIMULATION_SIM_EXPLORER_H

#include "sim_loop.h"

#include <stdio.h>
#include <sys/types.h>

enum {
    DRAWS_MAX = 1 << 20,
    LINES_MAX = 1 << 16,
    TEXT_MAX = 1 << 15,
    FIRED_MAX = 1024,
    EXIT_FAILED = 99,
};

/* The memory that a child shares with its parent. */
typedef struct shared {
    uint64_t seed;
    uint64_t runs; /* that passed */
    bide_sim_failure failure;
    int status;
    size_t draws_count; /* also of a run that has crashed */
    uint64_t candidate; /* the running candidate of bide_sim_run_candidates_ */
    size_t lines_count;
    bide_sim_fault faults[BIDE_SIM_FAULTS_MAX]; /* of runs that passed */
    size_t faults_count;
    char fired[FIRED_MAX]; /* the faults of the last run that failed, as text */
    char text[TEXT_MAX];
    uint16_t draws[DRAWS_MAX];
    uint8_t kinds[DRAWS_MAX];
    uint8_t streams[DRAWS_MAX];
    test_line lines[LINES_MAX];
} shared;

/*
 * Draws, with their streams; all after the first `count` are 0. Once it has been run and fails, it is the draws that
 * the run made, in their order, and `kinds` and `streams` are those of all of them.
 */
typedef struct recipe {
    uint16_t *draws;
    uint8_t *streams;
    uint8_t *kinds;
    size_t count;
    size_t nonzero;
    uint64_t sum;

    /* Of its last run. */
    size_t length; /* draws that were made; at least count */
    size_t preemptions;
} recipe;

typedef struct explorer {
    bide_sim_body *body;
    const bide_sim_options *options;
    bide_sim_result *result;
    FILE *out;
    shared *shared;
    bool is_child;
    bool is_quiet; /* children write to /dev/null */
    bide_sim_failure failure;
    int status;
    uint64_t seed;
    uint64_t max_retries;
    uint64_t until;       /* of the system's clock: then it is not simplified further */
    uint64_t row;         /* the first of the seeds that the process of the failing one ran */
    bool has_given_draws; /* the failing run has those of a line of the corpus */
    bool draws_first;     /* fewer draws count as simpler than fewer preemptions */
    recipe best;
    recipe trial;
    recipe found; /* before simplification */
    recipe other; /* of the other order */
} explorer;

/* Zeroed memory that children share; NULL: there is none. */
void *bide_sim_map_(size_t size);

/*
 * Forks a child for runs in `self->shared`. Returns 0 in the child, its id in the parent, or a negative errno. The
 * parent waits for it, and passes its status to bide_sim_read_status_.
 */
pid_t bide_sim_fork_(explorer *self);

/* In the parent: completes `shared` by how the child has ended. */
void bide_sim_read_status_(shared *s, int status);

/* In the child: runs a seed, with its own draws or those of `given`; returns if it passes. */
void bide_sim_run_seed_(explorer *self, uint64_t seed, const recipe *given, bool with_trace);

/* Adds the counts of faults to those of `to`. */
void bide_sim_add_faults_(bide_sim_fault *to, size_t *count, const bide_sim_fault *from,
                          size_t from_count);

/*
 * Runs the seeds until one fails: `self->shared` is of that run then. The result's runs and faults are those of the
 * seeds below. Returns 1 or a negative errno.
 */
int bide_sim_search_(explorer *self, uint64_t first, uint64_t seeds);

/*
 * Runs the lines of the corpus until one fails: `self->shared` is of that run then. Returns 1 or a negative errno.
 */
int bide_sim_replay_(explorer *self);

/* Adds the failing seed to the corpus, with its simplest draws. */
void bide_sim_keep_(explorer *self);

/* "turn.12:1,own.4:2": these draws; all others are 0. Returns the first item that is none; NULL: all are read. */
const char *bide_sim_parse_draws_(const char *text, recipe *r);

/* Prints the draws of `r` in this form. */
void bide_sim_print_draws_(FILE *to, const recipe *r);

/* Runs the draws of `r` in a child. True: it fails in the same way, and `r` is that run. */
bool bide_sim_fails_alike_(explorer *self, recipe *r);

/* Runs the first `count` of the best draws again. False: they do not fail in the same way. */
bool bide_sim_best_is_(explorer *self, size_t count);

/*
 * Runs candidates in one child, from *number on, until one fails, `end` is reached, or the time has passed.
 * `make` writes the draws of a candidate and their streams to the trial, and returns how many they are. Returns
 * true if one failed in the same way, which *number is then; otherwise *number is where it stopped.
 */
bool bide_sim_run_candidates_(explorer *self, uint64_t *number, uint64_t end,
                              size_t (*make)(explorer *self, uint64_t number));

/* Makes `best` simpler. */
void bide_sim_simplify_(explorer *self);

#endif
