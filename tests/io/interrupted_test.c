/*
 * File calls that are interrupted. The program replaces the system calls: the one that a row names waits, as on a disk
 * or a server that does not answer, until a signal interrupts it.
 *
 *     an operation that is ended meanwhile     ends as it was ended, and has done nothing
 *     a call that is done in spite of that     counts: the operation has its result, or it is undone
 *     a signal of the program's own            is no status: the call is made again
 *
 * Every operation that may be made on a thread has a row. On io_uring the kernel makes most of them: those rows end
 * as if nothing had happened.
 */
#define _GNU_SOURCE
#include "runner.h"

#include "../../src/io/operation_table.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>

enum { SIZE = 5000 };

/* ---- The calls ---- */

enum {
    NOT_REPLACED,
    INTERRUPTED, /* it waits until it is interrupted, and has done nothing */
    DONE,        /* it waits until it is interrupted, and does it in spite of that */
    SIGNALLED,   /* it is interrupted at once, some times */
    FAILING,     /* it fails once, with `error` */
    COUNTED,     /* it is made */
};

static struct {
    const char *name; /* of the call that is replaced */
    bide_atomic(int) mode;
    bide_atomic(int) made; /* how often */
    int error;
    int gate[2]; /* a pipe that stays empty */
} calls;

static pthread_t loop_thread;

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

/*
 * A signal is sent again and again until the call has returned, so it may interrupt the call itself, or
 * cut it short. So signals are blocked in the thread, until its next call that is replaced.
 */
static void block_signals(bool blocks)
{
    static _Thread_local bool are_blocked;
    static _Thread_local sigset_t before;
    sigset_t all;
    if (blocks == are_blocked)
        return;
    sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, blocks ? &all : &before, blocks ? &before : NULL),
                     0);
    are_blocked = blocks;
}

/* Returns whether the call is to be made; otherwise it fails with errno. */
static bool is_made(const char *name)
{
    char byte;
    block_signals(false);
    int mode = bide_atomic_load(&calls.mode, acquire);
    if (mode == NOT_REPLACED || strcmp(name, calls.name) != 0)
        return true;
    if (pthread_equal(pthread_self(), loop_thread) && mode != FAILING)
        return true;
    int made = bide_atomic_fetch_add(&calls.made, 1, acq_rel);
    if (mode == COUNTED)
        return true;
    if (mode == FAILING || mode == SIGNALLED) {
        errno = mode == FAILING ? calls.error : EINTR;
        return made >= (mode == FAILING ? 1 : 3);
    }
    ssize_t result = __real_read(calls.gate[0], &byte, 1);
    assert_true(result == -1 && errno == EINTR);
    block_signals(mode == DONE);
    return mode == DONE;
}

/* (loops wake each other by these calls, of other sizes) */
ssize_t __wrap_read(int fd, void *data, size_t size)
{
    return size != SIZE || is_made("read") ? __real_read(fd, data, size) : -1;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    return size != SIZE || is_made("write") ? __real_write(fd, data, size) : -1;
}

#define REPLACED(type, name, parameters, arguments) \
    type __real_##name parameters;                  \
    type __wrap_##name parameters;                  \
    type __wrap_##name parameters                   \
    {                                               \
        if (!is_made(#name))                        \
            return (type)-1;                        \
        return __real_##name arguments;             \
    }

REPLACED(ssize_t, pread64, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
REPLACED(ssize_t, pwrite64, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
REPLACED(ssize_t, readv, (int fd, const struct iovec *data, int count), (fd, data, count))
REPLACED(ssize_t, writev, (int fd, const struct iovec *data, int count), (fd, data, count))
REPLACED(ssize_t, preadv64, (int fd, const struct iovec *data, int count, off_t at),
         (fd, data, count, at))
REPLACED(ssize_t, pwritev64, (int fd, const struct iovec *data, int count, off_t at),
         (fd, data, count, at))
REPLACED(int, fsync, (int fd), (fd))
REPLACED(int, fdatasync, (int fd), (fd))
REPLACED(int, fallocate64, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
REPLACED(int, ftruncate64, (int fd, off_t size), (fd, size))
REPLACED(int, renameat, (int from, const char *one, int to, const char *other),
         (from, one, to, other))
REPLACED(int, unlinkat, (int at, const char *name, int flags), (at, name, flags))
REPLACED(int, mkdirat, (int at, const char *name, mode_t mode), (at, name, mode))
REPLACED(int, linkat, (int from, const char *one, int to, const char *other, int flags),
         (from, one, to, other, flags))
REPLACED(int, symlinkat, (const char *target, int at, const char *name), (target, at, name))
REPLACED(ssize_t, readlinkat, (int at, const char *name, char *text, size_t size),
         (at, name, text, size))
REPLACED(int, statx, (int at, const char *name, int flags, unsigned mask, struct statx *about),
         (at, name, flags, mask, about))
REPLACED(int, statfs64, (const char *path, struct statfs *about), (path, about))
REPLACED(int, fchmodat, (int at, const char *name, mode_t mode, int flags), (at, name, mode, flags))
REPLACED(int, fchownat, (int at, const char *name, uid_t owner, gid_t group, int flags),
         (at, name, owner, group, flags))
REPLACED(int, utimensat, (int at, const char *name, const struct timespec *times, int flags),
         (at, name, times, flags))
REPLACED(ssize_t, copy_file_range,
         (int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags),
         (from, from_at, to, to_at, size, flags))
REPLACED(ssize_t, splice,
         (int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags),
         (from, from_at, to, to_at, size, flags))
REPLACED(int, madvise, (void *at, size_t size, int advice), (at, size, advice))
REPLACED(void *, mmap64, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
         (at, size, protection, flags, fd, offset))
REPLACED(int, fstat64, (int fd, struct stat *about), (fd, about))
REPLACED(int, fstatat64, (int at, const char *name, struct stat *about, int flags),
         (at, name, about, flags))

char *__real_realpath(const char *path, char *text);
char *__wrap_realpath(const char *path, char *text);

char *__wrap_realpath(const char *path, char *text)
{
    return is_made("realpath") ? __real_realpath(path, text) : NULL;
}

int __real_openat64(int at, const char *name, int flags, ...);
int __wrap_openat64(int at, const char *name, int flags, ...);

UNCHECKED_BY_MSAN int __wrap_openat64(int at, const char *name, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (!is_made((flags & O_TMPFILE) == O_TMPFILE ? "openat64 without a name" : "openat64"))
        return -1;
    return __real_openat64(at, name, flags, mode);
}

/* How the loop learns that a file's pages are not in memory, so that it splices on a thread. */
ssize_t __real_preadv64v2(int fd, const struct iovec *data, int count, off_t at, int flags);
ssize_t __wrap_preadv64v2(int fd, const struct iovec *data, int count, off_t at, int flags);

ssize_t __wrap_preadv64v2(int fd, const struct iovec *data, int count, off_t at, int flags)
{
    if (at >= 0) {
        errno = EAGAIN;
        return -1;
    }
    if (!is_made("preadv64v2"))
        return -1;
    return __real_preadv64v2(fd, data, count, at, flags);
}

REPLACED(ssize_t, pwritev64v2, (int fd, const struct iovec *data, int count, off_t at, int flags),
         (fd, data, count, at, flags))

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

UNCHECKED_BY_MSAN __attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_getdents64 && !is_made("getdents64"))
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- Files, and an operation of each code ---- */

typedef struct fixture {
    world *world;
    char directory[40], path[64], other[64], link[64], target[100], text[256];
    bide_descriptor file, second, opened, opened_directory, socket, peer;
    bide_path_root root; /* the directory */
    void *mapped;
    bide_file_operation operation;
    bide_send_file_operation send;
    bide_copy_file_operation copy;
    bide_entry_operation entry;
    bide_directory entries;
    char buffer[4096], data[SIZE];
    struct iovec vectors[2];
    struct stat about;
    struct statx about_more;
    struct statfs system;
    struct timespec times[2];
    struct runner runner;
} fixture;

typedef bide_awaiter *init_operation(fixture *f);

static bide_awaiter *init_open(fixture *f)
{
    return bide_open(&f->operation, &f->opened, f->path, O_RDONLY, 0);
}

static bide_awaiter *init_open_temporary(fixture *f)
{
    return bide_open_temporary(&f->operation, &f->opened, NULL, f->directory, 0, 0600);
}

static bide_awaiter *init_read(fixture *f)
{
    return bide_read(&f->operation, &f->file, f->data, sizeof f->data);
}

static bide_awaiter *init_read_at(fixture *f)
{
    return bide_read_at(&f->operation, &f->file, f->data, sizeof f->data, 10);
}

static bide_awaiter *init_write(fixture *f)
{
    return bide_write(&f->operation, &f->file, f->data, sizeof f->data);
}

static bide_awaiter *init_write_at(fixture *f)
{
    return bide_write_at(&f->operation, &f->file, f->data, sizeof f->data, 10);
}

static bide_awaiter *init_readv(fixture *f)
{
    return bide_readv(&f->operation, &f->file, f->vectors, 2, -1);
}

static bide_awaiter *init_readv_at(fixture *f)
{
    return bide_readv(&f->operation, &f->file, f->vectors, 2, 10);
}

static bide_awaiter *init_writev(fixture *f)
{
    return bide_writev(&f->operation, &f->file, f->vectors, 2, -1);
}

static bide_awaiter *init_writev_at(fixture *f)
{
    return bide_writev(&f->operation, &f->file, f->vectors, 2, 10);
}

static bide_awaiter *init_sync(fixture *f)
{
    return bide_sync(&f->operation, &f->file, BIDE_SYNC_ALL);
}

static bide_awaiter *init_sync_data(fixture *f)
{
    return bide_sync(&f->operation, &f->file, BIDE_SYNC_DATA);
}

static bide_awaiter *init_allocate(fixture *f)
{
    return bide_allocate(&f->operation, &f->file, 0, 0, 2 * SIZE);
}

static bide_awaiter *init_truncate(fixture *f)
{
    return bide_truncate(&f->operation, &f->file, 100);
}

static bide_awaiter *init_stat(fixture *f)
{
    return bide_stat(&f->operation, &f->file, &f->about);
}

static bide_awaiter *init_stat_path(fixture *f)
{
    return bide_stat_path(&f->operation, f->path, &f->about, 0);
}

static bide_awaiter *init_statx(fixture *f)
{
    return bide_statx_at(&f->operation, NULL, f->path, 0, STATX_BASIC_STATS, &f->about_more);
}

static bide_awaiter *init_statfs(fixture *f)
{
    return bide_statfs_at(&f->operation, NULL, f->path, &f->system);
}

static bide_awaiter *init_chmod(fixture *f)
{
    return bide_chmod_at(&f->operation, NULL, f->path, 0640, 0);
}

static bide_awaiter *init_chown(fixture *f)
{
    return bide_chown_at(&f->operation, NULL, f->path, (uid_t)-1, (gid_t)-1, 0);
}

static bide_awaiter *init_utimes(fixture *f)
{
    return bide_utimes_at(&f->operation, NULL, f->path, f->times, 0);
}

static bide_awaiter *init_realpath(fixture *f)
{
    return bide_realpath_at(&f->operation, NULL, f->link, f->text, sizeof f->text);
}

static bide_awaiter *init_readlink(fixture *f)
{
    return bide_readlink_at(&f->operation, NULL, f->link, f->text, sizeof f->text);
}

static bide_awaiter *init_symlink(fixture *f)
{
    return bide_symlink_at(&f->operation, "target", NULL, f->other);
}

static bide_awaiter *init_link(fixture *f)
{
    return bide_link_at(&f->operation, NULL, f->path, NULL, f->other, 0);
}

static bide_awaiter *init_rename(fixture *f)
{
    return bide_rename(&f->operation, f->path, f->other);
}

static bide_awaiter *init_unlink(fixture *f)
{
    return bide_unlink(&f->operation, f->path, 0);
}

static bide_awaiter *init_make_directory(fixture *f)
{
    return bide_make_directory(&f->operation, f->other, 0700);
}

static bide_awaiter *init_copy(fixture *f)
{
    return bide_copy_file(&f->copy, &f->second, 0, &f->file, SIZE, SIZE);
}

static bide_awaiter *init_send_file(fixture *f)
{
    return bide_send_file(&f->send, &f->socket, &f->file, 0, SIZE);
}

static bide_awaiter *init_next_entry(fixture *f)
{
    return bide_next_entry(&f->entry, &f->entries);
}

static bide_awaiter *init_map(fixture *f)
{
    return bide_map_file(&f->operation, &f->file, 0, SIZE, PROT_READ, MAP_SHARED);
}

static bide_awaiter *init_prefault(fixture *f)
{
    return bide_prefault(&f->operation, f->mapped, SIZE, false);
}

typedef struct row {
    int code;
    const char *call; /* that is replaced */
    init_operation *init;
    bool has_file; /* its descriptor may be closed meanwhile */
    bool
        has_another; /* it continues with another operation, which ends early when this one's call is done */
} row;

static const row rows[] = {
    {BIDE_IO_OPEN, "openat64", init_open, false, false},
    {BIDE_IO_OPEN_TEMPORARY, "openat64 without a name", init_open_temporary, false, false},
    {BIDE_IO_READ, "read", init_read, true, false},
    {BIDE_IO_READ, "pread64", init_read_at, true, false},
    {BIDE_IO_WRITE, "write", init_write, true, false},
    {BIDE_IO_WRITE, "pwrite64", init_write_at, true, false},
    {BIDE_IO_READ_VECTOR, "readv", init_readv, true, false},
    {BIDE_IO_READ_VECTOR, "preadv64", init_readv_at, true, false},
    {BIDE_IO_WRITE_VECTOR, "writev", init_writev, true, false},
    {BIDE_IO_WRITE_VECTOR, "pwritev64", init_writev_at, true, false},
    {BIDE_IO_SYNC, "fsync", init_sync, true, false},
    {BIDE_IO_SYNC, "fdatasync", init_sync_data, true, false},
    {BIDE_IO_ALLOCATE, "fallocate64", init_allocate, true, false},
    {BIDE_IO_TRUNCATE, "ftruncate64", init_truncate, true, false},
    {BIDE_IO_STAT, "fstat64", init_stat, true, false},
    {BIDE_IO_STAT, "fstatat64", init_stat_path, false, false},
    {BIDE_IO_STATX, "statx", init_statx, false, false},
    {BIDE_IO_STATFS, "statfs64", init_statfs, false, false},
    {BIDE_IO_CHMOD, "fchmodat", init_chmod, false, false},
    {BIDE_IO_CHOWN, "fchownat", init_chown, false, false},
    {BIDE_IO_UTIMES, "utimensat", init_utimes, false, false},
    {BIDE_IO_REALPATH, "realpath", init_realpath, false, false},
    {BIDE_IO_READLINK, "readlinkat", init_readlink, false, false},
    {BIDE_IO_SYMLINK, "symlinkat", init_symlink, false, false},
    {BIDE_IO_LINK, "linkat", init_link, false, false},
    {BIDE_IO_RENAME, "renameat", init_rename, false, false},
    {BIDE_IO_UNLINK, "unlinkat", init_unlink, false, false},
    {BIDE_IO_MAKE_DIRECTORY, "mkdirat", init_make_directory, false, false},
    {BIDE_IO_COPY_RANGE, "copy_file_range", init_copy, true, false},
    {BIDE_IO_SPLICE_FROM_FILE, "splice", init_send_file, true, true},
    {BIDE_IO_READ_DIRECTORY, "getdents64", init_next_entry, false, false},
    {BIDE_IO_MAP, "mmap64", init_map, true, false},
    {BIDE_IO_PREFAULT, "madvise", init_prefault, false, false},
};

enum { ROWS = sizeof rows / sizeof *rows };

static void open_plain(bide_descriptor *descriptor, const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    bide_descriptor_init(descriptor, fd);
}

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    int fds[2];
    assert_non_null(f);
    f->world = world;
    loop_thread = pthread_self();
    snprintf(f->directory, sizeof f->directory, "/tmp/bide_interrupted_XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/one", f->directory);
    snprintf(f->other, sizeof f->other, "%s/other", f->directory);
    snprintf(f->link, sizeof f->link, "%s/link", f->directory);
    assert_int_equal(symlink("one", f->link), 0);
    for (size_t i = 0; i < sizeof f->data; i++)
        f->data[i] = (char)(i % 251);
    f->vectors[0] = (struct iovec){f->data, 100};
    f->vectors[1] = (struct iovec){f->data + 100, SIZE - 100};
    open_plain(&f->file, f->path, O_RDWR | O_CREAT);
    assert_int_equal(pwrite(bide_descriptor_fd(&f->file), f->data, SIZE, 0), SIZE);
    open_plain(&f->second, f->path, O_RDONLY);
    open_plain(&f->opened_directory, f->directory, O_RDONLY | O_DIRECTORY);
    bide_directory_init(&f->entries, &f->opened_directory, f->buffer, sizeof f->buffer);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    bide_descriptor_init(&f->socket, fds[0]);
    bide_descriptor_init(&f->peer, fds[1]);
    f->mapped = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, bide_descriptor_fd(&f->file), 0);
    assert_true(f->mapped != MAP_FAILED);
    return f;
}

static void end_fixture(fixture *f)
{
    munmap(f->mapped, SIZE);
    bide_close(&f->opened);
    bide_close(&f->file);
    bide_close(&f->second);
    bide_close(&f->opened_directory);
    bide_close(&f->socket);
    bide_close(&f->peer);
    unlink(f->path);
    unlink(f->link);
    if (unlink(f->other) != 0)
        rmdir(f->other);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
}

/* What it has mapped goes, too. */
static void unmap_result(const fixture *f, const row *row, int status)
{
    if (row->code == BIDE_IO_MAP && status == 0)
        assert_int_equal(munmap(f->operation.operation.arguments.map.at, SIZE), 0);
}

static void replace(const row *row, int mode)
{
    calls.name = row->call;
    bide_atomic_store(&calls.made, 0, relaxed);
    bide_atomic_store(&calls.mode, mode, release);
}

static void restore(void)
{
    bide_atomic_store(&calls.mode, NOT_REPLACED, release);
}

/* Whether its call is made on a thread here, and waits. (Otherwise the kernel has made it.) */
static bool wait_for_call(fixture *f)
{
    while (bide_atomic_load(&calls.made, acquire) == 0 && !f->runner.has_ended)
        turn(f->world);
    return bide_atomic_load(&calls.made, acquire) != 0;
}

/* ---- Tests ---- */

static void every_operation_that_may_block_has_a_row(void **state)
{
    (void)state;
    for (int code = 0; code < BIDE_IO_CODES; code++) {
        bool is_there = false;
        for (int i = 0; i < ROWS; i++)
            is_there |= rows[i].code == code;
        if (bide_io_rows_[code].blocks != IO_BLOCKS_NEVER && !is_there)
            fail_msg("%s has no row", bide_io_rows_[code].name);
    }
}

/* Of one whose call has done nothing. */
static void check_that_nothing_was_done(const fixture *f, const row *row, bool is_open)
{
    struct stat about;
    assert_false(bide_descriptor_is_open(&f->opened));
    if (is_open) {
        assert_int_equal(lseek(bide_descriptor_fd(&f->file), 0, SEEK_CUR), 0);
        assert_int_equal(fstat(bide_descriptor_fd(&f->file), &about), 0);
        assert_int_equal(about.st_size, SIZE);
        assert_int_equal(about.st_mode & 0777, 0600);
    }
    assert_int_equal(access(f->path, F_OK), 0);
    assert_int_equal(access(f->other, F_OK), -1);
    assert_int_equal(f->operation.operation.count, 0);
    if (row->code == BIDE_IO_COPY_RANGE)
        assert_int_equal(f->copy.count, 0);
    if (row->code == BIDE_IO_SPLICE_FROM_FILE)
        assert_int_equal(f->send.count, 0);
}

static void a_call_that_is_interrupted_has_done_nothing(void **state)
{
    world *world = world_of_a_loop(world_of(state));
    unsigned interrupted = 0, by_kernel = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int how = 0; how < WAYS; how++) {
            const row *row = &rows[i];
            if (how == CLOSE && !row->has_file)
                continue;
            fixture *f = begin_fixture(world);
            int before = count_descriptors();
            replace(row, INTERRUPTED);
            begin_by(world, &f->runner, row->init(f), how);
            if (wait_for_call(f)) {
                end_by(world, &f->runner, &f->file, how);
                restore();
                check_that_nothing_was_done(f, row, how != CLOSE);
                /* (the threads' own stay; a file that is closed is gone) */
                assert_in_range(count_descriptors(), before - 1, before + KEPT_DESCRIPTORS);
                interrupted++;
            } else {
                int status = how == DESTROY ? f->runner.status : end(world, &f->runner);
                restore();
                assert_true(status == 0 || (status == -ETIMEDOUT && how == TIME_OUT));
                unmap_result(f, row, status);
                by_kernel++;
            }
            end_fixture(f);
        }
    }
    printf("# %u interrupted, %u made by the kernel\n", interrupted, by_kernel);
}

/* The signal arrives when the call is done. */
static void a_call_that_is_done_in_spite_of_its_end_counts(void **state)
{
    world *world = world_of_a_loop(world_of(state));
    for (int i = 0; i < ROWS; i++) {
        for (int how = 0; how < WAYS; how++) {
            const row *row = &rows[i];
            if (how == TIME_OUT || (how == CLOSE && !row->has_file))
                continue; /* (a timeout may be early) */
            fixture *f = begin_fixture(world);
            int before = count_descriptors();
            replace(row, DONE);
            begin_by(world, &f->runner, row->init(f), how);
            bool waits = wait_for_call(f);
            if (waits && how == STOP)
                call_inside(world, stop, &f->runner);
            else if (waits && how == STOP_OUTSIDE)
                stop(&f->runner);
            else if (waits && how == DESTROY)
                destroy(world, &f->runner);
            else if (waits && how == CLOSE)
                call_inside(world, close_it, &f->file);
            int status = how == DESTROY ? 0 : end(world, &f->runner);
            restore();
            if (row->has_another)
                assert_true(status == 0 || status == -ECANCELED || status == -EPIPE);
            else
                assert_int_equal(status, 0);
            if (how != DESTROY || !waits) {
                unmap_result(f, row, status);
            } else {
                assert_false(bide_descriptor_is_open(&f->opened));
                assert_in_range(count_descriptors(), before, before + KEPT_DESCRIPTORS);
            }
            if (row->code == BIDE_IO_READ_DIRECTORY && how == DESTROY && waits) {
                assert_int_equal(lseek(bide_descriptor_fd(&f->opened_directory), 0, SEEK_CUR), 0);
            }
            end_fixture(f);
        }
    }
}

/* Nobody has asked for an end: the call is made again. */
static void a_signal_of_the_program_is_no_status(void **state)
{
    world *world = world_of_a_loop(world_of(state));
    for (int i = 0; i < ROWS; i++) {
        const row *row = &rows[i];
        fixture *f = begin_fixture(world);
        replace(row, SIGNALLED);
        int status = world_wait(world, row->init(f));
        int made = bide_atomic_load(&calls.made, acquire);
        restore();
        assert_int_equal(status, 0);
        assert_true(made >= 4 || (made == 0 && !world_is_by_readiness()));
        unmap_result(f, row, status);
        end_fixture(f);
    }
}

/* A mapping that may not be locked in memory fails with EAGAIN, which nothing will change. */
static void an_eagain_of_a_call_that_waits_for_no_descriptor_is_final(void **state)
{
    static const row last[] = {{BIDE_IO_MAP, "mmap64", init_map, true, false},
                               {BIDE_IO_PREFAULT, "madvise", init_prefault, false, false}};
    world *world = world_of_a_loop(world_of(state));
    for (int i = 0; i < 2; i++) {
        fixture *f = begin_fixture(world);
        calls.error = EAGAIN;
        replace(&last[i], FAILING);
        int status = world_wait(world, last[i].init(f));
        restore();
        assert_int_equal(status, -EAGAIN);
        assert_int_equal(world_wait(world, last[i].init(f)), 0);
        unmap_result(f, &last[i], 0);
        end_fixture(f);
    }
}

/* The kernel gets all of it at once: what file systems share, they share by such a call. */
static void a_file_is_copied_by_one_call(void **state)
{
    static const row copy = {BIDE_IO_COPY_RANGE, "copy_file_range", init_copy, true, false};
    world *world = world_of_a_loop(world_of(state));
    fixture *f = begin_fixture(world);
    struct stat about;
    replace(&copy, COUNTED);
    assert_int_equal(world_wait(world, init_copy(f)), 0);
    int made = bide_atomic_load(&calls.made, acquire);
    restore();
    assert_int_equal(made, 1);
    assert_int_equal(f->copy.count, SIZE);
    assert_int_equal(fstat(bide_descriptor_fd(&f->file), &about), 0);
    assert_int_equal(about.st_size, 2 * SIZE);
    end_fixture(f);
}

/* ---- Calls that must not wait ---- */

/*
 * A pipe in blocking mode polls as ready, and the call that must not wait finds nothing (another process was faster), or
 * the kernel has no such call.
 */
static void a_call_that_must_not_wait_finds_nothing_and_waits_again(void **state)
{
    static const int errors[] = {EAGAIN, EOPNOTSUPP, EINTR};
    static const row writes = {BIDE_IO_WRITE, "pwritev64v2", NULL, true, false};
    static const row reads = {BIDE_IO_READ, "preadv64v2", NULL, true, false};
    world *world = world_of_a_loop(world_of(state));
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        bide_descriptor input, output;
        bide_file_operation reading, writing;
        struct runner runner;
        char text[16];
        world_pipe(world, &input, &output);
        calls.error = errors[i];
        assert_int_equal(write(bide_descriptor_fd(&output), "abc", 3), 3);
        replace(&reads, FAILING);
        begin(world, &runner, bide_read(&reading, &input, text, sizeof text));
        turn(world);
        if (!runner.has_ended) /* (more arrives, as if the first had been taken) */
            assert_int_equal(write(bide_descriptor_fd(&output), "def", 3), 3);
        assert_int_equal(end(world, &runner), 0);
        assert_true(reading.operation.count == 3 || reading.operation.count == 6);
        assert_memory_equal(text, "abc", 3);
        replace(&writes, FAILING);
        begin(world, &runner, bide_write(&writing, &output, "ghi", 3));
        turn(world);
        if (!runner.has_ended) /* (there is more room) */
            (void)!read(bide_descriptor_fd(&input), text, sizeof text);
        restore();
        assert_int_equal(end(world, &runner), 0);
        assert_int_equal(writing.operation.count, 3);
        assert_int_equal(bide_close(&input), 0);
        assert_int_equal(bide_close(&output), 0);
    }
}

int main(void)
{
    if (pipe(calls.gate) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_that_may_block_has_a_row),
        world_test(a_call_that_is_interrupted_has_done_nothing),
        world_test(a_call_that_is_done_in_spite_of_its_end_counts),
        world_test(a_signal_of_the_program_is_no_status),
        world_test(an_eagain_of_a_call_that_waits_for_no_descriptor_is_final),
        world_test(a_file_is_copied_by_one_call),
        world_test(a_call_that_must_not_wait_finds_nothing_and_waits_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
