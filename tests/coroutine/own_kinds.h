/* A coroutine whose body and callers are in different files. */
#ifndef BIDE_TESTS_OWN_KINDS_H
#define BIDE_TESTS_OWN_KINDS_H

#include "bide/task.h"

/* A custom kind of coroutine: counts how often a coroutine of this kind has failed. */
struct tallied {
    bide_frame frame;
    int *failures;
};

/* Ends with -error. */
struct failing {
    struct tallied tallied;
    int error;
};

bide_declare_body(failing_body);

#endif
