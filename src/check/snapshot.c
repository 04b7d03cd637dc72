/*
 * The code that is checked has called the operation, and so its registers are where the functions in
 * between have saved them. The unwinder finds them there. Below the frame of that code the stack
 * belongs to the checker. A register that a call need not preserve holds nothing that is used later,
 * except for the operation's operands, which are compared separately (spin.c).
 */
#include "snapshot.h"

#include "memory.h"
#include "storage.h"

#include <string.h>
#include <unwind.h>

/* The DWARF numbers of the registers that a call preserves. */
static const unsigned char preserved[] = {
#if defined __x86_64__
    3,  6, 12, 13,
    14, 15
#elif defined __i386__
    3, 5, 6, 7
#elif defined __aarch64__
    19, 20, 21, 22, 23, 24,
    25, 26, 27, 28, 29
#elif defined __riscv
    8,  9,  18, 19, 20, 21, 22,
    23, 24, 25, 26, 27
#elif defined __s390x__
    6,  7,  8, 9, 10,
    11, 12, 13
#else
#define IS_UNKNOWN 1
    0
#endif
};

typedef struct calling_frame {
    const void *code;
    uintptr_t stack; /* 0: not found */
    uintptr_t registers[sizeof preserved];
} calling_frame;

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *p)
{
    calling_frame *frame = p;
    if ((const void *)_Unwind_GetIP(context) != frame->code)
        return _URC_NO_REASON;
    frame->stack = (uintptr_t)_Unwind_GetCFA(context);
    for (unsigned i = 0; i < sizeof preserved; i++)
        frame->registers[i] = (uintptr_t)_Unwind_GetGR(context, preserved[i]);
    return _URC_NORMAL_STOP;
}

/* A plain loop: the stack has parts that a sanitizer would not let memcpy() read. */
__attribute__((no_sanitize("address", "undefined"))) static void
append(snapshot_buffer *to, const void *from, size_t size)
{
    to->bytes = grown(to->bytes, &to->capacity, to->used + (unsigned)size, 1);
    const volatile unsigned char *bytes = from;
    for (size_t i = 0; i < size; i++)
        to->bytes[to->used + i] = bytes[i];
    to->used += (unsigned)size;
}

bool snapshot_take(snapshot_buffer *to, unsigned *size)
{
#ifdef IS_UNKNOWN
    (void)to;
    (void)size;
    return false;
#endif
    unsigned running = the_execution.running;
    calling_frame frame = {.code = the_execution.caller};
    execution_enter_checker();
    _Unwind_Backtrace(look_at_frame, &frame);
    execution_leave_checker();
    uintptr_t end = memory_stack_end(running);
    if (frame.stack <= (uintptr_t)memory_stack(running) || frame.stack >= end)
        return false;
    unsigned before = to->used;
    append(to, &frame, sizeof frame);
    append(to, (const void *)frame.stack, end - frame.stack);
    for (unsigned i = 0; i < FIBER_REGIONS; i++)
        append(to, fiber_regions[i].begin, fiber_regions[i].size);
    *size = to->used - before;
    return true;
}
