/*
 * Conversations while system calls fail at random, with any of their errors; failing_test.sh runs it.
 * Each failure is reported or recovered from. After each round no operation, descriptor or memory is left.
 */
#define _GNU_SOURCE
#include <bide/bide.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 400, CLIENTS = 8, TALKS = 6, PIECE = 1000, SLOTS = 16, NUMBERS = 256 };

/*
 * (the peer may have failed; or a call reports that it would block although the data has arrived)
 */
#define LIMIT UINT64_C(100000000)

static struct {
    unsigned failed_rounds, talks, failed_clients, wrong, left;
} counts;

/* ---- The server ---- */

struct session {
    bide_connection connection;
    bide_io_operation operation;
    char buffer[PIECE];
};

bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    for (;;) {
        bide_try(bide_recv(&self->operation, &self->connection.socket, self->buffer, PIECE));
        if (self->operation.count == 0)
            break;
        bide_try(bide_send(&self->operation, &self->connection.socket, self->buffer,
                           self->operation.count));
    }
    bide_end();
}

/* ---- A client ---- */

struct client {
    bide_task task;
    const bide_address *address;
    bide_descriptor socket, file;
    bide_io_operation operation;
    bide_file_operation file_operation;
    bide_with_deadline_operation limited;
    size_t at;
    int talk;
    char out[PIECE], in[PIECE];
    bide_spawned spawned;
};

bide_coroutine(client_body)
{
    bide_begin(client_body, struct client * self);
    bide_descriptor_init_closed(&self->socket);
    bide_descriptor_init_closed(&self->file);
    bide_try(bide_connect(&self->operation, &self->socket, self->address));
    for (self->talk = 0; self->talk < TALKS; self->talk++) {
        memset(self->out, 'a' + self->talk, PIECE);
        bide_try(bide_send(&self->operation, &self->socket, self->out, PIECE));
        for (self->at = 0; self->at < PIECE; self->at += self->operation.count) {
            bide_try(
                bide_recv(&self->operation, &self->socket, self->in + self->at, PIECE - self->at));
            if (self->operation.count == 0)
                bide_return(-ENODATA);
        }
        counts.wrong += memcmp(self->in, self->out, PIECE) != 0;
        counts.talks++;
    }
    bide_try(bide_open(&self->file_operation, &self->file, "/dev/null", O_WRONLY, 0));
    bide_try(bide_write(&self->file_operation, &self->file, self->out, PIECE));
    bide_finally();
    bide_close(&self->socket);
    bide_close(&self->file);
    bide_end();
}

/* ---- A round ---- */

static void wait_for(bide_loop *loop, bide_spawned *spawned)
{
    bide_event_waiter wait;
    bide_loop_wait(loop, bide_event_wait(&wait, &spawned->ended));
}

static int talk(bide_loop *loop)
{
    static struct session slots[SLOTS];
    static struct client clients[CLIENTS];
    static bide_server server;
    const bide_server_options options = {
        .body = &session_body, .size = sizeof *slots, .max_connections = SLOTS, .slots = slots};
    bide_address address;
    bide_io_operation listen;
    bide_spawned running;
    bide_address_ip(&address, "127.0.0.1", 0);
    bide_server_init(&server, &options);
    int status = bide_loop_wait(loop, bide_listen(&listen, &server.listener, &address, SLOTS));
    if (status == 0)
        status = bide_local_address(&server.listener, &address);
    if (status < 0) {
        bide_close(&server.listener);
        return status;
    }
    bide_spawn(&running, bide_loop_context(loop), bide_server_run(&server));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].address = &address;
        bide_spawn(&clients[i].spawned, bide_loop_context(loop),
                   bide_with_deadline(&clients[i].limited, bide_platform.now() + LIMIT,
                                      bide_task_init(&clients[i].task, &client_body)));
    }
    for (int i = 0; i < CLIENTS; i++) {
        wait_for(loop, &clients[i].spawned);
        counts.failed_clients += clients[i].spawned.root.status < 0;
    }
    bide_server_shut_down(&server, 0);
    wait_for(loop, &running);
    counts.left += server.stats.live != 0;
    return running.root.status;
}

/* (without library calls, which would fail too) */
static unsigned count_descriptors(void)
{
    unsigned count = 0;
    for (int i = 0; i < NUMBERS; i++)
        count += syscall(SYS_fcntl, i, F_GETFD, 0) >= 0;
    return count;
}

static void run_round(void)
{
    bide_loop *loop;
    bide_loop_stats after;
    if (bide_loop_create(&loop, NULL) < 0) {
        counts.failed_rounds++;
        return;
    }
    counts.failed_rounds += talk(loop) < 0;
    bide_loop_get_stats(loop, &after);
    counts.left += after.in_flight != 0;
    bide_loop_destroy(loop);
}

int main(void)
{
    enum { WARM = 50, SPARE = 2, SLACK = 65536 };
    unsigned descriptors = 0;
    size_t memory = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        run_round();
        if (i == WARM) { /* (whatever one loop keeps for the next one has been allocated by now) */
            descriptors = count_descriptors();
            memory = mallinfo2().uordblks;
        }
    }
    printf("%u rounds (%u failed), %u talks, %u clients failed\n", (unsigned)ROUNDS,
           counts.failed_rounds, counts.talks, counts.failed_clients);
    if (counts.wrong != 0 || counts.left != 0) {
        printf("%u answers were wrong, %u times something was left\n", counts.wrong, counts.left);
        return 1;
    }
    if (count_descriptors() > descriptors + SPARE) {
        printf("%u descriptors, and %u before\n", count_descriptors(), descriptors);
        return 1;
    }
    if (mallinfo2().uordblks > memory + SLACK) {
        printf("%zu bytes, and %zu before\n", mallinfo2().uordblks, memory);
        return 1;
    }
    return counts.talks == 0; /* some rounds must succeed */
}
