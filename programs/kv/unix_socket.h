/*
 * A listening Unix socket of the server's own. A path that exists is never removed, unless it is a socket of this user's
 * to which nobody listens: a killed server has left it.
 */
#ifndef KV_UNIX_SOCKET_H
#define KV_UNIX_SOCKET_H

#include <sys/types.h>

struct unix_socket {
    const char *path;
    dev_t device; /* of the file, to recognize it */
    ino_t file;
};

/*
 * Creates the socket with that mode, and listens. `path` stays. Returns a nonblocking descriptor, or a negative errno:
 * -EEXIST (there is something else), -EADDRINUSE (somebody listens there), -ENAMETOOLONG.
 */
int unix_socket_open(struct unix_socket *unix_socket, const char *path, mode_t mode, int backlog);

/* Removes the path, if it is still that socket. */
void unix_socket_remove(const struct unix_socket *unix_socket);

#endif
