/* The functions that the tests and the compiler use; board.c defines them. */
#ifndef BIDE_TESTS_STRING_H
#define BIDE_TESTS_STRING_H

#include <stddef.h>

void *memset(void *to, int value, size_t size);
void *memcpy(void *restrict to, const void *restrict from, size_t size);
size_t strlen(const char *text);
char *strcat(char *restrict to, const char *restrict from);
char *strncat(char *restrict to, const char *restrict from, size_t max);
int memcmp(const void *a, const void *b, size_t size);
int strcmp(const char *a, const char *b);

#endif
