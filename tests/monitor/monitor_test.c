/*
 * The monitor: where it listens, which clients it rejects. Clients that send nonsense, do not read, or
 * disconnect do no harm.
 */
#define _GNU_SOURCE
#include "../open_descriptors.h"
#include "monitor_peer.h"

#include "../../src/base/thread_sanitizer.h"

#include <signal.h>
#include <sys/wait.h>

/* (ThreadSanitizer does not support threads that the child of a fork starts) */
enum { MAY_START_IN_CHILD = !BIDE_UNDER_TSAN_ };

/* ---- Where it listens ---- */

static void the_socket_is_the_owners_and_goes_with_the_monitor(void **state)
{
    (void)state;
    struct stat about;
    char found[200];
    assert_int_equal(bide_monitor_stop(), -EALREADY);
    mode_t before = umask(0);
    start();
    umask(before);
    assert_int_equal(bide_monitor_start(NULL), -EALREADY);
    assert_int_equal(lstat(path, &about), 0);
    assert_int_equal(about.st_mode, S_IFSOCK | 0600);
    assert_int_equal(bide_monitor_path(found, sizeof found), strlen(path));
    assert_string_equal(found, path);
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(lstat(path, &about), -1);
    assert_int_equal(bide_monitor_path(found, sizeof found), 0);
    assert_string_equal(found, "");
}

static void the_environment_names_the_path_and_no_more(void **state)
{
    (void)state;
    char other[100], found[200];
    snprintf(other, sizeof other, "%s/other", directory_path);
    setenv("BIDE_MONITOR", other, 1);
    assert_int_equal(bide_monitor_path(found, sizeof found), 0); /* it starts nothing on its own. */
    assert_int_equal(bide_monitor_start(NULL), 0);
    bide_monitor_path(found, sizeof found);
    assert_string_equal(found, other);
    assert_int_equal(bide_monitor_stop(), 0);
    start(); /* a path in the program has priority */
    bide_monitor_path(found, sizeof found);
    assert_string_equal(found, path);
    assert_int_equal(bide_monitor_stop(), 0);
    unsetenv("BIDE_MONITOR");
}

static void by_default_it_listens_below_the_runtime_directory(void **state)
{
    (void)state;
    char expected[120], found[200];
    struct stat about;
    setenv("XDG_RUNTIME_DIR", directory_path, 1);
    snprintf(expected, sizeof expected, "%s/bide/%d", directory_path, (int)getpid());
    assert_int_equal(bide_monitor_start(NULL), 0);
    bide_monitor_path(found, sizeof found);
    assert_string_equal(found, expected);
    assert_int_equal(bide_monitor_stop(), 0);
    snprintf(expected, sizeof expected, "%s/bide", directory_path);
    assert_int_equal(lstat(expected, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);

    /* a directory that others may write to is not used, and no descriptor of another is closed. */
    int other = open("/dev/null", O_RDONLY);
    int first = dup2(other, 0);
    chmod(expected, 0755);
    assert_int_equal(bide_monitor_start(NULL), -EPERM);
    assert_int_equal(first, 0);
    assert_true(fcntl(0, F_GETFD) >= 0);
    close(other);
    rmdir(expected);
    assert_int_equal(symlink("/tmp", expected), 0);
    assert_int_equal(bide_monitor_start(NULL), -EPERM);
    unlink(expected);
    unsetenv("XDG_RUNTIME_DIR");
}

static void a_stale_socket_file_is_replaced(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int left = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(left, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(left, 1), 0);
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = path}), -EADDRINUSE);
    close(left); /* and its file stays */
    start();
    peer peer;
    join(&peer);
    leave(&peer);

    /* if another process has replaced the socket's file, the file stays when the monitor stops. */
    unlink(path);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = path}), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

static void a_path_that_does_not_fit_is_rejected(void **state)
{
    (void)state;
    char much[300];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = much}), -ENAMETOOLONG);
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = "/nowhere/that/there/is"}),
                     -ENOENT);
}

static void another_user_is_rejected_even_if_the_file_allows_it(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    int status;
    if (geteuid() != 0)
        skip(); /* only root can become another user. */
    start();
    chmod(directory_path, 0755);
    chmod(path, 0666);
    pid_t child = fork();
    if (child == 0) {
        char text[200] = "";
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(1);
        int fd = try_to_connect(path);
        ssize_t count = fd >= 0 ? recv(fd, text, sizeof text - 1, MSG_WAITALL) : -1;
        _exit(count > 0 && strcmp(text, "{\"is\":\"error\",\"what\":\"this program is another "
                                        "user's\"}\n") == 0
                  ? 0
                  : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    peer peer;
    join(&peer); /* the owner is served */
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void a_child_of_fork_has_none_and_may_have_its_own(void **state)
{
    (void)state;
    int status;
    unsigned before = open_descriptors();
    start();
    pid_t child = fork();
    if (child == 0) {
        char found[200], own[120];
        snprintf(own, sizeof own, "%s.child", path);
        if (open_descriptors() != before)
            _exit(2);
        bool good = bide_monitor_path(found, sizeof found) == 0 && bide_monitor_stop() == -EALREADY;
        if (MAY_START_IN_CHILD && getenv("MESON_EXE_WRAPPER") == NULL)
            good = good && bide_monitor_start(&(bide_monitor_options){.path = own}) == 0 &&
                   bide_monitor_stop() == 0;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(path, F_OK), 0);
    child = fork();
    if (child == 0) { /* a child that continues and has none of it open */
        pause();
        _exit(0);
    }
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(try_to_connect(path), -ENOENT);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

/* ---- Peers ---- */

static void nonsense_is_reported(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "hello\n",          "look x\n",          "look tasks=\n",    "look tasks=x\n",
        "look tasks=-1\n",  "turns\n",           "LOOK\n",           "look  groups= 1\n",
        "look group=xyz\n", "look groups=\t5\n", "look tasks=\t-1\n"};
    char much[1000];
    peer peer;
    start();
    join(&peer);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *text = ask(&peer, wrong[i]);
        assert_int_equal(strncmp(text, "{\"is\":\"error\"", 13), 0);
        free(text);
    }
    memset(much, 'x', sizeof much);
    memcpy(much + sizeof much - 2, "\n", 2);
    char *text = ask(&peer, much);
    assert_has(text, "a command has at most 255 bytes");
    free(text);
    say(&peer, "\n\r\nlook\r\nturns off\nlook"); /* several requests at once, and one in pieces. */
    text = answer(&peer);
    assert_has(text, "\"is\":\"look\"");
    free(text);
    text = answer(&peer);
    assert_string_equal(text, "{\"is\":\"end\",\"left_out\":0}\n");
    free(text);
    text = ask(&peer, " groups=0\n");
    assert_has(text, "\"is\":\"look\"");
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

/* A client has sent its request and ended its output: it still gets its answer. */
static void an_answer_arrives_after_the_end_of_the_requests(void **state)
{
    (void)state;
    peer peer;
    start();
    join(&peer);
    say(&peer, "look\n");
    shutdown(peer.fd, SHUT_WR);
    char *text = answer(&peer);
    assert_has(text, "\"is\":\"end\"");
    free(text);
    assert_string_equal(next_record(&peer), "");
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void peers_that_do_not_read_or_vanish_harm_nobody(void **state)
{
    (void)state;
    enum { MANY = 8 };
    peer peers[MANY];
    start();
    for (int i = 0; i < MANY; i++)
        join(&peers[i]);
    int refused = try_to_connect(path);
    char text[200] = "";
    assert_true(refused >= 0);
    assert_true(recv(refused, text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "{\"is\":\"error\",\"what\":\"there are too many connections\"}\n");
    close(refused);
    for (int i = 0; i + 1 < MANY; i++) { /* (until the socket is full) */
        while (send(peers[i].fd, "look tasks=1000\n", 16, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
        }
    }
    char *found = ask(&peers[MANY - 1], "look\n");
    assert_has(found, "\"is\":\"end\"");
    free(found);
    for (int i = 0; i + 1 < MANY; i++)
        leave(&peers[i]);
    found = ask(&peers[MANY - 1], "look\n");
    assert_has(found, "\"is\":\"end\"");
    free(found);
    assert_int_equal(bide_monitor_stop(), 0); /* while a client is connected */
    assert_string_equal(next_record(&peers[MANY - 1]), "");
    leave(&peers[MANY - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MONITOR_TEST(the_socket_is_the_owners_and_goes_with_the_monitor),
        MONITOR_TEST(the_environment_names_the_path_and_no_more),
        MONITOR_TEST(by_default_it_listens_below_the_runtime_directory),
        MONITOR_TEST(a_stale_socket_file_is_replaced),
        MONITOR_TEST(a_path_that_does_not_fit_is_rejected),
        MONITOR_TEST(another_user_is_rejected_even_if_the_file_allows_it),
        MONITOR_TEST(a_child_of_fork_has_none_and_may_have_its_own),
        MONITOR_TEST(nonsense_is_reported),
        MONITOR_TEST(an_answer_arrives_after_the_end_of_the_requests),
        MONITOR_TEST(peers_that_do_not_read_or_vanish_harm_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
