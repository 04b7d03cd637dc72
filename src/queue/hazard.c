/*
 * Hazard pointers: joining, retiring and scanning. A seat belongs to one thread at a time; the domain's
 * list of retired objects is pushed onto by any thread, and taken whole. The model, the argument, and
 * the numbers and letters of the comments: docs/internals/hazard.md.
 */
#include "bide/hazard.h"

#undef bide_hazard_destroy
#undef bide_hazard_retire_weighing

/*
 * A set of pointers, the hazards, that may answer "perhaps". So unprotected objects, which nearly all
 * are, are not compared with each hazard.
 */
enum { FILTER_WORDS = 16, WORD_BITS = 32 };

typedef struct filter {
    uint32_t words[FILTER_WORDS];
} filter;

static size_t bit_of(const void *object)
{
    /* The low bits are zeros; the high bits of the product depend on all. */
    uint64_t product = (uint64_t)((uintptr_t)object >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(product >> 32) % (FILTER_WORDS * (size_t)WORD_BITS);
}

static void filter_add(filter *filter, const void *object)
{
    size_t bit = bit_of(object);
    filter->words[bit / WORD_BITS] |= UINT32_C(1) << bit % WORD_BITS;
}

static bool filter_may_have(const filter *filter, const void *object)
{
    size_t bit = bit_of(object);
    return (filter->words[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
}

/* ---- The domain ---- */

void(bide_hazard_init)(bide_hazard_domain *domain, bide_hazard_seat *seats, size_t count)
{
    domain->seats = seats;
    domain->count = count;
    bide_atomic_init(&domain->retired, NULL);
    bide_atomic_init(&domain->weight, (size_t)0);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < BIDE_HAZARDS; j++)
            bide_atomic_init(&seats[i].hazards[j], NULL);
        bide_atomic_init(&seats[i].taken, 0);
        seats[i].retired = NULL;
        seats[i].last = NULL;
        seats[i].weight = 0;
        seats[i].scanning = false;
        seats[i].crowded = 0;
    }
}

/* Prepends a list to the domain's retired objects. */
static void push_list(bide_hazard_domain *domain, bide_hazard_retired *first,
                      bide_hazard_retired *last)
{
    bide_hazard_retired *retired = bide_atomic_load(&domain->retired, relaxed);
    do
        last->next = retired;
    /* release: 3, partner is take_all. */
    while (!bide_atomic_compare_exchange_weak(&domain->retired, &retired, first, release, relaxed));
}

/*
 * Gives the seat's retired objects to the domain. Returns the weight there that no scan has checked.
 */
static size_t seat_give(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    size_t weight = seat->weight;
    bide_assert(seat->retired != NULL);
    push_list(domain, seat->retired, seat->last);
    seat->retired = NULL;
    seat->weight = 0;
    /* relaxed: 5. */
    return bide_atomic_fetch_add(&domain->weight, weight, relaxed) + weight;
}

void bide_hazard_destroy(bide_hazard_domain *domain)
{
    /* relaxed: no thread uses the domain any more, so all uses happened before. */
    bide_hazard_retired *next, *retired = bide_atomic_exchange(&domain->retired, NULL, relaxed);
    for (; retired != NULL; retired = next) {
        next = retired->next;
        retired->reclaim(retired);
    }
}

/* ---- Seats ---- */

bide_hazard_seat *bide_hazard_join(bide_hazard_domain *domain)
{
    for (size_t i = 0; i < domain->count; i++) {
        bide_hazard_seat *seat = &domain->seats[i];
        uint32_t taken = bide_atomic_load(&seat->taken, relaxed);
        /* acquire: 4, partner is bide_hazard_leave. */
        if (taken == 0 && bide_atomic_compare_exchange(&seat->taken, &taken, 1, acquire, relaxed))
            return seat;
    }
    return NULL;
}

void bide_hazard_leave(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    for (size_t i = 0; i < BIDE_HAZARDS; i++)
        bide_hazard_clear(seat, i);
    bide_hazard_scan(domain, seat);
    if (seat->retired != NULL) /* by a `reclaim` */
        seat_give(domain, seat);
    bide_assert(seat->retired == NULL && seat->weight == 0); /* 4 */
    bide_atomic_store(&seat->taken, 0, release);             /* 4, partner is bide_hazard_join */
}

/* ---- Retiring ---- */

static bool is_protected(bide_hazard_domain *domain, const void *object)
{
    for (size_t i = 0; i < domain->count; i++)
        for (size_t j = 0; j < BIDE_HAZARDS; j++)
            /* acquire: H, 2. */
            if (bide_atomic_load(&domain->seats[i].hazards[j], acquire) == object)
                return true;
    return false;
}

/* Takes all retired objects: the seat's, and behind them the domain's. */
static bide_hazard_retired *take_all(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    bide_hazard_retired *own = seat->retired;
    seat->retired = NULL;
    seat->weight = 0;
    /* relaxed: a thread that sees no object takes none. */
    if (bide_atomic_load(&domain->retired, relaxed) == NULL)
        return own;
    /* relaxed: 5. */
    (void)bide_atomic_exchange(&domain->weight, (size_t)0, relaxed);
    /* acquire: 3, partner is push_list. */
    bide_hazard_retired *found = bide_atomic_exchange(&domain->retired, NULL, acquire);
    if (own == NULL)
        return found;
    seat->last->next = found;
    return own;
}

size_t bide_hazard_scan(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    filter filter = {{0}};
    size_t kept = 0;
    bide_hazard_retired *first = NULL, *last = NULL;
    bide_hazard_retired *next, *retired = take_all(domain, seat);
    if (retired == NULL)
        return 0;
    bide_atomic_fence_heavy(); /* X; partner: L */
    for (size_t i = 0; i < domain->count; i++)
        for (size_t j = 0; j < BIDE_HAZARDS; j++) {
            void *object = bide_atomic_load(&domain->seats[i].hazards[j], acquire); /* H, 2 */
            if (object != NULL)
                filter_add(&filter, object);
        }
    /* Objects that `reclaim` retires are added to the seat's list, which this scan does not visit. */
    seat->scanning = true;
    for (; retired != NULL; retired = next) {
        next = retired->next;
        if (filter_may_have(&filter, retired->object) && is_protected(domain, retired->object)) {
            last = first == NULL ? retired : last;
            retired->next = first;
            first = retired;
            kept++;
        } else {
            retired->reclaim(retired);
        }
    }
    seat->scanning = false;
    if (first != NULL)
        push_list(domain, first, last);
    for (retired = seat->retired; retired != NULL; retired = retired->next)
        kept++;
    return kept;
}

/*
 * The weight of unscanned objects at which a seat's owner scans; and a seat's part of it.
 */
static size_t max_unscanned_weight(const bide_hazard_domain *domain)
{
    return 2 * (size_t)BIDE_HAZARDS * domain->count;
}

enum { MAX_WEIGHT_OF_SEAT = 2 * BIDE_HAZARDS };

void bide_hazard_retire_weighing(bide_hazard_domain *domain, bide_hazard_seat *seat,
                                 bide_hazard_retired *retired, void *object,
                                 void (*reclaim)(bide_hazard_retired *retired), size_t weight)
{
    retired->object = object;
    retired->reclaim = reclaim;
    retired->next = seat->retired;
    if (seat->retired == NULL)
        seat->last = retired;
    seat->retired = retired;
    seat->weight += weight;
    /* Not from a `reclaim`: a long chain of them would need a deep stack. */
    if (seat->weight >= MAX_WEIGHT_OF_SEAT && !seat->scanning &&
        seat_give(domain, seat) >= max_unscanned_weight(domain))
        bide_hazard_scan(domain, seat);
}

/* ---- Seats for the time of one operation ---- */

bide_hazard_seat *bide_hazard_borrow_another_(bide_hazard_domain *domain, size_t index)
{
    for (;;) {
        for (size_t i = 0; i < domain->count; i++) {
            index = index + 1 < domain->count ? index + 1 : 0;
            bide_hazard_seat *seat = &domain->seats[index];
            uint32_t taken = bide_atomic_load(&seat->taken, relaxed);
            /* acquire: 4, partners as in bide_hazard_borrow_. */
            if (taken == 0 &&
                bide_atomic_compare_exchange(&seat->taken, &taken, 1, acquire, relaxed))
                return seat;
        }
        bide_platform.yield();
    }
}

void bide_hazard_give_(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    if (seat_give(domain, seat) >= max_unscanned_weight(domain))
        bide_hazard_scan(domain, seat);
}
