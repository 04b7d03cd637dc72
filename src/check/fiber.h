/*
 * Fibers: the stacks on which the threads of a scenario run, one at a time, on one thread of the
 * system. A fiber is started, leaves, and is resumed. It may be started anew at any time, which
 * discards the contents of its stack. Each fiber has its own thread-local variables: those of the
 * program, and those of bide.
 */
#ifndef BIDE_CHECK_FIBER_H
#define BIDE_CHECK_FIBER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fiber {
    jmp_buf top;  /* in its main loop, waiting for a function to run */
    jmp_buf here; /* the point at which it left */
    void (*function)(void *argument);
    void *argument;
    char *thread_local;
    void *stack;
    size_t stack_size;
} fiber;

/* Where the thread-local variables are. */
enum { FIBER_REGIONS = 2 };
typedef struct fiber_region {
    char *begin;
    size_t size;
} fiber_region;
extern fiber_region fiber_regions[FIBER_REGIONS];

/* Makes a fiber on a stack that is provided by the caller. */
void fiber_create(fiber *f, void *stack, size_t stack_size);

/* Calls function(argument) on the fiber; returns when it leaves or the function returns. */
void fiber_start(fiber *f, void (*function)(void *argument), void *argument);

/* Continues from the point at which the fiber left. */
void fiber_resume(fiber *f);

/* Changes the size of an unused stack, whose upper end stays the same. */
void fiber_resize(fiber *f, void *stack, size_t stack_size);

/* On a fiber: returns to the caller of fiber_start() or fiber_resume(). */
void fiber_leave(void);

/* Leaves for good, also from a signal handler. The fiber can only be started anew. */
_Noreturn void fiber_abandon(void);

/*
 * A moment of a fiber: its stack, its registers and its thread-local variables. A zeroed one is empty.
 */
typedef struct fiber_moment {
    jmp_buf here;
    char *bytes;
    size_t size, capacity;
} fiber_moment;

/* False if fibers cannot be set back: AddressSanitizer would take their frames for others. */
bool fiber_can_be_set_back(void);

/*
 * On a fiber: saves this moment, and returns false. Returns once more, true, each time that the fiber
 * is set back to the moment, until the stack is used by something else.
 */
bool fiber_save(fiber_moment *moment) __attribute__((returns_twice));

/* On a fiber: continues at a moment that it saved. */
_Noreturn void fiber_set_back(const fiber_moment *moment);

#endif
