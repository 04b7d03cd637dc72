/*
 * The compiler features that bide uses, in one place: hints, alignment, thread-local storage, and
 * whether GNU C's labels as values are available. Floor: base.
 */
#ifndef BIDE_COMPILER_H
#define BIDE_COMPILER_H

#if defined _MSC_VER && !defined __GNUC__ && !defined __clang__ && !defined __cplusplus
#error "bide: MSVC's C mode is not supported: use clang or mingw-w64"
#endif
#if defined _WIN32 && !defined _WIN64
#error "bide: Windows of 32 bits is not supported"
#endif
#if !defined __cplusplus && (!defined __STDC_VERSION__ || __STDC_VERSION__ < 199901L)
#error "bide needs C11: compile with -std=c11 or -std=gnu11"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1: compile for the model checker, see bide/check.h. */
#ifndef BIDE_CHECK
#define BIDE_CHECK 0
#endif

/*
 * 1: look for misuse that costs something to look for. Changes no struct, so objects built either
 * way work together.
 */
#ifndef BIDE_DEBUG
#ifdef NDEBUG
#define BIDE_DEBUG 0
#else
#define BIDE_DEBUG 1
#endif
#endif

/* A cache line: what two cores hand to each other as a whole. */
#ifndef BIDE_CACHE_LINE
#define BIDE_CACHE_LINE 64
#endif

#ifdef __cplusplus
#define BIDE_ALIGNAS(bytes)                    alignas(bytes)
#define BIDE_STATIC_ASSERT(condition, message) static_assert(condition, message)
#define BIDE_EXTERN_C_BEGIN                    extern "C" {
#define BIDE_EXTERN_C_END                      }
#define BIDE_NOEXCEPT_                         noexcept
#else
#define BIDE_ALIGNAS(bytes)                    _Alignas(bytes)
#define BIDE_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#define BIDE_EXTERN_C_BEGIN
#define BIDE_EXTERN_C_END
#define BIDE_NOEXCEPT_
#endif

/* Begins to fetch the memory at an address, a number; it need not be anybody's. */
#if defined __GNUC__ && __SIZEOF_POINTER__ >= 8
#define BIDE_PREFETCH(address) __builtin_prefetch((const void *)(address))
#else
#define BIDE_PREFETCH(address) ((void)(address)) /* firmware: few have a cache, and code is dear */
#endif

#if defined __GNUC__
#define BIDE_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define BIDE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#if defined __BIDEC__ && !defined __OPTIMIZE__
#define BIDE_INLINE static inline /* by force, it is a third of the time that gcc and clang take */
#else
#define BIDE_INLINE static inline __attribute__((always_inline))
#endif
#define BIDE_COLD __attribute__((cold, noinline))
/* A function that does not return, and one that is not inlined. (The former is for analysers alone: gcc
 * 12 would join the neighbouring words of a frame into one vector, and load it as a whole just after
 * they were stored one by one, which stalls: `await` took 3.9 ns instead of 1.6.) */
#if defined __clang_analyzer__
#define BIDE_NO_RETURN __attribute__((noreturn))
#else
#define BIDE_NO_RETURN
#endif
#define BIDE_NOINLINE __attribute__((noinline))
#else
#define BIDE_LIKELY(condition)   (condition)
#define BIDE_UNLIKELY(condition) (condition)
#define BIDE_INLINE              static inline
#define BIDE_COLD
#define BIDE_NO_RETURN
#define BIDE_NOINLINE
#endif

/*
 * In front of a function that returns an awaiter: to call it and not to await it does nothing, so
 * the compiler warns of it. For your own functions that return one too.
 */
#if defined __GNUC__
#define BIDE_MUST_AWAIT __attribute__((warn_unused_result))
#else
#define BIDE_MUST_AWAIT
#endif

/*
 * How long the struct of an operation, its first argument, must stay where it is. In front of the
 * operation's declaration, and of BIDE_MUST_AWAIT, for people and for the translator of async
 * functions; for your own operations too.
 *
 *     (no mark)               await-scoped: until the await has ended
 *     BIDE_COROUTINE_SCOPED   until the coroutine that awaits it has ended
 *     BIDE_KEY_SCOPED(user);  until `user`, a function or a member, has used it
 *
 * An async function that awaits the operation without its first argument has the struct in its frame:
 * for the await, or to its end. It cannot leave out the argument of a key-scoped one.
 *
 * BIDE_PASSES_RESULT is for an operation that runs another one, and adds nothing to its result but
 * errors. The value of its await is then that of the inner operation.
 *
 * Two marks stand alone, behind the type that they name:
 *
 *     BIDE_AWAIT_VALUE(waiter, type, member);
 *         the value of an await of an operation whose struct is `waiter` (a typedef) is its `member`,
 *         converted to `type`, a number's type of one word; or the status, if that is negative
 *     BIDE_AWAITED(kind);
 *         functions of the kind, which has a final_suspend, may be awaited: the hook returns the frame
 *         that awaits them, frame->awaiter.frame (async_kind, async.h)
 */
#ifdef __BIDEC__
#define BIDE_MARK_(text)      __extension__ _Static_assert(1, "bide: " text)
#define BIDE_COROUTINE_SCOPED BIDE_MARK_("coroutine-scoped");
#define BIDE_KEY_SCOPED(user) BIDE_MARK_("key-scoped " #user)
#define BIDE_PASSES_RESULT    BIDE_MARK_("passes-result");
#define BIDE_AWAIT_VALUE(waiter, type, member) BIDE_MARK_("value " #waiter " " #type " " #member)
#define BIDE_AWAITED(kind)                     BIDE_MARK_("awaited " #kind)
#else
#define BIDE_COROUTINE_SCOPED
#define BIDE_KEY_SCOPED(user) struct bide_mark_
#define BIDE_PASSES_RESULT
#define BIDE_AWAIT_VALUE(waiter, type, member) struct bide_mark_
#define BIDE_AWAITED(kind)                     struct bide_mark_
#endif

/*
 * Bodies of coroutines jump to where they stood by GNU C's labels as values, or, where the compiler
 * has none, for WebAssembly, and in C++, by a switch in standard C11. Define BIDE_STANDARD_C as 1 to
 * take the switch anyway, or as 0 for the labels. Both make the same frames, so objects built either
 * way work together. (clang places no labels in WebAssembly's static tables.)
 */
#ifndef BIDE_STANDARD_C
#if defined __GNUC__ && !defined __cplusplus && !defined __wasm__
#define BIDE_STANDARD_C 0
#else
#define BIDE_STANDARD_C 1
#endif
#endif

/*
 * Storage of one instance a thread. On a machine with one thread of control and no support for
 * thread-local storage, define BIDE_THREAD_LOCAL as nothing.
 */
#ifndef BIDE_THREAD_LOCAL
#if BIDE_CHECK
/* The model checker keeps a copy of this section for each of its threads. */
#define BIDE_THREAD_LOCAL __attribute__((section("bide_thread_local")))
#elif defined __GNUC__
/* Initial-exec: a plain load from the thread pointer, never a call, in a shared library too. */
#define BIDE_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define BIDE_THREAD_LOCAL _Thread_local
#endif
#endif

/*
 * Writes a pointer by a store of its own. gcc 12 joins the stores of two neighbouring members into
 * one of a vector, which costs more than both where it crosses a cache line: an await of a child took
 * 1.6 or 2.6 ns, depending on where the frame lay, and takes 1.8 now.
 */
#if defined __GNUC__
#define BIDE_STORE_ALONE_(to, pointer) ((void)(*(__typeof__(to) volatile *)&(to) = (pointer)))
#else
#define BIDE_STORE_ALONE_(to, pointer) ((void)((to) = (pointer)))
#endif

/*
 * The object of the given type that holds `pointer` as its member.
 * Threads: any. Progress: wait-free.
 */
#define bide_container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
