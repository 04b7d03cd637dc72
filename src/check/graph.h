/*
 * An execution graph: the events of each thread of a scenario, the store that each load read, and the
 * order of the stores to each location. For the memory model, it is the whole state of an execution.
 *
 *     event       one load, store, fence or choice of one thread. A read-modify-write is two
 *                 events: a load, and a store with only choices between them
 *     rf          reads-from: the store that a load read
 *     mo          modification order: for each location, its stores, oldest first
 *     hb          happens-before, as a vector clock of each event
 *     porf        the closure of program order and reads-from: the events that an event may depend
 *                 on; a vector clock
 *     stamp       the order in which events were added; the exploration backtracks to a stamp
 *
 * An event is a function of the events that it depends on, so it is written once: when it is added,
 * or when it is made to read from another store. graph_assert_consistent states the invariants.
 */
#ifndef BIDE_CHECK_GRAPH_H
#define BIDE_CHECK_GRAPH_H

#include "bide/check.h"

/* Thread 0 is the set-up, threads 1 to LAST - 1 are the scenario's, thread LAST is the final check. */
enum { THREADS = 8, SETUP = 0, LAST = THREADS - 1 };

/* The number of events of each thread that came before. */
typedef struct vector_clock {
    uint16_t seen[THREADS];
} vector_clock;

static inline void clock_join(vector_clock *clock, const vector_clock *other)
{
    for (int t = 0; t < THREADS; t++)
        clock->seen[t] = clock->seen[t] > other->seen[t] ? clock->seen[t] : other->seen[t];
}

/* The identity of an event: its thread, and its index there. */
typedef struct reference {
    uint16_t thread;
    uint16_t index;
} reference;

/* Represents the store of a location's value before its first store; not an event. */
#define INITIAL ((reference){UINT16_MAX, UINT16_MAX})

static inline bool is_initial(reference r)
{
    return r.thread == UINT16_MAX;
}

static inline bool same_reference(reference a, reference b)
{
    return a.thread == b.thread && a.index == b.index;
}

static inline bool clock_has(const vector_clock *clock, reference r)
{
    return is_initial(r) || clock->seen[r.thread] > r.index;
}

/* True for the first run[t] events of each thread t. */
static inline bool is_run(const unsigned run[THREADS], reference r)
{
    return is_initial(r) || r.index < run[r.thread];
}

typedef enum event_kind { EVENT_LOAD, EVENT_STORE, EVENT_FENCE, EVENT_CHOICE } event_kind;

/* The kind of a step, for the reader of a trace: see trace.c. */
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
    STEP_ALLOCATE, /* chooses whether an allocation fails */
    STEP_PARK,     /* enlists for the wakes of an address */
    STEP_PARKED,   /* sleeps until a wake */
    STEP_WAKE,
    STEP_LOCK,
    STEP_UNLOCK,
    STEP_READ_LOCK,
    STEP_TAKE, /* a unit of a semaphore */
    STEP_GIVE,
    STEP_ARRIVE, /* at a barrier */
    STEP_PASS,   /* the barrier, when all have arrived */
    STEP_ENTER,  /* what is to be done once */
    STEP_FINISH,
    STEP_SPAWN,
    STEP_BEGIN, /* a thread's first step: reads its spawn */
    STEP_END,   /* a thread's last step */
    STEP_JOIN,
    STEP_POST,  /* the end of an awaited operation */
    STEP_AWAIT, /* waits for that end */
} step_kind;

/* The condition on the value of a load under which its thread continues. */
typedef enum wait_kind {
    WAIT_NEVER,
    WAIT_UNTIL_EQUAL,
    WAIT_UNTIL_DIFFERENT,
    WAIT_UNTIL_BITS,  /* one of those of `expected` is set */
    WAIT_UNTIL_CLEAR, /* none is */
    WAIT_UNTIL_LEAST  /* no less than `expected` */
} wait_kind;

/* An operation, apart from the value that it reads. */
typedef struct operation {
    bide_check_site_ *site;
    uint64_t operand;  /* of a read-modify-write; STEP_SPAWN: the thread; of a load that waits: 1 if
                          there is a deadline */
    uint64_t expected; /* by a compare-exchange, or by a load that waits */
    uint8_t step;
    uint8_t order;
    uint8_t order_if_failed; /* of a compare-exchange */
    uint8_t wait;            /* a wait_kind */
    bool is_rmw;             /* if it succeeds */
    bool may_fail;           /* a weak compare-exchange that may fail spuriously */
    bool is_tried;           /* fails where its wait would go on */
    bool is_silent;          /* part of the platform's sleep and wake: it orders nothing */
    bool is_late;            /* a gate that was passed without a signal: see symmetry.c */
    reference after;         /* a gate: the signal, which is in porf; of thread SETUP: none */
} operation;

typedef struct event {
    operation op;
    uint64_t value; /* read or written, or chosen */
    uint32_t stamp;
    uint16_t location; /* loads and stores */
    uint16_t position; /* stores: the index in the modification order */
    reference rf;      /* loads, and the stores of read-modify-writes: the store that was read */
    uint8_t kind;
    uint8_t order;  /* in effect: op.order or op.order_if_failed */
    bool is_rmw;    /* one half of a read-modify-write */
    bool blocked;   /* a load whose thread waits for another value */
    bool spurious;  /* a compare-exchange that fails spuriously */
    uint16_t round; /* not 0: its thread spins after it; the index of the round's first event + 1 */
    vector_clock hb;      /* includes the event itself */
    vector_clock porf;    /* includes the event itself */
    vector_clock view;    /* loads: a store that this clock knows to be overwritten is too old */
    vector_clock message; /* stores: the events that an acquiring load synchronizes with */
    vector_clock fenced;  /* after the event: released by the thread's last release fence */
    vector_clock pending; /* after the event: acquired by the thread's next acquire fence */
} event;

typedef struct thread_events {
    event *events;
    unsigned count;
    unsigned capacity;
} thread_events;

typedef struct location {
    uintptr_t address;
    uint64_t initial;  /* the value of INITIAL */
    reference *stores; /* the modification order; the first is INITIAL or an initialising store */
    unsigned count;
    unsigned capacity;
    uint8_t size;
    bool in_use;
    bool is_used; /* by an event; scratch of graph.c */
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

/* The store of a read-modify-write directly follows, in the modification order, the store it read. */
static inline bool is_rmw_store(const graph *g, reference store)
{
    return !is_initial(store) && event_at(g, store)->is_rmw;
}

graph *graph_new(void);
void graph_free(graph *g);

/*
 * Adds a zeroed event with a stamp at the end of a thread. References stay valid, pointers do not.
 */
event *graph_add(graph *g, unsigned thread);

/*
 * Adds a location for `address`. With `has_initial`, its only store is INITIAL, of the value
 * `initial`; otherwise it has none.
 */
unsigned graph_add_location(graph *g, uintptr_t address, unsigned size, bool has_initial,
                            uint64_t initial);

/* Inserts a store that is in no modification order at `position` of its location's order. */
void graph_place(graph *g, reference store, unsigned position);

/* Removes a store from its location's modification order, if it is in it. */
void graph_displace(graph *g, reference store);

/* Removes every event that is newer than `stamp`. */
void graph_cut(graph *g, uint32_t stamp);

/* Copies the first keep[t] events of each thread t. The stores that they read must be among them. */
graph *graph_copy(const graph *g, const unsigned keep[THREADS]);

/* The clocks of the event before `next` in its thread, or the clocks that its thread begins with. */
void clock_before(const graph *g, reference next, vector_clock *hb, vector_clock *porf);

/*
 * Asserts the invariants of a graph whose execution was not given up:
 *
 * 1. Stamps increase along each thread, and none is above the graph's.
 * 2. Each load reads one store, of its own location, and has its value; the store is in the graph.
 * 3. The modification order of a location is total: its stores are different events of the location,
 *    each at its position, as many as the graph has.
 * 4. Only the first of them may be INITIAL.
 * 5. The store of a read-modify-write follows its load in its thread, with only choices between
 *    them. In the modification order it directly follows the store that the load read.
 * 6. The clocks of an event include the event and the clocks of the event before it in its thread;
 *    those of a load's porf, its store's.
 */
void graph_assert_consistent(const graph *g);

#endif
