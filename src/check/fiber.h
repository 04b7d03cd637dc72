/*
 * The stacks on which the threads of a scenario run: all on one thread of the system, one at a
 * time. A fiber is started, leaves, is resumed, and may be started anew at any time; what was on
 * its stack is then forgotten. Thread-local variables of what is compiled with BIDE_CHECK are each
 * fiber's own.
 */
#ifndef BIDE_CHECK_FIBER_H
#define BIDE_CHECK_FIBER_H

#include <setjmp.h>
#include <stddef.h>

typedef struct fiber {
    jmp_buf top;  /* where it waits for something to run */
    jmp_buf here; /* where it left */
    void (*function)(void *argument);
    void *argument;
    char *thread_local;
    void *stack;
    size_t stack_size;
} fiber;

/* Makes a fiber on a stack that stays where it is. */
void fiber_create(fiber *f, void *stack, size_t stack_size);

/* Calls function(argument) on the fiber; returns when it leaves or the function returns. */
void fiber_start(fiber *f, void (*function)(void *argument), void *argument);

/* Goes on where it left. */
void fiber_resume(fiber *f);

/* Its stack has another size from now on; the upper end is the same. Nothing is on it. */
void fiber_resize(fiber *f, void *stack, size_t stack_size);

/* On a fiber: back to what started or resumed it. */
void fiber_leave(void);

/* The same, for good, from anywhere: a signal handler, say. It can only be started anew. */
_Noreturn void fiber_abandon(void);

#endif
