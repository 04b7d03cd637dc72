/*
 * A picture: the answer of a program's monitor to one look. Its size is limited, whatever the monitor
 * sends: further rows are left out, and longer texts are cut.
 */
#ifndef TOP_PICTURE_H
#define TOP_PICTURE_H

#include "record.h"

enum { NAME_SIZE = 96, FILE_SIZE = 160 };

typedef enum executor_kind { EXECUTOR_LOOP, EXECUTOR_POOL, EXECUTOR_WORKER } executor_kind;

/* A loop, a pool or a worker. */
typedef struct picture_executor {
    executor_kind kind;
    uint64_t number; /* of the loop or the pool */
    uint64_t worker;
    uint64_t thread;
    uint64_t workers, asleep; /* of a pool */
    uint64_t busy_ms, in_flight, longest_ns;
    uint64_t runs, sleeps, steals, completions; /* since the look before */
    char name[NAME_SIZE];
    char back_end[16];
    char thread_name[NAME_SIZE];
    char state[16];
} picture_executor;

/* The coroutine that a thread runs, and the longest turn since the previous look; or empty texts. */
typedef struct picture_thread {
    uint64_t thread;
    char runs[NAME_SIZE], runs_file[FILE_SIZE];
    uint64_t runs_line, runs_ns;
    char longest[NAME_SIZE], longest_file[FILE_SIZE];
    uint64_t longest_line, longest_ns;
} picture_thread;

/* What tasks have run in the time turns_us of a look. */
typedef struct picture_turns {
    uint64_t runs, wakes, busy_ns;
} picture_turns;

typedef struct picture_group {
    uint64_t id, tasks, line, longest_ms;
    picture_turns turns;
    char name[NAME_SIZE], at[NAME_SIZE], context[NAME_SIZE], waiting_for[NAME_SIZE];
    char file[FILE_SIZE];
    char state[16];
} picture_group;

typedef struct picture_frame {
    char name[NAME_SIZE], file[FILE_SIZE];
    uint64_t line;
} picture_frame;

typedef struct picture_task {
    uint64_t address, group, stands_ms, depth;
    picture_turns turns;
    char context[NAME_SIZE];
    char on[FILE_SIZE]; /* "descriptor 5, peer 1.2.3.4:80", or empty */
    size_t first, frames;
} picture_task;

/* A growing array. */
typedef struct rows {
    void *all;
    size_t count, room;
} rows;

typedef struct picture {
    uint64_t pid; /* as reported by the program */
    char program[NAME_SIZE], library[32];

    uint64_t since_ms; /* the time since the previous look; 0: this is the first one */
    uint64_t turns_us; /* the time that the turns of tasks cover; 0: they are unknown */
    uint64_t took_us, tasks, waiting, running, not_started, group_count, ungrouped;
    bool left_out;
    rows executors, threads, groups, shown, frames; /* of the structs above */
} picture;

/* Empties the picture, and keeps its memory. */
void picture_clear(picture *picture);
void picture_free(picture *picture);

/* Adds the contents of a record. */
void picture_add(picture *picture, const record *record);

#define PICTURE_ROW_(rows, type, i)     (&((const type *)(rows).all)[i])
#define picture_executor_of(picture, i) PICTURE_ROW_((picture)->executors, picture_executor, i)
#define picture_thread_of(picture, i)   PICTURE_ROW_((picture)->threads, picture_thread, i)
#define picture_group_of(picture, i)    PICTURE_ROW_((picture)->groups, picture_group, i)
#define picture_task_of(picture, i)     PICTURE_ROW_((picture)->shown, picture_task, i)
#define picture_frame_of(picture, i)    PICTURE_ROW_((picture)->frames, picture_frame, i)

/* The thread of that number, or NULL. */
const picture_thread *picture_find_thread(const picture *picture, uint64_t thread);

#endif
