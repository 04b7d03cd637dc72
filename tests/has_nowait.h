/* Whether files can be read without waiting here. QEMU does not pass that call on, nor do some file systems. */
#ifndef BIDE_TESTS_HAS_NOWAIT_H
#define BIDE_TESTS_HAS_NOWAIT_H

#include "../src/io/nowait.h"

#include <stdbool.h>
#include <stdio.h>

static inline bool has_nowait(void)
{
    char byte = 'x';
    struct iovec bytes = {&byte, 1};
    FILE *file = tmpfile();
    bool has = file != NULL && fwrite(&byte, 1, 1, file) == 1 && fflush(file) == 0 &&
               preadv2(fileno(file), &bytes, 1, 0, RWF_NOWAIT) == 1;
    if (file != NULL)
        fclose(file);
    if (!has)
        printf("# no file can be read without waiting here\n");
    return has;
}

#endif
