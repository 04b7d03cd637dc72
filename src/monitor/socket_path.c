/*
 * The path that the monitor listens at.
 *
 * Any user could have created the directory below /tmp. It is used only if it is a directory, is
 * this user's, and is closed to all others. All below XDG_RUNTIME_DIR is this user's.
 */
#define _GNU_SOURCE
#include "socket_path.h"

#include "../system/portable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MONITOR_BACKLOG = 8 };

/* Creates the directory, or checks an existing one. */
static int socket_path_make_directory(const char *path)
{
    struct stat about;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (lstat(path, &about) != 0)
        return -errno;
    bool is_own = S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 077) == 0;
    return is_own ? 0 : -EPERM;
}

static int socket_path_set_default(bide_listen_path *where)
{
    char directory[sizeof where->path];
    char path[sizeof where->path + 16];
    const char *runtime = portable_getenv("XDG_RUNTIME_DIR");
    int length = runtime != NULL && runtime[0] == '/'
                     ? snprintf(directory, sizeof directory, "%s/bide", runtime)
                     : snprintf(directory, sizeof directory, "/tmp/bide-%u", (unsigned)geteuid());
    if (length < 0 || (size_t)length >= sizeof directory)
        return -ENAMETOOLONG;
    int error = socket_path_make_directory(directory);
    if (error != 0)
        return error;
    snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    return bide_listen_path_init(where, path);
}

static int socket_path_find(bide_listen_path *where, const char *path)
{
    if (path == NULL)
        path = portable_getenv("BIDE_MONITOR");
    return path != NULL && path[0] != '\0' ? bide_listen_path_init(where, path)
                                           : socket_path_set_default(where);
}

int bide_monitor_socket_open_(bide_listen_path *where, const char *path)
{
    int status = socket_path_find(where, path);
    if (status < 0)
        return status; /* (nothing is open) */
    status = bide_listen_path_open(where, 0600, MONITOR_BACKLOG);
    if (status < 0)
        bide_listen_path_remove(where);
    return status;
}
