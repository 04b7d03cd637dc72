/* Statistics of the proxy, printed as one line on standard output. */
#ifndef PROXY_FIGURES_H
#define PROXY_FIGURES_H

#include "program.h"

void statistics_print(const struct program *program);

#endif
