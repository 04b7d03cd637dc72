/* The barrier group for one type of sequence; the model and the argument are in sequence_group.h. */

#define BARRIER_         BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define MEMBER_          BIDE_CONCAT2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define LEAVER_          BIDE_CONCAT2(bide_sequence_group_leaver, BIDE_SEQUENCE_BITS)
#define WAITER_          BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define COUNTER_         BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define F_(name)         BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)

/* One that has joined. The joiner's, until it has left. All but `left` is under the group's lock. */
typedef struct MEMBER_ {
    struct MEMBER_ *next;
    struct MEMBER_ *before;
    BARRIER_ *barrier;
    size_t users; /* the waits that wait for it */
    bool joined;
    bide_event left; /* it is no member, and nobody uses it any more */
} MEMBER_;

typedef struct GROUP_ {
    BARRIER_ *const *fixed; /* the caller's array; constant while shared */
    size_t count;
    bide_atomic(MEMBER_ *) first; /* those who have joined; written under the lock */
    bide_atomic(uint32_t) lock;
} GROUP_;

/* One wait. The caller's until the wait has ended; then `published` is its result. */
typedef struct WAITER_ {
    bide_frame frame;
    GROUP_ *group;
    BIDE_SEQUENCE target;
    BIDE_SEQUENCE published; /* what the slowest member had published */
    BARRIER_ *slowest;       /* the barrier that is waited for */
    MEMBER_ *held;           /* the member whose it is; NULL: a fixed one's, or none */
    BIDE_CONCAT2(bide_sequence_follower, BIDE_SEQUENCE_BITS)
    wait; /* its counter: NULL, or what the target follows */
} WAITER_;

/* One leaving. The caller's until it has ended. */
typedef struct LEAVER_ {
    bide_event_waiter wait; /* the head */
    GROUP_ *group;
    MEMBER_ *member;
} LEAVER_;

extern const bide_coroutine_code F_(_code_);

/* The slow halves, in src/sync/sequence_group.c. */
bool F_(_joined_have_published_)(GROUP_ *group, BIDE_SEQUENCE target, BIDE_SEQUENCE *least);

/*
 * Makes a group of `count` barriers, in an array of the caller's, which are members as long as there is the group;
 * both must outlive it. NULL and 0 if there are none; others may join. With none at all every sequence counts as
 * published. Before it is shared. The memory may go when everybody who joined has left, no wait is under
 * way, and nobody calls any of these on it.
 */
BIDE_INLINE void F_(_init)(GROUP_ *group, BARRIER_ *const *fixed, size_t count)
{
    group->fixed = fixed;
    group->count = count;
    bide_atomic_init(&group->first, NULL);
    bide_atomic_init(&group->lock, 0);
}

/* Behind the macro of the same name, in sequence_group.h. */
BIDE_INLINE void F_(_destroy_)(GROUP_ *group, const char *what, const char *where, const char *file,
                               unsigned line)
{
    if (BIDE_DEBUG && bide_atomic_load(&group->first, relaxed) != NULL)
        bide_misuse_(what, where, file, line);
}

/*
 * Joins: makes `barrier` a member, and returns what it has published from the beginning: what `after` has. After
 * this whoever goes by the group waits for the joiner at everything that comes later than that; so if `after` is
 * the cursor of a ring, and the group its gate, or leads to it, the joiner can read every message after the one
 * that is returned, and publishes on `barrier` what it has done with.
 *
 * `member` and `barrier` are the joiner's, not yet in use, and must stay until it has left; `barrier` is
 * initialised here. `after` is where that comes from which the members publish: what they have published, it has
 * published before. Any thread, at any time; does not suspend; blocks while another looks at those who have joined,
 * joins or leaves.
 */
BIDE_SEQUENCE F_(_join)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier, BARRIER_ *after);

/*
 * The same where what is published is not known by a barrier: begins at what start(argument) returns, which is
 * called under the group's lock, so does not block nor use the group. It must not lie before what any member has
 * published already, nor before what a producer may have overwritten already: the last sequence that was claimed is
 * right, whatever the orders of the claim and of that load (argument 1).
 */
BIDE_SEQUENCE F_(_join_from)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier,
                             BIDE_SEQUENCE (*start)(void *argument), void *argument);

/*
 * Makes a barrier that is in use a member as it stands: for what is put up before anything runs, and for one that is
 * a member of another group already, where it holds back who would overwrite what it is to read. Otherwise as join.
 */
void F_(_add)(GROUP_ *group, MEMBER_ *member, BARRIER_ *barrier);

/*
 * The first half of leaving: from now on it is no member. Does nothing if it is none already. The barrier stays as
 * it is, and waits that wait for it go on doing so until it is closed; so it is to leave as well, by one of those
 * below. For a barrier in several groups: it is removed from all, and then leaves each. The joiner only; does not
 * suspend; blocks as join does.
 */
void F_(_remove)(GROUP_ *group, MEMBER_ *member);

/*
 * Leaves, if that needs no waiting: removes the member and closes its barrier. True: nothing refers to the member
 * any more, and its memory may go. False: it is no member any more, but a wait that waited for it has yet to turn
 * to the others: to be called, or awaited as below, again. What was published stays published, and what the member
 * has not done with is waited for no longer. The joiner only; otherwise as remove.
 */
bool F_(_try_leave)(GROUP_ *group, MEMBER_ *member);

BIDE_INLINE bool F_(_leave_ready_)(bide_awaiter *awaiter)
{
    LEAVER_ *leaver = (LEAVER_ *)(void *)awaiter;
    return F_(_try_leave)(leaver->group, leaver->member);
}

/*
 * Leaves, and waits until nothing refers to the member any more: then its memory, and the barrier's, may go.
 * `leaver` is the caller's until it has ended. Always ends with 0: it cannot be cut short, so that who is asked to
 * stop can still leave. It waits for no more than that the waits which waited for this member are run by their
 * schedulers. If who waits is destroyed, it is to leave again. The joiner only; suspends if a wait refers to the
 * member.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_leave)(LEAVER_ *leaver, GROUP_ *group, MEMBER_ *member)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = F_(_leave_ready_),
        .suspend = bide_event_suspend_,
        .resume = bide_event_resume_,
        .cancel = NULL,
        .withdraw = bide_event_withdraw_,
        .name = "bide_sequence_group_leave",
    };
    leaver->wait.listed.awaiter.ops = &ops;
    leaver->wait.event = &member->left;
    leaver->group = group;
    leaver->member = member;
    return &leaver->wait.listed.awaiter;
}

/* The same for a plain thread, which it blocks. */
BIDE_INLINE void F_(_leave_blocking)(GROUP_ *group, MEMBER_ *member)
{
    LEAVER_ leaver;
    bide_sync_wait(F_(_leave)(&leaver, group, member));
}

/* `least` is how far past the target the slowest is, or all ones if there is none: no barrier is that far. */
BIDE_INLINE BIDE_SEQUENCE F_(_past_)(BIDE_SEQUENCE target, BIDE_SEQUENCE least)
{
    return (BIDE_SEQUENCE)(target + (least != (BIDE_SEQUENCE)-1 ? least : 0));
}

/*
 * Has every member published `target`? If so, *published is the slowest member's last; what any of them published is
 * visible, and so is what those who have left had done. Any thread; wait-free while nobody has joined, otherwise it
 * blocks while another looks, joins or leaves.
 */
BIDE_INLINE bool F_(_is_published)(GROUP_ *group, BIDE_SEQUENCE target, BIDE_SEQUENCE *published)
{
    BIDE_SEQUENCE least = (BIDE_SEQUENCE)-1; /* how far past the target */
    for (size_t i = 0; i < group->count; i++) {
        BIDE_SEQUENCE last = BARRIER_F_(_last_published)(group->fixed[i]); /* F */
        if (BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, _precedes)(last, target))
            return false;
        BIDE_SEQUENCE past = (BIDE_SEQUENCE)(last - target);
        if (past < least)
            least = past;
    }
    bide_atomic_fence_light();                                             /* L; partner: X */
    if (BIDE_UNLIKELY(bide_atomic_load(&group->first, acquire) != NULL) && /* H; acquire: 2 */
        !F_(_joined_have_published_)(group, target, &least))
        return false;
    *published = F_(_past_)(target, least);
    return true;
}

BIDE_INLINE bool F_(_ready_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    bool ready = F_(_is_published)(waiter->group, waiter->target, &waiter->published);
    if (ready)
        waiter->frame.error = 0;
    return ready;
}

/*
 * Waits until every member, of those that are members when it ends, has published `target`. `waiter` is the
 * caller's until the wait has ended; its member `published` is then the slowest member's last sequence, `target` or
 * later. Ends with 0, or -EPIPE if the barrier of somebody who is still a member was closed before `target`
 * (`published` is then that one's last), or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h; `published` is what
 * the one waited for had published). All members are looked at when it begins, and again when the slowest of them
 * gets there or is closed: that one it waits for, so that another was closed meanwhile is noticed only then. Any
 * thread; suspends if some member has not published `target`; as is_published otherwise.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *F_(_wait_until_published)(WAITER_ *waiter, GROUP_ *group,
                                                    BIDE_SEQUENCE target)
{
    static const bide_point start = BIDE_POINT_START_READY(F_(_ready_), &F_(_code_));
    waiter->frame.awaiter.ops = &start.ops;
    waiter->group = group;
    waiter->target = target;
    waiter->wait.counter = NULL;
    return &waiter->frame.awaiter;
}

/*
 * Waits until what lies `behind` the counter was published by every member, perhaps for a moment only. Ends with -EPIPE
 * only if a member is closed that leaves no room. See _follow_ of the barrier; otherwise as above, but
 * `published` says nothing.
 */
BIDE_MUST_AWAIT
bide_awaiter *F_(_follow_)(WAITER_ *waiter, GROUP_ *group, bide_atomic(COUNTER_) * counter,
                           BIDE_SEQUENCE behind);

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef MEMBER_
#undef LEAVER_
#undef COUNTER_
#undef WAITER_
#undef F_
