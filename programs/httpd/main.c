/*
 * A web server for files.
 *
 *     httpd [--port N] [--tls-cert FILE --tls-key FILE] [OPTION...] DIRECTORY
 *
 * The manual is bide-httpd.1 in this directory. The first thread performs all startup that can
 * fail, before it prints the address. Then each worker runs on a thread of its own; the first
 * worker runs on the first thread.
 */
#define _GNU_SOURCE
#include "../common/listening.h"
#include "../common/monitoring.h"
#include "certificates.h"
#include "worker.h"

#include <bide/blocking.h>
#include <bide/loop.h>
#include <bide/socket.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BACKLOG = 4096, BLOCKING_THREADS = 4 };

/*
 * The limit of unsent bytes in a connection's socket buffer. The kernel sends buffered data when
 * the client acknowledges earlier data; if client and server share a machine, that happens in the
 * client's processor time. With a smaller buffer, more of the sending happens in the server's.
 */
enum { MAX_UNSENT = 65536 };

static _Noreturn void exit_with_error(const char *what, int status)
{
    fprintf(stderr, "httpd: %s: %s\n", what, strerror(-status));
    exit(1);
}

/* ---- Descriptors ---- */

/*
 * Raises the limit of descriptors, and returns the number of connections of a worker that it allows.
 *
 * A connection has a socket, a file, and, without TLS, a pipe for the parts of the file that are not
 * in memory (bide_send_file). A client of HTTP/2 may have several files, and no pipe. Beyond one file
 * for each connection, all clients have one for each CONNECTIONS_OF_STREAM connections. A worker has its
 * loop, listener, signals and two logs, which a reload opens twice. The process has the directory, the
 * monitor, and the files that the blocking threads look at.
 */
static unsigned allowed_connections(const struct options *options)
{
    enum { OTHERS = 24, OTHERS_OF_WORKER = 16 };
    const rlim_t of_connection = options->certificate_count != 0 ? 2 : 4;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UINT32_MAX;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT32_MAX;
    rlim_t share = limit.rlim_cur > OTHERS ? (limit.rlim_cur - OTHERS) / options->threads : 0;
    rlim_t others = OTHERS_OF_WORKER + 1;
    rlim_t allowed = share > others ? share - others : 0;
    allowed = allowed * CONNECTIONS_OF_STREAM / (of_connection * CONNECTIONS_OF_STREAM + 1);
    return allowed > UINT32_MAX ? UINT32_MAX : allowed != 0 ? (unsigned)allowed : 1;
}

static void share_connections(struct site *site)
{
    const struct options *options = &site->options;
    unsigned allowed = allowed_connections(options);
    site->connections = (options->connections + options->threads - 1) / options->threads;
    if (site->connections <= allowed)
        return;
    site->connections = allowed;
    if (options->has_connections)
        fprintf(stderr, "httpd: only %u connections: the limit of descriptors allows no more\n",
                allowed * options->threads);
}

/* ---- The site ---- */

static void open_site(struct site *site)
{
    const struct options *options = &site->options;
    share_connections(site);
    int status = bide_blocking_create_with(
        &site->blocking,
        &(bide_blocking_options){.name = "files", .max_threads = BLOCKING_THREADS});
    if (status < 0)
        exit_with_error("threads", status);
    status = bide_http_files_open(
        &site->files, &(bide_http_files_options){.root = options->directory,
                                                 .cache_control = options->cache_control,
                                                 .blocking = site->blocking,
                                                 .lists = options->lists,
                                                 .follows_links = options->follows_links,
                                                 .has_hidden = options->has_hidden});
    if (status < 0)
        exit_with_error(options->directory, status);
}

static void close_site(struct site *site)
{
    bide_http_files_close(&site->files);
    bide_blocking_destroy(site->blocking);
}

/* ---- Workers ---- */

/*
 * Limits the files before any other thread exists. Certificates and the logs are opened again by name,
 * in a reload.
 */
static void confine_files(struct options *options)
{
    struct confine *confine = &options->confine;
    confine_allow(confine, options->directory, CONFINE_READ);
    for (unsigned i = 0; i < options->certificate_count; i++) {
        confine_allow_replaced(confine, options->certificates[i], CONFINE_READ);
        if (options->keys[i] != NULL)
            confine_allow_replaced(confine, options->keys[i], CONFINE_READ);
        if (options->statuses[i] != NULL)
            confine_allow_replaced(confine, options->statuses[i], CONFINE_READ);
    }
    if (options->key_log != NULL)
        confine_allow_replaced(confine, options->key_log, CONFINE_WRITE);
    if (options->log != NULL && strcmp(options->log, "-") != 0)
        confine_allow_replaced(confine, options->log, CONFINE_WRITE);
    if (options->error_log != NULL && strcmp(options->error_log, "-") != 0)
        confine_allow_replaced(confine, options->error_log, CONFINE_WRITE);
    confine_allow_monitor(confine, options->monitor);
    confine_limit_files(confine, options->port);
}

static struct worker *create_workers(struct site *site)
{
    struct options *options = &site->options;
    struct bide_tls_config *secure = NULL;
    if (options->certificate_count != 0 && (secure = certificates_load(options, NULL)) == NULL)
        exit(1);
    confine_files(&site->options);
    struct worker *workers = calloc(options->threads, sizeof *workers);
    if (workers == NULL)
        exit_with_error("memory", -ENOMEM);
    for (unsigned i = 0; i < options->threads; i++) {
        if (!worker_init(&workers[i], site, i, secure))
            exit(1);
    }
    secure_release(secure);
    return workers;
}

/* Listens; while the address is still that of a killed server, it tries again. */
static int open_listener(bide_loop *loop, bide_descriptor *listener, const bide_address *address,
                         int flags)
{
    const struct timespec pause = {0, LISTEN_PAUSE};
    bide_io_operation listen;
    for (int tries = 1;; tries++) {
        int status =
            bide_loop_wait(loop, bide_listen_with(&listen, listener, address, BACKLOG, flags));
        if (status != -EADDRINUSE || tries == LISTEN_TRIES)
            return status;
        nanosleep(&pause, NULL);
    }
}

/*
 * Opens a listener for each worker, all with the first worker's loop, and hands them to the other
 * loops. Returns the port.
 */
static unsigned start_listening(struct worker *workers, const struct options *options)
{
    bide_address address;
    int status = bide_address_ip(&address, options->address, (uint16_t)options->port);
    for (unsigned i = 0; i < options->threads && status >= 0; i++) {
        bide_descriptor *listener = &workers[i].server.listener;
        status = open_listener(workers[0].loop, listener, &address,
                               options->threads > 1 ? BIDE_LISTEN_REUSE_PORT : 0);
        if (status < 0)
            break;
        /* (accepted sockets inherit both options) */
        (void)bide_set_no_delay(listener, true);
        (void)bide_set_socket_option(listener, BIDE_OPTION_UNSENT, MAX_UNSENT);
        status = bide_local_address(listener, &address);
        if (i > 0)
            bide_descriptor_init(listener, bide_descriptor_release(listener));
    }
    if (status < 0)
        exit_with_error(options->address, status);
    return bide_address_port(&address);
}

static void *run_thread(void *worker)
{
    worker_run(worker);
    return NULL;
}

static int run_workers(struct worker *workers, unsigned count)
{
    bool is_good = true;
    for (unsigned i = 1; i < count; i++) {
        int error = pthread_create(&workers[i].thread, NULL, run_thread, &workers[i]);
        if (error != 0)
            exit_with_error("a thread", -error);
    }
    worker_run(&workers[0]);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            pthread_join(workers[i].thread, NULL);
        is_good &= workers[i].status >= 0;
        worker_destroy(&workers[i]);
    }
    return is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct site site;
    signal(SIGPIPE, SIG_IGN); /* the log may be a pipe */
    options_read(&site.options, argc, argv);
    confine_enter(&site.options.confine);
    open_site(&site);
    struct worker *workers = create_workers(&site);
    unsigned port = start_listening(workers, &site.options);
    const char *back_end = bide_loop_backend(workers[0].loop).name;
    confine_drop_user(&site.options.confine);
    monitoring_start("httpd", site.options.monitor);
    confine_limit_calls(&site.options.confine,
                        (strcmp(back_end, "uring") == 0 ? CONFINE_URING : 0) |
                            monitoring_calls(site.options.monitor));
    printf("listening (%s) on port %u\n", back_end, port);
    fflush(stdout);
    int status = run_workers(workers, site.options.threads);
    monitoring_stop(site.options.monitor);
    free(workers);
    close_site(&site);
    return status;
}
