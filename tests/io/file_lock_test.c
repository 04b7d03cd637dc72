/* Locks of files: they exclude what the system's exclude, and a wait for one ends in every way that waits end. */
#define _GNU_SOURCE
#include "runner.h"

#include <sys/wait.h>

#ifndef F_OFD_SETLK
#error "the system's headers have no locks of open files"
#endif

enum { PLACES = 4 };

static char path[] = "/tmp/bide_lock_XXXXXX";
static bide_descriptor first, second;

static void open_files(void)
{
    strcpy(path, "/tmp/bide_lock_XXXXXX");
    int made = mkstemp(path);
    assert_true(made >= 0);
    bide_descriptor_init(&first, made);
    bide_descriptor_init(&second, open(path, O_RDWR | O_CLOEXEC));
    assert_true(bide_descriptor_is_open(&second));
}

static void close_files(void)
{
    bide_close(&first);
    bide_close(&second);
    unlink(path);
}

/* The world of a test, with one file that is open twice. */
static world *world_with_files(void **state)
{
    world *world = world_of_the_system(state, "it has no locks");
    open_files();
    int status = bide_try_lock_file(&first, BIDE_FILE_EXCLUSIVE, 0, 0);
    if (status == -EINVAL) { /* (an emulator) */
        printf("# no locks of open files\n");
        close_files();
        skip();
    }
    assert_int_equal(status, 0);
    assert_int_equal(bide_unlock_file(&first, 0, 0), 0);
    return world;
}

/* What the bare call says: whether a third open file could lock that. */
static bool is_free(short type, int64_t offset, int64_t size)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)size};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    close(fd);
    return lock.l_type == F_UNLCK;
}

static void locks_are_those_of_the_call(void **state)
{
    static const bide_file_lock_kind kinds[] = {BIDE_FILE_SHARED, BIDE_FILE_EXCLUSIVE};
    static const short types[] = {F_RDLCK, F_WRLCK};
    static const int64_t places[PLACES][2] = {{0, 0}, {0, 10}, {5, 10}, {100, 1}};
    (void)world_with_files(state);
    for (int i = 0; i < 2 * PLACES; i++) {
        const int64_t *mine = places[i / 2];
        assert_int_equal(bide_try_lock_file(&first, kinds[i % 2], mine[0], mine[1]), 0);
        for (int j = 0; j < 2 * PLACES; j++) {
            const int64_t *its = places[j / 2];
            int status = bide_try_lock_file(&second, kinds[j % 2], its[0], its[1]);
            bide_unlock_file(&second, 0, 0);
            assert_int_equal(status, is_free(types[j % 2], its[0], its[1]) ? 0 : -EAGAIN);
        }
        assert_int_equal(bide_unlock_file(&first, 0, 0), 0);
        assert_true(is_free(F_WRLCK, 0, 0));
    }
    close_files();
}

static void a_lock_is_waited_for(void **state)
{
    world *world = world_with_files(state);
    bide_lock_file_operation lock;
    struct runner runner;
    assert_int_equal(world_wait(world, bide_lock_file(&lock, &first, BIDE_FILE_EXCLUSIVE, 0, 0)),
                     0);
    begin(world, &runner, bide_lock_file(&lock, &second, BIDE_FILE_SHARED, 0, 1));
    for (int i = 0; i < 3; i++)
        turn(world);
    assert_false(runner.has_ended);
    assert_int_equal(bide_unlock_file(&first, 0, 1), 0);
    assert_int_equal(end(world, &runner), 0);
    assert_false(is_free(F_WRLCK, 0, 1));
    assert_true(is_free(F_RDLCK, 0, 1));
    close_files();
}

static void a_wait_ends_early_and_locks_nothing(void **state)
{
    world *world = world_with_files(state);
    bide_lock_file_operation lock;
    struct runner runner;
    assert_int_equal(bide_try_lock_file(&first, BIDE_FILE_EXCLUSIVE, 0, 0), 0);
    for (int how = 0; how < CLOSE; how++) {
        begin_by(world, &runner, bide_lock_file(&lock, &second, BIDE_FILE_EXCLUSIVE, 0, 0), how);
        if (how != TIME_OUT)
            turn(world);
        end_by(world, &runner, &second, how);
    }
    assert_int_equal(bide_unlock_file(&first, 0, 0), 0);
    turn(world);
    assert_true(is_free(F_WRLCK, 0, 0));
    close_files();
}

static void a_lock_ends_with_its_file(void **state)
{
    world *world = world_with_files(state);
    bide_lock_file_operation lock;
    struct runner runner;
    assert_int_equal(bide_try_lock_file(&first, BIDE_FILE_EXCLUSIVE, 0, 0), 0);
    begin(world, &runner, bide_lock_file(&lock, &second, BIDE_FILE_EXCLUSIVE, 0, 0));
    turn(world);
    assert_false(runner.has_ended);
    bide_close(&first);
    assert_int_equal(end(world, &runner), 0);
    begin(world, &runner, bide_lock_file(&lock, &first, BIDE_FILE_EXCLUSIVE, 0, 0));
    assert_int_equal(end(world, &runner), -EBADF);
    close_files();
}

static void a_file_that_is_not_written_has_no_exclusive_lock(void **state)
{
    world *world = world_with_files(state);
    bide_lock_file_operation lock;
    bide_descriptor reading;
    bide_descriptor_init(&reading, open(path, O_RDONLY | O_CLOEXEC));
    assert_int_equal(world_wait(world, bide_lock_file(&lock, &reading, BIDE_FILE_EXCLUSIVE, 0, 0)),
                     -EBADF);
    assert_int_equal(world_wait(world, bide_lock_file(&lock, &reading, BIDE_FILE_SHARED, 0, 0)), 0);
    assert_int_equal(bide_try_lock_file(&reading, BIDE_FILE_SHARED, -1, 0), -EINVAL);
    bide_close(&reading);
    close_files();
}

static void there_are_none_in_memory(void **state)
{
    world *world = world_of(state);
    bide_lock_file_operation lock;
    bide_file_operation operation;
    if (!world_is("memory"))
        skip();
    assert_int_equal(
        world_wait(world, bide_open(&operation, &first, "/tmp/file", O_RDWR | O_CREAT, 0600)), 0);
    assert_int_equal(world_wait(world, bide_lock_file(&lock, &first, BIDE_FILE_SHARED, 0, 0)),
                     -EOPNOTSUPP);
    assert_int_equal(bide_unlock_file(&first, 0, 0), -EOPNOTSUPP);
    bide_close(&first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(locks_are_those_of_the_call),
        world_test(a_lock_is_waited_for),
        world_test(a_wait_ends_early_and_locks_nothing),
        world_test(a_lock_ends_with_its_file),
        world_test(a_file_that_is_not_written_has_no_exclusive_lock),
        world_test(there_are_none_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
