/* Strands, counting (chain_steps.h). */
#include "chain_steps.h"

#include "../../src/schedule/strand.c" /* NOLINT(bugprone-suspicious-include) */
