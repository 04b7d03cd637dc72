// Boost.Lockfree's queues: one for a single producer and consumer, with batches; and one for many, without batches, with
// nodes from a growing free list or from an array.
#include "queue_loops.hpp"

#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>

namespace
{

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
        return of_.push(value);
    }
    bool pop(uint64_t &to)
    {
        return of_.pop(to);
    }

  protected:
    queue &of_;
};

template <class Queue>
class batch_handle : public handle<Queue>
{
  public:
    using handle<Queue>::handle;

    size_t push_many(const uint64_t *from, size_t count)
    {
        return this->of_.push(from, count);
    }
    size_t pop_many(uint64_t *to, size_t count)
    {
        return this->of_.pop(to, count);
    }
};

using spsc = boost::lockfree::spsc_queue<uint64_t, boost::lockfree::capacity<QUEUE_CAPACITY>>;
using fixed = boost::lockfree::queue<uint64_t, boost::lockfree::capacity<QUEUE_CAPACITY>>;
using growing = boost::lockfree::queue<uint64_t>;

template <class Queue>
Queue *make(unsigned, unsigned)
{
    return new Queue;
}

growing *make_growing(unsigned, unsigned)
{
    return new growing(QUEUE_CAPACITY);
}

} // namespace

const struct queue_subject queues_boost[] = {
    queue_loops<batch_handle<spsc>>::subject<make<spsc>>("boost-spsc", QUEUE_SPSC_BOUNDED),
    queue_loops<handle<fixed>>::subject<make<fixed>>("boost-fixed", QUEUE_MPMC_BOUNDED),
    queue_loops<handle<growing>>::subject<make_growing>("boost", QUEUE_MPMC_UNBOUNDED),
    {},
};
