/*
 * Fuzz targets: each source NAME_fuzz.c is one. It takes any bytes, gives them to a parser, and compares the result with
 * that of a second, simple implementation, or with the result for the same bytes in pieces.
 *
 * Each is built twice: with driver.c, which mutates the corpus with a seed and ends after a number of executions, for the
 * test run; and, with -Dfuzzers=true and clang, with libFuzzer.
 *
 *     build/tests/fuzz/NAME_fuzz corpus/NAME           mutates the corpus
 *     build/tests/fuzz/NAME_fuzz FILE...               executes these inputs
 */
#ifndef BIDE_TESTS_FUZZ_H
#define BIDE_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Executes an input. Returns 0. A finding ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For the driver: words that it inserts, up to a NULL; and the executions of a short run. */
extern const char *const fuzz_words[];
extern const unsigned fuzz_executions;

#define FUZZ_REQUIRE(condition)                                                               \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

/* How often a parser was given an input, in whole or in pieces. A target that does so several times counts. */
extern unsigned long long fuzz_parses;
unsigned long long fuzz_parses __attribute__((weak));

/* A copy of exactly `size` bytes, so that a sanitizer sees accesses beyond them. */
static inline void *fuzz_copy(const void *data, size_t size)
{
    void *copy = malloc(size != 0 ? size : 1);
    FUZZ_REQUIRE(copy != NULL);
    if (size != 0)
        memcpy(copy, data, size);
    return copy;
}

#endif
