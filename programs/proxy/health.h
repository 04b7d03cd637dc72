/*
 * Health checks and name resolution: a coroutine for each server that is checked or whose address
 * is a name.
 */
#ifndef PROXY_HEALTH_H
#define PROXY_HEALTH_H

#include "program.h"

/* Starts the coroutines in program->watching. They run until configuration->checks is stopped. */
void health_start(struct program *program, struct configuration *configuration);

/*
 * Whether the backend can be checked as it is written. Errors: -ENOTSUP (`check http`, and the library has no llhttp),
 * -EINVAL (its path or a host is not valid in a request), -EMSGSIZE.
 */
int health_verify(const struct backend *backend);

#endif
