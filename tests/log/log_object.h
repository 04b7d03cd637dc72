/* The name of a test's own object in shared memory, for a log of the engine "shm". */
#ifndef BIDE_LOG_OBJECT_H
#define BIDE_LOG_OBJECT_H

#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct log_object {
    char name[64]; /* with its "/", as of shm_open(3) */
};

/* A new name, which this process and its children do not use otherwise. */
static inline void log_object_name(struct log_object *it)
{
    static unsigned count;
    snprintf(it->name, sizeof it->name, "/bide-log-test-%d-%u", (int)getpid(), count++);
    if (shm_unlink(it->name) < 0) /* of an earlier process with this number */
        assert_int_equal(errno, ENOENT);
}

static inline void log_object_remove(const struct log_object *it)
{
    assert_int_equal(shm_unlink(it->name), 0);
}

#endif
