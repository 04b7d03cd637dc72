/*
 * The atomics of C11, and __atomic_* and __sync_*: code that is compiled with -fsanitize=thread calls
 * one of these functions for each of them. They replace the functions of ThreadSanitizer's library,
 * and take the same steps as the library's own operations. A call is identified by its return
 * address; each has a record of its own.
 */
#include "execution.h"
#include "source_location.h"

#include <stdlib.h>
#include <string.h>

static int order_of(int order)
{
    static const int orders[] = {bide_check_relaxed_, bide_check_acquire_, bide_check_acquire_,
                                 bide_check_release_, bide_check_acq_rel_, bide_check_seq_cst_};
    order &= 0xff; /* the upper bits are hints to the processor */
    return order >= 0 && order < 6 ? orders[order] : bide_check_seq_cst_;
}

/* The order of a failed compare-exchange that was called with one order only. */
static int order_if_failed(int order)
{
    return order == bide_check_release_   ? bide_check_relaxed_
           : order == bide_check_acq_rel_ ? bide_check_acquire_
                                          : order;
}

static bide_check_site_ *site_of(const void *code)
{
    the_execution.c11_caller = execution_is_running() ? code : NULL;
    return source_location_of_code(code);
}

#define SITE site_of(__builtin_return_address(0))

/* NOLINTBEGIN(bugprone-macro-parentheses): types are not put in parentheses */
#define FETCH(type, bits, name, sign)                                                     \
    type __tsan_atomic##bits##_fetch_##name(volatile type *p, type value, int order);     \
    type __tsan_atomic##bits##_fetch_##name(volatile type *p, type value, int order)      \
    {                                                                                     \
        return (type)bide_check_fetch_(SITE, p, sizeof *p, sign, value, order_of(order)); \
    }

#define ATOMICS(type, bits)                                                                       \
    type __tsan_atomic##bits##_load(const volatile type *p, int order);                           \
    void __tsan_atomic##bits##_store(volatile type *p, type value, int order);                    \
    type __tsan_atomic##bits##_exchange(volatile type *p, type value, int order);                 \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *expected,           \
                                                      type value, int order, int failed);         \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *p, type *expected, type value, \
                                                    int order, int failed);                       \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type value,  \
                                                    int order, int failed);                       \
    type __tsan_atomic##bits##_load(const volatile type *p, int order)                            \
    {                                                                                             \
        return (type)bide_check_load_(SITE, p, sizeof *p, order_of(order));                       \
    }                                                                                             \
    void __tsan_atomic##bits##_store(volatile type *p, type value, int order)                     \
    {                                                                                             \
        bide_check_store_(SITE, p, sizeof *p, value, order_of(order));                            \
    }                                                                                             \
    type __tsan_atomic##bits##_exchange(volatile type *p, type value, int order)                  \
    {                                                                                             \
        return (type)bide_check_exchange_(SITE, p, sizeof *p, value, order_of(order));            \
    }                                                                                             \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *expected,           \
                                                      type value, int order, int failed)          \
    {                                                                                             \
        uint64_t found = *expected;                                                               \
        bool is_done = bide_check_compare_exchange_(SITE, p, sizeof *p, &found, value,            \
                                                    order_of(order), order_of(failed), false);    \
        if (!is_done)                                                                             \
            *expected = (type)found;                                                              \
        return is_done;                                                                           \
    }                                                                                             \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *p, type *expected, type value, \
                                                    int order, int failed)                        \
    {                                                                                             \
        uint64_t found = *expected;                                                               \
        bool is_done = bide_check_compare_exchange_(SITE, p, sizeof *p, &found, value,            \
                                                    order_of(order), order_of(failed), true);     \
        if (!is_done)                                                                             \
            *expected = (type)found;                                                              \
        return is_done;                                                                           \
    }                                                                                             \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type value,  \
                                                    int order, int failed)                        \
    {                                                                                             \
        uint64_t found = expected;                                                                \
        (void)failed;                                                                             \
        bide_check_compare_exchange_(SITE, p, sizeof *p, &found, value, order_of(order),          \
                                     order_if_failed(order_of(order)), false);                    \
        return (type)found;                                                                       \
    }                                                                                             \
    FETCH(type, bits, add, '+')                                                                   \
    FETCH(type, bits, sub, '-')                                                                   \
    FETCH(type, bits, or, '|')                                                                    \
    FETCH(type, bits, and, '&')                                                                   \
    FETCH(type, bits, xor, '^')                                                                   \
    FETCH(type, bits, nand, '~')

/* NOLINTEND(bugprone-macro-parentheses) */

ATOMICS(uint8_t, 8)
ATOMICS(uint16_t, 16)
ATOMICS(uint32_t, 32)
ATOMICS(uint64_t, 64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    bide_check_fence_(SITE, order_of(order));
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* ---- Atomic objects of 16 bytes are rejected ---- */

static void reject_wide_atomic(const void *code)
{
    char where[256];
    source_location_describe_code(code, where, sizeof where);
    execution_found(BIDE_CHECK_BAD_SCENARIO, "an atomic object of 16 bytes is used, at %s", where);
    abort(); /* reached only outside of a scenario */
}

#define REJECT(name)                                     \
    void __tsan_atomic128_##name(void);                  \
    void __tsan_atomic128_##name(void)                   \
    {                                                    \
        reject_wide_atomic(__builtin_return_address(0)); \
    }

REJECT(load)
REJECT(store)
REJECT(exchange)
REJECT(compare_exchange_strong)
REJECT(compare_exchange_weak)
REJECT(compare_exchange_val)
REJECT(fetch_add)
REJECT(fetch_sub)
REJECT(fetch_or)
REJECT(fetch_and)
REJECT(fetch_xor)
REJECT(fetch_nand)

/* ---- Objects of other sizes are rejected ---- */

/*
 * For these the compiler calls libatomic, which has locks for them; so does clang for an object that may be misaligned.
 * Outside of a scenario one lock is enough.
 */
static char wide_lock;

static void begin_wide(size_t size, const void *code)
{
    char where[256];
    if (execution_is_running()) {
        source_location_describe_code(code, where, sizeof where);
        execution_found(
            BIDE_CHECK_BAD_SCENARIO,
            "an atomic object of %zu bytes is used, which is not lock-free or misaligned, at %s",
            size, where);
    }
    while (__atomic_test_and_set(&wide_lock, __ATOMIC_ACQUIRE)) {
    }
}

static void end_wide(void)
{
    __atomic_clear(&wide_lock, __ATOMIC_RELEASE);
}

/* The functions of libatomic are builtins by their own names. */
void bide_check_wide_load_(size_t size, const void *object, void *value,
                           int order) __asm__("__atomic_load");
void bide_check_wide_store_(size_t size, void *object, const void *value,
                            int order) __asm__("__atomic_store");
void bide_check_wide_exchange_(size_t size, void *object, const void *value, void *old,
                               int order) __asm__("__atomic_exchange");
bool bide_check_wide_compare_exchange_(size_t size, void *object, void *expected, const void *value,
                                       int order, int failed) __asm__("__atomic_compare_exchange");

void bide_check_wide_load_(size_t size, const void *object, void *value, int order)
{
    (void)order;
    begin_wide(size, __builtin_return_address(0));
    memcpy(value, object, size);
    end_wide();
}

void bide_check_wide_store_(size_t size, void *object, const void *value, int order)
{
    (void)order;
    begin_wide(size, __builtin_return_address(0));
    memcpy(object, value, size);
    end_wide();
}

void bide_check_wide_exchange_(size_t size, void *object, const void *value, void *old, int order)
{
    (void)order;
    begin_wide(size, __builtin_return_address(0));
    memcpy(old, object, size);
    memcpy(object, value, size);
    end_wide();
}

bool bide_check_wide_compare_exchange_(size_t size, void *object, void *expected, const void *value,
                                       int order, int failed)
{
    (void)order;
    (void)failed;
    begin_wide(size, __builtin_return_address(0));
    bool is_equal = memcmp(object, expected, size) == 0;
    memcpy(is_equal ? object : expected, is_equal ? value : object, size);
    end_wide();
    return is_equal;
}
