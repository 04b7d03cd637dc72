/*
 * Directory trees: whoever applies the events in their order to an empty set has what is on the disk, whatever
 * happens there meanwhile, and whatever the kernel drops. Each event is right for the set before it.
 */
#define _GNU_SOURCE
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bide/tree_watch.h>

/* ---- Calls that fail ---- */

static int fail_add; /* an errno; 0: it does not fail */

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    errno = fail_add;
    return fail_add != 0 ? -1 : __real_inotify_add_watch(fd, path, mask);
}

/* ---- The disk ---- */

enum { PATH = 128, ENTRIES = 4000 };

static char root[PATH / 2];

static const char *in_root(const char *path)
{
    static _Thread_local char text[4][2 * PATH];
    static _Thread_local unsigned next;
    char *at = text[next++ % 4];
    snprintf(at, sizeof text[0], "%s/%s", root, path);
    return at;
}

static void make(const char *path)
{
    assert_int_equal(mkdir(in_root(path), 0700), 0);
}

static void put(const char *path, const char *text)
{
    int fd = open(in_root(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Calls `visit` for each entry below a directory, what is in one before itself. (nftw is not instrumented.) */
static void walk(const char *path, void (*visit)(const char *path, bool is_directory))
{
    char below[2 * PATH];
    struct stat about;
    struct dirent *entry;
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= (int)sizeof below || lstat(below, &about) != 0)
            continue;
        if (S_ISDIR(about.st_mode))
            walk(below, visit);
        visit(below, S_ISDIR(about.st_mode));
    }
    closedir(directory);
}

static void remove_entry(const char *path, bool is_directory)
{
    (void)is_directory;
    (void)remove(path);
}

static void remove_all(const char *path)
{
    walk(path, remove_entry);
    (void)remove(path);
}

static void make_root(void)
{
    strcpy(root, "/tmp/bide-tree-XXXXXX");
    assert_non_null(mkdtemp(root));
}

static void remove_root(void)
{
    remove_all(root);
}

/* ---- The set ---- */

typedef struct set {
    struct entry {
        char path[PATH];
        bool is_directory;
    } entries[ENTRIES];
    size_t count;
} set;

static set told, there;

static size_t place_in(const set *s, const char *path)
{
    size_t i = 0;
    while (i < s->count && strcmp(s->entries[i].path, path) != 0)
        i++;
    return i;
}

static bool has(const set *s, const char *path)
{
    return place_in(s, path) < s->count;
}

static void add(set *s, const char *path, bool is_directory)
{
    assert_true(s->count < ENTRIES && strlen(path) < PATH);
    strcpy(s->entries[s->count].path, path);
    s->entries[s->count++].is_directory = is_directory;
}

static bool is_below(const char *path, const char *top)
{
    size_t size = strlen(top);
    return strncmp(path, top, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

static void assert_has_parent(const set *s, const char *path)
{
    char parent[PATH];
    const char *end = strrchr(path, '/');
    if (end == NULL)
        return;
    memcpy(parent, path, (size_t)(end - path));
    parent[end - path] = '\0';
    size_t at = place_in(s, parent);
    assert_true(at < s->count && s->entries[at].is_directory);
}

/* Applies an event, which has to fit. */
static void apply(set *s, const bide_tree_event_operation *event)
{
    switch (event->change) {
    case BIDE_TREE_FOUND:
    case BIDE_TREE_CREATED:
        assert_false(has(s, event->path));
        assert_has_parent(s, event->path);
        add(s, event->path, event->is_directory);
        break;
    case BIDE_TREE_REMOVED:
        assert_true(has(s, event->path));
        for (size_t i = 0; i < s->count;) {
            if (is_below(s->entries[i].path, event->path))
                s->entries[i] = s->entries[--s->count];
            else
                i++;
        }
        break;
    case BIDE_TREE_MODIFIED:
        assert_true(has(s, event->path));
        break;
    case BIDE_TREE_MOVED:
        assert_true(has(s, event->from));
        assert_false(has(s, event->path));
        assert_has_parent(s, event->path);
        for (size_t i = 0; i < s->count; i++) {
            char path[2 * PATH];
            if (!is_below(s->entries[i].path, event->from))
                continue;
            snprintf(path, sizeof path, "%s%s", event->path, s->entries[i].path + strlen(event->from));
            assert_true(strlen(path) < PATH);
            strcpy(s->entries[i].path, path);
        }
        break;
    }
}

static void collect(const char *path, bool is_directory)
{
    add(&there, path + strlen(root) + 1, is_directory);
}

static void assert_is_the_disk(const set *s)
{
    there.count = 0;
    walk(root, collect);
    for (size_t i = 0; i < there.count; i++) {
        size_t at = place_in(s, there.entries[i].path);
        if (at == s->count)
            printf("# not told: %s\n", there.entries[i].path);
        assert_true(at < s->count);
        assert_int_equal(s->entries[at].is_directory, there.entries[i].is_directory);
    }
    for (size_t i = 0; i < s->count; i++) {
        if (!has(&there, s->entries[i].path))
            printf("# told, and not there: %s\n", s->entries[i].path);
    }
    assert_int_equal(s->count, there.count);
}

/* ---- Events, one by one ---- */

typedef struct fixture {
    world *world;
    bide_tree_watcher *tree;
    bide_blocking *blocking;
    bide_tree_event_operation next;
} fixture;

static fixture *begin(void **state, const bide_tree_watcher_options *options)
{
    static fixture f;
    f.world = world_of_the_system(state, "files are the system's");
    assert_int_equal(bide_tree_watcher_create(&f.tree, root, options), 0);
    told.count = 0;
    return &f;
}

static void end(fixture *f)
{
    bide_tree_watcher_destroy(f->tree);
    remove_root();
}

static int take(fixture *f)
{
    int status = world_wait(f->world, bide_tree_watch_next(&f->next, f->tree));
    if (status == 0)
        apply(&told, &f->next);
    return status;
}

/* The next event that is of that path and kind; others of the same path may come before. */
static void expect(fixture *f, bide_tree_change change, const char *path)
{
    assert_int_equal(take(f), 0);
    while (f->next.change == BIDE_TREE_MODIFIED && change != BIDE_TREE_MODIFIED)
        assert_int_equal(take(f), 0);
    assert_string_equal(f->next.path, path);
    assert_int_equal(f->next.change, change);
}

static void what_is_there_and_what_happens_is_told(void **state)
{
    make_root();
    make("a");
    put("a/file", "1");
    fixture *f = begin(state, NULL);
    expect(f, BIDE_TREE_FOUND, "a");
    assert_true(f->next.is_directory);
    expect(f, BIDE_TREE_FOUND, "a/file");
    assert_false(f->next.is_directory);
    put("a/file", "12");
    expect(f, BIDE_TREE_MODIFIED, "a/file");
    make("b"); /* all of it before the watcher has looked */
    make("b/c");
    make("b/c/d");
    put("b/c/d/deep", "1");
    expect(f, BIDE_TREE_CREATED, "b");
    expect(f, BIDE_TREE_CREATED, "b/c");
    expect(f, BIDE_TREE_CREATED, "b/c/d");
    expect(f, BIDE_TREE_CREATED, "b/c/d/deep");
    assert_int_equal(rename(in_root("b/c"), in_root("a/c")), 0);
    expect(f, BIDE_TREE_MOVED, "a/c");
    assert_string_equal(f->next.from, "b/c");
    assert_true(f->next.is_directory);
    put("a/c/d/new", "1"); /* it is watched at its new place */
    expect(f, BIDE_TREE_CREATED, "a/c/d/new");
    put("temporary", "text");
    assert_int_equal(rename(in_root("temporary"), in_root("a/file")), 0);
    while (!(f->next.change == BIDE_TREE_MOVED || (f->next.change == BIDE_TREE_CREATED && strcmp(f->next.path, "a/file") == 0)))
        assert_int_equal(take(f), 0); /* (as a move, or as the creation of a file that was not seen before) */
    assert_int_equal(rmdir(in_root("b")), 0);
    expect(f, BIDE_TREE_REMOVED, "b");
    assert_is_the_disk(&told);
    bide_tree_watcher_stats stats;
    bide_tree_watcher_get_stats(f->tree, &stats);
    assert_int_equal(stats.entries, told.count);
    assert_int_equal(stats.directories, 4);
    assert_int_equal(stats.overflows, 0);
    end(f);
}

static void a_move_out_of_the_tree_is_a_removal(void **state)
{
    char other[] = "/tmp/bide-tree-other-XXXXXX", path[64];
    assert_non_null(mkdtemp(other));
    snprintf(path, sizeof path, "%s/x", other);
    make_root();
    make("a");
    put("a/file", "1");
    fixture *f = begin(state, NULL);
    expect(f, BIDE_TREE_FOUND, "a");
    expect(f, BIDE_TREE_FOUND, "a/file");
    assert_int_equal(rename(in_root("a"), path), 0);
    expect(f, BIDE_TREE_REMOVED, "a");
    assert_int_equal(rename(path, in_root("back")), 0);
    expect(f, BIDE_TREE_CREATED, "back");
    expect(f, BIDE_TREE_CREATED, "back/file");
    put("back/new", "1");
    expect(f, BIDE_TREE_CREATED, "back/new");
    assert_is_the_disk(&told);
    assert_int_equal(rmdir(other), 0);
    end(f);
}

static void the_end_of_the_tree_is_told(void **state)
{
    make_root();
    fixture *f = begin(state, NULL);
    make("a");
    expect(f, BIDE_TREE_FOUND, "a");
    remove_root();
    assert_int_equal(world_wait(f->world, bide_tree_watch_next(&f->next, f->tree)), 0);
    assert_int_equal(f->next.change, BIDE_TREE_REMOVED);
    assert_string_equal(f->next.path, "");
    assert_int_equal(take(f), -EPIPE);
    assert_int_equal(take(f), -EPIPE);
    end(f);
}

static void a_tree_that_is_moved_has_ended(void **state)
{
    make_root();
    fixture *f = begin(state, NULL);
    make("a");
    expect(f, BIDE_TREE_FOUND, "a");
    char other[PATH];
    snprintf(other, sizeof other, "%s-moved", root);
    assert_int_equal(rename(root, other), 0);
    assert_int_equal(world_wait(f->world, bide_tree_watch_next(&f->next, f->tree)), 0);
    assert_int_equal(f->next.change, BIDE_TREE_REMOVED);
    assert_string_equal(f->next.path, "");
    assert_int_equal(take(f), -EPIPE);
    assert_int_equal(rename(other, root), 0);
    end(f);
}

static void a_lack_of_watches_is_reported_and_made_up_for(void **state)
{
    make_root();
    make("a");
    make("a/b");
    fixture *f = begin(state, NULL);
    fail_add = ENOSPC;
    assert_int_equal(take(f), -ENOSPC);
    assert_int_equal(take(f), -ENOSPC);
    fail_add = 0;
    expect(f, BIDE_TREE_FOUND, "a");
    expect(f, BIDE_TREE_FOUND, "a/b");
    make("a/c");
    fail_add = ENOSPC;
    expect(f, BIDE_TREE_CREATED, "a/c");
    int status = take(f);
    assert_int_equal(status, -ENOSPC);
    fail_add = 0;
    put("a/c/file", "1");
    expect(f, BIDE_TREE_CREATED, "a/c/file");
    assert_is_the_disk(&told);
    end(f);
}

static void too_many_entries_are_reported(void **state)
{
    make_root();
    make("a");
    make("b");
    make("c");
    fixture *f = begin(state, &(bide_tree_watcher_options){.max_entries = 2});
    assert_int_equal(take(f), 0);
    assert_int_equal(take(f), 0);
    assert_int_equal(take(f), -EOVERFLOW);
    end(f);
}

static void a_failed_creation_leaves_nothing(void **state)
{
    bide_tree_watcher *tree;
    world_of_the_system(state, "files are the system's");
    int before = count_descriptors();
    assert_int_equal(bide_tree_watcher_create(&tree, "/no/such/directory", NULL), -ENOENT);
    assert_int_equal(bide_tree_watcher_create(&tree, "/etc/passwd", NULL), -ENOTDIR);
    assert_int_equal(count_descriptors(), before);
    bide_tree_watcher_destroy(NULL);
}

struct waiter {
    bide_task task;
    bide_tree_watcher *tree;
    bide_tree_event_operation next;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_try(bide_tree_watch_next(&self->next, self->tree));
    bide_end();
}

static void a_wait_that_is_cut_short_loses_nothing(void **state)
{
    make_root();
    fixture *f = begin(state, NULL);
    bide_with_deadline_operation limited;
    int status;
    assert_int_equal(world_wait(f->world, bide_with_deadline(&limited, world_now(f->world) + 1000000,
                                                             bide_tree_watch_next(&f->next, f->tree))),
                     -ETIMEDOUT);
    make("a");
    expect(f, BIDE_TREE_CREATED, "a");
    put("a/b", "1");
    expect(f, BIDE_TREE_CREATED, "a/b");
    while ((status = world_wait(f->world, bide_with_deadline(&limited, world_now(f->world) + 1000000,
                                                             bide_tree_watch_next(&f->next, f->tree)))) == 0) {
    }
    assert_int_equal(status, -ETIMEDOUT);
    struct waiter waiter = {.tree = f->tree}; /* it waits, and is destroyed */
    bide_start(&waiter.task.frame, &waiter_body, f->world->context);
    bide_resume(&waiter.task.frame);
    bide_destroy(&waiter.task.frame);
    put("c", "1");
    expect(f, BIDE_TREE_CREATED, "c");
    end(f);
}

/* ---- As an ordinary user ---- */

static void a_directory_that_may_not_be_searched_is_empty(void **state)
{
    make_root();
    make("closed");
    put("closed/file", "1");
    assert_int_equal(chmod(in_root("closed"), 0400), 0);
    fixture *f = begin(state, NULL);
    expect(f, BIDE_TREE_FOUND, "closed");
    put("one", "1");
    expect(f, BIDE_TREE_CREATED, "one");
    assert_int_equal(chmod(in_root("closed"), 0700), 0);
    expect(f, BIDE_TREE_CREATED, "closed/file");
    put("closed/more", "1"); /* there is a hint of it, when it cannot be looked at any more */
    assert_int_equal(chmod(in_root("closed"), 0400), 0);
    put("two", "1");
    expect(f, BIDE_TREE_CREATED, "two");
    assert_int_equal(chmod(in_root("closed"), 0700), 0);
    expect(f, BIDE_TREE_CREATED, "closed/more");
    assert_is_the_disk(&told);
    bide_tree_watcher_stats stats;
    bide_tree_watcher_get_stats(f->tree, &stats);
    assert_int_equal(stats.directories, 2);
    end(f);
}

/* Makes a file in a directory while a directory may not be looked into. It is told when that may be. */
static void expect_after(fixture *f, const char *closed, mode_t mode, const char *path)
{
    char name[PATH];
    snprintf(name, sizeof name, "mode-%o", mode);
    put(path, "1");
    put(name, "1");
    assert_int_equal(chmod(in_root(closed), mode), 0);
    bool is_root = closed[0] == '\0';
    if (!is_root)
        expect(f, BIDE_TREE_CREATED, name);
    else {
        bide_with_deadline_operation limited;
        assert_int_equal(
            world_wait(f->world, bide_with_deadline(&limited, world_now(f->world) + 1000000,
                                                    bide_tree_watch_next(&f->next, f->tree))),
            -ETIMEDOUT);
    }
    assert_int_equal(chmod(in_root(closed), 0700), 0);
    while (!has(&told, path) || !has(&told, name))
        assert_int_equal(take(f), 0);
    assert_is_the_disk(&told);
    assert_int_equal(unlink(in_root(name)), 0);
    expect(f, BIDE_TREE_REMOVED, name);
}

static void what_happens_while_a_directory_is_closed_is_told_afterwards(void **state)
{
    make_root();
    make("a");
    make("a/b");
    make("a/b/c");
    fixture *f = begin(state, NULL);
    expect(f, BIDE_TREE_FOUND, "a");
    expect(f, BIDE_TREE_FOUND, "a/b");
    expect(f, BIDE_TREE_FOUND, "a/b/c");
    expect_after(f, "a/b/c", 0000, "a/b/c/1");
    expect_after(f, "a/b/c", 0300, "a/b/c/2");
    expect_after(f, "a/b", 0600, "a/b/c/3");
    expect_after(f, "a", 0600, "a/b/c/4");
    expect_after(f, "", 0600, "a/b/c/5");
    end(f);
}

enum { ORDINARY_USER = 65534, CANNOT = 77 };

/* The child's whole life. The test is a group of its own, so that it has a world of its own. */
static void be_an_ordinary_user(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_directory_that_may_not_be_searched_is_empty),
        world_test(what_happens_while_a_directory_is_closed_is_told_afterwards),
    };
    alarm(60); /* nobody else ends it */
    if (geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(ORDINARY_USER) != 0 || setuid(ORDINARY_USER) != 0))
        _exit(CANNOT);
    struct stat about;
    make_root(); /* one may have the right to search all directories without being root */
    make("closed");
    put("closed/file", "1");
    bool may_search =
        chmod(in_root("closed"), 0400) != 0 || lstat(in_root("closed/file"), &about) == 0;
    (void)chmod(in_root("closed"), 0700);
    remove_root();
    if (may_search)
        _exit(CANNOT);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* it has a report of its own */
    _exit(cmocka_run_group_tests_name("as an ordinary user", tests, NULL, NULL) != 0);
}

static void an_ordinary_user_may_not_look_into_all_directories(void **state)
{
    int status;
    (void)state;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        be_an_ordinary_user();
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        printf("# this process cannot be one of an ordinary user\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* ---- Paths that are too long ---- */

static void remove_below(int directory)
{
    struct dirent *entry;
    DIR *listed = fdopendir(directory);
    assert_non_null(listed);
    while ((entry = readdir(listed)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int below =
            openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            remove_below(below);
        assert_int_equal(unlinkat(directory, entry->d_name, below >= 0 ? AT_REMOVEDIR : 0), 0);
    }
    closedir(listed);
}

/* The next event that is no modification. (The set has no room for such paths.) */
static int take_long(fixture *f)
{
    int status;
    do
        status = world_wait(f->world, bide_tree_watch_next(&f->next, f->tree));
    while (status == 0 && f->next.change == BIDE_TREE_MODIFIED);
    return status;
}

static void expect_long(fixture *f, bide_tree_change change, const char *path)
{
    assert_int_equal(take_long(f), 0);
    assert_int_equal(f->next.change, change);
    assert_string_equal(f->next.path, path);
}

static void name_of(char *name, char letter, size_t size)
{
    memset(name, letter, size);
    name[size] = '\0';
}

static void a_move_that_makes_paths_too_long_is_a_removal_and_a_creation(void **state)
{
    enum { LEVELS = 19, LONG = 200, CHILD = 150 };
    static char path[PATH_MAX];
    char name[LONG + 1], top[LONG + 1], child[CHILD + 1], file[CHILD + 1];
    name_of(name, 'x', LONG);
    name_of(top, 'y', LONG);
    name_of(child, 'c', CHILD);
    name_of(file, 'f', CHILD);
    make_root();
    int above = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(above >= 0);
    assert_int_equal(mkdirat(above, top, 0700), 0);
    assert_int_equal(mkdirat(above, "a", 0700), 0);
    int deep = openat(above, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < LEVELS; i++) {
        assert_int_equal(mkdirat(deep, name, 0700), 0);
        int next = openat(deep, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(deep);
        deep = next;
        assert_true(deep >= 0);
    }
    assert_int_equal(mkdirat(deep, child, 0700), 0); /* 3,971 characters below the root */
    fixture *f = begin(state, NULL);
    for (int i = 0; i < LEVELS + 3; i++)
        assert_int_equal(take_long(f), 0);
    assert_int_equal(f->next.change, BIDE_TREE_FOUND);
    assert_int_equal(strlen(f->next.path), 1 + LEVELS * (LONG + 1) + 1 + CHILD);
    /* What is below it does not fit. */
    int under = openat(above, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(renameat(above, "a", under, "a"), 0);
    expect_long(f, BIDE_TREE_REMOVED, "a");
    size_t size = (size_t)snprintf(path, sizeof path, "%s/a", top);
    expect_long(f, BIDE_TREE_CREATED, path);
    for (int i = 0; i < LEVELS; i++) {
        size += (size_t)snprintf(path + size, sizeof path - size, "/%s", name);
        expect_long(f, BIDE_TREE_CREATED, path);
    }
    assert_int_equal(take_long(f), -ENAMETOOLONG);
    assert_int_equal(take_long(f), -ENAMETOOLONG);
    assert_int_equal(unlinkat(deep, child, AT_REMOVEDIR), 0);
    assert_int_equal(mkdirat(above, file, 0700), 0);
    expect_long(f, BIDE_TREE_CREATED, file);
    /* It does not fit itself. */
    assert_int_equal(renameat(above, file, deep, file), 0);
    expect_long(f, BIDE_TREE_REMOVED, file);
    assert_int_equal(take_long(f), -ENAMETOOLONG);
    assert_int_equal(renameat(deep, file, above, file), 0);
    expect_long(f, BIDE_TREE_CREATED, file);
    bide_tree_watcher_stats stats;
    bide_tree_watcher_get_stats(f->tree, &stats);
    assert_int_equal(stats.entries, LEVELS + 3);
    assert_int_equal(stats.directories, LEVELS + 4);
    close(under);
    close(deep);
    remove_below(above);
    end(f);
}

/* ---- At random ---- */

enum { NAMES = 4, DEPTH = 4 };

static void draw_path(uint64_t *random, char *path)
{
    size_t size = 0;
    unsigned depth = (unsigned)(testing_random(random) % DEPTH) + 1;
    for (unsigned i = 0; i < depth; i++)
        size += (size_t)sprintf(path + size, "%s%c", i != 0 ? "/" : "", (char)('a' + testing_random(random) % NAMES));
}

/* Something that may fail. */
static void do_something(uint64_t *random)
{
    char one[PATH], other[PATH];
    draw_path(random, one);
    draw_path(random, other);
    int fd = -1;
    switch (testing_random(random) % 10) {
    case 0:
    case 1:
    case 2:
        (void)!mkdir(in_root(one), 0700);
        break;
    case 3:
    case 4:
        fd = open(in_root(one), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && testing_random(random) % 2 == 0)
            (void)!write(fd, "x", 1);
        break;
    case 5:
    case 6:
    case 7:
        (void)!rename(in_root(one), in_root(other));
        break;
    case 8:
        (void)!unlink(in_root(one));
        break;
    default:
        if (testing_random(random) % 4 == 0)
            remove_all(in_root(one));
        else
            (void)!rmdir(in_root(one));
    }
    if (fd >= 0)
        close(fd);
}

struct busy {
    uint64_t random;
    unsigned count;
};

static void *be_busy(void *argument)
{
    struct busy *busy = argument;
    for (unsigned i = 0; i < busy->count; i++)
        do_something(&busy->random);
    int fd = open(in_root("done-1"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* Takes events until the sentinel: then all that was done before is told. */
static void take_all(fixture *f)
{
    do
        assert_int_equal(take(f), 0);
    while (!has(&told, "done-1"));
    put("done-2", "");
    while (!has(&told, "done-2"))
        assert_int_equal(take(f), 0);
    assert_is_the_disk(&told);
}

static void a_storm(void **state, bool overflows, bool on_threads)
{
    uint64_t random = testing_seed();
    struct busy busy = {.random = random ^ 0x5555, .count = rounds_of(2000)};
    bide_blocking *blocking = NULL;
    pthread_t thread;
    make_root();
    for (int i = 0; i < 50; i++)
        do_something(&random);
    if (on_threads)
        assert_int_equal(bide_blocking_create(&blocking, 1), 0);
    fixture *f = begin(state, &(bide_tree_watcher_options){.blocking = blocking});
    make("kept");
    make("kept/inner");
    put("kept/inner/file", "");
    put("first", "");
    assert_int_equal(take(f), 0);
    while (!has(&told, "first")) /* it is watched from here on */
        assert_int_equal(take(f), 0);
    if (overflows) {
        for (int i = 0; i < 9000; i++) { /* three events each */
            put("often", "");
            assert_int_equal(unlink(in_root("often")), 0);
        }
        /* what the kernel has no room for */
        make("lost");
        make("lost/inner");
        put("lost/inner/file", "");
        assert_int_equal(rename(in_root("kept/inner"), in_root("lost/moved")), 0);
        assert_int_equal(rmdir(in_root("kept")), 0);
        assert_int_equal(unlink(in_root("first")), 0);
        for (int i = 0; i < 200; i++)
            do_something(&random);
    }
    assert_int_equal(pthread_create(&thread, NULL, be_busy, &busy), 0);
    take_all(f);
    assert_int_equal(pthread_join(thread, NULL), 0);
    bide_tree_watcher_stats stats;
    bide_tree_watcher_get_stats(f->tree, &stats);
    assert_int_equal(stats.entries, told.count);
    if (overflows && stats.overflows == 0)
        printf("# the kernel's queue has not overflowed\n");
    end(f);
    if (blocking != NULL)
        bide_blocking_destroy(blocking);
}

static void a_tree_that_changes_at_random_is_told(void **state)
{
    a_storm(state, false, false);
}

static void a_tree_is_read_on_other_threads(void **state)
{
    a_storm(state, false, true);
}

static void an_overflow_loses_nothing(void **state)
{
    a_storm(state, true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(what_is_there_and_what_happens_is_told),
        world_test(a_move_out_of_the_tree_is_a_removal),
        world_test(the_end_of_the_tree_is_told),
        world_test(a_tree_that_is_moved_has_ended),
        world_test(a_lack_of_watches_is_reported_and_made_up_for),
        world_test(too_many_entries_are_reported),
        world_test(a_failed_creation_leaves_nothing),
        world_test(a_wait_that_is_cut_short_loses_nothing),
        cmocka_unit_test(an_ordinary_user_may_not_look_into_all_directories),
        world_test(a_move_that_makes_paths_too_long_is_a_removal_and_a_creation),
        world_test(a_tree_that_changes_at_random_is_told),
        world_test(a_tree_is_read_on_other_threads),
        world_test(an_overflow_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
