/*
 * The answers of name servers that are still valid, by name and kind.
 *
 *     table    chains of entries, by the hash of the name
 *     recent   all entries, the most recently used first
 *
 * Threads: any. Everything is accessed under the lock, which is held while an answer is read, and
 * for no call of the system.
 *
 * 1. An entry is in its chain and in `recent`, or in neither, and there are at most `max`.
 * 2. An entry that has expired is never found. It is freed when it is looked for or replaced, or
 *    when it is the least recently used one and the cache is full.
 * 3. Answers are of one era. It ends when all entries are removed: because the program asks for that, or
 *    because a look-up finds another configuration of the resolver than the one before it. A look-up
 *    notes the era when it starts to query servers. Its answer is kept only in that era.
 * 4. A cache that was created before a fork is not used in the child: the lock may be held there by a
 *    thread that the child does not have. The child's look-ups miss.
 */
#ifndef BIDE_SRC_NET_NAMES_CACHE_H
#define BIDE_SRC_NET_NAMES_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct names_cache names_cache;

/* Identifies a version of /etc/resolv.conf. */
typedef struct names_configuration {
    struct timespec changed;
    uint64_t size, number;
} names_configuration;

/* At most `max` entries, of at least 1. NULL: no memory. */
names_cache *bide_names_cache_create_(unsigned max);
void bide_names_cache_destroy_(names_cache *cache);

/*
 * Finds the answer of a kind for a name, and has `read` read its bytes, under the lock. False: there is
 * none.
 */
bool bide_names_cache_find_(names_cache *cache, unsigned kind, const char *host, uint64_t now,
                            void (*read)(void *argument, const uint8_t *data, size_t size),
                            void *argument);

/* A look-up will query servers in this configuration. Returns the era: 3. */
uint64_t bide_names_cache_begin_(names_cache *cache, const names_configuration *configuration);

/*
 * Keeps an answer, of any bytes, until the time `expires`. If there is no memory, or `era` has ended, it
 * is not kept.
 */
void bide_names_cache_keep_(names_cache *cache, uint64_t era, unsigned kind, const char *host,
                            uint64_t expires, const uint8_t *data, size_t size);

/* Removes all entries, and ends the era. */
void bide_names_cache_clear_(names_cache *cache);

#endif
