/*
 * The branches of a group: operations that run side by side for one owner. Each branch is a coroutine
 * written by hand.
 *
 *     at_start --its scheduler--> at_await --its operation has ended--> counted down
 *        ^ held, if its scope has no room
 *
 * A branch runs on its scheduler's threads; any thread may end its operation. The branch that counts
 * down to 0 continues with the owner. The argument and its numbers: branch.h.
 */
#include "bide/extend/branch.h"

#include "internal.h"
#include "roots.h"

#include "bide/errors.h"

static bide_next branch_step(bide_frame *frame, unsigned depth);

const bide_coroutine_code bide_branch_code_ = {branch_step, "bide_branch", __FILE__, &bide_by_hand,
                                               NULL};
static const bide_point branch_at_start = BIDE_POINT_START(&bide_branch_code_);
static const bide_point branch_held = BIDE_POINT_START(&bide_branch_code_);
static const bide_point branch_at_await = BIDE_POINT(&bide_branch_code_, NULL, 1, BIDE_AT_AWAIT);

/*
 * It ended with the reason of a request on itself alone (bide_scope_stop_one), which is no failure. A
 * request on the group is there before it reaches the branches.
 */
static bool branch_was_stopped_alone(bide_branch *branch)
{
    return branch->number == 0 && branch->status == bide_stop_reason(&branch->stop) &&
           !bide_stop_requested(&branch->group->stop);
}

static bool branch_decides(bide_branch *branch)
{
    switch (branch->group->decision) {
    case BIDE_DECIDED_BY_ERROR:
    case BIDE_DECIDED_SPARING:
        return branch->status < 0 && !branch_was_stopped_alone(branch);
    case BIDE_DECIDED_BY_END:
        return true;
    case BIDE_DECIDED_BY_NONE:
    default:
        return false;
    }
}

/* Scopes' branches are in the lists of live branches. */
static void branch_enlist(bide_branch *branch)
{
#if BIDE_ROOTS
    bide_branches_add_(branch);
#else
    (void)branch;
#endif
}

static void branch_unlink(bide_branch *branch)
{
#if BIDE_ROOTS
    bide_branches_remove_(branch);
#else
    (void)branch;
#endif
}

/* Continues with the group's owner on its own scheduler. */
static bide_frame *branch_group_join(bide_branch_group *group, const bide_scheduler *here)
{
    bide_awaiter *joined = group->joined;
    bide_branch_group_end_(group);
    if (joined->frame->context->scheduler == here)
        return joined->frame;
    bide_wake_one(joined);
    return NULL;
}

/* Its operation was destroyed, or has not begun: then the branch is in a queue. */
static void destroy_branch(bide_branch *branch)
{
    bide_frame *frame = &branch->frame;
    if (frame->awaiter.ops == &branch_held.ops) {
        bide_wrapper_abandon(&branch->awaited);
    } else if (frame->awaiter.ops != &branch_at_start.ops) {
        bide_wrapper_discard(&branch->awaited);
    } else {
        if (!bide_take_back_from_(frame->context->scheduler, &frame->awaiter))
            bide_misused_("a coroutine was destroyed that is about to begin", &branch_at_start);
        bide_wrapper_abandon(&branch->awaited);
    }
    branch->status = -ECANCELED;
    bide_frame_destroyed(frame);
    if (branch->number != 0) {
        branch->group->passed = branch->number;
    } else {
        branch_unlink(branch);
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
    if (frame->awaiter.ops == &branch_at_start.ops) {
        frame->awaiter.ops = &branch_at_await.ops;
        const bide_frame *by = branch->number != 0 ? branch->group->joined->frame : frame;
        return bide_next_frame(branch->group->begins_asked
                                   ? bide_frame_await_in_turn_(frame, branch->awaited, by)
                                   : bide_frame_await_by_(frame, branch->awaited, by));
    }
    bide_branch_group *group = branch->group;
    const bide_scheduler *here = frame->context->scheduler; /* it may have moved */
    branch->status = bide_wrapper_take(&branch->awaited);
    frame->awaiter.ops = &bide_point_finished.ops;
    if (branch_decides(branch)) {
        size_t undecided = 0;
        size_t mark = branch->number != 0 ? branch->number : (size_t)-branch->status;
        /* relaxed: 2 */
        if (bide_atomic_compare_exchange(&group->decided, &undecided, mark, relaxed, relaxed) &&
            group->decision != BIDE_DECIDED_SPARING)
            bide_stop_request(&group->stop); /* 3 */
    }
    if (branch->number == 0) {
        branch_unlink(branch);
        bide_stop_source_detach(&branch->stop);
    }
    void (*ended)(bide_branch *) = branch->ended;
    if (BIDE_UNLIKELY(group->is_kept))
        bide_scope_branch_ended_(branch);
    if (ended != NULL)
        ended(branch);
    return bide_next_frame(bide_branch_group_count_down_(group) ? branch_group_join(group, here)
                                                                : NULL);
}

void bide_branch_group_init_(bide_branch_group *group, size_t running, bide_decision decision,
                             const bide_context *context, bide_awaiter *joined)
{
    bide_atomic_init(&group->running, running);
    bide_atomic_init(&group->decided, 0);
    group->decision = decision;
    group->passed = 0;
    group->begins_asked = false;
    group->can_stop = decision != BIDE_DECIDED_BY_NONE || context->stop != NULL;
    group->is_kept = false;
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
 * No other thread knows the group's source yet, so no lock is needed; nor later, because the branch's
 * source lives as long.
 */
static void branch_adopt_source(bide_branch_group *group, bide_stop_source *child)
{
    child->parent = &group->stop;
    child->next = group->stop.first_child;
    group->stop.first_child = child;
}

bool bide_branch_group_count_down_(bide_branch_group *group)
{
    /* release and acquire: 1 */
    size_t running = bide_atomic_fetch_sub(&group->running, 1, acq_rel);
    bide_assert(running != 0);
    return running == 1;
}

void bide_branch_group_end_(bide_branch_group *group)
{
    if (group->can_stop)
        bide_stop_source_detach(&group->stop);
}

void bide_branch_prepare_(bide_branch *branch, bide_branch_group *group, size_t number,
                          const bide_context *context)
{
    branch->frame.awaiter.ops = &branch_at_start.ops;
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
            branch_adopt_source(group, &branch->stop);
        else
            bide_stop_source_attach(&branch->stop, &group->stop);
        branch->context.stop = &branch->stop;
    }
    if (number == 0)
        branch_enlist(branch);
}

void bide_branch_hold_(bide_branch *branch)
{
    branch->frame.awaiter.ops = &branch_held.ops;
}

void bide_branch_begin_(bide_branch *branch)
{
    bide_awaiter *awaiter = &branch->frame.awaiter;
    bide_scheduler *scheduler = branch->context.scheduler;
    awaiter->ops = &branch_at_start.ops;
    awaiter->link = NULL;
    scheduler->post(scheduler, awaiter, awaiter);
}

void bide_branch_release_(bide_branch *branch)
{
    bide_wrapper_release(&branch->awaited);
    branch->status = -ECANCELED;
}
