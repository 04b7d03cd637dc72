// moodycamel::ReaderWriterQueue: one producer, one consumer; it grows, and has no batches.
#include "queue_loops.hpp"

#include <readerwriterqueue/readerwriterqueue.h>

namespace
{

using numbers = moodycamel::ReaderWriterQueue<uint64_t>;

class handle
{
  public:
    using queue = numbers;

    handle(queue &of, queue_role) : of_(of)
    {
    }
    bool push(uint64_t value)
    {
        return of_.enqueue(value);
    }
    bool pop(uint64_t &to)
    {
        return of_.try_dequeue(to);
    }

  private:
    queue &of_;
};

numbers *make(unsigned, unsigned)
{
    return new numbers(QUEUE_CAPACITY);
}

} // namespace

const struct queue_subject queues_readerwriter[] = {
    queue_loops<handle>::subject<make>("readerwriterqueue", QUEUE_SPSC_UNBOUNDED),
    {},
};
