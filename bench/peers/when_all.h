/* The C++20 peer: awaiting many children at once. */
#ifndef BENCH_PEERS_WHEN_ALL_H
#define BENCH_PEERS_WHEN_ALL_H

#include <stddef.h>
#include <stdint.h>

#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Awaits `children` children, whose results are (i & 0xff) for i in 0 .. children-1, that many
 * times. Returns the sum of all results.
 */
struct peer_when_all {
    uint64_t (*run)(size_t children, size_t times);
};

/*
 * Ready: the children complete at once; suspending: each waits for an event first. Tasks: of the
 * general type, so when_all needs a coroutine of its own for each; counted: of a type that only
 * when_all can await.
 */
enum {
    PEER_TASKS_READY,
    PEER_TASKS_SUSPENDING,
    PEER_COUNTED_READY,
    PEER_COUNTED_SUSPENDING,
    PEER_WHEN_ALLS
};

extern const struct peer_when_all peer_when_all_gxx[PEER_WHEN_ALLS];
extern const struct peer_when_all peer_when_all_clang[PEER_WHEN_ALLS];

#ifdef __cplusplus
}
#endif

#endif
