// A std::deque under a std::mutex; a batch under one lock.
#include "queue_loops.hpp"

#include <algorithm>
#include <deque>
#include <mutex>

namespace
{

struct locked_deque {
    std::mutex mutex;
    std::deque<uint64_t> elements;
};

class handle
{
  public:
    using queue = locked_deque;

    handle(queue &of, queue_role) : of_(of)
    {
    }
    bool push(uint64_t value)
    {
        return push_many(&value, 1) == 1;
    }
    bool pop(uint64_t &to)
    {
        return pop_many(&to, 1) == 1;
    }
    size_t push_many(const uint64_t *from, size_t count)
    {
        std::lock_guard lock(of_.mutex);
        of_.elements.insert(of_.elements.end(), from, from + count);
        return count;
    }
    size_t pop_many(uint64_t *to, size_t count)
    {
        std::lock_guard lock(of_.mutex);
        count = std::min(count, of_.elements.size());
        auto end = of_.elements.begin() + ptrdiff_t(count);
        std::copy(of_.elements.begin(), end, to);
        of_.elements.erase(of_.elements.begin(), end);
        return count;
    }

  private:
    queue &of_;
};

locked_deque *make(unsigned, unsigned)
{
    return new locked_deque;
}

} // namespace

const struct queue_subject queues_std[] = {
    queue_loops<handle>::subject<make>("mutex+deque", QUEUE_MPMC_UNBOUNDED),
    {},
};
