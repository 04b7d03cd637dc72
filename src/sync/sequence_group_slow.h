/* For one type of sequence. The model, the argument and the letters are in sequence_group.h. */

#define BARRIER_         BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name)     BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)
#define GROUP_           BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define MEMBER_          BIDE_CONCAT2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define WAITER_          BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define COUNTER_         BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define VIEW_            BIDE_CONCAT2(group_view, BIDE_SEQUENCE_BITS)
#define BODY_            BIDE_CONCAT2(group_body, BIDE_SEQUENCE_BITS)
#define F_(name)         BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)

/* ---- Joining ---- */

/* Under the lock. */
static void F_(_link)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier)
{
    /* relaxed: written under the lock. */
    MEMBER_ *next = bide_atomic_load(&group->first, relaxed);
    member->next = next;
    member->before = NULL;
    member->barrier = barrier;
    member->users = 0;
    member->joined = true;
    bide_event_init(&member->left, false);
    if (next != NULL)
        next->before = member;
    bide_atomic_store(&group->first, member, relaxed); /* W; whoever acts on it takes the lock */
}

BIDE_SEQUENCE F_(_join)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier, BARRIER_ *after)
{
    lock_take(&group->lock);
    F_(_link)(group, member, barrier);
    bide_atomic_fence_heavy();                                          /* X; partner: L */
    BIDE_SEQUENCE start = bide_atomic_load(&after->published, acquire); /* R */
    BARRIER_F_(_init)(barrier, start);
    lock_free(&group->lock);
    return start;
}

BIDE_SEQUENCE F_(_join_from)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier,
                             BIDE_SEQUENCE (*start)(void *argument), void *argument)
{
    lock_take(&group->lock);
    F_(_link)(group, member, barrier);
    bide_atomic_fence_heavy();            /* X; partner: L */
    BIDE_SEQUENCE from = start(argument); /* R */
    BARRIER_F_(_init)(barrier, from);
    lock_free(&group->lock);
    return from;
}

void F_(_add)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier)
{
    lock_take(&group->lock);
    F_(_link)(group, member, barrier);
    lock_free(&group->lock);
}

/* ---- Leaving ---- */

void F_(_remove)(GROUP_ *group, MEMBER_ *member)
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

bool F_(_try_leave)(GROUP_ *group, MEMBER_ *member)
{
    BARRIER_ *barrier = member->barrier;
    F_(_remove)(group, member);
    BARRIER_F_(_close)(barrier); /* the waits that wait for it turn to the others */
    return bide_event_is_set(&member->left);
}

/* Under the lock: a wait uses it no longer. Returns it if it has left with that: the caller says so, when the lock
 * is free. */
static MEMBER_ *F_(_release)(MEMBER_ *member)
{
    member->users--;
    return member->users == 0 && !member->joined ? member : NULL;
}

/* Outside the lock. */
static void F_(_say_left)(MEMBER_ *left)
{
    if (left != NULL)
        bide_event_set(&left->left); /* 4: nothing of it is touched afterwards */
}

/* ---- Looking ---- */

bool F_(_joined_have_published_)(GROUP_ *group, BIDE_SEQUENCE target, BIDE_SEQUENCE *least)
{
    bool all = true;
    lock_take(&group->lock);
    for (MEMBER_ *member = bide_atomic_load(&group->first, relaxed); member != NULL && all;
         member = member->next) {
        BIDE_SEQUENCE last = BARRIER_F_(_last_published)(member->barrier);
        BIDE_SEQUENCE past = (BIDE_SEQUENCE)(last - target);
        all = !TRAIT_(_precedes)(last, target);
        if (past < *least)
            *least = past;
    }
    lock_free(&group->lock);
    return all;
}

/* What a wait sees when it looks at all members. */
typedef struct VIEW_ {
    BIDE_SEQUENCE
    least; /* the slowest of those that have published the target is this far past it */
    BIDE_SEQUENCE behind; /* the slowest of the others is this far before it; 0: there are none */
    BARRIER_ *slowest;    /* of these */
    MEMBER_ *member;      /* whose barrier it is; NULL: a fixed one's */
    bool closed;          /* one of them will never publish it ... */
    BIDE_SEQUENCE at;     /* ... and has come as far as this */
} VIEW_;

static void F_(_look_at)(VIEW_ *view, BIDE_SEQUENCE target, BARRIER_ *barrier, MEMBER_ *member)
{
    BIDE_SEQUENCE last = BARRIER_F_(_last_published)(barrier); /* F */
    BIDE_SEQUENCE behind = TRAIT_(_distance)(last, target);
    bool closed = false;
    if (behind != 0) {
        /* acquire: partner is the closing's release, so that what was published before it is seen then. */
        closed =
            bide_waiter_list_word_is_shut(bide_atomic_load(&barrier->waiters.list.word, acquire));
        last = BARRIER_F_(_last_published)(barrier); /* F */
        behind = TRAIT_(_distance)(last, target);
    }
    if (behind == 0) {
        BIDE_SEQUENCE past = (BIDE_SEQUENCE)(last - target);
        if (past < view->least)
            view->least = past;
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
 * Lets go of the member that was waited for, and looks at all. True: there is one to be waited for next; it is held.
 * False: the wait ends, with self->published and *status.
 */
static bool F_(_turn)(WAITER_ *self, int *status)
{
    GROUP_ *group = self->group;
    bide_atomic(COUNTER_) *counter = self->wait.counter;
    /* relaxed: a hint for whom to wait; or it is loaded again. */
    COUNTER_ followed = counter != NULL ? bide_atomic_load(counter, relaxed) : 0;
    BIDE_SEQUENCE target =
        counter != NULL ? (BIDE_SEQUENCE)(followed - self->wait.behind) : self->target;
    VIEW_ view = {.least = (BIDE_SEQUENCE)-1};
    MEMBER_ *left = NULL;
    for (size_t i = 0; i < group->count; i++)
        F_(_look_at)(&view, target, group->fixed[i], NULL);
    bide_atomic_fence_light(); /* L; partner: X */
    if (self->held != NULL ||
        bide_atomic_load(&group->first, acquire) != NULL) { /* H; acquire: 2 */
        lock_take(&group->lock);
        if (self->held != NULL)
            left = F_(_release)(self->held);
        for (MEMBER_ *member = bide_atomic_load(&group->first, relaxed); member != NULL;
             member = member->next)
            F_(_look_at)(&view, target, member->barrier, member);
        self->held = NULL;
        if (view.behind != 0 && !view.closed && view.member != NULL) {
            self->held = view.member;
            self->held->users++;
        }
        lock_free(&group->lock);
        F_(_say_left)(left);
    }
    if (view.behind != 0 && !view.closed) {
        self->slowest = view.slowest;
        return true;
    }
    self->published = view.closed ? view.at : F_(_past_)(target, view.least);
    /* (Who follows looks again if the counter has moved: what he took for its target may be of another lap.) */
    if (view.closed && (counter == NULL || bide_atomic_load(counter, relaxed) == followed))
        *status = -EPIPE;
    else
        *status = 0;
    return false;
}

/* ---- Waiting ---- */

static bide_next BIDE_CONCAT2(BODY_, _step_)(bide_frame *frame, unsigned depth);

static const bide_coroutine_type *const BIDE_CONCAT2(BODY_, _type_) = &bide_task_type;
const bide_coroutine_code F_(_code_) = {BIDE_CONCAT2(BODY_, _step_), "bide_sequence_group_wait",
                                        __FILE__, &BIDE_CONCAT2(BODY_, _type_), NULL};

static bide_awaiter *F_(_wait_for_slowest)(WAITER_ *self)
{
    if (self->wait.counter != NULL)
        return BARRIER_F_(_follow_)(&self->wait, self->slowest, self->wait.counter,
                                    self->wait.behind);
    return BARRIER_F_(_wait_until_published)(&self->wait.wait, self->slowest, self->target);
}

bide_body(BODY_)
{
    bide_begin(BODY_, WAITER_ * self);
    int status;
    self->held = NULL;
    while (F_(_turn)(self, &status)) {
        bide_await_status(status, F_(_wait_for_slowest)(self));
        if (status < 0 && status != -EPIPE) { /* closed: it may have left */
            self->published = self->wait.wait.published;
            break;
        }
    }
    bide_return(status);
    bide_finally();
    /* Cut short or destroyed while it held one. */
    if (self->held != NULL) {
        GROUP_ *group = self->group;
        lock_take(&group->lock);
        MEMBER_ *left = F_(_release)(self->held);
        lock_free(&group->lock);
        F_(_say_left)(left);
    }
    bide_end();
}

bide_awaiter *F_(_follow_)(WAITER_ *waiter, GROUP_ *group, bide_atomic(COUNTER_) * counter,
                           BIDE_SEQUENCE behind)
{
    static const bide_point start = BIDE_POINT_START(&F_(_code_));
    waiter->frame.awaiter.ops = &start.ops;
    waiter->group = group;
    waiter->wait.counter = counter;
    waiter->wait.behind = behind;
    return &waiter->frame.awaiter;
}

#undef BARRIER_
#undef BARRIER_F_
#undef TRAIT_
#undef GROUP_
#undef MEMBER_
#undef WAITER_
#undef COUNTER_
#undef VIEW_
#undef BODY_
#undef F_
