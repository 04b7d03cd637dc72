// oneTBB's fork and join: one half is a task of a group, the other a call.
#include "fork.h"

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace
{

uint64_t fib(uint64_t n)
{
    if (n < 2)
        return n;
    uint64_t other;
    tbb::task_group group;
    group.run([&other, n] { other = fib(n - 2); });
    uint64_t one = fib(n - 1);
    group.wait();
    return one + other;
}

} // namespace

uint64_t peer_fork_tbb(unsigned threads)
{
    tbb::task_arena arena(static_cast<int>(threads));
    uint64_t result = 0;
    arena.execute([&result] { result = fib(FORK_N); });
    return result;
}
