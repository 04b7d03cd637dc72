/*
 * Where coroutines of the composition tests run: schedulers of each kind, and ways to act on one of their threads while
 * nothing else runs. One thread, the driver, calls all of this.
 *
 *     hand    queues what is posted until the driver steps it; its time is the driver's to say
 *     test    a test loop: like hand, but what runs next is drawn
 *     inline  bide_inline_scheduler; the library's own thread keeps its time
 *     loop    a run loop, which the driver runs while there is something to run
 *     pool    a thread pool; the driver holds all of its threads when it must know what they do
 *     strand  on a loop, or on a pool of its own: it is driven as those are, but that of the strand on a pool the driver
 *             holds the strand, which is as a pool of one thread
 *
 * The driver never guesses: it counts the posted coroutines, so it knows when a scheduler has nothing left to run.
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

/* Opens the place, if it is not open. */
void place_open(place *p);

/* The place that has this scheduler, or NULL. */
place *place_of(const bide_scheduler *scheduler);

/* Whether the calling thread runs the coroutines of `p` now. For the inline scheduler any thread does. */
bool place_is_here(const place *p);

/* Whether it runs only when the driver steps it, at the driver's time. */
bool place_is_by_hand(const place *p);

typedef void place_function(void *argument);

/* Calls the function inside a coroutine of `p`, while no other thread of `p` runs anything. */
void place_call(place *p, place_function *function, void *argument);

/* Calls the function while no thread of `p` runs a coroutine; a pool must be held. */
void place_touch(place *p, place_function *function, void *argument);

/* Calls the function on a thread that belongs to no place. */
void place_call_elsewhere(place_function *function, void *argument);

/*
 * From hold to release the threads of a pool run only functions of place_call. Other kinds run only when the driver
 * lets them anyway.
 */
void place_hold(place *p);
void place_release(place *p);

/* Runs everything that is ready on `p`, or becomes ready meanwhile. Returns whether there was anything. */
bool place_drain(place *p);

/* Something became ready on a pool that was not posted: the next drain checks once more. */
void place_look_again(place *p);

/* Drains all places until none has anything to run. False: they never settle. */
bool places_settle(place *const *list, size_t count);

/* A new cell begins: no timer of the last one is left. A test place draws from `seed`. */
void place_begin(place *p, uint64_t seed);

/* The number of ready operations that a coroutine passes before it yields; 0: as usual. Before a cell begins. */
void places_set_budget(int32_t budget);

/* Resumes the next operation of a place that is by hand; false: there is none. */
bool place_step(place *p);

/* Sets the time of places that are run by hand. */
void places_let_time_be(uint64_t time);

/* Whether nothing is queued, and no timer set, as far as that is visible. */
bool place_is_empty(place *p);

#endif
