/*
 * Runs the code of a scenario along an execution graph.
 *
 * Each thread is a fiber. It runs until it comes to its next atomic operation. If the graph knows that one already,
 * it goes on with what the graph says; it must wait, though, until what it reads has been run by its
 * own thread, so that plain memory changes in an order that the graph allows. Only when all of the graph
 * has been run again do new events come.
 *
 * A thread is ready, blocked (at a load that waits, or spinning), or done. Nothing unblocks a thread within a
 * run: that another value might be read is another graph.
 */
#include "machine.h"

#include "crash.h"
#include "fiber.h"
#include "memory.h"
#include "script.h"
#include "storage.h"
#include "trace.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef enum thread_state { ABSENT, WAITING_TO_START, READY, BLOCKED, DONE } thread_state;

typedef struct machine_thread_record {
    fiber fiber;
    void (*function)(void *state);
    void *(*spawned)(void *argument);
    void *argument;
    void *result;
    thread_state state;
    unsigned position;          /* how many of its events have been run */
    const bide_check_site_ *at; /* the step that it is about to take */
    bool in_rmw;                /* between the two halves: it goes on before any other */
    bool spins;
    bool halted;      /* the execution does not exist, or is like another */
    unsigned *rounds; /* of a spin: the positions at which they began, and the next one does */
    unsigned rounds_count, rounds_capacity;
    unsigned period;    /* where what it spins through begins */
    unsigned idle;      /* how many rounds took no step at all */
    bool looks_at_time; /* since the last round began */
    bool
        goes_on; /* it spins, and is let go on to see whether it ever stops: no steps are taken any more */
    unsigned next;      /* then: the step of the period that comes next */
    unsigned more;      /* and how many rounds more there were */
    vector_clock clock; /* what it has seen */
} machine_thread_record;

enum { NOBODY = THREADS };

static machine_thread_record threads[THREADS];
static unsigned running = NOBODY;
static unsigned left; /* of the graph's events, to be run again */
static bool given_up;
static bool fibers_made;
static void *state;

static reference *order;
static unsigned order_count, order_capacity;
static idle_run *idle_runs;
static unsigned idle_runs_count, idle_runs_capacity;
static unsigned run_began; /* the running thread's: after so many steps */

#define G the_checker.g

bool machine_is_running(void)
{
    return running != NOBODY;
}

unsigned machine_thread(void)
{
    return running;
}

const event *machine_event(reference r)
{
    return event_at(G, r);
}

const event *machine_last_use(uintptr_t address, hidden which)
{
    for (unsigned i = threads[running].position; i-- > 0;) {
        const event *e = &G->threads[running].events[i];
        if (e->kind <= EVENT_STORE && location_is_at(G, e->location, address, which))
            return e;
    }
    return NULL;
}

bool machine_has_run(reference r)
{
    return is_initial(r) || threads[r.thread].position > r.index;
}

const reference *machine_order(unsigned *count)
{
    *count = order_count;
    return order;
}

const idle_run *machine_idle_runs(unsigned *count)
{
    *count = idle_runs_count;
    return idle_runs;
}

/* If the running thread has taken no step, that is remembered. */
static bool note_idle_run(void)
{
    if (run_began != order_count || running == SETUP || running == LAST)
        return false;
    idle_runs = grown(idle_runs, &idle_runs_capacity, idle_runs_count + 1, sizeof *idle_runs);
    idle_runs[idle_runs_count++] = (idle_run){running, order_count};
    return true;
}

const vector_clock *machine_clock(void)
{
    return &threads[running].clock;
}

/* ---- Going on and waiting ---- */

static _Noreturn void give_up_spinning(void);
static const event *repeated(const operation *op, uintptr_t address, hidden which, reference *self);
static void begin_round(machine_thread_record *t);

/* Back to the scheduler. */
static void leave(void)
{
    unsigned self = running;
    fiber_leave();
    running = self;
}

static void give_up(void)
{
    given_up = true;
    for (;;)
        leave();
}

static _Noreturn void block(void)
{
    threads[running].state = BLOCKED;
    for (;;)
        leave();
}

void machine_halt(void)
{
    threads[running].halted = true;
    block();
}

void machine_found(bide_check_finding finding, const char *format, ...)
{
    va_list arguments;
    if (machine_goes_on())
        give_up_spinning();
    va_start(arguments, format);
    if (!the_checker.stopped) {
        if (running != NOBODY)
            note_idle_run();
        trace_found(finding, format, arguments);
    }
    va_end(arguments);
    the_checker.stopped = true;
    if (running != NOBODY)
        give_up();
}

static bool is_ready_to_run(const event *e)
{
    return e->kind != EVENT_LOAD || machine_has_run(e->rf);
}

/* Waits until it is this thread's turn to take its next step. Returns the event that the graph has for it, or
 * NULL if it is to be added. */
static event *turn(const operation *op)
{
    machine_thread_record *t = &threads[running];
    if (t->goes_on)
        give_up_spinning();
    t->at = op->site;
    for (;;) {
        if (t->position < G->threads[running].count) {
            event *e = &G->threads[running].events[t->position];
            if (is_ready_to_run(e)) {
                if (e->op.step != op->step || e->op.site != op->site)
                    machine_found(
                        BIDE_CHECK_BAD_SCENARIO,
                        "thread %u did something else when it was run again: the scenario "
                        "depends on something that the checker does not control",
                        running);
                return e;
            }
        } else if (left == 0 || running == LAST) {
            if (t->position >= the_checker.most_steps)
                machine_found(BIDE_CHECK_LIVELOCK, "thread %u took more than %u steps", running,
                              the_checker.most_steps);
            if (script_is_turn_of(running))
                return NULL;
        }
        leave();
    }
}

static reference taken(bool again)
{
    machine_thread_record *t = &threads[running];
    reference self = {(uint16_t)running, (uint16_t)t->position++};
    if (again && running != LAST)
        left--;
    if (!again)
        script_step((event_kind)event_at(G, self)->kind);
    order = grown(order, &order_capacity, order_count + 1, sizeof *order);
    order[order_count++] = self;
    t->clock = event_at(G, self)->hb;
    t->at = NULL;
    return self;
}

static void watch_atomic(const operation *op, uintptr_t address, size_t size, hidden which,
                         access_kind kind)
{
    if (which == HIDDEN_NONE || which == HIDDEN_LOCK)
        memory_access(address, size, kind, op->site, NULL);
}

uint64_t machine_load(const operation *op, uintptr_t address, size_t size, hidden which,
                      const vector_clock *older, reference *self)
{
    if (machine_goes_on())
        return repeated(op, address, which, self)->value;
    event *e = turn(op);
    watch_atomic(op, address, size, which, ACCESS_ATOMIC_READ);
    unsigned location = location_for(G, e, address, size, which);
    if (e == NULL && !explore_load(G, running, op, location, older))
        give_up();
    reference r = taken(e != NULL);
    e = event_at(G, r);
    if (e->location != location)
        machine_found(BIDE_CHECK_BAD_SCENARIO,
                      "thread %u used another object when it was run again", running);
    if (e->blocked)
        block();
    threads[running].in_rmw = e->is_rmw;
    if (self != NULL)
        *self = r;
    return e->value;
}

uint64_t machine_load_part(const operation *op, uintptr_t address, size_t size,
                           const vector_clock *older)
{
    size_t whole = size;
    uintptr_t begin = location_around(G, turn(op), address, &whole);
    size_t shift = address - begin;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    shift = whole - size - shift;
#endif
    return machine_load(op, begin, whole, HIDDEN_NONE, older, NULL) >> shift * 8;
}

void machine_store(const operation *op, uintptr_t address, size_t size, hidden which,
                   uint64_t value, const reference *load)
{
    event *e = turn(op);
    threads[running].in_rmw = false;
    unsigned location = location_for(G, e, address, size, which);
    watch_atomic(op, address, size, which, ACCESS_ATOMIC_WRITE);
    value = memory_fitting(value, size);
    bool added = e == NULL;
    reference read = load != NULL ? event_at(G, *load)->rf : INITIAL;
    if (added && !explore_store(G, running, op, location, value, read))
        give_up();
    e = event_at(G, taken(!added));
    if (e->value != value || e->location != location)
        machine_found(BIDE_CHECK_BAD_SCENARIO,
                      "thread %u wrote something else when it was run again", running);
}

void machine_init(const operation *op, uintptr_t address, size_t size, uint64_t value)
{
    event *e = turn(op);
    memory_access(address, size, ACCESS_WRITE, op->site, NULL);
    value = memory_fitting(value, size);
    unsigned location = location_anew(G, e, address, size);
    if (e == NULL)
        explore_init(G, running, op, location, value);
    taken(e != NULL);
}

void machine_fence(const operation *op)
{
    if (machine_goes_on()) {
        repeated(op, 0, HIDDEN_NONE, NULL);
        return;
    }
    event *e = turn(op);
    if (e == NULL)
        explore_fence(G, running, op);
    taken(e != NULL);
}

unsigned machine_choose(const operation *op, unsigned count)
{
    event *e = turn(op);
    if (e == NULL && !explore_choice(G, running, op, count))
        give_up();
    return (unsigned)event_at(G, taken(e != NULL))->value;
}

bool machine_may_be_spurious(void)
{
    reference next = {(uint16_t)running, (uint16_t)threads[running].position};
    return explore_spurious_left(G, next);
}

/* ---- Spinning ----
 *
 * A thread that has read the same all through a number of rounds of its loop would go on so until another thread does
 * something: it is blocked. If instead it would give up after so many rounds, what it does then is not looked at, and
 * that is to be told. So at each place where a thread spins, the first time, it is let go on through rounds that are
 * no steps but read the same again.
 */

enum { MOST_ROUNDS_IN_PERIOD = 8, MOST_ROUNDS_MORE = 100000 };

/* The places where a thread was let go on already. */
static const bide_check_site_ **tried;
static unsigned tried_count, tried_capacity;

/* Would the one, where the other was done, have changed nothing? */
static bool is_repeated(const event *a, const event *b)
{
    if (a->op.site != b->op.site || a->op.step != b->op.step || a->kind != b->kind)
        return false;
    if (a->kind == EVENT_FENCE)
        return true;
    return a->kind == EVENT_LOAD && !a->is_rmw && !b->is_rmw && a->location == b->location &&
           same(a->rf, b->rf);
}

/* Are the events from `begin` to `middle` repeated from there to `end`? */
static bool are_repeated(const event *events, unsigned begin, unsigned middle, unsigned end)
{
    if (middle - begin != end - middle)
        return false;
    for (unsigned i = 0; i < end - middle; i++) {
        if (!is_repeated(&events[begin + i], &events[middle + i]))
            return false;
    }
    return true;
}

/* Did the last rounds read the same as those before, as many? Where they begin; or the position. */
static unsigned repeated_from(const machine_thread_record *t)
{
    const event *events = G->threads[running].events;
    unsigned last = t->rounds_count - 1;
    for (unsigned n = 1; n <= MOST_ROUNDS_IN_PERIOD && 2 * n <= last; n++) {
        if (are_repeated(events, t->rounds[last - 2 * n], t->rounds[last - n], t->rounds[last]))
            return t->rounds[last - n];
    }
    return t->position;
}

static void begin_round(machine_thread_record *t)
{
    t->rounds = grown(t->rounds, &t->rounds_capacity, t->rounds_count + 1, sizeof *t->rounds);
    t->rounds[t->rounds_count++] = t->position;
}

/* The thread, which was let go on, has done something else. */
static _Noreturn void give_up_spinning(void)
{
    machine_thread_record *t = &threads[running];
    char where[256];
    t->goes_on = false;
    trace_site(G->threads[running].events[t->position - 1].op.site, where, sizeof where);
    machine_found(
        BIDE_CHECK_BAD_SCENARIO,
        "thread %u gives up a loop after %u more rounds that read the same, at %s: what it "
        "does then is not looked at. Let it look once, or for ever",
        running, t->more, where);
    abort(); /* that does not return */
}

bool machine_goes_on(void)
{
    return running != NOBODY && threads[running].goes_on;
}

void machine_stop_going_on(void)
{
    if (machine_goes_on())
        block();
}

/* The step of the period that is this one again. */
static const event *repeated(const operation *op, uintptr_t address, hidden which, reference *self)
{
    machine_thread_record *t = &threads[running];
    const event *e = &G->threads[running].events[t->next];
    if (e->op.site != op->site || e->op.step != op->step || op->wait != WAIT_NEVER ||
        (e->kind == EVENT_LOAD && !location_is_at(G, e->location, address, which)))
        give_up_spinning();
    if (op->is_rmw && !e->spurious && op->expected != e->op.expected)
        block(); /* it may succeed now: who knows */
    if (self != NULL)
        *self = (reference){(uint16_t)running, (uint16_t)t->next};
    if (++t->next == t->position)
        t->next = t->period;
    return e;
}

/* Lets a thread that spins go on, unless it was seen before what comes of it. */
static void go_on(machine_thread_record *t)
{
    const bide_check_site_ *site = G->threads[running].events[t->position - 1].op.site;
    for (unsigned i = 0; i < tried_count; i++) {
        if (tried[i] == site)
            block();
    }
    tried = grown(tried, &tried_capacity, tried_count + 1, sizeof *tried);
    tried[tried_count++] = site;
    t->next = t->period;
    t->more = 0;
    t->goes_on = true;
}

void machine_forget_spins(void)
{
    tried_count = 0;
}

void machine_look_at_time(void)
{
    if (running != NOBODY)
        threads[running].looks_at_time = true;
}

void machine_relax(void)
{
    machine_thread_record *t = &threads[running];
    if (t->goes_on) {
        if (++t->more > MOST_ROUNDS_MORE)
            block();
        return;
    }
    if (t->position == t->rounds[t->rounds_count - 1]) {
        /* Another hint in the same round; or it looks at no atomic object: its own plain memory may yet end it,
         * another's would be a race. */
        if (++t->idle > the_checker.most_steps)
            machine_found(BIDE_CHECK_LIVELOCK, "thread %u spins, and looks at no atomic object",
                          running);
        return;
    }
    t->idle = 0;
    begin_round(t);
    unsigned from = repeated_from(t);
    if (from != t->position) {
        if (t->looks_at_time)
            machine_found(BIDE_CHECK_BAD_SCENARIO,
                          "thread %u spins until a time that never comes: what it does then is not "
                          "looked at",
                          running);
        t->spins = true;
        t->period = from;
        go_on(t);
    }
    t->looks_at_time = false;
}

/* ---- Threads ---- */

static void thread_main(void *argument)
{
    machine_thread_record *t = argument;
    if (t->spawned != NULL) {
        static bide_check_site_ begin = {"", "", "", 0, 0}, end = {"", "", "", 0, 0};
        operation op = {.site = &begin,
                        .step = STEP_BEGIN,
                        .order = bide_check_acquire_,
                        .wait = WAIT_UNTIL_EQUAL,
                        .expected = 1};
        machine_load(&op, (uintptr_t)t, 1, HIDDEN_THREAD, NULL, NULL);
        t->result = t->spawned(t->argument);
        op = (operation){.site = &end, .step = STEP_END, .order = bide_check_release_};
        machine_store(&op, (uintptr_t)t, 1, HIDDEN_THREAD, 2, NULL);
    } else {
        t->function(state);
    }
    if (t->goes_on)
        give_up_spinning();
    t->state = DONE;
}

unsigned machine_spawn(void *(*function)(void *), void *argument, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_SPAWN, .order = bide_check_release_};
    unsigned number;
    if (running == LAST)
        machine_found(BIDE_CHECK_BAD_SCENARIO, "a thread is started when all have ended");
    const event *e = turn(&op);
    if (e != NULL) {
        number = (unsigned)e->op.operand;
    } else {
        /* The first that nobody has begun, in this graph. */
        bool is_taken[THREADS] = {false};
        for (unsigned t = 0; t < THREADS; t++) {
            is_taken[t] = is_taken[t] || t == SETUP || t == LAST || threads[t].function != NULL;
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
    machine_thread_record *t = &threads[number];
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
    if (running == SETUP)
        machine_found(BIDE_CHECK_BAD_SCENARIO, "a thread is waited for before any has begun");
    machine_load(&op, (uintptr_t)&threads[thread], 1, HIDDEN_THREAD, NULL, NULL);
    if (result != NULL)
        *result = threads[thread].result;
}

/* Runs a thread until it leaves. */
static void run_thread(unsigned number)
{
    machine_thread_record *t = &threads[number];
    running = number;
    run_began = order_count;
    if (t->state == WAITING_TO_START) {
        vector_clock porf;
        t->state = READY;
        clock_before(G, (reference){(uint16_t)number, 0}, &t->clock, &porf);
        fiber_start(&t->fiber, thread_main, t);
    } else {
        fiber_resume(&t->fiber);
    }
    bool idle = !the_checker.stopped && note_idle_run();
    running = NOBODY;
    if (!crash_report(number, threads[number].at) && idle)
        script_no_step(number);
}

static bool can_go_on(unsigned number)
{
    return threads[number].state == WAITING_TO_START || threads[number].state == READY;
}

static bool can_go_on_again(unsigned number)
{
    const machine_thread_record *t = &threads[number];
    return can_go_on(number) && t->position < G->threads[number].count &&
           is_ready_to_run(&G->threads[number].events[t->position]);
}

static bool all_ended(void)
{
    bool all = true;
    for (unsigned t = 1; t < LAST; t++)
        all = all && (threads[t].state == DONE || threads[t].state == ABSENT);
    return all;
}

/* Who runs next, as the script has it; NOBODY if the threads have ended, or it does not fit. */
static unsigned scripted_thread(unsigned wanted)
{
    if (wanted != SETUP && wanted != LAST && can_go_on(wanted))
        return wanted;
    if (wanted != LAST || !all_ended())
        script_does_not_fit();
    return NOBODY;
}

/* Who runs next; NOBODY if nobody can. */
static unsigned next_thread(void)
{
    unsigned scripted = script_next_thread();
    if (scripted != NOBODY)
        return scripted_thread(scripted);
    unsigned first = NOBODY;
    for (unsigned t = LAST; t-- > 1;) {
        if (left != 0 ? can_go_on_again(t) : can_go_on(t))
            first = t;
    }
    for (unsigned t = 1; t < LAST && left == 0; t++) {
        if (can_go_on(t) && threads[t].in_rmw)
            first = t;
    }
    return first;
}

/* Everybody who is left waits. Could they wait for ever? Only if each has seen the newest there is, and no sleep has
 * a deadline: that it ends by that is another execution. */
static void judge_blocked(void)
{
    unsigned first = NOBODY;
    for (unsigned t = THREADS; t-- > 0;) {
        machine_thread_record *m = &threads[t];
        if (m->state != BLOCKED)
            continue;
        if (m->halted)
            return;
        for (unsigned i = m->spins ? m->period : m->position - 1; i < m->position; i++) {
            const event *e = &G->threads[t].events[i];
            if (e->kind != EVENT_LOAD)
                continue;
            if (position_of(G, e->rf) + 1 != G->locations[e->location].count)
                return;
            if (e->op.step == STEP_PARKED && e->op.operand != 0)
                return;
        }
        first = t;
    }
    trace_blocked(first, threads[first].spins);
}

/* Ran all that is to run before what comes next? If not, this execution goes no further. */
static bool has_ended(bool all)
{
    if (given_up || the_checker.stopped)
        return false;
    if (all)
        return true;
    /* A script that says nothing of a thread that could go on, or too much. */
    if (script_next_thread() != NOBODY) {
        script_does_not_fit();
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
    given_up = false;
    order_count = idle_runs_count = 0;
    left = 0;
    memory_reset();
    trace_execution_began();
    const bide_check_scenario *scenario = the_checker.scenario;
    bool more = true;
    for (unsigned t = 0; t < THREADS; t++) {
        machine_thread_record *m = &threads[t];
        left += t != LAST ? g->threads[t].count : 0;
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
        m->spins = m->halted = false;
        m->idle = 0;
        m->goes_on = m->looks_at_time = false;
        m->rounds_count = 0;
        begin_round(m);
    }
}

static void prepare(void)
{
    state = memory_prepare(the_checker.scenario);
    for (unsigned t = 0; t < THREADS; t++) {
        if (fibers_made)
            fiber_resize(&threads[t].fiber, memory_stack(t), memory_stack_size());
        else
            fiber_create(&threads[t].fiber, memory_stack(t), memory_stack_size());
    }
    fibers_made = true;
}

static void end_run(void)
{
    if (!has_ended(all_ended()))
        return;
    if (threads[LAST].state != ABSENT) {
        run_thread(LAST);
        if (!has_ended(threads[LAST].state == DONE))
            return;
    }
    if (!script_is_over()) {
        script_does_not_fit();
        return;
    }
    size_t bytes;
    unsigned blocks = memory_leaked(&bytes);
    if (blocks != 0) {
        machine_found(BIDE_CHECK_LEAK, "%zu bytes in %u blocks were never freed", bytes, blocks);
        return;
    }
    the_checker.result->executions++;
    trace_execution_ended();
}

void machine_run(graph *g)
{
    if (g->stamp == 0)
        prepare();
    begin_run(g);
    if (threads[SETUP].state != ABSENT) {
        run_thread(SETUP);
        if (!has_ended(threads[SETUP].state == DONE))
            return;
    }
    for (;;) {
        unsigned next = next_thread();
        if (next == NOBODY)
            break;
        run_thread(next);
        if (given_up || the_checker.stopped)
            return;
    }
    if (left != 0) {
        machine_found(
            BIDE_CHECK_BAD_SCENARIO,
            "a thread did less when it was run again: the scenario depends on something that "
            "the checker does not control");
        return;
    }
    end_run();
}
