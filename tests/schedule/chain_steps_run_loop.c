/* The run loop, counting (chain_steps.h). */
#include "chain_steps.h"

#include "../../src/schedule/run_loop.c" /* NOLINT(bugprone-suspicious-include) */
