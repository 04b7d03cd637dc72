// A minimal event loop, for the coroutines of one thread: a queue under a mutex, and a condition variable on which the
// thread sleeps while there is nothing to run. (In an unnamed namespace: see coroutines.hpp.)
#ifndef BENCH_PEERS_LOOP_HPP
#define BENCH_PEERS_LOOP_HPP

#include <condition_variable>
#include <coroutine>
#include <mutex>

namespace
{

class loop
{
  public:
    // One resumption. It belongs to the poster until it has run.
    struct node {
        std::coroutine_handle<> waiting;
        node *next = nullptr;
    };

    loop() = default;
    loop(const loop &) = delete;
    loop &operator=(const loop &) = delete;

    void post(node *n)
    {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            n->next = nullptr;
            (first_ == nullptr ? first_ : last_->next) = n;
            last_ = n;
        }
        not_empty_.notify_one();
    }

    // Runs until this many coroutines have called leave().
    void run(unsigned leavers)
    {
        current = this;
        leavers_ = leavers;
        while (leavers_ != 0) {
            node *n = take();
            n->waiting.resume();
        }
        current = nullptr;
    }

    // Called by a coroutine of the loop, last.
    void leave() noexcept
    {
        leavers_--;
    }

    struct awaiter : node {
        loop &to;
        explicit awaiter(loop &l) : to(l)
        {
        }
        bool await_ready() const noexcept
        {
            return false;
        }
        void await_suspend(std::coroutine_handle<> h)
        {
            waiting = h;
            to.post(this);
        }
        void await_resume() const noexcept
        {
        }
    };

    // Continues the coroutine in this loop.
    awaiter schedule() noexcept
    {
        return awaiter(*this);
    }

    static thread_local loop *current; // of this thread

  private:
    node *take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        not_empty_.wait(lock, [this] { return first_ != nullptr; });
        node *n = first_;
        first_ = n->next;
        return n;
    }

    std::mutex mutex_;
    std::condition_variable not_empty_;
    node *first_ = nullptr;
    node *last_ = nullptr;
    unsigned leavers_ = 0;
};

thread_local loop *loop::current;

} // namespace

#endif
