/*
 * Lists that are already watched, as after earlier waits: for scenarios that do not test a list's
 * bias, which biased_list_check.c does. A waiter then needs no heavy fence and does not take the
 * list, so there are far fewer executions.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include "bide/extend/waiter_list.h"

/* After the list's init, in the setup. It stays watched until two announcements find no waiter. */
#define WATCH(biased)                                                \
    do {                                                             \
        bide_atomic_init(&(biased)->list.word, BIDE_LIST_WATCHED_);  \
        bide_atomic_init(&(biased)->unneeded, (uint32_t)UINT32_MAX); \
    } while (0)

#endif
