/* The C++20 peer: two coroutines that pass a turn to each other with two auto-reset events. */
#ifndef BENCH_PEERS_EVENT_H
#define BENCH_PEERS_EVENT_H

#include <stdint.h>

#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each runs that many round trips, and returns the number of turns of the second party. */
struct peer_event {
    uint64_t (*resumed_inline)(
        uint64_t round_trips); /* a set resumes the waiter on its own stack; one thread */
    uint64_t (*on_a_loop)(
        uint64_t round_trips); /* a set posts the waiter to an event loop; one thread */
    uint64_t (*on_two_loops)(uint64_t round_trips); /* the same, a loop and a thread each */
};

extern const struct peer_event peer_event_gxx, peer_event_clang;

#ifdef __cplusplus
}
#endif

#endif
