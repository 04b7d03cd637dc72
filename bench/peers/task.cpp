// A small C++20 task: started when awaited, owned by one object, its result
// kept in the promise, control passed both ways by symmetric transfer.
//
// GCC needs -O2: below it symmetric transfer is an ordinary call, and the stack
// grows with every await.

#include "task.h"

#include <coroutine>
#include <exception>
#include <utility>

namespace
{

template <class T>
class task
{
  public:
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;

    // At the end: continue whoever awaits, or return to the caller of run().
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

    struct promise_type {
        std::coroutine_handle<> continuation = std::noop_coroutine();
        T value;

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
        void return_value(T v) noexcept
        {
            value = std::move(v);
        }
        [[noreturn]] void unhandled_exception() const noexcept
        {
            std::terminate();
        }
    };

    // Starts the child, and hands on its result.
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
            return std::move(h.promise().value);
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

    // Runs a task that nobody awaits and that completes without waiting.
    T run() &&
    {
        h_.resume();
        return std::move(h_.promise().value);
    }

  private:
    explicit task(handle h) noexcept : h_(h)
    {
    }
    handle h_;
};

// Not inlined, so every call makes a frame.
__attribute__((noinline)) task<int> child(int v)
{
    co_return v;
}

task<uint64_t> parent(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += static_cast<uint64_t>(co_await child(static_cast<int>(i & 0xff)));
    co_return sum;
}

} // namespace

extern "C" uint64_t peer_cxx_task_run(uint64_t n)
{
    return parent(n).run();
}
