// oneTBB's concurrent_queue and concurrent_bounded_queue. They have no batches.
#include "queue_loops.hpp"

#include <oneapi/tbb/concurrent_queue.h>

namespace
{

using unbounded = tbb::concurrent_queue<uint64_t>;
using bounded = tbb::concurrent_bounded_queue<uint64_t>;

template <class Queue>
class handle
{
  public:
    using queue = Queue;

    handle(queue &of, queue_role) : of_(of)
    {
    }
    bool push(uint64_t value)
    {
        if constexpr (requires { of_.try_push(value); })
            return of_.try_push(value);
        of_.push(value);
        return true;
    }
    bool pop(uint64_t &to)
    {
        return of_.try_pop(to);
    }

  private:
    queue &of_;
};

unbounded *make_unbounded(unsigned, unsigned)
{
    return new unbounded;
}

bounded *make_bounded(unsigned, unsigned)
{
    auto *queue = new bounded;
    queue->set_capacity(QUEUE_CAPACITY);
    return queue;
}

} // namespace

const struct queue_subject queues_tbb[] = {
    queue_loops<handle<bounded>>::subject<make_bounded>("tbb-bounded", QUEUE_MPMC_BOUNDED),
    queue_loops<handle<unbounded>>::subject<make_unbounded>("tbb", QUEUE_MPMC_UNBOUNDED),
    {},
};
