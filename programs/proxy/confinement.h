/* The confinement of the proxy. */
#ifndef PROXY_CONFINEMENT_H
#define PROXY_CONFINEMENT_H

#include "program.h"

/* Limits the files, with the first configuration as program->next, before any other thread exists. */
void confinement_limit_files(struct program *program);

/* The rest, when the program listens. (A reload may listen at other addresses, as its user.) */
void confinement_start(struct program *program);

#endif
