/* What a run loop asks of the back end of a loop with input and output, and that of it. */
#ifndef BIDE_SCHEDULE_RUN_LOOP_EVENTS_H
#define BIDE_SCHEDULE_RUN_LOOP_EVENTS_H

#include "bide/run_loop.h"

/* On the loop's thread. */
struct bide_run_loop_events_ {
    /* Starts what was begun, and posts what has come; does not sleep. */
    void (*look)(bide_run_loop *loop);

    /*
     * Starts what was begun, and sleeps if nothing has come: until something has, or loop->deadline,
     * or something is posted. It parks before.
     */
    void (*sleep)(bide_run_loop *loop);

    /* Posts what has come, after a sleep. */
    void (*take)(bide_run_loop *loop);

    /* The loop begins to run on this thread, or goes on. */
    void (*enter)(bide_run_loop *loop);

    /* The thread will not run it again, and the loop goes. NULL: nothing. */
    void (*leave)(bide_run_loop *loop);
};

/*
 * For a thread that has other things to run as well: the loop is the thread's from `enter` to
 * `leave`. What is posted to it runs in bide_run_loop_run_posted_; false: there was nothing.
 */
void bide_run_loop_enter_(bide_run_loop *loop);
void bide_run_loop_leave_(bide_run_loop *loop);
bool bide_run_loop_run_posted_(bide_run_loop *loop);

/* Has it something to run? */
bool bide_run_loop_is_ready_(bide_run_loop *loop);

/* Lets posters wake this thread, or raise the descriptor if there is one; false: something was posted. */
bool bide_run_loop_park_(bide_run_loop *loop);

/* Ends that; false: something was posted. */
bool bide_run_loop_unpark_(bide_run_loop *loop);

/* The word that is woken while it is parked without a descriptor, and its value then. */
bide_atomic(uint32_t) * bide_run_loop_word_(bide_run_loop *loop, uint32_t *parked);

/* Was something posted that has not been taken? */
bool bide_run_loop_is_posted_(bide_run_loop *loop);

#endif
