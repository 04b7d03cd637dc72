/*
 * Commands: a list of words, and the process that runs it.
 */
#include "wrapper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void command_add(struct command *command, const char *word)
{
    if (command->count + 1 >= command->room) {
        command->room = command->room * 2 + 64;
        command->words = realloc(command->words, command->room * sizeof *command->words);
        if (command->words == NULL) {
            fputs("bidec: no memory\n", stderr);
            exit(1);
        }
    }
    command->words[command->count++] = word;
    command->words[command->count] = NULL;
}

void command_exec(const struct command *command)
{
    execvp(command->words[0], (char **)command->words);
    fprintf(stderr, "bidec: %s: %s\n", command->words[0], strerror(errno));
    _exit(127);
}

int wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t fork_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("bidec: fork");
        exit(1);
    }
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
    }
    return child;
}

int command_run(const struct command *command)
{
    pid_t child = fork_child();
    if (child == 0)
        command_exec(command);
    return wait_for(child);
}
