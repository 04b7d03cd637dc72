/* The command line. */
#ifndef PIPELINE_OPTIONS_H
#define PIPELINE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct options {
    size_t ring;         /* slots */
    unsigned threads;    /* 0: one for each processor */
    bool is_help;        /* --help was given */
    const char *monitor; /* a socket for bide-top; "auto": at the usual place; NULL: none */
    const char *file;    /* NULL: standard input */
};

/* Parses the command line. Returns false after an error, which is reported on stderr. */
bool options_read(struct options *options, int argc, char **argv);

/* Prints the text of --help. */
void options_print_help(void);

#endif
