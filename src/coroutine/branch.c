/* The branches of a group. Each is a coroutine written by hand; see branch.h for the argument. */
#include "bide/extend/branch.h"

#include "internal.h"
#include "roots.h"

#include "bide/errors.h"

static bide_next branch_step(bide_frame *frame, unsigned depth);

const bide_coroutine_code bide_branch_code_ = {branch_step, "bide_branch", __FILE__, &bide_by_hand, NULL};
static const bide_point at_start = BIDE_POINT_START(&bide_branch_code_);
static const bide_point at_await = BIDE_POINT(&bide_branch_code_, NULL, 1, BIDE_AT_AWAIT);

static bool decides(const bide_branch *branch)
{
    switch (branch->group->decision) {
    case BIDE_DECIDED_BY_ERROR:
        return branch->status < 0;
    case BIDE_DECIDED_BY_END:
        return true;
    case BIDE_DECIDED_BY_NONE:
    default:
        return false;
    }
}

/* Is in the lists of live branches, or no more: those of scopes are. */
static void enlist(bide_branch *branch)
{
#if BIDE_ROOTS
    bide_branches_add_(branch);
#else
    (void)branch;
#endif
}

static void strike(bide_branch *branch)
{
#if BIDE_ROOTS
    bide_branches_remove_(branch);
#else
    (void)branch;
#endif
}

/* The owner of the group goes on where it belongs. */
static bide_frame *join(bide_branch_group *group, const bide_scheduler *here)
{
    bide_awaiter *joined = group->joined;
    bide_branch_group_end_(group);
    if (joined->frame->context->scheduler == here)
        return joined->frame;
    bide_wake_one(joined);
    return NULL;
}

/* What it awaits is gone, or was never begun: then it is in a queue. */
static void destroy_branch(bide_branch *branch)
{
    bide_frame *frame = &branch->frame;
    if (frame->awaiter.ops != &at_start.ops) {
        bide_wrapper_discard(&branch->awaited);
    } else {
        if (!bide_take_back_from_(frame->context->scheduler, &frame->awaiter))
            bide_misused_("a coroutine was destroyed that is about to begin", &at_start);
        bide_wrapper_abandon(&branch->awaited);
    }
    branch->status = -ECANCELED;
    bide_frame_destroyed(frame);
    if (branch->number != 0) {
        branch->group->passed = branch->number;
    } else {
        strike(branch);
        bide_stop_source_detach(&branch->stop);
    }
    if (branch->ended != NULL)
        branch->ended(branch);
}

static bide_next branch_step(bide_frame *frame, unsigned depth)
{
    bide_branch *branch = bide_container_of(frame, bide_branch, frame);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        destroy_branch(branch);
        return bide_next_none();
    }
    if (frame->awaiter.ops == &at_start.ops) {
        frame->awaiter.ops = &at_await.ops;
        return bide_next_frame(bide_frame_await(frame, branch->awaited));
    }
    bide_branch_group *group = branch->group;
    const bide_scheduler *here = frame->context->scheduler; /* it may have moved */
    branch->status = bide_wrapper_take(&branch->awaited);
    frame->awaiter.ops = &bide_point_finished.ops;
    if (decides(branch)) {
        size_t undecided = 0;
        size_t mark = branch->number != 0 ? branch->number : (size_t)-branch->status;
        /* relaxed: 2 */
        if (bide_atomic_compare_exchange(&group->decided, &undecided, mark, relaxed, relaxed))
            bide_stop_request(&group->stop); /* 3 */
    }
    if (branch->number == 0) {
        strike(branch);
        bide_stop_source_detach(&branch->stop);
    }
    if (branch->ended != NULL)
        branch->ended(branch);
    return bide_next_frame(bide_branch_group_count_down_(group) ? join(group, here) : NULL);
}

void bide_branch_group_init_(bide_branch_group *group, size_t running, bide_decision decision,
                             const bide_context *context, bide_awaiter *joined)
{
    bide_atomic_init(&group->running, running);
    bide_atomic_init(&group->decided, 0);
    group->decision = decision;
    group->passed = 0;
    group->can_stop = decision != BIDE_DECIDED_BY_NONE || context->stop != NULL;
    group->joined = joined;
    if (group->can_stop)
        bide_stop_source_init(&group->stop);
}

void bide_branch_group_attach_(bide_branch_group *group, const bide_context *context)
{
    if (context->stop != NULL)
        bide_stop_source_attach(&group->stop, context->stop);
}

/*
 * Nobody else knows of the group's source yet, so no lock is needed; nor later, because the
 * branch's stays as long.
 */
static void adopt(bide_branch_group *group, bide_stop_source *child)
{
    child->parent = &group->stop;
    child->next = group->stop.first_child;
    group->stop.first_child = child;
}

bool bide_branch_group_count_down_(bide_branch_group *group)
{
    /* release and acquire: 1 */
    return bide_atomic_fetch_sub(&group->running, 1, acq_rel) == 1;
}

void bide_branch_group_end_(bide_branch_group *group)
{
    if (group->can_stop)
        bide_stop_source_detach(&group->stop);
}

void bide_branch_prepare_(bide_branch *branch, bide_branch_group *group, size_t number,
                          const bide_context *context)
{
    branch->frame.awaiter.ops = &at_start.ops;
    branch->frame.awaiter.link = NULL;
    branch->frame.awaiter.frame = &branch->frame; /* while it is posted: see root.c */
    branch->frame.context = &branch->context;
    branch->group = group;
    branch->number = number;
    branch->ended = NULL;
    branch->context = *context;
    branch->context.stop = NULL;
    if (group->can_stop) {
        bide_stop_source_init(&branch->stop);
        if (number != 0)
            adopt(group, &branch->stop);
        else
            bide_stop_source_attach(&branch->stop, &group->stop);
        branch->context.stop = &branch->stop;
    }
    if (number == 0)
        enlist(branch);
}

void bide_branch_release_(bide_branch *branch)
{
    bide_wrapper_release(&branch->awaited);
    branch->status = -ECANCELED;
}
