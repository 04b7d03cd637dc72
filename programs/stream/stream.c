/* Signals, the progress, and main, in async C. All of it runs on one thread. */
#include "tasks.h"

#include <bide/signal.h>
#include <bide/sleep.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t frame_interval = UINT64_C(100000000);

async int draw_progress(struct stream *stream)
{
    int status = 0;
    while (status == 0) {
        progress_draw(stream);
        status = await bide_sleep_for(frame_interval);
    }
    return 0;
}

/*
 * The first signal ends sources: the batch that was read of them is written, and what measure has sent
 * is read. The second signal cancels.
 */
async int stop_on_signals(struct stream *stream, bide_signal *terminate, bide_signal *interrupt)
{
    int status = await any(bide_signal_wait(terminate), bide_signal_wait(interrupt));
    if (status < 0)
        return 0;
    stream->is_stopped = true;
    source_stop(&stream->source);
    source_stop(&stream->other);
    status = await any(bide_signal_wait(terminate), bide_signal_wait(interrupt));
    if (status < 0)
        return 0;
    bide_scope_stop(stream->commands);
    return 0;
}

async int run_command(struct stream *stream, bide_signal *terminate, bide_signal *interrupt,
                      bide_scope *background)
{
    bide_scope commands;
    bide_scope_init(&commands, bide_this_frame());
    defer bide_scope_destroy(&commands);
    stream->commands = &commands;
    if (spawn(background, stop_on_signals(stream, terminate, interrupt)) < 0)
        return -ENOMEM;
    if (progress_is_shown(stream) && spawn(background, draw_progress(stream)) < 0)
        return -ENOMEM;
    if (spawn(&commands, command_run(stream)) < 0)
        return -ENOMEM;
    int status = await bide_scope_join(&commands);
    bide_scope_stop(background);
    await bide_scope_join(background);
    return status;
}

async int run_all(struct stream *stream, bide_signal *terminate, bide_signal *interrupt)
{
    bide_scope background;
    bide_scope_init(&background, bide_this_frame());
    defer bide_scope_destroy(&background);
    return await run_command(stream, terminate, interrupt, &background);
}

/* ---- Main ---- */

static void exit_with_error(const char *what, int status)
{
    fprintf(stderr, "stream: %s: %s\n", what, strerror(-status));
    exit(1);
}

/* Further signals do not end it while it closes logs: the listeners leave the default action. */
static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void free_all(struct stream *stream)
{
    for (uint32_t i = 0; stream->tail != NULL && i < stream->options.lines; i++)
        free(stream->tail[i].bytes);
    free(stream->tail);
    free(stream->messages);
    free(stream->latencies);
    free(stream->payload);
    free(stream->outgoing);
}

/* Prints what the command has found. */
static void print_result(struct stream *stream)
{
    enum command command = stream->options.command;
    report_done(stream);
    if (command == COMMAND_MEASURE)
        report_measured(stream, stream->elapsed);
    else if ((command == COMMAND_COUNT || command == COMMAND_LAG) && !stream->is_stopped)
        printf("%" PRIu64 "\n", stream->count);
}

/*
 * A standard stream that is closed is opened so that its use fails. Otherwise a file of a log would get
 * its number, and what is said would be written there.
 */
static void reserve_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(1);
    }
}

int main(int argc, char **argv)
{
    static struct stream stream;
    static async_frame(run_all) frame;
    bide_signal terminate, interrupt;
    int status;
    reserve_standard_streams();
    options_read(&stream.options, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the write reports it */
    stream.messages = calloc(BATCH_MAX, sizeof *stream.messages);
    if (stream.messages == NULL)
        exit_with_error("memory", -ENOMEM);
    if ((status = bide_loop_create(&stream.loop, NULL)) < 0 ||
        (status = bide_signal_listen(&terminate, SIGTERM)) < 0 ||
        (status = bide_signal_listen(&interrupt, SIGINT)) < 0)
        exit_with_error("startup", status);
    stream.started_at = bide_platform.now();
    status = bide_loop_wait(stream.loop, async_run_all(&frame, &stream, &terminate, &interrupt));
    progress_clear();
    block_signals();
    source_close(&stream.source);
    source_close(&stream.other);
    sink_close(&stream.sink);
    bide_signal_destroy(&terminate);
    bide_signal_destroy(&interrupt);
    bide_loop_destroy(stream.loop);
    if (status < 0 && !stream.has_failed && !stream.is_stopped)
        exit_with_error("failed", status);
    if (!stream.has_failed || stream.options.command == COMMAND_COPY)
        print_result(&stream);
    free_all(&stream);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        report_failure(&stream, "standard output", strerror(errno));
    }
    return stream.has_failed ? 1 : stream.is_stopped ? 130 : 0;
}
