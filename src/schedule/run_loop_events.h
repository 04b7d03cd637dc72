/* Between a run loop and the back end of a loop with input and output. Floor: schedule. */
#ifndef BIDE_SCHEDULE_RUN_LOOP_EVENTS_H
#define BIDE_SCHEDULE_RUN_LOOP_EVENTS_H

#include "bide/run_loop.h"

/* The back end. All are called on the loop's thread. */
struct bide_run_loop_events_ {
    /* Submits started operations, and posts the waiters of events; does not sleep. */
    void (*look)(bide_run_loop *loop);

    /*
     * Submits started operations, and sleeps, unless there is an event: until there is one, or
     * loop->deadline, or a post. It parks the loop before it sleeps. False: it has not slept, because
     * something was posted, or there are events to take; nothing was submitted then.
     */
    bool (*sleep)(bide_run_loop *loop);

    /* Posts the waiters of the events of a sleep. */
    void (*take)(bide_run_loop *loop);

    /* The loop starts to run on this thread, or resumes. */
    void (*enter)(bide_run_loop *loop);

    /* The thread will not run the loop again, and the loop is destroyed. NULL: nothing to do. */
    void (*leave)(bide_run_loop *loop);
};

/*
 * For a thread that runs other things as well: the loop belongs to the thread from `enter` to `leave`.
 * bide_run_loop_run_posted_ runs what was posted to it; false: there was nothing.
 */
void bide_run_loop_enter_(bide_run_loop *loop);
void bide_run_loop_leave_(bide_run_loop *loop);
bool bide_run_loop_run_posted_(bide_run_loop *loop);

/* Whether it has something to run. */
bool bide_run_loop_is_ready_(bide_run_loop *loop);

/* From here on posters wake this thread, or raise the descriptor; false: something was posted. */
bool bide_run_loop_park_(bide_run_loop *loop);

/* Undoes bide_run_loop_park_; false: something was posted. */
bool bide_run_loop_unpark_(bide_run_loop *loop);

/* The word that posters wake while the loop is parked without a descriptor, and its value then. */
bide_atomic(uint32_t) * bide_run_loop_word_(bide_run_loop *loop, uint32_t *parked);

/* Whether something was posted that was not taken. */
bool bide_run_loop_is_posted_(bide_run_loop *loop);

#endif
