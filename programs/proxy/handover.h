/*
 * Restart without a gap: a successor takes over the listening sockets.
 *
 *     predecessor                                successor
 *     listens at the path of --handover <------- connects, before anything else
 *     passes each listening socket ------------> reads its configuration, listens: at those, and at new ones
 *     accepts no more, ends as after SIGTERM <-- is ready
 *
 *  1. Both have the same sockets for a while, and both accept. So a client is always in the queue of a socket that somebody
 *     has, and no connection is lost.
 *  2. If the successor ends before it is ready, its connection does, and nothing has changed. If the predecessor ends before
 *     it has passed all of its sockets, the successor closes the received ones and begins anew: it finds nobody, and listens.
 *  3. The path's own socket is passed on, too. So no third process can come between.
 *  4. A predecessor closes it as soon as the successor is ready. If that is killed, nobody listens at the path, and
 *     the next process takes its place.
 *  5. A process serves successors once it is ready, one at a time, and waits for each until that is ready or ends.
 *     So one of two is always the last. Another successor fails after 10 seconds.
 *  6. A process that is stopped closes the path's socket and removes its file at once, so that the next one may begin. But while
 *     it waits for a successor, it leaves that file, and those of listeners, to this: it has the sockets, and may become ready.
 *     If it does not, files without a listener remain, which the next process replaces.
 *
 * Both processes have the same user, or the other one is root's. All of it belongs to the program's loop, but for handover_begin,
 * which runs before it.
 */
#ifndef PROXY_HANDOVER_H
#define PROXY_HANDOVER_H

#include <bide/scope.h>
#include <bide/sleep.h>
#include <bide/socket.h>
#include <bide/task.h>

struct program;

/* A socket of the predecessor that has not been used yet. */
struct passed {
    struct passed *next;
    int fd;
    char name[]; /* of the listener, in its configuration */
};

struct handover {
    bide_task task;
    const char *path;       /* NULL: there is none, and nothing else here is used */
    bide_listen_path where; /* the path's file */
    int predecessor;        /* the connection to it; -1: there is none */
    struct passed *passed;
    bide_descriptor listener; /* at the path */
    bool is_passing;          /* to a successor, which is not ready */
    bool is_passed;           /* to a successor, which is ready */
    bool is_borrowed;         /* the file is still the predecessor's: this process is not ready */

    /* of the coroutine */
    bide_branch branch;
    struct program *program; /* NULL: it has not begun */
    bide_descriptor successor;
    bide_io_operation io;
    bide_sleep pause;
    char answer;
    int status;
};

void handover_init(struct handover *handover, const char *path);

/* Receives the sockets of a predecessor, if there is one, and listens at the path. Errors are reported. */
int handover_begin(struct handover *handover);

/* The predecessor's socket of a listener, which is the caller's now; -1: there is none. */
int handover_use(struct handover *handover, const char *name);

/* Tells the predecessor that this process is ready, and closes the sockets that it does not need. */
void handover_ready(struct handover *handover);

/* An awaiter that serves successors until one is ready; then it sets `is_passed` and wakes the program. */
bide_awaiter *handover_run(struct handover *handover, struct program *program);

/* The program stops: leaves the path, unless a successor has its socket. */
void handover_stop(struct handover *handover);

/* Closes everything. The path's file is removed if it is not a successor's. */
void handover_end(struct handover *handover);

#endif
