/* libuv's timers for the benchmark `timer`. */
#ifndef BENCH_TIMER_PEERS_H
#define BENCH_TIMER_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifndef BENCH_UV
#define BENCH_UV 0 /* libuv is not installed */
#endif

/* A random number of 31 bits; and the nanoseconds from now until a timer expires. */
uint64_t bench_timer_draw(void);
uint64_t bench_timer_away(void);

double bench_uv_restart(size_t live, size_t count);
double bench_uv_fire(size_t live);

#endif
