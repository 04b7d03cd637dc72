/* The workers, and main. In async C. */
#include "tasks.h"

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

static const uint64_t frame_time = UINT64_C(100000000);

/* ---- What runs ---- */

/* Takes one transfer after the other. */
async int work(struct fetch *fetch, struct working *working)
{
    connection_init(&working->connection);
    defer connection_close(&working->connection);
    while (fetch->next < fetch->count) {
        struct transfer *transfer = &fetch->transfers[fetch->next++];
        int status = await transfer_run(fetch, working, transfer);
        if (status < 0)
            return status;
        progress_tell(fetch, transfer);
        if (transfer->state == DONE && fetch->options.prints_sums)
            printf("%s  %s\n", transfer->sum, transfer->name);
    }
    return 0;
}

async int draw(struct fetch *fetch)
{
    int status = 0;
    while (status == 0) {
        progress_draw(fetch);
        status = await bide_sleep_for(frame_time);
    }
    return 0;
}

async int stop_when_asked(struct fetch *fetch, bide_signal *terminate, bide_signal *interrupt)
{
    int status = await any(bide_signal_wait(terminate), bide_signal_wait(interrupt));
    if (status < 0)
        return 0;
    fetch->was_interrupted = true;
    bide_scope_stop(fetch->workers);
    return 0;
}

async int run_workers(struct fetch *fetch, struct working *working, bide_signal *terminate,
                      bide_signal *interrupt, bide_scope *beside)
{
    bide_scope workers;
    bide_scope_init(&workers, bide_this_frame());
    defer bide_scope_destroy(&workers);
    fetch->workers = &workers;
    if (spawn(beside, stop_when_asked(fetch, terminate, interrupt)) < 0)
        return -ENOMEM;
    if (progress_is_shown(&fetch->options) && spawn(beside, draw(fetch)) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < fetch->options.workers && i < fetch->count; i++) {
        if (spawn(&workers, work(fetch, &working[i])) < 0)
            return -ENOMEM;
    }
    int status = await bide_scope_join(&workers);
    bide_scope_stop(beside);
    await bide_scope_join(beside);
    return status;
}

async int run(struct fetch *fetch, struct working *working, bide_signal *terminate,
              bide_signal *interrupt)
{
    bide_scope beside;
    bide_scope_init(&beside, bide_this_frame());
    defer bide_scope_destroy(&beside);
    return await run_workers(fetch, working, terminate, interrupt, &beside);
}

/* ---- Its beginning ---- */

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "fetch: %s: %s\n", what, why);
    exit(1);
}

static void make_secure(struct fetch *fetch)
{
#if FETCH_HAS_TLS
    const char *why = NULL;
    bide_tls_options options = {.authorities_file = fetch->options.authorities};
    int status = bide_tls_client_create(&fetch->tls, &options, &why);
    if (status < 0)
        fail(options.authorities_file != NULL ? options.authorities_file : "TLS",
             why != NULL ? why : strerror(-status));
    if (!fetch->options.verifies)
        bide_tls_dangerously_verify_nothing(fetch->tls);
#else
    (void)fetch;
#endif
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
    static async_frame(run) frame;
    bide_signal terminate, interrupt;
    int status;
    options_read(&fetch, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write says so */
    srandom((unsigned)time(NULL) ^ (unsigned)getpid());
    const char *folder = fetch.options.folder;
    if (folder != NULL && mkdir(folder, 0777) != 0 && errno != EEXIST)
        fail(folder, strerror(errno));
    make_secure(&fetch);
    size_t workers = fetch.count < fetch.options.workers ? fetch.count : fetch.options.workers;
    struct working *working = calloc(workers + 1, sizeof *working);
    if (working == NULL)
        fail("memory", strerror(ENOMEM));
    if ((status = bide_loop_create(&fetch.loop, NULL)) < 0 ||
        (status = bide_names_create(&fetch.names, NULL)) < 0 ||
        (status = bide_signal_listen(&terminate, SIGTERM)) < 0 ||
        (status = bide_signal_listen(&interrupt, SIGINT)) < 0)
        fail("the beginning", strerror(-status));
    status = bide_loop_wait(fetch.loop, async_run(&frame, &fetch, working, &terminate, &interrupt));
    if (progress_is_shown(&fetch.options))
        progress_end(&fetch);
    bide_signal_destroy(&terminate);
    bide_signal_destroy(&interrupt);
    bide_names_destroy(fetch.names);
    bide_loop_destroy(fetch.loop);
#if FETCH_HAS_TLS
    bide_tls_config_release(fetch.tls);
#endif
    free(working);
    size_t missing = count_missing(&fetch);
    if (fetch.was_interrupted)
        fprintf(stderr, "fetch: interrupted, %zu of %zu are missing\n", missing, fetch.count);
    else if (status < 0)
        fprintf(stderr, "fetch: %s\n", strerror(-status));
    return fetch.was_interrupted ? 130 : missing != 0 || fflush(stdout) != 0;
}
