/*
 * The operations of bide/atomic.h as the model checker's, for what is compiled with BIDE_CHECK.
 * Each use has a record of where it stands, which is how the checker names it, and how it weakens
 * its orders. Floor: base.
 */
#ifndef BIDE_CHECK_ATOMIC_H
#define BIDE_CHECK_ATOMIC_H

#if defined __cplusplus || !(defined __GNUC__ || defined __cppcheck__)
#error "BIDE_CHECK needs gcc or clang, and C"
#endif

/*
 * Code that is not instrumented has races that are not detected, and atomics of C11 that are the
 * machine's.
 */
#if defined __SANITIZE_THREAD__
#define BIDE_CHECK_IS_WATCHED_ 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define BIDE_CHECK_IS_WATCHED_ 1
#endif
#endif
#if !defined BIDE_CHECK_IS_WATCHED_ && !defined BIDE_CHECK_UNWATCHED && !defined __cppcheck__
#error \
    "BIDE_CHECK: compile with -fsanitize=thread, or plain accesses and C11's own atomics go unseen in this file. \
If there are none, or they are marked (bide_plain_load), say so with -DBIDE_CHECK_UNWATCHED=1"
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
/* operation: one of '+', '-', '|', '&', '^', and '~' for nand */
uint64_t bide_check_fetch_(bide_check_site_ *site, volatile void *address, size_t size,
                           char operation, uint64_t value, int order);
void bide_check_fence_(bide_check_site_ *site, int order);
void bide_check_relax_(void);
void bide_check_retry_(void);
void bide_check_plain_(bide_check_site_ *site, const volatile void *address, size_t size,
                       bool is_write);

/* The bits of a number with a point, and the number that has them. */
uint64_t bide_check_bits_(const void *value, size_t size);
float bide_check_float_(uint64_t bits);
double bide_check_double_(uint64_t bits);

#define BIDE_CHECK_SITE_(object)                                                        \
    __extension__({                                                                     \
        static bide_check_site_ bide_site_ = {__FILE__, __func__, object, __LINE__, 0}; \
        &bide_site_;                                                                    \
    })

/*
 * The type of what an atomic (or plain) object holds, and its size, which the checker knows up to 8
 * bytes.
 */
#define BIDE_CHECK_TYPE_(object) __typeof__((void)0, *(object))
#define BIDE_CHECK_SIZE_(object)                                                       \
    sizeof(struct {                                                                    \
        _Static_assert(sizeof *(object) <= 8, "an atomic object has at most 8 bytes"); \
        char bytes[sizeof *(object)];                                                  \
    })

/*
 * A value that the object is to hold as a number, and back. Of floating-point numbers these are
 * their bits.
 */
/* clang-format off: it does not know _Generic */
#define BIDE_CHECK_BITS_(object, value) \
    bide_check_bits_(&(BIDE_CHECK_TYPE_(object)){value}, sizeof *(object))

#define BIDE_CHECK_NUMBER_(object, value)               \
    _Generic(((void)0, *(object)), float                \
             : BIDE_CHECK_BITS_(object, value), double  \
             : BIDE_CHECK_BITS_(object, value), _Bool   \
             : BIDE_CHECK_BITS_(object, value), default \
             : (uint64_t)(uintptr_t)(value))

#define BIDE_CHECK_HELD_(object, number)           \
    _Generic(((void)0, *(object)), float           \
             : bide_check_float_(number), double   \
             : bide_check_double_(number), default \
             : (BIDE_CHECK_TYPE_(object))(uintptr_t)(number))
/* clang-format on */

#define bide_atomic_init(object, value)                                           \
    bide_check_init_(BIDE_CHECK_SITE_(#object), object, BIDE_CHECK_SIZE_(object), \
                     BIDE_CHECK_NUMBER_(object, value))

/*
 * The number that a call returns, as what the object holds. (A statement expression, so that it may
 * go unused.)
 */
#define BIDE_CHECK_VALUE_(object, call)                                                \
    __extension__({                                                                    \
        uint64_t bide_number_ = (call);                                                \
        BIDE_CHECK_TYPE_(object) bide_value_ = BIDE_CHECK_HELD_(object, bide_number_); \
        bide_value_;                                                                   \
    })

#define bide_atomic_load(object, order)                                           \
    BIDE_CHECK_VALUE_(object, bide_check_load_(BIDE_CHECK_SITE_(#object), object, \
                                               BIDE_CHECK_SIZE_(object), BIDE_ORDER_(order)))

#define bide_atomic_store(object, value, order)                                    \
    bide_check_store_(BIDE_CHECK_SITE_(#object), object, BIDE_CHECK_SIZE_(object), \
                      BIDE_CHECK_NUMBER_(object, value), BIDE_ORDER_(order))

#define bide_atomic_exchange(object, value, order)                                                \
    BIDE_CHECK_VALUE_(                                                                            \
        object, bide_check_exchange_(BIDE_CHECK_SITE_(#object), object, BIDE_CHECK_SIZE_(object), \
                                     BIDE_CHECK_NUMBER_(object, value), BIDE_ORDER_(order)))

#define BIDE_CHECK_COMPARE_EXCHANGE_(object, expected, value, order, order_if_failed, weak)      \
    __extension__({                                                                              \
        __typeof__(expected) bide_expected_ = (expected);                                        \
        uint64_t bide_found_ = BIDE_CHECK_NUMBER_(object, *bide_expected_);                      \
        bool bide_exchanged_ = bide_check_compare_exchange_(                                     \
            BIDE_CHECK_SITE_(#object), object, BIDE_CHECK_SIZE_(object), &bide_found_,           \
            BIDE_CHECK_NUMBER_(object, value), BIDE_ORDER_(order), BIDE_ORDER_(order_if_failed), \
            weak);                                                                               \
        if (!bide_exchanged_)                                                                    \
            *bide_expected_ = BIDE_CHECK_HELD_(object, bide_found_);                             \
        bide_exchanged_;                                                                         \
    })

#define bide_atomic_compare_exchange(object, expected, value, order, order_if_failed) \
    BIDE_CHECK_COMPARE_EXCHANGE_(object, expected, value, order, order_if_failed, false)

#define bide_atomic_compare_exchange_weak(object, expected, value, order, order_if_failed) \
    BIDE_CHECK_COMPARE_EXCHANGE_(object, expected, value, order, order_if_failed, true)

/* Nothing is added to a floating-point number atomically in C11. */
#define BIDE_CHECK_INTEGER_(object)                                                        \
    (void)sizeof(struct {                                                                  \
        _Static_assert(_Generic(((void)0, *(object)), float : 0, double : 0, default : 1), \
                       "C11 has no atomic arithmetic on floating-point numbers");          \
        char c;                                                                            \
    }),

#define BIDE_CHECK_FETCH_(object, operation, value, order)                                        \
    BIDE_CHECK_VALUE_(object,                                                                     \
                      BIDE_CHECK_INTEGER_(object) bide_check_fetch_(                              \
                          BIDE_CHECK_SITE_(#object), object, BIDE_CHECK_SIZE_(object), operation, \
                          BIDE_CHECK_NUMBER_(object, value), BIDE_ORDER_(order)))

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
