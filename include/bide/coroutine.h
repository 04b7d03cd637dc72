/*
 * The body of a coroutine: begin, await, try, return, finally, end. Floor: coroutine.
 *
 *     struct hello {
 *         bide_task task;                  // header first
 *         bide_event *ready;               // then parameters
 *         bide_event_waiter wait;          // then state that outlives an await, and operations
 *     };
 *
 *     bide_coroutine(hello_body)
 *     {
 *         bide_begin(hello_body, struct hello *self);
 *         bide_await(bide_event_wait(&self->wait, self->ready));
 *         puts("hello");
 *         bide_end();
 *     }
 *
 * A body is plain C: loops, blocks, switch, goto. But each await loses the values of the C function's
 * local variables, even of one that is initialised right after bide_begin. State that must outlive an
 * await is a member of the frame. An await must not be directly inside a switch of the body's own if
 * the body is compiled as standard C (detail/body_variants.h), and a yield never. In C++ the rules of
 * detail/body_cxx.h hold too; an exception that leaves a body ends the program (std::terminate).
 *
 * One thread at a time runs a body: the thread on which its scheduler resumes it. The macros that are
 * written in a body are for that thread, "the coroutine's". Awaiting an operation that has already
 * completed does not suspend. It is inlined if the compiler sees the operation's init function.
 *
 * The comment of each macro says what the macro expands to. A name with a trailing underscore is
 * internal to the macros.
 */
#ifndef BIDE_COROUTINE_H
#define BIDE_COROUTINE_H

#include "bide/extend/coroutine_type.h"
#include "bide/errors.h"

BIDE_EXTERN_C_BEGIN

/*
 * The constants of a body: its code as it is known while it runs, and its point at the end.
 */
typedef struct bide_body_constants_ {
    bide_coroutine_code code;
    bide_point finished;
} bide_body_constants_;

/* The error that a body passes if it was destroyed. */
#define BIDE_DESTROYED_ INT_MIN

/* Reports to the context that a coroutine has failed which nobody awaits. */
BIDE_COLD void bide_frame_unhandled_(const bide_context *context, const bide_coroutine_code *code,
                                     int error);

/* An await_transform forbids the await at hand. */
BIDE_COLD void bide_await_forbidden_(const bide_coroutine_code *code, unsigned line);

/* A coroutine yields whose type has no yield_value. */
BIDE_COLD void bide_yield_forbidden_(const bide_coroutine_code *code, unsigned line);

/* A coroutine ends: it must not leave a scope open. Only called where misuse is looked for. */
void bide_frame_ends_(const bide_frame *frame, const bide_coroutine_code *code);

/* A frame runs: what it would wait for is this. Only kept up where misuse is looked for. */
extern bide_awaiter bide_running_;

BIDE_INLINE void bide_frame_runs_(bide_frame *frame)
{
#if BIDE_DEBUG
    frame->awaiter.link = &bide_running_;
#else
    (void)frame;
#endif
}

/* The same at its start. Its struct has `size` bytes. */
void bide_check_frame_inside_(const bide_frame *frame, const bide_point *finished, size_t size);

BIDE_INLINE void bide_frame_begins_(bide_frame *frame, const bide_point *finished, size_t size)
{
#if BIDE_DEBUG
    bide_check_frame_inside_(frame, finished, size);
#else
    (void)finished, (void)size;
#endif
    bide_frame_runs_(frame);
}

/* The same when the operation that it waited for has ended without the frame having been stepped. */
BIDE_INLINE void bide_frame_continues_(bide_frame *frame)
{
#if BIDE_DEBUG
    bide_flight_ends_(frame->awaiter.link);
#endif
    bide_frame_runs_(frame);
}

/* ... until it is suspended at a yield, where it waits for nothing. */
BIDE_INLINE void bide_frame_yields_(bide_frame *frame)
{
#if BIDE_DEBUG
    frame->awaiter.link = NULL;
#else
    (void)frame;
#endif
}

/* Before `finally`: the type's hook for how the body ended. Returns the error that it ends with. */
BIDE_INLINE int bide_frame_return_(bide_frame *frame, const bide_coroutine_type *type, int error)
{
    if (error < 0)
        return type->unhandled_error != NULL ? type->unhandled_error(frame, error) : error;
    if (type->return_void != NULL)
        type->return_void(frame);
    return error;
}

/* Ends a frame: its continuation runs next. Touches nothing of the frame after that. */
BIDE_INLINE bide_frame *bide_frame_finish_(bide_frame *frame, const bide_coroutine_code *code,
                                           const bide_point *finished, int error)
{
    const bide_context *context = frame->context;
#if BIDE_DEBUG
    bide_frame_ends_(frame, code);
#endif
    frame->awaiter.ops = &finished->ops;
    if (BIDE_UNLIKELY(error == BIDE_DESTROYED_)) {
        frame->error = -ECANCELED;
        return NULL;
    }
    frame->error = error;
    if ((*code->type)->final_suspend != NULL)
        return (*code->type)->final_suspend(frame, context);
    bide_frame *continuation = frame->awaiter.frame;
    if (error < 0 && BIDE_UNLIKELY(continuation == NULL))
        bide_frame_unhandled_(context, code, error);
    return continuation;
}

/*
 * Suspends `frame` at `here` on `awaiter`. The frame that is to run next, most often the awaited
 * child, is stepped by a direct call while the depth allows. False: the operation has ended, go on.
 * True: return *elsewhere, the frame that runs next.
 *
 * To go on, it is not enough to be handed the frame back. It may have been resumed elsewhere
 * meanwhile, gone on, and come back from another await through what is called here. Even suspend
 * itself may do that, by queueing the frame and then taking it from the queue again. The resume
 * loop, which goes by the frame's point, must have such a frame.
 */
BIDE_INLINE bool bide_suspend_(bide_frame *frame, bide_awaiter *awaiter,
                               const bide_awaiter_ops *ops, const bide_point *here, unsigned depth,
                               bide_frame **elsewhere)
{
    frame->awaiter.ops = &here->ops;
    frame->awaiter.link = awaiter;
    bide_flight_begins_(awaiter, frame);
    awaiter->frame = frame;
    bide_frame *next = bide_awaiter_suspend(awaiter, ops, frame);
    if (next == frame) {
        if (bide_budget_spent_() &&
            bide_yield_budget_(frame, awaiter, here, BIDE_YIELDS_SUSPENDED_))
            next = NULL;
    } else if (next != NULL && depth != 0) {
        next = bide_frame_step(next, depth - 1);
    }
    if (BIDE_LIKELY(next == frame && frame->awaiter.ops == &here->ops &&
                    frame->awaiter.link == awaiter))
        return false;
    *elsewhere = next;
    return true;
}

#ifdef __cplusplus
#include "bide/detail/body_cxx.h"
#else
/* A pointer that converts to any pointer type, as a void * does in C. */
#define BIDE_ANY_POINTER_(pointer) (pointer)
#endif

/*
 * Opens the definition of a body for a coroutine of `type` (a static const bide_coroutine_type). A
 * block follows that starts with bide_begin(name, ...). Expands to: the declaration of a step
 * function; the constant `name`, a bide_point, whose address is given to the type's init function;
 * and the head of the step function.
 * Threads: any may use the constant.
 */
#define bide_coroutine_of(type, name) BIDE_COROUTINE_(static, bide_body(name), type, name)

/*
 * The same for a type that forbids to await: the body only yields, and may be inlined into its
 * consumer.
 * Threads: as bide_coroutine_of.
 */
#define bide_yielding_coroutine_of(type, name) \
    BIDE_COROUTINE_(static inline, BIDE_BODY_(static inline, 0, name), type, name)

/*
 * Declares the constant of a body that is defined elsewhere: in another file, with this in
 * a header; or further down, for bodies that call each other. Not in a function. The definition is
 * opened by bide_declared_coroutine, or by bide_declared_coroutine_of, in a file where the
 * declaration is seen. The name is then the whole program's: choose it as that of a function.
 * Threads: as bide_coroutine_of.
 */
#define bide_declare_body(name) extern const bide_point name

/*
 * Opens the definition of a declared body, as bide_coroutine_of that of one that its file has for
 * itself.
 * Threads: as bide_coroutine_of.
 */
#define bide_declared_coroutine_of(type, name)               \
    BIDE_COROUTINE_CODE_(static, type, name)                 \
    const bide_point name = BIDE_POINT_START(&name##_code_); \
    bide_body(name)

#define BIDE_COROUTINE_(linkage, body, type, name)                  \
    BIDE_COROUTINE_CODE_(linkage, type, name)                       \
    static const bide_point name = BIDE_POINT_START(&name##_code_); \
    body

#define BIDE_COROUTINE_CODE_(linkage, type, name)                                                  \
    linkage bide_next name##_step_(bide_frame *frame, unsigned depth) BIDE_NOEXCEPT_;              \
    static const bide_coroutine_type *const name##_type_ = &(type);                                \
    static const bide_coroutine_code name##_code_ = {name##_step_, #name, __FILE__, &name##_type_, \
                                                     BIDE_POINT_OF_START_};

/*
 * The head of the step function name_step_ only, without the constants, for an operation that
 * brings a start of its own. A constant name_type_, a pointer to the type, stands before it.
 * Threads: as bide_coroutine_of.
 */
#define bide_body(name) BIDE_BODY_(static, 1, name)

#define BIDE_BODY_(linkage, awaits, name)                                               \
    enum { BIDE_NAME_(name, _awaits_) = (awaits) };                                     \
    linkage bide_next BIDE_NAME_(name, _step_)(bide_frame * BIDE_NAME_(bide_in_, name), \
                                               unsigned bide_depth_) BIDE_NOEXCEPT_

/*
 * The header stands first in what `self` points at, or this does not compile: a frame's header
 * initialises the first member, or the first member of that, and so on. Expands to no code. `self`
 * is declared beside the user's own pointer, whose name is not known here.
 */
/* clang-format off */
/*
 * A jump over the body's locals is what bodies do. This one is never made, so it is to bring no
 * warning.
 */
#if defined __GNUC__ && !defined __clang__ && !defined __cplusplus
#define BIDE_CHECK_END_                                                                            \
    _Pragma("GCC diagnostic push")                                                                 \
    _Pragma("GCC diagnostic ignored \"-Wjump-misses-init\"")                                       \
    if (0)                                                                                         \
        goto bide_end_is_missing_;                                                                 \
    _Pragma("GCC diagnostic pop")
#else
#define BIDE_CHECK_END_                                                                            \
    if (0)                                                                                         \
        goto bide_end_is_missing_;
#endif

#ifndef __cplusplus
#define BIDE_SELF_(...)   __VA_ARGS__ = (void *)bide_frame_, *bide_self_ = NULL
/* The size of the frame's struct; a constant, or 0 where it is none. */
#define BIDE_SIZE_          (sizeof *bide_self_)
#define BIDE_CONSTANT_SIZE_ (sizeof *bide_self_)
#define BIDE_BLOCK_BEGIN_
#define BIDE_BLOCK_END_
#if defined __GNUC__
typedef bide_frame bide_header_must_be_first_in_the_frame_;
#define BIDE_CHECK_HEADER_(self)                                                                   \
    _Pragma("GCC diagnostic push")                                                                 \
    _Pragma("GCC diagnostic ignored \"-Wpedantic\"")                                               \
    _Pragma("GCC diagnostic ignored \"-Wmissing-braces\"")                                         \
    _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")                             \
    (void)sizeof((__typeof__(*(self))[1]){                                                         \
        *(const bide_header_must_be_first_in_the_frame_ *)bide_frame_});                           \
    _Pragma("GCC diagnostic pop")                                                                  \
    (void)(self);
#else
#define BIDE_CHECK_HEADER_(self) (void)(self);
#endif
#endif
/* clang-format on */

/* The answer to BIDE_ASK_SIZE_. */
#if BIDE_DEBUG
#define BIDE_TELL_SIZE_                               \
    if (BIDE_UNLIKELY(bide_depth_ == BIDE_ASK_SIZE_)) \
        return bide_next_frame((bide_frame *)(BIDE_SIZE_));
#else
#define BIDE_TELL_SIZE_
#endif

#define BIDE_NAME_(a, b)         BIDE_NAME_PASTE_(a, b)
#define BIDE_NAME_PASTE_(a, b)   a##b
#define BIDE_QUOTE_(name)        BIDE_QUOTE_TOKEN_(name)
#define BIDE_QUOTE_TOKEN_(token) #token

/*
 * The body's parts, as cases of one switch: the body itself, what `finally` does, and the end. The
 * yields, and in standard C the awaits, are cases too. Those are numbered past 32 bits, so that
 * they fit no other switch.
 */
#define BIDE_PART_BODY_    0
#define BIDE_PART_FINALLY_ 1
#define BIDE_PART_END_     2
#define BIDE_PART_AWAIT_   (UINT64_C(1) << 40)

/*
 * First in a body. `name` is that of bide_coroutine; the second argument declares the pointer by
 * which the body calls its frame. Expands to: that declaration, a constant for the awaits to point
 * at, and the jump to where the coroutine stood (labels as values), or the head of a switch that
 * does it.
 *
 * A local that is used across an await is lost, and compilers can be asked to find it:
 *
 *     clang --analyze -Xclang -analyzer-config -Xclang \
 *         core.CallAndMessage:ArgPointeeInitializedness=true
 *                                            all of them, arrays and structs too; compiles nothing
 *     clang -Wall -Wconditional-uninitialized
 *                                            scalars
 *     gcc -O2 -Wall                          what is not a constant, arrays and structs too
 *     gcc -O1 -Wall -fno-tree-ccp -fno-tree-fre -fno-tree-dominator-opts
 *                                            constants too; gcc propagates those otherwise, as if
 *                                            they were kept
 *     gcc -Wjump-misses-init -DBIDE_STANDARD_C=1
 *                                            each that is initialised before an await and in scope
 *                                            at it, used or not
 *
 * The first four are silent where nothing is lost. None is a part of -Wall or -Wextra alone.
 * Threads: the coroutine's.
 */
#define bide_begin(name, ...)                                                              \
    bide_frame *const bide_frame_ = BIDE_NAME_(bide_in_, name);                            \
    BIDE_SELF_(__VA_ARGS__);                                                               \
    BIDE_CHECK_HEADER_(bide_self_)                                                         \
    static const bide_body_constants_ bide_body_ = {                                       \
        {BIDE_NAME_(name, _step_), BIDE_QUOTE_(name), __FILE__, &BIDE_NAME_(name, _type_), \
         &bide_body_.finished},                                                            \
        BIDE_POINT(&bide_body_.code, NULL, BIDE_CONSTANT_SIZE_, BIDE_AT_END)};             \
    BIDE_TELL_SIZE_                                                                        \
    int bide_error_ = 0;                                                                   \
    uint64_t bide_part_ = BIDE_PART_BODY_;                                                 \
    int32_t bide_left_ = bide_budget_;                                                     \
    int32_t bide_kept_ = bide_left_;                                                       \
    enum { bide_begin_is_missing_ };                                                       \
    BIDE_CHECK_END_                                                                        \
    if (BIDE_UNLIKELY(bide_depth_ == BIDE_DESTROY_)) {                                     \
        bide_error_ = BIDE_DESTROYED_;                                                     \
        bide_part_ = BIDE_PART_FINALLY_;                                                   \
        goto bide_exit_;                                                                   \
    }                                                                                      \
    BIDE_DISPATCH_(BIDE_NAME_(name, _awaits_))                                             \
    bide_exit_:                                                                            \
    switch (bide_part_) {                                                                  \
    case BIDE_PART_BODY_:                                                                  \
        BIDE_BLOCK_BEGIN_                                                                  \
        bide_frame_begins_(bide_frame_, &bide_body_.finished, BIDE_SIZE_);

/*
 * Whether the compiler knows the operation. An await may end with another operation than the one
 * that it began with, if the frame has been elsewhere meanwhile, or if the operation was cancelled.
 * So it is read again, unless its kind is known at this place and cannot be cancelled.
 */
#if defined __GNUC__
#define BIDE_KNOWN_(condition) __builtin_constant_p(condition)
#else
#define BIDE_KNOWN_(condition) 0
#endif

/* The type of the body at hand, a constant. */
#define BIDE_TYPE_ (*bide_body_.code.type)

/*
 * An await or yield that the type does not allow. The compiler rejects it if it can tell; otherwise
 * it is detected at run time.
 */
#if defined __GNUC__
void bide_await_in_a_body_that_forbids_it_(void)
    __attribute__((error("this kind of coroutine may not await"), nothrow));
void bide_yield_in_a_body_without_values_(void)
    __attribute__((error("this kind of coroutine does not yield"), nothrow));
#define BIDE_REFUSE_(condition, reject)               \
    if (BIDE_KNOWN_((condition) != 0) && (condition)) \
    reject()
#else
#define BIDE_REFUSE_(condition, reject) (void)0
#endif

#define BIDE_CHECK_AWAIT_ALLOWED_                                     \
    BIDE_REFUSE_(BIDE_TYPE_->await_transform == bide_await_forbidden, \
                 bide_await_in_a_body_that_forbids_it_);              \
    if (BIDE_TYPE_->await_transform == bide_await_forbidden)          \
    bide_await_forbidden_(&bide_body_.code, __LINE__)

#define BIDE_CHECK_YIELD_ALLOWED_                                                        \
    BIDE_REFUSE_(BIDE_TYPE_->yield_value == NULL, bide_yield_in_a_body_without_values_); \
    if (BIDE_TYPE_->yield_value == NULL)                                                 \
    bide_yield_forbidden_(&bide_body_.code, __LINE__)

#define BIDE_CHECK_BEFORE_FINALLY_                                                                 \
    if (BIDE_UNLIKELY(bide_part_ != BIDE_PART_BODY_))                                              \
    bide_misuse_("an await stands after bide_finally", bide_body_.code.name, bide_body_.code.file, \
                 __LINE__)

/*
 * The end of the C frame of the function at hand that is nearer to its caller; NULL if it is not
 * known.
 */
#if defined __has_builtin
#if __has_builtin(__builtin_dwarf_cfa)
#define BIDE_STEP_TOP_ __builtin_dwarf_cfa()
#endif
#endif
#ifndef BIDE_STEP_TOP_
#define BIDE_STEP_TOP_ NULL
#endif

#if BIDE_DEBUG
#define BIDE_CHECK_AWAITED_ \
    bide_check_awaited_(bide_frame_, bide_awaiter_, &bide_here_, BIDE_STEP_TOP_)
#else
#define BIDE_CHECK_AWAITED_ (void)0
#endif

/*
 * The rest of the thread's budget (frame.h, bide_yield_budget_) is a local variable while a body
 * runs, and is kept when it has changed and somebody else may look. In memory, each operation that
 * is ready would wait for the store of the one before it: `ring` lost two thirds of its speed.
 */
#define BIDE_KEEP_BUDGET_                           \
    do {                                            \
        if (bide_left_ != bide_kept_)               \
            bide_budget_ = bide_kept_ = bide_left_; \
    } while (0)
#define BIDE_TAKE_BUDGET_ (bide_left_ = bide_kept_ = bide_budget_)

/*
 * Whether an operation may cost one of the budget. The budget is looked at before the operation is: if it
 * is spent, the coroutine may have been asked to stop, and the operation is then not begun. One that is
 * never ready, as a child, does not count.
 */
#define BIDE_COUNTS_(ops) (BIDE_BUDGET > 0 && (ops)->ready != NULL)

/* One await; `here(mark)` is where the body continues after suspension. */
#define BIDE_AWAIT_STATEMENT_(awaiter_expression, use, label, number, here, mark)              \
    do {                                                                                       \
        (void)bide_begin_is_missing_;                                                          \
        static const bide_point bide_here_ =                                                   \
            BIDE_POINT(&bide_body_.code, label, number, BIDE_AT_AWAIT);                        \
        BIDE_CHECK_AWAIT_ALLOWED_;                                                             \
        BIDE_CHECK_BEFORE_FINALLY_;                                                            \
        bide_awaiter *bide_awaiter_;                                                           \
        const bide_awaiter_ops *bide_ops_;                                                     \
        bide_awaiter_ = (awaiter_expression);                                                  \
        BIDE_CHECK_AWAITED_;                                                                   \
        if (BIDE_TYPE_->await_transform != NULL)                                               \
            bide_awaiter_ = BIDE_TYPE_->await_transform(bide_frame_, bide_awaiter_);           \
        bide_ops_ = bide_awaiter_->ops;                                                        \
        if (BIDE_COUNTS_(bide_ops_) && BIDE_UNLIKELY(bide_left_ <= 0)) {                       \
            bide_frame *bide_next_;                                                            \
            if (bide_await_spent_(bide_frame_, bide_awaiter_, &bide_here_, &bide_next_))       \
                return bide_next_frame(bide_next_);                                            \
            BIDE_TAKE_BUDGET_;                                                                 \
            if (!BIDE_KNOWN_(bide_ops_->resume == NULL) || bide_ops_->cancel != NULL)          \
                bide_ops_ = bide_awaiter_->ops;                                                \
            bide_frame_continues_(bide_frame_);                                                \
        } else if (!bide_awaiter_ready(bide_awaiter_, bide_ops_)) {                            \
            bide_frame *bide_next_;                                                            \
            BIDE_KEEP_BUDGET_;                                                                 \
            if (bide_suspend_(bide_frame_, bide_awaiter_, bide_ops_, &bide_here_, bide_depth_, \
                              &bide_next_))                                                    \
                return bide_next_frame(bide_next_);                                            \
            BIDE_TAKE_BUDGET_;                                                                 \
            if (!BIDE_KNOWN_(bide_ops_->resume == NULL) || bide_ops_->cancel != NULL)          \
                bide_ops_ = bide_awaiter_->ops;                                                \
            bide_frame_continues_(bide_frame_);                                                \
        } else if (BIDE_BUDGET > 0) {                                                          \
            bide_left_--;                                                                      \
        }                                                                                      \
        use(bide_awaiter_resume(bide_awaiter_, bide_ops_));                                    \
        if (0) {                                                                               \
            here(mark);                                                                        \
            bide_awaiter_ = bide_frame_->awaiter.link;                                         \
            bide_frame_runs_(bide_frame_);                                                     \
            use(bide_awaiter_resume(bide_awaiter_, bide_awaiter_->ops));                       \
        }                                                                                      \
    } while (0)

/* One yield. */
#define BIDE_YIELD_STATEMENT_(value, number)                                                \
    do {                                                                                    \
        (void)bide_begin_is_missing_;                                                       \
        static const bide_point bide_here_ =                                                \
            BIDE_POINT(&bide_body_.code, NULL, BIDE_PART_AWAIT_ + (number), BIDE_AT_YIELD); \
        BIDE_CHECK_YIELD_ALLOWED_;                                                          \
        BIDE_CHECK_BEFORE_FINALLY_;                                                         \
        bide_frame_->awaiter.ops = &bide_here_.ops;                                         \
        bide_frame_yields_(bide_frame_);                                                    \
        BIDE_KEEP_BUDGET_;                                                                  \
        return bide_next_frame(BIDE_TYPE_->yield_value(bide_frame_, (value)));              \
        BIDE_NOT_IN_A_SWITCH_AND_ONE_A_LINE_(number);                                       \
        bide_frame_runs_(bide_frame_);                                                      \
    } while (0)

#include "bide/detail/body_variants.h"

#define BIDE_IGNORE_(error) (void)(error)
#define BIDE_FAIL_(error)               \
    do {                                \
        int bide_failure_ = (error);    \
        if (bide_failure_ < 0)          \
            bide_return(bide_failure_); \
    } while (0)

/*
 * Waits for what `awaiter` (a bide_awaiter *, evaluated once) points at. Results are read from the
 * operation's own struct. A statement. Expands to: a constant for this place; the question whether
 * the operation is ready; if it is not, saving the frame and suspending, which returns the frame
 * that runs next unless the operation ends at once; the label where the frame continues; resume.
 * Threads: the coroutine's. Errors: none, its status is dropped. Suspends: if the operation does.
 * Cancel-safe: as its inner operation is. Progress: that of the operation.
 */
#define bide_await(awaiter) BIDE_AWAIT_(awaiter, BIDE_IGNORE_)

/*
 * The same; the operation's status (0 or a negative errno) goes to `status`, an int that can be
 * assigned to after suspension too: a member of the frame, or a local assigned here and used before
 * the next await.
 * Threads: the coroutine's. Errors: those of the operation, in `status`. Suspends: if the operation
 * does. Cancel-safe: as its inner operation is. Progress: that of the operation.
 */
#define bide_await_status(status, awaiter) BIDE_AWAIT_(awaiter, (status) =)

/*
 * The same; if the operation ended with a negative errno, so does this coroutine, as by
 * bide_return(errno).
 * Threads: the coroutine's. Errors: those of the operation end the coroutine. Suspends: if the
 * operation does. Cancel-safe: as its inner operation is. Progress: that of the operation.
 */
#define bide_try(awaiter) BIDE_AWAIT_(awaiter, BIDE_FAIL_)

/*
 * The same, directly in a loop: if the operation ended with -EPIPE, because what it waits for is
 * closed and there is no more, the loop ends, as by break. With another negative errno the
 * coroutine ends, as by bide_try. A statement; between `if` and `else` it needs braces. Not
 * directly in a switch, which is what the break would leave; outside a loop it does not compile.
 *
 *     for (;;) {
 *         bide_try_or_break(bide_channel_recv(&self->receive, self->jobs, &self->job));
 *         ...
 *     }
 *
 * Threads: the coroutine's. Errors: those of the operation end the coroutine, except -EPIPE.
 * Suspends: if the operation does. Cancel-safe: as its inner operation is. Progress: that of the
 * operation.
 */
#define bide_try_or_break(awaiter)                \
    {                                             \
        int bide_status_;                         \
        if (0)                                    \
            continue;                             \
        bide_await_status(bide_status_, awaiter); \
        if (bide_status_ == -EPIPE)               \
            break;                                \
        BIDE_FAIL_(bide_status_);                 \
    }

/*
 * Ends the coroutine with 0 or a negative errno, once what follows `bide_finally` has run. Results
 * go into the frame beforehand. Not after bide_finally.
 * Threads: the coroutine's. Suspends: never.
 */
#define bide_return(error)                                                  \
    do {                                                                    \
        (void)bide_begin_is_missing_;                                       \
        bide_error_ = bide_frame_return_(bide_frame_, BIDE_TYPE_, (error)); \
        bide_part_ = BIDE_PART_FINALLY_;                                    \
        goto bide_exit_;                                                    \
    } while (0)

/*
 * Hands what `value` points at to the type, and ends the coroutine with 0. For types that take
 * values. Not after bide_finally.
 * Threads: the coroutine's. Suspends: never.
 */
#define bide_return_value(value)                        \
    do {                                                \
        (void)bide_begin_is_missing_;                   \
        BIDE_TYPE_->return_value(bide_frame_, (value)); \
        bide_error_ = 0;                                \
        bide_part_ = BIDE_PART_FINALLY_;                \
        goto bide_exit_;                                \
    } while (0)

/*
 * Suspends the coroutine and hands `value`, a pointer, to its type: a generator's consumer gets it.
 * It points into the frame, or elsewhere; a local of the body is gone by then. A
 * statement. Not after bide_finally, nor directly inside a switch.
 * Threads: the coroutine's. Suspends: always.
 */
#define bide_yield(value) BIDE_YIELD_(value)

/*
 * At the end of a body, before bide_end, at its outermost level: what follows runs however the body
 * ended. No await, no return in it. Expands to a case of bide_begin's switch.
 * Threads: the coroutine's; when it is destroyed, those of bide_destroy.
 */
#define bide_finally()       \
    bide_return(0);          \
    BIDE_BLOCK_END_          \
    case BIDE_PART_FINALLY_: \
        BIDE_BLOCK_BEGIN_

/*
 * Last in a body; to reach it is to return 0. Expands to: the end of the switch, and the return of
 * the continuation.
 * Threads: the coroutine's. Suspends: never.
 */
#define bide_end()                                                    \
    (void)bide_begin_is_missing_;                                     \
    if (bide_part_ == BIDE_PART_BODY_)                                \
        bide_error_ = bide_frame_return_(bide_frame_, BIDE_TYPE_, 0); \
    bide_part_ = BIDE_PART_END_;                                      \
    goto bide_exit_;                                                  \
    BIDE_BLOCK_END_                                                   \
    default:                                                          \
        BIDE_CHECK_PART_;                                             \
        break;                                                        \
        }                                                             \
    bide_end_is_missing_:                                             \
        BIDE_KEEP_BUDGET_;                                            \
        return bide_next_frame(                                       \
            bide_frame_finish_(bide_frame_, &bide_body_.code, &bide_body_.finished, bide_error_))

/*
 * Inside a body: its frame, and the context it runs in.
 * Threads: the coroutine's. Progress: wait-free.
 */
#define bide_this_frame()   (bide_frame_)
#define bide_this_context() (bide_frame_->context)

BIDE_EXTERN_C_END

#endif
