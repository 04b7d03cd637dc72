// A small C++20 generator: the value is stored in the promise, and asking for
// the next value resumes the generator.

#include "generator.h"

#include <coroutine>
#include <exception>
#include <utility>

namespace
{

class generator
{
  public:
    struct promise_type {
        uint64_t value;

        generator get_return_object() noexcept
        {
            return generator(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() const noexcept
        {
            return {};
        }
        std::suspend_always yield_value(uint64_t v) noexcept
        {
            value = v;
            return {};
        }
        void return_void() const noexcept
        {
        }
        [[noreturn]] void unhandled_exception() const noexcept
        {
            std::terminate();
        }
    };

    generator(generator &&other) noexcept : h_(std::exchange(other.h_, {}))
    {
    }
    generator(const generator &) = delete;
    generator &operator=(const generator &) = delete;
    ~generator()
    {
        if (h_)
            h_.destroy();
    }

    bool next()
    {
        h_.resume();
        return !h_.done();
    }
    uint64_t value() const
    {
        return h_.promise().value;
    }

  private:
    explicit generator(std::coroutine_handle<promise_type> h) noexcept : h_(h)
    {
    }
    std::coroutine_handle<promise_type> h_;
};

// Not inlined, so that there is a frame whose content is opaque.
__attribute__((noinline)) generator count(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        co_yield i;
}

uint64_t sum(uint64_t n)
{
    uint64_t sum = 0;
    generator numbers = count(n);
    while (numbers.next())
        sum += numbers.value();
    return sum;
}

} // namespace

const struct peer_generator PEER(peer_generator) = {sum};
