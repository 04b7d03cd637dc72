/* Common to the programs: a platform that reports the misuse, and exits. */
#ifndef BIDE_TESTS_MISTAKES_H
#define BIDE_TESTS_MISTAKES_H

#include "bide/event.h"
#include "bide/mutex.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void misuse(const char *what, const char *where, const char *file, unsigned line)
{
    printf("%s, %s, %s:%u\n", what, where, strrchr(file, '/') + 1, line);
    fflush(stdout);
    _Exit(3);
}

const bide_platform_table bide_platform = {NULL, NULL, NULL, NULL, misuse, NULL};

#endif
