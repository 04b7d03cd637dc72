/* What an earlier try, or run, has left of a file. These files are tiny, and are not waited for. */
#include "fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int path_of(char path[PATH_MOST], const struct fetch *fetch, const char *name,
                   const char *suffix)
{
    const char *folder = fetch->options.folder;
    int size = snprintf(path, PATH_MOST, "%s%s%s%s", folder != NULL ? folder : "",
                        folder != NULL ? "/" : "", name, suffix);
    return size < PATH_MOST ? 0 : -ENAMETOOLONG;
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

/* Reads a line without its end. False: there is none that fits. */
static bool read_line(FILE *file, char *line, size_t room)
{
    if (fgets(line, (int)room, file) == NULL)
        return false;
    size_t size = strcspn(line, "\n");
    bool is_whole = line[size] == '\n';
    line[size] = 0;
    return is_whole;
}

void remains_load(const struct place *place, struct transfer *transfer)
{
    char url[URL_MOST + 1], validator[sizeof transfer->validator + 1];
    struct stat about;
    FILE *file = fopen(place->from, "re");
    if (file == NULL)
        return;
    if (read_line(file, url, sizeof url) && read_line(file, validator, sizeof validator) &&
        strcmp(url, transfer->url) == 0 && strlen(validator) < sizeof transfer->validator &&
        validator[0] != 0 && stat(place->part, &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_size > 0) {
        strcpy(transfer->validator, validator);
        transfer->had = transfer->resumed = (uint64_t)about.st_size;
    }
    fclose(file);
}

int remains_save(const struct place *place, const struct transfer *transfer)
{
    if (transfer->validator[0] == 0)
        return unlink(place->from) == 0 || errno == ENOENT ? 0 : -errno;
    FILE *file = fopen(place->from, "we");
    if (file == NULL)
        return -errno;
    bool is_written = fprintf(file, "%s\n%s\n", transfer->url, transfer->validator) > 0;
    return fclose(file) == 0 && is_written ? 0 : -EIO;
}

void remains_remove(const struct place *place)
{
    unlink(place->from);
    unlink(place->part);
}
