/*
 * What an await of an operation gives without its struct: the count of bytes, or of datagrams, that its header
 * speaks of; 0 for an operation of the same struct that moves none; its error if it failed. One row for each
 * operation that gives more than a status: values_test.sh looks that none is left out. Behind each await follows
 * a large one, which takes over its memory; and operations with structs of their own stand in functions whose
 * result takes over the memory of their variables. Translated by bidec.
 */
#define _GNU_SOURCE
#include "operations.h"

#include "bide/bide.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* The same of a call in a wrapper. */
#define WITHIN(name, value, ...) \
    assert_int_equal(await bide_with_timeout(BIDE_FOREVER, name(__VA_ARGS__)), value)

static char directory[] = "/tmp/bide_values_XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void open_pipe(bide_descriptor *input, bide_descriptor *output)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    bide_descriptor_init(input, fds[0]);
    bide_descriptor_init(output, fds[1]);
}

/* ---- Sockets ---- */

async int sockets(void)
{
    bide_descriptor listener, client, server, one, other;
    bide_address address;
    char bytes[16];
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    VALUE(bide_listen, 0, &listener, &address, 8);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    VALUE(bide_connect, 0, &client, &address);
    VALUE(bide_accept, 0, &listener, &server, NULL);
    VALUE(bide_send, 5, &client, "12345", 5);
    VALUE(bide_recv, 5, &server, bytes, sizeof bytes);
    WITHIN(bide_send, 5, &client, "12345", 5);
    WITHIN(bide_recv, 5, &server, bytes, sizeof bytes);
    struct iovec part = {bytes, 3};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    VALUE(bide_sendmsg, 3, &client, &message, MSG_NOSIGNAL);
    VALUE(bide_recvmsg, 3, &server, &message, 0);
    bide_close(&client);
    bide_close(&server);
    bide_close(&listener);
    int queue[4];
    bide_acceptor acceptor;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    VALUE(bide_listen_with, 0, &listener, &address, 8, 0);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    bide_acceptor_init(&acceptor, &listener, queue, 4);
    VALUE(bide_connect, 0, &client, &address);
    VALUE(bide_acceptor_next, 0, &acceptor, &server, NULL);
    bide_acceptor_destroy(&acceptor);
    bide_close(&client);
    bide_close(&server);
    bide_close(&listener);
    VALUE(bide_socket_pair, 0, &one, &other);
    VALUE(bide_send_zero_copy, 4, &one, "abcd", 4);
    VALUE(bide_recv, 4, &other, bytes, sizeof bytes);
    VALUE(bide_poll, 0, &one, POLLOUT);
    bide_close(&one);
    VALUE(bide_recv, 0, &other, bytes, sizeof bytes); /* the end */
    VALUE(bide_send, -EPIPE, &other, "abcd", 4);
    bide_close(&other);
    return 0;
}

async int sockets_with_options(void)
{
    bide_descriptor listener, client, receiver;
    bide_address address, any;
    const bide_socket_options none = {.count = 0};
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    any = address;
    VALUE(bide_listen_using, 0, &listener, &address, 8, 0, &none);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    VALUE(bide_connect_using, 0, &client, &address, &none);
    VALUE(bide_bind_using, 0, &receiver, &any, 0, &none);
    bide_close(&receiver);
    bide_close(&client);
    bide_close(&listener);
    return 0;
}

async int datagrams(void)
{
    bide_descriptor receiver, sender;
    bide_address address, from, any;
    char bytes[16], more[16];
    bide_message messages[2];
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    any = address;
    VALUE(bide_bind, 0, &receiver, &address, 0);
    VALUE(bide_bind, 0, &sender, &any, 0);
    assert_int_equal(bide_local_address(&receiver, &address), 0);
    VALUE(bide_send_to, 6, &sender, "123456", 6, &address);
    VALUE(bide_recv_from, 6, &receiver, bytes, sizeof bytes, &from);
    struct iovec parts[2] = {{bytes, 2}, {more, 3}};
    bide_message_init(&messages[0], &parts[0], &address);
    bide_message_init(&messages[1], &parts[1], &address);
    VALUE(bide_send_batch, 2, &sender, messages, 2);
    VALUE(bide_poll, 0, &receiver, POLLIN);
    bide_message_init(&messages[0], &parts[0], NULL);
    VALUE(bide_recv_batch, 1, &receiver, messages, 1);
    bide_close(&sender);
    bide_close(&receiver);
    return 0;
}

/* ---- Files ---- */

async int files(void)
{
    bide_descriptor file, to, from;
    struct stat about;
    char bytes[16];
    VALUE(bide_make_directory, 0, path_of("d"), 0700);
    VALUE(bide_open, 0, &file, path_of("a"), O_RDWR | O_CREAT, 0600);
    VALUE(bide_write, 7, &file, "1234567", 7);
    VALUE(bide_write_at, 2, &file, "89", 2, 7);
    VALUE(bide_read_at, 4, &file, bytes, 4, 5);
    struct iovec parts[2] = {{bytes, 2}, {bytes + 2, 1}};
    VALUE(bide_writev, 3, &file, parts, 2, -1);
    VALUE(bide_readv, 3, &file, parts, 2, 0);
    assert_int_equal(lseek(bide_descriptor_fd(&file), 0, SEEK_SET), 0);
    VALUE(bide_read, 10, &file, bytes, sizeof bytes);
    VALUE(bide_read, 0, &file, bytes, sizeof bytes); /* the end */
    VALUE(bide_sync, 0, &file, BIDE_SYNC_ALL);
    VALUE(bide_stat, 0, &file, &about);
    VALUE(bide_stat_path, 0, path_of("a"), &about, 0);
    VALUE(bide_truncate, 0, &file, 8);
    rows++;
    long status = await bide_allocate(&file, 0, 0, 100); /* (not every file system can) */
    await large();
    assert_true(status == 0 || status == -EOPNOTSUPP);
    VALUE(bide_truncate, 0, &file, 8);
    VALUE(bide_rename, 0, path_of("a"), path_of("b"));
    VALUE(bide_socket_pair, 0, &from, &to);
    VALUE(bide_send_file, 8, &from, &file, 0, 100);
    bide_close(&from);
    bide_close(&to);
    bide_close(&file);
    VALUE(bide_open, -ENOENT, &file, path_of("a"), O_RDONLY, 0);
    VALUE(bide_unlink, 0, path_of("b"), 0);
    VALUE(bide_unlink, 0, path_of("d"), AT_REMOVEDIR);
    return 0;
}

async int names_of_files(void)
{
    bide_descriptor folder, file, copy;
    bide_path_root here = {.directory = &folder};
    struct statx about;
    struct statfs system;
    char target[64], real[PATH_MAX];
    const struct timespec times[2] = {{1, 0}, {2, 0}};
    VALUE(bide_open, 0, &folder, directory, O_PATH | O_DIRECTORY, 0);
    VALUE(bide_make_directory_at, 0, &here, "d", 0700);
    VALUE(bide_open_at, 0, &file, &here, "d/a", O_RDWR | O_CREAT, 0600);
    VALUE(bide_write, 7, &file, "1234567", 7);
    VALUE(bide_open_temporary, 0, &copy, &here, "d", 0, 0600);
    VALUE(bide_copy_file, 5, &file, 2, &copy, 0, UINT64_MAX);
    bide_close(&copy);
    bide_close(&file);
    VALUE(bide_statx_at, 0, &here, "d/a", 0, STATX_SIZE, &about);
    VALUE(bide_statfs_at, 0, &here, "d", &system);
    VALUE(bide_chmod_at, 0, &here, "d/a", 0640, 0);
    VALUE(bide_chown_at, 0, &here, "d/a", (uid_t)-1, (gid_t)-1, 0);
    VALUE(bide_utimes_at, 0, &here, "d/a", times, 0);
    VALUE(bide_symlink_at, 0, "d/a", &here, "s");
    VALUE(bide_readlink_at, 3, &here, "s", target, sizeof target);
    VALUE(bide_realpath_at, (long)strlen(directory) + 4, &here, "s", real, sizeof real);
    VALUE(bide_link_at, 0, &here, "d/a", &here, "b", 0);
    VALUE(bide_rename_at, 0, &here, "b", &here, "d/c", 0);
    VALUE(bide_rename_at, -ENOENT, &here, "b", &here, "d/c", 0);
    VALUE(bide_unlink_at, 0, &here, "s", 0);
    VALUE(bide_unlink_at, 0, &here, "d/a", 0);
    VALUE(bide_unlink_at, 0, &here, "d/c", 0);
    VALUE(bide_unlink_at, 0, &here, "d", AT_REMOVEDIR);
    bide_close(&folder);
    return 0;
}

async int memory_of_files(void)
{
    static _Alignas(4096) char page[4096];
    bide_descriptor file;
    VALUE(bide_open, 0, &file, path_of("m"), O_RDWR | O_CREAT, 0600);
    VALUE(bide_write, 4, &file, "1234", 4);
    VALUE(bide_prefault, 0, page, sizeof page, true);
    bide_close(&file);
    VALUE(bide_unlink, 0, path_of("m"), 0);
    return 0;
}

async int pipes(void)
{
    bide_descriptor in, out, second_in, second_out;
    char bytes[16];
    open_pipe(&in, &out);
    open_pipe(&second_in, &second_out);
    VALUE(bide_write, 5, &out, "12345", 5);
    VALUE(bide_tee, 5, &in, &second_out, 100);
    VALUE(bide_read, 5, &second_in, bytes, sizeof bytes);
    VALUE(bide_splice, 5, &in, &second_out, 100);
    VALUE(bide_read, 5, &second_in, bytes, sizeof bytes);
    VALUE(bide_write, 3, &out, "678", 3);
    bide_blocking *blocking;
    assert_int_equal(bide_blocking_create(&blocking, 1), 0);
    VALUE(bide_blocking_read, 3, blocking, bide_descriptor_fd(&in), bytes, sizeof bytes);
    bide_blocking_destroy(blocking);
    bide_close(&in);
    bide_close(&out);
    bide_close(&second_in);
    bide_close(&second_out);
    return 0;
}

/* ---- Locks of files, processes, signals, and addresses ---- */

#define SHELL(text)                               \
    .program = "/bin/sh", .arguments = (char *[]) \
    {                                             \
        "sh", "-c", text, NULL                    \
    }

async int others(void)
{
    bide_descriptor file, one, other, listener, client, server;
    bide_process process;
    bide_signal signal;
    bide_address address;
    bide_names *names;
    VALUE(bide_open, 0, &file, path_of("l"), O_RDWR | O_CREAT, 0600);
    VALUE(bide_lock_file, 0, &file, BIDE_FILE_EXCLUSIVE, 0, 10);
    bide_close(&file);
    VALUE(bide_lock_file, -EBADF, &file, BIDE_FILE_EXCLUSIVE, 0, 10);
    VALUE(bide_unlink, 0, path_of("l"), 0);
    VALUE(bide_socket_pair, 0, &one, &other);
    int passed = bide_descriptor_fd(&one);
    VALUE(bide_send_fds, 0, &one, "a", 1, &passed, 1);
    VALUE(bide_send_fds, -EINVAL, &one, "a", 0, &passed, 1);
    bide_close(&one);
    bide_close(&other);
    assert_int_equal(bide_process_start(&process, &(bide_process_options){SHELL("exit 7")}), 0);
    VALUE(bide_process_wait, 0, &process);
    assert_int_equal(process.exit_code, 7);
    VALUE(bide_process_wait, 0, &process);
    bide_process_destroy(&process);
    assert_int_equal(bide_signal_listen(&signal, SIGUSR2), 0);
    kill(getpid(), SIGUSR2);
    VALUE(bide_signal_wait, 0, &signal);
    assert_int_equal(bide_signal_destroy(&signal), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    VALUE(bide_listen, 0, &listener, &address, 8);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    VALUE(bide_connect_any, 0, &client, &address, 1, 0);
    VALUE(bide_accept, 0, &listener, &server, NULL);
    bide_close(&client);
    bide_close(&server);
    VALUE(bide_connect_any, -EINVAL, &client, &address, 0, 0);
    assert_int_equal(bide_names_create(&names, NULL), 0);
    VALUE(bide_connect_by_name, 0, &client, names, "127.0.0.1", bide_address_port(&address));
    VALUE(bide_accept, 0, &listener, &server, NULL);
    bide_names_destroy(names);
    bide_close(&client);
    bide_close(&server);
    bide_close(&listener);
    return 0;
}

async struct big named_files(void)
{
    bide_descriptor file, folder;
    struct stat about;
    char bytes[16], entries[1024];
    bide_directory reading;
    NAMED(bide_file_operation, bide_make_directory, own.operation.count, 0, path_of("n"), 0700);
    NAMED(bide_file_operation, bide_open, own.operation.count, 0, &file, path_of("n/a"), O_RDWR | O_CREAT, 0600);
    NAMED(bide_file_operation, bide_write, own.operation.count, 7, &file, "1234567", 7);
    NAMED(bide_file_operation, bide_read_at, own.operation.count, 4, &file, bytes, 4, 1);
    assert_memory_equal(bytes, "2345", 4);
    NAMED(bide_file_operation, bide_stat, about.st_size, 7, &file, &about);
    NAMED(bide_lock_file_operation, bide_lock_file, own.status, 0, &file, BIDE_FILE_SHARED, 0, 0);
    NAMED(bide_file_operation, bide_open, own.operation.count, 0, &folder, path_of("n"), O_RDONLY | O_DIRECTORY, 0);
    bide_directory_init(&reading, &folder, entries, sizeof entries);
    NAMED(bide_entry_operation, bide_next_entry, strcmp(own.name, "a"), 0, &reading);
    bide_close(&folder);
    bide_close(&file);
    NAMED(bide_file_operation, bide_unlink, own.operation.count, 0, path_of("n/a"), 0);
    NAMED(bide_file_operation, bide_unlink, own.operation.count, 0, path_of("n"), AT_REMOVEDIR);
    return filled(0);
}

async struct big named_others(void)
{
    bide_descriptor one, other, listener, client, server;
    bide_process process;
    bide_address address;
    bide_names *names;
    char bytes[16], errors[16];
    int got[2];
    NAMED(bide_io_operation, bide_socket_pair, own.count, 0, &one, &other);
    int passed = bide_descriptor_fd(&one);
    NAMED(bide_fds_operation, bide_send_fds, own.operation.count, 3, &one, "abc", 3, &passed, 1);
    NAMED(bide_fds_operation, bide_recv_fds, own.passed, 1, &other, bytes, sizeof bytes, got, 2);
    close(got[0]);
    bide_close(&one);
    bide_close(&other);
    assert_int_equal(bide_process_start(&process, &(bide_process_options){
                                                      SHELL("cat; echo why >&2; exit 3"),
                                                      .streams = {{.kind = BIDE_STREAM_PIPE},
                                                                  {.kind = BIDE_STREAM_PIPE},
                                                                  {.kind = BIDE_STREAM_PIPE}}}),
                     0);
    NAMED(bide_process_communicate_operation, bide_process_communicate,
          own.input_count * 100 + own.output_count * 10 + own.error_count, 554, &process, "hello", 5,
          bytes, sizeof bytes, errors, sizeof errors);
    assert_memory_equal(bytes, "hello", 5);
    assert_int_equal(process.exit_code, 3);
    NAMED(bide_process_wait_operation, bide_process_wait, own.status, 0, &process);
    bide_process_destroy(&process);
    assert_int_equal(bide_names_create(&names, NULL), 0);
    NAMED(bide_resolve_operation, bide_resolve, own.count * 1000 + bide_address_port(&own.addresses[0]), 1080,
          names, "127.0.0.1", 80);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    NAMED(bide_io_operation, bide_listen, own.count, 0, &listener, &address, 8);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    NAMED(bide_connect_any_operation, bide_connect_any, own.connected, 0, &client, &address, 1, 0);
    NAMED(bide_io_operation, bide_accept, own.count, 0, &listener, &server, NULL);
    bide_close(&client);
    bide_close(&server);
    NAMED(bide_connect_by_name_operation, bide_connect_by_name, own.connect.connected + own.resolve.count, 1,
          &client, names, "127.0.0.1", bide_address_port(&address));
    NAMED(bide_io_operation, bide_accept, own.count, 0, &listener, &server, NULL);
    bide_close(&client);
    bide_close(&server);
    bide_close(&listener);
    bide_names_destroy(names);
    return filled(0);
}

/* ---- Streams, of each kind ---- */

async int stream(bide_stream input, bide_stream output)
{
    char bytes[16], buffers[2][16];
    uint64_t budget = 100;
    const bide_stream_bounds bounds = {.min = 4, .budget = &budget};
    bide_reader reader;
    bide_writer writer;
    struct iovec parts[2] = {{bytes, 2}, {bytes + 2, 1}};
    VALUE(bide_stream_write, 5, output, "12345", 5);
    VALUE(bide_stream_read, 5, input, bytes, sizeof bytes);
    assert_memory_equal(bytes, "12345", 5);
    WITHIN(bide_stream_write, 5, output, "12345", 5);
    WITHIN(bide_stream_read, 5, input, bytes, sizeof bytes);
    VALUE(bide_stream_write_within, 4, output, "abcd", 4, &bounds);
    VALUE(bide_stream_read_within, 4, input, bytes, sizeof bytes, &bounds);
    assert_int_equal(budget, 92);
    bide_reader_init(&reader, input, buffers[0], sizeof buffers[0]);
    bide_writer_init(&writer, output, buffers[1], sizeof buffers[1]);
    VALUE(bide_writer_write, 6, &writer, "line\r\n", 6);
    VALUE(bide_writer_write_vectors, 3, &writer, parts, 2);
    VALUE(bide_writer_flush, 0, &writer);
    VALUE(bide_reader_read_line, 4, &reader);
    VALUE(bide_reader_fill, 3, &reader, 3);
    VALUE(bide_reader_skip, 1, &reader, 1);
    VALUE(bide_reader_read, 2, &reader, bytes, sizeof bytes);
    VALUE(bide_writer_write, 4, &writer, "ab:c", 4);
    VALUE(bide_writer_finish, 0, &writer);
    VALUE(bide_reader_read_until, 3, &reader, ':');
    VALUE(bide_reader_read_exact, 1, &reader, bytes, 1);
    VALUE(bide_reader_read, -EPIPE, &reader, bytes, 1);
    VALUE(bide_stream_read, 0, input, bytes, sizeof bytes); /* the end */
    VALUE(bide_stream_shutdown_output, 0, output);
    rows++;
    assert_int_equal(await bide_stream_ended(-EIO), -EIO);
    await large();
    assert_int_equal(await bide_stream_ended(0), 0);
    return 0;
}

async int streams(void)
{
    char memory[2][64], buffers[2][16], bytes[16];
    bide_memory_pipe pipe, second;
    bide_memory_pipe_init(&pipe, memory[0], sizeof memory[0]);
    bide_memory_pipe_init(&second, memory[1], sizeof memory[1]);
    bide_memory_end from = {&pipe, NULL}, to = {NULL, &pipe};
    assert_int_equal(await stream(bide_memory_stream(&from), bide_memory_stream(&to)), 0);
    bide_descriptor one, other;
    assert_int_equal(await bide_socket_pair(&one, &other), 0);
    assert_int_equal(await stream(bide_socket_stream(&one), bide_socket_stream(&other)), 0);
    bide_close(&one);
    bide_close(&other);
    open_pipe(&one, &other);
    VALUE(bide_stream_write, 5, bide_file_stream(&other), "12345", 5);
    VALUE(bide_stream_read, 5, bide_file_stream(&one), bytes, sizeof bytes);
    VALUE(bide_stream_shutdown_output, 0, bide_file_stream(&other));
    VALUE(bide_stream_read, 0, bide_file_stream(&one), bytes, sizeof bytes);
    bide_close(&one);
    bide_memory_pipe_init(&pipe, memory[0], sizeof memory[0]);
    bide_memory_end second_from = {&pipe, &second}, second_to = {&second, &pipe};
    bide_reader reader;
    bide_writer writer;
    VALUE(bide_stream_write, 5, bide_memory_stream(&second_to), "12345", 5);
    VALUE(bide_stream_shutdown_output, 0, bide_memory_stream(&second_to));
    bide_reader_init(&reader, bide_memory_stream(&second_from), buffers[0], sizeof buffers[0]);
    bide_writer_init(&writer, bide_memory_stream(&second_from), buffers[1], sizeof buffers[1]);
    VALUE(bide_copy, 5, &reader, &writer, UINT64_MAX);
    return 0;
}

/* ---- */

static bide_loop *loop;

#define TEST(name)                                                       \
    static void test_##name(void **state)                                \
    {                                                                    \
        static async_frame(name) frame;                                  \
        (void)state;                                                     \
        rows = 0;                                                        \
        assert_int_equal(bide_loop_wait(loop, async_##name(&frame)), 0); \
        assert_int_equal(frame.result, 0);                               \
        assert_true(rows > 2);                                           \
    }

/* The same of functions with a large result. */
#define TEST_NAMED(name)                                                 \
    static void test_##name(void **state)                                \
    {                                                                    \
        static async_frame(name) frame;                                  \
        (void)state;                                                     \
        rows = 0;                                                        \
        assert_int_equal(bide_loop_wait(loop, async_##name(&frame)), 0); \
        check_filled(&frame.result, 0);                           \
        assert_true(rows > 2);                                           \
    }

TEST(sockets)
TEST(datagrams)
TEST(files)
TEST(names_of_files)
TEST(sockets_with_options)
TEST(memory_of_files)
TEST(pipes)
TEST(streams)
TEST(others)
TEST_NAMED(named_files)
TEST_NAMED(named_others)

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
        cmocka_unit_test(test_sockets), cmocka_unit_test(test_datagrams),       cmocka_unit_test(test_files),
        cmocka_unit_test(test_names_of_files), cmocka_unit_test(test_sockets_with_options),
        cmocka_unit_test(test_pipes),   cmocka_unit_test(test_memory_of_files), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_others),  cmocka_unit_test(test_named_files),     cmocka_unit_test(test_named_others),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
