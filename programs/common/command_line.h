/* The command line of a program. What is wrong with it ends the program, with status 2. */
#ifndef COMMON_COMMAND_LINE_H
#define COMMON_COMMAND_LINE_H

#include <stdint.h>

/* What the program is called; it defines that itself. */
extern const char program_name[];

/* "PROGRAM: WHAT WORD", and how to get help. Without a word if that is empty. */
_Noreturn void command_refuse(const char *what, const char *word);

/* The value of an option, which is a number from `min` to `max`. */
uint64_t command_number(const char *option, const char *value, uint64_t min, uint64_t max);

#endif
