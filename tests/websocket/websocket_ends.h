/* Both ends of a WebSocket in a test: over memory, a socket pair and TCP, in each world. */
#ifndef BIDE_TESTS_IO_WEBSOCKET_ENDS_H
#define BIDE_TESTS_IO_WEBSOCKET_ENDS_H

#include "../io/runner.h"
#include "bide/http.h"

enum { MEMORY = 200, LARGE = 140000 };

typedef struct fixture fixture;

/* One end. */
typedef struct end_point {
    bide_websocket websocket;
    bide_stream stream;
    char in[1024], out[BIDE_WEBSOCKET_BUFFER_MIN + 100];
    char *memory; /* for a message */
} end_point;

struct fixture {
    world *world;
    uint64_t random;
    bide_descriptor sockets[2], listener;
    bide_memory_pipe pipes[2];
    char memory[2][MEMORY];
    bide_memory_end ends[2];
    end_point points[2]; /* a server, and a client */
};

static inline fixture *open_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world_of(state);
    for (int i = 0; i < 2; i++) {
        bide_descriptor_init_closed(&f->sockets[i]);
        f->points[i].memory = malloc(LARGE);
        assert_non_null(f->points[i].memory);
    }
    return f;
}

static inline void open_memory(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        bide_memory_pipe_init(&f->pipes[i], f->memory[i], MEMORY);
        f->ends[i] = (bide_memory_end){&f->pipes[i], &f->pipes[1 - i]};
    }
    for (int i = 0; i < 2; i++)
        f->points[i].stream = bide_memory_stream(&f->ends[i]);
}

static inline void of_sockets(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bide_set_socket_option(&f->sockets[i], BIDE_OPTION_SEND_BUFFER, 4096), 0);
        f->points[i].stream = bide_socket_stream(&f->sockets[i]);
    }
}

static inline void open_pair(fixture *f)
{
    bide_io_operation operation;
    assert_int_equal(
        world_wait(f->world, bide_socket_pair(&operation, &f->sockets[0], &f->sockets[1])), 0);
    of_sockets(f);
}

static inline void open_tcp(fixture *f)
{
    bide_io_operation operation;
    bide_address address;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_listen(&operation, &f->listener, &address, 4)), 0);
    assert_int_equal(bide_local_address(&f->listener, &address), 0);
    assert_int_equal(world_wait(f->world, bide_connect(&operation, &f->sockets[1], &address)), 0);
    assert_int_equal(
        world_wait(f->world, bide_accept(&operation, &f->listener, &f->sockets[0], NULL)), 0);
    bide_close(&f->listener);
    of_sockets(f);
}

static void (*const kinds[])(fixture *) = {open_memory, open_pair, open_tcp};
enum { KINDS = sizeof kinds / sizeof *kinds };

static inline void open_end(end_point *point, bide_websocket_role role,
                            const bide_websocket_options *options)
{
    bide_websocket_options own = {0};
    if (options != NULL)
        own = *options;
    own.role = role;
    own.read_buffer = point->in;
    own.read_buffer_size = sizeof point->in;
    own.write_buffer = point->out;
    own.write_buffer_size = sizeof point->out;
    assert_int_equal(bide_websocket_init(&point->websocket, point->stream, &own), 0);
}

static inline void close_streams(fixture *f)
{
    for (int i = 0; i < 2; i++)
        bide_stream_close(f->points[i].stream);
}

static inline void close_inside(void *fixture)
{
    close_streams(fixture);
}

static inline void drop_fixture(fixture *f)
{
    call_inside(f->world, close_inside, f);
    for (int i = 0; i < 2; i++)
        free(f->points[i].memory);
    free(f);
}

/* ---- Coroutines ---- */

struct closer {
    bide_task task;
    end_point *point;
    const char *reason;
    int code;
    bide_websocket_close_operation close;
    bide_spawned spawned;
};

bide_coroutine(closer_body)
{
    bide_begin(closer_body, struct closer * self);
    bide_try(bide_websocket_close(&self->close, &self->point->websocket, self->code, self->reason));
    bide_end();
}

static inline void spawn(world *world, bide_spawned *spawned, bide_awaiter *awaiter)
{
    bide_spawn(spawned, world->context, awaiter);
}

static inline int join(world *world, bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(world, bide_event_wait(&wait, &spawned->ended)), 0);
    return spawned->root.status;
}
struct listening {
    bide_task task;
    end_point *point;
    bide_websocket_recv_operation receive;
    int status;
    unsigned messages;
    bide_spawned spawned;
};

bide_coroutine(listening_body)
{
    bide_begin(listening_body, struct listening * self);
    for (;;) {
        bide_await_status(self->status,
                          bide_websocket_recv(&self->receive, &self->point->websocket,
                                                 self->point->memory, LARGE));
        if (self->status != 0)
            bide_return(0);
        self->messages++;
    }
    bide_end();
}

static inline void listen_to(world *world, struct listening *listening, end_point *point)
{
    listening->point = point;
    listening->messages = 0;
    spawn(world, &listening->spawned, bide_task_init(&listening->task, &listening_body));
}

static inline void open_both(fixture *f, int kind, const bide_websocket_options *options)
{
    kinds[kind](f);
    open_end(&f->points[0], BIDE_WEBSOCKET_SERVER, options);
    open_end(&f->points[1], BIDE_WEBSOCKET_CLIENT, options);
}

#endif
