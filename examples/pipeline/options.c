/* The command line. */
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

enum { DEFAULT_RING = 16384, MAX_RING = 1048576, MAX_THREADS = 256 };

/* Codes for getopt_long, above all characters, which would be short options. */
enum { OPTION_RING = 256, OPTION_THREADS, OPTION_MONITOR, OPTION_HELP };

void options_print_help(void)
{
    printf(
        "usage: pipeline [--ring N] [--threads N] [FILE]\n"
        "\n"
        "Counts the lines, bytes and words of FILE, computes its CRC-32, and prints the ten most\n"
        "frequent words. Without FILE, or if it is -, reads standard input. SIGINT stops reading\n"
        "and prints the counts so far.\n"
        "\n"
        "  --ring N     pass lines through a ring of N slots, a power of two (%d;\n"
        "               at most %d)\n"
        "  --threads N  run on N threads (one for each processor; at most %d)\n"
        "  --monitor SOCKET\n"
        "               let bide-top look at the pipeline; auto: at the usual place\n"
        "  --help       show this\n",
        DEFAULT_RING, MAX_RING, MAX_THREADS);
}

static bool usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("pipeline: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; try --help\n", stderr);
    va_end(arguments);
    return false;
}

/* Parses a number from 1 to `max`, in decimal digits only. */
static bool parse_number(const char *text, unsigned long max, unsigned long *number)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *number >= 1 &&
           *number <= max;
}

static bool parse_ring(struct options *options, const char *text)
{
    unsigned long number;
    if (!parse_number(text, MAX_RING, &number) || !bide_ring_fits(number))
        return usage_error("--ring %s: not a power of two from 1 to %d", text, MAX_RING);
    options->ring = number;
    return true;
}

static bool parse_threads(struct options *options, const char *text)
{
    unsigned long number;
    if (!parse_number(text, MAX_THREADS, &number))
        return usage_error("--threads %s: not a number from 1 to %d", text, MAX_THREADS);
    options->threads = (unsigned)number;
    return true;
}

/* Parses the operand, if there is one. */
static bool parse_operand(struct options *options, char **operands)
{
    if (operands[0] == NULL)
        return true;
    if (operands[1] != NULL)
        return usage_error("%s: there can be only one FILE", operands[1]);
    if (strcmp(operands[0], "-") != 0)
        options->file = operands[0];
    return true;
}

bool options_read(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"ring", required_argument, NULL, OPTION_RING},
                                          {"threads", required_argument, NULL, OPTION_THREADS},
                                          {"monitor", required_argument, NULL, OPTION_MONITOR},
                                          {"help", no_argument, NULL, OPTION_HELP},
                                          {NULL, 0, NULL, 0}};
    *options = (struct options){.ring = DEFAULT_RING};
    opterr = 0;
    for (;;) {
        /*
         * (the colon makes getopt distinguish a missing value from an unknown option; no other
         * thread runs yet)
         */
        switch (getopt_long(argc, argv, ":", known, NULL)) { // NOLINT(concurrency-mt-unsafe)
        case -1:
            return parse_operand(options, argv + optind);
        case OPTION_RING:
            if (!parse_ring(options, optarg))
                return false;
            break;
        case OPTION_THREADS:
            if (!parse_threads(options, optarg))
                return false;
            break;
        case OPTION_MONITOR:
            options->monitor = optarg;
            break;
        case OPTION_HELP:
            options->is_help = true;
            return true;
        case ':':
            return usage_error("%s: a value is missing", argv[optind - 1]);
        default:
            if (optopt != 0 && optopt < OPTION_RING)
                return usage_error("-%c: not an option", optopt);
            return usage_error("%s: not an option", argv[optind - 1]);
        }
    }
}
