// bide/cppcoro.hpp, on one thread: what cppcoro documents of each class, and a test of it.
//
//     task              starts when awaited; an ended one gives its result again; lvalue and rvalue results;
//                       exceptions; when_ready throws nothing; never awaited, never run; stack      tasks
//     shared_task       starts once; several waiters; the result is an lvalue; copies are equal     shared_tasks, stopped
//     sync_wait         returns the result, or throws                                               tasks
//     when_all(_ready)  starts in order, side by side; tuple, vector, void; std::ref; exceptions    all, references
//     events            set before, after; reset; auto reset lets one pass                          events
//     async_mutex       try_lock, lock_async, scoped_lock_async, in order                           mutexes
//     async_latch       resumes at zero, not before; ready for ever; counts of any size             latches
//     generator         lazy; exceptions leave begin and ++; recursive; destroyed early             generators
//     async_generator   awaits between values; exceptions; destroyed early                          async_generators
//     fmap              awaitables, void, generators, by |                                          maps
//     cancellation      tokens, callbacks, order, removal                                           cancellations
//     async_scope       runs at once; join waits for all, and may be awaited again                  scopes
//     on_scope_exit     failure, success; cancel, call_now                                          exits
//     bide::task        awaits these, and is cancelled; they await it                               with_bide, stopped
//     (of bide's own)   misuse at destruction; what allocates; sizes and alignments; what g++ delays;
//                       two translation units                          misuses, costs, delays, units
#include "bide/cppcoro.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            std::printf("# line %d: %s is false\n", __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

// Counts what is allocated.
static std::atomic<std::size_t> allocations;

[[gnu::noinline]] void *operator new(std::size_t size)
{
    allocations++;
    void *memory = std::malloc(size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}
[[gnu::noinline]] void operator delete(void *memory) noexcept
{
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept
{
    std::free(memory);
}

#ifdef HAS_UNIT
/* cppcoro_unit.cpp */
bide::cppcoro::task<int> of_the_other_unit(bide::cppcoro::shared_task<int> shared,
                                           bide::cppcoro::async_manual_reset_event &event);
#endif

namespace
{

int failures;

struct failure {
};

struct counted {
    static inline int alive = 0;
    counted()
    {
        alive++;
    }
    counted(const counted &) = delete;
    ~counted()
    {
        alive--;
    }
};

template <class F>
bool throws(F &&f)
{
    try {
        (void)f();
    } catch (const failure &) {
        return true;
    }
    return false;
}

/* ---- Tasks ---- */

cppcoro::task<std::string> text(int *runs)
{
    ++*runs;
    co_return "text";
}

cppcoro::task<> failing()
{
    throw failure();
    co_return;
}

cppcoro::task<int &> refers(int &to)
{
    co_return to;
}

cppcoro::task<long> sum(int count)
{
    auto one = []() -> cppcoro::task<int> { co_return 1; };
    long total = 0;
    for (int i = 0; i < count; i++)
        total += co_await one();
    co_return total;
}

void tasks()
{
    int runs = 0;
    {
        auto never = text(&runs);
        CHECK(!never.is_ready());
    }
    CHECK(runs == 0);

    auto one = text(&runs);
    CHECK(cppcoro::sync_wait(one) == "text" && runs == 1 && one.is_ready());
    std::string &again = cppcoro::sync_wait(one);
    again += " again";
    CHECK(runs == 1 && cppcoro::sync_wait(std::move(one)) == "text again");
    CHECK(cppcoro::sync_wait(text(&runs)) == "text" && runs == 2);

    int value = 0;
    CHECK(&cppcoro::sync_wait(refers(value)) == &value);

    CHECK(throws([] { cppcoro::sync_wait(failing()); }));
    auto failed = failing();
    cppcoro::sync_wait(failed.when_ready());
    CHECK(failed.is_ready() && throws([&] { cppcoro::sync_wait(failed); }));

    bool is_broken = false;
    try {
        cppcoro::sync_wait(cppcoro::task<int>());
    } catch (const cppcoro::broken_promise &) {
        is_broken = true;
    }
    CHECK(is_broken && cppcoro::task<int>().is_ready());

    auto a = text(&runs);
    cppcoro::task<std::string> b;
    swap(a, b);
    CHECK(a.is_ready() && !b.is_ready());
    CHECK(cppcoro::sync_wait(cppcoro::make_task(std::move(b))) == "text");

    /* the stack of a thread would not do for this */
    CHECK(cppcoro::sync_wait(sum(200000)) == 200000);

    static_assert(cppcoro::is_awaitable_v<cppcoro::task<>> && !cppcoro::is_awaitable_v<int>);
    static_assert(
        std::is_same_v<cppcoro::awaitable_traits<cppcoro::task<int> &>::await_result_t, int &>);
    static_assert(
        std::is_same_v<cppcoro::awaitable_traits<cppcoro::task<int>>::await_result_t, int &&>);
}

/* ---- Shared tasks ---- */

cppcoro::shared_task<int> shared(cppcoro::async_manual_reset_event &event, int *runs)
{
    counted local;
    ++*runs;
    co_await event;
    co_return 7;
}

cppcoro::task<> takes(cppcoro::shared_task<int> task, std::vector<int *> &to)
{
    to.push_back(&co_await task);
}

cppcoro::task<> sets(cppcoro::async_manual_reset_event &event)
{
    event.set();
    co_return;
}

void shared_tasks()
{
    cppcoro::async_manual_reset_event event;
    std::vector<int *> got;
    int runs = 0;
    auto task = shared(event, &runs);
    auto copy = task;
    CHECK(copy == task && task != shared(event, &runs) && runs == 0);
    cppcoro::sync_wait(cppcoro::when_all(takes(task, got), takes(copy, got), sets(event)));
    CHECK(runs == 1 && got.size() == 2 && got[0] == got[1] && *got[0] == 7 && task.is_ready());
    CHECK(cppcoro::sync_wait(task) == 7);
    cppcoro::sync_wait(copy.when_ready());

    auto fails = cppcoro::make_shared_task(failing());
    CHECK(throws([&] { cppcoro::sync_wait(fails); }) && throws([&] { cppcoro::sync_wait(fails); }));
    cppcoro::sync_wait(fails.when_ready());
    CHECK(counted::alive == 0);
}

/* ---- All ---- */

cppcoro::task<int> numbered(int number, cppcoro::async_manual_reset_event &event,
                            std::string *order)
{
    *order += static_cast<char>('a' + number);
    co_await event;
    *order += static_cast<char>('A' + number);
    co_return number;
}

cppcoro::task<> all_of_these()
{
    cppcoro::async_manual_reset_event event;
    std::string order;
    auto [a, b, none] = co_await cppcoro::when_all(numbered(0, event, &order),
                                                   numbered(1, event, &order), sets(event));
    (void)none;
    CHECK(a == 0 && b == 1 && order == "abAB");

    std::vector<cppcoro::task<int>> many;
    for (int i = 0; i < 10; i++)
        many.push_back(numbered(i, event, &order));
    std::vector<int> results = co_await cppcoro::when_all(std::move(many));
    CHECK(results.size() == 10 && results[9] == 9);

    std::vector<cppcoro::task<>> nothing;
    nothing.push_back(sets(event));
    co_await cppcoro::when_all(std::move(nothing));
    co_await cppcoro::when_all(std::vector<cppcoro::task<>>());
    int target = 0;
    std::vector<cppcoro::task<int &>> references;
    references.push_back(refers(target));
    CHECK(&(co_await cppcoro::when_all(std::move(references)))[0].get() == &target);

    bool has_failed = false;
    try {
        co_await cppcoro::when_all(failing(), numbered(2, event, &order));
    } catch (const failure &) {
        has_failed = order.back() == 'C'; /* the other has run to its end */
    }
    CHECK(has_failed);

    auto [bad, good] = co_await cppcoro::when_all_ready(failing(), numbered(3, event, &order));
    CHECK(good.result() == 3 && throws([&failed = bad] {
              failed.result();
              return 0;
          }));
}

void all()
{
    cppcoro::sync_wait(all_of_these());
}

void references()
{
    int runs = 0;
    cppcoro::async_manual_reset_event event(true);
    auto one = text(&runs), two = text(&runs);
    auto [none, first] = cppcoro::sync_wait(cppcoro::when_all(std::ref(event), std::ref(one)));
    (void)none;
    static_assert(std::is_same_v<decltype(first), std::string>); /* a copy */
    CHECK(runs == 1 && first == "text" && cppcoro::sync_wait(one) == "text");
    auto [ready] = cppcoro::sync_wait(cppcoro::when_all_ready(std::ref(two)));
    CHECK(&ready.result() == &cppcoro::sync_wait(two) && runs == 2);
    auto [kept] = cppcoro::sync_wait(cppcoro::when_all(shared(event, &runs)));
    static_assert(std::is_same_v<decltype(kept), int>); /* the shared task is gone */
    CHECK(kept == 7);

    auto again = cppcoro::when_all_ready(text(&runs));
    auto &[same] = cppcoro::sync_wait(again); /* awaited as an lvalue, it keeps the results */
    CHECK(&std::get<0>(cppcoro::sync_wait(again)) == &same && same.result() == "text");
    auto values = cppcoro::when_all(text(&runs));
    CHECK(std::get<0>(cppcoro::sync_wait(values)) == "text");
    CHECK(std::get<0>(cppcoro::sync_wait(values)) == "text" && runs == 5);
    std::vector<std::reference_wrapper<cppcoro::task<std::string>>> many{one, two};
    std::vector<std::reference_wrapper<std::string>> texts =
        cppcoro::sync_wait(cppcoro::when_all(std::move(many)));
    CHECK(texts.size() == 2 && &texts[1].get() == &cppcoro::sync_wait(two));
    CHECK(cppcoro::sync_wait(cppcoro::when_all()) == std::tuple<>());
}

/* ---- Events, mutexes, latches ---- */

// Begins at once, and frees itself.
struct eager {
    struct promise_type {
        eager get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
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
};

template <class Event>
eager waits(Event &event, int *passed, int times)
{
    for (int i = 0; i < times; i++) {
        co_await event;
        ++*passed;
    }
}

void events()
{
    int passed = 0;
    cppcoro::async_manual_reset_event manual;
    waits(manual, &passed, 1);
    waits(manual, &passed, 2);
    CHECK(passed == 0 && !manual.is_set());
    manual.set(); /* they resume within it */
    CHECK(passed == 3 && manual.is_set());
    manual.reset();
    waits(manual, &passed, 1);
    CHECK(passed == 3);
    manual.set();
    CHECK(passed == 4);

    passed = 0;
    cppcoro::single_consumer_event single(true);
    waits(single, &passed, 2);
    CHECK(passed == 2 && single.is_set());
    single.reset();
    waits(single, &passed, 1);
    CHECK(passed == 2 && !single.is_set());
    single.set();
    CHECK(passed == 3);

    passed = 0;
    cppcoro::async_auto_reset_event automatic(true);
    waits(automatic, &passed, 2);
    waits(automatic, &passed, 1);
    CHECK(passed == 1);
    automatic.set();
    CHECK(passed == 2);
    automatic.set();
    CHECK(passed == 3);
    automatic.set();
    automatic.set(); /* remembered once */
    waits(automatic, &passed, 1);
    CHECK(passed == 4);
    automatic.set();
    automatic.reset();
    waits(automatic, &passed, 1);
    CHECK(passed == 4);
    automatic.set();
    CHECK(passed == 5);

    passed = 0;
    cppcoro::single_consumer_async_auto_reset_event one(true);
    waits(one, &passed, 2);
    CHECK(passed == 1);
    one.set();
    CHECK(passed == 2);
}

eager locks(cppcoro::async_mutex &mutex, cppcoro::async_manual_reset_event &event,
            std::string *order, char name)
{
    cppcoro::async_mutex_lock lock = co_await mutex.scoped_lock_async();
    *order += name;
    co_await event;
    *order += '.';
}

void mutexes()
{
    cppcoro::async_mutex mutex;
    cppcoro::async_manual_reset_event event;
    std::string order;
    CHECK(mutex.try_lock() && !mutex.try_lock());
    locks(mutex, event, &order, 'a');
    locks(mutex, event, &order, 'b');
    CHECK(order.empty());
    mutex.unlock(); /* the first in line resumes within it */
    CHECK(order == "a" && !mutex.try_lock());
    event.set();
    CHECK(order == "a.b.");
    cppcoro::sync_wait(mutex.lock_async());
    CHECK(!mutex.try_lock());
    mutex.unlock();
    CHECK(mutex.try_lock());
    mutex.unlock();
}

void latches()
{
    int passed = 0;
    cppcoro::async_latch latch(3);
    waits(latch, &passed, 2);
    latch.count_down();
    CHECK(passed == 0 && !latch.is_ready());
    latch.count_down(2);
    CHECK(passed == 2 && latch.is_ready());
    waits(latch, &passed, 1);
    CHECK(passed == 3 && cppcoro::async_latch(0).is_ready() && cppcoro::async_latch(-1).is_ready());

    latch.count_down(); /* below zero */
    CHECK(latch.is_ready());
    cppcoro::async_latch past(2);
    past.count_down(3);
    CHECK(past.is_ready());

    cppcoro::async_latch most(PTRDIFF_MAX);
    waits(most, &passed, 1);
    most.count_down(0);
    most.count_down(PTRDIFF_MAX - 1);
    CHECK(passed == 3 && !most.is_ready());
    most.count_down();
    CHECK(passed == 4 && most.is_ready());
    if constexpr (sizeof(std::ptrdiff_t) > 4)
        CHECK(!cppcoro::async_latch(static_cast<std::ptrdiff_t>(1LL << 32)).is_ready());
}

/* ---- Generators ---- */

cppcoro::generator<const int> up_to(int end, int *produced)
{
    counted local;
    for (int i = 0; i < end; i++) {
        ++*produced;
        co_yield i;
    }
}

cppcoro::generator<int> fails_after(int count)
{
    for (int i = 0; i < count; i++)
        co_yield i;
    throw failure();
}

cppcoro::recursive_generator<int> tree(int depth, int fails_at = -1)
{
    if (depth == fails_at)
        throw failure();
    if (depth > 0)
        co_yield tree(depth - 1, fails_at);
    co_yield depth;
    if (depth > 0)
        co_yield tree(depth - 1, fails_at);
}

cppcoro::recursive_generator<int> catches()
{
    bool caught = false;
    try {
        co_yield tree(2, 0);
    } catch (const failure &) {
        caught = true;
    }
    int value = caught ? 9 : 0;
    co_yield value;
}

cppcoro::recursive_generator<int> later_inside()
{
    int one = 1;
    co_yield one;
    co_yield tree(1, 0);
}

void generators()
{
    int produced = 0;
    {
        auto lazy = up_to(3, &produced);
        CHECK(produced == 0);
        auto at = lazy.begin();
        CHECK(produced == 1 && *at == 0);
        ++at;
        CHECK(*at == 1 && at != lazy.end());
    }
    CHECK(counted::alive == 0 && produced == 2);
    int total = 0;
    for (int i : up_to(5, &produced))
        total += i;
    CHECK(total == 10 && counted::alive == 0);
    for (int i : cppcoro::generator<int>())
        total += i;
    CHECK(total == 10);

    auto moved = []() -> cppcoro::generator<std::string &&> { co_yield "m"; }();
    std::string taken = *moved.begin();
    static_assert(std::is_same_v<decltype(*moved.begin()), std::string &&>);
    CHECK(taken == "m");

    auto at_once = fails_after(0);
    CHECK(throws([&] { return at_once.begin(); }));
    auto later = fails_after(1);
    auto at = later.begin();
    CHECK(throws([&] { return ++at; }) && at == later.end());

    std::string order;
    for (int i : tree(2))
        order += static_cast<char>('0' + i);
    CHECK(order == "0102010");
    order.clear();
    for (int i : catches())
        order += static_cast<char>('0' + i);
    CHECK(order == "9");
    auto fails = tree(1, 0);
    CHECK(throws([&] { return fails.begin(); }));
    auto fails_later = later_inside();
    auto inside = fails_later.begin();
    CHECK(*inside == 1 && throws([&] { return ++inside; }) && inside == fails_later.end());
    for (int i : cppcoro::recursive_generator<int>())
        total += i;
    CHECK(total == 10);
}

cppcoro::async_generator<int> ticks(int count, cppcoro::async_auto_reset_event &event, bool fails)
{
    counted local;
    for (int i = 0; i < count; i++) {
        co_await event;
        co_yield i;
    }
    if (fails)
        throw failure();
}

cppcoro::task<int> consume(cppcoro::async_generator<int> source, int most)
{
    int total = 0;
    auto at = co_await source.begin();
    for (; at != source.end() && most > 0; co_await ++at, most--)
        total += *at;
    co_return total;
}

eager consumes(cppcoro::async_generator<int> source, int most, int *total)
{
    *total = co_await consume(std::move(source), most);
}

cppcoro::async_generator<int> immediate(int count)
{
    for (int i = 0; i < count; i++)
        co_yield i;
}

void async_generators()
{
    cppcoro::async_auto_reset_event event;
    int total = -1;
    consumes(ticks(3, event, false), 100, &total);
    event.set();
    event.set();
    CHECK(total == -1);
    event.set();
    CHECK(total == 3 && counted::alive == 0);

    event.set();
    CHECK(cppcoro::sync_wait(consume(ticks(1, event, false), 0)) == 0);
    CHECK(counted::alive == 0);
    event.set();
    CHECK(throws([&] { return cppcoro::sync_wait(consume(ticks(1, event, true), 9)); }));
    CHECK(throws([&] { return cppcoro::sync_wait(consume(ticks(0, event, true), 9)); }));
    CHECK(cppcoro::sync_wait(consume(cppcoro::async_generator<int>(), 9)) == 0);
    CHECK(cppcoro::sync_wait(consume(immediate(50000), 1 << 30)) == 1249975000);
}

/* ---- fmap ---- */

void maps()
{
    int runs = 0, produced = 0;
    auto length = [](const std::string &s) { return s.size(); };
    CHECK(cppcoro::sync_wait(fmap(length, text(&runs))) == 4);
    cppcoro::task<std::size_t> mapped = text(&runs) | cppcoro::fmap(length);
    CHECK(runs == 1 && cppcoro::sync_wait(mapped) == 4 && runs == 2);
    cppcoro::async_manual_reset_event event(true);
    CHECK(cppcoro::sync_wait(fmap([] { return 5; }, event)) == 5);
    CHECK(throws([&] { return cppcoro::sync_wait(failing() | cppcoro::fmap([] { return 5; })); }));

    int total = 0;
    for (int i : fmap([](int i) { return i * i; }, up_to(4, &produced)))
        total += i;
    CHECK(total == 14);
    for (int i : tree(1) | cppcoro::fmap([](int i) { return i + 1; }))
        total += i;
    CHECK(total == 18);
    auto doubled = fmap([](int i) { return 2 * i; }, immediate(4));
    CHECK(cppcoro::sync_wait(consume(std::move(doubled), 9)) == 12);
}

/* ---- Cancellation ---- */

void cancellations()
{
    CHECK(!cppcoro::cancellation_token().can_be_cancelled());
    cppcoro::cancellation_source source;
    auto copy = source;
    cppcoro::cancellation_token token = source.token();
    CHECK(token.can_be_cancelled() && !token.is_cancellation_requested() &&
          source.can_be_cancelled());
    token.throw_if_cancellation_requested();
    int calls = 0, removed = 0, late = 0;
    cppcoro::cancellation_registration kept(token, [&] { calls++; });
    {
        cppcoro::cancellation_registration gone(token, [&] { removed++; });
    }
    copy.request_cancellation();
    source.request_cancellation();
    CHECK(calls == 1 && removed == 0 && source.is_cancellation_requested());
    cppcoro::cancellation_registration immediately(token, [&] { late++; });
    CHECK(late == 1);
    bool has_thrown = false;
    try {
        token.throw_if_cancellation_requested();
    } catch (const std::exception &e) {
        has_thrown = dynamic_cast<const cppcoro::operation_cancelled *>(&e) != nullptr;
    }
    CHECK(has_thrown);
    cppcoro::cancellation_token orphan = cppcoro::cancellation_source().token();
    CHECK(!orphan.can_be_cancelled());
}

/* ---- Scopes ---- */

eager joins(cppcoro::async_scope &scope, bool *has_joined)
{
    co_await scope.join();
    *has_joined = true;
}

void scopes()
{
    cppcoro::async_scope scope;
    cppcoro::async_manual_reset_event event;
    std::string order;
    bool has_joined = false;
    scope.spawn(numbered(0, event, &order));
    scope.spawn(numbered(1, event, &order));
    CHECK(order == "ab");
    joins(scope, &has_joined);
    CHECK(!has_joined);
    event.set();
    CHECK(order == "abAB" && has_joined);
    cppcoro::sync_wait(scope.join());
    cppcoro::sync_wait(scope.join());

    cppcoro::async_scope empty;
    cppcoro::sync_wait(empty.join());
}

/* ---- Ends of blocks ---- */

void exits()
{
    std::string order;
    auto adds = [&order](char c) { return [&order, c] { order += c; }; };
    {
        auto exit = cppcoro::on_scope_exit(adds('a'));
        auto failed = cppcoro::on_scope_failure(adds('b'));
        auto succeeded = cppcoro::on_scope_success(adds('c'));
        auto moved = std::move(exit);
    }
    CHECK(order == "ac");
    try {
        auto exit = cppcoro::on_scope_exit(adds('d'));
        auto failed = cppcoro::on_scope_failure(adds('e'));
        auto succeeded = cppcoro::on_scope_success(adds('f'));
        throw failure();
    } catch (const failure &) {
    }
    CHECK(order == "aced");
    {
        auto exit = cppcoro::on_scope_exit(adds('g'));
        auto now = cppcoro::on_scope_exit(adds('h'));
        exit.cancel();
        now.call_now();
        CHECK(order == "acedh");
    }
    CHECK(order == "acedh");
    CHECK(throws([&] {
        auto succeeded = cppcoro::on_scope_success([] { throw failure(); });
        return 0;
    }));
}

/* ---- bide's own tasks ---- */

bide::task<int> bides(cppcoro::async_manual_reset_event &event)
{
    int runs = 0;
    std::string got = co_await text(&runs);
    co_await event;
    auto [a, b] = co_await cppcoro::when_all(text(&runs), text(&runs));
    co_return static_cast<int>(got.size() + a.size() + b.size());
}

cppcoro::task<int> uses(bide::task<int> inner)
{
    co_return 1 + co_await std::move(inner);
}

bide::task<bool> is_cancelled(cppcoro::async_manual_reset_event &event)
{
    try {
        co_await event;
    } catch (const cppcoro::operation_cancelled &) {
        co_return true;
    }
    co_return false;
}

void with_bide()
{
    cppcoro::async_manual_reset_event event(true), never;
    CHECK(bide::sync_wait(bides(event)) == 12);
    CHECK(cppcoro::sync_wait(uses(bides(event))) == 13);
    cppcoro::cancellation_source source;
    source.request_cancellation();
    auto under = [&]() -> bide::task<bool> {
        auto result = co_await bide::with_stop(source.token().get(), is_cancelled(never));
        co_return result.value();
    };
    CHECK(bide::sync_wait(under()));
}

/* Waits for a task are not cancelled: the bide::task goes on when that has ended. */

bide::task<int> awaits(cppcoro::shared_task<int> task)
{
    co_return co_await task;
}

eager under(std::stop_token token, bide::task<int> task, int *value)
{
    auto result = co_await bide::with_stop(token, std::move(task));
    *value = result ? *result : result.error();
}

cppcoro::shared_task<int> at_once()
{
    co_return 6;
}

void stopped()
{
    cppcoro::cancellation_source stop, late;
    stop.request_cancellation();
    cppcoro::async_manual_reset_event event, never;
    int value = 0, runs = 0, later = 0, again = 0;
    under(stop.token().get(), awaits(at_once()), &value); /* it would hang */
    CHECK(value == 6);

    auto task = shared(event, &runs);
    under(stop.token().get(), awaits(task), &value); /* it starts the task, and has to stop */
    under(late.token().get(), awaits(task), &later); /* it waits beside, and has to stop later */
    under(stop.token().get(), awaits(task), &again);
    late.request_cancellation();
    CHECK(runs == 1 && value == 6 && later == 0 && again == 0);
    event.set();
    CHECK(value == 7 && later == 7 && again == 7);

    auto after = [&]() -> bide::task<bool> {
        auto result =
            co_await bide::with_timeout(std::chrono::milliseconds(1), is_cancelled(never));
        co_return result &&*result;
    };
    CHECK(bide::sync_wait(after()));
}

/* ---- Misuse ---- */

// What a child process prints that is ended by a signal; nothing if it ends otherwise.
template <class F>
std::string last_words(F &&f)
{
    int ends[2];
    if (pipe(ends) != 0)
        return "";
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        f();
        _exit(0);
    }
    close(ends[1]);
    std::string words;
    char piece[256];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);)
        words.append(piece, n > 0 ? static_cast<std::size_t>(n) : 0);
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? words : "";
}

eager waits_for_first(cppcoro::single_producer_sequencer<> &ring)
{
    cppcoro::inline_scheduler here;
    co_await ring.wait_until_published(0, here);
}

template <class Object, class... Arguments>
bool may_not_go(const char *why, Arguments... arguments)
{
    std::string words = last_words([&] {
        int passed = 0;
        auto object = std::make_unique<Object>(arguments...);
        waits(*object, &passed, 1);
        object.reset();
    });
    return words.find(why) != std::string::npos;
}

void misuses()
{
#if BIDE_DEBUG
    CHECK(may_not_go<cppcoro::async_manual_reset_event>("an event is destroyed while"));
    CHECK(may_not_go<cppcoro::async_latch>("an event is destroyed while", 1));
    CHECK(may_not_go<cppcoro::async_auto_reset_event>("destroyed while"));
    CHECK(may_not_go<cppcoro::single_consumer_event>("destroyed while"));
    CHECK(may_not_go<cppcoro::single_consumer_async_auto_reset_event>("destroyed while"));
    auto words = last_words([] {
        auto mutex = std::make_unique<cppcoro::async_mutex>();
        cppcoro::async_manual_reset_event event;
        std::string order;
        (void)mutex->try_lock();
        locks(*mutex, event, &order, 'a');
        mutex.reset();
    });
    CHECK(words.find("destroyed while") != std::string::npos);
    words = last_words([] {
        cppcoro::sequence_barrier<> consumed;
        auto ring = std::make_unique<cppcoro::single_producer_sequencer<>>(consumed, 2);
        waits_for_first(*ring);
        ring.reset();
    });
    CHECK(words.find("destroyed while") != std::string::npos);
#endif
    cppcoro::async_manual_reset_event event;
    std::string order;
    bool has_joined = false;
    CHECK(last_words([&] {
              cppcoro::async_scope scope;
              scope.spawn(numbered(0, event, &order));
          }).find("an async_scope is destroyed while its operations run") != std::string::npos);
    CHECK(last_words([&] {
              cppcoro::async_scope scope;
              scope.spawn(numbered(0, event, &order));
              joins(scope, &has_joined);
              joins(scope, &has_joined);
          }).find("an async_scope is joined by two coroutines at once") != std::string::npos);
    CHECK(last_words([&] {
              cppcoro::async_scope scope;
              cppcoro::sync_wait(scope.join());
              scope.spawn(numbered(0, event, &order));
          }).find("an async_scope spawns after join() has ended") != std::string::npos);
}

/* ---- Costs ---- */

// How many objects `f` allocates.
template <class F>
std::size_t allocated(F &&f)
{
    std::size_t before = allocations;
    f();
    return allocations - before;
}

cppcoro::task<> nothing()
{
    co_return;
}

eager counts(std::size_t *count, cppcoro::async_manual_reset_event &set, cppcoro::task<> &task,
             cppcoro::async_mutex &mutex, cppcoro::async_latch &latch)
{
    std::size_t before = allocations;
    co_await set;
    co_await task; /* (which is there) */
    co_await latch;
    auto lock = co_await mutex.scoped_lock_async();
    *count = allocations - before;
}

void costs()
{
    cppcoro::async_manual_reset_event set(true);
    cppcoro::async_mutex mutex;
    cppcoro::async_latch latch(0);
    std::size_t waits_allocate = 1;
    auto task = nothing();
    counts(&waits_allocate, set, task, mutex, latch);
    CHECK(waits_allocate == 0);

    cppcoro::inline_scheduler here;
    auto none = [] {};
    CHECK(allocated([] { auto one = nothing(); }) <= 1);
    CHECK(allocated([&] { auto one = cppcoro::fmap(none, set); }) <= 1);
    CHECK(allocated([&] { auto one = cppcoro::schedule_on(here, set); }) <= 1);
    CHECK(allocated([&] { cppcoro::sync_wait(set); }) <= 1);
    CHECK(allocated([&] { cppcoro::sync_wait(cppcoro::resume_on(here, set)); }) <= 3);
    CHECK(allocated([&] { auto two = cppcoro::when_all(std::ref(set), std::ref(set)); }) <= 2);
    CHECK(allocated([&] {
              cppcoro::async_scope scope;
              scope.spawn(nothing());
              cppcoro::sync_wait(scope.join());
          }) <= 3);

    using cppcoro::static_thread_pool;
    constexpr std::size_t words = sizeof(void *);
    static_assert(sizeof(cppcoro::async_manual_reset_event_operation) <=
                  sizeof(bide_event_waiter) + 6 * words);
    static_assert(sizeof(bide::cppcoro::detail::continuation) <= 9 * words);
    static_assert(sizeof(static_thread_pool::schedule_operation) <= 10 * words);

    /* Frames of coroutines are aligned for these. */
    constexpr std::size_t most = alignof(std::max_align_t);
    static_assert(alignof(cppcoro::async_manual_reset_event) <= most &&
                  alignof(cppcoro::async_auto_reset_event) <= most &&
                  alignof(cppcoro::single_consumer_event) <= most &&
                  alignof(cppcoro::async_mutex) <= most && alignof(cppcoro::async_latch) <= most &&
                  alignof(cppcoro::async_scope) <= most && alignof(static_thread_pool) <= most);
    static_assert(alignof(bide_sequence_waiter) <= most && alignof(bide_claim) <= most &&
                  alignof(bide_multi_producer_claim) <= most &&
                  alignof(bide_multi_producer_waiter) <= most);
}

/* ---- What g++ delays ---- */

cppcoro::task<> begins(bool *has_begun)
{
    *has_begun = true;
    co_return;
}

eager starts_one(bool *has_begun)
{
    co_await begins(has_begun);
}

cppcoro::task<bool> starts_beside()
{
#if defined __clang__
    bool is_at_once = true;
#else
    bool is_at_once = false;
#endif
    bool has_begun = false;
    starts_one(&has_begun);
    bool as_stated = has_begun == is_at_once;
    cppcoro::sync_wait(nothing()); /* before a thread blocks, it is begun */
    co_return as_stated &&has_begun;
}

void delays()
{
    CHECK(cppcoro::sync_wait(starts_beside()));
}

/* ---- Two translation units ---- */

void units()
{
#ifdef HAS_UNIT
    cppcoro::async_manual_reset_event event;
    int runs = 0;
    auto task = shared(event, &runs);
    auto [a, b, none] =
        cppcoro::sync_wait(cppcoro::when_all(of_the_other_unit(task, event), task, sets(event)));
    (void)none;
    CHECK(a == 8 && b == 7 && runs == 1);
#endif
}

} // namespace

int main()
{
    struct {
        const char *name;
        void (*run)();
    } cases[] = {
        {"tasks", tasks},
        {"shared_tasks", shared_tasks},
        {"all", all},
        {"references", references},
        {"events", events},
        {"mutexes", mutexes},
        {"latches", latches},
        {"generators", generators},
        {"async_generators", async_generators},
        {"maps", maps},
        {"cancellations", cancellations},
        {"scopes", scopes},
        {"exits", exits},
        {"misuses", misuses},
        {"with_bide", with_bide},
        {"stopped", stopped},
        {"costs", costs},
        {"delays", delays},
        {"units", units},
    };
    std::printf("1..%zu\n", std::size(cases));
    int number = 0, failed = 0;
    for (auto &test : cases) {
        failures = 0;
        test.run();
        std::printf("%sok %d %s\n", failures ? "not " : "", ++number, test.name);
        failed += failures;
    }
    return failed != 0;
}
