/*
 * Transactions: the requests between MULTI and EXEC are queued and then run in one step, so no
 * other client sees a state between them. Their records are in one group of the append-only file,
 * so all or none of them are there after a crash.
 *
 * WATCH remembers keys. If one of them changes before EXEC, EXEC runs nothing.
 *
 *     idle      --MULTI-->           open       --EXEC, DISCARD-->    idle
 *     open      --a wrong request--> rejected   --EXEC, DISCARD-->    idle
 *
 * All of it runs on the loop's thread.
 */
#ifndef KV_TRANSACTION_H
#define KV_TRANSACTION_H

#include "table.h"

struct client;
struct command;

enum {
    TRANSACTION_MAX_REQUESTS = 65536,
    TRANSACTION_MAX_WORK = 1 << 20,   /* of EXEC; after that, only changes are made */
    TRANSACTION_MAX_WATCHED = 1 << 20 /* bytes of the watched keys of a client */
};

/* A client's transaction. All zero is none. */
struct transaction {
    bool is_open;                /* MULTI has been sent */
    bool is_rejected;            /* a request could not be queued */
    bool changes;                /* a queued request may change keys */
    bool grows;                  /* a queued request may need memory */
    bool publishes;              /* a queued request is PUBLISH */
    bool is_running;             /* EXEC runs the requests */
    size_t count, max_arguments; /* of the queued requests */
    struct buffer requests;
    struct buffer watches; /* each a struct watch and the key; transaction.c */
};

/* The keys that clients watch. Each has a version, which its changes increase. */
struct watching {
    struct table keys;
    uint64_t flushes; /* of all keys */
};

void watching_init(struct watching *watching, const uint64_t key[2]);
void watching_free(struct watching *watching);

/* Increases the key's version, if it is watched. */
void watching_touch(struct watching *watching, struct bytes key);

/* Queues the client's request, which has been checked, and replies. */
void transaction_queue(struct client *client, const struct command *command);

/* Ends the transaction without running it, and watches no more keys. */
void transaction_clear(struct client *client);

#endif
