// moodycamel::ConcurrentQueue, without tokens and with a producer's and a consumer's. It has batches.
#include "queue_loops.hpp"

#include <concurrentqueue/concurrentqueue.h>

#include <optional>

namespace
{

using numbers = moodycamel::ConcurrentQueue<uint64_t>;

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
    size_t push_many(const uint64_t *from, size_t count)
    {
        return of_.enqueue_bulk(from, count) ? count : 0;
    }
    size_t pop_many(uint64_t *to, size_t count)
    {
        return of_.try_dequeue_bulk(to, count);
    }

  private:
    queue &of_;
};

class token_handle
{
  public:
    using queue = numbers;

    token_handle(queue &of, queue_role role) : of_(of)
    {
        if (role == QUEUE_PRODUCER)
            producer_.emplace(of);
        else
            consumer_.emplace(of);
    }
    bool push(uint64_t value)
    {
        return of_.enqueue(*producer_, value);
    }
    bool pop(uint64_t &to)
    {
        return of_.try_dequeue(*consumer_, to);
    }
    size_t push_many(const uint64_t *from, size_t count)
    {
        return of_.enqueue_bulk(*producer_, from, count) ? count : 0;
    }
    size_t pop_many(uint64_t *to, size_t count)
    {
        return of_.try_dequeue_bulk(*consumer_, to, count);
    }

  private:
    queue &of_;
    std::optional<moodycamel::ProducerToken> producer_;
    std::optional<moodycamel::ConsumerToken> consumer_;
};

numbers *make(unsigned producers, unsigned)
{
    return new numbers(QUEUE_CAPACITY, 0, producers);
}

numbers *make_for_tokens(unsigned producers, unsigned)
{
    return new numbers(QUEUE_CAPACITY, producers, 0);
}

} // namespace

const struct queue_subject queues_moodycamel[] = {
    queue_loops<handle>::subject<make>("moodycamel", QUEUE_MPMC_UNBOUNDED),
    queue_loops<token_handle>::subject<make_for_tokens>("moodycamel-tokens", QUEUE_MPMC_UNBOUNDED),
    {},
};
