/*
 * bide in C++20: every operation can be awaited by co_await, in coroutines of any promise type, and
 * bide::task is a coroutine that C awaits too. Floor: coroutine.
 *
 *     bide::task<int> sum(bide_event &ready, const int *a, const int *b)
 *     {
 *         (co_await bide::wait(bide_event_wait, &ready)).value();     // throws if it fails
 *         co_return *a + *b;
 *     }
 *
 *     int total = bide::sync_wait(sum(ready, &a, &b));                // from a plain thread
 *     bide_spawn(&spawned, &context, task.awaiter());                 // or beside others
 *
 *     co_await bide::wait(operation, arguments...)   an operation of C, without its first argument
 *     co_await bide::wait_with<Waiter>(function)     one that needs more: function(&waiter) makes it
 *     co_await bide::wait(awaiter)                   one that you have made in memory of your own
 *     co_await task                                  a task; its value, or its exception
 *
 * The waiter is in the coroutine's frame, as a temporary of the co_await expression or as a local of
 * the coroutine. It takes at most 48 bytes more than the waiter of C. Nothing allocates but the
 * coroutine's frame itself, and a wake is one post, as in C: it resumes a bide_frame beside the
 * waiter, whose step resumes the coroutine. An operation that is ready does not suspend.
 *
 * A wait ends with a bide::result: a value, or a negative errno. A coroutine of C++ that is destroyed
 * while it waits withdraws the wait, as bide_destroy does, on a thread of its scheduler.
 *
 * Contexts: a bide::task has the context of the coroutine that awaits it, as in C: scheduler, stop
 * source, values. A coroutine with another promise type waits in bide_default_context: it resumes on
 * the thread that ends the wait. It waits in another context by `wait(...).in(context)`, or in each
 * wait if its promise has a member `const bide_context *wait_context() const`.
 *
 * Exceptions: one that leaves a task is thrown again where C++ awaits the task: by co_await of the
 * task, with_timeout, with_stop, schedule_on, sync_wait. If C awaits it, the program ends with a message.
 *
 * Compilers: g++ 12, and clang 14 to 19 with libstdc++ 12, with -std=c++20. Nothing experimental is needed.
 *
 * Why it is correct: a coroutine is suspended before its await_suspend is called, so the operation is
 * started then, and nothing of the wait is touched once it may have ended elsewhere. A frame of C that
 * runs next is returned from the step that has resumed the coroutine (detail::turn), not resumed on the
 * coroutine's stack. So C and C++ may await each other in a loop on a stack of constant size.
 */
#ifndef BIDE_BIDE_HPP
#define BIDE_BIDE_HPP

#if !defined __cplusplus
#error "bide/bide.hpp is for C++: in C, include bide/bide.h"
#elif __cplusplus < 202002L
#error "bide/bide.hpp needs C++20: compile with -std=c++20"
#endif

#include "bide/bide.h"
#include "bide/errors.h"
#include "bide/extend/root.h"

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <optional>
#include <span>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

namespace bide
{

/*
 * The end of a wait: a value, or a negative errno.
 * Threads: as an int. Progress: wait-free.
 */
template <class T = void>
class [[nodiscard]] result
{
    int error_ = 0;
    std::optional<T> value_;

  public:
    using value_type = T;

    result(T value) : value_(std::move(value))
    {
    }
    static result failed(int error)
    {
        result r;
        r.error_ = error;
        return r;
    }

    explicit operator bool() const noexcept
    {
        return error_ == 0;
    }
    bool has_value() const noexcept
    {
        return error_ == 0;
    }
    /* 0 or a negative errno. */
    int error() const noexcept
    {
        return error_;
    }

    /* The value. Throws std::system_error, with the positive errno, if there is none. */
    T &value() &
    {
        check();
        return *value_;
    }
    T value() &&
    {
        check();
        return std::move(*value_);
    }
    T &operator*() &noexcept
    {
        return *value_;
    }
    T *operator->() noexcept
    {
        return &*value_;
    }
    T value_or(T other) const
    {
        return error_ == 0 ? *value_ : std::move(other);
    }

  private:
    result() = default;
    void check() const
    {
        if (error_ != 0)
            throw std::system_error(-error_, std::generic_category());
    }
};

template <>
class [[nodiscard]] result<void>
{
    int error_ = 0;

  public:
    using value_type = void;

    result() = default;
    static result failed(int error)
    {
        result r;
        r.error_ = error;
        return r;
    }

    explicit operator bool() const noexcept
    {
        return error_ == 0;
    }
    bool has_value() const noexcept
    {
        return error_ == 0;
    }
    int error() const noexcept
    {
        return error_;
    }
    void value() const
    {
        if (error_ != 0)
            throw std::system_error(-error_, std::generic_category());
    }
};

namespace detail
{

/* A frame whose step resumes a coroutine of C++. The frame is the first member. */
struct resumer {
    bide_frame frame;
    std::coroutine_handle<> handle;
};

/* One step of a resumer on this thread: the frame of C that it hands over to, if any. */
struct turn {
    bide_frame *next = nullptr;
};
inline constinit thread_local turn *turn_here = nullptr;

/*
 * Functions that use thread-local variables are not inlined into coroutines: a compiler may keep a variable's
 * address across a suspension, after which another thread runs.
 */
#define BIDE_HPP_APART_ [[gnu::noinline]] inline

/* noexcept: an exception of a coroutine of another promise type cannot pass through C. */
inline bide_next resume_step(bide_frame *frame, unsigned depth) noexcept;

inline constexpr bide_coroutine_code code = {resume_step, "(C++ coroutine)", __FILE__, nullptr,
                                             nullptr};
inline constexpr bide_point start_point = BIDE_POINT_START(&code);
inline constexpr bide_point wait_point = BIDE_POINT(&code, nullptr, 0, BIDE_AT_AWAIT);

inline bool is_resumer(const bide_frame *frame) noexcept
{
    return bide_frame_point(frame)->code == &code;
}

inline resumer *resumer_of(bide_frame *frame) noexcept
{
    return reinterpret_cast<resumer *>(frame);
}

inline void finish(bide_frame *frame, int error) noexcept
{
    frame->awaiter.ops = &bide_point_finished.ops;
    frame->error = error;
}

inline bide_next resume_step(bide_frame *frame, unsigned depth) noexcept
{
    if (depth == BIDE_DESTROY_) {
        /* Its wait is withdrawn. The owner of the handle destroys its locals. */
        finish(frame, -ECANCELED);
        return bide_next_none();
    }
    turn here;
    turn *outer = turn_here;
    turn_here = &here;
    resumer_of(frame)->handle.resume(); /* the frame may be gone afterwards */
    turn_here = outer;
    return bide_next_frame(here.next);
}

/*
 * `next` runs, after the coroutine at hand has suspended if that is possible. A frame that was handed over before it
 * runs here: the newest frame continues the coroutine that suspends, and would take stack in each round of a loop.
 */
BIDE_HPP_APART_ void hand_over(bide_frame *next) noexcept
{
    if (next == nullptr)
        return;
    if (turn_here == nullptr)
        bide_resume(next);
    else if (bide_frame *before = std::exchange(turn_here->next, next))
        bide_resume(before);
}

/* Runs the frame that was handed over: this thread is about to block. */
BIDE_HPP_APART_ void flush_turn() noexcept
{
    if (turn_here == nullptr || turn_here->next == nullptr)
        return;
    bide_resume(std::exchange(turn_here->next, nullptr));
}

/* Whether an operation is ready, unless the thread's budget is spent. */
BIDE_HPP_APART_ bool is_ready(bide_awaiter *awaiter) noexcept
{
#if BIDE_BUDGET > 0
    if (bide_budget_ <= 0)
        return false;
#endif
    if (!bide_awaiter_had(awaiter))
        return false;
    (void)bide_budget_spent_();
    return true;
}

/*
 * Starts an operation for a resumer whose context is set. False: it has ended, and the coroutine continues. True:
 * nothing of the wait is touched after it.
 */
BIDE_HPP_APART_ bool start(resumer *by, std::coroutine_handle<> handle,
                           bide_awaiter *awaiter) noexcept
{
    bide_frame *frame = &by->frame;
    by->handle = handle;
    frame->awaiter.ops = &wait_point.ops;
    bide_frame *next = bide_frame_await(frame, awaiter);
    if (next == frame)
        return false;
    hand_over(next);
    return true;
}

/*
 * The coroutine of `next` runs next. Symmetric transfer takes constant stack if the compiler makes a tail call of it,
 * which g++ does from -O2 on only, and not with sanitizers. Otherwise the step's caller resumes it.
 */
inline std::coroutine_handle<> transfer(resumer *next) noexcept
{
#if defined __clang__
    return next->handle;
#else
    hand_over(&next->frame);
    return std::noop_coroutine();
#endif
}

/* The head of the promise of a coroutine that belongs to bide: it has a context, and a continuation. */
struct promise_base : resumer {
    std::exception_ptr exception;
    bool is_caught = false; /* what awaits it throws `exception` again */

    void set_start(std::coroutine_handle<> self) noexcept
    {
        handle = self;
        frame.awaiter.ops = &start_point.ops;
        frame.awaiter.link = nullptr;
        frame.awaiter.frame = nullptr;
        frame.context = &bide_default_context;
        frame.error = -ECANCELED; /* until it ends */
    }

    void unhandled_exception() noexcept
    {
        if (!is_caught) {
            std::fputs("bide: an exception leaves a C++ task that C awaits\n", stderr);
            std::terminate();
        }
        exception = std::current_exception();
    }

    /* It has ended: the coroutine that runs next. Nothing of it is touched after that. */
    std::coroutine_handle<> end(int error) noexcept
    {
        bide_frame *next = frame.awaiter.frame;
        finish(&frame, error);
        if (next == nullptr)
            return std::noop_coroutine();
        if (is_resumer(next))
            return transfer(resumer_of(next));
        hand_over(next);
        return std::noop_coroutine();
    }

    void throw_again()
    {
        if (exception)
            std::rethrow_exception(std::exchange(exception, nullptr));
    }
};

template <class Promise>
concept belongs_to_bide = std::is_base_of_v<promise_base, Promise>;

template <class Promise>
concept has_context = requires(const Promise &promise)
{
    {
        promise.wait_context()
        } -> std::convertible_to<const bide_context *>;
};

/* Operations whose memory has to stay until the coroutine has ended. */
template <class Waiter>
inline constexpr bool moves_coroutine = std::is_same_v<Waiter, bide_schedule_operation> ||
                                        std::is_same_v<Waiter, bide_resume_on_operation>;

/* Locks whose waiter is needed until they are unlocked. */
template <class Waiter>
inline constexpr bool is_needed_until_unlock =
    std::is_same_v<Waiter, bide_mutex_waiter> ||
    std::is_same_v<Waiter, bide_barging_mutex_waiter> ||
    std::is_same_v<Waiter, bide_rw_lock_waiter> || std::is_same_v<Waiter, bide_once_waiter>;

/* One wait of a coroutine: 48 bytes. */
class wait_base
{
  protected:
    resumer own_;              /* own_.frame.awaiter.link is the operation */
    bide_frame *by_ = nullptr; /* while it waits: the frame that waits, own_.frame or a promise's */

    explicit wait_base(bide_awaiter *awaiter) noexcept
    {
        own_.frame.awaiter.link = awaiter;
        own_.frame.awaiter.frame = nullptr;
        own_.frame.context = &bide_default_context;
    }
    /* Before it is awaited. */
    wait_base(const wait_base &other) noexcept : wait_base(other.awaiter())
    {
        own_.frame.context = other.own_.frame.context;
    }
    wait_base &operator=(const wait_base &) = delete;
    ~wait_base()
    {
        withdraw();
    }

    bide_awaiter *awaiter() const noexcept
    {
        return own_.frame.awaiter.link;
    }

    /* The coroutine is destroyed while it waits. */
    void withdraw() noexcept
    {
        if (by_ != nullptr)
            bide_destroy(std::exchange(by_, nullptr));
    }

    template <class Promise>
    resumer *choose(std::coroutine_handle<Promise> handle) noexcept
    {
        resumer *by = &own_;
        if constexpr (belongs_to_bide<Promise>)
            by = &handle.promise();
        else if constexpr (has_context<Promise>)
            own_.frame.context = handle.promise().wait_context();
        by_ = &by->frame;
        return by;
    }

    /* The wait has ended. */
    void ended() noexcept
    {
        if (by_ != nullptr && by_ != &own_.frame)
            by_->awaiter.link = &bide_running_;
        by_ = nullptr;
    }
};
static_assert(sizeof(wait_base) <= 6 * sizeof(void *), "a wait is 48 bytes more than the waiter");

/* The value of an operation that has not failed, by the type of its waiter: counts of bytes, sequences. */
inline size_t value_of(const bide_io_operation &o)
{
    return o.count;
}
inline size_t value_of(const bide_file_operation &o)
{
    return o.operation.count;
}
inline size_t value_of(const bide_datagram &o)
{
    return o.operation.count;
}
inline size_t value_of(const bide_reader_operation &o)
{
    return o.count;
}
inline size_t value_of(const bide_writer_operation &o)
{
    return o.count;
}
inline uint64_t value_of(const bide_copy_operation &o)
{
    return o.count;
}
inline size_t value_of(const bide_splice_operation &o)
{
    return o.count;
}
inline uint64_t value_of(const bide_send_file_operation &o)
{
    return o.count;
}
inline bide_sequence value_of(const bide_sequence_waiter &o)
{
    return o.published;
}
inline bide_sequence value_of(const bide_claim &o)
{
    return o.first;
}

template <class Waiter>
concept has_value_of = requires(const Waiter &waiter)
{
    value_of(waiter);
};

struct no_waiter {
};

} // namespace detail

/*
 * One wait for an operation of C, with its waiter. It is awaited once: a temporary of the co_await expression, or a local
 * variable whose waiter is needed afterwards. It may be moved before that, not after.
 * Threads: the coroutine's. Errors: those of the operation. Suspends: if the operation does.
 * Cancel-safe: as its inner operation is. Progress: that of the operation.
 */
template <class Waiter, class Make>
requires std::is_invocable_r_v<bide_awaiter *, Make &, Waiter *>
class [[nodiscard]] operation : public detail::wait_base
{
    static_assert(std::is_trivially_destructible_v<Waiter>, "the waiter is not destroyed");

    /* make(&waiter) makes the operation in the waiter when it is awaited, and returns its awaiter. */
    union {
        Make make_; /* as long as awaiter() is NULL */
        Waiter waiter_;
    };

  public:
    explicit operation(Make make) : wait_base(nullptr), make_(std::move(make))
    {
    }
    operation(operation &&other) : wait_base(other), make_(std::move(other.make_))
    {
    }
    ~operation()
    {
        withdraw();
        if (awaiter() == nullptr)
            make_.~Make();
    }

    /* Once it is awaited, the waiter: for an operation whose waiter has results. */
    Waiter &waiter() noexcept
    {
        return waiter_;
    }

    /* The wait is in `context`, which stays until it has ended. For coroutines of other promise types. */
    operation &&in(const bide_context &context) &&noexcept
    {
        own_.frame.context = &context;
        return std::move(*this);
    }
    operation &in(const bide_context &context) &noexcept
    {
        own_.frame.context = &context;
        return *this;
    }

    bool await_ready()
    {
        Make make(std::move(make_));
        make_.~Make();
        own_.frame.awaiter.link = &bide_running_; /* make_ is gone, also if make(&waiter_) throws */
        ::new (static_cast<void *>(&waiter_)) Waiter;
        own_.frame.awaiter.link = make(&waiter_);
        return detail::is_ready(awaiter());
    }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        static_assert(!detail::moves_coroutine<Waiter> || !detail::belongs_to_bide<Promise>,
                      "a bide::task does not move to another scheduler: use bide::schedule_on");
        return detail::start(choose(handle), handle, awaiter());
    }

    auto await_resume() noexcept
    {
        ended();
        int status = bide_awaiter_resume(awaiter(), awaiter()->ops);
        if constexpr (detail::has_value_of<Waiter>) {
            using value = decltype(detail::value_of(waiter_));
            return status != 0 ? result<value>::failed(status)
                               : result<value>(detail::value_of(waiter_));
        } else {
            return status != 0 ? result<>::failed(status) : result<>();
        }
    }
};

/*
 * An operation by its function in C, without its first argument: wait(bide_event_wait, &event). Its value
 * is the count of bytes or the sequence, if it has one.
 * Threads: any. Errors: those of the operation. Suspends: if the operation does. Cancel-safe: as its inner
 * operation is. Progress: that of the operation.
 */
template <class Waiter, class... Parameters, class... Arguments>
requires(sizeof...(Parameters) == sizeof...(Arguments) &&
         (std::is_convertible_v<Arguments, Parameters> &&
          ...)) inline auto wait(bide_awaiter *(*init)(Waiter *, Parameters...),
                                 Arguments &&...arguments)
{
    static_assert(
        !detail::is_needed_until_unlock<Waiter>,
        "the waiter of a lock stays until it is unlocked: use bide::mutex_guard, or a local "
        "variable of bide::wait_with");
    auto make = [init, ... values = static_cast<Parameters>(std::forward<Arguments>(arguments))](
                    Waiter *waiter) { return init(waiter, values...); };
    return operation<Waiter, decltype(make)>(make);
}

/*
 * The same for operations that are macros or have several waiters: make(&waiter) makes it in the waiter.
 *     co_await bide::wait_with<bide_channel_waiter>(
 *         [&](auto *waiter) { return bide_channel_recv(waiter, &jobs, &job); });
 * Threads: as wait. Errors: as wait. Suspends: as wait. Cancel-safe: as wait. Progress: as wait.
 */
template <class Waiter, class Make>
inline auto wait_with(Make make)
{
    return operation<Waiter, Make>(std::move(make));
}

/*
 * The same for an operation in the caller's memory, a task of C for example.
 * Threads: as wait. Errors: as wait. Suspends: as wait. Cancel-safe: as wait. Progress: as wait.
 */
inline auto wait(bide_awaiter *awaiter)
{
    return wait_with<detail::no_waiter>([awaiter](detail::no_waiter *) { return awaiter; });
}

/*
 * A task: a coroutine that starts when it is awaited, and is awaited once. The object owns the coroutine:
 * destroying it destroys the coroutine where it is suspended, and withdraws what it waits for.
 */
template <class T = void>
class [[nodiscard]] task;

namespace detail
{

template <class T>
struct error_of_value {
    static int get(const T &) noexcept
    {
        return 0;
    }
};
template <class T>
struct error_of_value<result<T>> {
    static int get(const result<T> &value) noexcept
    {
        return value.error();
    }
};

template <class T>
struct task_promise;

struct initial_awaiter {
    promise_base *promise;

    bool await_ready() const noexcept
    {
        return false;
    }
    void await_suspend(std::coroutine_handle<>) const noexcept
    {
    }
    /* It begins to run. */
    void await_resume() const noexcept
    {
        promise->frame.awaiter.ops = &wait_point.ops;
        promise->frame.awaiter.link = &bide_running_;
    }
};

struct final_awaiter {
    bool await_ready() const noexcept
    {
        return false;
    }
    template <class T>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<task_promise<T>> handle) noexcept
    {
        return handle.promise().end(handle.promise().status());
    }
    void await_resume() const noexcept
    {
    }
};

template <class T>
struct task_promise : promise_base {
    std::optional<T> value;

    task<T> get_return_object() noexcept;
    initial_awaiter initial_suspend() noexcept
    {
        return {this};
    }
    final_awaiter final_suspend() const noexcept
    {
        return {};
    }
    template <class U>
    requires std::is_constructible_v<T, U &&>
    void return_value(U &&from)
    {
        value.emplace(std::forward<U>(from));
    }
    int status() const noexcept
    {
        return value ? error_of_value<T>::get(*value) : 0;
    }
    T take()
    {
        throw_again();
        if (!value)
            throw std::system_error(ECANCELED, std::generic_category());
        return std::move(*value);
    }
};

template <class T>
struct task_promise<T &> : promise_base {
    T *value = nullptr;

    task<T &> get_return_object() noexcept;
    initial_awaiter initial_suspend() noexcept
    {
        return {this};
    }
    final_awaiter final_suspend() const noexcept
    {
        return {};
    }
    void return_value(T &from) noexcept
    {
        value = &from;
    }
    int status() const noexcept
    {
        return 0;
    }
    T &take()
    {
        throw_again();
        if (value == nullptr)
            throw std::system_error(ECANCELED, std::generic_category());
        return *value;
    }
};

template <>
struct task_promise<void> : promise_base {
    task<void> get_return_object() noexcept;
    initial_awaiter initial_suspend() noexcept
    {
        return {this};
    }
    final_awaiter final_suspend() const noexcept
    {
        return {};
    }
    void return_void() const noexcept
    {
    }
    int status() const noexcept
    {
        return 0;
    }
    void take()
    {
        throw_again();
        if (frame.error == -ECANCELED) /* it was destroyed, or not begun */
            throw std::system_error(ECANCELED, std::generic_category());
    }
};

/* A task that C++ awaits: by handles, without a call of C. */
template <class T>
class task_wait : public wait_base
{
    task_promise<T> &task_;

  public:
    task_wait(task_wait &&) noexcept = default;
    explicit task_wait(task_promise<T> &task) noexcept : wait_base(&task.frame.awaiter), task_(task)
    {
        task.is_caught = true;
    }
    ~task_wait()
    {
        withdraw();
    }

    bool await_ready() const noexcept
    {
        return false;
    }

    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        resumer *by = choose(handle);
        by->handle = handle;
        by->frame.awaiter.ops = &wait_point.ops;
        by->frame.awaiter.link = awaiter();
        task_.frame.awaiter.frame = &by->frame;
        task_.frame.context = by->frame.context;
        return transfer(&task_);
    }

    T await_resume()
    {
        ended();
        return task_.take();
    }
};

} // namespace detail

template <class T>
class [[nodiscard]] task
{
  public:
    using promise_type = detail::task_promise<T>;
    using value_type = T;

    task(task &&other) noexcept : promise_(std::exchange(other.promise_, nullptr))
    {
    }
    task &operator=(task &&other) noexcept
    {
        std::swap(promise_, other.promise_);
        return *this;
    }
    ~task()
    {
        if (promise_ != nullptr)
            promise_->handle.destroy();
    }

    /*
     * For C: the task as an awaiter, to be awaited once. It ends with 0, or with the error of the
     * bide::result that it returns. The task object stays until then. An exception that leaves it ends
     * the program. If C destroys the coroutine that awaits it, its wait is withdrawn; its locals are
     * destroyed with the task object.
     */
    bide_awaiter *awaiter() const noexcept
    {
        return &promise_->frame.awaiter;
    }

    /* Whether it has ended, or was destroyed from C. */
    bool done() const noexcept
    {
        return bide_done(&promise_->frame);
    }

    /* After it has ended: its value, once, or its exception. */
    T take()
    {
        return promise_->take();
    }

    auto operator co_await() const noexcept
    {
        return detail::task_wait<T>(*promise_);
    }

    promise_type &promise() const noexcept
    {
        return *promise_;
    }

  private:
    friend promise_type;
    explicit task(promise_type *promise) noexcept : promise_(promise)
    {
    }

    promise_type *promise_;
};

template <class T>
task<T> detail::task_promise<T>::get_return_object() noexcept
{
    set_start(std::coroutine_handle<task_promise>::from_promise(*this));
    return task<T>(this);
}
template <class T>
task<T &> detail::task_promise<T &>::get_return_object() noexcept
{
    set_start(std::coroutine_handle<task_promise>::from_promise(*this));
    return task<T &>(this);
}
inline task<void> detail::task_promise<void>::get_return_object() noexcept
{
    set_start(std::coroutine_handle<task_promise>::from_promise(*this));
    return task<void>(this);
}

/*
 * Runs a task in `context`, and blocks the thread until it has ended: as bide_sync_wait_in. Returns its
 * value, or throws its exception.
 * Threads: any but that of a loop. Progress: blocks.
 */
template <class T>
T sync_wait_in(const bide_context &context, task<T> task)
{
    task.promise().is_caught = true;
    detail::flush_turn();
    (void)bide_sync_wait_in(&context, task.awaiter());
    return task.take();
}

/*
 * The same in bide_default_context.
 * Threads: any but that of a loop. Progress: blocks.
 */
template <class T>
T sync_wait(task<T> task)
{
    return sync_wait_in(bide_default_context, std::move(task));
}

/*
 * Runs a task on a loop, and the loop on this thread until the task has ended: as bide_loop_wait and
 * bide_run_loop_wait.
 * Threads: the loop's. Progress: blocks.
 */
template <class T>
T run(bide_loop *loop, task<T> task)
{
    task.promise().is_caught = true;
    detail::flush_turn();
    (void)bide_loop_wait(loop, task.awaiter());
    return task.take();
}
template <class T>
T run(bide_run_loop *loop, task<T> task)
{
    task.promise().is_caught = true;
    detail::flush_turn();
    (void)bide_run_loop_wait(loop, task.awaiter());
    return task.take();
}

/*
 * A std::stop_token as a stop source: requests on the token, and on the parent if there is one, reach it.
 * It stays until what runs under it has ended.
 * Threads: any may request. Progress: blocks as bide_stop_source_detach does.
 */
class linked_stop_source
{
    struct request {
        bide_stop_source *source;
        void operator()() const noexcept
        {
            bide_stop_request(source);
        }
    };
    bide_stop_source source_;
    std::optional<std::stop_callback<request>> callback_;

  public:
    explicit linked_stop_source(std::stop_token token)
    {
        bide_stop_source_init(&source_);
        callback_.emplace(std::move(token), request{&source_});
    }
    ~linked_stop_source()
    {
        callback_.reset();
        bide_stop_source_detach(&source_);
    }
    linked_stop_source(const linked_stop_source &) = delete;
    linked_stop_source &operator=(const linked_stop_source &) = delete;

    bide_stop_source *get() noexcept
    {
        return &source_;
    }
    void attach(bide_stop_source *parent) noexcept
    {
        bide_stop_source_attach(&source_, parent);
    }
};

namespace detail
{

/* A task within an operation of C. `Make`: makes the operation around the task's awaiter. */
template <class Waiter, class T, class Make>
class [[nodiscard]] around : public wait_base
{
    task<T> task_;
    Make make_;
    Waiter waiter_ = Waiter();

    using value = std::conditional_t<std::is_void_v<T>, void, T>;

  public:
    around(task<T> task, Make make) noexcept
        : wait_base(nullptr), task_(std::move(task)), make_(std::move(make))
    {
        task_.promise().is_caught = true;
    }
    /* Before it is awaited. */
    around(around &&other) noexcept
        : wait_base(other), task_(std::move(other.task_)), make_(std::move(other.make_))
    {
    }
    ~around()
    {
        withdraw();
    }

    bool await_ready() const noexcept
    {
        return false;
    }

    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        resumer *by = choose(handle);
        own_.frame.awaiter.link = make_(&waiter_, task_.awaiter(), by->frame.context);
        return start(by, handle, awaiter());
    }

    result<value> await_resume()
    {
        ended();
        int status = bide_awaiter_resume(awaiter(), awaiter()->ops);
        if (!task_.done() || (status != 0 && !has_ended_itself()))
            return result<value>::failed(status);
        if constexpr (std::is_void_v<T>) {
            task_.take();
            return {};
        } else {
            return result<value>(task_.take());
        }
    }

  private:
    bool has_ended_itself() const noexcept
    {
        const auto &promise = task_.promise();
        if (promise.exception)
            return true;
        if constexpr (std::is_void_v<T>)
            return promise.frame.error == 0;
        else
            return static_cast<bool>(promise.value);
    }
};

inline uint64_t nanoseconds(std::chrono::nanoseconds duration) noexcept
{
    return duration.count() < 0 ? 0 : static_cast<uint64_t>(duration.count());
}

} // namespace detail

/*
 * A task that is asked to stop after a while: as bide_with_timeout. Ends with the task's value, if it has ended by
 * itself, or throws its exception; or with the error if it was not begun.
 * Threads: any. Errors: those of bide_with_timeout. Suspends: if the task does. Cancel-safe: as its inner
 * operation is. Progress: that of the task.
 */
template <class T>
auto with_timeout(std::chrono::nanoseconds duration, task<T> task)
{
    auto make = [ns = detail::nanoseconds(duration)](bide_with_deadline_operation *waiter,
                                                     bide_awaiter *inner, const bide_context *) {
        return bide_with_timeout(waiter, ns, inner);
    };
    return detail::around<bide_with_deadline_operation, T, decltype(make)>(std::move(task), make);
}

/*
 * A task that is asked to stop by a std::stop_token too, besides the awaiting coroutine's source. Ends as with_timeout.
 * Threads: any. Errors: those of the task. Suspends: if the task does. Cancel-safe: as its inner operation is.
 * Progress: blocks as bide_stop_source_attach does.
 */
template <class T>
auto with_stop(std::stop_token token, task<T> task)
{
    struct waiter_type {
        std::optional<linked_stop_source> linked;
        bide_with_stop_operation operation;
    };
    auto make = [token = std::move(token)](waiter_type *waiter, bide_awaiter *inner,
                                           const bide_context *context) {
        waiter->linked.emplace(token);
        if (context->stop != nullptr)
            waiter->linked->attach(context->stop);
        return bide_with_stop(&waiter->operation, waiter->linked->get(), inner);
    };
    return detail::around<waiter_type, T, decltype(make)>(std::move(task), std::move(make));
}

/*
 * A task on another scheduler: as bide_schedule_on. The awaiting coroutine resumes on its own.
 * Threads: any. Errors: those of bide_schedule_on. Suspends: always. Cancel-safe: as its inner operation is.
 * Progress: that of the task.
 */
template <class T>
auto schedule_on(bide_scheduler *scheduler, task<T> task)
{
    auto make = [scheduler](bide_schedule_on_operation *waiter, bide_awaiter *inner,
                            const bide_context *) {
        return bide_schedule_on(waiter, scheduler, inner);
    };
    return detail::around<bide_schedule_on_operation, T, decltype(make)>(std::move(task), make);
}

namespace detail
{

class [[nodiscard]] context_wait
{
    const bide_context *context_ = &bide_default_context;

  public:
    bool await_ready() const noexcept
    {
        return false;
    }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        if constexpr (belongs_to_bide<Promise>)
            context_ = handle.promise().frame.context;
        else if constexpr (has_context<Promise>)
            context_ = handle.promise().wait_context();
        return false;
    }
    const bide_context &await_resume() const noexcept
    {
        return *context_;
    }
};

} // namespace detail

/*
 * The context in which the coroutine waits: bide_this_context(). For bide_now, and for a scope.
 * Threads: the coroutine's. Errors: none. Suspends: never. Cancel-safe: yes. Progress: wait-free.
 */
inline auto this_context() noexcept
{
    return detail::context_wait();
}

/*
 * Tasks that run beside the coroutine that owns the scope, and have all ended when it has been joined: bide_scope.
 *
 *     bide::scope clients(co_await bide::this_context());
 *     clients.spawn(serve(std::move(socket)));
 *     (co_await clients.join()).value();              // all have ended; the first error
 *
 * A task that ends with an error asks the others to stop; so does a request to stop the owner. A spawned
 * task belongs to the scope, which allocates memory for it, and frees it when the task has ended. An
 * exception that leaves it ends the program. The destructor destroys the tasks that still run, as
 * bide_scope_destroy does: newest first, on their scheduler. The object stays where it is.
 * Threads: the owner's; a task of the scope may spawn and stop.
 */
class scope
{
    template <class T>
    struct spawned {
        task<T> work;
        bide_branch branch;

        static void ended(bide_branch *branch) noexcept
        {
            delete bide_container_of(branch, spawned, branch);
        }
    };
    bide_scope scope_;

  public:
    explicit scope(const bide_context &context) noexcept
    {
        bide_frame owner = {};
        owner.context = &context;
        bide_scope_init_(&scope_, &owner, false); /* copies the context, and keeps no owner */
    }
    ~scope()
    {
        bide_scope_destroy(&scope_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

    /* Begins a task: it is posted to the scope's scheduler. Allocates, and throws std::bad_alloc. */
    template <class T>
    void spawn(task<T> work)
    {
        auto *begun = new spawned<T>{std::move(work), {}};
        bide_scope_spawn_in(&scope_, &begun->branch, &scope_.context, begun->work.awaiter(),
                            spawned<T>::ended);
    }

    /* Asks all tasks to stop. */
    void stop() noexcept
    {
        bide_scope_stop(&scope_);
    }

    /* Waits until all have ended: bide_scope_join. */
    [[nodiscard]] auto join() noexcept
    {
        return wait_with<detail::no_waiter>(
            [this](detail::no_waiter *) { return bide_scope_join(&scope_); });
    }

    /* The same; asks them to stop after that time, and then ends with -ETIMEDOUT when they have. */
    [[nodiscard]] auto join_for(std::chrono::nanoseconds duration) noexcept
    {
        return wait_with<bide_with_deadline_operation>(
            [this, ns = detail::nanoseconds(duration)](bide_with_deadline_operation *waiter) {
                return bide_with_timeout(waiter, ns, bide_scope_join(&scope_));
            });
    }
};

/*
 * Sleeps for a while, on the coroutine's scheduler: bide_sleep_for.
 * Threads: any. Errors: as bide_sleep_for. Suspends: as bide_sleep_for. Cancel-safe: yes.
 * Progress: that of the scheduler.
 */
inline auto sleep_for(std::chrono::nanoseconds duration)
{
    return wait_with<bide_sleep>([ns = detail::nanoseconds(duration)](bide_sleep *sleep) {
        return bide_sleep_for(sleep, ns);
    });
}

/*
 * bide_recv, bide_send, bide_read and bide_write, with buffers as spans: the count of bytes.
 * Threads: the loop's. Errors: those of the functions in C. Suspends: as those. Cancel-safe: as those.
 * Progress: as those.
 */
inline auto recv(bide_descriptor &socket, std::span<std::byte> buffer)
{
    return wait_with<bide_io_operation>([&socket, buffer](bide_io_operation *waiter) {
        return bide_recv(waiter, &socket, buffer.data(), buffer.size());
    });
}
inline auto send(bide_descriptor &socket, std::span<const std::byte> data)
{
    return wait_with<bide_io_operation>([&socket, data](bide_io_operation *waiter) {
        return bide_send(waiter, &socket, data.data(), data.size());
    });
}
inline auto read(bide_descriptor &file, std::span<std::byte> buffer)
{
    return wait_with<bide_file_operation>([&file, buffer](bide_file_operation *waiter) {
        return bide_read(waiter, &file, buffer.data(), buffer.size());
    });
}
inline auto write(bide_descriptor &file, std::span<const std::byte> data)
{
    return wait_with<bide_file_operation>([&file, data](bide_file_operation *waiter) {
        return bide_write(waiter, &file, data.data(), data.size());
    });
}

namespace detail
{

/* The wait of a guard, which holds what the wait has got. */
template <class Guard, class Waiter>
class [[nodiscard]] guard_wait : public wait_base
{
    Guard &guard_;
    Waiter waiter_;

  public:
    explicit guard_wait(Guard &guard) noexcept : wait_base(nullptr), guard_(guard)
    {
    }
    guard_wait(guard_wait &&other) noexcept : wait_base(other), guard_(other.guard_)
    {
    }
    ~guard_wait()
    {
        withdraw();
    }
    guard_wait &&in(const bide_context &context) &&noexcept
    {
        own_.frame.context = &context;
        return std::move(*this);
    }
    bool await_ready() noexcept
    {
        own_.frame.awaiter.link = guard_.make()(&waiter_);
        return is_ready(awaiter());
    }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> handle) noexcept
    {
        return start(choose(handle), handle, awaiter());
    }
    result<> await_resume() noexcept
    {
        ended();
        int status = bide_awaiter_resume(awaiter(), awaiter()->ops);
        guard_.held() = status == 0;
        return status != 0 ? result<>::failed(status) : result<>();
    }
};

} // namespace detail

/*
 * A lock of a mutex for a block: `bide::mutex_guard guard(mutex); (co_await guard.lock()).value();`. The
 * destructor unlocks it, if it was locked. The object stays where it is.
 * Threads: the holder's. Errors: those of bide_mutex_lock. Suspends: as that. Cancel-safe: yes.
 * Progress: lock-free.
 */
class mutex_guard
{
    bide_mutex &mutex_;
    bide_mutex_waiter waiter_;
    bool is_locked_ = false;

    bool &held() noexcept
    {
        return is_locked_;
    }
    auto make() noexcept
    {
        return [this](detail::no_waiter *) { return bide_mutex_lock(&waiter_, &mutex_); };
    }
    template <class Guard, class Waiter>
    friend class detail::guard_wait;

  public:
    explicit mutex_guard(bide_mutex &mutex) noexcept : mutex_(mutex)
    {
    }
    ~mutex_guard()
    {
        unlock();
    }
    mutex_guard(const mutex_guard &) = delete;
    mutex_guard &operator=(const mutex_guard &) = delete;

    [[nodiscard]] auto lock() noexcept
    {
        return detail::guard_wait<mutex_guard, detail::no_waiter>(*this);
    }
    void unlock() noexcept
    {
        if (std::exchange(is_locked_, false))
            bide_mutex_unlock(&waiter_);
    }
    explicit operator bool() const noexcept
    {
        return is_locked_;
    }
};

/*
 * Permits of a semaphore for a block: `bide::permit permit(semaphore); (co_await permit.acquire()).value();`.
 * The destructor releases them, if they were acquired. The object stays where it is until then.
 * Threads: any. Errors: those of bide_semaphore_acquire_many. Suspends: as that. Cancel-safe: yes.
 * Progress: lock-free.
 */
class permit
{
    bide_semaphore &semaphore_;
    uint32_t count_;
    bool is_held_ = false;

    bool &held() noexcept
    {
        return is_held_;
    }
    auto make() noexcept
    {
        return [this](bide_semaphore_waiter *waiter) {
            return bide_semaphore_acquire_many(waiter, &semaphore_, count_);
        };
    }
    template <class Guard, class Waiter>
    friend class detail::guard_wait;

  public:
    explicit permit(bide_semaphore &semaphore, uint32_t count = 1) noexcept
        : semaphore_(semaphore), count_(count)
    {
    }
    ~permit()
    {
        release();
    }
    permit(const permit &) = delete;
    permit &operator=(const permit &) = delete;

    [[nodiscard]] auto acquire() noexcept
    {
        return detail::guard_wait<permit, bide_semaphore_waiter>(*this);
    }
    void release() noexcept
    {
        if (std::exchange(is_held_, false))
            bide_semaphore_release(&semaphore_, count_);
    }
    explicit operator bool() const noexcept
    {
        return is_held_;
    }
};

/*
 * The values of a generator of C as a range: `for (int &value : bide::values<int>(generator))`. It ends the
 * generator when the range is destroyed, as bide_for does. One pass.
 * Threads: one at a time. Suspends: never. Progress: that of the generator's body.
 */
template <class T>
class [[nodiscard]] values
{
    bide_generator *generator_;

  public:
    class iterator
    {
        bide_generator *generator_ = nullptr;
        T *value_ = nullptr;

      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = std::remove_cv_t<T>;
        using difference_type = std::ptrdiff_t;

        iterator() = default;
        explicit iterator(bide_generator *generator)
            : generator_(generator), value_(static_cast<T *>(bide_generator_next(generator)))
        {
        }
        T &operator*() const noexcept
        {
            return *value_;
        }
        T *operator->() const noexcept
        {
            return value_;
        }
        iterator &operator++()
        {
            value_ = static_cast<T *>(bide_generator_next(generator_));
            return *this;
        }
        void operator++(int)
        {
            ++*this;
        }
        friend bool operator==(const iterator &at, std::default_sentinel_t) noexcept
        {
            return at.value_ == nullptr;
        }
    };

    explicit values(bide_generator *generator) noexcept : generator_(generator)
    {
    }
    ~values()
    {
        bide_generator_destroy(generator_);
    }
    values(const values &) = delete;
    values &operator=(const values &) = delete;

    iterator begin()
    {
        return iterator(generator_);
    }
    std::default_sentinel_t end() const noexcept
    {
        return {};
    }
};

/*
 * A stop source of bide as a std::stop_token: a request on `source` requests the token's stop, on the
 * scheduler of `context`. Allocates. `source` and the scheduler outlive the object, and the callback if it
 * is under way.
 * Threads: any. Progress: blocks as bide_stop_source_detach does.
 */
class stop_token_source
{
    struct state {
        bide_stop_callback callback;
        std::stop_source source;
        bide_stop_callback_waiter waiter;
        bide_root root;
    };
    state *state_;

    static void called(void *argument)
    {
        /* a copy: callbacks of the token may destroy the object */
        std::stop_source source = static_cast<state *>(argument)->source;
        source.request_stop();
    }

  public:
    stop_token_source(bide_stop_source *source, const bide_context &context) : state_(new state)
    {
        bide_stop_callback_init(&state_->callback, source, &context, called, state_);
    }
    ~stop_token_source()
    {
        if (bide_stop_callback_remove(&state_->callback)) {
            delete state_;
            return;
        }
        /* It is posted, runs, or has run: freed after that. */
        bide_root_start(&state_->root, &bide_default_context,
                        bide_stop_callback_wait(&state_->waiter, &state_->callback),
                        [](bide_root *root) { delete bide_container_of(root, state, root); });
    }
    stop_token_source(const stop_token_source &) = delete;
    stop_token_source &operator=(const stop_token_source &) = delete;

    std::stop_token token() const
    {
        return state_->source.get_token();
    }
};

#undef BIDE_HPP_APART_

} // namespace bide

#endif
