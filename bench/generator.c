/*
 * A generator that yields the numbers 0 .. n-1 to a loop that adds them up; the time for each
 * value.
 *
 *   bide                    bide_for, which sees the body: it is inlined
 *   bide-for-out-of-line    bide_for over a generator that is created out of line: an indirect call
 *   bide-next-out-of-line   the same with bide_generator_next
 *   state-machine-direct    a hand-written state machine, stepped by an out-of-line call: the floor
 *   state-machine-indirect  the same, stepped through a pointer in it
 *   bide-cxx-g++            bide::values in C++20 over a generator that is created out of line, by g++
 *   bide-cppcoro-g++        cppcoro::generator of bide/cppcoro.hpp, a coroutine of C++20, by g++
 *   cxx20-generator-g++     a minimal C++20 generator, created out of line, compiled by g++
 *   ..-clang                the same, compiled by clang
 */
#include "bench.h"

#include "cxx/cxx.h"
#include "peers/generator.h"

#include "bide/generator.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUES = 10000000 };

static uint64_t check_sum(uint64_t sum)
{
    if (sum != (uint64_t)VALUES * (VALUES - 1) / 2) {
        fprintf(stderr, "generator: the sum is wrong\n");
        exit(1);
    }
    return VALUES;
}

struct numbers {
    bide_generator generator;
    uint64_t i;
    uint64_t n;
};

bide_generator_coroutine(numbers_body)
{
    bide_begin(numbers_body, struct numbers * self);
    for (self->i = 0; self->i < self->n; self->i++)
        bide_yield(&self->i);
    bide_end();
}

static inline bide_generator *numbers(struct numbers *self, uint64_t n)
{
    self->n = n;
    return bide_generator_init(&self->generator, &numbers_body);
}

static __attribute__((noinline)) bide_generator *numbers_out_of_line(struct numbers *self,
                                                                     uint64_t n)
{
    return numbers(self, n);
}

static uint64_t run_bide(const void *unused)
{
    struct numbers frame;
    uint64_t sum = 0;
    (void)unused;
    bide_for (uint64_t *, number, numbers(&frame, VALUES))
        sum += *number;
    return check_sum(sum);
}

static uint64_t run_bide_for(const void *unused)
{
    struct numbers frame;
    uint64_t sum = 0;
    (void)unused;
    bide_for (uint64_t *, number, numbers_out_of_line(&frame, VALUES))
        sum += *number;
    return check_sum(sum);
}

static uint64_t run_bide_next(const void *unused)
{
    struct numbers frame;
    bide_generator *generator = numbers_out_of_line(&frame, VALUES);
    uint64_t sum = 0;
    (void)unused;
    for (uint64_t *number; (number = bide_generator_next(generator)) != NULL;)
        sum += *number;
    return check_sum(sum);
}

struct count {
    bool (*step)(struct count *self);
    enum { START, YIELDED, ENDED } state;
    uint64_t i;
    uint64_t n;
    uint64_t value;
};

/* Computes the next number into `value`; returns false at the end. */
static __attribute__((noinline)) bool count_step(struct count *self)
{
    __asm__ volatile("" ::"r"(self) : "memory");
    switch (self->state) {
    case START:
        for (self->i = 0; self->i < self->n; self->i++) {
            self->value = self->i;
            self->state = YIELDED;
            return true;
        case YIELDED:;
        }
        self->state = ENDED;
        break;
    case ENDED:
        break;
    }
    return false;
}

static uint64_t run_direct(const void *unused)
{
    struct count count = {.state = START, .n = VALUES};
    uint64_t sum = 0;
    (void)unused;
    while (count_step(&count))
        sum += count.value;
    return check_sum(sum);
}

static uint64_t run_indirect(const void *unused)
{
    struct count count = {.step = count_step, .state = START, .n = VALUES};
    uint64_t sum = 0;
    (void)unused;
    __asm__ volatile("" ::"r"(&count) : "memory");
    while (count.step(&count))
        sum += count.value;
    return check_sum(sum);
}

#if BENCH_GXX || BENCH_CLANG
static uint64_t run_cxx(const void *peer)
{
    return check_sum(((const struct peer_generator *)peer)->sum(VALUES));
}
#endif

#if BENCH_GXX || BENCH_CLANG
static uint64_t run_values(const void *subject)
{
    return check_sum(((const struct cxx_generator *)subject)->values(VALUES));
}

static uint64_t run_coroutine(const void *subject)
{
    return check_sum(((const struct cxx_generator *)subject)->coroutine(VALUES));
}
#endif

int main(void)
{
    const bench_subject subjects[] = {
        {"bide", run_bide, NULL, "{}"},
        {"bide-for-out-of-line", run_bide_for, NULL, "{}"},
        {"bide-next-out-of-line", run_bide_next, NULL, "{}"},
        {"state-machine-direct", run_direct, NULL, "{}"},
        {"state-machine-indirect", run_indirect, NULL, "{}"},
#if BENCH_GXX
        {"bide-cxx-g++", run_values, &cxx_generator_gxx, "{}"},
        {"bide-cppcoro-g++", run_coroutine, &cxx_generator_gxx, "{}"},
        {"cxx20-generator-g++", run_cxx, &peer_generator_gxx, "{}"},
#endif
#if BENCH_CLANG
        {"bide-cxx-clang", run_values, &cxx_generator_clang, "{}"},
        {"bide-cppcoro-clang", run_coroutine, &cxx_generator_clang, "{}"},
        {"cxx20-generator-clang", run_cxx, &peer_generator_clang, "{}"},
#endif
    };
    bench_run("generator", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0],
              21);
    return 0;
}
