/* Standard input and output of a test's own in place of the process's, for logs of the engine "stdio". */
#ifndef BIDE_LOG_STANDARD_H
#define BIDE_LOG_STANDARD_H

#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct log_standard {
    int saved[2];
};

/* Descriptors 0 and 1 are these from now on; -1: closed. The caller closes its own. */
static inline void log_standard_begin(struct log_standard *it, int input, int output)
{
    const int with[2] = {input, output};
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        it->saved[i] = dup(i);
        assert_true(it->saved[i] > 1);
    }
    for (int i = 0; i < 2; i++) {
        if (with[i] >= 0)
            assert_int_equal(dup2(with[i], i), i);
        else
            assert_int_equal(close(i), 0);
    }
}

static inline void log_standard_end(const struct log_standard *it)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dup2(it->saved[i], i), i);
        close(it->saved[i]);
    }
}

/* Standard output is connected to standard input. */
static inline void log_standard_loop(struct log_standard *it)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0); /* (tests make other calls fail, such as pipe2) */
    log_standard_begin(it, ends[0], ends[1]);
    close(ends[0]);
    close(ends[1]);
}

#endif
