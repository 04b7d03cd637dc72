/*
 * Registered sets of waits. Each member's operation, or the wait that its attempt has given, is
 * awaited by a frame of its own. The frame's step adds the member to `ended`, a stack to which any
 * thread adds, and wakes the owner if it waits. All the rest is the owner's alone: it takes the
 * stack, attempts the members in turn, and begins their waits again. The argument and its numbers:
 * docs/internals/select_set.md.
 */
#include "bide/select_set.h"

#include "bide/coroutine.h"
#include "bide/extend/wrapper.h"
#include "bide/handle.h"

#include "../coroutine/internal.h"

/* ---- The lists: the owner's ---- */

static void member_unlink(bide_select_member *member)
{
    *member->place = member->next;
    if (member->next != NULL)
        member->next->place = member->place;
}

static void add_waiting(bide_select_set *set, bide_select_member *member)
{
    member->state = BIDE_MEMBER_WAITING_;
    member->next = set->waiting;
    member->place = &set->waiting;
    if (member->next != NULL)
        member->next->place = &member->next;
    set->waiting = member;
}

static void add_ready(bide_select_set *set, bide_select_member *member,
                      bide_select_member_state_ state)
{
    member->state = state;
    member->next = NULL;
    member->place = set->ready_end;
    *set->ready_end = member;
    set->ready_end = &member->next;
}

static void remove_ready(bide_select_set *set, bide_select_member *member)
{
    if (set->notified == member)
        set->notified = member->next;
    if (set->ready_end == &member->next)
        set->ready_end = member->place;
    member_unlink(member);
    member->state = BIDE_MEMBER_OUTSIDE_;
}

/* ---- The end of a member's wait: any thread ---- */

/* Adds the member to `ended`. If the owner was not waiting, member and set may be gone then: 2. */
static void member_has_ended(bide_select_member *member)
{
    bide_select_set *set = member->set;
    bide_awaiter *waiting = &set->until_ended;
    void *ended = bide_atomic_load(&set->ended, relaxed);
    do {
        member->next_ended = ended != waiting ? (bide_select_member *)ended : NULL;
        /* release: partner is the acquire of take_ended; acquire: the release of set_suspend. 1. */
    } while (!bide_atomic_compare_exchange(&set->ended, &ended, (void *)member, acq_rel, relaxed));
    if (ended == waiting)
        bide_wake_one(waiting);
}

static bide_next member_step(bide_frame *frame, unsigned depth)
{
    bide_select_member *member = bide_container_of(frame, bide_select_member, frame);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        bide_wrapper_discard(&member->awaited);
        bide_frame_destroyed(frame);
        return bide_next_none();
    }
    member->status = bide_wrapper_take(&member->awaited);
    frame->awaiter.ops = &bide_point_finished.ops;
    member_has_ended(member);
    return bide_next_none();
}

static const bide_coroutine_code member_code = {member_step, "bide_select_set", __FILE__,
                                                &bide_by_hand, NULL};
static const bide_point member_at_await = BIDE_POINT(&member_code, NULL, 0, BIDE_AT_AWAIT);

/* ---- Waiting for the end of any wait: the owner ---- */

static bool set_is_ready(bide_awaiter *awaiter)
{
    bide_select_set *set = bide_container_of(awaiter, bide_select_set, until_ended);
    return bide_atomic_load(&set->ended, relaxed) != NULL;
}

static bide_frame *set_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_select_set *set = bide_container_of(awaiter, bide_select_set, until_ended);
    void *none = NULL;
    /* release: partner is the acquire of the member that wakes; 1. */
    return bide_atomic_compare_exchange(&set->ended, &none, (void *)awaiter, release, relaxed)
               ? NULL
               : frame;
}

static int set_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* Whether it was still waiting: 3. */
static bool set_stops_waiting(bide_awaiter *awaiter)
{
    bide_select_set *set = bide_container_of(awaiter, bide_select_set, until_ended);
    void *waiting = awaiter;
    /* relaxed: it hands nothing over; 3. */
    return bide_atomic_compare_exchange(&set->ended, &waiting, NULL, relaxed, relaxed);
}

static void set_cancel(bide_awaiter *awaiter)
{
    if (!set_stops_waiting(awaiter))
        return;
    bide_awaiter_finish_cancelled(awaiter);
    bide_wake_one(awaiter);
}

static bide_awaiter *until_any_has_ended(bide_select_set *set)
{
    static const bide_awaiter_ops ops = {
        .ready = set_is_ready,
        .suspend = set_suspend,
        .resume = set_resume,
        .cancel = set_cancel,
        .withdraw = set_stops_waiting,
        .name = "bide_select_set_next",
    };
    set->until_ended.ops = &ops;
    return &set->until_ended;
}

/* For an end that a request to stop does not cut short. */
static bide_awaiter *until_removed(bide_select_set *set)
{
    static const bide_awaiter_ops ops = {
        .ready = set_is_ready,
        .suspend = set_suspend,
        .resume = set_resume,
        .withdraw = set_stops_waiting,
        .name = "bide_select_set_end",
    };
    set->until_ended.ops = &ops;
    return &set->until_ended;
}

/* ---- Members: the owner ---- */

static bool member_is_attempted(const bide_select_member *member)
{
    return member->ops->attempt != NULL;
}

/* Its wait has ended, with member->status. */
static bide_select_member_state_ state_after_wait(bide_select_member *member)
{
    if (!member_is_attempted(member))
        return BIDE_MEMBER_COMPLETE_;
    if (bide_choice_taken(&member->choice) == 0)
        return BIDE_MEMBER_NOTIFIED_;
    member->choice.again = true;
    member->choice.ended = member->status;
    member->status = bide_choice_asks_result_(member->ops)
                         ? member->ops->attempt(member->awaiter, &member->choice)
                         : 0;
    return BIDE_MEMBER_COMPLETE_;
}

/* Moves those whose waits have ended to `ready`, in the order of their ends. */
static void take_ended(bide_select_set *set)
{
    bide_select_member *oldest = NULL;
    if (bide_atomic_load(&set->ended, relaxed) == NULL)
        return;
    /* acquire: partner is the release of member_has_ended; 1. */
    bide_select_member *newest =
        (bide_select_member *)bide_atomic_exchange(&set->ended, NULL, acquire);
    while (newest != NULL) {
        bide_select_member *next = newest->next_ended;
        newest->next_ended = oldest;
        oldest = newest;
        newest = next;
    }
    for (; oldest != NULL; oldest = oldest->next_ended) {
        member_unlink(oldest);
        add_ready(set, oldest, state_after_wait(oldest));
        if (set->notified == NULL)
            set->notified = oldest;
    }
}

/*
 * Its wait has ended, and it is not attempted: passes on the notification, so that another waiter
 * of the object has it; 4.
 */
static void member_pass_on(bide_select_member *member)
{
    if (member->status == 0)
        bide_wrapper_release(&member->awaited);
}

/*
 * A member is about to be returned. Wrappers keep the notification: what they wrap may have ended
 * with a result.
 */
static void pass_on_others(bide_select_set *set)
{
    for (bide_select_member *m = set->notified; m != NULL; m = m->next) {
        if (m->state == BIDE_MEMBER_NOTIFIED_ && m->ops->undo != BIDE_UNDO_INNER) {
            member_pass_on(m);
            m->state = BIDE_MEMBER_TO_TRY_;
        }
    }
    set->notified = NULL;
}

static void member_begin_wait(bide_select_set *set, bide_select_member *member,
                              const bide_context *context)
{
    bide_frame *frame = &member->frame;
    bide_stop_source_init(&member->stop);
    member->context = *context;
    member->context.stop = &member->stop;
    frame->awaiter.ops = &member_at_await.ops;
    frame->awaiter.frame = NULL;
    frame->context = &member->context;
    add_waiting(set, member);
    bide_frame *next = bide_frame_await_by_(frame, member->awaited, frame);
    if (next != NULL)
        bide_run_on_(next);
}

/* Whether the operation has been had, by an attempt or because it is ready. */
static bool member_has(bide_select_member *member, const bide_context *context)
{
    if (member->state == BIDE_MEMBER_COMPLETE_)
        return true;
    if (!member_is_attempted(member)) {
        member->awaited = member->awaiter;
        if (!bide_awaiter_had(member->awaited))
            return false;
        member->status = bide_wrapper_take(&member->awaited);
        return true;
    }
    bide_choice *choice = &member->choice;
    bide_choice_init(choice);
    choice->scheduler = context->scheduler;
    choice->number = 1;
    choice->again = member->tried;
    choice->ended = member->status;
    member->tried = true;
    member->status = member->ops->attempt(member->awaiter, choice);
    if (member->status == -EAGAIN) {
        member->awaited = choice->wait;
        return false;
    }
    if (choice->kept)
        bide_wrapper_discard(&member->awaited);
    return true;
}

/* Tries those that are ready, and has the others wait. Returns NULL: none can be had. */
static bide_select_member *find_member(bide_select_set *set, const bide_context *context)
{
    for (;;) {
        take_ended(set);
        bide_select_member *member = set->ready;
        if (member == NULL)
            return NULL;
        bool had = member_has(member, context);
        remove_ready(set, member);
        if (had)
            return member;
        member_begin_wait(set, member, context);
    }
}

/* It is in `ready`, and leaves the set without being returned. */
static void member_leave(bide_select_set *set, bide_select_member *member)
{
    bide_select_member_state_ state = member->state;
    remove_ready(set, member);
    if (state == BIDE_MEMBER_COMPLETE_) {
        if (member->status != 0 || member_is_attempted(member))
            return;
        bide_wrapper_release(&member->awaited);
    } else if (state == BIDE_MEMBER_NOTIFIED_) {
        member_pass_on(member);
    } else if (!member->tried) {
        bide_wrapper_abandon(&member->awaiter);
    }
    member->status = -ECANCELED;
}

/* ---- The coroutines ---- */

/* Undoes what `next` has found, if possible, as if it had been ready. */
static void next_release(bide_frame *frame)
{
    bide_select_member *member = bide_container_of(frame, bide_select_set, task.frame)->which;
    if (member->status != 0)
        return;
    if (member_is_attempted(member))
        bide_choice_release_(member->awaiter, member->ops);
    else
        bide_wrapper_release(&member->awaited);
}

static const bide_coroutine_type next_type = {.name = "task", .release = next_release};

bide_coroutine_of(next_type, next_body)
{
    bide_begin(next_body, bide_select_set * self);
    bide_try(bide_yield_point_init_(&self->until_ended));
    for (;;) {
        self->which = find_member(self, bide_this_context());
        if (self->which != NULL)
            break;
        if (self->waiting == NULL)
            bide_return(-ENOENT);
        if (!self->suspends)
            bide_return(-EAGAIN);
        bide_try(until_any_has_ended(self));
    }
    pass_on_others(self);
    *self->result = self->which;
    bide_end();
}

bide_coroutine(remove_body)
{
    bide_begin(remove_body, bide_select_set * self);
    if (self->which->state == BIDE_MEMBER_OUTSIDE_)
        bide_return(0);
    if (self->which->state == BIDE_MEMBER_WAITING_)
        bide_stop_request(&self->which->stop);
    for (;;) {
        take_ended(self);
        if (self->which->state != BIDE_MEMBER_WAITING_)
            break;
        bide_await(until_removed(self));
    }
    member_leave(self, self->which);
    bide_end();
}

bide_coroutine(end_body)
{
    bide_begin(end_body, bide_select_set * self);
    for (bide_select_member *m = self->waiting; m != NULL; m = m->next)
        bide_stop_request(&m->stop);
    for (;;) {
        take_ended(self);
        while (self->ready != NULL)
            member_leave(self, self->ready);
        if (self->waiting == NULL)
            break;
        bide_await(until_removed(self));
    }
    bide_end();
}

/* ---- The calls ---- */

void bide_select_set_init(bide_select_set *set)
{
    bide_atomic_init(&set->ended, NULL);
    set->ready = set->waiting = set->notified = NULL;
    set->ready_end = &set->ready;
}

/* It is returned by `next` with the error. */
BIDE_COLD static void member_refuse(bide_select_member *member, const bide_awaiter *refused)
{
    bide_wrapper_abandon(&member->awaiter);
    member->status = -EOPNOTSUPP;
    add_ready(member->set, member, BIDE_MEMBER_COMPLETE_);
    bide_choice_report_refused_(refused, NULL, "bide_select_set_add");
}

void bide_select_set_add_(bide_select_set *set, bide_select_member *member, bide_awaiter *awaiter)
{
    const bide_awaiter *refused = bide_choice_refused_(awaiter);
    member->set = set;
    member->awaiter = awaiter;
    member->ops = awaiter->ops;
    member->tried = false;
    if (BIDE_UNLIKELY(refused != NULL))
        member_refuse(member, refused);
    else
        add_ready(set, member, BIDE_MEMBER_TO_TRY_);
}

static bide_awaiter *set_find(bide_select_set *set, bide_select_member **member, bool suspends)
{
    set->result = member;
    set->suspends = suspends;
    return bide_task_init(&set->task, &next_body);
}

bide_awaiter *bide_select_set_next(bide_select_set *set, bide_select_member **member)
{
    return set_find(set, member, true);
}

bide_awaiter *bide_select_set_poll(bide_select_set *set, bide_select_member **member)
{
    return set_find(set, member, false);
}

bide_awaiter *bide_select_set_remove(bide_select_set *set, bide_select_member *member)
{
    set->which = member;
    return bide_task_init(&set->task, &remove_body);
}

bide_awaiter *bide_select_set_end(bide_select_set *set)
{
    return bide_task_init(&set->task, &end_body);
}

void bide_select_set_destroy(bide_select_set *set)
{
    take_ended(set);
    while (set->ready != NULL)
        member_leave(set, set->ready);
    while (set->waiting != NULL) {
        bide_select_member *member = set->waiting;
        member_unlink(member);
        member->state = BIDE_MEMBER_OUTSIDE_;
        bide_destroy(&member->frame);
        bool carried_out = member_is_attempted(member) && bide_choice_taken(&member->choice) != 0;
        member->status = carried_out ? 0 : -ECANCELED;
    }
}
