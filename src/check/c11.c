/*
 * C11's own atomics, and __atomic_* and __sync_*: in code that is compiled with -fsanitize=thread
 * each is a call of one of these functions, which take the place of ThreadSanitizer's. They are the
 * steps that the library's operations are. Where one stands is known from where it returns to: each
 * such place has a record of its own.
 */
#include "execution.h"
#include "source_location.h"

#include <stdlib.h>

static int order_of(int order)
{
    static const int orders[] = {bide_check_relaxed_, bide_check_acquire_, bide_check_acquire_,
                                 bide_check_release_, bide_check_acq_rel_, bide_check_seq_cst_};
    order &= 0xff; /* above are hints to the processor */
    return order >= 0 && order < 6 ? orders[order] : bide_check_seq_cst_;
}

/* The order of a load that is part of an operation with that order, for what calls without one. */
static int order_if_failed(int order)
{
    return order == bide_check_release_   ? bide_check_relaxed_
           : order == bide_check_acq_rel_ ? bide_check_acquire_
                                          : order;
}

#define SITE site_of_code(__builtin_return_address(0))

/* NOLINTBEGIN(bugprone-macro-parentheses): types do not stand in parentheses */
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

/* ---- What has 16 bytes is refused ---- */

static void refuse(const void *code)
{
    char where[256];
    site_describe_code(code, where, sizeof where);
    execution_found(BIDE_CHECK_BAD_SCENARIO, "an atomic object of 16 bytes is used, at %s", where);
    abort(); /* outside a scenario */
}

#define REFUSE(name)                         \
    void __tsan_atomic128_##name(void);      \
    void __tsan_atomic128_##name(void)       \
    {                                        \
        refuse(__builtin_return_address(0)); \
    }

REFUSE(load)
REFUSE(store)
REFUSE(exchange)
REFUSE(compare_exchange_strong)
REFUSE(compare_exchange_weak)
REFUSE(compare_exchange_val)
REFUSE(fetch_add)
REFUSE(fetch_sub)
REFUSE(fetch_or)
REFUSE(fetch_and)
REFUSE(fetch_xor)
REFUSE(fetch_nand)
