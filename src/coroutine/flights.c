/* The tables of operations in flight, for debug builds. Any thread; each table has a lock. flights.h has the
 * argument. */
#include "flights.h"

#include "internal.h"
#include "short_lock.h"

#if BIDE_FLIGHTS_

/* For functions that read memory which may be uninitialised: MemorySanitizer takes what they return as known. */
#if defined __clang__
#define FLIGHT_UNCHECKED __attribute__((no_sanitize("memory")))
#else
#define FLIGHT_UNCHECKED
#endif

enum {
    FLIGHT_TABLES = __STDC_HOSTED__ ? 16 : 1, /* one if there is one thread */
    FLIGHT_TABLE_BITS = 4,
    FLIGHT_FIRST_SLOTS = __STDC_HOSTED__ ? 16 : 32,
    FLIGHT_MAPPED_SLOTS = 128,
    FLIGHT_KEY_BITS = sizeof(uintptr_t) * CHAR_BIT
};

typedef struct flight_table {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_short_lock_ lock;
    bide_atomic(uint32_t) count;
    unsigned bits;       /* the slots are 2 to this number; 0: the first ones */
    bide_flight_ *slots; /* mapped; NULL: the first ones */
    bide_flight_ first[FLIGHT_FIRST_SLOTS];
} flight_table;

static flight_table flight_tables[FLIGHT_TABLES];
static bide_atomic(uint32_t) flights_were_used; /* any table, ever */

/* Before there are threads. */
static bide_flights_map_ *flights_map;
static bide_flights_unmap_ *flights_unmap;

void bide_flights_use_(bide_flights_map_ *map, bide_flights_unmap_ *unmap)
{
    flights_map = map;
    flights_unmap = unmap;
}

/* The topmost bits are the best mixed: they choose the table, and those behind them the slot. */
static uintptr_t flight_key(const void *address)
{
    /* 2 to the number of bits over the golden ratio */
    return (uintptr_t)address * (uintptr_t)UINT64_C(0x9e3779b97f4a7c15);
}

static flight_table *flight_table_of(const void *address)
{
    return &flight_tables[(flight_key(address) >> (FLIGHT_KEY_BITS - FLIGHT_TABLE_BITS)) %
                          FLIGHT_TABLES];
}

static bide_flight_ *flight_slots_of(flight_table *t)
{
    return t->slots != NULL ? t->slots : t->first;
}

static size_t flight_slot_count(const flight_table *t)
{
    return t->slots != NULL ? (size_t)1 << t->bits : FLIGHT_FIRST_SLOTS;
}

/* The slot at which the search for an address begins. */
static size_t flight_home_of(const void *address, size_t slots)
{
    return (size_t)(flight_key(address) << FLIGHT_TABLE_BITS >> (FLIGHT_KEY_BITS / 2)) &
           (slots - 1);
}

/* The slot of an address, or the free one where it would be. There is always a free one. */
static bide_flight_ *flight_find(flight_table *t, const void *address)
{
    bide_flight_ *slots = flight_slots_of(t);
    size_t mask = flight_slot_count(t) - 1;
    size_t at = flight_home_of(address, mask + 1);
    while (slots[at].address != NULL && slots[at].address != address)
        at = (at + 1) & mask;
    return &slots[at];
}

/* Doubles a table. Returns false if there is no memory. */
static bool flight_table_grow(flight_table *t)
{
    bide_flight_ *old = t->slots;
    const bide_flight_ *from = flight_slots_of(t);
    size_t count = flight_slot_count(t);
    size_t slots = count * 2 < FLIGHT_MAPPED_SLOTS ? (size_t)FLIGHT_MAPPED_SLOTS : count * 2;
    bide_flight_ *memory = flights_map != NULL ? flights_map(slots * sizeof *memory) : NULL;
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
        flights_unmap(old, count * sizeof *memory);
    return true;
}

/* Of a stale entry this is memory that has another use by now, and may be uninitialised: flights.h, 4. */
FLIGHT_UNCHECKED static const bide_frame *flight_resumed(const bide_awaiter *operation)
{
    return operation->frame;
}

/* Whether an entry is of a coroutine that still waits: flights.h, 4. */
static bool flight_still_waits(const bide_flight_ *slot, const bide_awaiter *operation)
{
    const bide_frame *resumed = operation != NULL ? flight_resumed(operation) : NULL;
    /* (a frame that has yielded is marked: its address, plus 1) */
    return slot->line != 0 || (resumed != NULL && resumed == slot->gate) ||
           ((uintptr_t)resumed & ~(uintptr_t)1) == (uintptr_t)slot->owner;
}

bool bide_flights_add_(const bide_flight_ *flight, const bide_awaiter *operation,
                       bide_flight_ *other)
{
    flight_table *t = flight_table_of(flight->address);
    bool is_other = false;
    bide_short_lock_take_(&t->lock);
    bide_flight_ *slot = flight_find(t, flight->address);
    if (slot->address == NULL) {
        uint32_t count = bide_atomic_load(&t->count, relaxed) + 1; /* relaxed: under the lock */
        if (count > flight_slot_count(t) / 2 && flight_table_grow(t))
            slot = flight_find(t, flight->address);
        if (count < flight_slot_count(t)) {
            *slot = *flight;
            bide_atomic_store(&t->count, count, relaxed); /* relaxed: flights.h, 3 */
            if (bide_atomic_load(&flights_were_used, relaxed) == 0)
                bide_atomic_store(&flights_were_used, 1, relaxed); /* relaxed: as `count` */
        }
    } else if (slot->owner == flight->owner && flight->place == NULL) {
        slot->gate = flight->gate;
    } else if (slot->owner == flight->owner || !flight_still_waits(slot, operation)) {
        *slot = *flight;
    } else {
        is_other = true;
        *other = *slot;
    }
    bide_short_lock_free_(&t->lock);
    return !is_other;
}

bool bide_flights_find_(const void *address, const bide_frame *owner, bide_flight_ *found)
{
    flight_table *t = flight_table_of(address);
    bide_short_lock_take_(&t->lock);
    *found = *flight_find(t, address);
    bide_short_lock_free_(&t->lock);
    return found->address != NULL && found->owner == owner && found->line != 0;
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
    bide_flight_ *slots = flight_slots_of(t);
    size_t mask = flight_slot_count(t) - 1;
    size_t hole = (size_t)(slot - slots);
    for (size_t at = (hole + 1) & mask; slots[at].address != NULL; at = (at + 1) & mask) {
        size_t home = flight_home_of(slots[at].address, mask + 1);
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
    if (bide_atomic_load(&flights_were_used, relaxed) == 0)
        return;
    bide_flights_remove_(awaiter);
    while ((wrapper = bide_wrapper_of(awaiter)) != NULL && wrapper->coroutine == NULL) {
        awaiter = wrapper->inner(awaiter, 0);
        bide_flights_remove_(awaiter);
    }
}

unsigned bide_flights_steps_(const void *address)
{
    flight_table *t = flight_table_of(address);
    bide_short_lock_take_(&t->lock);
    size_t mask = flight_slot_count(t) - 1;
    size_t at = (size_t)(flight_find(t, address) - flight_slots_of(t));
    unsigned steps = (unsigned)((at - flight_home_of(address, mask + 1)) & mask) + 1;
    bide_short_lock_free_(&t->lock);
    return steps;
}

/* ---- Forks ---- */

void bide_flights_before_fork_(void)
{
    for (unsigned i = 0; i < FLIGHT_TABLES; i++)
        bide_short_lock_take_(&flight_tables[i].lock);
}

void bide_flights_after_fork_(void)
{
    for (unsigned i = 0; i < FLIGHT_TABLES; i++)
        bide_short_lock_free_(&flight_tables[i].lock);
}

void bide_flights_in_child_(bool was_alone)
{
    for (unsigned i = 0; i < FLIGHT_TABLES; i++) {
        flight_table *t = &flight_tables[i];
        if (!was_alone) {
            bide_flight_ *slots = flight_slots_of(t);
            for (size_t at = 0; at < flight_slot_count(t); at++)
                slots[at].address = NULL;
            bide_atomic_store(&t->count, 0, relaxed);
        }
        bide_short_lock_init_(&t->lock);
    }
}

#else

/* (called by other files, which may be debug builds) */
void bide_flights_remove_(const void *address)
{
    (void)address;
}

#endif
