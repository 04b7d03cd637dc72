/*
 * What the benchmarks share: a clock, rounds that take the subjects in turn, and the JSON lines.
 *
 * A subject is a function that does its work once and returns how many operations that were. Each round
 * runs every subject once, so that whatever else the machine does meets them all alike; the figure is
 * the median over the rounds.
 */
#ifndef BENCH_H
#define BENCH_H

#include "place_thread.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_subject {
    const char *name;
    uint64_t (*run)(const void *argument); /* returns the number of operations */
    const void *argument;
    const char *params; /* a JSON object */
} bench_subject;

enum bench_unit { BENCH_NANOSECONDS_EACH, BENCH_ITEMS_PER_SECOND };

/* Runs `rounds` rounds (at most 99) after one to warm up, and prints a line for each subject. */
void bench_run(const char *bench, enum bench_unit unit, const bench_subject *subjects, size_t count,
               int rounds);

/* For a benchmark that times parts of what its subjects do: the clock, in nanoseconds; and the median of
 * `count` values, which it sorts. */
double bench_now(void);
double bench_median(double *values, size_t count);

/* The value below which `part` (0 to 1) of the `count` values lie; sorts them too. */
double bench_quantile(double *values, size_t count, double part);

/* The processor time that this process has taken, in nanoseconds. */
double bench_cpu_now(void);

/* Says what is wrong, and exits. */
_Noreturn void bench_fail(const char *bench, const char *what);

/* Runs the function in a thread; join it by pthread_join. */
pthread_t bench_start_thread(void *(*function)(void *argument), void *argument);

/* Prints one line for a figure of a benchmark's own. */
void bench_print(const char *bench, const char *subject, double value, const char *unit,
                 const char *params);

/* Keeps the compiler from dropping the work that led to `value`. */
static inline void bench_keep(uint64_t value)
{
    __asm__ volatile("" ::"r"(value));
}

#endif
