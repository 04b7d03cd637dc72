/*
 * A barrier group: several sequence barriers; a wait on the group waits for the slowest. A consumer
 * that follows several others waits for their group. A producer does not overtake its own group,
 * the gate. Members may join and leave while others wait. Floor: sync.
 *
 *     bide_sequence_barrier *consumers[] = {&first, &second};
 *     bide_sequence_group_init(&gate, consumers, 2);
 *
 *     bide_try(bide_sequence_group_wait_until_published(&self->wait, &gate, target));
 *
 *     start = bide_sequence_group_join(&gate, &self->member, &self->barrier, &cursor);
 *     ...                               a visitor: it reads everything after start
 *     bide_await(bide_sequence_group_leave(&self->leaver, &gate, &self->member));
 *
 *     join       the joiner begins where `after`, for example the cursor of a ring, is
 *     look       has every member published the target? (is_published)
 *     wait       looks, waits for the slowest, looks again, until every member has published it
 *     leave      the member is removed; waits for it turn to the others; then its memory may be freed
 *
 * Leaving is not closing. If a member closes its barrier, it has failed, and so do the waits for
 * it.
 *
 * Any thread may look, wait, and join; the joiner leaves. Without joined members a look costs one
 * load per fixed member and one more. With joined members it takes the group's lock for a few loads
 * each. A wait is a small coroutine inside the waiter, so the awaiting coroutine resumes once.
 *
 * Sequences are size_t here; sequence8.h has other widths. Why it is correct:
 * docs/internals/sequence_group.md. The numbers below refer to that.
 */
#ifndef BIDE_SEQUENCE_GROUP_H
#define BIDE_SEQUENCE_GROUP_H

#include "bide/event.h"
#include "bide/sequence_barrier.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* One that has joined. The joiner's memory, in use until it has left; all but `left` is locked. */
typedef struct bide_sequence_group_member {
    struct bide_sequence_group_member *next;
    struct bide_sequence_group_member *before;
    bide_sequence_barrier *barrier;
    size_t users; /* the waits that wait for it */
    bool joined;
    bide_event left; /* it is no member, and nobody uses it any more */
} bide_sequence_group_member;

typedef struct bide_sequence_group {
    bide_sequence_barrier *const *fixed; /* the caller's array; constant while shared */
    size_t count;
    /* members that have joined; written under the lock */
    bide_atomic(bide_sequence_group_member *) first;
    bide_atomic(uint32_t) lock;
} bide_sequence_group;

/* One wait. The caller's memory, in use until the wait has ended; `published` is its result. */
typedef struct bide_sequence_group_waiter {
    bide_frame frame;
    bide_sequence_group *group;
    bide_sequence target;
    bide_sequence published;          /* what the slowest member had published */
    bide_sequence_barrier *slowest;   /* the barrier that is waited for */
    bide_sequence_group_member *held; /* the member whose it is; NULL: a fixed one's, or none */
    bide_sequence_follower wait;      /* its counter: NULL, or what the target follows */
} bide_sequence_group_waiter;

/* One leaving. The caller's memory, in use until it has ended. */
typedef struct bide_sequence_group_leaver {
    bide_event_waiter wait; /* the head */
    bide_sequence_group *group;
    bide_sequence_group_member *member;
} bide_sequence_group_leaver;

extern const bide_coroutine_code bide_sequence_group_code_;

/* Reports misuse if `member` is one of `group`, and returns it otherwise. */
bide_sequence_group_member *bide_sequence_group_joins_(bide_sequence_group *group,
                                                       bide_sequence_group_member *member,
                                                       const char *what, const char *function,
                                                       const char *file, unsigned line);

#define BIDE_JOINS_TWICE_(member) \
    BIDE_MISUSE_("a member joins a sequence group that it has joined already", #member)
#define BIDE_CONSUMER_AHEAD_ "a consumer of a ring is ahead of what was published"
#define BIDE_LEAVES_UNJOINED_(member) \
    BIDE_MISUSE_("a member leaves a sequence group that it has not joined", #member)

/* The slow halves, in src/sync/sequence_group.c. */
bool bide_sequence_group_joined_have_published_(bide_sequence_group *group, bide_sequence target,
                                                bide_sequence *min);

/*
 * Makes a group of `count` barriers, in an array of the caller's; both the array and they must
 * outlive it. NULL and 0 if there are none: others may join. With no member at all every sequence
 * counts as published. The memory may be freed when everybody that joined has left, no wait is under way,
 * and nobody calls any of these on it.
 * Threads: before it is shared. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE void bide_sequence_group_init(bide_sequence_group *group,
                                          bide_sequence_barrier *const *fixed, size_t count)
{
    group->fixed = fixed;
    group->count = count;
    bide_atomic_init(&group->first, NULL);
    bide_atomic_init(&group->lock, 0);
}

/* ---- Joining ---- */

/* Behind the macros of the same names. */
bide_sequence bide_sequence_group_join_(bide_sequence_group *group,
                                        bide_sequence_group_member *member,
                                        bide_sequence_barrier *barrier,
                                        bide_sequence_barrier *after);

BIDE_INLINE bide_sequence bide_sequence_group_join_checked_(bide_sequence_group *group,
                                                            bide_sequence_group_member *member,
                                                            bide_sequence_barrier *barrier,
                                                            bide_sequence_barrier *after,
                                                            const char *what, const char *function,
                                                            const char *file, unsigned line)
{
    member = bide_sequence_group_joins_(group, member, what, function, file, line);
    return bide_sequence_group_join_(group, member, barrier, after);
}

bide_sequence bide_sequence_group_join_from_(bide_sequence_group *group,
                                             bide_sequence_group_member *member,
                                             bide_sequence_barrier *barrier,
                                             bide_sequence (*start)(void *argument),
                                             void *argument);

BIDE_INLINE bide_sequence bide_sequence_group_join_from_checked_(
    bide_sequence_group *group, bide_sequence_group_member *member, bide_sequence_barrier *barrier,
    bide_sequence (*start)(void *argument), void *argument, const char *what, const char *function,
    const char *file, unsigned line)
{
    member = bide_sequence_group_joins_(group, member, what, function, file, line);
    return bide_sequence_group_join_from_(group, member, barrier, start, argument);
}

void bide_sequence_group_add_(bide_sequence_group *group, bide_sequence_group_member *member,
                              bide_sequence_barrier *barrier);

BIDE_INLINE void bide_sequence_group_add_checked_(bide_sequence_group *group,
                                                  bide_sequence_group_member *member,
                                                  bide_sequence_barrier *barrier, const char *what,
                                                  const char *function, const char *file,
                                                  unsigned line)
{
    member = bide_sequence_group_joins_(group, member, what, function, file, line);
    bide_sequence_group_add_(group, member, barrier);
}

/*
 * bide_sequence_group_join(group, member, barrier, after): makes `barrier` a member, and returns what it
 * has published from the beginning: what `after` has.
 * From then on all that go by the group wait for the joiner at everything that comes later. Let
 * `after` be the cursor of a ring, and the group its gate, or one that leads to it. Then the joiner
 * can read every message after the returned one, and publishes on `barrier` what it has done with.
 *
 * `member` and `barrier` are the joiner's memory, not yet in use, and must stay until it has left;
 * `barrier` is initialised here. `after` is where what the members publish comes from: whatever
 * they have published, it has published before.
 * A member that joins a group again before it has left is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: any, at any time. Errors: none. Suspends: never. Progress: blocks while another looks at
 * the members that have joined, joins or leaves.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_group_join(group, member, barrier, after)              \
    bide_sequence_group_join_checked_((group), (member), (barrier), (after), \
                                      BIDE_JOINS_TWICE_(member))
#else
#define bide_sequence_group_join(group, member, barrier, after) \
    bide_sequence_group_join_((group), (member), (barrier), (after))
#endif

/*
 * bide_sequence_group_join_from(group, member, barrier, start, argument): the same where no barrier says what is published: the joiner begins at what start(argument)
 * returns. That is called under the group's lock, so it must neither block nor use the group. What
 * it returns must not lie before what any member has published already, nor before what a producer
 * may have overwritten already. The last sequence that was claimed is right, whatever the orders of
 * the claim and of that load (1). Otherwise as join.
 * Threads: as bide_sequence_group_join. Errors: none. Suspends: never. Progress: as
 * bide_sequence_group_join.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_group_join_from(group, member, barrier, start, argument)                \
    bide_sequence_group_join_from_checked_((group), (member), (barrier), (start), (argument), \
                                           BIDE_JOINS_TWICE_(member))
#else
#define bide_sequence_group_join_from(group, member, barrier, start, argument) \
    bide_sequence_group_join_from_((group), (member), (barrier), (start), (argument))
#endif

/*
 * bide_sequence_group_add(group, member, barrier): makes a barrier that is in use a member with its
 * present position: for groups that are built before anything runs; and for a barrier that is a
 * member of another group already, where it holds back the producers that would overwrite what it
 * is to read. Otherwise as join.
 * Threads: as bide_sequence_group_join. Errors: none. Suspends: never. Progress: as
 * bide_sequence_group_join.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_group_add(group, member, barrier) \
    bide_sequence_group_add_checked_((group), (member), (barrier), BIDE_JOINS_TWICE_(member))
#else
#define bide_sequence_group_add(group, member, barrier) \
    bide_sequence_group_add_((group), (member), (barrier))
#endif

/*
 * The first half of leaving: from now on it is no member. Does nothing if it is none already. The
 * barrier stays as it is, and waits that wait for it go on doing so until it is closed; so it is to
 * leave as well, by one of those below. For a barrier in several groups: it is removed from all,
 * and then leaves each.
 * Threads: the joiner's. Errors: none. Suspends: never. Progress: as bide_sequence_group_join.
 */
void bide_sequence_group_remove(bide_sequence_group *group, bide_sequence_group_member *member);

/* Behind the macro of the same name. */
bool bide_sequence_group_try_leave_(bide_sequence_group *group, bide_sequence_group_member *member);

BIDE_INLINE bide_sequence_group_member *
bide_sequence_group_has_joined_(bide_sequence_group_member *member, const char *what,
                                const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(member->barrier == NULL))
        bide_misuse_(what, function, file, line);
    return member;
}

BIDE_INLINE bool bide_sequence_group_try_leave_checked_(bide_sequence_group *group,
                                                        bide_sequence_group_member *member,
                                                        const char *what, const char *function,
                                                        const char *file, unsigned line)
{
    return bide_sequence_group_try_leave_(
        group, bide_sequence_group_has_joined_(member, what, function, file, line));
}

/*
 * bide_sequence_group_try_leave(group, member): leaves, if that needs no waiting: removes the
 * member and closes its barrier. Published sequences stay published, and sequences that the member
 * has not finished with are waited for no longer. True: nothing refers to the member any more, and
 * its memory may be freed. False: it is no member any more, but a wait that waited for it has yet
 * to turn to the others. Then this is to be called again, or leave is to be awaited.
 * To leave a group without having joined, with a member that is zero, is misuse, which is detected if
 * BIDE_DEBUG is 1.
 * Threads: the joiner's. Suspends: never. Progress: as bide_sequence_group_join.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_group_try_leave(group, member) \
    bide_sequence_group_try_leave_checked_((group), (member), BIDE_LEAVES_UNJOINED_(member))
#else
#define bide_sequence_group_try_leave(group, member) \
    bide_sequence_group_try_leave_((group), (member))
#endif

BIDE_INLINE bool bide_sequence_group_leave_ready_(bide_awaiter *awaiter)
{
    bide_sequence_group_leaver *leaver = (bide_sequence_group_leaver *)(void *)awaiter;
    return bide_sequence_group_try_leave_(leaver->group, leaver->member);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_sequence_group_leave_(bide_sequence_group_leaver *leaver,
                                                     bide_sequence_group *group,
                                                     bide_sequence_group_member *member)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_sequence_group_leave_ready_,
        .suspend = bide_event_suspend_,
        .resume = bide_event_resume_,
        .cancel = NULL,
        .withdraw = bide_event_withdraw_,
        .name = "bide_sequence_group_leave",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    leaver->wait.listed.awaiter.ops = &ops;
    leaver->wait.event = &member->left;
    leaver->group = group;
    leaver->member = member;
    return &leaver->wait.listed.awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_sequence_group_leave_checked_(bide_sequence_group_leaver *leaver,
                                                             bide_sequence_group *group,
                                                             bide_sequence_group_member *member,
                                                             const char *what, const char *function,
                                                             const char *file, unsigned line)
{
    return bide_sequence_group_leave_(
        leaver, group, bide_sequence_group_has_joined_(member, what, function, file, line));
}

/*
 * bide_sequence_group_leave(leaver, group, member): leaves, and waits until nothing refers to the member any more: then its memory, and the
 * barrier's, may go. `leaver` is the caller's memory, in use until then. Always ends with 0. It
 * cannot be cancelled, so that a coroutine that is asked to stop can still leave. It waits for no
 * more than that the waits which waited for this member are run by their schedulers. A coroutine
 * that is destroyed while it waits here is to leave again.
 * Threads: the joiner's. Errors: none. Suspends: if a wait refers to the member. Cancel-safe: yes,
 * it cannot be cancelled. Progress: as bide_sequence_group_join.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_group_leave(leaver, group, member) \
    BIDE_SEQUENCE_GROUP_LEAVE_(leaver, group, member)
#define BIDE_SEQUENCE_GROUP_LEAVE_(leaver, group, member) \
    bide_sequence_group_leave_checked_((leaver), (group), (member), BIDE_LEAVES_UNJOINED_(member))
#else
#define bide_sequence_group_leave(leaver, group, member) \
    BIDE_SEQUENCE_GROUP_LEAVE_(leaver, group, member)
#define BIDE_SEQUENCE_GROUP_LEAVE_(leaver, group, member) \
    bide_sequence_group_leave_((leaver), (group), (member))
#endif

/*
 * The same for a plain thread, which blocks until the member has left.
 * Threads: the joiner's, but not that of a loop (sync_wait.h). Progress: blocks.
 */
#if BIDE_DEBUG && !BIDE_CHECK
#define bide_sequence_group_leave_blocking(group, member)           \
    (bide_blocks_here_(__func__, __FILE__, __LINE__),               \
     bide_sequence_group_leave_blocking_checked_((group), (member), \
                                                 BIDE_LEAVES_UNJOINED_(member)))
#else
#define bide_sequence_group_leave_blocking(group, member) \
    bide_sequence_group_leave_blocking_((group), (member))
#endif

BIDE_INLINE void bide_sequence_group_leave_blocking_(bide_sequence_group *group,
                                                     bide_sequence_group_member *member)
{
    bide_sequence_group_leaver leaver;
    bide_sync_wait(bide_sequence_group_leave_(&leaver, group, member));
}

BIDE_INLINE void bide_sequence_group_leave_blocking_checked_(bide_sequence_group *group,
                                                             bide_sequence_group_member *member,
                                                             const char *what, const char *function,
                                                             const char *file, unsigned line)
{
    bide_sequence_group_leave_blocking_(
        group, bide_sequence_group_has_joined_(member, what, function, file, line));
}

/* `min`: how far past the target the slowest is; all ones, as no barrier is, if there is none. */
BIDE_INLINE bide_sequence bide_sequence_group_past_(bide_sequence target, bide_sequence min)
{
    return (bide_sequence)(target + (min != (bide_sequence)-1 ? min : 0));
}

/*
 * Whether every member has published `target`. Then *published is the slowest member's last; the
 * writes that any of them has published are visible, and so are those of members that have left.
 * Threads: any. Suspends: never. Progress: wait-free while nobody has joined; otherwise it blocks
 * while another looks, joins or leaves.
 */
BIDE_INLINE bool bide_sequence_group_is_published(bide_sequence_group *group, bide_sequence target,
                                                  bide_sequence *published)
{
    bide_sequence min = (bide_sequence)-1; /* how far past the target */
    for (size_t i = 0; i < group->count; i++) {
        bide_sequence last = bide_sequence_barrier_last_published(group->fixed[i]); /* F */
        if (bide_sequence_precedes(last, target))
            return false;
        bide_sequence past = (bide_sequence)(last - target);
        if (past < min)
            min = past;
    }
    bide_atomic_fence_light();                                             /* L; partner: X */
    if (BIDE_UNLIKELY(bide_atomic_load(&group->first, acquire) != NULL) && /* H; acquire: 2 */
        !bide_sequence_group_joined_have_published_(group, target, &min))
        return false;
    *published = bide_sequence_group_past_(target, min);
    return true;
}

BIDE_INLINE bool bide_sequence_group_ready_(bide_awaiter *awaiter)
{
    bide_sequence_group_waiter *waiter = (bide_sequence_group_waiter *)(void *)awaiter;
    bool ready =
        bide_sequence_group_is_published(waiter->group, waiter->target, &waiter->published);
    if (ready)
        waiter->frame.error = 0;
    return ready;
}

/*
 * Waits until each barrier that is a member when the wait ends has published `target`. `waiter` is
 * the caller's memory, in use until then; its member `published` is then the slowest member's last
 * sequence, `target` or later. After -EPIPE it is the last of the member that was closed; after a
 * wait that was cancelled, the last of the member that was waited for.
 *
 * All members are looked at when it begins, and again when the slowest gets there or is closed. It
 * waits for that one, so that another was closed meanwhile is noticed only then.
 * Threads: any. Errors: -EPIPE (a member's barrier was closed before `target`), -ECANCELED,
 * -ETIMEDOUT. Suspends: if some member has not published `target`. Cancel-safe: yes. Progress: as
 * bide_sequence_group_is_published.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_sequence_group_wait_until_published(bide_sequence_group_waiter *waiter,
                                         bide_sequence_group *group, bide_sequence target)
{
    static const bide_point start = BIDE_POINT_START_OF(
        bide_sequence_group_ready_, NULL, BIDE_UNDO_WITHDRAW, &bide_sequence_group_code_);
    waiter->frame.awaiter.ops = &start.ops;
    waiter->group = group;
    waiter->target = target;
    waiter->wait.counter = NULL;
    return &waiter->frame.awaiter;
}

/*
 * Waits until every member has published what lies `behind` the counter, perhaps for a moment only.
 * Ends with -EPIPE only if a member is closed that leaves no room; `published` says nothing.
 * Otherwise as above; see bide_sequence_barrier_follow_.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_sequence_group_follow_(bide_sequence_group_waiter *waiter,
                                          bide_sequence_group *group,
                                          bide_atomic(bide_sequence_counter_) * counter,
                                          bide_sequence behind);

BIDE_INLINE void bide_sequence_group_destroy_checked_(bide_sequence_group *group, const char *what,
                                                      const char *function, const char *file,
                                                      unsigned line)
{
    if (bide_atomic_load(&group->first, relaxed) != NULL)
        bide_misuse_(what, function, file, line);
}

#define BIDE_GROUP_DESTROYED_ "a sequence group is destroyed while it has members"

/*
 * bide_sequence_group_destroy(group): the end of its life. Does nothing; where BIDE_DEBUG is 1 it
 * reports misuse if a member that has joined has not left.
 * Threads: one at a time, the only one that still has it. Suspends: never. Progress: wait-free.
 */
#define bide_sequence_group_destroy(group) \
    BIDE_END_OF_LIFE_(bide_sequence_group_destroy_checked_, (group), BIDE_GROUP_DESTROYED_, #group)

BIDE_EXTERN_C_END

#endif
