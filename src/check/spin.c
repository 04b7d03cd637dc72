/*
 * A round is the steps between two calls of spin_relax(). A thread spins if its last n rounds repeat
 * the n rounds before them, for some n up to MAX_ROUNDS_IN_PERIOD. Most loops are found sooner, by
 * rounds.c; these are the loops that count their rounds.
 */
#include "spin.h"

#include "rounds.h"
#include "sample.h"
#include "storage.h"

enum { MAX_ROUNDS_IN_PERIOD = 8, MAX_TRIAL_ROUNDS = 100000 };

/* The places where a thread has been on trial. */
static const bide_check_site_ **tried;
static unsigned tried_count, tried_capacity;

/* True if b is the same step as a, and neither changes anything. */
static bool is_repeated(const event *a, const event *b)
{
    if (a->op.site != b->op.site || a->op.step != b->op.step || a->kind != b->kind)
        return false;
    if (a->kind == EVENT_FENCE)
        return true;
    return a->kind == EVENT_LOAD && !a->is_rmw && !b->is_rmw && a->location == b->location &&
           same_reference(a->rf, b->rf);
}

/* True if the events [middle, end) repeat the events [begin, middle). */
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

/* Returns the position at which the rounds that repeat begin; the thread's position if none do. */
static unsigned repeated_from(const thread_record *t)
{
    const event *events = the_checker.g->threads[the_execution.running].events;
    unsigned last = t->rounds_count - 1;
    for (unsigned n = 1; n <= MAX_ROUNDS_IN_PERIOD && 2 * n <= last; n++) {
        if (are_repeated(events, t->rounds[last - 2 * n], t->rounds[last - n], t->rounds[last]))
            return t->rounds[last - n];
    }
    return t->position;
}

static void begin_round(thread_record *t)
{
    t->rounds = grown(t->rounds, &t->rounds_capacity, t->rounds_count + 1, sizeof *t->rounds);
    t->rounds[t->rounds_count++] = t->position;
}

static void end_trial_step(thread_record *t)
{
    if (++t->next != t->position)
        return;
    t->next = t->period;
    if (++t->more > MAX_TRIAL_ROUNDS)
        execution_block();
}

const event *spin_step(const operation *op, uintptr_t address, hidden which, reference *self)
{
    thread_record *t = execution_running();
    const event *e = &the_checker.g->threads[the_execution.running].events[t->next];
    if (e->op.site != op->site || e->op.step != op->step || op->wait != WAIT_NEVER ||
        (e->kind == EVENT_LOAD && !location_is_at(the_checker.g, e->location, address, which)))
        execution_gave_up_spinning();
    if (op->is_rmw && !e->spurious && op->expected != e->op.expected)
        execution_block(); /* it may succeed with another expected value */
    if (self != NULL)
        *self = (reference){(uint16_t)the_execution.running, (uint16_t)t->next};
    end_trial_step(t);
    return e;
}

void spin_store(const operation *op, uint64_t value, const reference *load)
{
    thread_record *t = execution_running();
    const event *events = the_checker.g->threads[the_execution.running].events;
    if (load == NULL || value != events[load->index].value)
        execution_gave_up_spinning();
    if (events[t->next].kind == EVENT_STORE && events[t->next].op.site == op->site)
        end_trial_step(t);
}

void spin_found(thread_record *t, unsigned from)
{
    t->spins = true;
    t->period = from;
    const bide_check_site_ *site =
        the_checker.g->threads[the_execution.running].events[t->position - 1].op.site;
    for (unsigned i = 0; i < tried_count; i++) {
        if (tried[i] == site)
            execution_block();
    }
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): they are pointers */
    tried = grown(tried, &tried_capacity, tried_count + 1, sizeof *tried);
    tried[tried_count++] = site;
    t->next = t->period;
    t->more = 0;
    t->on_trial = true;
}

void spin_reset(void)
{
    tried_count = 0;
}

void spin_look_at_time(void)
{
    if (the_execution.running == NOBODY)
        return;
    execution_running()->looks_at_time = true;
    rounds_act(ACT_OTHER, NULL, 0, 0);
}

void spin_relax(void)
{
    thread_record *t = execution_running();
    if (t->on_trial)
        return;
    if (t->rehearses) {
        rounds_relax();
        return;
    }
    if (t->position == t->rounds[t->rounds_count - 1]) {
        /* A second call in one round, or a loop without a step. Its own plain memory may end such a
         * loop; plain memory of another thread would be a race. */
        if (++t->idle > the_checker.max_steps)
            execution_found(BIDE_CHECK_LIVELOCK, "thread %u spins without reading an atomic object",
                            the_execution.running);
        return;
    }
    t->idle = 0;
    begin_round(t);
    unsigned from = repeated_from(t);
    if (from != t->position) {
        if (t->looks_at_time)
            execution_found(
                BIDE_CHECK_BAD_SCENARIO,
                "thread %u spins until a time that never comes: the code after that is not "
                "checked",
                the_execution.running);
        if (the_checker.samples)
            sample_spins();
        else
            spin_found(t, from);
    }
    t->looks_at_time = false;
}

void spin_begin(thread_record *t)
{
    t->spins = t->on_trial = t->looks_at_time = false;
    t->rehearses = t->postpones = false;
    t->idle = 0;
    t->rounds_count = 0;
    begin_round(t);
}
