// A manual-reset event with operator co_await: one producer, several consumers. A consumer that waits before the event is set
// is suspended; one that waits later continues at once. The awaiter is a temporary in the consumer's frame, and also the
// node in the event's list of waiters, so nothing is allocated but the frames.
#include <bide/bide.hpp>
#include <iostream>
#include <optional>
#include <thread>

class async_manual_reset_event
{
    bide_event event_;

  public:
    explicit async_manual_reset_event(bool initially_set = false) noexcept
    {
        bide_event_init(&event_, initially_set);
    }

    bool is_set() noexcept
    {
        return bide_event_is_set(&event_);
    }
    void set() noexcept
    {
        bide_event_set(&event_);
    }
    void reset() noexcept
    {
        bide_event_reset(&event_);
    }
    auto operator co_await() noexcept
    {
        return bide::wait(bide_event_wait, &event_);
    }
};

static int value;
static async_manual_reset_event event;

// A single call to produce a value.
static void producer()
{
    std::cout << "the producer sets the event\n";
    value = 6 * 7;
    event.set();
}

// Any number of concurrent consumers.
static bide::task<> consumer(int number)
{
    std::cout << "consumer " << number << (event.is_set() ? " need not wait\n" : " waits\n");
    (co_await event).value();
    // What was written before the set is visible.
    std::cout << "consumer " << number << " has " << value << '\n';
}

int main()
{
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_context context = bide_default_context;
    context.scheduler = &loop.scheduler;

    enum { EARLY = 3 };
    std::optional<bide::task<>> tasks[EARLY + 1];
    bide_spawned spawned[EARLY + 1];
    auto start = [&](int number) {
        tasks[number].emplace(consumer(number));
        bide_spawn(&spawned[number], &context, tasks[number]->awaiter());
        bide_run_loop_run_ready(&loop);
    };
    for (int number = 0; number < EARLY; number++)
        start(number);
    std::thread(producer).join();
    bide_run_loop_run_ready(&loop); // the consumers resume here, in the order in which they came
    start(EARLY);
    bide_run_loop_destroy(&loop);
}
