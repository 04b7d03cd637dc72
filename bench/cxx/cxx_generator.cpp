// The numbers of a body as a range, and those of a C++20 generator.

#include "cxx.h"

#include "bide/bide.hpp"
#include "bide/cppcoro.hpp"

namespace
{

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

// Not inlined, so that there is a frame whose content is opaque.
__attribute__((noinline)) bide_generator *count_by_body(numbers *self, uint64_t n)
{
    self->n = n;
    return bide_generator_init(&self->generator, &numbers_body);
}

uint64_t sum_of_values(uint64_t n)
{
    numbers frame;
    uint64_t sum = 0;
    for (uint64_t &number : bide::values<uint64_t>(count_by_body(&frame, n)))
        sum += number;
    return sum;
}

__attribute__((noinline)) cppcoro::generator<const uint64_t> count(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        co_yield i;
}

uint64_t sum_of_coroutine(uint64_t n)
{
    uint64_t sum = 0;
    for (const uint64_t &number : count(n))
        sum += number;
    return sum;
}

} // namespace

const struct cxx_generator PEER(cxx_generator) = {sum_of_values, sum_of_coroutine};
