/*
 * The common part of the benchmarks: a clock, rounds that run the subjects in turn, and JSON lines.
 *
 * A subject is a function that does its work once and returns the number of operations. Each round
 * runs every subject once, so that other load on the machine affects all of them equally. The
 * figure is the median over the rounds.
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

/* Runs `rounds` rounds (at most 99) after a warm-up round, and prints a line for each subject. */
void bench_run(const char *bench, enum bench_unit unit, const bench_subject *subjects, size_t count,
               int rounds);

/*
 * For benchmarks that time parts of their subjects' work: the clock in nanoseconds, and the median
 * of `count` values, which it sorts.
 */
double bench_now(void);
double bench_median(double *values, size_t count);

/* The quantile `part` (0 to 1) of `count` values, which it sorts. */
double bench_quantile(double *values, size_t count, double part);

/* The processor time of this process so far, in nanoseconds. */
double bench_cpu_now(void);

/* Reports an error and exits. */
_Noreturn void bench_fail(const char *bench, const char *what);

/* Runs the function in a thread, to be joined with pthread_join. */
pthread_t bench_start_thread(void *(*function)(void *argument), void *argument);

/* Prints one line for a figure that the benchmark has measured itself. */
void bench_print(const char *bench, const char *subject, double value, const char *unit,
                 const char *params);

/* Prevents the compiler from removing the work that computes `value`. */
static inline void bench_keep(uint64_t value)
{
    __asm__ volatile("" ::"r"(value));
}

#endif
