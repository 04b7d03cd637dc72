// cppcoro's async_mutex: a lock-free stack of new waiters, and the holder's list of the next ones.

#include "mutex.h"

#include "../place_thread.h"
#include "coroutines.hpp"
#include "loop.hpp"

#include <thread>

namespace
{

// posts: the next holder is posted to the loop on which its wait started; otherwise it is resumed inline.
template <bool posts>
class async_mutex
{
  public:
    class awaiter : loop::node
    {
      public:
        explicit awaiter(async_mutex &of) noexcept : of_(of)
        {
        }
        bool await_ready() const noexcept
        {
            return false;
        }
        bool await_suspend(std::coroutine_handle<> h) noexcept
        {
            waiting = h;
            on_ = loop::current;
            uintptr_t old = of_.state_.load(std::memory_order_acquire);
            for (;;) {
                if (old == not_locked) {
                    if (of_.state_.compare_exchange_weak(old, locked_no_waiters,
                                                         std::memory_order_acquire,
                                                         std::memory_order_relaxed))
                        return false;
                } else {
                    next_ = reinterpret_cast<awaiter *>(old);
                    if (of_.state_.compare_exchange_weak(old, reinterpret_cast<uintptr_t>(this),
                                                         std::memory_order_release,
                                                         std::memory_order_relaxed))
                        return true;
                }
            }
        }
        void await_resume() const noexcept
        {
        }

      private:
        friend class async_mutex;

        void resume()
        {
            if constexpr (posts)
                on_->post(this);
            else
                waiting.resume();
        }

        async_mutex &of_;
        awaiter *next_ = nullptr;
        loop *on_ = nullptr;
    };

    awaiter lock() noexcept
    {
        return awaiter(*this);
    }

    void unlock()
    {
        awaiter *head = waiters_;
        if (head == nullptr) {
            uintptr_t old = locked_no_waiters;
            if (state_.compare_exchange_strong(old, not_locked, std::memory_order_release,
                                               std::memory_order_relaxed))
                return;
            old = state_.exchange(locked_no_waiters, std::memory_order_acquire);
            for (auto *newer = reinterpret_cast<awaiter *>(old); newer != nullptr;) {
                awaiter *older = newer->next_;
                newer->next_ = head;
                head = newer;
                newer = older;
            }
        }
        waiters_ = head->next_;
        head->resume();
    }

  private:
    static constexpr uintptr_t not_locked = 1;
    static constexpr uintptr_t locked_no_waiters = 0;
    // otherwise the newest waiter

    std::atomic<uintptr_t> state_ = not_locked;
    awaiter *waiters_ = nullptr; // oldest first
};

task<uint64_t> lock_often(async_mutex<false> &mutex, uint64_t times)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < times; i++) {
        co_await mutex.lock();
        count++;
        __asm__ volatile("" ::: "memory");
        mutex.unlock();
    }
    co_return count;
}

uint64_t run_coroutine(uint64_t times)
{
    async_mutex<false> mutex;
    task<uint64_t> t = lock_often(mutex, times);
    t.start();
    return t.result();
}

uint64_t run_std(uint64_t times)
{
    std::mutex mutex;
    uint64_t count = 0;
    for (uint64_t i = 0; i < times; i++) {
        mutex.lock();
        count++;
        __asm__ volatile("" ::: "memory");
        mutex.unlock();
    }
    return count;
}

template <bool posts>
task<int> contender(async_mutex<posts> &mutex, mutex_contest &contest, unsigned who, loop &on)
{
    co_await on.schedule();
    while (mutex_contest_goes_on(&contest)) {
        co_await mutex.lock();
        mutex_contest_inside(&contest, who);
        mutex.unlock();
        mutex_contest_outside(&contest);
    }
    co_await on.schedule();
    on.leave();
    co_return 0;
}

template <bool posts>
void contend(mutex_contest *contest)
{
    async_mutex<posts> mutex;
    loop loops[2];
    task<int> parties[MUTEX_PARTIES] = {
        contender(mutex, *contest, 0, loops[0]), contender(mutex, *contest, 1, loops[1]),
        contender(mutex, *contest, 2, loops[0]), contender(mutex, *contest, 3, loops[1])};
    for (task<int> &party : parties)
        party.start();
    std::thread other([&] {
        bench_place_thread(1);
        loops[1].run(2);
    });
    bench_place_thread(0);
    loops[0].run(2);
    other.join();
}

} // namespace

const struct peer_mutex PEER(peer_mutex) = {run_coroutine, run_std, contend<false>, contend<true>};
