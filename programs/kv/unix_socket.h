/*
 * A listening Unix socket of the server's own. A path that exists is never removed, unless it is a socket of this user's
 * to which nobody listens: a killed server has left it.
 */
#ifndef KV_UNIX_SOCKET_H
#define KV_UNIX_SOCKET_H

#include <sys/types.h>

struct unix_socket {
    const char *path;
    int directory; /* for its lock: of two servers, only one finds a leftover; -1: none can be had */
    int file;      /* the socket's file: its number has no other use before this is closed; or -1 */
};

/* Opens the directory of `path`, which stays. It may be that this is not possible later. */
void unix_socket_init(struct unix_socket *unix_socket, const char *path);

/*
 * Creates the socket with that mode, and listens. Returns a nonblocking descriptor, or a negative errno:
 * -EEXIST (there is something else), -EADDRINUSE (somebody listens there), -ENAMETOOLONG.
 */
int unix_socket_open(struct unix_socket *unix_socket, mode_t mode, int backlog);

/*
 * Removes the path, if it is still that socket, and closes the descriptors. (It stays, as a leftover, if another server
 * has the lock at this moment.)
 */
void unix_socket_remove(struct unix_socket *unix_socket);

#endif
