/* The budget of descriptors (descriptors.h) of the program's listeners and their connections. */
#ifndef PROXY_BUDGET_H
#define PROXY_BUDGET_H

#include "program.h"

/* True if the limit has room for the configuration; otherwise the error is reported. */
bool budget_has_room(const struct program *program, const struct configuration *configuration);

/* Divides the budget anew, for program->configuration, and limits the listeners. */
void budget_divide(struct program *program);

/* Reports listeners that get fewer connections than their max-connections. */
void budget_report(const struct program *program);

/* A connection of the listener begins, and ends. */
void budget_connection_started(struct listener *listener);
void budget_connection_ended(struct listener *listener);

#endif
