/*
 * Names of files: directories and their entries.
 *
 *     root --entry--> inode --entry--> inode          an open file --> inode
 *
 * 1. An inode exists as long as an entry, an open file or a bound socket refers to it.
 * 2. Entries have numbers that grow, and are kept in that order. So a reader of a directory that
 *    has read up to a number finds each entry that was not removed meanwhile, once.
 * 3. Entries are the only links, and a directory has one entry. So directories form a tree.
 */
#define _GNU_SOURCE
#include "tree.h"

#include "../io/statx.h"

#include <limits.h>
#include <stdlib.h>

/* ---- Inodes ---- */

void bide_sim_inode_hold_(memory_inode *inode)
{
    inode->references++;
}

static void free_if_unused(sim_environment *environment, memory_inode *inode)
{
    if (inode->links != 0 || inode->references != 0)
        return;
    bide_assert(environment->tree->used >= inode->stored);
    environment->tree->used -= inode->stored;
    free(inode->bytes);
    free(inode);
}

void bide_sim_inode_drop_(sim_environment *environment, memory_inode *inode)
{
    bide_assert(inode->references != 0);
    inode->references--;
    free_if_unused(environment, inode);
}

static void directory_append(sim_environment *environment, memory_inode *directory,
                             memory_entry *entry, memory_inode *inode)
{
    entry->next = NULL;
    entry->number = ++environment->tree->entries;
    entry->inode = inode;
    inode->parent = directory;
    inode->links++;
    if (directory->first == NULL)
        directory->first = entry;
    else
        directory->last->next = entry;
    directory->last = entry;
    directory->changed = environment->loop->now;
}

static memory_entry *entry_new(const char *name, size_t length)
{
    memory_entry *entry = malloc(sizeof *entry + length);
    if (entry == NULL)
        return NULL;
    entry->length = length;
    memcpy(entry->name, name, length);
    return entry;
}

memory_inode *bide_sim_inode_new_(sim_environment *environment, const memory_walk *walk,
                                  mode_t mode)
{
    memory_inode *inode = calloc(1, sizeof *inode);
    memory_entry *entry = walk->directory != NULL ? entry_new(walk->name, walk->length) : NULL;
    if (inode == NULL || (walk->directory != NULL && entry == NULL)) {
        free(inode);
        free(entry);
        return NULL;
    }
    inode->mode = mode;
    inode->number = ++environment->tree->inodes;
    inode->changed = environment->loop->now;
    if (entry != NULL)
        directory_append(environment, walk->directory, entry, inode);
    return inode;
}

/* ---- Entries ---- */

static memory_entry *directory_find(const memory_inode *directory, const char *name, size_t length)
{
    memory_entry *at = directory->first;
    while (at != NULL && (at->length != length || memcmp(at->name, name, length) != 0))
        at = at->next;
    return at;
}

/* Removes an entry from its directory, and frees it. */
static void remove_entry(sim_environment *environment, memory_inode *directory, memory_entry *entry)
{
    memory_entry *before = NULL;
    memory_entry **place = &directory->first;
    while (*place != entry) {
        before = *place;
        place = &before->next;
    }
    *place = entry->next;
    if (directory->last == entry)
        directory->last = before;
    bide_assert(entry->inode->links != 0); /* 3 */
    entry->inode->links--;
    free_if_unused(environment, entry->inode);
    free(entry);
    directory->changed = environment->loop->now;
}

static bool name_is_dots(const char *name, size_t length)
{
    return name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
}

static memory_inode *tree_step(memory_inode *directory, const char *name, size_t length)
{
    if (name_is_dots(name, length))
        return length == 1 || directory->parent == NULL ? directory : directory->parent;
    const memory_entry *entry = directory_find(directory, name, length);
    return entry != NULL ? entry->inode : NULL;
}

/* Where a path begins: *top, above which it may not go unless that is NULL. 0 or a negative errno. */
static int walk_begin(const sim_environment *environment, const bide_path_root *root,
                      const char *path, memory_inode **at, memory_inode **top)
{
    const unsigned confined = BIDE_PATH_BENEATH | BIDE_PATH_IN_ROOT;
    unsigned resolve = root != NULL ? root->resolve : 0;
    *at = environment->tree->root;
    *top = NULL;
    if ((resolve & BIDE_PATH_BENEATH) != 0 && path[0] == '/')
        return -EXDEV;
    if (root != NULL && root->directory != NULL &&
        (path[0] != '/' || (resolve & BIDE_PATH_IN_ROOT) != 0)) {
        *at = bide_sim_inode_of_(environment, bide_descriptor_fd(root->directory));
        if (*at == NULL)
            return -EBADF;
        if (!S_ISDIR((*at)->mode))
            return -ENOTDIR;
    }
    if ((resolve & confined) != 0)
        *top = *at;
    return 0;
}

int bide_sim_walk_(const sim_environment *environment, const bide_path_root *root, const char *path,
                   memory_walk *walk)
{
    memory_inode *at, *top;
    if (path[0] == '\0')
        return -ENOENT;
    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
    int error = walk_begin(environment, root, path, &at, &top);
    if (error != 0)
        return error;
    *walk = (memory_walk){at, path, 0, at, true};
    for (path += strspn(path, "/"); *path != '\0';) {
        size_t length = strcspn(path, "/");
        size_t slashes = strspn(path + length, "/");
        if (at == NULL)
            return -ENOENT;
        if (!S_ISDIR(at->mode))
            return -ENOTDIR;
        if (length > NAME_MAX)
            return -ENAMETOOLONG;
        bool leaves = at == top && length == 2 && name_is_dots(path, length);
        if (leaves && (root->resolve & BIDE_PATH_BENEATH) != 0)
            return -EXDEV;
        *walk = (memory_walk){at, path, length, leaves ? at : tree_step(at, path, length),
                              slashes != 0};
        at = walk->inode;
        path += length + slashes;
    }
    return walk->is_directory && at != NULL && !S_ISDIR(at->mode) ? -ENOTDIR : 0;
}

/* ---- Directories and names ---- */

static bool inode_is_inside(const memory_inode *inode, const memory_inode *directory)
{
    while (inode != NULL && inode != directory)
        inode = inode->parent;
    return inode != NULL;
}

/* Whether the last name of a walk may be renamed or replaced. */
static bool walk_has_name(const memory_walk *walk)
{
    return walk->length != 0 && !name_is_dots(walk->name, walk->length);
}

static int check_rename(const memory_walk *from, const memory_walk *to)
{
    if (!walk_has_name(from) || !walk_has_name(to))
        return -EBUSY;
    if (from->inode == NULL)
        return -ENOENT;
    bool is_directory = S_ISDIR(from->inode->mode);
    if (is_directory && inode_is_inside(to->directory, from->inode))
        return -EINVAL;
    if (to->is_directory && !is_directory)
        return -ENOTDIR;
    if (to->inode == NULL || to->inode == from->inode)
        return 0;
    if (is_directory && !S_ISDIR(to->inode->mode))
        return -ENOTDIR;
    if (!is_directory && S_ISDIR(to->inode->mode))
        return -EISDIR;
    return to->inode->first != NULL ? -ENOTEMPTY : 0;
}

int bide_sim_rename_(sim_environment *environment, memory_path from_path, memory_path to_path,
                     unsigned flags)
{
    memory_walk from, to;
    if ((flags & ~(unsigned)RENAME_NOREPLACE) != 0)
        return -EINVAL;
    int error = bide_sim_walk_(environment, from_path.root, from_path.path, &from);
    if (error == 0)
        error = bide_sim_walk_(environment, to_path.root, to_path.path, &to);
    if (error == 0 && flags != 0 && from.inode != NULL && to.inode != NULL)
        error = -EEXIST;
    if (error == 0)
        error = check_rename(&from, &to);
    if (error != 0 || to.inode == from.inode)
        return error;
    memory_entry *entry = entry_new(to.name, to.length);
    if (entry == NULL)
        return -ENOMEM;
    if (to.inode != NULL)
        remove_entry(environment, to.directory, directory_find(to.directory, to.name, to.length));
    directory_append(environment, to.directory, entry, from.inode);
    remove_entry(environment, from.directory,
                 directory_find(from.directory, from.name, from.length));
    return 0;
}

int bide_sim_link_(sim_environment *environment, memory_inode *inode, memory_path to)
{
    memory_walk walk;
    int error = bide_sim_walk_(environment, to.root, to.path, &walk);
    if (error != 0)
        return error;
    if (walk.inode != NULL)
        return -EEXIST;
    if (S_ISDIR(inode->mode))
        return -EPERM;
    if (walk.is_directory)
        return -ENOENT;
    memory_entry *entry = entry_new(walk.name, walk.length);
    if (entry == NULL)
        return -ENOSPC;
    directory_append(environment, walk.directory, entry, inode);
    return 0;
}

int bide_sim_unlink_(sim_environment *environment, memory_path path, bool is_directory)
{
    memory_walk walk;
    int error = bide_sim_walk_(environment, path.root, path.path, &walk);
    if (error != 0)
        return error;
    if (walk.inode == NULL)
        return -ENOENT;
    if (!is_directory && S_ISDIR(walk.inode->mode))
        return -EISDIR;
    if (is_directory && !S_ISDIR(walk.inode->mode))
        return -ENOTDIR;
    if (!walk_has_name(&walk))
        return walk.length == 0 ? -EBUSY : walk.length == 1 ? -EINVAL : -ENOTEMPTY;
    if (walk.inode->first != NULL)
        return -ENOTEMPTY;
    remove_entry(environment, walk.directory,
                 directory_find(walk.directory, walk.name, walk.length));
    return 0;
}

/* Whether it is the last name of its path. */
static bool walk_is_last(const memory_walk *walk)
{
    const char *rest = walk->name + walk->length;
    return rest[strspn(rest, "/")] == '\0';
}

int bide_sim_make_directory_(sim_environment *environment, memory_path path, mode_t mode)
{
    memory_walk walk;
    int error = bide_sim_walk_(environment, path.root, path.path, &walk);
    if (error == -ENOTDIR && walk_is_last(&walk))
        return -EEXIST;
    if (error != 0)
        return error;
    if (walk.inode != NULL)
        return -EEXIST;
    return bide_sim_inode_new_(environment, &walk, S_IFDIR | (mode & 01777 & ~(mode_t)022)) != NULL
               ? 0
               : -ENOSPC;
}

/* ---- Sockets ---- */

int bide_sim_tree_bind_(sim_environment *environment, const char *path, memory_node *node,
                        memory_inode **inode)
{
    memory_walk walk;
    int error = bide_sim_walk_(environment, NULL, path, &walk);
    if (error != 0)
        return error;
    if (walk.inode != NULL)
        return -EADDRINUSE;
    if (walk.is_directory)
        return -ENOENT;
    *inode = bide_sim_inode_new_(environment, &walk, S_IFSOCK | 0755);
    if (*inode == NULL)
        return -ENOSPC;
    (*inode)->socket = node;
    bide_sim_inode_hold_(*inode);
    return 0;
}

int bide_sim_tree_find_(sim_environment *environment, const char *path, memory_node **node)
{
    memory_walk walk;
    int error = bide_sim_walk_(environment, NULL, path, &walk);
    if (error != 0)
        return error;
    if (walk.inode == NULL)
        return -ENOENT;
    *node = walk.inode->socket;
    return *node != NULL ? 0 : -ECONNREFUSED;
}

void bide_sim_tree_unbind_(sim_environment *environment, memory_inode *inode)
{
    inode->socket = NULL;
    bide_sim_inode_drop_(environment, inode);
}

/* ---- Creating and destroying ---- */

static void directory_empty(sim_environment *environment, memory_inode *directory)
{
    while (directory->first != NULL) {
        directory_empty(environment, directory->first->inode);
        remove_entry(environment, directory, directory->first);
    }
}

void bide_sim_tree_destroy_(sim_environment *environment)
{
    memory_inode *root = environment->tree->root;
    if (root != NULL) {
        directory_empty(environment, root);
        bide_sim_inode_drop_(environment, root);
    }
    free(environment->tree);
}

static memory_inode *tree_make(sim_environment *environment, const char *path, mode_t mode)
{
    memory_walk walk;
    return bide_sim_walk_(environment, NULL, path, &walk) == 0
               ? bide_sim_inode_new_(environment, &walk, mode)
               : NULL;
}

int bide_sim_tree_create_(sim_environment *environment)
{
    static const memory_walk nowhere = {NULL, NULL, 0, NULL, true};
    environment->tree = calloc(1, sizeof *environment->tree);
    if (environment->tree == NULL)
        return -ENOMEM;
    environment->tree->root = bide_sim_inode_new_(environment, &nowhere, S_IFDIR | 0755);
    if (environment->tree->root != NULL)
        bide_sim_inode_hold_(environment->tree->root);
    if (environment->tree->root != NULL &&
        tree_make(environment, "/tmp", S_IFDIR | 01777) != NULL &&
        tree_make(environment, "/dev", S_IFDIR | 0755) != NULL &&
        tree_make(environment, "/dev/null", S_IFCHR | 0666) != NULL)
        return 0;
    bide_sim_tree_destroy_(environment);
    return -ENOMEM;
}

size_t bide_sim_tree_size_(const sim_environment *environment)
{
    return environment->tree->used;
}
