/* The state that both ways of looking up names share: names.c (getaddrinfo) and names_cares.c. */
#ifndef BIDE_SRC_IO_NAMES_H
#define BIDE_SRC_IO_NAMES_H

#include "bide/names.h"

enum { NAMES_SERVERS_MAX = 512 };

struct bide_names {
    bide_blocking *blocking; /* NULL: the look-ups use c-ares */
    unsigned tries, timeout;
    char servers[NAMES_SERVERS_MAX]; /* empty: those of the system */
};

/* Checks that c-ares is available and accepts the servers. 0 or a negative errno. */
int bide_names_cares_check_(const bide_names *names);

/*
 * Creates a look-up that belongs to the operation, and that adds the addresses it finds to the
 * operation's. 0 or a negative errno. Destroying it at any time cancels it.
 */
int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context);
bide_awaiter *bide_names_cares_run_(struct bide_cares_resolve_ *resolve);
void bide_names_cares_destroy_(struct bide_cares_resolve_ *resolve);

#endif
