// Ping-pong with auto-reset events for one waiter, like cppcoro's: a set resumes the waiter inline, or posts it to the
// loop on which its wait started.

#include "event.h"

#include "../place_thread.h"
#include "coroutines.hpp"
#include "loop.hpp"

#include <thread>

namespace
{

// Not set: null. Set: the event's own address. Otherwise the waiter.
template <bool posts>
class auto_reset_event
{
  public:
    class awaiter : loop::node
    {
      public:
        explicit awaiter(auto_reset_event &of) noexcept : of_(of)
        {
        }
        bool await_ready() const noexcept
        {
            void *set = &of_;
            return of_.state_.compare_exchange_strong(set, nullptr, std::memory_order_acquire,
                                                      std::memory_order_relaxed);
        }
        bool await_suspend(std::coroutine_handle<> h) noexcept
        {
            waiting = h;
            on_ = loop::current;
            void *old = nullptr;
            if (of_.state_.compare_exchange_strong(old, this, std::memory_order_release,
                                                   std::memory_order_acquire))
                return true;
            of_.state_.store(nullptr, std::memory_order_relaxed);
            return false;
        }
        void await_resume() const noexcept
        {
        }

      private:
        friend class auto_reset_event;

        void resume()
        {
            if constexpr (posts)
                on_->post(this);
            else
                waiting.resume();
        }

        auto_reset_event &of_;
        loop *on_ = nullptr;
    };

    void set()
    {
        void *old = state_.load(std::memory_order_relaxed);
        void *next;
        do {
            if (old == this)
                return;
            next = old == nullptr ? this : nullptr;
        } while (!state_.compare_exchange_weak(old, next, std::memory_order_acq_rel,
                                               std::memory_order_relaxed));
        if (old != nullptr)
            static_cast<awaiter *>(old)->resume();
    }

    awaiter operator co_await() noexcept
    {
        return awaiter(*this);
    }

  private:
    std::atomic<void *> state_ = nullptr;
};

template <bool posts>
struct shared {
    auto_reset_event<posts> ping, pong;
    uint64_t turns = 0;
};

template <bool posts>
task<int> serve(shared<posts> &s, uint64_t n, loop *on)
{
    if constexpr (posts)
        co_await on->schedule();
    for (uint64_t i = 0; i < n; i++) {
        s.ping.set();
        co_await s.pong;
    }
    if constexpr (posts)
        on->leave();
    co_return 0;
}

template <bool posts>
task<int> answer(shared<posts> &s, uint64_t n, loop *on)
{
    if constexpr (posts)
        co_await on->schedule();
    for (uint64_t i = 0; i < n; i++) {
        co_await s.ping;
        s.turns++;
        s.pong.set();
    }
    if constexpr (posts)
        on->leave();
    co_return 0;
}

uint64_t run_inline(uint64_t n)
{
    shared<false> s;
    task<int> second = answer(s, n, nullptr);
    task<int> first = serve(s, n, nullptr);
    second.start();
    first.start();
    return s.turns;
}

uint64_t run_on_a_loop(uint64_t n)
{
    shared<true> s;
    loop l;
    task<int> second = answer(s, n, &l);
    task<int> first = serve(s, n, &l);
    second.start();
    first.start();
    bench_place_thread(0);
    l.run(2);
    return s.turns;
}

uint64_t run_on_two_loops(uint64_t n)
{
    shared<true> s;
    loop loops[2];
    task<int> second = answer(s, n, &loops[1]);
    task<int> first = serve(s, n, &loops[0]);
    second.start();
    first.start();
    std::thread other([&] {
        bench_place_thread(1);
        loops[1].run(1);
    });
    bench_place_thread(0);
    loops[0].run(1);
    other.join();
    return s.turns;
}

} // namespace

const struct peer_event PEER(peer_event) = {run_inline, run_on_a_loop, run_on_two_loops};
