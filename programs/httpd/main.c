/*
 * A web server for files.
 *
 *     httpd [--port N] [--tls-cert FILE --tls-key FILE] [OPTION...] FOLDER
 *
 * docs: bide-httpd.1 beside this file. What can fail at the start is done by the first thread, before it says
 * that it listens.
 */
#define _GNU_SOURCE
#include "worker.h"

#include <bide/blocking.h>
#include <bide/loop.h>
#include <bide/socket.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BACKLOG = 4096, BLOCKING_THREADS = 4 };

/*
 * So many bytes wait in a connection's socket at most. What waits there is sent when the client has taken what was
 * sent before, in the client's time if both are on one machine; so of less of it more is sent in the server's.
 */
enum { UNSENT = 65536 };

static _Noreturn void give_up(const char *what, int status)
{
    fprintf(stderr, "httpd: %s: %s\n", what, strerror(-status));
    exit(1);
}

/* ---- Descriptors ---- */

/* As many as the system allows; how many connections these are good for, each of which may have a file. */
static unsigned allowed_connections(unsigned threads)
{
    enum { OTHERS = 24, OTHERS_OF_THREAD = 8 };
    const rlim_t others = OTHERS + OTHERS_OF_THREAD * threads;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UINT32_MAX;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT32_MAX;
    rlim_t max = limit.rlim_cur > others ? (limit.rlim_cur - others) / 2 : 1;
    return max > UINT32_MAX ? UINT32_MAX : (unsigned)max;
}

static void share_connections(struct site *site)
{
    const struct options *options = &site->options;
    unsigned allowed = allowed_connections(options->threads);
    unsigned max = options->connections < allowed ? options->connections : allowed;
    if (max < options->connections && options->has_connections)
        fprintf(stderr, "httpd: %u connections at a time: there are no descriptors for more\n",
                max);
    site->connections = (max + options->threads - 1) / options->threads;
}

/* ---- The site ---- */

static void open_site(struct site *site)
{
    const struct options *options = &site->options;
    share_connections(site);
    int status = bide_blocking_create_with(
        &site->blocking, &(bide_blocking_options){.name = "files", .max_threads = BLOCKING_THREADS});
    if (status < 0)
        give_up("threads", status);
    status = bide_http_files_open(
        &site->files, &(bide_http_files_options){.root = options->folder,
                                                 .cache_control = options->cache_control,
                                                 .blocking = site->blocking,
                                                 .lists = options->lists,
                                                 .follows_links = options->follows_links,
                                                 .has_hidden = options->has_hidden});
    if (status < 0)
        give_up(options->folder, status);
}

static void close_site(struct site *site)
{
    bide_http_files_close(&site->files);
    bide_blocking_destroy(site->blocking);
}

/* ---- Workers ---- */

static struct worker *make_workers(struct site *site)
{
    const struct options *options = &site->options;
    struct bide_tls_config *secure = NULL;
    if (options->certificate_count != 0 && (secure = secure_read(options, NULL)) == NULL)
        exit(1);
    struct worker *workers = calloc(options->threads, sizeof *workers);
    if (workers == NULL)
        give_up("memory", -ENOMEM);
    for (unsigned i = 0; i < options->threads; i++) {
        if (!worker_init(&workers[i], site, i, secure))
            exit(1);
    }
    secure_release(secure);
    return workers;
}

/* A listener for each, all by the first one's loop, which gives the others theirs. */
static void begin_to_listen(struct worker *workers, const struct options *options)
{
    bide_address address;
    int status = bide_address_ip(&address, options->address, (uint16_t)options->port);
    for (unsigned i = 0; i < options->threads && status >= 0; i++) {
        bide_io_operation listen;
        bide_descriptor *listener = &workers[i].server.listener;
        status = bide_loop_wait(
            workers[0].loop, bide_listen_with(&listen, listener, &address, BACKLOG,
                                              options->threads > 1 ? BIDE_LISTEN_REUSE_PORT : 0));
        if (status < 0)
            break;
        /* (what is accepted has both too) */
        (void)bide_set_no_delay(listener, true);
        (void)bide_set_socket_option(listener, BIDE_OPTION_UNSENT, UNSENT);
        status = bide_local_address(listener, &address);
        if (i > 0)
            bide_descriptor_init(listener, bide_descriptor_release(listener));
    }
    if (status < 0)
        give_up(options->address, status);
    printf("listening (%s) on port %u\n", bide_loop_backend(workers[0].loop).name,
           (unsigned)bide_address_port(&address));
    fflush(stdout);
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
            give_up("a thread", -error);
    }
    worker_run(&workers[0]);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            pthread_join(workers[i].thread, NULL);
        is_good &= workers[i].status >= 0;
        worker_end(&workers[i]);
    }
    return is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static struct site site;
    signal(SIGPIPE, SIG_IGN); /* of a log that is a pipe */
    options_read(&site.options, argc, argv);
    open_site(&site);
    struct worker *workers = make_workers(&site);
    begin_to_listen(workers, &site.options);
    int status = run_workers(workers, site.options.threads);
    free(workers);
    close_site(&site);
    return status;
}
