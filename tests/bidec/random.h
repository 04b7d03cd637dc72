/*
 * A random program of random_test.py: async, or, with PLAIN defined, the same text as plain C for gcc.
 */
#ifdef PLAIN
#define async
#define async_created
#define async_kind(kind)
#define await
#define async_pointer(type, ...)  __typeof__(type (*)(__VA_ARGS__))
#define async_pointer_to(name)    name
#define async_call(pointer, ...)  ((pointer)(__VA_ARGS__))
#define PAUSE ((void)0)
/* the statement is a block, which becomes the body of a nested function */
#define DEFER_AT(n) DEFER_AT_(n)
#define DEFER_AT_(n)                                                                               \
    auto void deferred_##n(int *);                                                                 \
    int object_##n __attribute__((cleanup(deferred_##n)));                                         \
    void deferred_##n(int *unused_##n)
#define defer DEFER_AT(__COUNTER__)
static unsigned k(unsigned n)
{
    return n;
}
#else
#include "torture.h"
#define PAUSE await bide_torture_pause(0)

/* Kinds whose hooks change nothing. */
typedef struct steady {
    bide_frame frame;
    unsigned awaits, returns;
} steady;
typedef unsigned steady_result;
static bide_awaiter *steady_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    bide_promise(steady, frame)->awaits++;
    return awaiter;
}
static void steady_return_value(bide_frame *frame, void *value)
{
    bide_promise(steady, frame)->returns += *(steady_result *)value;
}
static const bide_coroutine_type steady_type = {
    .name = "steady",
    .return_value = steady_return_value,
    .await_transform = steady_await_transform,
};
typedef struct quiet {
    bide_frame frame;
} quiet;
static const bide_coroutine_type quiet_type = {.name = "quiet"};

async unsigned k(unsigned n)
{
    char junk[48];
    __builtin_memset(junk, 0x55, sizeof junk);
    PAUSE;
    return n + (unsigned)junk[n % 48] - 0x55;
}
#endif

int printf(const char *, ...);

static unsigned hash, global = 3, other = 5;

/* With TRACE, each note is printed. */
static inline unsigned note(unsigned value)
{
#ifdef TRACE
    printf("%u\n", value);
#endif
    hash = hash * 31 + value;
    return value;
}

/* Overwrites the dead part of the stack. */
static __attribute__((noinline)) void scrub(void)
{
    volatile unsigned char dead[768];
    for (unsigned i = 0; i < sizeof dead; i++)
        dead[i] = 0xa5;
}

static inline void note_it(unsigned *value)
{
    note(*value + 1);
}

/* Pointers at the functions of the program. */
typedef async_pointer(unsigned, unsigned, unsigned) operation;
struct table {
    char n;
    operation call, more[2];
};

struct pair {
    unsigned a, b[4];
};
struct __attribute__((packed)) wire {
    unsigned char kind;
    unsigned length;
    unsigned short low : 5, high : 9;
};
struct wide {
    unsigned char x;
    unsigned y __attribute__((aligned(16)));
};

static inline struct pair make(unsigned n)
{
    return (struct pair){n, {n + 1, n + 2, n + 3, n + 4}};
}
static inline unsigned sum(const unsigned *at, unsigned more)
{
    scrub();
    return at[0] + at[1] * 3 + at[2] * 5 + at[3] * 7 + more;
}
async struct pair make_async(unsigned n)
{
    PAUSE;
    return make(n);
}
