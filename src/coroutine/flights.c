/* The tables of operations in flight, for debug builds. Any thread; each table has a lock. flights.h has the
 * argument. */
#include "flights.h"

#include "internal.h"
#include "short_lock.h"

#if !BIDE_CHECK

enum {
    TABLES = __STDC_HOSTED__ ? 16 : 1, /* one if there is one thread */
    TABLE_BITS = 4,
    FIRST_SLOTS = __STDC_HOSTED__ ? 16 : 32,
    MAPPED_SLOTS = 128,
    KEY_BITS = sizeof(uintptr_t) * CHAR_BIT
};

typedef struct flight_table {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_short_lock_ lock;
    bide_atomic(uint32_t) count;
    unsigned bits;       /* the slots are 2 to this number; 0: the first ones */
    bide_flight_ *slots; /* mapped; NULL: the first ones */
    bide_flight_ first[FIRST_SLOTS];
} flight_table;

static flight_table tables[TABLES];
static bide_atomic(uint32_t) was_used; /* any table, ever */

/* The topmost bits are the best mixed: they choose the table, and those behind them the slot. */
static uintptr_t flight_key(const void *address)
{
    /* 2 to the number of bits over the golden ratio */
    return (uintptr_t)address * (uintptr_t)UINT64_C(0x9e3779b97f4a7c15);
}

static flight_table *flight_table_of(const void *address)
{
    return &tables[(flight_key(address) >> (KEY_BITS - TABLE_BITS)) % TABLES];
}

static bide_flight_ *slots_of(flight_table *t)
{
    return t->slots != NULL ? t->slots : t->first;
}

static size_t slot_count(const flight_table *t)
{
    return t->slots != NULL ? (size_t)1 << t->bits : FIRST_SLOTS;
}

/* The slot at which the search for an address begins. */
static size_t home_of(const void *address, size_t slots)
{
    return (size_t)(flight_key(address) << TABLE_BITS >> (KEY_BITS / 2)) & (slots - 1);
}

/* The slot of an address, or the free one where it would be. There is always a free one. */
static bide_flight_ *flight_find(flight_table *t, const void *address)
{
    bide_flight_ *slots = slots_of(t);
    size_t mask = slot_count(t) - 1;
    size_t at = home_of(address, mask + 1);
    while (slots[at].address != NULL && slots[at].address != address)
        at = (at + 1) & mask;
    return &slots[at];
}

/* Doubles a table. Returns false if there is no memory. */
static bool flight_table_grow(flight_table *t)
{
    bide_flight_ *old = t->slots;
    const bide_flight_ *from = slots_of(t);
    size_t count = slot_count(t);
    size_t slots = count * 2 < MAPPED_SLOTS ? (size_t)MAPPED_SLOTS : count * 2;
    bide_flight_ *memory =
        bide_flights_map_ != NULL ? bide_flights_map_(slots * sizeof *memory) : NULL;
    if (memory == NULL)
        return false;
    t->slots = memory;
    for (t->bits = 0; (size_t)1 << t->bits < slots; t->bits++) {
    }
    for (size_t i = 0; i < count; i++) {
        if (from[i].address != NULL)
            *flight_find(t, from[i].address) = from[i];
    }
    if (old != NULL)
        bide_flights_unmap_(old, count * sizeof *memory);
    return true;
}

/* Whether an entry is of a coroutine that still waits: flights.h, 4. */
static bool still_waits(const bide_flight_ *slot, const bide_frame *resumed)
{
    /* (a frame that has yielded is marked: its address, plus 1) */
    return slot->line != 0 || (resumed != NULL && resumed == slot->gate) ||
           ((uintptr_t)resumed & ~(uintptr_t)1) == (uintptr_t)slot->owner;
}

bool bide_flights_add_(const bide_flight_ *flight, const bide_frame *resumed, bide_flight_ *other)
{
    flight_table *t = flight_table_of(flight->address);
    bool is_other = false;
    bide_short_lock_take_(&t->lock);
    bide_flight_ *slot = flight_find(t, flight->address);
    if (slot->address == NULL) {
        uint32_t count = bide_atomic_load(&t->count, relaxed) + 1; /* relaxed: under the lock */
        if (count > slot_count(t) / 2 && flight_table_grow(t))
            slot = flight_find(t, flight->address);
        if (count < slot_count(t)) {
            *slot = *flight;
            bide_atomic_store(&t->count, count, relaxed); /* relaxed: flights.h, 3 */
            if (bide_atomic_load(&was_used, relaxed) == 0)
                bide_atomic_store(&was_used, 1, relaxed); /* relaxed: as `count` */
        }
    } else if (slot->owner == flight->owner && flight->place == NULL) {
        slot->gate = flight->gate;
    } else if (slot->owner == flight->owner || !still_waits(slot, resumed)) {
        *slot = *flight;
    } else {
        is_other = true;
        *other = *slot;
    }
    bide_short_lock_free_(&t->lock);
    return !is_other;
}

bool bide_flights_have_(const bide_frame *frame)
{
    flight_table *t = flight_table_of(frame);
    bide_short_lock_take_(&t->lock);
    const bide_flight_ *slot = flight_find(t, frame);
    bool have = slot->address != NULL && slot->owner == frame;
    bide_short_lock_free_(&t->lock);
    return have;
}

/* Frees a slot: entries behind it that would not be found any more move up. */
static void flight_free(flight_table *t, bide_flight_ *slot)
{
    bide_flight_ *slots = slots_of(t);
    size_t mask = slot_count(t) - 1;
    size_t hole = (size_t)(slot - slots);
    for (size_t at = (hole + 1) & mask; slots[at].address != NULL; at = (at + 1) & mask) {
        size_t home = home_of(slots[at].address, mask + 1);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole].address = NULL;
}

void bide_flights_remove_(const void *address)
{
    flight_table *t = flight_table_of(address);
    /* relaxed: flights.h, 3 */
    if (bide_atomic_load(&t->count, relaxed) == 0)
        return;
    bide_short_lock_take_(&t->lock);
    bide_flight_ *slot = flight_find(t, address);
    if (slot->address != NULL) {
        flight_free(t, slot);
        bide_atomic_store(&t->count, bide_atomic_load(&t->count, relaxed) - 1, relaxed);
    }
    bide_short_lock_free_(&t->lock);
}

void bide_flights_destroyed_(const bide_frame *frame)
{
    const bide_wrapper_ops *wrapper;
    bide_awaiter *awaiter = frame->awaiter.link;
    /* relaxed: flights.h, 3 */
    if (bide_atomic_load(&was_used, relaxed) == 0)
        return;
    bide_flights_remove_(awaiter);
    while ((wrapper = bide_wrapper_of(awaiter)) != NULL && wrapper->coroutine == NULL) {
        awaiter = wrapper->inner(awaiter, 0);
        bide_flights_remove_(awaiter);
    }
}

/* ---- Forks ---- */

void bide_flights_before_fork_(void)
{
    for (unsigned i = 0; i < TABLES; i++)
        bide_short_lock_take_(&tables[i].lock);
}

void bide_flights_after_fork_(void)
{
    for (unsigned i = 0; i < TABLES; i++)
        bide_short_lock_free_(&tables[i].lock);
}

void bide_flights_in_child_(bool was_alone)
{
    for (unsigned i = 0; i < TABLES; i++) {
        flight_table *t = &tables[i];
        if (!was_alone) {
            bide_flight_ *slots = slots_of(t);
            for (size_t at = 0; at < slot_count(t); at++)
                slots[at].address = NULL;
            bide_atomic_store(&t->count, 0, relaxed);
        }
        bide_short_lock_init_(&t->lock);
    }
}

#endif
