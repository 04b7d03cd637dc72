/*
 * RC11's conditions on a graph, as consistency.h lists them. SC is checked as the absence of a cycle,
 * in two ways: from the clocks alone if no seq_cst fence occurs, which is quick, and otherwise on
 * relations that are built from the graph.
 */
#include "consistency.h"

#include "storage.h"

#include <string.h>

unsigned newest_known(const graph *g, unsigned location, const vector_clock *clock)
{
    unsigned newest = 0;
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned i = clock->seen[t]; i-- > 0;) {
            const event *e = &g->threads[t].events[i];
            if (e->kind > EVENT_STORE || e->location != location)
                continue;
            /* Coherence within the thread: its earlier events know of no newer store. */
            unsigned position = e->kind == EVENT_STORE ? e->position : position_of(g, e->rf);
            if (position > newest)
                newest = position;
            break;
        }
    }
    return newest;
}

/*
 * Relations among the events of the scenario's threads, as rows of bits: row y holds the events x
 * with (x, y) in the relation. Events of the set-up come before everything and those of the final
 * check after, so no cycle goes through them.
 */
typedef uint64_t word;

typedef struct relations {
    size_t count; /* the number of events */
    size_t words; /* of a row */
    const event **events;
    unsigned *thread_begin; /* for each event, the first of its thread */
    word *hb;
    word *sb_elsewhere; /* program order between what orders, but not accesses of one location */
    word *scb;
} relations;

static bool row_has(const word *row, size_t i)
{
    return row[i / 64] >> (i % 64) & 1;
}

static void row_add(word *row, size_t i)
{
    row[i / 64] |= (word)1 << (i % 64);
}

static void row_add_all(word *row, const word *other, size_t words)
{
    for (size_t i = 0; i < words; i++)
        row[i] |= other[i];
}

static bool rows_intersect(const word *a, const word *b, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        if ((a[i] & b[i]) != 0)
            return true;
    }
    return false;
}

/* An access that orders the events before and after it. */
static bool is_ordering_access(const event *e)
{
    return e->kind <= EVENT_STORE && !e->op.is_silent;
}

/* A fence that orders the events before and after it on its own; a light one needs a heavy one. */
static bool is_ordering_fence(const event *e)
{
    return e->kind == EVENT_FENCE && e->order != bide_check_relaxed_ &&
           e->order != bide_check_light_;
}

static bool is_sc_fence(const event *e)
{
    return e->kind == EVENT_FENCE && e->order >= bide_check_seq_cst_;
}

/* An edge of the SC order counts for a light fence only if its other end is a heavy fence. */
static bool order_counts(const event *x, const event *y)
{
    return (x->order != bide_check_light_ || y->order == bide_check_heavy_) &&
           (y->order != bide_check_light_ || x->order == bide_check_heavy_);
}

/* Extended coherence order of two accesses of one location: mo, reads-from and from-read. */
static bool is_eco(const graph *g, const event *x, const event *y)
{
    unsigned from = x->kind == EVENT_STORE ? x->position : position_of(g, x->rf);
    unsigned to = y->kind == EVENT_STORE ? y->position : position_of(g, y->rf);
    return from < to || (from == to && x->kind == EVENT_STORE && y->kind == EVENT_LOAD);
}

bool event_orders(const event *e)
{
    return is_ordering_access(e) || is_ordering_fence(e);
}

/* True if both events order, and they are not accesses of one location. */
static bool are_elsewhere(const event *x, const event *y)
{
    if (!is_ordering_access(x) || !is_ordering_access(y))
        return event_orders(x) && event_orders(y);
    return x->location != y->location;
}

/* mo and from-read: the edges of eco that end in a store. */
static bool mo_or_fr(const graph *g, const event *x, const event *y)
{
    return y->kind == EVENT_STORE && is_eco(g, x, y);
}

static void build_relations(relations *r, const graph *g)
{
    size_t n = r->count, words = r->words;
    const event **events = r->events;
    unsigned begin[THREADS];
    unsigned next = 0;
    for (unsigned t = 1; t < LAST; t++) {
        begin[t] = next;
        for (unsigned i = 0; i < g->threads[t].count; i++) {
            r->thread_begin[next] = begin[t];
            events[next++] = &g->threads[t].events[i];
        }
    }
    for (size_t y = 0; y < n; y++) {
        word *hb = &r->hb[y * words];
        for (unsigned t = 1; t < LAST; t++) {
            for (unsigned i = 0; i < events[y]->hb.seen[t]; i++)
                row_add(hb, begin[t] + i);
        }
        hb[y / 64] &= ~((word)1 << (y % 64));
        for (size_t x = r->thread_begin[y]; x < y; x++) {
            if (are_elsewhere(events[x], events[y]))
                row_add(&r->sb_elsewhere[y * words], x);
        }
    }
    /* scb = sb, and sb_elsewhere hb sb_elsewhere, and hb at one location, mo, fr */
    word *middle = scratch(n * words * sizeof *middle);
    for (size_t y = 0; y < n; y++) {
        for (size_t x = 0; x < n; x++) {
            if (row_has(&r->hb[y * words], x))
                row_add_all(&middle[y * words], &r->sb_elsewhere[x * words], words);
        }
    }
    for (size_t y = 0; y < n; y++) {
        word *scb = &r->scb[y * words];
        for (size_t x = 0; x < n; x++) {
            if (x >= r->thread_begin[y] && x < y)
                row_add(scb, x);
            if (row_has(&r->sb_elsewhere[y * words], x))
                row_add_all(scb, &middle[x * words], words);
            if (x != y && is_ordering_access(events[x]) && is_ordering_access(events[y]) &&
                events[x]->location == events[y]->location &&
                (row_has(&r->hb[y * words], x) || mo_or_fr(g, events[x], events[y])))
                row_add(scb, x);
        }
    }
}

/* The events in which a path to a seq_cst event may end: itself, and for a fence, those before it. */
static void ends_of(const relations *r, size_t y, word *ends)
{
    memset(ends, 0, r->words * sizeof *ends);
    if (is_sc_fence(r->events[y]))
        row_add_all(ends, &r->hb[y * r->words], r->words);
    row_add(ends, y);
}

/* The events in which a path from a seq_cst event may begin: itself, and for a fence, those after it. */
static void beginnings_of(const relations *r, size_t x, word *beginnings)
{
    memset(beginnings, 0, r->words * sizeof *beginnings);
    row_add(beginnings, x);
    if (!is_sc_fence(r->events[x]))
        return;
    for (size_t y = 0; y < r->count; y++) {
        if (row_has(&r->hb[y * r->words], x))
            row_add(beginnings, y);
    }
}

/* psc of two fences: hb, or hb eco hb. */
static bool fences_ordered(const relations *r, const graph *g, size_t f1, size_t f2,
                           const word *after_f1)
{
    const word *before_f2 = &r->hb[f2 * r->words];
    if (row_has(before_f2, f1))
        return true;
    for (size_t x = 0; x < r->count; x++) {
        if (!row_has(after_f1, x) || !is_ordering_access(r->events[x]))
            continue;
        for (size_t y = 0; y < r->count; y++) {
            if (x != y && row_has(before_f2, y) && is_ordering_access(r->events[y]) &&
                r->events[x]->location == r->events[y]->location &&
                is_eco(g, r->events[x], r->events[y]))
                return true;
        }
    }
    return false;
}

/* Topological sort: removes nodes without a remaining predecessor, until none is left. */
static bool is_acyclic(const bool *edges, size_t n, bool *taken)
{
    for (size_t left = n; left > 0;) {
        size_t before = left;
        for (size_t y = 0; y < n; y++) {
            bool is_first = !taken[y];
            for (unsigned x = 0; x < n && is_first; x++)
                is_first = taken[x] || !edges[x * n + y];
            if (is_first) {
                taken[y] = true;
                left--;
            }
        }
        if (left == before)
            return false;
    }
    return true;
}

/* With fences, which order the events that happen before and after them. */
static bool is_acyclic_with_fences(const graph *g, size_t n, size_t sc_count)
{
    relations r = {.count = n, .words = (n + 63) / 64};
    size_t rows = n * r.words * sizeof(word);
    r.events = scratch(n * sizeof(const event *));
    r.thread_begin = scratch(n * sizeof *r.thread_begin);
    r.hb = scratch(rows);
    r.sb_elsewhere = scratch(rows);
    r.scb = scratch(rows);
    build_relations(&r, g);

    size_t *sc = scratch(sc_count * sizeof *sc);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (r.events[i]->order >= bide_check_seq_cst_)
            sc[m++] = i;
    }
    bool *edges = scratch(m * m * sizeof *edges);
    word *beginnings = scratch(r.words * sizeof *beginnings);
    word *ends = scratch(r.words * sizeof *ends);
    for (size_t a = 0; a < m; a++) {
        beginnings_of(&r, sc[a], beginnings);
        for (size_t b = 0; b < m; b++) {
            bool edge = false;
            ends_of(&r, sc[b], ends);
            for (unsigned y = 0; y < n && !edge; y++)
                edge = row_has(ends, y) && rows_intersect(&r.scb[y * r.words], beginnings, r.words);
            if (!edge && a != b && is_sc_fence(r.events[sc[a]]) && is_sc_fence(r.events[sc[b]]))
                edge = fences_ordered(&r, g, sc[a], sc[b], beginnings);
            edges[a * m + b] = edge && order_counts(r.events[sc[a]], r.events[sc[b]]);
        }
    }
    return is_acyclic(edges, m, scratch(m * sizeof(bool)));
}

/*
 * ---- Without seq_cst fences ----
 *
 * Then only the accesses themselves are ordered, and the clocks show whether one precedes another.
 */

/*
 * True if there is a path from x to y through events at other locations: program order, hb, program
 * order. Program order is part of hb, so the first such event after x and the last one before y
 * suffice.
 */
static bool is_path_elsewhere(const graph *g, reference x, reference y)
{
    const thread_events *from = &g->threads[x.thread], *to = &g->threads[y.thread];
    unsigned first = x.index + 1u, last = y.index;
    while (first < from->count && !are_elsewhere(&from->events[x.index], &from->events[first]))
        first++;
    while (last > 0 && !are_elsewhere(&to->events[last - 1], &to->events[y.index]))
        last--;
    return first < from->count && last > 0 && to->events[last - 1].hb.seen[x.thread] > first;
}

static bool is_before(const graph *g, reference a, reference b)
{
    const event *x = event_at(g, a), *y = event_at(g, b);
    if (a.thread == b.thread && a.index < b.index)
        return true;
    if (x->location == y->location && (clock_has(&y->hb, a) || mo_or_fr(g, x, y)))
        return true;
    return is_path_elsewhere(g, a, b);
}

static bool is_acyclic_without_fences(const graph *g, size_t m)
{
    reference *sc = scratch(m * sizeof *sc);
    bool *edges = scratch(m * m * sizeof *edges);
    size_t i = 0;
    for (unsigned t = 1; t < LAST; t++) {
        for (unsigned j = 0; j < g->threads[t].count; j++) {
            if (g->threads[t].events[j].order >= bide_check_seq_cst_)
                sc[i++] = (reference){(uint16_t)t, (uint16_t)j};
        }
    }
    for (size_t a = 0; a < m; a++) {
        for (size_t b = 0; b < m; b++)
            edges[a * m + b] = a != b && is_before(g, sc[a], sc[b]);
    }
    return is_acyclic(edges, m, scratch(m * sizeof(bool)));
}

bool is_sc_consistent(const graph *g)
{
    size_t n = 0, sc_count = 0;
    bool has_fences = false;
    for (unsigned t = 1; t < LAST; t++) {
        n += g->threads[t].count;
        for (unsigned i = 0; i < g->threads[t].count; i++) {
            const event *e = &g->threads[t].events[i];
            sc_count += e->order >= bide_check_seq_cst_;
            has_fences = has_fences || is_sc_fence(e);
        }
    }
    if (sc_count < 2)
        return true;
    scratch_begin();
    return has_fences ? is_acyclic_with_fences(g, n, sc_count)
                      : is_acyclic_without_fences(g, sc_count);
}
