/* The C++20 peers: a coroutine mutex like cppcoro's, and std::mutex. */
#ifndef BENCH_PEERS_MUTEX_H
#define BENCH_PEERS_MUTEX_H

#include "../mutex_contest.h"
#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

struct peer_mutex {
    /* A coroutine locks and unlocks it that many times; returns the number of locks. */
    uint64_t (*coroutine)(uint64_t times);
    uint64_t (*std_mutex)(uint64_t times);
    /*
     * Four coroutines, two on each of two threads. The next holder continues at once on the
     * unlocking thread, or on the loop of its own thread.
     */
    void (*contend_inline)(struct mutex_contest *contest);
    void (*contend_on_loops)(struct mutex_contest *contest);
};

extern const struct peer_mutex peer_mutex_gxx, peer_mutex_clang;

#ifdef __cplusplus
}
#endif

#endif
