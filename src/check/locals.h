/*
 * The end of life of local variables: an access to a function's frame that another thread makes after
 * the function has returned, or that nothing orders before the return, is a use after free. Only
 * functions that are compiled with -fsanitize=thread are known.
 */
#ifndef BIDE_CHECK_LOCALS_H
#define BIDE_CHECK_LOCALS_H

#include "execution.h"

/* Before each execution, for each thread. */
void locals_begin(unsigned thread);

/* A function of the running thread has begun; its frame begins at `frame`. */
void locals_enter(uintptr_t frame, const void *code, const void *caller);

/* The running thread does something else; its stack begins at this address, or above. */
extern uintptr_t locals_newest_[NOBODY + 1];
void locals_look_(uintptr_t stack_pointer, const void *code);

static inline void locals_look(uintptr_t stack_pointer, const void *code)
{
    if (locals_newest_[the_execution.running] < stack_pointer)
        locals_look_(stack_pointer, code);
}

/* The function of the running thread has returned. */
void locals_end(void);

/* An address on a stack, if it is one, is accessed. */
void locals_accessed(uintptr_t address);

#endif
