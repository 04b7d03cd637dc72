/* Declarations that the commands on sorted sets share. */
#ifndef KV_SORTED_H
#define KV_SORTED_H

#include "commands.h"
#include "sorted_set.h"

static inline bool find_sorted_set(struct client *client, size_t i, struct entry **entry)
{
    return find_value(client, client_argument(client, i), VALUE_SORTED_SET, entry);
}

static inline bool find_sorted_to_read(struct client *client, size_t i, struct entry **entry)
{
    return find_to_read(client, client_argument(client, i), VALUE_SORTED_SET, entry);
}

static inline size_t sorted_count(const struct entry *set)
{
    return set != NULL ? collection_count(entry_collection(set)) : 0;
}

/* Starts an array of members, with their scores or without: with RESP3 each pair is an array of its own. */
void reply_members(struct client *client, size_t count, bool has_scores);

/* A member of such an array. */
void reply_ranked_member(struct client *client, const struct sorted_node *node, bool has_scores);

/* Removes `count` members, which are there, from a rank on, logs it and notifies of the event. */
void sorted_remove_range(struct client *client, struct bytes key, size_t first, size_t count,
                         const char *event);

#endif
