/*
 * For each 8 bytes that are watched there are a few records of which thread accessed which of them
 * last. An access races with a recorded one of another thread if they share a byte, one of them
 * writes, not both are atomic, and the earlier one's place is not in the later one's clock. A
 * record that an access comes after, and which could race with nothing that this access could not,
 * gives it the bytes that they share, and without any left makes room. There are as many records as
 * it takes.
 *
 * What atomic objects hold is in the graph, not in memory. It is put there when they are read
 * plainly, or written in part, by an access that comes after their stores: then it is the newest of
 * those that were run.
 */
#include "accesses.h"

#include "execution.h"
#include "locations.h"
#include "memory.h"
#include "source_location.h"

#include <string.h>

enum { GRAIN = 8 };

typedef struct record {
    uint16_t index;
    uint8_t thread;
    uint8_t bytes; /* a bit for each of the grain */
    uintptr_t
        where; /* a bide_check_site_, or an address in the code; the lowest bit tells; and the kind */
    uint8_t kind;
} record;

typedef struct shadow {
    uint32_t atomic_run; /* in which one of the bytes was an atomic object's last */
    uint32_t run;        /* of which the records are */
    record *records;
    unsigned count;
    unsigned capacity;
} shadow;

static uint32_t run;

void accesses_reset(void)
{
    run++;
}

/* For each kind of access, a bit for each that it conflicts with. */
static const uint8_t conflicts[] = {
    [ACCESS_READ] = 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_WRITE | 1 << ACCESS_FREE,
    [ACCESS_WRITE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_READ |
                     1 << ACCESS_ATOMIC_WRITE | 1 << ACCESS_FREE,
    [ACCESS_ATOMIC_READ] = 1 << ACCESS_WRITE | 1 << ACCESS_FREE,
    [ACCESS_ATOMIC_WRITE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_FREE,
    [ACCESS_FREE] = 1 << ACCESS_READ | 1 << ACCESS_WRITE | 1 << ACCESS_ATOMIC_READ |
                    1 << ACCESS_ATOMIC_WRITE | 1 << ACCESS_FREE,
};

static bool conflict(access_kind a, access_kind b)
{
    return (conflicts[a] >> b & 1) != 0;
}

/* Does whatever conflicts with b conflict with a? */
static bool covers(access_kind a, access_kind b)
{
    return (conflicts[b] & ~conflicts[a]) == 0;
}

static bool comes_after(unsigned thread, const vector_clock *clock, const record *r)
{
    return r->thread == thread || r->thread == SETUP || thread == LAST ||
           clock->seen[r->thread] > r->index;
}

static const char *name_of(access_kind kind)
{
    static const char *const names[] = {"reads", "writes", "atomically reads", "atomically writes",
                                        "frees"};
    return names[kind];
}

static void describe_where(uintptr_t where, char *text, size_t size)
{
    if (where & 1)
        site_describe_code((void *)(where & ~(uintptr_t)1), text, size);
    else
        site_describe((const bide_check_site_ *)where, text, size);
}

static void report(unsigned thread, uintptr_t address, access_kind kind, uintptr_t where,
                   const record *r, bool is_ordered)
{
    char here[512], there[512], what[64];
    describe_where(where, here, sizeof here);
    describe_where(r->where, there, sizeof there);
    memory_describe(address, what, sizeof what);
    if (r->kind == ACCESS_FREE && is_ordered)
        execution_found(kind == ACCESS_FREE ? BIDE_CHECK_DOUBLE_FREE : BIDE_CHECK_USE_AFTER_FREE,
                        "thread %u %s %s, at %s, after thread %u has freed it, at %s", thread,
                        name_of(kind), what, here, r->thread, there);
    if (r->kind == ACCESS_FREE || kind == ACCESS_FREE)
        execution_found(r->kind == kind ? BIDE_CHECK_DOUBLE_FREE : BIDE_CHECK_USE_AFTER_FREE,
                        "thread %u %s %s, at %s, while thread %u %s it, at %s", thread,
                        name_of(kind), what, here, r->thread, name_of(r->kind), there);
    execution_found(BIDE_CHECK_RACE, "thread %u %s %s, at %s, while thread %u %s it, at %s", thread,
                    name_of(kind), what, here, r->thread, name_of(r->kind), there);
}

static bool same_access(const record *r, unsigned thread, uint16_t index, access_kind kind,
                        uintptr_t where)
{
    return r->thread == thread && r->index == index && r->kind == kind && r->where == where;
}

/* What is set up, and what comes last, races with nothing; but what it frees is freed. */
static bool is_recorded(unsigned thread, access_kind kind)
{
    return kind == ACCESS_FREE || (thread != SETUP && thread != LAST);
}

/*
 * Gives a shadow twice as many records, from memory that is mapped as the shadows are, and stays.
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
    if (s->run != run) {
        s->run = run;
        s->count = 0;
    }
    for (unsigned i = 0; i < s->count; i++) {
        record *r = &s->records[i];
        bool is_ordered = comes_after(thread, clock, r);
        unsigned common = r->bytes & bytes;
        if (common != 0 && conflict((access_kind)r->kind, kind) &&
            (!is_ordered || r->kind == ACCESS_FREE))
            report(thread, grain + (unsigned)__builtin_ctz(common), kind, where, r, is_ordered);
        if (same_access(r, thread, index, kind, where))
            joined = r;
        if (is_ordered && r->kind != ACCESS_FREE && covers(kind, (access_kind)r->kind))
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

static bool is_atomic(access_kind kind)
{
    return kind == ACCESS_ATOMIC_READ || kind == ACCESS_ATOMIC_WRITE;
}

void accesses_add(uintptr_t address, size_t size, access_kind kind, const bide_check_site_ *site,
                  const void *code)
{
    memory_area *a = memory_area_of(address);
    if (a == NULL || execution_goes_on())
        return;
    if (a->shadow == NULL)
        a->shadow =
            memory_mapped(((size_t)(a->end - a->begin) / GRAIN + 2) * sizeof(struct shadow));
    uintptr_t where = site != NULL ? (uintptr_t)site : (uintptr_t)code | 1;
    while (size != 0) {
        size_t offset = address - (uintptr_t)a->begin;
        unsigned within = offset % GRAIN;
        size_t n = GRAIN - within < size ? GRAIN - within : size;
        uint8_t bytes = (uint8_t)(((1u << n) - 1) << within);
        shadow *s = (shadow *)a->shadow + offset / GRAIN;
        access_grain(s, execution_thread(), execution_clock(), address - within, bytes, kind,
                     where);
        if (is_atomic(kind))
            s->atomic_run = run;
        else if (kind != ACCESS_FREE && s->atomic_run == run)
            locations_settle(address, n);
        if (kind == ACCESS_WRITE && s->atomic_run == run)
            locations_forget(address, n);
        address += n;
        size -= n;
    }
}

void accesses_free(void *memory, const void *code)
{
    size_t size;
    if (memory_free(memory, &size))
        accesses_add((uintptr_t)memory, size != 0 ? size : 1, ACCESS_FREE, NULL, code);
    else
        execution_found(BIDE_CHECK_DOUBLE_FREE, "thread %u frees what was not allocated",
                        execution_thread());
}
