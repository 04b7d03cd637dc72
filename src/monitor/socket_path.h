/* Where a monitor listens: the path, and the socket's file. */
#ifndef BIDE_IO_MONITOR_PLACE_H
#define BIDE_IO_MONITOR_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct monitor_place {
    char path[sizeof ((struct sockaddr_un *)0)->sun_path];
    dev_t device; /* of the file that was made */
    ino_t file;
} monitor_place;

/*
 * Opens a socket that listens: at `path`, or, if that is NULL, where the environment says, or below
 * the directory for it, which is made if it is not there. The descriptor, or a negative errno.
 */
int bide_monitor_socket_open_(monitor_place *place, const char *path);

/* Removes the file, if it is still the one that was made. */
void bide_monitor_socket_remove_(const monitor_place *place);

#endif
