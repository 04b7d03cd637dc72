/* The relay of a connection that a response with 101 has upgraded to another protocol. */
#ifndef PROXY_UPGRADE_H
#define PROXY_UPGRADE_H

#include "forward.h"

/* Prepares self->scratch->relay, with the data that came behind the heads. Returns false if memory is exhausted. */
bool upgrade_prepare_relay(struct forward *self);

/* Counts what was relayed, and destroys the relay. */
void upgrade_finish_relay(struct forward *self);

#endif
