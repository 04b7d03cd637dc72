/*
 * For each 8 bytes that are watched there are a few records of who accessed which of them last. An access races
 * with a recorded one of another thread if they share a byte, one of them writes, not both are atomic, and
 * the earlier one's place is not in the later one's clock. A record that an access comes after, and which
 * could race with nothing that this access could not, gives it the bytes that they share, and without any left
 * makes room. There are as many records as it takes.
 *
 * What atomic objects hold is in the graph, not in memory. It is put there when they are read plainly, or written in
 * part, by who comes after their stores: then it is the newest of those that were run.
 *
 * Memory is handed out upwards, each thread from a part of its own, so that a thread which is run again gets
 * the same addresses whatever the others do.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "machine.h"
#include "storage.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STATE_SIZE = 1 << 20,
    STACK_ROOM = 8 << 20, /* for each stack; what it does not use cannot be accessed */
    STACK_SIZE = 256 << 10,
    STACK_MOST = STACK_ROOM - (64 << 10),
    STACK_UNIT = 64 << 10, /* no less than a page, whatever its size */
    HEAP_SIZE = 1 << 19,
    BLOCKS = 4096,
    GRAIN = 8
};

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

typedef struct area {
    char *begin;
    char *end;
    shadow *shadow;
} area;

typedef struct block {
    char *memory;
    size_t size;
    bool is_freed;
} block;

static area model, data;
static uint32_t run;
static size_t state_size, stack_size;
static size_t heap_used[THREADS];
static block blocks[BLOCKS];
static unsigned blocks_count;

/* What was put into memory, and what had been there. */
typedef struct put {
    uintptr_t address;
    size_t size;
    uint64_t before;
} put;

static put *puts_done;
static unsigned puts_count, puts_capacity;

/* The program's own data, by the names that the linker gives its ends. */
extern char __data_start[] __attribute__((weak));
extern char _end[] __attribute__((weak));
extern char __start_bide_thread_local[];
extern char __stop_bide_thread_local[];

static void *mapped(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("bide_check: mmap");
        abort();
    }
    return memory;
}

static void watch(area *a, char *begin, size_t size)
{
    a->begin = begin;
    a->end = begin + size;
    a->shadow = mapped((size / GRAIN + 2) * sizeof *a->shadow);
}

static char *stack_room(unsigned thread)
{
    return model.begin + STATE_SIZE + (size_t)thread * STACK_ROOM;
}

/* Only the upper part of each room is a stack. */
static void prepare_stacks(size_t size)
{
    if (size == stack_size)
        return;
    stack_size = size;
    for (unsigned t = 0; t < THREADS; t++) {
        if (mprotect(stack_room(t), STACK_ROOM - size, PROT_NONE) != 0 ||
            mprotect(memory_stack(t), size, PROT_READ | PROT_WRITE) != 0) {
            perror("bide_check: mprotect");
            abort();
        }
    }
}

void *memory_prepare(const bide_check_scenario *scenario)
{
    if (model.begin == NULL) {
        size_t all = STATE_SIZE + THREADS * ((size_t)STACK_ROOM + HEAP_SIZE);
        char *memory = mapped(all + STACK_UNIT);
        watch(&model, (char *)(((uintptr_t)memory + STACK_UNIT - 1) & ~(uintptr_t)(STACK_UNIT - 1)),
              all);
        uintptr_t begin = (uintptr_t)__data_start & ~(uintptr_t)(GRAIN - 1);
        uintptr_t end = (uintptr_t)_end;
        if (begin != 0 && end > begin && end - begin < (uintptr_t)64 << 20)
            watch(&data, (char *)begin, end - begin + GRAIN);
    }
    if (scenario->size > STATE_SIZE) {
        fprintf(stderr, "bide_check: a state of %zu bytes is too large\n", scenario->size);
        abort();
    }
    if (scenario->stack_size > STACK_MOST) {
        fprintf(stderr, "bide_check: a stack of %zu bytes is too large\n", scenario->stack_size);
        abort();
    }
    size_t size = scenario->stack_size != 0 ? scenario->stack_size : STACK_SIZE;
    prepare_stacks((size + STACK_UNIT - 1) / STACK_UNIT * STACK_UNIT);
    state_size = scenario->size;
    return model.begin;
}

void *memory_stack(unsigned thread)
{
    return stack_room(thread) + STACK_ROOM - stack_size;
}

size_t memory_stack_size(void)
{
    return stack_size;
}

bool memory_is_below_stack(uintptr_t address)
{
    uintptr_t begin = (uintptr_t)stack_room(0), end = (uintptr_t)stack_room(THREADS);
    return model.begin != NULL && address >= begin && address < end &&
           (address - begin) % STACK_ROOM < STACK_ROOM - stack_size;
}

static char *heap_of(unsigned thread)
{
    return stack_room(THREADS) + (size_t)thread * HEAP_SIZE;
}

void memory_reset(void)
{
    memory_restore();
    run++;
    memset(model.begin, 0, state_size);
    memset(heap_used, 0, sizeof heap_used);
    blocks_count = 0;
}

static bool is_in(const area *a, uintptr_t address)
{
    return address >= (uintptr_t)a->begin && address < (uintptr_t)a->end;
}

static const area *area_of(uintptr_t address)
{
    if (is_in(&model, address))
        return &model;
    if (is_in(&data, address) && (address < (uintptr_t)__start_bide_thread_local ||
                                  address >= (uintptr_t)__stop_bide_thread_local))
        return &data;
    return NULL;
}

uint64_t memory_value(uintptr_t address, size_t size)
{
    switch (size) {
    case 1:
        return *(const volatile uint8_t *)address;
    case 2:
        return *(const volatile uint16_t *)address;
    case 4:
        return *(const volatile uint32_t *)address;
    default:
        return *(const volatile uint64_t *)address;
    }
}

void memory_write(uintptr_t address, size_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(volatile uint8_t *)address = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)address = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)address = (uint32_t)value;
        break;
    default:
        *(volatile uint64_t *)address = value;
        break;
    }
}

void memory_put(uintptr_t address, size_t size, uint64_t value)
{
    if (!is_in(&model, address)) { /* the state is zeroed anyway, and the rest forgotten */
        puts_done = grown(puts_done, &puts_capacity, puts_count + 1, sizeof *puts_done);
        puts_done[puts_count++] = (put){address, size, memory_value(address, size)};
    }
    memory_write(address, size, value);
}

void memory_restore(void)
{
    while (puts_count != 0) {
        const put *p = &puts_done[--puts_count];
        memory_write(p->address, p->size, p->before);
    }
}

bool memory_is_watched(uintptr_t address)
{
    return area_of(address) != NULL;
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
        trace_code((void *)(where & ~(uintptr_t)1), text, size);
    else
        trace_site((const bide_check_site_ *)where, text, size);
}

void memory_describe(uintptr_t address, char *text, size_t size)
{
    if (address >= (uintptr_t)model.begin && address < (uintptr_t)model.begin + state_size) {
        snprintf(text, size, "byte %zu of the state", (size_t)(address - (uintptr_t)model.begin));
        return;
    }
    for (unsigned i = 0; i < blocks_count; i++) {
        uintptr_t begin = (uintptr_t)blocks[i].memory;
        if (address >= begin && address < begin + blocks[i].size) {
            snprintf(text, size, "byte %zu of a block of %zu", (size_t)(address - begin),
                     blocks[i].size);
            return;
        }
    }
    snprintf(text, size, is_in(&model, address) ? "a stack" : "a static variable");
}

static void report(unsigned thread, uintptr_t address, access_kind kind, uintptr_t where,
                   const record *r, bool is_ordered)
{
    char here[512], there[512], what[64];
    describe_where(where, here, sizeof here);
    describe_where(r->where, there, sizeof there);
    memory_describe(address, what, sizeof what);
    if (r->kind == ACCESS_FREE && is_ordered)
        machine_found(kind == ACCESS_FREE ? BIDE_CHECK_DOUBLE_FREE : BIDE_CHECK_USE_AFTER_FREE,
                      "thread %u %s %s, at %s, after thread %u has freed it, at %s", thread,
                      name_of(kind), what, here, r->thread, there);
    if (r->kind == ACCESS_FREE || kind == ACCESS_FREE)
        machine_found(r->kind == kind ? BIDE_CHECK_DOUBLE_FREE : BIDE_CHECK_USE_AFTER_FREE,
                      "thread %u %s %s, at %s, while thread %u %s it, at %s", thread, name_of(kind),
                      what, here, r->thread, name_of(r->kind), there);
    machine_found(BIDE_CHECK_RACE, "thread %u %s %s, at %s, while thread %u %s it, at %s", thread,
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

/* Gives a shadow twice as many records, from memory that is mapped as the shadows are, and stays. */
static void make_room(shadow *s)
{
    enum { CHUNK = 1 << 14 };
    static record *chunk;
    static unsigned left;
    unsigned larger = s->capacity != 0 ? 2 * s->capacity : 2;
    if (left < larger) {
        chunk = mapped(CHUNK * sizeof *chunk);
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

void memory_access(uintptr_t address, size_t size, access_kind kind, const bide_check_site_ *site,
                   const void *code)
{
    const area *a = area_of(address);
    if (a == NULL || machine_goes_on())
        return;
    uintptr_t where = site != NULL ? (uintptr_t)site : (uintptr_t)code | 1;
    while (size != 0) {
        size_t offset = address - (uintptr_t)a->begin;
        unsigned within = offset % GRAIN;
        size_t n = GRAIN - within < size ? GRAIN - within : size;
        uint8_t bytes = (uint8_t)(((1u << n) - 1) << within);
        shadow *s = &a->shadow[offset / GRAIN];
        access_grain(s, machine_thread(), machine_clock(), address - within, bytes, kind, where);
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

void *memory_allocate(size_t size)
{
    machine_stop_going_on();
    unsigned thread = machine_thread();
    size_t alignment = size >= 64 ? 64 : 16;
    size_t begin = (heap_used[thread] + alignment - 1) & ~(alignment - 1);
    if (size > HEAP_SIZE || begin + size + 16 > HEAP_SIZE || blocks_count == BLOCKS)
        return NULL;
    heap_used[thread] = begin + size + 16;
    char *memory = heap_of(thread) + begin;
    blocks[blocks_count++] = (block){memory, size, false};
    return memset(memory, 0xa5, size);
}

void memory_free(void *memory, const void *code)
{
    machine_stop_going_on();
    for (unsigned i = 0; i < blocks_count; i++) {
        if (blocks[i].memory == memory) {
            memory_access((uintptr_t)memory, blocks[i].size != 0 ? blocks[i].size : 1, ACCESS_FREE,
                          NULL, code);
            blocks[i].is_freed = true;
            return;
        }
    }
    machine_found(BIDE_CHECK_DOUBLE_FREE, "thread %u frees what was not allocated",
                  machine_thread());
}

unsigned memory_leaked(size_t *bytes)
{
    unsigned count = 0;
    *bytes = 0;
    for (unsigned i = 0; i < blocks_count; i++) {
        if (!blocks[i].is_freed) {
            count++;
            *bytes += blocks[i].size;
        }
    }
    return count;
}
