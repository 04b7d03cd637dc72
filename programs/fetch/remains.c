/* What an earlier try, or run, has left of a file; and the file that it becomes. In async C. */
#include "tasks.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int path_of(char path[MAX_PATH], const struct fetch *fetch, const char *name,
                   const char *suffix)
{
    const char *folder = fetch->options.folder;
    int size = snprintf(path, MAX_PATH, "%s%s%s%s", folder != NULL ? folder : "",
                        folder != NULL ? "/" : "", name, suffix);
    return size < MAX_PATH ? 0 : -ENAMETOOLONG;
}

int place_of(struct place *place, const struct fetch *fetch, const struct transfer *transfer)
{
    int status = path_of(place->target, fetch, transfer->name, "");
    if (status == 0)
        status = path_of(place->part, fetch, transfer->name, ".part");
    if (status == 0)
        status = path_of(place->from, fetch, transfer->name, ".part.from");
    return status;
}

/* Takes a line without its end from *at on. NULL: there is none. */
static char *take_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (end == NULL)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

/* `text` says of what the part is the beginning, which has `about`. */
static void take_over(struct working *working, struct transfer *transfer, char *text,
                      const struct stat *about)
{
    char *url = take_line(&text), *validator = url != NULL ? take_line(&text) : NULL;
    if (validator == NULL || strcmp(url, transfer->url) != 0 || validator[0] == 0 ||
        strlen(validator) >= sizeof transfer->validator || !S_ISREG(about->st_mode) ||
        about->st_size <= 0)
        return;
    strcpy(transfer->validator, validator);
    transfer->had = transfer->resumed = (uint64_t)about->st_size;
    working->is_saved = true;
}

async int remains_load(struct working *working, struct transfer *transfer)
{
    const struct place *place = &working->place;
    bide_descriptor file;
    struct stat about;
    bide_descriptor_init_closed(&file);
    defer bide_close(&file);
    int status = await bide_open(&file, place->from, O_RDONLY, 0);
    if (status < 0)
        return status == -ECANCELED ? status : 0;
    long count = await bide_read_at(&file, working->buffer, MAX_URL + sizeof transfer->validator, 0);
    if (count < 0)
        return count == -ECANCELED ? (int)count : 0;
    working->buffer[count] = 0;
    status = await bide_stat_path(place->part, &about, 0);
    if (status == 0)
        take_over(working, transfer, working->buffer, &about);
    return status == -ECANCELED ? status : 0;
}

/* What comes by one read is not worth going on with in another run. */
static bool is_worth_saving(const struct working *working, const struct transfer *transfer)
{
    return transfer->validator[0] != 0 && transfer->size > sizeof working->buffer;
}

async int remains_save(struct working *working, const struct transfer *transfer)
{
    const struct place *place = &working->place;
    bide_descriptor file;
    int status;
    bide_descriptor_init_closed(&file);
    defer bide_close(&file);
    working->is_saved = is_worth_saving(working, transfer);
    if (!working->is_saved) {
        status = await bide_unlink(place->from, 0);
        return status == -ENOENT ? 0 : status;
    }
    status = await bide_open(&file, place->from, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (status < 0)
        return status;
    int size = snprintf(working->buffer, sizeof working->buffer, "%s\n%s\n", transfer->url,
                        transfer->validator);
    long written = await bide_write_at(&file, working->buffer, (size_t)size, 0);
    return written < 0 ? (int)written : 0;
}

/* Also where it is asked to stop: then it is waited for. */
async int remove_file(const char *path)
{
    int status = await bide_unlink(path, 0);
    return status == -ECANCELED ? unlink(path) : status;
}

async int remains_remove(const struct place *place)
{
    await remove_file(place->from);
    await remove_file(place->part);
    return 0;
}

/* A folder that may not be read, or cannot be synced, is left to the system. */
async int sync_folder_of(const char *path)
{
    bide_descriptor folder;
    char *copy = strdup(path);
    bide_descriptor_init_closed(&folder);
    defer free(copy);
    defer bide_close(&folder);
    if (copy == NULL)
        return -ENOMEM;
    int status = await bide_open(&folder, dirname(copy), O_RDONLY | O_DIRECTORY, 0);
    if (status == 0)
        status = await bide_sync(&folder, BIDE_SYNC_ALL);
    return status == -EACCES || status == -EINVAL ? 0 : status;
}

async int remains_become_whole(struct fetch *fetch, struct working *working)
{
    const struct place *place = &working->place;
    int status = 0;
    if (fetch->options.syncs)
        status = await bide_sync(&working->file, BIDE_SYNC_ALL);
    if (status == 0)
        status = await bide_rename(place->part, place->target);
    if (status == 0 && fetch->options.syncs)
        status = await sync_folder_of(place->target);
    if (status == 0 && working->is_saved)
        await remove_file(place->from);
    return status;
}
