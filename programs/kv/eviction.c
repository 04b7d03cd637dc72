/* Choosing keys to be evicted. eviction.h has the model. */
#include "eviction.h"

#include <strings.h>

const char *const eviction_names[EVICTION_POLICIES] = {
    "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
    "allkeys-lru",  "allkeys-lfu",  "allkeys-random",  "noeviction"};

bool eviction_read(struct bytes name, enum eviction *policy)
{
    for (size_t i = 0; i < EVICTION_POLICIES; i++) {
        if (name.size == strlen(eviction_names[i]) &&
            strncasecmp(name.data, eviction_names[i], name.size) == 0) {
            *policy = (enum eviction)i;
            return true;
        }
    }
    return false;
}

/* The larger, the sooner the key is evicted. */
static int64_t idleness_of(const struct keyspace *keyspace, const struct entry *entry)
{
    return keyspace->uses.are_counted ? USES_MAX - (int64_t)keyspace_frequency(keyspace, entry)
                                      : keyspace_idle_time(keyspace, entry);
}

/* The entry that was used last at the earliest time, or is used most rarely; NULL if there are none. */
static struct entry *idlest(const struct keyspace *keyspace, struct entry *const *entries,
                            size_t count)
{
    struct entry *found = NULL;
    int64_t max = -1;
    for (size_t i = 0; i < count; i++) {
        int64_t idleness = idleness_of(keyspace, entries[i]);
        if (idleness > max) {
            max = idleness;
            found = entries[i];
        }
    }
    return found;
}

struct entry *eviction_choose(const struct keyspace *keyspace, enum eviction policy,
                              uint64_t (*draw)(void *argument), void *argument, uint64_t *steps)
{
    const struct keys *keys = &keyspace->keys;
    struct entry *entries[EVICTION_SAMPLES];
    size_t samples = 0;
    ++*steps;
    switch (policy) {
    case EVICTION_VOLATILE_LRU:
    case EVICTION_VOLATILE_LFU:
        for (; samples < EVICTION_SAMPLES && keys->expiry_count > 0; ++*steps)
            entries[samples++] = keys->expiries[draw(argument) % keys->expiry_count].entry;
        return idlest(keyspace, entries, samples);
    case EVICTION_VOLATILE_RANDOM:
        return keys->expiry_count > 0 ? keys->expiries[draw(argument) % keys->expiry_count].entry
                                      : NULL;
    case EVICTION_VOLATILE_TTL:
        return keys->expiry_count > 0 ? keys->expiries[0].entry : NULL;
    case EVICTION_ALL_LRU:
    case EVICTION_ALL_LFU:
        samples = table_sample(&keys->table, draw(argument), entries, EVICTION_SAMPLES, steps);
        return idlest(keyspace, entries, samples);
    case EVICTION_ALL_RANDOM:
        return table_draw(&keys->table, draw, argument, steps);
    default:
        return NULL;
    }
}
