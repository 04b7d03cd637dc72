/* The budget of descriptors (descriptors.h) of the program's listeners and their connections. */
#ifndef PROXY_BUDGET_H
#define PROXY_BUDGET_H

#include "program.h"

/*
 * True if the limit has room for the configuration, and in a reload for the change to it beside the connections that
 * there are; otherwise the error is reported.
 */
bool budget_has_room(struct program *program, const struct configuration *configuration);

/* Divides the budget anew, for program->configuration, and limits the listeners. */
void budget_divide(struct program *program);

/* The same whenever spare descriptors are given back while the division is uneven. */
void budget_divide_again(struct descriptors *descriptors);

/* Reports listeners that get fewer connections than their max-connections. */
void budget_report(const struct program *program);

/* A connection of the listener has closed its descriptors. */
void budget_connection_ended(struct listener *listener);

#endif
