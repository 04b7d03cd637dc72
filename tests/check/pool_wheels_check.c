/* Timers of a pool in several wheels: scenarios of their own with the parts of the pool's. */
#define WHEELS 1
#include "thread_pool_check.c"
