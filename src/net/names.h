/* What the two ways of looking names up share: see names.c and names_cares.c. */
#ifndef BIDE_SRC_IO_NAMES_H
#define BIDE_SRC_IO_NAMES_H

#include "bide/names.h"

enum { MAX_NAMES_SERVERS = 512 };

struct bide_names {
    bide_blocking *blocking; /* NULL: by c-ares */
    unsigned tries, timeout;
    char servers[MAX_NAMES_SERVERS]; /* "": the system's */
};

/* Is c-ares there, and these servers such that it takes them? 0, or a negative errno. */
int bide_names_cares_check_(const bide_names *names);

/*
 * Makes a look-up, which belongs to the operation: 0 or a negative errno. It adds what it finds to
 * the operation's addresses. To free it ends it, whatever it is doing.
 */
int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context);
bide_awaiter *bide_names_cares_run_(struct bide_cares_look_up_ *look_up);
void bide_names_cares_destroy_(struct bide_cares_look_up_ *look_up);

#endif
