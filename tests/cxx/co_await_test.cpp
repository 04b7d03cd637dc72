// bide/bide.hpp: each operation, awaited by co_await in coroutines of two promise types, completes, is cancelled, and is
// withdrawn when its coroutine is destroyed; C and C++ await each other; contexts, exceptions, std::stop_token.

#include "bide/bide.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            std::printf("# %s:%d: %s: %s is false\n", __FILE__, __LINE__, current_case, \
                        #condition);                                                    \
            return 1;                                                                   \
        }                                                                               \
    } while (0)

static const char *current_case = "";

/* ---- Allocations are counted ---- */

static std::atomic<int> allocations;

// (not inlined: g++ would see that memory of `new` is passed to `free`)
[[gnu::noinline]] void *operator new(size_t size)
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
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept
{
    std::free(memory);
}

namespace
{

using namespace std::chrono_literals;

/* ---- Coroutines of another kind ---- */

// The user's own: begins at once, is destroyed by its owner; its await_transform passes everything through.
struct eager {
    struct promise_type {
        const bide_context *context = &bide_default_context;
        eager get_return_object()
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
        template <class T>
        T &&await_transform(T &&awaited)
        {
            return std::forward<T>(awaited);
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::abort();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

// Its promise names the context of its waits.
struct placed {
    struct promise_type {
        const bide_context *context;
        promise_type(const bide_context *c, auto &&...) : context(c)
        {
        }
        placed get_return_object()
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
        const bide_context *wait_context() const
        {
            return context;
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::abort();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

// Locals of coroutines that have not been destroyed.
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

constexpr int WAITS = 1;

/* ---- The table ---- */

// Each has: a member that waits, made blocked by the constructor; finish(), which lets one wait end; status(), with
// which a wait that has ended is left in order.

struct event_case {
    static constexpr const char *name = "event";
    bide_event event;
    event_case()
    {
        bide_event_init(&event, false);
    }
    auto wait()
    {
        return bide::wait(bide_event_wait, &event);
    }
    void finish()
    {
        bide_event_set(&event);
    }
};

struct auto_event_case {
    static constexpr const char *name = "auto event";
    bide_auto_event event;
    auto_event_case()
    {
        bide_auto_event_init(&event, false);
    }
    auto wait()
    {
        return bide::wait(bide_auto_event_wait, &event);
    }
    void finish()
    {
        bide_auto_event_set(&event);
    }
};

struct mutex_case {
    static constexpr const char *name = "mutex";
    bide_mutex mutex;
    bide_mutex_waiter holder;
    std::optional<bide::mutex_guard> guard;
    mutex_case()
    {
        bide_mutex_init(&mutex);
        if (!bide_mutex_try_lock(&holder, &mutex))
            std::abort();
    }
    ~mutex_case()
    {
        guard.reset();
        if (bide_mutex_is_locked(&mutex))
            std::abort();
    }
    auto wait()
    {
        guard.emplace(mutex);
        return guard->lock();
    }
    void finish()
    {
        bide_mutex_unlock(&holder);
    }
};

struct semaphore_case {
    static constexpr const char *name = "semaphore";
    bide_semaphore semaphore;
    std::optional<bide::permit> permit;
    semaphore_case()
    {
        bide_semaphore_init(&semaphore, 0);
    }
    ~semaphore_case()
    {
        permit.reset();
        if (bide_semaphore_available(&semaphore) > 1)
            std::abort();
    }
    auto wait()
    {
        permit.emplace(semaphore);
        return permit->acquire();
    }
    void finish()
    {
        bide_semaphore_release(&semaphore, 1);
    }
};

struct channel_case {
    static constexpr const char *name = "channel";
    bide_channel(int) channel;
    bide_channel_slot(int) slots[2];
    int got = 0;
    channel_case()
    {
        bide_channel_init(&channel, slots, 2);
    }
    auto wait()
    {
        return bide::wait_with<bide_channel_waiter>(
            [this](auto *waiter) { return bide_channel_recv(waiter, &channel, &got); });
    }
    void finish()
    {
        int one = 1;
        if (bide_channel_try_send(&channel, &one) != 0)
            std::abort();
    }
};

struct select_case {
    static constexpr const char *name = "select";
    struct waiters {
        bide_select_of(2) select;
        bide_event_waiter event;
        bide_semaphore_waiter semaphore;
    };
    bide_event event;
    bide_semaphore semaphore;
    select_case()
    {
        bide_event_init(&event, false);
        bide_semaphore_init(&semaphore, 0);
    }
    auto wait()
    {
        return bide::wait_with<waiters>([this](waiters *w) {
            w->select.random = 1;
            return bide_select_any_of(&w->select, bide_event_wait(&w->event, &event),
                                      bide_semaphore_acquire(&w->semaphore, &semaphore));
        });
    }
    void finish()
    {
        bide_semaphore_release(&semaphore, 1);
    }
};

struct barrier_case {
    static constexpr const char *name = "sequence barrier";
    bide_sequence_barrier barrier;
    barrier_case()
    {
        bide_sequence_barrier_init(&barrier, bide_sequence_initial());
    }
    auto wait()
    {
        return bide::wait(bide_sequence_barrier_wait_until_published, &barrier, bide_sequence{3});
    }
    void finish()
    {
        bide_sequence_barrier_publish(&barrier, 5);
    }
};

struct latch_case {
    static constexpr const char *name = "latch";
    bide_latch latch;
    latch_case()
    {
        bide_latch_init(&latch, 1);
    }
    auto wait()
    {
        return bide::wait(bide_latch_wait, &latch);
    }
    void finish()
    {
        bide_latch_count_down(&latch);
    }
};

// A task in C++ around a task in C++.
bide::task<bide::result<>> waits_for(bide_event &event)
{
    local here;
    co_return co_await bide::wait(bide_event_wait, &event);
}

bide::task<int> reads_status(auto wait)
{
    local here;
    auto result = co_await wait();
    co_return result.error();
}

eager stores_status(auto wait, int &status)
{
    local here;
    auto result = co_await wait();
    status = result.error();
}

placed stores_status_in(const bide_context *, auto wait, int &status)
{
    local here;
    auto result = co_await wait();
    status = result.error();
}

template <class Case>
int a_task()
{
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = bide_default_context;
    context.stop = &stop;
    bide_spawned spawned;
    { // completes
        Case object;
        auto task = reads_status([&] { return object.wait(); });
        allocations = 0;
        bide_spawn(&spawned, &context, task.awaiter());
        CHECK(!task.done() && locals == 1);
        object.finish();
        CHECK(task.done() && locals == 0 && spawned.root.status == 0);
        CHECK(allocations == 0);
        CHECK(task.take() == 0);
    }
    { // is ready
        Case object;
        object.finish();
        auto task = reads_status([&] { return object.wait(); });
        bide_spawn(&spawned, &context, task.awaiter());
        CHECK(task.done() && task.take() == 0);
    }
    { // its coroutine is destroyed, from C
        Case object;
        auto task = reads_status([&] { return object.wait(); });
        bide_spawn(&spawned, &context, task.awaiter());
        bide_destroy(&spawned.root.frame);
        CHECK(task.done() && locals == 1);
        object.finish();
        CHECK(locals == 1);
    }
    CHECK(locals == 0);
    { // is cancelled
        Case object;
        auto task = reads_status([&] { return object.wait(); });
        bide_spawn(&spawned, &context, task.awaiter());
        bide_stop_request(&stop);
        CHECK(task.done() && task.take() == -ECANCELED && locals == 0);
        object.finish();
    }
    return 0;
}

template <class Case>
int another_promise()
{
    { // completes
        Case object;
        int status = WAITS;
        allocations = 0;
        eager coroutine = stores_status([&] { return object.wait(); }, status);
        CHECK(allocations <= 1); // the coroutine's frame
        CHECK(status == WAITS && !coroutine.handle.done());
        object.finish();
        CHECK(status == 0 && coroutine.handle.done() && allocations <= 1);
        coroutine.handle.destroy();
    }
    { // is destroyed while it waits; what it waited for goes to the next
        Case object;
        int status = WAITS;
        eager coroutine = stores_status([&] { return object.wait(); }, status);
        CHECK(locals == 1);
        coroutine.handle.destroy();
        CHECK(locals == 0);
        eager next = stores_status([&] { return object.wait(); }, status);
        object.finish();
        CHECK(status == 0 && next.handle.done());
        next.handle.destroy();
    }
    { // in a context of its promise's: is cancelled
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        bide_context context = bide_default_context;
        context.stop = &stop;
        Case object;
        int status = WAITS;
        placed coroutine = stores_status_in(
            &context, [&] { return object.wait(); }, status);
        bide_stop_request(&stop);
        CHECK(status == -ECANCELED && coroutine.handle.done());
        object.finish();
        coroutine.handle.destroy();
    }
    { // in a context that is given to the wait: is cancelled
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        bide_context context = bide_default_context;
        context.stop = &stop;
        Case object;
        int status = WAITS;
        auto waits = [](Case &o, const bide_context &in, int &s) -> eager {
            auto result = co_await o.wait().in(in);
            s = result.error();
        };
        eager coroutine = waits(object, context, status);
        bide_stop_request(&stop);
        CHECK(status == -ECANCELED && coroutine.handle.done());
        object.finish();
        coroutine.handle.destroy();
    }
    return 0;
}

template <class Case>
int one()
{
    current_case = Case::name;
    return a_task<Case>() + another_promise<Case>();
}

int each_operation()
{
    return one<event_case>() + one<auto_event_case>() + one<mutex_case>() + one<semaphore_case>() +
           one<channel_case>() + one<select_case>() + one<barrier_case>() + one<latch_case>();
}

/* ---- On loops: timers, sockets, blocking calls, other schedulers ---- */

bide::task<int> sleeps(std::chrono::nanoseconds time)
{
    co_return (co_await bide::sleep_for(time)).error();
}

bide::task<int> talks()
{
    bide_descriptor one = {}, other = {};
    std::byte data[4] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}, got[8];
    (co_await bide::wait(bide_socket_pair, &one, &other)).value();
    size_t sent = (co_await bide::send(one, data)).value();
    size_t received = (co_await bide::recv(other, got)).value();
    bool same = sent == 4 && received == 4 && std::memcmp(data, got, 4) == 0;

    // A receive that waits: until its deadline, and until its coroutine is destroyed.
    auto receives = [](bide_descriptor &from, std::span<std::byte> to) -> bide::task<int> {
        auto result = co_await bide::recv(from, to);
        co_return result ? static_cast<int>(*result) : result.error();
    };
    auto late = co_await bide::with_timeout(1ms, receives(other, got));
    bool timed_out = late && *late == -ETIMEDOUT;

    bide_close(&one);
    bool at_end = (co_await bide::recv(other, got)).value() == 0;
    bide_close(&other);
    co_return same &&timed_out &&at_end ? 0 : 1;
}

bide::task<int> accepts()
{
    bide_descriptor listener = {}, accepted = {}, client = {};
    bide_address address;
    if (bide_address_parse(&address, "127.0.0.1:0") != 0)
        co_return 1;
    auto listening = co_await bide::wait_with<bide_io_operation>(
        [&](auto *w) { return bide_listen(w, &listener, &address, 4); });
    if (!listening)
        co_return 77; // no network here
    sockaddr_in bound = {};
    socklen_t length = sizeof bound;
    if (getsockname(bide_descriptor_fd(&listener), reinterpret_cast<sockaddr *>(&bound), &length) !=
            0 ||
        bide_address_ip(&address, "127.0.0.1", ntohs(bound.sin_port)) != 0)
        co_return 1;
    (co_await bide::wait_with<bide_io_operation>([&](auto *w) {
        return bide_connect(w, &client, &address);
    })).value();
    (co_await bide::wait_with<bide_io_operation>([&](auto *w) {
        return bide_accept(w, &listener, &accepted, nullptr);
    })).value();
    bool open = bide_descriptor_is_open(&accepted);
    bide_close(&client);
    bide_close(&accepted);
    bide_close(&listener);
    co_return open ? 0 : 1;
}

bide::task<int> calls(bide_blocking *blocking)
{
    std::thread::id where;
    auto function = [](void *id) {
        *static_cast<std::thread::id *>(id) = std::this_thread::get_id();
    };
    (co_await bide::wait_with<bide_blocking_call>([&](auto *w) {
        return bide_blocking_run(w, blocking, +function, &where);
    })).value();
    co_return where != std::thread::id() && where != std::this_thread::get_id() ? 0 : 1;
}

bide::task<std::thread::id> here()
{
    co_return std::this_thread::get_id();
}

bide::task<int> goes(bide_scheduler *pool)
{
    auto before = std::this_thread::get_id();
    std::thread::id there = (co_await bide::schedule_on(pool, here())).value();
    co_return there != before &&std::this_thread::get_id() == before ? 0 : 1;
}

int on_a_loop()
{
    bide_loop *loop;
    bide_blocking *blocking;
    bide_thread_pool *pool;
    current_case = "on a loop";
    CHECK(bide_loop_create(&loop, nullptr) == 0);
    CHECK(bide_blocking_create(&blocking, 1) == 0);
    CHECK(bide_thread_pool_create(&pool, 2) == 0);
    CHECK(bide::run(loop, sleeps(1ms)) == 0);
    CHECK(bide::run(loop, talks()) == 0);
    int accepted = bide::run(loop, accepts());
    CHECK(accepted == 0 || accepted == 77);
    CHECK(bide::run(loop, calls(blocking)) == 0);
    for (int i = 0; i < 100; i++)
        CHECK(bide::run(loop, goes(bide_thread_pool_scheduler(pool))) == 0);

    // A sleep of an hour is cancelled, and one is withdrawn.
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = {&bide_inline_scheduler, &stop, nullptr, nullptr, nullptr};
    bide_run_loop run_loop;
    bide_run_loop_init(&run_loop);
    context.scheduler = &run_loop.scheduler;
    bide_spawned spawned;
    auto hour = sleeps(1h);
    bide_spawn(&spawned, &context, hour.awaiter());
    bide_run_loop_run_ready(&run_loop);
    CHECK(!hour.done());
    bide_stop_request(&stop);
    bide_run_loop_run_ready(&run_loop);
    CHECK(hour.done() && hour.take() == -ECANCELED);
    context.stop = nullptr;
    {
        auto again = sleeps(1h);
        bide_spawn(&spawned, &context, again.awaiter());
        bide_run_loop_run_ready(&run_loop);
        CHECK(!again.done());
        bide_destroy(&spawned.root.frame);
        CHECK(again.done());
    }
    bide_run_loop_destroy(&run_loop);
    bide_thread_pool_destroy(pool);
    bide_blocking_destroy(blocking);
    bide_loop_destroy(loop);
    return 0;
}

/* ---- One wake is one post ---- */

struct counting_scheduler {
    bide_scheduler scheduler = {};
    bide_awaiter_chain ready = {};
    int posts = 0;
    counting_scheduler()
    {
        scheduler.post = [](bide_scheduler *s, bide_awaiter *first, bide_awaiter *last) {
            auto *self = reinterpret_cast<counting_scheduler *>(s);
            self->posts++;
            bide_awaiter_chain_append(&self->ready, first, last);
        };
        scheduler.one_thread = true;
    }
    void run()
    {
        while (bide_awaiter *awaiter = bide_awaiter_chain_take(&ready))
            bide_resume(awaiter->frame);
    }
};

int a_wake_is_one_post()
{
    counting_scheduler counting;
    bide_context context = bide_default_context;
    bide_event event;
    bide_spawned spawned;
    current_case = "posts";
    context.scheduler = &counting.scheduler;
    bide_event_init(&event, false);
    auto task = reads_status([&]() { return bide::wait(bide_event_wait, &event); });
    bide_spawn(&spawned, &context, task.awaiter());
    counting.run();
    CHECK(counting.posts == 1 && !task.done());
    bide_event_set(&event);
    CHECK(counting.posts == 2 && !task.done()); // not on the waker's stack
    counting.run();
    CHECK(counting.posts == 2 && task.done());

    // ... and for a coroutine of another promise type, in that context
    bide_event_reset(&event);
    counting.posts = 0;
    int status = WAITS;
    placed coroutine = stores_status_in(
        &context, [&] { return bide::wait(bide_event_wait, &event); }, status);
    bide_event_set(&event);
    CHECK(counting.posts == 1 && status == WAITS);
    counting.run();
    CHECK(counting.posts == 1 && status == 0);
    coroutine.handle.destroy();
    return 0;
}

/* ---- C and C++ await each other ---- */

bide::task<int> adds(int a, int b)
{
    co_return a + b;
}

struct c_task {
    bide_task task;
    bide::task<int> *inner; // awaited, `rounds` times
    int rounds;
    int total;
};

bide_coroutine(c_body)
{
    bide_begin(c_body, struct c_task * self);
    while (self->rounds-- > 0) {
        *self->inner = adds(self->total, 1);
        bide_try(self->inner->awaiter());
        self->total = self->inner->take();
    }
    bide_end();
}

// C++ awaits C, which awaits C++.
bide::task<int> awaits_c(int rounds)
{
    auto inner = adds(0, 0);
    c_task child = {{}, &inner, rounds, 0};
    (co_await bide::wait(bide_task_init(&child.task, &c_body))).value();
    co_return child.total;
}

struct fails {
    bide_task task;
};
bide_coroutine(fails_body)
{
    bide_begin(fails_body, struct fails * self);
    (void)self;
    bide_return(-ENOENT);
    bide_end();
}

bide::task<int> awaits_c_often(int rounds)
{
    int failed = 0;
    for (int i = 0; i < rounds; i++) {
        fails child;
        auto result = co_await bide::wait(bide_task_init(&child.task, &fails_body));
        failed += result.error() == -ENOENT;
    }
    co_return failed;
}

bide::task<int> awaits_cxx_often(int rounds)
{
    int total = 0;
    for (int i = 0; i < rounds; i++)
        total = co_await adds(total, 1);
    co_return total;
}

bide::task<int> deep(int depth)
{
    if (depth == 0)
        co_return 0;
    co_return 1 + co_await deep(depth - 1);
}

// Begins at once, and frees itself.
struct detached {
    struct promise_type {
        detached get_return_object()
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
            std::abort();
        }
    };
};

detached adds_beside(int &total)
{
    total = co_await adds(total, 1);
}

bide::task<> starts_one_beside(int &total)
{
    adds_beside(total);
    co_return;
}

bide::task<> starts_none()
{
    co_return;
}

detached sets_beside(bide_event &event)
{
    co_await starts_none();
    bide_event_set(&event);
}

// A body that blocks: what it has started beside it runs before that.
bide::task<int> blocks_for_another(auto wait)
{
    bide_event event;
    bide_event_init(&event, false);
    sets_beside(event);
    co_return wait(waits_for(event)).error();
}

// Each round, a task ends whose body has started another coroutine that awaits a task.
bide::task<int> starts_beside_often(int rounds)
{
    int total = 0;
    for (int i = 0; i < rounds; i++)
        co_await starts_one_beside(total);
    co_return total;
}

int c_and_cxx_await_each_other()
{
    // (each would need more than the stack if it grew)
    enum { ROUNDS = 200000 };
    current_case = "C and C++";
    CHECK(bide::sync_wait(awaits_c(ROUNDS)) == ROUNDS);
    CHECK(bide::sync_wait(awaits_c_often(ROUNDS)) == ROUNDS);
    CHECK(bide::sync_wait(awaits_cxx_often(ROUNDS)) == ROUNDS);
    CHECK(bide::sync_wait(deep(ROUNDS)) == ROUNDS);
    CHECK(bide::sync_wait(starts_beside_often(ROUNDS)) == ROUNDS);

    // Each way to block a thread.
    bide_loop *loop;
    bide_run_loop run_loop;
    CHECK(bide_loop_create(&loop, nullptr) == 0);
    bide_run_loop_init(&run_loop);
    using waits = bide::task<bide::result<>>;
    CHECK(bide::sync_wait(blocks_for_another(
              [](waits wait) { return bide::sync_wait(std::move(wait)); })) == 0);
    CHECK(bide::sync_wait(blocks_for_another(
              [&](waits wait) { return bide::run(loop, std::move(wait)); })) == 0);
    CHECK(bide::sync_wait(blocks_for_another(
              [&](waits wait) { return bide::run(&run_loop, std::move(wait)); })) == 0);
    bide_run_loop_destroy(&run_loop);
    bide_loop_destroy(loop);

    // From a coroutine of another promise type, which a plain function resumes.
    int total = 0, status = 0;
    auto from = [](int &t, int &s) -> eager {
        for (int i = 0; i < ROUNDS; i++) {
            t = co_await adds(t, 1);
            fails child;
            s += (co_await bide::wait(bide_task_init(&child.task, &fails_body))).error() == -ENOENT;
        }
    };
    eager coroutine = from(total, status);
    CHECK(coroutine.handle.done() && total == ROUNDS && status == ROUNDS);
    coroutine.handle.destroy();

    // A result with an error is the task's error in C.
    auto error = []() -> bide::task<bide::result<int>> {
        co_return bide::result<int>::failed(-EIO);
    };
    auto task = error();
    CHECK(bide_sync_wait(task.awaiter()) == -EIO);
    CHECK(task.take().error() == -EIO);
    CHECK(locals == 0);
    return 0;
}

/* ---- Destroying chains of C++ ---- */

bide::task<int> awaits_child(bide_event &event)
{
    local here;
    co_return (co_await waits_for(event)).error();
}

int chains_are_destroyed()
{
    bide_event event;
    bide_spawned spawned;
    current_case = "chains";
    bide_event_init(&event, false);
    { // from C: the waits are withdrawn, and the locals go with the task
        auto task = awaits_child(event);
        bide_spawn(&spawned, &bide_default_context, task.awaiter());
        CHECK(locals == 2 && !task.done());
        // backtraces go through them
        bide_backtrace_entry entries[4];
        CHECK(bide_backtrace(bide_innermost(&spawned.root.frame), entries, 4) >= 2);
        CHECK(entries[0].name == std::string("(C++ coroutine)") && !entries[0].running);
        CHECK(entries[0].waiting_for == std::string("bide_event_wait"));
        CHECK(entries[1].frame == reinterpret_cast<bide_frame *>(task.awaiter()));
        bide_destroy(&spawned.root.frame);
        CHECK(task.done());
    }
    CHECK(locals == 0);
    { // by the handle of a coroutine of another type
        auto waits = [](bide_event &e) -> eager {
            local l;
            (void)co_await awaits_child(e);
        };
        eager coroutine = waits(event);
        CHECK(locals == 3);
        coroutine.handle.destroy();
        CHECK(locals == 0);
    }
    { // one that never began
        auto task = awaits_child(event);
        auto nothing = starts_none();
        bool canceled = false;
        try {
            nothing.take();
        } catch (const std::system_error &error) {
            canceled = error.code().value() == ECANCELED;
        }
        CHECK(!task.done() && canceled);
    }
    { // within an operation of C
        auto waits = [](bide_event &e) -> eager {
            (void)co_await bide::with_stop(std::stop_token(), awaits_child(e));
        };
        eager coroutine = waits(event);
        CHECK(locals == 2);
        coroutine.handle.destroy();
        CHECK(locals == 0);
    }
    bide_event_set(&event); // nothing waits for it any more
    bide_event_destroy(&event);
    return 0;
}

/* ---- Exceptions ---- */

bide::task<int> throws(std::string what)
{
    throw std::runtime_error(what);
    co_return 0;
}

bide::task<std::string> catches()
{
    std::string caught;
    try {
        (void)co_await throws("a");
    } catch (const std::runtime_error &error) {
        caught += error.what();
    }
    try {
        (void)(co_await bide::with_timeout(1h, throws("b")));
    } catch (const std::runtime_error &error) {
        caught += error.what();
    }
    try {
        fails child;
        (co_await bide::wait(bide_task_init(&child.task, &fails_body))).value();
    } catch (const std::system_error &error) {
        caught += error.code().value() == ENOENT ? "c" : "?";
    }
    co_return caught;
}

// Makes an operation, and throws; counts its copies that have not been destroyed.
struct maker {
    int *alive;
    bide_event *event;
    maker(int &count, bide_event &e) : alive(&count), event(&e)
    {
        ++*alive;
    }
    maker(const maker &other) : alive(other.alive), event(other.event)
    {
        ++*alive;
    }
    ~maker()
    {
        --*alive;
    }
    bide_awaiter *operator()(bide_event_waiter *) const
    {
        throw 1;
    }
};

int exceptions_are_carried_across()
{
    current_case = "exceptions";
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    CHECK(bide::run(&loop, catches()) == "abc");
    bide_run_loop_destroy(&loop);
    bool caught = false;
    try {
        (void)bide::sync_wait(throws("d"));
    } catch (const std::runtime_error &error) {
        caught = error.what() == std::string("d");
    }
    CHECK(caught);

    // One that is thrown while an operation is made: what makes it is destroyed once.
    int alive = 0;
    bide_event event;
    bide_event_init(&event, false);
    {
        auto makes = [](maker make) -> bide::task<int> {
            try {
                (void)co_await bide::wait_with<bide_event_waiter>(make);
            } catch (int thrown) {
                co_return thrown;
            }
            co_return 0;
        };
        CHECK(bide::sync_wait(makes(maker(alive, event))) == 1);
    }
    CHECK(alive == 0);

    // One that would pass through C ends the program, with a message.
    int ends[2];
    std::fflush(stdout);
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        std::signal(SIGABRT, [](int) { _exit(42); });
        auto task = throws("through C");
        (void)bide_sync_wait(task.awaiter());
        _exit(0);
    }
    close(ends[1]);
    std::string said;
    char buffer[256];
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        said.append(buffer, static_cast<size_t>(n));
    close(ends[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK(said.find("an exception leaves a C++ task that C awaits") != std::string::npos);
    CHECK(said.find("through C") != std::string::npos);
    return 0;
}

/* ---- std::stop_token ---- */

int stop_tokens_are_bridged()
{
    current_case = "stop tokens";
    bide_event event;
    bide_event_init(&event, false);
    { // from std to bide: while it waits, before it begins, and by the awaiting coroutine's own source
        for (int how = 0; how < 3; how++) {
            std::stop_source source;
            bide_stop_source stop;
            bide_stop_source_init(&stop);
            bide_context context = bide_default_context;
            context.stop = &stop;
            auto outer = [](std::stop_token token, bide_event &e) -> bide::task<int> {
                auto result = co_await bide::with_stop(token, waits_for(e));
                co_return result ? result->error() : result.error();
            };
            auto task = outer(source.get_token(), event);
            bide_spawned spawned;
            if (how == 1)
                source.request_stop();
            bide_spawn(&spawned, &context, task.awaiter());
            CHECK(task.done() == (how == 1));
            if (how == 0)
                source.request_stop();
            else if (how == 2)
                bide_stop_request(&stop);
            CHECK(task.done() && task.take() == -ECANCELED);
        }
    }
    { // from bide to std
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        bide::stop_token_source bridge(&stop, bide_default_context);
        std::stop_token token = bridge.token();
        int called = 0;
        std::stop_callback callback(token, [&] { called++; });
        CHECK(!token.stop_requested() && called == 0);
        bide_stop_request(&stop);
        CHECK(token.stop_requested() && called == 1);
    }
    { // ... which never happens
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        bide::stop_token_source bridge(&stop, bide_default_context);
        CHECK(!bridge.token().stop_requested());
    }
    { // a callback that destroys the bridge
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        auto bridge = std::make_unique<bide::stop_token_source>(&stop, bide_default_context);
        std::stop_token token = bridge->token();
        std::stop_callback callback(token, [&] { bridge.reset(); });
        bide_stop_request(&stop);
        CHECK(bridge == nullptr && token.stop_requested());
    }
    return 0;
}

/* ---- Generators as ranges ---- */

struct count {
    bide_generator generator;
    int n, i;
    bool *ended;
};
bide_generator_coroutine(count_body)
{
    bide_begin(count_body, struct count * self);
    for (self->i = 0; self->i < self->n; self->i++)
        bide_yield(&self->i);
    bide_finally();
    *self->ended = true;
    bide_end();
}

int generators_are_ranges()
{
    current_case = "ranges";
    bool ended = false;
    count all = {{}, 5, 0, &ended};
    int sum = 0;
    for (int &value : bide::values<int>(bide_generator_init(&all.generator, &count_body)))
        sum += value;
    CHECK(sum == 10 && ended);
    ended = false;
    for (int &value : bide::values<int>(bide_generator_init(&all.generator, &count_body))) {
        if (value == 2)
            break;
    }
    CHECK(ended); // by the end of the range
    static_assert(std::input_iterator<bide::values<int>::iterator>);
    return 0;
}

/* ---- Threads ---- */

// Waits that end on other threads, as often as not before await_suspend has returned.
int waits_end_on_other_threads()
{
    current_case = "threads";
    bide_thread_pool *pool;
    CHECK(bide_thread_pool_create(&pool, 2) == 0);
    bide_auto_event there, back;
    bide_auto_event_init(&there, false);
    bide_auto_event_init(&back, false);
    enum { ROUNDS = 2000 };
    auto plays = [](bide_auto_event &mine, bide_auto_event &other, bool first) -> bide::task<int> {
        int rounds = 0;
        for (; rounds < ROUNDS; rounds++) {
            if (first)
                bide_auto_event_set(&other);
            (co_await bide::wait(bide_auto_event_wait, &mine)).value();
            if (!first)
                bide_auto_event_set(&other);
        }
        co_return rounds;
    };
    bide_context context = bide_default_context;
    context.scheduler = bide_thread_pool_scheduler(pool);
    bide_spawned spawned;
    auto second = plays(there, back, false);
    bide_spawn(&spawned, &context, second.awaiter());
    int status = WAITS;
    std::thread first([&] { status = bide::sync_wait(plays(back, there, true)); });
    first.join();
    CHECK(bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER) == 0);
    CHECK(status == ROUNDS && second.take() == ROUNDS);
    bide_thread_pool_destroy(pool);
    return 0;
}

/* ---- What does not compile ---- */

template <class Argument>
concept waits_for_event = requires(Argument argument)
{
    bide::wait(bide_event_wait, argument);
};
static_assert(waits_for_event<bide_event *>);
static_assert(!waits_for_event<void *> && !waits_for_event<bide_auto_event *>);

// (operations that wait refuses)
static_assert(bide::detail::is_needed_until_unlock<bide_mutex_waiter> &&
              bide::detail::is_needed_until_unlock<bide_barging_mutex_waiter> &&
              bide::detail::is_needed_until_unlock<bide_rw_lock_waiter> &&
              bide::detail::is_needed_until_unlock<bide_once_waiter> &&
              !bide::detail::is_needed_until_unlock<bide_event_waiter>);

/* ---- Sizes ---- */

// As many arguments as the longest of these operations has.
struct make {
    void *a, *b;
    size_t c;
    bide_awaiter *operator()(void *) const
    {
        return nullptr;
    }
};
template <class Waiter>
using operation_of = bide::operation<Waiter, make>;
template <class Waiter>
constexpr size_t over = sizeof(operation_of<Waiter>) - sizeof(Waiter);

#define SIZE(waiter)                                                             \
    static_assert(over<waiter> <= 6 * sizeof(void *));                           \
    std::printf("# %-28s %4zu bytes, %2zu of them beside the waiter\n", #waiter, \
                sizeof(operation_of<waiter>), over<waiter>)

void sizes()
{
    SIZE(bide_event_waiter);
    SIZE(bide_auto_event_waiter);
    SIZE(bide_semaphore_waiter);
    SIZE(bide_channel_waiter);
    SIZE(bide_sequence_waiter);
    SIZE(bide_claim);
    SIZE(bide_latch_waiter);
    SIZE(bide_sleep);
    SIZE(bide_io_operation);
    SIZE(bide_blocking_call);
}

} // namespace

int main()
{
    sizes();
    return each_operation() + on_a_loop() + a_wake_is_one_post() + c_and_cxx_await_each_other() +
           chains_are_destroyed() + exceptions_are_carried_across() + stop_tokens_are_bridged() +
           generators_are_ranges() + waits_end_on_other_threads();
}
