/*
 * A barrier group: waits for the slowest of several sequence barriers. What a consumer that comes after several
 * others waits for, and what a producer must not overtake. Members come and go while others wait. Floor: sync.
 *
 *     fixed      an array of barriers, from the beginning to the end
 *     joined     a list, through memory of those who have joined (bide_sequence_group_member)
 *
 *     join       the joiner begins where `after`, say the cursor of a ring, is; from there on it gets everything
 *     look       has everybody published the target? (is_published)
 *     wait       looks, waits for the slowest, looks again, until there is nobody who has not
 *     leave      it is no member any more; whoever waits for it turns to the others; then its memory may go
 *
 * To leave is not to close: a member that closes its barrier has failed, and so do those who wait for it.
 *
 * A wait is a small coroutine inside the waiter, so the awaiting coroutine is resumed once. The slowest is waited for
 * first since, once it is there, the others probably are. There is a set of types and functions for each type of
 * sequence, as in sequence.h; their contracts stand once, in detail/sequence_group_template.h.
 *
 * ---- Nobody is overtaken who joins ----
 *
 * Fixed members are looked at without a lock, and while nobody has joined that is all: a look then costs one load
 * more. Those who have joined are looked at under the group's lock, under which others join and leave.
 *
 * 1. Whoever looks goes by it up to some number C, which all members that he saw had published: a producer writes
 *    what lies up to the ring's size past C; a later consumer reads up to C. A joiner whom he did not see begins
 *    after P, and for both P must not precede C. Now what the members publish was published by `after` before. If
 *    he looked under the lock, that was before the joiner had it, so the joiner's R is ordered after. If not:
 *
 *        publisher:  S  after.published.store(C or later, seq_cst)
 *        looker:     F  loads C of the fixed members             joiner:  W  first.store(member, seq_cst)
 *                    H  first.load(seq_cst)                               R  after.published.load(seq_cst)
 *
 *    S happens before F (by way of the member that published C, and acquired it from `after`; or of the looker, who
 *    is the publisher), and F is before H. If H does not see W, then S, H, W, R is their order in the single total
 *    order of seq_cst operations, and R sees S, or something later. If it does see W, or anything of W's member, he
 *    takes the lock, and so comes after the joining, and sees the joiner's P. F must come before H: in the other
 *    order everything could move on between the two. With no members at all everything counts as published, that is
 *    C is the target, and it is the producer's part that C does not lie ahead of the cursor: of what it has claimed
 *    and not published there is never more than the ring holds.
 * 2. What one who has left had done with is done with: whoever looks without meeting it has taken the lock after
 *    it, or read the NULL that it, or one who came later to the lock, stored in `first`: released there, acquired
 *    by H. (So that a slot that it was the last to read can be written.)
 * 3. No wait is forgotten: after waiting for one a wait looks at all again, so it does not matter who came and went
 *    meanwhile; it waits for none who has left, for to leave closes the barrier, which ends that wait.
 *
 * ---- Nothing of a member is touched after it has left ----
 *
 * 4. Outside the lock a member is used only by waits that wait for it: each has added itself to `users` under the
 *    lock, while it was a member, and takes itself off when its wait on the barrier is over. Who finds, under the
 *    lock, that it is no member any more and nobody uses it, sets the event `left`, once, as the last thing that is
 *    done to it (event.h); the leaver goes by nothing else.
 * 5. The lock is held for a few loads and stores a member; nobody is woken under it.
 *
 * Source: the disruptor's dependent consumers, and its gating sequences that are added and removed.
 */
#ifndef BIDE_SEQUENCE_GROUP_H
#define BIDE_SEQUENCE_GROUP_H

#include "bide/event.h"
#include "bide/sequence_barrier.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/sequence_group_template.h"
#include "bide/detail/each_sequence.h"

/*
 * Says, where BIDE_DEBUG is 1, that the group is misused if somebody who has joined has not left; otherwise does
 * nothing.
 */
#define BIDE_SEQUENCE_GROUP_MISUSE_(group) \
    BIDE_MISUSE_("a sequence group is destroyed that has members", #group)
#define bide_sequence_group8_destroy(group) \
    bide_sequence_group8_destroy_(group, BIDE_SEQUENCE_GROUP_MISUSE_(group))
#define bide_sequence_group16_destroy(group) \
    bide_sequence_group16_destroy_(group, BIDE_SEQUENCE_GROUP_MISUSE_(group))
#define bide_sequence_group32_destroy(group) \
    bide_sequence_group32_destroy_(group, BIDE_SEQUENCE_GROUP_MISUSE_(group))
#define bide_sequence_group64_destroy(group) \
    bide_sequence_group64_destroy_(group, BIDE_SEQUENCE_GROUP_MISUSE_(group))
#define bide_sequence_group_destroy(group) \
    bide_sequence_group_destroy_(group, BIDE_SEQUENCE_GROUP_MISUSE_(group))

BIDE_EXTERN_C_END

#endif
