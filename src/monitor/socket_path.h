/* The path that the monitor listens at, and the socket's file. */
#ifndef BIDE_IO_MONITOR_PLACE_H
#define BIDE_IO_MONITOR_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct monitor_socket_path {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    dev_t device; /* of the socket's file */
    ino_t file;
} monitor_socket_path;

/*
 * Opens a listening socket: at `path`; if that is NULL, at the path in the environment; otherwise in
 * the default directory, which is created if necessary. Returns the descriptor, or a negative errno.
 */
int bide_monitor_socket_open_(monitor_socket_path *where, const char *path);

/* Removes the socket's file, unless the path has another by now. */
void bide_monitor_socket_remove_(const monitor_socket_path *where);

#endif
