/* Parsing of a program's command line: error messages and checked numbers. */
#include "command_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void command_line_reject(const char *what, const char *word)
{
    fprintf(stderr, "%s: %s%s%s\nTry '%s --help'.\n", program_name, what, *word != '\0' ? " " : "",
            word, program_name);
    exit(2);
}

uint64_t command_line_number(const char *option, const char *value, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || *value == '-' || number < min ||
        number > max) {
        fprintf(stderr, "%s: %s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'\n",
                program_name, option, min, max, value);
        exit(2);
    }
    return number;
}
