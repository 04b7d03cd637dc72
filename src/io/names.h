/* What the two ways of looking names up share: see names.c and names_cares.c. */
#ifndef BIDE_SRC_IO_NAMES_H
#define BIDE_SRC_IO_NAMES_H

#include "bide/names.h"

enum { NAMES_SERVERS_MOST = 512 };

struct bide_names {
    bide_blocking *blocking; /* NULL: by c-ares */
    unsigned tries, timeout;
    char servers[NAMES_SERVERS_MOST]; /* "": the system's */
};

/* Is c-ares there, and these servers such that it takes them? 0, or a negative errno. */
int names_cares_check(const bide_names *names);

/*
 * Makes a look-up, which belongs to the operation: 0 or a negative errno. It adds what it finds to
 * the operation's addresses. To free it ends it, whatever it is doing.
 */
int names_cares_create(bide_look_up_operation *operation, const bide_context *context);
bide_awaiter *names_cares_run(struct bide_cares_look_up_ *look_up);
void names_cares_destroy(struct bide_cares_look_up_ *look_up);

#endif
