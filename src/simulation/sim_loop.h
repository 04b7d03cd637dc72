/* What the files of the test loop ask of each other: draws, and what is noted of a run. */
#ifndef BIDE_SCHEDULE_TEST_LOOP_H
#define BIDE_SCHEDULE_TEST_LOOP_H

#include "bide/sim_loop.h"

/* What is drawn. */
typedef enum test_draw {
    DRAW_TURN, /* 0: the first that is ready; below HOLDS: the one behind so many; above: holds */
    DRAW_LATE, /* 1: the next timer comes before what is ready */
    DRAW_BUDGET,
    DRAW_POINT,
    DRAW_RATE, /* of a fault */
    DRAW_FAULT,
    DRAW_CALL,  /* how long until it is made, and then until it is known */
    DRAW_DELAY, /* of something else: which of a few */
    DRAW_OWN,  /* the test's */
} test_draw;

/* Does such a draw, if it is not 0, put one that would go on behind another? */
BIDE_INLINE bool test_draw_preempts(test_draw kind)
{
    return kind <= DRAW_POINT;
}

enum {
    CHOICES = 64, /* of the first so many that are ready one is drawn */
    HOLDS = 8,    /* CHOICES + n: the first is held back for 2 << n turns */
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
} test_line;

enum { TASKS = 256 };

struct bide_sim_record_ {
    /* What was drawn, and of which kinds. Past the capacity it is only counted. */
    uint16_t *draws;
    uint8_t *kinds;
    size_t count;
    size_t capacity;

    /* To be drawn, and 0 behind it; NULL: by the seed. */
    const uint16_t *given;
    size_t given_count;

    /* The trace, if it is kept: lines past the capacity are counted. */
    test_line *lines;
    size_t lines_count;
    size_t lines_capacity;
    bool is_live; /* each line is written to stderr at once too */
    const bide_frame *tasks[TASKS];
    uint32_t tasks_count;

    /* What is said of a failure; a text that ends in a zero. */
    char *text;
    size_t text_size;

    /* Called on a failure, if not NULL: does not return. */
    void (*fails)(bide_sim_loop *loop, bide_sim_failure failure, int status);
};

/* ---- For what is simulated under a test loop ---- */

/* A rate of faults that is drawn, once for each name in a run. */
#define TEST_RATE_DRAWN UINT32_MAX

/*
 * Does the fault `name` fire here? Once in `rate` times; 0: never, and nothing is drawn. It is noted
 * as those of bide_maybe are.
 */
bool bide_sim_loop_fault_(bide_sim_loop *loop, const char *name, uint32_t rate);

/*
 * Draws how long something takes, in nanoseconds: 0, `max`, or a part of it; `what` is for the
 * trace. Nothing is drawn if `max` is 0.
 */
uint64_t bide_sim_loop_delay_(bide_sim_loop *loop, const char *what, uint64_t max);

/* Writes a line of a trace. */
void bide_sim_line_print_(FILE *file, const test_line *line);

#endif
