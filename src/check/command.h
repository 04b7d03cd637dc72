/* The command line of a program that checks scenarios. */
#ifndef BIDE_CHECK_COMMAND_H
#define BIDE_CHECK_COMMAND_H

#include "bide/check.h"

typedef struct main_options {
    const char *program; /* the name of its file */
    bool list, verbose, weaken, tap;
    const char *replay, *dot, *junit;
    const char
        *unfinished; /* a file: the scenarios that need not be finished; NULL: none must be */
    unsigned preemptions, jobs;
    double seconds, progress;
    uint64_t executions;
    bool samples, has_seed;
    bide_check_sampling sampling;
    char **names;
    int names_count;
} main_options;

/* False if the command line is wrong. `names` has room for all arguments. */
bool command_read(main_options *o, int argc, char **argv);
void command_usage(const char *program);

bool command_wants(const main_options *o, const bide_check_scenario *s);

/* Reports a name that is not a scenario's, and returns false. */
bool command_names_are_known(const main_options *o, const bide_check_suite *suite);

/* Returns the scenario with the limits of the command line. */
bide_check_scenario command_limits(const main_options *o, const bide_check_scenario *given);

/* Reads the file of `unfinished`; false, with a message, if it cannot be read. */
bool command_read_unfinished(const main_options *o);

/* Reports a name in that file that is this program's and not a scenario's, and returns false. */
bool command_unfinished_are_known(const main_options *o, const bide_check_suite *suite);

#endif
