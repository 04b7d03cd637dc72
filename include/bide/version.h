/*
 * The version of bide. Floor: base.
 *
 *     #if BIDE_VERSION >= 100                         // 0.1.0 or later
 *     printf("%s, %u\n", BIDE_VERSION_TEXT, bide_version());
 *
 * Before 1.0 each minor version may break programs that were compiled for another. So it is part of
 * the shared library's name (libbide.so.0.1), and a program loads the version that it was linked with.
 */
#ifndef BIDE_VERSION_H
#define BIDE_VERSION_H

#include "bide/compiler.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_VERSION_MAJOR 0
#define BIDE_VERSION_MINOR 1
#define BIDE_VERSION_PATCH 0

/* The headers': a number that grows. */
#define BIDE_VERSION      (BIDE_VERSION_MAJOR * 10000 + BIDE_VERSION_MINOR * 100 + BIDE_VERSION_PATCH)
#define BIDE_VERSION_TEXT "0.1.0"

/*
 * The version of the library that the program runs with, as BIDE_VERSION.
 * Threads: any. Progress: wait-free.
 */
unsigned bide_version(void);

BIDE_EXTERN_C_END

#endif
