/*
 * For the tests of operations in async functions: what takes over the memory of an await (a large await behind it), and
 * that of a function's variables (a result of 640 bytes); and rows, each of which awaits one operation before a large
 * await. operations_rows.py looks that no operation of the public headers is left out.
 */
#ifndef BIDE_TESTS_BIDEC_OPERATIONS_H
#define BIDE_TESTS_BIDEC_OPERATIONS_H

#include "testing.h"

#include "bide/async.h"
#include "bide/stream.h"
#include "bide/sleep.h"

/* Suspends with a frame full of a pattern, more than once. */
async void large(void)
{
    unsigned char pattern[3000];
    for (int i = 0; i < 2; i++) {
        memset(pattern, 0xa5, sizeof pattern);
        await bide_sleep_for(1);
        for (size_t byte = 0; byte < sizeof pattern; byte++)
            assert_int_equal(pattern[byte], 0xa5);
    }
}

/* What lies over the variables of a function when it has ended. */
struct big {
    long a[80]; /* 640 bytes */
};

static inline struct big filled(long status)
{
    struct big big;
    for (int i = 0; i < 80; i++)
        big.a[i] = i == 40 ? status : ~(long)i;
    return big;
}

static inline void check_filled(const struct big *big, long status)
{
    for (int i = 0; i < 80; i++)
        assert_int_equal(big->a[i], i == 40 ? status : ~(long)i);
}

/* ---- Rows ---- */

static __attribute__((unused)) int rows; /* that were run */

/* The operation, called without its struct, and its value. */
#define VALUE(name, value, ...)                           \
    do {                                                  \
        assert_int_equal(await name(__VA_ARGS__), value); \
        await large();                                    \
        rows++;                                           \
    } while (0)

/* The same with a struct, which has what the operation has found, also behind a large await. */
#define NAMED(type, name, expression, value, ...)           \
    do {                                                    \
        type own;                                           \
        assert_int_equal(await name(&own, __VA_ARGS__), 0); \
        await large();                                      \
        assert_int_equal(expression, value);                \
        rows++;                                             \
    } while (0)

/* Without and with a struct, of an operation that gives a status. */
#define BOTH(type, name, ...)                               \
    do {                                                    \
        type own;                                           \
        assert_int_equal(await name(__VA_ARGS__), 0);       \
        await large();                                      \
        assert_int_equal(await name(&own, __VA_ARGS__), 0); \
        await large();                                      \
        rows += 2;                                          \
    } while (0)

/* Of one that is its own struct, or the member of one: its object is a variable. */
#define OWN(name, ...)                                \
    do {                                              \
        assert_int_equal(await name(__VA_ARGS__), 0); \
        await large();                                \
        rows++;                                       \
    } while (0)

/* ---- Streams in memory ---- */

/* Two ends that are connected by two pipes. */
struct memory_pair {
    bide_memory_pipe there, back;
    char bytes[2][65536];
    bide_memory_end client, server;
};

static inline void memory_pair_init(struct memory_pair *pair)
{
    bide_memory_pipe_init(&pair->there, pair->bytes[0], sizeof pair->bytes[0]);
    bide_memory_pipe_init(&pair->back, pair->bytes[1], sizeof pair->bytes[1]);
    pair->client = (bide_memory_end){&pair->back, &pair->there};
    pair->server = (bide_memory_end){&pair->there, &pair->back};
}

#endif
