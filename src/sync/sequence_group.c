/*
 * Joining, leaving, and the waits of a barrier group. Any thread may join, look and wait; a joiner
 * leaves. The list of joined members is the lock's; the count of a member's users too. A wait is a
 * coroutine that waits for one member after the other. Numbers and letters are those of
 * docs/internals/sequence_group.md. sequence8.c and its like include this file again, for their
 * widths.
 */
#include "bide/sequence_group.h"

#include "../coroutine/lock.h"

/* ---- Joining ---- */

bide_sequence_group_member *bide_sequence_group_joins_(bide_sequence_group *group,
                                                       bide_sequence_group_member *member,
                                                       const char *what, const char *function,
                                                       const char *file, unsigned line)
{
    lock_take(&group->lock);
    const bide_sequence_group_member *other = bide_atomic_load(&group->first, relaxed);
    while (other != NULL && other != member)
        other = other->next;
    lock_free(&group->lock);
    if (BIDE_UNLIKELY(other != NULL))
        bide_misuse_(what, function, file, line);
    return member;
}

/* Under the lock. */
static void group_link(bide_sequence_group *group, bide_sequence_group_member *member,
                       bide_sequence_barrier *barrier)
{
    /* relaxed: written under the lock. */
    bide_sequence_group_member *next = bide_atomic_load(&group->first, relaxed);
    member->next = next;
    member->before = NULL;
    member->barrier = barrier;
    member->users = 0;
    member->joined = true;
    bide_event_init(&member->left, false);
    if (next != NULL)
        next->before = member;
    bide_atomic_store(&group->first, member,
                      relaxed); /* W; a thread that acts on it takes the lock */
}

bide_sequence bide_sequence_group_join_(bide_sequence_group *group,
                                        bide_sequence_group_member *member,
                                        bide_sequence_barrier *barrier,
                                        bide_sequence_barrier *after)
{
    lock_take(&group->lock);
    group_link(group, member, barrier);
    bide_atomic_fence_heavy();                                          /* X; partner: L */
    bide_sequence start = bide_atomic_load(&after->published, acquire); /* R */
    bide_sequence_barrier_init(barrier, start);
    lock_free(&group->lock);
    return start;
}

bide_sequence bide_sequence_group_join_from_(bide_sequence_group *group,
                                             bide_sequence_group_member *member,
                                             bide_sequence_barrier *barrier,
                                             bide_sequence (*start)(void *argument), void *argument)
{
    lock_take(&group->lock);
    group_link(group, member, barrier);
    bide_atomic_fence_heavy();            /* X; partner: L */
    bide_sequence from = start(argument); /* R */
    bide_sequence_barrier_init(barrier, from);
    lock_free(&group->lock);
    return from;
}

void bide_sequence_group_add_(bide_sequence_group *group, bide_sequence_group_member *member,
                              bide_sequence_barrier *barrier)
{
    lock_take(&group->lock);
    group_link(group, member, barrier);
    lock_free(&group->lock);
}

/* ---- Leaving ---- */

void bide_sequence_group_remove(bide_sequence_group *group, bide_sequence_group_member *member)
{
    lock_take(&group->lock);
    bool was_last = false;
    if (member->joined) {
        member->joined = false;
        was_last = member->users == 0;
        if (member->next != NULL)
            member->next->before = member->before;
        if (member->before != NULL)
            member->before->next = member->next;
        else
            bide_atomic_store(&group->first, member->next, release); /* 2: partner is H */
    }
    lock_free(&group->lock);
    if (was_last)
        bide_event_set(&member->left);
}

bool bide_sequence_group_try_leave_(bide_sequence_group *group, bide_sequence_group_member *member)
{
    bide_sequence_barrier *barrier = member->barrier;
    bide_sequence_group_remove(group, member);
    bide_sequence_barrier_close(barrier); /* its waits turn to the other members */
    return bide_event_is_set(&member->left);
}

/*
 * Under the lock: a wait no longer uses the member. Returns the member if this was the last use after
 * it left; the caller reports that when the lock is free.
 */
static bide_sequence_group_member *group_release(bide_sequence_group_member *member)
{
    bide_assert(member->users != 0);
    member->users--;
    return member->users == 0 && !member->joined ? member : NULL;
}

/* Outside the lock. */
static void group_report_left(bide_sequence_group_member *left)
{
    if (left != NULL)
        bide_event_set(&left->left); /* 4: nothing of it is touched afterwards */
}

/* ---- Looking ---- */

bool bide_sequence_group_joined_have_published_(bide_sequence_group *group, bide_sequence target,
                                                bide_sequence *min)
{
    bool all = true;
    lock_take(&group->lock);
    for (bide_sequence_group_member *member = bide_atomic_load(&group->first, relaxed);
         member != NULL && all; member = member->next) {
        bide_sequence last = bide_sequence_barrier_last_published(member->barrier);
        bide_sequence past = (bide_sequence)(last - target);
        all = !bide_sequence_precedes(last, target);
        if (past < *min)
            *min = past;
    }
    lock_free(&group->lock);
    return all;
}

/* The result of a wait's check of all members. */
typedef struct group_view {
    bide_sequence min;    /* how far the slowest member that has published the target is past it */
    bide_sequence behind; /* how far the slowest of the others is before it; 0: there is none */
    bide_sequence_barrier *slowest;     /* of the others */
    bide_sequence_group_member *member; /* the member with that barrier; NULL: a fixed one */
    bool closed;                        /* one member will never publish the target; */
    bide_sequence at;                   /* it has published up to here */
} group_view;

static void group_look_at(group_view *view, bide_sequence target, bide_sequence_barrier *barrier,
                          bide_sequence_group_member *member)
{
    bide_sequence last = bide_sequence_barrier_last_published(barrier); /* F */
    bide_sequence behind = bide_sequence_distance(last, target);
    bool closed = false;
    if (behind != 0) {
        /* acquire: partner is close's release; numbers published before it are visible then. */
        closed =
            bide_waiter_list_word_is_shut(bide_atomic_load(&barrier->waiters.list.word, acquire));
        last = bide_sequence_barrier_last_published(barrier); /* F */
        behind = bide_sequence_distance(last, target);
    }
    if (behind == 0) {
        bide_sequence past = (bide_sequence)(last - target);
        if (past < view->min)
            view->min = past;
    } else if (closed) {
        view->closed = true;
        view->at = last;
    } else if (behind > view->behind) {
        view->behind = behind;
        view->slowest = barrier;
        view->member = member;
    }
}

/*
 * Releases the member that was waited for, and checks all members. Returns true if there is one to
 * wait for next, which is then held. Returns false if the wait ends, with self->published and
 * *status.
 */
static bool group_turn(bide_sequence_group_waiter *self, int *status)
{
    bide_sequence_group *group = self->group;
    bide_atomic(bide_sequence_counter_) *counter = self->wait.counter;
    /* relaxed: a hint for which member to wait; or it is loaded again. */
    bide_sequence_counter_ followed = counter != NULL ? bide_atomic_load(counter, relaxed) : 0;
    bide_sequence target =
        counter != NULL ? (bide_sequence)(followed - self->wait.behind) : self->target;
    group_view view = {.min = (bide_sequence)-1};
    bide_sequence_group_member *left = NULL;
    for (size_t i = 0; i < group->count; i++)
        group_look_at(&view, target, group->fixed[i], NULL);
    bide_atomic_fence_light(); /* L; partner: X */
    if (self->held != NULL ||
        bide_atomic_load(&group->first, acquire) != NULL) { /* H; acquire: 2 */
        lock_take(&group->lock);
        if (self->held != NULL)
            left = group_release(self->held);
        for (bide_sequence_group_member *member = bide_atomic_load(&group->first, relaxed);
             member != NULL; member = member->next)
            group_look_at(&view, target, member->barrier, member);
        self->held = NULL;
        if (view.behind != 0 && !view.closed && view.member != NULL) {
            self->held = view.member;
            self->held->users++;
        }
        lock_free(&group->lock);
        group_report_left(left);
    }
    if (view.behind != 0 && !view.closed) {
        self->slowest = view.slowest;
        return true;
    }
    self->published = view.closed ? view.at : bide_sequence_group_past_(target, view.min);
    /* (A follower looks again if the counter has moved: its target may be of another
     * lap.) */
    if (view.closed && (counter == NULL || bide_atomic_load(counter, relaxed) == followed))
        *status = -EPIPE;
    else
        *status = 0;
    return false;
}

/* ---- Waiting ---- */

static bide_next group_body_step_(bide_frame *frame, unsigned depth);

static const bide_coroutine_type *const group_body_type_ = &bide_task_type;
const bide_coroutine_code bide_sequence_group_code_ = {group_body_step_, "bide_sequence_group_wait",
                                                       __FILE__, &group_body_type_, NULL};

static bide_awaiter *group_wait_for_slowest(bide_sequence_group_waiter *self)
{
    if (self->wait.counter != NULL)
        return bide_sequence_barrier_follow_(&self->wait, self->slowest, self->wait.counter,
                                             self->wait.behind);
    return bide_sequence_barrier_wait_until_published(&self->wait.wait, self->slowest,
                                                      self->target);
}

bide_body(group_body)
{
    bide_begin(group_body, bide_sequence_group_waiter * self);
    int status;
    self->held = NULL;
    while (group_turn(self, &status)) {
        bide_await_status(status, group_wait_for_slowest(self));
        if (status < 0 && status != -EPIPE) { /* closed: it may have left */
            self->published = self->wait.wait.published;
            break;
        }
    }
    bide_return(status);
    bide_finally();
    /* It was cancelled or destroyed while it held a member. */
    if (self->held != NULL) {
        bide_sequence_group *group = self->group;
        lock_take(&group->lock);
        bide_sequence_group_member *left = group_release(self->held);
        lock_free(&group->lock);
        group_report_left(left);
    }
    bide_end();
}

bide_awaiter *bide_sequence_group_follow_(bide_sequence_group_waiter *waiter,
                                          bide_sequence_group *group,
                                          bide_atomic(bide_sequence_counter_) * counter,
                                          bide_sequence behind)
{
    static const bide_point start = BIDE_POINT_START(&bide_sequence_group_code_);
    waiter->frame.awaiter.ops = &start.ops;
    waiter->group = group;
    waiter->wait.counter = counter;
    waiter->wait.behind = behind;
    return &waiter->frame.awaiter;
}
