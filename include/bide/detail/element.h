/*
 * Copies of elements of any type: what the queues' typed macros come down to. The size is a
 * constant wherever one element is copied, so that it is a move or two. Part of the queues'
 * headers. Floor: base.
 */
#ifndef BIDE_DETAIL_ELEMENT_H
#define BIDE_DETAIL_ELEMENT_H

#include "bide/atomic.h"
#include "bide/platform.h"

#if BIDE_CHECK

/* One word at a time as far as that goes, each watched by the model checker. */
BIDE_INLINE void bide_element_copy_(void *to, const void *from, size_t size)
{
    const size_t word = sizeof(uint64_t);
    size_t done = 0;
    if (((uintptr_t)to | (uintptr_t)from) % word == 0)
        for (; size - done >= word; done += word) {
            uint64_t value = bide_plain_load((const uint64_t *)((const char *)from + done));
            bide_plain_store((uint64_t *)((char *)to + done), value);
        }
    for (; done < size; done++) {
        char value = bide_plain_load((const char *)from + done);
        bide_plain_store((char *)to + done, value);
    }
}

#else

BIDE_INLINE void bide_element_copy_(void *to, const void *from, size_t size)
{
#if defined __GNUC__
    if (size ==
        sizeof(uint64_t)) /* (where the size is not a constant, words are moved without a call) */
        __builtin_memcpy(to, from, sizeof(uint64_t));
    else
        __builtin_memcpy(to, from, size);
#else
    for (size_t i = 0; i < size; i++)
        /* cppcheck-suppress useStandardLibrary; there may be none */
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
#endif
}

#endif

/*
 * An expression without a value, which does not compile if the array `memory` has fewer than
 * `capacity` members, or `capacity` is 0. Nothing is known of a pointer, or of a variable.
 */
#if defined __cplusplus
extern "C++" {
template <class Memory>
struct bide_members_ {
    static const size_t count = SIZE_MAX;
};
template <class Element, size_t members>
struct bide_members_<Element[members]> {
    static const size_t count = members;
};
}
#define BIDE_MEMBERS_(memory)          (bide_members_<decltype(memory)>::count)
#define BIDE_KNOWN_CAPACITY_(capacity) (__builtin_constant_p(capacity) ? (size_t)(capacity) : 1)
#else
#define BIDE_MEMBERS_(memory)                                                                 \
    __builtin_choose_expr(                                                                    \
        __builtin_types_compatible_p(__typeof__(memory), __typeof__(&(memory)[0])), SIZE_MAX, \
        sizeof(memory) / (sizeof *(memory) + 0)) /* (+ 0: gcc warns of pointers otherwise) */
#define BIDE_KNOWN_CAPACITY_(capacity) \
    __builtin_choose_expr(__builtin_constant_p(capacity), (size_t)(capacity), (size_t)1)
#endif
#define BIDE_CHECK_MEMORY_(memory, capacity)                                           \
    ((void)sizeof(char[BIDE_KNOWN_CAPACITY_(capacity) != 0 &&                          \
                               BIDE_KNOWN_CAPACITY_(capacity) <= BIDE_MEMBERS_(memory) \
                           ? 1                                                         \
                           : -1]))

/* `capacity`, which must not be 0. */
BIDE_INLINE size_t bide_element_capacity_(size_t capacity, const char *what, const char *function,
                                          const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (capacity == 0)
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    return capacity;
}
#define BIDE_CAPACITY_(capacity, name) \
    bide_element_capacity_((capacity), BIDE_MISUSE_("there is room for no element", name))

/* `max`, how many elements are received at most: 0 is misuse. */
BIDE_INLINE size_t bide_element_max_(size_t max, const char *what, const char *function,
                                     const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (max == 0)
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    return max;
}
#define BIDE_ELEMENT_MAX_(max, name) \
    bide_element_max_((max), BIDE_MISUSE_("at most 0 elements are received", name))

#endif
