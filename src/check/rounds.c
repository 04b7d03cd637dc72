/*
 * Rounds of a loop that change nothing.
 *
 * A thread that waits reads some values that do not end its loop, and then one that does. What it has
 * read in the rounds before leaves nothing behind, if the loop only waits: the execution without those
 * rounds is an execution too, and shows the same. Without this rule each old value that a round could
 * read would multiply the executions.
 *
 * 1. A round is removable if it consists of loads, of fences, and of read-modify-writes that store
 *    what they have read, and if the thread goes on as it would have without the round. An execution
 *    from which the steps of such a round are removed is consistent, since removing events adds no
 *    edge to any relation. Another thread that read from a removed store reads the same value from
 *    the store that it had read, and is ordered after fewer events.
 *
 * 2. The thread goes on in the same way if it is in the same state: it comes to a step in a state in
 *    which it has come to it before, and has changed nothing since (snapshot.h). Then it is blocked
 *    after that one round, whatever the round has read. A store that makes the round read something
 *    else revisits it.
 *
 * 3. The compiler leaves values in the stack or in registers that the thread will not use, and these
 *    differ from round to round; and it compiles the first round separately. So the state may differ
 *    although the round is removable. That is found when the thread has left the loop and is about to
 *    change something. It is set back to the beginning of an earlier round, and rehearses: it reads
 *    what it has read in its last round. If it comes to the same change in the same state, all rounds
 *    between were removable, and the execution without them shows the same. Then the thread does not
 *    continue. Otherwise it is set forward again, and continues.
 *
 *    A rehearsal changes nothing: it ends before whatever would.
 *
 * 4. A load that was blocked waits for a store that revisits it. The store does that only if the load
 *    read the newest of the stores that were there before it (explore.c). Otherwise no graph that
 *    grows from this one lets the thread continue, and each of them shows what a graph shows in which
 *    the load reads the newest store. So the execution is given up.
 *
 * States are recorded only at the operations of loops. A loop is found when an operation is reached
 * for the second time; then the execution begins again.
 *
 * Another thread may write to this thread's stack, so one graph may show equal states in one run and
 * different ones in another. So the graph says where a thread stops: `round` of its last event.
 */
#include "rounds.h"

#include "machine.h"
#include "replay.h"
#include "snapshot.h"
#include "spin.h"
#include "storage.h"

#include "bide/platform.h"

#include <string.h>

enum { HALTS = UINT16_MAX, MAX_IDLE_ROUNDS = 1000 };

/* The operations of loops. */
static const bide_check_site_ **loops;
static unsigned loops_count, loops_capacity;

/* A thread is about to take a step; it has changed nothing since. */
typedef struct arrival {
    operation op;
    uintptr_t address;
    unsigned position; /* the number of steps before it */
    unsigned state;    /* where the state begins in the buffer */
    unsigned size;     /* of the state */
    fiber_moment moment;
} arrival;

typedef struct act {
    act_kind kind;
    const void *where;
    uintptr_t address;
    uint64_t value;
} act;

typedef struct arrivals {
    arrival *arrivals;
    unsigned count, capacity;
    snapshot_buffer states;
    unsigned acted; /* the number of steps when the thread changed something */
    unsigned acts;  /* the number of steps of the graph before which the thread changes something */

    /* While the thread rehearses. */
    fiber_moment present;
    act act;        /* that ended the last round */
    unsigned state; /* at the act: where it begins in the buffer */
    unsigned size;  /* of that state */
    unsigned next;  /* the step of the last round that comes next */
    unsigned idle;  /* rounds without a step */
    bool is_same;   /* the result */
} arrivals;

static arrivals arrived[THREADS];

static arrivals *arrivals_of_running(void)
{
    return &arrived[the_execution.running];
}

static event *running_event(unsigned index)
{
    return &the_checker.g->threads[the_execution.running].events[index];
}

/* True if the graph has no further step of the running thread. */
static bool is_at_end(const thread_record *t)
{
    return t->position == the_checker.g->threads[the_execution.running].count;
}

/* ---- Loops ---- */

static bool is_loop(const bide_check_site_ *site)
{
    for (unsigned i = 0; i < loops_count; i++) {
        if (loops[i] == site)
            return true;
    }
    return false;
}

static void add_loop(const bide_check_site_ *site)
{
    if (is_loop(site))
        return;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): they are pointers */
    loops = grown(loops, &loops_capacity, loops_count + 1, sizeof *loops);
    loops[loops_count++] = site;
}

static bool same_operands(const operation *a, const operation *b)
{
    return a->step == b->step && a->operand == b->operand && a->expected == b->expected;
}

static bool same_operation(const operation *a, const operation *b)
{
    return a->site == b->site && same_operands(a, b);
}

/* True if the thread has taken this step before, and has changed nothing since. */
static bool comes_back(const thread_record *t, const arrivals *a, const operation *op,
                       uintptr_t address)
{
    for (unsigned i = t->position; i-- > a->acted;) {
        const event *e = running_event(i);
        if (e->kind == EVENT_LOAD && e->op.site == op->site && e->op.step == op->step &&
            location_is_at(the_checker.g, e->location, address, HIDDEN_NONE))
            return true;
    }
    return false;
}

/* ---- Blocking ---- */

/* The last load of the running thread; NULL if it has none from `begin` on. */
static event *last_load(const thread_record *t, unsigned begin)
{
    for (unsigned i = t->position; i-- > begin;) {
        if (running_event(i)->kind == EVENT_LOAD)
            return running_event(i);
    }
    return NULL;
}

/* True if no store will revisit the load. */
static bool is_past(const graph *g, const event *load)
{
    const struct location *l = &g->locations[load->location];
    if (load->spurious)
        return true;
    for (unsigned i = position_of(g, load->rf) + 1; i < l->count; i++) {
        if (is_initial(l->stores[i]) || event_at(g, l->stores[i])->stamp < load->stamp)
            return true;
    }
    return false;
}

/* The running thread does not continue after its last step. `begin`: its last round's first step. */
static void stop_after(thread_record *t, unsigned begin, uint16_t mark)
{
    event *e = last_load(t, begin);
    bide_assert(e != NULL);
    if (the_checker.replay == NULL && is_past(the_checker.g, e)) {
        the_checker.result->blocked++;
        execution_give_up();
    }
    t->postpones = t->in_rmw = false;
    running_event(t->position - 1)->round = mark;
}

/* ---- States ---- */

static bool same_state(const arrivals *a, unsigned first, unsigned second, unsigned size)
{
    return memcmp(a->states.bytes + first, a->states.bytes + second, size) == 0;
}

bool rounds_arrive(const operation *op, uintptr_t address)
{
    if (the_checker.samples)
        return false;
    thread_record *t = execution_running();
    arrivals *a = arrivals_of_running();
    uint16_t mark = t->position != 0 && is_at_end(t) ? running_event(t->position - 1)->round : 0;
    if (mark != 0 && mark != HALTS) {
        stop_after(t, mark - 1u, mark);
        t->spins = true;
        t->period = mark - 1u;
        execution_block();
    }
    if (t->position < a->acts)
        return false; /* the state would be forgotten */
    if (the_checker.replay == NULL && !is_loop(op->site)) {
        if (!comes_back(t, a, op, address))
            return false;
        add_loop(op->site);
        for (unsigned i = a->acted; i < t->position; i++)
            add_loop(running_event(i)->op.site);
        the_execution.runs_again = true;
        execution_give_up();
    }
    if (t->postpones && replay_has_step_of(the_execution.running))
        machine_settle(); /* the replayed execution has the store: the loop was not yet known */
    unsigned state = a->states.used, size;
    if (!snapshot_take(&a->states, &size))
        return false;
    for (unsigned i = 0; i < a->count && is_at_end(t); i++) {
        const arrival *before = &a->arrivals[i];
        if (same_operation(&before->op, op) && before->address == address && before->size == size &&
            before->position != t->position && same_state(a, before->state, state, size)) {
            unsigned begin = before->position;
            stop_after(t, begin, (uint16_t)(begin + 1));
            spin_found(t, begin);
            return true;
        }
    }
    if (t->postpones) { /* the store is a step before this one; others may run meanwhile */
        machine_settle();
        a->states.used = state;
        if (!snapshot_take(&a->states, &size))
            return false;
    }
    a->arrivals = grown(a->arrivals, &a->capacity, a->count + 1, sizeof *a->arrivals);
    arrival *now = &a->arrivals[a->count++];
    now->op = *op;
    now->address = address;
    now->position = t->position;
    now->state = state;
    now->size = size;
    if (the_checker.replay != NULL || !fiber_can_be_set_back())
        return false;
    return fiber_save(&now->moment);
}

bool rounds_have(unsigned position)
{
    const arrivals *a = arrivals_of_running();
    return a->count != 0 && a->arrivals[a->count - 1].position == position;
}

/* ---- Rehearsals ---- */

static _Noreturn void end_rehearsal(bool is_same)
{
    arrivals *a = arrivals_of_running();
    a->is_same = is_same;
    execution_running()->rehearses = false;
    fiber_set_back(&a->present);
}

void rounds_differ(void)
{
    end_rehearsal(false);
}

const event *rounds_load(const operation *op, uintptr_t address, hidden which, reference *self)
{
    const thread_record *t = execution_running();
    arrivals *a = arrivals_of_running();
    const event *e = running_event(a->next);
    if (a->next == t->position || e->kind != EVENT_LOAD || op->wait != WAIT_NEVER ||
        !same_operands(&e->op, op) || e->op.order != op->order ||
        e->op.order_if_failed != op->order_if_failed ||
        !location_is_at(the_checker.g, e->location, address, which))
        rounds_differ();
    if (self != NULL)
        *self = (reference){(uint16_t)the_execution.running, (uint16_t)a->next};
    a->next++;
    return e;
}

void rounds_store(void)
{
    arrivals *a = arrivals_of_running();
    if (a->next != execution_running()->position && running_event(a->next)->kind == EVENT_STORE)
        a->next++;
}

void rounds_fence(const operation *op)
{
    arrivals *a = arrivals_of_running();
    const event *e = running_event(a->next);
    if (a->next == execution_running()->position || e->kind != EVENT_FENCE ||
        e->op.order != op->order)
        rounds_differ();
    a->next++;
}

void rounds_relax(void)
{
    if (++arrivals_of_running()->idle > MAX_IDLE_ROUNDS)
        rounds_differ();
}

/* The thread that rehearses has come to a change. */
static _Noreturn void compare_act(const act *now)
{
    arrivals *a = arrivals_of_running();
    unsigned state = a->states.used, size = 0;
    end_rehearsal(a->next == execution_running()->position && now->kind == a->act.kind &&
                  now->kind != ACT_OTHER && now->where == a->act.where &&
                  now->address == a->act.address && now->value == a->act.value &&
                  (now->kind == ACT_END || (snapshot_take(&a->states, &size) && size == a->size &&
                                            same_state(a, a->state, state, size))));
}

/* The last arrival at which the thread began the same step as at arrival i; i if there is none. */
static unsigned last_like(const arrivals *a, unsigned i)
{
    const event *first = running_event(a->arrivals[i].position);
    unsigned j = a->count - 1;
    while (j > i) {
        const event *e = running_event(a->arrivals[j].position);
        if (a->arrivals[j].position > a->arrivals[i].position && e->location == first->location &&
            same_operands(&e->op, &first->op) && e->op.order == first->op.order)
            break;
        j--;
    }
    return j;
}

/* True if the running thread would come to this change without some of its rounds. */
static bool has_unneeded_round(thread_record *t, const act *now)
{
    arrivals *a = arrivals_of_running();
    const void *caller = the_execution.caller;
    if (!fiber_can_be_set_back())
        return false;
    a->act = *now;
    a->state = a->states.used;
    a->size = 0;
    if (now->kind != ACT_END && !snapshot_take(&a->states, &a->size))
        return false;
    for (unsigned i = 0; i + 1 < a->count; i++) {
        unsigned j = last_like(a, i);
        if (j == i || a->arrivals[i].position >= t->position ||
            a->arrivals[j].position >= t->position)
            continue;
        a->next = a->arrivals[j].position;
        a->idle = 0;
        if (!fiber_save(&a->present)) {
            t->rehearses = true;
            fiber_set_back(&a->arrivals[i].moment);
        }
        the_execution.caller = caller;
        if (a->is_same)
            return true;
    }
    return false;
}

void rounds_act(act_kind kind, const void *where, uintptr_t address, uint64_t value)
{
    thread_record *t = execution_running();
    arrivals *a = arrivals_of_running();
    act now = {kind, where, address, value};
    if (t->rehearses)
        compare_act(&now);
    if (a->count != 0 && t->position != 0 && is_at_end(t) && the_checker.replay == NULL) {
        bool halts = running_event(t->position - 1)->round == HALTS;
        if (halts || (kind != ACT_OTHER && a->count > 1 && has_unneeded_round(t, &now))) {
            stop_after(t, a->arrivals[0].position, HALTS);
            execution_halt();
        }
    }
    rounds_forget();
}

void rounds_forget(void)
{
    arrivals *a = arrivals_of_running();
    a->acted = execution_running()->position;
    a->count = a->states.used = 0;
}

bool rounds_change(const event *e)
{
    switch (e->kind) {
    case EVENT_LOAD:
        return e->op.wait != WAIT_NEVER;
    case EVENT_STORE:
        return !e->is_rmw || e->value != e[-1].value;
    default:
        return e->kind == EVENT_CHOICE;
    }
}

void rounds_begin(unsigned thread)
{
    const thread_events *events = &the_checker.g->threads[thread];
    arrivals *a = &arrived[thread];
    a->count = a->states.used = a->acted = 0;
    a->acts = events->count;
    while (a->acts != 0 && !rounds_change(&events->events[a->acts - 1]))
        a->acts--;
}

void rounds_reset(void)
{
    loops_count = 0;
}
