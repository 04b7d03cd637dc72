// A task that awaits synchronously completing tasks, a million times, on a small stack. If an await were a call, each round
// would leave two calls on the stack: one into the task, and one back into the loop. With an argument, the stack has
// that many KiB. It has at least what a thread needs.
#include <bide/bide.hpp>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iostream>
#include <pthread.h>

static bide::task<> completes_synchronously()
{
    co_return;
}

static bide::task<> loop_synchronously(int count)
{
    for (int i = 0; i < count; ++i)
        co_await completes_synchronously();
}

// As deep as the loop is long.
static bide::task<int> recurses_synchronously(int depth)
{
    if (depth == 0)
        co_return 0;
    co_return 1 + co_await recurses_synchronously(depth - 1);
}

static void *run(void *)
{
    enum { LENGTH = 1000000, DEPTH = 100000 };
    bide::sync_wait(loop_synchronously(LENGTH));
    std::cout << "looped " << LENGTH << " times\n";
    std::cout << "recursed " << bide::sync_wait(recurses_synchronously(DEPTH)) << " deep\n";
    return nullptr;
}

int main(int argc, char **argv)
{
    size_t size = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) * 1024 : 64 * 1024;
    size = std::max(size, static_cast<size_t>(PTHREAD_STACK_MIN));
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, size) != 0 ||
        pthread_create(&thread, &attributes, run, nullptr) != 0) {
        std::cerr << "no thread with a stack of " << size << " bytes\n";
        return 1;
    }
    pthread_join(thread, nullptr);
}
