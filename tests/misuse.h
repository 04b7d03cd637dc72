/*
 * Checks that a piece of code ends in a report of misuse. The code is run in a process of its own, which it may give
 * threads. The caller has none that could allocate meanwhile (tests/io/descriptor_test.c).
 */
#ifndef BIDE_TESTS_MISUSE_H
#define BIDE_TESTS_MISUSE_H

#include "testing.h"

#if TESTING_HOSTED
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* Checks that it aborts with a first line that contains both texts. */
static inline bool misuse_aborts_naming(void (*misuse)(void), const char *one, const char *other)
{
    int ends[2];
    char text[1024];
    size_t length = 0;
    ssize_t count;
    int status;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        misuse();
        _exit(0);
    }
    close(ends[1]);
    while (length < sizeof text - 1 &&
           (count = read(ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    const char *end = strchr(text, '\n');
    bool found = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && end != NULL &&
                 strstr(text, one) != NULL && strstr(text, one) < end &&
                 strstr(text, other) != NULL;
    if (!found)
        printf("# expected a line with '%s' and '%s', got: %s\n", one, other, text);
    return found;
}
#endif

#endif
