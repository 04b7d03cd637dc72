// Tasks that wait for one event, owned by a vector.

#include "memory.h"

#include "coroutines.hpp"

#include <optional>
#include <vector>

namespace
{

std::optional<event> ready;
std::vector<task<void>> tasks;
size_t ended;
size_t frame_bytes;

__attribute__((noinline)) task<void> wait_for(event &e)
{
    co_await e;
    ended++;
}

void make(size_t n)
{
    ready.emplace();
    ended = 0;
    tasks.reserve(n);
    size_t before = peer_new_bytes;
    for (size_t i = 0; i < n; i++) {
        tasks.push_back(wait_for(*ready));
        tasks.back().start();
    }
    frame_bytes = (peer_new_bytes - before) / n;
}

size_t resume()
{
    ready->set();
    return ended;
}

void destroy()
{
    tasks = std::vector<task<void>>();
}

size_t frame()
{
    return frame_bytes;
}

} // namespace

const struct waiting_tasks PEER(peer_memory) = {make, resume, destroy, frame, sizeof(task<void>)};
