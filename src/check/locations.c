/*
 * A hash table from addresses to locations, which is emptied by the number of the run.
 */
#include "locations.h"

#include "execution.h"
#include "memory.h"

#include <limits.h>

enum { MAP_SIZE = 4096 };
#define NOWHERE UINT_MAX

static struct mapped_location {
    uintptr_t key;
    uint64_t run;
    unsigned location;
    uint64_t in_memory; /* the value in memory when the location was found or added */
} map[MAP_SIZE];
static uint64_t location_run;

void locations_begin_run(void)
{
    location_run++;
}

static struct mapped_location *find_mapped(uintptr_t key)
{
    uintptr_t hash = (key ^ key >> 61 ^ key >> 17) * 0x9e3779b97f4a7c15u >> 40;
    for (unsigned i = 0; i < MAP_SIZE; i++) {
        struct mapped_location *m = &map[(hash + i) % MAP_SIZE];
        if (m->run != location_run) {
            m->location = NOWHERE;
            return m;
        }
        if (m->key == key)
            return m;
    }
    execution_found(BIDE_CHECK_BAD_SCENARIO, "more than %d atomic objects", MAP_SIZE);
    return NULL;
}

static unsigned map_location(uintptr_t key, unsigned location, uint64_t in_memory)
{
    struct mapped_location *m = find_mapped(key);
    m->key = key;
    m->run = location_run;
    m->location = location;
    m->in_memory = in_memory;
    return location;
}

/* The upper bits of an address are unused; they distinguish the hidden objects. */
enum { HIDDEN_SHIFT = 61 };

static uintptr_t key_of(uintptr_t address, hidden which)
{
    return address ^ (uintptr_t)which << HIDDEN_SHIFT;
}

uintptr_t location_address(const graph *g, unsigned location)
{
    return g->locations[location].address & (((uintptr_t)1 << HIDDEN_SHIFT) - 1);
}

/*
 * Returns an object that overlaps the `size` bytes at an address and begins at another address, or
 * NULL.
 */
static const location *overlapping_object(const graph *g, uintptr_t address, size_t size)
{
    for (uintptr_t begin = address - 7; begin != address + size; begin++) {
        unsigned found =
            begin != address ? find_mapped(key_of(begin, HIDDEN_NONE))->location : NOWHERE;
        if (found != NOWHERE && begin + g->locations[found].size > address)
            return &g->locations[found];
    }
    return NULL;
}

bool location_is_at(const graph *g, unsigned location, uintptr_t address, hidden which)
{
    return g->locations[location].address == key_of(address, which);
}

unsigned location_for(graph *g, const event *again, uintptr_t address, size_t size, hidden which)
{
    uintptr_t key = key_of(address, which);
    uint64_t in_memory = which == HIDDEN_NONE ? memory_value(address, size) : 0;
    const struct mapped_location *m = find_mapped(key);
    unsigned location = m->location;
    if (again != NULL && g->locations[again->location].address == key)
        location = map_location(key, again->location, in_memory);
    else if (location == NOWHERE ||
             (m->in_memory != in_memory && g->locations[location].size == size)) {
        const struct location *other =
            which == HIDDEN_NONE ? overlapping_object(g, address, size) : NULL;
        if (other != NULL)
            execution_found(BIDE_CHECK_BAD_SCENARIO,
                            "an atomic object of %zu bytes overlaps another of %u", size,
                            other->size);
        location = map_location(key, graph_add_location(g, key, (unsigned)size, true, in_memory),
                                in_memory);
    }
    if (g->locations[location].size != size)
        execution_found(BIDE_CHECK_BAD_SCENARIO,
                        "an atomic object is accessed as %zu bytes and as %u bytes", size,
                        g->locations[location].size);
    return location;
}

unsigned location_anew(graph *g, const event *again, uintptr_t address, size_t size)
{
    uintptr_t key = key_of(address, HIDDEN_NONE);
    return map_location(
        key, again != NULL ? again->location : graph_add_location(g, key, (unsigned)size, false, 0),
        memory_value(address, size));
}

uintptr_t location_around(const graph *g, const event *again, uintptr_t address, size_t *size)
{
    if (again != NULL) {
        *size = g->locations[again->location].size;
        return g->locations[again->location].address;
    }
    for (uintptr_t begin = address; address - begin < 8; begin--) {
        unsigned location = find_mapped(key_of(begin, HIDDEN_NONE))->location;
        if (location != NOWHERE && begin + g->locations[location].size >= address + *size) {
            *size = g->locations[location].size;
            return begin;
        }
    }
    return address;
}

/* Returns the newest of a location's stores that were run. */
static reference newest_run_store(const location *l)
{
    for (unsigned i = l->count; i-- > 0;) {
        if (execution_has_run(l->stores[i]))
            return l->stores[i];
    }
    return INITIAL;
}

void locations_write_back(uintptr_t address, size_t size)
{
    const graph *g = the_checker.g;
    for (uintptr_t begin = address - 7; begin != address + size; begin++) {
        struct mapped_location *m = find_mapped(key_of(begin, HIDDEN_NONE));
        if (m->location == NOWHERE)
            continue;
        const location *l = &g->locations[m->location];
        reference newest = newest_run_store(l);
        if (begin + l->size <= address || (is_initial(newest) && !is_initial(l->stores[0])))
            continue;
        uint64_t value = value_of(g, l, newest);
        if (value == memory_value(begin, l->size))
            continue;
        memory_put(begin, l->size, value);
        m->in_memory = value;
    }
}

void locations_discard(uintptr_t address, size_t size)
{
    const graph *g = the_checker.g;
    for (uintptr_t begin = address - 7; begin != address + size; begin++) {
        uintptr_t key = key_of(begin, HIDDEN_NONE);
        unsigned location = find_mapped(key)->location;
        if (location != NOWHERE && begin + g->locations[location].size > address)
            map_location(key, NOWHERE, 0);
    }
}
