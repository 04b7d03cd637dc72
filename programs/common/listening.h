/*
 * Listening at an address that a server which was just killed still has. The kernel takes a killed
 * process's io_uring apart in the background, and the listeners that were in it keep their address
 * until then: some milliseconds, or more on a busy machine. So a server that finds its address in
 * use tries again, LISTEN_TRIES times with a pause of LISTEN_PAUSE nanoseconds between them, before it
 * believes that another server is there.
 */
#ifndef COMMON_LISTENING_H
#define COMMON_LISTENING_H

enum { LISTEN_TRIES = 200, LISTEN_PAUSE = 10000000 };

#endif
