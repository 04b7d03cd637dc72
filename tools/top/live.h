/* The live screen. */
#ifndef TOP_LIVE_H
#define TOP_LIVE_H

#include "wire.h"

typedef struct live_options {
    const char *path;
    uint64_t interval; /* nanoseconds */
    bool has_colours;
    bool wants_turns;
} live_options;

/* Runs until the user quits. Returns the exit status, or dies by the signal that ended it. */
int live_show(bide_loop *loop, const live_options *options);

#endif
