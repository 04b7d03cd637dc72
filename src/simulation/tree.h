/* What the two files about files ask of each other. */
#ifndef BIDE_IO_MEMORY_TREE_H
#define BIDE_IO_MEMORY_TREE_H

#include "memory.h"

#include <sys/stat.h>

/* A name in a folder. */
typedef struct memory_entry {
    struct memory_entry *next;
    uint64_t number; /* grows along the list: where a reader of the folder stands */
    memory_inode *inode;
    size_t length;
    char name[];
} memory_entry;

struct memory_inode {
    mode_t mode; /* with its type */
    uint64_t number;
    unsigned links;      /* entries that lead to it */
    unsigned references; /* of open files, and of a socket that is bound */
    uint64_t changed;    /* when: of the loop's time */

    /* of a folder */
    memory_inode *parent;
    memory_entry *first, *last;

    /* of a file: behind `stored` bytes all are zero, up to its size; so are those behind its size */
    char *bytes;
    size_t stored, capacity;
    int64_t size;

    memory_node *socket; /* that is bound; NULL: none any more */
};

struct memory_tree {
    memory_inode *root;
    uint64_t inodes, entries; /* ever */
    size_t used;              /* bytes that are stored */
};

/* Where a path leads. */
typedef struct memory_walk {
    memory_inode *folder; /* that the last name is in */
    const char *name;
    size_t length;       /* 0: the root itself */
    memory_inode *inode; /* NULL: there is none of that name */
    bool is_folder;      /* the path says that it is one */
} memory_walk;

/* 0 or a negative errno: all but the last name has to be there. */
int bide_simulated_walk_to_(const memory_world *world, const char *path, memory_walk *walk);

/* A new inode, with the name that was walked to; NULL in `folder`: without one. Or NULL. */
memory_inode *bide_simulated_inode_new_(memory_world *world, const memory_walk *walk, mode_t mode);
void bide_simulated_inode_hold_(memory_inode *inode);
void bide_simulated_inode_drop_(memory_world *world, memory_inode *inode);

/* As rename, unlinkat and mkdir. */
int bide_simulated_rename_(memory_world *world, const char *from, const char *to);
int bide_simulated_unlink_(memory_world *world, const char *path, bool is_folder);
int bide_simulated_make_directory_(memory_world *world, const char *path, mode_t mode);

#endif
