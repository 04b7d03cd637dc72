/* The inline scheduler, counting (chain_steps.h). */
#include "chain_steps.h"

#include "../../src/coroutine/frame.c" /* NOLINT(bugprone-suspicious-include) */
