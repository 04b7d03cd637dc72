/*
 * Walks a directory tree, the children of each directory in parallel. directory_walk DIRECTORY
 * prints the numbers of files and directories, and the bytes in the files. Symbolic links are not
 * followed.
 */
#define _GNU_SOURCE
#include "bide/join.h"
#include "bide/parallel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The totals of a directory tree. */
struct totals {
    uint64_t files, directories, bytes;
    int error; /* the last error, a negative errno */
};

struct names {
    char **each;
    size_t count, capacity;
};

static int add_name(struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity != 0 ? 2 * names->capacity : 8;
        char **each = realloc(names->each, capacity * sizeof each[0]);
        if (each == NULL)
            return -ENOMEM;
        names->each = each;
        names->capacity = capacity;
    }
    names->each[names->count] = strdup(name);
    if (names->each[names->count] == NULL)
        return -ENOMEM;
    names->count++;
    return 0;
}

static void add(void *unused, void *left, const void *right)
{
    struct totals *one = left;
    const struct totals *other = right;
    (void)unused;
    one->files += other->files;
    one->directories += other->directories;
    one->bytes += other->bytes;
    if (other->error != 0)
        one->error = other->error;
}

/* Counts the files and lists the directories. */
static void read_directory(int directory, struct names *names, struct totals *totals)
{
    DIR *stream = fdopendir(directory);
    if (stream == NULL) {
        totals->error = -errno;
        close(directory);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            totals->error = -errno;
        } else if (S_ISDIR(status.st_mode)) {
            int error = add_name(names, entry->d_name);
            if (error != 0)
                totals->error = error;
        } else {
            totals->files++;
            totals->bytes += (uint64_t)status.st_size;
        }
    }
    closedir(stream);
}

struct children {
    const char *path;
    struct names names;
};

static void walk(const char *path, struct totals *totals);

static void walk_children(void *argument, size_t begin, size_t end, void *accumulator)
{
    const struct children *self = argument;
    for (size_t i = begin; i < end; i++) {
        struct totals below = {.directories = 1};
        char *path;
        if (asprintf(&path, "%s/%s", self->path, self->names.each[i]) < 0) {
            below.error = -ENOMEM;
        } else {
            walk(path, &below);
            free(path);
        }
        add(NULL, accumulator, &below);
    }
}

/* Adds the totals of the tree at `path`, with its directories in parallel. */
static void walk(const char *path, struct totals *totals)
{
    static const struct totals nothing = {0, 0, 0, 0};
    static const bide_reduction reduction = {sizeof(struct totals), &nothing, walk_children, add};
    struct children children = {.path = path};
    struct totals below = nothing;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (directory < 0) {
        totals->error = -errno;
        return;
    }
    read_directory(directory, &children.names, totals);
    bide_parallel_reduce(0, children.names.count, 1, &reduction, &children, &below);
    add(NULL, totals, &below);
    for (size_t i = 0; i < children.names.count; i++)
        free(children.names.each[i]);
    free(children.names.each);
}

struct all {
    const char *path;
    struct totals totals;
};

static void walk_all(void *argument)
{
    struct all *self = argument;
    walk(self->path, &self->totals);
}

int main(int argc, char **argv)
{
    bide_thread_pool *pool;
    struct all all = {.path = argc > 1 ? argv[1] : "."};
    if (bide_thread_pool_create(&pool, 0) != 0)
        return 1;
    bide_call_in(pool, walk_all, &all);
    bide_thread_pool_destroy(pool);
    printf("%llu files, %llu directories, %llu bytes\n", (unsigned long long)all.totals.files,
           (unsigned long long)all.totals.directories, (unsigned long long)all.totals.bytes);
    if (all.totals.error != 0)
        fprintf(stderr, "%s: %s\n", all.path, strerror(-all.totals.error));
    return all.totals.error != 0;
}
