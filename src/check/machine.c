/*
 * Runs the code of a scenario along an execution graph.
 *
 * Each thread of the scenario is a fiber, which runs until its next atomic operation. One system
 * thread runs all fibers, one at a time, so nothing here is atomic.
 *
 * 1. If the graph has an event for the operation, the thread takes the value from that event. If the
 *    event is a load, the thread first waits until the store that the load reads has been run. So
 *    plain memory changes in an order that the graph allows.
 * 2. New events are added only after all events of the graph have been run again.
 * 3. A thread that has started is ready, blocked or done. It is blocked at a load that waits, or while
 *    it spins. Nothing unblocks it within a run: reading another value belongs to another graph.
 * 4. If all remaining threads are blocked, they may wait forever if each load of their last rounds
 *    read the newest value: the newest store, or a store that only read-modify-writes of the same
 *    value follow. Such stores may belong to the round itself (rounds.c, 1) or to the round of
 *    another thread.
 *
 *    Proof: let the threads continue, and let each load read the newest store, which is always
 *    consistent (explore.c, 4). A load then reads the value that it read in the last round. So the
 *    thread ends the round in the state in which it began, and its read-modify-writes again store
 *    what they read. No value changes, so all further rounds are the same.
 *
 *    A store of another kind is read by the load in another graph, which is judged by itself.
 */
#include "machine.h"

#include "accesses.h"
#include "crash.h"
#include "decide.h"
#include "locals.h"
#include "locks.h"
#include "memory.h"
#include "posix.h"
#include "replay.h"
#include "rounds.h"
#include "sample.h"
#include "sc_order.h"
#include "spin.h"
#include "symmetry.h"
#include "trace.h"

#include "bide/platform.h"

#include <errno.h>

static unsigned events_left; /* the number of the graph's events that have not been run again */
static bool fibers_made;
static void *scenario_state;

#define G the_checker.g

const event *machine_last_use(uintptr_t address, hidden which)
{
    for (unsigned i = execution_running()->position; i-- > 0;) {
        const event *e = &G->threads[the_execution.running].events[i];
        if (e->kind <= EVENT_STORE && location_is_at(G, e->location, address, which))
            return e;
    }
    return NULL;
}

/* ---- Steps ---- */

static bool is_ready_to_run(const event *e)
{
    return e->kind != EVENT_LOAD || execution_has_run(e->rf);
}

/*
 * Waits until this thread may take its next step. Returns the event that the graph has for the step,
 * or NULL if the event must be added.
 */
static event *wait_for_turn(const operation *op)
{
    machine_settle();
    thread_record *t = execution_running();
    if (t->on_trial)
        execution_gave_up_spinning();
    t->at = op->site;
    for (;;) {
        if (t->position < G->threads[the_execution.running].count) {
            event *e = &G->threads[the_execution.running].events[t->position];
            if (is_ready_to_run(e)) {
                if (e->op.step != op->step || e->op.site != op->site)
                    execution_found(
                        BIDE_CHECK_BAD_SCENARIO,
                        "thread %u did something else when it was run again: the scenario "
                        "depends on something that the checker does not control",
                        the_execution.running);
                return e;
            }
        } else if (events_left == 0 || the_execution.running == LAST) {
            if (t->position >= the_checker.max_steps)
                execution_found(BIDE_CHECK_LIVELOCK, "thread %u took more than %u steps",
                                the_execution.running, the_checker.max_steps);
            if (sample_draws() ? sample_is_turn_of(the_execution.running)
                               : replay_is_turn_of(the_execution.running))
                return NULL;
        }
        execution_leave();
    }
}

static reference step_taken(bool again)
{
    thread_record *t = execution_running();
    reference self = {(uint16_t)the_execution.running, (uint16_t)t->position++};
    bide_assert(t->position <= G->threads[the_execution.running].count);
    bide_assert(!again || the_execution.running == LAST || events_left != 0);
    if (again && the_execution.running != LAST)
        events_left--;
    if (!again)
        replay_step((event_kind)event_at(G, self)->kind);
    if (the_checker.only_grows)
        sc_order_add(G, self);
    if (sample_draws())
        sample_step(self);
    execution_add(self);
    t->clock = event_at(G, self)->hb;
    t->at = NULL;
    return self;
}

static void watch_atomic(const operation *op, uintptr_t address, size_t size, hidden which,
                         access_kind kind)
{
    if (which == HIDDEN_NONE || which == HIDDEN_LOCK)
        accesses_add(address, size, kind, op->site, NULL);
}

uint64_t machine_load(const operation *op, uintptr_t address, size_t size, hidden which,
                      const vector_clock *older, reference *self)
{
    thread_record *t = execution_running();
    bool may_spin = which == HIDDEN_NONE && op->wait == WAIT_NEVER && older == NULL;
    if (t->on_trial || t->rehearses || (may_spin && rounds_arrive(op, address)))
        return (t->rehearses ? rounds_load(op, address, which, self)
                             : spin_step(op, address, which, self))
            ->value;
    if (!may_spin)
        rounds_act(ACT_OTHER, NULL, 0, 0);
    event *e = wait_for_turn(op);
    while (
        op->wait != WAIT_NEVER && sample_draws() &&
        !decide_may_load(G, the_execution.running, op, location_for(G, e, address, size, which)) &&
        sample_waits())
        e = wait_for_turn(op);
    operation gated;
    if (symmetry_is_used && op->is_rmw) {
        gated = symmetry_pass(op, address, e);
        op = &gated;
    }
    watch_atomic(op, address, size, which, ACCESS_ATOMIC_READ);
    unsigned location = location_for(G, e, address, size, which);
    if (e == NULL && !decide_load(G, the_execution.running, op, location, older))
        execution_give_up();
    reference r = step_taken(e != NULL);
    e = event_at(G, r);
    if (e->location != location)
        execution_found(BIDE_CHECK_BAD_SCENARIO,
                        "thread %u used another object when it was run again",
                        the_execution.running);
    if (is_initial(e->rf) && which == HIDDEN_NONE)
        accesses_read_initial(address, size, e->value, op->site);
    if (e->blocked)
        execution_block();
    execution_running()->in_rmw = e->is_rmw;
    if (self != NULL)
        *self = r;
    return e->value;
}

uint64_t machine_load_part(const operation *op, uintptr_t address, size_t size,
                           const vector_clock *older)
{
    size_t whole = size;
    uintptr_t begin = location_around(G, wait_for_turn(op), address, &whole);
    size_t shift = address - begin;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    shift = whole - size - shift;
#endif
    return machine_load(op, begin, whole, HIDDEN_NONE, older, NULL) >> shift * 8;
}

static void store_now(const operation *op, uintptr_t address, size_t size, hidden which,
                      uint64_t value, const reference *load)
{
    event *e = wait_for_turn(op);
    if (symmetry_is_used && e == NULL)
        symmetry_store();
    execution_running()->in_rmw = false;
    unsigned location = location_for(G, e, address, size, which);
    value = memory_fitting(value, size);
    bool added = e == NULL;
    reference read = load != NULL ? event_at(G, *load)->rf : INITIAL;
    if (added && !decide_store(G, the_execution.running, op, location, value, read))
        execution_give_up();
    watch_atomic(op, address, size, which, ACCESS_ATOMIC_WRITE); /* of a store that is possible */
    e = event_at(G, step_taken(!added));
    if (e->value != value || e->location != location)
        execution_found(BIDE_CHECK_BAD_SCENARIO,
                        "thread %u wrote something else when it was run again",
                        the_execution.running);
}

/*
 * A read-modify-write that changes nothing, as a failed test-and-set, may be a round of a loop, which
 * then needs no store. So its store is postponed until the thread does something else.
 */
static struct {
    operation op;
    uintptr_t address;
    size_t size;
    uint64_t value;
    reference load;
} postponed[THREADS];

void machine_settle(void)
{
    thread_record *t = execution_running();
    if (t->rehearses)
        rounds_differ();
    if (!t->postpones)
        return;
    t->postpones = false;
    unsigned i = the_execution.running;
    store_now(&postponed[i].op, postponed[i].address, postponed[i].size, HIDDEN_NONE,
              postponed[i].value, &postponed[i].load);
}

void machine_store(const operation *op, uintptr_t address, size_t size, hidden which,
                   uint64_t value, const reference *load)
{
    thread_record *t = execution_running();
    if (t->on_trial) {
        spin_store(op, value, load);
        return;
    }
    value = memory_fitting(value, size);
    bool changes = load == NULL || which != HIDDEN_NONE || event_at(G, *load)->value != value;
    if (changes) {
        rounds_act(which == HIDDEN_NONE ? ACT_STORE : ACT_OTHER, op->site, address, value);
    } else if (t->rehearses) {
        rounds_store();
        return;
    } else if (op->step != STEP_COMPARE_EXCHANGE && rounds_have(load->index) &&
               t->position == G->threads[the_execution.running].count) {
        unsigned i = the_execution.running;
        postponed[i].op = *op;
        postponed[i].address = address;
        postponed[i].size = size;
        postponed[i].value = value;
        postponed[i].load = *load;
        t->postpones = true;
        return;
    }
    store_now(op, address, size, which, value, load);
    if (changes)
        rounds_forget();
}

void machine_init(const operation *op, uintptr_t address, size_t size, uint64_t value)
{
    rounds_act(ACT_OTHER, NULL, 0, 0);
    event *e = wait_for_turn(op);
    if (symmetry_is_used && e == NULL)
        symmetry_store();
    accesses_add(address, size, ACCESS_WRITE, op->site, NULL);
    value = memory_fitting(value, size);
    unsigned location = location_anew(G, e, address, size);
    if (e == NULL)
        decide_init(G, the_execution.running, op, location, value);
    step_taken(e != NULL);
}

void machine_fence(const operation *op)
{
    if (execution_is_on_trial()) {
        spin_step(op, 0, HIDDEN_NONE, NULL);
        return;
    }
    if (execution_running()->rehearses) {
        rounds_fence(op);
        return;
    }
    event *e = wait_for_turn(op);
    if (e == NULL)
        decide_fence(G, the_execution.running, op);
    step_taken(e != NULL);
}

unsigned machine_choose(const operation *op, unsigned count)
{
    rounds_act(ACT_OTHER, NULL, 0, 0);
    event *e = wait_for_turn(op);
    if (e == NULL && !decide_choice(G, the_execution.running, op, count))
        execution_give_up();
    return (unsigned)event_at(G, step_taken(e != NULL))->value;
}

bool machine_may_be_spurious(void)
{
    reference next = {(uint16_t)the_execution.running, (uint16_t)execution_running()->position};
    return decide_spurious_left(G, next);
}

bool machine_may_fail_to_allocate(void)
{
    reference next = {(uint16_t)the_execution.running, (uint16_t)execution_running()->position};
    return decide_failures_left(G, next);
}

/* ---- Threads ---- */

/* The end of the running thread. */
static void end_thread(void *result)
{
    thread_record *t = execution_running();
    posix_end();
    rounds_act(ACT_END, NULL, 0, (uintptr_t)result);
    machine_settle();
    locks_end();
    locals_end();
    if (t->spawned != NULL) {
        static bide_check_site_ end = {"", "", "", 0, 0};
        operation op = {.site = &end, .step = STEP_END, .order = bide_check_release_};
        t->result = result;
        machine_store(&op, (uintptr_t)t, 1, HIDDEN_THREAD, 2, NULL);
        machine_settle();
    }
    if (t->on_trial)
        execution_gave_up_spinning();
    t->state = DONE;
}

static void thread_main(void *argument)
{
    thread_record *t = argument;
    void *result = NULL;
    errno = 0;
    if (t->spawned != NULL) {
        static bide_check_site_ begin = {"", "", "", 0, 0};
        operation op = {.site = &begin,
                        .step = STEP_BEGIN,
                        .order = bide_check_acquire_,
                        .wait = WAIT_UNTIL_EQUAL,
                        .expected = 1};
        machine_load(&op, (uintptr_t)t, 1, HIDDEN_THREAD, NULL, NULL);
        result = t->spawned(t->argument);
    } else {
        t->function(scenario_state);
    }
    end_thread(result);
}

void machine_exit(void *result)
{
    end_thread(result);
    fiber_abandon();
}

unsigned machine_spawn(void *(*function)(void *), void *argument, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_SPAWN, .order = bide_check_release_};
    unsigned number;
    if (the_execution.running == LAST)
        execution_found(BIDE_CHECK_BAD_SCENARIO, "a thread is started in the final check");
    if (symmetry_is_used && symmetry_has_equal())
        execution_found(BIDE_CHECK_BAD_SCENARIO, "a thread that has an equal one starts another");
    const event *e = wait_for_turn(&op);
    if (e != NULL) {
        number = (unsigned)e->op.operand;
    } else {
        /* The first thread that is not started in this graph. */
        bool is_taken[THREADS] = {false};
        for (unsigned t = 0; t < THREADS; t++) {
            is_taken[t] =
                is_taken[t] || t == SETUP || t == LAST || the_execution.threads[t].function != NULL;
            for (unsigned i = 0; i < G->threads[t].count; i++) {
                if (G->threads[t].events[i].op.step == STEP_SPAWN)
                    is_taken[G->threads[t].events[i].op.operand] = true;
            }
        }
        for (number = 1; number < LAST && is_taken[number];)
            number++;
        if (number == LAST)
            return 0;
    }
    op.operand = number;
    thread_record *t = &the_execution.threads[number];
    machine_store(&op, (uintptr_t)t, 1, HIDDEN_THREAD, 1, NULL);
    t->spawned = function;
    t->argument = argument;
    t->state = WAITING_TO_START;
    return number;
}

void machine_join(unsigned thread, bide_check_site_ *site, void **result)
{
    operation op = {.site = site,
                    .step = STEP_JOIN,
                    .order = bide_check_acquire_,
                    .wait = WAIT_UNTIL_EQUAL,
                    .expected = 2};
    if (the_execution.running == SETUP)
        execution_found(BIDE_CHECK_BAD_SCENARIO, "a thread is joined in the set-up");
    machine_load(&op, (uintptr_t)&the_execution.threads[thread], 1, HIDDEN_THREAD, NULL, NULL);
    if (result != NULL)
        *result = the_execution.threads[thread].result;
}

/* Runs a thread until it leaves. */
static void run_thread(unsigned number)
{
    thread_record *t = &the_execution.threads[number];
    bide_assert(the_execution.running == NOBODY &&
                (t->state == WAITING_TO_START || t->state == READY));
    the_execution.running = number;
    bool starts = t->state == WAITING_TO_START;
    execution_turn_begins();
    if (t->state == WAITING_TO_START) {
        vector_clock porf;
        t->state = READY;
        clock_before(G, (reference){(uint16_t)number, 0}, &t->clock, &porf);
        fiber_start(&t->fiber, thread_main, t);
    } else {
        fiber_resume(&t->fiber);
    }
    /* (a sampled thread that still waits has done nothing, unless it has started) */
    bool waits = the_checker.samples && !starts && t->state == READY;
    bool idle = !the_checker.stopped && !waits && execution_turn_was_idle();
    the_execution.running = NOBODY;
    if (!crash_report(number, the_execution.threads[number].at) && idle)
        replay_idle_run(number);
}

static bool can_continue(unsigned number)
{
    return (the_execution.threads[number].state == WAITING_TO_START ||
            the_execution.threads[number].state == READY) &&
           !(symmetry_is_used && symmetry_holds(number));
}

static bool can_replay_step(unsigned number)
{
    const thread_record *t = &the_execution.threads[number];
    return can_continue(number) && t->position < G->threads[number].count &&
           is_ready_to_run(&G->threads[number].events[t->position]);
}

static bool all_ended(void)
{
    bool all = true;
    for (unsigned t = 1; t < LAST; t++)
        all = all &&
              (the_execution.threads[t].state == DONE || the_execution.threads[t].state == ABSENT);
    return all;
}

/*
 * Returns the thread that runs next in the replay; NOBODY if all threads have ended, or if the replay
 * does not fit.
 */
static unsigned replayed_thread(unsigned wanted)
{
    if (wanted != SETUP && wanted != LAST && can_continue(wanted))
        return wanted;
    if (wanted != LAST || !all_ended())
        replay_mismatch();
    return NOBODY;
}

/* Returns the thread that runs next; NOBODY if none can. */
static unsigned next_thread(void)
{
    if (sample_draws())
        return sample_next_thread();
    unsigned scripted = replay_next_thread();
    if (scripted != NOBODY)
        return replayed_thread(scripted);
    unsigned first = NOBODY;
    for (unsigned t = LAST; t-- > 1;) {
        if (events_left != 0 ? can_replay_step(t) : can_continue(t))
            first = t;
    }
    for (unsigned t = 1; t < LAST && events_left == 0; t++) {
        if (can_continue(t) && the_execution.threads[t].in_rmw)
            first = t;
    }
    return first == NOBODY && symmetry_is_used && events_left == 0 ? symmetry_release() : first;
}

/* True if the stores after the one that the load read have not changed the value: see 4 above. */
static bool has_newest_value(const event *load)
{
    const location *l = &G->locations[load->location];
    for (unsigned i = position_of(G, load->rf) + 1; i < l->count; i++) {
        if (!is_rmw_store(G, l->stores[i]) || value_of(G, l, l->stores[i]) != load->value)
            return false;
    }
    return true;
}

/*
 * All remaining threads wait. They may wait forever only if each has seen the newest values, and no
 * wait has a deadline, by which it would end in another execution.
 */
static void judge_blocked(void)
{
    unsigned first = NOBODY;
    for (unsigned t = THREADS; t-- > 0;) {
        thread_record *m = &the_execution.threads[t];
        if (m->state != BLOCKED)
            continue;
        if (m->halted)
            return;
        for (unsigned i = m->spins ? m->period : m->position - 1; i < m->position; i++) {
            const event *e = &G->threads[t].events[i];
            if (e->kind != EVENT_LOAD)
                continue;
            if (e->spurious)
                return;
            if (!has_newest_value(e))
                return;
            if (e->op.wait != WAIT_NEVER && e->op.operand != 0)
                return;
        }
        first = t;
    }
    trace_blocked(first, the_execution.threads[first].spins);
}

/* `all`: the threads of this phase have ended. False: the execution does not continue. */
static bool has_ended(bool all)
{
    if (the_execution.given_up || the_checker.stopped)
        return false;
    if (all)
        return true;
    /* The replay names a thread that cannot continue. */
    if (replay_next_thread() != NOBODY) {
        replay_mismatch();
        return false;
    }
    the_checker.result->blocked++;
    judge_blocked();
    return false;
}

static void begin_run(graph *g)
{
    G = g;
    locations_begin_run();
    execution_begin();
    sc_order_begin();
    events_left = 0;
    memory_reset();
    accesses_reset();
    posix_begin();
    trace_execution_began();
    const bide_check_scenario *scenario = the_checker.scenario;
    bool more = true;
    for (unsigned t = 0; t < THREADS; t++) {
        thread_record *m = &the_execution.threads[t];
        events_left += t != LAST ? g->threads[t].count : 0;
        m->function = NULL;
        if (t == SETUP) {
            m->function = scenario->setup;
        } else if (t == LAST) {
            m->function = scenario->finish;
        } else if (t <= BIDE_CHECK_THREADS && more) {
            m->function = scenario->threads[t - 1];
            more = m->function != NULL;
        }
        m->state = m->function != NULL ? WAITING_TO_START : ABSENT;
        m->spawned = NULL;
        m->position = 0;
        m->in_rmw = false;
        m->at = NULL;
        m->halted = false;
        spin_begin(m);
        rounds_begin(t);
        locals_begin(t);
        locks_begin(t);
    }
    symmetry_begin();
}

static void prepare_memory(void)
{
    scenario_state = memory_prepare(the_checker.scenario);
    for (unsigned t = 0; t < THREADS; t++) {
        if (fibers_made)
            fiber_resize(&the_execution.threads[t].fiber, memory_stack(t), memory_stack_size());
        else
            fiber_create(&the_execution.threads[t].fiber, memory_stack(t), memory_stack_size());
    }
    fibers_made = true;
}

static void end_run(void)
{
    if (!has_ended(all_ended()))
        return;
    if (the_execution.threads[LAST].state != ABSENT) {
        run_thread(LAST);
        if (!has_ended(the_execution.threads[LAST].state == DONE))
            return;
    }
    if (!replay_is_finished()) {
        replay_mismatch();
        return;
    }
    size_t bytes;
    unsigned blocks = memory_leaked(&bytes);
    if (blocks != 0) {
        execution_found(BIDE_CHECK_LEAK, "%zu bytes in %u blocks are never freed", bytes, blocks);
        return;
    }
    the_checker.result->executions++;
    trace_execution_ended();
}

static void run_execution(graph *g)
{
    if (g->stamp == 0)
        prepare_memory();
    begin_run(g);
    if (the_execution.threads[SETUP].state != ABSENT) {
        run_thread(SETUP);
        if (!has_ended(the_execution.threads[SETUP].state == DONE))
            return;
    }
    for (;;) {
        unsigned next = next_thread();
        if (next == NOBODY)
            break;
        run_thread(next);
        if (the_execution.given_up || the_checker.stopped)
            return;
    }
    if (events_left != 0) {
        execution_found(
            BIDE_CHECK_BAD_SCENARIO,
            "a thread did less when it was run again: the scenario depends on something that "
            "the checker does not control");
        return;
    }
    end_run();
}

void machine_run(graph *g)
{
    run_execution(g);
    if (the_checker.result->finding != BIDE_CHECK_NOTHING)
        trace_finding();
    else if (the_checker.replay != NULL)
        trace_replayed();
}
