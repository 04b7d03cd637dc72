/*
 * Messages to the subscribers of a channel or of a pattern of channels. Nobody waits for a slow
 * subscriber: messages are buffered for it up to a limit, and then it is disconnected.
 */
#ifndef KV_PUBSUB_H
#define KV_PUBSUB_H

#include "table.h"

struct client;
struct channel;

struct pubsub {
    struct table channels;      /* by name: a struct channel * */
    struct table subscriptions; /* by client, kind and name: a struct subscription * */
    struct table pattern_names; /* by pattern: a struct channel * */
    struct channel *patterns;   /* all patterns */
    size_t pattern_count;
    uint64_t cut_off; /* subscribers that were disconnected */
};

void pubsub_init(struct pubsub *pubsub, const uint64_t key[2]);
void pubsub_free(struct pubsub *pubsub);

/* Removes all subscriptions of the client. */
void pubsub_remove_client(struct client *client);

#endif
