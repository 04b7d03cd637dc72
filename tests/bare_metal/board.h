/*
 * A Cortex-M3 board without an operating system or a libc, as far as the tests need it. Text goes to the
 * host by semihosting, and so does the end of the program.
 */
#ifndef BIDE_TESTS_BOARD_H
#define BIDE_TESTS_BOARD_H

#include <stdint.h>

void board_print(const char *text);
void board_print_number(unsigned number);
void board_print_hexadecimal(uint64_t number); /* (to divide 64 bits takes a library) */

_Noreturn void board_exit(int status);

#endif
