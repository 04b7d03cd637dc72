/*
 * How operations behind wrappers are cases of a select: which of them can be, their attempts, and how
 * they are undone. The select's thread alone uses the operations here; no atomic is involved but the
 * choice's.
 *
 * A wrapper that is attempted keeps the table of its inner operation in its own link, because an attempt
 * may give that another one. The link is free: the wrapper itself is never awaited then.
 */
#include "bide/extend/choice.h"

#include "internal.h"

#include "bide/errors.h"
#include "bide/extend/wrapper.h"

static const bide_awaiter_ops *kept_table(const bide_awaiter *wrapper)
{
    return (const bide_awaiter_ops *)(const void *)wrapper->link;
}

/* ---- What can be a case ---- */

/* A coroutine is undone by its type; the user's are not. */
static bool frame_is_undone(const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    return code != NULL && code->type != NULL && *code->type != NULL &&
           (*code->type)->release != NULL;
}

const bide_awaiter *bide_choice_refused_(bide_awaiter *awaiter)
{
    for (;;) {
        const bide_awaiter_ops *ops = awaiter->ops;
        const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
        if (wrapper != NULL && ops->attempt != NULL)
            awaiter = wrapper->inner(awaiter, 0);
        else if (ops->attempt != NULL || ops->undo == BIDE_UNDO_WITHDRAW)
            return NULL;
        else
            return bide_awaiter_is_frame(awaiter) &&
                           frame_is_undone((const bide_frame *)(const void *)awaiter)
                       ? NULL
                       : awaiter;
    }
}

void bide_choice_report_refused_(const bide_awaiter *refused, const bide_frame *awaiting,
                                 const char *function)
{
#if BIDE_DEBUG
    const char *name =
        bide_awaiter_is_frame(refused)
            ? bide_point_name_(bide_frame_point((const bide_frame *)(const void *)refused))
            : refused->ops->name;
    const char *const words[] = {"bide: a select cannot give back what `",
                                 name != NULL ? name : "(unnamed)", "` has taken", NULL};
    bide_misused_with_(words, awaiting, function);
#else
    (void)refused, (void)awaiting, (void)function;
#endif
}

/* ---- Attempts ---- */

/* An operation without an `attempt`, which is its own wait. */
static int take_awaited(bide_awaiter *inner, const bide_awaiter_ops *ops, bide_choice *choice)
{
    if (choice->again) {
        if (choice->ended != -ECANCELED && choice->ended != -ETIMEDOUT) {
            choice->kept = true;
            return choice->ended;
        }
        if (inner->ops != ops)
            inner->ops = ops; /* instead of that of a cancelled operation */
    }
    if (bide_awaiter_had(inner))
        return bide_awaiter_resume(inner, ops);
    choice->wait = inner;
    return -EAGAIN;
}

int bide_wrapper_attempt(bide_awaiter *wrapper, bide_awaiter *inner, bide_choice *choice)
{
    if (!choice->again)
        wrapper->link = (bide_awaiter *)(uintptr_t)inner->ops;
    const bide_awaiter_ops *ops = kept_table(wrapper);
    if (ops->attempt == NULL)
        return take_awaited(inner, ops, choice);
    /* A partner has carried it out. It is not attempted, but wrappers, and selects, use its result. */
    if (bide_choice_taken(choice) != 0 && !bide_choice_asks_result_(ops))
        return 0;
    return ops->attempt(inner, choice);
}

/* Stands for an operation whose attempt has succeeded; the result is in its link. */
static int attempted_resume(bide_awaiter *awaiter)
{
    return (int)(intptr_t)awaiter->link;
}

static bool attempted_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

int bide_forward_attempt_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops attempted = {
        .resume = attempted_resume,
        .withdraw = attempted_withdraw,
        .name = "(attempted)",
    };
    bide_awaiter *inner = ((bide_forward *)(void *)awaiter)->inner;
    int status = bide_wrapper_attempt(awaiter, inner, choice);
    if (status == -EAGAIN)
        return status;
    const bide_awaiter_ops *ops = inner->ops; /* of its wait, which is still to be given back */
    bide_awaiter *link = inner->link;
    inner->ops = &attempted;
    inner->link = (bide_awaiter *)(intptr_t)status;
    status = awaiter->ops->resume(awaiter);
    inner->ops = ops;
    inner->link = link;
    return status;
}

void bide_choice_release_(bide_awaiter *awaiter, const bide_awaiter_ops *ops)
{
    const bide_wrapper_ops *wrapper;
    for (bide_awaiter *at = awaiter;; at = wrapper->inner(at, 0)) {
        at->ops = ops;
        at->frame = NULL; /* as if it had been ready */
        wrapper = bide_wrapper_of(at);
        if (wrapper == NULL || ops->attempt == NULL)
            break;
        ops = kept_table(at);
    }
    bide_wrapper_release(&awaiter);
}
