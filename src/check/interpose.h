/* Put in front of the library's own files that use threads and allocate, where they are checked. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bide/check_pthread.h"

#include <stdlib.h>

#define malloc(size) bide_check_alloc(size)
#define free(memory) bide_check_free(memory)
