/* The state that both ways of looking up names share: names.c (getaddrinfo) and names_cares.c. */
#ifndef BIDE_SRC_IO_NAMES_H
#define BIDE_SRC_IO_NAMES_H

#include "bide/names.h"

#include "bide/event.h"

#include "names_cache.h"
#include "names_idle.h"

enum { NAMES_SERVERS_MAX = 512, NAMES_HOST_MAX = 253 };

struct bide_names {
    bide_blocking *blocking; /* NULL: the look-ups use c-ares */
    unsigned tries, timeout;
    char servers[NAMES_SERVERS_MAX]; /* empty: those of the system */

    /* of c-ares */
    names_cache *cache; /* NULL: nothing is kept */
    names_idle idle;    /* look-ups that have ended: names_cares.c, 7 */
};

/* A call on a thread, which the operation that waits for it shares: names.c. */
struct bide_resolve_request_ {
    bide_event done;
    bide_atomic(uint32_t) holders;
    int status;      /* this and the rest: the call's, then the operation's */
    bool is_reverse; /* `addresses` has one, and `host` is the result */
    unsigned count;
    bide_address addresses[BIDE_RESOLVE_MAX];
    char host[NAMES_HOST_MAX + 1];
};

/*
 * Starts a call: for a host, or, if that is NULL, for the name of an address. A negative errno: nothing was
 * started.
 */
int bide_names_request_start_(bide_names *names, const char *host, const bide_address *address,
                              struct bide_resolve_request_ **request);
void bide_names_request_release_(struct bide_resolve_request_ *request);

/*
 * A look-up's course: its start creates a request, a look-up by c-ares, or a delay, and sets the status. If it has to
 * wait, the coroutine awaits what bide_names_wait_ returns, and gives its status to bide_names_end_wait_. At the end
 * of the coroutine, or when it is destroyed, bide_names_resolving_end_ releases what the start created.
 */
void bide_names_resolving_init_(bide_resolving_ *resolving, bide_names *names);
bool bide_names_has_to_wait_(const bide_resolving_ *resolving);
bide_awaiter *bide_names_wait_(bide_resolving_ *resolving);
void bide_names_end_wait_(bide_resolving_ *resolving, int status);
void bide_names_resolving_end_(bide_resolving_ *resolving);

/* The number of a kind of records in messages. */
unsigned bide_names_record_type_(bide_record_kind kind);

/*
 * Adds a record, in the order of the operation, and copies its text; the text may be where the free part of
 * the operation's begins. Without room, it counts the record as omitted.
 */
void bide_names_add_record_(bide_resolve_records_operation *operation,
                            const bide_name_record *record);

/* Checks that c-ares is available and accepts the servers. 0 or a negative errno. */
int bide_names_cares_check_(const bide_names *names);

/* Destroys the channels that are idle. No look-up is in flight. */
void bide_names_cares_end_(bide_names *names);

/*
 * Creates a look-up that belongs to the operation, and that adds the addresses it finds to the
 * operation's. 0 or a negative errno. Destroying it at any time cancels it. If the answer is in the
 * cache, it is that of the operation, and no look-up is created.
 */
int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context);
int bide_names_cares_create_query_(bide_resolve_records_operation *operation,
                                   const bide_context *context);
bide_awaiter *bide_names_cares_run_(struct bide_cares_resolve_ *resolve);
void bide_names_cares_destroy_(struct bide_cares_resolve_ *resolve);

#endif
