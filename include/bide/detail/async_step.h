/*
 * How the step function of an async function suspends: a part of bide/async.h, which includes it. Floor: coroutine.
 *
 * An await of an async function that is translated in the same file calls its step function as a plain function. The
 * depth has BIDE_ASYNC_DIRECT_ added then, and the child is "direct":
 *
 * 1. Before the call the parent and the child are linked as in any await, so that a backtrace from the child leads through
 *    its callers. The parent's variables are not saved.
 * 2. A direct child that ends returns NULL, and touches nothing of its parent. The parent
 *    continues, with its variables as they are.
 * 3. A direct child that would suspend does not begin its operation. It is saved, and returns its frame, the leaf. Each
 *    direct caller is saved in turn and returns the leaf too. The first caller that is not direct is saved, and begins
 *    the leaf's operation (bide_async_pend_). From then on another thread may resume the leaf; all that it leads to has
 *    been saved by then. Nothing but the step functions has run in between, so the budget is as the leaf left it.
 * 4. A frame is direct from its start to its first suspension only. It is then resumed as any other, and ends by resuming
 *    its continuation. So a parent that is returned to by 2 was never left, and cannot have gone on elsewhere.
 */
#ifndef BIDE_DETAIL_ASYNC_STEP_H
#define BIDE_DETAIL_ASYNC_STEP_H

#include "bide/coroutine.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_ASYNC_DIRECT_ (1U << 30)

/* As the frame that a child returns: it has not begun, because the depth is used up. */
BIDE_INLINE bide_frame *bide_async_too_deep_(void)
{
    return (bide_frame *)1;
}

/* (BIDE_DESTROY_ and BIDE_ASK_SIZE_ are negative) */
BIDE_INLINE bool bide_async_is_direct_(unsigned depth)
{
    return (int)depth >= (int)BIDE_ASYNC_DIRECT_;
}

/* The depth for direct children. */
BIDE_INLINE unsigned bide_async_inner_(unsigned depth)
{
    return bide_async_is_direct_(depth) ? depth - 1 : depth + BIDE_ASYNC_DIRECT_;
}

/* A direct child that would call others does not begin. One that calls none may run: it is the last. */
BIDE_INLINE bool bide_async_ends_depth_(unsigned depth)
{
    return BIDE_UNLIKELY(depth == BIDE_ASYNC_DIRECT_);
}

/*
 * The depth, of which gcc forgets what it has found out: to save a test at the function's end, it would have the statements
 * in front of the end twice, for frames that are direct and for others. (clang does not.)
 */
BIDE_INLINE unsigned bide_async_unknown_(unsigned depth)
{
#if defined __GNUC__ && !defined __clang__ && defined __OPTIMIZE__
    __asm__("" : "+r"(depth));
#endif
    return depth;
}

/*
 * The next three exist once in each file, not in the library, so that the file's BIDE_DEBUG decides. They are not inlined:
 * each await that suspends goes through them.
 */
#if defined __GNUC__
#define BIDE_ASYNC_SHARED_ static __attribute__((__noinline__, __unused__))
#else
#define BIDE_ASYNC_SHARED_ static
#endif

/* A frame that is not direct ends, or is destroyed. */
BIDE_ASYNC_SHARED_ bide_frame *bide_async_finish_(bide_frame *frame,
                                                  const bide_coroutine_code *code,
                                                  const bide_point *finished, int error)
{
    return bide_frame_finish_(frame, code, finished, error);
}

/* A saved frame begins its operation. Returns the frame that runs next: itself if the operation has ended. */
BIDE_INLINE bide_frame *bide_async_begin_(bide_frame *frame, unsigned depth)
{
    const bide_point *here = bide_frame_point(frame);
    bide_awaiter *awaiter = frame->awaiter.link;
    bide_frame *next;
    bool is_away = BIDE_COUNTS_(awaiter->ops) && BIDE_UNLIKELY(bide_budget_ <= 0)
                       ? bide_await_spent_(frame, awaiter, here, &next)
                       : bide_suspend_(frame, awaiter, awaiter->ops, here, depth, &next);
    return is_away ? next : frame;
}

/*
 * `frame` is saved, and continues at `here` when the operation has ended. The operation is begun, unless the frame is
 * direct. Returns what the step function returns.
 */
BIDE_ASYNC_SHARED_ bide_frame *bide_async_wait_(bide_frame *frame, bide_awaiter *awaiter,
                                                const bide_point *here, unsigned depth)
{
    frame->awaiter.ops = &here->ops;
    frame->awaiter.link = awaiter;
    return bide_async_is_direct_(depth) ? frame : bide_async_begin_(frame, depth);
}

/* The same for a child that was called and has returned `leaf`, which is not NULL. */
BIDE_ASYNC_SHARED_ bide_frame *bide_async_pend_(bide_frame *frame, bide_awaiter *child,
                                                const bide_point *here, unsigned depth,
                                                bide_frame *leaf)
{
    if (leaf == bide_async_too_deep_()) {
        bide_flight_ends_(child);
        return bide_async_wait_(frame, child, here, depth);
    }
    return bide_async_is_direct_(depth) ? leaf : bide_async_begin_(leaf, depth);
}

BIDE_EXTERN_C_END

#endif
