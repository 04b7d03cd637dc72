/* Partial files of earlier tries or runs, and their rename to the final name, in async C. */
#include "tasks.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_path(char path[MAX_PATH], const struct fetch *fetch, const char *name,
                     const char *suffix)
{
    const char *directory = fetch->options.directory;
    int size = snprintf(path, MAX_PATH, "%s%s%s%s", directory != NULL ? directory : "",
                        directory != NULL ? "/" : "", name, suffix);
    return size < MAX_PATH ? 0 : -ENAMETOOLONG;
}

int paths_init(struct paths *paths, const struct fetch *fetch, const struct transfer *transfer)
{
    int status = make_path(paths->target, fetch, transfer->name, "");
    if (status == 0)
        status = make_path(paths->part, fetch, transfer->name, ".part");
    if (status == 0)
        status = make_path(paths->origin, fetch, transfer->name, ".part.from");
    return status;
}

bool partial_is_own(const struct stat *about)
{
    return S_ISREG(about->st_mode) && about->st_nlink == 1 &&
           (about->st_uid == geteuid() || about->st_uid == 0);
}

bool partial_is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool is_same_time(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

#ifdef __APPLE__
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

bool partial_is_unchanged(const struct stat *one, const struct stat *other)
{
    return partial_is_same(one, other) && one->st_size == other->st_size &&
           is_same_time(one->st_mtim, other->st_mtim) && is_same_time(one->st_ctim, other->st_ctim);
}

/*
 * Returns the line at *at without its newline, and moves *at behind it. Returns NULL if there is no
 * whole line.
 */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (end == NULL)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

/*
 * Adopts the part, whose status is `about`, if `text` shows that it belongs to the transfer's URL.
 */
static void adopt_part(struct worker *worker, struct transfer *transfer, char *text,
                       const struct stat *about)
{
    char *url = next_line(&text), *validator = url != NULL ? next_line(&text) : NULL;
    if (validator == NULL || strcmp(url, transfer->url) != 0 || validator[0] == 0 ||
        strlen(validator) >= sizeof transfer->validator || !S_ISREG(about->st_mode) ||
        about->st_size <= 0)
        return;
    strcpy(transfer->validator, validator);
    transfer->present = transfer->resumed = (uint64_t)about->st_size;
    worker->loaded = *about;
    worker->is_saved = true;
}

async int partial_load(struct worker *worker, struct transfer *transfer)
{
    const struct paths *paths = &worker->paths;
    bide_descriptor file;
    struct stat about;
    bide_descriptor_init_closed(&file);
    defer bide_close(&file);
    int status = await bide_open(&file, paths->origin, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (status < 0)
        return status == -ECANCELED ? status : 0;
    status = await bide_stat(&file, &about);
    if (status == -ECANCELED)
        return status;
    if (status < 0 || !partial_is_own(&about))
        return 0; /* another user could name any file's origin */
    long count = await bide_read_at(&file, worker->buffer, MAX_URL + sizeof transfer->validator, 0);
    if (count < 0)
        return count == -ECANCELED ? (int)count : 0;
    worker->buffer[count] = 0;
    status = await bide_stat_path(paths->part, &about, 0);
    if (status == 0)
        adopt_part(worker, transfer, worker->buffer, &about);
    return status == -ECANCELED ? status : 0;
}

/* A file that one read can transfer is not worth saving. */
static bool is_worth_saving(const struct worker *worker, const struct transfer *transfer)
{
    return transfer->validator[0] != 0 && transfer->size > sizeof worker->buffer;
}

async int partial_save(struct worker *worker, const struct transfer *transfer)
{
    const struct paths *paths = &worker->paths;
    bide_descriptor file;
    bide_descriptor_init_closed(&file);
    defer bide_close(&file);
    worker->is_saved = is_worth_saving(worker, transfer);
    /* A new file, so that nothing is written through a link that another user has put there. */
    int status = await bide_unlink(paths->origin, 0);
    if (status == -ENOENT)
        status = 0;
    if (status < 0 || !worker->is_saved)
        return status;
    try await bide_open(&file, paths->origin, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int size = snprintf(worker->buffer, sizeof worker->buffer, "%s\n%s\n", transfer->url,
                        transfer->validator);
    try await bide_write_at(&file, worker->buffer, (size_t)size, 0);
    return 0;
}

/* Removes the file even if the task is cancelled, then synchronously. */
async int remove_file(const char *path)
{
    int status = await bide_unlink(path, 0);
    return status == -ECANCELED ? unlink(path) : status;
}

async int partial_remove(const struct paths *paths)
{
    await remove_file(paths->origin);
    await remove_file(paths->part);
    return 0;
}

/* Syncs the directory of a path. A directory that cannot be read or synced is not an error. */
async int sync_directory_of(const char *path)
{
    bide_descriptor directory;
    char *copy = strdup(path);
    bide_descriptor_init_closed(&directory);
    defer free(copy);
    defer bide_close(&directory);
    if (copy == NULL)
        return -ENOMEM;
    int status = await bide_open(&directory, dirname(copy), O_RDONLY | O_DIRECTORY, 0);
    if (status == 0)
        status = await bide_sync(&directory, BIDE_SYNC_ALL);
    return status == -EACCES || status == -EINVAL ? 0 : status;
}

async int partial_commit(struct fetch *fetch, struct worker *worker)
{
    const struct paths *paths = &worker->paths;
    if (fetch->options.syncs)
        try await bide_sync(&worker->file, BIDE_SYNC_ALL);
    try await bide_rename(paths->part, paths->target);
    if (fetch->options.syncs)
        try await sync_directory_of(paths->target);
    if (worker->is_saved)
        await remove_file(paths->origin);
    return 0;
}
