/*
 * The command line of a program. An error in it is reported on stderr and ends the program with
 * status 2.
 */
#ifndef COMMON_COMMAND_LINE_H
#define COMMON_COMMAND_LINE_H

#include <stdint.h>

/* The program's name, for messages. Each program defines it. */
extern const char program_name[];

/*
 * Reports "PROGRAM: WHAT WORD" and how to get help, and exits with status 2. An empty word is left
 * out.
 */
_Noreturn void command_line_reject(const char *what, const char *word);

/* The value of an option: a number from `min` to `max`. */
uint64_t command_line_number(const char *option, const char *value, uint64_t min, uint64_t max);

#endif
