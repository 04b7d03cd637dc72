/* The test loop, counting (chain_steps.h). */
#include "chain_steps.h"

#include "../../src/simulation/sim_loop.c" /* NOLINT(bugprone-suspicious-include) */
