/*
 * Confinement of a server, for the case that an attacker makes the process run code of his.
 *
 *     confine_enter(&confine)          as root: --chroot, and the user's numbers are looked up
 *     confine_allow(&confine, ...)     the files that the server will open
 *     confine_limit_files(&confine)    Landlock: only these can be opened
 *     ... threads are created, addresses are listened on ...
 *     confine_drop_user(&confine)      --user, for good
 *     confine_limit_calls(&confine)    seccomp: only the system calls that are listed in confine.c
 *
 * Each of them reports an error on standard error and exits with status 1. The steps are independent:
 * --confine off leaves out the limits.
 *
 * Landlock binds the calling thread and the threads that it creates later. So confine_limit_files comes
 * before any other thread: a thread without limits, of the same memory, would be a way out for all. (Workers
 * of an io_uring are no such threads: the kernel runs each operation with the rights of the thread that
 * submits it.) The user and the filter of system calls bind all threads of the process.
 *
 * With --confine auto, a kernel that lacks one of the two is noted once on standard error, and the
 * other one is used. With --confine on that is an error.
 *
 * Gaps:
 *  1. seccomp does not see operations of an io_uring. Credentials and Landlock apply to them: they open no
 *     file and no TCP connection that the process may not open. But they can create sockets, and connect to
 *     Unix sockets. No further ring can be created, and no operation of a ring executes a program.
 *  2. Landlock does not control UDP, nor connections to Unix sockets by path.
 *  3. Descriptors that are open already stay usable.
 */
#ifndef COMMON_CONFINE_H
#define COMMON_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum confine_mode { CONFINE_AUTO, CONFINE_ON, CONFINE_OFF };

/* How a server may use a file or a directory. */
enum confine_access {
    CONFINE_READ = 1,   /* open a file for reading, list a directory */
    CONFINE_WRITE = 2,  /* open a file for writing, create one, rename, remove, truncate */
    CONFINE_SOCKET = 4, /* bind a Unix socket, remove it */
};

/* System calls beyond those of every server. */
enum confine_calls {
    CONFINE_URING = 1,    /* the loop's back end is an io_uring */
    CONFINE_STORES = 2,   /* writes files: renames, syncs, truncates */
    CONFINE_CONNECTS = 4, /* creates sockets, resolves names (which loads libraries) */
    CONFINE_REMOVES = 8   /* removes a file, such as the socket of its monitor */
};

enum { CONFINE_ANY_PORT = 1 << 16, CONFINE_NO_PORT };

struct confine_path {
    int fd;
    uint64_t rights;
    dev_t device;
    ino_t inode;
};

struct confine {
    const char *program; /* for messages */
    const char *user;    /* --user; NULL: stay who it is */
    const char *chroot;  /* --chroot; NULL: none */
    enum confine_mode mode;

    /* the rest is private */
    uid_t uid;
    gid_t gid;
    bool has_noted;
    size_t path_count;
    struct confine_path *paths;
    unsigned further_port; /* 0: none */
    bool binds_any_port;
};

/* The default of --confine: auto, or off in a build whose instrumentation makes calls of its own. */
void confine_init(struct confine *confine, const char *program);

/* Parses the value of --confine. Returns false if it is none. */
bool confine_parse_mode(struct confine *confine, const char *value);

void confine_enter(struct confine *confine);

/*
 * Becomes the user, with the group and no other groups. Checks that nothing is left of root: its
 * identity cannot be had again, and no capability is left.
 */
void confine_drop_user(struct confine *confine);

/*
 * Allows what is below a directory, or a file. A path that does not exist allows nothing.
 * Call it before confine_limit_files. Does nothing with --confine off.
 */
void confine_allow(struct confine *confine, const char *path, unsigned access);

/*
 * Allows a file that may be replaced by another of its name: everything in its directory, and in that of
 * the file that a symbolic link leads to. For a device or a pipe, only that.
 */
void confine_allow_replaced(struct confine *confine, const char *path, unsigned access);

/*
 * Allows what is below a directory, and the directories of the files that its symbolic links lead to, as of
 * certificate authorities. Links inside of its subdirectories are not followed, nor links to directories.
 */
void confine_allow_links(struct confine *confine, const char *path, unsigned access);

/*
 * Allows the socket of a monitor (monitoring.h), and the names of threads. Creates the directory of the
 * usual place, for the user that the program will be. `socket` is the value of --monitor; with NULL it
 * does nothing.
 */
void confine_allow_monitor(struct confine *confine, const char *socket);

/*
 * Allows one more TCP port to be bound; with 0, all of them. Call it before confine_limit_files.
 */
void confine_allow_port(struct confine *confine, unsigned port);

/*
 * From here on only allowed files can be opened, and no TCP address can be connected to. Of TCP ports
 * only `port` and the port of confine_allow_port can be bound. With port 0 all can be bound; with
 * CONFINE_ANY_PORT all can be bound and connected to. CONFINE_NO_PORT is none.
 */
void confine_limit_files(struct confine *confine, unsigned port);

/*
 * Only listed system calls can be made from here on, by any thread. Calls that no server makes end
 * the process by SIGSYS; other calls that are not listed fail with ENOSYS, so that a C library can
 * try an older one.
 */
void confine_limit_calls(struct confine *confine, unsigned calls);

#endif
