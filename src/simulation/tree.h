/* The part of the tree of files that open files use. */
#ifndef BIDE_IO_MEMORY_TREE_H
#define BIDE_IO_MEMORY_TREE_H

#include "memory.h"

#include "bide/path.h"

#include <sys/stat.h>

/* A name in a directory. */
typedef struct memory_entry {
    struct memory_entry *next;
    uint64_t number; /* grows along the list: a position in the directory */
    memory_inode *inode;
    size_t length;
    char name[];
} memory_entry;

struct memory_inode {
    mode_t mode; /* with its type */
    uint64_t number;
    unsigned links;      /* entries that lead to it */
    unsigned references; /* of open files, and of a socket that is bound */
    uint64_t changed;    /* the loop's time of the last change */

    /* of a directory */
    memory_inode *parent;
    memory_entry *first, *last;

    /* of a file: behind `stored` bytes all are zero, up to its size; so are those behind its size */
    char *bytes;
    size_t stored, capacity;
    int64_t size;

    memory_node *socket; /* the bound socket; NULL: it is closed */
};

struct memory_tree {
    memory_inode *root;
    uint64_t inodes, entries; /* ever */
    size_t used;              /* bytes that are stored */
};

/* The result of a walk along a path. */
typedef struct memory_walk {
    memory_inode *directory; /* the directory of the last name */
    const char *name;
    size_t length;       /* 0: the root itself */
    memory_inode *inode; /* NULL: there is none of that name */
    bool is_directory;   /* the path ends with a slash, or is the root */
} memory_walk;

/*
 * 0 or a negative errno. All names but the last have to exist. `root`: where a relative path begins,
 * and what it may lead to; NULL: the root of the tree.
 */
int bide_sim_walk_(const sim_environment *environment, const bide_path_root *root, const char *path,
                   memory_walk *walk);

/* The inode of an open file of that number; NULL: there is none (file.c). */
memory_inode *bide_sim_inode_of_(const sim_environment *environment, int fd);

/*
 * A new inode, with the name of the walk, or without one if its directory is NULL. NULL: no memory.
 */
memory_inode *bide_sim_inode_new_(sim_environment *environment, const memory_walk *walk,
                                  mode_t mode);
void bide_sim_inode_hold_(memory_inode *inode);
void bide_sim_inode_drop_(sim_environment *environment, memory_inode *inode);

/* A path under a root. */
typedef struct memory_path {
    const bide_path_root *root;
    const char *path;
} memory_path;

/* As renameat2, unlinkat and mkdirat. */
int bide_sim_rename_(sim_environment *environment, memory_path from, memory_path to,
                     unsigned flags);
int bide_sim_unlink_(sim_environment *environment, memory_path path, bool is_directory);
int bide_sim_make_directory_(sim_environment *environment, memory_path path, mode_t mode);

/* Gives an inode that is no directory one more name. 0 or a negative errno. */
int bide_sim_link_(sim_environment *environment, memory_inode *inode, memory_path to);

#endif
