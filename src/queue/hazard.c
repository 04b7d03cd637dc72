/* Hazard pointers; the model, the argument and the letters are in hazard.h. */
#include "bide/hazard.h"

/* A set of pointers that may say "perhaps": the hazards, so that what nobody protects, nearly all, is not looked for
 * among them one by one. */
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
    bide_atomic_init(&domain->left, NULL);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < BIDE_HAZARDS; j++)
            bide_atomic_init(&seats[i].hazards[j], NULL);
        bide_atomic_init(&seats[i].taken, 0);
        seats[i].retired = NULL;
        seats[i].count = 0;
        seats[i].scanning = false;
        seats[i].crowded = 0;
    }
}

/* Puts it on the seat's list. */
static void keep(bide_hazard_seat *seat, bide_hazard_retired *retired)
{
    retired->next = seat->retired;
    seat->retired = retired;
    seat->count++;
}

/* Puts a list whose last is `last` in front of what is left. */
static void leave_list(bide_hazard_domain *domain, bide_hazard_retired *first,
                       bide_hazard_retired *last)
{
    bide_hazard_retired *left = bide_atomic_load(&domain->left, relaxed);
    do
        last->next = left;
    /* release: 3, partner is take_left. */
    while (!bide_atomic_compare_exchange_weak(&domain->left, &left, first, release, relaxed));
}

/* Makes what is left the seat's. */
static void take_left(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    /* relaxed: who sees nothing takes nothing. */
    if (bide_atomic_load(&domain->left, relaxed) == NULL)
        return;
    /* acquire: 3, partner is leave_list. */
    bide_hazard_retired *next, *left = bide_atomic_exchange(&domain->left, NULL, acquire);
    for (; left != NULL; left = next) {
        next = left->next;
        keep(seat, left);
    }
}

void bide_hazard_destroy(bide_hazard_domain *domain)
{
    /* relaxed: nobody uses the domain any more, so all of it was before. */
    bide_hazard_retired *next, *left = bide_atomic_exchange(&domain->left, NULL, relaxed);
    for (; left != NULL; left = next) {
        next = left->next;
        left->reclaim(left);
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
    if (bide_hazard_scan(domain, seat) != 0) {
        bide_hazard_retired *first = seat->retired, *last = first;
        while (last->next != NULL)
            last = last->next;
        seat->retired = NULL;
        seat->count = 0;
        leave_list(domain, first, last);
    }
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

size_t bide_hazard_scan(bide_hazard_domain *domain, bide_hazard_seat *seat)
{
    filter filter = {{0}};
    take_left(domain, seat);
    if (seat->retired == NULL)
        return 0;
    bide_atomic_fence_heavy(); /* X; partner: L */
    for (size_t i = 0; i < domain->count; i++)
        for (size_t j = 0; j < BIDE_HAZARDS; j++) {
            void *object = bide_atomic_load(&domain->seats[i].hazards[j], acquire); /* H, 2 */
            if (object != NULL)
                filter_add(&filter, object);
        }
    /* What `reclaim` retires comes to a list of its own, which is not looked at now. */
    bide_hazard_retired *next, *retired = seat->retired;
    seat->retired = NULL;
    seat->count = 0;
    seat->scanning = true;
    for (; retired != NULL; retired = next) {
        next = retired->next;
        if (filter_may_have(&filter, retired->object) && is_protected(domain, retired->object)) {
            keep(seat, retired);
        } else {
            retired->reclaim(retired);
        }
    }
    seat->scanning = false;
    return seat->count;
}

void bide_hazard_retire(bide_hazard_domain *domain, bide_hazard_seat *seat,
                        bide_hazard_retired *retired, void *object,
                        void (*reclaim)(bide_hazard_retired *retired))
{
    retired->object = object;
    retired->reclaim = reclaim;
    keep(seat, retired);
    /* (not from a `reclaim`: a long chain of them would take a stack as long) */
    if (seat->count >= 2 * (size_t)BIDE_HAZARDS * domain->count && !seat->scanning)
        bide_hazard_scan(domain, seat);
}
