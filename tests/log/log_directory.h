/* A directory of a test's own, for a log of the engine "file". */
#ifndef BIDE_LOG_DIRECTORY_H
#define BIDE_LOG_DIRECTORY_H

#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct log_directory {
    char root[64];
    char path[80]; /* of the log, which makes it */
};

static inline void log_directory_make(struct log_directory *it)
{
    const char *temporary = getenv("TMPDIR");
    if (temporary == NULL || strlen(temporary) > sizeof it->root - 24)
        temporary = "/tmp";
    snprintf(it->root, sizeof it->root, "%s/bide-log-XXXXXX", temporary);
    assert_non_null(mkdtemp(it->root));
    snprintf(it->path, sizeof it->path, "%s/log", it->root);
}

/* Removes the files of a directory, and the directory; it may not be there. */
static inline void log_directory_empty(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
    (void)rmdir(path);
}

static inline void log_directory_remove(const struct log_directory *it)
{
    log_directory_empty(it->path);
    assert_int_equal(rmdir(it->root), 0);
}

#endif
