// bide::scope of bide/bide.hpp: its tasks run beside their owner, end before its join does, are stopped, and are destroyed
// with it; bide::this_context.

#include "bide/bide.hpp"

#include <cstdio>

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            std::printf("# %s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            return 1;                                                              \
        }                                                                          \
    } while (0)

namespace
{

using namespace std::chrono_literals;

// Locals of tasks that have not been destroyed.
int locals;
struct local {
    local()
    {
        locals++;
    }
    local(const local &) = delete;
    ~local()
    {
        locals--;
    }
};

// A coroutine that C++ owns: it begins at once, and its owner destroys it.
struct owned {
    struct promise_type {
        owned get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

// Its promise names the context of its waits.
struct placed {
    struct promise_type : owned::promise_type {
        const bide_context *context;
        promise_type(const bide_context &in, const bide_context *&) : context(&in)
        {
        }
        const bide_context *wait_context() const
        {
            return context;
        }
        placed get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
    };
    std::coroutine_handle<promise_type> handle;
};

placed sees(const bide_context &, const bide_context *&seen)
{
    seen = &co_await bide::this_context();
}

struct fixture {
    bide_run_loop loop;
    bide_event never;
    bide_event go;
    fixture()
    {
        bide_run_loop_init(&loop);
        bide_event_init(&never, false);
        bide_event_init(&go, false);
    }
    ~fixture()
    {
        bide_run_loop_destroy(&loop);
    }
};

bide::task<> counts(bide_event &go, int &count)
{
    local here;
    (co_await bide::wait(bide_event_wait, &go)).value();
    count++;
}

bide::task<bide::result<>> waits(bide_event &event, int &error)
{
    local here;
    auto result = co_await bide::wait(bide_event_wait, &event);
    error = result.error();
    co_return result;
}

bide::task<bide::result<>> fails(int error)
{
    co_return bide::result<>::failed(error);
}

/* ---- Cases ---- */

int tasks_end_before_the_join()
{
    fixture f;
    int count = 0, before = -1;
    auto owner = [&]() -> bide::task<int> {
        bide::scope scope(co_await bide::this_context());
        for (int i = 0; i < 3; i++)
            scope.spawn(counts(f.go, count));
        before = count;
        bide_event_set(&f.go);
        auto joined = co_await scope.join();
        co_return joined.error();
    };
    CHECK(bide::run(&f.loop, owner()) == 0);
    CHECK(before == 0 && count == 3 && locals == 0);
    return 0;
}

int the_memory_of_a_task_is_free_before_the_join()
{
    fixture f;
    int count = 0, left = -1;
    auto owner = [&]() -> bide::task<> {
        bide::scope scope(co_await bide::this_context());
        bide_event_set(&f.go);
        scope.spawn(counts(f.go, count));
        while (count == 0)
            (co_await bide::sleep_for(0ns)).value();
        left = locals;
        (co_await scope.join()).value();
    };
    bide::run(&f.loop, owner());
    CHECK(left == 0);
    return 0;
}

int a_task_spawns_in_its_scope()
{
    fixture f;
    int count = 0;
    auto spawns = [&](bide::scope &scope) -> bide::task<> {
        scope.spawn(counts(f.go, count));
        co_return;
    };
    auto owner = [&]() -> bide::task<> {
        bide::scope scope(co_await bide::this_context());
        bide_event_set(&f.go);
        scope.spawn(spawns(scope));
        (co_await scope.join()).value();
    };
    bide::run(&f.loop, owner());
    CHECK(count == 1 && locals == 0);
    return 0;
}

int the_first_error_stops_the_others()
{
    fixture f;
    int other = 0;
    auto owner = [&]() -> bide::task<int> {
        bide::scope scope(co_await bide::this_context());
        scope.spawn(waits(f.never, other));
        scope.spawn(fails(-EPROTO));
        co_return (co_await scope.join()).error();
    };
    CHECK(bide::run(&f.loop, owner()) == -EPROTO);
    CHECK(other == -ECANCELED && locals == 0);
    return 0;
}

int stop_reaches_all_tasks()
{
    fixture f;
    int first = 0, second = 0;
    auto owner = [&]() -> bide::task<int> {
        bide::scope scope(co_await bide::this_context());
        scope.spawn(waits(f.never, first));
        scope.spawn(waits(f.never, second));
        scope.stop();
        co_return (co_await scope.join()).error();
    };
    CHECK(bide::run(&f.loop, owner()) == -ECANCELED);
    CHECK(first == -ECANCELED && second == -ECANCELED && locals == 0);
    return 0;
}

int a_join_with_a_timeout_stops_the_tasks()
{
    fixture f;
    int error = 0;
    auto owner = [&](std::chrono::nanoseconds duration) -> bide::task<int> {
        bide::scope scope(co_await bide::this_context());
        scope.spawn(waits(f.never, error));
        co_return (co_await scope.join_for(duration)).error();
    };
    CHECK(bide::run(&f.loop, owner(1ms)) == -ETIMEDOUT);
    CHECK(error == -ETIMEDOUT && locals == 0);
    // (one that is not needed)
    auto ends = [&]() -> bide::task<int> {
        bide::scope scope(co_await bide::this_context());
        bide_event_set(&f.go);
        scope.spawn(waits(f.go, error));
        co_return (co_await scope.join_for(1h)).error();
    };
    CHECK(bide::run(&f.loop, ends()) == 0 && error == 0);
    return 0;
}

int a_request_to_stop_the_owner_reaches_the_tasks()
{
    fixture f;
    int error = 0;
    auto owner = [&]() -> bide::task<int> {
        bide::scope scope(co_await bide::this_context());
        scope.spawn(waits(f.never, error));
        co_return (co_await scope.join()).error();
    };
    std::stop_source source;
    auto main = [&]() -> bide::task<int> {
        source.request_stop();
        co_return (co_await bide::with_stop(source.get_token(), owner())).value();
    };
    CHECK(bide::run(&f.loop, main()) == -ECANCELED);
    CHECK(error == -ECANCELED && locals == 0);
    return 0;
}

int tasks_are_destroyed_with_the_owner()
{
    fixture f;
    int error = 1;
    auto owner = [&](bool joins) -> owned {
        bide::scope scope(co_await bide::this_context());
        scope.spawn(waits(f.never, error));
        scope.spawn(waits(f.never, error));
        if (joins)
            (void)co_await scope.join();
        else
            (void)co_await bide::wait(bide_event_wait, &f.go);
    };
    for (bool joins : {false, true}) {
        owned coroutine = owner(joins);
        CHECK(locals == 2);
        coroutine.handle.destroy();
        CHECK(locals == 0 && error == 1);
    }
    bide_event_set(&f.never); // nobody is left to wake
    CHECK(error == 1);
    return 0;
}

int an_owner_that_ends_without_a_join_destroys_the_tasks()
{
    fixture f;
    int error = 1;
    auto owner = [&]() -> bide::task<> {
        bide::scope scope(co_await bide::this_context());
        scope.spawn(waits(f.never, error));
        (co_await bide::sleep_for(0ns)).value();
    };
    bide::run(&f.loop, owner());
    CHECK(locals == 0 && error == 1);
    return 0;
}

int the_context_is_that_of_the_waits()
{
    fixture f;
    const bide_context *seen = nullptr;
    auto here = [&]() -> bide::task<bide_scheduler *> {
        co_return (co_await bide::this_context()).scheduler;
    };
    CHECK(bide::run(&f.loop, here()) == f.loop.context.scheduler);
    auto other = [&]() -> owned { seen = &co_await bide::this_context(); };
    owned coroutine = other();
    CHECK(seen == &bide_default_context);
    coroutine.handle.destroy();
    placed elsewhere = sees(f.loop.context, seen);
    CHECK(seen == &f.loop.context);
    elsewhere.handle.destroy();
    return 0;
}

} // namespace

int main()
{
    int failed = 0, number = 0;
#define CASE(function)                                                           \
    do {                                                                         \
        int wrong = function();                                                  \
        std::printf("%sok %d - %s\n", wrong ? "not " : "", ++number, #function); \
        failed += wrong;                                                         \
    } while (0)
    CASE(tasks_end_before_the_join);
    CASE(the_memory_of_a_task_is_free_before_the_join);
    CASE(a_task_spawns_in_its_scope);
    CASE(the_first_error_stops_the_others);
    CASE(stop_reaches_all_tasks);
    CASE(a_join_with_a_timeout_stops_the_tasks);
    CASE(a_request_to_stop_the_owner_reaches_the_tasks);
    CASE(tasks_are_destroyed_with_the_owner);
    CASE(an_owner_that_ends_without_a_join_destroys_the_tasks);
    CASE(the_context_is_that_of_the_waits);
    std::printf("1..%d\n", number);
    return failed != 0;
}
