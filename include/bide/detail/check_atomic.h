/*
 * The operations of bide/atomic.h as the model checker's, for what is compiled with BIDE_CHECK. Each use has a
 * record of where it stands, which is how the checker names it, and how it weakens its orders.
 */
#ifndef BIDE_CHECK_ATOMIC_H
#define BIDE_CHECK_ATOMIC_H

#if defined __cplusplus || !(defined __GNUC__ || defined __cppcheck__)
#error "BIDE_CHECK needs gcc or clang, and C"
#endif

BIDE_STATIC_ASSERT(sizeof(void *) == 8, "the model checker needs 64-bit pointers");

#define bide_atomic(type) _Atomic(type)

typedef struct bide_check_site_ {
    const char *file;
    const char *function;
    const char *object; /* as it is written there */
    unsigned line;
    unsigned known_as; /* the checker's; 0 at first */
} bide_check_site_;

enum {
    bide_check_relaxed_,
    bide_check_acquire_,
    bide_check_release_,
    bide_check_acq_rel_,
    bide_check_seq_cst_,
    /* of fences only: the halves of an asymmetric one (fence.h) */
    bide_check_light_,
    bide_check_heavy_
};

#define BIDE_ORDER_(order) bide_check_##order##_

uint64_t bide_check_load_(bide_check_site_ *site, const volatile void *address, size_t size,
                          int order);
void bide_check_store_(bide_check_site_ *site, volatile void *address, size_t size, uint64_t value,
                       int order);
void bide_check_init_(bide_check_site_ *site, volatile void *address, size_t size, uint64_t value);
uint64_t bide_check_exchange_(bide_check_site_ *site, volatile void *address, size_t size,
                              uint64_t value, int order);
bool bide_check_compare_exchange_(bide_check_site_ *site, volatile void *address, size_t size,
                                  uint64_t *expected, uint64_t value, int order,
                                  int order_if_failed, bool weak);
/* operation: one of '+', '-', '|', '&' */
uint64_t bide_check_fetch_(bide_check_site_ *site, volatile void *address, size_t size,
                           char operation, uint64_t value, int order);
void bide_check_fence_(bide_check_site_ *site, int order);
void bide_check_relax_(void);
void bide_check_retry_(void);
void bide_check_plain_(bide_check_site_ *site, const volatile void *address, size_t size,
                       bool is_write);

#define BIDE_CHECK_SITE_(object)                                                        \
    __extension__({                                                                     \
        static bide_check_site_ bide_site_ = {__FILE__, __func__, object, __LINE__, 0}; \
        &bide_site_;                                                                    \
    })

/* The type of what an atomic (or plain) object holds, and a number as one and back. */
#define BIDE_CHECK_TYPE_(object)  __typeof__((void)0, *(object))
#define BIDE_CHECK_NUMBER_(value) ((uint64_t)(uintptr_t)(value))

#define bide_atomic_init(object, value) \
    bide_check_init_(BIDE_CHECK_SITE_(#object), object, sizeof *(object), BIDE_CHECK_NUMBER_(value))

/* The number that a call returns, as what the object holds. (A statement expression, so that it may go unused.) */
#define BIDE_CHECK_VALUE_(object, call)                                                     \
    __extension__({                                                                         \
        BIDE_CHECK_TYPE_(object) bide_value_ = (BIDE_CHECK_TYPE_(object))(uintptr_t)(call); \
        bide_value_;                                                                        \
    })

#define bide_atomic_load(object, order)                                           \
    BIDE_CHECK_VALUE_(object, bide_check_load_(BIDE_CHECK_SITE_(#object), object, \
                                               sizeof *(object), BIDE_ORDER_(order)))

#define bide_atomic_store(object, value, order)                            \
    bide_check_store_(BIDE_CHECK_SITE_(#object), object, sizeof *(object), \
                      BIDE_CHECK_NUMBER_(value), BIDE_ORDER_(order))

#define bide_atomic_exchange(object, value, order)                                              \
    BIDE_CHECK_VALUE_(object,                                                                   \
                      bide_check_exchange_(BIDE_CHECK_SITE_(#object), object, sizeof *(object), \
                                           BIDE_CHECK_NUMBER_(value), BIDE_ORDER_(order)))

#define BIDE_CHECK_COMPARE_EXCHANGE_(object, expected, value, order, order_if_failed, weak)     \
    __extension__({                                                                             \
        __typeof__(expected) bide_expected_ = (expected);                                       \
        uint64_t bide_found_ = BIDE_CHECK_NUMBER_(*bide_expected_);                             \
        bool bide_exchanged_ = bide_check_compare_exchange_(                                    \
            BIDE_CHECK_SITE_(#object), object, sizeof *(object), &bide_found_,                  \
            BIDE_CHECK_NUMBER_(value), BIDE_ORDER_(order), BIDE_ORDER_(order_if_failed), weak); \
        if (!bide_exchanged_)                                                                   \
            *bide_expected_ = (BIDE_CHECK_TYPE_(object))(uintptr_t)bide_found_;                 \
        bide_exchanged_;                                                                        \
    })

#define bide_atomic_compare_exchange(object, expected, value, order, order_if_failed) \
    BIDE_CHECK_COMPARE_EXCHANGE_(object, expected, value, order, order_if_failed, false)

#define bide_atomic_compare_exchange_weak(object, expected, value, order, order_if_failed) \
    BIDE_CHECK_COMPARE_EXCHANGE_(object, expected, value, order, order_if_failed, true)

#define BIDE_CHECK_FETCH_(object, operation, value, order)                                   \
    BIDE_CHECK_VALUE_(object,                                                                \
                      bide_check_fetch_(BIDE_CHECK_SITE_(#object), object, sizeof *(object), \
                                        operation, BIDE_CHECK_NUMBER_(value), BIDE_ORDER_(order)))

#define bide_atomic_fetch_add(object, value, order) BIDE_CHECK_FETCH_(object, '+', value, order)
#define bide_atomic_fetch_sub(object, value, order) BIDE_CHECK_FETCH_(object, '-', value, order)
#define bide_atomic_fetch_or(object, value, order)  BIDE_CHECK_FETCH_(object, '|', value, order)
#define bide_atomic_fetch_and(object, value, order) BIDE_CHECK_FETCH_(object, '&', value, order)

#define bide_atomic_fence(order)      bide_check_fence_(BIDE_CHECK_SITE_(""), BIDE_ORDER_(order))
#define bide_atomic_fence_after_rmw() bide_atomic_fence(seq_cst)

BIDE_INLINE void bide_cpu_relax(void)
{
    bide_check_relax_();
}

BIDE_INLINE void bide_atomic_retry(void)
{
    bide_check_retry_();
}

#define bide_plain_load(object) \
    (bide_check_plain_(BIDE_CHECK_SITE_(#object), object, sizeof *(object), false), *(object))

#define bide_plain_store(object, value)                                            \
    (bide_check_plain_(BIDE_CHECK_SITE_(#object), object, sizeof *(object), true), \
     *(object) = (value))

#endif
