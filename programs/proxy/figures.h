/*
 * What the proxy has done: one line of figures on standard output.
 */
#ifndef PROXY_FIGURES_H
#define PROXY_FIGURES_H

#include "program.h"

void figures_print(const struct program *program);

#endif
