/* The internal interface of the test loop, and for simulations under it. Floor: simulation. */
#ifndef BIDE_SCHEDULE_TEST_LOOP_H
#define BIDE_SCHEDULE_TEST_LOOP_H

#include "bide/sim_loop.h"

/* The kinds of draws. */
typedef enum test_draw {
    DRAW_TURN, /* n < HOLD: the ready coroutine behind n others; above: holds the first back */
    DRAW_LATE, /* 1: the next timer expires before ready coroutines run */
    DRAW_BUDGET,
    DRAW_POINT,
    DRAW_RATE, /* of a fault */
    DRAW_FAULT,
    DRAW_CALL,  /* the delay until a blocking call is made, and then until its coroutine is woken */
    DRAW_DELAY, /* another delay: one of a few */
    DRAW_OWN,   /* the test's */
    DRAW_FORK,  /* 1: the parent runs beside the child that it forks; 2: before it */
} test_draw;

/*
 * Each draw belongs to a stream: that of its kind, or one of its name. A list of draws is read by streams. So a
 * draw that is left out, or one more, shifts no draws of other streams. Names are hashed; those with the same
 * hash share a stream.
 */
enum { TEST_STREAMS = 256, TEST_NAMED = 16 };

/* Whether such a draw, if it is not 0, delays a coroutine behind another. */
BIDE_INLINE bool test_draw_preempts(test_draw kind)
{
    return kind <= DRAW_POINT;
}

enum {
    OLDEST = 64, /* ready coroutines, of which one is drawn; in one draw of 8 it is any */
    HOLDS = 8,
    HOLD = (1 << 16) - HOLDS, /* HOLD + n: the first is held back for 2 << n turns */
};

/* One line of a trace. The texts and points are constants of the program. */
typedef struct test_line {
    uint64_t time;
    size_t draw; /* the number of the next draw when it happened */
    const bide_point *point;
    const char *what;
    uint32_t task;
    uint32_t value;
    uint32_t of;
    test_draw kind;
    uint16_t lock;       /* a lock that the turn continues with; 0: none */
    uint16_t its_holder; /* the task that had it before; 0: not known */
} test_line;

enum {
    TASKS = 256,
    LOCKS = 256,
    LOOKS = 1 << 24, /* at tasks, to find holders of locks for the lines of a trace */
};

/* The state of BIDE_SIM_PCT in a run: sim_priorities.c. */
typedef struct test_numbered {
    const void *address; /* NULL: the slot is free */
    uint64_t number;
} test_numbered;

enum { TEST_DEPTH_MAX = 16, TEST_LOWERED = 64 };

typedef struct test_change {
    uint64_t turn;
    uint64_t priority;
} test_change;

typedef struct test_lowered {
    uint64_t task;
    uint64_t priority;
} test_lowered;

typedef struct test_priorities {
    unsigned depth; /* 0: priorities choose nothing */
    uint64_t seed;
    test_change changes[TEST_DEPTH_MAX]; /* by turn, in descending order */
    size_t changes_count;                /* changes that are to come */
    test_lowered lowered[TEST_LOWERED];  /* in the order in which they were */
    size_t lowered_count;
    uint64_t last; /* the task that was chosen last */
    uint64_t in_a_row;
    uint64_t lowest; /* the next priority for one that had too many turns in a row */

    /* A hash table by address. */
    test_numbered *slots;
    size_t capacity;
    size_t count;
    uint64_t last_number;
} test_priorities;

struct bide_sim_record_ {
    /* The draws, their kinds and their streams. Draws past the capacity are only counted. */
    uint16_t *draws;
    uint8_t *kinds;
    uint8_t *streams;
    size_t count;
    size_t capacity;
    size_t *made; /* `count`, for a process that outlives this one; or NULL */

    /* The draws to make: of each stream in their order, then 0. NULL: the seed's. */
    const uint16_t *given;
    const uint8_t *given_streams;
    size_t given_count;
    size_t given_next[TEST_STREAMS]; /* of each stream: the place to look for its next */

    /* The trace, if it is kept: the last lines, each at its number modulo the capacity. */
    test_line *lines;
    size_t *lines_count; /* of all */
    size_t lines_capacity;
    bool is_live;             /* each line is written to stderr at once too */
    const void *tasks[TASKS]; /* their outermost frames */
    uint32_t tasks_count;
    const void *locks[LOCKS];
    uint32_t locks_count;
    uint64_t looks;

    test_priorities priorities;

    /* The text of a failure, with a terminating zero. */
    char *text;
    size_t text_size;

    /* Called on a failure, if not NULL: does not return. */
    void (*fails)(bide_sim_loop *loop, bide_sim_failure failure, int status);
};

/* ---- For simulations under a test loop ---- */

/* A rate of faults that is drawn, once for each name in a run. */
#define TEST_RATE_DRAWN UINT32_MAX

/*
 * Draws whether the fault `name` fires, once in `rate` times; 0: never, and nothing is drawn. It is
 * recorded as a fault of bide_maybe is.
 */
bool bide_sim_loop_fault_(bide_sim_loop *loop, const char *name, uint32_t rate);

/*
 * Draws a duration in nanoseconds: 0, `max`, or a part of it; `what` is for the trace. Nothing is
 * drawn if `max` is 0.
 */
uint64_t bide_sim_loop_delay_(bide_sim_loop *loop, const char *what, uint64_t max);

/* Writes a line of a trace. */
void bide_sim_line_print_(FILE *file, const test_line *line);

/* ---- sim_draw.c ---- */

/* The next number of the sequence whose state is *state. */
uint64_t bide_test_next_number_(uint64_t *state);

/* The seed's next number below `below`; and true once in 2^exponent. */
uint32_t bide_test_number_below_(bide_sim_loop *loop, uint32_t below);
bool bide_test_chance_(bide_sim_loop *loop, unsigned exponent);

/* Draws below `below`. `number` is the seed's draw, made before; it is replaced if there is a list. */
uint32_t bide_test_draw_(bide_sim_loop *loop, test_draw kind, uint32_t number, uint32_t below);

/* The same from the stream of a name. */
uint32_t bide_test_draw_from_(bide_sim_loop *loop, test_draw kind, const char *name,
                              uint32_t number, uint32_t below);

/* Adds a line to the trace, if it is kept. */
void bide_test_note_line_(bide_sim_loop *loop, test_line line);

/* ---- sim_priorities.c ---- */

/* Before a run of BIDE_SIM_PCT, and after it; 0: it is drawn. The loop has a record. */
void bide_test_priorities_begin_(bide_sim_loop *loop, unsigned depth, uint64_t length);
void bide_test_priorities_end_(bide_sim_record_ *record);

/* These are posted. */
void bide_test_priorities_post_(test_priorities *self, const bide_awaiter *first);

/* The place among the ready ones of the next to run; there is one. */
uint32_t bide_test_priorities_choose_(bide_sim_loop *loop);

/* Whether priorities choose in this run. */
BIDE_INLINE bool test_has_priorities(const bide_sim_loop *loop)
{
    return loop->record != NULL && loop->record->priorities.depth != 0;
}

/* ---- sim_report.c ---- */

/* Adds the line of a turn to the trace; `value` of `of` was drawn for it. */
void bide_test_note_turn_(bide_sim_loop *loop, const bide_awaiter *awaiter, uint32_t value,
                          uint32_t of);

/* Reports that the run has failed, with the tasks that wait. Returns `error`. */
int bide_test_fail_(bide_sim_loop *loop, bide_sim_failure failure, int error, const char *what);

/* ---- test_loop.c ---- */

/* Names a turn of the library's own, such as a blocking call's; NULL: it is a coroutine's. */
const char *bide_test_turn_name_(const bide_frame *frame);

/* ---- The style of a seed ---- */

enum { TEST_SECOND = 1000000000 };

/* 0: any turn; 1: any turn, now and then; 2: holds; 3: both. */
BIDE_INLINE unsigned test_turn_style(const bide_sim_loop *loop)
{
    return loop->style & 3;
}

BIDE_INLINE unsigned test_turn_exponent(const bide_sim_loop *loop)
{
    return 1 + (loop->style >> 2 & 0xff) % 6;
}

BIDE_INLINE bool test_may_be_late(const bide_sim_loop *loop)
{
    return (loop->style >> 10 & 1) != 0;
}

BIDE_INLINE bool test_may_yield_early(const bide_sim_loop *loop)
{
    return (loop->style >> 11 & 1) != 0;
}

#endif
