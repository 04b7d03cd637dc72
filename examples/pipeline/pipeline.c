/*
 * pipeline: counts the lines, bytes and words of its input, computes its CRC-32, and prints the ten
 * most frequent words.
 *
 * Four coroutines on a thread pool pass records through a ring (stream.h): a reader, two concurrent
 * consumers, and one that comes after both. Passing a record allocates nothing: the coroutines'
 * frames and all waiters are members of one struct.
 *
 * SIGINT and SIGTERM stop the reader; records that have been read are processed to the end as
 * usual.
 */
#define _GNU_SOURCE
#include "checksum.h"
#include "options.h"
#include "progress.h"
#include "reader.h"
#include "stream.h"
#include "words.h"

#include <bide/monitor.h>
#include <bide/spawn.h>
#include <bide/sync_wait.h>
#include <bide/thread_pool.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_BY_SIGNAL = 128, TOP = 10 };

/* One of the concurrent coroutines. */
struct stage {
    bide_context context;
    bide_spawned spawned;
};

static struct pipeline {
    bide_thread_pool *pool;
    bide_blocking *volatile blocking; /* read by the signal handler */
    volatile sig_atomic_t signal;     /* the first one received, or 0 */

    struct stream stream;
    struct reader reader;
    struct words words;
    struct checksum checksum;
    struct progress progress;
    struct stage reading;
    struct stage counting;
    struct stage summing;
    struct stage showing;
} pipeline;

static int report_error(const char *what, int error)
{
    /* (glibc's strerror is thread-safe) */
    fprintf(stderr, "pipeline: %s: %s\n", what, strerror(-error)); // NOLINT(concurrency-mt-unsafe)
    return EXIT_FAILURE;
}

/*
 * Interrupts the current read, or the next one, which ends the input. May be called by a signal
 * handler.
 */
static void stop_reading(void)
{
    if (pipeline.blocking != NULL)
        bide_blocking_interrupt(pipeline.blocking);
}

static void on_signal(int number)
{
    if (pipeline.signal == 0)
        pipeline.signal = number;
    stop_reading();
}

/* Handles each signal once: a second one of the same kind kills the process. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void restore_signals(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

/*
 * Opens the input. Returns a descriptor or a negative errno. Non-blocking, because opening a pipe
 * would wait for a writer without being interruptible; reading waits too, but can be interrupted.
 */
static int open_input(const char *file)
{
    int fd = file != NULL ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                          : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 ? fd : -errno;
}

/* The number of bytes left in the input; 0 if unknown. */
static uint64_t input_size(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    off_t offset = lseek(fd, 0, SEEK_CUR);
    return status.st_size > offset ? (uint64_t)(status.st_size - offset) : 0;
}

static void start_stage(struct stage *stage, const char *name, bide_awaiter *coroutine)
{
    stage->context = (bide_context){
        .scheduler = bide_thread_pool_scheduler(pipeline.pool),
        .name = name,
    };
    bide_spawn(&stage->spawned, &stage->context, coroutine);
}

/* Waits until a stage has finished. Returns 0 or its error. */
static int join_stage(struct stage *stage)
{
    bide_event_waiter wait;
    bide_sync_wait(bide_event_wait(&wait, &stage->spawned.ended));
    return stage->spawned.root.status;
}

/*
 * Runs the four coroutines to completion. Returns 0, or an exit status after reporting an error on
 * stderr.
 */
static int run_stages(int fd, const char *input_name)
{
    struct stream *stream = &pipeline.stream;
    start_stage(&pipeline.reading, "reader",
                reader_run(&pipeline.reader, stream, pipeline.blocking, fd));
    start_stage(&pipeline.counting, "words", words_run(&pipeline.words, stream));
    start_stage(&pipeline.summing, "checksum", checksum_run(&pipeline.checksum, stream));
    start_stage(&pipeline.showing, "progress",
                progress_run(&pipeline.progress, stream, input_size(fd)));

    int error = join_stage(&pipeline.counting);
    if (error < 0)
        stop_reading(); /* the reader may be waiting for input that will not be counted */
    int read_error = join_stage(&pipeline.reading);
    join_stage(&pipeline.summing);
    join_stage(&pipeline.showing);

    if (error < 0)
        return report_error("counting words", error);
    return read_error < 0 ? report_error(input_name, read_error) : EXIT_SUCCESS;
}

static int close_output(void)
{
    bool failed = ferror(stdout) != 0;
    if (fclose(stdout) != 0)
        return report_error("standard output", -errno);
    return failed ? report_error("standard output", -EIO) : EXIT_SUCCESS;
}

static int print_help(void)
{
    options_print_help();
    return close_output();
}

static int print_summary(void)
{
    struct word top[TOP];
    size_t count = word_table_top(&pipeline.words.table, top, TOP);
    printf("lines %" PRIu64 "\n", pipeline.checksum.lines);
    printf("bytes %" PRIu64 "\n", pipeline.checksum.bytes);
    printf("words %" PRIu64 "\n", word_table_total(&pipeline.words.table));
    printf("crc32 %08" PRIx32 "\n", pipeline.checksum.crc);
    if (count != 0)
        puts("most frequent words:");
    for (size_t i = 0; i < count; i++) {
        printf("%7" PRIu64 " ", top[i].count);
        fwrite(top[i].text, 1, top[i].length, stdout);
        putchar('\n');
    }
    return close_output();
}

/* Lets bide-top look at it. */
static int start_monitor(const char *socket)
{
    bide_monitor_options monitor = {.path = strcmp(socket, "auto") != 0 ? socket : NULL};
    return bide_monitor_start(&monitor);
}

static int pipeline_init(const struct options *options)
{
    bide_blocking *blocking = NULL;
    int error = stream_init(&pipeline.stream, options->ring);
    if (error == 0)
        error = word_table_init(&pipeline.words.table);
    if (error == 0)
        error = bide_thread_pool_create(&pipeline.pool, options->threads);
    if (error == 0)
        error = bide_blocking_create(&blocking, 1);
    pipeline.blocking = blocking;
    if (error == 0 && options->monitor != NULL)
        error = start_monitor(options->monitor);
    if (pipeline.signal != 0)
        stop_reading(); /* the signal came before there was a read to interrupt */
    return error;
}

/* Releases everything that pipeline_init has created, also after a failure of it. */
static void pipeline_destroy(void)
{
    (void)bide_monitor_stop(); /* (-EALREADY: there is none) */
    if (pipeline.blocking != NULL)
        bide_blocking_destroy(pipeline.blocking);
    if (pipeline.pool != NULL)
        bide_thread_pool_destroy(pipeline.pool);
    word_table_free(&pipeline.words.table);
    stream_free(&pipeline.stream);
}

int main(int argc, char **argv)
{
    struct options options;
    if (!options_read(&options, argc, argv))
        return EXIT_USAGE;
    if (options.is_help)
        return print_help();

    catch_signals();
    const char *input_name = options.file != NULL ? options.file : "standard input";
    int fd = open_input(options.file);
    if (fd < 0)
        return report_error(input_name, fd);

    int error = pipeline_init(&options);
    int status = error < 0 ? report_error("starting", error) : run_stages(fd, input_name);
    restore_signals();
    if (status == EXIT_SUCCESS)
        status = print_summary();
    pipeline_destroy();
    close(fd);
    if (status == EXIT_SUCCESS && pipeline.signal != 0)
        status = EXIT_BY_SIGNAL + pipeline.signal;
    return status;
}
