// Awaits children that complete at once, as tasks of bide.

#include "cxx.h"

#include "bide/bide.hpp"

namespace
{

// Not inlined, so every call makes a frame.
__attribute__((noinline)) bide::task<int> child(int v)
{
    co_return v;
}

bide::task<uint64_t> parent(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += static_cast<uint64_t>(co_await child(static_cast<int>(i & 0xff)));
    co_return sum;
}

uint64_t run(uint64_t n)
{
    return bide::sync_wait(parent(n));
}

} // namespace

const struct cxx_await PEER(cxx_await) = {run};
