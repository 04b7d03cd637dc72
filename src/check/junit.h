/* The results of scenarios as a file of JUnit, for CI. */
#ifndef BIDE_CHECK_JUNIT_H
#define BIDE_CHECK_JUNIT_H

#include "verdict.h"

/* One scenario: `summary` is a line; `details` are its trace, or NULL. */
typedef struct junit_case {
    const char *name;
    double seconds;
    verdict verdict;
    const char *summary;
    const char *details;
} junit_case;

/* Opens the file; false, with a message, if it cannot be written. */
bool junit_open(const char *path);

/*
 * Adds the case of this number, in place of an earlier one of that number. May be called in the processes
 * of jobs.h; does nothing without a file.
 */
void junit_add(unsigned number, const junit_case *c);

/* Writes the cases in the order of their numbers; false, with a message, if they could not be written. */
bool junit_close(const char *suite);

#endif
