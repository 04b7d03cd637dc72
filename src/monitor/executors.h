/* The loops of the process, and the workers of its pools: what each does, and what it has done. */
#ifndef BIDE_IO_MONITOR_RUNNERS_H
#define BIDE_IO_MONITOR_RUNNERS_H

#include "report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is counted. The last two are no counts, and have no difference to those before. */
typedef enum runner_value {
    RUNNER_RUNS,
    RUNNER_SLEEPS,
    RUNNER_STEALS,
    RUNNER_LOOKS,
    RUNNER_WAKES,
    RUNNER_COMPLETIONS,
    RUNNER_BEGUN,
    RUNNER_COUNTS,
    RUNNER_IN_FLIGHT = RUNNER_COUNTS,
    RUNNER_LONGEST,
    RUNNER_VALUES
} runner_value;

/* A loop, or a worker of a pool. */
typedef struct runner {
    uint32_t number; /* of the loop or the pool */
    uint32_t worker;
    bool is_worker;
    bool is_run;
    bool is_asleep;
    int thread;
    const char *back_end; /* of a loop */
    char name[64];
    char thread_name[16];
    uint64_t busy_since; /* nanoseconds: since when looks have found it in the same turn */
    uint64_t values[RUNNER_VALUES];
} runner;

/* In the order in which they were made. All zero: none. */
typedef struct runners {
    runner *all;
    size_t count;
    size_t room;
    uint64_t at;   /* when */
    bool left_out; /* there were more than there is room for */
} runners;

/* Looks at all of them; `last` is what the look before has found. 0, or as bide_peek_begin_. */
int bide_executors_collect_(runners *runners, const struct runners *last);

/* Makes `to` the same. False: there is no memory, and it has none. */
bool bide_executors_copy_(runners *to, const runners *from);

/* Their records, with what is new since `before`. */
void bide_executors_report_(const runners *runners, const struct runners *before, report *report);

void bide_executors_free_(runners *runners);

#endif
