/* The default paths of monitors: bide/monitor.h. */
#include "places.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_directory(char directory[PATH_SIZE])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/')
        (void)snprintf(directory, PATH_SIZE, "%.200s/bide", runtime);
    else
        (void)snprintf(directory, PATH_SIZE, "/tmp/bide-%u", (unsigned)geteuid());
}

static bool is_socket(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISSOCK(about.st_mode);
}

/* Returns the owner of a process; this user if it is not known. */
static unsigned owner_of(int process)
{
    char path[64];
    struct stat about;
    (void)snprintf(path, sizeof path, "/proc/%d", process);
    return stat(path, &about) == 0 ? about.st_uid : geteuid();
}

bool places_find(int process, char path[PATH_SIZE])
{
    char directory[PATH_SIZE];
    unsigned owner = owner_of(process);
    set_directory(directory);
    (void)snprintf(path, PATH_SIZE, "%.230s/%d", directory, process);
    if (is_socket(path))
        return true;
    (void)snprintf(path, PATH_SIZE, "/run/user/%u/bide/%d", owner, process);
    if (is_socket(path))
        return true;
    (void)snprintf(path, PATH_SIZE, "/tmp/bide-%u/%d", owner, process);
    return is_socket(path);
}

/* Returns the process number that is the name of a socket, or 0. */
static int number_of(const char *name)
{
    char *end = "";
    long number = name[0] >= '1' && name[0] <= '9' ? strtol(name, &end, 10) : 0;
    return number > 0 && number <= INT_MAX && *end == '\0' ? (int)number : 0;
}

bool places_trust(const char *path, unsigned user)
{
    const char *slash = strrchr(path, '/');
    int process = number_of(slash != NULL ? slash + 1 : path);
    if (user == 0 || user == geteuid())
        return true;
    return geteuid() == 0 && (process == 0 || user == owner_of(process));
}

static int by_number(const void *one, const void *other)
{
    int a = *(const int *)one;
    int b = *(const int *)other;
    return (a > b) - (a < b);
}

size_t places_list(int processes[MAX_PLACES])
{
    char path[PATH_SIZE];
    size_t count = 0;
    set_directory(path);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL && count < MAX_PLACES;) {
        int process = number_of(entry->d_name);
        if (process != 0)
            processes[count++] = process;
    }
    closedir(directory);
    qsort(processes, count, sizeof *processes, by_number);
    return count;
}

void places_remove_left_over(int process)
{
    char directory[PATH_SIZE];
    char path[PATH_SIZE];
    set_directory(directory);
    (void)snprintf(path, sizeof path, "%.230s/%d", directory, process);
    if (is_socket(path) && kill(process, 0) != 0 && errno == ESRCH)
        unlink(path);
}
