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

static void set_directory(char directory[MAX_PLACE])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/')
        (void)snprintf(directory, MAX_PLACE, "%.200s/bide", runtime);
    else
        (void)snprintf(directory, MAX_PLACE, "/tmp/bide-%u", (unsigned)geteuid());
}

static bool is_socket(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISSOCK(about.st_mode);
}

/* Whose process it is; or this user. */
static unsigned owner_of(int process)
{
    char path[64];
    struct stat about;
    (void)snprintf(path, sizeof path, "/proc/%d", process);
    return stat(path, &about) == 0 ? about.st_uid : geteuid();
}

bool places_find(int process, char path[MAX_PLACE])
{
    char directory[MAX_PLACE];
    unsigned owner = owner_of(process);
    set_directory(directory);
    (void)snprintf(path, MAX_PLACE, "%.230s/%d", directory, process);
    if (is_socket(path))
        return true;
    (void)snprintf(path, MAX_PLACE, "/run/user/%u/bide/%d", owner, process);
    if (is_socket(path))
        return true;
    (void)snprintf(path, MAX_PLACE, "/tmp/bide-%u/%d", owner, process);
    return is_socket(path);
}

/* The number that a name is; 0: it is none. */
static int number_of(const char *name)
{
    char *end = "";
    long number = name[0] >= '1' && name[0] <= '9' ? strtol(name, &end, 10) : 0;
    return number > 0 && number <= INT_MAX && *end == '\0' ? (int)number : 0;
}

static int by_number(const void *one, const void *other)
{
    int a = *(const int *)one;
    int b = *(const int *)other;
    return (a > b) - (a < b);
}

size_t places_list(int processes[MAX_PLACES])
{
    char path[MAX_PLACE];
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
    char directory[MAX_PLACE];
    char path[MAX_PLACE];
    set_directory(directory);
    (void)snprintf(path, sizeof path, "%.230s/%d", directory, process);
    if (is_socket(path) && kill(process, 0) != 0 && errno == ESRCH)
        unlink(path);
}
