/*
 * Where coroutines of the composition tests run: schedulers of each kind, and ways to act on a thread of one of them
 * at a moment at which nothing else runs. One thread, the driver, calls all of this.
 *
 *     hand    queues what is posted until the driver steps it; its time is the driver's to say
 *     test    a test loop: like hand, but what runs next is drawn
 *     inline  bide_inline_scheduler; the library's own thread keeps its time
 *     loop    a run loop, which the driver runs while there is something to run
 *     pool    a thread pool, whose threads the driver holds, all of them, where it must know what they do
 *     strand  on a loop, or on a pool of its own: it is driven as those are, but that of the strand on a pool the driver
 *             holds the strand, which is as a pool of one thread
 *
 * The driver never guesses: what is posted is counted, so it knows when a scheduler has nothing left to run.
 */
#ifndef BIDE_TESTS_COMPOSITION_PLACES_H
#define BIDE_TESTS_COMPOSITION_PLACES_H

#include "sync/meeting.h"

#include "bide/frame.h"
#include "bide/strand.h"

typedef enum place_kind { PLACE_HAND, PLACE_TEST, PLACE_INLINE, PLACE_LOOP, PLACE_POOL } place_kind;

typedef struct place {
    const char *name;
    place_kind kind;
    unsigned threads;          /* of a pool */
    bide_scheduler *scheduler; /* once it is open */
    void *implementation;
    bide_strand *strand; /* that the scheduler is; or NULL */
    struct place *under; /* the pool of such a strand; or NULL */
} place;

extern place place_hand, place_hand_too, place_test, place_test_too, place_inline, place_loop,
    place_loop_too, place_pool, place_pool_too, place_strand_on_loop, place_strand;

/* Makes it, if it is not there. */
void place_open(place *p);

/* The place that has this scheduler, or NULL. */
place *place_of(const bide_scheduler *scheduler);

/* Is the calling thread one that runs the coroutines of `p` now? Of the inline scheduler any thread may be. */
bool place_is_here(const place *p);

/* Whether it runs only when the driver steps it, at the driver's time. */
bool place_is_by_hand(const place *p);

typedef void place_function(void *argument);

/* Calls it inside a coroutine of `p`, while no other thread of `p` runs anything. */
void place_call(place *p, place_function *function, void *argument);

/* Calls it while no thread of `p` runs a coroutine; of a pool that is held. */
void place_touch(place *p, place_function *function, void *argument);

/* Calls it on a thread that belongs to nobody. */
void place_call_elsewhere(place_function *function, void *argument);

/* From hold to release the threads of a pool run nothing but what place_call gives them. Other kinds run only when the
 * driver lets them anyway. */
void place_hold(place *p);
void place_release(place *p);

/* Runs what `p` has to run, and what becomes ready on it by that. Returns whether there was anything. */
bool place_drain(place *p);

/* Something became ready on a pool that was not posted: when it is drained, it is asked once more. */
void place_look_again(place *p);

/* Until none of them has anything to run. False: there is no end to it. */
bool places_settle(place *const *list, size_t count);

/* A new cell begins: no timer of the last is left. A test place draws from `seed`. */
void place_begin(place *p, uint64_t seed);

/* The number of ready operations that a coroutine passes before it yields; 0: as usual. Before a cell begins. */
void places_set_budget(int32_t budget);

/* Resumes the next operation of a place that is by hand; false: there is none. */
bool place_step(place *p);

/* Lets the time of places that are by hand be `time`. */
void places_let_time_be(uint64_t time);

/* Whether nothing is queued, and no timer set, as far as that is visible. */
bool place_is_empty(place *p);

#endif
