/*
 * Waiting for several operations at once: each runs in a branch of one group, and the awaiting
 * coroutine resumes when the last branch has ended.
 *
 * The wait begins and resumes on a thread of the awaiting coroutine. Branches may end on any thread.
 *
 * Why it is correct: extend/branch.h has the argument for groups. Only the start is added here. The
 * group counts all branches before any of them runs. The first branch does not run before when_begin
 * returns it. So the group cannot end, and its memory stays, while the other branches are posted.
 */
#include "bide/when.h"

#include "bide/errors.h"
#include "bide/extend/wrapper.h"

static bool when_ready(bide_awaiter *awaiter)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    bide_atomic_init(&when->group.decided, 0);
    return when->count == 0;
}

/*
 * Once the other branches are posted, only the first one, which runs after this, keeps the group from
 * ending.
 */
static bide_frame *when_begin(bide_awaiter *awaiter, bide_frame *frame, bide_decision decision)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    const bide_context *context = frame->context;
    bide_awaiter_chain others = {NULL, NULL};
    bide_branch_group_init_(&when->group, when->count, decision, context, awaiter);
    when->group.begins_asked = true; /* begun in another turn, so this is a give-way */
    for (size_t i = 0; i < when->count; i++) {
        bide_branch *branch = &when->branches[i];
        bide_branch_prepare_(branch, &when->group, i + 1, context);
        if (i != 0)
            bide_awaiter_chain_append(&others, &branch->frame.awaiter, &branch->frame.awaiter);
    }
    bide_branch_group_attach_(&when->group, context);
    bide_frame *first = &when->branches[0].frame;
    if (others.first != NULL)
        context->scheduler->post(context->scheduler, others.first, others.last);
    return first;
}

/* Branches are destroyed in order, so they are visited once. */
static bide_frame *when_coroutine(bide_awaiter *awaiter)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    size_t i = when->group.passed;
    while (i + 1 < when->count && bide_done(&when->branches[i].frame))
        i++;
    return i < when->count ? &when->branches[i].frame : NULL;
}

static void when_release(bide_awaiter *awaiter)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    for (size_t i = 0; i < when->count; i++)
        bide_branch_release_(&when->branches[i]);
    if (when->count != 0)
        bide_branch_group_end_(&when->group);
}

static bide_awaiter *when_inner(bide_awaiter *awaiter, size_t index)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    return index < when->count ? when->branches[index].awaited : NULL;
}

static bide_frame *suspend_all(bide_awaiter *awaiter, bide_frame *frame)
{
    return when_begin(awaiter, frame, BIDE_DECIDED_BY_ERROR);
}

static bide_frame *suspend_all_ready(bide_awaiter *awaiter, bide_frame *frame)
{
    return when_begin(awaiter, frame, BIDE_DECIDED_BY_NONE);
}

static bide_frame *suspend_any(bide_awaiter *awaiter, bide_frame *frame)
{
    return when_begin(awaiter, frame, BIDE_DECIDED_BY_END);
}

static int resume_all(bide_awaiter *awaiter)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    size_t first = bide_when_winner(when);
    return first < when->count ? when->branches[first].status : 0;
}

static int resume_all_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static int resume_any(bide_awaiter *awaiter)
{
    bide_when *when = bide_container_of(awaiter, bide_when, awaiter);
    return when->count != 0 ? when->branches[bide_when_winner(when)].status : -EINVAL;
}

static const bide_wrapper_ops all_ops = {
    .ops = BIDE_WRAPPER_OPS(when_ready, suspend_all, resume_all, "bide_when_all"),
    .coroutine = when_coroutine,
    .release = when_release,
    .inner = when_inner,
};
static const bide_wrapper_ops all_ready_ops = {
    .ops = BIDE_WRAPPER_OPS(when_ready, suspend_all_ready, resume_all_ready, "bide_when_all_ready"),
    .coroutine = when_coroutine,
    .release = when_release,
    .inner = when_inner,
};
static const bide_wrapper_ops any_ops = {
    .ops = BIDE_WRAPPER_OPS(when_ready, suspend_any, resume_any, "bide_when_any"),
    .coroutine = when_coroutine,
    .release = when_release,
    .inner = when_inner,
};

static bide_awaiter *when_init(bide_when *when, const bide_wrapper_ops *ops, bide_branch *branches,
                               size_t count)
{
    when->awaiter.ops = &ops->ops;
    when->branches = branches;
    when->count = count;
    return &when->awaiter;
}

bide_awaiter *bide_when_all(bide_when *when, bide_branch *branches, size_t count)
{
    return when_init(when, &all_ops, branches, count);
}

bide_awaiter *bide_when_all_ready(bide_when *when, bide_branch *branches, size_t count)
{
    return when_init(when, &all_ready_ops, branches, count);
}

bide_awaiter *bide_when_any(bide_when *when, bide_branch *branches, size_t count)
{
    return when_init(when, &any_ops, branches, count);
}
