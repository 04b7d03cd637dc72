/* A check for waiters that a scheduler's destruction would leave behind. See the header. */
#include "leak_check.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include "bide/create.h"

/* The innermost body around a frame: an operation's own frames say little. */
static const bide_frame *enclosing_body(const bide_frame *frame)
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

static void report_leaked_timer(const char *what, const bide_timer *timer)
{
    bide_misused_(what, bide_frame_point(enclosing_body(timer->awaiter.frame)));
}

static void report_leaked_task(const char *what, const bide_root *root, const char *file,
                               unsigned line)
{
    const bide_frame *frame = bide_awaited_frame(root->awaited);
    if (frame == NULL) /* an operation, not a coroutine */
        bide_platform.misuse(what, root->awaited->ops->name, file, line);
    else
        bide_misused_(what, bide_frame_point(frame));
}

void bide_report_leaked_waiters_(const bide_scheduler *scheduler, const bide_timers *timers,
                                 const char *timer_left, const char *task_left, const char *file,
                                 unsigned line)
{
    const bide_root *root = bide_roots_find_(scheduler);
    if (timers != NULL && timers->first != NULL)
        report_leaked_timer(timer_left, bide_container_of(timers->first, bide_timer, awaiter));
    if (root != NULL)
        report_leaked_task(task_left, root, file, line);
}
