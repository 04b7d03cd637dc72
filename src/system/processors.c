/* The processors that the scheduler may use for this process. */
#define _GNU_SOURCE
#include "processors.h"

#include <sched.h>
#include <unistd.h>

unsigned bide_processors_(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
#else
    long count = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return count > 0 ? (unsigned)count : 1;
}
