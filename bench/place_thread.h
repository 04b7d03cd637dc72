/* Placement of a benchmark's threads. */
#ifndef BENCH_PLACE_THREAD_H
#define BENCH_PLACE_THREAD_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Must be called by each thread that takes part, with its number `index`: if the environment has
 * BENCH_PIN, pins it to a processor, in turn; otherwise the system places it.
 */
void bench_place_thread(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
