/*
 * Hazard pointers: when may memory go that other threads may be about to read? When no thread says
 * that it reads it. For lock-free structures whose nodes are unlinked while others walk over them.
 * Floor: queue.
 *
 *     bide_hazard_seat *seat = bide_hazard_join(&domain);
 *     struct node *node = bide_hazard_protect(seat, 0, &list->first);
 *     ...                                                     // it may be read: it stays
 *     bide_hazard_clear(seat, 0);
 *
 *     ... unlink `old` ...
 *     bide_hazard_retire(&domain, seat, &old->retired, old, free_node);
 *
 *     domain    an array of seats, the caller's; a thread, or a coroutine, that takes part has one
 *     seat      BIDE_HAZARDS hazards: what its owner says that it reads;
 *               and the last few objects that it has retired
 *     retired   what all seats have retired but for those few, and nobody has reclaimed yet
 *     weight    how much of that nobody has looked at yet
 *
 *     join        take a free seat
 *     leave       give it back, with all that it holds
 *     protect     say that the seat's owner reads what a pointer points to,
 *                 and make sure that the pointer did so afterwards
 *     clear       the owner reads it no longer
 *     retire      it is unlinked: no thread gets there any more that is not there yet.
 *                 It is to be reclaimed later
 *     scan        reclaim what was retired, by any seat, and is not protected.
 *                 Retiring does it now and then
 *
 * Any thread may join; what takes a seat is for the seat's owner, one thread at a time. join, clear
 * and set are wait-free. protect, retire, scan and leave are lock-free, except for the calls of
 * `reclaim` and for the system call of the heavy fence (fence.h).
 *
 * How much is kept: let H be BIDE_HAZARDS * seats, all hazards of the domain. A seat keeps objects
 * of a weight of 2 * BIDE_HAZARDS before it gives them to the domain. The owner that gives there
 * when a weight of 2 * H has not been looked at scans all. What a scan leaves is protected. So, an
 * object having a weight of 1, there are no more than 4 * H objects that nobody protects, and no
 * more than H are protected: 5 * H * (size of an object) bytes at most, 20 objects a seat. All that
 * is in one place, so this is the domain's bound: no seat has a garbage of its own. While a thread
 * is scanning it has what it has taken besides, as much again. A thread that stops for ever in the
 * middle of a scan keeps that, and otherwise what it protects and the few of its seat.
 *
 * Why it is right: nothing is reclaimed that a thread reads.
 *
 *     reader:   S  hazard.store(p, release)     retirer:  U  unlinks p: source no longer holds it
 *               L  light fence                            X  heavy fence
 *               R  source.load() is p still               H  loads all hazards, acquire
 *
 * 1. If H does not see S, or anything later in that hazard, L comes before X (fence.h), so R sees U
 *    or what came later: not p, unless p was linked again. That is done only with an object that
 *    was reclaimed, so by a thread that finds the fence X of its reclaiming before. Then S is seen
 *    by the next that retires it, by the same argument.
 * 2. If H sees p, it stays. If it sees what came later in that hazard, NULL or another, the
 *    reader's accesses to p happened before that store, which releases, and H acquires: so before
 *    the reclaiming. So an object that is protected may be protected by another hazard too, without
 *    a look, before the first is cleared; by one with a higher index, since they are loaded in that
 *    order.
 * 3. `retired` is pushed onto or taken whole, so ABA does it no harm (waiter_list.h says why). A
 *    push releases, a taker acquires: the objects, and that they were unlinked before its X.
 * 4. A seat is taken by a compare-exchange that acquires what its last owner released on leaving:
 *    its list is empty then.
 * 5. `weight` is raised after a push, and set to 0 before the list is taken. So what is in the list
 *    and was not looked at is counted, or its seat is about to count it. What was taken before it
 *    was counted is counted though it is gone: then the next scan comes early. No order is needed:
 *    a taker that sets a push's weight to 0 and takes the list from before that push would have
 *    written what the push read. C11 allows that, and RC11 does not; the batch then waits for one
 *    scan more.
 *
 * Source: Michael, Hazard Pointers (2004); P2530; with the asymmetric fences of P1202.
 */
#ifndef BIDE_HAZARD_H
#define BIDE_HAZARD_H

#include "bide/extend/fence.h"

BIDE_EXTERN_C_BEGIN

/* Of each seat. */
enum { BIDE_HAZARDS = 4 };

/* In an object that is retired. The caller's until then; the domain's until `reclaim` is called. */
typedef struct bide_hazard_retired {
    struct bide_hazard_retired *next;
    void *object; /* what hazards point to */
    void (*reclaim)(struct bide_hazard_retired *retired);
} bide_hazard_retired;

typedef struct bide_hazard_seat {
    BIDE_ALIGNAS(BIDE_CACHE_LINE)
    bide_atomic(void *) hazards[BIDE_HAZARDS]; /* the owner writes, a scan reads */
    bide_atomic(uint32_t) taken;
    bide_hazard_retired *retired; /* the owner's, as is what follows */
    bide_hazard_retired *last;    /* of them, if there are any */
    size_t weight;
    bool scanning;
    uint16_t crowded; /* segment_queue.h, 9 */
} bide_hazard_seat;

typedef struct bide_hazard_domain {
    bide_hazard_seat *seats; /* constant while shared, as is `count` */
    size_t count;
    bide_atomic(bide_hazard_retired *) retired;
    bide_atomic(size_t) weight;
} bide_hazard_domain;

/*
 * Makes a domain of `count` seats, at least one, in an array of the caller's, which must outlive it
 * and is aligned to BIDE_CACHE_LINE.
 * Threads: before it is shared.
 */
void bide_hazard_init(bide_hazard_domain *domain, bide_hazard_seat *seats, size_t count);

/*
 * Reclaims everything that was retired. Nobody has a seat any more, nor uses the domain, so nothing
 * is protected. Then the memory may go.
 * Threads: one at a time.
 */
void bide_hazard_destroy(bide_hazard_domain *domain);

/*
 * Takes a seat; NULL if none is free. It is the caller's, one thread at a time, until it leaves.
 * Threads: any. Progress: wait-free, linear in the seats.
 */
bide_hazard_seat *bide_hazard_join(bide_hazard_domain *domain);

/*
 * Gives the seat back: clears its hazards, scans, and leaves what is protected still to the next
 * scan.
 * Threads: the seat's owner's. Progress: lock-free, except for `reclaim` and the heavy fence.
 */
void bide_hazard_leave(bide_hazard_domain *domain, bide_hazard_seat *seat);

/*
 * Says that `object` is read, in hazard `index` (below BIDE_HAZARDS) in place of what it was
 * before; NULL: nothing. It is protected if it is found, by a load after this, not to have been
 * unlinked yet. For structures that find that out in a way of their own: a pointer with a mark, a
 * link behind a link.
 * Threads: the seat's owner's. Progress: wait-free.
 */
BIDE_INLINE void bide_hazard_set(bide_hazard_seat *seat, size_t index, void *object)
{
    bide_atomic_store(&seat->hazards[index], object, release); /* S, 2 */
    bide_atomic_fence_light();                                 /* L; partner: X */
}

/*
 * Says that it is read no longer.
 * Threads: the seat's owner's. Progress: wait-free.
 */
BIDE_INLINE void bide_hazard_clear(bide_hazard_seat *seat, size_t index)
{
    bide_atomic_store(&seat->hazards[index], NULL, release); /* 2 */
}

/*
 * Loads what `source` points to, and protects it in hazard `index`: it can be read, what was
 * written before it was stored there (released) is visible, and it is not reclaimed until the
 * hazard is cleared or set to another. Unlinking it from `source` changes `source`, and comes
 * before retiring it. NULL if `source` holds that.
 * Threads: the seat's owner's. Progress: lock-free, again only if `source` has changed.
 */
BIDE_INLINE void *bide_hazard_protect(bide_hazard_seat *seat, size_t index,
                                      bide_atomic(void *) * source)
{
    /* relaxed: only what R sees counts. */
    void *object = bide_atomic_load(source, relaxed);
    for (;;) {
        bide_hazard_set(seat, index, object);
        /* acquire: R; and the contract, partner is the caller's release. */
        void *now = bide_atomic_load(source, acquire);
        if (now == object)
            return object;
        object = now;
    }
}

/*
 * Gives `object` away, which the caller has unlinked, and nobody else retires: reclaim(retired) is
 * called once nobody protects it, in this call or a later one, by the owner of any seat in the
 * domain. `retired` is in the object, or stays as long. `reclaim` may retire others to the seat
 * that it is called for, if it knows that, which a later scan looks at; it does not scan or leave.
 * `weight`, 1 or more, is how many objects it counts for: more than 1 for what is large and took
 * many operations to make, so that there is less of that.
 * Threads: the seat's owner's. Progress: lock-free, except for `reclaim` and the heavy fence;
 * constant time on the average.
 */
void bide_hazard_retire_weighing(bide_hazard_domain *domain, bide_hazard_seat *seat,
                                 bide_hazard_retired *retired, void *object,
                                 void (*reclaim)(bide_hazard_retired *retired), size_t weight);

/*
 * The same with a weight of 1.
 * Threads: the seat's owner's. Progress: as bide_hazard_retire_weighing.
 */
BIDE_INLINE void bide_hazard_retire(bide_hazard_domain *domain, bide_hazard_seat *seat,
                                    bide_hazard_retired *retired, void *object,
                                    void (*reclaim)(bide_hazard_retired *retired))
{
    bide_hazard_retire_weighing(domain, seat, retired, object, reclaim, 1);
}

/*
 * Reclaims what was retired to the domain, or to this seat, and nobody protects. Returns how many
 * of them are left. For having memory back early. What other seats have not given to the domain
 * yet, a weight of less than 2 * BIDE_HAZARDS each, is not looked at.
 * Threads: the seat's owner's. Progress: lock-free, except for `reclaim` and the heavy fence;
 * linear in the hazards and in what is retired.
 */
size_t bide_hazard_scan(bide_hazard_domain *domain, bide_hazard_seat *seat);

BIDE_EXTERN_C_END

#endif
