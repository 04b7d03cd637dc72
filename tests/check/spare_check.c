/* Regions in which a worker of a pool blocks, and its spare workers: scenarios of their own with the parts of the pool's. */
#define SPARE 1
#include "thread_pool_check.c"
