/* Statistics of the proxy, printed as one line on standard output. */
#ifndef PROXY_FIGURES_H
#define PROXY_FIGURES_H

#include "program.h"

/* The state of a server in a word: up, down, suspended or unknown. `now` is in the time of bide_now(). */
const char *statistics_state(const struct upstream *server, uint64_t now);

void statistics_print(const struct program *program);

#endif
