/*
 * Operations of servers, watches, mapped files, pools and threads in async functions, beside those of values_test.c: each
 * is awaited before a large await that takes over the memory of awaits, without its struct if it may go without, and
 * with a struct of its own in a function whose result takes over the memory of its variables. Translated by bidec.
 */
#define _GNU_SOURCE
#include "operations.h"

#include "bide/bide.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char directory[] = "/tmp/bide_io_operations_XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* ---- Files, and what happens to them ---- */

async struct big maps(void)
{
    bide_descriptor file;
    bide_file_operation map;
    char *data;
    assert_int_equal(await bide_open(&file, path_of("m"), O_RDWR | O_CREAT, 0600), 0);
    assert_int_equal(await bide_write(&file, "1234", 4), 4);
    OWN(bide_map_file, &map, &file, 0, 4, PROT_READ, MAP_PRIVATE);
    data = map.operation.arguments.map.at;
    assert_memory_equal(data, "1234", 4);
    assert_int_equal(munmap(data, 4), 0);
    bide_close(&file);
    assert_int_equal(await bide_unlink(path_of("m"), 0), 0);
    return filled(0);
}

async int make_and_remove(void)
{
    bide_descriptor file;
    await bide_sleep_for(1000);
    assert_int_equal(await bide_open(&file, path_of("w"), O_RDWR | O_CREAT, 0600), 0);
    bide_close(&file);
    return await bide_unlink(path_of("w"), 0);
}

async struct big file_watches(void)
{
    char buffer[4096];
    bide_file_watcher watcher;
    bide_file_watch watch;
    async_frame(make_and_remove) changes;
    bide_scope scope;
    assert_int_equal(bide_file_watcher_init(&watcher, buffer, sizeof buffer), 0);
    assert_int_equal(
        bide_file_watch_add(&watcher, &watch, directory, BIDE_FILE_CREATED | BIDE_FILE_REMOVED), 0);
    bide_scope_init(&scope, bide_this_frame());
    bide_branch branch;
    bide_scope_spawn(&scope, &branch, async_make_and_remove(&changes));
    NAMED(bide_file_event_operation, bide_file_watch_next, own.changes, BIDE_FILE_CREATED,
          &watcher);
    NAMED(bide_file_event_operation, bide_file_watch_next, own.changes, BIDE_FILE_REMOVED,
          &watcher);
    OWN(bide_scope_join, &scope);
    bide_scope_destroy(&scope);
    bide_file_watcher_destroy(&watcher);
    return filled(0);
}

async struct big tree_watches(void)
{
    bide_tree_watcher *tree;
    bide_descriptor file;
    assert_int_equal(await bide_make_directory(path_of("t"), 0700), 0);
    assert_int_equal(await bide_open(&file, path_of("t/a"), O_RDWR | O_CREAT, 0600), 0);
    bide_close(&file);
    assert_int_equal(bide_tree_watcher_create(&tree, path_of("t"), NULL), 0);
    NAMED(bide_tree_event_operation, bide_tree_watch_next,
          own.change == BIDE_TREE_FOUND && strcmp(own.path, "a") == 0, 1, tree);
    assert_int_equal(await bide_unlink(path_of("t/a"), 0), 0);
    NAMED(bide_tree_event_operation, bide_tree_watch_next,
          own.change == BIDE_TREE_REMOVED && strcmp(own.path, "a") == 0, 1, tree);
    bide_tree_watcher_destroy(tree);
    assert_int_equal(await bide_unlink(path_of("t"), AT_REMOVEDIR), 0);
    return filled(0);
}

/* ---- Threads ---- */

static void count_call(void *argument)
{
    *(int *)argument += 1;
}

static int count_interruptible(void *argument)
{
    *(int *)argument += 1;
    return 0;
}

async struct big calls(void)
{
    bide_blocking *blocking;
    int count = 0;
    assert_int_equal(bide_blocking_create(&blocking, 1), 0);
    BOTH(bide_blocking_call, bide_blocking_run, blocking, count_call, &count);
    BOTH(bide_blocking_call, bide_blocking_run_interruptible, blocking, count_interruptible,
         &count);
    assert_int_equal(count, 4);
    bide_blocking_destroy(blocking);
    return filled(0);
}

/* ---- Sockets ---- */

async struct big buffers(void)
{
    static char memory[2 * 64];
    bide_descriptor one, other;
    bide_buffer_pool pool;
    bide_buffer_pool_init(&pool, memory, 64, 2);
    assert_int_equal(await bide_socket_pair(&one, &other), 0);
    for (int i = 0; i < 4; i++) {
        bide_io_operation receive;
        assert_int_equal(await bide_send(&one, "hello", 5), 5);
        OWN(bide_recv_provided, &receive, &other, &pool);
        assert_int_equal(receive.count, 5);
        assert_memory_equal(bide_provided_buffer(&receive), "hello", 5);
        bide_buffer_release(&pool, bide_provided_buffer(&receive));
    }
    bide_receiver receiver;
    bide_receiver_init(&receiver, &other, &pool, 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(await bide_send(&one, "hello", 5), 5);
        OWN(bide_receiver_next, &receiver);
        assert_int_equal(bide_receiver_size(&receiver), 5);
        assert_memory_equal(bide_receiver_data(&receiver), "hello", 5);
        bide_buffer_release(&pool, bide_receiver_data(&receiver));
    }
    bide_receiver_destroy(&receiver);
    bide_close(&one);
    bide_close(&other);
    bide_buffer_pool_destroy(&pool);
    return filled(0);
}

async struct big between(void)
{
    bide_descriptor one, other, third, fourth;
    bide_between copy;
    char bytes[8];
    assert_int_equal(await bide_socket_pair(&one, &other), 0);
    assert_int_equal(await bide_socket_pair(&third, &fourth), 0);
    assert_int_equal(bide_copy_between_init(&copy, &other, &third), 0);
    assert_int_equal(await bide_send(&one, "hello", 5), 5);
    bide_close(&one);
    OWN(bide_copy_between, &copy);
    assert_int_equal(copy.count, 5);
    bide_copy_between_destroy(&copy);
    assert_int_equal(await bide_recv(&fourth, bytes, sizeof bytes), 5);
    bide_close(&other);
    bide_close(&third);
    bide_close(&fourth);
    return filled(0);
}

/* ---- Servers, and pools of connections to them ---- */

struct answer {
    bide_connection connection;
    bide_io_operation operation;
    char byte;
};

/* Sends each byte back. */
bide_coroutine(answer_body)
{
    bide_begin(answer_body, struct answer * self);
    for (;;) {
        bide_try(bide_recv(&self->operation, &self->connection.socket, &self->byte, 1));
        if (self->operation.count == 0)
            bide_return(0);
        bide_try(bide_send(&self->operation, &self->connection.socket, &self->byte, 1));
    }
    bide_end();
}

async struct big uses_pool(const bide_address *address)
{
    bide_connection_pool pool;
    bide_pooled_connection connections[2];
    bide_event_waiter joined;
    char byte;
    bide_connection_pool_init(&pool, address, connections, 2, BIDE_FOREVER);
    for (int i = 0; i < 3; i++) {
        bide_connection_acquire_operation taking;
        OWN(bide_connection_pool_acquire, &taking, &pool);
        assert_int_equal(await bide_send(&taking.connection->socket, "a", 1), 1);
        await large();
        assert_int_equal(await bide_recv(&taking.connection->socket, &byte, 1), 1);
        await large();
        bide_connection_pool_release(taking.connection, true);
    }
    bide_connection_pool_close(&pool);
    VALUE(bide_connection_pool_join, 0, &pool);
    OWN(bide_connection_pool_join, &joined, &pool);
    return filled(0);
}

async int use_and_stop(bide_server *server, const bide_address *address)
{
    async_frame(uses_pool) use;
    assert_int_equal(await all(async_uses_pool(&use, address)), 0);
    check_filled(&use.result, 0);
    bide_server_shut_down(server, 0);
    return 0;
}

async int runs_server(bide_server *server)
{
    int status = await bide_server_run(server);
    await large();
    return status;
}

async struct big servers(void)
{
    bide_server server;
    struct answer slots[2];
    bide_address address;
    bide_server_options options = {
        .body = &answer_body, .size = sizeof *slots, .max_connections = 2, .slots = slots};
    assert_int_equal(bide_server_init(&server, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(await bide_listen(&server.listener, &address, 8), 0);
    assert_int_equal(bide_local_address(&server.listener, &address), 0);
    assert_int_equal(await all(runs_server(&server), use_and_stop(&server, &address)), 0);
    bide_close(&server.listener);
    rows++;
    return filled(0);
}

async int stop_pool_server(bide_pool_server *server)
{
    char byte;
    bide_descriptor client;
    assert_int_equal(await bide_connect(&client, &server->address), 0);
    assert_int_equal(await bide_send(&client, "a", 1), 1);
    assert_int_equal(await bide_recv(&client, &byte, 1), 1);
    bide_close(&client);
    bide_pool_server_shut_down(server, 0);
    return 0;
}

async int runs_pool_server(bide_pool_server *server)
{
    int status = await bide_pool_server_run(server);
    await large();
    return status;
}

static bide_thread_pool *threads;

async struct big pool_servers(void)
{
    bide_pool_server server;
    bide_pool_server_worker workers[2];
    struct answer slots[4];
    bide_address address;
    bide_server_options options = {
        .body = &answer_body, .size = sizeof *slots, .max_connections = 2, .slots = slots};
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(bide_pool_server_init(&server, threads, workers, &options), 0);
    OWN(bide_pool_server_listen, &server, &address, 8);
    assert_int_equal(await all(runs_pool_server(&server), stop_pool_server(&server)), 0);
    return filled(0);
}

/* ---- */

static bide_loop *loop;

#define TEST(name)                                                       \
    static void test_##name(void **state)                                \
    {                                                                    \
        static async_frame(name) frame;                                  \
        (void)state;                                                     \
        rows = 0;                                                        \
        memset(&frame, 0xd5, sizeof frame);                              \
        assert_int_equal(bide_loop_wait(loop, async_##name(&frame)), 0); \
        check_filled(&frame.result, 0);                                  \
        assert_true(rows > 0);                                           \
    }
TEST(maps)
TEST(file_watches)
TEST(tree_watches)
TEST(calls)
TEST(buffers)
TEST(between)
TEST(servers)

/* On a pool whose workers have loops. */
static void test_pool_servers(void **state)
{
    static async_frame(pool_servers) frame;
    (void)state;
    rows = 0;
    bide_io_pool_options options = {.threads = {.threads = 2}};
    assert_int_equal(bide_io_pool_create(&threads, &options), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(threads)};
    memset(&frame, 0xd5, sizeof frame);
    assert_int_equal(bide_sync_wait_in(&context, async_pool_servers(&frame)), 0);
    check_filled(&frame.result, 0);
    bide_thread_pool_destroy(threads);
}

/* ---- Names, of a test loop: no server is asked ---- */

async struct big names(void)
{
    bide_names *names;
    bide_address address;
    assert_int_equal(bide_names_create(&names, NULL), 0);
    assert_int_equal(bide_address_ip(&address, "192.0.2.1", 0), 0);
    NAMED(bide_resolve_records_operation, bide_resolve_records, own.records[0].port, 80, names,
          "s.test", BIDE_RECORD_SRV);
    NAMED(bide_resolve_records_operation, bide_resolve_reverse,
          strcmp(own.records[0].text, "a.test"), 0, names, &address);
    bide_names_destroy(names);
    return filled(0);
}

static void test_names(void **state)
{
    static const bide_name_record server = {.text = "a.test", .size = 6, .port = 80};
    static async_frame(names) frame;
    bide_sim_loop test_loop;
    bide_memory_io *io;
    bide_address address;
    (void)state;
    rows = 0;
    bide_sim_loop_init(&test_loop, 1);
    assert_int_equal(bide_memory_io_create(&io, &test_loop, NULL), 0);
    assert_int_equal(bide_address_ip(&address, "192.0.2.1", 0), 0);
    assert_int_equal(bide_memory_io_set_host(io, "a.test", &address, 1), 0);
    assert_int_equal(bide_memory_io_set_records(io, "s.test", BIDE_RECORD_SRV, &server, 1), 0);
    memset(&frame, 0xd5, sizeof frame);
    assert_int_equal(bide_sim_loop_wait(&test_loop, async_names(&frame)), 0);
    check_filled(&frame.result, 0);
    assert_int_equal(rows, 2);
    bide_memory_io_destroy(io);
    bide_sim_loop_destroy(&test_loop);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL || bide_loop_create(&loop, NULL) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    bide_loop_destroy(loop);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),         cmocka_unit_test(test_file_watches),
        cmocka_unit_test(test_tree_watches), cmocka_unit_test(test_calls),
        cmocka_unit_test(test_buffers),      cmocka_unit_test(test_between),
        cmocka_unit_test(test_servers),      cmocka_unit_test(test_pool_servers),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
