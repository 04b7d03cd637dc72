/*
 * Confinement: the user, Landlock, and the filter of system calls. confine.h has the contract.
 *
 * The kernel's constants are written down here, because headers of an older system lack some of them.
 */
#define _GNU_SOURCE
#include "confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sanitizers and coverage make calls and open files of their own. */
#ifndef CONFINE_DEFAULT
#define CONFINE_DEFAULT CONFINE_AUTO
#endif

static _Noreturn void confine_fail(const struct confine *confine, const char *what, int error)
{
    fprintf(stderr, "%s: %s: %s\n", confine->program, what, strerror(error));
    exit(1);
}

/* A part that this kernel lacks: an error if it was asked for, otherwise noted once. */
static void confine_lacks(struct confine *confine, const char *what, int error)
{
    if (confine->mode == CONFINE_ON)
        confine_fail(confine, what, error);
    if (!confine->has_noted)
        fprintf(stderr, "%s: not confined: %s: %s\n", confine->program, what, strerror(error));
    confine->has_noted = true;
}

void confine_init(struct confine *confine, const char *program)
{
    *confine = (struct confine){.program = program, .mode = CONFINE_DEFAULT};
}

bool confine_parse_mode(struct confine *confine, const char *value)
{
    static const char *const names[] = {"auto", "on", "off"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            confine->mode = (enum confine_mode)i;
            return true;
        }
    }
    return false;
}

/* ---- The user ---- */

/* Parses an identity in digits. The greatest one means "none" to the kernel. */
static bool parse_identity(const char *text, unsigned long *value)
{
    char *end;
    errno = 0;
    *value = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *value < UINT32_MAX;
}

static void find_group(struct confine *confine, const char *name)
{
    unsigned long number;
    errno = 0;
    const struct group *group = getgrnam(name);
    if (group != NULL)
        confine->gid = group->gr_gid;
    else if (parse_identity(name, &number))
        confine->gid = (gid_t)number;
    else
        confine_fail(confine, name, errno != 0 ? errno : ENOENT);
}

static void find_user(struct confine *confine)
{
    unsigned long number;
    char *name = strdup(confine->user), *group = name != NULL ? strchr(name, ':') : NULL;
    if (name == NULL)
        confine_fail(confine, "--user", ENOMEM);
    if (group != NULL)
        *group++ = '\0';
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (user == NULL && !parse_identity(name, &number))
        confine_fail(confine, confine->user, errno != 0 ? errno : ENOENT);
    if (user == NULL)
        user = getpwuid((uid_t)number);
    if (user == NULL && group == NULL) {
        fprintf(stderr, "%s: --user %s needs a group, too: %s:GROUP\n", confine->program, name,
                name);
        exit(1);
    }
    confine->uid = user != NULL ? user->pw_uid : (uid_t)number;
    if (group != NULL)
        find_group(confine, group);
    else
        confine->gid = user->pw_gid;
    free(name);
    if (confine->uid == 0 || confine->gid == 0) {
        fprintf(stderr, "%s: --user %s would stay root\n", confine->program, confine->user);
        exit(1);
    }
}

void confine_enter(struct confine *confine)
{
    if (confine->user != NULL)
        find_user(confine);
    if (confine->chroot == NULL)
        return;
    if (chroot(confine->chroot) != 0 || chdir("/") != 0)
        confine_fail(confine, confine->chroot, errno);
}

static void drop_capabilities(struct confine *confine)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
    if (syscall(SYS_capset, &header, none) != 0)
        confine_fail(confine, "capabilities", errno);
}

/* Returns true if the process has the identity alone and cannot have another one again. */
static bool is_dropped(const struct confine *confine)
{
    uid_t uid[3];
    gid_t gid[3];
    if (getresuid(&uid[0], &uid[1], &uid[2]) != 0 || getresgid(&gid[0], &gid[1], &gid[2]) != 0)
        return false;
    for (int i = 0; i < 3; i++) {
        if (uid[i] != confine->uid || gid[i] != confine->gid)
            return false;
    }
    return getgroups(0, NULL) == 0 && setresuid(0, 0, 0) != 0 && setresgid(0, 0, 0) != 0 &&
           setgroups(0, NULL) != 0;
}

void confine_drop_user(struct confine *confine)
{
    if (confine->user == NULL)
        return;
    if (setgroups(0, NULL) != 0 || setresgid(confine->gid, confine->gid, confine->gid) != 0 ||
        setresuid(confine->uid, confine->uid, confine->uid) != 0)
        confine_fail(confine, confine->user, errno);
    drop_capabilities(confine);
    if (!is_dropped(confine))
        confine_fail(confine, confine->user, EPERM);
}

static void forbid_new_privileges(const struct confine *confine)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        confine_fail(confine, "no_new_privs", errno);
}

/* ---- Landlock ---- */

/* The rights of files. Versions of the interface have added the last three, as commented. */
#define FILE_EXECUTE          (UINT64_C(1) << 0)
#define FILE_WRITE            (UINT64_C(1) << 1)
#define FILE_READ             (UINT64_C(1) << 2)
#define DIRECTORY_READ        (UINT64_C(1) << 3)
#define DIRECTORY_REMOVE_FILE (UINT64_C(1) << 5)
#define DIRECTORY_MAKE_FILE   (UINT64_C(1) << 8)
#define DIRECTORY_MAKE_SOCKET (UINT64_C(1) << 9)
#define RIGHTS_OF_1           ((UINT64_C(1) << 13) - 1)
#define FILE_REFER            (UINT64_C(1) << 13) /* 2: link or rename between directories */
#define FILE_TRUNCATE         (UINT64_C(1) << 14) /* 3 */
#define FILE_IOCTL            (UINT64_C(1) << 15) /* 5: of devices */

/* TCP, since version 4. */
#define NETWORK_BIND    (UINT64_C(1) << 0)
#define NETWORK_CONNECT (UINT64_C(1) << 1)

/* Scopes that end at the process, since version 6: abstract Unix sockets and signals. */
#define SCOPE_ALL UINT64_C(3)

enum { RULE_PATH = 1, RULE_PORT = 2, RULESET_VERSION = 1 };

enum {
#ifdef SYS_landlock_create_ruleset
    LANDLOCK_CREATE = SYS_landlock_create_ruleset,
    LANDLOCK_ADD = SYS_landlock_add_rule,
    LANDLOCK_RESTRICT = SYS_landlock_restrict_self
#else /* (the same numbers on all processors) */
    LANDLOCK_CREATE = 444,
    LANDLOCK_ADD = 445,
    LANDLOCK_RESTRICT = 446
#endif
};

struct ruleset_attributes {
    uint64_t files, network, scoped;
};

struct path_rule {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

struct port_rule {
    uint64_t access, port;
};

/* Errors of a kernel without Landlock, or where it is turned off, or of an older container. */
static bool means_absent(int error)
{
    return error == ENOSYS || error == EOPNOTSUPP || error == EPERM;
}

static int landlock_version(void)
{
    long version = syscall(LANDLOCK_CREATE, NULL, 0ul, (unsigned long)RULESET_VERSION);
    return version < 0 ? -errno : (int)version;
}

static uint64_t rights_of_version(int version)
{
    return RIGHTS_OF_1 | (version >= 2 ? FILE_REFER : 0) | (version >= 3 ? FILE_TRUNCATE : 0) |
           (version >= 5 ? FILE_IOCTL : 0);
}

static uint64_t rights_of_access(unsigned access, bool is_directory)
{
    uint64_t rights = 0;
    if ((access & CONFINE_READ) != 0)
        rights |= FILE_READ | (is_directory ? DIRECTORY_READ : 0);
    if ((access & CONFINE_WRITE) != 0)
        rights |= FILE_WRITE | FILE_TRUNCATE |
                  (is_directory ? DIRECTORY_MAKE_FILE | DIRECTORY_REMOVE_FILE : 0);
    if ((access & CONFINE_SOCKET) != 0 && is_directory)
        rights |= DIRECTORY_MAKE_SOCKET | DIRECTORY_REMOVE_FILE;
    return rights;
}

void confine_allow(struct confine *confine, const char *path, unsigned access)
{
    struct stat status;
    if (confine->mode == CONFINE_OFF)
        return;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return;
    if (fd < 0 || fstat(fd, &status) != 0)
        confine_fail(confine, path, errno);
    uint64_t rights = rights_of_access(access, S_ISDIR(status.st_mode));
    for (size_t i = 0; i < confine->path_count; i++) {
        struct confine_path *other = &confine->paths[i];
        if (other->device == status.st_dev && other->inode == status.st_ino) {
            other->rights |= rights;
            close(fd);
            return;
        }
    }
    struct confine_path *paths = realloc(confine->paths, (confine->path_count + 1) * sizeof *paths);
    if (paths == NULL)
        confine_fail(confine, path, ENOMEM);
    paths[confine->path_count++] = (struct confine_path){fd, rights, status.st_dev, status.st_ino};
    confine->paths = paths;
}

static void allow_directory_of(struct confine *confine, const char *path, unsigned access)
{
    char *copy = strdup(path);
    if (copy == NULL)
        confine_fail(confine, path, ENOMEM);
    confine_allow(confine, dirname(copy), access);
    free(copy);
}

void confine_allow_replaced(struct confine *confine, const char *path, unsigned access)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISSOCK(status.st_mode)) {
        confine_allow(confine, path, access);
        return;
    }
    allow_directory_of(confine, path, access);
    char *target = realpath(path, NULL);
    if (target != NULL)
        allow_directory_of(confine, target, access);
    free(target);
}

/*
 * The file that a symbolic link of a directory leads to. Returns NULL for an entry that is no link, and for a
 * link that leads to no file: the parent of a directory is not allowed.
 */
static char *target_of_link(const char *path, const struct dirent *entry)
{
    char name[PATH_MAX];
    struct stat status;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return NULL;
    int size = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (size < 0 || (size_t)size >= sizeof name || lstat(name, &status) != 0 ||
        !S_ISLNK(status.st_mode))
        return NULL;
    char *target = realpath(name, NULL);
    if (target != NULL && (stat(target, &status) != 0 || !S_ISREG(status.st_mode))) {
        free(target);
        return NULL;
    }
    return target;
}

void confine_allow_links(struct confine *confine, const char *path, unsigned access)
{
    if (confine->mode == CONFINE_OFF)
        return;
    confine_allow(confine, path, access);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        char *target = target_of_link(path, entry);
        if (target != NULL)
            allow_directory_of(confine, target, access);
        free(target);
    }
    if (directory != NULL)
        closedir(directory);
}

/* NULL if the path is a directory, no link to one, of this user or of root; otherwise why it is not. */
static const char *refuse_directory(const char *path, uid_t user)
{
    struct stat about;
    if (lstat(path, &about) != 0)
        return strerror(errno);
    if (!S_ISDIR(about.st_mode))
        return "is no directory";
    return about.st_uid == user || about.st_uid == 0 ? NULL : "is another user's";
}

/*
 * The usual place of a monitor's socket (bide/monitor.h), for the user that the program will be. Below another
 * user's directory nothing is created or allowed, since that user decides what is there: a link to any other
 * directory.
 */
static void allow_monitor_directory(struct confine *confine)
{
    char path[PATH_MAX];
    uid_t user = confine->user != NULL ? confine->uid : geteuid();
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    bool has_runtime = runtime != NULL && runtime[0] == '/';
    const char *reason = has_runtime ? refuse_directory(runtime, user) : NULL;
    if (reason != NULL) {
        fprintf(stderr, "%s: --monitor: XDG_RUNTIME_DIR, %s, %s\n", confine->program, runtime,
                reason);
        exit(1);
    }
    if (has_runtime)
        (void)snprintf(path, sizeof path, "%s/bide", runtime);
    else
        (void)snprintf(path, sizeof path, "/tmp/bide-%u", (unsigned)user);
    /* (the monitor reports what is wrong with a directory that is there) */
    if (mkdir(path, 0700) == 0 && confine->user != NULL &&
        lchown(path, confine->uid, confine->gid) != 0)
        confine_fail(confine, path, errno);
    if (refuse_directory(path, user) == NULL)
        confine_allow(confine, path, CONFINE_SOCKET);
}

void confine_allow_monitor(struct confine *confine, const char *socket)
{
    const char *named = secure_getenv("BIDE_MONITOR");
    if (socket == NULL)
        return;
    if (strcmp(socket, "auto") != 0)
        allow_directory_of(confine, socket, CONFINE_SOCKET);
    else if (named != NULL && named[0] != '\0')
        allow_directory_of(confine, named, CONFINE_SOCKET);
    else
        allow_monitor_directory(confine);
    confine_allow(confine, "/proc/self/task", CONFINE_READ);
}

static void close_paths(struct confine *confine)
{
    while (confine->path_count > 0)
        close(confine->paths[--confine->path_count].fd);
    free(confine->paths);
    confine->paths = NULL;
}

void confine_allow_port(struct confine *confine, unsigned port)
{
    confine->further_port = port;
    confine->binds_any_port = port == 0;
}

/* Lets a port be bound; none if it is 0 or CONFINE_NO_PORT. Returns 0 or an error number. */
static int allow_bind(int ruleset, unsigned port)
{
    struct port_rule rule = {.access = NETWORK_BIND, .port = port};
    bool is_port = port != 0 && port != CONFINE_NO_PORT;
    return is_port && syscall(LANDLOCK_ADD, ruleset, RULE_PORT, &rule, 0ul) != 0 ? errno : 0;
}

/* Returns 0 or an error number. */
static int restrict_files(struct confine *confine, int version, unsigned port)
{
    struct ruleset_attributes attributes = {.files = rights_of_version(version)};
    size_t size = sizeof attributes.files;
    if (version >= 4) {
        size = offsetof(struct ruleset_attributes, scoped);
        attributes.network = port == CONFINE_ANY_PORT ? 0
                             : port == 0 || confine->binds_any_port
                                 ? NETWORK_CONNECT
                                 : NETWORK_BIND | NETWORK_CONNECT;
    }
    if (version >= 6) {
        size = sizeof attributes;
        attributes.scoped = SCOPE_ALL;
    }
    int ruleset = (int)syscall(LANDLOCK_CREATE, &attributes, size, 0ul);
    if (ruleset < 0)
        return errno;
    int error = 0;
    for (size_t i = 0; i < confine->path_count && error == 0; i++) {
        const struct confine_path *path = &confine->paths[i];
        struct path_rule rule = {.access = path->rights & attributes.files, .parent = path->fd};
        /* (EBADFD: a pipe without a name, as /dev/stdout may be: Landlock does not limit it) */
        if (syscall(LANDLOCK_ADD, ruleset, RULE_PATH, &rule, 0ul) != 0 && errno != EBADFD)
            error = errno;
    }
    if (error == 0 && (attributes.network & NETWORK_BIND) != 0) {
        error = allow_bind(ruleset, port);
        if (error == 0)
            error = allow_bind(ruleset, confine->further_port);
    }
    if (error == 0 && syscall(LANDLOCK_RESTRICT, ruleset, 0ul) != 0)
        error = errno;
    close(ruleset);
    return error;
}

void confine_limit_files(struct confine *confine, unsigned port)
{
    if (confine->mode == CONFINE_OFF)
        return;
    confine_allow(confine, "/dev/null", CONFINE_READ); /* a descriptor that a server keeps spare */
    forbid_new_privileges(confine);
    int version = landlock_version();
    int error = version < 0 ? -version : restrict_files(confine, version, port);
    if (means_absent(error))
        confine_lacks(confine, "Landlock", error);
    else if (error != 0)
        confine_fail(confine, "Landlock", error);
    close_paths(confine);
}

/* ---- The filter of system calls ---- */

#if defined(__x86_64__) && !defined(__ILP32__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define ARCHITECTURE AUDIT_ARCH_I386
#elif defined(__aarch64__) && defined(__LP64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#elif defined(__s390x__)
#define ARCHITECTURE AUDIT_ARCH_S390X
#endif

#ifdef ARCHITECTURE

/* The calls of every server. The most frequent ones are first, for kernels that do not cache results. */
static const int calls_of_all[] = {
    /* connections and other descriptors; an accepted one gets its options */
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_recvfrom,
    SYS_sendto,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_accept4,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_shutdown,
    SYS_close,
#ifdef SYS_socketcall /* all of the above on older processors */
    SYS_socketcall,
#endif
    /* from files to sockets, and between sockets */
    SYS_sendfile,
#ifdef SYS_sendfile64
    SYS_sendfile64,
#endif
    SYS_splice,
    SYS_pipe2,
    /* a loop waits, and is woken by another thread or a timer */
    SYS_epoll_pwait,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
    SYS_epoll_ctl,
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
#ifdef SYS_timerfd_settime64
    SYS_timerfd_settime64,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
    SYS_ppoll,
#ifdef SYS_ppoll_time64
    SYS_ppoll_time64,
#endif
    /* files that are served, read again, or logged to; Landlock says which */
    SYS_openat,
#ifdef SYS_open
    SYS_open,
#endif
#ifdef SYS_openat2
    SYS_openat2,
#endif
    SYS_fstat,
#ifdef SYS_fstat64
    SYS_fstat64,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
#ifdef SYS_fstatat64
    SYS_fstatat64,
#endif
#ifdef SYS_stat
    SYS_stat,
#endif
#ifdef SYS_stat64
    SYS_stat64,
#endif
#ifdef SYS_statx
    SYS_statx,
#endif
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
#ifdef SYS_preadv2
    SYS_preadv2,
    SYS_pwritev2,
#endif
    SYS_lseek,
#ifdef SYS__llseek
    SYS__llseek,
#endif
    SYS_getdents64,
    SYS_readlinkat,
#ifdef SYS_readlink /* older C libraries */
    SYS_readlink,
    SYS_lstat,
#endif
    SYS_fcntl,
#ifdef SYS_fcntl64
    SYS_fcntl64,
#endif
    SYS_dup,
    SYS_dup3,
    SYS_ioctl, /* FIONREAD and FIONBIO; the C library asks whether a stream is a terminal */
#ifdef SYS_fadvise64
    SYS_fadvise64,
#endif
    /* memory; see below for what cannot be executed */
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    /* threads; see below for how they are created */
    SYS_futex,
#ifdef SYS_futex_time64
    SYS_futex_time64,
#endif
    SYS_set_robust_list,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_membarrier
    SYS_membarrier, /* the library's fences between threads */
#endif
    SYS_sched_yield,
    SYS_sched_getaffinity,
#ifdef SYS_getcpu
    SYS_getcpu,
#endif
    SYS_gettid,
    SYS_getpid,
    SYS_exit,
    SYS_exit_group,
    /* signals: their handlers, and abort() */
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
#ifdef SYS_sigreturn /* of a handler without SA_SIGINFO, on some processors */
    SYS_sigreturn,
#endif
    SYS_sigaltstack,
    SYS_tgkill,
#ifdef SYS_tkill
    SYS_tkill, /* musl's abort() */
#endif
    SYS_restart_syscall,
    /* time, where the kernel's page for it does not have it */
    SYS_clock_gettime,
#ifdef SYS_clock_gettime64
    SYS_clock_gettime64,
#endif
    SYS_clock_getres,
    SYS_gettimeofday,
#ifdef SYS_time
    SYS_time,
#endif
    SYS_nanosleep,
    SYS_clock_nanosleep,
#ifdef SYS_clock_nanosleep_time64
    SYS_clock_nanosleep_time64,
#endif
    /* facts about the process */
    SYS_getrandom,
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
    SYS_prlimit64,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
};

/* The loop's ring. (io_uring_setup is missing: no ring without the limits of this one.) */
static const int calls_of_uring[] = {
#ifdef SYS_io_uring_enter
    SYS_io_uring_enter,
    SYS_io_uring_register, /* buffers and descriptors; a ring is enabled by its thread */
#endif
};

/* A server that stores: it syncs its files, and replaces them by new ones. */
static const int calls_of_stores[] = {
    SYS_fsync,       SYS_fdatasync, SYS_ftruncate,
#ifdef SYS_ftruncate64
    SYS_ftruncate64,
#endif
    SYS_fallocate,   SYS_flock,     SYS_unlinkat,
#ifdef SYS_unlink
    SYS_unlink,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_rename
    SYS_rename,
#endif
#ifdef SYS_renameat2
    SYS_renameat2,
#endif
};

/* A server that connects, listens at further addresses, and resolves names. */
static const int calls_of_connects[] = {
    SYS_socket,    SYS_connect,  SYS_bind,
    SYS_listen,    SYS_recvmmsg, /* the resolver of the C library */
    SYS_sendmmsg,  SYS_unlinkat, /* a Unix socket of its own */
    SYS_fchmod,    SYS_flock,
#ifdef SYS_unlink
    SYS_unlink,
#endif
#ifdef SYS_access
    SYS_access,
#endif
    SYS_faccessat,
};

/* A server that removes a file. */
static const int calls_of_removes[] = {
    SYS_flock,
    SYS_unlinkat,
#ifdef SYS_unlink
    SYS_unlink,
#endif
};

/*
 * Calls that no server makes, and that lead out: other programs, other processes, the kernel's own
 * modules and programs, other views of the file system, other identities. They end the process.
 */
static const int calls_that_kill[] = {
    SYS_execve,
#ifdef SYS_execveat
    SYS_execveat,
#endif
#ifdef SYS_fork
    SYS_fork,
#endif
#ifdef SYS_vfork
    SYS_vfork,
#endif
    SYS_ptrace,      SYS_process_vm_writev, SYS_bpf,           SYS_perf_event_open,
#ifdef SYS_userfaultfd
    SYS_userfaultfd,
#endif
    SYS_init_module, SYS_finit_module,      SYS_delete_module, SYS_kexec_load,      SYS_mount,
    SYS_umount2,     SYS_pivot_root,        SYS_chroot,        SYS_setns,           SYS_unshare,
    SYS_add_key,     SYS_request_key,       SYS_keyctl,        SYS_setuid,          SYS_setgid,
    SYS_setresuid,   SYS_setresgid,         SYS_setgroups,     SYS_capset,
};

enum { MAX_INSTRUCTIONS = 512 };

struct call_filter {
    unsigned count;
    struct sock_filter instructions[MAX_INSTRUCTIONS];
};

static void filter_add(struct call_filter *filter, struct sock_filter instruction)
{
    if (filter->count == MAX_INSTRUCTIONS)
        abort(); /* the lists above are constant */
    filter->instructions[filter->count++] = instruction;
}

static void filter_return(struct call_filter *filter, unsigned action)
{
    filter_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void filter_load(struct call_filter *filter, size_t offset)
{
    filter_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

/* Skips as many instructions unless the value is equal. */
static void filter_unless_equal(struct call_filter *filter, unsigned value, uint8_t skipped)
{
    filter_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped));
}

static void filter_calls(struct call_filter *filter, const int *calls, size_t count,
                         unsigned action)
{
    for (size_t i = 0; i < count; i++) {
        filter_unless_equal(filter, (unsigned)calls[i], 1);
        filter_return(filter, action);
    }
}

#define FILTER_CALLS(filter, calls, action) \
    filter_calls(filter, calls, sizeof(calls) / sizeof(calls)[0], action)

/* Where the low word of an argument is. */
static size_t low_word(unsigned argument)
{
    size_t offset = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    offset += sizeof(uint32_t);
#endif
    return offset;
}

/* Allows a call if an argument has any of the bits, or none of them; otherwise the action. */
static void filter_bits(struct call_filter *filter, int call, unsigned argument, unsigned bits,
                        bool wants_them, unsigned action)
{
    filter_unless_equal(filter, (unsigned)call, 4);
    filter_load(filter, low_word(argument));
    filter_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits,
                                                    wants_them ? 0 : 1, wants_them ? 1 : 0));
    filter_return(filter, SECCOMP_RET_ALLOW);
    filter_return(filter, action);
}

/* New mappings: only the libraries of the name service, which come late, may be executed. */
static void filter_mappings(struct call_filter *filter, bool loads_libraries)
{
    unsigned bits = loads_libraries ? 0 : PROT_EXEC;
    filter_bits(filter, SYS_mprotect, 2, bits, false, SECCOMP_RET_ERRNO | EACCES);
#ifdef SYS_mmap2
    filter_bits(filter, SYS_mmap2, 2, bits, false, SECCOMP_RET_ERRNO | EACCES);
#elif !defined(__s390x__)
    filter_bits(filter, SYS_mmap, 2, bits, false, SECCOMP_RET_ERRNO | EACCES);
#else /* (whose mmap has its arguments in memory) */
    static const int calls[] = {SYS_mmap};
    FILTER_CALLS(filter, calls, SECCOMP_RET_ALLOW);
#endif
}

/* New threads, but no process. (clone3, whose flags are in memory, fails with ENOSYS.) */
static void filter_clone(struct call_filter *filter)
{
#ifdef __s390x__
    enum { FLAGS = 1 };
#else
    enum { FLAGS = 0 };
#endif
    filter_bits(filter, SYS_clone, FLAGS, CLONE_THREAD, true, SECCOMP_RET_KILL_PROCESS);
}

/* A thread's name, and the names of its memory. */
static void filter_prctl(struct call_filter *filter)
{
    enum { SET_MEMORY = 0x53564d41 };
    filter_unless_equal(filter, SYS_prctl, 6);
    filter_load(filter, low_word(0));
    filter_unless_equal(filter, PR_SET_NAME, 1);
    filter_return(filter, SECCOMP_RET_ALLOW);
    filter_unless_equal(filter, SET_MEMORY, 1);
    filter_return(filter, SECCOMP_RET_ALLOW);
    filter_return(filter, SECCOMP_RET_ERRNO | ENOSYS);
}

static void build_filter(struct call_filter *filter, unsigned calls)
{
    filter->count = 0;
    filter_load(filter, offsetof(struct seccomp_data, arch));
    filter_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    filter_return(filter, SECCOMP_RET_KILL_PROCESS);
    filter_load(filter, offsetof(struct seccomp_data, nr));
    FILTER_CALLS(filter, calls_of_all, SECCOMP_RET_ALLOW);
    if ((calls & CONFINE_URING) != 0)
        FILTER_CALLS(filter, calls_of_uring, SECCOMP_RET_ALLOW);
    if ((calls & CONFINE_STORES) != 0)
        FILTER_CALLS(filter, calls_of_stores, SECCOMP_RET_ALLOW);
    if ((calls & CONFINE_CONNECTS) != 0)
        FILTER_CALLS(filter, calls_of_connects, SECCOMP_RET_ALLOW);
    if ((calls & CONFINE_REMOVES) != 0)
        FILTER_CALLS(filter, calls_of_removes, SECCOMP_RET_ALLOW);
    FILTER_CALLS(filter, calls_that_kill, SECCOMP_RET_KILL_PROCESS);
    filter_mappings(filter, (calls & CONFINE_CONNECTS) != 0);
    filter_clone(filter);
    filter_prctl(filter);
    filter_return(filter, SECCOMP_RET_ERRNO | ENOSYS);
}

/* Returns 0 or an error number. */
static int restrict_calls(unsigned calls)
{
    enum { SET_FILTER = 1, ALL_THREADS = 1 };
    static struct call_filter filter;
    build_filter(&filter, calls);
    struct sock_fprog program = {.len = (unsigned short)filter.count,
                                 .filter = filter.instructions};
    long status =
        syscall(SYS_seccomp, (unsigned long)SET_FILTER, (unsigned long)ALL_THREADS, &program);
    return status < 0 ? errno : status > 0 ? EBUSY : 0; /* (positive: a thread that has another) */
}

#else

static int restrict_calls(unsigned calls)
{
    (void)calls;
    return ENOSYS; /* its lists are not known for this processor */
}

#endif

void confine_limit_calls(struct confine *confine, unsigned calls)
{
    if (confine->mode == CONFINE_OFF)
        return;
    forbid_new_privileges(confine);
    int error = restrict_calls(calls);
    if (error == ENOSYS || error == EINVAL || error == EPERM)
        confine_lacks(confine, "seccomp", error);
    else if (error != 0)
        confine_fail(confine, "seccomp", error);
}
