/*
 * Opening a directory: it is signed or empty; it is locked; the end of the newest segment is looked
 * for. Nothing is changed before the lock is held and the signature is read.
 *
 * 1. A directory is signed after its entry in the one above was synced. So what is signed is found.
 * 2. Opening syncs its own writes before the log is used. An earlier process may have failed to sync
 *    its writes. A sync alone would succeed now, because the system believes that the disk has them.
 *    So the signature is always written again, and the newest segment and the groups are, unless the
 *    log was closed in order. Other segments were synced before they got a successor.
 * 3. Bytes that are no record are a tear, with all bytes behind them, because a loss of power leaves
 *    unsynced pages in any order. If a record behind them says that the message was synced, they are
 *    damage.
 * 4. Groups that are ahead of the log are cut in the file before the log is used. The numbers that
 *    they were done with are given again.
 */
#define _GNU_SOURCE
#include "file.h"

#include "../system/portable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_FILE_FLAGS = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, LOG_FILE_TORN_MAX = 1000 };

void bide_log_segment_name_(uint64_t base, char name[LOG_FILE_NAME])
{
    snprintf(name, LOG_FILE_NAME, "%020" PRIu64 ".log", base);
}

/* The base of a segment of that name, or 0: it is none. */
static uint64_t log_segment_base(const char *name)
{
    char again[LOG_FILE_NAME];
    uint64_t base = strtoull(name, NULL, 10);
    bide_log_segment_name_(base, again);
    return strcmp(name, again) == 0 ? base : 0;
}

static int log_file_problem(char *problem, const char *path, const char *name, int status,
                            const char *why)
{
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "file:%.60s: %.40s: %s", path, name,
             why != NULL ? why : strerror(-status));
    return status;
}

/* Opens a regular file of the directory; *size is its size. */
static int log_file_open_regular(const struct log_file *file, const char *name, int flags,
                                 uint64_t *size)
{
    struct stat about;
    int descriptor = openat(file->directory, name, flags | LOG_FILE_FLAGS, 0600);
    if (descriptor < 0)
        return -errno;
    int status = fstat(descriptor, &about) < 0 ? -errno : S_ISREG(about.st_mode) ? 0 : -EINVAL;
    if (status < 0) {
        close(descriptor);
        return status;
    }
    *size = (uint64_t)about.st_size;
    return descriptor;
}

int bide_log_file_sync_directory_(struct log_file *file)
{
    if (!file->directory_is_unsynced && portable_sync(file->directory, false) < 0 &&
        errno != EINVAL) {
        file->failed = -errno;
        file->directory_is_unsynced = true;
    }
    return file->directory_is_unsynced ? file->failed : 0;
}

/*
 * Removes what was being made by a process that ended, or by a call that failed and could not remove
 * it: it has up to `max` bytes, and begins as the log's files do, or with zeros.
 */
static int log_file_discard(const struct log_file *file, const char *fresh, uint64_t max)
{
    uint8_t bytes[8] = {0}, header[LOG_FILE_HEADER];
    uint64_t size;
    int descriptor = log_file_open_regular(file, fresh, O_RDONLY, &size);
    if (descriptor < 0)
        return descriptor == -ENOENT ? 0 : descriptor;
    size_t count = size < sizeof bytes ? (size_t)size : sizeof bytes;
    int whole = bide_log_read_all_(descriptor, bytes, count, 0);
    close(descriptor);
    if (whole <= 0)
        return whole < 0 ? whole : -EIO;
    bide_log_header_write_(header, LOG_FILE_SEGMENT, 0, 0);
    bool is_zero = true;
    for (size_t i = 0; i < count; i++)
        is_zero = is_zero && bytes[i] == 0;
    if (size > max || (!is_zero && memcmp(bytes, header, count) != 0))
        return -EEXIST;
    return unlinkat(file->directory, fresh, 0) < 0 ? -errno : 0;
}

int bide_log_file_make_(struct log_file *file, const char *name, const char *fresh,
                        const void *bytes, size_t size)
{
    uint64_t empty;
    int descriptor = log_file_open_regular(file, fresh, O_RDWR | O_CREAT | O_EXCL, &empty);
    uint64_t max = strcmp(fresh, "segment.new") == 0 ? size : UINT64_MAX;
    if (descriptor == -EEXIST && log_file_discard(file, fresh, max) == 0)
        descriptor = log_file_open_regular(file, fresh, O_RDWR | O_CREAT | O_EXCL, &empty);
    if (descriptor < 0)
        return descriptor;
    int status = bide_log_write_all_(descriptor, bytes, size, 0);
    if (status == 0 && portable_sync(descriptor, true) < 0)
        status = -errno;
    bool is_renamed = false;
    if (status == 0 && renameat(file->directory, fresh, file->directory, name) < 0)
        status = -errno;
    else if (status == 0)
        is_renamed = true;
    if (status == 0)
        status = bide_log_file_sync_directory_(file);
    if (status == 0)
        return descriptor;
    if (!is_renamed)
        (void)unlinkat(file->directory, fresh, 0); /* it was made above */
    close(descriptor);
    return status;
}

/* Room for one more segment. */
static int log_file_grow(struct log_file *file)
{
    if (file->segment_count < file->segment_capacity)
        return 0;
    size_t capacity = file->segment_capacity * 2 + 16;
    void *grown = realloc(file->segments, capacity * sizeof file->segments[0]);
    if (grown == NULL)
        return -ENOMEM;
    file->segments = grown;
    file->segment_capacity = capacity;
    return 0;
}

int bide_log_file_add_segment_(struct log_file *file, uint64_t base)
{
    char name[LOG_FILE_NAME];
    uint8_t header[LOG_FILE_HEADER];
    uint64_t size;
    bide_log_segment_name_(base, name);
    bide_log_header_write_(header, LOG_FILE_SEGMENT, file->id, base);
    pthread_mutex_lock(&file->io);
    int status = log_file_grow(file);
    pthread_mutex_unlock(&file->io);
    int descriptor = status < 0 ? status : log_file_open_regular(file, name, O_RDWR, &size);
    if (descriptor == -ENOENT) {
        descriptor = bide_log_file_make_(file, name, "segment.new", header, sizeof header);
    } else if (descriptor >= 0) {
        close(descriptor);
        descriptor = -EEXIST;
    }
    if (descriptor < 0)
        return descriptor;
    pthread_mutex_lock(&file->io);
    file->segments[file->segment_count++] =
        (struct log_file_segment){base, LOG_FILE_HEADER, UINT64_MAX, 0};
    pthread_mutex_unlock(&file->io);
    if (file->newest >= 0)
        close(file->newest);
    file->newest = descriptor;
    return 0;
}

/* ---- The directory ---- */

static int log_segment_compare(const void *a, const void *b)
{
    uint64_t left = ((const struct log_file_segment *)a)->base;
    uint64_t right = ((const struct log_file_segment *)b)->base;
    return left < right ? -1 : left > right;
}

/* Finds the segments; *others is the number of other entries. */
static int log_file_list(struct log_file *file, size_t *others)
{
    int descriptor = openat(file->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    int status = 0;
    *others = 0;
    file->segment_count = 0;
    if (directory == NULL) {
        status = -errno;
        if (descriptor >= 0)
            close(descriptor);
        return status;
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            status = -errno;
            break;
        }
        uint64_t base = log_segment_base(entry->d_name);
        if (base == 0) {
            *others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
            continue;
        }
        status = log_file_grow(file);
        if (status < 0)
            break;
        file->segments[file->segment_count++] = (struct log_file_segment){base, 0, UINT64_MAX, 0};
    }
    closedir(directory);
    if (status == 0 && file->segment_count != 0)
        qsort(file->segments, file->segment_count, sizeof file->segments[0], log_segment_compare);
    return status;
}

/* Syncs the directory above, which the log's may be new in. */
static int log_file_sync_parent(const struct log_file *file)
{
    int parent = openat(file->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 && errno == EACCES) /* it may be entered, but not read */
        return portable_sync_file_system(file->directory) < 0 ? -errno : 0;
    if (parent < 0)
        return -errno;
    int status = portable_sync(parent, false) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
    close(parent);
    return status;
}

/* Draws the log's number, for a signature. */
static int log_file_sign(struct log_file *file, uint8_t header[LOG_FILE_HEADER])
{
    if (portable_random(&file->id, sizeof file->id) != 0)
        return -EIO;
    bide_log_header_write_(header, LOG_FILE_LOG, file->id, 0);
    return log_file_sync_parent(file); /* 1 */
}

/* True if a process that ended while it wrote a signature may have left these bytes. */
static bool log_signature_is_begun(const uint8_t *bytes, size_t size)
{
    uint8_t header[LOG_FILE_HEADER];
    bool is_zero = true, begins = size < LOG_FILE_HEADER;
    bide_log_header_write_(header, LOG_FILE_LOG, 0, 0);
    for (size_t i = 0; i < size; i++) {
        bool is_drawn = (i >= 16 && i < 24) || i >= 60; /* the log's number, and the CRC */
        is_zero = is_zero && bytes[i] == 0;
        begins = begins && (is_drawn || bytes[i] == header[i]);
    }
    return is_zero || begins;
}

/* Writes the signature (again: 2), syncs it and the directory, and notes that the log is in use. */
static int log_file_begin_use(struct log_file *file, const uint8_t header[LOG_FILE_HEADER])
{
    static const uint8_t in_use = 1;
    int status = bide_log_write_all_(file->lock, header, LOG_FILE_HEADER, 0);
    if (status == 0 && portable_sync(file->lock, true) < 0)
        status = -errno;
    if (status == 0)
        status = bide_log_file_sync_directory_(file);
    if (status == 0 && file->is_clean) /* it need not be synced: it is about the system's cache */
        status = bide_log_write_all_(file->lock, &in_use, 1, LOG_FILE_HEADER);
    return status;
}

/* Locks the directory, and reads its signature, or signs it if it is empty and may be. */
static int log_file_lock(struct log_file *file, char *problem, const char *path)
{
    static const char foreign[] = "it is not a message log, and is left as it is";
    uint8_t header[LOG_FILE_HEADER];
    uint64_t size, base;
    size_t others, count;
    int status;
    file->lock = log_file_open_regular(file, "bide-log", O_RDWR, &size);
    if (file->lock == -ENOENT && file->must_exist)
        return log_file_problem(problem, path, ".", -ENOENT, "there is no log");
    if (file->lock == -ENOENT) {
        status = log_file_list(file, &others);
        if (status < 0)
            return log_file_problem(problem, path, ".", status, NULL);
        if (others + file->segment_count != 0)
            return log_file_problem(problem, path, ".", -EEXIST, foreign);
        file->lock = log_file_open_regular(file, "bide-log", O_RDWR | O_CREAT | O_EXCL, &size);
        if (file->lock == -EEXIST)
            file->lock = -EBUSY;
    }
    if (file->lock < 0)
        return log_file_problem(problem, path, "bide-log", file->lock,
                                file->lock == -EINVAL || file->lock == -ELOOP ? foreign : NULL);
    if (flock(file->lock, LOCK_EX | LOCK_NB) < 0)
        return log_file_problem(problem, path, "bide-log", errno == EWOULDBLOCK ? -EBUSY : -errno,
                                errno == EWOULDBLOCK ? "another process has the log open" : NULL);
    status = log_file_list(file, &others);
    off_t length = lseek(file->lock, 0, SEEK_END);
    if (status == 0 && length < 0)
        status = -errno;
    count = length < LOG_FILE_HEADER ? (size_t)length : LOG_FILE_HEADER;
    int whole = status < 0 ? status : bide_log_read_all_(file->lock, header, count, 0);
    if (whole <= 0)
        return log_file_problem(problem, path, "bide-log", whole < 0 ? whole : -EIO, NULL);
    file->is_clean = length <= LOG_FILE_HEADER;
    if (others == 1 && file->segment_count == 0 && file->is_clean &&
        log_signature_is_begun(header, count))
        status = log_file_sign(file, header);
    else
        status = count < LOG_FILE_HEADER
                     ? -EBADMSG
                     : bide_log_header_read_(header, LOG_FILE_LOG, &file->id, &base);
    if (status == 0)
        status = log_file_begin_use(file, header);
    if (status == -EPROTONOSUPPORT)
        return log_file_problem(problem, path, "bide-log", status, "a version that is not known");
    return status < 0 ? log_file_problem(problem, path, "bide-log", status,
                                         status == -EBADMSG ? foreign : NULL)
                      : 0;
}

/* ---- Records ---- */

/* Reads a segment up to the first that is no record, which is at *end; *count records. */
static int log_segment_scan(struct log_file *file, const struct log_file_segment *segment,
                            uint64_t *count, uint64_t *end)
{
    char name[LOG_FILE_NAME];
    uint64_t size;
    struct log_file_record record;
    struct log_file_reader *reader = bide_log_reader_create_(file, -1);
    *count = 0;
    *end = LOG_FILE_HEADER;
    if (reader == NULL)
        return -ENOMEM;
    bide_log_segment_name_(segment->base, name);
    int status = log_file_open_regular(file, name, O_RDONLY, &size);
    reader->descriptor = status;
    if (status >= 0) {
        for (;;) {
            status = bide_log_record_read_(reader, *end, segment->base + *count, &record);
            if (status == 1)
                status = bide_log_record_load_(reader, *end, &record, size, NULL);
            if (status <= 0)
                break;
            if (file->state.last_time < record.time)
                file->state.last_time = record.time;
            ++*count;
            *end += LOG_FILE_RECORD + bide_log_record_body_(&record);
        }
        close(reader->descriptor);
    }
    free(reader);
    return status;
}

/* Checks a segment's header, and reads its size and first time. */
static int log_segment_look(struct log_file *file, struct log_file_segment *segment)
{
    char name[LOG_FILE_NAME];
    uint8_t bytes[LOG_FILE_HEADER + LOG_FILE_RECORD];
    uint64_t id = 0, base = 0;
    bide_log_segment_name_(segment->base, name);
    int descriptor = log_file_open_regular(file, name, O_RDONLY, &segment->size);
    if (descriptor < 0)
        return descriptor;
    int status = bide_log_read_all_(descriptor, bytes, LOG_FILE_HEADER, 0);
    status = status == 1   ? bide_log_header_read_(bytes, LOG_FILE_SEGMENT, &id, &base)
             : status == 0 ? -EBADMSG
                           : status;
    if (status == 0 && (id != file->id || base != segment->base))
        status = -EBADMSG;
    uint8_t *first = bytes + LOG_FILE_HEADER;
    int whole =
        status < 0 ? 0 : bide_log_read_all_(descriptor, first, LOG_FILE_RECORD, LOG_FILE_HEADER);
    if (whole == 1 && bide_log_record_is_of_(first, file->id))
        segment->first_time = bide_log_get_(first + 16, 8);
    else if (whole < 0)
        status = whole;
    close(descriptor);
    return status;
}

/*
 * 1: the last record of a segment is that of `number`, and segment->last_time is set; 0: it is not;
 * or a negative errno.
 */
static int log_segment_ends_with(const struct log_file *file, struct log_file_segment *segment,
                                 uint64_t number)
{
    char name[LOG_FILE_NAME];
    uint64_t size = 0;
    struct log_file_record record;
    uint8_t wanted[8]; /* a number as a record has it */
    const uint8_t *at;
    struct log_file_reader *reader = bide_log_reader_create_(file, -1);
    if (reader == NULL)
        return -ENOMEM;
    bide_log_put_(wanted, number, sizeof wanted);
    bide_log_segment_name_(segment->base, name);
    reader->descriptor = log_file_open_regular(file, name, O_RDONLY, &size);
    int status = reader->descriptor < 0 ? reader->descriptor : 0;
    uint64_t offset = size < LOG_FILE_RECORD ? 0 : size - LOG_FILE_RECORD + 1;
    while (status == 0 && offset-- > LOG_FILE_HEADER) {
        uint64_t end = offset + LOG_FILE_RECORD;
        if (reader->count == 0 || offset < reader->offset) /* the bytes up to there */
            status = bide_log_reader_get_(
                reader, end > sizeof reader->bytes ? end - sizeof reader->bytes : 0,
                LOG_FILE_RECORD, &at);
        else
            status = 1;
        if (status == 1)
            status = bide_log_reader_get_(reader, offset, LOG_FILE_RECORD, &at);
        if (status != 1) {
            status = status == 0 ? -EIO : status;
            break;
        }
        status = 0;
        if (memcmp(at + 8, wanted, sizeof wanted) == 0)
            status = bide_log_record_read_(reader, offset, number, &record);
        if (status == 1 && end + bide_log_record_body_(&record) != size)
            status = 0;
        if (status == 1)
            segment->last_time = record.time;
    }
    if (reader->descriptor >= 0)
        close(reader->descriptor);
    free(reader);
    return status;
}

/*
 * 1: a whole record behind `from` says that the message `number` was synced; 0: none does; or a
 * negative errno.
 */
static int log_segment_was_synced(const struct log_file *file, uint64_t from, uint64_t size,
                                  uint64_t number)
{
    struct log_file_record record;
    const uint8_t *at;
    int status = 0;
    struct log_file_reader *reader = bide_log_reader_create_(file, file->newest);
    if (reader == NULL)
        return -ENOMEM;
    for (uint64_t offset = from; status == 0 && offset + LOG_FILE_RECORD <= size; offset++) {
        status = bide_log_reader_get_(reader, offset, LOG_FILE_RECORD, &at);
        if (status != 1) {
            status = status == 0 ? -EIO : status;
            break;
        }
        status = 0;
        uint64_t greater = bide_log_get_(at + 8, 8), unsynced = bide_log_get_(at + 36, 4);
        if (unsynced != 0 && greater > number && greater - number <= size / LOG_FILE_RECORD &&
            unsynced <= greater - number)
            status = bide_log_record_read_(reader, offset, greater, &record);
        if (status == 1)
            status = bide_log_record_load_(reader, offset, &record, size, NULL);
    }
    free(reader);
    return status;
}

/* Copies the bytes from `from` to `size` to another file, or to the same one. */
static int log_file_copy(int descriptor, uint64_t from, uint64_t size, int to, uint64_t at)
{
    static const size_t chunk = 64 * 1024;
    uint8_t *bytes = malloc(chunk);
    int status = bytes == NULL ? -ENOMEM : 0;
    while (status == 0 && from < size) {
        size_t count = size - from < chunk ? (size_t)(size - from) : chunk;
        status = bide_log_read_all_(descriptor, bytes, count, from);
        status =
            status == 1 ? bide_log_write_all_(to, bytes, count, at) : (status == 0 ? -EIO : status);
        from += count;
        at += count;
    }
    free(bytes);
    return status;
}

/* Copies the bytes from `from` on to a file beside, synced. */
static int log_file_copy_rest(struct log_file *file, int descriptor, uint64_t from, uint64_t size,
                              const char *kept)
{
    uint64_t none;
    int to = log_file_open_regular(file, kept, O_WRONLY | O_CREAT | O_EXCL, &none);
    if (to < 0)
        return to;
    int status = log_file_copy(descriptor, from, size, to, 0);
    if (status == 0 && portable_sync(to, true) < 0)
        status = -errno;
    if (status == 0)
        status = bide_log_file_sync_directory_(file);
    close(to);
    if (status < 0)
        (void)unlinkat(file->directory, kept,
                       0); /* it was made above, and the bytes are still there */
    return status;
}

/* Keeps beside what follows the last record of a file, and cuts it off. */
static int log_file_keep_rest(struct log_file *file, const char *name, int descriptor,
                              uint64_t from, uint64_t size, char *problem, const char *path)
{
    char kept[3 * LOG_FILE_NAME];
    int status = -EEXIST;
    for (int n = 0; n < LOG_FILE_TORN_MAX && status == -EEXIST; n++) {
        snprintf(kept, sizeof kept, "torn-%s-%" PRIu64 ".%d", name, from, n);
        status = log_file_copy_rest(file, descriptor, from, size, kept);
    }
    if (status == 0 &&
        (ftruncate(descriptor, (off_t)from) < 0 || portable_sync(descriptor, true) < 0))
        status = -errno;
    if (status < 0)
        return log_file_problem(problem, path, name, status, NULL);
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "file:%.40s: %" PRIu64 " bytes were torn: %.80s", path,
             size - from, kept);
    return 0;
}

/* Checks the segments' headers, and that they follow each other. */
static int log_file_look(struct log_file *file, char *problem, const char *path)
{
    char name[LOG_FILE_NAME];
    for (size_t i = 0; i < file->segment_count; i++) {
        int status = log_segment_look(file, &file->segments[i]);
        bide_log_segment_name_(file->segments[i].base, name);
        if (status < 0)
            return log_file_problem(problem, path, name, status,
                                    status == -EBADMSG ? "it is no segment of this log, and is left"
                                                         " as it is"
                                                       : NULL);
    }
    for (size_t i = 0; i + 1 < file->segment_count; i++) {
        int status =
            log_segment_ends_with(file, &file->segments[i], file->segments[i + 1].base - 1);
        bide_log_segment_name_(file->segments[i].base, name);
        if (status == 0)
            return log_file_problem(problem, path, name, -EBADMSG,
                                    "it does not end where the next segment begins");
        if (status < 0)
            return log_file_problem(problem, path, name, status, NULL);
    }
    return 0;
}

/* Cuts off what follows the last record, if it is torn: 3. */
static int log_file_cut_newest(struct log_file *file, const char *name, uint64_t end, uint64_t size,
                               uint64_t number, char *problem, const char *path)
{
    int status = log_segment_was_synced(file, end, size, number);
    if (status < 0)
        return log_file_problem(problem, path, name, status, NULL);
    if (status == 0)
        return log_file_keep_rest(file, name, file->newest, end, size, problem, path);
    snprintf(problem, BIDE_LOG_PROBLEM_TEXT,
             "file:%.40s: %.40s: damaged at byte %" PRIu64 ", which was synced", path, name, end);
    return -EBADMSG;
}

static int log_file_recover_segments(struct log_file *file, char *problem, const char *path)
{
    struct log_state *state = &file->state;
    char name[LOG_FILE_NAME];
    uint64_t count, end, size;
    int status = log_file_look(file, problem, path);
    if (status < 0)
        return status;
    if (file->segment_count == 0) {
        status = bide_log_file_add_segment_(file, 1);
        return status < 0 ? log_file_problem(problem, path, "segment.new", status, NULL) : 0;
    }
    struct log_file_segment *last = &file->segments[file->segment_count - 1];
    bide_log_segment_name_(last->base, name);
    status = log_segment_scan(file, last, &count, &end);
    if (status == 0)
        file->newest = status = log_file_open_regular(file, name, O_RDWR, &size);
    if (status < 0)
        return log_file_problem(problem, path, name, status, NULL);
    if (end != size) {
        status = log_file_cut_newest(file, name, end, size, last->base + count, problem, path);
        if (status < 0)
            return status;
    }
    status = file->is_clean ? 0 : log_file_copy(file->newest, 0, end, file->newest, 0); /* 2 */
    if (status == 0 && portable_sync(file->newest, true) < 0)
        status = -errno;
    if (status < 0)
        return log_file_problem(problem, path, name, status, NULL);
    last->size = end;
    last->last_time = state->last_time;
    if (count == 0) {
        last->first_time = UINT64_MAX;
        if (file->segment_count > 1)
            state->last_time = (last - 1)->last_time;
    }
    file->synced = state->tail = last->base + count - 1;
    state->oldest = file->segments[0].base;
    return 0;
}

/* Writes the groups anew. */
static int log_file_rewrite_groups(struct log_file *file)
{
    size_t size = bide_log_groups_encode_(file, true, NULL);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL)
        return -ENOMEM;
    bide_log_groups_encode_(file, true, bytes);
    int descriptor = bide_log_file_make_(file, "groups", "groups.new", bytes, size);
    free(bytes);
    if (descriptor < 0)
        return descriptor;
    close(file->groups);
    file->groups = descriptor;
    file->groups_size = size;
    return 0;
}

static int log_file_recover_groups(struct log_file *file, char *problem, const char *path)
{
    uint8_t header[LOG_FILE_HEADER];
    uint64_t id = 0, base, end;
    int descriptor = log_file_open_regular(file, "groups", O_RDWR, &file->groups_size);
    if (descriptor == -ENOENT)
        return 0;
    int status =
        descriptor < 0 ? descriptor : bide_log_read_all_(descriptor, header, sizeof header, 0);
    if (status >= 0)
        status =
            status == 0 ? -EBADMSG : bide_log_header_read_(header, LOG_FILE_GROUPS, &id, &base);
    if (status == 0 && id != file->id)
        status = -EBADMSG;
    file->groups = descriptor < 0 ? -1 : descriptor;
    if (status == 0)
        status = bide_log_groups_read_(file, descriptor, &end);
    if (status < 0)
        return log_file_problem(problem, path, "groups", status,
                                status == -EBADMSG ? "it is not of this log, and is left as it is"
                                                   : NULL);
    if (end != file->groups_size)
        status =
            log_file_keep_rest(file, "groups", descriptor, end, file->groups_size, problem, path);
    if (status < 0)
        return status;
    bool is_ahead = false;
    for (struct bide_log_group_ *group = file->state.groups; group != NULL;
         group = group->following)
        is_ahead = bide_log_group_cut_(group, file->state.tail) || is_ahead;
    file->groups_size = end;
    file->groups_live = bide_log_groups_encode_(file, true, NULL);
    if (is_ahead || !file->is_clean) /* 4, 2 */
        status = log_file_rewrite_groups(file);
    else if (portable_sync(descriptor, true) < 0)
        status = -errno;
    return status < 0 ? log_file_problem(problem, path, "groups", status, NULL) : 0;
}

int bide_log_file_recover_(struct log_file *file, char *problem, const char *path)
{
    static const char *const fresh[] = {"segment.new", "groups.new"};
    static const uint64_t max[] = {LOG_FILE_HEADER, UINT64_MAX, 0};
    int status = log_file_lock(file, problem, path);
    for (int i = 0; status == 0 && i < 2; i++) {
        status = log_file_discard(file, fresh[i], max[i]);
        if (status < 0)
            return log_file_problem(problem, path, fresh[i], status,
                                    status == -EEXIST ? "it is not the log's, and is left as it is"
                                                      : NULL);
    }
    if (status == 0)
        status = log_file_recover_segments(file, problem, path);
    if (status == 0)
        status = log_file_recover_groups(file, problem, path);
    return status;
}
