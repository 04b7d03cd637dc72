/*
 * The names of cppcoro, over bide: a bridge for programs that are being ported. Floor: coroutine.
 *
 *     #include <bide/cppcoro.hpp>              // instead of <cppcoro/task.hpp> and its neighbours
 *
 *     cppcoro::task<int> add(cppcoro::async_manual_reset_event &ready, int a, int b)
 *     {
 *         co_await ready;
 *         co_return a + b;
 *     }
 *     int total = cppcoro::sync_wait(add(ready, 2, 3));
 *
 * It has: task, make_task, shared_task, make_shared_task, generator, recursive_generator, async_generator,
 * sync_wait, when_all, when_all_ready, fmap, schedule_on, resume_on, single_consumer_event,
 * single_consumer_async_auto_reset_event, async_manual_reset_event, async_auto_reset_event, async_mutex,
 * async_mutex_lock, async_latch, async_scope, cancellation_source, cancellation_token,
 * cancellation_registration, operation_cancelled, static_thread_pool, io_service, io_work_scope,
 * inline_scheduler, round_robin_scheduler, on_scope_exit, on_scope_failure, on_scope_success, sequence_traits,
 * sequence_range, sequence_barrier, single_producer_sequencer, multi_producer_sequencer, awaitable_traits,
 * is_awaitable.
 *
 * It does not have these; the names of bide are in brackets: sockets and addresses [bide_descriptor, socket.h,
 * address.h; bide::recv, bide::send], files [file.h; bide::read, bide::write].
 *
 * All names are in bide::cppcoro, so that a program may link with cppcoro too. `cppcoro` is an alias for that
 * namespace, which cannot be opened under that name; compile with -DBIDE_CPPCORO_ALIAS=0 in files that include
 * headers of cppcoro itself.
 *
 * A coroutine awaits these types and those of bide.hpp alike. A cppcoro::task has no scheduler of its own: it
 * resumes on the thread that ends its wait. A bide::task that awaits one of these resumes on its scheduler.
 *
 * Differences from what cppcoro documents:
 *
 *     set(), unlock(),         A coroutine that is running on the thread suspends, or ends, before the
 *     count_down(), publish()  coroutines that it wakes are resumed. Called by other code, these functions
 *                              resume them before they return, as in cppcoro. A coroutine must not block its
 *                              thread to wait for a coroutine that it has woken.
 *     g++                      A coroutine of another type that is resumed inside a task's body starts a task
 *                              that it awaits only when the body suspends, ends, or calls sync_wait. So a body
 *                              that runs an event loop of your own, which resumes coroutines, hangs: run the
 *                              loop outside of coroutines.
 *     order                    Waiters resume in the order in which they came.
 *     ready operations         They do not suspend, until the coroutine has spent its budget (BIDE_BUDGET).
 *     stack                    Loops of awaits take a constant stack, with g++ and without optimization too.
 *     cancelled waits          Only a bide::task has a stop source. If that, or its deadline, ends a wait for an
 *                              event, mutex, latch or sequence, the wait throws operation_cancelled. Waits for a
 *                              task, a shared task, a generator, when_all or join() go on until that has ended.
 *     async_generator          begin() starts the coroutine when its result is awaited.
 *     when_all                 Results in a tuple are values, as in cppcoro's code; its documentation has
 *                              references.
 *     async_latch              A count below zero is allowed: the latch stays ready.
 *     async_scope              join() may be awaited again after it has ended. Two coroutines that await it at
 *                              once, spawn() after it, or a destructor while operations run, end the program
 *                              with a message.
 *     static_thread_pool       A pool of bide: its order of ready coroutines is not specified.
 *     io_service               One thread processes its events, always the same one. There is no
 *                              process_one_event(), nor process_one_pending_event(). A count of events is one of
 *                              resumptions, some of them of the service itself.
 *     sequences                SEQUENCE is std::size_t, and TRAITS is sequence_traits. A sequence_range has
 *                              input iterators.
 *     buffer sizes             One that is no power of two throws std::system_error (EINVAL).
 *     destructors              An event, mutex, latch or sequencer that is destroyed while a coroutine waits for
 *                              it ends the program with a message, where BIDE_DEBUG is 1.
 *     alignment                Compilers align the frames of coroutines to 16 bytes. sequence_barrier and the
 *                              sequencers need a cache line, as in cppcoro: do not make them local variables
 *                              of coroutines.
 *
 * Costs: a wait for an object has the waiter of C and 48 bytes in the coroutine's frame, and allocates
 * nothing; a wait for a task has 72 bytes there. fmap, schedule_on, schedule_after, make_task, sync_wait and
 * spawn allocate a frame, resume_on two, when_all one for each operand. A wait for a sequence on a scheduler that is not of bide
 * allocates one. async_mutex is a bide_semaphore, because unlock() has no key.
 *
 * bide.hpp has the compilers. Why it is correct: a wait for an object of bide is an operation of bide.hpp. The
 * coroutines here are resumed as frames of bide, by symmetric transfer or by a post to the waiting coroutine's
 * scheduler. Nothing of a wait is touched once it may have ended elsewhere.
 */
#ifndef BIDE_CPPCORO_HPP
#define BIDE_CPPCORO_HPP

#include "bide/bide.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <tuple>
#include <vector>

#ifndef BIDE_CPPCORO_ALIAS
#define BIDE_CPPCORO_ALIAS 1
#endif

namespace bide::cppcoro
{

/*
 * A coroutine reports by it that it has stopped on request. Waits of a bide::task throw it when they are cancelled.
 */
class operation_cancelled : public std::exception
{
  public:
    const char *what() const noexcept override
    {
        return "operation cancelled";
    }
};

/* Awaiting a task that has no coroutine throws it. */
class broken_promise : public std::exception
{
  public:
    const char *what() const noexcept override
    {
        return "broken promise";
    }
};

/*
 * clang 14 cannot compile a coroutine that is a template under its function sanitizer.
 */
#if defined __clang__
#define BIDE_HPP_COROUTINE_ __attribute__((no_sanitize("function")))
#else
#define BIDE_HPP_COROUTINE_
#endif

namespace detail
{

using bide::detail::belongs_to_bide;
using bide::detail::resumer;

/* The awaiter of an expression: operator co_await, if there is one, is applied. */
template <class T>
concept has_member_co_await = requires(T &&value)
{
    static_cast<T &&>(value).operator co_await();
};
template <class T>
concept has_free_co_await = requires(T &&value)
{
    operator co_await(static_cast<T &&>(value));
};
template <class T>
concept is_awaiter = requires(std::remove_reference_t<T> &value)
{
    {
        value.await_ready()
        } -> std::convertible_to<bool>;
    value.await_resume();
};

template <class T>
decltype(auto) get_awaiter(T &&value)
{
    if constexpr (has_member_co_await<T>)
        return std::forward<T>(value).operator co_await();
    else if constexpr (has_free_co_await<T>)
        return operator co_await(std::forward<T>(value));
    else
        return std::forward<T>(value);
}

template <class T>
concept awaitable = has_member_co_await<T> || has_free_co_await<T> || is_awaiter<T>;

template <class T>
struct traits {
};
template <awaitable T>
struct traits<T> {
    using awaiter_t = decltype(get_awaiter(std::declval<T>()));
    using await_result_t =
        decltype(std::declval<std::remove_reference_t<awaiter_t> &>().await_resume());
};

} // namespace detail

/* Whether a value of type T can be awaited. */
template <class T>
struct is_awaitable : std::bool_constant<detail::awaitable<T>> {
};
template <class T>
inline constexpr bool is_awaitable_v = is_awaitable<T>::value;

/* The types of `co_await` of a T: awaiter_t and await_result_t; none if T cannot be awaited. */
template <class T>
struct awaitable_traits : detail::traits<T> {
};

namespace detail
{

template <class T>
using result_of = typename awaitable_traits<T>::await_result_t;

/* A result that is kept: an rvalue reference becomes a value. */
template <class R>
using kept =
    std::conditional_t<std::is_rvalue_reference_v<R>, std::remove_cvref_t<R>, std::remove_cv_t<R>>;

inline constexpr bide_awaiter_ops wait_ops = {
    .ready = nullptr,
    .suspend = nullptr,
    .resume = nullptr,
    .cancel = nullptr,
    .withdraw = nullptr,
    .name = "(C++ task)",
    .attempt = nullptr,
    .undo = bide_undo(),
};

/* The wait of a coroutine for another coroutine of C++. It stays in the waiting coroutine. */
class continuation
{
    resumer own_;
    bide_frame *by_ = nullptr;
    bide_awaiter operation_;

  public:
    template <class Promise>
    void set(std::coroutine_handle<Promise> handle) noexcept
    {
        resumer *by = &own_;
        if constexpr (belongs_to_bide<Promise>) {
            by = &handle.promise();
        } else {
            own_.frame.awaiter.frame = nullptr;
            own_.frame.context = &bide_default_context;
            if constexpr (bide::detail::has_context<Promise>)
                own_.frame.context = handle.promise().wait_context();
        }
        by->handle = handle;
        by->frame.awaiter.ops = &bide::detail::wait_point.ops;
        by->frame.awaiter.link = &operation_;
        operation_.ops = &wait_ops;
        operation_.link = nullptr;
        operation_.frame = &by->frame;
        by_ = &by->frame;
    }

    /* It resumes on `context`'s scheduler, which posts it. */
    void post(const bide_context &context) noexcept
    {
        by_->context = &context;
        bide_wake_one(&operation_);
    }
    void post() noexcept
    {
        bide_wake_one(&operation_);
    }

    /* The awaited task has ended. Returns the coroutine that runs next. The continuation is not touched after that. */
    std::coroutine_handle<> end() noexcept
    {
        if (by_->context->scheduler == bide_default_context.scheduler)
            return bide::detail::transfer(bide::detail::resumer_of(by_));
        bide_wake_one(&operation_);
        return std::noop_coroutine();
    }

    /* It resumes here, and runs until it suspends; on another scheduler of bide, it is posted. */
    void resume() noexcept
    {
        if (by_->context->scheduler == bide_default_context.scheduler)
            bide_resume(by_);
        else
            bide_wake_one(&operation_);
    }

    void ended() noexcept
    {
        if (by_ != nullptr && by_ != &own_.frame)
            by_->awaiter.link = &bide_running_;
        by_ = nullptr;
    }
};

/* The head of a promise: it is started and resumed as a frame of bide. */
struct runner : resumer {
    void set_start(std::coroutine_handle<> self) noexcept
    {
        handle = self;
        frame.awaiter.ops = &bide::detail::start_point.ops;
        frame.awaiter.link = nullptr;
        frame.awaiter.frame = nullptr;
        frame.context = &bide_default_context;
        frame.error = 0;
    }
    /* Runs it here until it suspends. */
    void start() noexcept
    {
        bide_resume(&frame);
    }
};

/* The outcome of a coroutine. */
class outcome_base
{
    std::exception_ptr exception_;

  public:
    void unhandled_exception() noexcept
    {
        exception_ = std::current_exception();
    }
    void check() const
    {
        if (exception_)
            std::rethrow_exception(exception_);
    }
};

template <class T>
class outcome : public outcome_base
{
    std::optional<T> value_;

  public:
    template <class U>
    requires std::is_constructible_v<T, U &&>
    void return_value(U &&value)
    {
        value_.emplace(std::forward<U>(value));
    }
    T &get() &
    {
        check();
        return *value_;
    }
    T &&get() &&
    {
        check();
        return std::move(*value_);
    }
};

template <class T>
class outcome<T &> : public outcome_base
{
    T *value_ = nullptr;

  public:
    void return_value(T &value) noexcept
    {
        value_ = std::addressof(value);
    }
    T &get() const
    {
        check();
        return *value_;
    }
};

template <>
class outcome<void> : public outcome_base
{
  public:
    void return_void() const noexcept
    {
    }
    void get() const
    {
        check();
    }
};

/* The owner of a coroutine. */
template <class Promise>
class owner
{
    std::coroutine_handle<Promise> handle_;

  public:
    owner() noexcept = default;
    explicit owner(std::coroutine_handle<Promise> handle) noexcept : handle_(handle)
    {
    }
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    owner &operator=(owner &&other) noexcept
    {
        owner before(std::move(*this));
        handle_ = std::exchange(other.handle_, nullptr);
        return *this;
    }
    ~owner()
    {
        if (handle_)
            handle_.destroy();
    }
    std::coroutine_handle<Promise> get() const noexcept
    {
        return handle_;
    }
    void swap(owner &other) noexcept
    {
        std::swap(handle_, other.handle_);
    }
};

/* A wait for an operation of C that has no result: it throws if it is cancelled, also by a timeout. */
inline void check(int error)
{
    if (error == -ECANCELED || error == -ETIMEDOUT)
        throw operation_cancelled();
    if (error != 0)
        throw std::system_error(-error, std::generic_category());
}

/* The same operations, without a cancellation: the wait stays until it has ended. (Those of an event are meant.) */
inline const bide_awaiter_ops *uncancellable(const bide_awaiter_ops *ops) noexcept
{
    static const bide_awaiter_ops copy = [ops] {
        bide_awaiter_ops made = *ops;
        made.cancel = nullptr;
        return made;
    }();
    return &copy;
}

template <class Waiter, class Make>
class [[nodiscard]] operation : public bide::operation<Waiter, Make>
{
  public:
    explicit operation(Make make) : bide::operation<Waiter, Make>(make)
    {
    }
    void await_resume()
    {
        check(bide::operation<Waiter, Make>::await_resume().error());
    }
};

/* The operation of C that waits for an object, by the object's type. */
inline bide_awaiter *begin(bide_single_consumer_event_waiter *waiter,
                           bide_single_consumer_event *event) noexcept
{
    return bide_single_consumer_event_wait(waiter, event);
}
inline bide_awaiter *begin(bide_single_consumer_event_waiter *waiter,
                           bide_single_consumer_auto_event *event) noexcept
{
    return bide_single_consumer_auto_event_wait(waiter, event);
}
inline bide_awaiter *begin(bide_event_waiter *waiter, bide_event *event) noexcept
{
    return bide_event_wait(waiter, event);
}
inline bide_awaiter *begin(bide_auto_event_waiter *waiter, bide_auto_event *event) noexcept
{
    return bide_auto_event_wait(waiter, event);
}
inline bide_awaiter *begin(bide_semaphore_waiter *waiter, bide_semaphore *semaphore) noexcept
{
    return bide_semaphore_acquire(waiter, semaphore);
}

template <class Object>
struct maker {
    Object *object;

    template <class Waiter>
    bide_awaiter *operator()(Waiter *waiter) const noexcept
    {
        return begin(waiter, object);
    }
};

template <class Waiter, class Object>
using wait_for = operation<Waiter, maker<Object>>;

} // namespace detail

/*
 * A coroutine that starts when it is awaited. It may be awaited again once it has ended, which gives the same result; by
 * one coroutine at a time. The result of a named task is an lvalue, that of a temporary an rvalue.
 * Threads: one at a time. Suspends: unless it has ended. Progress: that of the coroutine.
 */
template <class T = void>
class [[nodiscard]] task
{
  public:
    struct promise_type : detail::runner, detail::outcome<T> {
        detail::continuation *waiter = nullptr;

        task get_return_object() noexcept
        {
            auto self = std::coroutine_handle<promise_type>::from_promise(*this);
            this->set_start(self);
            return task(self);
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        struct final_awaiter {
            bool await_ready() const noexcept
            {
                return false;
            }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> handle) const noexcept
            {
                return handle.promise().waiter->end();
            }
            void await_resume() const noexcept
            {
            }
        };
        final_awaiter final_suspend() const noexcept
        {
            return {};
        }
    };
    using value_type = T;

    task() noexcept = default;

    /* Whether it has ended, or there is no coroutine: awaiting it does not suspend. */
    bool is_ready() const noexcept
    {
        return !owner_.get() || owner_.get().done();
    }

    auto operator co_await() const &noexcept
    {
        struct awaiter : wait {
            decltype(auto) await_resume()
            {
                return this->finish().get();
            }
        };
        return awaiter{owner_.get()};
    }
    auto operator co_await() const &&noexcept
    {
        struct awaiter : wait {
            decltype(auto) await_resume()
            {
                return std::move(static_cast<detail::outcome<T> &>(this->finish())).get();
            }
        };
        return awaiter{owner_.get()};
    }

    /* Waits until it has ended. Throws nothing, and leaves the result where it is. */
    auto when_ready() const noexcept
    {
        struct awaiter : wait {
            void await_resume() noexcept
            {
                this->waiting.ended();
            }
        };
        return awaiter{owner_.get()};
    }

    void swap(task &other) noexcept
    {
        owner_.swap(other.owner_);
    }
    friend void swap(task &a, task &b) noexcept
    {
        a.swap(b);
    }

  private:
    struct wait {
        std::coroutine_handle<promise_type> handle;
        detail::continuation waiting = {};

        bool await_ready() const noexcept
        {
            return !handle || handle.done();
        }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> by) noexcept
        {
            waiting.set(by);
            handle.promise().waiter = &waiting;
            return bide::detail::transfer(&handle.promise());
        }
        promise_type &finish()
        {
            waiting.ended();
            if (!handle)
                throw broken_promise();
            return handle.promise();
        }
    };

    explicit task(std::coroutine_handle<promise_type> handle) noexcept : owner_(handle)
    {
    }

    detail::owner<promise_type> owner_;
};

/*
 * A task with the result of `awaitable`, whatever the type of that is.
 * Threads: any. Suspends: as `awaitable`. Progress: that of `awaitable`.
 */
template <class Awaitable, class Result = detail::kept<detail::result_of<Awaitable>>>
BIDE_HPP_COROUTINE_ task<Result> make_task(Awaitable awaitable)
{
    co_return co_await static_cast<Awaitable &&>(awaitable);
}

/*
 * A task whose result any number of coroutines await, also at once. It starts when it is first awaited, on that thread;
 * waiters resume on the thread that ends it. Copies refer to the same coroutine, which is freed with the last of them.
 * Threads: any, for const members; the last copy must not go before the coroutine has ended, once it has begun.
 * Suspends: unless it has ended. Progress: that of the coroutine.
 */
template <class T = void>
class [[nodiscard]] shared_task
{
  public:
    struct promise_type : detail::runner, detail::outcome<T> {
        std::atomic<std::size_t> references = 1;
        std::atomic<bool> is_started = false;
        bide_event ended;

        promise_type() noexcept
        {
            bide_event_init(&ended, false);
        }
        shared_task get_return_object() noexcept
        {
            auto self = std::coroutine_handle<promise_type>::from_promise(*this);
            this->set_start(self);
            return shared_task(self);
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        struct final_awaiter {
            bool await_ready() const noexcept
            {
                return false;
            }
            void await_suspend(std::coroutine_handle<promise_type> handle) const noexcept
            {
                bide_event_set(&handle.promise().ended); /* it may be destroyed from here on */
            }
            void await_resume() const noexcept
            {
            }
        };
        final_awaiter final_suspend() const noexcept
        {
            return {};
        }
    };
    using value_type = T;

    shared_task() noexcept = default;
    shared_task(const shared_task &other) noexcept : handle_(other.handle_)
    {
        if (handle_)
            handle_.promise().references.fetch_add(1, std::memory_order_relaxed);
    }
    shared_task(shared_task &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    shared_task &operator=(shared_task other) noexcept
    {
        swap(other);
        return *this;
    }
    ~shared_task()
    {
        /* acq_rel: the last owner destroys what the others have used */
        if (handle_ && handle_.promise().references.fetch_sub(1, std::memory_order_acq_rel) == 1)
            handle_.destroy();
    }

    void swap(shared_task &other) noexcept
    {
        std::swap(handle_, other.handle_);
    }
    friend void swap(shared_task &a, shared_task &b) noexcept
    {
        a.swap(b);
    }
    friend bool operator==(const shared_task &a, const shared_task &b) noexcept
    {
        return a.handle_ == b.handle_;
    }

    bool is_ready() const noexcept
    {
        return !handle_ || bide_event_is_set(&handle_.promise().ended);
    }

    auto operator co_await() const noexcept
    {
        struct awaiter : wait {
            using wait::wait;
            decltype(auto) await_resume()
            {
                this->finish();
                if (!this->task)
                    throw broken_promise();
                return static_cast<detail::outcome<T> &>(this->task.promise()).get();
            }
        };
        return awaiter(handle_);
    }

    /* Waits until it has ended. Throws nothing, and leaves the result where it is. */
    auto when_ready() const noexcept
    {
        struct awaiter : wait {
            using wait::wait;
            void await_resume()
            {
                this->finish();
            }
        };
        return awaiter(handle_);
    }

  private:
    struct wait : bide::detail::wait_base {
        std::coroutine_handle<promise_type> task;
        bide_event_waiter waiter;

        explicit wait(std::coroutine_handle<promise_type> handle) noexcept
            : wait_base(nullptr), task(handle)
        {
        }
        wait(wait &&other) noexcept : wait_base(other), task(other.task)
        {
        }
        bool await_ready() const noexcept
        {
            return !task || bide_event_is_set(&task.promise().ended);
        }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept
        {
            promise_type *promise = &task.promise();
            bool is_first = !promise->is_started.exchange(true, std::memory_order_relaxed);
            bide_awaiter *end = bide_event_wait(&waiter, &promise->ended);
            end->ops = detail::uncancellable(end->ops); /* as a wait for a task */
            own_.frame.awaiter.link = end;
            if (!bide::detail::start(this->choose(handle), handle, this->awaiter()) && !is_first)
                return handle;
            /* If this wait starts it, it has not ended, and the wait was not cancelled: it waits. */
            return is_first ? bide::detail::transfer(promise) : std::noop_coroutine();
        }
        void finish()
        {
            bool has_waited = by_ != nullptr;
            this->ended();
            if (has_waited)
                check(bide_awaiter_resume(this->awaiter(), this->awaiter()->ops));
        }
        static void check(int status)
        {
            detail::check(status);
        }
    };

    explicit shared_task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle)
    {
    }

    std::coroutine_handle<promise_type> handle_;
};

/*
 * A shared task with the result of `awaitable`.
 * Threads: any. Suspends: as `awaitable`. Progress: that of `awaitable`.
 */
template <class Awaitable, class Result = detail::kept<detail::result_of<Awaitable>>>
BIDE_HPP_COROUTINE_ shared_task<Result> make_shared_task(Awaitable awaitable)
{
    co_return co_await static_cast<Awaitable &&>(awaitable);
}

namespace detail
{

/* The base of the promises of starters. */
struct starter_promise : runner {
    struct ender {
        bool await_ready() const noexcept
        {
            return false;
        }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> handle) const noexcept
        {
            bide_event_set(&handle.promise().ended);
        }
        void await_resume() const noexcept
        {
        }
    };

    bide_event ended;

    starter_promise() noexcept
    {
        bide_event_init(&ended, false);
    }
    std::suspend_always initial_suspend() const noexcept
    {
        return {};
    }
    ender final_suspend() const noexcept
    {
        return {};
    }
};

/* It keeps where the result is. The value is in the coroutine, which continues when the thread has taken it. */
template <class Result>
struct starter_result : starter_promise, outcome_base {
    std::remove_reference_t<Result> *result = nullptr;

    ender yield_value(std::remove_reference_t<Result> &&value) noexcept
        requires(!std::is_lvalue_reference_v<Result>)
    {
        result = std::addressof(value);
        return {};
    }
    ender yield_value(Result value) noexcept requires std::is_lvalue_reference_v<Result>
    {
        result = std::addressof(value);
        return {};
    }
    void return_void() const noexcept
    {
    }
    Result take()
    {
        check();
        return static_cast<Result &&>(*result);
    }
};
template <>
struct starter_result<void> : starter_promise, outcome<void> {
    void take()
    {
        check();
    }
};

/* A coroutine that a thread waits for. */
template <class Result>
class starter
{
  public:
    struct promise_type : starter_result<Result> {
        starter get_return_object() noexcept
        {
            auto self = std::coroutine_handle<promise_type>::from_promise(*this);
            this->set_start(self);
            return starter(self);
        }
    };

    explicit starter(std::coroutine_handle<promise_type> handle) noexcept : owner_(handle)
    {
    }
    Result run()
    {
        promise_type &promise = owner_.get().promise();
        bide::detail::flush_turn();
        promise.start();
        bide::detail::flush_turn();
        (void)bide_event_wait_blocking(&promise.ended, BIDE_FOREVER);
        return promise.take();
    }

  private:
    owner<promise_type> owner_;
};

template <class Result, class Awaitable>
BIDE_HPP_COROUTINE_ starter<Result> start_waiting(Awaitable &&awaitable)
{
    if constexpr (std::is_void_v<Result>)
        co_await std::forward<Awaitable>(awaitable);
    else
        co_yield co_await std::forward<Awaitable>(awaitable);
}

} // namespace detail

/*
 * Awaits `awaitable` in a new coroutine on this thread, and blocks the thread until that has ended. Returns the result,
 * or throws the exception.
 * Threads: any but that of a loop. Progress: blocks.
 */
template <class Awaitable>
auto sync_wait(Awaitable &&awaitable) -> detail::result_of<Awaitable &&>
{
    return detail::start_waiting<detail::result_of<Awaitable &&>, Awaitable>(
               std::forward<Awaitable>(awaitable))
        .run();
}

namespace detail
{

/* The result of an operation that has none, in a tuple. */
struct void_value {
};

struct all_counter {
    std::atomic<std::size_t> left = 0;
    continuation waiting;

    /* Whether it was the last. acq_rel: the last sees what the others did */
    bool count_down() noexcept
    {
        return left.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
};

/* One of several operations that are awaited at once. */
template <class Result>
class when_all_task
{
  public:
    struct promise_type : runner, outcome<Result> {
        all_counter *counter = nullptr;

        when_all_task get_return_object() noexcept
        {
            auto self = std::coroutine_handle<promise_type>::from_promise(*this);
            this->set_start(self);
            return when_all_task(self);
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        struct final_awaiter {
            bool await_ready() const noexcept
            {
                return false;
            }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> handle) const noexcept
            {
                all_counter *all = handle.promise().counter;
                return all->count_down() ? all->waiting.end() : std::noop_coroutine();
            }
            void await_resume() const noexcept
            {
            }
        };
        final_awaiter final_suspend() const noexcept
        {
            return {};
        }
    };

    /* The result of the operation, or its exception. */
    decltype(auto) result() &
    {
        return owner_.get().promise().get();
    }
    decltype(auto) result() &&
    {
        return std::move(static_cast<outcome<Result> &>(owner_.get().promise())).get();
    }

    void start(all_counter *all) noexcept
    {
        promise_type &promise = owner_.get().promise();
        promise.counter = all;
        promise.start();
    }

    /* For when_all. */
    decltype(auto) value() &
    {
        if constexpr (std::is_void_v<Result>) {
            result();
            return void_value();
        } else {
            return result();
        }
    }
    decltype(auto) value() &&
    {
        if constexpr (std::is_void_v<Result>) {
            result();
            return void_value();
        } else {
            return std::move(*this).result();
        }
    }

  private:
    explicit when_all_task(std::coroutine_handle<promise_type> handle) noexcept : owner_(handle)
    {
    }
    owner<promise_type> owner_;
};

template <class Awaitable>
BIDE_HPP_COROUTINE_ when_all_task<kept<result_of<Awaitable>>>
make_when_all_task(Awaitable awaitable)
{
    co_return co_await static_cast<Awaitable &&>(awaitable);
}

template <class... Tasks>
void start_all(std::tuple<Tasks...> &tasks, all_counter *counter) noexcept
{
    std::apply([counter](auto &...task) { (task.start(counter), ...); }, tasks);
}
template <class Task>
void start_all(std::vector<Task> &tasks, all_counter *counter) noexcept
{
    for (Task &task : tasks)
        task.start(counter);
}
template <class... Tasks>
std::size_t count_of(const std::tuple<Tasks...> &) noexcept
{
    return sizeof...(Tasks);
}
template <class Task>
std::size_t count_of(const std::vector<Task> &tasks) noexcept
{
    return tasks.size();
}

/* Results for when_all_ready and when_all. */
struct as_tasks {
    /* A reference to those of an lvalue. */
    template <class Tasks>
    Tasks operator()(Tasks &&tasks) const
    {
        return std::forward<Tasks>(tasks);
    }
};
struct as_values {
    template <class... Tasks>
    auto operator()(std::tuple<Tasks...> &tasks) const
    {
        return std::apply([](auto &...task) { return std::make_tuple(task.value()...); }, tasks);
    }
    template <class... Tasks>
    auto operator()(std::tuple<Tasks...> &&tasks) const
    {
        return std::apply([](auto &...task) { return std::make_tuple(std::move(task).value()...); },
                          tasks);
    }
    template <class Result>
    auto operator()(std::vector<when_all_task<Result>> &tasks) const
    {
        return values<Result>(tasks, [](auto &task) -> decltype(auto) { return task.result(); });
    }
    template <class Result>
    auto operator()(std::vector<when_all_task<Result>> &&tasks) const
    {
        return values<Result>(
            tasks, [](auto &task) -> decltype(auto) { return std::move(task).result(); });
    }

  private:
    template <class Result, class Take>
    static auto values(std::vector<when_all_task<Result>> &tasks, Take take)
    {
        if constexpr (std::is_void_v<Result>) {
            for (auto &task : tasks)
                take(task);
        } else {
            std::vector<
                std::conditional_t<std::is_lvalue_reference_v<Result>,
                                   std::reference_wrapper<std::remove_reference_t<Result>>, Result>>
                taken;
            taken.reserve(tasks.size());
            for (auto &task : tasks)
                taken.emplace_back(take(task));
            return taken;
        }
    }
};

template <class Tasks, class Results>
class [[nodiscard]] when_all_operation
{
    Tasks tasks_;
    bool has_ended_ = false;

    /* Reference: to the tasks, as an lvalue or an rvalue. */
    template <class Reference>
    struct wait {
        when_all_operation *operation;
        all_counter counter = {};

        bool await_ready() const noexcept
        {
            return operation->has_ended_ || count_of(operation->tasks_) == 0;
        }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> handle) noexcept
        {
            /* One more, so that it does not resume while they are being started. */
            counter.left.store(count_of(operation->tasks_) + 1, std::memory_order_relaxed);
            counter.waiting.set(handle);
            start_all(operation->tasks_, &counter);
            return !counter.count_down();
        }
        decltype(auto) await_resume()
        {
            counter.waiting.ended();
            operation->has_ended_ = true;
            return Results()(static_cast<Reference>(operation->tasks_));
        }
    };

  public:
    explicit when_all_operation(Tasks tasks) : tasks_(std::move(tasks))
    {
    }
    auto operator co_await() &noexcept
    {
        return wait<Tasks &>{this};
    }
    auto operator co_await() &&noexcept
    {
        return wait<Tasks &&>{this};
    }
};

/* The copy of an operand that is awaited. That of a std::reference_wrapper is the reference: the operand itself. */
template <class Awaitable>
struct operand_of {
    using type = Awaitable;
};
template <class Awaitable>
struct operand_of<std::reference_wrapper<Awaitable>> {
    using type = Awaitable &;
};
template <class Awaitable>
using operand = typename operand_of<std::remove_cvref_t<Awaitable>>::type;

template <class Results, class... Awaitables>
auto all_of(Awaitables &&...awaitables)
{
    using tasks = std::tuple<when_all_task<kept<result_of<operand<Awaitables>>>>...>;
    return when_all_operation<tasks, Results>(
        tasks(make_when_all_task<operand<Awaitables>>(std::forward<Awaitables>(awaitables))...));
}
template <class Results, class Awaitable>
auto all_of_vector(std::vector<Awaitable> awaitables)
{
    std::vector<when_all_task<kept<result_of<operand<Awaitable>>>>> tasks;
    tasks.reserve(awaitables.size());
    for (Awaitable &awaitable : awaitables)
        tasks.push_back(make_when_all_task<operand<Awaitable>>(std::move(awaitable)));
    return when_all_operation<decltype(tasks), Results>(std::move(tasks));
}

} // namespace detail

/*
 * Awaits all of them at once, each started in turn on the awaiting thread; resumes on the thread of the last that ends.
 * They are moved or copied, except one that std::ref names, which is awaited as an lvalue.
 * The result is a std::tuple, or a std::vector, of objects whose result() returns the result of one or throws its
 * exception. It allocates a coroutine for each.
 * Threads: any. Suspends: as the operations. Progress: that of the operations.
 */
template <class... Awaitables>
requires(detail::awaitable<detail::operand<Awaitables>> &&...) auto when_all_ready(
    Awaitables &&...awaitables)
{
    return detail::all_of<detail::as_tasks>(std::forward<Awaitables>(awaitables)...);
}
template <class Awaitable>
auto when_all_ready(std::vector<Awaitable> awaitables)
{
    return detail::all_of_vector<detail::as_tasks>(std::move(awaitables));
}

/*
 * The same with the results themselves: values in a tuple, also of references; in a vector, a std::reference_wrapper for a
 * reference, to which the operand belongs if it is a shared task. A result is copied if the operation is awaited as an
 * lvalue. When all have ended, one of the exceptions is thrown, if there is one.
 * Threads: any. Suspends: as the operations. Progress: that of the operations.
 */
template <class... Awaitables>
requires(detail::awaitable<detail::operand<Awaitables>> &&...) auto when_all(
    Awaitables &&...awaitables)
{
    return detail::all_of<detail::as_values>(std::forward<Awaitables>(awaitables)...);
}
template <class Awaitable>
auto when_all(std::vector<Awaitable> awaitables)
{
    return detail::all_of_vector<detail::as_values>(std::move(awaitables));
}

/*
 * An event for one waiter at a time, set until it is reset: bide_single_consumer_event.
 * Threads: any. Suspends: set and reset never; a wait, if it is not set. Progress: as in C.
 */
class single_consumer_event
{
    mutable bide_single_consumer_event event_;

  public:
    explicit(false) single_consumer_event(bool initially_set = false) noexcept
    {
        bide_single_consumer_event_init(&event_, initially_set);
    }
    ~single_consumer_event()
    {
        bide_single_consumer_event_destroy(&event_);
    }
    single_consumer_event(const single_consumer_event &) = delete;
    single_consumer_event &operator=(const single_consumer_event &) = delete;

    bool is_set() const noexcept
    {
        return bide_single_consumer_event_is_set(&event_);
    }
    void set()
    {
        bide_single_consumer_event_set(&event_);
    }
    void reset() noexcept
    {
        bide_single_consumer_event_reset(&event_);
    }
    auto operator co_await() const noexcept
    {
        return detail::wait_for<bide_single_consumer_event_waiter, bide_single_consumer_event>(
            {&event_});
    }
};

/*
 * An event for one waiter at a time; a set lets one wait pass: bide_single_consumer_auto_event.
 * Threads: any. Suspends: set never; a wait, if it is not set. Progress: as in C.
 */
class single_consumer_async_auto_reset_event
{
    mutable bide_single_consumer_auto_event event_;

  public:
    explicit(false) single_consumer_async_auto_reset_event(bool initially_set = false) noexcept
    {
        bide_single_consumer_auto_event_init(&event_, initially_set);
    }
    ~single_consumer_async_auto_reset_event()
    {
        bide_single_consumer_auto_event_destroy(&event_);
    }
    single_consumer_async_auto_reset_event(const single_consumer_async_auto_reset_event &) = delete;
    single_consumer_async_auto_reset_event &
    operator=(const single_consumer_async_auto_reset_event &) = delete;

    void set() noexcept
    {
        bide_single_consumer_auto_event_set(&event_);
    }
    auto operator co_await() const noexcept
    {
        return detail::wait_for<bide_single_consumer_event_waiter, bide_single_consumer_auto_event>(
            {&event_});
    }
};

using async_manual_reset_event_operation = detail::wait_for<bide_event_waiter, bide_event>;

/*
 * An event for any number of waiters, set until it is reset: bide_event. Nothing waits for it when it is destroyed.
 * Threads: any. Suspends: set and reset never; a wait, if it is not set. Progress: as in C.
 */
class async_manual_reset_event
{
    mutable bide_event event_;

  public:
    explicit(false) async_manual_reset_event(bool initially_set = false) noexcept
    {
        bide_event_init(&event_, initially_set);
    }
    ~async_manual_reset_event()
    {
        bide_event_destroy(&event_);
    }
    async_manual_reset_event(const async_manual_reset_event &) = delete;
    async_manual_reset_event &operator=(const async_manual_reset_event &) = delete;

    bool is_set() const noexcept
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
    async_manual_reset_event_operation operator co_await() const noexcept
    {
        return async_manual_reset_event_operation({&event_});
    }
};

using async_auto_reset_event_operation = detail::wait_for<bide_auto_event_waiter, bide_auto_event>;

/*
 * An event for any number of waiters; a set lets one wait pass: bide_auto_event.
 * Threads: any. Suspends: set and reset never; a wait, if it is not set. Progress: as in C.
 */
class async_auto_reset_event
{
    mutable bide_auto_event event_;

  public:
    explicit(false) async_auto_reset_event(bool initially_set = false) noexcept
    {
        bide_auto_event_init(&event_, initially_set);
    }
    ~async_auto_reset_event()
    {
        bide_auto_event_destroy(&event_);
    }
    async_auto_reset_event(const async_auto_reset_event &) = delete;
    async_auto_reset_event &operator=(const async_auto_reset_event &) = delete;

    void set() noexcept
    {
        bide_auto_event_set(&event_);
    }
    void reset() noexcept
    {
        bide_auto_event_reset(&event_);
    }
    async_auto_reset_event_operation operator co_await() const noexcept
    {
        return async_auto_reset_event_operation({&event_});
    }
};

using async_mutex_lock_operation = detail::wait_for<bide_semaphore_waiter, bide_semaphore>;

class async_mutex_lock;
class async_mutex_scoped_lock_operation;

/*
 * A mutex that is handed to the longest-waiting coroutine. It is a bide_semaphore with one permit, because unlock() has
 * no key; bide::mutex_guard has one.
 * Threads: any; another thread may unlock it than has locked it. Suspends: a lock, if it is not free. Progress: as
 * in C.
 */
class async_mutex
{
    bide_semaphore semaphore_;

  public:
    async_mutex() noexcept
    {
        bide_semaphore_init(&semaphore_, 1);
    }
    ~async_mutex()
    {
        bide_semaphore_destroy(&semaphore_);
    }
    async_mutex(const async_mutex &) = delete;
    async_mutex &operator=(const async_mutex &) = delete;

    bool try_lock() noexcept
    {
        return bide_semaphore_try_acquire(&semaphore_, 1);
    }
    async_mutex_lock_operation lock_async() noexcept
    {
        return async_mutex_lock_operation({&semaphore_});
    }
    /* Its result is an async_mutex_lock, which unlocks the mutex. */
    async_mutex_scoped_lock_operation scoped_lock_async() noexcept;
    void unlock()
    {
        bide_semaphore_release(&semaphore_, 1);
    }
};

/* A mutex that is locked; its destructor unlocks it. */
class [[nodiscard]] async_mutex_lock
{
    async_mutex *mutex_;

  public:
    async_mutex_lock(async_mutex &mutex, std::adopt_lock_t) noexcept : mutex_(&mutex)
    {
    }
    async_mutex_lock(async_mutex_lock &&other) noexcept
        : mutex_(std::exchange(other.mutex_, nullptr))
    {
    }
    async_mutex_lock &operator=(async_mutex_lock &&) = delete;
    ~async_mutex_lock()
    {
        if (mutex_ != nullptr)
            mutex_->unlock();
    }
};

class [[nodiscard]] async_mutex_scoped_lock_operation : public async_mutex_lock_operation
{
    async_mutex *mutex_;

  public:
    explicit async_mutex_scoped_lock_operation(async_mutex &mutex)
        : async_mutex_lock_operation(mutex.lock_async()), mutex_(&mutex)
    {
    }
    async_mutex_lock await_resume()
    {
        async_mutex_lock_operation::await_resume();
        return {*mutex_, std::adopt_lock};
    }
};

inline async_mutex_scoped_lock_operation async_mutex::scoped_lock_async() noexcept
{
    return async_mutex_scoped_lock_operation(*this);
}

/*
 * A count that goes down to zero once, for which coroutines wait: an atomic count and a bide_event. A latch whose count is
 * zero or less is ready, and stays ready.
 * Threads: any. Suspends: count_down never; a wait, if it is not ready. Progress: count_down is wait-free, except for the
 * last, which is lock-free.
 */
class async_latch
{
    std::atomic<std::ptrdiff_t> count_;
    mutable bide_event is_zero_;

  public:
    explicit(false) async_latch(std::ptrdiff_t initial_count) noexcept : count_(initial_count)
    {
        bide_event_init(&is_zero_, initial_count <= 0);
    }
    ~async_latch()
    {
        bide_event_destroy(&is_zero_);
    }
    async_latch(const async_latch &) = delete;
    async_latch &operator=(const async_latch &) = delete;

    bool is_ready() const noexcept
    {
        return bide_event_is_set(&is_zero_);
    }
    void count_down(std::ptrdiff_t n = 1) noexcept
    {
        /* acq_rel: the last sees what the others did */
        std::ptrdiff_t before = count_.fetch_sub(n, std::memory_order_acq_rel);
        if (before > 0 && before <= n)
            bide_event_set(&is_zero_);
    }
    auto operator co_await() const noexcept
    {
        return detail::wait_for<bide_event_waiter, bide_event>({&is_zero_});
    }
};

/*
 * Values that a coroutine yields, one after another, without suspending the consumer's thread. begin() starts the coroutine;
 * an exception of it leaves begin() or ++.
 * Threads: one at a time. Suspends: never. Progress: that of the coroutine.
 */
template <class T>
class [[nodiscard]] generator
{
  public:
    class promise_type : public detail::outcome<void>
    {
        std::remove_reference_t<T> *value_ = nullptr;
        friend class generator;

      public:
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
        std::suspend_always yield_value(std::remove_reference_t<T> &value) noexcept
            requires(!std::is_rvalue_reference_v<T>)
        {
            value_ = std::addressof(value);
            return {};
        }
        std::suspend_always yield_value(std::remove_reference_t<T> &&value) noexcept
        {
            value_ = std::addressof(value);
            return {};
        }
        void await_transform() = delete; /* it cannot await */
    };

    class iterator
    {
        std::coroutine_handle<promise_type> handle_;

      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = std::remove_reference_t<T>;
        using reference = std::conditional_t<std::is_reference_v<T>, T, value_type &>;
        using pointer = value_type *;
        using difference_type = std::ptrdiff_t;

        iterator() noexcept = default;
        explicit iterator(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle)
        {
        }
        iterator &operator++()
        {
            generator::go_on(handle_);
            return *this;
        }
        void operator++(int)
        {
            ++*this;
        }
        reference operator*() const noexcept
        {
            return static_cast<reference>(*handle_.promise().value_);
        }
        pointer operator->() const noexcept
        {
            return handle_.promise().value_;
        }
        /* The end is an iterator whose coroutine has ended, or none. */
        friend bool operator==(const iterator &a, const iterator &b) noexcept
        {
            return a.is_end() ? b.is_end() : a.handle_ == b.handle_;
        }

      private:
        bool is_end() const noexcept
        {
            return !handle_ || handle_.done();
        }
    };

    generator() noexcept = default;

    iterator begin()
    {
        if (owner_.get())
            go_on(owner_.get());
        return iterator(owner_.get());
    }
    iterator end() noexcept
    {
        return {};
    }
    void swap(generator &other) noexcept
    {
        owner_.swap(other.owner_);
    }
    friend void swap(generator &a, generator &b) noexcept
    {
        a.swap(b);
    }

  private:
    friend promise_type;
    static void go_on(std::coroutine_handle<promise_type> handle)
    {
        handle.resume();
        if (handle.done())
            handle.promise().check();
    }

    explicit generator(std::coroutine_handle<promise_type> handle) noexcept : owner_(handle)
    {
    }
    detail::owner<promise_type> owner_;
};

/*
 * A generator that yields other generators of its type too: their elements become its own, and ++ resumes the innermost
 * one directly.
 * Threads: one at a time. Suspends: never. Progress: that of the coroutines.
 */
template <class T>
class [[nodiscard]] recursive_generator
{
  public:
    class promise_type : public detail::outcome<void>
    {
        friend class recursive_generator;
        std::remove_reference_t<T> *value_ = nullptr;
        promise_type *root_ = this;
        promise_type *outer_ = nullptr; /* of an inner generator: the generator that yields it */
        promise_type *leaf_ = this;     /* of the root: the innermost */

        std::coroutine_handle<promise_type> self() noexcept
        {
            return std::coroutine_handle<promise_type>::from_promise(*this);
        }

        struct inner_wait {
            recursive_generator inner;

            bool await_ready() const noexcept
            {
                return !inner.owner_.get();
            }
            /* False: it has no more elements. */
            bool await_suspend(std::coroutine_handle<promise_type> handle) noexcept
            {
                promise_type &outer = handle.promise();
                promise_type &own = inner.owner_.get().promise();
                own.root_ = outer.root_;
                own.outer_ = &outer;
                outer.root_->leaf_ = &own;
                inner.owner_.get().resume();
                if (!inner.owner_.get().done())
                    return true;
                outer.root_->leaf_ = &outer;
                return false;
            }
            void await_resume()
            {
                if (inner.owner_.get())
                    inner.owner_.get().promise().check();
            }
        };

        /* The root's next element. An inner one that ends continues the one around it, which checks its exception. */
        void go_on()
        {
            for (leaf_->self().resume(); leaf_ != this && leaf_->self().done();
                 leaf_->self().resume())
                leaf_ = leaf_->outer_;
            if (self().done())
                check();
        }

      public:
        recursive_generator get_return_object() noexcept
        {
            return recursive_generator(self());
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() const noexcept
        {
            return {};
        }
        std::suspend_always yield_value(std::remove_reference_t<T> &value) noexcept
            requires(!std::is_rvalue_reference_v<T>)
        {
            root_->value_ = std::addressof(value);
            return {};
        }
        std::suspend_always yield_value(std::remove_reference_t<T> &&value) noexcept
        {
            root_->value_ = std::addressof(value);
            return {};
        }
        inner_wait yield_value(recursive_generator &&inner) noexcept
        {
            return {std::move(inner)};
        }
        inner_wait yield_value(recursive_generator &inner) noexcept
        {
            return {std::move(inner)};
        }
        void await_transform() = delete;
    };

    class iterator
    {
        promise_type *promise_ = nullptr; /* NULL: the end */

      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = std::remove_reference_t<T>;
        using reference = std::conditional_t<std::is_reference_v<T>, T, value_type &>;
        using pointer = value_type *;
        using difference_type = std::ptrdiff_t;

        iterator() noexcept = default;
        explicit iterator(promise_type *promise) : promise_(promise)
        {
            ++*this;
        }
        iterator &operator++()
        {
            promise_type *promise = promise_;
            promise_ = nullptr; /* (if it ends by an exception, this is the end) */
            promise->go_on();
            if (!promise->self().done())
                promise_ = promise;
            return *this;
        }
        void operator++(int)
        {
            ++*this;
        }
        reference operator*() const noexcept
        {
            return static_cast<reference>(*promise_->value_);
        }
        pointer operator->() const noexcept
        {
            return promise_->value_;
        }
        friend bool operator==(const iterator &a, const iterator &b) noexcept
        {
            return a.promise_ == b.promise_;
        }
    };

    recursive_generator() noexcept = default;

    iterator begin()
    {
        return owner_.get() ? iterator(&owner_.get().promise()) : iterator();
    }
    iterator end() noexcept
    {
        return {};
    }
    void swap(recursive_generator &other) noexcept
    {
        owner_.swap(other.owner_);
    }
    friend void swap(recursive_generator &a, recursive_generator &b) noexcept
    {
        a.swap(b);
    }

  private:
    explicit recursive_generator(std::coroutine_handle<promise_type> handle) noexcept
        : owner_(handle)
    {
    }
    detail::owner<promise_type> owner_;
};

/*
 * Values that a coroutine yields, which may await between them. A consumer awaits begin() and ++iterator; a value is
 * produced when it is awaited. The coroutine is destroyed with the object, while nothing awaits its next value.
 * Threads: one at a time. Suspends: if the coroutine does. Progress: that of the coroutine.
 */
template <class T>
class [[nodiscard]] async_generator
{
  public:
    class promise_type : public detail::runner, public detail::outcome<void>
    {
        friend class async_generator;
        std::remove_reference_t<T> *value_ = nullptr;
        detail::continuation *consumer_ = nullptr;

        struct turn_over {
            bool await_ready() const noexcept
            {
                return false;
            }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> by) const noexcept
            {
                return by.promise().consumer_->end();
            }
            void await_resume() const noexcept
            {
            }
        };

      public:
        async_generator get_return_object() noexcept
        {
            auto self = std::coroutine_handle<promise_type>::from_promise(*this);
            this->set_start(self);
            return async_generator(self);
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        turn_over final_suspend() noexcept
        {
            value_ = nullptr;
            return {};
        }
        turn_over yield_value(std::remove_reference_t<T> &value) noexcept
        {
            value_ = std::addressof(value);
            return {};
        }
        turn_over yield_value(std::remove_reference_t<T> &&value) noexcept
        {
            value_ = std::addressof(value);
            return {};
        }
    };

  private:
    struct wait {
        promise_type *promise;
        detail::continuation waiting = {};

        bool await_ready() const noexcept
        {
            return promise == nullptr;
        }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> by) noexcept
        {
            waiting.set(by);
            promise->consumer_ = &waiting;
            return bide::detail::transfer(promise);
        }
        /* Whether there is a value. */
        bool finish()
        {
            waiting.ended();
            if (promise == nullptr)
                return false;
            promise->check();
            return promise->value_ != nullptr;
        }
    };

  public:
    class iterator
    {
        promise_type *promise_ = nullptr; /* NULL: the end */

      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = std::remove_reference_t<T>;
        using reference = value_type &;
        using pointer = value_type *;
        using difference_type = std::ptrdiff_t;

        iterator() noexcept = default;
        explicit iterator(promise_type *promise) noexcept : promise_(promise)
        {
        }
        /* To be awaited. Its result is this iterator. */
        [[nodiscard]] auto operator++() noexcept
        {
            struct awaiter : wait {
                iterator *at;
                iterator &await_resume()
                {
                    at->promise_ = nullptr;
                    if (this->finish())
                        at->promise_ = this->promise;
                    return *at;
                }
            };
            return awaiter{{promise_}, this};
        }
        reference operator*() const noexcept
        {
            return *promise_->value_;
        }
        pointer operator->() const noexcept
        {
            return promise_->value_;
        }
        friend bool operator==(const iterator &a, const iterator &b) noexcept
        {
            return a.promise_ == b.promise_;
        }
    };

    async_generator() noexcept = default;

    /* To be awaited. Its result is an iterator. */
    [[nodiscard]] auto begin() noexcept
    {
        struct awaiter : wait {
            iterator await_resume()
            {
                return this->finish() ? iterator(this->promise) : iterator();
            }
        };
        return awaiter{{owner_.get() ? &owner_.get().promise() : nullptr}};
    }
    iterator end() noexcept
    {
        return {};
    }
    void swap(async_generator &other) noexcept
    {
        owner_.swap(other.owner_);
    }
    friend void swap(async_generator &a, async_generator &b) noexcept
    {
        a.swap(b);
    }

  private:
    explicit async_generator(std::coroutine_handle<promise_type> handle) noexcept : owner_(handle)
    {
    }
    detail::owner<promise_type> owner_;
};

namespace detail
{

template <class Function, class R>
struct mapped {
    using type = std::invoke_result_t<Function, R>;
};
template <class Function>
struct mapped<Function, void> {
    using type = std::invoke_result_t<Function>;
};

template <class Function, class Awaitable>
BIDE_HPP_COROUTINE_ auto map_awaitable(Function function, Awaitable awaitable)
    -> task<kept<typename mapped<Function &, result_of<Awaitable>>::type>>
{
    if constexpr (std::is_void_v<result_of<Awaitable>>) {
        co_await static_cast<Awaitable &&>(awaitable);
        co_return std::invoke(function);
    } else {
        co_return std::invoke(function, co_await static_cast<Awaitable &&>(awaitable));
    }
}

template <class Scheduler, class Awaitable>
BIDE_HPP_COROUTINE_ auto start_on(Scheduler &scheduler, Awaitable awaitable)
    -> task<kept<result_of<Awaitable>>>
{
    co_await scheduler.schedule();
    co_return co_await static_cast<Awaitable &&>(awaitable);
}

template <class Scheduler, class Awaitable>
BIDE_HPP_COROUTINE_ auto move_to(Scheduler &scheduler, Awaitable awaitable)
    -> task<kept<result_of<Awaitable>>>
{
    /* (one of a vector would do, but it allocates) */
    auto task = make_task<Awaitable &&>(static_cast<Awaitable &&>(awaitable));
    co_await task.when_ready();
    co_await scheduler.schedule();
    co_return co_await std::move(task);
}

} // namespace detail

/*
 * Applies `function` to the result of `awaitable`, or to each element of a generator. An awaitable that is an lvalue
 * must stay until the wait has ended.
 * Threads: any. Suspends: as `awaitable`. Progress: that of both.
 */
template <class Function, class Awaitable>
requires is_awaitable_v<Awaitable>
auto fmap(Function &&function, Awaitable &&awaitable)
{
    return detail::map_awaitable<std::decay_t<Function>, Awaitable>(
        std::forward<Function>(function), std::forward<Awaitable>(awaitable));
}
template <class Function, class T>
BIDE_HPP_COROUTINE_
    generator<std::invoke_result_t<Function &, typename generator<T>::iterator::reference>>
    fmap(Function function, generator<T> source)
{
    for (auto &&value : source)
        co_yield std::invoke(function, static_cast<decltype(value)>(value));
}
template <class Function, class T>
BIDE_HPP_COROUTINE_
    generator<std::invoke_result_t<Function &, typename generator<T>::iterator::reference>>
    fmap(Function function, recursive_generator<T> source)
{
    for (auto &&value : source)
        co_yield std::invoke(function, static_cast<decltype(value)>(value));
}
template <class Function, class T>
BIDE_HPP_COROUTINE_ async_generator<std::invoke_result_t<Function &, T &>>
fmap(Function function, async_generator<T> source)
{
    typename async_generator<T>::iterator at = co_await source.begin();
    while (at != source.end()) {
        co_yield std::invoke(function, *at);
        co_await ++at;
    }
}

/* `value | fmap(function)` is fmap(function, value). */
template <class Function>
struct fmap_transform {
    Function function;
};
template <class Function>
fmap_transform<std::decay_t<Function>> fmap(Function &&function)
{
    return {std::forward<Function>(function)};
}
template <class T, class Function>
auto operator|(T &&value, fmap_transform<Function> transform)
{
    return fmap(std::move(transform.function), std::forward<T>(value));
}

/*
 * Awaits `awaitable` on a thread of `scheduler`; it ends where it ends otherwise. Of a generator, the coroutine runs on
 * the scheduler, also after each value.
 * Threads: any. Suspends: always. Progress: that of both.
 */
template <class Scheduler, class Awaitable>
requires is_awaitable_v<Awaitable>
auto schedule_on(Scheduler &scheduler, Awaitable &&awaitable)
{
    return detail::start_on<Scheduler, Awaitable>(scheduler, std::forward<Awaitable>(awaitable));
}
template <class Scheduler, class T>
BIDE_HPP_COROUTINE_ async_generator<T> schedule_on(Scheduler &scheduler, async_generator<T> source)
{
    co_await scheduler.schedule();
    typename async_generator<T>::iterator at = co_await source.begin();
    while (at != source.end()) {
        co_yield *at;
        co_await scheduler.schedule();
        co_await ++at;
    }
}

/*
 * Awaits `awaitable` here, and resumes on a thread of `scheduler`, whatever it ends with. Of a generator, the consumer
 * resumes there with each value.
 * Threads: any. Suspends: always. Progress: that of both.
 */
template <class Scheduler, class Awaitable>
requires is_awaitable_v<Awaitable>
auto resume_on(Scheduler &scheduler, Awaitable &&awaitable)
{
    return detail::move_to<Scheduler, Awaitable>(scheduler, std::forward<Awaitable>(awaitable));
}
template <class Scheduler, class T>
BIDE_HPP_COROUTINE_ async_generator<T> resume_on(Scheduler &scheduler, async_generator<T> source)
{
    typename async_generator<T>::iterator at = co_await resume_on(scheduler, source.begin());
    while (at != source.end()) {
        co_yield *at;
        co_await resume_on(scheduler, ++at);
    }
}

/* `value | schedule_on(scheduler)` is schedule_on(scheduler, value); so with resume_on. */
template <class Scheduler>
struct schedule_on_transform {
    Scheduler &scheduler;
};
template <class Scheduler>
struct resume_on_transform {
    Scheduler &scheduler;
};
template <class Scheduler>
schedule_on_transform<Scheduler> schedule_on(Scheduler &scheduler) noexcept
{
    return {scheduler};
}
template <class Scheduler>
resume_on_transform<Scheduler> resume_on(Scheduler &scheduler) noexcept
{
    return {scheduler};
}
template <class T, class Scheduler>
auto operator|(T &&value, schedule_on_transform<Scheduler> transform)
{
    return schedule_on(transform.scheduler, std::forward<T>(value));
}
template <class T, class Scheduler>
auto operator|(T &&value, resume_on_transform<Scheduler> transform)
{
    return resume_on(transform.scheduler, std::forward<T>(value));
}

/*
 * A request to stop, as seen by code that is to stop: a std::stop_token, which get() returns; bide::with_stop takes that.
 * Threads: any. Progress: wait-free.
 */
class cancellation_token
{
    std::stop_token token_;

  public:
    /* One that is never cancelled. */
    cancellation_token() noexcept = default;
    explicit cancellation_token(std::stop_token token) noexcept : token_(std::move(token))
    {
    }
    bool is_cancellation_requested() const noexcept
    {
        return token_.stop_requested();
    }
    void throw_if_cancellation_requested() const
    {
        if (token_.stop_requested())
            throw operation_cancelled();
    }
    /* Whether a request may ever come, or has come. */
    bool can_be_cancelled() const noexcept
    {
        return token_.stop_possible();
    }
    const std::stop_token &get() const noexcept
    {
        return token_;
    }
};

/*
 * Makes requests to stop. Copies refer to the same state.
 * Threads: any. Progress: request_cancellation calls the callbacks that are registered, on this thread.
 */
class cancellation_source
{
    std::stop_source source_;

  public:
    bool is_cancellation_requested() const noexcept
    {
        return source_.stop_requested();
    }
    bool can_be_cancelled() const noexcept
    {
        return source_.stop_possible();
    }
    void request_cancellation()
    {
        source_.request_stop();
    }
    cancellation_token token() const noexcept
    {
        return cancellation_token(source_.get_token());
    }
};

/*
 * A callback for a request to stop: called by the thread that makes the request, or at once by the constructor if the
 * request has come. The destructor removes it, and waits while another thread calls it. It must not throw.
 * Threads: any. Progress: the destructor blocks while another thread calls the callback.
 */
class cancellation_registration
{
    std::stop_callback<std::function<void()>> callback_;

  public:
    template <class Callback>
    cancellation_registration(cancellation_token token, Callback &&callback)
        : callback_(token.get(), std::forward<Callback>(callback))
    {
    }
    cancellation_registration(const cancellation_registration &) = delete;
    cancellation_registration &operator=(const cancellation_registration &) = delete;
};

namespace detail
{

/* The awaiting coroutine moves to the scheduler of a context. */
class [[nodiscard]] schedule_operation
{
    const bide_context *context_;
    continuation waiting_;

  public:
    explicit schedule_operation(const bide_context &context) noexcept : context_(&context)
    {
    }
    bool await_ready() const noexcept
    {
        return false;
    }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        static_assert(!belongs_to_bide<Promise>,
                      "a bide::task does not move to another scheduler: use bide::schedule_on");
        waiting_.set(handle);
        waiting_.post(*context_);
    }
    void await_resume() const noexcept
    {
    }
};

struct sleep_maker {
    std::uint64_t nanoseconds;

    bide_awaiter *operator()(bide_sleep *sleep) const noexcept
    {
        return bide_sleep_for(sleep, nanoseconds);
    }
};

BIDE_HPP_COROUTINE_ inline task<> sleep_on(const bide_context &scheduler, std::uint64_t nanoseconds,
                                           cancellation_token token)
{
    bide_context context = scheduler;
    std::optional<linked_stop_source> source;
    token.throw_if_cancellation_requested();
    co_await schedule_operation(scheduler); /* (a sleep that ends at once moves nothing) */
    if (token.can_be_cancelled())
        context.stop = source.emplace(token.get()).get();
    check((co_await bide::wait_with<bide_sleep>(sleep_maker{nanoseconds}).in(context)).error());
}

} // namespace detail

/*
 * A fixed number of threads: a bide_thread_pool. The destructor runs what is ready, and ends the threads; it is not called
 * on one of them.
 * Threads: any. Progress: the constructor and the destructor block.
 */
class static_thread_pool
{
    bide_thread_pool *pool_;
    bide_context context_ = bide_default_context;

  public:
    using schedule_operation = detail::schedule_operation;

    /* As many threads as there are processors. Throws std::system_error. */
    static_thread_pool() : static_thread_pool(0)
    {
    }
    explicit static_thread_pool(std::uint32_t thread_count)
    {
        int status = bide_thread_pool_create(&pool_, thread_count);
        if (status != 0)
            throw std::system_error(-status, std::generic_category());
        context_.scheduler = bide_thread_pool_scheduler(pool_);
    }
    ~static_thread_pool()
    {
        bide_thread_pool_destroy(pool_);
    }
    static_thread_pool(const static_thread_pool &) = delete;
    static_thread_pool &operator=(const static_thread_pool &) = delete;

    std::uint32_t thread_count() const noexcept
    {
        return bide_thread_pool_threads(pool_);
    }
    /* The awaiting coroutine resumes on a thread of the pool. */
    schedule_operation schedule() noexcept
    {
        return schedule_operation(context_);
    }
    /* The pool for operations of bide.hpp: bide::wait(...).in(pool.context()). */
    const bide_context &context() const noexcept
    {
        return context_;
    }
};

/*
 * A loop with input and output: a bide_loop. The first thread that processes events becomes its thread. No other thread may
 * process events then, nor may a coroutine that runs on the loop. A coroutine that schedule() has moved to that thread awaits
 * operations of bide.hpp by `.in(service.context())`. Destroy it only when nothing waits in it.
 * Threads: any, but for the functions that process events. Progress: lock-free, but for those.
 */
class io_service
{
    bide_loop *loop_;
    mutable bide_event stopped_; /* manual-reset */
    std::atomic<std::uint32_t> work_ = 0;

    std::uint64_t runs() const noexcept
    {
        bide_loop_stats stats;
        bide_loop_get_stats(loop_, &stats);
        return stats.runs;
    }

  public:
    using schedule_operation = detail::schedule_operation;

    /* Throws std::system_error. */
    io_service()
    {
        int status = bide_loop_create(&loop_, nullptr);
        if (status != 0)
            throw std::system_error(-status, std::generic_category());
        bide_event_init(&stopped_, false);
    }
    /* As the default constructor: the hint is not used. */
    explicit io_service(std::uint32_t) : io_service()
    {
    }
    ~io_service()
    {
        bide_loop_destroy(loop_);
    }
    io_service(const io_service &) = delete;
    io_service &operator=(const io_service &) = delete;

    /* The awaiting coroutine resumes on the loop's thread. */
    schedule_operation schedule() noexcept
    {
        return schedule_operation(context());
    }
    /*
     * The awaiting coroutine resumes on the loop's thread after `delay`. A cancellation ends the wait with
     * operation_cancelled; if it was requested before, on this thread.
     */
    template <class Rep, class Period>
    task<> schedule_after(const std::chrono::duration<Rep, Period> &delay,
                          cancellation_token token = {})
    {
        return detail::sleep_on(
            context(),
            bide::detail::nanoseconds(std::chrono::ceil<std::chrono::nanoseconds>(delay)),
            std::move(token));
    }

    /* Runs what is ready and becomes ready, until stop(). Returns how often a coroutine was resumed. Blocks. */
    std::uint64_t process_events()
    {
        return process([this](bide_event_waiter &waiter) {
            return bide_loop_wait(loop_, bide_event_wait(&waiter, &stopped_));
        });
    }
    /* Runs what is ready by now, and does not wait for more. Returns how often a coroutine was resumed. */
    std::uint64_t process_pending_events()
    {
        return process([this](bide_event_waiter &) {
            bide_sleep sleep;
            int status = bide_loop_wait(loop_, bide_sleep_for(&sleep, 1)); /* asks the kernel */
            return status != 0 ? status : bide_loop_wait(loop_, bide_sleep_for(&sleep, 0));
        });
    }

    /* Has process_events() return, and further calls of it, until reset(). */
    void stop() noexcept
    {
        bide_event_set(&stopped_);
    }
    void reset() noexcept
    {
        bide_event_reset(&stopped_);
    }
    bool is_stop_requested() const noexcept
    {
        return bide_event_is_set(&stopped_);
    }
    /* The end of the last work stops it: io_work_scope. */
    void notify_work_started() noexcept
    {
        work_.fetch_add(1, std::memory_order_relaxed);
    }
    void notify_work_finished() noexcept
    {
        if (work_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            stop();
    }
    /* For operations of bide.hpp on the loop's thread, behind schedule(): bide::recv(...).in(service.context()). */
    const bide_context &context() const noexcept
    {
        return *bide_loop_context(loop_);
    }

  private:
    template <class Run>
    std::uint64_t process(Run run)
    {
        bide_event_waiter waiter;
        bide::detail::flush_turn();
        if (is_stop_requested())
            return 0;
        std::uint64_t before = runs();
        int status = run(waiter);
        if (status != 0)
            throw std::system_error(-status, std::generic_category());
        return runs() - before;
    }
};

/*
 * Work of an io_service: the end of the last scope stops the service.
 * Threads: any. Progress: that of io_service::stop.
 */
class io_work_scope
{
    io_service *service_;

  public:
    explicit io_work_scope(io_service &service) noexcept : service_(&service)
    {
        service.notify_work_started();
    }
    io_work_scope(const io_work_scope &other) noexcept : io_work_scope(*other.service_)
    {
    }
    io_work_scope(io_work_scope &&other) noexcept : service_(std::exchange(other.service_, nullptr))
    {
    }
    ~io_work_scope()
    {
        if (service_ != nullptr)
            service_->notify_work_finished();
    }
    io_work_scope &operator=(io_work_scope other) noexcept
    {
        std::swap(service_, other.service_);
        return *this;
    }
    io_service &service() const noexcept
    {
        return *service_;
    }
};

/*
 * A scheduler of at most N coroutines that run in turn on one thread: schedule() suspends the coroutine, and resumes the
 * one that has waited for N - 1 calls. drain() resumes all that wait, until none is left, and may be called in a coroutine.
 * No coroutine waits when it is destroyed; if BIDE_DEBUG is 1, it ends the program with a message otherwise.
 * Threads: one at a time. Progress: that of the coroutines.
 */
template <std::size_t N>
class round_robin_scheduler
{
    static_assert(N >= 2, "a coroutine alone does not schedule");
    detail::continuation *waiting_[N - 1] = {};
    std::size_t next_ = 0;

    detail::continuation *exchange(detail::continuation *one) noexcept
    {
        detail::continuation *other = std::exchange(waiting_[next_], one);
        next_ = (next_ + 1) % (N - 1);
        return other;
    }

  public:
    class [[nodiscard]] schedule_operation
    {
        round_robin_scheduler *scheduler_;
        detail::continuation waiting_;

      public:
        explicit schedule_operation(round_robin_scheduler *scheduler) noexcept
            : scheduler_(scheduler)
        {
        }
        bool await_ready() const noexcept
        {
            return false;
        }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept
        {
            static_assert(!detail::belongs_to_bide<Promise>,
                          "a bide::task resumes on its own scheduler");
            waiting_.set(handle);
            detail::continuation *next = scheduler_->exchange(&waiting_);
            return next != nullptr ? next->end() : std::noop_coroutine();
        }
        void await_resume() const noexcept
        {
        }
    };

    round_robin_scheduler() noexcept = default;
    round_robin_scheduler(const round_robin_scheduler &) = delete;
    round_robin_scheduler &operator=(const round_robin_scheduler &) = delete;
    ~round_robin_scheduler()
    {
        for ([[maybe_unused]] detail::continuation *one : waiting_)
            bide_assert(one == nullptr);
    }

    schedule_operation schedule() noexcept
    {
        return schedule_operation(this);
    }
    void drain() noexcept
    {
        bide::detail::flush_turn();
        for (std::size_t empty = 0; empty < N - 1;) {
            detail::continuation *one = exchange(nullptr);
            empty = one == nullptr ? empty + 1 : 0;
            if (one != nullptr)
                one->resume();
        }
    }
};

/*
 * A scheduler that stays on the thread: schedule() does not suspend.
 * Threads: any. Progress: wait-free.
 */
class inline_scheduler
{
  public:
    std::suspend_never schedule() const noexcept
    {
        return {};
    }
    const bide_context &context() const noexcept
    {
        return bide_default_context;
    }
};

namespace detail
{
enum class scope_end { any, failure, success };
} // namespace detail

/*
 * Calls a function when the block ends: in any way, by an exception (failure), or without one (success). cancel() and
 * call_now() prevent that; call_now() calls it at once.
 * Threads: the block's. Progress: that of the function.
 */
template <class Function, detail::scope_end Calls = detail::scope_end::any>
class [[nodiscard]] scoped_lambda
{
    std::optional<Function> function_;
    int exceptions_ = std::uncaught_exceptions();

  public:
    explicit scoped_lambda(Function function) : function_(std::move(function))
    {
    }
    scoped_lambda(scoped_lambda &&other)
        : function_(std::move(other.function_)), exceptions_(other.exceptions_)
    {
        other.cancel();
    }
    scoped_lambda &operator=(scoped_lambda &&) = delete;
    ~scoped_lambda() noexcept(Calls != detail::scope_end::success)
    {
        bool has_failed = std::uncaught_exceptions() > exceptions_;
        if (function_ && (Calls == detail::scope_end::any ||
                          has_failed == (Calls == detail::scope_end::failure)))
            (*function_)();
    }
    void cancel() noexcept
    {
        function_.reset();
    }
    void call_now()
    {
        std::optional<Function> function = std::move(function_);
        cancel();
        if (function)
            (*function)();
    }
};
template <class Function>
auto on_scope_exit(Function &&function)
{
    return scoped_lambda<std::decay_t<Function>>(std::forward<Function>(function));
}
template <class Function>
auto on_scope_failure(Function &&function)
{
    return scoped_lambda<std::decay_t<Function>, detail::scope_end::failure>(
        std::forward<Function>(function));
}
template <class Function>
auto on_scope_success(Function &&function)
{
    return scoped_lambda<std::decay_t<Function>, detail::scope_end::success>(
        std::forward<Function>(function));
}

namespace detail
{

/* A coroutine that is started at once, and frees itself. An exception ends the program. */
struct detached {
    struct promise_type : runner {
        detached get_return_object() noexcept
        {
            set_start(std::coroutine_handle<promise_type>::from_promise(*this));
            return {this};
        }
        std::suspend_always initial_suspend() const noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() const noexcept
        {
            return {};
        }
        void return_void() const noexcept
        {
        }
        void unhandled_exception() const noexcept
        {
            std::terminate();
        }
    };
    promise_type *promise;
};

} // namespace detail

/*
 * Operations that run beside the coroutine that starts them. It awaits join() before the scope is destroyed: a scope that
 * is destroyed while one of them runs ends the program, as an exception of one of them does.
 * Threads: any may spawn, as long as join() has not ended; after that it is misuse. Suspends: join(), while some run.
 * Progress: lock-free.
 */
class async_scope
{
    std::atomic<std::size_t> left_ = 1; /* one is join()'s */
    std::atomic<bool> is_joined_ = false;
    detail::continuation waiting_;

    template <class Awaitable>
    BIDE_HPP_COROUTINE_ static detail::detached run(async_scope *scope, Awaitable awaitable)
    {
        co_await std::move(awaitable);
        if (scope->count_down())
            scope->waiting_.post();
    }
    bool count_down() noexcept
    {
        return left_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

  public:
    async_scope() noexcept = default;
    ~async_scope()
    {
        std::size_t own = is_joined_.load(std::memory_order_relaxed) ? 0 : 1;
        if (left_.load(std::memory_order_relaxed) != own)
            bide_misuse_("an async_scope is destroyed while its operations run", __func__, __FILE__,
                         __LINE__);
    }
    async_scope(const async_scope &) = delete;
    async_scope &operator=(const async_scope &) = delete;

    /* Awaits `awaitable`, from now on, on this thread until it first suspends. */
    template <class Awaitable>
    void spawn(Awaitable &&awaitable)
    {
        auto started =
            run<std::remove_cvref_t<Awaitable>>(this, std::forward<Awaitable>(awaitable));
        if (left_.fetch_add(1, std::memory_order_relaxed) == 0)
            bide_misuse_("an async_scope spawns after join() has ended", __func__, __FILE__,
                         __LINE__);
        started.promise->start();
    }

    /*
     * To be awaited: until all that were spawned have ended. It is awaited again after that, which does not suspend; another
     * wait beside the first is misuse, and ends the program.
     */
    [[nodiscard]] auto join() noexcept
    {
        return join_wait{this};
    }

  private:
    struct join_wait {
        async_scope *scope;

        bool await_ready() const noexcept
        {
            return scope->left_.load(std::memory_order_acquire) == 0;
        }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> handle) noexcept
        {
            if (scope->is_joined_.exchange(true, std::memory_order_relaxed))
                bide_misuse_("an async_scope is joined by two coroutines at once", __func__,
                             __FILE__, __LINE__);
            scope->waiting_.set(handle);
            return !scope->count_down();
        }
        void await_resume() const noexcept
        {
            scope->waiting_.ended();
        }
    };
};

/* The arithmetic of sequences, which wrap around: as bide_sequence_precedes and bide_sequence_difference. */
template <class Sequence>
struct sequence_traits {
    using value_type = Sequence;
    using difference_type = std::make_signed_t<Sequence>;
    using size_type = std::make_unsigned_t<Sequence>;

    static constexpr value_type initial_sequence = static_cast<value_type>(-1);

    static constexpr difference_type difference(value_type a, value_type b) noexcept
    {
        return static_cast<difference_type>(a - b);
    }
    static constexpr bool precedes(value_type a, value_type b) noexcept
    {
        return difference(a, b) < 0;
    }
};

/* Consecutive sequences, from front() to back(). */
template <class Sequence, class Traits = sequence_traits<Sequence>>
class sequence_range
{
  public:
    using value_type = Sequence;
    using difference_type = typename Traits::difference_type;
    using size_type = typename Traits::size_type;

    class const_iterator
    {
        Sequence value_ = 0;

      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Sequence;
        using difference_type = typename Traits::difference_type;
        using reference = Sequence;
        using pointer = const Sequence *;

        const_iterator() noexcept = default;
        explicit constexpr const_iterator(Sequence value) noexcept : value_(value)
        {
        }
        constexpr Sequence operator*() const noexcept
        {
            return value_;
        }
        constexpr const_iterator &operator++() noexcept
        {
            ++value_;
            return *this;
        }
        constexpr const_iterator operator++(int) noexcept
        {
            return const_iterator(value_++);
        }
        friend constexpr bool operator==(const_iterator a, const_iterator b) noexcept
        {
            return a.value_ == b.value_;
        }
    };

    constexpr sequence_range() noexcept = default;
    /* From `begin` on, before `end`. */
    constexpr sequence_range(Sequence begin, Sequence end) noexcept : begin_(begin), end_(end)
    {
    }
    constexpr const_iterator begin() const noexcept
    {
        return const_iterator(begin_);
    }
    constexpr const_iterator end() const noexcept
    {
        return const_iterator(end_);
    }
    constexpr size_type size() const noexcept
    {
        return static_cast<size_type>(Traits::difference(end_, begin_));
    }
    constexpr bool empty() const noexcept
    {
        return begin_ == end_;
    }
    constexpr Sequence operator[](size_type index) const noexcept
    {
        return static_cast<Sequence>(begin_ + index);
    }
    constexpr Sequence front() const noexcept
    {
        return begin_;
    }
    constexpr Sequence back() const noexcept
    {
        return static_cast<Sequence>(end_ - 1);
    }
    /* The first `count` of them, or all if there are fewer. */
    constexpr sequence_range first(size_type count) const noexcept
    {
        return sequence_range(begin_, at_most(count));
    }
    /* All but the first `count`. */
    constexpr sequence_range skip(size_type count) const noexcept
    {
        return sequence_range(at_most(count), end_);
    }

  private:
    constexpr Sequence at_most(size_type count) const noexcept
    {
        return static_cast<Sequence>(begin_ + (count < size() ? count : size()));
    }

    Sequence begin_ = 0;
    Sequence end_ = 0;
};

namespace detail
{

template <class Scheduler>
concept has_bide_context = requires(const Scheduler &scheduler)
{
    {
        scheduler.context()
        } -> std::convertible_to<const bide_context &>;
};

/* An operation with a result, which get(waiter) takes from its waiter. */
template <class Waiter, class Make, class Get>
class [[nodiscard]] operation_with : public bide::operation<Waiter, Make>
{
    Get get_;

  public:
    operation_with(Make make, Get get)
        : bide::operation<Waiter, Make>(std::move(make)), get_(std::move(get))
    {
    }
    auto await_resume()
    {
        check(bide::operation<Waiter, Make>::await_resume().error());
        return get_(this->waiter());
    }
};

template <class Scheduler, class Operation>
BIDE_HPP_COROUTINE_ task<result_of<Operation>> wait_then_move(Operation operation,
                                                              Scheduler &scheduler)
{
    if (operation.await_ready()) /* it stays on this thread */
        co_return operation.await_resume();
    struct {
        Operation &inner;
        bool await_ready() const noexcept
        {
            return false;
        }
        bool
        await_suspend(std::coroutine_handle<typename task<result_of<Operation>>::promise_type> h)
        {
            return inner.await_suspend(h);
        }
        auto await_resume()
        {
            return inner.await_resume();
        }
    } rest{operation};
    auto result = co_await rest;
    co_await scheduler.schedule();
    co_return result;
}

/* A wait that suspends resumes on `scheduler`. */
template <class Waiter, class Scheduler, class Make, class Get>
auto wait_on(Scheduler &scheduler, Make make, Get get)
{
    operation_with<Waiter, Make, Get> operation(std::move(make), std::move(get));
    if constexpr (has_bide_context<Scheduler>) {
        operation.in(scheduler.context());
        return operation;
    } else {
        return wait_then_move(std::move(operation), scheduler);
    }
}

inline void check_size(int status)
{
    if (status != 0)
        throw std::system_error(-status, std::generic_category());
}

template <class Sequence, class Traits>
concept is_sequence =
    std::is_same_v<Sequence, std::size_t> && std::is_same_v<Traits, sequence_traits<Sequence>>;

} // namespace detail

/*
 * One publisher makes a growing sequence of numbers known, for which coroutines wait: bide_sequence_barrier.
 * Threads: one at a time publishes, any may wait. Suspends: a wait, if the number is not published. Progress: as in C.
 */
template <class Sequence = std::size_t, class Traits = sequence_traits<Sequence>>
requires detail::is_sequence<Sequence, Traits>
class sequence_barrier
{
    mutable bide_sequence_barrier barrier_;

  public:
    explicit(false) sequence_barrier(Sequence initial_sequence = Traits::initial_sequence) noexcept
    {
        bide_sequence_barrier_init(&barrier_, initial_sequence);
    }
    ~sequence_barrier()
    {
        bide_sequence_barrier_destroy(&barrier_);
    }
    sequence_barrier(const sequence_barrier &) = delete;
    sequence_barrier &operator=(const sequence_barrier &) = delete;

    Sequence last_published() const noexcept
    {
        return bide_sequence_barrier_last_published(&barrier_);
    }
    /* To be awaited, until `target` is published. The result is the last published one. */
    template <class Scheduler>
    [[nodiscard]] auto wait_until_published(Sequence target, Scheduler &scheduler) const
    {
        return detail::wait_on<bide_sequence_waiter>(
            scheduler,
            [barrier = &barrier_, target](bide_sequence_waiter *waiter) {
                return bide_sequence_barrier_wait_until_published(waiter, barrier, target);
            },
            [](const bide_sequence_waiter &waiter) { return Sequence(waiter.published); });
    }
    void publish(Sequence sequence) noexcept
    {
        bide_sequence_barrier_publish(&barrier_, sequence);
    }
    bide_sequence_barrier *get() const noexcept
    {
        return &barrier_;
    }
};

/*
 * Hands out the slots of a ring to one producer: bide_single_producer_sequencer. The consumers publish in
 * `consumer_barrier` what they have read; a slot is not handed out before.
 * Threads: one at a time claims and publishes, any may wait. Suspends: a claim, if the ring is full; a wait, if the number
 * is not published. Progress: as in C.
 */
template <class Sequence = std::size_t, class Traits = sequence_traits<Sequence>>
class single_producer_sequencer
{
    sequence_barrier<Sequence, Traits> cursor_;
    bide_sequence_barrier *consumers_;
    bide_sequence_group gate_;
    bide_single_producer_sequencer sequencer_;

    template <class Scheduler, class Get>
    auto claim(std::size_t count, Scheduler &scheduler, Get get)
    {
        return detail::wait_on<bide_claim>(
            scheduler,
            [sequencer = &sequencer_, count](bide_claim *claim) {
                return bide_single_producer_sequencer_claim_up_to(claim, sequencer, count);
            },
            get);
    }

  public:
    using size_type = typename sequence_range<Sequence, Traits>::size_type;

    single_producer_sequencer(const sequence_barrier<Sequence, Traits> &consumer_barrier,
                              std::size_t buffer_size,
                              Sequence initial_sequence = Traits::initial_sequence)
        : cursor_(initial_sequence), consumers_(consumer_barrier.get())
    {
        bide_sequence_group_init(&gate_, &consumers_, 1);
        detail::check_size(
            bide_single_producer_sequencer_init(&sequencer_, cursor_.get(), &gate_, buffer_size));
    }
    ~single_producer_sequencer()
    {
        bide_single_producer_sequencer_destroy(&sequencer_);
        bide_sequence_group_destroy(&gate_);
    }
    single_producer_sequencer(const single_producer_sequencer &) = delete;
    single_producer_sequencer &operator=(const single_producer_sequencer &) = delete;

    /* To be awaited: the sequence of a free slot. */
    template <class Scheduler>
    [[nodiscard]] auto claim_one(Scheduler &scheduler)
    {
        return claim(1, scheduler, [](const bide_claim &claim) { return Sequence(claim.first); });
    }
    /* To be awaited: a sequence_range of at least 1 and at most `count` free slots. */
    template <class Scheduler>
    [[nodiscard]] auto claim_up_to(std::size_t count, Scheduler &scheduler)
    {
        return claim(count, scheduler, [](const bide_claim &claim) {
            return sequence_range<Sequence, Traits>(claim.first, claim.first + claim.count);
        });
    }
    /* Publishes all claimed slots up to this one. */
    void publish(Sequence sequence) noexcept
    {
        cursor_.publish(sequence);
    }
    void publish(const sequence_range<Sequence, Traits> &range) noexcept
    {
        if (!range.empty())
            cursor_.publish(range.back());
    }
    Sequence last_published() const noexcept
    {
        return cursor_.last_published();
    }
    template <class Scheduler>
    [[nodiscard]] auto wait_until_published(Sequence target, Scheduler &scheduler) const
    {
        return cursor_.wait_until_published(target, scheduler);
    }
};

/*
 * Hands out the slots of a ring to any number of producers: bide_multi_producer_sequencer.
 * Threads: any. Suspends: a claim, if the ring is full; a wait, if the number is not published. Progress: as in C.
 */
template <class Sequence = std::size_t, class Traits = sequence_traits<Sequence>>
requires detail::is_sequence<Sequence, Traits>
class multi_producer_sequencer
{
    std::unique_ptr<bide_sequence_slot[]> slots_;
    bide_sequence_barrier *consumers_;
    bide_sequence_group gate_;
    mutable bide_multi_producer_sequencer sequencer_;

    template <class Scheduler, class Get>
    auto claim(std::size_t count, Scheduler &scheduler, Get get)
    {
        return detail::wait_on<bide_multi_producer_claim>(
            scheduler,
            [sequencer = &sequencer_, count](bide_multi_producer_claim *claim) {
                return bide_multi_producer_sequencer_claim_up_to(claim, sequencer, count);
            },
            get);
    }

  public:
    using size_type = typename sequence_range<Sequence, Traits>::size_type;

    multi_producer_sequencer(const sequence_barrier<Sequence, Traits> &consumer_barrier,
                             std::size_t buffer_size,
                             Sequence initial_sequence = Traits::initial_sequence)
        : slots_(new bide_sequence_slot[buffer_size]), consumers_(consumer_barrier.get())
    {
        bide_sequence_group_init(&gate_, &consumers_, 1);
        detail::check_size(bide_multi_producer_sequencer_init(
            &sequencer_, slots_.get(), buffer_size, &gate_, initial_sequence));
    }
    ~multi_producer_sequencer()
    {
        bide_multi_producer_sequencer_destroy(&sequencer_);
        bide_sequence_group_destroy(&gate_);
    }
    multi_producer_sequencer(const multi_producer_sequencer &) = delete;
    multi_producer_sequencer &operator=(const multi_producer_sequencer &) = delete;

    std::size_t buffer_size() const noexcept
    {
        return sequencer_.size;
    }
    /* The last sequence that is published without a gap after `last_known`, or that itself. */
    Sequence last_published_after(Sequence last_known) const noexcept
    {
        return bide_multi_producer_sequencer_last_published_after(&sequencer_, last_known);
    }
    template <class Scheduler>
    [[nodiscard]] auto wait_until_published(Sequence target, Sequence last_known,
                                            Scheduler &scheduler) const
    {
        return detail::wait_on<bide_multi_producer_waiter>(
            scheduler,
            [sequencer = &sequencer_, target, last_known](bide_multi_producer_waiter *waiter) {
                return bide_multi_producer_sequencer_wait_until_published(waiter, sequencer, target,
                                                                          last_known);
            },
            [](const bide_multi_producer_waiter &waiter) { return Sequence(waiter.published); });
    }
    /* Whether a slot is free; perhaps not any more. */
    bool any_available() const noexcept
    {
        Sequence claimed = bide_atomic_load(&sequencer_.next, acquire) - 1;
        Sequence consumed = bide_sequence_barrier_last_published(consumers_);
        return Traits::precedes(claimed, static_cast<Sequence>(consumed + sequencer_.size));
    }
    template <class Scheduler>
    [[nodiscard]] auto claim_one(Scheduler &scheduler)
    {
        return claim(1, scheduler,
                     [](const bide_multi_producer_claim &claim) { return Sequence(claim.first); });
    }
    template <class Scheduler>
    [[nodiscard]] auto claim_up_to(std::size_t count, Scheduler &scheduler)
    {
        return claim(count, scheduler, [](const bide_multi_producer_claim &claim) {
            return sequence_range<Sequence, Traits>(claim.first, claim.first + claim.count);
        });
    }
    void publish(Sequence sequence) noexcept
    {
        bide_multi_producer_sequencer_publish(&sequencer_, sequence);
    }
    void publish(const sequence_range<Sequence, Traits> &range) noexcept
    {
        if (!range.empty())
            bide_multi_producer_sequencer_publish_range(&sequencer_, range.front(), range.size());
    }
};

#undef BIDE_HPP_COROUTINE_

} // namespace bide::cppcoro

#if BIDE_CPPCORO_ALIAS
namespace cppcoro = bide::cppcoro;
#endif

#endif
