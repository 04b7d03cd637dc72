/*
 * Included before each of the library's files that the checker runs: replaces their threads, malloc
 * and free with the checker's.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bide/check_pthread.h"

#include <stdlib.h>

#define malloc(size) bide_check_alloc(size)
#define free(memory) bide_check_free(memory)
