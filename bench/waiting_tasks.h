/* What the benchmark `memory` asks of a kind of task: to make many that wait for one event, and to set it. */
#ifndef BENCH_WAITING_TASKS_H
#define BENCH_WAITING_TASKS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct waiting_tasks {
    void (*make)(size_t n); /* makes so many, and lets each run until it waits */
    size_t (*resume)(void); /* sets the event; returns how many tasks have ended by that */
    void (*destroy)(void);  /* what make has made */
    size_t (*frame)(void);  /* bytes of one task, after make */
    size_t handle;          /* bytes of what its owner keeps to find it */
};

#ifdef __cplusplus
}
#endif

#endif
