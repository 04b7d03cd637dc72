/* What a test's coroutines have done, as words and numbers in their order. A test begins it by journal[0] = 0. */
#ifndef BIDE_TESTS_JOURNAL_H
#define BIDE_TESTS_JOURNAL_H

#include <stdio.h>
#include <string.h>

static char journal[1024];

static inline void note(const char *what)
{
    size_t length = strlen(journal);
    snprintf(journal + length, sizeof journal - length, "%s ", what);
}

static inline void note_number(long value)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", value);
    note(text);
}

#endif
