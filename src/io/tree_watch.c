/*
 * Directory trees: a record of each entry, brought in step with the disk by hints.
 *
 *     inotify --event: (directory, name)--> hint --lstat, compare--> the record changes --> events
 *
 *     node    an entry of the tree; in the table by its parent and name. A directory has a watch.
 *     todo    directories to be read. Reading one puts those in it on the list, if they are new; all of
 *             them if the whole tree is read anew (`deep`).
 *     limbo   one entry that was found missing, with all below. It is moved if an entry of the same inode
 *             turns up before anything else is added, and otherwise removed.
 *     events  in the order in which they are told. No hint is taken while there is one, so there are
 *             never more than entries that one hint, or one walk over the tree, has changed.
 *
 * The watcher belongs to its loop's thread. While a thread of `blocking` works on it, the loop's thread
 * awaits that in bide_tree_watch_next, and does nothing with it.
 *
 * 1. An event of the kernel only says where to look. What has happened is the difference between the
 *    record and the disk, found by lstat. So it does not matter in which order events are read, whether
 *    equal ones were merged, or that the disk is ahead of them.
 * 2. A directory is watched first and read afterwards, both by one descriptor. So an entry that is not
 *    read came later than the watch, and there is an event of it.
 * 3. A name is looked up in a directory only if what is at the directory's path is that directory, by its
 *    inode. If it is not, the directory was moved or removed, and the directory above has an event of
 *    that, which is behind this one: the record goes, or is moved and read again. So the hint may be
 *    dropped. The same holds for a directory on the list.
 * 4. A directory that was moved, or that the kernel says was made, removed or moved, is read again with
 *    all below it, and is watched again: its inode number may be that of another, newer directory. The kernel has one watch for an inode, however often it is
 *    added, and the new one is added before the old one is removed (file_watch.h). So no event is lost.
 * 5. After an overflow all is read again. Events that were queued before it are hints as any others.
 * 6. Each event is right for the set that its predecessors make. Before an entry is added, limbo is
 *    emptied, unless it is that entry, and so is limbo before another one goes there. So a path that is
 *    added to is free, and the path of limbo is still its path. Each entry of the table has a path: what
 *    would have none where it was moved to is removed, and added as far as it has one.
 * 7. The time stamp of a file may be too coarse to show a second change. So a file whose status changed
 *    less than TREE_WATCH_RACY before it was looked at counts as changed when the tree is read anew.
 * 8. An event stays at the head of the list until the next one is asked for. If a coroutine is destroyed
 *    before it resumes with it, it is told again.
 * 9. A hint is kept, and `needs_scan` set, until the work is done. So nothing is lost if the wait for a
 *    thread is cancelled, or the work fails halfway.
 * 10. A hint of a directory is dropped if that may not be read or searched, or one above it may not.
 *    There is an event when that one's mode is changed: it is read again then, with all below it.
 */
#define _GNU_SOURCE
#include "bide/tree_watch.h"

#include "bide/coroutine.h"

#include "file_watch.h"
#include "operation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TREE_WATCH_BUFFER = 16384,
    TREE_WATCH_ENTRIES = 1000000,
    TREE_WATCH_TABLE_MIN = 64,
    TREE_WATCH_RACY = 1, /* seconds: 7 */
    TREE_WATCH_WANTED = BIDE_FILE_CREATED | BIDE_FILE_REMOVED | BIDE_FILE_MOVED_FROM |
                        BIDE_FILE_MOVED_TO | BIDE_FILE_WRITTEN | BIDE_FILE_ATTRIBUTES
};

typedef struct tree_watch_node tree_watch_node;

struct tree_watch_of_directory {
    bide_file_watch watch;
    tree_watch_node *node;
};

struct tree_watch_node {
    tree_watch_node *parent; /* NULL: the root, or limbo */
    tree_watch_node *next, *previous;
    tree_watch_node *children;
    tree_watch_node *chain; /* of the table */
    tree_watch_node *todo_next, *todo_previous;
    struct tree_watch_of_directory *watch; /* of a directory that was read */
    char *name;
    dev_t device;
    ino_t inode;
    mode_t mode;
    uid_t user;
    gid_t group;
    off_t size;
    struct timespec modified, changed;
    uint64_t seen; /* the reading of its directory in which it was last there */
    bool is_racy;  /* 7 */
    bool is_todo, is_deep;
    bool is_refused; /* it, or a directory below it, could not be looked into: 10 */
};

struct tree_watch_event {
    struct tree_watch_event *next;
    const char *from; /* in `text`, or NULL */
    bide_tree_change change;
    bool is_directory;
    char text[];
};

struct bide_tree_watcher {
    bide_file_watcher watcher;
    bide_blocking *blocking;
    tree_watch_node root;
    char *root_path;
    tree_watch_node **table;
    size_t table_size, entries, max_entries, directories;
    uint64_t overflows, readings;
    tree_watch_node *todo, *todo_last;
    tree_watch_node *limbo;
    char *limbo_path;
    struct tree_watch_event *events, **last_event;
    bool is_reported; /* the first event was told: 8 */
    bool needs_scan, has_begun, is_gone, has_hint;
    int error; /* for good, or 0 */
    int status;
    bide_file_watch *hint_watch; /* NULL: it was removed meanwhile */
    uint32_t hint_changes;
    char hint_name[NAME_MAX + 1];
    char path[PATH_MAX];
    char buffer[TREE_WATCH_BUFFER];
};

/* ---- Paths and events ---- */

/* The path of `name` in a directory, or of the directory itself (NULL). NULL: it is in limbo, or too long. */
static const char *tree_watch_path(bide_tree_watcher *tree, const tree_watch_node *node,
                                   const char *name)
{
    char *at = tree->path + sizeof tree->path - 1;
    *at = '\0';
    for (;;) {
        if (name != NULL) {
            size_t size = strlen(name) + (*at != '\0');
            if ((size_t)(at - tree->path) < size)
                return NULL;
            at -= size;
            if (at[size] != '\0')
                at[size - 1] = '/';
            memcpy(at, name, strlen(name));
        }
        if (node == &tree->root)
            return at;
        if (node == NULL)
            return NULL;
        name = node->name;
        node = node->parent;
    }
}

/* Without memory, an event is lost, and the watcher of no use any more. */
static void tree_watch_emit(bide_tree_watcher *tree, bide_tree_change change, const char *path,
                            const char *from, bool is_directory)
{
    size_t size = strlen(path) + 1, from_size = from != NULL ? strlen(from) + 1 : 0;
    struct tree_watch_event *event = malloc(sizeof *event + size + from_size);
    if (event == NULL) {
        tree->error = -ENOMEM;
        return;
    }
    *event = (struct tree_watch_event){.change = change, .is_directory = is_directory};
    memcpy(event->text, path, size);
    if (from != NULL) {
        memcpy(event->text + size, from, from_size);
        event->from = event->text + size;
    }
    *tree->last_event = event;
    tree->last_event = &event->next;
}

static void tree_watch_drop_event(bide_tree_watcher *tree)
{
    struct tree_watch_event *event = tree->events;
    tree->is_reported = false;
    tree->events = event->next;
    if (tree->events == NULL)
        tree->last_event = &tree->events;
    free(event);
}

/* ---- The table ---- */

static size_t tree_watch_hash(const tree_watch_node *parent, const char *name)
{
    uint64_t hash = (uint64_t)(uintptr_t)parent * UINT64_C(0x9e3779b97f4a7c15);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 29);
}

static tree_watch_node **tree_watch_place_of(bide_tree_watcher *tree, const tree_watch_node *parent,
                                             const char *name)
{
    tree_watch_node **place = &tree->table[tree_watch_hash(parent, name) & (tree->table_size - 1)];
    while (*place != NULL && ((*place)->parent != parent || strcmp((*place)->name, name) != 0))
        place = &(*place)->chain;
    return place;
}

static int tree_watch_grow(bide_tree_watcher *tree)
{
    size_t before = tree->table_size, size = before != 0 ? 2 * before : TREE_WATCH_TABLE_MIN;
    tree_watch_node **old = tree->table, **table = calloc(size, sizeof *table);
    if (table == NULL)
        return -ENOMEM;
    tree->table = table;
    tree->table_size = size;
    for (size_t i = 0; i < before; i++) {
        for (tree_watch_node *node = old[i], *next; node != NULL; node = next) {
            tree_watch_node **place =
                &table[tree_watch_hash(node->parent, node->name) & (size - 1)];
            next = node->chain;
            node->chain = *place;
            *place = node;
        }
    }
    free(old);
    return 0;
}

/* ---- Nodes ---- */

static void tree_watch_link(bide_tree_watcher *tree, tree_watch_node *node, tree_watch_node *parent)
{
    node->parent = parent;
    node->previous = NULL;
    node->next = parent->children;
    if (node->next != NULL)
        node->next->previous = node;
    parent->children = node;
    tree_watch_node **place = tree_watch_place_of(tree, parent, node->name);
    bide_assert(*place == NULL);
    node->chain = NULL;
    *place = node;
}

static void tree_watch_unlink(bide_tree_watcher *tree, tree_watch_node *node)
{
    tree_watch_node **place = tree_watch_place_of(tree, node->parent, node->name);
    bide_assert(*place == node);
    *place = node->chain;
    if (node->previous != NULL)
        node->previous->next = node->next;
    else
        node->parent->children = node->next;
    if (node->next != NULL)
        node->next->previous = node->previous;
    node->parent = node->next = node->previous = NULL;
}

static void tree_watch_push_todo(bide_tree_watcher *tree, tree_watch_node *node, bool is_deep)
{
    node->is_deep |= is_deep;
    if (node->is_todo)
        return;
    node->is_todo = true;
    node->todo_next = NULL;
    node->todo_previous = tree->todo_last;
    if (tree->todo_last != NULL)
        tree->todo_last->todo_next = node;
    else
        tree->todo = node;
    tree->todo_last = node;
}

static void tree_watch_pop_todo(bide_tree_watcher *tree, tree_watch_node *node)
{
    if (!node->is_todo)
        return;
    node->is_todo = node->is_deep = false;
    if (node->todo_previous != NULL)
        node->todo_previous->todo_next = node->todo_next;
    else
        tree->todo = node->todo_next;
    if (node->todo_next != NULL)
        node->todo_next->todo_previous = node->todo_previous;
    else
        tree->todo_last = node->todo_previous;
}

static void tree_watch_unwatch(bide_tree_watcher *tree, tree_watch_node *node)
{
    if (node->watch == NULL)
        return;
    if (tree->hint_watch == &node->watch->watch)
        tree->hint_watch = NULL;
    bide_file_watch_remove(&node->watch->watch);
    free(node->watch);
    node->watch = NULL;
    tree->directories--;
}

static void tree_watch_free_node(bide_tree_watcher *tree, tree_watch_node *node)
{
    tree_watch_pop_todo(tree, node);
    tree_watch_unwatch(tree, node);
    free(node->name);
    free(node);
    tree->entries--;
}

/* Frees an entry that is in no directory any more, and all below it. */
static void tree_watch_free(bide_tree_watcher *tree, tree_watch_node *top)
{
    tree_watch_node *node = top;
    for (;;) {
        while (node->children != NULL)
            node = node->children;
        tree_watch_node *parent = node->parent;
        if (node == top)
            break;
        tree_watch_unlink(tree, node);
        tree_watch_free_node(tree, node);
        node = parent;
    }
    tree_watch_free_node(tree, top);
}

static bool tree_watch_is_same(const tree_watch_node *node, const struct stat *about)
{
    return node->inode == about->st_ino && node->device == about->st_dev &&
           (node->mode & S_IFMT) == (about->st_mode & S_IFMT);
}

/* Takes over what lstat says. True: it says something new. */
static bool tree_watch_update(tree_watch_node *node, const struct stat *about)
{
    struct timespec now;
    bool is_directory = S_ISDIR(about->st_mode);
    bool differs =
        node->mode != about->st_mode || node->user != about->st_uid || node->group != about->st_gid;
    if (!is_directory) /* (a directory changes whenever an entry of it does) */
        differs |= node->size != about->st_size || node->modified.tv_sec != about->st_mtim.tv_sec ||
                   node->modified.tv_nsec != about->st_mtim.tv_nsec ||
                   node->changed.tv_sec != about->st_ctim.tv_sec ||
                   node->changed.tv_nsec != about->st_ctim.tv_nsec;
    clock_gettime(CLOCK_REALTIME, &now);
    node->device = about->st_dev;
    node->inode = about->st_ino;
    node->mode = about->st_mode;
    node->user = about->st_uid;
    node->group = about->st_gid;
    node->size = about->st_size;
    node->modified = about->st_mtim;
    node->changed = about->st_ctim;
    node->is_racy = !is_directory && about->st_ctim.tv_sec + TREE_WATCH_RACY >= now.tv_sec; /* 7 */
    return differs;
}

/* ---- Comparing with the disk: 1 ---- */

/* What is in limbo is removed: 6. */
static void tree_watch_empty_limbo(bide_tree_watcher *tree)
{
    tree_watch_node *node = tree->limbo;
    if (node == NULL)
        return;
    tree->limbo = NULL;
    tree_watch_emit(tree, BIDE_TREE_REMOVED, tree->limbo_path, NULL, S_ISDIR(node->mode));
    free(tree->limbo_path);
    tree->limbo_path = NULL;
    tree_watch_free(tree, node);
}

/* An entry is not at its place any more. */
static int tree_watch_detach(bide_tree_watcher *tree, tree_watch_node *node)
{
    tree_watch_empty_limbo(tree); /* 6 */
    const char *path = tree_watch_path(tree, node->parent, node->name);
    bide_assert(path != NULL);
    tree->limbo_path = path != NULL ? strdup(path) : NULL;
    if (tree->limbo_path == NULL)
        return tree->error = -ENOMEM;
    tree_watch_unlink(tree, node);
    tree->limbo = node;
    return 0;
}

/* What the longest path below a directory adds to its own. */
static size_t tree_watch_longest_below(const tree_watch_node *top)
{
    const tree_watch_node *node = top;
    size_t size = 0, longest = 0;
    for (;;) {
        if (node->children != NULL) {
            node = node->children;
        } else {
            while (node != top && node->next == NULL) {
                size -= strlen(node->name) + 1;
                node = node->parent;
            }
            if (node == top)
                return longest;
            size -= strlen(node->name) + 1;
            node = node->next;
        }
        size += strlen(node->name) + 1;
        longest = size > longest ? size : longest;
    }
}

/* What is in limbo can be told of at a new place, with all below it. */
static bool tree_watch_fits(bide_tree_watcher *tree, const tree_watch_node *parent,
                            const char *name)
{
    const char *path = tree_watch_path(tree, parent, name);
    return path != NULL && strlen(path) + tree_watch_longest_below(tree->limbo) < sizeof tree->path;
}

/* The entry in limbo has turned up, at a place where it fits: 4. */
static int tree_watch_reattach(bide_tree_watcher *tree, tree_watch_node *parent, const char *name,
                               const struct stat *about)
{
    tree_watch_node *node = tree->limbo;
    char *copy = strdup(name);
    if (copy == NULL)
        return tree->error = -ENOMEM;
    free(node->name);
    node->name = copy;
    tree->limbo = NULL;
    tree_watch_link(tree, node, parent);
    const char *path = tree_watch_path(tree, parent, name);
    bide_assert(path != NULL);
    bool has_content = node->size == about->st_size &&
                       node->modified.tv_sec == about->st_mtim.tv_sec &&
                       node->modified.tv_nsec == about->st_mtim.tv_nsec;
    bool is_directory = S_ISDIR(about->st_mode);
    if (strcmp(path, tree->limbo_path) != 0) /* (it may have come back) */
        tree_watch_emit(tree, BIDE_TREE_MOVED, path, tree->limbo_path, is_directory);
    if (!is_directory && !has_content)
        tree_watch_emit(tree, BIDE_TREE_MODIFIED, path, NULL, false);
    free(tree->limbo_path);
    tree->limbo_path = NULL;
    tree_watch_update(node, about);
    if (is_directory)
        tree_watch_push_todo(tree, node, true);
    return 0;
}

static int tree_watch_add(bide_tree_watcher *tree, tree_watch_node *parent, const char *name,
                          const struct stat *about)
{
    if (tree->entries >= tree->max_entries)
        return -EOVERFLOW;
    if (tree->entries >= tree->table_size && tree_watch_grow(tree) != 0)
        return tree->error = -ENOMEM;
    const char *path = tree_watch_path(tree, parent, name);
    if (path == NULL)
        return -ENAMETOOLONG;
    tree_watch_node *node = calloc(1, sizeof *node);
    if (node == NULL || (node->name = strdup(name)) == NULL) {
        free(node);
        return tree->error = -ENOMEM;
    }
    tree->entries++;
    tree_watch_link(tree, node, parent);
    tree_watch_update(node, about);
    tree_watch_emit(tree, tree->has_begun ? BIDE_TREE_CREATED : BIDE_TREE_FOUND, path, NULL,
                    S_ISDIR(about->st_mode));
    if (S_ISDIR(about->st_mode))
        tree_watch_push_todo(tree, node, false);
    return 0;
}

/* Something else has taken the place of an entry. */
static int tree_watch_replace(bide_tree_watcher *tree, tree_watch_node *node,
                              const struct stat *about)
{
    if (tree->limbo != NULL && tree_watch_is_same(tree->limbo, about) && !S_ISDIR(node->mode)) {
        /* a file that another one is renamed to: limbo is kept, and is not below it */
        const char *path = tree_watch_path(tree, node->parent, node->name);
        if (path != NULL)
            tree_watch_emit(tree, BIDE_TREE_REMOVED, path, NULL, false);
        tree_watch_unlink(tree, node);
        tree_watch_free(tree, node);
        return 0;
    }
    int status = tree_watch_detach(tree, node);
    if (status == 0)
        tree_watch_empty_limbo(tree);
    return status;
}

/* A directory that is still there may have been made anew, or may be readable now: 4, 10. */
static void tree_watch_look_again(bide_tree_watcher *tree, tree_watch_node *node, uint32_t hint)
{
    const uint32_t structural =
        BIDE_FILE_CREATED | BIDE_FILE_REMOVED | BIDE_FILE_MOVED_FROM | BIDE_FILE_MOVED_TO;
    if (S_ISDIR(node->mode) &&
        (node->watch == NULL || node->is_refused || (hint & structural) != 0))
        tree_watch_push_todo(tree, node, true);
}

/* A directory cannot be looked into, which is an error unless it may not: 10. */
static int tree_watch_refuse(tree_watch_node *node, int status)
{
    if (status != -EACCES)
        return status;
    for (; node != NULL; node = node->parent)
        node->is_refused = true;
    return 0;
}

/*
 * Compares one name with the disk; `about` is NULL if nothing is there. `hint` is what the kernel has
 * said of it, or 0.
 */
static int tree_watch_compare(bide_tree_watcher *tree, tree_watch_node *parent, const char *name,
                              const struct stat *about, uint32_t hint, bool is_deep)
{
    tree_watch_node *node = *tree_watch_place_of(tree, parent, name);
    if (node != NULL && (about == NULL || !tree_watch_is_same(node, about))) {
        int status =
            about == NULL ? tree_watch_detach(tree, node) : tree_watch_replace(tree, node, about);
        if (status < 0)
            return status;
        node = NULL;
    }
    if (about == NULL)
        return 0;
    if (node == NULL && tree->limbo != NULL && tree_watch_is_same(tree->limbo, about) &&
        tree_watch_fits(tree, parent, name))
        return tree_watch_reattach(tree, parent, name, about);
    if (node == NULL) {
        tree_watch_empty_limbo(tree); /* 6 */
        return tree_watch_add(tree, parent, name, about);
    }
    bool is_hinted = (hint & (BIDE_FILE_WRITTEN | BIDE_FILE_ATTRIBUTES)) != 0;
    bool was_racy = is_deep && node->is_racy; /* 7 */
    bool has_changed = tree_watch_update(node, about) || is_hinted || was_racy;
    tree_watch_look_again(tree, node, hint);
    const char *path = has_changed ? tree_watch_path(tree, parent, name) : NULL;
    if (path != NULL)
        tree_watch_emit(tree, BIDE_TREE_MODIFIED, path, NULL, S_ISDIR(about->st_mode));
    return 0;
}

/* Opens a directory at a path. -ESTALE: it is not there. -EACCES: it may not be read. */
static int tree_watch_open_at(int at, const char *path, int flags, const tree_watch_node *node)
{
    struct stat about;
    int fd = openat(at, path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | flags);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return -ESTALE;
    if (fd < 0)
        return errno == EPERM ? -EACCES : -errno;
    if (fstat(fd, &about) == 0 && about.st_ino == node->inode && about.st_dev == node->device)
        return fd;
    close(fd);
    return -ESTALE;
}

/* The root is not at its path any more. */
static void tree_watch_end(bide_tree_watcher *tree)
{
    if (tree->is_gone)
        return;
    tree_watch_empty_limbo(tree);
    tree->is_gone = true;
    tree_watch_emit(tree, BIDE_TREE_REMOVED, "", NULL, true);
}

/*
 * Opens a directory of the tree. -ESTALE: it is not at its path any more (3). -EACCES: it may not be
 * read. The root is not kept open: the kernel would not report its end.
 */
static int tree_watch_open(bide_tree_watcher *tree, const tree_watch_node *node)
{
    int root = tree_watch_open_at(AT_FDCWD, tree->root_path, O_PATH, &tree->root);
    if (root == -ESTALE)
        tree_watch_end(tree);
    if (root < 0)
        return root;
    const char *path = tree_watch_path(tree, node, NULL);
    int fd = path == NULL ? -ESTALE
                          : tree_watch_open_at(root, *path != '\0' ? path : ".", O_RDONLY, node);
    close(root);
    return fd;
}

/* Watches a directory, by its descriptor: 2, 4. */
static int tree_watch_directory(bide_tree_watcher *tree, tree_watch_node *node, int fd)
{
    char path[40];
    struct tree_watch_of_directory *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return -ENOMEM;
    watch->node = node;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    uint32_t moved = node == &tree->root ? BIDE_FILE_MOVED : 0;
    int status =
        bide_file_watch_add(&tree->watcher, &watch->watch, path, TREE_WATCH_WANTED | moved);
    if (status < 0) {
        free(watch);
        return status == -ENOENT ? -EOPNOTSUPP : status; /* there is no /proc */
    }
    tree_watch_unwatch(tree, node);
    node->watch = watch;
    tree->directories++;
    return 0;
}

/* Compares the names that are in a directory. */
static int tree_watch_compare_names(bide_tree_watcher *tree, tree_watch_node *node, DIR *directory,
                                    bool is_deep)
{
    uint64_t reading = ++tree->readings;
    struct dirent *entry;
    struct stat about;
    for (errno = 0; (entry = readdir(directory)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        bool is_there = fstatat(dirfd(directory), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0;
        if (!is_there && errno != ENOENT)
            return -errno;
        int status =
            tree_watch_compare(tree, node, entry->d_name, is_there ? &about : NULL, 0, is_deep);
        tree_watch_node *child =
            status == 0 ? *tree_watch_place_of(tree, node, entry->d_name) : NULL;
        if (status < 0)
            return status;
        if (child == NULL)
            continue;
        child->seen = reading;
        if (is_deep && S_ISDIR(child->mode))
            tree_watch_push_todo(tree, child, true);
    }
    if (errno != 0)
        return -errno;
    for (tree_watch_node *child = node->children, *next; child != NULL; child = next) {
        next = child->next;
        int status = child->seen != reading ? tree_watch_detach(tree, child) : 0;
        if (status < 0)
            return status;
    }
    return 0;
}

/* Watches a directory and reads it. */
static int tree_watch_read(bide_tree_watcher *tree, tree_watch_node *node, bool is_deep)
{
    if (is_deep)
        node->is_refused = false;
    int fd = tree_watch_open(tree, node);
    if (fd < 0)
        return fd == -ESTALE ? 0 : tree_watch_refuse(node, fd);
    int status = tree_watch_directory(tree, node, fd);
    DIR *directory = status == 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        status = status < 0 ? status : -errno;
        close(fd);
        return tree_watch_refuse(node, status);
    }
    status = tree_watch_compare_names(tree, node, directory, is_deep);
    closedir(directory);
    return tree_watch_refuse(node, status);
}

static int tree_watch_read_all(bide_tree_watcher *tree)
{
    int status = 0;
    while (status == 0 && tree->error == 0 && tree->todo != NULL) {
        tree_watch_node *node = tree->todo;
        bool is_deep = node->is_deep;
        tree_watch_pop_todo(tree, node);
        status = tree_watch_read(tree, node, is_deep);
    }
    while (tree->todo != NULL) /* after an error all is read again */
        tree_watch_pop_todo(tree, tree->todo);
    return tree->error != 0 ? tree->error : status;
}

/* ---- Hints ---- */

static int tree_watch_follow_hint(bide_tree_watcher *tree)
{
    if (tree->hint_watch == NULL)
        return 0;
    struct tree_watch_of_directory *watch =
        bide_container_of(tree->hint_watch, struct tree_watch_of_directory, watch);
    tree_watch_node *node = watch->node;
    if (tree->hint_name[0] == '\0') {
        if (node == &tree->root && (tree->hint_changes & (BIDE_FILE_GONE | BIDE_FILE_MOVED)) != 0)
            tree_watch_end(tree);
        else if ((tree->hint_changes & BIDE_FILE_GONE) != 0)
            tree_watch_unwatch(tree, node);
        else if (node == &tree->root) /* (there is no other event of its mode) */
            tree_watch_look_again(tree, node, 0);
        return 0;
    }
    struct stat about;
    int fd = tree_watch_open(tree, node);
    if (fd < 0)
        return fd == -ESTALE ? 0 : tree_watch_refuse(node, fd); /* 3 */
    bool is_there = fstatat(fd, tree->hint_name, &about, AT_SYMLINK_NOFOLLOW) == 0;
    int status = is_there || errno == ENOENT ? 0 : -errno;
    close(fd);
    if (status < 0)
        return tree_watch_refuse(node, status);
    return tree_watch_compare(tree, node, tree->hint_name, is_there ? &about : NULL,
                              tree->hint_changes, false);
}

/* The work of one hint, or of reading all: 9. */
static void tree_watch_work(void *argument)
{
    bide_tree_watcher *tree = argument;
    tree->status = 0;
    if (tree->has_hint)
        tree->status = tree_watch_follow_hint(tree);
    tree->has_hint = false;
    if (tree->needs_scan)
        tree_watch_push_todo(tree, &tree->root, true);
    int status = tree_watch_read_all(tree);
    if (tree->status == 0)
        tree->status = status;
    tree->needs_scan = tree->status != 0;
    if (!tree->needs_scan)
        tree->has_begun = true;
}

/* Keeps what the event says. */
static void tree_watch_take_hint(bide_tree_watcher *tree, const bide_file_event_operation *event)
{
    if (event->watch == NULL) { /* 5 */
        tree->overflows++;
        tree->needs_scan = true;
        return;
    }
    size_t size = strnlen(event->name, sizeof tree->hint_name - 1);
    memcpy(tree->hint_name, event->name, size);
    tree->hint_name[size] = '\0';
    tree->hint_watch = event->watch;
    tree->hint_changes = event->changes;
    tree->has_hint = true;
}

/* ---- Watchers ---- */

int bide_tree_watcher_create(bide_tree_watcher **created, const char *path,
                             const bide_tree_watcher_options *options)
{
    struct stat about;
    bide_tree_watcher *tree = calloc(1, sizeof *tree);
    if (tree == NULL)
        return -ENOMEM;
    tree->max_entries =
        options != NULL && options->max_entries != 0 ? options->max_entries : TREE_WATCH_ENTRIES;
    tree->blocking = options != NULL ? options->blocking : NULL;
    tree->last_event = &tree->events;
    tree->needs_scan = true;
    tree->root_path = realpath(path, NULL);
    int status = tree->root_path == NULL || lstat(tree->root_path, &about) != 0 ? -errno : 0;
    if (status == 0 && !S_ISDIR(about.st_mode))
        status = -ENOTDIR;
    if (status == 0 && access(tree->root_path, R_OK | X_OK) != 0)
        status = -errno;
    if (status == 0) {
        tree_watch_update(&tree->root, &about);
        status = tree_watch_grow(tree);
    }
    int inotify = bide_file_watcher_init(&tree->watcher, tree->buffer, sizeof tree->buffer);
    if (status == 0)
        status = inotify;
    if (status == 0)
        *created = tree;
    else
        bide_tree_watcher_destroy(tree);
    return status;
}

void bide_tree_watcher_destroy(bide_tree_watcher *tree)
{
    if (tree == NULL)
        return;
    if (tree->limbo != NULL)
        tree_watch_free(tree, tree->limbo);
    free(tree->limbo_path);
    while (tree->root.children != NULL) {
        tree_watch_node *node = tree->root.children;
        tree_watch_unlink(tree, node);
        tree_watch_free(tree, node);
    }
    tree_watch_unwatch(tree, &tree->root);
    bide_assert(tree->entries == 0 && tree->directories == 0);
    while (tree->events != NULL)
        tree_watch_drop_event(tree);
    bide_file_watcher_destroy(&tree->watcher);
    free(tree->root_path);
    free(tree->table);
    free(tree);
}

void bide_tree_watcher_get_stats(const bide_tree_watcher *tree, bide_tree_watcher_stats *stats)
{
    stats->entries = tree->entries;
    stats->directories = tree->directories;
    stats->overflows = tree->overflows;
}

/* ---- Waiting ---- */

/* Tells the first event: 8. False: there is none. */
static bool tree_watch_tell(bide_tree_event_operation *next)
{
    bide_tree_watcher *tree = next->tree;
    const struct tree_watch_event *event = tree->events;
    if (event == NULL)
        return false;
    next->change = event->change;
    next->is_directory = event->is_directory;
    next->path = event->text;
    next->from = event->from;
    tree->is_reported = true;
    return true;
}

/* The coroutine is destroyed before it resumes with the event: 8. */
static void tree_watch_release(bide_frame *frame)
{
    bide_tree_event_operation *next =
        bide_container_of(frame, bide_tree_event_operation, task.frame);
    if (next->task.frame.error == 0 && next->path != NULL)
        next->tree->is_reported = false;
}

static const bide_coroutine_type tree_watch_event_type = {.name = "task",
                                                          .release = tree_watch_release};

bide_coroutine_of(tree_watch_event_type, tree_watch_next_body)
{
    bide_begin(tree_watch_next_body, bide_tree_event_operation * self);
    if (io_calls(io_of_context(bide_this_context())) != NULL)
        bide_return(-EOPNOTSUPP);
    if (self->tree->is_reported)
        tree_watch_drop_event(self->tree);
    while (!tree_watch_tell(self)) {
        if (self->tree->error != 0)
            bide_return(self->tree->error);
        if (self->tree->is_gone)
            bide_return(-EPIPE);
        if (self->tree->has_hint || self->tree->needs_scan) {
            if (self->tree->blocking == NULL) {
                tree_watch_work(self->tree);
            } else {
                bide_try(bide_blocking_run(&self->call, self->tree->blocking, tree_watch_work,
                                           self->tree));
            }
            if (self->tree->status < 0 && self->tree->events == NULL)
                bide_return(
                    self->tree->status); /* (otherwise by the next wait, which tries again) */
            continue;
        }
        if (self->tree->limbo != NULL && !bide_file_watch_is_pending_(&self->tree->watcher)) {
            tree_watch_empty_limbo(self->tree);
            continue;
        }
        bide_await_status(self->status, bide_file_watch_next(&self->next, &self->tree->watcher));
        if (self->status < 0)
            bide_return(self->status);
        tree_watch_take_hint(self->tree, &self->next);
    }
    bide_end();
}

bide_awaiter *bide_tree_watch_next(bide_tree_event_operation *operation, bide_tree_watcher *tree)
{
    operation->tree = tree;
    operation->path = operation->from = NULL;
    return bide_frame_init(&operation->task.frame, &tree_watch_next_body);
}
