/* The number of this process's open descriptors: before and after, to see that none leaked. */
#ifndef BIDE_TESTS_OPEN_DESCRIPTORS_H
#define BIDE_TESTS_OPEN_DESCRIPTORS_H

#include <fcntl.h>

/* Of the first 4096 numbers. A child of fork may call it too, and where no directory can be opened. */
static inline unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
