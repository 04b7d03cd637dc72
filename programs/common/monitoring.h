/*
 * --monitor: bide-top shows what the coroutines of a program do (bide/monitor.h).
 *
 *     confine_allow_monitor(&confine, socket)   confine.h: before the files are limited
 *     ... the files are limited, the user is changed ...
 *     monitoring_start(program, socket)         starts a thread, which the limits bind too
 *     ... the system calls are limited, with monitoring_calls(socket) ...
 *     monitoring_stop(socket)                   removes the socket
 *
 * `socket` is the option's value: a path, or "auto" for the usual place, or NULL without the option; then
 * nothing happens.
 */
#ifndef COMMON_MONITORING_H
#define COMMON_MONITORING_H

#include "confine.h"

#include <bide/monitor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An error is reported on standard error, and exits with status 1. */
static inline void monitoring_start(const char *program, const char *socket)
{
    if (socket == NULL)
        return;
    bide_monitor_options options = {.path = strcmp(socket, "auto") != 0 ? socket : NULL};
    int status = bide_monitor_start(&options);
    if (status < 0) {
        fprintf(stderr, "%s: --monitor %s: %s\n", program, socket, strerror(-status));
        exit(1);
    }
}

/* System calls that the monitor's end needs. */
static inline unsigned monitoring_calls(const char *socket)
{
    return socket != NULL ? CONFINE_REMOVES : 0;
}

static inline void monitoring_stop(const char *socket)
{
    if (socket != NULL)
        (void)bide_monitor_stop();
}

#endif
