/*
 * A struct of zeros may be closed, stopped or destroyed, as `finally` does in a frame that was zeroed and then failed
 * early: nothing happens. In particular no descriptor of the process is closed, and no process is signalled.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <bide/bide.h>

#if HAS_HTTP
#include <bide/http.h>
#endif
#if HAS_TLS
#include <bide/tls.h>
#endif

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef bide_channel(int) channel;
typedef bide_spsc_channel(int) spsc_channel;
typedef bide_oneshot(int) oneshot;
typedef bide_broadcast(int) broadcast;
typedef bide_watch(int) watch;
typedef bide_rendezvous(int) rendezvous;

/* clang-format off */
/* name, type, what is done with `it`, a pointer to zeros */
#define ROWS(X)                                                                                                          \
    X(descriptor, bide_descriptor, bide_close(it))                                                                       \
    X(released_descriptor, bide_descriptor, bide_descriptor_release(it))                                                 \
    X(socket_shut_down, bide_descriptor, bide_shutdown(it, BIDE_HALF_BOTH))                                                   \
    X(stream, bide_stream, bide_stream_close(*it))                                                                       \
    X(socket_stream, bide_descriptor, bide_stream_close(bide_socket_stream(it)))                                         \
    X(acceptor, bide_acceptor, bide_acceptor_destroy(it))                                                                \
    X(receiver, bide_receiver, bide_receiver_destroy(it))                                                                \
    X(file_watcher, bide_file_watcher, bide_file_watcher_destroy(it))                                                    \
    X(file_watch, bide_file_watch, bide_file_watch_remove(it))                                                           \
    X(process, bide_process, bide_process_destroy(it))                                                                   \
    X(signalled_process, bide_process, bide_process_signal(it, SIGKILL))                                                 \
    X(signalled_group, bide_process, bide_process_signal_group(it, SIGKILL))                                             \
    X(signal, bide_signal, bide_signal_destroy(it))                                                                      \
    X(raw_terminal, bide_terminal, bide_terminal_stop_raw(it))                                                           \
    X(copy_between, bide_between, bide_copy_between_destroy(it))                                                         \
    X(memory_pipe, bide_memory_pipe, bide_memory_pipe_destroy(it))                                                       \
    X(buffer_pool, bide_buffer_pool, bide_buffer_pool_destroy(it))                                                       \
    X(connection_pool, bide_connection_pool, bide_connection_pool_close(it))                                             \
    X(pollable, bide_pollable, bide_pollable_destroy(it))                                                                \
    X(run_loop, bide_run_loop, bide_run_loop_destroy(it))                                                                \
    X(strand, bide_strand, bide_strand_destroy(it))                                                                      \
    X(scope, bide_scope, bide_scope_destroy(it))                                                                         \
    X(stopped_scope, bide_scope, bide_scope_stop(it))                                                                    \
    X(stop_source, bide_stop_source, bide_stop_source_detach(it))                                                        \
    X(stop_callback, bide_stop_callback, bide_stop_callback_remove(it))                                                  \
    X(deadline, bide_deadline, bide_deadline_try_stop(it))                                                               \
    X(event, bide_event, (bide_event_close(it), bide_event_destroy(it)))                                                 \
    X(auto_event, bide_auto_event, (bide_auto_event_close(it), bide_auto_event_destroy(it)))                             \
    X(mutex, bide_mutex, (bide_mutex_close(it), bide_mutex_destroy(it)))                                                 \
    X(barging_mutex, bide_barging_mutex, (bide_barging_mutex_close(it), bide_barging_mutex_destroy(it)))                 \
    X(rw_lock, bide_rw_lock, (bide_rw_lock_close(it), bide_rw_lock_destroy(it)))                                         \
    X(semaphore, bide_semaphore, (bide_semaphore_close(it), bide_semaphore_destroy(it)))                                 \
    X(condition, bide_condition, (bide_condition_close(it), bide_condition_destroy(it)))                                 \
    X(cyclic_barrier, bide_cyclic_barrier, (bide_cyclic_barrier_close(it), bide_cyclic_barrier_destroy(it)))             \
    X(latch, bide_latch, (bide_latch_close(it), bide_latch_destroy(it)))                                                 \
    X(wait_group, bide_wait_group, (bide_wait_group_close(it), bide_wait_group_destroy(it)))                             \
    X(once, bide_once, (bide_once_close(it), bide_once_destroy(it)))                                                     \
    X(notify, bide_notify, (bide_notify_close(it), bide_notify_destroy(it)))                                             \
    X(single_consumer_event, bide_single_consumer_event, bide_single_consumer_event_close(it))                           \
    X(sequence_barrier, bide_sequence_barrier, bide_sequence_barrier_close(it))                                          \
    X(token_bucket, bide_token_bucket, bide_token_bucket_close(it))                                                      \
    X(channel, channel, (bide_channel_close(it), bide_channel_destroy(it)))                                              \
    X(spsc_channel, spsc_channel, bide_spsc_channel_close(it))                                                           \
    X(oneshot, oneshot, bide_oneshot_close(it))                                                                          \
    X(broadcast, broadcast, (bide_broadcast_close(it), bide_broadcast_destroy(it)))                                      \
    X(watch, watch, (bide_watch_close(it), bide_watch_destroy(it)))                                                      \
    X(rendezvous, rendezvous, (bide_rendezvous_close(it), bide_rendezvous_destroy(it)))                                  \
    X(loop, bide_loop *, bide_loop_destroy(*it))                                                                         \
    X(thread_pool, bide_thread_pool *, bide_thread_pool_destroy(*it))                                                    \
    X(blocking, bide_blocking *, bide_blocking_destroy(*it))                                                             \
    X(names, bide_names *, bide_names_destroy(*it))                                                                      \
    X(memory_io, bide_memory_io *, bide_memory_io_destroy(*it))
#if HAS_HTTP
#define HTTP_ROWS(X)                                                                                                     \
    X(http_files, bide_http_files, bide_http_files_close(it))                                                            \
    X(http_log, bide_http_log, bide_http_log_close(it))
#else
#define HTTP_ROWS(X)
#endif
#if HAS_TLS
#define TLS_ROWS(X)                                                                                                      \
    X(tls, bide_tls, bide_tls_close(it))                                                                                 \
    X(tls_config, bide_tls_config *, bide_tls_config_release(*it))
#else
#define TLS_ROWS(X)
#endif
#define ALL_ROWS(X) ROWS(X) HTTP_ROWS(X) TLS_ROWS(X)
/* clang-format on */

/* (twice: a second end is as harmless) */
#define END(name, type, action)             \
    static void end_##name(void)            \
    {                                       \
        typedef type zeroed;                \
        zeroed object, *const it = &object; \
        memset(it, 0, sizeof *it);          \
        (void)(action);                     \
        (void)(action);                     \
    }
ALL_ROWS(END)

static const struct row {
    const char *name;
    void (*end)(void);
} rows[] = {
#define ROW(name, type, action) {#name, end_##name},
    ALL_ROWS(ROW)};

enum { NUMBERS = 3 };

/* Returns false if the process ends otherwise than by itself, or has lost one of its first descriptors. */
static bool harms_nothing(const struct row *row)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* (cmocka's handlers jump back into the test) */
        signal(SIGABRT, SIG_DFL);
        setpgid(0, 0); /* (a signal to the own group ends only this process) */
        alarm(20);
        for (int number = 0; number < NUMBERS; number++) {
            if (fcntl(number, F_GETFD) < 0)
                open("/dev/null", O_RDWR);
        }
        row->end();
        for (int number = 0; number < NUMBERS; number++) {
            if (fcntl(number, F_GETFD) < 0)
                _exit(10 + number);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status))
        printf("# %s: ended by signal %d\n", row->name, WTERMSIG(status));
    else
        printf("# %s: status %d (10 and more: it has closed that descriptor)\n", row->name,
               WEXITSTATUS(status));
    return false;
}

static void a_struct_of_zeros_may_be_ended(void **state)
{
    (void)state;
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        failed += !harms_nothing(&rows[i]);
    assert_int_equal(failed, 0);
}

/* And operations on a closed descriptor fail by their own error. */
static void a_descriptor_of_zeros_is_closed(void **state)
{
    (void)state;
    bide_descriptor zeroed, closed;
    memset(&zeroed, 0, sizeof zeroed);
    bide_descriptor_init_closed(&closed);
    assert_false(bide_descriptor_is_open(&zeroed));
    assert_int_equal(bide_descriptor_fd(&zeroed), -1);
    assert_int_equal(bide_descriptor_fd(&closed), -1);
    assert_int_equal(bide_close(&zeroed), -EBADF);
    assert_int_equal(bide_descriptor_release(&zeroed), -EBADF);

    bide_descriptor_init(&zeroed, 0);
    assert_true(bide_descriptor_is_open(&zeroed));
    assert_int_equal(bide_descriptor_fd(&zeroed), 0);
    assert_int_equal(bide_descriptor_release(&zeroed), 0);
    assert_int_equal(bide_descriptor_fd(&zeroed), -1);

    bide_descriptor_init(&zeroed, -1);
    assert_false(bide_descriptor_is_open(&zeroed));

    bide_loop *loop;
    bide_io_operation operation;
    char byte;
    memset(&zeroed, 0, sizeof zeroed);
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    assert_int_equal(bide_loop_wait(loop, bide_recv(&operation, &zeroed, &byte, 1)), -EBADF);
    bide_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_struct_of_zeros_may_be_ended),
                                       cmocka_unit_test(a_descriptor_of_zeros_is_closed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
