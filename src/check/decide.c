/*
 * Options and decisions: see the argument at the top of explore.c. The untried options of the events
 * are on a stack.
 *
 * 1. The options of a decision are [first, end) of the stack; those before `next` have been tried.
 * 2. Decisions are nested: the first option of a decision follows the last one of the decision before.
 */
#include "decide.h"

#include "consistency.h"
#include "execution.h"
#include "preemptions.h"
#include "progress.h"
#include "replay.h"
#include "sample.h"
#include "sc_order.h"
#include "source_location.h"
#include "storage.h"

#include "bide/platform.h"

#include <string.h>

/* A decision, and the indices of its options. */
typedef struct open_decision {
    decision decision;
    unsigned first;
    unsigned next;
    unsigned end;
} open_decision;

static open_decision *decisions;
static unsigned decisions_count, decisions_capacity;
static option *options;
static unsigned options_count, options_capacity;

static void add_option(option_kind kind, reference other, unsigned position, bool spurious)
{
    options = grown(options, &options_capacity, options_count + 1, sizeof *options);
    options[options_count++] = (option){other, (uint16_t)position, (uint8_t)kind, spurious};
}

static void add_decision(reference event, unsigned first)
{
    decisions = grown(decisions, &decisions_capacity, decisions_count + 1, sizeof *decisions);
    bide_assert(first <= options_count);
    bide_assert(decisions_count == 0 || decisions[decisions_count - 1].end <= first);
    decisions[decisions_count++] = (open_decision){
        {event, progress_split(options_count - first)}, first, first, options_count};
}

void decide_drop(void)
{
    bide_assert(decisions_count != 0 && decisions[decisions_count - 1].end == options_count);
    options_count = decisions[--decisions_count].first;
}

void decide_begin(void)
{
    decisions_count = options_count = 0;
}

unsigned decide_depth(void)
{
    return decisions_count;
}

const decision *decide_newest(void)
{
    return &decisions[decisions_count - 1].decision;
}

bool decide_next(option *next)
{
    open_decision *d = &decisions[decisions_count - 1];
    if (d->next == d->end)
        return false;
    *next = options[d->next++];
    return true;
}

/* ---- Clocks ---- */

/* Sets an event's clocks to those of the event before it in its thread, and the event itself. */
static event *begin_clocks(graph *g, reference self)
{
    event *e = event_at(g, self);
    clock_before(g, self, &e->hb, &e->porf);
    if (self.index > 0) {
        e->fenced = e[-1].fenced;
        e->pending = e[-1].pending;
    } else {
        memset(&e->fenced, 0, sizeof e->fenced);
        memset(&e->pending, 0, sizeof e->pending);
    }
    e->hb.seen[self.thread] = e->porf.seen[self.thread] = (uint16_t)(self.index + 1);
    if (e->op.after.thread != SETUP)
        clock_join(&e->porf, &event_at(g, e->op.after)->porf);
    return e;
}

static bool order_acquires(int order)
{
    return order == bide_check_acquire_ ||
           (order >= bide_check_acq_rel_ && order != bide_check_light_);
}

static bool order_releases(int order)
{
    return order >= bide_check_release_ && order != bide_check_light_;
}

static bool wait_is_over(const operation *op, uint64_t value)
{
    switch (op->wait) {
    case WAIT_UNTIL_EQUAL:
        return value == op->expected;
    case WAIT_UNTIL_DIFFERENT:
        return value != op->expected;
    case WAIT_UNTIL_BITS:
        return (value & op->expected) != 0;
    case WAIT_UNTIL_CLEAR:
        return (value & op->expected) == 0;
    case WAIT_UNTIL_LEAST:
        return value >= op->expected;
    default:
        return true;
    }
}

/* True if the operation succeeds when it reads `value`, unless it fails spuriously. */
static bool would_succeed(const operation *op, uint64_t value)
{
    return op->step != STEP_COMPARE_EXCHANGE || value == op->expected;
}

/* Makes a load read `store`. */
static void read_from(graph *g, reference load, reference store, bool spurious)
{
    event *e = begin_clocks(g, load);
    const operation *op = &e->op;
    e->rf = store;
    e->value = value_of(g, &g->locations[e->location], store);
    e->spurious = spurious;
    e->round = 0;
    bool is_over = wait_is_over(op, e->value);
    e->blocked = !is_over && !op->is_tried;
    bool succeeds = would_succeed(op, e->value) && !spurious && is_over;
    e->is_rmw = op->is_rmw && succeeds;
    e->order = succeeds ? op->order : op->order_if_failed;
    if (is_initial(store))
        return;
    const event *from = event_at(g, store);
    clock_join(&e->porf, &from->porf);
    if (op->is_silent)
        return;
    clock_join(order_acquires(e->order) ? &e->hb : &e->pending, &from->message);
}

/* Sets the clocks of a store, and the events that it releases. */
static void set_store_clocks(graph *g, reference store)
{
    event *e = begin_clocks(g, store);
    e->message = order_releases(e->order) ? e->hb : e->fenced;
    if (e->is_rmw && !is_initial(e->rf))
        clock_join(&e->message, &event_at(g, e->rf)->message);
    if (the_checker.scenario->cxx20_release_sequences)
        return;
    /* The store belongs to the release sequences that its own thread began, but not to sequences of
     * other threads that its thread's read-modify-writes continue. The thread's last release includes the earlier
     * ones. */
    for (unsigned i = store.index; i-- > 0;) {
        const event *earlier = &g->threads[store.thread].events[i];
        if (earlier->kind == EVENT_STORE && earlier->location == e->location &&
            order_releases(earlier->order)) {
            clock_join(&e->message, &earlier->hb);
            break;
        }
    }
}

/* ---- Options ---- */

/*
 * A store may be inserted at `position` unless that is between the store of a read-modify-write and
 * the store it read.
 */
static bool is_place(const graph *g, const location *l, unsigned position)
{
    return position == l->count || !is_rmw_store(g, l->stores[position]);
}

static bool is_newest(const graph *g, const event *store)
{
    return store->position + 1u == g->locations[store->location].count;
}

/* True if the decision agrees with the order of seq_cst operations and with the preemption bound. */
static bool is_allowed(const graph *g, reference self, bool is_newest_choice)
{
    if (!is_newest_choice &&
        !(the_checker.only_grows ? sc_order_allows(g, self) : is_sc_consistent(g)))
        return false;
    bool is_within = is_within_bound(g);
    the_checker.result->is_bounded |= !is_within;
    return is_within;
}

bool decide_apply(graph *g, reference self, const option *o)
{
    event *e = event_at(g, self);
    location *l = &g->locations[e->location];
    switch (o->kind) {
    case OPTION_READ:
        read_from(g, self, o->other, o->spurious);
        return is_allowed(g, self, position_of(g, o->other) + 1 == l->count);
    case OPTION_PLACE:
        graph_displace(g, self);
        graph_place(g, self, o->position);
        return is_allowed(g, self, is_newest(g, e));
    case OPTION_CHOOSE:
        e->value = o->position;
        return true;
    case OPTION_REVISITED:
        graph_displace(g, self);
        graph_place(g, self, o->position);
        read_from(g, o->other, self, o->spurious);
        if (event_at(g, o->other)->blocked && !is_newest(g, e))
            return false;
        return is_allowed(g, self, is_newest(g, e));
    default:
        return false;
    }
}

/* Takes the option that the replay names. */
static bool decide_by_replay(graph *g, reference self, unsigned first)
{
    static const char sign[] = {[OPTION_READ] = '<', [OPTION_PLACE] = '>', [OPTION_CHOOSE] = '='};
    unsigned end = options_count;
    options_count = first;
    for (unsigned i = first; i < end && options[i].kind != OPTION_REVISIT; i++) {
        const option *o = &options[i];
        const event *e = event_at(g, self);
        reference other = o->other;
        if (o->kind == OPTION_PLACE)
            other = g->locations[e->location].stores[o->position - 1];
        if (replay_wants(sign[o->kind], other, o->position, o->spurious) &&
            decide_apply(g, self, o))
            return true;
    }
    replay_mismatch();
    return false;
}

/* Takes one of the possible options, and keeps none. */
static bool decide_by_draw(graph *g, reference self, unsigned first)
{
    option *drawn = options + first;
    unsigned count = options_count - first;
    event_kind kind = (event_kind)event_at(g, self)->kind;
    options_count = first;
    while (count != 0) {
        unsigned i = sample_option(kind, count);
        option o = drawn[i];
        memmove(drawn + i, drawn + i + 1, (--count - i) * sizeof *drawn);
        if (decide_apply(g, self, &o))
            return true;
    }
    return false;
}

/* Takes the first possible option of a new event, and keeps the options after it. */
static bool decide_event(graph *g, reference self, unsigned first)
{
    if (the_checker.replay != NULL)
        return decide_by_replay(g, self, first);
    if (the_checker.samples)
        return decide_by_draw(g, self, first);
    if (first == options_count)
        return false;
    add_decision(self, first);
    open_decision *d = &decisions[decisions_count - 1];
    while (d->next < d->end && options[d->next].kind != OPTION_REVISIT) {
        if (decide_apply(g, self, &options[d->next++])) {
            progress_take(d->decision.share);
            if (d->next == d->end)
                decide_drop();
            return true;
        }
        progress_drop(d->decision.share);
    }
    return false;
}

/* Positions and locations have 16 bits. The location UINT16_MAX is none. */
static void refuse_more(const operation *op, const char *what)
{
    char where[256];
    const char *object = op->site->object[0] == '&' ? op->site->object + 1 : op->site->object;
    source_location_describe(op->site, where, sizeof where);
    execution_found(BIDE_CHECK_BAD_SCENARIO, "%s%smore than %u %s, at %s", object,
                    object[0] != '\0' ? ": " : "", UINT16_MAX, what, where);
}

static reference add_event(graph *g, unsigned thread, event_kind kind, const operation *op,
                           unsigned location)
{
    if (kind <= EVENT_STORE && location >= UINT16_MAX)
        refuse_more(op, "atomic objects");
    event *e = graph_add(g, thread);
    e->op = *op;
    e->kind = (uint8_t)kind;
    e->location = (uint16_t)location;
    e->order = op->order;
    return last_event(g, thread);
}

bool decide_spurious_left(const graph *g, reference next)
{
    unsigned count = 0;
    for (unsigned i = 0; i < next.index; i++) {
        const event *e = &g->threads[next.thread].events[i];
        count += e->spurious || (e->kind == EVENT_CHOICE && e->op.may_fail && e->value == 1);
    }
    return count < the_checker.max_spurious;
}

bool decide_failures_left(const graph *g, reference next)
{
    unsigned count = 0;
    for (unsigned i = 0; i < next.index; i++) {
        const event *e = &g->threads[next.thread].events[i];
        count += e->op.step == STEP_ALLOCATE && e->value != 0;
    }
    return count < the_checker.scenario->failing_allocations;
}

static bool may_fail_spuriously(const graph *g, reference self)
{
    return event_at(g, self)->op.may_fail && decide_spurious_left(g, self);
}

/*
 * True if a read-modify-write that reads the store at `position` can store its value directly after it. Where it cannot,
 * an exploration gives the execution up, and another one shows the same.
 */
static bool has_place_after(const graph *g, const location *l, const operation *op,
                            unsigned position)
{
    uint64_t value = value_of(g, l, l->stores[position]);
    return !op->is_rmw || !would_succeed(op, value) || !wait_is_over(op, value) ||
           is_place(g, l, position + 1);
}

bool decide_may_load(graph *g, unsigned thread, const operation *op, unsigned location)
{
    const struct location *l = &g->locations[location];
    vector_clock view, porf;
    clock_before(g, (reference){(uint16_t)thread, (uint16_t)g->threads[thread].count}, &view,
                 &porf);
    if (op->is_tried)
        return true;
    for (unsigned position = l->count, oldest = newest_known(g, location, &view);
         position-- > oldest;) {
        if (wait_is_over(op, value_of(g, l, l->stores[position])) &&
            has_place_after(g, l, op, position))
            return true;
    }
    return false;
}

bool decide_load(graph *g, unsigned thread, const operation *op, unsigned location,
                 const vector_clock *older)
{
    reference self = add_event(g, thread, EVENT_LOAD, op, location);
    event *e = event_at(g, self);
    vector_clock porf;
    clock_before(g, self, &e->view, &porf);
    if (older != NULL)
        clock_join(&e->view, older);
    const struct location *l = &g->locations[location];
    unsigned oldest = newest_known(g, location, &e->view);
    bool may_fail = may_fail_spuriously(g, self);
    unsigned first = options_count;
    for (unsigned position = l->count; position-- > oldest;) {
        reference store = l->stores[position];
        uint64_t value = value_of(g, l, store);
        /* A load that waits reads the newest store, except in a replay: its steps may be in another
         * order, in which there is a newer store already. */
        if (position + 1 != l->count && !op->is_tried && !wait_is_over(op, value) &&
            the_checker.replay == NULL)
            continue;
        if (!the_checker.samples || has_place_after(g, l, op, position))
            add_option(OPTION_READ, store, 0, false);
        if (may_fail && would_succeed(op, value))
            add_option(OPTION_READ, store, 0, true);
    }
    return decide_event(g, self, first);
}

/* Adds an option for each position that the store may have, the newest first. */
static void add_places(graph *g, reference store, option_kind kind, reference reader)
{
    const event *e = event_at(g, store);
    const struct location *l = &g->locations[e->location];
    vector_clock before, porf;
    clock_before(g, store, &before, &porf);
    unsigned lowest = newest_known(g, e->location, &before) + 1, highest = l->count;
    if (e->is_rmw)
        lowest = highest = position_of(g, e->rf) + 1;
    const event *r = NULL;
    bool may_fail = false;
    if (kind == OPTION_REVISITED) {
        r = event_at(g, reader);
        may_fail = would_succeed(&r->op, e->value) && may_fail_spuriously(g, reader);
        unsigned oldest = newest_known(g, e->location, &r->view);
        /* The store comes after the stores that the load knows. */
        if (lowest <= oldest)
            lowest = oldest + 1;
    }
    for (unsigned position = highest + 1; position-- > lowest;) {
        if (!is_place(g, l, position))
            continue;
        add_option(kind, reader, position, false);
        if (may_fail)
            add_option(kind, reader, position, true);
    }
}

bool decide_store(graph *g, unsigned thread, const operation *op, unsigned location, uint64_t value,
                  reference read)
{
    if (g->locations[location].count >= UINT16_MAX)
        refuse_more(op, "stores to one object");
    reference self = add_event(g, thread, EVENT_STORE, op, location);
    event *e = event_at(g, self);
    e->value = value;
    e->is_rmw = op->is_rmw;
    e->rf = read;
    set_store_clocks(g, self);
    unsigned first = options_count;
    add_places(g, self, OPTION_PLACE, INITIAL);
    for (unsigned t = 0; t < THREADS && !the_checker.samples; t++) {
        for (unsigned i = g->threads[t].count; i-- > e->porf.seen[t];) {
            const event *load = &g->threads[t].events[i];
            if (load->kind == EVENT_LOAD && load->location == location)
                add_option(OPTION_REVISIT, (reference){(uint16_t)t, (uint16_t)i}, 0, false);
        }
    }
    return decide_event(g, self, first);
}

void decide_init(graph *g, unsigned thread, const operation *op, unsigned location, uint64_t value)
{
    reference self = add_event(g, thread, EVENT_STORE, op, location);
    event_at(g, self)->value = value;
    event_at(g, self)->rf = INITIAL;
    set_store_clocks(g, self);
    graph_place(g, self, 0);
}

void decide_fence(graph *g, unsigned thread, const operation *op)
{
    reference self = add_event(g, thread, EVENT_FENCE, op, UINT16_MAX);
    event *e = begin_clocks(g, self);
    if (order_acquires(op->order))
        clock_join(&e->hb, &e->pending);
    if (order_releases(op->order))
        e->fenced = e->hb;
}

bool decide_choice(graph *g, unsigned thread, const operation *op, unsigned count)
{
    if (count > UINT16_MAX)
        refuse_more(op, "options of one choice");
    reference self = add_event(g, thread, EVENT_CHOICE, op, UINT16_MAX);
    begin_clocks(g, self);
    unsigned first = options_count;
    for (unsigned i = 0; i < count; i++)
        add_option(OPTION_CHOOSE, INITIAL, i, false);
    return decide_event(g, self, first);
}

void decide_revisited(graph *g, reference store, reference reader)
{
    unsigned first = options_count;
    add_places(g, store, OPTION_REVISITED, reader);
    add_decision(store, first);
}
