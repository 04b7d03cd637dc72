/* The workers of a pool, counting (chain_steps.h). */
#include "chain_steps.h"

#include "../../src/schedule/pool/worker.c" /* NOLINT(bugprone-suspicious-include) */
