/* Input and output, on the io in memory: nothing comes, and nothing is taken. */
#define _GNU_SOURCE
#include "follows.h"

#include "bide/connection_pool.h"
#include "bide/directory.h"
#include "bide/fd_passing.h"
#include "bide/file.h"
#include "bide/file_copy.h"
#include "bide/names.h"
#include "bide/path.h"
#include "bide/server.h"
#include "bide/socket.h"
#include "bide/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

enum { MUCH = 300000 /* bytes: more than a window */, SOME = 64 };

struct io_objects {
    bide_descriptor one, other; /* connected to each other */
    bide_descriptor input, output;
    bide_descriptor listener, receiver;
    bide_descriptor opened, tmp, another, pool_listener;
    bide_directory directory;
    bide_entry_operation entry;
    bide_connect_any_operation connecting;
    struct stat about;
    struct statx more;
    bide_copy_file_operation copying_file;
    bide_address address;
    bide_file_operation file;
    bide_io_operation operation;
    bide_datagram datagram;
    bide_message message;
    bide_fds_operation fds;
    struct msghdr header;
    struct iovec vector;
    bide_stream_operation streaming;
    bide_stream_within_operation within;
    bide_reader reader;
    bide_reader_operation reading;
    bide_writer writer;
    bide_writer_operation writing;
    bide_copy_operation copying;
    bide_server server;
    bide_connection_pool pool;
    bide_pooled_connection connections[1];
    bide_connection_acquire_operation acquiring, acquiring_too;
    bide_event_waiter wait;
    char buffer[SOME], buffer_too[SOME];
    char much[MUCH];
    int fd;
};

static void must(int status)
{
    if (status != 0)
        abort();
}

static void listen_at(cell *c, bide_descriptor *listener, uint16_t port)
{
    struct io_objects *io = c->object_of_clean;
    must(bide_address_ip(&io->address, "192.0.2.1", port));
    must(bide_sim_loop_wait(&c->loop, bide_listen(&io->operation, listener, &io->address, 1)));
}

#define IO(name) struct io_objects *name = c->object_of_clean

static void prepare_io(cell *c);

/* ---- Sockets, pipes ---- */

#define BEGIN(name, operation)                 \
    static bide_awaiter *begin_##name(cell *c) \
    {                                          \
        IO(io);                                \
        return operation;                      \
    }

static struct msghdr *much_of(struct io_objects *io)
{
    io->vector.iov_len = MUCH;
    return &io->header;
}

BEGIN(bide_recv, bide_recv(&io->operation, &io->one, io->buffer, SOME))
BEGIN(bide_send, bide_send(&io->operation, &io->one, io->much, MUCH))
BEGIN(bide_send_zero_copy, bide_send_zero_copy(&io->operation, &io->one, io->much, MUCH))
BEGIN(bide_recvmsg, bide_recvmsg(&io->operation, &io->one, &io->header, 0))
BEGIN(bide_accept, bide_accept(&io->operation, &io->listener, &io->opened, NULL))
BEGIN(bide_recv_from, bide_recv_from(&io->datagram, &io->receiver, io->buffer, SOME, &io->address))
BEGIN(bide_recv_fds, bide_recv_fds(&io->fds, &io->one, io->buffer, SOME, &io->fd, 1))
BEGIN(bide_read, bide_read(&io->file, &io->input, io->buffer, SOME))
BEGIN(bide_readv, bide_readv(&io->file, &io->input, &io->vector, 1, -1))
BEGIN(bide_write, bide_write(&io->file, &io->output, io->much, MUCH))
BEGIN(bide_writev, bide_writev(&io->file, &io->output, much_of(io)->msg_iov, 1, -1))
BEGIN(bide_poll, bide_poll(&io->operation, &io->input, POLLIN))

static bide_awaiter *begin_bide_recv_batch(cell *c)
{
    IO(io);
    io->message.header = io->header;
    return bide_recv_batch(&io->operation, &io->receiver, &io->message, 1);
}

/* ---- Operations on files, while the disk is slow ---- */

static void prepare_file(cell *c)
{
    const bide_memory_io_options slow = {.disk_delay = BIDE_SECONDS(HOUR_IN_SECONDS)};
    prepare_io(c);
    IO(io);
    must(bide_sim_loop_wait(
        &c->loop, bide_open(&io->file, &io->opened, "/tmp/file", O_RDWR | O_CREAT, 0600)));
    must(bide_sim_loop_wait(&c->loop,
                            bide_open(&io->file, &io->tmp, "/tmp", O_RDONLY | O_DIRECTORY, 0)));
    bide_directory_init(&io->directory, &io->tmp, io->much, sizeof io->much);
    bide_memory_io_change(c->io, &slow);
}

BEGIN(bide_open, bide_open(&io->file, &io->another, "/tmp/other", O_RDWR | O_CREAT, 0600))
BEGIN(bide_read_at, bide_read_at(&io->file, &io->opened, io->buffer, SOME, 0))
BEGIN(bide_write_at, bide_write_at(&io->file, &io->opened, io->buffer, SOME, 0))
BEGIN(bide_sync, bide_sync(&io->file, &io->opened, BIDE_SYNC_DATA))
BEGIN(bide_allocate, bide_allocate(&io->file, &io->opened, 0, 0, SOME))
BEGIN(bide_truncate, bide_truncate(&io->file, &io->opened, SOME))
BEGIN(bide_stat, bide_stat(&io->file, &io->opened, &io->about))
BEGIN(bide_stat_path, bide_stat_path(&io->file, "/tmp/file", &io->about, 0))
BEGIN(bide_rename, bide_rename(&io->file, "/tmp/file", "/tmp/other"))
BEGIN(bide_unlink, bide_unlink(&io->file, "/tmp/file", 0))
BEGIN(bide_make_directory, bide_make_directory(&io->file, "/tmp/new", 0700))
BEGIN(bide_open_at, bide_open_at(&io->file, &io->another, NULL, "/tmp/other", O_RDWR | O_CREAT, 0600))
BEGIN(bide_open_temporary, bide_open_temporary(&io->file, &io->another, NULL, "/tmp", 0, 0600))
BEGIN(bide_statx_at, bide_statx_at(&io->file, NULL, "/tmp/file", 0, STATX_SIZE, &io->more))
BEGIN(bide_chmod_at, bide_chmod_at(&io->file, NULL, "/tmp/file", 0600, 0))
BEGIN(bide_readlink_at, bide_readlink_at(&io->file, NULL, "/tmp/file", io->buffer, SOME))
BEGIN(bide_link_at, bide_link_at(&io->file, NULL, "/tmp/file", NULL, "/tmp/other", 0))
BEGIN(bide_rename_at, bide_rename_at(&io->file, NULL, "/tmp/file", NULL, "/tmp/other", 0))
BEGIN(bide_unlink_at, bide_unlink_at(&io->file, NULL, "/tmp/file", 0))
BEGIN(bide_make_directory_at, bide_make_directory_at(&io->file, NULL, "/tmp/new", 0700))
BEGIN(bide_copy_file, bide_copy_file(&io->copying_file, &io->opened, 0, &io->opened, 100, UINT64_MAX))
BEGIN(bide_next_entry, bide_next_entry(&io->entry, &io->directory))

/* ---- Into a socket that is full ---- */

static void prepare_full(cell *c)
{
    bide_with_deadline_operation limited;
    prepare_io(c);
    IO(io);
    must(bide_sim_loop_wait(&c->loop, bide_writer_write(&io->writing, &io->writer, "some", 4)));
    int status = bide_sim_loop_wait(
        &c->loop,
        bide_with_timeout(&limited, 1, bide_send(&io->operation, &io->one, io->much, MUCH)));
    if (status != -ETIMEDOUT)
        abort();
}

BEGIN(bide_sendmsg, bide_sendmsg(&io->operation, &io->one, &io->header, 0))
BEGIN(bide_send_fds, bide_send_fds(&io->fds, &io->one, "x", 1, &io->fd, 0))
BEGIN(bide_writer_flush, bide_writer_flush(&io->writing, &io->writer))
BEGIN(bide_writer_finish, bide_writer_finish(&io->writing, &io->writer))

/* ---- Connecting, while the network is slow ---- */

static void prepare_slow(cell *c)
{
    const bide_memory_io_options slow = {.delay = BIDE_SECONDS(HOUR_IN_SECONDS)};
    prepare_io(c);
    bide_memory_io_change(c->io, &slow);
}

BEGIN(bide_connect, bide_connect(&io->operation, &io->another, &io->address))
BEGIN(bide_connect_any, bide_connect_any(&io->connecting, &io->another, &io->address, 1, 0))

/* ---- Streams ---- */

BEGIN(bide_stream_read,
      bide_stream_read(&io->streaming, bide_socket_stream(&io->one), io->buffer, SOME))
BEGIN(bide_stream_write,
      bide_stream_write(&io->streaming, bide_socket_stream(&io->one), io->much, MUCH))
BEGIN(bide_stream_read_within,
      bide_stream_read_within(&io->within, bide_socket_stream(&io->one), io->buffer, SOME,
                              &(const bide_stream_bounds){.min = SOME}))
BEGIN(bide_stream_write_within,
      bide_stream_write_within(&io->within, bide_socket_stream(&io->one), io->much, MUCH,
                               &(const bide_stream_bounds){.pause = BIDE_FOREVER}))
BEGIN(bide_reader_read, bide_reader_read(&io->reading, &io->reader, io->much, SOME))
BEGIN(bide_reader_read_exact, bide_reader_read_exact(&io->reading, &io->reader, io->much, SOME))
BEGIN(bide_reader_read_until, bide_reader_read_until(&io->reading, &io->reader, ','))
BEGIN(bide_reader_read_line, bide_reader_read_line(&io->reading, &io->reader))
BEGIN(bide_reader_fill, bide_reader_fill(&io->reading, &io->reader, SOME))
BEGIN(bide_reader_skip, bide_reader_skip(&io->reading, &io->reader, SOME))
BEGIN(bide_writer_write, bide_writer_write(&io->writing, &io->writer, io->much, MUCH))
BEGIN(bide_writer_write_vectors,
      bide_writer_write_vectors(&io->writing, &io->writer, much_of(io)->msg_iov, 1))
BEGIN(bide_copy, bide_copy(&io->copying, &io->reader, &io->writer, MUCH))

/* ---- Servers and pools ---- */

struct served {
    bide_connection connection;
};

bide_coroutine(served_body)
{
    bide_begin(served_body, struct served * self);
    (void)self;
    bide_end();
}

BEGIN(bide_server_run, bide_server_run(&io->server))
BEGIN(bide_connection_pool_acquire, bide_connection_pool_acquire(&io->acquiring_too, &io->pool))
BEGIN(bide_connection_pool_join, bide_connection_pool_join(&io->wait, &io->pool))

/* The server listens; the only connection of the pool is taken. */
static void prepare_net(cell *c, struct io_objects *io)
{
    const bide_server_options options = {.body = &served_body,
                                         .size = sizeof(struct served),
                                         .max_connections = 1,
                                         .slots = cell_new(c, sizeof(struct served))};
    must(bide_server_init(&io->server, &options));
    listen_at(c, &io->server.listener, 8);
    listen_at(c, &io->pool_listener, 9);
    bide_connection_pool_init(&io->pool, &io->address, io->connections, 1, BIDE_SECONDS(1));
    must(bide_sim_loop_wait(&c->loop, bide_connection_pool_acquire(&io->acquiring, &io->pool)));
}

static void clean_net(struct io_objects *io)
{
    bide_close(&io->server.listener);
    bide_connection_pool_close(&io->pool);
    bide_connection_pool_release(io->acquiring.connection, false);
    bide_close(&io->pool_listener);
}

static void clean_io(cell *c)
{
    IO(io);
    clean_net(io);
    bide_close(&io->opened);
    bide_close(&io->tmp);
    bide_close(&io->another);
    bide_close(&io->one);
    bide_close(&io->other);
    bide_close(&io->input);
    bide_close(&io->output);
    bide_close(&io->listener);
    bide_close(&io->receiver);
}

static void prepare_io(cell *c)
{
    NEW(struct io_objects, io);
    c->object_of_clean = io;
    bide_descriptor *const all[] = {&io->one,      &io->other,    &io->input,  &io->output,
                                    &io->listener, &io->receiver, &io->opened, &io->pool_listener,
                                    &io->tmp,      &io->another};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bide_descriptor_init_closed(all[i]);
    must(bide_sim_loop_wait(&c->loop, bide_socket_pair(&io->operation, &io->one, &io->other)));
    must(bide_memory_io_pipe(c->io, &io->input, &io->output));
    listen_at(c, &io->listener, 7);
    must(bide_sim_loop_wait(&c->loop, bide_bind(&io->operation, &io->receiver, &io->address, 0)));
    bide_reader_init(&io->reader, bide_socket_stream(&io->one), io->buffer, SOME);
    bide_writer_init(&io->writer, bide_socket_stream(&io->one), io->buffer_too, SOME);
    io->vector.iov_base = io->much;
    io->vector.iov_len = SOME;
    io->header.msg_iov = &io->vector;
    io->header.msg_iovlen = 1;
    prepare_net(c, io);
    cell_clean(c, clean_io);
}

#define ROW_AFTER(name, preparation)                                      \
    {                                                                     \
        .operation = #name, .begin = begin_##name, .prepare = preparation \
    }
#define ROW_OF_IO(name)   ROW_AFTER(name, prepare_io)
#define ROW_OF_FULL(name) ROW_AFTER(name, prepare_full)
#define ROW_OF_FILE(name) ROW_AFTER(name, prepare_file)

const row rows_of_io[] = {
    ROW_OF_IO(bide_recv),
    ROW_OF_IO(bide_send),
    ROW_OF_IO(bide_send_zero_copy),
    ROW_OF_IO(bide_recvmsg),
    ROW_OF_IO(bide_accept),
    ROW_OF_IO(bide_recv_from),
    ROW_OF_IO(bide_recv_batch),
    ROW_OF_IO(bide_recv_fds),
    ROW_OF_IO(bide_read),
    ROW_OF_IO(bide_readv),
    ROW_OF_IO(bide_write),
    ROW_OF_IO(bide_writev),
    ROW_OF_IO(bide_poll),
    ROW_OF_IO(bide_stream_read),
    ROW_OF_IO(bide_stream_write),
    ROW_OF_IO(bide_stream_read_within),
    ROW_OF_IO(bide_stream_write_within),
    ROW_OF_IO(bide_reader_read),
    ROW_OF_IO(bide_reader_read_exact),
    ROW_OF_IO(bide_reader_read_until),
    ROW_OF_IO(bide_reader_read_line),
    ROW_OF_IO(bide_reader_fill),
    ROW_OF_IO(bide_reader_skip),
    ROW_OF_IO(bide_writer_write),
    ROW_OF_IO(bide_writer_write_vectors),
    ROW_OF_IO(bide_copy),
    ROW_OF_IO(bide_server_run),
    ROW_OF_IO(bide_connection_pool_acquire),
    ROW_OF_IO(bide_connection_pool_join),
    ROW_OF_FULL(bide_sendmsg),
    ROW_OF_FULL(bide_send_fds),
    ROW_OF_FULL(bide_writer_flush),
    ROW_OF_FULL(bide_writer_finish),
    ROW_AFTER(bide_connect, prepare_slow),
    ROW_AFTER(bide_connect_any, prepare_slow),
    ROW_OF_FILE(bide_open),
    ROW_OF_FILE(bide_read_at),
    ROW_OF_FILE(bide_write_at),
    ROW_OF_FILE(bide_sync),
    ROW_OF_FILE(bide_allocate),
    ROW_OF_FILE(bide_truncate),
    ROW_OF_FILE(bide_stat),
    ROW_OF_FILE(bide_stat_path),
    ROW_OF_FILE(bide_rename),
    ROW_OF_FILE(bide_unlink),
    ROW_OF_FILE(bide_make_directory),
    ROW_OF_FILE(bide_open_at),
    ROW_OF_FILE(bide_open_temporary),
    ROW_OF_FILE(bide_statx_at),
    ROW_OF_FILE(bide_chmod_at),
    ROW_OF_FILE(bide_readlink_at),
    ROW_OF_FILE(bide_link_at),
    ROW_OF_FILE(bide_rename_at),
    ROW_OF_FILE(bide_unlink_at),
    ROW_OF_FILE(bide_make_directory_at),
    ROW_OF_FILE(bide_copy_file),
    ROW_OF_FILE(bide_next_entry),
};
const size_t rows_of_io_count = sizeof rows_of_io / sizeof rows_of_io[0];
