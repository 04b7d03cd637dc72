/*
 * Names of files: folders, and what is in them.
 *
 *     root --entry--> inode --entry--> inode          an open file --> inode
 *
 * 1. An inode is there as long as an entry leads to it, or an open file or a bound socket has it.
 * 2. Entries have numbers that grow, and stand in that order. So who reads a folder, and has read up
 *    to a number, finds what was not removed meanwhile, each once.
 * 3. There are no links but entries, and one entry to each inode; so folders are a tree.
 */
#define _GNU_SOURCE
#include "tree.h"

#include <limits.h>
#include <stdlib.h>

/* ---- Inodes ---- */

void bide_simulated_inode_hold_(memory_inode *inode)
{
    inode->references++;
}

static void free_if_unused(memory_world *world, memory_inode *inode)
{
    if (inode->links != 0 || inode->references != 0)
        return;
    world->tree->used -= inode->stored;
    free(inode->bytes);
    free(inode);
}

void bide_simulated_inode_drop_(memory_world *world, memory_inode *inode)
{
    inode->references--;
    free_if_unused(world, inode);
}

static void append(memory_world *world, memory_inode *folder, memory_entry *entry,
                   memory_inode *inode)
{
    entry->next = NULL;
    entry->number = ++world->tree->entries;
    entry->inode = inode;
    inode->parent = folder;
    inode->links++;
    if (folder->first == NULL)
        folder->first = entry;
    else
        folder->last->next = entry;
    folder->last = entry;
    folder->changed = world->loop->now;
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

memory_inode *bide_simulated_inode_new_(memory_world *world, const memory_walk *walk, mode_t mode)
{
    memory_inode *inode = calloc(1, sizeof *inode);
    memory_entry *entry = walk->folder != NULL ? entry_new(walk->name, walk->length) : NULL;
    if (inode == NULL || (walk->folder != NULL && entry == NULL)) {
        free(inode);
        free(entry);
        return NULL;
    }
    inode->mode = mode;
    inode->number = ++world->tree->inodes;
    inode->changed = world->loop->now;
    if (entry != NULL)
        append(world, walk->folder, entry, inode);
    return inode;
}

/* ---- Entries ---- */

static memory_entry *find(const memory_inode *folder, const char *name, size_t length)
{
    memory_entry *at = folder->first;
    while (at != NULL && (at->length != length || memcmp(at->name, name, length) != 0))
        at = at->next;
    return at;
}

/* Takes the entry out of its folder, and frees it. */
static void remove_entry(memory_world *world, memory_inode *folder, memory_entry *entry)
{
    memory_entry *before = NULL;
    memory_entry **place = &folder->first;
    while (*place != entry) {
        before = *place;
        place = &before->next;
    }
    *place = entry->next;
    if (folder->last == entry)
        folder->last = before;
    entry->inode->links--;
    free_if_unused(world, entry->inode);
    free(entry);
    folder->changed = world->loop->now;
}

static bool is_dots(const char *name, size_t length)
{
    return name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
}

static memory_inode *step(memory_inode *folder, const char *name, size_t length)
{
    if (is_dots(name, length))
        return length == 1 || folder->parent == NULL ? folder : folder->parent;
    const memory_entry *entry = find(folder, name, length);
    return entry != NULL ? entry->inode : NULL;
}

int bide_simulated_walk_to_(const memory_world *world, const char *path, memory_walk *walk)
{
    memory_inode *at = world->tree->root;
    if (path[0] == '\0')
        return -ENOENT;
    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
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
        *walk = (memory_walk){at, path, length, step(at, path, length), slashes != 0};
        at = walk->inode;
        path += length + slashes;
    }
    return walk->is_folder && at != NULL && !S_ISDIR(at->mode) ? -ENOTDIR : 0;
}

/* ---- Folders and names ---- */

static bool is_inside(const memory_inode *inode, const memory_inode *folder)
{
    while (inode != NULL && inode != folder)
        inode = inode->parent;
    return inode != NULL;
}

/* May what was walked to be renamed, or replaced? */
static bool has_name(const memory_walk *walk)
{
    return walk->length != 0 && !is_dots(walk->name, walk->length);
}

static int check_rename(const memory_walk *from, const memory_walk *to)
{
    if (!has_name(from) || !has_name(to))
        return -EBUSY;
    if (from->inode == NULL)
        return -ENOENT;
    bool is_folder = S_ISDIR(from->inode->mode);
    if (is_folder && is_inside(to->folder, from->inode))
        return -EINVAL;
    if (to->is_folder && !is_folder)
        return -ENOTDIR;
    if (to->inode == NULL || to->inode == from->inode)
        return 0;
    if (is_folder && !S_ISDIR(to->inode->mode))
        return -ENOTDIR;
    if (!is_folder && S_ISDIR(to->inode->mode))
        return -EISDIR;
    return to->inode->first != NULL ? -ENOTEMPTY : 0;
}

int bide_simulated_rename_(memory_world *world, const char *from_path, const char *to_path)
{
    memory_walk from, to;
    int error = bide_simulated_walk_to_(world, from_path, &from);
    if (error == 0)
        error = bide_simulated_walk_to_(world, to_path, &to);
    if (error == 0)
        error = check_rename(&from, &to);
    if (error != 0 || to.inode == from.inode)
        return error;
    memory_entry *entry = entry_new(to.name, to.length);
    if (entry == NULL)
        return -ENOMEM;
    if (to.inode != NULL)
        remove_entry(world, to.folder, find(to.folder, to.name, to.length));
    append(world, to.folder, entry, from.inode);
    remove_entry(world, from.folder, find(from.folder, from.name, from.length));
    return 0;
}

int bide_simulated_unlink_(memory_world *world, const char *path, bool is_folder)
{
    memory_walk walk;
    int error = bide_simulated_walk_to_(world, path, &walk);
    if (error != 0)
        return error;
    if (walk.inode == NULL)
        return -ENOENT;
    if (!is_folder && S_ISDIR(walk.inode->mode))
        return -EISDIR;
    if (is_folder && !S_ISDIR(walk.inode->mode))
        return -ENOTDIR;
    if (!has_name(&walk))
        return walk.length == 0 ? -EBUSY : walk.length == 1 ? -EINVAL : -ENOTEMPTY;
    if (walk.inode->first != NULL)
        return -ENOTEMPTY;
    remove_entry(world, walk.folder, find(walk.folder, walk.name, walk.length));
    return 0;
}

/* Is it the last name of its path? */
static bool is_last(const memory_walk *walk)
{
    const char *rest = walk->name + walk->length;
    return rest[strspn(rest, "/")] == '\0';
}

int bide_simulated_make_directory_(memory_world *world, const char *path, mode_t mode)
{
    memory_walk walk;
    int error = bide_simulated_walk_to_(world, path, &walk);
    if (error == -ENOTDIR && is_last(&walk))
        return -EEXIST;
    if (error != 0)
        return error;
    if (walk.inode != NULL)
        return -EEXIST;
    return bide_simulated_inode_new_(world, &walk, S_IFDIR | (mode & 01777 & ~(mode_t)022)) != NULL
               ? 0
               : -ENOSPC;
}

/* ---- Sockets ---- */

int bide_simulated_tree_bind_(memory_world *world, const char *path, memory_node *node, memory_inode **inode)
{
    memory_walk walk;
    int error = bide_simulated_walk_to_(world, path, &walk);
    if (error != 0)
        return error;
    if (walk.inode != NULL)
        return -EADDRINUSE;
    if (walk.is_folder)
        return -ENOENT;
    *inode = bide_simulated_inode_new_(world, &walk, S_IFSOCK | 0755);
    if (*inode == NULL)
        return -ENOSPC;
    (*inode)->socket = node;
    bide_simulated_inode_hold_(*inode);
    return 0;
}

int bide_simulated_tree_find_(memory_world *world, const char *path, memory_node **node)
{
    memory_walk walk;
    int error = bide_simulated_walk_to_(world, path, &walk);
    if (error != 0)
        return error;
    if (walk.inode == NULL)
        return -ENOENT;
    *node = walk.inode->socket;
    return *node != NULL ? 0 : -ECONNREFUSED;
}

void bide_simulated_tree_unbind_(memory_world *world, memory_inode *inode)
{
    inode->socket = NULL;
    bide_simulated_inode_drop_(world, inode);
}

/* ---- Beginning and end ---- */

static void empty(memory_world *world, memory_inode *folder)
{
    while (folder->first != NULL) {
        empty(world, folder->first->inode);
        remove_entry(world, folder, folder->first);
    }
}

void bide_simulated_tree_destroy_(memory_world *world)
{
    memory_inode *root = world->tree->root;
    if (root != NULL) {
        empty(world, root);
        bide_simulated_inode_drop_(world, root);
    }
    free(world->tree);
}

static memory_inode *make(memory_world *world, const char *path, mode_t mode)
{
    memory_walk walk;
    return bide_simulated_walk_to_(world, path, &walk) == 0 ? bide_simulated_inode_new_(world, &walk, mode) : NULL;
}

int bide_simulated_tree_create_(memory_world *world)
{
    static const memory_walk nowhere = {NULL, NULL, 0, NULL, true};
    world->tree = calloc(1, sizeof *world->tree);
    if (world->tree == NULL)
        return -ENOMEM;
    world->tree->root = bide_simulated_inode_new_(world, &nowhere, S_IFDIR | 0755);
    if (world->tree->root != NULL)
        bide_simulated_inode_hold_(world->tree->root);
    if (world->tree->root != NULL && make(world, "/tmp", S_IFDIR | 01777) != NULL &&
        make(world, "/dev", S_IFDIR | 0755) != NULL &&
        make(world, "/dev/null", S_IFCHR | 0666) != NULL)
        return 0;
    bide_simulated_tree_destroy_(world);
    return -ENOMEM;
}

size_t bide_simulated_tree_size_(const memory_world *world)
{
    return world->tree->used;
}
