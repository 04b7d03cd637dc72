#include "spin.h"

#include "storage.h"

enum { MAX_ROUNDS_IN_PERIOD = 8, MAX_ROUNDS_MORE = 100000 };

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

const event *spin_step(const operation *op, uintptr_t address, hidden which, reference *self)
{
    thread_record *t = execution_running();
    const event *e = &the_checker.g->threads[the_execution.running].events[t->next];
    if (e->op.site != op->site || e->op.step != op->step || op->wait != WAIT_NEVER ||
        (e->kind == EVENT_LOAD && !location_is_at(the_checker.g, e->location, address, which)))
        execution_gave_up_spinning();
    if (op->is_rmw && !e->spurious && op->expected != e->op.expected)
        execution_block(); /* it may succeed now */
    if (self != NULL)
        *self = (reference){(uint16_t)the_execution.running, (uint16_t)t->next};
    if (++t->next == t->position)
        t->next = t->period;
    return e;
}

/* Lets a thread that spins go on, unless it was seen before what comes of it. */
static void go_on(thread_record *t)
{
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
    t->goes_on = true;
}

void spin_forget(void)
{
    tried_count = 0;
}

void spin_look_at_time(void)
{
    if (the_execution.running != NOBODY)
        execution_running()->looks_at_time = true;
}

void spin_relax(void)
{
    thread_record *t = execution_running();
    if (t->goes_on) {
        if (++t->more > MAX_ROUNDS_MORE)
            execution_block();
        return;
    }
    if (t->position == t->rounds[t->rounds_count - 1]) {
        /* Another hint in the same round; or it looks at no atomic object: its own plain memory may
         * yet end it, another's would be a race. */
        if (++t->idle > the_checker.max_steps)
            execution_found(BIDE_CHECK_LIVELOCK, "thread %u spins, and looks at no atomic object",
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
                "thread %u spins until a time that never comes: what it does then is not "
                "looked at",
                the_execution.running);
        t->spins = true;
        t->period = from;
        go_on(t);
    }
    t->looks_at_time = false;
}

void spin_begin(thread_record *t)
{
    t->spins = t->goes_on = t->looks_at_time = false;
    t->idle = 0;
    t->rounds_count = 0;
    begin_round(t);
}
