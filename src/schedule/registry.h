/*
 * The loops and pools of the process, for the monitor: each from its creation to its destruction.
 * Floor: schedule.
 *
 * A list under a lock. While a reader holds the lock nothing in it is destroyed; what is in a loop
 * changes all the same, and is read by the kernel (inspect/peek.h). The child of a fork has none of
 * its parent's.
 */
#ifndef BIDE_SCHEDULE_LIVE_H
#define BIDE_SCHEDULE_LIVE_H

#include "bide/compiler.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum bide_live_kind_ { BIDE_LIVE_LOOP_, BIDE_LIVE_POOL_ } bide_live_kind_;

typedef struct bide_live_ bide_live_;
struct bide_live_ {
    bide_live_ *next;
    bide_live_ **place; /* what leads here */
    bide_live_kind_ kind;
    uint32_t number; /* from 1; never another's in this process */
};

/* Any thread; blocks for some instructions of another, or of a reader. */
void bide_live_add_(bide_live_ *live, bide_live_kind_ kind);
void bide_live_remove_(bide_live_ *live);

/* The first, or NULL; nothing comes or goes until it is let go. */
const bide_live_ *bide_live_hold_(void);
void bide_live_let_go_(void);

/* Around a fork (system/fork.c). */
void bide_live_before_fork_(void);
void bide_live_after_fork_(void);
void bide_live_in_child_(void);

#endif
