/* The memory of requests in progress. That of finished requests is kept for the next ones, up to a bound. */
#ifndef PROXY_SCRATCH_H
#define PROXY_SCRATCH_H

#include "forward.h"

/* Returns NULL if memory is exhausted. */
struct scratch *scratch_acquire(struct program *program);

void scratch_release(struct program *program, struct scratch *scratch);

/* Frees the list of unused ones. */
void scratch_free_all(struct program *program);

#endif
