/* The wheel of timers. */
#define TIMERS(name) bide_timers_##name
#define TIMERS_TYPE  bide_timers
#include "timers_cases.h"
