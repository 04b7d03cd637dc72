/*
 * For the contract of message logs over standard streams: a run loop in real time in place of a test loop, whose
 * coroutines other threads may not wake. A millisecond of the contract's is 10 us.
 */
#ifndef BIDE_LOG_STANDARD_LOOP_H
#define BIDE_LOG_STANDARD_LOOP_H

#include <bide/bide.h>

#define bide_sim_loop                  bide_run_loop
#define bide_sim_loop_init(loop, seed) bide_run_loop_init(loop)
#define bide_sim_loop_wait             bide_run_loop_wait
#undef bide_sim_loop_destroy
#define bide_sim_loop_destroy(loop) ((void)0)
#define bide_sim_loop_step(loop)    (bide_run_loop_run_ready(loop) != 0)

#endif
