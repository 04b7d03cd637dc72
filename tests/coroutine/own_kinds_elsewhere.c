/*
 * The other file of own_kinds_test.c: a coroutine type with a hook, and a body that own_kinds.h only declares.
 */
#include "own_kinds.h"

static int tallied_unhandled_error(bide_frame *frame, int error)
{
    ++*bide_promise(struct tallied, frame)->failures;
    return error;
}

static const bide_coroutine_type tallied_type = {.name = "tallied",
                                                 .unhandled_error = tallied_unhandled_error};

bide_declared_coroutine_of(tallied_type, failing_body)
{
    bide_begin(failing_body, struct failing * self);
    bide_return(-self->error);
    bide_end();
}
