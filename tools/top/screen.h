/*
 * The terminal while it is ours: raw, without a cursor, and on its other screen, so that the one
 * before comes back. It is as it was on every way out, crashes too; not after SIGKILL.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "bide/bide.h"

typedef struct screen {
    bide_descriptor *input;
    bide_terminal terminal;
    bool is_ours;
} screen;

int screen_enter(screen *screen, bide_descriptor *input);
void screen_leave(screen *screen);

/* Leaves it, stops the process as the key for that would, and enters it when it goes on. */
void screen_stop_and_go_on(screen *screen);

#endif
