/* The ends, and the settings. */
#include "composition.h"

/* Destroyed coroutines: started by bide_spawn and by bide_start. */
#define BOTH(name, ...)                                       \
    {name, __VA_ARGS__, 0, SPAWNED},                          \
    {                                                         \
        name ", begun by bide_start", __VA_ARGS__, 0, STARTED \
    }

/* After it was handed its token, and so many steps of schedulers by hand. */
#define STEPPED(steps)                                                                             \
    {                                                                                              \
        "handed it, destroyed after " #steps " steps", ACT_WAKE, MOMENT_OUTSIDE, DESTROYS_STEPPED, \
            steps, SPAWNED                                                                         \
    }

const end ends[] = {
    {"at once", ACT_WAKE, MOMENT_BEFORE, DESTROYS_NOT, 0, SPAWNED},
    {"later", ACT_WAKE, MOMENT_LATER, DESTROYS_NOT, 0, SPAWNED},
    {"later, begun by bide_start", ACT_WAKE, MOMENT_LATER, DESTROYS_NOT, 0, STARTED},
    {"from outside", ACT_WAKE, MOMENT_OUTSIDE, DESTROYS_NOT, 0, SPAWNED},
    {"later, of a root", ACT_WAKE, MOMENT_LATER, DESTROYS_NOT, 0, ROOT},
    {"asked to stop, of a root", ACT_ASK, MOMENT_LATER, DESTROYS_NOT, 0, ROOT},
    {"destroyed while it waits, of a root", ACT_DESTROY, MOMENT_LATER, DESTROYS_AT_ONCE, 0, ROOT},
    {"handed it, destroyed before it runs, of a root", ACT_WAKE, MOMENT_LATER, DESTROYS_AT_ONCE, 0,
     ROOT},
    {"at once, of a root", ACT_WAKE, MOMENT_BEFORE, DESTROYS_NOT, 0, ROOT},
    {"from another thread", ACT_WAKE, MOMENT_ELSEWHERE, DESTROYS_NOT, 0, SPAWNED},
    {"asked to stop before", ACT_ASK, MOMENT_BEFORE, DESTROYS_NOT, 0, SPAWNED},
    {"asked to stop", ACT_ASK, MOMENT_LATER, DESTROYS_NOT, 0, SPAWNED},
    {"asked to stop, begun by bide_start", ACT_ASK, MOMENT_LATER, DESTROYS_NOT, 0, STARTED},
    {"asked to stop by another thread", ACT_ASK, MOMENT_ELSEWHERE, DESTROYS_NOT, 0, SPAWNED},
    {"a token asked before", ACT_TOKEN, MOMENT_BEFORE, DESTROYS_NOT, 0, SPAWNED},
    {"a token asked", ACT_TOKEN, MOMENT_LATER, DESTROYS_NOT, 0, SPAWNED},
    {"deadline", ACT_DEADLINE, MOMENT_OUTSIDE, DESTROYS_NOT, 0, SPAWNED},
    {"closed before", ACT_CLOSE, MOMENT_BEFORE, DESTROYS_NOT, 0, SPAWNED},
    {"closed", ACT_CLOSE, MOMENT_LATER, DESTROYS_NOT, 0, SPAWNED},
    {"closed by another thread", ACT_CLOSE, MOMENT_ELSEWHERE, DESTROYS_NOT, 0, SPAWNED},
    BOTH("destroyed before it begins", ACT_DESTROY, MOMENT_LATER, DESTROYS_UNBEGUN),
    {"destroyed before what it posted begins", ACT_DESTROY, MOMENT_LATER, DESTROYS_EARLY, 0,
     STARTED},
    BOTH("destroyed while it waits", ACT_DESTROY, MOMENT_LATER, DESTROYS_AT_ONCE),
    BOTH("handed it, destroyed before it runs", ACT_WAKE, MOMENT_LATER, DESTROYS_AT_ONCE),
    BOTH("handed it from outside, destroyed before it runs", ACT_WAKE, MOMENT_OUTSIDE,
         DESTROYS_AT_ONCE),
    BOTH("handed it, destroyed after it ran elsewhere", ACT_WAKE, MOMENT_OUTSIDE, DESTROYS_AWAY),
    STEPPED(1),
    STEPPED(2),
    STEPPED(3),
    STEPPED(4),
    STEPPED(5),
    STEPPED(6),
    BOTH("asked to stop, destroyed before it runs", ACT_ASK, MOMENT_LATER, DESTROYS_AT_ONCE),
    BOTH("closed, destroyed before it runs", ACT_CLOSE, MOMENT_LATER, DESTROYS_AT_ONCE),
    BOTH("destroyed after its end", ACT_WAKE, MOMENT_LATER, DESTROYS_ENDED),
};
const size_t ends_count = sizeof ends / sizeof ends[0];

const setting settings[] = {
    {"hand", &place_hand, &place_hand_too, 0, false},
    {"hand, moved", &place_hand, &place_hand_too, 1, false},
    {"hand, moved there and back", &place_hand, &place_hand_too, 2, false},
    {"inline and loop", &place_inline, &place_loop, 0, false},
    {"inline, moved to loop", &place_inline, &place_loop, 1, false},
    {"loop and inline", &place_loop, &place_inline, 0, false},
    {"loop, moved to inline", &place_loop, &place_inline, 1, false},
    {"loop and loop", &place_loop, &place_loop_too, 0, false},
    {"loop and pool", &place_loop, &place_pool, 0, false},
    {"loop, moved to pool", &place_loop, &place_pool, 1, false},
    {"pool and loop", &place_pool, &place_loop, 0, false},
    {"pool, moved to loop", &place_pool, &place_loop, 1, false},
    {"pool and pool", &place_pool, &place_pool_too, 0, false},
    {"pool, moved to pool and back", &place_pool, &place_pool_too, 2, false},
    {"inline and pool", &place_inline, &place_pool, 0, false},
    {"test and test", &place_test, &place_test_too, 0, false},
    {"test, moved there and back", &place_test, &place_test_too, 2, false},
    {"strand and loop", &place_strand, &place_loop, 0, false},
    {"strand, moved to pool", &place_strand, &place_pool, 1, false},
    {"loop, moved to strand", &place_loop, &place_strand, 1, false},
    {"strand, moved to strand on loop and back", &place_strand, &place_strand_on_loop, 2, false},
    {"strand on loop and loop", &place_strand_on_loop, &place_loop, 0, false},
    {"strand on loop and inline", &place_strand_on_loop, &place_inline, 0, false},
    {"hand, giving way", &place_hand, &place_hand_too, 0, true},
    {"hand, moved, giving way", &place_hand, &place_hand_too, 1, true},
    {"loop and inline, giving way", &place_loop, &place_inline, 0, true},
    {"loop and loop, giving way", &place_loop, &place_loop_too, 0, true},
    {"loop, moved to pool, giving way", &place_loop, &place_pool, 1, true},
    {"pool and loop, giving way", &place_pool, &place_loop, 0, true},
    {"pool and pool, giving way", &place_pool, &place_pool_too, 0, true},
    {"strand on loop and loop, giving way", &place_strand_on_loop, &place_loop, 0, true},
    {"strand and strand on loop, giving way", &place_strand, &place_strand_on_loop, 0, true},
    {"pool, moved to strand, giving way", &place_pool, &place_strand, 1, true},
};
const size_t settings_count = sizeof settings / sizeof settings[0];
