/*
 * Messages to whoever has subscribed to a channel, or to a pattern of channels. Nobody waits for a
 * slow subscriber: what it has not taken is kept for it up to a bound, and then it is cut off.
 */
#ifndef KV_PUBSUB_H
#define KV_PUBSUB_H

#include "table.h"

struct client;
struct channel;

struct pubsub {
    struct table channels;      /* by name: a struct channel * */
    struct table subscriptions; /* by client, kind and name: a struct subscription * */
    struct channel *patterns;   /* all of them */
    size_t pattern_count;
    uint64_t cut_off; /* clients */
};

void pubsub_init(struct pubsub *pubsub, const uint64_t key[2]);
void pubsub_free(struct pubsub *pubsub);

/* The client ends, or wants no more messages: it is subscribed to nothing. */
void pubsub_leave(struct client *client);

#endif
