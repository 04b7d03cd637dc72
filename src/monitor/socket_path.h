/* The path that the monitor listens at. */
#ifndef BIDE_IO_MONITOR_PLACE_H
#define BIDE_IO_MONITOR_PLACE_H

#include "bide/socket.h"

/*
 * Opens a listening socket: at `path`; if that is NULL, at the path in the environment; otherwise in
 * the default directory, which is created if necessary. Returns the descriptor, or a negative errno. Only after success,
 * bide_listen_path_remove is to be called.
 */
int bide_monitor_socket_open_(bide_listen_path *where, const char *path);

#endif
