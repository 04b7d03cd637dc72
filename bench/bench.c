/* The clock, rounds and statistics of all benchmarks. bench.h has the contract. */
#define _GNU_SOURCE
#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 99, MAX_SUBJECTS = 64 };

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], compare);
    return values[count / 2];
}

double bench_quantile(double *values, size_t count, double part)
{
    qsort(values, count, sizeof values[0], compare);
    size_t index = (size_t)(part * (double)count);
    return values[index < count ? index : count - 1];
}

double bench_cpu_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

void bench_place_thread(unsigned index)
{
    cpu_set_t processors;
    if (getenv("BENCH_PIN") == NULL)
        return;
    CPU_ZERO(&processors);
    CPU_SET(index % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &processors);
    sched_setaffinity(0, sizeof processors, &processors);
}

void bench_fail(const char *bench, const char *what)
{
    fprintf(stderr, "%s: %s\n", bench, what);
    exit(1);
}

pthread_t bench_start_thread(void *(*function)(void *argument), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument) != 0)
        bench_fail("bench", "no thread can be started");
    return thread;
}

void bench_print(const char *bench, const char *subject, double value, const char *unit,
                 const char *params)
{
    printf("{\"bench\": \"%s\", \"subject\": \"%s\", \"value\": %.*f, \"unit\": \"%s\", "
           "\"params\": %s}\n",
           bench, subject, value < 1000 ? 2 : 0, value, unit, params);
    fflush(stdout);
}

void bench_run(const char *bench, enum bench_unit unit, const bench_subject *subjects, size_t count,
               int rounds)
{
    static double nanoseconds[MAX_SUBJECTS][MAX_ROUNDS];
    if (count > MAX_SUBJECTS || rounds > MAX_ROUNDS)
        abort();
    for (int round = -1; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            double begun = bench_now();
            uint64_t operations = subjects[i].run(subjects[i].argument);
            double each = (bench_now() - begun) / (double)operations;
            if (round >= 0)
                nanoseconds[i][round] = each;
        }
    }
    for (size_t i = 0; i < count; i++) {
        double median = bench_median(nanoseconds[i], (size_t)rounds);
        if (unit == BENCH_NANOSECONDS_EACH)
            bench_print(bench, subjects[i].name, median, "ns/op", subjects[i].params);
        else
            bench_print(bench, subjects[i].name, 1e9 / median, "items/s", subjects[i].params);
    }
}
