/*
 * The terminal, while bide-top uses it: raw, without a cursor, and on its alternate screen. Its state
 * is restored on every exit, crashes included, except for SIGKILL.
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

/* Leaves the screen, stops the process as Ctrl-Z would, and enters the screen when it is continued. */
void screen_suspend(screen *screen);

#endif
