/* The workers, and main, in async C. All of it runs on one thread. */
#include "../common/monitoring.h"
#include "tasks.h"

#if FETCH_HAS_TLS
#include <bide/http_agent_tls.h>
#endif
#if FETCH_HAS_HTTP2
#include <bide/http_agent_http2.h>
#endif
#include <bide/signal.h>
#include <bide/sleep.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const uint64_t frame_interval = UINT64_C(100000000);

/* ---- Tasks ---- */

/* Runs one transfer after another. */
async int run_transfers(struct fetch *fetch, struct worker *worker)
{
    while (fetch->next < fetch->count) {
        struct transfer *transfer = &fetch->transfers[fetch->next++];
        try await transfer_run(fetch, worker, transfer);
        progress_report(fetch, transfer);
        if (transfer->state == DONE && fetch->options.prints_sums)
            printf("%s  %s\n", transfer->sum, transfer->name);
    }
    return 0;
}

async int draw_progress(struct fetch *fetch)
{
    int status = 0;
    while (status == 0) {
        progress_draw(fetch);
        status = await bide_sleep_for(frame_interval);
    }
    return 0;
}

async int stop_on_signal(struct fetch *fetch, bide_signal *terminate, bide_signal *interrupt)
{
    int status = await any(bide_signal_wait(terminate), bide_signal_wait(interrupt));
    if (status < 0)
        return 0;
    fetch->was_interrupted = true;
    bide_scope_stop(fetch->workers);
    return 0;
}

async int run_workers(struct fetch *fetch, struct worker *worker, bide_signal *terminate,
                      bide_signal *interrupt, bide_scope *background)
{
    bide_scope workers;
    bide_scope_init(&workers, bide_this_frame());
    defer bide_scope_destroy(&workers);
    fetch->workers = &workers;
    if (spawn(background, stop_on_signal(fetch, terminate, interrupt)) < 0)
        return -ENOMEM;
    if (progress_is_shown(&fetch->options) && spawn(background, draw_progress(fetch)) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < fetch->options.workers && i < fetch->count; i++) {
        if (spawn(&workers, run_transfers(fetch, &worker[i])) < 0)
            return -ENOMEM;
    }
    int status = await bide_scope_join(&workers);
    bide_scope_stop(background);
    await bide_scope_join(background);
    return status;
}

async int run_all(struct fetch *fetch, struct worker *worker, bide_signal *terminate,
                  bide_signal *interrupt)
{
    bide_scope background;
    bide_scope_init(&background, bide_this_frame());
    defer bide_scope_destroy(&background);
    return await run_workers(fetch, worker, terminate, interrupt, &background);
}

/* ---- Main ---- */

static void exit_with_error(const char *what, const char *why)
{
    fprintf(stderr, "fetch: %s: %s\n", what, why);
    exit(1);
}

static void create_tls(struct fetch *fetch)
{
#if FETCH_HAS_TLS
    const char *why = NULL;
    bide_tls_options options = {.authorities_file = fetch->options.authorities};
#if FETCH_HAS_HTTP2
    if (fetch->options.uses_http2)
        options.protocols = bide_http2_protocols;
#endif
    int status = bide_tls_client_create(&fetch->tls, &options, &why);
    if (status < 0)
        exit_with_error(options.authorities_file != NULL ? options.authorities_file : "TLS",
                        why != NULL ? why : strerror(-status));
    if (!fetch->options.verifies)
        bide_tls_dangerously_verify_nothing(fetch->tls);
#else
    (void)fetch;
#endif
}

/* Workers that use one origin have a connection each, or with --http2 share one. Few idle ones are kept. */
static int create_agent(struct fetch *fetch)
{
    enum { MAX_IDLE = 256, HTTP2_WINDOW = 1 << 20 };
    const struct options *options = &fetch->options;
    bide_http_agent_options agent = {
        .max_connections = options->workers,
        .max_origins = MAX_IDLE / options->workers,
        .connect_timeout = options->timeout,
        .response_timeout = options->timeout,
        .decodes_none = true,
        .max_head = 16384,
        .http2_window = HTTP2_WINDOW,
        .max_body = BIDE_HTTP_UNKNOWN,
    };
    int status = bide_http_agent_create(&fetch->agent, &agent);
    if (status < 0)
        return status;
#if FETCH_HAS_TLS
    bide_http_agent_use_tls(fetch->agent, fetch->tls);
#endif
#if FETCH_HAS_HTTP2
    if (options->uses_http2)
        bide_http_agent_use_http2(fetch->agent);
#endif
    return 0;
}

static size_t count_missing(const struct fetch *fetch)
{
    size_t missing = 0;
    for (size_t i = 0; i < fetch->count; i++)
        missing += fetch->transfers[i].state != DONE;
    return missing;
}

int main(int argc, char **argv)
{
    static struct fetch fetch;
    static async_frame(run_all) frame;
    bide_signal terminate, interrupt;
    int status;
    options_read(&fetch, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the write reports it */
    srandom((unsigned)time(NULL) ^ (unsigned)getpid());
    const char *directory = fetch.options.directory;
    if (directory != NULL && mkdir(directory, 0777) != 0 && errno != EEXIST)
        exit_with_error(directory, strerror(errno));
    create_tls(&fetch);
    size_t workers = fetch.count < fetch.options.workers ? fetch.count : fetch.options.workers;
    struct worker *worker = calloc(workers + 1, sizeof *worker);
    if (worker == NULL)
        exit_with_error("memory", strerror(ENOMEM));
    if ((status = bide_loop_create(&fetch.loop, NULL)) < 0 || (status = create_agent(&fetch)) < 0 ||
        (status = bide_signal_listen(&terminate, SIGTERM)) < 0 ||
        (status = bide_signal_listen(&interrupt, SIGINT)) < 0)
        exit_with_error("startup", strerror(-status));
    monitoring_start("fetch", fetch.options.monitor);
    status =
        bide_loop_wait(fetch.loop, async_run_all(&frame, &fetch, worker, &terminate, &interrupt));
    if (progress_is_shown(&fetch.options))
        progress_clear(&fetch);
    monitoring_stop(fetch.options.monitor);
    bide_signal_destroy(&terminate);
    bide_signal_destroy(&interrupt);
    bide_http_agent_destroy(fetch.agent);
    bide_loop_destroy(fetch.loop);
#if FETCH_HAS_TLS
    bide_tls_config_release(fetch.tls);
#endif
    free(worker);
    size_t missing = count_missing(&fetch);
    if (fetch.was_interrupted)
        fprintf(stderr, "fetch: interrupted, %zu of %zu are missing\n", missing, fetch.count);
    else if (status < 0)
        fprintf(stderr, "fetch: %s\n", strerror(-status));
    return fetch.was_interrupted ? 130 : missing != 0 || fflush(stdout) != 0;
}
