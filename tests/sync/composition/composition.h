/*
 * The matrix of compositions: every awaitable operation, in every wrapper, with every end, on every kind of
 * scheduler. The tables are
 *
 *     rows       what is awaited       primitives.h, and rows.c for operations that are no primitives
 *     wrappers   the layers between    wrappers.c
 *     ends       how it ends           ends.c
 *     settings   where it runs         ends.c
 *
 * and each combination is a cell. In a cell one coroutine, the subject, awaits a row through a path of wrappers; its
 * parent awaits the subject:
 *
 *     root --> parent --> subject --> wrapper --> wrapper --> row        next: waits for the same, behind it
 *
 * A cell that cannot exist is excluded, by a predicate that gives the reason (cell.c), and counted. For the others
 * model.c computes the expected result, and cell.c compares the actual result with it.
 */
#ifndef BIDE_TESTS_COMPOSITION_H
#define BIDE_TESTS_COMPOSITION_H

#include "places.h"

#include "sync/primitives.h"

#include "bide/async_generator.h"
#include "bide/context_value.h"
#include "bide/create.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/fork.h"
#include "bide/once.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/select.h"
#include "bide/shared_task.h"
#include "bide/spawn.h"
#include "bide/stop_callback.h"
#include "bide/task.h"
#include "bide/then.h"
#include "bide/when.h"
#include "bide/with_stop.h"

enum { WAITS = 1 /* the status of what has not ended */, MAX_LAYERS = 2 };

typedef struct cell cell;
typedef struct layer layer;

/* ---- Rows ---- */

enum {
    ROW_MOVES = 1,        /* its awaiter resumes elsewhere (row_target) */
    ROW_BY_ITSELF = 2,    /* it ends without being woken; nobody waits behind it */
    ROW_NOT_CUT = 4,      /* it cannot be cancelled */
    ROW_NEEDS_TIMERS = 8, /* and time that the driver says */
    ROW_IS_FRAME = 16,    /* it is never ready: it has to run */
    ROW_ANY_WAITS = 32,   /* its object does not show that it has a waiter */
    ROW_ALONE = 128,      /* nobody waits behind it */
    ROW_TAKES_WHEN_IT_RUNS =
        256,                  /* ... and is destroyed after that: nobody else has what it took */
    ROW_CALLS_BLOCK = 64,     /* a thread of its own runs it: row_calls_settle */
    ROW_NOT_DESTROYED = 512,  /* its waiter must not be destroyed: that is misuse */
    ROW_IS_INTERRUPTED = 1024, /* when it is cancelled, a thread ends it: row_is_interrupted */
    ROW_ASKED_THERE = 2048 /* a request of another scheduler's thread is carried out on its own */
};

typedef struct row {
    const primitive *primitive;
    unsigned flags;
} row;

/* Some rows exist on a test loop alone. */
size_t rows_count(bool on_test_loop);
row row_at(size_t number);

/* The target of a row that moves. Set for each cell. */
extern bide_scheduler *row_target;

/* The place where the row is awaited. Set for each cell, before its object is initialized. */
extern place *row_place;

enum { LATE = 2000 /* of schedulers by hand: after the deadlines of cells */ };

/* Lets queued blocking calls run. Returns whether there were any. */
bool row_calls_settle(void);

/* Ends the call that is under way, although nobody has woken it. */
void row_is_interrupted(void);

/* Frames that were allocated and not freed. Any thread. */
extern bide_allocator counting_allocator;
long counted_frames(void);

/* ---- Wrappers ---- */

typedef enum wrapper_kind {
    WRAP_NONE,
    WRAP_THEN,
    WRAP_WITH_STOP,
    WRAP_SHELTER,
    WRAP_WITH_VALUE,
    WRAP_WITH_DEADLINE,
    WRAP_ALL,
    WRAP_ALL_SECOND,
    WRAP_ALL_READY,
    WRAP_ANY,
    WRAP_ANY_SECOND,
    WRAP_SCOPE,
    WRAP_SCOPE_MOVES,
    WRAP_SCOPE_WITHIN,
    WRAP_SCOPE_TOKEN,   /* with_stop around the join */
    WRAP_SCOPE_LIMITED, /* with_deadline around it */
    WRAP_SCHEDULE_ON,
    WRAP_RESUME_ON,
    WRAP_ONCE,
    WRAP_SHARED,
    WRAP_SHARED_ELSEWHERE,
    WRAP_OWNED,
    WRAP_CHILD,
    WRAP_CHILD_MOVES,
    WRAP_CHILD_TOLD,
    WRAP_SPAWNS,
    WRAP_GENERATOR,
    WRAP_FORKED,
    WRAP_FORK_CALLED,
    WRAP_SELECT,       /* beside an event that is never set */
    WRAP_SELECT_RACED, /* ... that is set with the wake: both are there in one turn */
    WRAPPERS
} wrapper_kind;

extern const char *const wrapper_names[WRAPPERS];

/* A coroutine of the test: its expected places, and what it has seen. Writer: the coroutine. */
typedef struct witness {
    cell *cell;
    const char *what;
    place *place;   /* where it begins */
    place *goes_on; /* where it resumes after its await */
    bide_stop_source *stop;
    const char *name;
    bide_atomic(uint32_t) began;
    bide_atomic(uint32_t) returned; /* its await has ended, with: */
    int status;
} witness;

void witness_begins(witness *self, const bide_frame *frame);
void witness_moved(witness *self, const bide_frame *frame, const place *to);
void witness_returns(witness *self, const bide_frame *frame, int status);

struct coroutine_layer {
    bide_task task;
    layer *layer;
    bide_schedule_operation move;
};

/* It moves to another scheduler, registers a stop callback in the context that it has there, and returns. */
struct told_layer {
    bide_task task;
    layer *layer;
    bide_schedule_operation move;
    bide_stop_callback callback;
    bide_stop_callback_waiter wait;
    bool registered; /* and not removed */
    bide_atomic(uint32_t) calls;
};

/*
 * It moves to another scheduler, spawns its content in the context that it has there, returns, and waits for its end.
 */
struct spawning_layer {
    bide_task task;
    layer *layer;
    bide_schedule_operation move;
    bide_spawned spawned;
    bide_with_stop_operation shelter;
    bide_event_waiter wait;
    bool began;
};

struct scope_layer {
    bide_task task;
    layer *layer;
    bide_scope scope;
    bide_branch branch;
    bide_branch within; /* spawns the other */
    bide_task spawner;
    bide_schedule_operation move;
    bide_with_stop_operation with_stop; /* of the join */
    bide_with_deadline_operation with_deadline;
    bide_atomic(uint32_t) spawned;
    bide_atomic(uint32_t) ended;
};

struct when_layer {
    bide_when when;
    bide_branch branches[2];
    bide_event other;
    bide_event_waiter wait;
};

struct select_layer {
    bide_select_of(2) select;
    bide_event other;
    bide_event_waiter wait;
};

struct generator_layer {
    bide_async_generator generator;
    layer *layer;
    bide_async_generator_next_operation next;
};

/* It forks a child, which awaits its content, and joins it; or calls it. */
struct forking_layer {
    bide_fork_task forking;
    layer *layer;
    bool counted; /* among the rows that continue by themselves, and are not posted */
};

struct shared_layer {
    bide_shared_task shared;
    layer *layer;
    bide_context context;
    bide_shared_task_waiter wait;
};

/* One wrapper in the path of a cell, in memory of its own. */
struct layer {
    wrapper_kind kind;
    cell *cell;
    size_t index;
    place *place;   /* of what awaits it, when it begins */
    place *inner;   /* of what is awaited in it */
    place *ends_at; /* ... and where that has ended */
    bide_then_operation probe;
    bide_atomic(uint32_t) took; /* what it has begun has seen a 0 */
    bool reached;               /* by the act, if it is a request */
    bool made;
    unsigned calls;  /* of the function of `then` */
    witness witness; /* of a wrapper that is a coroutine of the test's */
    bide_stop_source token;
    union {
        bide_then_operation then;
        bide_with_stop_operation with_stop;
        bide_with_deadline_operation with_deadline;
        bide_with_value_operation with_value;
        struct when_layer when;
        struct scope_layer scope;
        bide_schedule_on_operation schedule_on;
        bide_resume_on_operation resume_on;
        struct {
            bide_once_operation run;
            bide_once once;
        } once;
        struct shared_layer shared;
        struct coroutine_layer child;
        struct told_layer told;
        struct spawning_layer spawning;
        struct generator_layer generator;
        struct forking_layer forking;
        struct select_layer select;
    } of;
};

/* Whether it has a token, or sets a deadline. */
bool wrapper_has_token(wrapper_kind kind);
bool wrapper_has_deadline(wrapper_kind kind);

/* Whether it is a coroutine of the test, which takes the row's result. */
bool wrapper_takes(wrapper_kind kind);

/*
 * Whether it starts another coroutine that takes it: a branch, which may end before its scope's owner resumes, or a
 * root.
 */
bool wrapper_begins_taker(wrapper_kind kind);

/* Whether it is a select. */
bool wrapper_selects(wrapper_kind kind);

/* Whether a select can attempt it, if it can attempt or undo its content. */
bool wrapper_is_case(wrapper_kind kind);

/* The other case of a select is there. Any thread. */
void layer_race(layer *self);

/* Whether such a coroutine has taken the result of its content, if that ended with 0. */
bool layer_took(layer *self);

void layer_init(layer *self, cell *c, size_t index, wrapper_kind kind);

/* The operation: the wrapper around its content. */
bide_awaiter *layer_make(layer *self);

/* Resumes parents of forked children that nobody posts. Returns whether there were any since the last call. */
bool layers_settle(cell *c);

/* Nothing of it runs any more: ends the parts that did not end with the wait, and checks the rest. */
void layer_end(layer *self);

/* ---- Ends ---- */

typedef enum act {
    ACT_NOTHING,
    ACT_WAKE,
    ACT_ASK,   /* the context's source */
    ACT_TOKEN, /* those of with_stop */
    ACT_DEADLINE,
    ACT_CLOSE,
    ACT_DESTROY, /* alone */
} act;

typedef enum moment {
    MOMENT_BEFORE,    /* the subject begins */
    MOMENT_LATER,     /* it waits; by a coroutine of its parent's scheduler */
    MOMENT_OUTSIDE,   /* it waits; by a thread that runs no coroutine */
    MOMENT_ELSEWHERE, /* it waits; by another thread */
} moment;

typedef enum destroys {
    DESTROYS_NOT,
    DESTROYS_UNBEGUN, /* before the root has begun */
    DESTROYS_EARLY,   /* when it has begun, and what it has posted has not run */
    DESTROYS_AT_ONCE, /* after the act, before anything runs */
    DESTROYS_AWAY,    /* ... and after what is not of the parent's scheduler has run */
    DESTROYS_STEPPED, /* ... and after so many steps */
    DESTROYS_ENDED,   /* when it has ended */
} destroys;

typedef enum begun {
    SPAWNED, /* by bide_spawn */
    STARTED, /* by bide_start */
    ROOT,    /* by bide_spawn, without the subject and its parent: the root awaits the path */
} begun;

typedef struct end {
    const char *name;
    act act;
    moment moment;
    destroys destroys;
    unsigned steps;
    begun begun;
} end;

extern const end ends[];
extern const size_t ends_count;

/* ---- Settings ---- */

typedef struct setting {
    const char *name;
    place *home; /* where the parent is */
    place *away;
    unsigned moves; /* how often the subject moves to the other before it waits */
    bool gives_way; /* at each operation that is ready: the budget is 1 */
} setting;

extern const setting settings[];
extern const size_t settings_count;

/* ---- Cells ---- */

typedef struct cell_name {
    size_t row, setting, end;
    wrapper_kind wrappers[MAX_LAYERS]; /* WRAP_NONE: none */
    size_t
        repeats; /* the first wrapper around a child, so often, on a small stack; 0: once, as it is */
    size_t rounds; /* how often the subject awaits it, if not once; on a small stack too */
} cell_name;

/* The expected ends of the row in a cell, and of the subject. */
typedef struct outcome {
    bool begins;   /* is the row ever begun? */
    bool at_begin; /* has the subject's wait ended before the act? */
    bool ends;     /* ... or by the act? (otherwise by a wake after it) */
    int status;    /* what it ends with */
    bool row_ends; /* by the act, or before */
    int row_status;
    place *goes_on; /* where the subject does */
} outcome;

struct subject {
    bide_task task;
    witness witness;
    size_t round;
    unsigned moved;
    bide_schedule_operation moves[2];
};

struct parent {
    bide_task task;
    witness witness;
    struct subject *subject;
};

struct cell {
    cell_name name;
    row row;
    const primitive *primitive;
    const setting *setting;
    const end *end;
    size_t depth;
    outcome outcome;

    void *object;
    void *waiter;
    layer **layers; /* `depth` */
    wrapper_kind *kinds;
    struct subject *subject;
    struct parent *parent;
    bide_spawned *spawned;
    bide_context *context;
    bide_stop_source *stop;
    bide_deadline *deadline;
    bool has_deadline;
    bool woken, closed, destroyed;
    const char *open; /* why the result is unspecified; or NULL */

    bide_atomic(uint32_t) failed;
    char failure[240];
    char late_failure[240]; /* counts if there is no other */
};

/* Records a failure; the cell returns soon after it. Any thread. */
void cell_fail(cell *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define cell_check(c, condition, ...)    \
    do {                                 \
        if (!(condition))                \
            cell_fail((c), __VA_ARGS__); \
    } while (0)
bool cell_failed(cell *c);

/* The awaiter of the subject, or of a layer: layer `index`, or the row. */
bide_awaiter *cell_make(cell *c, size_t index);

/* The place of a cell that is not `p`. */
place *cell_away_of(const cell *c, const place *p);

/* Sets `outcome`, and the places of the layers (model.c). `at` is the place of a subject that exists. */
void cell_expect(cell *c, place *at);

/* The time of a with_deadline. */
uint64_t cell_time(const cell *c, const place *p);

typedef enum verdict { CELL_PASSED, CELL_EXCLUDED, CELL_FAILED } verdict;

/*
 * Runs it. `reason` is why it is excluded, or how it failed; after a failure nothing else can be run in this process.
 */
verdict cell_run(const cell_name *name, char *reason, size_t size);

void cell_print_name(const cell_name *name, char *text, size_t size);

#endif
