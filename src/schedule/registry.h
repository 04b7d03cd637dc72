/*
 * The registry of the process's loops and pools, for the monitor: each is in it from its creation to
 * its destruction. Floor: schedule.
 *
 * It is a list under a lock. While a reader holds the lock, nothing in the list is destroyed. The state
 * of a loop still changes, so it is read by the kernel (inspect/safe_read.h). The child of a fork starts
 * with an empty list.
 */
#ifndef BIDE_SCHEDULE_LIVE_H
#define BIDE_SCHEDULE_LIVE_H

#include "bide/compiler.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum bide_registry_kind_ { BIDE_LIVE_LOOP_, BIDE_LIVE_POOL_ } bide_registry_kind_;

typedef struct bide_registry_ bide_registry_;
struct bide_registry_ {
    bide_registry_ *next;
    bide_registry_ **place; /* the link that leads here */
    bide_registry_kind_ kind;
    uint32_t number; /* from 1; unique in this process */
};

/* Any thread. Blocks for a few instructions of another thread, or for a reader. */
void bide_registry_add_(bide_registry_ *live, bide_registry_kind_ kind);
void bide_registry_remove_(bide_registry_ *live);

/* Locks the list and returns the first, or NULL. */
const bide_registry_ *bide_registry_hold_(void);
void bide_registry_release_(void);

#endif
