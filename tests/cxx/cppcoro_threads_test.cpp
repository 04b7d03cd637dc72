// bide/cppcoro.hpp, schedulers, threads and rings: what cppcoro documents of each class, and a test of it.
//
//     static_thread_pool          schedule() moves to a thread of the pool; thread_count              pools
//     schedule_on, resume_on      where the awaitable and the awaiting coroutine run; by |; generators;
//                                 exceptions                                                           moves
//     when_all                    side by side on a pool; resumes on the last's thread                 pools
//     async_mutex                 excludes, on several threads                                         pools
//     sequence_range, _traits     wrap around                                                          ranges
//     sequence_barrier            waits until published; ready waits do not suspend; resumes on the scheduler   barriers
//     io_service, io_work_scope   schedule() and schedule_after() move to the loop's thread; cancellation; stop, reset,
//                                 pending events; the end of the last work stops it; descriptors       services
//     round_robin_scheduler       coroutines run in turn; drain() in a coroutine and outside           turns
//     inline_scheduler            goes on where it is                                                  barriers
//     single_producer_sequencer   never more than the buffer ahead; all in order                       rings
//     multi_producer_sequencer    the same with two producers; last_published_after; any_available     rings
#include "bide/cppcoro.hpp"

#include <cstdio>
#include <sys/socket.h>
#include <thread>

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            std::printf("# line %d: %s is false\n", __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

namespace
{

std::atomic<int> failures;

struct failure {
};

// (pthread_self is declared as constant: inlined, its value would be kept across a move to another thread)
[[gnu::noinline]] std::thread::id here()
{
    __asm__ volatile("" ::: "memory");
    return std::this_thread::get_id();
}

cppcoro::task<std::thread::id> where()
{
    co_return here();
}

/* ---- Pools ---- */

cppcoro::task<long> sum(cppcoro::static_thread_pool &pool, long from, long count)
{
    if (count <= 8) {
        long total = 0;
        for (long i = from; i < from + count; i++)
            total += i;
        co_return total;
    }
    long half = count / 2;
    auto [a, b] = co_await cppcoro::when_all(cppcoro::schedule_on(pool, sum(pool, from, half)),
                                             sum(pool, from + half, count - half));
    co_return a + b;
}

cppcoro::task<> adds(cppcoro::static_thread_pool &pool, cppcoro::async_mutex &mutex, long *total,
                     int times)
{
    co_await pool.schedule();
    for (int i = 0; i < times; i++) {
        auto lock = co_await mutex.scoped_lock_async();
        ++*total;
    }
}

void pools()
{
    cppcoro::static_thread_pool pool(3);
    CHECK(pool.thread_count() == 3);
    auto moves = [&]() -> cppcoro::task<> {
        auto start = here();
        co_await pool.schedule();
        CHECK(here() != start);
    };
    cppcoro::sync_wait(moves());
    cppcoro::sync_wait(pool.schedule());
    CHECK(cppcoro::sync_wait(sum(pool, 1, 5000)) == 5000L * 5001 / 2);

    cppcoro::async_mutex mutex;
    long total = 0;
    std::vector<cppcoro::task<>> all;
    for (int i = 0; i < 8; i++)
        all.push_back(adds(pool, mutex, &total, 200));
    cppcoro::sync_wait(cppcoro::when_all(std::move(all)));
    CHECK(total == 1600);

    cppcoro::shared_task<int> shared =
        [](cppcoro::static_thread_pool &on) -> cppcoro::shared_task<int> {
        co_await on.schedule();
        co_return 4;
    }(pool);
    auto reads = [](cppcoro::static_thread_pool &on,
                    cppcoro::shared_task<int> task) -> cppcoro::task<int> {
        co_await on.schedule();
        co_return co_await task;
    };
    auto [a, b] = cppcoro::sync_wait(cppcoro::when_all(reads(pool, shared), reads(pool, shared)));
    CHECK(a == 4 && b == 4);

    cppcoro::async_scope scope;
    std::atomic<int> ended = 0;
    for (int i = 0; i < 20; i++)
        scope.spawn(cppcoro::schedule_on(pool, [](std::atomic<int> &count) -> cppcoro::task<> {
            count++;
            co_return;
        }(ended)));
    cppcoro::sync_wait(scope.join());
    CHECK(ended == 20);
}

/* ---- Moves ---- */

cppcoro::task<> failing()
{
    throw failure();
    co_return;
}

cppcoro::async_generator<std::thread::id> places()
{
    for (int i = 0; i < 2; i++)
        co_yield here();
}

void moves()
{
    cppcoro::static_thread_pool pool(1);
    std::thread::id on_pool = cppcoro::sync_wait(cppcoro::schedule_on(pool, where()));
    std::thread::id main = here();
    CHECK(on_pool != main && cppcoro::sync_wait(where()) == main);

    auto checks = [&]() -> cppcoro::task<> {
        CHECK(co_await cppcoro::resume_on(pool, where()) == main);
        CHECK(here() == on_pool);
    };
    cppcoro::sync_wait(checks());
    auto pipes = [&]() -> cppcoro::task<> {
        auto piped = where() | cppcoro::resume_on(pool) | cppcoro::fmap([&](std::thread::id id) {
                         return id == main && here() == on_pool;
                     });
        CHECK(co_await std::move(piped));
        CHECK(here() == on_pool);
        CHECK(co_await (where() | cppcoro::schedule_on(pool)) == on_pool);
    };
    cppcoro::sync_wait(pipes());
    auto fails = [&]() -> cppcoro::task<> {
        bool has_failed = false;
        try {
            co_await cppcoro::resume_on(pool, failing());
        } catch (const failure &) {
            has_failed = here() == on_pool;
        }
        CHECK(has_failed);
    };
    cppcoro::sync_wait(fails());
    auto generates = [&]() -> cppcoro::task<> {
        auto there = cppcoro::schedule_on(pool, places());
        int count = 0;
        auto at = co_await there.begin();
        for (; at != there.end(); co_await ++at, count++)
            CHECK(*at == on_pool);
        CHECK(count == 2);
    };
    cppcoro::sync_wait(generates());
    auto consumes = [&]() -> cppcoro::task<> {
        auto source = places() | cppcoro::resume_on(pool);
        auto at = co_await source.begin();
        CHECK(at != source.end() && *at == main);
        CHECK(here() == on_pool);
    };
    cppcoro::sync_wait(consumes());
}

/* ---- Sequences ---- */

// A scheduler of the user's own, without a context of bide: it counts.
struct counting {
    int count = 0;
    std::suspend_never schedule() noexcept
    {
        count++;
        return {};
    }
};

void ranges()
{
    using traits = cppcoro::sequence_traits<std::size_t>;
    static_assert(traits::initial_sequence + 1 == 0);
    static_assert(traits::precedes(traits::initial_sequence, 0) && !traits::precedes(1, 1));
    static_assert(traits::difference(0, traits::initial_sequence) == 1);
    cppcoro::sequence_range<std::size_t> range(traits::initial_sequence, 2);
    CHECK(range.size() == 3 && !range.empty() && range.front() + 1 == 0 && range.back() == 1 &&
          range[2] == 1);
    auto two = range.first(2), rest = range.skip(2);
    CHECK(two.size() == 2 && two.front() == range.front() && two.back() == 0);
    CHECK(rest.size() == 1 && rest.front() == 1 && range.skip(3).empty() && range.first(0).empty());
    CHECK(range.first(9).size() == 3 && range.skip(9).empty());
    std::size_t count = 0;
    for (std::size_t sequence : range)
        CHECK(sequence == range[count++]);
    CHECK(count == 3 && cppcoro::sequence_range<std::size_t>().empty());
}

void barriers()
{
    cppcoro::static_thread_pool pool(1);
    std::thread::id on_pool = cppcoro::sync_wait(cppcoro::schedule_on(pool, where()));
    cppcoro::sequence_barrier<std::size_t> barrier;
    counting own;
    CHECK(barrier.last_published() + 1 == 0);
    auto waits = [&](std::size_t target, std::thread::id *place) -> cppcoro::task<std::size_t> {
        std::size_t published = co_await barrier.wait_until_published(target, pool);
        *place = here();
        co_return published;
    };
    auto waits_by_own = [&]() -> cppcoro::task<std::size_t> {
        co_return co_await barrier.wait_until_published(2, own);
    };
    auto publishes = [&](std::size_t sequence) -> cppcoro::task<> {
        barrier.publish(sequence);
        co_return;
    };
    std::thread::id place;
    auto [first, second, none] =
        cppcoro::sync_wait(cppcoro::when_all(waits(1, &place), waits_by_own(), publishes(3)));
    (void)none;
    CHECK(first == 3 && second == 3 && place == on_pool && own.count == 1);
    CHECK(cppcoro::sync_wait(waits(2, &place)) == 3 && place == here()); /* it did not suspend */
    CHECK(cppcoro::sync_wait(waits_by_own()) == 3 && own.count == 1);
    CHECK(barrier.last_published() == 3);

    cppcoro::inline_scheduler inline_one;
    auto waits_inline = [&]() -> cppcoro::task<std::size_t> {
        std::size_t published = co_await barrier.wait_until_published(4, inline_one);
        place = here();
        co_await inline_one.schedule();
        co_return published;
    };
    static_assert(!std::is_same_v<decltype(barrier.wait_until_published(4, inline_one)),
                                  cppcoro::task<std::size_t>>); /* it allocates nothing */
    auto [last, nothing] = cppcoro::sync_wait(
        cppcoro::when_all(waits_inline(), cppcoro::schedule_on(pool, publishes(4))));
    (void)nothing;
    CHECK(last == 4 && place == on_pool);
}

constexpr std::size_t size = 8, items = 500;
std::size_t slots[size];

cppcoro::task<> produces(cppcoro::static_thread_pool &pool,
                         cppcoro::single_producer_sequencer<> &ring,
                         cppcoro::sequence_barrier<> &consumed)
{
    for (std::size_t i = 0; i < items;) {
        auto range = co_await ring.claim_up_to(items - i < 3 ? items - i : 3, pool);
        CHECK(!range.empty() && range.size() <= 3);
        for (std::size_t sequence : range) {
            CHECK(sequence == i && sequence - consumed.last_published() <= size);
            slots[sequence % size] = i++;
        }
        ring.publish(range);
        CHECK(ring.last_published() == range.back());
    }
    std::size_t last = co_await ring.claim_one(pool);
    CHECK(last == items);
    slots[last % size] = items;
    ring.publish(last);
}

cppcoro::task<> consumes(cppcoro::static_thread_pool &pool,
                         cppcoro::single_producer_sequencer<> &ring,
                         cppcoro::sequence_barrier<> &consumed)
{
    for (std::size_t next = 0; next <= items;) {
        std::size_t available = co_await ring.wait_until_published(next, pool);
        for (; next <= available; next++)
            CHECK(slots[next % size] == next);
        consumed.publish(available);
    }
    CHECK(ring.last_published() == items);
}

using many = cppcoro::multi_producer_sequencer<>;

cppcoro::task<> produces_one(cppcoro::static_thread_pool &pool, many &ring)
{
    co_await pool.schedule();
    for (std::size_t i = 0; i < items; i++) {
        std::size_t sequence = co_await ring.claim_one(pool);
        slots[sequence % size] = 1;
        ring.publish(sequence);
    }
}

cppcoro::task<> produces_two(cppcoro::static_thread_pool &pool, many &ring)
{
    for (std::size_t i = 0; i < items;) {
        auto range = co_await ring.claim_up_to(items - i < 2 ? 1 : 2, pool);
        for (std::size_t sequence : range)
            slots[sequence % size] = 1000;
        i += range.size();
        ring.publish(range);
    }
}

cppcoro::task<std::size_t> adds_up(cppcoro::static_thread_pool &pool, many &ring,
                                   cppcoro::sequence_barrier<> &consumed)
{
    std::size_t total = 0;
    for (std::size_t next = 0; next < 2 * items;) {
        std::size_t available = co_await ring.wait_until_published(next, next - 1, pool);
        for (; next != available + 1; next++)
            total += slots[next % size];
        consumed.publish(available);
    }
    co_return total;
}

void rings()
{
    cppcoro::static_thread_pool pool(2);
    {
        cppcoro::sequence_barrier<> consumed;
        cppcoro::single_producer_sequencer<> ring(consumed, size);
        cppcoro::sync_wait(
            cppcoro::when_all(produces(pool, ring, consumed), consumes(pool, ring, consumed)));
    }
    cppcoro::sequence_barrier<> consumed;
    many ring(consumed, size);
    CHECK(ring.buffer_size() == size && ring.any_available());
    auto [a, b, total] = cppcoro::sync_wait(cppcoro::when_all(
        produces_one(pool, ring), produces_two(pool, ring), adds_up(pool, ring, consumed)));
    (void)a, (void)b;
    CHECK(total == 1001 * items);

    auto range = cppcoro::sync_wait(ring.claim_up_to(100, pool));
    CHECK(range.size() == size && !ring.any_available());
    ring.publish(range[1]);
    CHECK(ring.last_published_after(range[0] - 1) == range[0] - 1);
    ring.publish(range[0]);
    CHECK(ring.last_published_after(range[0] - 1) == range[1]);

    bool is_refused = false;
    try {
        many odd(consumed, 3);
    } catch (const std::system_error &e) {
        is_refused = e.code().value() == EINVAL;
    }
    CHECK(is_refused);
}

/* ---- Services ---- */

/* As cppcoro documents it: a scope keeps the service at work, and its end lets process_events return. */
cppcoro::task<int> works(cppcoro::io_service &service, std::thread::id &moved_to,
                         std::thread::id &slept_on)
{
    cppcoro::io_work_scope scope(service);
    cppcoro::io_work_scope copy = scope, moved = std::move(copy);
    CHECK(&moved.service() == &service);
    co_await service.schedule();
    moved_to = here();
    co_await service.schedule_after(std::chrono::microseconds(1));
    slept_on = here();
    int total = 0;
    for (int i = 0; i < 1000; i++)
        total += co_await cppcoro::schedule_on(
            service,
            cppcoro::make_task([](int value) -> cppcoro::task<int> { co_return value; }(i)));
    co_return total;
}

cppcoro::task<std::uint64_t> processes(cppcoro::io_service &service)
{
    co_return service.process_events();
}

void service_is_run_in_a_coroutine()
{
    cppcoro::io_service service;
    std::thread::id moved_to, slept_on;
    auto [total, events] = cppcoro::sync_wait(
        cppcoro::when_all(works(service, moved_to, slept_on), processes(service)));
    CHECK(total == 999 * 1000 / 2 && events >= 1002);
    CHECK(moved_to == here() && slept_on == here());
    CHECK(service.is_stop_requested() && service.process_events() == 0);
    service.reset();
    CHECK(!service.is_stop_requested());
}

cppcoro::task<std::thread::id> sleeps(cppcoro::io_service &service, std::chrono::nanoseconds delay,
                                      cppcoro::cancellation_token token, bool &is_cancelled)
{
    try {
        co_await service.schedule_after(delay, token);
    } catch (const cppcoro::operation_cancelled &) {
        is_cancelled = true;
    }
    co_return here();
}

cppcoro::task<char> receives(cppcoro::io_service &service, bide_descriptor &one,
                             bide_descriptor &other)
{
    std::byte sent[1] = {std::byte('x')}, received[1] = {};
    co_await service.schedule();
    auto [got, put] = co_await cppcoro::when_all(bide::recv(one, received).in(service.context()),
                                                 bide::send(other, sent).in(service.context()));
    CHECK(got && *got == 1 && put && *put == 1);
    co_return static_cast<char>(received[0]);
}

void service_has_a_thread()
{
    cppcoro::io_service service(1);
    std::thread thread([&] { service.process_events(); });
    std::thread::id its = thread.get_id();
    bool is_cancelled = false;
    CHECK(cppcoro::sync_wait(sleeps(service, std::chrono::nanoseconds(1), {}, is_cancelled)) ==
          its);
    CHECK(!is_cancelled);

    cppcoro::cancellation_source source;
    CHECK(cppcoro::sync_wait(
              sleeps(service, std::chrono::nanoseconds(1), source.token(), is_cancelled)) == its);
    CHECK(!is_cancelled);
    auto [slept, cancelled] = cppcoro::sync_wait(cppcoro::when_all(
        sleeps(service, std::chrono::hours(10), source.token(), is_cancelled),
        [](cppcoro::io_service &on, cppcoro::cancellation_source by) -> cppcoro::task<int> {
            co_await on.schedule();
            by.request_cancellation();
            co_return 0;
        }(service, source)));
    CHECK(is_cancelled);
    CHECK(slept == its);
    CHECK(cancelled == 0);
    is_cancelled = false;
    CHECK(cppcoro::sync_wait(
              sleeps(service, std::chrono::hours(10), source.token(), is_cancelled)) == here());
    CHECK(is_cancelled); /* (it was requested before) */

    int pair[2];
    bide_descriptor one, other;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    bide_descriptor_init(&one, pair[0]);
    bide_descriptor_init(&other, pair[1]);
    CHECK(cppcoro::sync_wait(receives(service, one, other)) == 'x');
    cppcoro::sync_wait(cppcoro::schedule_on(
        service, [](bide_descriptor &a, bide_descriptor &b) -> cppcoro::task<> {
            bide_close(&a);
            bide_close(&b);
            co_return;
        }(one, other)));
    service.stop();
    thread.join();
}

void services()
{
    service_is_run_in_a_coroutine();
    service_has_a_thread();

    cppcoro::io_service service;
    CHECK(service.process_pending_events() < 10); /* (nothing is ready) */
    int ran = 0;
    cppcoro::async_scope scope;
    for (int i = 0; i < 100; i++)
        scope.spawn([](cppcoro::io_service &on, int &count) -> cppcoro::task<> {
            co_await on.schedule();
            count++;
            co_await on.schedule();
            count++;
        }(service, ran));
    CHECK(ran == 0);
    std::uint64_t events = 0;
    while (ran != 200)
        events += service.process_pending_events();
    CHECK(events >= 200);
    cppcoro::sync_wait(scope.join());
    service.notify_work_started();
    service.notify_work_finished();
    CHECK(service.is_stop_requested() && service.process_pending_events() == 0);
}

/* ---- Turns ---- */

using three = cppcoro::round_robin_scheduler<3>;

cppcoro::task<> takes_turns(three &scheduler, std::vector<int> &order, int number, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        co_await scheduler.schedule();
        order.push_back(number);
    }
}

cppcoro::task<> drains(three &scheduler)
{
    scheduler.drain();
    co_return;
}

void turns()
{
    three scheduler;
    std::vector<int> order;
    cppcoro::sync_wait(cppcoro::when_all(takes_turns(scheduler, order, 1, 3),
                                         takes_turns(scheduler, order, 2, 3), drains(scheduler)));
    CHECK((order == std::vector<int>{1, 2, 1, 2, 1, 2}));

    order.clear();
    cppcoro::async_scope scope; /* three coroutines: each waits for the two others */
    for (int i = 1; i <= 3; i++)
        scope.spawn(takes_turns(scheduler, order, i, 100000));
    scheduler.drain();
    cppcoro::sync_wait(scope.join());
    CHECK(order.size() == 300000);
    bool is_in_turn = order.size() == 300000;
    for (std::size_t i = 0; is_in_turn && i < order.size(); i++)
        is_in_turn = order[i] == static_cast<int>(i % 3) + 1;
    CHECK(is_in_turn);
    scheduler.drain(); /* (nothing waits) */
}

} // namespace

int main()
{
    struct {
        const char *name;
        void (*run)();
    } cases[] = {
        {"pools", pools}, {"moves", moves},       {"ranges", ranges}, {"barriers", barriers},
        {"rings", rings}, {"services", services}, {"turns", turns},
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
