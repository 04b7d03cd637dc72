/*
 * Copies of files, compared with those that the bare system call makes: status, count, and the bytes of both files.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <signal.h>
#include <sys/stat.h>

enum { SMALL = 100000, LARGE = (40 << 20) + 12345, MARKS = 20 };

static char pattern[SMALL], one[2 * SMALL], other[2 * SMALL];

static int open_temporary(int flags)
{
    char path[] = "/tmp/bide_copy_XXXXXX";
    int made = mkstemp(path);
    assert_true(made >= 0);
    int fd = open(path, flags | O_CLOEXEC);
    assert_true(fd >= 0);
    close(made);
    unlink(path);
    return fd;
}

static void fill_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (char)(i * 7 + (i >> 8) * 31 + 1);
}

/* ---- Compared with the call ---- */

typedef enum kind {
    FILES,
    APPENDS,
    READ_ONLY,
    WRITE_ONLY,
    ITSELF,
    FROM_PROC,
    FROM_PIPE,
    FROM_DIRECTORY,
    KINDS
} kind;

static const char *const kind_names[KINDS] = {
    "a file",
    "to one that appends",
    "to one that is read only",
    "from one that is write only",
    "itself",
    "a file of /proc",
    "a pipe",
    "a directory",
};

typedef struct subject {
    int from, to, third;
} subject;

static subject make(kind kind)
{
    subject it = {-1, -1, -1};
    int fds[2];
    it.to = open_temporary(kind == APPENDS     ? O_RDWR | O_APPEND
                           : kind == READ_ONLY ? O_RDONLY
                                               : O_RDWR);
    if (kind == FROM_PROC) {
        it.from = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    } else if (kind == FROM_PIPE) {
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        it.from = fds[0];
        it.third = fds[1];
        assert_int_equal(write(it.third, "some", 4), 4);
    } else if (kind == FROM_DIRECTORY) {
        it.from = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else if (kind == ITSELF) {
        assert_int_equal(pwrite(it.to, pattern, sizeof pattern, 0), sizeof pattern);
        it.from = dup(it.to);
    } else {
        it.from = open_temporary(kind == WRITE_ONLY ? O_WRONLY : O_RDWR);
        assert_int_equal(pwrite(it.from, pattern, sizeof pattern, 0), sizeof pattern);
    }
    assert_true(it.from >= 0);
    return it;
}

static void discard(subject *it)
{
    close(it->from);
    close(it->to);
    if (it->third >= 0)
        close(it->third);
}

/* As copy_file_range, or, if the kernel cannot copy between the two, by reading and writing. */
static int copy_bare(const subject *it, int64_t from, int64_t to, uint64_t max, uint64_t *count)
{
    *count = 0;
    while (*count < max) {
        loff_t at = (loff_t)(from + (int64_t)*count), there = (loff_t)(to + (int64_t)*count);
        size_t size = max - *count < 1 << 20 ? (size_t)(max - *count) : 1 << 20;
        ptrdiff_t done = copy_file_range(it->from, &at, it->to, &there, size, 0);
        if (done == 0 || (done < 0 && (errno == EXDEV || errno == ENOSYS || errno == EOPNOTSUPP))) {
            static char chunk[5000];
            done = pread(it->from, chunk, size < sizeof chunk ? size : sizeof chunk, (off_t)at);
            if (done > 0)
                done = pwrite(it->to, chunk, (size_t)done, (off_t)there);
        }
        if (done <= 0)
            return done == 0 ? 0 : -errno;
        *count += (uint64_t)done;
    }
    return 0;
}

static size_t content(int fd, char *bytes)
{
    memset(bytes, 0, sizeof one);
    ptrdiff_t size = pread(fd, bytes, sizeof one, 0);
    return size < 0 ? 0 : (size_t)size;
}

static bool compare(world *world, kind kind, int64_t from, int64_t to, uint64_t max,
                    bool is_limited)
{
    subject bare = make(kind), own = make(kind);
    bide_copy_file_operation copy;
    bide_descriptor from_descriptor, to_descriptor;
    uint64_t bare_count;
    struct rlimit unlimited, limit;
    getrlimit(RLIMIT_FSIZE, &unlimited);
    limit = unlimited;
    if (is_limited)
        limit.rlim_cur = 70000;
    setrlimit(RLIMIT_FSIZE, &limit);
    int bare_status = copy_bare(&bare, from, to, max, &bare_count);
    bide_descriptor_init(&from_descriptor, own.from);
    bide_descriptor_init(&to_descriptor, own.to);
    int own_status =
        world_wait(world, bide_copy_file(&copy, &from_descriptor, from, &to_descriptor, to, max));
    setrlimit(RLIMIT_FSIZE, &unlimited);
    assert_int_equal(bide_descriptor_release(&from_descriptor), own.from);
    assert_int_equal(bide_descriptor_release(&to_descriptor), own.to);
    size_t bare_size = content(bare.to, one), own_size = content(own.to, other);
    bool same = bare_status == own_status;
    if (kind != FROM_PROC) /* (whose content changes) */
        same = same && bare_count == copy.count && bare_size == own_size &&
               memcmp(one, other, sizeof one) == 0 &&
               lseek(bare.to, 0, SEEK_CUR) == lseek(own.to, 0, SEEK_CUR) &&
               (kind == FROM_PIPE || lseek(bare.from, 0, SEEK_CUR) == lseek(own.from, 0, SEEK_CUR));
    else
        same = same && (max == 0 || copy.count > 100 || copy.count == max) &&
               own_size == copy.count + (size_t)to;
    if (!same)
        printf("# %s, from %d to %d, %llu bytes%s: bare %d, %llu, there %zu; own %d, %llu, %zu\n",
               kind_names[kind], (int)from, (int)to, (unsigned long long)max,
               is_limited ? ", limited" : "", bare_status, (unsigned long long)bare_count,
               bare_size, own_status, (unsigned long long)copy.count, own_size);
    discard(&bare);
    discard(&own);
    return same;
}

static void copies_are_those_of_the_call(void **state)
{
    static const int64_t offsets[] = {0, 1, 4096};
    static const uint64_t sizes[] = {0, 1, 4096, 60000, UINT64_MAX};
    world *world = world_of_the_system(state, "it compares with the system");
    unsigned cells = 0, differ = 0;
    fill_pattern();
    for (kind kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
            for (size_t j = 0; j < sizeof offsets / sizeof *offsets; j++) {
                for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                    if (kind == FROM_PROC &&
                        (offsets[i] != 0 || (offsets[j] != 0 && sizes[k] == 0)))
                        continue;
                    if (kind == ITSELF && sizes[k] == UINT64_MAX)
                        continue; /* (a file that grows by what is copied from it) */
                    for (int is_limited = 0; is_limited < (kind == FILES ? 2 : 1);
                         is_limited++, cells++)
                        differ +=
                            !compare(world, kind, offsets[i], offsets[j], sizes[k], is_limited);
                }
            }
        }
    }
    printf("# %u cells, %u differ\n", cells, differ);
    assert_int_equal(differ, 0);
}

/* ---- In every world ---- */

static void open_two(world *world, bide_descriptor *from, bide_descriptor *to)
{
    bide_file_operation operation;
    fill_pattern();
    assert_int_equal(
        world_wait(world, bide_open_temporary(&operation, from, NULL, "/tmp", 0, 0600)), 0);
    assert_int_equal(world_wait(world, bide_open_temporary(&operation, to, NULL, "/tmp", 0, 0600)),
                     0);
    assert_int_equal(world_wait(world, bide_write_at(&operation, from, pattern, sizeof pattern, 0)),
                     0);
}

static void a_part_is_copied(void **state)
{
    world *world = world_of(state);
    bide_descriptor from, to;
    bide_file_operation operation;
    bide_copy_file_operation copy;
    open_two(world, &from, &to);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 1000, &to, 0, UINT64_MAX)), 0);
    assert_int_equal(copy.count, sizeof pattern - 1000);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 0, &to, 5, 20000)), 0);
    assert_int_equal(copy.count, 20000);
    assert_int_equal(world_wait(world, bide_read_at(&operation, &to, one, sizeof one, 0)), 0);
    assert_int_equal(operation.operation.count, sizeof pattern - 1000);
    assert_memory_equal(one, pattern + 1000, 5);
    assert_memory_equal(one + 5, pattern, 20000);
    assert_memory_equal(one + 20005, pattern + 21005, sizeof pattern - 21005);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, SMALL, &to, 0, 5)), 0);
    assert_int_equal(copy.count, 0);
    bide_close(&from);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 0, &to, 0, 5)), -EBADF);
    bide_close(&to);
}

/* What copy_file_range(2) refuses. */
static void ranges_that_overlap_and_files_that_append_are_refused(void **state)
{
    world *world = world_of(state);
    bide_descriptor from, to;
    bide_file_operation operation;
    bide_copy_file_operation copy;
    open_two(world, &from, &to);
    /* in one file: behind, before and on itself */
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 0, &from, 4096, 4097)),
                     -EINVAL);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 4096, &from, 0, 4097)),
                     -EINVAL);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 100, &from, 100, 1)), -EINVAL);
    assert_int_equal(copy.count, 0);
    assert_int_equal(world_wait(world, bide_read_at(&operation, &from, one, sizeof one, 0)), 0);
    assert_memory_equal(one, pattern, sizeof pattern);
    /* beside each other */
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 0, &from, 4096, 4096)), 0);
    assert_int_equal(copy.count, 4096);
    /* at its end there is nothing that could overlap */
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, sizeof pattern, &from, 0, 5)),
                     0);
    assert_int_equal(copy.count, 0);
    bide_close(&to);
    assert_int_equal(
        world_wait(world, bide_open_temporary(&operation, &to, NULL, "/tmp", O_APPEND, 0600)), 0);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 0, &to, 0, 5)), -EBADF);
    assert_int_equal(copy.count, 0);
    bide_close(&from);
    bide_close(&to);
}

/* Some bytes of a large file, its last one among them; the others are 0. */
static int64_t mark_of(int i)
{
    return i * (int64_t)(LARGE - 1) / MARKS;
}

/* The first `size` bytes of the copy are those of the file. */
static void check_large(const bide_descriptor *to, uint64_t size)
{
    struct stat about;
    assert_int_equal(fstat(bide_descriptor_fd(to), &about), 0);
    assert_int_equal(about.st_size, size);
    for (int i = 0; i <= MARKS && (uint64_t)mark_of(i) < size; i++) {
        char byte = 0;
        assert_int_equal(pread(bide_descriptor_fd(to), &byte, 1, mark_of(i)), 1);
        assert_int_equal(byte, 'a' + i);
    }
}

static void begin_large(world *world, bide_descriptor *from, bide_descriptor *to)
{
    bide_file_operation operation;
    assert_int_equal(
        world_wait(world, bide_open_temporary(&operation, from, NULL, "/tmp", 0, 0600)), 0);
    assert_int_equal(world_wait(world, bide_open_temporary(&operation, to, NULL, "/tmp", 0, 0600)),
                     0);
    assert_int_equal(world_wait(world, bide_truncate(&operation, from, LARGE)), 0);
    for (int i = 0; i <= MARKS; i++) {
        char byte = (char)('a' + i);
        assert_int_equal(pwrite(bide_descriptor_fd(from), &byte, 1, mark_of(i)), 1);
    }
}

static void a_copy_of_several_parts_is_whole(void **state)
{
    world *world = world_of_the_system(state, "it has no room");
    bide_descriptor from, to;
    bide_copy_file_operation copy;
    begin_large(world, &from, &to);
    assert_int_equal(world_wait(world, bide_copy_file(&copy, &from, 0, &to, 0, UINT64_MAX)), 0);
    assert_int_equal(copy.count, LARGE);
    check_large(&to, LARGE);
    bide_close(&from);
    bide_close(&to);
}

/* However a copy ends, its count is the number of bytes that are there. */
static void a_copy_that_ends_early_says_how_far_it_has_got(void **state)
{
    world *world = world_of_the_system(state, "it has no room");
    bide_descriptor from, to;
    bide_copy_file_operation copy;
    struct runner runner;
    for (int turns = 0; turns < 4; turns++) {
        begin_large(world, &from, &to);
        begin(world, &runner, bide_copy_file(&copy, &from, 0, &to, 0, UINT64_MAX));
        for (int i = 0; i < turns; i++)
            turn(world);
        call_inside(world, stop, &runner);
        int status = end(world, &runner);
        assert_true(status == -ECANCELED || (status == 0 && copy.count == LARGE));
        check_large(&to, copy.count);
        bide_close(&from);
        bide_close(&to);
    }
}

static void a_copy_may_be_destroyed(void **state)
{
    world *world = world_of_the_system(state, "it has no room");
    bide_descriptor from, to;
    bide_copy_file_operation copy;
    struct runner runner;
    begin_large(world, &from, &to);
    start(world, &runner, bide_copy_file(&copy, &from, 0, &to, 0, UINT64_MAX));
    destroy(world, &runner);
    check_large(&to, copy.count);
    bide_close(&from);
    bide_close(&to);
}

static void a_copy_ends_when_its_file_is_closed(void **state)
{
    world *world = world_of_the_system(state, "it has no room");
    bide_descriptor from, to;
    bide_copy_file_operation copy;
    struct runner runner;
    begin_large(world, &from, &to);
    begin(world, &runner, bide_copy_file(&copy, &from, 0, &to, 0, UINT64_MAX));
    turn(world);
    bool had_ended = runner.has_ended;
    call_inside(world, close_it, &to);
    int status = end(world, &runner);
    assert_true(status == -EPIPE || (status == 0 && (had_ended || copy.count == LARGE)));
    bide_close(&from);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        world_test(copies_are_those_of_the_call),
        world_test(a_part_is_copied),
        world_test(ranges_that_overlap_and_files_that_append_are_refused),
        world_test(a_copy_of_several_parts_is_whole),
        world_test(a_copy_that_ends_early_says_how_far_it_has_got),
        world_test(a_copy_may_be_destroyed),
        world_test(a_copy_ends_when_its_file_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
