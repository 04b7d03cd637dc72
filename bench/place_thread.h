/* Where a benchmark's threads run. */
#ifndef BENCH_PLACE_THREAD_H
#define BENCH_PLACE_THREAD_H

#ifdef __cplusplus
extern "C" {
#endif

/* To be called by each thread that takes part, the number `index` of them: where the environment has BENCH_PIN, keeps
 * it on one processor, in turn; otherwise the system places it. */
void bench_place_thread(unsigned index);

#ifdef __cplusplus
}
#endif

#endif
