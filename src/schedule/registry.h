/*
 * The registry of the process's loops and pools, for the monitor: each is in it from its creation to
 * its destruction. Floor: schedule.
 *
 * It is a list under a lock. While a reader holds the lock, nothing in the list is destroyed. The state
 * of a loop still changes, so it is read by the kernel (inspect/peek.h). The child of a fork starts
 * with an empty list.
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
    bide_live_ **place; /* the link that leads here */
    bide_live_kind_ kind;
    uint32_t number; /* from 1; unique in this process */
};

/* Any thread. Blocks for a few instructions of another thread, or for a reader. */
void bide_live_add_(bide_live_ *live, bide_live_kind_ kind);
void bide_live_remove_(bide_live_ *live);

/* Locks the list and returns the first, or NULL. */
const bide_live_ *bide_live_hold_(void);
void bide_live_let_go_(void);

#endif
