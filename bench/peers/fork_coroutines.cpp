// Fork and join of C++20 coroutines, like libfork's: thieves steal the parent's continuation. Frames come from a
// separate stack, which is left to the parent if its child finishes on another thread. The deque has a full fence in
// each pop. Only the parts that the benchmark needs: one segment per stack, no exceptions, and no sleeping.
#include "fork.h"

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace
{

constexpr std::size_t stack_bytes = std::size_t{1} << 16, slots = 1024;

struct stack {
    unsigned char *top;
    alignas(16) unsigned char memory[stack_bytes];

    stack() : top(memory)
    {
    }
    bool empty() const
    {
        return top == memory;
    }
};

struct promise;
using handle = std::coroutine_handle<promise>;

struct deque {
    alignas(128) std::atomic<std::size_t> bottom{0};
    std::atomic<promise *> items[slots];
    alignas(128) std::atomic<std::size_t> top{0};

    void push(promise *item)
    {
        std::size_t b = bottom.load(std::memory_order_relaxed);
        items[b % slots].store(item, std::memory_order_relaxed);
        bottom.store(b + 1, std::memory_order_release);
    }

    bool pop()
    {
        std::size_t b = bottom.load(std::memory_order_relaxed) - 1;
        bottom.store(b, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        std::size_t t = top.load(std::memory_order_relaxed);
        if (static_cast<std::ptrdiff_t>(b - t) > 0)
            return true;
        bool won = b == t && top.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst);
        bottom.store(b + 1, std::memory_order_relaxed);
        return won;
    }

    promise *steal()
    {
        std::size_t t = top.load(std::memory_order_acquire);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        std::size_t b = bottom.load(std::memory_order_acquire);
        if (static_cast<std::ptrdiff_t>(b - t) <= 0)
            return nullptr;
        promise *item = items[t % slots].load(std::memory_order_relaxed);
        return top.compare_exchange_strong(t, t + 1, std::memory_order_seq_cst) ? item : nullptr;
    }
};

struct worker {
    deque parents;
    stack *frames = new stack;
    stack *kept = nullptr;

    void take(stack *other)
    {
        if (frames->empty() && kept == nullptr)
            kept = frames;
        else if (frames->empty())
            delete frames;
        frames = other;
    }

    stack *fresh()
    {
        stack *made = kept != nullptr ? kept : new stack;
        kept = nullptr;
        return made;
    }

    ~worker()
    {
        delete frames;
        delete kept;
    }
};

thread_local worker *here;
std::atomic<bool> done;
uint64_t first_result;

struct promise {
    uint64_t *result = nullptr;
    promise *parent = nullptr; // NULL: the first
    bool is_forked = false;
    stack *home; // that contains it
    uint32_t taken = 0;
    std::atomic<uint32_t> pending{0};

    promise() : home(here->frames)
    {
    }

    static void *operator new(std::size_t size)
    {
        stack *frames = here->frames;
        void *memory = frames->top;
        frames->top += (size + 15) / 16 * 16;
        return memory;
    }
    static void operator delete(void *memory)
    {
        here->frames->top = static_cast<unsigned char *>(memory);
    }

    handle get_return_object()
    {
        return handle::from_promise(*this);
    }
    std::suspend_always initial_suspend() noexcept
    {
        return {};
    }
    void return_value(uint64_t value)
    {
        *result = value;
    }
    void unhandled_exception()
    {
        std::abort();
    }

    struct at_end {
        bool await_ready() noexcept
        {
            return false;
        }
        std::coroutine_handle<> await_suspend(handle ended) noexcept
        {
            promise *parent = ended.promise().parent;
            bool is_forked = ended.promise().is_forked;
            ended.destroy();
            if (parent == nullptr) {
                done.store(true, std::memory_order_release);
                return std::noop_coroutine();
            }
            if (!is_forked || here->parents.pop())
                return handle::from_promise(*parent);
            bool lies_here = parent->home == here->frames;
            if (lies_here)
                here->frames = here->fresh(); // the other is left to the parent
            if (parent->pending.fetch_sub(1, std::memory_order_acq_rel) != 1)
                return std::noop_coroutine();
            here->take(parent->home);
            return handle::from_promise(*parent);
        }
        void await_resume() noexcept
        {
        }
    };
    at_end final_suspend() noexcept
    {
        return {};
    }
};

struct task {
    using promise_type = promise;
    handle coroutine;
    task(handle made) : coroutine(made)
    {
    }
};

struct begin {
    handle child;
    bool is_forked;

    bool await_ready()
    {
        return false;
    }
    handle await_suspend(handle parent)
    {
        handle next = child;
        next.promise().parent = &parent.promise();
        next.promise().is_forked = is_forked;
        if (is_forked)
            here->parents.push(&parent.promise());
        return next; // the parent may be gone
    }
    void await_resume()
    {
    }
};

begin fork(uint64_t &result, task child)
{
    child.coroutine.promise().result = &result;
    return {child.coroutine, true};
}

begin call(uint64_t &result, task child)
{
    child.coroutine.promise().result = &result;
    return {child.coroutine, false};
}

struct join {
    promise *self = nullptr;

    bool await_ready()
    {
        return false;
    }
    bool await_suspend(handle parent)
    {
        promise &self = parent.promise();
        uint32_t taken = std::exchange(self.taken, 0);
        if (taken == 0)
            return false;
        stack *home = self.home;
        if (self.pending.fetch_add(taken, std::memory_order_acq_rel) + taken != 0)
            return true;
        here->take(home);
        return false;
    }
    void await_resume()
    {
    }
};

task fib(uint64_t n)
{
    if (n < 2)
        co_return n;
    uint64_t one, other;
    co_await fork(one, fib(n - 1));
    co_await call(other, fib(n - 2));
    co_await join{};
    co_return one + other;
}

void work(std::vector<std::unique_ptr<worker>> &workers, std::size_t index)
{
    here = workers[index].get();
    if (index == 0) {
        handle first = fib(FORK_N).coroutine;
        first.promise().result = &first_result;
        first.resume();
    }
    while (!done.load(std::memory_order_acquire)) {
        for (auto &victim : workers) {
            promise *taken = victim.get() != here ? victim->parents.steal() : nullptr;
            if (taken == nullptr)
                continue;
            taken->taken++;
            handle::from_promise(*taken).resume();
        }
    }
    here = nullptr;
}

} // namespace

uint64_t peer_fork_coroutines(unsigned threads)
{
    std::vector<std::unique_ptr<worker>> workers;
    std::vector<std::thread> others;
    done.store(false);
    for (unsigned i = 0; i < threads; i++)
        workers.push_back(std::make_unique<worker>());
    for (unsigned i = 1; i < threads; i++)
        others.emplace_back([&workers, i] { work(workers, i); });
    work(workers, 0);
    for (auto &other : others)
        other.join();
    return first_result;
}
