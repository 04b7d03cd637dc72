/*
 * A nested generator learns its root through the await_transform of the generator that yields from
 * it.
 */
#include "bide/recursive_generator.h"

/* Each file has a type of its own, but they all have this hook. */
static bool is_recursive_generator(const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    return code != NULL && code->type != NULL &&
           (*code->type)->await_transform == bide_recursive_generator_transform_;
}

bide_awaiter *bide_recursive_generator_transform_(bide_frame *frame, bide_awaiter *awaiter)
{
    bide_frame *nested = bide_awaited_frame(awaiter);
    if (nested != NULL && is_recursive_generator(nested))
        bide_promise(bide_recursive_generator, nested)->root =
            bide_promise(bide_recursive_generator, frame)->root;
    else if (!bide_awaiter_ready(awaiter, awaiter->ops))
        return bide_await_forbidden(frame, awaiter);
    return awaiter;
}
