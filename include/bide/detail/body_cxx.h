/*
 * The C++ half of bide/coroutine.h, which includes it: conversions that C does implicitly, the
 * compile-time check that a frame's header is its first member, and the blocks of a body.
 * Floor: coroutine.
 *
 * In C++ (since C++11) a body is the switch of standard C unless BIDE_STANDARD_C is defined as 0. So
 * the compiler rejects a local whose initialisation an await would jump over: a local that is
 * initialised, or has a constructor, must not be in a scope in which an await follows. Give it a
 * block of its own, or make it a member of the frame. With labels as values g++ rejects nothing, and
 * such an object is destroyed at each suspension.
 *
 * Declarations of the body are not visible after bide_finally. The frame may have members with
 * constructors. It may derive from its header; then the compiler does not check that the header is
 * first. Exceptions may be thrown and caught within a body. One that leaves it cannot pass through
 * the C code that runs it: the body is noexcept, so std::terminate is called, which names the
 * exception. Catch it in the body, and return a negative errno.
 *
 * Programs do not use the names below directly.
 */
#ifndef BIDE_DETAIL_BODY_CXX_H
#define BIDE_DETAIL_BODY_CXX_H

#ifdef __cplusplus

#include "bide/frame.h"

/* A pointer that converts to any pointer type, as a void * does in C. */
#define BIDE_ANY_POINTER_(pointer) (bide_any_pointer_{pointer})

/* Macros of bide_begin, bide_finally and bide_end whose C versions are in bide/coroutine.h. */
/* clang-format off */
#define BIDE_SELF_(...)                                                                            \
    size_t bide_size_ = 0;                                                                         \
    __VA_ARGS__ = bide_self_{bide_frame_, &bide_size_};                                            \
    (void)bide_size_
#define BIDE_SIZE_               bide_size_
#define BIDE_CONSTANT_SIZE_      0
#define BIDE_CHECK_HEADER_(self) (void)0;
#define BIDE_BLOCK_BEGIN_        {
#define BIDE_BLOCK_END_          }
/* clang-format on */

extern "C++" {

struct bide_any_pointer_ {
    void *pointer;
    template <class T>
    operator T *() const
    {
        return static_cast<T *>(pointer);
    }
};

#if defined __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-braces"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/*
 * Whether a frame's header is the first member of T, or the first member of that, and so on. It is
 * if a T can be initialised by a header alone. Two kinds of type are not checked: a type with a
 * constructor or a base class, and a type without a default initialisation because it has a
 * reference.
 */
template <class T>
char (*bide_first_is_header_(const bide_frame *, ...))[1];
template <class T>
auto bide_first_is_header_(const bide_frame *header, int)
    -> decltype(T{*header}, static_cast<char (*)[2]>(NULL));
template <class T>
char (*bide_first_is_anything_(...))[2];
template <class T>
auto bide_first_is_anything_(int)
    -> decltype(T{}, static_cast<char (*)[1 + !__is_aggregate(T)]>(NULL));
#pragma GCC diagnostic pop
#else
template <class T>
char (*bide_first_is_anything_(int))[2];
#endif

/* The initialiser of a body's pointer to its frame. */
struct bide_self_ {
    bide_frame *frame;
    size_t *size;
    template <class T>
    operator T *() const
    {
        *size = sizeof(T);
        constexpr bool bide_header_must_be_first_in_the_frame_ =
            sizeof *bide_first_is_anything_<T>(0) == 2 ||
            sizeof *bide_first_is_header_<T>(NULL, 0) == 2;
        static_assert(bide_header_must_be_first_in_the_frame_,
                      "bide_header_must_be_first_in_the_frame_");
        return static_cast<T *>(static_cast<void *>(frame));
    }
};

} // extern "C++"

#endif

#endif
