/* The argument: names_cache.h. */
#define _GNU_SOURCE
#include "names_cache.h"

#include "bide/compiler.h"
#include "bide/platform.h"

#include "../coroutine/short_lock.h"
#include "../system/fork.h"

#include <stdlib.h>
#include <string.h>

typedef struct names_entry names_entry;

struct names_entry {
    names_entry *next; /* of its chain */
    names_entry *newer, *older;
    uint64_t expires;
    uint32_t hash;
    unsigned kind;
    size_t length; /* of the name */
    size_t size;   /* of the answer */
    char host[];   /* the name, in lower case and with its zero, and then the answer */
};

struct names_cache {
    bide_short_lock_ lock;
    uint32_t generation; /* 4 */
    unsigned max, count;
    names_entry *newest, *oldest;
    uint64_t era; /* 3 */
    bool is_configured;
    names_configuration configuration; /* of the look-up that began last, if `is_configured` */
    uint32_t mask;                     /* of hashes */
    names_entry *chains[];
};

static char cache_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static uint32_t cache_hash(const char *host)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (; *host != '\0'; host++)
        hash = (hash ^ (uint8_t)cache_lower(*host)) * UINT32_C(16777619);
    return hash;
}

static bool cache_is_of(const names_entry *entry, unsigned kind, const char *host, size_t length,
                        uint32_t hash)
{
    if (entry->hash != hash || entry->length != length || entry->kind != kind)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (entry->host[i] != cache_lower(host[i]))
            return false;
    }
    return true;
}

names_cache *bide_names_cache_create_(unsigned max)
{
    uint32_t chains = 16;
    bide_assert(max != 0);
    while (chains < max && chains < UINT32_C(1) << 20)
        chains *= 2;
    names_cache *cache = malloc(sizeof *cache + chains * sizeof *cache->chains);
    if (cache == NULL)
        return NULL;
    memset(cache, 0, sizeof *cache + chains * sizeof *cache->chains);
    bide_short_lock_init_(&cache->lock);
    cache->generation = bide_generation_;
    cache->max = max;
    cache->mask = chains - 1;
    return cache;
}

/* ---- Under the lock ---- */

static names_entry **cache_place(names_cache *cache, unsigned kind, const char *host, size_t length,
                                 uint32_t hash)
{
    names_entry **place = &cache->chains[hash & cache->mask];
    while (*place != NULL && !cache_is_of(*place, kind, host, length, hash))
        place = &(*place)->next;
    return place;
}

static void cache_take_out(names_cache *cache, names_entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void cache_put_first(names_cache *cache, names_entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

/* Removes the entry at `place` of its chain, and returns it. */
static names_entry *cache_remove(names_cache *cache, names_entry **place)
{
    names_entry *entry = *place;
    bide_assert(cache->count != 0);
    *place = entry->next;
    cache_take_out(cache, entry);
    cache->count--;
    return entry;
}

static names_entry *cache_remove_oldest(names_cache *cache)
{
    names_entry *oldest = cache->oldest;
    return cache_remove(
        cache, cache_place(cache, oldest->kind, oldest->host, oldest->length, oldest->hash));
}

/* Removes all entries, and returns them as a chain: they are freed without the lock. */
static names_entry *cache_end_era(names_cache *cache)
{
    names_entry *removed = NULL;
    cache->era++;
    while (cache->count != 0) {
        names_entry *entry = cache_remove_oldest(cache);
        entry->next = removed;
        removed = entry;
    }
    return removed;
}

static bool cache_is_configured_as(const names_cache *cache,
                                   const names_configuration *configuration)
{
    const names_configuration *own = &cache->configuration;
    return cache->is_configured && own->changed.tv_sec == configuration->changed.tv_sec &&
           own->changed.tv_nsec == configuration->changed.tv_nsec &&
           own->size == configuration->size && own->number == configuration->number;
}

/* ---- Any thread ---- */

static void cache_free_chain(names_entry *entry)
{
    while (entry != NULL) {
        names_entry *next = entry->next;
        free(entry);
        entry = next;
    }
}

static bool cache_is_usable(const names_cache *cache)
{
    return cache != NULL && !bide_is_inherited_(cache->generation); /* 4 */
}

bool bide_names_cache_find_(names_cache *cache, unsigned kind, const char *host, uint64_t now,
                            void (*read)(void *argument, const uint8_t *data, size_t size),
                            void *argument)
{
    uint32_t hash = cache_hash(host);
    names_entry *expired = NULL;
    bool is_found = false;
    if (!cache_is_usable(cache))
        return false;
    bide_short_lock_take_(&cache->lock);
    names_entry **place = cache_place(cache, kind, host, strlen(host), hash);
    if (*place != NULL && (*place)->expires <= now) {
        expired = cache_remove(cache, place); /* 2 */
    } else if (*place != NULL) {
        cache_take_out(cache, *place);
        cache_put_first(cache, *place);
        read(argument, (const uint8_t *)(*place)->host + (*place)->length + 1, (*place)->size);
        is_found = true;
    }
    bide_short_lock_free_(&cache->lock);
    free(expired);
    return is_found;
}

static names_entry *cache_make_entry(unsigned kind, const char *host, uint64_t expires,
                                     const uint8_t *data, size_t size)
{
    size_t length = strlen(host);
    names_entry *entry = malloc(sizeof *entry + length + 1 + size);
    if (entry == NULL)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        entry->host[i] = cache_lower(host[i]);
    if (size != 0)
        memcpy(entry->host + length + 1, data, size);
    entry->hash = cache_hash(host);
    entry->kind = kind;
    entry->length = length;
    entry->size = size;
    entry->expires = expires;
    return entry;
}

uint64_t bide_names_cache_begin_(names_cache *cache, const names_configuration *configuration)
{
    names_entry *removed = NULL;
    if (!cache_is_usable(cache))
        return 0;
    bide_short_lock_take_(&cache->lock);
    if (!cache_is_configured_as(cache, configuration))
        removed = cache_end_era(cache); /* another search list may have other answers */
    cache->is_configured = true;
    cache->configuration = *configuration;
    uint64_t era = cache->era;
    bide_short_lock_free_(&cache->lock);
    cache_free_chain(removed);
    return era;
}

/* Adds an entry. Returns the one that has to be freed, or NULL. */
static names_entry *cache_add(names_cache *cache, names_entry *entry)
{
    names_entry *replaced = NULL;
    names_entry **place = cache_place(cache, entry->kind, entry->host, entry->length, entry->hash);
    if (*place != NULL)
        replaced = cache_remove(cache, place);
    else if (cache->count == cache->max)
        replaced = cache_remove_oldest(cache);
    place = &cache->chains[entry->hash & cache->mask];
    entry->next = *place;
    *place = entry;
    cache_put_first(cache, entry);
    cache->count++;
    bide_assert(cache->count <= cache->max); /* 1 */
    return replaced;
}

void bide_names_cache_keep_(names_cache *cache, uint64_t era, unsigned kind, const char *host,
                            uint64_t expires, const uint8_t *data, size_t size)
{
    names_entry *entry;
    if (!cache_is_usable(cache) ||
        (entry = cache_make_entry(kind, host, expires, data, size)) == NULL)
        return;
    bide_short_lock_take_(&cache->lock);
    names_entry *unused = cache->era == era ? cache_add(cache, entry) : entry; /* 3 */
    bide_short_lock_free_(&cache->lock);
    free(unused);
}

void bide_names_cache_clear_(names_cache *cache)
{
    if (!cache_is_usable(cache))
        return;
    bide_short_lock_take_(&cache->lock);
    names_entry *removed = cache_end_era(cache);
    bide_short_lock_free_(&cache->lock);
    cache_free_chain(removed);
}

void bide_names_cache_destroy_(names_cache *cache)
{
    while (cache_is_usable(cache) && cache->count != 0)
        free(cache_remove_oldest(cache));
    free(cache);
}
