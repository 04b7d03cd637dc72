/*
 * 1. Without seq_cst fences, the condition SC (consistency.h) is that an order of the seq_cst
 *    accesses has no cycle. x precedes y by program order; at one location by hb, by modification
 *    order or by from-read; or on a path elsewhere: an event after x in its thread happens before an
 *    event before y in its thread, and neither is at the same location as its neighbour x or y.
 * 2. Whether x precedes y depends on no event that is added after both. So a new event adds no pair
 *    of which it is not a part, and an event that is no seq_cst access adds none.
 * 3. Program order is part of the order. So the predecessors of an event, closed over the order, are
 *    a first part of the seq_cst accesses of each thread: a vector clock, `before`. It includes the
 *    event itself.
 * 4. The new event e follows, in each thread, the last access by one of the ways in 1, and its
 *    predecessors.
 * 5. No event follows e in its thread or happens after it. So e precedes only the stores that come
 *    later in its location's modification order.
 * 6. By 4 and 5, e closes a cycle if and only if its predecessors have such a store.
 * 7. If e is added, each access that has such a store among its predecessors has those of e, too. By
 *    3 these are the last accesses of each thread.
 *
 * A new event costs some binary searches, and 7. With seq_cst fences the whole graph is looked at.
 */
#include "sc_order.h"

#include "consistency.h"
#include "storage.h"

#include "bide/platform.h"

#include <string.h>

/* Some events of one thread, by their indices, in program order. */
typedef struct index_list {
    uint16_t *indices;
    unsigned count, capacity;
} index_list;

/* The seq_cst accesses of a location, and the stores among them, by thread. */
typedef struct sc_location {
    index_list accesses[THREADS], stores[THREADS];
} sc_location;

/* The last event of a kind in a thread, and the last one at another location than that. */
typedef struct last_two {
    unsigned end, other_end;  /* 1 + their indices; 0: none */
    uint16_t location, other; /* of the last one */
} last_two;

typedef struct sc_thread {
    vector_clock *before; /* of seq_cst accesses */
    uint16_t *reaching; /* of each event: 1 + the last access with an event elsewhere up to here */
    unsigned before_capacity, reaching_capacity;
    index_list accesses;
    last_two last_access; /* seq_cst */
    last_two last_event;  /* that orders */
} sc_thread;

static sc_thread sc_threads[THREADS];
static sc_location *sc_locations;
static unsigned sc_locations_count, sc_locations_capacity;
static bool has_sc_fence;
uint64_t sc_order_looks;

void sc_order_begin(void)
{
    for (unsigned t = 0; t < THREADS; t++) {
        sc_threads[t].accesses.count = 0;
        memset(&sc_threads[t].last_access, 0, sizeof(last_two));
        memset(&sc_threads[t].last_event, 0, sizeof(last_two));
    }
    for (unsigned i = 0; i < sc_locations_count; i++) {
        for (unsigned t = 0; t < THREADS; t++)
            sc_locations[i].accesses[t].count = sc_locations[i].stores[t].count = 0;
    }
    has_sc_fence = false;
}

static void add_index(index_list *list, unsigned index)
{
    list->indices = grown(list->indices, &list->capacity, list->count + 1, sizeof *list->indices);
    list->indices[list->count++] = (uint16_t)index;
}

static bool is_of_scenario(unsigned thread)
{
    return thread != SETUP && thread != LAST;
}

static bool is_sc_access(const event *e)
{
    return e->kind <= EVENT_STORE && !e->op.is_silent && e->order >= bide_check_seq_cst_;
}

/* 1 + the index of the last one that is not at this location. */
static unsigned end_elsewhere(const last_two *last, unsigned location)
{
    return last->end != 0 && last->location == location ? last->other_end : last->end;
}

static void note_last(last_two *last, unsigned index, unsigned location)
{
    if (last->end == 0 || last->location != location) {
        last->other_end = last->end;
        last->location = (uint16_t)location;
    }
    last->end = index + 1;
}

/* The place of an access in its location's modification order: a load has that of its store. */
static unsigned place_of(const graph *g, const event *e)
{
    return e->kind == EVENT_STORE ? e->position : position_of(g, e->rf);
}

/* True if x, an access of the same location, precedes e by hb, modification order or from-read. */
static bool precedes_here(const graph *g, reference x, const event *e)
{
    sc_order_looks++;
    return clock_has(&e->hb, x) ||
           (e->kind == EVENT_STORE && place_of(g, event_at(g, x)) < e->position);
}

/* 1 + the index of the last access of a thread that precedes e at its location; 0: none. */
static unsigned last_here(const graph *g, unsigned thread, const event *e)
{
    const index_list *list = &sc_locations[e->location].accesses[thread];
    unsigned low = 0, high = list->count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (precedes_here(g, (reference){(uint16_t)thread, list->indices[middle]}, e))
            low = middle + 1;
        else
            high = middle;
    }
    return low != 0 ? list->indices[low - 1] + 1u : 0;
}

/* The first store of a thread that e precedes; false: none. */
static bool first_after(const graph *g, unsigned thread, const event *e, reference *store)
{
    const index_list *list = &sc_locations[e->location].stores[thread];
    unsigned low = 0, high = list->count, place = place_of(g, e);
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        sc_order_looks++;
        if (g->threads[thread].events[list->indices[middle]].position <= place)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == list->count)
        return false;
    *store = (reference){(uint16_t)thread, list->indices[low]};
    return true;
}

/* The predecessors of a seq_cst access: see 4. */
static vector_clock predecessors(const graph *g, reference self)
{
    const event *e = event_at(g, self);
    const thread_events *own = &g->threads[self.thread];
    unsigned elsewhere = end_elsewhere(&sc_threads[self.thread].last_event, e->location);
    vector_clock all = {{0}};
    for (unsigned t = 1; t < LAST; t++) {
        unsigned end = 0, seen = elsewhere != 0 ? own->events[elsewhere - 1].hb.seen[t] : 0;
        if (t == self.thread) {
            end = sc_threads[t].last_access.end;
        } else {
            end = last_here(g, t, e);
            if (seen != 0 && sc_threads[t].reaching[seen - 1] > end)
                end = sc_threads[t].reaching[seen - 1];
        }
        if (end > all.seen[t])
            clock_join(&all, &sc_threads[t].before[end - 1]);
    }
    return all;
}

static void want_location(unsigned location)
{
    sc_locations = grown(sc_locations, &sc_locations_capacity, location + 1, sizeof *sc_locations);
    if (sc_locations_count <= location)
        sc_locations_count = location + 1;
}

/* The stores that e precedes: the first one of each thread. Returns their number. */
static unsigned successors(const graph *g, reference self, reference stores[THREADS])
{
    unsigned count = 0;
    for (unsigned t = 1; t < LAST; t++)
        count += t != self.thread && first_after(g, t, event_at(g, self), &stores[count]);
    return count;
}

static bool has_one(const vector_clock *clock, const reference *stores, unsigned count)
{
    sc_order_looks++;
    for (unsigned i = 0; i < count; i++) {
        if (clock_has(clock, stores[i]))
            return true;
    }
    return false;
}

static bool closes_cycle(const graph *g, reference self)
{
    const event *e = event_at(g, self);
    reference stores[THREADS];
    if (!is_of_scenario(self.thread) || !is_sc_access(e))
        return false;
    want_location(e->location);
    vector_clock all = predecessors(g, self);
    return has_one(&all, stores, successors(g, self, stores));
}

bool sc_order_allows(const graph *g, reference self)
{
    enum { SMALL = 64 };
    if (has_sc_fence) {
        sc_order_looks += (uint64_t)g->stamp * g->stamp;
        return is_sc_consistent(g);
    }
    bool is_allowed = !closes_cycle(g, self);
    bide_assert(g->stamp > SMALL || is_allowed == is_sc_consistent(g));
    return is_allowed;
}

static void add_access(const graph *g, reference self)
{
    const event *e = event_at(g, self);
    sc_thread *own = &sc_threads[self.thread];
    reference stores[THREADS];
    want_location(e->location);
    vector_clock all = predecessors(g, self);
    unsigned count = successors(g, self, stores);
    all.seen[self.thread] = (uint16_t)(self.index + 1);
    for (unsigned t = 1; t < LAST && count != 0; t++) {
        const index_list *accesses = &sc_threads[t].accesses;
        for (unsigned i = accesses->count; i-- > 0;) {
            vector_clock *before = &sc_threads[t].before[accesses->indices[i]];
            if (!has_one(before, stores, count))
                break;
            clock_join(before, &all);
        }
    }
    own->before = grown(own->before, &own->before_capacity, self.index + 1u, sizeof *own->before);
    own->before[self.index] = all;
    add_index(&own->accesses, self.index);
    add_index(&sc_locations[e->location].accesses[self.thread], self.index);
    if (e->kind == EVENT_STORE)
        add_index(&sc_locations[e->location].stores[self.thread], self.index);
    note_last(&own->last_access, self.index, e->location);
}

void sc_order_add(const graph *g, reference self)
{
    const event *e = event_at(g, self);
    sc_thread *own = &sc_threads[self.thread];
    if (!is_of_scenario(self.thread) || has_sc_fence)
        return;
    bool orders = event_orders(e);
    unsigned reaching = self.index != 0 ? own->reaching[self.index - 1] : 0;
    if (orders && end_elsewhere(&own->last_access, e->location) > reaching)
        reaching = end_elsewhere(&own->last_access, e->location);
    own->reaching =
        grown(own->reaching, &own->reaching_capacity, self.index + 1u, sizeof *own->reaching);
    own->reaching[self.index] = (uint16_t)reaching;
    has_sc_fence = e->kind == EVENT_FENCE && e->order >= bide_check_seq_cst_;
    if (is_sc_access(e))
        add_access(g, self);
    if (orders)
        note_last(&own->last_event, self.index, e->location);
}
