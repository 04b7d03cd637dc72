/*
 * Lists that are watched already, as if somebody had waited on them before: for scenarios that are not about a list's
 * bias, which has its own (biased_list_check.c). Who then waits needs no heavy fence and does not take the list, so
 * there are far fewer executions.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include "bide/extend/waiter_list.h"

/* After the list's init, in the setup. It stays watched when it was watched for nothing twice. */
#define WATCH(biased)                                                \
    do {                                                             \
        bide_atomic_init(&(biased)->list.word, BIDE_LIST_WATCHED_);  \
        bide_atomic_init(&(biased)->unneeded, (uint32_t)UINT32_MAX); \
    } while (0)

#endif
