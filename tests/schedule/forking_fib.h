/* The Fibonacci numbers, by a tree of coroutines that fork. */
#ifndef BIDE_TESTS_SCHEDULE_FORKING_FIB_H
#define BIDE_TESTS_SCHEDULE_FORKING_FIB_H

#include "bide/fork.h"

struct fib {
    bide_fork_task forking;
    unsigned n;
    uint64_t *result;
    uint64_t one, other;
};

bide_fork_coroutine(fib_body)
{
    bide_begin(fib_body, struct fib * self);
    *self->result = self->n;
    if (self->n < 2)
        bide_return(0);
    bide_await(bide_fork(self, struct fib, &fib_body, n = self->n - 1, result = &self->one));
    bide_try(bide_fork_call(self, struct fib, &fib_body, n = self->n - 2, result = &self->other));
    bide_try(bide_fork_join(self));
    *self->result = self->one + self->other;
    bide_end();
}

#endif
