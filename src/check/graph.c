/*
 * Graphs: adding, removing and copying events, and the modification orders.
 */
#include "graph.h"

#include "storage.h"

#include "bide/platform.h"

#include <string.h>

/* Free graphs, whose storage is reused. */
static graph *unused;

graph *graph_new(void)
{
    graph *g = unused;
    if (g == NULL) {
        unsigned capacity = 0;
        return grown(NULL, &capacity, 1, sizeof *g);
    }
    unused = g->next_free;
    for (unsigned t = 0; t < THREADS; t++)
        g->threads[t].count = 0;
    for (unsigned i = 0; i < g->locations_count; i++)
        g->locations[i].in_use = false;
    g->locations_count = 0;
    g->stamp = 0;
    return g;
}

void graph_free(graph *g)
{
    bide_assert(g != unused);
    g->next_free = unused;
    unused = g;
}

event *graph_add(graph *g, unsigned thread)
{
    thread_events *t = &g->threads[thread];
    t->events = grown(t->events, &t->capacity, t->count + 1, sizeof *t->events);
    event *e = &t->events[t->count++];
    memset(e, 0, sizeof *e);
    e->stamp = ++g->stamp;
    return e;
}

unsigned graph_add_location(graph *g, uintptr_t address, unsigned size, bool has_initial,
                            uint64_t initial)
{
    unsigned i = 0;
    while (i < g->locations_count && g->locations[i].in_use)
        i++;
    if (i == g->locations_count) {
        g->locations = grown(g->locations, &g->locations_capacity, i + 1, sizeof *g->locations);
        g->locations_count++;
    }
    location *l = &g->locations[i];
    l->address = address;
    l->size = (uint8_t)size;
    l->initial = initial;
    l->in_use = true;
    l->count = 0;
    if (has_initial) {
        l->stores = grown(l->stores, &l->capacity, 1, sizeof *l->stores);
        l->stores[l->count++] = INITIAL;
    }
    return i;
}

void graph_place(graph *g, reference store, unsigned position)
{
    location *l = &g->locations[event_at(g, store)->location];
    bide_assert(event_at(g, store)->kind == EVENT_STORE && l->in_use && position <= l->count);
    l->stores = grown(l->stores, &l->capacity, l->count + 1, sizeof *l->stores);
    for (unsigned i = l->count++; i > position; i--) {
        l->stores[i] = l->stores[i - 1];
        event_at(g, l->stores[i])->position = (uint16_t)i;
    }
    l->stores[position] = store;
    event_at(g, store)->position = (uint16_t)position;
}

/* Keeps the stores for which `is_kept` holds, and frees the locations that have none left. */
static void filter_stores(graph *g,
                          bool (*is_kept)(const graph *g, reference store, uint32_t limit),
                          uint32_t limit)
{
    for (unsigned i = 0; i < g->locations_count; i++) {
        location *l = &g->locations[i];
        if (!l->in_use)
            continue;
        unsigned kept = 0;
        for (unsigned j = 0; j < l->count; j++) {
            reference store = l->stores[j];
            if (!is_initial(store)) {
                if (!is_kept(g, store, limit))
                    continue;
                event_at(g, store)->position = (uint16_t)kept;
            }
            l->stores[kept++] = store;
        }
        l->count = kept;
        l->in_use = kept != 0;
    }
}

/*
 * Frees the locations that have only their initial value and are not used by an event: memory may
 * hold another value when they are used again.
 */
static void free_unused_locations(graph *g)
{
    for (unsigned i = 0; i < g->locations_count; i++)
        g->locations[i].is_used = false;
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned i = 0; i < g->threads[t].count; i++) {
            const event *e = &g->threads[t].events[i];
            if (e->kind <= EVENT_STORE)
                g->locations[e->location].is_used = true;
        }
    }
    for (unsigned i = 0; i < g->locations_count; i++)
        g->locations[i].in_use = g->locations[i].in_use && g->locations[i].is_used;
}

static bool is_old(const graph *g, reference store, uint32_t limit)
{
    return event_at(g, store)->stamp <= limit;
}

static bool is_there(const graph *g, reference store, uint32_t limit)
{
    (void)limit;
    return store.index < g->threads[store.thread].count;
}

void graph_displace(graph *g, reference store)
{
    location *l = &g->locations[event_at(g, store)->location];
    unsigned i = event_at(g, store)->position;
    if (i >= l->count || !same_reference(l->stores[i], store))
        return;
    for (l->count--; i < l->count; i++) {
        l->stores[i] = l->stores[i + 1];
        event_at(g, l->stores[i])->position = (uint16_t)i;
    }
}

void graph_cut(graph *g, uint32_t stamp)
{
    if (g->stamp == stamp)
        return;
    filter_stores(g, is_old, stamp);
    for (unsigned t = 0; t < THREADS; t++) {
        thread_events *thread = &g->threads[t];
        while (thread->count != 0 && thread->events[thread->count - 1].stamp > stamp)
            thread->count--;
    }
    g->stamp = stamp;
    free_unused_locations(g);
}

graph *graph_copy(const graph *g, const unsigned keep[THREADS])
{
    graph *copy = graph_new();
    for (unsigned t = 0; t < THREADS; t++) {
        thread_events *to = &copy->threads[t];
        to->events = grown(to->events, &to->capacity, keep[t], sizeof *to->events);
        if (keep[t] != 0)
            memcpy(to->events, g->threads[t].events, keep[t] * sizeof *to->events);
        to->count = keep[t];
    }
    for (unsigned i = 0; i < g->locations_count; i++) {
        const location *from = &g->locations[i];
        copy->locations =
            grown(copy->locations, &copy->locations_capacity, i + 1, sizeof *copy->locations);
        location *to = &copy->locations[i];
        to->address = from->address;
        to->size = from->size;
        to->initial = from->initial;
        to->in_use = from->in_use;
        to->count = 0;
        to->stores = grown(to->stores, &to->capacity, from->count, sizeof *to->stores);
        if (from->in_use) {
            memcpy(to->stores, from->stores, from->count * sizeof *to->stores);
            to->count = from->count;
        }
        copy->locations_count = i + 1;
    }
    copy->stamp = g->stamp;
    filter_stores(copy, is_there, 0);
    free_unused_locations(copy);
    return copy;
}

void clock_before(const graph *g, reference next, vector_clock *hb, vector_clock *porf)
{
    if (next.index > 0) {
        const event *before = &g->threads[next.thread].events[next.index - 1];
        *hb = before->hb;
        *porf = before->porf;
        return;
    }
    memset(hb, 0, sizeof *hb);
    for (unsigned t = 0; t < THREADS; t++) {
        if (t != next.thread && (t == SETUP || next.thread == LAST))
            hb->seen[t] = (uint16_t)g->threads[t].count;
    }
    *porf = *hb;
}

/* ---- Invariants: see graph.h ---- */

#if BIDE_DEBUG
static bool clock_includes(const vector_clock *clock, const vector_clock *other)
{
    for (int t = 0; t < THREADS; t++) {
        if (clock->seen[t] < other->seen[t])
            return false;
    }
    return true;
}

static void assert_load_consistent(const graph *g, const event *e)
{
    const location *l = &g->locations[e->location];
    bide_assert(is_initial(e->rf) || e->rf.index < g->threads[e->rf.thread].count);
    bide_assert(same_reference(l->stores[position_of(g, e->rf)], e->rf));
    bide_assert(e->value == value_of(g, l, e->rf));
    bide_assert(is_initial(e->rf) || clock_includes(&e->porf, &event_at(g, e->rf)->porf));
}

static void assert_store_consistent(const graph *g, reference self)
{
    const event *e = event_at(g, self);
    const location *l = &g->locations[e->location];
    bide_assert(e->position < l->count && same_reference(l->stores[e->position], self));
    if (!e->is_rmw)
        return;
    const event *load = e - 1;
    while (load->kind == EVENT_CHOICE) /* a wake chooses the threads that it wakes */
        load--;
    bide_assert(load->kind == EVENT_LOAD && load->is_rmw);
    bide_assert(load->location == e->location && same_reference(load->rf, e->rf));
    bide_assert(e->position > 0 && same_reference(l->stores[e->position - 1], e->rf));
}

static void assert_event_consistent(const graph *g, reference self)
{
    const event *e = event_at(g, self);
    bide_assert(e->stamp <= g->stamp && (self.index == 0 || e[-1].stamp < e->stamp));
    bide_assert(e->hb.seen[self.thread] == self.index + 1 &&
                e->porf.seen[self.thread] == self.index + 1);
    bide_assert(self.index == 0 ||
                (clock_includes(&e->hb, &e[-1].hb) && clock_includes(&e->porf, &e[-1].porf)));
    bide_assert(e->kind > EVENT_STORE || g->locations[e->location].in_use);
    if (e->kind == EVENT_LOAD)
        assert_load_consistent(g, e);
    else if (e->kind == EVENT_STORE)
        assert_store_consistent(g, self);
}

void graph_assert_consistent(const graph *g)
{
    unsigned stores = 0, placed = 0;
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned i = 0; i < g->threads[t].count; i++) {
            assert_event_consistent(g, (reference){(uint16_t)t, (uint16_t)i});
            stores += g->threads[t].events[i].kind == EVENT_STORE;
        }
    }
    for (unsigned i = 0; i < g->locations_count; i++) {
        const location *l = &g->locations[i];
        for (unsigned p = 0; l->in_use && p < l->count; p++) {
            bide_assert(p == 0 || !is_initial(l->stores[p]));
            placed += !is_initial(l->stores[p]);
        }
    }
    bide_assert(stores == placed);
}
#else
void graph_assert_consistent(const graph *g)
{
    (void)g;
}
#endif
