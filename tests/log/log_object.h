/* The name of a test's own object in shared memory, for a log of the engine "shm". */
#ifndef BIDE_LOG_OBJECT_H
#define BIDE_LOG_OBJECT_H

#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct log_object {
    char name[64]; /* with its "/", as of shm_open(3) */
};

static unsigned log_objects;
static pid_t log_objects_process;

static inline void log_object_write(struct log_object *it, unsigned number)
{
    snprintf(it->name, sizeof it->name, "/bide-log-test-%d-%u", (int)getpid(), number);
}

/* What a test that has failed left. */
static inline void log_objects_remove(void)
{
    struct log_object it;
    for (unsigned i = 0; i < log_objects && getpid() == log_objects_process; i++) {
        log_object_write(&it, i);
        (void)shm_unlink(it.name);
    }
}

/* A new name, which this process and its children do not use otherwise. */
static inline void log_object_name(struct log_object *it)
{
    if (log_objects == 0) {
        log_objects_process = getpid();
        assert_int_equal(atexit(log_objects_remove), 0);
    }
    log_object_write(it, log_objects++);
    if (shm_unlink(it->name) < 0) /* of an earlier process with this number */
        assert_int_equal(errno, ENOENT);
}

static inline void log_object_remove(const struct log_object *it)
{
    assert_int_equal(shm_unlink(it->name), 0);
}

#endif
