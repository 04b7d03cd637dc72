/*
 * The board: its startup, its platform table, and the few functions that a compiler calls or the tests use
 * in place of a libc. There is one thread of control and no interrupt, so an awaited event can no longer
 * happen: a wait ends the program as failed.
 */
#include "board.h"

#include <string.h>

#include "bide/errors.h"
#include "bide/platform.h"

/* ---- The host, by semihosting ---- */

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void ask_host(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_print(const char *text)
{
    ask_host(SYS_WRITE0, text);
}

void board_print_number(unsigned number)
{
    char text[11];
    char *at = text + sizeof text;
    *--at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    board_print(at);
}

void board_print_hexadecimal(uint64_t number)
{
    char text[19];
    char *at = text + sizeof text;
    *--at = '\0';
    do
        *--at = "0123456789abcdef"[number & 15];
    while ((number >>= 4) != 0);
    *--at = 'x';
    *--at = '0';
    board_print(at);
}

void board_exit(int status)
{
    const uint32_t block[2] = {APPLICATION_EXIT, (uint32_t)status};
    ask_host(SYS_EXIT_EXTENDED, block);
    for (;;)
        ;
}

static _Noreturn void fail(const char *why)
{
    board_print("Bail out! ");
    board_print(why);
    board_print("\n");
    board_exit(1);
}

/* ---- The platform ---- */

static int board_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    if (bide_atomic_load(word, acquire) != expected)
        return 0;
    if (deadline == BIDE_FOREVER)
        fail("deadlock: what is waited for cannot happen");
    return -ETIMEDOUT;
}

static void board_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    (void)word;
    (void)count; /* nobody sleeps */
}

static uint64_t board_now(void)
{
    static uint64_t now;
    return now++;
}

static void board_yield(void)
{
    fail("deadlock: there is nobody to yield to");
}

static void board_misuse(const char *what, const char *where, const char *file, unsigned line)
{
    (void)file;
    (void)line;
    board_print("# ");
    board_print(where);
    board_print("\n");
    fail(what);
}

/* One core sees its own accesses in order. */
static int board_barrier(void)
{
    return 0;
}

const bide_platform_table bide_platform = {board_wait,  board_wake,   board_now,
                                           board_yield, board_misuse, board_barrier};

/* ---- In place of a libc ---- */

void *memset(void *to, int value, size_t size)
{
    for (unsigned char *at = to; size-- != 0;)
        *at++ = (unsigned char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    const unsigned char *source = from;
    for (unsigned char *at = to; size-- != 0;)
        *at++ = *source++;
    return to;
}

size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

char *strncat(char *restrict to, const char *restrict from, size_t max)
{
    char *at = to + strlen(to);
    for (; max-- != 0 && *from != '\0'; from++)
        *at++ = *from;
    *at = '\0';
    return to;
}

char *strcat(char *restrict to, const char *restrict from)
{
    return strncat(to, from, strlen(from));
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *p = a, *q = b;
    for (size_t i = 0; i < size; i++) {
        if (p[i] != q[i])
            return p[i] - q[i];
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* ---- The start ---- */

extern unsigned char board_stack_top[], board_data[], board_data_end[], board_data_load[],
    board_bss[], board_bss_end[]; /* from board.ld */

int main(void);

static void reset(void)
{
    memcpy(board_data, board_data_load, (size_t)(board_data_end - board_data));
    memset(board_bss, 0, (size_t)(board_bss_end - board_bss));
    board_exit(main());
}

__attribute__((used)) static _Noreturn void met_a_fault(void)
{
    fail("the processor met a fault");
}

/* There may be no stack left, so it starts again at the top. */
__attribute__((naked)) static void fault(void)
{
    __asm__ volatile("ldr r0, =board_stack_top\n\tmov sp, r0\n\tb met_a_fault");
}

/* The vector table: the initial stack pointer, then the handlers of a reset and of faults. */
__attribute__((section(".vectors"), used)) static const struct {
    void *stack;
    void (*handlers[15])(void);
} vectors = {board_stack_top, {reset, fault, fault, fault, fault, fault}};
