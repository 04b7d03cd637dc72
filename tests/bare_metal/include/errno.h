/* The numbers that the tests use beside those of bide/errors.h. */
#ifndef BIDE_TESTS_ERRNO_H
#define BIDE_TESTS_ERRNO_H

#include "bide/errors.h"

#define ENOENT 2
#define EIO    5
#define EDOM   33
#define ERANGE 34

#endif
