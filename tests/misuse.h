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

/*
 * Forks, on any thread: the result is that of fork, and *says what the child writes to stderr. A child that hangs is
 * killed.
 */
static inline pid_t misuse_fork(int *says)
{
    enum { MAX_SECONDS = 60 };
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        signal(SIGALRM, SIG_DFL);
        alarm(MAX_SECONDS);
        dup2(ends[1], STDERR_FILENO);
    }
    close(ends[1]);
    *says = ends[0];
    return child;
}

/* Checks that the child of misuse_fork aborts with a first line that contains both texts. */
static inline bool misuse_child_aborts_naming(pid_t child, int says, const char *one,
                                              const char *other)
{
    char text[1024];
    size_t length = 0;
    ssize_t count;
    int status;
    assert_true(child > 0);
    while (length < sizeof text - 1 &&
           (count = read(says, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    close(says);
    assert_int_equal(waitpid(child, &status, 0), child);
    const char *end = strchr(text, '\n');
    bool found = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && end != NULL &&
                 strstr(text, one) != NULL && strstr(text, one) < end &&
                 strstr(text, other) != NULL;
    if (!found)
        printf("# expected a line with '%s' and '%s', got: %s\n", one, other, text);
    return found;
}

/* Checks that it aborts with a first line that contains both texts. */
static inline bool misuse_aborts_naming(void (*misuse)(void), const char *one, const char *other)
{
    int says;
    pid_t child = misuse_fork(&says);
    if (child == 0) {
        misuse();
        _exit(0);
    }
    return misuse_child_aborts_naming(child, says, one, other);
}
#endif

#endif
