// Awaits children that complete at once.

#include "task.h"

#include "coroutines.hpp"

namespace
{

// Not inlined, so every call makes a frame.
__attribute__((noinline)) task<int> child(int v)
{
    co_return v;
}

task<uint64_t> parent(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += static_cast<uint64_t>(co_await child(static_cast<int>(i & 0xff)));
    co_return sum;
}

} // namespace

extern "C" uint64_t peer_cxx_task_run(uint64_t n)
{
    task<uint64_t> t = parent(n);
    t.start();
    return t.result();
}
