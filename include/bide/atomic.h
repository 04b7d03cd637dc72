/*
 * Atomics: thin names over C11's <stdatomic.h> (C++'s <atomic>), each with an explicit order,
 * written as its last word. Every atomic of bide goes through here. Floor: base.
 *
 *     bide_atomic(uint32_t) word;
 *     bide_atomic_store(&word, 1, release);
 *
 * An atomic is one machine word of at most 8 bytes and is always accessed whole. Any thread may use
 * it. Where BIDE_CHECK is defined as 1 they are the model checker's instead (see bide/check.h).
 */
#ifndef BIDE_ATOMIC_H
#define BIDE_ATOMIC_H

#include "bide/compiler.h"

/*
 * 1: atomics of 64 bits need no lock and no library. So it is on every machine of 64 bits, and on
 * some of 32.
 */
#if defined __GCC_ATOMIC_LLONG_LOCK_FREE
#define BIDE_HAVE_ATOMIC_64 (__GCC_ATOMIC_LLONG_LOCK_FREE == 2)
#else
#define BIDE_HAVE_ATOMIC_64 (UINTPTR_MAX > UINT32_MAX)
#endif

#if BIDE_CHECK
#include "bide/detail/check_atomic.h"
#else

#ifdef __cplusplus
#include <atomic>
#define BIDE_ATOMIC_(name) std::name
#define bide_atomic(type)  std::atomic<type>
#else
#include <stdatomic.h>
#define BIDE_ATOMIC_(name) name
#define bide_atomic(type)  _Atomic(type)
#endif

#define BIDE_ORDER_(order) BIDE_ATOMIC_(memory_order_##order)

/*
 * Gives the object its first value.
 * Threads: before it is shared. Progress: wait-free.
 */
#ifdef __cplusplus
#define bide_atomic_init(object, value) (object)->store(value, std::memory_order_relaxed)
#else
#define bide_atomic_init(object, value) atomic_init(object, value)
#endif

/*
 * Load, store and exchange, with the order that is named.
 * Threads: any. Progress: wait-free.
 */
#define bide_atomic_load(object, order) \
    BIDE_ATOMIC_(atomic_load_explicit)(object, BIDE_ORDER_(order))

#define bide_atomic_store(object, value, order) \
    BIDE_ATOMIC_(atomic_store_explicit)(object, value, BIDE_ORDER_(order))

#define bide_atomic_exchange(object, value, order) \
    BIDE_ATOMIC_(atomic_exchange_explicit)(object, value, BIDE_ORDER_(order))

/*
 * On failure stores what it found in *expected. The weak form may fail for no reason.
 * Threads: any. Progress: wait-free, where the processor has such an instruction.
 */
#define bide_atomic_compare_exchange_weak(object, expected, value, order, order_if_failed) \
    BIDE_ATOMIC_(atomic_compare_exchange_weak_explicit)                                    \
    (object, expected, value, BIDE_ORDER_(order), BIDE_ORDER_(order_if_failed))

#define bide_atomic_compare_exchange(object, expected, value, order, order_if_failed) \
    BIDE_ATOMIC_(atomic_compare_exchange_strong_explicit)                             \
    (object, expected, value, BIDE_ORDER_(order), BIDE_ORDER_(order_if_failed))

/*
 * Add, subtract, or, and: returns what was there before.
 * Threads: any. Progress: wait-free, where the processor has such an instruction.
 */
#define bide_atomic_fetch_add(object, value, order) \
    BIDE_ATOMIC_(atomic_fetch_add_explicit)(object, value, BIDE_ORDER_(order))

#define bide_atomic_fetch_sub(object, value, order) \
    BIDE_ATOMIC_(atomic_fetch_sub_explicit)(object, value, BIDE_ORDER_(order))

#define bide_atomic_fetch_or(object, value, order) \
    BIDE_ATOMIC_(atomic_fetch_or_explicit)(object, value, BIDE_ORDER_(order))

#define bide_atomic_fetch_and(object, value, order) \
    BIDE_ATOMIC_(atomic_fetch_and_explicit)(object, value, BIDE_ORDER_(order))

/*
 * A fence of that order. ThreadSanitizer does not see that fences order anything, and gcc warns of
 * each. None of bide's is what makes an access no race: they stand between atomics, beside orders
 * of the accesses themselves. So ThreadSanitizer gets the instruction.
 * Threads: any. Progress: wait-free.
 */
#if defined __SANITIZE_THREAD__ && defined __GNUC__ && !defined __clang__ && defined __x86_64__
#define bide_atomic_fence(order) __asm__ volatile("mfence" ::: "memory")
#elif defined __SANITIZE_THREAD__ && defined __GNUC__ && !defined __clang__ && defined __aarch64__
#define bide_atomic_fence(order) __asm__ volatile("dmb ish" ::: "memory")
#else
#define bide_atomic_fence(order) BIDE_ATOMIC_(atomic_thread_fence)(BIDE_ORDER_(order))
#endif

/*
 * A seq_cst fence for a thread that has just made a read-modify-write, with nothing but loads
 * since: on x86 that was one.
 * Threads: any. Progress: wait-free.
 */
#if defined __GNUC__ && (defined __x86_64__ || defined __i386__)
#define bide_atomic_fence_after_rmw() bide_atomic_compiler_fence()
#else
#define bide_atomic_fence_after_rmw() bide_atomic_fence(seq_cst)
#endif

/*
 * Keeps the compiler from moving accesses across; nothing to the processor.
 * Threads: any. Progress: wait-free.
 */
#define bide_atomic_compiler_fence() BIDE_ATOMIC_(atomic_signal_fence)(BIDE_ORDER_(seq_cst))

/*
 * Tells the core that this is a loop that waits for another core.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_cpu_relax(void)
{
#if defined __GNUC__ && (defined __x86_64__ || defined __i386__)
    __builtin_ia32_pause();
#elif defined __GNUC__ && defined __aarch64__
    __asm__ volatile("isb" ::: "memory");
#elif defined __GNUC__ && defined __arm__ && __ARM_ARCH >= 7
    __asm__ volatile("yield" ::: "memory");
#endif
}

/*
 * Says, after a compare-exchange that failed, that what follows is the same as if the loop had
 * found the new value the round before: by a load, or by a compare-exchange that failed, with no
 * stronger order. So the model checker, which looks at that anyway, goes no further here. Otherwise
 * nothing.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_atomic_retry(void)
{
}

/*
 * Plain data that threads share, one after the other, by the order of atomics: marks that the model
 * checker watches for races, and nothing else. `object` is a pointer.
 * Threads: one at a time. Progress: wait-free.
 */
#define bide_plain_load(object)         (*(object))
#define bide_plain_store(object, value) (*(object) = (value))

#endif

#endif
