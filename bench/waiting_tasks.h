/*
 * A kind of task in the benchmark `memory`: creates many tasks that wait for one event, and sets
 * the event.
 */
#ifndef BENCH_WAITING_TASKS_H
#define BENCH_WAITING_TASKS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct waiting_tasks {
    void (*make)(size_t n); /* creates n tasks, and runs each until it waits */
    size_t (*resume)(void); /* sets the event; returns the number of tasks that this has finished */
    void (*destroy)(void);  /* destroys the tasks of make */
    size_t (*frame)(void);  /* bytes of one task, after make */
    size_t handle;          /* bytes of its owner's handle */
};

#ifdef __cplusplus
}
#endif

#endif
