/* What the platform tables do about misuse: a sentence on standard error, and the end of the program. */
#ifndef BIDE_SYSTEM_PRINT_MISUSE_H
#define BIDE_SYSTEM_PRINT_MISUSE_H

#include <stdio.h>
#include <stdlib.h>

static inline void print_misuse(const char *what, const char *where, const char *file,
                                unsigned line)
{
    fprintf(stderr, "bide: %s: %s (%s:%u)\n", what, where, file, line);
    abort();
}

#endif
