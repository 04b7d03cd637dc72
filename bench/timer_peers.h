/* What the timers of libuv are measured by, beside the others of benchmark `timer`. */
#ifndef BENCH_TIMER_PEERS_H
#define BENCH_TIMER_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifndef BENCH_UV
#define BENCH_UV 0 /* libuv is not installed */
#endif

/* A number that is drawn, of 31 bits; and how many nanoseconds from now a timer is to come. */
uint64_t bench_timer_draw(void);
uint64_t bench_timer_away(void);

double bench_uv_restart(size_t live, size_t count);
double bench_uv_fire(size_t live);

#endif
