/*
 * Host names: looking up their addresses, and connecting by name. Floor: net.
 *
 *     bide_names *names;
 *     bide_names_create(&names, NULL);                     // threads of its own
 *
 *     bide_try(bide_connect_by_name(&self->connect, &self->socket, names, "example.org", 80));
 *
 *     bide_try(bide_resolve(&self->resolve, names, "example.org", 80));
 *     for (unsigned i = 0; i < self->resolve.count; i++)
 *         use(&self->resolve.addresses[i]);
 *
 *     bide_try(bide_resolve_records(&self->servers, names, "_ldap._tcp.example.org", BIDE_RECORD_SRV));
 *     bide_try(bide_resolve_reverse(&self->reverse, names, &peer));
 *
 * The system looks names up (getaddrinfo, with its files and resolvers), which blocks. So the calls
 * are made on threads of their own: a resolver that does not answer delays no file, and no loop. A
 * cancelled look-up ends at once; its call continues on its thread, and the answer is dropped.
 *
 * Alternatively c-ares looks names up on the loop, if the library was built with it: without threads,
 * and with any number of look-ups at once. Each has an epoll descriptor, whatever the loop's back end
 * is. It queries name servers and reads /etc/hosts, and ignores
 * other system configuration (nsswitch.conf: mDNS, LDAP and the like). Starting a look-up reads
 * /etc/hosts on the loop's thread, and the first also /etc/resolv.conf and the like. When that file
 * has changed, it is read again.
 *
 * Answers of c-ares are kept, in memory, for as long as the name servers say, and at most a day. That a
 * name has no address is kept too, for at most three hours, if its server says for how long. A look-up
 * that finds its answer there makes no system call and does not suspend. When the cache is full, the
 * least recently used name makes room. Nothing is kept of a look-up that
 * failed in another way or was cancelled, and nothing in a child of fork whose parent made the
 * bide_names. bide_names_forget is for a program that knows that the network has changed.
 *
 * On a test loop neither is asked: the world in memory answers, see bide_memory_io_set_host.
 *
 * Connecting tries the addresses one after the other, of both families in turn. Each has a quarter of
 * a second before the next one starts beside it; a failure starts the next at once. The first that
 * connects is used, and the others are closed (RFC 8305, "Happy Eyeballs").
 *
 * Why it is correct: src/net/names.c, src/net/connect_by_name.c.
 */
#ifndef BIDE_NAMES_H
#define BIDE_NAMES_H

#include "bide/address.h"
#include "bide/auto_event.h"
#include "bide/blocking.h"
#include "bide/deadline.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/scope.h"
#include "bide/sleep.h"
#include "bide/socket.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* A resolver of names. */
typedef struct bide_names bide_names;

/* By what. */
typedef enum bide_names_kind {
    BIDE_NAMES_SYSTEM, /* getaddrinfo, on threads */
    BIDE_NAMES_CARES,  /* c-ares, on the loop of each look-up's coroutine */
} bide_names_kind;

/* How it is made. All zero is a good beginning. */
typedef struct bide_names_options {
    unsigned threads; /* at most; 0: 4. So many names are looked up at once, and others wait. */
    bide_names_kind kind;

    /* of BIDE_NAMES_CARES alone */
    const char *servers; /* "1.2.3.4,[::1]:53"; copied; NULL: those of /etc/resolv.conf */
    unsigned timeout;    /* of a server's first try, in milliseconds; 0: what c-ares takes */
    unsigned tries;      /* of each server; 0: what c-ares takes */
    unsigned cached;     /* so many names are kept at most; 0: 256 */
    bool is_uncached;    /* no answer is kept */
} bide_names_options;

/*
 * Makes one; `options` may be NULL. Threads are started when they are needed. -ENOTSUP says that
 * c-ares is asked for, and the library was built without it.
 * Threads: any. Errors: -ENOMEM, -EINVAL (also: `servers` cannot be read, or has more than 511
 * bytes), -ENOTSUP, and those of bide_blocking_create_with. Progress: blocks.
 */
int bide_names_create(bide_names **names, const bide_names_options *options);

/*
 * Ends its threads, once the calls that they are in have returned, and frees it; NULL is left as it
 * is. Nobody waits for a look-up.
 * Threads: any, but not in a look-up's. Progress: blocks for as long as the system's calls.
 */
void bide_names_destroy(bide_names *names);

/*
 * Forgets all answers that are kept. Those of look-ups in flight are not kept either.
 * Threads: any. Progress: blocks for as long as another thread uses the cache; linear in what is kept.
 */
void bide_names_forget(bide_names *names);

/* A look-up has at most so many addresses; the system's first ones. */
enum { BIDE_RESOLVE_MAX = 16 };

/* The part that all look-ups have. Of the operation. */
typedef struct bide_resolving_ {
    bide_names *names;
    struct bide_resolve_request_ *request;
    struct bide_cares_resolve_ *cares;
    union {
        bide_event_waiter answer;
        bide_sleep sleep; /* under a test loop, for `delay` */
    } waits;
    uint64_t delay;
    int status;
} bide_resolving_;

/* One look-up. The caller's memory until it has ended; then what it found. */
typedef struct bide_resolve_operation {
    bide_task task;
    /* in the system's order, each once; by c-ares those of version 6 first, and at most 8 of each */
    bide_address addresses[BIDE_RESOLVE_MAX];
    unsigned count;

    /* of the operation */
    bide_resolving_ resolving;
    const char *host;
    uint16_t port;
    bide_auto_event *news; /* set when a family is answered; NULL: nobody wants to know */
    uint64_t answered_at;  /* when version 4 was */
    unsigned answered;     /* which versions were */
} bide_resolve_operation;

/* Which versions were answered: bits. Of the operation. */
enum { BIDE_ANSWERED_V4_ = 1, BIDE_ANSWERED_V6_ = 2 };

/*
 * Looks up the addresses of `host`, and gives them `port`. An IP address in digits needs no look-up
 * and is the result. `host` stays until it has ended. If the system has a search list, all addresses are
 * of the first name in it that has one of either family.
 * Threads: any. Errors: -ENOENT (there is no such name, or it has no address), -EAGAIN (no server
 * answers, or no thread is available; by the system also: all servers fail), -EREMOTEIO (a server
 * fails, or its answer is invalid), -EACCES (by c-ares: all servers refuse to answer), -EINVAL
 * (`host` is NULL, empty or longer than 253 bytes), -ENOMEM, other errors of the system, -ENOTSUP
 * (by c-ares, and the coroutine is not a loop's of the system; or on a test loop without input and
 * output); -ECANCELED, -ETIMEDOUT. Suspends: unless it is an IP address, or, by c-ares, in
 * /etc/hosts, or its answer is kept. Cancel-safe: yes. Progress: that of the system's call, on
 * another thread; by c-ares, that of the system's calls.
 */
BIDE_KEY_SCOPED(addresses);
BIDE_MUST_AWAIT
bide_awaiter *bide_resolve(bide_resolve_operation *operation, bide_names *names, const char *host,
                           uint16_t port);

/* The kind of records that a name has. */
typedef enum bide_record_kind {
    BIDE_RECORD_SRV = 1, /* the servers of a service, such as "_ldap._tcp.example.org" (RFC 2782) */
    BIDE_RECORD_TXT,     /* texts */
    BIDE_RECORD_PTR_,    /* names of an address. Of the operation: bide_resolve_reverse */
} bide_record_kind;

/* One record. */
typedef struct bide_name_record {
    const char
        *text;   /* SRV: the server; TXT: its strings, joined; of an address: a name. And a zero. */
    size_t size; /* of the text, without the zero. A TXT record may hold any bytes. */
    uint16_t priority, weight, port; /* of SRV */
} bide_name_record;

/* A look-up of records has at most so many, with texts of so many bytes. */
enum { BIDE_RECORDS_MAX = 32, BIDE_RECORDS_TEXT = 4096 };

/* One look-up. The caller's memory until it has ended; then what it found, while the memory stays. */
typedef struct bide_resolve_records_operation {
    bide_task task;
    bide_name_record records[BIDE_RECORDS_MAX];
    unsigned count;
    unsigned omitted; /* further records, for which there was no room */

    /* of the operation */
    bide_resolving_ resolving;
    const char *name;
    bide_record_kind kind;
    bide_address address;
    char reverse[80]; /* the name that the records of an address have */
    size_t used;      /* of `text` */
    char text[BIDE_RECORDS_TEXT];
} bide_resolve_records_operation;

/*
 * Looks up the records of `name`, which is not completed by a search list, and stays until the look-up
 * has ended. Records of SRV are sorted by priority, the lowest number first; choosing by weight is left
 * to the caller. The server "." means that the service is not offered. Answers are kept as addresses
 * are. Only BIDE_NAMES_CARES looks records up.
 * Threads: any. Errors: those of bide_resolve; also -EINVAL (`kind` is none of the above), -ENOTSUP
 * (by the system), -EREMOTEIO (a server's name is no host name). Suspends: unless the answer is kept.
 * Cancel-safe: yes. Progress: that of the system's calls. Source: RFC 1035, RFC 2782.
 */
BIDE_KEY_SCOPED(records);
BIDE_MUST_AWAIT
bide_awaiter *bide_resolve_records(bide_resolve_records_operation *operation, bide_names *names,
                                   const char *name, bide_record_kind kind);

/*
 * Looks up the names of an address, as texts of `records`: by the system (getnameinfo) at most one; by
 * c-ares all of the PTR records, without /etc/hosts. The operator of the address's zone chooses
 * these names: look up the addresses of a name before you trust it.
 * Threads: any. Errors: those of bide_resolve; -EINVAL: it is no IP address. Suspends: as
 * bide_resolve_records. Cancel-safe: yes. Progress: as bide_resolve.
 */
BIDE_KEY_SCOPED(records);
BIDE_MUST_AWAIT
bide_awaiter *bide_resolve_reverse(bide_resolve_records_operation *operation, bide_names *names,
                                   const bide_address *address);

/* One address that is tried. Of the operation. */
typedef struct bide_connect_attempt_ {
    bide_task task;
    bide_branch branch;
    struct bide_connect_any_operation *all;
    bide_io_operation connect;
    bide_descriptor socket;
    const bide_address *address;
    int status;
} bide_connect_attempt_;

/* The coroutine that begins the attempts. Of the operation. */
typedef struct bide_connect_pacer_ {
    bide_task task;
    bide_branch branch;
    struct bide_connect_any_operation *all;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
} bide_connect_pacer_;

/* The coroutine that awaits the look-up of a connection by name. Of the operation. */
typedef struct bide_connect_feeder_ {
    bide_task task;
    bide_branch branch;
    struct bide_connect_any_operation *all;
    bide_awaiter *awaiter;
    int status;
    bool has_ended;
} bide_connect_feeder_;

/* So many addresses are tried at most: the first ones, of both families in turn. */
enum { BIDE_CONNECT_MAX = 8 };

/* The caller's memory until it has ended. */
typedef struct bide_connect_any_operation {
    bide_task task;
    unsigned connected; /* if it has ended with 0: which of the addresses it was */

    /* of the operation */
    bide_descriptor *connection;
    const bide_address *addresses;
    unsigned count;
    uint64_t stagger;
    bide_connect_attempt_ attempts[BIDE_CONNECT_MAX];
    unsigned begun, failed;
    unsigned failed_before; /* when the last was begun */
    unsigned next[2];       /* from where on the first family is looked for, and the other */
    unsigned turn;          /* which of these two is next */
    int first_family;
    uint64_t begun_at;               /* when the last was begun */
    bide_resolve_operation *resolve; /* which finds the addresses; NULL: they are there */
    bide_connect_feeder_ feeder;
    bide_connect_attempt_ *winner;
    bide_connect_pacer_ pacer;
    bide_scope scope;
    bide_auto_event news;
} bide_connect_any_operation;

/* How long an attempt has before the next begins, in nanoseconds. */
#define BIDE_CONNECT_STAGGER UINT64_C(250000000)

/* How long addresses of version 4 wait for those of version 6, in nanoseconds. */
#define BIDE_CONNECT_RESOLUTION_DELAY UINT64_C(50000000)

/*
 * Connects to whichever of `count` addresses answers first. The first is tried first, and then one
 * of the other family, if there is one, and so on in turn; `stagger` nanoseconds after one has begun
 * the next does, or as soon as one has failed; 0: BIDE_CONNECT_STAGGER. The addresses stay where
 * they are until it has ended. `connection` is opened, and its struct must stay.
 * Threads: the loop's. Errors: -EINVAL (there are no addresses); if none can be connected to, that
 * of the address that was tried first; -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always.
 * Cancel-safe: yes, nothing is left open. Progress: that of the system's calls.
 * Source: RFC 8305, 4 and 5.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_connect_any(bide_connect_any_operation *operation, bide_descriptor *connection,
                               const bide_address *addresses, unsigned count, uint64_t stagger);

/* The caller's memory until it has ended. */
typedef struct bide_connect_by_name_operation {
    bide_task task;
    bide_resolve_operation resolve;
    bide_connect_any_operation connect;

    /* of the operation */
    bide_descriptor *connection;
    bide_names *names;
    const char *host;
    uint16_t port;
} bide_connect_by_name_operation;

/*
 * Looks `host` up, and connects to whichever of its addresses answers first. By c-ares it begins to
 * connect when the addresses of version 6 are known, or BIDE_CONNECT_RESOLUTION_DELAY after those of
 * version 4 are; addresses that are found later are tried too. When it has ended with 0,
 * operation->resolve has the addresses that were found by then, in the order in which they were
 * found, and operation->connect.connected says which it is.
 * Threads: the loop's. Errors: those of bide_resolve and bide_connect_any. Suspends: always.
 * Cancel-safe: yes, nothing is left open. Progress: that of the two. Source: RFC 8305, 3 to 5.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_connect_by_name(bide_connect_by_name_operation *operation,
                                   bide_descriptor *connection, bide_names *names, const char *host,
                                   uint16_t port);

BIDE_EXTERN_C_END

#endif
