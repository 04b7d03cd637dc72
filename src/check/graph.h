/*
 * An execution graph: what each thread of a scenario did, which store each load read, and in which
 * order the stores to each location stand. It is the whole state of an execution, as far as the
 * memory model is concerned.
 *
 *     event       one load, store, fence or choice of one thread. A read-modify-write is two
 *                 events, a load and a store that follows it at once
 *     rf          reads-from: the store that a load read
 *     mo          modification order: for each location, its stores, oldest first
 *     hb          happens-before, as a vector clock of each event
 *     porf        program order and reads-from, closed: what an event can depend on; a vector clock
 *     stamp       when the event was added; the exploration goes back to a stamp
 *
 * Everything in an event can be computed from the events that it depends on, so it is written once,
 * when the event is added (or made to read from another store).
 */
#ifndef BIDE_CHECK_GRAPH_H
#define BIDE_CHECK_GRAPH_H

#include "bide/check.h"

/* Thread 0 sets up, threads 1 to LAST - 1 are the scenario's, thread LAST does the final check. */
enum { THREADS = 8, SETUP = 0, LAST = THREADS - 1 };

/* For each thread, how many of its events came before. */
typedef struct vector_clock {
    uint16_t seen[THREADS];
} vector_clock;

static inline void clock_join(vector_clock *clock, const vector_clock *other)
{
    for (int t = 0; t < THREADS; t++)
        clock->seen[t] = clock->seen[t] > other->seen[t] ? clock->seen[t] : other->seen[t];
}

/* An event's name: its thread and its place there. */
typedef struct reference {
    uint16_t thread;
    uint16_t index;
} reference;

/* The store that stands for the value a location had before anybody wrote it; no event. */
#define INITIAL ((reference){UINT16_MAX, UINT16_MAX})

static inline bool is_initial(reference r)
{
    return r.thread == UINT16_MAX;
}

static inline bool same(reference a, reference b)
{
    return a.thread == b.thread && a.index == b.index;
}

static inline bool clock_has(const vector_clock *clock, reference r)
{
    return is_initial(r) || clock->seen[r.thread] > r.index;
}

/* Is it one of the first run[t] events of each thread t? */
static inline bool is_run(const unsigned run[THREADS], reference r)
{
    return is_initial(r) || r.index < run[r.thread];
}

typedef enum event_kind { EVENT_LOAD, EVENT_STORE, EVENT_FENCE, EVENT_CHOICE } event_kind;

/* What kind of step it was for the reader of a trace; see trace.c. */
typedef enum step_kind {
    STEP_INIT,
    STEP_LOAD,
    STEP_STORE,
    STEP_EXCHANGE,
    STEP_COMPARE_EXCHANGE,
    STEP_FETCH_ADD,
    STEP_FETCH_SUB,
    STEP_FETCH_OR,
    STEP_FETCH_AND,
    STEP_FETCH_XOR,
    STEP_FETCH_NAND,
    STEP_FENCE,
    STEP_CHOICE,
    STEP_PARK,   /* enlists for the wakes of an address */
    STEP_PARKED, /* sleeps until one comes */
    STEP_WAKE,
    STEP_LOCK,
    STEP_UNLOCK,
    STEP_SPAWN,
    STEP_BEGIN, /* a thread's first step: reads its spawn */
    STEP_END,   /* a thread's last step */
    STEP_JOIN,
    STEP_POST,  /* an awaited operation's end */
    STEP_AWAIT, /* waits for it */
} step_kind;

/* When may a load's thread go on? */
typedef enum wait_kind { WAIT_NEVER, WAIT_UNTIL_EQUAL, WAIT_UNTIL_BITS } wait_kind;

/* What an operation is, whatever it reads. */
typedef struct operation {
    bide_check_site_ *site;
    uint64_t operand;  /* of STEP_SPAWN: the thread; of STEP_PARKED: is there a deadline? */
    uint64_t expected; /* by a compare-exchange; or what the load waits for */
    uint8_t step;
    uint8_t order;
    uint8_t order_if_failed; /* of a compare-exchange */
    uint8_t wait;            /* a wait_kind */
    bool is_rmw;             /* if it succeeds */
    bool may_fail;           /* a weak compare-exchange that may yet fail for no reason */
    bool is_silent;          /* how the platform sleeps and wakes: it orders nothing */
} operation;

typedef struct event {
    operation op;
    uint64_t value; /* read or written, or chosen */
    uint32_t stamp;
    uint16_t location; /* loads and stores */
    uint16_t position; /* stores: where in the modification order */
    reference rf;      /* loads, and the stores of read-modify-writes: what was read */
    uint8_t kind;
    uint8_t order;        /* the one that counts: op.order or op.order_if_failed */
    bool is_rmw;          /* one half of a read-modify-write */
    bool blocked;         /* a load that must read another value before its thread goes on */
    bool spurious;        /* a compare-exchange that fails for no reason */
    vector_clock hb;      /* itself included */
    vector_clock porf;    /* itself included */
    vector_clock view;    /* loads: the stores that are too old to read are judged by this */
    vector_clock message; /* stores: what a load that acquires it has seen */
    vector_clock fenced;  /* after it: what the thread's last release fence releases */
    vector_clock pending; /* after it: what the thread's next acquire fence acquires */
} event;

typedef struct thread_events {
    event *events;
    unsigned count;
    unsigned capacity;
} thread_events;

typedef struct location {
    uintptr_t address;
    uint64_t initial;  /* the value that INITIAL stands for */
    reference *stores; /* the modification order; the first is INITIAL or an initialising store */
    unsigned count;
    unsigned capacity;
    uint8_t size;
    bool in_use;
    bool is_used; /* by an event: for graph.c */
} location;

typedef struct graph {
    thread_events threads[THREADS];
    location *locations;
    unsigned locations_count;
    unsigned locations_capacity;
    uint32_t stamp; /* of the newest event */
    struct graph *next_free;
} graph;

static inline event *event_at(const graph *g, reference r)
{
    return &g->threads[r.thread].events[r.index];
}

static inline reference last_event(const graph *g, unsigned thread)
{
    return (reference){(uint16_t)thread, (uint16_t)(g->threads[thread].count - 1)};
}

static inline uint64_t value_of(const graph *g, const location *l, reference store)
{
    return is_initial(store) ? l->initial : event_at(g, store)->value;
}

static inline unsigned position_of(const graph *g, reference store)
{
    return is_initial(store) ? 0 : event_at(g, store)->position;
}

/*
 * Is the store, in its location's modification order, the store of a read-modify-write? It then
 * stands right behind the one that its load read.
 */
static inline bool is_rmw_store(const graph *g, reference store)
{
    return !is_initial(store) && event_at(g, store)->is_rmw;
}

graph *graph_new(void);
void graph_free(graph *g);

/*
 * A new event at the end of a thread, zeroed, with a stamp. References stay valid, pointers do not.
 */
event *graph_add(graph *g, unsigned thread);

/*
 * A location for `address`, without stores but INITIAL (with `initial` as its value) if there is
 * one.
 */
unsigned graph_add_location(graph *g, uintptr_t address, unsigned size, bool has_initial,
                            uint64_t initial);

/* Puts a store that is in no modification order yet at `position` of its location's. */
void graph_place(graph *g, reference store, unsigned position);

/* Takes it out again. */
void graph_displace(graph *g, reference store);

/* Removes every event that is newer than `stamp`. */
void graph_cut(graph *g, uint32_t stamp);

/* A copy with only the first keep[t] events of each thread t. What they read must be among them. */
graph *graph_copy(const graph *g, const unsigned keep[THREADS]);

/* What came before the next event of a thread. */
void clock_before(const graph *g, reference next, vector_clock *hb, vector_clock *porf);

#endif
