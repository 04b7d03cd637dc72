/*
 * async and await as keywords of C, translated by bidec. Floor: tools.
 *
 *     async int fetch(struct client *client, const char *url)
 *     {
 *         char buffer[4096];
 *         int n, total = 0;
 *         while ((n = await client_read(client, buffer, sizeof buffer)) > 0)
 *             total += n;
 *         return n < 0 ? n : total;
 *     }
 *
 * becomes a struct, its frame, and a function that puts the frame at its start:
 *
 *     struct async_fetch { bide_task task; ... };      // its result, parameters and variables
 *     bide_awaiter *async_fetch(struct async_fetch *frame, struct client *client, const char *url);
 *
 * Plain C, hand-written bodies, bide_spawn and bide_sync_wait use that frame as any other task. When
 * the task has ended, its result is frame->result. It runs where its context's scheduler runs it, as
 * any task. The frame of an awaited function is a member of the awaiting function's frame. Only
 * spawn and async_created functions allocate.
 *
 *     await f(...)                  the result of an async function
 *     await operation(...)          its status, or its count of bytes (bide_recv)
 *     await all(...), any(...)      the status, as of bide_when_all (when.h); also all_ready
 *     await select_any(&w, ...)     the status, as of bide_select_any (select.h); w: the winner's index
 *     try await f(...)              the value, unless it fails: then this function ends with the error
 *     async_for, yield, yield_from  generators
 *     async_select (status) { when (operation) statement ... }
 *     spawn(scope, f(...))          functions that run in a scope
 *     async_block({ ... })          a function for one place; async_capture T name = value; begins it
 *     async_kind(K) T f(...) {}     a function of a kind of your own, whose hooks are K_type
 *     async_call(pointer, ...)      the async function that an async_pointer(T, ...) points at
 *
 * "What an await takes" is below; docs/async.md describes the language.
 */
#ifndef BIDE_ASYNC_H
#define BIDE_ASYNC_H

/*
 * An await takes:
 * - a call of an async function. The value is the function's result;
 * - a call of a function that makes an awaiter. Without its first argument, the waiter, as in
 *   `await bide_event_wait(&event)`, the waiter is a member of the frame, for as long as the marks of
 *   compiler.h say; one that is needed afterwards cannot be left out. The value is the status, or
 *   the count of bytes if the operation has one (bide_recv) and did not fail. An operation that runs
 *   another one and is marked BIDE_PASSES_RESULT has the value of that;
 * - all(...), any(...) or all_ready(...) of such calls, as bide_when_all and so on. The value is the
 *   status. A result other than an int would be lost: an error, unless the call is cast to void;
 * - select_any(&which, ...) of such operations, as bide_select_any. The value is the status, and
 *   `which` becomes the index of the winner;
 * - async_select, a statement with the operations of select_any, and a statement for each of them;
 * - select_in_order(&which, ...), the same as bide_select_any_in_order: the first that is ready;
 * - any expression of type bide_awaiter *. The value is the status.
 *
 * `try await` ends the function if what is awaited ends with a negative status: its deferred statements
 * run, and the task ends with that status, which is also the result if that is an int, long or long
 * long. Any other result is zeros. The status of an async function is the error of its task (below).
 *
 * An async_generator(type) function passes values to its consumer by `yield value;`. The consumer is a
 * loop: `async_for (type value, generator(...)) statement`. A generator(type) or recursive_generator(type)
 * function does the same without awaits, and is a bide_generator or bide_recursive_generator for plain C.
 * `yield_from generator(...);` in a recursive one yields all values of another. spawn(scope, call) starts an async function
 * in a bide_scope; its value is 0 or -ENOMEM.
 *
 * async_block({ captures, statements }) stands for the call of an async function that returns an int. It begins with
 * copies of values from the function around it, `async_capture int n = count;`, and sees no other names of that function.
 *
 * If the result is an int, long or long long and a negative errno, the task ends with that error, and
 * otherwise with 0. If the function is destroyed, its deferred statements run.
 *
 * A file that is compiled without bidec does not assemble, and the error says why. The output of bidec
 * (BIDE_EMITTED) does. With BIDE_SYNCHRONOUS defined, async and await are empty and the functions are
 * plain C; that is for programs that await only their own functions.
 */
#include "bide/async_generator.h"
#include "bide/create.h"
#include "bide/generator.h"
#include "bide/recursive_generator.h"
#include "bide/scope.h"
#include "bide/select.h"
#include "bide/sleep.h"
#include "bide/task.h"
#include "bide/when.h"
#include "bide/detail/async_step.h"
#if !defined BIDE_SYNCHRONOUS
#include "bide/detail/async_macros.h"
#endif

/*
 * The frame of an async function, as a type: `async_frame(fetch) frame;` is
 * `struct async_fetch frame;`, and an editor, which knows no such struct, can read it.
 * Threads: any may use the type.
 */
#if defined __BIDEC__ || defined BIDE_EMITTED
#define async_frame(name) struct async_##name
#endif

/*
 * Memory for a frame of an async function that is defined in this file, or of one of a kind of its own: from the
 * kind's `allocate`, or from `allocator`, a bide_allocator *. A pointer to the frame, or NULL. bide_free gives it
 * back: bide_free(&frame->task.frame), or &frame->promise.frame.
 *
 *     async_frame(greet) *frame = async_create(greet, allocator);
 *     if (frame != NULL)
 *         bide_start_async(async_greet(frame, name), context);
 *
 * Threads: any that may use the allocator. Progress: that of the allocator.
 */
#if defined __BIDEC__ || defined BIDE_EMITTED
#define async_create(name, allocator)                                            \
    ((struct async_##name *)bide_async_create_(sizeof(struct async_##name),      \
                                               __alignof__(struct async_##name), \
                                               &bide_async_##name##_start_, (allocator)))
#endif

/*
 * A pointer at an async_created function, with its type: of the result, and of up to eight parameters. It is a pointer of
 * C: a variable, a member, an element, a parameter, a result of a function; NULL; compared with ==.
 *
 *     struct route { const char *path; async_pointer(int, struct request *) handle; };
 *     static const struct route routes[] = {{"/", async_pointer_to(front_page)}};
 *     ...
 *     int status = await async_call(route->handle, request);
 *     spawn(&scope, async_call(route->handle, request))
 *
 * async_call creates the function's frame, whose size is known where the function is defined, as any call of an
 * async_created function does. Plain C calls it with a bide_async_call:
 *
 *     int result;
 *     bide_async_call call = {&bide_heap, &result, NULL};
 *     route->handle(&call, request);
 *     bide_sync_wait(call.awaiter);
 *
 * Threads: any may use the type and the pointer.
 */
#if defined __BIDEC__ || defined BIDE_EMITTED
#define async_pointer_to(name)      bide_async_##name##_pointer_
#define BIDE_ASYNC_POINTER_1_(type) __typeof__(__typeof__(type) *(*)(struct bide_async_call *))
#define BIDE_ASYNC_POINTER_MORE_(type, ...) \
    __typeof__(__typeof__(type) *(*)(struct bide_async_call *, __VA_ARGS__))
#else
/* Without bidec: a pointer at a plain function. */
#define async_pointer_to(name)              name
#define BIDE_ASYNC_POINTER_1_(type)         __typeof__(__typeof__(type)(*)(void))
#define BIDE_ASYNC_POINTER_MORE_(type, ...) __typeof__(__typeof__(type)(*)(__VA_ARGS__))
#define async_call(...)                     BIDE_COUNTED_(BIDE_ASYNC_CALL_, BIDE_COUNT_(__VA_ARGS__))(__VA_ARGS__)
#define BIDE_ASYNC_CALL_1_(pointer)         ((pointer)())
#define BIDE_ASYNC_CALL_MORE_(pointer, ...) ((pointer)(__VA_ARGS__))
/* clang-format off */
#define BIDE_ASYNC_CALL_2_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_3_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_4_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_5_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_6_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_7_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_8_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
#define BIDE_ASYNC_CALL_9_(pointer, ...) BIDE_ASYNC_CALL_MORE_(pointer, __VA_ARGS__)
/* clang-format on */
#endif
#define async_pointer(...) BIDE_COUNTED_(BIDE_ASYNC_POINTER_, BIDE_COUNT_(__VA_ARGS__))(__VA_ARGS__)
/* clang-format off */
#define BIDE_ASYNC_POINTER_2_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_3_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_4_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_5_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_6_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_7_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_8_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
#define BIDE_ASYNC_POINTER_9_(type, ...) BIDE_ASYNC_POINTER_MORE_(type, __VA_ARGS__)
/* clang-format on */

#if defined BIDE_SYNCHRONOUS
#define async
#define async_created
#define async_sized(size)
#define await
/* No yield, async_for, spawn and try: a plain function cannot stop in the middle. */
#endif

#ifdef __BIDEC__
#ifdef __SANITIZE_ADDRESS__
struct __bide_async_asan; /* the memory of a block is poisoned behind it */
#elif defined __has_feature
#if __has_feature(address_sanitizer)
struct __bide_async_asan;
#endif
#endif
#ifdef __clang__
struct __bide_async_clang; /* which warns without compiling */
#if __has_warning("-Wgnu-line-marker")
/* clang compiles text with line markers, as the translator writes it; the translator moves this to the top. */
#pragma clang diagnostic ignored "-Wgnu-line-marker"
#endif
#endif

/* The value of an await of an operation that did not fail, by the type of its waiter: a member, or
 * the result of a function of the waiter. */
#define BIDE_VALUE_(waiter, type, expression) BIDE_MARK_("value " #waiter " " #type " " #expression)
BIDE_VALUE_(bide_io_operation, long, count);
BIDE_VALUE_(bide_file_operation, long, operation.count);
BIDE_VALUE_(bide_datagram, long, operation.count);
BIDE_VALUE_(bide_reader_operation, long, count);
BIDE_VALUE_(bide_writer_operation, long, count);
BIDE_VALUE_(bide_copy_operation, long, count);
BIDE_VALUE_(bide_splice_operation, long, count);
BIDE_VALUE_(bide_send_file_operation, long, count);
BIDE_VALUE_(bide_copy_file_operation, long, count);
BIDE_VALUE_(bide_blocking_reader, long, result);
BIDE_VALUE_(bide_stream_operation, long, bide_stream_value_());
BIDE_VALUE_(bide_stream_within_operation, long, count);
#undef BIDE_VALUE_
#endif

BIDE_EXTERN_C_BEGIN

/* A call by an async_pointer, for plain C. The caller's. */
typedef struct bide_async_call {
    bide_allocator *allocator; /* of the function's frame */
    void *result;              /* where its result is written, or the error if there is no memory */
    bide_awaiter *awaiter;     /* written by the call: to be awaited, once */
} bide_async_call;

/* The rest of the thread's budget, as a local variable of a step function: coroutine.h. */
typedef struct bide_async_budget_ {
    int32_t left;
    int32_t kept;
} bide_async_budget_;

BIDE_INLINE bide_async_budget_ bide_async_budget_take_(void)
{
    int32_t left = bide_budget_;
    bide_async_budget_ budget = {left, left};
    return budget;
}

BIDE_INLINE void bide_async_budget_keep_(bide_async_budget_ *budget)
{
    if (budget->left != budget->kept)
        bide_budget_ = budget->kept = budget->left;
}

/* A part of the step function, whose place on the stack a debug build compares with an awaiter's. */
#if BIDE_DEBUG && defined __GNUC__
#define BIDE_ASYNC_IN_STEP_ static inline __attribute__((always_inline))
#else
#define BIDE_ASYNC_IN_STEP_ BIDE_INLINE
#endif

/* Before and after a child is called directly. */
BIDE_ASYNC_IN_STEP_ void bide_async_calls_(bide_frame *frame, bide_awaiter *awaiter,
                                           const bide_point *here, bide_async_budget_ *budget)
{
    bide_async_budget_keep_(budget);
    BIDE_STORE_ALONE_(((bide_frame *)(void *)awaiter)->context, frame->context);
#if BIDE_DEBUG
    bide_check_awaited_(frame, awaiter, here, BIDE_STEP_TOP_);
#endif
    frame->awaiter.ops = &here->ops;
    frame->awaiter.link = awaiter;
    bide_flight_begins_(awaiter, frame);
    awaiter->frame = frame;
}

BIDE_INLINE void bide_async_called_(bide_frame *frame, bide_async_budget_ *budget)
{
    *budget = bide_async_budget_take_();
    bide_frame_continues_(frame);
}

/* A direct child ends. */
BIDE_INLINE bide_frame *bide_async_ends_(bide_frame *frame, const bide_coroutine_code *code,
                                         const bide_point *finished, int error)
{
#if BIDE_DEBUG
    (void)bide_frame_finish_(frame, code, finished, error);
#else
    (void)code, (void)finished;
    frame->error = error; /* for a `try` */
#endif
    return NULL;
}

/* The state of an operation that was looked at. */
typedef enum bide_async_looked_ {
    BIDE_ASYNC_GOES_ON_, /* it has ended */
    BIDE_ASYNC_SPENT_,   /* the budget is spent, and it was not looked at; `left` is negative */
    BIDE_ASYNC_WAITS_    /* it has not ended */
} bide_async_looked_;

/*
 * One await, in two parts: has the operation ended? If not, the frame is saved. The table is read
 * once, right where the operation is made: so the compiler knows it, and steps a child directly.
 */
BIDE_ASYNC_IN_STEP_ bide_async_looked_ bide_async_look_(bide_frame *frame, bide_awaiter *awaiter,
                                                        const bide_awaiter_ops *ops,
                                                        const bide_point *here,
                                                        bide_async_budget_ *budget)
{
#if BIDE_DEBUG
    bide_check_awaited_(frame, awaiter, here, BIDE_STEP_TOP_);
#endif
    (void)frame;
    (void)here;
    if (BIDE_COUNTS_(ops) && BIDE_UNLIKELY(--budget->left < 0))
        return BIDE_ASYNC_SPENT_;
    if (bide_awaiter_ready(awaiter, ops))
        return BIDE_ASYNC_GOES_ON_;
    if (BIDE_COUNTS_(ops))
        budget->left++;
    return BIDE_ASYNC_WAITS_;
}

/*
 * bide_async_wait_ inline, for a frame that is not direct and a coroutine that is probably stepped at
 * once. True: the frame is suspended, or has given way, and *next runs next. False: the operation has
 * ended, the frame continues, and *ops is the table by which it is resumed.
 */
BIDE_INLINE bool bide_async_suspends_(bide_frame *frame, bide_awaiter *awaiter,
                                      const bide_awaiter_ops **ops, const bide_point *here,
                                      bide_async_looked_ looked, unsigned depth,
                                      bide_async_budget_ *budget, bide_frame **next)
{
    if (looked == BIDE_ASYNC_SPENT_) {
        if (bide_await_spent_(frame, awaiter, here, next))
            return true;
    } else {
        bide_async_budget_keep_(budget);
        if (bide_suspend_(frame, awaiter, *ops, here, depth, next))
            return true;
    }
    *budget = bide_async_budget_take_();
    if (!BIDE_KNOWN_((*ops)->resume == NULL) || (*ops)->cancel != NULL)
        *ops = awaiter->ops;
    bide_frame_continues_(frame);
    return false;
}

/*
 * An await in a function of a kind with an await_transform: returns what is awaited instead of `awaiter`.
 */
BIDE_INLINE bide_awaiter *bide_async_transform_(bide_frame *frame, bide_awaiter *awaiter,
                                                bide_awaiter *(*transform)(bide_frame *frame,
                                                                           bide_awaiter *awaiter),
                                                const bide_point *here)
{
#if BIDE_DEBUG
    bide_check_awaited_(frame, awaiter, here, BIDE_STEP_TOP_);
#endif
    (void)here;
    return transform(frame, awaiter);
}

/*
 * A function of a kind of its own has returned, before its deferred statements run: calls the hook for that. `value`: the
 * result, for the hook that takes it, or NULL. Returns the error that the function ends with.
 */
BIDE_INLINE int bide_async_returns_(bide_frame *frame, const bide_coroutine_type *type, void *value,
                                    int error)
{
    if (error >= 0 && value != NULL) {
        type->return_value(frame, value);
        return 0;
    }
    return bide_frame_return_(frame, type, error);
}

/*
 * Starts an async function beside the caller, as bide_start does: with what its kind's initial_suspend says. (That of a
 * plain async function: it waits for bide_resume.) `function` is what async_name(frame, ...) has returned. Returns what
 * the kind's get_return_object makes, or else the frame. An await of the function does none of this. `context` outlives
 * the function.
 * Threads: any of the context's scheduler's. Errors: none. Suspends: never. Progress: wait-free, and then that of what it
 * runs.
 */
BIDE_INLINE void *bide_start_async(bide_awaiter *function, const bide_context *context)
{
    bide_frame *frame = (bide_frame *)(void *)function;
#if BIDE_DEBUG
    if (BIDE_UNLIKELY(!bide_awaiter_is_frame(function) ||
                      bide_frame_point(frame)->state != BIDE_AT_START))
        bide_misuse_("bide_start_async takes what async_name(frame, ...) returns, once",
                     "bide_start_async", __FILE__, __LINE__);
#endif
    return (bide_start)(frame, bide_frame_point(frame), context);
}

/* Memory for a created frame. */
BIDE_INLINE void *bide_async_create_(size_t size, size_t alignment, const bide_point *body,
                                     bide_allocator *allocator)
{
    return alignment <= BIDE_ALLOCATOR_ALIGN
               ? (bide_create)(size, body, allocator)
               : bide_create_aligned(size, alignment, body, allocator);
}

/* The header that spawn() puts in front of the frame; it is freed when its branch ends. */
typedef struct bide_async_spawned_ {
    bide_branch branch;
    bide_allocator *allocator;
    size_t size;
} bide_async_spawned_;

BIDE_INLINE void *bide_async_spawned_new_(bide_allocator *allocator, size_t size, size_t alignment)
{
    size_t all = bide_aligned_size_(0, size, alignment);
    if (all == 0)
        return NULL;
    bide_async_spawned_ *spawned = (bide_async_spawned_ *)bide_aligned_begin_(
        allocator->allocate(allocator, all), 0, &all, alignment);
    if (spawned != NULL) {
        spawned->allocator = allocator;
        spawned->size = all;
    }
    return spawned;
}

BIDE_INLINE void bide_async_spawned_free_(bide_branch *branch)
{
    bide_async_spawned_ *spawned = (bide_async_spawned_ *)(void *)branch;
    bide_allocator *allocator = spawned->allocator;
    size_t size = spawned->size;
    void *memory = bide_aligned_memory_(spawned, &size);
    allocator->deallocate(allocator, memory, size);
}

/* Returns what spawn() does, on a line of a function. */
BIDE_INLINE int bide_async_spawn_(bide_scope *scope, void *spawned, bide_awaiter *awaiter,
                                  const bide_coroutine_code *code, unsigned line)
{
    if (spawned == NULL)
        return -ENOMEM;
    bide_branch *branch = &((bide_async_spawned_ *)spawned)->branch;
#if BIDE_DEBUG
    bide_scope_spawn_checked_(scope, branch, NULL, awaiter, bide_async_spawned_free_,
                              BIDE_BRANCH_REUSED_, BIDE_SCOPE_CLOSED_, code->name, code->file,
                              line);
#else
    (void)code, (void)line;
    bide_scope_spawn_in(scope, branch, &scope->context, awaiter, bide_async_spawned_free_);
#endif
    return 0;
}

/* The same for a created frame, which may have had no memory: nothing is begun then. */
BIDE_INLINE int bide_async_spawn_created_(bide_scope *scope, void *spawned, bide_awaiter *awaiter,
                                          const bide_coroutine_code *code, unsigned line)
{
    if (spawned != NULL && bide_awaited_frame(awaiter) == NULL) {
        bide_async_spawned_free_(&((bide_async_spawned_ *)spawned)->branch);
        spawned = NULL;
    }
    return bide_async_spawn_(scope, spawned, awaiter, code, line);
}

/* A recursive generator at its start, and the allocator of the frames that it creates. */
BIDE_INLINE bide_recursive_generator *
bide_async_generator_from_(bide_recursive_generator *generator, bide_allocator **of,
                           bide_allocator *allocator)
{
    *of = allocator;
    return generator;
}

/* The numbers by which a select of the frame draws, begun by its clock. */
BIDE_INLINE uint64_t *bide_async_random_(uint64_t *random, const bide_frame *frame)
{
    if (*random == 0)
        *random = bide_now(frame->context) | 1;
    return random;
}

/* With what a frame ends, by its result: an error of the system, or 0. */
BIDE_INLINE int bide_async_error_of_int_(const int *result)
{
    return *result < 0 && *result >= -4095 ? *result : 0;
}

BIDE_INLINE int bide_async_error_of_long_(const long *result)
{
    return *result < 0 && *result >= -4095 ? (int)*result : 0;
}

BIDE_INLINE int bide_async_error_of_long_long_(const long long *result)
{
    return *result < 0 && *result >= -4095 ? (int)*result : 0;
}

enum { BIDE_ASYNC_NO_MEMORY_ = -ENOMEM };

/* The result of a function that has none, because it was not begun. */
BIDE_INLINE void bide_async_fails_int_(int *result, int status)
{
    *result = status;
}

BIDE_INLINE void bide_async_fails_long_(long *result, int status)
{
    *result = status;
}

BIDE_INLINE void bide_async_fails_long_long_(long long *result, int status)
{
    *result = status;
}

BIDE_INLINE void bide_async_fails_(void *result, int status)
{
    (void)result, (void)status;
}

BIDE_INLINE int bide_async_no_error_(const void *result)
{
    (void)result;
    return 0;
}

BIDE_EXTERN_C_END

#if defined BIDE_EMITTED
/* A local that has no value yet is saved as the others are. */
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

#if !defined __BIDEC__ && !defined BIDE_EMITTED && !defined BIDE_SYNCHRONOUS
/*
 * For editors, which read this and generate nothing. The words are nothing, or what an editor can
 * take for C; they are defined behind all headers of bide, whose members may have their names.
 */
#if defined __clang__ && !defined __cplusplus
#include "bide/detail/editor.h"
/* an await of a bide_awaiter * is an int; a value that is yielded is used */
#pragma clang diagnostic ignored "-Wint-conversion"
#pragma clang diagnostic ignored "-Wunused-value"
#pragma clang diagnostic ignored "-Wunsequenced"
#pragma clang diagnostic ignored "-Wimplicit-function-declaration"
#endif
/* Of a frame an editor knows its head. */
struct bide_editor_frame_ {
    bide_task task, promise;
    bide_async_generator generator;
    int result;
};
#define async_frame(name) struct bide_editor_frame_
#if defined __clang__
#define BIDE_NEEDS_BIDEC_
#elif defined __cplusplus
#define BIDE_NEEDS_BIDEC_ \
    _Pragma("GCC error \"async functions are C: put them into a .c file, for bidec gcc\"")
#else
/* gcc reads no declarations for editors, so that all that follows would be errors without a reason. */
#define BIDE_NEEDS_BIDEC_ _Pragma("GCC error \"compile this file with bidec: bidec gcc ...\"")
#endif
#define async                    BIDE_NEEDS_BIDEC_
#define async_created            BIDE_NEEDS_BIDEC_
#define async_sized(size)        BIDE_NEEDS_BIDEC_
#ifdef __clang__
#define async_kind(...) BIDE_ASYNC_KIND_(BIDE_NAME_(bide_kind_, __COUNTER__), __VA_ARGS__, )
#define BIDE_ASYNC_KIND_(name, kind, ...) \
    static const void *const name __attribute__((__used__)) = &kind##_type; /* its hooks are used */
#else
#define async_kind(...) BIDE_NEEDS_BIDEC_
#endif
#define async_create(name, from) ((struct bide_editor_frame_ *)(void *)((void)(from), (char *)0))
#define async_generator(type)    BIDE_NEEDS_BIDEC_
#ifndef __cplusplus
#define generator(type)           BIDE_NEEDS_BIDEC_
#define recursive_generator(type) BIDE_NEEDS_BIDEC_
#define yield_from                (void)
#endif
#define async_for(variable, ...) for (variable = {0}; (void)(__VA_ARGS__), 1;)
#define await
#ifndef __cplusplus
#ifdef __clang__
#define async_select(...) if (__VA_OPT__((__VA_ARGS__) = 0, ) 1)
#define when(operation)   if ((void)(operation), 1)
#endif
#define try
#endif
#define yield (void)0,
#define defer
#define async_capture
#define async_block(...)            (({ __VA_ARGS__ 0; }))
#define spawn(scope, call)          ((void)(scope), (void)(call), 0)
#define all(...)                    ((void)(__VA_ARGS__), 0)
#define any(...)                    ((void)(__VA_ARGS__), 0)
#define all_ready(...)              ((void)(__VA_ARGS__), 0)
#define select_any(which, ...)      ((void)(which), (void)(__VA_ARGS__), 0)
#define select_in_order(which, ...) ((void)(which), (void)(__VA_ARGS__), 0)
__asm__(".error \"a file that includes bide/async.h is compiled by bidec: bidec cc ...\"");
#endif

#endif
