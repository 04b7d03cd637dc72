/*
 * File changes: each change is reported once to each interested watch, in order, no matter how the waits
 * end. An overflow in the kernel is reported.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <bide/extend/wrapper.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Calls that fail ---- */

static int fail_init, fail_add;
static int fail_read, reads_until_failure; /* reads into the smallest buffer. */

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);
int __wrap_inotify_init1(int flags)
{
    if (fail_init != 0) {
        errno = fail_init;
        return -1;
    }
    return __real_inotify_init1(flags);
}

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (fail_add != 0) {
        errno = fail_add;
        return -1;
    }
    return __real_inotify_add_watch(fd, path, mask);
}

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size)
{
    if (fail_read != 0 && size == 272 && --reads_until_failure == 0) {
        errno = fail_read;
        fail_read = 0;
        return -1;
    }
    return __real_read(fd, data, size);
}

/* ---- A directory ---- */

static char directory_path[64];

static const char *in_directory(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory_path, name);
    return path;
}

static void touch(const char *name)
{
    int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void drop(const char *name)
{
    assert_int_equal(unlink(in_directory(name)), 0);
}

static void rename_in_directory(const char *from, const char *to)
{
    char old[128];
    strcpy(old, in_directory(from));
    assert_int_equal(rename(old, in_directory(to)), 0);
}

/* ---- A watcher in a world ---- */

struct fixture {
    world *world;
    bide_file_watcher watcher;
    bide_file_watch watch;
    bide_file_event_operation next;
    struct runner runner;
    _Alignas(8) char buffer[4096];
};

/* With a watch of the directory for `wanted`, or without one if that is 0. */
static struct fixture *set_up(void **state, uint32_t wanted, size_t size)
{
    static struct fixture only;
    only.world = world_of_the_system(state, "memory has no inotify");
    strcpy(directory_path, "/tmp/bide-watch-XXXXXX");
    assert_non_null(mkdtemp(directory_path));
    assert_int_equal(bide_file_watcher_init(&only.watcher, only.buffer, size), 0);
    if (wanted != 0)
        assert_int_equal(bide_file_watch_add(&only.watcher, &only.watch, directory_path, wanted), 0);
    return &only;
}

static void end_watcher(void *watcher)
{
    bide_file_watcher_destroy(watcher);
}

static void tear_down(struct fixture *f)
{
    call_inside(f->world, end_watcher, &f->watcher);
    assert_int_equal(rmdir(directory_path), 0);
}

static int wait_next(struct fixture *f)
{
    return world_wait(f->world, bide_file_watch_next(&f->next, &f->watcher));
}

static void expect(struct fixture *f, const bide_file_watch *watch, uint32_t changes,
                   const char *name)
{
    assert_int_equal(wait_next(f), 0);
    assert_ptr_equal(f->next.watch, watch);
    assert_int_equal(f->next.changes, changes);
    assert_string_equal(f->next.name, name);
}

/* No further event is pending: the next event is that of a file that is created now. */
static void expect_no_more(struct fixture *f, bide_file_watch *watch)
{
    touch("last");
    expect(f, watch, BIDE_FILE_CREATED, "last");
    drop("last");
}

/* ---- Events ---- */

static void each_change_is_reported_in_order(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CHANGES, sizeof f->buffer);
    int fd = open(in_directory("a"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(fchmod(fd, 0400), 0);
    close(fd);
    rename_in_directory("a", "b");
    drop("b");
    assert_int_equal(mkdir(in_directory("c"), 0700), 0);
    assert_int_equal(rmdir(in_directory("c")), 0);
    expect(f, &f->watch, BIDE_FILE_CREATED, "a");
    assert_false(f->next.is_directory);
    assert_int_equal(f->next.cookie, 0);
    expect(f, &f->watch, BIDE_FILE_MODIFIED, "a");
    expect(f, &f->watch, BIDE_FILE_ATTRIBUTES, "a");
    expect(f, &f->watch, BIDE_FILE_WRITTEN, "a");
    expect(f, &f->watch, BIDE_FILE_MOVED_FROM, "a");
    uint32_t cookie = f->next.cookie;
    assert_true(cookie != 0);
    expect(f, &f->watch, BIDE_FILE_MOVED_TO, "b");
    assert_int_equal(f->next.cookie, cookie);
    expect(f, &f->watch, BIDE_FILE_REMOVED, "b");
    expect(f, &f->watch, BIDE_FILE_CREATED, "c");
    assert_true(f->next.is_directory);
    expect(f, &f->watch, BIDE_FILE_REMOVED, "c");
    tear_down(f);
}

static void a_wait_continues_when_something_happens(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
    begin(f->world, &f->runner, bide_file_watch_next(&f->next, &f->watcher));
    turn(f->world);
    assert_false(f->runner.has_ended);
    touch("a");
    assert_int_equal(end(f->world, &f->runner), 0);
    assert_string_equal(f->next.name, "a");
    drop("a");
    tear_down(f);
}

/* Unwanted events are skipped, even if a read returned nothing else. */
static void only_wanted_events_are_reported(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_REMOVED, sizeof f->buffer);
    bide_file_watch other;
    char another[] = "/tmp/bide-watch-XXXXXX";
    assert_non_null(mkdtemp(another));
    assert_int_equal(bide_file_watch_add(&f->watcher, &other, another, BIDE_FILE_ATTRIBUTES), 0);
    touch("a");
    begin(f->world, &f->runner, bide_file_watch_next(&f->next, &f->watcher));
    turn(f->world);
    assert_false(f->runner.has_ended);
    drop("a");
    assert_int_equal(end(f->world, &f->runner), 0);
    assert_int_equal(f->next.changes, BIDE_FILE_REMOVED);
    tear_down(f);
    assert_int_equal(rmdir(another), 0);
}

/* The smallest buffer holds the longest name, one event at a time. */
static void the_smallest_buffer_does(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED | BIDE_FILE_REMOVED, 272);
    char name[256], path[400];
    memset(name, 'x', 255);
    name[255] = '\0';
    snprintf(path, sizeof path, "%s/%s", directory_path, name);
    for (int i = 0; i < 3; i++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
        unlink(path);
    }
    for (int i = 0; i < 3; i++) {
        expect(f, &f->watch, BIDE_FILE_CREATED, name);
        expect(f, &f->watch, BIDE_FILE_REMOVED, name);
    }
    tear_down(f);
    assert_int_equal(bide_file_watcher_init(&f->watcher, f->buffer, 271), -EINVAL);
    assert_int_equal(wait_next(f), -EBADF);
    bide_file_watcher_destroy(&f->watcher);
}

/* ---- Several watches ---- */

/*
 * The kernel has one watch for all of them. Each gets the events that it asked for, in the order of the
 * watches.
 */
static void all_watches_of_a_file_get_its_events(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
    bide_file_watch second, third;
    char path[80];
    snprintf(path, sizeof path, "%s/.", directory_path);
    assert_int_equal(
        bide_file_watch_add(&f->watcher, &second, path, BIDE_FILE_REMOVED | BIDE_FILE_IF_DIRECTORY),
        0);
    assert_int_equal(
        bide_file_watch_add(&f->watcher, &third, path, BIDE_FILE_CREATED | BIDE_FILE_REMOVED), 0);
    assert_int_equal(second.number, f->watch.number);
    touch("a");
    drop("a");
    expect(f, &f->watch, BIDE_FILE_CREATED, "a");
    expect(f, &third, BIDE_FILE_CREATED, "a");
    expect(f, &second, BIDE_FILE_REMOVED, "a");
    expect(f, &third, BIDE_FILE_REMOVED, "a");
    bide_file_watch_remove(&f->watch); /* the first watch: the others continue */
    touch("b");
    expect(f, &third, BIDE_FILE_CREATED, "b");
    drop("b");
    expect(f, &second, BIDE_FILE_REMOVED, "b");
    bide_file_watch_remove(&third); /* it was the next one */
    touch("c");
    drop("c");
    expect(f, &second, BIDE_FILE_REMOVED, "c");
    bide_file_watch_remove(&second);
    bide_file_watch_remove(&second);
    tear_down(f);
}

/* Any number of watches, added and removed in any order, can be looked up. */
static void many_watches_are_found(void **state)
{
    enum { MANY = 200 };
    struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
    static bide_file_watch watches[MANY];
    static bool is_there[MANY];
    uint32_t random = 1;
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(mkdir(in_directory(name), 0700), 0);
    }
    for (int i = 0; i < MANY; i++)
        expect(f, &f->watch, BIDE_FILE_CREATED, (snprintf(name, sizeof name, "d%d", i), name));
    for (int round = 0; round < 2000; round++) {
        random = random * 1664525 + 1013904223;
        int i = (int)(random >> 16) % MANY;
        snprintf(name, sizeof name, "d%d", i);
        if (is_there[i] && (random & 1) != 0) {
            bide_file_watch_remove(&watches[i]);
            is_there[i] = false;
        } else if (!is_there[i]) {
            assert_int_equal(
                bide_file_watch_add(&f->watcher, &watches[i], in_directory(name), BIDE_FILE_CREATED),
                0);
            is_there[i] = true;
        }
        snprintf(name, sizeof name, "d%d/x", i);
        touch(name);
        drop(name);
        if (is_there[i])
            expect(f, &watches[i], BIDE_FILE_CREATED, "x");
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(rmdir(in_directory(name)), 0);
        if (is_there[i])
            expect(f, &watches[i], BIDE_FILE_GONE, "");
        is_there[i] = false;
    }
    expect_no_more(f, &f->watch);
    tear_down(f);
}

/* A removed watch gets no more events, and no event is reported twice. */
static void a_watch_is_removed_with_events_pending(void **state)
{
    for (int taken = 0; taken < 4; taken++) {
        struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
        bide_file_watch other;
        assert_int_equal(mkdir(in_directory("d"), 0700), 0);
        expect(f, &f->watch, BIDE_FILE_CREATED, "d");
        assert_int_equal(
            bide_file_watch_add(&f->watcher, &other, in_directory("d"), BIDE_FILE_CREATED), 0);
        touch("d/1");
        touch("a");
        touch("d/2");
        touch("b");
        for (int i = 0; i < taken; i++)
            assert_int_equal(wait_next(f), 0);
        bide_file_watch_remove(&other);
        if (taken < 2)
            expect(f, &f->watch, BIDE_FILE_CREATED, "a");
        expect(f, &f->watch, BIDE_FILE_CREATED, "b");
        /* added again, it gets the events from now on */
        assert_int_equal(
            bide_file_watch_add(&f->watcher, &other, in_directory("d"), BIDE_FILE_CREATED), 0);
        touch("d/3");
        expect(f, &other, BIDE_FILE_CREATED, "3");
        for (const char *const *at = (const char *const[]){"a", "b", "d/1", "d/2", "d/3", NULL};
             *at != NULL; at++)
            drop(*at);
        rmdir(in_directory("d"));
        tear_down(f);
    }
}

static void a_watch_learns_that_its_file_is_gone(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
    bide_file_watch file, again;
    touch("a");
    expect(f, &f->watch, BIDE_FILE_CREATED, "a");
    assert_int_equal(bide_file_watch_add(&f->watcher, &file, in_directory("a"), BIDE_FILE_MOVED), 0);
    rename_in_directory("a", "b");
    expect(f, &file, BIDE_FILE_MOVED, "");
    drop("b");
    expect(f, &file, BIDE_FILE_GONE, "");
    touch("a"); /* another file */
    expect(f, &f->watch, BIDE_FILE_CREATED, "a");
    assert_int_equal(bide_file_watch_add(&f->watcher, &again, in_directory("a"), BIDE_FILE_MOVED), 0);
    bide_file_watch_remove(&file);
    drop("a");
    expect(f, &again, BIDE_FILE_GONE, "");
    expect_no_more(f, &f->watch);
    tear_down(f);
}

static void links_and_open_files_are_watched(void **state)
{
    struct fixture *f = set_up(state, 0, sizeof f->buffer);
    bide_file_watch of_link, of_file, opened, none;
    bide_descriptor descriptor;
    touch("file");
    assert_int_equal(symlink("file", in_directory("link")), 0);
    assert_int_equal(bide_file_watch_add(&f->watcher, &of_link, in_directory("link"),
                                         BIDE_FILE_ATTRIBUTES | BIDE_FILE_NO_FOLLOW),
                     0);
    assert_int_equal(
        bide_file_watch_add(&f->watcher, &of_file, in_directory("link"), BIDE_FILE_ATTRIBUTES), 0);
    assert_true(of_link.number != of_file.number);
    assert_int_equal(bide_file_watch_add(&f->watcher, &opened, in_directory("file"),
                                         BIDE_FILE_ATTRIBUTES | BIDE_FILE_IF_DIRECTORY),
                     -ENOTDIR);
    bide_file_watch_remove(&opened); /* it was never added */
    bide_descriptor_init(&descriptor, open(in_directory("file"), O_PATH | O_CLOEXEC));
    assert_int_equal(
        bide_file_watch_add_opened(&f->watcher, &opened, &descriptor, BIDE_FILE_MODIFIED), 0);
    assert_int_equal(opened.number, of_file.number);
    bide_close(&descriptor);
    assert_int_equal(
        bide_file_watch_add_opened(&f->watcher, &none, &descriptor, BIDE_FILE_MODIFIED), -EBADF);
    assert_int_equal(chmod(in_directory("file"), 0400), 0);
    expect(f, &of_file, BIDE_FILE_ATTRIBUTES, "");
    drop("link");
    expect(f, &of_link, BIDE_FILE_ATTRIBUTES, "");
    expect(f, &of_link, BIDE_FILE_GONE, "");
    drop("file");
    tear_down(f);
}

/* ---- Overflow ---- */

static void dropped_events_are_reported(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED | BIDE_FILE_REMOVED, sizeof f->buffer);
    FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    int max = 0, told = 0;
    assert_non_null(limit);
    assert_int_equal(fscanf(limit, "%d", &max), 1);
    fclose(limit);
    if (max > 100000) {
        tear_down(f);
        printf("# the queue holds %d events\n", max);
        skip();
    }
    for (int i = 0; i < max / 2 + 10; i++) {
        touch("a");
        drop("a");
    }
    for (;; told++) {
        assert_int_equal(wait_next(f), 0);
        if (f->next.watch == NULL)
            break;
        assert_int_equal(f->next.changes, told % 2 == 0 ? BIDE_FILE_CREATED : BIDE_FILE_REMOVED);
    }
    assert_int_equal(told, max);
    assert_int_equal(f->next.changes, BIDE_FILE_OVERFLOWED);
    assert_string_equal(f->next.name, "");
    expect_no_more(f, &f->watch);
    tear_down(f);
}

/* ---- Ends of a wait ---- */

static void a_cancelled_wait_loses_nothing(void **state)
{
    for (int how = 0; how < WAYS; how++) {
        struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
        begin_by(f->world, &f->runner, bide_file_watch_next(&f->next, &f->watcher), how);
        turn(f->world);
        end_by(f->world, &f->runner, &f->watcher.inotify, how);
        if (how == CLOSE) {
            assert_int_equal(wait_next(f), -EBADF);
        } else {
            touch("a");
            expect(f, &f->watch, BIDE_FILE_CREATED, "a");
            drop("a");
        }
        tear_down(f);
    }
}

/* A wait ends while events arrive: before the loop has seen them, and after. */
static void a_wait_that_ends_while_events_come_loses_none(void **state)
{
    for (int round = 0; round < 40; round++) {
        struct fixture *f =
            set_up(state, BIDE_FILE_CREATED, round % 2 == 0 ? 272 : sizeof f->buffer);
        int how = round / 2 % CLOSE;
        char name[16];
        begin_by(f->world, &f->runner, bide_file_watch_next(&f->next, &f->watcher), how);
        if (round % 3 == 0)
            turn(f->world);
        for (int i = 0; i < 5; i++)
            touch((snprintf(name, sizeof name, "%d", i), name));
        if (round % 5 == 0)
            turn(f->world);
        int first = 0;
        if (how == DESTROY) {
            destroy(f->world, &f->runner);
        } else {
            if (how != TIME_OUT)
                call_inside(f->world, stop, &f->runner);
            end(f->world, &f->runner);
        }
        if (f->runner.has_ended && f->runner.status == 0) {
            assert_string_equal(f->next.name, "0");
            first = 1;
        }
        for (int i = first; i < 5; i++)
            expect(f, &f->watch, BIDE_FILE_CREATED, (snprintf(name, sizeof name, "%d", i), name));
        for (int i = 0; i < 5; i++)
            drop((snprintf(name, sizeof name, "%d", i), name));
        tear_down(f);
    }
}

/*
 * A coroutine is destroyed after its event was taken from the kernel but before the event was reported:
 * the event is reported again.
 */
static void an_unreported_event_is_reported_again(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
    bide_file_watch second;
    assert_int_equal(bide_file_watch_add(&f->watcher, &second, directory_path, BIDE_FILE_CREATED), 0);
    touch("a");
    expect(f, &f->watch, BIDE_FILE_CREATED, "a");
    bide_awaiter *had = &f->next.task.frame.awaiter;
    bide_wrapper_release(&had);
    expect(f, &f->watch, BIDE_FILE_CREATED, "a");
    had = &f->next.task.frame.awaiter;
    bide_file_watch_remove(&f->watch); /* then the next watch gets it */
    bide_wrapper_release(&had);
    expect(f, &second, BIDE_FILE_CREATED, "a");
    drop("a");
    tear_down(f);
}

static void a_watcher_that_ends_ends_its_wait(void **state)
{
    struct fixture *f = set_up(state, BIDE_FILE_CREATED, sizeof f->buffer);
    begin(f->world, &f->runner, bide_file_watch_next(&f->next, &f->watcher));
    turn(f->world);
    call_inside(f->world, end_watcher, &f->watcher);
    assert_int_equal(end(f->world, &f->runner), -EPIPE);
    bide_file_watch_remove(&f->watch);
    assert_int_equal(bide_file_watch_add(&f->watcher, &f->watch, directory_path, BIDE_FILE_CREATED),
                     -EBADF);
    assert_int_equal(wait_next(f), -EBADF);
    tear_down(f); /* a second time */
}

/* ---- Failures ---- */

static void a_reached_limit_is_reported(void **state)
{
    struct fixture *f = set_up(state, 0, sizeof f->buffer);
    bide_file_watcher other;
    char buffer[272];
    fail_init = EMFILE;
    assert_int_equal(bide_file_watcher_init(&other, buffer, sizeof buffer), -EMFILE);
    fail_init = 0;
    bide_file_watcher_destroy(&other);
    fail_add = ENOSPC;
    assert_int_equal(bide_file_watch_add(&f->watcher, &f->watch, directory_path, BIDE_FILE_CREATED),
                     -ENOSPC);
    fail_add = 0;
    bide_file_watch_remove(&f->watch);
    assert_int_equal(
        bide_file_watch_add(&f->watcher, &f->watch, in_directory("none"), BIDE_FILE_CREATED), -ENOENT);
    assert_int_equal(bide_file_watch_add(&f->watcher, &f->watch, directory_path, BIDE_FILE_IF_DIRECTORY),
                     -EINVAL);
    assert_int_equal(bide_file_watch_add(&f->watcher, &f->watch, directory_path, BIDE_FILE_CREATED), 0);
    expect_no_more(f, &f->watch);
    tear_down(f);
}

/* The nth read fails or is interrupted: no event is lost. (An io_uring makes no such call.) */
static void a_read_that_fails_loses_nothing(void **state)
{
    if (!world_is_by_readiness())
        skip();
    for (int nth = 1; nth <= 3; nth++) {
        for (int error = 0; error < 2; error++) {
            struct fixture *f = set_up(state, BIDE_FILE_CREATED, 272);
            char name[16];
            int failed = 0;
            fail_read = error == 0 ? EINTR : ENOMEM;
            reads_until_failure = nth;
            for (int i = 0; i < 30; i++)
                touch((snprintf(name, sizeof name, "%d", i), name));
            for (int i = 0; i < 30;) {
                int status = wait_next(f);
                if (status < 0) {
                    assert_int_equal(status, -ENOMEM);
                    failed++;
                    continue;
                }
                assert_string_equal(f->next.name, (snprintf(name, sizeof name, "%d", i++), name));
            }
            assert_int_equal(fail_read, 0);
            assert_int_equal(failed, error);
            for (int i = 0; i < 30; i++)
                drop((snprintf(name, sizeof name, "%d", i), name));
            tear_down(f);
        }
    }
}

static void a_loop_in_memory_has_none(void **state)
{
    world *w = world_of(state);
    bide_file_watcher watcher;
    bide_file_event_operation next;
    char buffer[272];
    if (w->memory == NULL)
        skip();
    assert_int_equal(bide_file_watcher_init(&watcher, buffer, sizeof buffer), 0);
    assert_int_equal(world_wait(w, bide_file_watch_next(&next, &watcher)), -EOPNOTSUPP);
    bide_file_watcher_destroy(&watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_change_is_reported_in_order),
        world_test(a_wait_continues_when_something_happens),
        world_test(only_wanted_events_are_reported),
        world_test(the_smallest_buffer_does),
        world_test(all_watches_of_a_file_get_its_events),
        world_test(many_watches_are_found),
        world_test(a_watch_is_removed_with_events_pending),
        world_test(a_watch_learns_that_its_file_is_gone),
        world_test(links_and_open_files_are_watched),
        world_test(dropped_events_are_reported),
        world_test(a_cancelled_wait_loses_nothing),
        world_test(a_wait_that_ends_while_events_come_loses_none),
        world_test(an_unreported_event_is_reported_again),
        world_test(a_watcher_that_ends_ends_its_wait),
        world_test(a_reached_limit_is_reported),
        world_test(a_read_that_fails_loses_nothing),
        world_test(a_loop_in_memory_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
