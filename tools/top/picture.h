/*
 * What a program's monitor has said at one time. Bounded, whatever it says: what is too much is left
 * out, and what is too long is cut.
 */
#ifndef TOP_PICTURE_H
#define TOP_PICTURE_H

#include "record.h"

enum { MAX_NAME = 96, MAX_FILE = 160 };

typedef enum runner_kind { RUNNER_LOOP, RUNNER_POOL, RUNNER_WORKER } runner_kind;

/* A loop, a pool or a worker. */
typedef struct picture_runner {
    runner_kind kind;
    uint64_t number; /* of the loop or the pool */
    uint64_t worker;
    uint64_t thread;
    uint64_t workers, asleep; /* of a pool */
    uint64_t busy_ms, in_flight, longest_ns;
    uint64_t runs, sleeps, steals, completions; /* since the look before */
    char name[MAX_NAME];
    char back_end[16];
    char thread_name[MAX_NAME];
    char state[16];
} picture_runner;

/* What a thread runs, and the longest turn since the look before; or empty. */
typedef struct picture_thread {
    uint64_t thread;
    char runs[MAX_NAME], runs_file[MAX_FILE];
    uint64_t runs_line, runs_ns;
    char longest[MAX_NAME], longest_file[MAX_FILE];
    uint64_t longest_line, longest_ns;
} picture_thread;

typedef struct picture_group {
    uint64_t id, tasks, line, longest_ms;
    char name[MAX_NAME], at[MAX_NAME], context[MAX_NAME], waiting_for[MAX_NAME];
    char file[MAX_FILE];
    char state[16];
} picture_group;

typedef struct picture_frame {
    char name[MAX_NAME], file[MAX_FILE];
    uint64_t line;
} picture_frame;

typedef struct picture_task {
    uint64_t address, group, stands_ms, depth;
    char context[MAX_NAME];
    char on[MAX_FILE]; /* "descriptor 5, peer 1.2.3.4:80", or empty */
    size_t first, frames;
} picture_task;

/* A row of anything, which grows. */
typedef struct rows {
    void *all;
    size_t count, room;
} rows;

typedef struct picture {
    uint64_t pid; /* as the program has said */
    char program[MAX_NAME], library[32];

    uint64_t since_ms; /* what is new is of so long; 0: it is the first */
    uint64_t took_us, tasks, waiting, running, not_started, group_count, ungrouped;
    bool left_out;
    rows runners, threads, groups, shown, frames; /* of the structs above */
} picture;

/* Forgets what it has of one look. */
void picture_clear(picture *picture);
void picture_free(picture *picture);

/* Takes what a record says. */
void picture_add(picture *picture, const record *record);

#define PICTURE_ROW_(rows, type, i)        (&((const type *)(rows).all)[i])
#define picture_runner_of(picture, i)      PICTURE_ROW_((picture)->runners, picture_runner, i)
#define picture_thread_of(picture, i)      PICTURE_ROW_((picture)->threads, picture_thread, i)
#define picture_group_of(picture, i)       PICTURE_ROW_((picture)->groups, picture_group, i)
#define picture_task_of(picture, i)        PICTURE_ROW_((picture)->shown, picture_task, i)
#define picture_frame_of(picture, i)       PICTURE_ROW_((picture)->frames, picture_frame, i)

/* The thread of that number, or NULL. */
const picture_thread *picture_find_thread(const picture *picture, uint64_t thread);

#endif
