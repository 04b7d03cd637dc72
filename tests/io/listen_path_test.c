/*
 * Paths at which servers listen: leftovers of killed servers, several servers at once, successors, and files that are
 * never removed.
 */
#define _GNU_SOURCE
#include "../open_descriptors.h"
#include "../testing.h"

#include <bide/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SERVERS = 4, BACKLOG = 16 };

static struct {
    char directory[64];
    char path[80];
} f;

static int make_directory(void **state)
{
    (void)state;
    strcpy(f.directory, "/tmp/bide-listen-XXXXXX");
    if (mkdtemp(f.directory) == NULL)
        return -1;
    snprintf(f.path, sizeof f.path, "%s/socket", f.directory);
    return 0;
}

/* (a test leaves nothing but what it says) */
static int remove_directory(void **state)
{
    (void)state;
    return rmdir(f.directory);
}

static struct sockaddr_un address_of_path(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, f.path);
    return address;
}

static int bound_socket(void)
{
    struct sockaddr_un address = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* As a killed server leaves it. */
static void leave_socket(void)
{
    close(bound_socket());
}

static int connect_to_path(void)
{
    struct sockaddr_un address = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int error = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    return error;
}

static bool path_exists(void)
{
    struct stat about;
    return lstat(f.path, &about) == 0;
}

static int opened(bide_listen_path *where)
{
    assert_int_equal(bide_listen_path_init(where, f.path), 0);
    return bide_listen_path_open(where, 0600, BACKLOG);
}

static void a_path_is_listened_at_and_removed(void **state)
{
    (void)state;
    bide_listen_path where;
    struct stat about;
    mode_t mask = umask(0);
    int fd = opened(&where);
    umask(mask);
    assert_true(fd >= 0);
    assert_int_equal(lstat(f.path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_true(S_ISSOCK(about.st_mode));
    assert_int_equal(connect_to_path(), 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(bide_listen_path_open(&where, 0600, BACKLOG), -EINVAL);
    bide_listen_path_remove(&where);
    assert_false(path_exists());
    bide_listen_path_remove(&where); /* (does nothing) */
    close(fd);
}

static void only_a_leftover_is_replaced(void **state)
{
    (void)state;
    bide_listen_path where, other;
    leave_socket();
    int fd = opened(&where);
    assert_true(fd >= 0);
    assert_int_equal(connect_to_path(), 0);
    /* a listener */
    assert_int_equal(opened(&other), -EADDRINUSE);
    bide_listen_path_remove(&other);
    assert_int_equal(connect_to_path(), 0);
    bide_listen_path_remove(&where);
    close(fd);
    /* a file, a directory, a link to nowhere */
    assert_int_equal(close(open(f.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_int_equal(opened(&where), -EEXIST);
    bide_listen_path_remove(&where);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(mkdir(f.path, 0700), 0);
    assert_int_equal(opened(&where), -EEXIST);
    bide_listen_path_remove(&where);
    assert_int_equal(rmdir(f.path), 0);
    assert_int_equal(symlink("nowhere", f.path), 0);
    assert_int_equal(opened(&where), -EEXIST);
    bide_listen_path_remove(&where);
    assert_int_equal(unlink(f.path), 0);
}

static void wrong_paths_are_refused(void **state)
{
    (void)state;
    bide_listen_path where;
    char name[200];
    memset(name, 'x', sizeof name);
    name[sizeof where.path] = '\0';
    assert_int_equal(bide_listen_path_init(&where, ""), -EINVAL);
    assert_int_equal(bide_listen_path_open(&where, 0600, BACKLOG), -EINVAL);
    bide_listen_path_remove(&where);
    assert_int_equal(bide_listen_path_init(&where, name), -ENAMETOOLONG);
    bide_listen_path_remove(&where);
    snprintf(name, sizeof name, "%s/none/socket", f.directory);
    assert_int_equal(bide_listen_path_init(&where, name), 0);
    assert_int_equal(bide_listen_path_open(&where, 0600, BACKLOG), -ENOENT);
    bide_listen_path_remove(&where);
}

static void a_socket_of_another_user_stays(void **state)
{
    (void)state;
    bide_listen_path where;
    if (geteuid() != 0) {
        print_message("# skipped: only root can give a file to another user\n");
        skip();
    }
    leave_socket();
    assert_int_equal(chown(f.path, 12345, 12345), 0);
    assert_int_equal(opened(&where), -EEXIST);
    bide_listen_path_remove(&where);
    assert_true(path_exists());
    assert_int_equal(unlink(f.path), 0);
}

/* The predecessor's path is taken by another process before the predecessor removes it. */
static void a_socket_of_a_successor_stays(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (int i = 0; i < 50; i++) {
        bide_listen_path before, after;
        int first = opened(&before);
        assert_true(first >= 0);
        bool is_closed = testing_random(&seed) % 2 != 0;
        if (is_closed)
            close(first); /* (so this is a leftover, which the successor replaces) */
        else
            assert_int_equal(unlink(f.path), 0);
        int second = opened(&after);
        assert_true(second >= 0);
        bide_listen_path_remove(&before);
        assert_int_equal(connect_to_path(), 0);
        bide_listen_path_remove(&after);
        assert_false(path_exists());
        close(second);
        if (!is_closed)
            close(first);
    }
}

struct starting {
    pthread_t thread;
    pthread_barrier_t *barrier;
    bide_listen_path where;
    unsigned spins;
    int result;
};

static void *start(void *argument)
{
    struct starting *starting = argument;
    pthread_barrier_wait(starting->barrier);
    for (volatile unsigned i = 0; i < starting->spins; i++) {
    }
    starting->result = opened(&starting->where);
    return NULL;
}

static void of_several_servers_one_replaces_a_leftover(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, SERVERS), 0);
    for (int i = 0; i < 30; i++) {
        struct starting servers[SERVERS];
        int listening = 0;
        leave_socket();
        for (int j = 0; j < SERVERS; j++) {
            servers[j].barrier = &barrier;
            servers[j].spins = (unsigned)(testing_random(&seed) % 3000);
            assert_int_equal(pthread_create(&servers[j].thread, NULL, &start, &servers[j]), 0);
        }
        for (int j = 0; j < SERVERS; j++) {
            assert_int_equal(pthread_join(servers[j].thread, NULL), 0);
            listening += servers[j].result >= 0;
            if (servers[j].result < 0)
                assert_int_equal(servers[j].result, -EADDRINUSE);
        }
        assert_int_equal(listening, 1);
        assert_int_equal(connect_to_path(), 0);
        for (int j = 0; j < SERVERS; j++) {
            bide_listen_path_remove(&servers[j].where);
            if (servers[j].result >= 0)
                close(servers[j].result);
        }
        assert_false(path_exists());
    }
    pthread_barrier_destroy(&barrier);
}

/* A server that never ends its replacing: this goes on without the lock, and leaves its own file. */
static void a_lock_that_is_held_is_not_waited_for_without_end(void **state)
{
    (void)state;
    bide_listen_path where;
    int lock = open(f.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    leave_socket();
    int fd = opened(&where);
    assert_true(fd >= 0);
    assert_int_equal(where.waits, 0);
    assert_int_equal(connect_to_path(), 0);
    bide_listen_path_remove(&where); /* does not wait again */
    assert_true(path_exists());
    close(fd);
    close(lock);
    fd = opened(&where);
    assert_true(fd >= 0);
    bide_listen_path_remove(&where);
    close(fd);
}

/* Another user's directory is not locked, and its lock is not waited for. */
static void the_directory_of_another_user_is_not_locked(void **state)
{
    (void)state;
    bide_listen_path where;
    if (geteuid() != 0) {
        print_message("# skipped: only root can give a file to another user\n");
        skip();
    }
    if (chown(f.directory, 12345, 12345) != 0) {
        print_message("# skipped: chown: %s\n", strerror(errno)); /* (in a user namespace) */
        skip();
    }
    int lock = open(f.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    leave_socket();
    int fd = opened(&where);
    assert_true(fd >= 0);
    assert_int_equal(where.directory, -1);
    bide_listen_path_remove(&where);
    assert_false(path_exists());
    close(fd);
    close(lock);
}

static void no_descriptor_is_left(void **state)
{
    (void)state;
    bide_listen_path where;
    unsigned before = open_descriptors();
    int fd = opened(&where);
    assert_true(fd >= 0);
    bide_listen_path_remove(&where);
    close(fd);
    assert_int_equal(close(open(f.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_int_equal(opened(&where), -EEXIST);
    bide_listen_path_remove(&where);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(open_descriptors(), before);
}

/* As a child of fork does: the file is the parent's. */
static void the_file_stays_if_it_is_not_removed(void **state)
{
    (void)state;
    bide_listen_path where, unopened;
    unsigned before = open_descriptors();
    int fd = opened(&where);
    assert_true(fd >= 0);
    assert_int_equal(bide_listen_path_init(&unopened, f.path), 0);
    bide_listen_path_destroy(&where);
    bide_listen_path_destroy(&where);
    bide_listen_path_destroy(&unopened);
    bide_listen_path_remove(&where); /* (has nothing to remove) */
    assert_int_equal(connect_to_path(), 0);
    close(fd);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(unlink(f.path), 0);
}

static void a_successor_adopts_the_file(void **state)
{
    (void)state;
    bide_listen_path where, successor;
    struct stat about;
    assert_int_equal(bide_listen_path_init(&successor, f.path), 0);
    assert_int_equal(bide_listen_path_adopt(&successor), -ENOENT);
    int fd = opened(&where);
    assert_true(fd >= 0);
    assert_int_equal(bide_listen_path_adopt(&where), -EINVAL);
    assert_int_equal(bide_listen_path_adopt(&successor), 0);
    bide_listen_path_destroy(&where);
    bide_listen_path_remove(&where); /* (it has none) */
    assert_int_equal(lstat(f.path, &about), 0);
    bide_listen_path_remove(&successor);
    assert_int_equal(lstat(f.path, &about), -1);
    close(fd);
    fd = open(f.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(bide_listen_path_init(&successor, f.path), 0);
    assert_int_equal(bide_listen_path_adopt(&successor), -EEXIST);
    bide_listen_path_remove(&successor);
    assert_int_equal(lstat(f.path, &about), 0);
    close(fd);
    unlink(f.path);
}

#define PATH_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PATH_TEST(a_path_is_listened_at_and_removed),
        PATH_TEST(only_a_leftover_is_replaced),
        PATH_TEST(wrong_paths_are_refused),
        PATH_TEST(a_socket_of_another_user_stays),
        PATH_TEST(a_socket_of_a_successor_stays),
        PATH_TEST(of_several_servers_one_replaces_a_leftover),
        PATH_TEST(a_lock_that_is_held_is_not_waited_for_without_end),
        PATH_TEST(the_directory_of_another_user_is_not_locked),
        PATH_TEST(no_descriptor_is_left),
        PATH_TEST(the_file_stays_if_it_is_not_removed),
        PATH_TEST(a_successor_adopts_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
