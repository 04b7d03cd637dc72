/* The barrier group for one type of sequence; see sequence_group.h. */

#define BARRIER_         BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define WAITER_          BIDE_CONCAT2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)         BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)

/* The members, in an array of the caller's that must outlive the group. Constant while shared. */
typedef struct GROUP_ {
    BARRIER_ *const *members;
    size_t count;
} GROUP_;

/* One wait. The caller's until the wait has ended; then `published` is its result. */
typedef struct WAITER_ {
    bide_frame frame;
    const GROUP_ *group;
    BIDE_SEQUENCE target;
    BIDE_SEQUENCE published; /* what the slowest member had published */
    size_t index;            /* the member that is waited for */
    BIDE_CONCAT2(bide_sequence_waiter, BIDE_SEQUENCE_BITS) wait;
} WAITER_;

extern const bide_coroutine_code F_(_code_);

/* Makes a group of `count` barriers. With none, every sequence counts as published. */
BIDE_INLINE void F_(_init)(GROUP_ *group, BARRIER_ *const *members, size_t count)
{
    group->members = members;
    group->count = count;
}

/*
 * Has every member published `target`? If so, *published is the slowest member's last; what any of them
 * published is visible. Any thread; wait-free.
 */
BIDE_INLINE bool F_(_is_published)(const GROUP_ *group, BIDE_SEQUENCE target,
                                   BIDE_SEQUENCE *published)
{
    BIDE_SEQUENCE least = (BIDE_SEQUENCE)-1; /* how far past the target */
    for (size_t i = 0; i < group->count; i++) {
        BIDE_SEQUENCE last = BARRIER_F_(_last_published)(group->members[i]);
        if (BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, _precedes)(last, target))
            return false;
        BIDE_SEQUENCE past = (BIDE_SEQUENCE)(last - target);
        if (past < least)
            least = past;
    }
    *published = (BIDE_SEQUENCE)(target + (group->count != 0 ? least : 0));
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
 * Waits until every member has published `target`. `waiter` is the caller's until the wait has ended;
 * its member `published` is then the slowest member's last sequence, `target` or later. Ends with 0, or
 * -EPIPE if a member was closed before `target` (`published` is then that member's last). The
 * members are waited for in turn, so a closed one is noticed when those before it have published. Any
 * thread; suspends if some member has not published `target`; lock-free.
 */
BIDE_INLINE bide_awaiter *F_(_wait_until_published)(WAITER_ *waiter, const GROUP_ *group,
                                                    BIDE_SEQUENCE target)
{
    static const bide_point start = BIDE_POINT_START_READY(F_(_ready_), &F_(_code_));
    waiter->frame.awaiter.ops = &start.ops;
    waiter->group = group;
    waiter->target = target;
    return &waiter->frame.awaiter;
}

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef WAITER_
#undef F_
