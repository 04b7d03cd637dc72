/* What is left of a scheduler's: see the header. */
#include "leak_check.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include "bide/create.h"

/* The nearest, outwards, that was written as a body: an operation's own frames say little. */
static const bide_frame *body_around(const bide_frame *frame)
{
    const bide_frame *f = frame;
    for (;;) {
        const bide_coroutine_code *code = bide_frame_point(f)->code;
        if (code != NULL && code->type != NULL)
            return f;
        if (f->awaiter.frame == NULL || f->awaiter.frame == f || code == &bide_root_code_)
            return frame;
        f = f->awaiter.frame;
    }
}

static void tell_of_timer(const char *what, const bide_timer *timer)
{
    bide_misused_(what, bide_frame_point(body_around(timer->awaiter.frame)));
}

static void tell_of_task(const char *what, const bide_root *root)
{
    const bide_frame *frame = bide_awaited_frame(root->awaited);
    if (frame == NULL) /* an operation by itself */
        bide_platform.misuse(what, root->awaited->ops->name, __FILE__, __LINE__);
    else
        bide_misused_(what, bide_frame_point(frame));
}

void bide_tell_what_is_left_(const bide_scheduler *scheduler, const bide_timers *timers,
                             const char *timer_left, const char *task_left)
{
    const bide_root *root = bide_roots_find_(scheduler);
    if (timers->first != NULL)
        tell_of_timer(timer_left, bide_container_of(timers->first, bide_timer, awaiter));
    if (root != NULL)
        tell_of_task(task_left, root);
}
