/*
 * The operations of bide/atomic.h, and the others that a scenario may call, as steps of the running
 * thread. Outside of a scenario, as in a program's main, they are plain operations on memory.
 */
#include "bide/extend/root.h"

#include "accesses.h"
#include "heap.h"
#include "locals.h"
#include "machine.h"
#include "memory.h"
#include "orders.h"
#include "rounds.h"
#include "source_location.h"
#include "spin.h"

#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Floating-point values ---- */

uint64_t bide_check_bits_(const void *value, size_t size)
{
    return memory_value((uintptr_t)value, size);
}

float bide_check_float_(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

double bide_check_double_(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- Atomics ---- */

/* An operation begins; `code` called it, if the functions of c11.c have not. */
static void entered(const void *code, uintptr_t stack)
{
    locals_look(stack, code);
    the_execution.caller = the_execution.c11_caller != NULL ? the_execution.c11_caller : code;
    the_execution.c11_caller = NULL;
}

/* Rejects an object that a processor may not access at once. */
static void check_object(const bide_check_site_ *site, const volatile void *address, size_t size)
{
    if (((uintptr_t)address & (size - 1)) == 0)
        return;
    char where[256];
    const char *name = site->object[0] == '&' ? site->object + 1 : site->object;
    source_location_describe(site, where, sizeof where);
    execution_found(
        BIDE_CHECK_BAD_SCENARIO,
        "%s%san atomic object of %zu bytes is misaligned: its address is no multiple of %zu, at %s",
        name, name[0] != '\0' ? ": " : "", size, size, where);
}

static operation atomic_step(bide_check_site_ *site, step_kind step, int order, int order_if_failed)
{
    operation op = {.site = site, .step = (uint8_t)step};
    effective_orders orders = orders_of(site, step, order, order_if_failed);
    op.order = orders.order;
    op.order_if_failed = orders.order_if_failed;
    return op;
}

uint64_t bide_check_load_(bide_check_site_ *site, const volatile void *address, size_t size,
                          int order)
{
    if (!execution_is_running())
        return memory_value((uintptr_t)address, size);
    entered(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
    check_object(site, address, size);
    operation op = atomic_step(site, STEP_LOAD, order, order);
    return machine_load(&op, (uintptr_t)address, size, HIDDEN_NONE, NULL, NULL);
}

void bide_check_store_(bide_check_site_ *site, volatile void *address, size_t size, uint64_t value,
                       int order)
{
    if (!execution_is_running()) {
        memory_write((uintptr_t)address, size, value);
        return;
    }
    entered(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
    check_object(site, address, size);
    operation op = atomic_step(site, STEP_STORE, order, order);
    machine_store(&op, (uintptr_t)address, size, HIDDEN_NONE, value, NULL);
}

void bide_check_init_(bide_check_site_ *site, volatile void *address, size_t size, uint64_t value)
{
    if (!execution_is_running()) {
        memory_write((uintptr_t)address, size, value);
        return;
    }
    check_object(site, address, size);
    operation op = {.site = site, .step = STEP_INIT};
    machine_init(&op, (uintptr_t)address, size, value);
}

/*
 * Returns the value that a read-modify-write stores. `sign` is the operator of a fetch ('~' is nand),
 * or '=' for an exchange.
 */
static uint64_t modified_value(char sign, uint64_t old, uint64_t value)
{
    switch (sign) {
    case '+':
        return old + value;
    case '-':
        return old - value;
    case '|':
        return old | value;
    case '&':
        return old & value;
    case '^':
        return old ^ value;
    case '~':
        return ~(old & value);
    default:
        return value;
    }
}

/* A read-modify-write that always succeeds. */
static uint64_t read_modify_write(bide_check_site_ *site, step_kind step, volatile void *address,
                                  size_t size, char sign, uint64_t value, int order)
{
    if (!execution_is_running()) {
        uint64_t old = memory_value((uintptr_t)address, size);
        memory_write((uintptr_t)address, size, modified_value(sign, old, value));
        return old;
    }
    check_object(site, address, size);
    operation op = atomic_step(site, step, order, order);
    op.is_rmw = true;
    op.operand = value;
    reference load;
    uint64_t old = machine_load(&op, (uintptr_t)address, size, HIDDEN_NONE, NULL, &load);
    machine_store(&op, (uintptr_t)address, size, HIDDEN_NONE, modified_value(sign, old, value),
                  &load);
    return old;
}

uint64_t bide_check_exchange_(bide_check_site_ *site, volatile void *address, size_t size,
                              uint64_t value, int order)
{
    entered(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
    return read_modify_write(site, STEP_EXCHANGE, address, size, '=', value, order);
}

uint64_t bide_check_fetch_(bide_check_site_ *site, volatile void *address, size_t size,
                           char operation, uint64_t value, int order)
{
    step_kind step = operation == '+'   ? STEP_FETCH_ADD
                     : operation == '-' ? STEP_FETCH_SUB
                     : operation == '|' ? STEP_FETCH_OR
                     : operation == '&' ? STEP_FETCH_AND
                     : operation == '^' ? STEP_FETCH_XOR
                                        : STEP_FETCH_NAND;
    entered(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
    return read_modify_write(site, step, address, size, operation, value, order);
}

bool bide_check_compare_exchange_(bide_check_site_ *site, volatile void *address, size_t size,
                                  uint64_t *expected, uint64_t value, int order,
                                  int order_if_failed, bool weak)
{
    uint64_t wanted = memory_fitting(*expected, size);
    if (!execution_is_running()) {
        uint64_t old = memory_value((uintptr_t)address, size);
        bool equal = old == wanted;
        if (equal)
            memory_write((uintptr_t)address, size, value);
        *expected = old;
        return equal;
    }
    entered(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
    check_object(site, address, size);
    operation op = atomic_step(site, STEP_COMPARE_EXCHANGE, order, order_if_failed);
    op.is_rmw = true;
    op.operand = value;
    op.expected = wanted;
    op.may_fail = weak;
    reference load;
    uint64_t old = machine_load(&op, (uintptr_t)address, size, HIDDEN_NONE, NULL, &load);
    if (!execution_event(load)->is_rmw) {
        *expected = old;
        return false;
    }
    machine_store(&op, (uintptr_t)address, size, HIDDEN_NONE, value, &load);
    return true;
}

void bide_check_fence_(bide_check_site_ *site, int order)
{
    if (!execution_is_running())
        return;
    entered(__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa());
    operation op = atomic_step(site, STEP_FENCE, order, order);
    machine_fence(&op);
}

void bide_check_relax_(void)
{
    if (execution_is_running())
        spin_relax();
}

void bide_check_retry_(void)
{
    if (!execution_is_running() || the_checker.samples)
        return;
    machine_settle();
    execution_halt();
}

/* ---- Plain memory ---- */

void bide_check_plain_(bide_check_site_ *site, const volatile void *address, size_t size,
                       bool is_write)
{
    if (!execution_is_running())
        return;
    accesses_add((uintptr_t)address, size, is_write ? ACCESS_WRITE : ACCESS_VALUE, site, NULL);
}

void *bide_check_alloc(size_t size)
{
    if (!execution_is_running())
        return malloc(size);
    return heap_allocate(0, size, __builtin_return_address(0));
}

void bide_check_free(void *memory)
{
    if (!execution_is_running()) {
        free(memory);
        return;
    }
    heap_free(memory, __builtin_return_address(0));
}

/* ---- The rest ---- */

unsigned bide_check_choose(unsigned count)
{
    static bide_check_site_ site = {"", "bide_check_choose", "", 0, 0};
    operation op = {.site = &site, .step = STEP_CHOICE};
    return execution_is_running() && count > 1 ? machine_choose(&op, count) : 0;
}

unsigned bide_check_thread(void)
{
    return execution_is_running() && execution_thread() != LAST ? execution_thread() : 0;
}

void bide_check_fail_(bide_check_finding finding, const char *file, unsigned line,
                      const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (execution_is_running()) {
        bide_check_site_ site = {.file = file, .function = file, .line = line};
        char where[256];
        source_location_describe(&site, where, sizeof where);
        execution_found(finding, "%s (%s)", text, where);
    }
    fprintf(stderr, "bide_check: %s (%s:%u)\n", text, file, line);
    abort();
}

static bide_check_site_ post_site = {__FILE__, "bide_check_await", "the operation's end", 0, 0};
static bide_check_site_ await_site = {__FILE__, "bide_check_await", "the operation's end", 0, 0};

static void awaited_ended(bide_root *root)
{
    operation op = {.site = &post_site, .step = STEP_POST, .order = bide_check_release_};
    machine_store(&op, (uintptr_t)root, 1, HIDDEN_ENDED, 1, NULL);
}

int bide_check_await(bide_awaiter *awaiter)
{
    static bide_check_site_ init_site = {__FILE__, "bide_check_await", "the operation's end", 0, 0};
    bide_root root;
    operation op = {.site = &init_site, .step = STEP_POST};
    machine_store(&op, (uintptr_t)&root, 1, HIDDEN_ENDED, 0, NULL);
    bide_root_prepare(&root, &bide_default_context, awaiter, awaited_ended, false);
    bide_resume(&root.frame);
    op = (operation){.site = &await_site,
                     .step = STEP_AWAIT,
                     .order = bide_check_acquire_,
                     .wait = WAIT_UNTIL_EQUAL,
                     .expected = 1};
    machine_load(&op, (uintptr_t)&root, 1, HIDDEN_ENDED, NULL, NULL);
    return root.status;
}
