#define _GNU_SOURCE
#include "options.h"

#include <bide/ring.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING_DEFAULT = 16384, MAX_RING = 1048576, MAX_THREADS = 256 };

/* What getopt_long returns; above all characters, which would be short options. */
enum { RING = 256, THREADS, HELP };

void options_print_help(void)
{
    printf("usage: pipeline [--ring N] [--threads N] [FILE]\n"
           "\n"
           "Counts the lines, bytes and words of FILE, takes its CRC-32, and shows the ten most\n"
           "frequent words. Without FILE, or if it is -, reads standard input. SIGINT ends the\n"
           "reading and shows what has been counted until then.\n"
           "\n"
           "  --ring N     pass lines on through a ring of N slots, a power of two (%d;\n"
           "               at most %d)\n"
           "  --threads N  run on N threads (one for each processor; at most %d)\n"
           "  --help       show this\n",
           RING_DEFAULT, MAX_RING, MAX_THREADS);
}

static bool fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("pipeline: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; try --help\n", stderr);
    va_end(arguments);
    return false;
}

/* Reads a number from 1 to `max`, in decimal digits alone. */
static bool read_number(const char *text, unsigned long max, unsigned long *number)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *number >= 1 &&
           *number <= max;
}

static bool read_ring(struct options *options, const char *text)
{
    unsigned long number;
    if (!read_number(text, MAX_RING, &number) || !bide_ring_fits(number))
        return fail("--ring %s: not a power of two from 1 to %d", text, MAX_RING);
    options->ring = number;
    return true;
}

static bool read_threads(struct options *options, const char *text)
{
    unsigned long number;
    if (!read_number(text, MAX_THREADS, &number))
        return fail("--threads %s: not a number from 1 to %d", text, MAX_THREADS);
    options->threads = (unsigned)number;
    return true;
}

/* The one operand, if there is one. */
static bool read_file(struct options *options, char **operands)
{
    if (operands[0] == NULL)
        return true;
    if (operands[1] != NULL)
        return fail("%s: there can be only one FILE", operands[1]);
    if (strcmp(operands[0], "-") != 0)
        options->file = operands[0];
    return true;
}

bool options_read(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"ring", required_argument, NULL, RING},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"help", no_argument, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    *options = (struct options){.ring = RING_DEFAULT};
    opterr = 0;
    for (;;) {
        /* (the colon: a missing value is told from an unknown option; there are no other threads yet) */
        switch (getopt_long(argc, argv, ":", known, NULL)) { // NOLINT(concurrency-mt-unsafe)
        case -1:
            return read_file(options, argv + optind);
        case RING:
            if (!read_ring(options, optarg))
                return false;
            break;
        case THREADS:
            if (!read_threads(options, optarg))
                return false;
            break;
        case HELP:
            options->help = true;
            return true;
        case ':':
            return fail("%s: a value is missing", argv[optind - 1]);
        default:
            if (optopt != 0 && optopt < RING)
                return fail("-%c: not an option", optopt);
            return fail("%s: not an option", argv[optind - 1]);
        }
    }
}
