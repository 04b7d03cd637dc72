/* Executors: the loops of the process and the workers of its pools, with their states and counts. */
#ifndef BIDE_IO_MONITOR_RUNNERS_H
#define BIDE_IO_MONITOR_RUNNERS_H

#include "report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values of an executor. The last two are not counters, so reports have no difference of them. */
typedef enum executor_value {
    EXECUTOR_RUNS,
    EXECUTOR_SLEEPS,
    EXECUTOR_STEALS,
    EXECUTOR_LOOKS,
    EXECUTOR_WAKES,
    EXECUTOR_COMPLETIONS,
    EXECUTOR_BEGUN,
    EXECUTOR_COUNTS,
    EXECUTOR_IN_FLIGHT = EXECUTOR_COUNTS,
    EXECUTOR_LONGEST,
    EXECUTOR_VALUES
} executor_value;

/* A loop, or a worker of a pool. */
typedef struct executor {
    uint32_t number; /* of the loop or the pool */
    uint32_t worker;
    bool is_worker;
    bool is_run;
    bool is_asleep;
    int thread;
    const char *back_end; /* of a loop */
    char name[64];
    char thread_name[16];
    uint64_t busy_since; /* nanoseconds: when a look first found it in its current turn */
    uint64_t values[EXECUTOR_VALUES];
} executor;

/* In the order of their creation. All zero: none. */
typedef struct executors {
    executor *all;
    size_t count;
    size_t room;
    uint64_t at;   /* the time of the look */
    bool left_out; /* there was no room for all */
} executors;

/* Reads all executors. `last` is the result of the previous look. Returns as bide_peek_begin_. */
int bide_executors_collect_(executors *executors, const struct executors *last);

/* Copies them. False: out of memory, and `to` is empty. */
bool bide_executors_copy_(executors *to, const executors *from);

/* Adds their records, with the differences to `before`. */
void bide_executors_report_(const executors *executors, const struct executors *before,
                            monitor_report *report);

void bide_executors_free_(executors *executors);

#endif
