/*
 * The functions of the board (board.h) on a system with a C library, whose platform table is the
 * library's own.
 */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>

void board_print(const char *text)
{
    fputs(text, stdout);
}

void board_print_number(unsigned number)
{
    printf("%u", number);
}

void board_print_hexadecimal(uint64_t number)
{
    printf("0x%llx", (unsigned long long)number);
}

void board_exit(int status)
{
    exit(status);
}
