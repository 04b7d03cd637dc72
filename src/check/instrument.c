/*
 * The functions that the compiler calls in code that is compiled with -fsanitize=thread, in place of
 * ThreadSanitizer's library. They pass each plain access to the checker.
 */
#include "accesses.h"
#include "execution.h"
#include "locals.h"

#include <string.h>

static void plain_access(const volatile void *address, size_t size, access_kind kind,
                         const void *code, uintptr_t stack)
{
    if (!execution_is_running())
        return;
    locals_look(stack, code);
    accesses_add((uintptr_t)address, size, kind, NULL, code);
}

/* The caller: its code, and where its frame begins. */
#define CODE  __builtin_return_address(0)
#define STACK (uintptr_t) __builtin_dwarf_cfa()

#define ACCESS(name, size, kind)                  \
    void __tsan_##name##size(void *p);            \
    void __tsan_##name##size(void *p)             \
    {                                             \
        plain_access(p, size, kind, CODE, STACK); \
    }

#define ACCESSES(size)                                  \
    ACCESS(read, size, ACCESS_VALUE)                    \
    ACCESS(write, size, ACCESS_WRITE)                   \
    ACCESS(read_write, size, ACCESS_WRITE)              \
    ACCESS(volatile_read, size, ACCESS_VALUE)           \
    ACCESS(volatile_write, size, ACCESS_WRITE)          \
    ACCESS(unaligned_read, size, ACCESS_VALUE)          \
    ACCESS(unaligned_write, size, ACCESS_WRITE)         \
    ACCESS(unaligned_read_write, size, ACCESS_WRITE)    \
    ACCESS(unaligned_volatile_read, size, ACCESS_VALUE) \
    ACCESS(unaligned_volatile_write, size, ACCESS_WRITE)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_init(void);
void __tsan_func_entry(void *code);
void __tsan_func_exit(void *code);
void __tsan_read_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int byte, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *code)
{
    locals_enter(STACK, CODE, code);
}

void __tsan_func_exit(void *code)
{
    (void)code;
    if (execution_is_running())
        locals_look(STACK, CODE);
}

void __tsan_read_range(void *p, size_t size)
{
    plain_access(p, size, ACCESS_READ, CODE, STACK);
}

void __tsan_write_range(void *p, size_t size)
{
    plain_access(p, size, ACCESS_WRITE, CODE, STACK);
}

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    plain_access(from, size, ACCESS_READ, CODE, STACK);
    plain_access(to, size, ACCESS_WRITE, CODE, STACK);
    return memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size)
{
    plain_access(from, size, ACCESS_READ, CODE, STACK);
    plain_access(to, size, ACCESS_WRITE, CODE, STACK);
    return memmove(to, from, size);
}

void *__tsan_memset(void *to, int byte, size_t size)
{
    plain_access(to, size, ACCESS_WRITE, CODE, STACK);
    return memset(to, byte, size);
}
