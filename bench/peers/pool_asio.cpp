// The cost of Asio's handlers: nanoseconds each. hop: a handler posts itself again; spawn: one posts a thousand and counts.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<asio.hpp>)
#include <asio.hpp>
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
#endif

namespace
{

constexpr int rounds = 11;

struct hopper {
    asio::io_context *context;
    std::uint64_t left;

    void operator()()
    {
        if (left-- != 0)
            asio::post(*context, *this);
    }
};

void hop(asio::io_context &context, unsigned tasks, std::uint64_t operations)
{
    for (unsigned i = 0; i < tasks; i++)
        asio::post(context, hopper{&context, operations / tasks});
}

struct parent {
    asio::io_context *context;
    unsigned tasks;
    std::uint64_t left;
    std::atomic<unsigned> ended{0};
    std::vector<std::uint64_t> numbers;

    void spawn()
    {
        if (left-- == 0)
            return;
        ended.store(0);
        for (unsigned i = 0; i < tasks; i++) {
            asio::post(*context, [this, i] {
                numbers[i]++;
                if (ended.fetch_add(1) + 1 == tasks)
                    asio::post(*context, [this] { spawn(); });
            });
        }
    }
};

void measure(const char *of, unsigned threads, unsigned tasks, std::uint64_t operations)
{
    std::vector<double> each;
    for (int round = -1; round < rounds; round++) {
        asio::io_context context(static_cast<int>(threads));
        parent first{&context, tasks, operations / tasks, {}, std::vector<std::uint64_t>(tasks)};
        auto begun = std::chrono::steady_clock::now();
        if (of[0] == 'h')
            hop(context, tasks, operations);
        else
            asio::post(context, [&] { first.spawn(); });
        std::vector<std::thread> others;
        for (unsigned i = 1; i < threads; i++)
            others.emplace_back([&] { context.run(); });
        context.run();
        for (std::thread &thread : others)
            thread.join();
        std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begun;
        if (round >= 0)
            each.push_back(time.count() / static_cast<double>(operations));
    }
    std::sort(each.begin(), each.end());
    std::printf(
        "{\"bench\": \"pool\", \"subject\": \"asio\", \"value\": %.2f, \"unit\": \"ns/op\", "
        "\"params\": {\"of\": \"%s\", \"threads\": %u, \"tasks\": %u}}\n",
        each[rounds / 2], of, threads, tasks);
}

} // namespace

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
    if (threads == 1)
        measure("hop", threads, 1, 1000000);
    measure("hop", threads, 1000, 1000000);
    measure("spawn", threads, 1000, 500000);
}
