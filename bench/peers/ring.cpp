// A producer and a consumer coroutine over a ring, with a sequence barrier and a single-producer sequencer like cppcoro's.
// A waiter names a scheduler: the inline one, so that publish resumes the waiter on the publisher's stack; or a queue for
// a single thread, so that the waiter continues when the publisher has suspended.

#include "ring.h"

#include "coroutines.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace
{

using sequence = size_t;
using difference = std::make_signed_t<sequence>;

difference from(sequence a, sequence b)
{
    return static_cast<difference>(a - b);
}

bool precedes(sequence a, sequence b)
{
    return from(a, b) < 0;
}

// The ready coroutines of the single thread.
class ready_queue
{
  public:
    struct node {
        std::coroutine_handle<> waiting_;
        node *after = nullptr;
    };
    void post(node *n) noexcept
    {
        n->after = nullptr;
        (first_ == nullptr ? first_ : last_->after) = n;
        last_ = n;
    }
    void run()
    {
        while (first_ != nullptr) {
            node *n = first_;
            first_ = n->after;
            n->waiting_.resume();
        }
    }

  private:
    node *first_ = nullptr;
    node *last_ = nullptr;
};

template <bool queued>
class sequence_barrier
{
  public:
    class awaiter : ready_queue::node
    {
      public:
        awaiter(sequence_barrier &of, sequence target, ready_queue &queue) noexcept
            : of_(of), target_(target), queue_(queue)
        {
        }
        bool await_ready() noexcept
        {
            published_ = of_.last_published();
            return !precedes(published_, target_);
        }
        bool await_suspend(std::coroutine_handle<> h) noexcept
        {
            waiting_ = h;
            of_.add(this);
            return !ready_.exchange(true, std::memory_order_acquire);
        }
        sequence await_resume() const noexcept
        {
            return published_;
        }

      private:
        friend class sequence_barrier;

        void resume(sequence published) noexcept
        {
            published_ = published;
            if (!ready_.exchange(true, std::memory_order_release))
                return;
            if constexpr (queued)
                queue_.post(this);
            else
                waiting_.resume();
        }

        sequence_barrier &of_;
        sequence target_;
        sequence published_ = 0;
        awaiter *next_ = nullptr;
        ready_queue &queue_;
        std::atomic<bool> ready_ = false;
    };

    sequence last_published() const noexcept
    {
        return published_.load(std::memory_order_acquire);
    }

    awaiter wait_until_published(sequence target, ready_queue &queue) noexcept
    {
        return awaiter(*this, target, queue);
    }

    void publish(sequence s) noexcept
    {
        published_.store(s, std::memory_order_seq_cst);
        if (awaiters_.load(std::memory_order_seq_cst) == nullptr)
            return;
        awaiter *taken = awaiters_.exchange(nullptr, std::memory_order_acquire);
        list stay, go;
        split(taken, s, stay, go);
        if (stay.first != nullptr)
            push(stay, std::memory_order_release);
        resume(go.first, s);
    }

  private:
    struct list {
        awaiter *first = nullptr;
        awaiter *last = nullptr;
        void append(awaiter *a) noexcept
        {
            a->next_ = nullptr;
            (first == nullptr ? first : last->next_) = a;
            last = a;
        }
    };

    // Returns the distance to the nearest of the remaining waiters.
    static difference split(awaiter *a, sequence published, list &stay, list &go) noexcept
    {
        difference nearest = std::numeric_limits<difference>::max();
        while (a != nullptr) {
            awaiter *next = a->next_;
            difference ahead = from(a->target_, published);
            if (ahead > 0)
                nearest = std::min(nearest, ahead);
            (ahead > 0 ? stay : go).append(a);
            a = next;
        }
        return nearest;
    }

    void push(list &l, std::memory_order order) noexcept
    {
        awaiter *head = awaiters_.load(std::memory_order_relaxed);
        do {
            l.last->next_ = head;
        } while (!awaiters_.compare_exchange_weak(head, l.first, order, std::memory_order_relaxed));
    }

    static void resume(awaiter *a, sequence published) noexcept
    {
        while (a != nullptr) {
            awaiter *next = a->next_;
            a->resume(published);
            a = next;
        }
    }

    void add(awaiter *a) noexcept
    {
        sequence target = a->target_;
        list stay, go;
        stay.append(a);
        sequence published;
        do {
            push(stay, std::memory_order_seq_cst);
            published = published_.load(std::memory_order_seq_cst);
            if (precedes(published, target))
                break;
            // Published meanwhile, maybe by a publisher that missed this waiter: checks again.
            awaiter *taken = awaiters_.exchange(nullptr, std::memory_order_acquire);
            stay = {};
            target = published + static_cast<sequence>(split(taken, published, stay, go));
        } while (stay.first != nullptr);
        resume(go.first, published);
    }

    alignas(64) std::atomic<sequence> published_ = static_cast<sequence>(-1);
    alignas(64) std::atomic<awaiter *> awaiters_ = nullptr;
};

struct claim {
    sequence first;
    size_t count;
};

template <bool queued>
class sequencer
{
  public:
    using barrier = sequence_barrier<queued>;

    sequencer(barrier &consumed, size_t size) noexcept : consumed_(consumed), size_(size)
    {
    }

    task<claim> claim_waiting(size_t max, ready_queue &queue)
    {
        sequence consumed = co_await consumed_.wait_until_published(next_ - size_, queue);
        co_return take(max, consumed);
    }

    // Returns true and the claim if no slot has to be waited for.
    bool try_claim(size_t max, claim &c) noexcept
    {
        sequence consumed = consumed_.last_published();
        if (precedes(consumed, next_ - size_))
            return false;
        c = take(max, consumed);
        return true;
    }

    void publish(const claim &c) noexcept
    {
        published.publish(c.first + c.count - 1);
    }

    barrier published;

  private:
    claim take(size_t max, sequence consumed) noexcept
    {
        claim c = {next_, std::min(max, consumed + size_ - next_ + 1)};
        next_ += c.count;
        return c;
    }

    barrier &consumed_;
    size_t size_;
    alignas(64) sequence next_ = 0;
};

template <bool queued>
struct shared {
    std::vector<uint64_t> ring;
    sequence_barrier<queued> consumed;
    sequencer<queued> claims;
    ready_queue queue;
    explicit shared(size_t size) : ring(size), claims(consumed, size)
    {
    }
};

template <bool queued>
task<int> produce(shared<queued> &s, uint64_t items, size_t batch)
{
    uint64_t *ring = s.ring.data();
    const size_t mask = s.ring.size() - 1;
    for (uint64_t sent = 0; sent < items;) {
        size_t max = static_cast<size_t>(std::min<uint64_t>(batch, items - sent));
        claim c;
        if (!s.claims.try_claim(max, c))
            c = co_await s.claims.claim_waiting(max, s.queue);
        for (size_t i = 0; i < c.count; i++)
            ring[(c.first + i) & mask] = sent++;
        s.claims.publish(c);
    }
    co_return 0;
}

template <bool queued>
task<uint64_t> consume(shared<queued> &s, uint64_t items)
{
    const uint64_t *ring = s.ring.data();
    const size_t mask = s.ring.size() - 1;
    uint64_t sum = 0;
    for (sequence next = 0; next < items;) {
        sequence last = co_await s.claims.published.wait_until_published(next, s.queue);
        for (; next != last + 1; next++)
            sum += ring[next & mask];
        s.consumed.publish(last);
    }
    co_return sum;
}

template <bool queued>
uint64_t run(uint64_t items, size_t batch, size_t size)
{
    shared<queued> s(size);
    task<uint64_t> consumer = consume(s, items);
    task<int> producer = produce(s, items, batch);
    consumer.start();
    producer.start();
    s.queue.run();
    return consumer.result();
}

} // namespace

const struct peer_ring PEER(peer_ring) = {run<false>, run<true>};
