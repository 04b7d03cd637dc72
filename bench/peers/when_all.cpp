// A small when_all for C++20 tasks, like cppcoro's: a counter, and for each
// child a coroutine that awaits it and then counts down; or children that
// count down themselves. Children may complete on any thread, so the counter
// is atomic.

#include "when_all.h"

#include "coroutines.hpp"

#include <vector>

namespace
{

// The number of incomplete children, plus one until the parent waits.
class counter
{
  public:
    explicit counter(size_t children) noexcept : left_(children + 1)
    {
    }

    // False: all have completed.
    bool wait(std::coroutine_handle<> parent) noexcept
    {
        parent_ = parent;
        return left_.fetch_sub(1, std::memory_order_acq_rel) > 1;
    }
    // The coroutine to continue when a child has completed.
    std::coroutine_handle<> completed() noexcept
    {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            return parent_;
        return std::noop_coroutine();
    }

  private:
    std::atomic<size_t> left_;
    std::coroutine_handle<> parent_;
};

template <class T>
class counted_task
{
  public:
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;

    struct final_awaiter {
        bool await_ready() const noexcept
        {
            return false;
        }
        std::coroutine_handle<> await_suspend(handle h) const noexcept
        {
            return h.promise().count->completed();
        }
        void await_resume() const noexcept
        {
        }
    };

    struct promise_type : task_result<T> {
        counter *count;

        counted_task get_return_object() noexcept
        {
            return counted_task(handle::from_promise(*this));
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

    counted_task(counted_task &&other) noexcept : h_(std::exchange(other.h_, {}))
    {
    }
    counted_task(const counted_task &) = delete;
    counted_task &operator=(const counted_task &) = delete;
    ~counted_task()
    {
        if (h_)
            h_.destroy();
    }

    void start(counter &count)
    {
        h_.promise().count = &count;
        h_.resume();
    }
    T result()
    {
        return h_.promise().take();
    }

  private:
    explicit counted_task(handle h) noexcept : h_(h)
    {
    }
    handle h_;
};

template <class T>
counted_task<T> counted(task<T> child)
{
    co_return co_await std::move(child);
}

// Starts the children in turn when awaited; returns the completed children.
template <class T>
class when_all
{
  public:
    explicit when_all(std::vector<task<T>> children) : count_(children.size())
    {
        tasks_.reserve(children.size());
        for (task<T> &child : children)
            tasks_.push_back(counted(std::move(child)));
    }
    explicit when_all(std::vector<counted_task<T>> children) noexcept
        : count_(children.size()), tasks_(std::move(children))
    {
    }
    when_all(const when_all &) = delete;
    when_all &operator=(const when_all &) = delete;

    bool await_ready() const noexcept
    {
        return tasks_.empty();
    }
    bool await_suspend(std::coroutine_handle<> parent) noexcept
    {
        for (counted_task<T> &t : tasks_)
            t.start(count_);
        return count_.wait(parent);
    }
    std::vector<counted_task<T>> await_resume() noexcept
    {
        return std::move(tasks_);
    }

  private:
    counter count_;
    std::vector<counted_task<T>> tasks_;
};

template <class Task>
__attribute__((noinline)) Task child_ready(event &, uint64_t i)
{
    co_return i & 0xff;
}

template <class Task>
__attribute__((noinline)) Task child_suspending(event &e, uint64_t i)
{
    co_await e;
    co_return i & 0xff;
}

template <class Task>
task<uint64_t> parent(Task (*child)(event &, uint64_t), event &e, size_t n)
{
    std::vector<Task> children;
    children.reserve(n);
    for (size_t i = 0; i < n; i++)
        children.push_back(child(e, i));
    when_all all(std::move(children));
    std::vector<counted_task<uint64_t>> completed = co_await all;
    uint64_t sum = 0;
    for (counted_task<uint64_t> &t : completed)
        sum += t.result();
    co_return sum;
}

template <class Task, Task (*child)(event &, uint64_t)>
uint64_t run(size_t children, size_t times)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < times; i++) {
        event e;
        task<uint64_t> t = parent(child, e, children);
        t.start();
        e.set();
        sum += t.result();
    }
    return sum;
}

using plain = task<uint64_t>;
using counting = counted_task<uint64_t>;

} // namespace

const struct peer_when_all PEER(peer_when_all)[PEER_WHEN_ALLS] = {
    {run<plain, child_ready<plain>>},
    {run<plain, child_suspending<plain>>},
    {run<counting, child_ready<counting>>},
    {run<counting, child_suspending<counting>>},
};
