/*
 * Opens a file below a directory, as under a restricted root (path.h): the path stays beneath the directory, no
 * matter which links and ".." it contains, or which are created during the lookup.
 *
 * Threads: bide_http_find_file_ uses only its argument, so any thread may call it.
 */
#define _GNU_SOURCE
#include "conditions.h"

#include "bide/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { FIND_FILE_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int find_file_open_below(const bide_http_found_ *found, const char *path)
{
    const bide_http_files *files = found->files;
    unsigned resolve = BIDE_PATH_BENEATH | BIDE_PATH_NO_MAGICLINKS |
                       (files->options.follows_links ? 0 : BIDE_PATH_NO_SYMLINKS);
    int root = bide_http_files_root_(files);
    if (*path == '\0')
        path = ".";
    return found->only_cached ? bide_path_open_cached_(root, path, FIND_FILE_FLAGS, resolve)
                              : bide_path_open_(root, path, FIND_FILE_FLAGS, 0, resolve);
}

static int find_file_open_and_stat(bide_http_found_ *found, const char *path, struct stat *about)
{
    int fd = find_file_open_below(found, path);
    if (fd < 0)
        return fd;
    if (fstat(fd, about) != 0 || (!S_ISREG(about->st_mode) && !S_ISDIR(about->st_mode))) {
        close(fd);
        return -ENOENT;
    }
    return fd;
}

/* Opens a compressed variant of the file that is not older than the file. */
static bool find_file_open_compressed(bide_http_found_ *found, int encoding, const char *suffix)
{
    struct stat about;
    if ((found->accepts & encoding) == 0)
        return false;
    memcpy(found->path + found->path_size, suffix, strlen(suffix) + 1);
    int fd = find_file_open_and_stat(found, found->path, &about);
    found->path[found->path_size] = '\0';
    if (fd == -EAGAIN)
        found->error = -EAGAIN;
    if (fd < 0)
        return false;
    if (!S_ISREG(about.st_mode) || about.st_mtime < found->about.st_mtime) {
        close(fd);
        return false;
    }
    close(found->fd);
    found->fd = fd;
    found->about = about;
    found->encoding = (uint8_t)encoding;
    return true;
}

/* Opens the compressed variant that the client prefers, if there is one. */
static void find_file_select_variant(bide_http_found_ *found)
{
    bool gzip_first = (found->accepts & HTTP_GZIP_FIRST) != 0;
    if (!find_file_open_compressed(found, gzip_first ? HTTP_GZIP : HTTP_BROTLI,
                                   gzip_first ? ".gz" : ".br") &&
        found->error == 0)
        (void)find_file_open_compressed(found, gzip_first ? HTTP_BROTLI : HTTP_GZIP,
                                        gzip_first ? ".br" : ".gz");
}

void bide_http_find_file_(void *argument)
{
    bide_http_found_ *found = argument;
    size_t before = found->path_size;
    found->encoding = HTTP_IDENTITY;
    found->is_directory = false;
    found->error = 0;
    found->fd = find_file_open_and_stat(found, found->path, &found->about);
    if (found->fd >= 0 && S_ISDIR(found->about.st_mode)) {
        bool has_slash = before == 0 || found->path[before - 1] == '/';
        size_t size = strlen(found->files->options.index);
        found->is_directory = true;
        if (has_slash && before + size < BIDE_HTTP_PATH_SIZE) {
            struct stat about;
            memcpy(found->path + before, found->files->options.index, size + 1);
            int fd = find_file_open_and_stat(found, found->path, &about);
            if (fd >= 0 && S_ISREG(about.st_mode)) {
                close(found->fd);
                found->fd = fd;
                found->about = about;
                found->is_directory = false;
                found->path_size = before + size;
            } else {
                if (fd >= 0)
                    close(fd);
                found->path[before] = '\0';
                found->error = fd == -EAGAIN ? -EAGAIN : 0;
            }
        }
    }
    if (found->fd >= 0 && found->error == 0 && !found->is_directory)
        find_file_select_variant(found);
    if (found->fd < 0)
        found->error = found->fd;
    if (found->error != 0 && found->fd >= 0) {
        close(found->fd);
        found->fd = -1;
    }
    if (found->error != 0) { /* the caller may look it up again */
        found->path_size = before;
        found->path[before] = '\0';
    }
}
