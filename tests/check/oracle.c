/*
 * The axioms are those of "Repairing Sequential Consistency in C/C++11" (Lahav, Vafeiadis, Kang, Hur, Dreyer,
 * 2017), section 3:
 *
 *     rs       = [W]; sb|loc?; [W rlx]; (rf; rmw)*          C++20: [W rlx]; (rf; rmw)*
 *     sw       = [rel]; ([F]; sb)?; rs; rf; [R rlx]; (sb; [F])?; [acq]
 *     hb       = (sb | sw)+
 *     rb       = rf^-1; mo
 *     eco      = (rf | mo | rb)+
 *     scb      = sb | sb|!loc; hb; sb|!loc | hb|loc | mo | rb
 *     psc_base = ([E sc] | [F sc]; hb?); scb; ([E sc] | hb?; [F sc])
 *     psc_F    = [F sc]; (hb | hb; eco; hb); [F sc]
 *
 * where sb|!loc has no light fences, and [F sc] is the light and the heavy ones (fence.h) too, and for those
 *
 *     psc          = (psc_base | psc_F) & (heavy * sc | sc * heavy | (sc \ light) * (sc \ light))
 *
 *     COHERENCE    hb; eco? is irreflexive
 *     ATOMICITY    rmw & (rb; mo) is empty
 *     SC           psc is acyclic
 *     NO-THIN-AIR  sb | rf is acyclic
 *
 * A relaxed fence is none. A read-modify-write is a read and a write, related by rmw. The first event of each location is the write of
 * its 0; these are before everything in sb, and of no order.
 *
 * Choices are made in three steps, and candidates are dropped as soon as an axiom that depends on what is
 * chosen already does not hold: the compare-exchanges that fail; reads-from; the modification orders.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EVENTS = 64, NONE = MAX_EVENTS };

typedef uint64_t set;

/* row[a] holds each b with (a, b) in the relation. */
typedef struct relation {
    set row[MAX_EVENTS];
} relation;

typedef enum event_type { READ, WRITE, FENCE } event_type;

typedef struct event {
    event_type type;
    litmus_order order;
    uint32_t thread; /* LITMUS_THREADS: of an initial write */
    uint32_t index;  /* of the operation */
    uint32_t location;
    unsigned read; /* of a read-modify-write's write: its read; else NONE */
    uint32_t value;
} event;

typedef enum ending { SUCCEEDS, FAILS, FAILS_SPURIOUSLY } ending;

static const litmus_program *program;
static litmus_outcomes *found;

static ending endings[LITMUS_THREADS][LITMUS_OPS];

/* The candidate. */
static event events[MAX_EVENTS];
static unsigned count;
static unsigned writer[MAX_EVENTS]; /* for each read, the write that it reads */
static relation sb, rf, rmw, mo, hb;
static set all, reads, writes, firsts, fences;
static set seq_csts;                 /* the light and heavy fences too */
static set at[LITMUS_LOCATIONS + 1]; /* the last is empty */
static relation same_location;

/* ---- Sets and relations ---- */

static set one(unsigned e)
{
    return (set)1 << e;
}

static bool has(set s, unsigned e)
{
    return s >> e & 1;
}

/* [s] */
static relation identity(set s)
{
    relation r = {{0}};
    for (unsigned a = 0; a < count; a++)
        r.row[a] = s & one(a);
    return r;
}

static relation unite(relation a, relation b)
{
    for (unsigned i = 0; i < count; i++)
        a.row[i] |= b.row[i];
    return a;
}

static relation intersect(relation a, relation b)
{
    for (unsigned i = 0; i < count; i++)
        a.row[i] &= b.row[i];
    return a;
}

static relation subtract(relation a, relation b)
{
    for (unsigned i = 0; i < count; i++)
        a.row[i] &= ~b.row[i];
    return a;
}

/* a; b */
static relation compose(relation a, relation b)
{
    relation r = {{0}};
    for (unsigned i = 0; i < count; i++) {
        for (set left = a.row[i]; left != 0; left &= left - 1)
            r.row[i] |= b.row[__builtin_ctzll(left)];
    }
    return r;
}

static relation compose3(relation a, relation b, relation c)
{
    return compose(compose(a, b), c);
}

/* [from]; r; [to] */
static relation between(set from, relation r, set to)
{
    for (unsigned i = 0; i < count; i++)
        r.row[i] = has(from, i) ? r.row[i] & to : 0;
    return r;
}

static relation inverse(relation r)
{
    relation result = {{0}};
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++)
            result.row[b] |= has(r.row[a], b) ? one(a) : 0;
    }
    return result;
}

/* r? */
static relation maybe(relation r)
{
    return unite(r, identity(all));
}

/* r+ */
static relation closure(relation r)
{
    for (unsigned through = 0; through < count; through++) {
        for (unsigned a = 0; a < count; a++)
            r.row[a] |= has(r.row[a], through) ? r.row[through] : 0;
    }
    return r;
}

static bool is_empty(relation r)
{
    set any = 0;
    for (unsigned i = 0; i < count; i++)
        any |= r.row[i];
    return any == 0;
}

static bool is_irreflexive(relation r)
{
    return is_empty(intersect(r, identity(all)));
}

static bool is_acyclic(relation r)
{
    return is_irreflexive(closure(r));
}

/* ---- The axioms ---- */

static bool is_release(const event *e)
{
    return e->type != READ && e->order >= LITMUS_REL && e->order != LITMUS_LIGHT;
}

static bool is_acquire(const event *e)
{
    return e->type != WRITE &&
           (e->order == LITMUS_ACQ || (e->order >= LITMUS_AR && e->order != LITMUS_LIGHT));
}

static set events_that(bool (*are)(const event *e))
{
    set s = 0;
    for (unsigned i = 0; i < count; i++)
        s |= are(&events[i]) ? one(i) : 0;
    return s & ~firsts;
}

static relation release_sequences(void)
{
    relation by_others = maybe(closure(compose(rf, rmw)));
    relation begin = program->cxx20 ? identity(writes) : maybe(intersect(sb, same_location));
    return compose(between(writes, begin, writes & ~firsts), by_others);
}

static relation synchronizes_with(void)
{
    relation released = maybe(between(fences, sb, all));
    relation acquired = maybe(between(all, sb, fences));
    relation there = between(events_that(is_release), released, all);
    relation across = between(all, compose(release_sequences(), rf), reads);
    return compose3(there, across, between(all, acquired, events_that(is_acquire)));
}

static relation reads_before(void)
{
    return compose(inverse(rf), mo);
}

static relation extended_coherence_order(void)
{
    return closure(unite(unite(rf, mo), reads_before()));
}

/* The axioms about one location, whose mo is known. */
static bool is_coherent(uint32_t location)
{
    set here = at[location];
    relation eco = between(here, extended_coherence_order(), here);
    return is_irreflexive(compose(hb, maybe(eco)));
}

static bool is_atomic(void)
{
    return is_empty(intersect(rmw, compose(reads_before(), mo)));
}

static bool is_light(const event *e)
{
    return e->order == LITMUS_LIGHT;
}

static bool is_heavy(const event *e)
{
    return e->order == LITMUS_HEAVY;
}

static bool is_sequentially_consistent(void)
{
    set sc_fences = seq_csts & fences;
    relation rb = reads_before();
    set light = events_that(is_light), heavy = events_that(is_heavy);
    relation sb_elsewhere = between(all & ~light, subtract(sb, same_location), all & ~light);
    relation hb_here = intersect(hb, same_location);
    relation scb =
        unite(unite(sb, compose3(sb_elsewhere, hb, sb_elsewhere)), unite(hb_here, unite(mo, rb)));
    relation begin = unite(identity(seq_csts), between(sc_fences, maybe(hb), all));
    relation end = unite(identity(seq_csts), between(all, maybe(hb), sc_fences));
    relation psc_base = compose3(begin, scb, end);
    relation around = unite(hb, compose3(hb, extended_coherence_order(), hb));
    relation psc_fences = between(sc_fences, around, sc_fences);
    relation psc = unite(psc_base, psc_fences);
    relation counted = unite(between(heavy, psc, seq_csts), between(seq_csts, psc, heavy));
    return is_acyclic(unite(counted, between(seq_csts & ~light, psc, seq_csts & ~light)));
}

/* ---- A candidate that satisfies them ---- */

static void keep(const unsigned last[LITMUS_LOCATIONS])
{
    litmus_results results;
    char text[LITMUS_TEXT];
    memset(&results, 0, sizeof results);
    for (unsigned i = 0; i < count; i++) {
        const event *e = &events[i];
        if (e->type != READ)
            continue;
        results.read[e->thread][e->index] = e->value;
        results.succeeded[e->thread][e->index] = endings[e->thread][e->index] == SUCCEEDS;
    }
    for (uint32_t l = 0; l < program->locations; l++)
        results.last[l] = events[last[l]].value;
    litmus_describe(program, &results, text);
    litmus_add_outcome(found, text);
    found->executions++;
}

/* ---- Modification orders ---- */

/* Chooses the write that follows `placed` at the location, and then the rest. */
static void choose_order(uint32_t location, set placed, unsigned last[LITMUS_LOCATIONS])
{
    if (location == program->locations) {
        if (is_sequentially_consistent())
            keep(last);
        return;
    }
    set left = at[location] & writes & ~placed;
    if (left == 0) {
        if (is_coherent(location) && is_atomic())
            choose_order(location + 1, firsts & at[location + 1], last);
        return;
    }
    for (; left != 0; left &= left - 1) {
        unsigned next = (unsigned)__builtin_ctzll(left);
        for (unsigned w = 0; w < count; w++)
            mo.row[w] |= has(placed, w) ? one(next) : 0;
        last[location] = next;
        choose_order(location, placed | one(next), last);
        for (unsigned w = 0; w < count; w++)
            mo.row[w] &= ~one(next);
    }
}

/* ---- Reads-from ---- */

static uint32_t written_by(const event *e)
{
    const litmus_op *op = &program->ops[e->thread][e->index];
    return op->kind == LITMUS_FETCH_ADD ? events[e->read].value + op->value : op->value;
}

/*
 * Since sb and rf have no cycle, there are values, and a bounded number of passes over the events
 * finds them.
 */
static void find_values(void)
{
    for (unsigned round = 0; round < count; round++) {
        for (unsigned i = 0; i < count; i++) {
            if (has(reads, i))
                events[i].value = events[writer[i]].value;
            else if (has(writes & ~firsts, i))
                events[i].value = written_by(&events[i]);
        }
    }
}

/* True if the compare-exchanges have read values that let them end as chosen. */
static bool endings_fit(void)
{
    for (unsigned i = 0; i < count; i++) {
        const event *e = &events[i];
        if (e->type != READ || !litmus_is_compare_exchange(program->ops[e->thread][e->index].kind))
            continue;
        bool equal = e->value == program->ops[e->thread][e->index].expected;
        if (equal == (endings[e->thread][e->index] == FAILS))
            return false;
    }
    return true;
}

static void all_read(void)
{
    unsigned last[LITMUS_LOCATIONS + 1] = {0};
    if (!is_acyclic(unite(sb, rf)))
        return;
    find_values();
    if (!endings_fit())
        return;
    hb = closure(unite(sb, synchronizes_with()));
    if (!is_irreflexive(hb) || !is_irreflexive(compose(hb, rf)))
        return;
    memset(&mo, 0, sizeof mo);
    for (uint32_t l = 0; l < program->locations; l++)
        last[l] = l;
    choose_order(0, one(0), last);
}

static void choose_reads(unsigned from)
{
    while (from < count && !has(reads, from))
        from++;
    if (from == count) {
        all_read();
        return;
    }
    for (set left = at[events[from].location] & writes; left != 0; left &= left - 1) {
        unsigned w = (unsigned)__builtin_ctzll(left);
        writer[from] = w;
        rf.row[w] |= one(from);
        choose_reads(from + 1);
        rf.row[w] &= ~one(from);
    }
}

/* ---- The events ---- */

static unsigned add_event(event_type type, litmus_order order, uint32_t thread, uint32_t index,
                          uint32_t location)
{
    if (count == MAX_EVENTS)
        abort();
    unsigned e = count++;
    events[e] = (event){type, order, thread, index, location, NONE, 0};
    set self = one(e);
    all |= self;
    *(type == READ ? &reads : type == WRITE ? &writes : &fences) |= self;
    if (thread == LITMUS_THREADS)
        firsts |= self;
    else if (order >= LITMUS_SC)
        seq_csts |= self;
    if (type != FENCE)
        at[location] |= self;
    for (unsigned before = 0; before < e; before++) {
        if (thread < LITMUS_THREADS &&
            (events[before].thread == thread || events[before].thread == LITMUS_THREADS))
            sb.row[before] |= self;
    }
    return e;
}

static void add_op(uint32_t thread, uint32_t index)
{
    const litmus_op *op = &program->ops[thread][index];
    bool writes_too = op->kind != LITMUS_LOAD && endings[thread][index] == SUCCEEDS;
    litmus_order order = op->order;
    if (op->kind == LITMUS_FENCE) {
        if (order != LITMUS_RLX)
            add_event(FENCE, order, thread, index, 0);
        return;
    }
    if (op->kind == LITMUS_STORE) {
        add_event(WRITE, order, thread, index, op->location);
        return;
    }
    if (endings[thread][index] != SUCCEEDS)
        order = op->order_if_failed;
    unsigned read = add_event(READ, order, thread, index, op->location);
    if (!writes_too)
        return;
    unsigned write = add_event(WRITE, order, thread, index, op->location);
    events[write].read = read;
    rmw.row[read] |= one(write);
}

static void clear(void)
{
    count = 0;
    all = reads = writes = firsts = fences = seq_csts = 0;
    memset(at, 0, sizeof at);
    memset(&sb, 0, sizeof sb);
    memset(&rf, 0, sizeof rf);
    memset(&rmw, 0, sizeof rmw);
    memset(&same_location, 0, sizeof same_location);
}

static void make_events(void)
{
    clear();
    for (uint32_t l = 0; l < program->locations; l++)
        add_event(WRITE, LITMUS_RLX, LITMUS_THREADS, 0, l);
    for (uint32_t t = 0; t < program->threads; t++) {
        for (uint32_t i = 0; i < program->counts[t]; i++)
            add_op(t, i);
    }
    for (uint32_t l = 0; l < program->locations; l++) {
        for (unsigned e = 0; e < count; e++)
            same_location.row[e] |= has(at[l], e) ? at[l] : 0;
    }
    choose_reads(0);
}

/* Chooses the results of the compare-exchanges, from this operation on. */
static void choose_endings(uint32_t thread, uint32_t index, uint32_t spurious_left)
{
    if (thread == program->threads) {
        make_events();
        return;
    }
    if (index == program->counts[thread]) {
        choose_endings(thread + 1, 0, program->spurious);
        return;
    }
    litmus_kind kind = program->ops[thread][index].kind;
    ending *chosen = &endings[thread][index];
    *chosen = SUCCEEDS;
    choose_endings(thread, index + 1, spurious_left);
    if (!litmus_is_compare_exchange(kind))
        return;
    *chosen = FAILS;
    choose_endings(thread, index + 1, spurious_left);
    if (kind != LITMUS_COMPARE_EXCHANGE_WEAK || spurious_left == 0)
        return;
    *chosen = FAILS_SPURIOUSLY;
    choose_endings(thread, index + 1, spurious_left - 1);
}

void oracle_explore(const litmus_program *given, litmus_outcomes *outcomes)
{
    memset(outcomes, 0, sizeof *outcomes);
    program = given;
    found = outcomes;
    choose_endings(0, 0, program->spurious);
}

double oracle_cost(const litmus_program *p)
{
    double written[LITMUS_LOCATIONS] = {0}, cost = 1;
    for (uint32_t t = 0; t < p->threads; t++) {
        for (uint32_t i = 0; i < p->counts[t]; i++) {
            litmus_kind kind = p->ops[t][i].kind;
            if (kind != LITMUS_LOAD && kind != LITMUS_FENCE)
                cost *= ++written[p->ops[t][i].location];
        }
    }
    for (uint32_t t = 0; t < p->threads; t++) {
        for (uint32_t i = 0; i < p->counts[t]; i++) {
            litmus_kind kind = p->ops[t][i].kind;
            if (litmus_is_read(kind))
                cost *= written[p->ops[t][i].location] + 1;
            if (litmus_is_compare_exchange(kind))
                cost *= kind == LITMUS_COMPARE_EXCHANGE_WEAK && p->spurious != 0 ? 3 : 2;
        }
    }
    return cost;
}
