/*
 * The engine "file": publishes and changes of groups wait in a batch, which one of them writes for
 * all, on a thread for blocking calls. file.h has the files.
 *
 * 1. One commit runs at a time (state->is_flushing). It alone writes: it takes the batch that
 *    waits, numbers its records, writes them in one call, syncs them if one of its publishes asks
 *    for that, and then advances the tail. So readers see a message after it is as safe as its
 *    publish asked. Each record says up to which message the log was synced before.
 * 2. A write that fails is cut off again, and nothing of it was published. If that fails too, or a
 *    sync does, nobody knows what the disk has: the log publishes no more until it is opened again.
 *    A second sync proves nothing, because the system takes for written what the first has lost. So
 *    `bide-log` is a byte longer from opening to closing, and stays so after such an error and after
 *    a crash. Opening then writes the newest segment and the groups again (file_open.c).
 * 3. A segment is synced before the next one is made, so the newest alone can end in a torn record.
 *    The directory is synced after each segment that is removed, so the others follow each other.
 *    The newest is synced before one is removed, so that what is left is on the disk.
 * 4. Messages that are read are in memory of their own, which their delivery owns (group.h).
 * 5. The threads are of the library, made with the first log that is opened, of this process.
 */
#define _GNU_SOURCE
#include "file.h"

#include "bide/blocking.h"

#include "../coroutine/lock.h"
#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOG_FILE_THREADS = 4,
    LOG_FILE_REMOVALS = 4 /* of segments, at most, before a commit writes, and again afterwards */
};

static bide_atomic(uint32_t) log_files_lock;        /* held while a directory is opened */
static bide_atomic(uint32_t) log_file_threads_lock; /* for a moment */
static struct log_file *log_files;
static bide_blocking *log_file_threads;
static pid_t log_file_process; /* whose threads they are */

static void log_files_take(void)
{
    lock_take(&log_files_lock);
}

static void log_files_release(void)
{
    lock_free(&log_files_lock);
}

/* Across a fork this thread has the locks, so the child finds them free. */
static void log_files_prepare(void)
{
    lock_take(&log_files_lock);
    lock_take(&log_file_threads_lock);
}

static void log_files_after_fork(void)
{
    lock_free(&log_file_threads_lock);
    lock_free(&log_files_lock);
}

__attribute__((constructor)) static void log_files_at_fork(void)
{
    (void)pthread_atfork(log_files_prepare, log_files_after_fork, log_files_after_fork);
}

int bide_log_threads_(bide_blocking **threads)
{
    int status = 0;
    lock_take(&log_file_threads_lock);
    if (log_file_threads == NULL || log_file_process != getpid()) {
        const bide_blocking_options options = {
            .name = "bide-log", .max_threads = LOG_FILE_THREADS, .is_for_good = true};
        log_file_threads = NULL;
        status = bide_blocking_create_with(&log_file_threads, &options);
        log_file_process = getpid();
    }
    *threads = log_file_threads;
    lock_free(&log_file_threads_lock);
    return status;
}

static struct log_file *log_file_of(const bide_log *log)
{
    return bide_container_of(log, struct log_file_handle, log)->file;
}

/* ---- Open and detach ---- */

static void log_file_free(struct log_file *file)
{
    const int descriptors[] = {file->newest, file->groups, file->lock, file->directory};
    if (file->lock >= 0 && file->process == getpid())
        (void)flock(file->lock, LOCK_UN); /* children of fork have the descriptor, and the lock */
    for (int i = 0; i < 4; i++) {
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    }
    bide_log_state_destroy_(&file->state);
    pthread_mutex_destroy(&file->io);
    free(file->segments);
    free(file);
}

static struct log_file *log_file_create(const bide_log *log, int directory)
{
    struct log_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        close(directory);
        return NULL;
    }
    bide_log_state_init_(&file->state, log->window, false);
    pthread_mutex_init(&file->io, NULL);
    file->size = log->size;
    file->segment_size = log->segment;
    file->retain = log->retain;
    file->must_exist = log->must_exist;
    file->keep_for = log->keep_for;
    file->directory = directory;
    file->lock = file->newest = file->groups = -1;
    file->process = getpid();
    return file;
}

/* The log of that directory, which is open already, or a new one. Under the list's lock. */
static int log_file_find(const bide_log *log, const char *path, char *problem,
                         struct log_file **found)
{
    struct stat about;
    if (!log->must_exist && mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 || fstat(directory, &about) < 0) {
        int status = -errno;
        if (directory >= 0)
            close(directory);
        return status;
    }
    struct log_file *file = log_files;
    while (file != NULL && (file->device != about.st_dev || file->inode != about.st_ino ||
                            file->process != getpid()))
        file = file->following;
    if (file != NULL) {
        close(directory);
        *found = file;
        return (log->has_window && log->window != file->state.window) ||
                       (log->has_size && log->size != file->size) ||
                       (log->has_segment && log->segment != file->segment_size) ||
                       (log->has_retain && log->retain != file->retain) ||
                       (log->has_keep_for && log->keep_for != file->keep_for)
                   ? -EEXIST
                   : 0;
    }
    file = log_file_create(log, directory);
    if (file == NULL)
        return -ENOMEM;
    file->device = about.st_dev;
    file->inode = about.st_ino;
    int status = bide_log_file_recover_(file, problem, path);
    if (status < 0) {
        log_file_free(file);
        return status;
    }
    file->following = log_files;
    log_files = file;
    *found = file;
    return 0;
}

static int log_file_open(bide_log *log, const char *name, char *problem)
{
    struct log_file *file = NULL;
    if (strncmp(name, "///", 3) != 0) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "file:%.80s: not file:///DIRECTORY", name);
        return -EINVAL;
    }
    log_files_take();
    int status = log_file_find(log, name + 2, problem, &file);
    if (status == 0)
        file->handles++;
    log_files_release();
    if (status < 0) {
        if (problem[0] == '\0')
            snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "file:%.80s: %s", name,
                     status == -EEXIST                      ? "it is open with other options"
                     : status == -ENOENT && log->must_exist ? "there is no log"
                                                            : strerror(-status));
        return status;
    }
    bide_container_of(log, struct log_file_handle, log)->file = file;
    log->state = &file->state;
    log->window = file->state.window;
    log->size = file->size;
    return 0;
}

static void log_file_commit(bide_log *log);

static void log_file_detach(bide_log *log)
{
    struct log_file *file = log_file_of(log), **at = &log_files;
    log_files_take();
    bool is_last = --file->handles == 0;
    if (is_last) {
        log_file_commit(log); /* groups that were removed, or skipped messages */
        file->is_clean = file->failed == 0 && !file->state.groups_are_removed &&
                         ftruncate(file->lock, LOG_FILE_HEADER) == 0; /* 2 */
        while (*at != file)
            at = &(*at)->following;
        *at = file->following;
        log_file_free(file);
    }
    log_files_release();
}

/* ---- Commit ---- */

static int log_file_encode(bide_log *log, struct bide_log_batch_ *batch,
                           const bide_log_message *messages, uint32_t count)
{
    (void)log;
    size_t size = batch->size;
    for (uint32_t i = 0; i < count; i++) {
        size_t one = LOG_FILE_RECORD + (messages[i].key != NULL ? messages[i].key_size : 0) +
                     bide_log_headers_size_(&messages[i]) + messages[i].size;
        if (one > SIZE_MAX - size)
            return -ENOMEM;
        size += one;
    }
    if (size > batch->capacity) {
        size_t capacity = size > SIZE_MAX / 2 ? size : size * 2;
        uint8_t *grown = realloc(batch->bytes, capacity);
        if (grown == NULL)
            return -ENOMEM;
        batch->bytes = grown;
        batch->capacity = capacity;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *out = batch->bytes + batch->size;
        bide_log_record_write_(out, &messages[i]);
        batch->size += bide_log_record_size_(out);
    }
    batch->count += count;
    return 0;
}

/* True: all messages of the segment are older than the log keeps them. */
static bool log_file_is_old(const struct log_file *file, const struct log_file_segment *segment,
                            uint64_t now)
{
    return file->keep_for != 0 && segment->last_time < now &&
           now - segment->last_time > file->keep_for;
}

/*
 * Removes the oldest segments, while the newer ones are `retain` bytes, or while they are old. The
 * newer ones are synced first, up to the message `written`, which is the newest in the file: a loss
 * of power does not take them too. Each removal takes the disk's time: a commit makes a few.
 */
static void log_file_retain(struct log_file *file, uint64_t now, uint64_t written)
{
    uint64_t total = 0;
    if (file->retain == 0 && file->keep_for == 0)
        return;
    for (size_t i = 0; i < file->segment_count; i++)
        total += file->segments[i].size;
    for (int removed = 0; removed < LOG_FILE_REMOVALS && file->segment_count > 1 &&
                          ((file->retain != 0 && total - file->segments[0].size >= file->retain) ||
                           log_file_is_old(file, &file->segments[0], now));
         removed++) {
        char name[LOG_FILE_NAME];
        bide_log_segment_name_(file->segments[0].base, name);
        if (file->synced < written && portable_sync(file->newest, true) < 0) {
            file->failed = -errno; /* 2 */
            return;
        }
        file->synced = written;
        lock_take(&file->state.lock);
        file->state.oldest = file->segments[1].base; /* a read of what is removed finds out why */
        lock_free(&file->state.lock);
        if (unlinkat(file->directory, name, 0) < 0 && errno != ENOENT)
            return; /* the next commit tries again */
        total -= file->segments[0].size;
        pthread_mutex_lock(&file->io);
        file->segment_count--;
        memmove(file->segments, file->segments + 1, file->segment_count * sizeof file->segments[0]);
        pthread_mutex_unlock(&file->io);
        if (bide_log_file_sync_directory_(file) < 0)
            return; /* 3 */
    }
}

/* Writes the batch's records to the newest segment; what may be there after an error is cut off. */
static int log_file_write(struct log_file *file, struct bide_log_batch_ *batch, uint64_t now)
{
    struct log_file_segment *newest = &file->segments[file->segment_count - 1];
    int status = 0;
    bool is_old = file->keep_for != 0 && newest->first_time < now &&
                  now - newest->first_time > file->keep_for; /* or its messages would stay */
    if (newest->size > LOG_FILE_HEADER &&
        (is_old || newest->size + batch->size > file->segment_size)) {
        if (portable_sync(file->newest, true) < 0) { /* 3 */
            batch->is_uncertain = true;
            return file->failed = -errno;
        }
        file->synced = batch->first - 1;
        status = bide_log_file_add_segment_(file, batch->first);
        if (status < 0) {
            batch->is_uncertain = file->failed != 0;
            return status;
        }
        newest = &file->segments[file->segment_count - 1];
    }
    status = bide_log_write_all_(file->newest, batch->bytes, batch->size, newest->size);
    if (status < 0) {
        /* it is synced, or a loss of power may bring back what was cut off */
        if (ftruncate(file->newest, (off_t)newest->size) < 0 ||
            portable_sync(file->newest, true) < 0) {
            file->failed = status; /* 2 */
            batch->is_uncertain = true;
        }
        return status;
    }
    if (batch->syncs && portable_sync(file->newest, true) < 0) {
        batch->is_uncertain = true;
        return file->failed = -errno;
    }
    if (batch->syncs)
        file->synced = batch->first + batch->count - 1;
    pthread_mutex_lock(&file->io);
    file->hints[0] = (struct log_file_hint){newest->base, batch->first, newest->size};
    newest->size += batch->size;
    if (newest->first_time == UINT64_MAX)
        newest->first_time = now;
    newest->last_time = now;
    pthread_mutex_unlock(&file->io);
    log_file_retain(file, now, batch->first + batch->count - 1);
    return 0;
}

static int log_file_publish(struct log_file *file, struct bide_log_batch_ *batch,
                            uint64_t *last_time)
{
    uint64_t now = bide_log_time_(last_time);
    if (file->failed == 0)
        log_file_retain(file, now, batch->first - 1); /* a disk that is full has room then */
    if (file->failed != 0)
        return file->failed;
    for (size_t at = 0, i = 0; at < batch->size; i++) {
        bide_log_record_number_(batch->bytes + at, file->id, batch->first + i, now, file->synced);
        at += bide_log_record_size_(batch->bytes + at);
    }
    return log_file_write(file, batch, now);
}

/* What is to be stored of the groups. */
struct log_file_change {
    uint8_t *bytes;
    size_t size;
    bool is_whole; /* of all groups, with the file's header */
    int status;
};

/* Under the state's lock. */
static void log_file_collect(struct log_file *file, struct log_file_change *change)
{
    struct log_state *state = &file->state;
    struct bide_log_group_ *group;
    bool any = state->groups_are_removed;
    for (group = state->groups; group != NULL; group = group->following)
        any = any || (group->is_changed && group->name[0] != '\0');
    if (!any)
        return;
    change->is_whole =
        state->groups_are_removed || file->groups < 0 ||
        (file->groups_size > LOG_FILE_COMPACT && file->groups_size / 4 > file->groups_live);
    change->bytes = malloc(bide_log_groups_encode_(file, change->is_whole, NULL));
    if (change->bytes == NULL) {
        change->status = -ENOMEM;
        return;
    }
    change->size = bide_log_groups_encode_(file, change->is_whole, change->bytes);
    for (group = state->groups; group != NULL; group = group->following)
        group->is_changed = false;
    state->groups_are_removed = false;
}

/* Stores it; after an error the next commit writes the whole file anew. */
static int log_file_store_groups(struct log_file *file, const struct log_file_change *change,
                                 bool syncs)
{
    int status = 0;
    if (change->is_whole) {
        if (file->groups >= 0)
            close(file->groups);
        file->groups =
            bide_log_file_make_(file, "groups", "groups.new", change->bytes, change->size);
        if (file->groups < 0) {
            status = file->groups;
            file->groups = -1;
        }
        file->groups_size = file->groups_live = change->size;
        return status;
    }
    status = bide_log_write_all_(file->groups, change->bytes, change->size, file->groups_size);
    if (status == 0 && syncs && portable_sync(file->groups, true) < 0)
        status = -errno;
    if (status == 0) {
        file->groups_size += change->size;
        return 0;
    }
    close(file->groups);
    file->groups = -1;
    return status;
}

static void log_file_commit(bide_log *log)
{
    struct log_file *file = log_file_of(log);
    struct log_state *state = &file->state;
    struct log_file_change change = {0};
    lock_take(&state->lock);
    struct bide_log_batch_ *batch = state->pending;
    state->pending = NULL;
    uint64_t last_time = state->last_time;
    if (batch != NULL) {
        batch->is_taken = true;
        batch->members++;
        batch->first = state->tail + 1;
    }
    log_file_collect(file, &change);
    lock_free(&state->lock);

    int status = batch != NULL && batch->count != 0 ? log_file_publish(file, batch, &last_time) : 0;
    if (change.size != 0)
        change.status = log_file_store_groups(file, &change, batch == NULL || batch->syncs);
    free(change.bytes);

    lock_take(&state->lock);
    if (change.status < 0)
        state->groups_are_removed = true; /* all of them are stored by the next */
    if (batch != NULL) {
        if (status == 0) {
            state->tail += batch->count;
            state->last_time = last_time;
        }
        batch->status = status;
        batch->groups_status = change.status;
        batch->is_done = true;
        bide_log_batch_settle_(state, batch);
        batch = bide_log_batch_leave_(state, batch);
    }
    lock_free(&state->lock);
    bide_log_batch_free_(batch);
}

/* ---- Reading ---- */

/* The segment of a number, and a place in it that is not behind the number. */
static bool log_file_locate(struct log_file *file, uint64_t number,
                            struct log_file_segment *segment, struct log_file_hint *from)
{
    bool found = false;
    pthread_mutex_lock(&file->io);
    for (size_t i = file->segment_count; i-- != 0 && !found;) {
        found = file->segments[i].base <= number;
        *segment = file->segments[i];
    }
    *from = (struct log_file_hint){segment->base, segment->base, LOG_FILE_HEADER};
    for (int i = 0; i < LOG_FILE_HINTS; i++) {
        const struct log_file_hint *hint = &file->hints[i];
        if (hint->base == segment->base && hint->number <= number && hint->number > from->number)
            *from = *hint;
    }
    pthread_mutex_unlock(&file->io);
    return found;
}

static void log_file_remember(struct log_file *file, const struct log_file_hint *at)
{
    pthread_mutex_lock(&file->io);
    file->hints[1 + file->hint_next++ % (LOG_FILE_HINTS - 1)] = *at;
    pthread_mutex_unlock(&file->io);
}

/* Opens the segment in the reader, if it is another one. */
static int log_file_reader_open(const struct log_file *file, struct log_file_reader *reader,
                                uint64_t base, uint64_t *opened)
{
    char name[LOG_FILE_NAME];
    if (*opened == base)
        return 0;
    if (reader->descriptor >= 0)
        close(reader->descriptor);
    bide_log_segment_name_(base, name);
    reader->offset = reader->count = 0;
    *opened = 0;
    reader->descriptor =
        openat(file->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (reader->descriptor < 0)
        return errno == ENOENT ? -ESTALE : -errno;
    *opened = base;
    return 0;
}

/* Reads one message; *at is a place in its segment, and then the one behind it. */
static int log_file_fetch_one(struct log_file_reader *reader,
                              const struct log_file_segment *segment, struct log_file_hint *at,
                              bide_log_message *message)
{
    struct log_file_record record;
    uint8_t *body = NULL;
    int status;
    while ((status = bide_log_record_read_(reader, at->offset, at->number, &record)) == 1 &&
           at->number < message->position.low_) {
        at->number++;
        at->offset += LOG_FILE_RECORD + bide_log_record_body_(&record);
    }
    if (status == 1)
        status = bide_log_record_load_(reader, at->offset, &record, segment->size, &body);
    if (status <= 0)
        return status == 0 ? -EBADMSG : status;
    at->number++;
    at->offset += LOG_FILE_RECORD + bide_log_record_body_(&record);
    message->time = record.time;
    message->key = record.key_size != 0 ? body : NULL;
    message->key_size = record.key_size;
    message->encoded = body + record.key_size;
    message->encoded_size = record.encoded_size;
    message->data = body + record.key_size + record.encoded_size;
    message->size = record.size;
    return 0;
}

static int log_file_fetch(bide_log *log, bide_log_message *messages, uint32_t count,
                          uint32_t *fetched)
{
    struct log_file *file = log_file_of(log);
    struct log_file_reader *reader = bide_log_reader_create_(file, -1);
    struct log_file_hint at = {0, 0, 0}, near;
    struct log_file_segment segment = {0, 0, 0, 0};
    uint64_t opened = 0;
    int status = reader == NULL ? -ENOMEM : 0;
    for (*fetched = 0; status == 0 && *fetched < count; ++*fetched) {
        uint64_t number = messages[*fetched].position.low_;
        if (!log_file_locate(file, number, &segment, &near)) {
            status = -ESTALE;
            break;
        }
        if (at.base != near.base || at.number > number || near.number > at.number)
            at = near;
        status = log_file_reader_open(file, reader, segment.base, &opened);
        if (status == 0)
            status = log_file_fetch_one(reader, &segment, &at, &messages[*fetched]);
        if (status < 0)
            break;
    }
    if (*fetched != 0)
        log_file_remember(file, &at);
    if (reader != NULL && reader->descriptor >= 0)
        close(reader->descriptor);
    free(reader);
    return status;
}

/* The segment with the first message at `time` or later, or the one before it. */
static struct log_file_segment log_file_segment_of_time(struct log_file *file, uint64_t time)
{
    struct log_file_segment segment = {0, 0, 0, 0};
    pthread_mutex_lock(&file->io);
    lock_take(&file->state.lock);
    uint64_t oldest = file->state.oldest; /* those before are being removed */
    lock_free(&file->state.lock);
    for (size_t i = 0; i < file->segment_count; i++) {
        if (file->segments[i].base >= oldest &&
            (segment.base == 0 || file->segments[i].first_time < time))
            segment = file->segments[i];
    }
    pthread_mutex_unlock(&file->io);
    return segment;
}

static int log_file_find_time(bide_log *log, uint64_t time, uint64_t *number)
{
    struct log_file *file = log_file_of(log);
    struct log_file_segment segment = log_file_segment_of_time(file, time);
    struct log_file_record record;
    uint64_t opened = 0, offset = LOG_FILE_HEADER, missing = 0;
    struct log_file_reader *reader = bide_log_reader_create_(file, -1);
    if (reader == NULL)
        return -ENOMEM;
    int status = log_file_reader_open(file, reader, segment.base, &opened);
    while (status == -ESTALE && segment.base != missing) { /* retention may have removed it */
        missing = segment.base;
        segment = log_file_segment_of_time(file, time);
        status = log_file_reader_open(file, reader, segment.base, &opened);
    }
    *number = segment.base;
    while (status == 0 && offset < segment.size) {
        status = bide_log_record_read_(reader, offset, *number, &record);
        status = status == 1 ? 0 : status == 0 ? -EBADMSG : status;
        if (status < 0 || record.time >= time)
            break;
        ++*number;
        offset += LOG_FILE_RECORD + bide_log_record_body_(&record);
    }
    if (reader->descriptor >= 0)
        close(reader->descriptor);
    free(reader);
    return status;
}

const struct log_engine bide_log_file_engine_ = {
    .scheme = "file",
    .levels = 1u << BIDE_LOG_SENT | 1u << BIDE_LOG_STORED | 1u << BIDE_LOG_SYNCED,
    .best = BIDE_LOG_SYNCED,
    .handle_size = sizeof(struct log_file_handle),
    .has_segments = true,
    .has_create = true,
    .open = log_file_open,
    .detach = log_file_detach,
    .encode = log_file_encode,
    .commit = log_file_commit,
    .fetch = log_file_fetch,
    .find_time = log_file_find_time,
};
