/*
 * The claims that wait at a multi-producer sequencer, of any width: how many are in line, and which
 * one waits at the gate. Part of multi_producer_sequencer.h; the argument is 4 and 9 of
 * docs/internals/multi_producer_sequencer.md. Floor: sync.
 */
#ifndef BIDE_DETAIL_CLAIM_TURN_H
#define BIDE_DETAIL_CLAIM_TURN_H

#include "bide/mutex.h"
#include "bide/stop.h"

typedef struct bide_claim_turn_ {
    bide_atomic(
        uint32_t) lined; /* how many are in line; also a claim that has just got its slots */
    bide_mutex mutex;    /* first in, first out; its holder waits at the gate */
    bide_atomic(uint32_t) state; /* FREE, AT_GATE, CLOSED: src/sync/multi_producer_sequencer.c */
    bide_context context; /* of the claim at the gate, with `source`; the mutex holder writes it */
    bide_stop_source source;
} bide_claim_turn_;

#endif
