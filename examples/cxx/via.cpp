// On which thread does a coroutine continue after an await? In bide this never depends on a race: on its own scheduler,
// wherever the awaited task has ended. `via` runs a task on a thread pool; the awaiting coroutine continues where it was.
#include <bide/bide.hpp>
#include <iostream>
#include <string>
#include <thread>

static std::thread::id main_thread;

static std::string here()
{
    return std::this_thread::get_id() == main_thread ? "on the main thread" : "in the pool";
}

template <class T>
static auto via(bide_scheduler *scheduler, bide::task<T> task)
{
    return bide::schedule_on(scheduler, std::move(task));
}

static bide::task<std::string> foo()
{
    co_return "foo ran " + here();
}

static bide::task<std::string> bar(bide_scheduler *pool)
{
    std::string story = "bar began " + here() + '\n';
    story += (co_await via(pool, foo())).value() + '\n';
    story += "bar continued " + here() + '\n';
    co_return story;
}

int main()
{
    enum { ROUNDS = 1000 };
    bide_thread_pool *pool;
    bide_run_loop loop;
    main_thread = std::this_thread::get_id();
    if (bide_thread_pool_create(&pool, 2) != 0)
        return 1;
    bide_run_loop_init(&loop);
    std::string first = bide::run(&loop, bar(bide_thread_pool_scheduler(pool)));
    std::cout << first;
    int same = 1;
    for (int i = 1; i < ROUNDS; i++)
        same += bide::run(&loop, bar(bide_thread_pool_scheduler(pool))) == first;
    std::cout << same << " times the same\n";
    bide_run_loop_destroy(&loop);
    bide_thread_pool_destroy(pool);
}
