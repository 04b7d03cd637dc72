// A small C++20 task: it starts when it is awaited, has one owner, stores its
// result in the promise, and transfers control both ways symmetrically. And a
// manual-reset event for tasks.
//
// GCC needs -O2: below it symmetric transfer is an ordinary call, and the stack
// grows with every await.
//
// One program contains the code of two compilers, so all of it is in an unnamed
// namespace: the linker must not replace one compiler's code by the other's.
#ifndef BENCH_PEERS_COROUTINES_HPP
#define BENCH_PEERS_COROUTINES_HPP

#include <atomic>
#include <coroutine>
#include <exception>
#include <utility>

namespace
{

template <class T>
struct task_result {
    T value;
    void return_value(T v) noexcept
    {
        value = std::move(v);
    }
    T take() noexcept
    {
        return std::move(value);
    }
};

template <>
struct task_result<void> {
    void return_void() const noexcept
    {
    }
    void take() const noexcept
    {
    }
};

template <class T>
class task
{
  public:
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;

    // At the end: continues the awaiting coroutine, or returns to the caller of start() or resume().
    struct final_awaiter {
        bool await_ready() const noexcept
        {
            return false;
        }
        std::coroutine_handle<> await_suspend(handle h) const noexcept
        {
            return h.promise().continuation;
        }
        void await_resume() const noexcept
        {
        }
    };

    struct promise_type : task_result<T> {
        std::coroutine_handle<> continuation = std::noop_coroutine();

        task get_return_object() noexcept
        {
            return task(handle::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        final_awaiter final_suspend() const noexcept
        {
            return {};
        }
        [[noreturn]] void unhandled_exception() const noexcept
        {
            std::terminate();
        }
    };

    // Starts the child, and returns its result.
    struct awaiter {
        handle h;
        bool await_ready() const noexcept
        {
            return false;
        }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) const noexcept
        {
            h.promise().continuation = parent;
            return h;
        }
        T await_resume() const noexcept
        {
            return h.promise().take();
        }
    };

    task(task &&other) noexcept : h_(std::exchange(other.h_, {}))
    {
    }
    task(const task &) = delete;
    task &operator=(task other) noexcept
    {
        std::swap(h_, other.h_);
        return *this;
    }
    ~task()
    {
        if (h_)
            h_.destroy();
    }

    awaiter operator co_await() &&noexcept
    {
        return awaiter{h_};
    }

    // For a detached task: runs it until it waits or completes.
    void start()
    {
        h_.resume();
    }
    // Once it has completed.
    T result()
    {
        return h_.promise().take();
    }

  private:
    explicit task(handle h) noexcept : h_(h)
    {
    }
    handle h_;
};

// The event of Lewis Baker's article on operator co_await. Not set: the newest
// waiter, linked to those before it. Set: the event's own address.
class event
{
  public:
    event() = default;
    event(const event &) = delete;
    event &operator=(const event &) = delete;

    void set() noexcept
    {
        void *old = state_.exchange(this, std::memory_order_acq_rel);
        if (old == this)
            return;
        for (awaiter *a = static_cast<awaiter *>(old); a != nullptr;) {
            awaiter *next = a->next;
            a->waiting.resume();
            a = next;
        }
    }

    struct awaiter {
        event &of;
        std::coroutine_handle<> waiting;
        awaiter *next;

        bool await_ready() const noexcept
        {
            return of.state_.load(std::memory_order_acquire) == &of;
        }
        bool await_suspend(std::coroutine_handle<> h) noexcept
        {
            waiting = h;
            void *old = of.state_.load(std::memory_order_acquire);
            do {
                if (old == &of)
                    return false;
                next = static_cast<awaiter *>(old);
            } while (!of.state_.compare_exchange_weak(old, this, std::memory_order_release,
                                                      std::memory_order_acquire));
            return true;
        }
        void await_resume() const noexcept
        {
        }
    };

    awaiter operator co_await() noexcept
    {
        return awaiter{*this, {}, nullptr};
    }

  private:
    std::atomic<void *> state_ = nullptr;
};

} // namespace

#endif
