#include "locations.h"

#include "execution.h"
#include "memory.h"

enum { MAP_SIZE = 4096, NOWHERE = UINT16_MAX };

static struct mapped {
    uintptr_t key;
    uint64_t run;
    unsigned location;
    uint64_t in_memory; /* what was there when the location was found or made */
} map[MAP_SIZE];
static uint64_t run;

void locations_begin_run(void)
{
    run++;
}

static struct mapped *find(uintptr_t key)
{
    uintptr_t hash = (key ^ key >> 61 ^ key >> 17) * 0x9e3779b97f4a7c15u >> 40;
    for (unsigned i = 0; i < MAP_SIZE; i++) {
        struct mapped *m = &map[(hash + i) % MAP_SIZE];
        if (m->run != run) {
            m->location = NOWHERE;
            return m;
        }
        if (m->key == key)
            return m;
    }
    execution_found(BIDE_CHECK_BAD_SCENARIO, "more than %d atomic objects", MAP_SIZE);
    return NULL;
}

static unsigned set(uintptr_t key, unsigned location, uint64_t in_memory)
{
    struct mapped *m = find(key);
    m->key = key;
    m->run = run;
    m->location = location;
    m->in_memory = in_memory;
    return location;
}

/* Addresses have their upper bits free, which keep the hidden locations apart. */
static uintptr_t key_of(uintptr_t address, hidden which)
{
    return address ^ (uintptr_t)which << 61;
}

/*
 * Another object that shares bytes with one of `size` at an address, but not its beginning. NULL:
 * there is none.
 */
static const location *overlapping(const graph *g, uintptr_t address, size_t size)
{
    for (uintptr_t begin = address - 7; begin != address + size; begin++) {
        unsigned found = begin != address ? find(key_of(begin, HIDDEN_NONE))->location : NOWHERE;
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
    const struct mapped *m = find(key);
    unsigned location = m->location;
    if (again != NULL && g->locations[again->location].address == key)
        location = set(key, again->location, in_memory);
    else if (location == NOWHERE ||
             (m->in_memory != in_memory && g->locations[location].size == size)) {
        const struct location *other = which == HIDDEN_NONE ? overlapping(g, address, size) : NULL;
        if (other != NULL)
            execution_found(BIDE_CHECK_BAD_SCENARIO,
                            "an atomic object of %zu bytes lies in another of %u", size,
                            other->size);
        location = set(key, graph_add_location(g, key, (unsigned)size, true, in_memory), in_memory);
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
    return set(
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
        unsigned location = find(key_of(begin, HIDDEN_NONE))->location;
        if (location != NOWHERE && begin + g->locations[location].size >= address + *size) {
            *size = g->locations[location].size;
            return begin;
        }
    }
    return address;
}

/* The newest of a location's stores that were run. */
static reference newest_run(const location *l)
{
    for (unsigned i = l->count; i-- > 0;) {
        if (execution_has_run(l->stores[i]))
            return l->stores[i];
    }
    return INITIAL;
}

void locations_settle(uintptr_t address, size_t size)
{
    const graph *g = the_checker.g;
    for (uintptr_t begin = address - 7; begin != address + size; begin++) {
        struct mapped *m = find(key_of(begin, HIDDEN_NONE));
        if (m->location == NOWHERE)
            continue;
        const location *l = &g->locations[m->location];
        reference newest = newest_run(l);
        if (begin + l->size <= address || (is_initial(newest) && !is_initial(l->stores[0])))
            continue;
        uint64_t value = value_of(g, l, newest);
        if (value == memory_value(begin, l->size))
            continue;
        memory_put(begin, l->size, value);
        m->in_memory = value;
    }
}

void locations_forget(uintptr_t address, size_t size)
{
    const graph *g = the_checker.g;
    for (uintptr_t begin = address - 7; begin != address + size; begin++) {
        uintptr_t key = key_of(begin, HIDDEN_NONE);
        unsigned location = find(key)->location;
        if (location != NOWHERE && begin + g->locations[location].size > address)
            set(key, NOWHERE, 0);
    }
}
