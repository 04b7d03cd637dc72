/* The heap of timers, for firmware. */
#define TIMERS(name) bide_timer_heap_##name
#define TIMERS_TYPE  bide_timer_heap
#include "timers_cases.h"
