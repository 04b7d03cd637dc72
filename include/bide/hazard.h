/*
 * Hazard pointers: an object that other threads may be about to read is freed only when no thread
 * declares that it reads it. For lock-free structures whose nodes are unlinked while others walk
 * over them. Floor: queue.
 *
 *     bide_hazard_seat *seat = bide_hazard_join(&domain);
 *     struct node *node = bide_hazard_protect(seat, 0, &list->first);
 *     ...                                                     // node may be read: it stays
 *     bide_hazard_clear(seat, 0);
 *
 *     ... unlink `old` ...
 *     bide_hazard_retire(&domain, seat, &old->retired, old, free_node);
 *
 *     join        take a free seat of the domain; a thread, or a coroutine, has one
 *     leave       give the seat back, with everything that it holds
 *     protect     declare that the seat's owner reads the object that a pointer points to,
 *                 and make sure that the pointer still points to it
 *     clear       the owner no longer reads it
 *     retire      the object is unlinked: no thread can newly reach it. It is reclaimed later
 *     scan        reclaim retired objects of any seat that are not protected. Retiring scans now and then
 *
 * Any thread may join. Functions that take a seat are for the seat's owner, one thread at a time.
 * join, clear and set are wait-free. protect, retire, scan and leave are lock-free, except for the
 * calls of `reclaim` and for the system call of the heavy fence (fence.h).
 *
 * At most 20 objects a seat are kept (5 * BIDE_HAZARDS), in the whole domain; a scan under way
 * holds as many again. Why it is correct, and the bound: docs/internals/hazard.md. The numbers
 * below refer to that.
 */
#ifndef BIDE_HAZARD_H
#define BIDE_HAZARD_H

#include "bide/detail/this_thread.h"
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
    uint16_t crowded; /* segment_queue.md, 9 */
} bide_hazard_seat;

typedef struct bide_hazard_domain {
    bide_hazard_seat *seats; /* constant while shared, as is `count` */
    size_t count;
    bide_atomic(bide_hazard_retired *) retired;
    bide_atomic(size_t) weight;
} bide_hazard_domain;

/*
 * Makes a domain of `count` seats, at least one, in an array of the caller's, which must outlive it
 * and is aligned to BIDE_CACHE_LINE. Another count is misuse, which is reported where BIDE_DEBUG is
 * 1.
 * Threads: before it is shared.
 */
void bide_hazard_init(bide_hazard_domain *domain, bide_hazard_seat *seats, size_t count);

#define bide_hazard_init(domain, seats, count)                                                  \
    bide_hazard_init(domain, seats,                                                             \
                     BIDE_COUNT_IN_(count, 1, BIDE_ROOM_AT_(seats),                             \
                                    "a hazard domain without seats, or of more than there are", \
                                    #domain))

/*
 * Reclaims everything that was retired. Nobody has a seat any more, nor uses the domain, so nothing
 * is protected. Then the memory may go. A seat that was not left is misuse, which is detected if BIDE_DEBUG
 * is 1: its hazards may still protect something.
 * Threads: one at a time.
 */
void bide_hazard_destroy(bide_hazard_domain *domain);

BIDE_INLINE bide_hazard_domain *bide_hazard_unused_(bide_hazard_domain *domain, const char *what,
                                                    const char *function, const char *file,
                                                    unsigned line)
{
    for (size_t i = 0; i < domain->count; i++)
        if (BIDE_UNLIKELY(bide_atomic_load(&domain->seats[i].taken, relaxed) != 0))
            bide_misuse_(what, function, file, line);
    return domain;
}

#if BIDE_DEBUG && !BIDE_CHECK
#define bide_hazard_destroy(domain)          \
    bide_hazard_destroy(bide_hazard_unused_( \
        (domain), BIDE_MISUSE_("a hazard domain is destroyed while a seat is taken", #domain)))
#endif

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

BIDE_INLINE void bide_hazard_retire_checked_(bide_hazard_domain *domain, bide_hazard_seat *seat,
                                             bide_hazard_retired *retired, void *object,
                                             void (*reclaim)(bide_hazard_retired *retired),
                                             size_t weight, const char *what, const char *function,
                                             const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(reclaim == NULL))
        bide_misuse_(what, function, file, line);
    bide_hazard_retire_weighing(domain, seat, retired, object, reclaim, weight);
}

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

#if BIDE_DEBUG && !BIDE_CHECK
#define bide_hazard_retire_weighing(domain, seat, retired, object, reclaim, weight)         \
    bide_hazard_retire_checked_((domain), (seat), (retired), (object), (reclaim), (weight), \
                                BIDE_NULL_FUNCTION_("bide_hazard_retire_weighing"))
#define bide_hazard_retire(domain, seat, retired, object, reclaim)                   \
    bide_hazard_retire_checked_((domain), (seat), (retired), (object), (reclaim), 1, \
                                BIDE_NULL_FUNCTION_("bide_hazard_retire"))
#endif

/*
 * Reclaims what was retired to the domain, or to this seat, and nobody protects. Returns how many
 * of them are left. For having memory back early. Objects that other seats have not given to the
 * domain yet, a weight of less than 2 * BIDE_HAZARDS each, are not looked at.
 * Threads: the seat's owner's. Progress: lock-free, except for `reclaim` and the heavy fence;
 * linear in the hazards and in what is retired.
 */
size_t bide_hazard_scan(bide_hazard_domain *domain, bide_hazard_seat *seat);

/* ---- Seats for the time of one operation: unbounded_channel.h ---- */

/* The same as bide_hazard_borrow_, from the seat behind `index` on. */
bide_hazard_seat *bide_hazard_borrow_another_(bide_hazard_domain *domain, size_t index);

/* Gives what the seat has retired to the domain. */
void bide_hazard_give_(bide_hazard_domain *domain, bide_hazard_seat *seat);

/*
 * Takes a seat; if all are taken, waits for one. A thread usually gets the same one. Its hazards may
 * be set. The caller neither calls foreign code nor suspends before bide_hazard_release_.
 * Threads: any. Progress: lock-free while there are as many seats as threads that are in between.
 */
BIDE_INLINE bide_hazard_seat *bide_hazard_borrow_(bide_hazard_domain *domain)
{
    uint32_t thread = (uint32_t)(bide_this_thread_() >> 2) * UINT32_C(0x9e3779b1);
    size_t index = (size_t)((uint64_t)thread * (uint32_t)domain->count >> 32);
    bide_hazard_seat *seat = &domain->seats[index];
    uint32_t taken = bide_atomic_load(&seat->taken, relaxed);
    /* acquire: 4, partners are bide_hazard_release_ and bide_hazard_leave. */
    if (BIDE_LIKELY(taken == 0 &&
                    bide_atomic_compare_exchange(&seat->taken, &taken, 1, acquire, relaxed)))
        return seat;
    return bide_hazard_borrow_another_(domain, index);
}

/* The seat is free again. Its hazards stay set: what they protect may be what the next needs. */
BIDE_INLINE void bide_hazard_release_(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    if (BIDE_UNLIKELY(seat->retired != NULL))
        bide_hazard_give_(domain, seat);
    bide_atomic_store(&seat->taken, 0, release); /* 4, partners as in bide_hazard_join */
}

BIDE_EXTERN_C_END

#endif
