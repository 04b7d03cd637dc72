/*
 * For each grain of 8 watched bytes, records hold the last accesses: their threads, and which bytes.
 *
 * 1. An access races with a recorded access of another thread if they share a byte, one of them is a
 *    write, they are not both atomic, and the clock of the later one does not contain the earlier one.
 * 2. An access takes over the bytes of a record if it comes after the record, and if it races with
 *    every access that the record races with. A record without bytes is free.
 * 3. The number of records of a grain has no limit.
 *
 * The values of atomic objects are in the graph, not in memory. A value is written back to memory when
 * the object is read plainly, or written in part, by an access that comes after its stores: it is
 * then the newest of the stores that were run.
 */
#include "accesses.h"

#include "execution.h"
#include "locals.h"
#include "locations.h"
#include "machine.h"
#include "memory.h"
#include "rounds.h"
#include "source_location.h"

#include <string.h>

enum { GRAIN = 8 };

typedef struct record {
    uint16_t index;
    uint8_t thread;
    uint8_t bytes;   /* a bit for each of the grain */
    uintptr_t where; /* a bide_check_site_, or a code address with the lowest bit set */
    uint8_t kind;
} record;

typedef struct shadow {
    uint32_t atomic_run; /* the last run with an atomic object in these bytes */
    uint32_t run;        /* the run that the records belong to */
    uint32_t block_run;  /* the run in which a block was allocated here */
    uint8_t block_bytes; /* its bytes, a bit for each */
    uint8_t written;     /* of those, the bytes that a seen write has reached */
    record *records;
    unsigned count;
    unsigned capacity;
} shadow;

static uint32_t access_run;

void accesses_reset(void)
{
    access_run++;
}

/* For each kind of access, a bit for each kind that it conflicts with. */
enum { ENDS = 1 << ACCESS_FREE | 1 << ACCESS_RETURN };
static const uint8_t conflict_bits[] = {
    [ACCESS_READ] = 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_WRITE | ENDS,
    [ACCESS_WRITE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_READ |
                     1 << ACCESS_ATOMIC_WRITE | ENDS,
    [ACCESS_ATOMIC_READ] = 1 << ACCESS_WRITE | ENDS,
    [ACCESS_ATOMIC_WRITE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE | ENDS,
    [ACCESS_FREE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_READ |
                    1 << ACCESS_ATOMIC_WRITE | 1 << ACCESS_FREE,
    [ACCESS_RETURN] =
        1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_READ | 1 << ACCESS_ATOMIC_WRITE,
};

/* True for the end of the memory's life. */
static bool is_end(access_kind kind)
{
    return kind == ACCESS_FREE || kind == ACCESS_RETURN;
}

static bool accesses_conflict(access_kind a, access_kind b)
{
    return (conflict_bits[a] >> b & 1) != 0;
}

/* True if each kind that conflicts with b conflicts with a. */
static bool access_covers(access_kind a, access_kind b)
{
    return (conflict_bits[b] & ~conflict_bits[a]) == 0;
}

static bool comes_after(unsigned thread, const vector_clock *clock, const record *r)
{
    return r->thread == thread || r->thread == SETUP || thread == LAST ||
           clock->seen[r->thread] > r->index;
}

static const char *access_verb(access_kind kind)
{
    static const char *const names[] = {"reads",
                                        "writes",
                                        "atomically reads",
                                        "atomically writes",
                                        "frees",
                                        "returns from the function of"};
    return names[kind];
}

static void describe_where(uintptr_t where, char *text, size_t size)
{
    if (where & 1)
        source_location_describe_code((void *)(where & ~(uintptr_t)1), text, size);
    else
        source_location_describe((const bide_check_site_ *)where, text, size);
}

static void report_race(unsigned thread, uintptr_t address, access_kind kind, uintptr_t where,
                        const record *r, bool is_ordered)
{
    char here[512], there[512], what[64];
    describe_where(where, here, sizeof here);
    describe_where(r->where, there, sizeof there);
    memory_describe(address, what, sizeof what);
    if (r->kind == ACCESS_RETURN || kind == ACCESS_RETURN) {
        bool returns = kind == ACCESS_RETURN;
        execution_found(BIDE_CHECK_USE_AFTER_FREE,
                        "thread %u %s a local variable of thread %u, at %s, %s that thread has "
                        "returned from its function, at %s",
                        returns ? r->thread : thread,
                        access_verb(returns ? (access_kind)r->kind : kind),
                        returns ? thread : r->thread, returns ? there : here,
                        is_ordered ? "after" : "and may do so after", returns ? here : there);
    }
    if (r->kind == ACCESS_FREE && is_ordered)
        execution_found(kind == ACCESS_FREE ? BIDE_CHECK_DOUBLE_FREE : BIDE_CHECK_USE_AFTER_FREE,
                        "thread %u %s %s, at %s, after thread %u freed it, at %s", thread,
                        access_verb(kind), what, here, r->thread, there);
    if (r->kind == ACCESS_FREE || kind == ACCESS_FREE)
        execution_found(r->kind == kind ? BIDE_CHECK_DOUBLE_FREE : BIDE_CHECK_USE_AFTER_FREE,
                        "thread %u %s %s, at %s, while thread %u %s it, at %s", thread,
                        access_verb(kind), what, here, r->thread, access_verb(r->kind), there);
    execution_found(BIDE_CHECK_RACE, "thread %u %s %s, at %s, while thread %u %s it, at %s", thread,
                    access_verb(kind), what, here, r->thread, access_verb(r->kind), there);
}

static bool same_access(const record *r, unsigned thread, uint16_t index, access_kind kind,
                        uintptr_t where)
{
    return r->thread == thread && r->index == index && r->kind == kind && r->where == where;
}

/* The set-up and the final check race with nothing, but the memory that they free is recorded. */
static bool is_recorded(unsigned thread, access_kind kind)
{
    return is_end(kind) || (thread != SETUP && thread != LAST);
}

/*
 * Doubles the records of a shadow. Their memory is mapped, as that of the shadows, and is never freed.
 */
static void make_room(shadow *s)
{
    enum { CHUNK = 1 << 14 };
    static record *chunk;
    static unsigned left;
    unsigned larger = s->capacity != 0 ? 2 * s->capacity : 2;
    if (left < larger || chunk == NULL) {
        chunk = memory_mapped(CHUNK * sizeof *chunk);
        left = CHUNK;
    }
    if (s->count != 0)
        memcpy(chunk, s->records, s->count * sizeof *chunk);
    s->records = chunk;
    s->capacity = larger;
    chunk += larger;
    left -= larger;
}

static void access_grain(shadow *s, unsigned thread, const vector_clock *clock, uintptr_t grain,
                         uint8_t bytes, access_kind kind, uintptr_t where)
{
    uint16_t index = clock->seen[thread];
    record *room = NULL, *joined = NULL;
    if (s->run != access_run) {
        s->run = access_run;
        s->count = 0;
    }
    for (unsigned i = 0; i < s->count; i++) {
        record *r = &s->records[i];
        bool is_ordered = comes_after(thread, clock, r);
        unsigned common = r->bytes & bytes;
        if (common != 0 && accesses_conflict((access_kind)r->kind, kind) &&
            (!is_ordered || is_end((access_kind)r->kind)))
            report_race(thread, grain + (unsigned)__builtin_ctz(common), kind, where, r,
                        is_ordered);
        if (same_access(r, thread, index, kind, where))
            joined = r;
        if (is_ordered && !is_end((access_kind)r->kind) &&
            access_covers(kind, (access_kind)r->kind))
            r->bytes &= (uint8_t)~bytes;
        if (r->bytes == 0)
            room = r;
    }
    if (!is_recorded(thread, kind))
        return;
    if (joined != NULL) {
        joined->bytes |= bytes;
        return;
    }
    if (room == NULL) {
        if (s->count == s->capacity)
            make_room(s);
        room = &s->records[s->count++];
    }
    *room = (record){index, (uint8_t)thread, bytes, where, (uint8_t)kind};
}

/* The shadow of the grain that has this address. */
static shadow *shadow_at(memory_area *a, uintptr_t address)
{
    if (a->shadow == NULL)
        a->shadow =
            memory_mapped(((size_t)(a->end - a->begin) / GRAIN + 2) * sizeof(struct shadow));
    return (shadow *)a->shadow + (address - (uintptr_t)a->begin) / GRAIN;
}

/* The part of [address, address + size) that is in the first grain: sets its length. */
static uint8_t first_bytes(const memory_area *a, uintptr_t address, size_t size, size_t *length)
{
    unsigned within = (address - (uintptr_t)a->begin) % GRAIN;
    *length = GRAIN - within < size ? GRAIN - within : size;
    return (uint8_t)(((1u << *length) - 1) << within);
}

void accesses_allocated(const void *memory, size_t size)
{
    uintptr_t address = (uintptr_t)memory;
    memory_area *a = memory_area_of(address);
    for (size_t length; size != 0; address += length, size -= length) {
        shadow *s = shadow_at(a, address);
        uint8_t bytes = first_bytes(a, address, size, &length);
        bool is_new = s->block_run != access_run;
        s->block_bytes = is_new ? bytes : s->block_bytes | bytes;
        s->written = is_new ? 0 : s->written & (uint8_t)~bytes;
        s->block_run = access_run;
    }
}

static void look_at_bounds(const shadow *s, uintptr_t address, uint8_t bytes, access_kind kind,
                           uintptr_t where)
{
    char here[256], what[128];
    if ((s->block_run == access_run && (bytes & ~s->block_bytes) == 0) || is_end(kind))
        return;
    describe_where(where, here, sizeof here);
    memory_describe_outside(address, what, sizeof what);
    execution_found(BIDE_CHECK_OUT_OF_BOUNDS, "thread %u %s %s, at %s", execution_thread(),
                    access_verb(kind), what, here);
}

/* ---- Memory that was never written ---- */

/*
 * True if no byte of a grain's part was written: no write was seen, and the bytes of the grain without a
 * seen write are as they were in the new block. Writes that are not seen, as memset's, change them.
 */
static bool is_unwritten(const shadow *s, uintptr_t grain, uint8_t bytes)
{
    if (s->block_run != access_run || (s->written & bytes) != 0)
        return false;
    for (unsigned i = 0; i < GRAIN; i++) {
        if (((s->block_bytes & ~s->written) >> i & 1) != 0 && !memory_is_fill(grain + i))
            return false;
    }
    return true;
}

static void report_unwritten(uintptr_t address, access_kind kind, uintptr_t where)
{
    char here[256], what[128];
    describe_where(where, here, sizeof here);
    memory_describe(address, what, sizeof what);
    execution_found(BIDE_CHECK_UNINITIALISED,
                    "thread %u %s %s, to which nothing was written, at %s", execution_thread(),
                    access_verb(kind), what, here);
}

/* An access of the running thread to a number in the heap. */
static void look_at_value(memory_area *a, uintptr_t address, size_t size, uintptr_t where)
{
    uintptr_t begin = address;
    if (size > sizeof(uint64_t) || the_checker.scenario->may_read_uninitialised)
        return;
    for (size_t n; size != 0; address += n, size -= n) {
        uint8_t bytes = first_bytes(a, address, size, &n);
        if (!is_unwritten(shadow_at(a, address), address & ~(uintptr_t)(GRAIN - 1), bytes))
            return;
    }
    report_unwritten(begin, ACCESS_READ, where);
}

void accesses_read_initial(uintptr_t address, size_t size, uint64_t value,
                           const bide_check_site_ *site)
{
    if (memory_is_in_heap((const void *)address) && memory_is_fill_value(address, size, value) &&
        !the_checker.scenario->may_read_uninitialised)
        report_unwritten(address, ACCESS_ATOMIC_READ, (uintptr_t)site);
}

static bool is_atomic(access_kind kind)
{
    return kind == ACCESS_ATOMIC_READ || kind == ACCESS_ATOMIC_WRITE;
}

void accesses_add(uintptr_t address, size_t size, access_kind kind, const bide_check_site_ *site,
                  const void *code)
{
    memory_area *a = memory_area_of(address);
    if (a == NULL || execution_is_on_trial())
        return;
    bool changes = (kind == ACCESS_WRITE || kind == ACCESS_FREE) &&
                   memory_stack_of(address) != execution_thread();
    if (execution_running()->rehearses && !changes)
        return;
    if (changes) {
        the_execution.caller = code;
        rounds_act(code != NULL ? ACT_WRITE : ACT_OTHER, code, address, size);
    }
    if (execution_running()->postpones || execution_running()->rehearses)
        machine_settle();
    if (kind != ACCESS_RETURN)
        locals_accessed(address);
    bool is_in_heap = memory_is_in_heap((const void *)address), is_value = kind == ACCESS_VALUE;
    uintptr_t begin = address;
    size_t whole = size;
    if (is_value)
        kind = ACCESS_READ;
    uintptr_t where = site != NULL ? (uintptr_t)site : (uintptr_t)code | 1;
    for (size_t n; size != 0; address += n, size -= n) {
        uint8_t bytes = first_bytes(a, address, size, &n);
        shadow *s = shadow_at(a, address);
        if (is_in_heap) {
            look_at_bounds(s, address, bytes, kind, where);
            if (kind == ACCESS_WRITE || kind == ACCESS_ATOMIC_WRITE)
                s->written |= bytes;
        }
        access_grain(s, execution_thread(), execution_clock(), address & ~(uintptr_t)(GRAIN - 1),
                     bytes, kind, where);
        if (is_atomic(kind))
            s->atomic_run = access_run;
        else if (!is_end(kind) && s->atomic_run == access_run)
            locations_write_back(address, n);
        if (kind == ACCESS_WRITE && s->atomic_run == access_run)
            locations_discard(address, n);
    }
    if (is_value && is_in_heap)
        look_at_value(a, begin, whole, where);
}

void accesses_copy(void *to, const void *from, size_t size)
{
    uintptr_t begin = (uintptr_t)from;
    memory_area *a = memory_area_of(begin);
    for (size_t i = 0, n; i < size; i++) {
        uint8_t bit = first_bytes(a, begin + i, 1, &n);
        const shadow *s = shadow_at(a, begin + i);
        if ((s->written & bit) == 0 && memory_is_fill(begin + i))
            continue;
        ((char *)to)[i] = ((const char *)from)[i];
        shadow_at(a, (uintptr_t)to + i)->written |= first_bytes(a, (uintptr_t)to + i, 1, &n);
    }
}

void accesses_forget(uintptr_t address, size_t size)
{
    const memory_area *a = memory_area_of(address);
    if (a == NULL || a->shadow == NULL)
        return;
    for (uintptr_t end = address + size; address < end; address += GRAIN - address % GRAIN) {
        shadow *s = (shadow *)a->shadow + (address - (uintptr_t)a->begin) / GRAIN;
        if (s->run == access_run)
            s->count = 0;
    }
}

void accesses_free(void *memory, const void *code)
{
    size_t size;
    if (memory_free(memory, &size))
        accesses_add((uintptr_t)memory, size != 0 ? size : 1, ACCESS_FREE, NULL, code);
    else
        execution_found(BIDE_CHECK_DOUBLE_FREE, "thread %u frees memory that is not allocated",
                        execution_thread());
}
