/* Hazard pointers; the model, the argument and the letters are in hazard.h. */
#include "bide/hazard.h"

/*
 * A set of pointers that may say "perhaps": the hazards. What nobody protects, nearly all, is not
 * looked for among them one by one.
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

void bide_hazard_init(bide_hazard_domain *domain, bide_hazard_seat *seats, size_t count)
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

/* Puts a list whose last is `last` in front of what was retired. */
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
 * Gives what the seat has retired to the domain. Returns how much of what is there nobody has
 * looked at.
 */
static size_t give(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    size_t weight = seat->weight;
    push_list(domain, seat->retired, seat->last);
    seat->retired = NULL;
    seat->weight = 0;
    /* relaxed: 5. */
    return bide_atomic_fetch_add(&domain->weight, weight, relaxed) + weight;
}

void bide_hazard_destroy(bide_hazard_domain *domain)
{
    /* relaxed: nobody uses the domain any more, so all of it was before. */
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
        give(domain, seat);
    bide_atomic_store(&seat->taken, 0, release); /* 4, partner is bide_hazard_join */
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

/* All that is to be looked at: what the domain has, and behind that what the seat has. */
static bide_hazard_retired *take_all(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    bide_hazard_retired *own = seat->retired;
    seat->retired = NULL;
    seat->weight = 0;
    /* relaxed: a thread that sees nothing takes nothing. */
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
    /* What `reclaim` retires comes to the seat's list, which is not looked at now. */
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
 * How much may not have been looked at before a seat's owner scans; and how much of that a seat may
 * have.
 */
static size_t max_of(const bide_hazard_domain *domain)
{
    return 2 * (size_t)BIDE_HAZARDS * domain->count;
}

enum { MAX_OF_SEAT = 2 * BIDE_HAZARDS };

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
    /* Not from a `reclaim`: a long chain of them would take a stack as long. */
    if (seat->weight >= MAX_OF_SEAT && !seat->scanning && give(domain, seat) >= max_of(domain))
        bide_hazard_scan(domain, seat);
}
