/* The processors that the scheduler may use for this process. */
#define _GNU_SOURCE
#include "processors.h"

#include <sched.h>

unsigned bide_processors_(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}
