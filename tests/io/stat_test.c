/*
 * Stats: what they report is what the bare call reports, of any descriptor and by any path; and their ends, more at
 * once than a ring has memory for. On io_uring the kernel fills in a struct of the loop's.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char directory_path[] = "/tmp/bide-stat-XXXXXX";
static char path[64], link_path[64], fifo_path[64];

static int make_files(void **state)
{
    (void)state;
    if (mkdtemp(directory_path) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/one", directory_path);
    snprintf(link_path, sizeof link_path, "%s/link", directory_path);
    snprintf(fifo_path, sizeof fifo_path, "%s/fifo", directory_path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    const struct timespec times[2] = {{1234567890, 123456789}, {987654321, 987654321}};
    if (fd < 0 || write(fd, "12345", 5) != 5 || futimens(fd, times) != 0)
        return -1;
    close(fd);
    return symlink("one", link_path) != 0 || mkfifo(fifo_path, 0604) != 0 ? -1 : 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(path);
    unlink(link_path);
    unlink(fifo_path);
    return rmdir(directory_path);
}

static void assert_same_time(struct timespec one, struct timespec other)
{
    assert_int_equal(one.tv_sec, other.tv_sec);
    assert_int_equal(one.tv_nsec, other.tv_nsec);
}

static void assert_same(const struct stat *one, const struct stat *other)
{
    assert_int_equal(one->st_dev, other->st_dev);
    assert_int_equal(one->st_ino, other->st_ino);
    assert_int_equal(one->st_mode, other->st_mode);
    assert_int_equal(one->st_nlink, other->st_nlink);
    assert_int_equal(one->st_uid, other->st_uid);
    assert_int_equal(one->st_gid, other->st_gid);
    assert_int_equal(one->st_rdev, other->st_rdev);
    assert_int_equal(one->st_size, other->st_size);
    assert_int_equal(one->st_blksize, other->st_blksize);
    assert_int_equal(one->st_blocks, other->st_blocks);
    assert_same_time(one->st_atim, other->st_atim);
    assert_same_time(one->st_mtim, other->st_mtim);
    assert_same_time(one->st_ctim, other->st_ctim);
}

static void a_path_is_reported_as_by_the_call(void **state)
{
    world *w = world_of(state);
    static const int flags[] = {0,
                                AT_SYMLINK_NOFOLLOW,
                                AT_NO_AUTOMOUNT,
                                AT_EMPTY_PATH,
                                0x4000 /* AT_STATX_DONT_SYNC */,
                                AT_SYMLINK_FOLLOW,
                                1 << 30};
    /* (nobody else changes these between two calls) */
    char dot[sizeof directory_path + 2];
    snprintf(dot, sizeof dot, "%s/.", directory_path);
    const char *const paths[] = {path,        link_path, fifo_path, directory_path,
                                 "/dev/null", dot,       "",        "/none/there"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (size_t j = 0; j < sizeof flags / sizeof *flags; j++) {
            bide_file_operation operation;
            struct stat about, expected;
            memset(&about, 0x5a, sizeof about);
            memset(&expected, 0x5a, sizeof expected);
            int error = fstatat(AT_FDCWD, paths[i], &expected, flags[j]) == 0 ? 0 : -errno;
            int status = world_wait(w, bide_stat_path(&operation, paths[i], &about, flags[j]));
            if (status != error)
                printf("# %s with %x\n", paths[i], (unsigned)flags[j]);
            assert_int_equal(status, error);
            assert_same(&about, &expected);
        }
    }
}

static void a_descriptor_is_reported_as_by_the_call(void **state)
{
    world *w = world_of(state);
    int fds[9];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds + 2), 0);
    fds[4] = open(path, O_RDONLY | O_CLOEXEC);
    fds[5] = open(link_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    fds[6] = open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fds[7] = eventfd(0, EFD_CLOEXEC);
    fds[8] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 9; i++) {
        bide_file_operation operation;
        bide_descriptor descriptor;
        struct stat about, expected;
        assert_true(fds[i] >= 0);
        assert_int_equal(fstat(fds[i], &expected), 0);
        bide_descriptor_init(&descriptor, fds[i]);
        memset(&about, 0x5a, sizeof about);
        assert_int_equal(world_wait(w, bide_stat(&operation, &descriptor, &about)), 0);
        assert_same(&about, &expected);
        assert_int_equal(bide_close(&descriptor), 0);
    }
}

/* ---- Ends ---- */

enum { MANY = 150 }; /* (a loop has memory for 64) */

typedef struct stat_one {
    struct runner runner;
    bide_file_operation operation;
    bide_descriptor file;
    struct stat about, after;
    int how;
    bool of_file;
} stat_one;

static struct stat_one ones[MANY];

static void prepare_one(stat_one *one, int how, bool of_file)
{
    one->how = how;
    one->of_file = of_file || how == CLOSE;
    memset(&one->about, 0x5a, sizeof one->about);
    bide_descriptor_init_closed(&one->file);
    if (one->of_file)
        bide_descriptor_init(&one->file, open(path, O_RDONLY | O_CLOEXEC));
    assert_int_equal(bide_descriptor_is_open(&one->file), one->of_file);
}

static bide_awaiter *awaiter_of(stat_one *one)
{
    return one->of_file ? bide_stat(&one->operation, &one->file, &one->about)
                        : bide_stat_path(&one->operation, path, &one->about, 0);
}

static void begin_one(world *w, stat_one *one, int how, bool of_file)
{
    prepare_one(one, how, of_file);
    begin_by(w, &one->runner, awaiter_of(one), how);
}

/* The loop may not have entered the ring yet, or a thread of the kernel has it, or it has ended. */
static void end_one(world *w, stat_one *one)
{
    if (one->how == STOP)
        call_inside(w, stop, &one->runner);
    else if (one->how == STOP_OUTSIDE)
        stop(&one->runner);
    else if (one->how == CLOSE)
        call_inside(w, close_it, &one->file);
    else if (one->how == DESTROY && !one->runner.has_ended)
        call_inside(w, destroy_inside, &one->runner);
    one->after = one->about;
}

/* (of one that was destroyed, nothing is written afterwards) */
static void check_result(stat_one *one, int status, const struct stat *expected,
                         unsigned *succeeded)
{
    static const int statuses[] = {-ECANCELED, -ECANCELED, -ETIMEDOUT, 0, -EPIPE};
    struct stat untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    if (one->how == DESTROY && !one->runner.has_ended) {
        assert_memory_equal(&one->about, &one->after, sizeof one->about);
    } else {
        assert_true(status == 0 || status == statuses[one->how]);
        if (status == 0)
            assert_same(&one->about, expected);
        else
            assert_memory_equal(&one->about, &untouched, sizeof untouched);
        *succeeded += status == 0;
    }
    if (bide_descriptor_is_open(&one->file))
        assert_int_equal(bide_close(&one->file), 0);
}

static void check_one(world *w, stat_one *one, const struct stat *expected, unsigned *succeeded)
{
    int status = one->how == DESTROY ? one->runner.status : end(w, &one->runner);
    check_result(one, status, expected, succeeded);
}

static void stats_end_as_they_are_ended(void **state)
{
    world *w = world_of(state);
    struct stat expected;
    uint64_t random = testing_seed();
    unsigned succeeded = 0;
    assert_int_equal(stat(path, &expected), 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MANY; i++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            begin_one(w, &ones[i], (int)(random >> 40) % WAYS, (random >> 60) % 2 == 0);
            if ((random >> 50) % 8 == 0)
                turn(w);
        }
        for (int i = 0; i < MANY; i++)
            end_one(w, &ones[i]);
        for (int i = 0; i < MANY; i++)
            check_one(w, &ones[i], &expected, &succeeded);
        struct stat about;
        bide_file_operation operation;
        assert_int_equal(world_wait(w, bide_stat_path(&operation, path, &about, 0)), 0);
        assert_same(&about, &expected);
    }
    printf("# %u succeeded\n", succeeded);
}

/* On the loop: they begin and end without a look at completions in between, but for those of a destroy. */
static void begin_and_end_all(void *first)
{
    stat_one *one = first;
    for (int i = 0; i < MANY; i++)
        start_inside(&one[i].runner);
    for (int i = 0; i < MANY; i++) {
        if (one[i].how == STOP)
            stop(&one[i].runner);
        else if (one[i].how == CLOSE)
            close_it(&one[i].file);
        else if (!one[i].runner.has_ended)
            destroy_inside(&one[i].runner);
        one[i].after = one[i].about;
    }
}

static void stats_end_before_the_kernel_has_them(void **state)
{
    world *w = world_of(state);
    struct stat expected;
    uint64_t random = testing_seed();
    unsigned succeeded = 0;
    assert_int_equal(stat(path, &expected), 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MANY; i++) {
            static const int hows[] = {STOP, DESTROY, CLOSE};
            stat_one *one = &ones[i];
            random = random * 6364136223846793005U + 1442695040888963407U;
            prepare_one(one, hows[(random >> 40) % 3], (random >> 60) % 2 == 0);
            prepare(w, &one->runner, awaiter_of(one));
        }
        call_inside(w, begin_and_end_all, ones);
        for (int i = 0; i < MANY; i++) {
            while (ones[i].how != DESTROY && !ones[i].runner.has_ended)
                turn(w);
            check_result(&ones[i], ones[i].runner.status, &expected, &succeeded);
        }
    }
    printf("# %u succeeded\n", succeeded);
}

/* ---- What a loop has memory for ---- */

/* None of it is lost, however the stats before have ended: the ring takes as many again. */
static void stats_without_an_end_in_between_all_succeed(void **state)
{
    world *w = world_of(state);
    struct stat expected;
    assert_int_equal(stat(path, &expected), 0);
    for (int round = 0; round < 10; round++) {
        unsigned succeeded = 0;
        for (int i = 0; i < MANY; i++)
            begin_one(w, &ones[i], STOP, i % 2 == 0);
        for (int i = 0; i < MANY; i++)
            check_one(w, &ones[i], &expected, &succeeded);
        assert_int_equal(succeeded, MANY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_path_is_reported_as_by_the_call),
        world_test(a_descriptor_is_reported_as_by_the_call),
        world_test(stats_end_as_they_are_ended),
        world_test(stats_end_before_the_kernel_has_them),
        world_test(stats_without_an_end_in_between_all_succeed),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
