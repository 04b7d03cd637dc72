/*
 * bide_http_write_file is destroyed or cancelled while it waits, or before it begins: the response is not complete, its
 * connection ends, and no deadline is left. Files are copied to a stream in memory, and sent to a socket.
 */
#define _GNU_SOURCE
#include "../io/world.h"
#include "bide/http.h"

#include <errno.h>
#include <stdlib.h>

enum { BODY = 4 << 20, PIPE = 1000 }; /* no socket holds such a body */

enum way { COPIES, SENDS, WAYS };
enum how { DESTROYS, DESTROYS_SOON, CANCELS, BEGINS_NOT, HOWS };

static struct {
    world *world;
    enum how how;
    bide_http_server server;
    bide_http_connection connection;
    char *memory, *body;
    bide_descriptor file, sockets[2];
    bide_memory_pipe pipes[2];
    char rooms[2][PIPE];
    bide_memory_end ends[2];
    bide_stream streams[2]; /* the server's, the client's */
    struct serving {
        bide_task task;
        bide_spawned spawned;
        int status;
        enum way way;
    } serving;
    bide_event goes;
    unsigned turns; /* of the handler, until it destroys the write */
    unsigned begun, ended;
    int status; /* of the write */
} f;

struct handler {
    bide_http_exchange exchange;
    bide_scope scope;
    bide_branch first, branch;
    bide_event never;
    bide_event_waiter wait, wait_never;
    bide_sleep sleep;
    unsigned i;
};

static bool has_deadline(void)
{
    return f.connection.watch.waits[0] != BIDE_FOREVER || f.connection.watch.waits[1] != BIDE_FOREVER;
}

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
    f.begun++;
    bide_scope_init_with(&self->scope, bide_this_frame(), &(bide_scope_options){.max_running = f.how == BEGINS_NOT});
    assert_int_equal(bide_http_start_response(&self->exchange, BODY), 0);
    bide_event_init(&self->never, false);
    if (f.how == BEGINS_NOT) /* the write waits for its turn */
        bide_scope_spawn(&self->scope, &self->first, bide_event_wait(&self->wait_never, &self->never));
    bide_scope_spawn(&self->scope, &self->branch, bide_http_write_file(&self->exchange, &f.file, 0, BODY));
    for (self->i = 0; f.how == DESTROYS_SOON && self->i < f.turns; self->i++)
        bide_await(bide_sleep_for(&self->sleep, 0));
    if (f.how != DESTROYS_SOON)
        bide_try(bide_event_wait(&self->wait, &f.goes));
    if (f.how == CANCELS) {
        bide_scope_stop(&self->scope);
        bide_await_status(f.status, bide_scope_join(&self->scope));
    }
    bide_scope_destroy(&self->scope);
    assert_false(has_deadline());
    bide_return(0); /* as if all were sent */
    bide_finally();
    bide_scope_destroy(&self->scope);
    f.ended++;
    bide_end();
}

bide_coroutine(serving_body)
{
    bide_begin(serving_body, struct serving * self);
    bide_await_status(self->status, bide_http_serve(&f.connection, &f.server, f.streams[0], f.memory));
    if (self->way == SENDS) {
        bide_close(&f.sockets[0]);
    } else {
        bide_memory_pipe_destroy(&f.pipes[1]);
        bide_memory_pipe_reject(&f.pipes[0]);
    }
    bide_end();
}

static void connect_by(enum way way)
{
    f.serving.way = way;
    if (way == SENDS) {
        world_socket_pair(f.world, &f.sockets[0], &f.sockets[1]);
        for (int i = 0; i < 2; i++)
            f.streams[i] = bide_socket_stream(&f.sockets[i]);
        return;
    }
    for (int i = 0; i < 2; i++)
        bide_memory_pipe_init(&f.pipes[i], f.rooms[i], PIPE);
    f.ends[0] = (bide_memory_end){&f.pipes[0], &f.pipes[1]};
    f.ends[1] = (bide_memory_end){&f.pipes[1], &f.pipes[0]};
    for (int i = 0; i < 2; i++)
        f.streams[i] = bide_memory_stream(&f.ends[i]);
}

static void begin(void **state)
{
    char name[] = "/tmp/bide_http_file_XXXXXX";
    bide_file_operation write;
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    f.body = calloc(BODY, 1);
    assert_non_null(f.body);
    assert_int_equal(bide_http_server_init(&f.server, &(bide_http_options){.handler = {&handler_body, sizeof(struct handler)}}),
                     0);
    f.memory = malloc(bide_http_memory_size(&f.server));
    assert_non_null(f.memory);
    int fd = f.world->memory == NULL ? mkstemp(name) : -1;
    if (fd >= 0)
        close(fd);
    assert_int_equal(world_wait(f.world, bide_open(&write, &f.file, name, O_RDWR | O_CREAT, 0600)), 0);
    assert_int_equal(world_wait(f.world, bide_write_at(&write, &f.file, f.body, BODY, 0)), 0);
    assert_int_equal(world_wait(f.world, bide_unlink(&write, name, 0)), 0);
}

static void end(void)
{
    bide_close(&f.file);
    free(f.memory);
    free(f.body);
}

/* Returns the number of bytes until the end. `*status` is that of the last read. */
static size_t receive(size_t max, int *status)
{
    size_t size = 0, count = 1;
    *status = 0;
    while (*status == 0 && count != 0 && size < max) {
        bide_stream_operation read;
        *status = world_wait(f.world, bide_stream_read(&read, f.streams[1], f.body, BODY));
        count = bide_stream_count(&read, f.streams[1]);
        size += count;
    }
    return size;
}

static void talk(enum way way, enum how how)
{
    static const char requests[] = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    bide_stream_operation write;
    bide_event_waiter wait;
    int status;
    size_t size = 0;
    f.how = how;
    f.begun = f.ended = 0;
    f.status = 1;
    bide_event_init(&f.goes, false);
    connect_by(way);
    bide_spawn(&f.serving.spawned, f.world->context, bide_task_init(&f.serving.task, &serving_body));
    assert_int_equal(world_wait(f.world, bide_stream_write(&write, f.streams[1], requests, sizeof requests - 1)), 0);
    if (how == DESTROYS || how == CANCELS) {
        size += receive(1, &status); /* the file is being sent */
        assert_int_equal(status, 0);
    }
    bide_event_set(&f.goes);
    size += receive(SIZE_MAX, &status);
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.serving.spawned.ended)), 0);
    assert_int_equal(f.serving.status, -ECANCELED);
    assert_true(size < BODY);
    assert_int_equal(f.status, how == CANCELS ? -ECANCELED : 1);
    assert_int_equal(f.begun, 1);
    assert_int_equal(f.ended, 1);
    if (way == SENDS)
        bide_close(&f.sockets[1]);
    else
        bide_memory_pipe_destroy(&f.pipes[0]);
}

static void a_file_that_is_not_sent_is_no_body(void **state)
{
    begin(state);
    for (int i = 0; i < WAYS * HOWS; i++)
        for (f.turns = 0; f.turns < (i % HOWS == DESTROYS_SOON ? 10 : 1); f.turns++) /* it reads, or sends */
            talk((enum way)(i / HOWS), (enum how)(i % HOWS));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_that_is_not_sent_is_no_body, world_begin, world_end),
    };
    return cmocka_run_group_tests_name("http_file_cut", tests, NULL, NULL);
}
