/*
 * Echo with bare io_uring: one thread and its ring, a multishot accept, and for each connection
 * alternating receives and sends. (A multishot receive into provided buffers, and a send linked
 * with the next receive, were equal within the noise.) The operations started by the completions of
 * one round are submitted by the call that waits for the next round.
 */
#define _GNU_SOURCE
#include "echo_listen.h"

#include <errno.h>
#include <liburing.h>
#include <unistd.h>

/* (a round starts one operation per completion at most; more than ENTRIES take two calls) */
enum { ENTRIES = 2048, COMPLETIONS = 8192, BUFFER = 32768 };

typedef struct connection {
    int descriptor;
    int sending;
    char buffer[BUFFER];
} connection;

static struct io_uring ring;

static struct io_uring_sqe *entry(void)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (sqe == NULL) {
        io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    return sqe;
}

static void begin_accept(int listener)
{
    struct io_uring_sqe *sqe = entry();
    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
    io_uring_sqe_set_data(sqe, NULL);
}

static void begin_receive(connection *c)
{
    struct io_uring_sqe *sqe = entry();
    io_uring_prep_recv(sqe, c->descriptor, c->buffer, BUFFER, 0);
    io_uring_sqe_set_data(sqe, c);
    c->sending = 0;
}

/* MSG_WAITALL: everything, or an error. */
static void begin_send(connection *c, size_t size)
{
    struct io_uring_sqe *sqe = entry();
    io_uring_prep_send(sqe, c->descriptor, c->buffer, size, MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_data(sqe, c);
    c->sending = 1;
}

static void accepted(int descriptor)
{
    connection *c = malloc(sizeof *c);
    if (descriptor < 0 || c == NULL)
        echo_fail("accept");
    c->descriptor = descriptor;
    begin_receive(c);
}

static void ended(connection *c, int result)
{
    if (result <= 0) {
        close(c->descriptor);
        free(c);
    } else if (c->sending) {
        begin_receive(c);
    } else {
        begin_send(c, (size_t)result);
    }
}

int main(int argc, char **argv)
{
    int listener = echo_listen(echo_port(argc, argv), 0);
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    int made = io_uring_queue_init_params(ENTRIES, &ring, &params);
    if (made < 0) {
        errno = -made;
        echo_fail("io_uring");
    }
    io_uring_register_ring_fd(&ring);
    begin_accept(listener);
    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            connection *c = io_uring_cqe_get_data(cqe);
            count++;
            if (c != NULL) {
                ended(c, cqe->res);
                continue;
            }
            accepted(cqe->res);
            if (!(cqe->flags & IORING_CQE_F_MORE))
                begin_accept(listener);
        }
        io_uring_cq_advance(&ring, count);
    }
}
