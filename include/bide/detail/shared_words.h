/*
 * Elements of any type as words that may be overwritten while others read them. Each word is an
 * atomic, so that is no data race; a reader throws away what it has read if that may be a mixture.
 * When it may be is the argument of the headers that use this: watch.h, broadcast.h. The size is a
 * constant wherever one element is moved. Floor: base.
 *
 * Source: Boehm, Can seqlocks get along with programming language memory models? (2012).
 */
#ifndef BIDE_DETAIL_SHARED_WORDS_H
#define BIDE_DETAIL_SHARED_WORDS_H

#include "bide/detail/element.h"

typedef bide_atomic(size_t) bide_shared_word_;

/* How many words an element of `size` bytes takes. */
#define BIDE_SHARED_WORDS_(size) (((size) + sizeof(size_t) - 1) / sizeof(size_t))

/* The target of a channel's `typed_`, which exists for its type alone. */
#define BIDE_SHARED_TYPE_(type) \
    struct {                    \
        type value;             \
    }

/* How many bytes of `left` are in the next word. */
BIDE_INLINE size_t bide_shared_bytes_(size_t left)
{
    return left < sizeof(size_t) ? left : sizeof(size_t);
}

/* Before they are shared. */
BIDE_INLINE void bide_shared_words_init_(bide_shared_word_ *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bide_atomic_init(&words[i], (size_t)0);
}

BIDE_INLINE void bide_shared_words_store_(bide_shared_word_ *words, const void *from, size_t size)
{
    for (size_t done = 0; done < size; done += sizeof(size_t)) {
        size_t word = 0;
        bide_element_copy_(&word, (const char *)from + done, bide_shared_bytes_(size - done));
        bide_atomic_store(&words[done / sizeof(size_t)], word, relaxed);
    }
}

BIDE_INLINE void bide_shared_words_load_(void *to, bide_shared_word_ *words, size_t size)
{
    for (size_t done = 0; done < size; done += sizeof(size_t)) {
        size_t word = bide_atomic_load(&words[done / sizeof(size_t)], relaxed);
        bide_element_copy_((char *)to + done, &word, bide_shared_bytes_(size - done));
    }
}

#endif
