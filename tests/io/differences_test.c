/*
 * Operations do what the bare system calls do. Each cell of a table is done twice, on descriptors that are made alike:
 * by the system call, and by the operation in this world. Compared are the status, the count, the position, the bytes
 * that were read, and what the other end, or the file, has got.
 *
 *     operation × kind of descriptor × size × limit × what lies in it before
 *
 * A second table ends each operation in each way: operation × kind × size × whether it is full × end.
 *
 * What would wait has no bare counterpart: the call ends with -EAGAIN, and the operation is stopped. The rest of the
 * file are cases that have no counterpart at all.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>

/* ---- Descriptors that are made alike ---- */

enum { SIZE = 200000, LIMIT = 70000, VECTORS = 1500 };

typedef enum kind {
    REGULAR,
    APPENDED,
    UNLINKED,
    DIRECT,
    IN_MEMORY,
    PIPE_IN,
    PIPE_OUT,
    FIFO,
    STREAMS,
    DATAGRAMS,
    PACKETS,
    TCP,
    LISTENER,
    COUNTER,
    CLOCK,
    PROC,
    DIRECTORY,
    CLOSED_PEER,
    KINDS
} kind;

static const char *const kind_names[KINDS] = {
    "file",    "appended file", "unlinked file", "file by O_DIRECT", "memfd",   "pipe to read", "pipe to write", "FIFO",        "Unix stream",
    "Unix datagrams", "packets", "TCP",           "listener",      "eventfd", "timerfd",      "/proc file",    "directory",   "closed peer",
};

typedef struct subject {
    int fd;
    int peer; /* -1: none */
} subject;

static char pattern[SIZE];

static void fill_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (char)(i * 7 + (i >> 8) * 31);
}

static const char *directory_of_files = "/tmp";

static int make_file(int flags)
{
    char path[100];
    snprintf(path, sizeof path, "%s/bide_difference_XXXXXX", directory_of_files);
    int first = mkstemp(path);
    assert_true(first >= 0);
    assert_int_equal(write(first, pattern, 5000), 5000);
    int fd = open(path, O_RDWR | O_CLOEXEC | flags);
    if (fd < 0 && (flags & O_DIRECT) != 0) /* (not all file systems have it) */
        fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    close(first);
    unlink(path);
    return fd;
}

static void make_tcp(subject *made)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    made->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(connect(made->peer, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS);
    made->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(made->fd >= 0);
    close(listener);
}

static void make_pair(subject *made, int type)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    *made = (subject){fds[0], fds[1]};
}

static subject make(kind kind)
{
    subject made = {-1, -1};
    int fds[2];
    switch (kind) {
    case REGULAR:
        made.fd = make_file(0);
        break;
    case APPENDED:
        made.fd = make_file(O_APPEND);
        break;
    case UNLINKED:
        made.fd = make_file(O_NONBLOCK);
        break;
    case DIRECT:
        made.fd = make_file(O_DIRECT);
        break;
    case IN_MEMORY:
        made.fd = memfd_create("difference", MFD_CLOEXEC);
        assert_int_equal(pwrite(made.fd, pattern, 5000, 0), 5000);
        break;
    case PIPE_IN:
    case PIPE_OUT:
        assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
        made = kind == PIPE_IN ? (subject){fds[0], fds[1]} : (subject){fds[1], fds[0]};
        break;
    case FIFO: {
        char path[] = "/tmp/bide_difference_XXXXXX";
        assert_non_null(mkdtemp(path));
        char name[64];
        snprintf(name, sizeof name, "%s/fifo", path);
        assert_int_equal(mkfifo(name, 0600), 0);
        made.fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        made.peer = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        unlink(name);
        rmdir(path);
        break;
    }
    case STREAMS:
        make_pair(&made, SOCK_STREAM);
        break;
    case DATAGRAMS:
        make_pair(&made, SOCK_DGRAM);
        break;
    case PACKETS:
        make_pair(&made, SOCK_SEQPACKET);
        break;
    case TCP:
        make_tcp(&made);
        break;
    case LISTENER:
        made.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(listen(made.fd, 1), 0);
        break;
    case COUNTER:
        made.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        break;
    case CLOCK:
        made.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        break;
    case PROC:
        made.fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        break;
    case DIRECTORY:
        made.fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        break;
    case CLOSED_PEER:
        make_pair(&made, SOCK_STREAM);
        close(made.peer);
        made.peer = -1;
        break;
    case KINDS:
        break;
    }
    assert_true(made.fd >= 0);
    return made;
}

static void discard(subject *it)
{
    if (it->fd >= 0)
        close(it->fd);
    if (it->peer >= 0)
        close(it->peer);
}

/* ---- Operations, in both ways ---- */

typedef enum code { READ, READ_AT, READV, READV_AT, RECV, WRITE, WRITE_AT, WRITEV, WRITEV_AT, SEND, CODES } code;

static const char *const code_names[CODES] = {"read",  "read_at",  "readv",  "readv_at",  "recv",
                                              "write", "write_at", "writev", "writev_at", "send"};

enum { OFFSET = 1000 };

static bool code_writes(code code)
{
    return code >= WRITE;
}

/* What an operation did. */
typedef struct outcome {
    int status;
    size_t count;
    long position;
    char bytes[SIZE];  /* read */
    char got[2 * SIZE]; /* by the other end, or in the file */
    size_t got_size;
} outcome;

static size_t lay_out_vectors(struct iovec *vectors, char *data, size_t size)
{
    size_t count = size < VECTORS ? size : VECTORS;
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t part = i + 1 < count ? size / count : size - at;
        vectors[i] = (struct iovec){data + at, part};
        at += part;
    }
    return count;
}

/* The bare call, from `done` on; result or negative errno. */
static ptrdiff_t bare_call(code code, int fd, char *data, size_t size, size_t done)
{
    static struct iovec vectors[VECTORS];
    size_t count = lay_out_vectors(vectors, data + done, size - done);
    ptrdiff_t result = -1;
    if (count > IOV_MAX)
        count = IOV_MAX;
    switch (code) {
    case READ:
        result = read(fd, data, size);
        break;
    case READ_AT:
        result = pread(fd, data, size, OFFSET);
        break;
    case READV:
        result = readv(fd, vectors, (int)count);
        break;
    case READV_AT:
        result = preadv(fd, vectors, (int)count, OFFSET);
        break;
    case RECV:
        result = recv(fd, data, size, MSG_DONTWAIT);
        break;
    case WRITE:
        result = write(fd, data + done, size - done);
        break;
    case WRITE_AT:
        result = pwrite(fd, data + done, size - done, OFFSET + (off_t)done);
        break;
    case WRITEV:
        result = writev(fd, vectors, (int)count);
        break;
    case WRITEV_AT:
        result = pwritev(fd, vectors, (int)count, OFFSET + (off_t)done);
        break;
    case SEND:
        result = send(fd, data + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case CODES:
        break;
    }
    return result >= 0 ? result : -errno;
}

static void do_bare(outcome *outcome, code code, const subject *it, char *data, size_t size)
{
    outcome->status = 0;
    outcome->count = 0;
    do {
        ptrdiff_t result = bare_call(code, it->fd, data, size, outcome->count);
        if (result < 0) {
            outcome->status = (int)result;
            return;
        }
        outcome->count += (size_t)result;
    } while (code_writes(code) && outcome->count < size);
}

static bide_awaiter *init_operation(bide_file_operation *file, bide_descriptor *descriptor, code code, char *data,
                                    size_t size)
{
    static struct iovec vectors[VECTORS];
    int count = (int)lay_out_vectors(vectors, data, size);
    switch (code) {
    case READ:
        return bide_read(file, descriptor, data, size);
    case READ_AT:
        return bide_read_at(file, descriptor, data, size, OFFSET);
    case READV:
        return bide_readv(file, descriptor, vectors, count, -1);
    case READV_AT:
        return bide_readv(file, descriptor, vectors, count, OFFSET);
    case RECV:
        return bide_recv(&file->operation, descriptor, data, size);
    case WRITE:
        return bide_write(file, descriptor, data, size);
    case WRITE_AT:
        return bide_write_at(file, descriptor, data, size, OFFSET);
    case WRITEV:
        return bide_writev(file, descriptor, vectors, count, -1);
    case WRITEV_AT:
        return bide_writev(file, descriptor, vectors, count, OFFSET);
    case SEND:
        return bide_send(&file->operation, descriptor, data, size);
    case CODES:
        break;
    }
    return NULL;
}

static void do_operation(world *world, outcome *outcome, code code, const subject *it, char *data, size_t size,
                         bool would_wait)
{
    bide_descriptor descriptor;
    bide_file_operation file;
    struct runner runner;
    bide_descriptor_init(&descriptor, it->fd);
    begin(world, &runner, init_operation(&file, &descriptor, code, data, size));
    if (would_wait) {
        for (int i = 0; i < 3 && !runner.has_ended; i++)
            turn(world);
        bide_stop_request(&runner.stop);
    }
    outcome->status = end(world, &runner);
    if (outcome->status == -ECANCELED && would_wait)
        outcome->status = -EAGAIN;
    outcome->count = file.operation.count;
    assert_int_equal(bide_descriptor_release(&descriptor), it->fd);
}

/* What is there afterwards. */
static void look_after(outcome *outcome, kind kind, const subject *it)
{
    ptrdiff_t result = 0;
    outcome->position = (long)lseek(it->fd, 0, SEEK_CUR);
    outcome->got_size = 0;
    if (kind <= IN_MEMORY) {
        result = pread(it->fd, outcome->got, sizeof outcome->got, 0);
        outcome->got_size = result > 0 ? (size_t)result : 0;
    }
    if (it->peer < 0)
        return;
    struct pollfd more = {it->peer, POLLIN, 0};
    while (outcome->got_size < sizeof outcome->got && poll(&more, 1, kind == TCP ? 5 : 0) > 0 &&
           (result = read(it->peer, outcome->got + outcome->got_size, sizeof outcome->got - outcome->got_size)) > 0)
        outcome->got_size += (size_t)result;
}

/* ---- The table ---- */

static void give_before(kind kind, const subject *it, int before)
{
    uint64_t one = 1;
    struct itimerspec soon = {{0, 0}, {0, 1}};
    struct pollfd ready = {it->fd, POLLIN, 0};
    if (before == 0)
        return;
    if (kind == COUNTER)
        assert_int_equal(write(it->fd, &one, sizeof one), sizeof one);
    else if (kind == CLOCK)
        timerfd_settime(it->fd, 0, &soon, NULL);
    else if (it->peer >= 0 && kind != PIPE_OUT)
        assert_int_equal(write(it->peer, pattern + 100, (size_t)before), before);
    if (kind <= IN_MEMORY)
        assert_int_equal(lseek(it->fd, before, SEEK_SET), before);
    else if (it->peer >= 0 && kind != PIPE_OUT)
        poll(&ready, 1, -1);
    else if (kind == CLOCK)
        poll(&ready, 1, -1);
}

static outcome bare, own;
static _Alignas(4096) char bare_data[SIZE], own_data[SIZE]; /* (for O_DIRECT) */

/* ---- File systems that are full: one for each way ---- */

enum { UNLIMITED, BY_SIZE, BY_DISK, LIMITS };

static char full_disks[2][40];

/* Mounts them for this process alone, which needs the right to. */
static bool mount_full_disks(void)
{
    if (full_disks[0][0] != '\0')
        return true;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/bide_difference_XXXXXX";
        assert_non_null(mkdtemp(path));
        if (mount("none", path, "tmpfs", 0, "size=131072") != 0) {
            rmdir(path);
            return false;
        }
        memcpy(full_disks[i], path, sizeof path);
    }
    return true;
}

static void unmount_full_disks(void)
{
    for (int i = 0; i < 2; i++) {
        if (full_disks[i][0] != '\0' && umount2(full_disks[i], MNT_DETACH) == 0)
            rmdir(full_disks[i]);
        full_disks[i][0] = '\0';
    }
}

/* Of two subjects. */
static void use_disk(int which, int limit)
{
    directory_of_files = limit == BY_DISK ? full_disks[which] : "/tmp";
}

/* True: both did the same. */
static bool compare(world *world, kind kind, code code, size_t size, int before, int limited)
{
    struct rlimit unlimited, limit;
    use_disk(0, limited);
    subject one = make(kind);
    use_disk(1, limited);
    subject other = make(kind);
    use_disk(0, UNLIMITED);
    memset(bare.bytes, 0, sizeof bare.bytes);
    give_before(kind, &one, before);
    give_before(kind, &other, before);
    memcpy(bare_data, pattern, sizeof bare_data);
    memcpy(own_data, pattern, sizeof own_data);
    getrlimit(RLIMIT_FSIZE, &unlimited);
    limit = unlimited;
    if (limited == BY_SIZE)
        limit.rlim_cur = LIMIT;
    setrlimit(RLIMIT_FSIZE, &limit);
    do_bare(&bare, code, &one, bare_data, size);
    do_operation(world, &own, code, &other, own_data, size, bare.status == -EAGAIN);
    setrlimit(RLIMIT_FSIZE, &unlimited);
    look_after(&bare, kind, &one);
    look_after(&own, kind, &other);
    discard(&one);
    discard(&other);
    /* (how much a socket takes at once is the kernel's choice) */
    static const char *const limits[LIMITS] = {"", ", limited by size", ", full disk"};
    bool takes_some = code_writes(code) && bare.status == -EAGAIN && bare.count != 0;
    bool same = bare.status == own.status && (bare.count == own.count || (takes_some && own.count != 0)) &&
                bare.position == own.position && memcmp(bare_data, own_data, sizeof own_data) == 0 &&
                (takes_some ? own.got_size >= own.count : bare.got_size == own.got_size) &&
                memcmp(bare.got, own.got, own.got_size < bare.got_size ? own.got_size : bare.got_size) == 0;
    if (!same)
        printf("# %s of %s, %zu bytes, %d before%s: bare %d, %zu, position %ld, there %zu; own %d, %zu, %ld, %zu\n",
               code_names[code], kind_names[kind], size, before, limits[limited], bare.status, bare.count,
               bare.position, bare.got_size, own.status, own.count, own.position, own.got_size);
    return same;
}

static void operations_do_what_the_calls_do(void **state)
{
    static const size_t sizes[] = {0, 8, 3000, 4096, SIZE};
    static const int befores[] = {0, 8, 2000};
    world *world = world_of(state);
    unsigned cells = 0, differ = 0;
    bool has_full_disks = mount_full_disks();
    if (!has_full_disks)
        printf("# no full disks: this process may not mount\n");
    for (kind kind = 0; kind < KINDS; kind++) {
        for (code code = 0; code < CODES; code++) {
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                for (size_t j = 0; j < sizeof befores / sizeof *befores; j++) {
                    for (int limit = 0; limit < (kind <= IN_MEMORY && code_writes(code) ? LIMITS : 1); limit++) {
                        if (limit == BY_DISK && (!has_full_disks || kind == IN_MEMORY || sizes[i] < SIZE))
                            continue;
                        bool has_messages = kind == DATAGRAMS || kind == PACKETS || kind == DIRECT;
                        if (has_messages && (code == WRITEV || code == WRITEV_AT) && sizes[i] > IOV_MAX)
                            continue; /* (how the rest is cut again is not the kernel's) */
                        cells++;
                        if (getenv("BIDE_CELLS") != NULL)
                            fprintf(stderr, "%s of %s, %zu bytes, %d before, limited %d\n", code_names[code],
                                    kind_names[kind], sizes[i], befores[j], limit);
                        differ += !compare(world, kind, code, sizes[i], befores[j], limit);
                    }
                }
            }
        }
    }
    unmount_full_disks();
    printf("# %u cells, %u differ\n", cells, differ);
    assert_int_equal(differ, 0);
}

/* ---- Ends ---- */

typedef enum way { BEFORE, AFTER, DURING, DURING_OUTSIDE, LATE, DESTROYED, CLOSED, ENDS } way;

static const char *const way_names[ENDS] = {"stopped before", "stopped after", "stopped", "stopped from outside",
                                            "late",           "destroyed",     "closed"};

/* As much as it takes now. */
static size_t fill(int fd)
{
    size_t filled = 0;
    ptrdiff_t count;
    for (size_t part = 4096; part != 0; part /= 8) {
        while ((count = write(fd, pattern, part)) > 0)
            filled += (size_t)count;
    }
    return filled;
}

static bool would_wait(kind kind, code code, size_t size, bool is_full)
{
    subject it = make(kind);
    if (is_full && it.peer >= 0)
        fill(it.fd);
    do_bare(&bare, code, &it, bare_data, size);
    discard(&it);
    return bare.status == -EAGAIN;
}

/* Takes `expected` bytes from the other end, and whatever is there beyond. */
static size_t take_all(const subject *it, size_t expected)
{
    static char text[SIZE];
    struct pollfd more = {it->peer, POLLIN, 0};
    size_t size = 0;
    ptrdiff_t count;
    while (poll(&more, 1, size < expected ? 5000 : 1) > 0 && (count = read(it->peer, text, sizeof text)) > 0)
        size += (size_t)count;
    return size;
}

/*
 * A cell: an operation is ended. What its count says has been moved, and nothing else; the descriptor does what it did
 * before.
 */
static void end_one(world *world, kind kind, code code, size_t size, bool is_full, way way)
{
    static const int how[ENDS] = {[DURING] = STOP,       [DURING_OUTSIDE] = STOP_OUTSIDE, [LATE] = TIME_OUT,
                                  [DESTROYED] = DESTROY, [CLOSED] = CLOSE};
    struct runner runner;
    bide_descriptor descriptor;
    bide_file_operation file;
    subject it = make(kind);
    bool has_peer = it.peer >= 0 && kind != PIPE_IN;
    size_t filled = is_full && it.peer >= 0 ? fill(it.fd) : 0;
    bide_descriptor_init(&descriptor, it.fd);
    bide_awaiter *awaiter = init_operation(&file, &descriptor, code, own_data, size);
    if (way == BEFORE) {
        begin_stopped(world, &runner, awaiter);
        assert_int_equal(end(world, &runner), -ECANCELED);
        assert_int_equal(file.operation.count, 0);
    } else if (way == AFTER) {
        begin(world, &runner, awaiter);
        assert_int_equal(end(world, &runner), bare.status);
        stop(&runner);
    } else {
        begin_by(world, &runner, awaiter, how[way]);
        if (way != LATE)
            turn(world);
        assert_false(runner.has_ended && way != LATE);
        end_by(world, &runner, &descriptor, how[way]);
    }
    size_t count = file.operation.count;
    if (code_writes(code) && has_peer)
        assert_int_equal(take_all(&it, filled + count), filled + count);
    if (way != CLOSED && way > AFTER && !code_writes(code) && it.peer >= 0) { /* nothing is lost */
        assert_int_equal(count, 0);
        assert_int_equal(write(it.peer, "abcdefgh", 8), 8);
        struct pollfd ready = {it.fd, POLLIN, 0};
        assert_int_equal(poll(&ready, 1, 5000), 1);
        assert_int_equal(read(it.fd, own_data, 8), 8);
        assert_memory_equal(own_data, "abcdefgh", 8);
    }
    if (way == CLOSED)
        assert_int_equal(fcntl(it.fd, F_GETFD), -1);
    else
        assert_int_equal(bide_descriptor_release(&descriptor), it.fd);
    if (way == CLOSED)
        it.fd = -1;
    discard(&it);
}

static void operations_end_as_they_are_ended(void **state)
{
    static const size_t sizes[] = {8, SIZE};
    world *world = world_of(state);
    unsigned cells = 0;
    int descriptors = count_descriptors();
    for (kind kind = PIPE_IN; kind < KINDS; kind++) {
        for (code code = 0; code < CODES; code++) {
            for (int i = 0; i < (code_writes(code) ? 4 : 2); i++) {
                if ((kind == DATAGRAMS || kind == PACKETS) && (code == WRITEV || code == WRITEV_AT) && sizes[i % 2] > IOV_MAX)
                    continue; /* (as above) */
                bool waits = would_wait(kind, code, sizes[i % 2], i / 2 != 0);
                bool is_certain = kind != TCP || !code_writes(code); /* (its room changes by itself) */
                for (way way = 0; way < (waits && is_certain ? ENDS : DURING); way++) {
                    if (way == AFTER && waits)
                        continue;
                    if (getenv("BIDE_CELLS") != NULL)
                        fprintf(stderr, "%s of %s, %zu bytes, full %d, %s\n", code_names[code], kind_names[kind],
                                sizes[i % 2], i / 2, way_names[way]);
                    end_one(world, kind, code, sizes[i % 2], i / 2 != 0, way);
                    cells++;
                }
            }
        }
    }
    assert_in_range(count_descriptors(), descriptors, descriptors + 1); /* (that of the threads, which stay) */
    printf("# %u cells\n", cells);
}

/* ---- Cases without a counterpart ---- */

/* Other changes of a connection whose other end sends no more are no reason to end, nor to look again and again. */
static void take_what_is_sent(world *world, const subject *it, unsigned times)
{
    char text[100];
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(send(it->fd, "abc", 3, 0), 3);
        assert_int_equal(recv(it->peer, text, 3, MSG_WAITALL), 3);
        turn(world);
    }
}

static uint64_t completions(world *world)
{
    bide_loop_stats counts;
    bide_loop_get_stats(world->loop, &counts);
    return counts.completions;
}

static void a_poll_ends_for_what_was_asked(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation polling;
    struct runner runner;
    subject it = make(TCP);
    bide_descriptor_init(&descriptor, it.fd);
    fcntl(it.peer, F_SETFL, 0);
    assert_int_equal(shutdown(it.peer, SHUT_WR), 0);
    begin(world, &runner, bide_poll(&polling, &descriptor, POLLPRI));
    turn(world);
    uint64_t before = completions(world);
    take_what_is_sent(world, &it, 20);
    assert_false(runner.has_ended);
    assert_in_range(completions(world) - before, 0, 200);
    bide_stop_request(&runner.stop);
    assert_int_equal(end(world, &runner), -ECANCELED);
    begin(world, &runner, bide_poll(&polling, &descriptor, POLLPRI | POLLIN));
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(polling.arguments.poll.found, POLLIN);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

static void a_poll_sees_what_comes_later(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation polling;
    struct runner runner;
    char text[4096];
    subject it = make(TCP);
    bide_descriptor_init(&descriptor, it.fd);
    assert_int_equal(shutdown(it.peer, SHUT_WR), 0);
    while (send(it.fd, pattern, sizeof pattern, MSG_DONTWAIT) > 0) {
    }
    begin(world, &runner, bide_poll(&polling, &descriptor, POLLOUT));
    for (int i = 0; i < 3; i++)
        turn(world);
    assert_false(runner.has_ended);
    assert_in_range(completions(world), 0, 100);
    while (!runner.has_ended) { /* (a blocking receive would hold the loop if all is taken before the poll ends) */
        (void)!recv(it.peer, text, sizeof text, MSG_DONTWAIT);
        turn(world);
    }
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(polling.arguments.poll.found, POLLOUT);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

/* A send whose calls are made after a poll. */
static void a_full_connection_whose_peer_sends_no_more_is_waited_for(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation sending;
    struct runner runner;
    static char text[65536];
    struct iovec bytes = {pattern, sizeof pattern};
    static bide_message messages[40];
    size_t got = 0;
    subject it = make(TCP);
    for (size_t i = 0; i < 40; i++)
        messages[i] = (bide_message){.header = {.msg_iov = &bytes, .msg_iovlen = 1}};
    bide_descriptor_init(&descriptor, it.fd);
    assert_int_equal(shutdown(it.peer, SHUT_WR), 0);
    while (send(it.fd, pattern, sizeof pattern, MSG_DONTWAIT) > 0) {
    }
    begin(world, &runner, bide_send_batch(&sending, &descriptor, messages, 40));
    turn(world);
    uint64_t before = completions(world);
    for (int i = 0; i < 5; i++)
        turn(world);
    assert_in_range(completions(world) - before, 0, 20);
    assert_false(runner.has_ended);
    while (!runner.has_ended) {
        ptrdiff_t count = recv(it.peer, text, sizeof text, MSG_DONTWAIT);
        got += count > 0 ? (size_t)count : 0;
        turn(world);
    }
    assert_int_equal(end(world, &runner), 0);
    assert_true(got != 0);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

static void a_number_may_have_two_structs(void **state)
{
    world *world = world_of(state);
    bide_descriptor one, other;
    bide_io_operation first, second;
    struct runner receiver, poller;
    char byte;
    subject it = make(STREAMS);
    bide_descriptor_init(&one, it.fd);
    bide_descriptor_init(&other, it.fd);
    for (int round = 0; round < 3; round++) {
        begin(world, &receiver, bide_recv(&first, &one, &byte, 1));
        begin(world, &poller, bide_poll(&second, &other, POLLIN));
        turn(world);
        assert_false(receiver.has_ended || poller.has_ended);
        assert_int_equal(write(it.peer, "x", 1), 1);
        assert_int_equal(end(world, &receiver), 0);
        if (!poller.has_ended) /* (the byte was gone) */
            bide_stop_request(&poller.stop);
        (void)end(world, &poller);
        if (round == 1) { /* the first goes; the second stays */
            assert_int_equal(bide_descriptor_release(&one), it.fd);
            bide_descriptor_init(&one, it.fd);
        }
    }
    assert_int_equal(bide_descriptor_release(&other), it.fd);
    assert_int_equal(bide_close(&one), 0);
    close(it.peer);
}

static void bytes_behind_an_urgent_one_are_received(void **state)
{
    world *world = world_of(state);
    bide_descriptor descriptor;
    bide_io_operation receiving;
    char text[100];
    size_t count = 0;
    subject it = make(TCP);
    bide_descriptor_init(&descriptor, it.fd);
    struct runner runner;
    begin(world, &runner, bide_recv(&receiving, &descriptor, text, sizeof text));
    turn(world);
    assert_int_equal(send(it.peer, "abc", 3, 0), 3);
    assert_int_equal(send(it.peer, "!", 1, MSG_OOB), 1);
    assert_int_equal(send(it.peer, "def", 3, 0), 3);
    assert_int_equal(end(world, &runner), 0);
    for (count = receiving.count; count < 6; count += receiving.count) {
        assert_int_equal(world_wait(world, bide_recv(&receiving, &descriptor, text, sizeof text)), 0);
        assert_int_not_equal(receiving.count, 0);
    }
    assert_int_equal(count, 6);
    assert_int_equal(bide_close(&descriptor), 0);
    close(it.peer);
}

/* A listener whose queue is full, so that a connect waits. */
static int make_full_listener(bide_address *address, int *clients, int count)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bide_address_parse(address, "127.0.0.1:0"), 0);
    assert_int_equal(bind(listener, &address->any.generic, address->length), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, &address->any.generic, &address->length), 0);
    for (int i = 0; i < count; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(clients[i], &address->any.generic, address->length);
    }
    return listener;
}

static void close_all(int listener, const int *clients, int count)
{
    close(listener);
    for (int i = 0; i < count; i++)
        close(clients[i]);
}

static bide_descriptor connection;
static int result_of_leaving;

static void close_connection(void *argument)
{
    (void)argument;
    result_of_leaving = bide_close(&connection);
}

static void release_connection(void *argument)
{
    (void)argument;
    result_of_leaving = bide_descriptor_release(&connection);
}

static void a_descriptor_may_leave_while_it_connects(void **state)
{
    world *world = world_of(state);
    bide_io_operation connecting;
    struct runner runner;
    bide_address address;
    int clients[3];
    int listener = make_full_listener(&address, clients, 3);
    bide_descriptor_init_closed(&connection);
    begin(world, &runner, bide_connect(&connecting, &connection, &address));
    turn(world);
    assert_false(runner.has_ended);
    call_inside(world, close_connection, NULL);
    assert_int_equal(result_of_leaving, 0);
    assert_int_equal(end(world, &runner), -EPIPE);
    begin(world, &runner, bide_connect(&connecting, &connection, &address));
    turn(world);
    call_inside(world, release_connection, NULL);
    assert_int_equal(result_of_leaving, -EBADF); /* its end has closed it: there is none to have */
    assert_int_equal(end(world, &runner), -EPIPE);
    assert_false(bide_descriptor_is_open(&connection));
    close_all(listener, clients, 3);
}

/* The child of a fork keeps the open file: what the loop knows of it has to go when the connect ends. */
static void a_connect_that_is_given_up_is_forgotten(void **state)
{
    enum { WAYS_TO_GIVE_UP = 3 };
    world *world = world_of(state);
    for (int way = 0; way < WAYS_TO_GIVE_UP; way++) {
        bide_descriptor *made = malloc(sizeof *made);
        bide_io_operation connecting;
        struct runner runner;
        bide_address address;
        int clients[3], status;
        int listener = make_full_listener(&address, clients, 3);
        bide_descriptor_init_closed(made);
        bide_awaiter *awaiter = bide_connect(&connecting, made, &address);
        begin_by(world, &runner, awaiter, way == 0 ? STOP : way == 1 ? DESTROY : CLOSE);
        turn(world);
        pid_t child = fork();
        if (child == 0) {
            pause();
            _exit(0);
        }
        end_by(world, &runner, made, way == 0 ? STOP : way == 1 ? DESTROY : CLOSE);
        memset(made, 0x55, sizeof *made);
        free(made);
        close_all(listener, clients, 3); /* the child's connection is reset: an event, if it were still known */
        for (int i = 0; i < 3; i++)
            turn(world);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        turn(world);
    }
}

/* Another process takes the connection between the loop's poll and its accept. */
static void a_shared_listener_in_blocking_mode_blocks_no_loop(void **state)
{
    world *world = world_of(state);
    bide_descriptor listener, accepted;
    bide_io_operation accepting;
    struct runner runner;
    bide_address address;
    int client;
    int fd = make_full_listener(&address, &client, 1);
    int other = accept(fd, NULL, NULL);
    const struct timeval soon = {.tv_usec = 10000}; /* (for the accept below: a ring may be faster) */
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    bide_descriptor_init(&listener, fd);
    bide_descriptor_init_closed(&accepted);
    begin(world, &runner, bide_accept(&accepting, &listener, &accepted, NULL));
    turn(world);
    for (int i = 0; i < 20; i++) {
        int next = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(next, &address.any.generic, address.length), 0);
        int taken = accept4(fd, NULL, NULL, SOCK_NONBLOCK); /* (the loop's thread is this one) */
        assert_true(taken >= 0 || errno == EAGAIN);
        turn(world);
        close(next);
        if (taken >= 0)
            close(taken);
        if (runner.has_ended)
            break;
    }
    int last = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* nobody is faster */
    assert_int_equal(connect(last, &address.any.generic, address.length), 0);
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(bide_close(&accepted), 0);
    close(last);
    if (world_is("epoll")) /* whose call has no other way not to wait */
        assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_int_equal(bide_close(&listener), 0);
    close(other);
    close(client);
}

static void a_fifo_that_nobody_reads_is_waited_for(void **state)
{
    world *world = world_of(state);
    char path[] = "/tmp/bide_difference_XXXXXX", name[64];
    bide_descriptor fifo;
    bide_file_operation opening;
    struct runner runner;
    assert_non_null(mkdtemp(path));
    snprintf(name, sizeof name, "%s/fifo", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    begin(world, &runner, bide_open(&opening, &fifo, name, O_WRONLY, 0));
    for (int i = 0; i < 3; i++)
        turn(world);
    assert_false(runner.has_ended);
    int reader = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(bide_close(&fifo), 0);
    begin(world, &runner, bide_open(&opening, &fifo, name, O_WRONLY | O_NONBLOCK, 0));
    assert_int_equal(end(world, &runner), 0);
    assert_int_equal(bide_close(&fifo), 0);
    close(reader);
    begin(world, &runner, bide_open(&opening, &fifo, name, O_WRONLY | O_NONBLOCK, 0));
    assert_int_equal(end(world, &runner), -ENXIO);
    unlink(name);
    rmdir(path);
}

/* ---- Calls that wait on a thread ---- */

/* A directory with a FIFO that nobody has open. */
static void make_fifo(char *directory, char *name, size_t size)
{
    assert_non_null(mkdtemp(directory));
    snprintf(name, size, "%s/fifo", directory);
    assert_int_equal(mkfifo(name, 0600), 0);
}

static void remove_fifo(const char *directory, const char *name)
{
    unlink(name);
    rmdir(directory);
}

/* More opens than there are threads that make such calls. */
static void opens_that_wait_can_be_given_up(void **state)
{
    enum { OPENS = 6 };
    world *world = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        char path[] = "/tmp/bide_difference_XXXXXX", name[64], text[10];
        static struct runner runners[OPENS];
        bide_file_operation opening[OPENS], reading;
        bide_descriptor opened[OPENS], file;
        if (how == CLOSE) /* (there is nothing to close) */
            continue;
        make_fifo(path, name, sizeof name);
        for (int i = 0; i < OPENS; i++) {
            bide_descriptor_init_closed(&opened[i]);
            begin_by(world, &runners[i],
                     bide_open(&opening[i], &opened[i], name, how % 2 == 0 ? O_RDONLY : O_WRONLY, 0), how);
        }
        for (int i = 0; i < OPENS; i++)
            end_by(world, &runners[i], NULL, how);
        assert_int_equal(world_wait(world, bide_open(&opening[0], &file, "/proc/self/cmdline", O_RDONLY, 0)), 0);
        assert_int_equal(world_wait(world, bide_read(&reading, &file, text, sizeof text)), 0);
        assert_int_equal(bide_close(&file), 0);
        for (int i = 0; i < OPENS; i++)
            assert_false(bide_descriptor_is_open(&opened[i]));
        remove_fifo(path, name);
    }
}

/* Many more opens than there are threads, of the library or the kernel, for calls that are short. */
static void opens_that_wait_hold_up_no_other_file(void **state)
{
    enum { OPENS = 64 };
    world *world = world_of(state);
    char path[] = "/tmp/bide_difference_XXXXXX", name[64], text[10];
    static struct runner runners[OPENS];
    static bide_file_operation opening[OPENS];
    static bide_descriptor opened[OPENS];
    bide_file_operation other;
    bide_descriptor file;
    struct stat status;
    make_fifo(path, name, sizeof name);
    for (int i = 0; i < OPENS; i++) {
        bide_descriptor_init_closed(&opened[i]);
        begin_by(world, &runners[i], bide_open(&opening[i], &opened[i], name, O_RDONLY, 0), STOP);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_wait(world, bide_open(&other, &file, "/proc/self/cmdline", O_RDONLY, 0)), 0);
        assert_int_equal(world_wait(world, bide_read(&other, &file, text, sizeof text)), 0);
        assert_int_equal(world_wait(world, bide_stat(&other, &file, &status)), 0);
        assert_int_equal(bide_close(&file), 0);
    }
    for (int i = 0; i < OPENS; i++)
        assert_false(runners[i].has_ended);
    for (int i = 0; i < OPENS; i++)
        end_by(world, &runners[i], NULL, STOP);
    for (int i = 0; i < OPENS; i++)
        assert_false(bide_descriptor_is_open(&opened[i]));
    remove_fifo(path, name);
}

/* (on the loop, so that it does not end in between) */
static void destroy_unless_ended(void *argument)
{
    struct runner *runner = argument;
    if (!runner->has_ended)
        destroy_inside(runner);
}

/* The open and its end by a request meet: there is a descriptor exactly if it succeeds. */
static void an_open_that_is_interrupted_leaves_no_descriptor(void **state)
{
    world *world = world_of(state);
    char path[] = "/tmp/bide_difference_XXXXXX", name[64];
    bide_file_operation opening;
    bide_descriptor opened;
    struct runner runner;
    unsigned succeeded = 0;
    make_fifo(path, name, sizeof name);
    int before = count_descriptors();
    for (int i = 0; i < 200; i++) {
        int how = i % 3 == 0 ? STOP_OUTSIDE : i % 3 == 1 ? STOP : DESTROY;
        bide_descriptor_init_closed(&opened);
        begin_by(world, &runner, bide_open(&opening, &opened, name, O_RDONLY, 0), how);
        if (i % 2 == 0)
            turn(world);
        int writer = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC); /* (it is there if the reader is) */
        if (how == STOP_OUTSIDE)
            stop(&runner);
        else
            call_inside(world, how == STOP ? stop : destroy_unless_ended, &runner);
        if (how != DESTROY) {
            int status = end(world, &runner);
            assert_true(status == 0 || status == -ECANCELED);
            assert_true(bide_descriptor_is_open(&opened) == (status == 0));
            succeeded += status == 0;
            if (status == 0)
                assert_int_equal(bide_close(&opened), 0);
        } else if (runner.has_ended && bide_descriptor_is_open(&opened)) {
            assert_int_equal(bide_close(&opened), 0);
        }
        assert_false(bide_descriptor_is_open(&opened));
        if (writer >= 0)
            close(writer);
    }
    printf("# %u opens succeeded in spite of the request\n", succeeded);
    assert_in_range(count_descriptors(), before, before + 1); /* (that of the threads, which stay) */
    remove_fifo(path, name);
}

/* Each begins before the one in front of it has ended. */
static void writes_of_a_file_end_in_their_order(void **state)
{
    enum { WRITES = 64, PART = 3000, ROUNDS = 10 };
    world *world = world_of(state);
    static struct runner runners[WRITES];
    static bide_file_operation writing[WRITES];
    static char part[WRITES][PART], got[WRITES * PART];
    for (int round = 0; round < ROUNDS; round++) {
        bide_descriptor file;
        bide_descriptor_init(&file, make_file(round % 2 == 0 ? O_APPEND | O_TRUNC : O_TRUNC));
        for (int i = 0; i < WRITES; i++) {
            memset(part[i], 'A' + i, PART);
            begin(world, &runners[i], bide_write(&writing[i], &file, part[i], PART));
        }
        for (int i = 0; i < WRITES; i++)
            assert_int_equal(end(world, &runners[i]), 0);
        assert_int_equal(pread(bide_descriptor_fd(&file), got, sizeof got, 0), sizeof got);
        for (int i = 0; i < WRITES; i++)
            assert_memory_equal(got + (size_t)i * PART, part[i], PART);
        assert_int_equal(bide_close(&file), 0);
    }
}

/* Operations of a file that wait behind others end in each way, and the others go on. */
static void an_operation_leaves_the_middle_of_its_line(void **state)
{
    enum { WRITES = 16, PART = 100000 };
    world *world = world_of(state);
    static struct runner runners[WRITES];
    static bide_file_operation writing[WRITES];
    static char part[PART];
    for (int how = 0; how < WAYS; how++) {
        bide_descriptor file;
        if (how == TIME_OUT) /* (may be late) */
            continue;
        bide_descriptor_init(&file, make_file(O_APPEND | O_TRUNC));
        for (int i = 0; i < WRITES; i++)
            begin_by(world, &runners[i], bide_write(&writing[i], &file, part, PART), how);
        if (how == CLOSE) {
            call_inside(world, close_it, &file);
        } else {
            for (int i = 0; i < WRITES; i += 3) {
                if (how == STOP_OUTSIDE)
                    stop(&runners[i]);
                else
                    call_inside(world, how == STOP ? stop : destroy_unless_ended, &runners[i]);
            }
        }
        for (int i = 0; i < WRITES; i++) {
            if (how == DESTROY) {
                while (i % 3 != 0 && !runners[i].has_ended)
                    turn(world);
                continue;
            }
            int status = end(world, &runners[i]);
            if (how == CLOSE)
                assert_true(status == 0 || status == -EPIPE);
            else
                assert_true(status == 0 || (status == -ECANCELED && i % 3 == 0));
        }
        if (how != CLOSE)
            assert_int_equal(bide_close(&file), 0);
    }
}

/* A terminal in blocking mode, which others share, and its master. */
static subject make_terminal(void)
{
    struct termios raw;
    subject made;
    made.peer = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(made.peer >= 0);
    assert_int_equal(grantpt(made.peer), 0);
    assert_int_equal(unlockpt(made.peer), 0);
    made.fd = open(ptsname(made.peer), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(made.fd >= 0);
    assert_int_equal(tcgetattr(made.fd, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(made.fd, TCSANOW, &raw), 0);
    return made;
}

static void a_slow_reader_of_a_terminal_holds_no_loop(void **state)
{
    world *world = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        bide_descriptor terminal;
        bide_file_operation writing, second;
        struct runner runner, behind;
        static char got[SIZE];
        subject it = make_terminal();
        size_t size = 0;
        bide_descriptor_init(&terminal, it.fd);
        begin_by(world, &runner, bide_write(&writing, &terminal, pattern, sizeof pattern), how);
        begin(world, &behind, bide_write(&second, &terminal, "after", 5));
        for (int i = 0; i < 3; i++)
            turn(world);
        assert_int_equal(fcntl(it.peer, F_SETFL, O_NONBLOCK), 0);
        if (how == STOP_OUTSIDE) { /* it goes on when it is read */
            while (!behind.has_ended || size < sizeof pattern + 5) {
                ptrdiff_t count = read(it.peer, got, sizeof got);
                for (ptrdiff_t i = 0; i < count; i++, size++)
                    assert_int_equal(got[i], size < sizeof pattern ? pattern[size] : "after"[size - sizeof pattern]);
                turn(world);
            }
            assert_int_equal(end(world, &runner), 0);
            assert_int_equal(writing.operation.count, sizeof pattern);
        } else {
            end_by(world, &runner, &terminal, how);
            assert_true(writing.operation.count < sizeof pattern);
            while (!behind.has_ended) {
                (void)!read(it.peer, got, sizeof got);
                turn(world);
            }
        }
        assert_int_equal(end(world, &behind), how == CLOSE ? -EPIPE : 0);
        if (how != CLOSE) {
            assert_int_equal(fcntl(it.fd, F_GETFL) & O_NONBLOCK, 0); /* it is as the others know it */
            assert_int_equal(bide_close(&terminal), 0);
        }
        close(it.peer);
    }
}

/* Of processes that share a terminal, another one is faster. */
static void input_of_a_terminal_that_another_takes_holds_no_loop(void **state)
{
    world *world = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        bide_descriptor terminal;
        bide_file_operation reading;
        struct runner runner;
        char text[10];
        subject it = make_terminal();
        bide_descriptor_init(&terminal, it.fd);
        begin_by(world, &runner, bide_read(&reading, &terminal, text, sizeof text), how);
        if (how == STOP_OUTSIDE) {
            turn(world);
            assert_int_equal(write(it.peer, "abc", 3), 3);
            assert_int_equal(end(world, &runner), 0);
            assert_int_equal(reading.operation.count, 3);
        } else {
            end_by(world, &runner, &terminal, how);
        }
        if (how != CLOSE)
            assert_int_equal(bide_close(&terminal), 0);
        close(it.peer);
    }
}

/* Of a process that may pin little memory. */
static int send_without_a_copy(void)
{
    static char text[65536];
    subject it = make(TCP);
    bide_descriptor descriptor;
    bide_io_operation sending;
    struct runner runner;
    void *state;
    size_t got = 0;
    static char large[1 << 20];
    const struct rlimit little = {500000, 500000};
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = pattern[i % sizeof pattern];
    setrlimit(RLIMIT_MEMLOCK, &little);
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
        return 2;
    world_begin(&state);
    if (((world *)state)->context == NULL)
        return 2;
    bide_descriptor_init(&descriptor, it.fd);
    begin(state, &runner, bide_send_zero_copy(&sending, &descriptor, large, sizeof large));
    while (!runner.has_ended || (runner.status == 0 && got < sizeof large)) {
        ptrdiff_t count = recv(it.peer, text, sizeof text, MSG_DONTWAIT);
        if (count > 0 && memcmp(text, large + got, (size_t)count) != 0)
            return 3;
        got += count > 0 ? (size_t)count : 0;
        turn(state);
    }
    return end(state, &runner) == 0 && sending.count == sizeof large && got == sizeof large ? 0 : 4;
}

static void what_may_not_be_pinned_is_copied(void **state)
{
    int status;
    (void)world_of(state);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(send_without_a_copy());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* it cannot become another user, or has no ring there */
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    fill_pattern();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        world_test(operations_do_what_the_calls_do),
        world_test(operations_end_as_they_are_ended),
        world_test(a_poll_ends_for_what_was_asked),
        world_test(a_poll_sees_what_comes_later),
        world_test(a_full_connection_whose_peer_sends_no_more_is_waited_for),
        world_test(a_number_may_have_two_structs),
        world_test(bytes_behind_an_urgent_one_are_received),
        world_test(a_descriptor_may_leave_while_it_connects),
        world_test(a_connect_that_is_given_up_is_forgotten),
        world_test(a_shared_listener_in_blocking_mode_blocks_no_loop),
        world_test(a_fifo_that_nobody_reads_is_waited_for),
        world_test(opens_that_wait_can_be_given_up),
        world_test(opens_that_wait_hold_up_no_other_file),
        world_test(an_open_that_is_interrupted_leaves_no_descriptor),
        world_test(writes_of_a_file_end_in_their_order),
        world_test(an_operation_leaves_the_middle_of_its_line),
        world_test(a_slow_reader_of_a_terminal_holds_no_loop),
        world_test(input_of_a_terminal_that_another_takes_holds_no_loop),
        world_test(what_may_not_be_pinned_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
