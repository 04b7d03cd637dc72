/*
 * Each thread allocates upwards from a heap of its own, so that a thread that is run again gets the
 * same addresses no matter what the others do.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "execution.h"
#include "storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STATE_SIZE = 1 << 20,
    STACK_ROOM = 8 << 20, /* for each stack; the rest of the room cannot be accessed */
    STACK_SIZE = 256 << 10,
    MAX_STACK_SIZE = STACK_ROOM - (64 << 10),
    STACK_UNIT = 64 << 10, /* no less than a page, whatever its size */
    HEAP_SIZE = 1 << 19,
    BLOCKS = 4096,
    AREA_GRAIN = 8 /* areas begin and end at multiples of it */
};

typedef struct heap_block {
    char *memory;
    size_t size;
    bool is_freed;
} heap_block;

static memory_area model, data;
static size_t state_size, stack_size;
static size_t heap_used[THREADS];
static heap_block blocks[BLOCKS];
static unsigned blocks_count;

/* A value that memory_put() has replaced. */
typedef struct put {
    uintptr_t address;
    size_t size;
    uint64_t before;
} put;

static put *puts_done;
static unsigned puts_count, puts_capacity;

/* The linker's names for the ends of the program's own data. */
extern char __data_start[] __attribute__((weak));
extern char _end[] __attribute__((weak));
extern char __start_bide_thread_local[] __attribute__((weak));
extern char __stop_bide_thread_local[] __attribute__((weak));

void *memory_mapped(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("bide_check: mmap");
        abort();
    }
    return memory;
}

static void set_area(memory_area *a, char *begin, size_t size)
{
    a->begin = begin;
    a->end = begin + size;
}

static char *stack_room(unsigned thread)
{
    return model.begin + STATE_SIZE + (size_t)thread * STACK_ROOM;
}

/* The stack is the upper part of its room. */
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
        char *memory = memory_mapped(all + STACK_UNIT);
        set_area(&model,
                 (char *)(((uintptr_t)memory + STACK_UNIT - 1) & ~(uintptr_t)(STACK_UNIT - 1)),
                 all);
        uintptr_t begin = (uintptr_t)__data_start & ~(uintptr_t)(AREA_GRAIN - 1);
        uintptr_t end = (uintptr_t)_end;
        if (begin != 0 && end > begin && end - begin < (uintptr_t)64 << 20)
            set_area(&data, (char *)begin, end - begin + AREA_GRAIN);
    }
    if (scenario->size > STATE_SIZE) {
        fprintf(stderr, "bide_check: a state of %zu bytes is too large\n", scenario->size);
        abort();
    }
    if (scenario->stack_size > MAX_STACK_SIZE) {
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

uintptr_t memory_stack_end(unsigned thread)
{
    return (uintptr_t)stack_room(thread + 1);
}

unsigned memory_stack_of(uintptr_t address)
{
    uintptr_t begin = (uintptr_t)model.begin + STATE_SIZE;
    if (address < begin || address >= begin + THREADS * (uintptr_t)STACK_ROOM)
        return THREADS;
    return (unsigned)((address - begin) / STACK_ROOM);
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

unsigned memory_thread_of(uintptr_t address)
{
    uintptr_t heap = (uintptr_t)heap_of(0);
    if (address < heap || address >= (uintptr_t)heap_of(THREADS))
        return memory_stack_of(address);
    return (unsigned)((address - heap) / HEAP_SIZE);
}

void memory_reset(void)
{
    memory_restore();
    memset(model.begin, 0, state_size);
    memset(heap_used, 0, sizeof heap_used);
    blocks_count = 0;
}

static bool is_in(const memory_area *a, uintptr_t address)
{
    return address >= (uintptr_t)a->begin && address < (uintptr_t)a->end;
}

memory_area *memory_area_of(uintptr_t address)
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
    if (!is_in(&model, address)) { /* memory_reset() resets the model's own memory */
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

/* The block that begins at the address, or else NULL. */
static heap_block *find_block(const void *memory)
{
    for (unsigned i = 0; i < blocks_count; i++) {
        if (blocks[i].memory == memory)
            return &blocks[i];
    }
    return NULL;
}

/* The last block that begins at the address or before, or else NULL. */
static const heap_block *find_block_before(uintptr_t address)
{
    const heap_block *before = NULL;
    for (unsigned i = 0; i < blocks_count; i++) {
        const heap_block *b = &blocks[i];
        if ((uintptr_t)b->memory <= address && (before == NULL || b->memory > before->memory))
            before = b;
    }
    return before;
}

void memory_describe(uintptr_t address, char *text, size_t size)
{
    if (address >= (uintptr_t)model.begin && address < (uintptr_t)model.begin + state_size) {
        snprintf(text, size, "byte %zu of the state", (size_t)(address - (uintptr_t)model.begin));
        return;
    }
    const heap_block *b = find_block_before(address);
    if (b != NULL && address - (uintptr_t)b->memory < b->size) {
        snprintf(text, size, "byte %zu of a block of %zu", (size_t)(address - (uintptr_t)b->memory),
                 b->size);
        return;
    }
    snprintf(text, size, is_in(&model, address) ? "a stack" : "a static variable");
}

void memory_describe_outside(uintptr_t address, char *text, size_t size)
{
    const heap_block *before = find_block_before(address);
    if (before == NULL)
        snprintf(text, size, "memory that is not allocated");
    else
        snprintf(text, size, "byte %zu of a block of %zu bytes",
                 address - (uintptr_t)before->memory, before->size);
}

/*
 * A new block is filled by these bytes. None is a small number or a character, and no two are the same:
 * memory that was written, even if that was not seen (memset), hardly ever looks like this.
 */
static const unsigned char fill[8] = {0xa5, 0xd3, 0x9b, 0xe7, 0x8d, 0xf1, 0xc9, 0xb6};

/* `memory` is aligned to 16 bytes, and has room for 16 bytes more than `size`. */
static void fill_block(char *memory, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof fill)
        memcpy(memory + i, fill, sizeof fill);
}

bool memory_is_fill(uintptr_t address)
{
    return *(const volatile unsigned char *)address == fill[address % sizeof fill];
}

bool memory_is_fill_value(uintptr_t address, size_t size, uint64_t value)
{
    _Alignas(uint64_t) unsigned char bytes[sizeof value];
    memory_write((uintptr_t)bytes, size, value);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != fill[(address + i) % sizeof fill])
            return false;
    }
    return true;
}

void *memory_allocate(size_t alignment, size_t size)
{
    execution_end_trial();
    unsigned thread = execution_thread();
    size_t min = size >= 64 ? 64 : 16;
    if (alignment < min)
        alignment = min;
    if (alignment > HEAP_SIZE)
        return NULL;
    size_t begin = (heap_used[thread] + alignment - 1) & ~(alignment - 1);
    if (size > HEAP_SIZE || begin + size + 16 > HEAP_SIZE || blocks_count == BLOCKS)
        return NULL;
    heap_used[thread] = begin + size + 16;
    char *memory = heap_of(thread) + begin;
    blocks[blocks_count++] = (heap_block){memory, size, false};
    fill_block(memory, size);
    return memory;
}

bool memory_free(const void *memory, size_t *size)
{
    execution_end_trial();
    heap_block *b = find_block(memory);
    if (b == NULL)
        return false;
    *size = b->size;
    b->is_freed = true;
    return true;
}

bool memory_is_in_heap(const void *memory)
{
    return model.begin != NULL && (const char *)memory >= heap_of(0) &&
           (const char *)memory < heap_of(THREADS);
}

size_t memory_block_size(const void *memory)
{
    const heap_block *b = find_block(memory);
    return b == NULL ? 0 : b->size;
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
