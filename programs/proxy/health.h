/*
 * What watches the servers of a configuration: a coroutine for each that is checked, or is known by
 * its name only, whose addresses it looks up.
 */
#ifndef PROXY_HEALTH_H
#define PROXY_HEALTH_H

#include "program.h"

/* Begins to watch, in program->watching; until configuration->checks is asked to stop. */
void health_begin(struct program *program, struct configuration *configuration);

#endif
