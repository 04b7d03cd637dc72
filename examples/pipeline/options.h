/* The command line. */
#ifndef PIPELINE_OPTIONS_H
#define PIPELINE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct options {
    size_t ring;      /* slots */
    unsigned threads; /* 0: one for each processor */
    bool help;        /* is that all that is asked for? */
    const char *file; /* NULL: standard input */
};

/* Reads the command line. Returns false, after a line on stderr, if something is wrong with it. */
bool options_read(struct options *options, int argc, char **argv);

/* Prints what --help is to print. */
void options_print_help(void);

#endif
