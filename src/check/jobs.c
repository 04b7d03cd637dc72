/*
 * A part prints into a file without a name. The file is copied to stdout when all parts before have ended.
 */
#define _GNU_SOURCE
#include "jobs.h"

#include "progress.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN_AT_ONCE = 200 }; /* files of parts that have not been printed */

typedef struct job {
    pid_t process; /* 0: it has ended, or has not begun */
    FILE *printed;
    int status;
    bool has_ended;
} job;

/* The child of a part. */
static _Noreturn void run_job(const job *j, job_function run, void *context, unsigned part)
{
    progress_as_lines();
    if (dup2(fileno(j->printed), STDOUT_FILENO) < 0)
        _exit(JOBS_LOST);
    int status = run(context, part);
    _exit(fflush(stdout) == 0 ? status : JOBS_LOST);
}

static void begin_job(job *j, job_function run, void *context, unsigned part)
{
    fflush(stdout);
    fflush(stderr);
    j->status = JOBS_LOST;
    j->printed = tmpfile();
    j->process = j->printed == NULL ? -1 : fork();
    if (j->process == 0)
        run_job(j, run, context, part);
    if (j->process < 0) {
        fprintf(stderr, "bide_check: a process could not be made: %s\n", strerror(errno));
        j->process = 0;
        j->has_ended = true;
    }
}

static void end_job(job *j, int status)
{
    j->process = 0;
    j->has_ended = true;
    if (WIFEXITED(status))
        j->status = WEXITSTATUS(status);
    else
        fprintf(stderr, "bide_check: a process was ended by signal %d (%s)\n", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
}

/* Waits until that one has ended. */
static void wait_for_job(job *j)
{
    int status;
    pid_t process;
    do
        process = waitpid(j->process, &status, 0);
    while (process < 0 && errno == EINTR);
    if (process > 0) {
        end_job(j, status);
        return;
    }
    fprintf(stderr, "bide_check: a process is not there: %s\n", strerror(errno));
    j->process = 0;
    j->has_ended = true;
}

/* Waits until one of those from `told` to `begun` that run has ended. */
static void wait_for_any(job *jobs, unsigned told, unsigned begun)
{
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    for (unsigned i = told; i < begun; i++) {
        int status;
        if (jobs[i].process != 0 && waitpid(jobs[i].process, &status, WNOHANG) > 0) {
            end_job(&jobs[i], status);
            return;
        }
    }
    wait_for_job(&jobs[told]); /* a process of the caller has ended, or none is there */
}

static void print_job(job *j)
{
    char text[4096];
    size_t length;
    if (j->printed == NULL)
        return;
    rewind(j->printed);
    while ((length = fread(text, 1, sizeof text, j->printed)) != 0)
        fwrite(text, 1, length, stdout);
    fflush(stdout);
    fclose(j->printed);
    j->printed = NULL;
}

void jobs_run(unsigned count, unsigned at_once, job_function run, job_ended ended, void *context)
{
    job *jobs = at_once > 1 ? calloc(count + 1, sizeof *jobs) : NULL;
    if (jobs == NULL) {
        for (unsigned i = 0; i < count; i++)
            ended(context, i, run(context, i));
        return;
    }
    /* (a process that ignores SIGCHLD hears nothing of its children) */
    struct sigaction ordinary = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &ordinary, &before);
    unsigned begun = 0, told = 0, running = 0;
    while (told < count) {
        while (begun < count && running < at_once && begun - told < OPEN_AT_ONCE) {
            begin_job(&jobs[begun], run, context, begun);
            running += jobs[begun++].process != 0;
        }
        if (!jobs[told].has_ended) {
            wait_for_any(jobs, told, begun);
            running--;
        }
        for (; told < begun && jobs[told].has_ended; told++) {
            print_job(&jobs[told]);
            ended(context, told, jobs[told].status);
        }
    }
    sigaction(SIGCHLD, &before, NULL);
    free(jobs);
}
