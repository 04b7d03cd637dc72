/*
 * The monitor: where it listens and whom it refuses, what it says of tasks, loops and pools, and that it says so while
 * the loop is held up, of a crowd, and to peers that send nonsense, do not read, or vanish.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/bide.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* (ThreadSanitizer knows of no threads that a child of fork starts) */
#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined __SANITIZE_THREAD__
enum { MAY_START_IN_CHILD = 0 };
#else
enum { MAY_START_IN_CHILD = 1 };
#endif

/* ---- A peer ---- */

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
    (void)state;
    unsetenv("BIDE_MONITOR");
    strcpy(folder, "/tmp/bide-monitor-test-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/socket", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    bide_monitor_stop();
    unlink(path);
    return rmdir(folder); /* nothing else is left in it */
}

static void start(void)
{
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = path, .name = "a test"}),
                     0);
}

/* The descriptor, or a negative errno. */
static int try_to_connect(const char *to)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", to);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

typedef struct peer {
    int fd;
    FILE *file;
    char line[8192];
} peer;

/* The next record, or "" at the end. */
static const char *next_record(peer *peer)
{
    if (fgets(peer->line, sizeof peer->line, peer->file) == NULL)
        peer->line[0] = '\0';
    return peer->line;
}

static void join(peer *peer)
{
    peer->fd = try_to_connect(path);
    assert_true(peer->fd >= 0);
    peer->file = fdopen(peer->fd, "r+");
    assert_non_null(peer->file);
    setvbuf(peer->file, NULL, _IOLBF, 4096);
    assert_non_null(strstr(next_record(peer), "{\"is\":\"hello\",\"protocol\":\"bide-monitor\","
                                              "\"version\":1,"));
}

static void leave(peer *peer)
{
    fclose(peer->file);
}

static void say(const peer *peer, const char *text)
{
    assert_int_equal(send(peer->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All records of one answer as a text, to be freed. */
static char *answer(peer *peer)
{
    char *text = NULL;
    size_t length = 0;
    FILE *all = open_memstream(&text, &length);
    assert_non_null(all);
    while (next_record(peer)[0] != '\0') {
        fputs(peer->line, all);
        if (strncmp(peer->line, "{\"is\":\"end\"", 11) == 0 ||
            strncmp(peer->line, "{\"is\":\"error\"", 13) == 0)
            break;
    }
    fclose(all);
    return text;
}

static char *ask(peer *peer, const char *command)
{
    say(peer, command);
    return answer(peer);
}

static void assert_has(const char *text, const char *expected)
{
    if (strstr(text, expected) == NULL) {
        printf("# expected: %s\n# in:\n%s", expected, text);
        fail();
    }
}

/* The record that has `mark`, copied to `record`. */
static void find_record(const char *text, const char *mark, char *record, size_t size)
{
    const char *at = strstr(text, mark);
    if (at == NULL) {
        printf("# expected: %s\n# in:\n%s", mark, text);
        fail();
    }
    const char *begin = at;
    while (begin != text && begin[-1] != '\n')
        begin--;
    snprintf(record, size, "%.*s", (int)strcspn(begin, "\n"), begin);
}

/* The number of a record under that name. */
static uint64_t number_of(const char *record, const char *name)
{
    char mark[64];
    snprintf(mark, sizeof mark, "\"%s\":", name);
    const char *at = strstr(record, mark);
    if (at == NULL)
        fail_msg("no %s in %s", name, record);
    return at != NULL ? strtoull(at + strlen(mark), NULL, 10) : 0;
}

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
    snprintf(other, sizeof other, "%s/other", folder);
    setenv("BIDE_MONITOR", other, 1);
    assert_int_equal(bide_monitor_path(found, sizeof found), 0); /* by itself it starts nothing */
    assert_int_equal(bide_monitor_start(NULL), 0);
    bide_monitor_path(found, sizeof found);
    assert_string_equal(found, other);
    assert_int_equal(bide_monitor_stop(), 0);
    start(); /* what the program names stands above it */
    bide_monitor_path(found, sizeof found);
    assert_string_equal(found, path);
    assert_int_equal(bide_monitor_stop(), 0);
    unsetenv("BIDE_MONITOR");
}

static void by_itself_it_listens_below_the_runtime_directory(void **state)
{
    (void)state;
    char expected[120], found[200];
    struct stat about;
    setenv("XDG_RUNTIME_DIR", folder, 1);
    snprintf(expected, sizeof expected, "%s/bide/%d", folder, (int)getpid());
    assert_int_equal(bide_monitor_start(NULL), 0);
    bide_monitor_path(found, sizeof found);
    assert_string_equal(found, expected);
    assert_int_equal(bide_monitor_stop(), 0);
    snprintf(expected, sizeof expected, "%s/bide", folder);
    assert_int_equal(lstat(expected, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);

    /* one that others may go into is not taken */
    chmod(expected, 0755);
    assert_int_equal(bide_monitor_start(NULL), -EPERM);
    rmdir(expected);
    assert_int_equal(symlink("/tmp", expected), 0);
    assert_int_equal(bide_monitor_start(NULL), -EPERM);
    unlink(expected);
    unsetenv("XDG_RUNTIME_DIR");
}

static void what_stands_there_is_replaced_if_it_is_left_over(void **state)
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

    /* another's file, which has taken the place of this one, stays when it stops */
    unlink(path);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = path}), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

static void a_path_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    char much[300];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    assert_int_equal(bide_monitor_start(&(bide_monitor_options){.path = much}), -ENAMETOOLONG);
    assert_int_equal(
        bide_monitor_start(&(bide_monitor_options){.path = "/nowhere/that/there/is"}), -ENOENT);
}

static void another_user_is_refused_even_where_the_file_allows_it(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    int status;
    if (geteuid() != 0)
        skip(); /* it takes root to become somebody else */
    start();
    chmod(folder, 0755);
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
    join(&peer); /* and the owner is served */
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void a_child_of_fork_has_none_and_may_have_its_own(void **state)
{
    (void)state;
    int status;
    start();
    pid_t child = fork();
    if (child == 0) {
        char found[200], own[120];
        snprintf(own, sizeof own, "%s.child", path);
        bool good = bide_monitor_path(found, sizeof found) == 0 &&
                    bide_monitor_stop() == -EALREADY;
        if (MAY_START_IN_CHILD)
            good = good && bide_monitor_start(&(bide_monitor_options){.path = own}) == 0 &&
                   bide_monitor_stop() == 0;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(path, F_OK), 0);
    child = fork();
    if (child == 0) { /* one that goes on, and has nothing of it open */
        pause();
        _exit(0);
    }
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(try_to_connect(path), -ENOENT);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

/* ---- What it says of tasks ---- */

struct inner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

enum { INNER_LINE = __LINE__ + 5 };

bide_coroutine(inner_body)
{
    bide_begin(inner_body, struct inner * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct outer {
    bide_task task;
    struct inner inner;
};

enum { OUTER_LINE = __LINE__ + 5 };

bide_coroutine(outer_body)
{
    bide_begin(outer_body, struct outer * self);
    bide_await(bide_task_init(&self->inner.task, &inner_body));
    bide_end();
}

static void a_task_is_shown_with_its_chain(void **state)
{
    (void)state;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "some\"where"};
    bide_event event;
    bide_spawned spawned;
    peer peer;
    char expected[600];
    bide_event_init(&event, false);
    struct outer self = {.inner.event = &event};
    bide_spawn(&spawned, &context, bide_task_init(&self.task, &outer_body));
    start();
    join(&peer);
    char *text = ask(&peer, "look tasks=5\n");
    snprintf(expected, sizeof expected,
             "\"tasks\":1,\"branches\":0,\"name\":\"outer_body\",\"context\":\"some\\u0022where\","
             "\"state\":\"waiting\",\"at\":\"inner_body\",\"file\":\"%s\",\"line\":%d,"
             "\"waiting_for\":\"bide_event_wait\"",
             __FILE__, INNER_LINE);
    assert_has(text, expected);
    snprintf(expected, sizeof expected,
             "{\"is\":\"frame\",\"task\":\"%lx\",\"number\":0,\"name\":\"inner_body\",\"file\":\"%s\","
             "\"line\":%d}\n"
             "{\"is\":\"frame\",\"task\":\"%lx\",\"number\":1,\"name\":\"outer_body\",\"file\":\"%s\","
             "\"line\":%d}\n"
             "{\"is\":\"end\",\"left_out\":0}\n",
             (unsigned long)(uintptr_t)&spawned.root, __FILE__, INNER_LINE,
             (unsigned long)(uintptr_t)&spawned.root, __FILE__, OUTER_LINE);
    assert_has(text, expected);
    free(text);
    text = ask(&peer, "look tasks=5 frames=1\n"); /* the innermost alone */
    assert_has(text, "\"depth\":2");
    assert_null(strstr(text, "\"number\":1"));
    free(text);
    bide_event_set(&event);
    text = ask(&peer, "look tasks=5\n");
    assert_has(text, "\"tasks\":0,\"waiting\":0,");
    assert_null(strstr(text, "\"is\":\"task\""));
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

/* Looks while nothing moves find the tasks at the same place for longer and longer. */
static void what_stands_has_an_age_and_what_goes_on_has_none(void **state)
{
    (void)state;
    bide_event event;
    bide_spawned spawned;
    peer peer;
    char record[600];
    uint64_t age = 0;
    bide_event_init(&event, false);
    struct outer self = {.inner.event = &event};
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &outer_body));
    start();
    join(&peer);
    while (age == 0) {
        char *text = ask(&peer, "look\n");
        find_record(text, "\"is\":\"group\"", record, sizeof record);
        age = number_of(record, "longest_ms");
        free(text);
    }
    bide_event_set(&event);
    bide_event_init(&event, false);
    struct outer next = {.inner.event = &event};
    bide_spawned other;
    bide_spawn(&other, &bide_default_context, bide_task_init(&next.task, &outer_body));
    char *text = ask(&peer, "look\n");
    find_record(text, "\"is\":\"group\"", record, sizeof record);
    assert_int_equal(number_of(record, "longest_ms"), 0);
    free(text);
    bide_event_set(&event);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void of_a_crowd_the_groups_are_shown_and_some_of_one(void **state)
{
    (void)state;
    enum { COUNT = 100000, SHOWN = 7 };
    bide_event event;
    peer peer;
    char record[600], command[100];
    bide_spawned *spawned = malloc(COUNT * sizeof *spawned);
    struct inner *frames = malloc(COUNT * sizeof *frames);
    assert_non_null(spawned);
    assert_non_null(frames);
    bide_event_init(&event, false);
    for (int i = 0; i < COUNT; i++) {
        frames[i].event = &event;
        bide_spawn(&spawned[i], &bide_default_context,
                   bide_task_init(&frames[i].task, &inner_body));
    }
    start();
    join(&peer);
    char *text = ask(&peer, "look\n");
    assert_true(strlen(text) < 4096);
    find_record(text, "\"is\":\"group\"", record, sizeof record);
    assert_int_equal(number_of(record, "tasks"), COUNT);
    const char *group = strstr(record, "\"group\":\"") + strlen("\"group\":\"");
    snprintf(command, sizeof command, "look group=%.*s tasks=%d\n", (int)strcspn(group, "\""), group,
             SHOWN);
    free(text);
    text = ask(&peer, command);
    unsigned shown = 0;
    for (const char *at = text; (at = strstr(at, "\"is\":\"task\"")) != NULL; at++)
        shown++;
    assert_int_equal(shown, SHOWN);
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
    bide_event_set(&event);
    free(frames);
    free(spawned);
}

/* Operations of as many names as one likes. */
enum { KINDS = 1100 };

static char kind_names[KINDS][24];
static bide_awaiter_ops kinds[KINDS];

static bool kind_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *kind_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    awaiter->frame = frame;
    return NULL;
}

static int kind_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static void there_is_a_bound_on_the_groups(void **state)
{
    (void)state;
    static bide_awaiter awaiters[KINDS];
    static bide_spawned spawned[KINDS];
    char record[600];
    unsigned groups = 0;
    peer peer;
    for (int i = 0; i < KINDS; i++) {
        snprintf(kind_names[i], sizeof kind_names[i], "kind_%d", i);
        kinds[i] = (bide_awaiter_ops){
            .ready = kind_ready, .suspend = kind_suspend, .resume = kind_resume, .name = kind_names[i]};
        awaiters[i].ops = &kinds[i];
        bide_spawn(&spawned[i], &bide_default_context, &awaiters[i]);
    }
    start();
    join(&peer);
    char *text = ask(&peer, "look groups=5000\n");
    find_record(text, "\"is\":\"look\"", record, sizeof record);
    assert_int_equal(number_of(record, "tasks"), KINDS);
    assert_int_equal(number_of(record, "groups"), 1024);
    assert_int_equal(number_of(record, "ungrouped"), KINDS - 1024);
    for (const char *at = text; (at = strstr(at, "\"is\":\"group\"")) != NULL; at++)
        groups++;
    assert_int_equal(groups, 1024);
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
    for (int i = 0; i < KINDS; i++)
        bide_resume(awaiters[i].frame);
}

/* ---- What it says of loops and pools ---- */

struct receiver {
    bide_task task;
    bide_branch branch;
    bide_descriptor *socket;
    bide_io_operation operation;
    char buffer[8];
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    bide_try(bide_recv(&self->operation, self->socket, self->buffer, sizeof self->buffer));
    bide_end();
}

/* What a thread that is none of the loop's has found meanwhile. */
typedef struct watch {
    bide_atomic(bool) is_held; /* the loop is */
    bide_atomic(bool) let_go;
    pthread_t thread;
    char *first;
    char *last;
} watch;

struct holder {
    bide_task task;
    bide_descriptor one, other;
    bide_io_operation operation;
    bide_scope scope;
    struct receiver receiver;
    bide_sleep sleep;
    watch *watch;
    int number; /* of the receiver's descriptor */
};

enum { HOLDER_LINE = __LINE__ + 14 };

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_descriptor_init_closed(&self->one);
    bide_descriptor_init_closed(&self->other);
    bide_try(bide_socket_pair(&self->operation, &self->one, &self->other));
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->receiver.branch,
                     bide_call(&self->receiver, &receiver_body, socket = &self->one));
    bide_try(bide_sleep_for(&self->sleep, 1000));
    bide_try(bide_sleep_for(&self->sleep, 1000));
    self->number = self->one.fd;
    bide_try(bide_sleep_for(&self->sleep, 1000));
    bide_atomic_store(&self->watch->is_held, true, release);
    while (!bide_atomic_load(&self->watch->let_go, acquire))
        sched_yield();
    bide_try(bide_send(&self->operation, &self->other, "x", 1));
    bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_close(&self->one);
    bide_close(&self->other);
    bide_end();
}

/* Looks until the loop was seen to be in one turn for a while. */
static void *watch_loop(void *argument)
{
    watch *watch = argument;
    peer peer;
    char record[1200];
    uint64_t busy = 0;
    while (!bide_atomic_load(&watch->is_held, acquire))
        sched_yield();
    join(&peer);
    free(ask(&peer, "turns on\n"));
    watch->first = ask(&peer, "look tasks=10\n");
    while (busy < 20) {
        free(watch->last);
        watch->last = ask(&peer, "look tasks=10\n");
        find_record(watch->last, "\"is\":\"loop\"", record, sizeof record);
        busy = number_of(record, "busy_ms");
    }
    leave(&peer);
    bide_atomic_store(&watch->let_go, true, release);
    return NULL;
}

static void a_loop_that_is_held_up_is_shown_with_who_holds_it(void **state)
{
    (void)state;
    bide_loop *loop;
    watch watch = {.last = NULL};
    static struct holder holder;
    char record[1200], expected[300];
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    bide_loop_context(loop)->name = "main";
    holder.watch = &watch;
    start();
    assert_int_equal(pthread_create(&watch.thread, NULL, watch_loop, &watch), 0);
    assert_int_equal(bide_loop_wait(loop, bide_task_init(&holder.task, &holder_body)), 0);
    pthread_join(watch.thread, NULL);

    find_record(watch.last, "\"is\":\"loop\"", record, sizeof record);
    assert_has(record, "\"name\":\"main\"");
    assert_has(record, "\"state\":\"busy\"");
    assert_int_equal(number_of(record, "thread"), getpid());
    assert_int_equal(number_of(record, "runs_new"), 0);
    assert_true(number_of(record, "runs") >= 4);
    assert_int_equal(number_of(record, "in_flight"), 1);
    assert_has(record, bide_loop_backend(loop).name);
    snprintf(expected, sizeof expected,
             "\"state\":\"running\",\"at\":\"holder_body\",\"file\":\"%s\",\"line\":%d,", __FILE__,
             HOLDER_LINE);
    assert_has(watch.last, expected);
    find_record(watch.last, "\"kind\":\"branch\"", record, sizeof record);
    assert_has(record, "\"name\":\"receiver_body\"");
    snprintf(expected, sizeof expected,
             "\"waiting_for\":\"bide_recv\",\"descriptor\":%d,\"descriptor_of\":\"system\"",
             holder.number);
    assert_has(record, expected);
    free(watch.first);
    free(watch.last);
    bide_loop_destroy(loop);
    peer peer;
    join(&peer);
    char *text = ask(&peer, "look\n");
    assert_null(strstr(text, "\"is\":\"loop\""));
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void a_pool_is_shown_with_its_workers(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    peer peer;
    char record[1200];
    assert_int_equal(
        bide_thread_pool_create_with(
            &pool, &(bide_thread_pool_options){.threads = 3, .name = "three"}),
        0);
    start();
    join(&peer);
    uint64_t asleep = 0;
    while (asleep != 3) {
        char *text = ask(&peer, "look\n");
        find_record(text, "\"is\":\"pool\"", record, sizeof record);
        asleep = number_of(record, "asleep");
        free(text);
    }
    assert_has(record, "\"name\":\"three\",\"workers\":3,");
    uint64_t before = number_of(record, "runs");
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_sleep sleep;
    assert_int_equal(bide_sync_wait_in(&context, bide_sleep_for(&sleep, 1)), 0);
    char *text = ask(&peer, "look\n");
    find_record(text, "\"is\":\"pool\"", record, sizeof record);
    assert_true(number_of(record, "runs") > before);
    assert_int_equal(number_of(record, "runs_new"), number_of(record, "runs") - before);
    assert_has(text, "\"worker\":2,\"thread\":");
    assert_has(text, "\"thread_name\":\"three-2\",\"state\":\"");
    free(text);
    bide_thread_pool_destroy(pool);
    text = ask(&peer, "look\n");
    assert_null(strstr(text, "\"is\":\"pool\""));
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

/* ---- Peers ---- */

static void nonsense_is_told_as_such(void **state)
{
    (void)state;
    static const char *const wrong[] = {"hello\n",        "look x\n",         "look tasks=\n",
                                        "look tasks=x\n", "look tasks=-1\n",  "turns\n",
                                        "LOOK\n",         "look  groups= 1\n", "look group=xyz\n"};
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
    assert_has(text, "a command has 255 bytes at most");
    free(text);
    say(&peer, "\n\r\nlook\r\nturns off\nlook"); /* several at once, and one in parts */
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

/* One has asked, has ended its output, and is answered. */
static void an_answer_comes_after_the_end_of_what_is_asked(void **state)
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
    for (int i = 0; i + 1 < MANY; i++) { /* (until nothing more goes into the socket) */
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
    assert_int_equal(bide_monitor_stop(), 0); /* while one is connected */
    assert_string_equal(next_record(&peers[MANY - 1]), "");
    leave(&peers[MANY - 1]);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(the_socket_is_the_owners_and_goes_with_the_monitor),
        TEST(the_environment_names_the_path_and_no_more),
        TEST(by_itself_it_listens_below_the_runtime_directory),
        TEST(what_stands_there_is_replaced_if_it_is_left_over),
        TEST(a_path_that_does_not_fit_is_refused),
        TEST(another_user_is_refused_even_where_the_file_allows_it),
        TEST(a_child_of_fork_has_none_and_may_have_its_own),
        TEST(a_task_is_shown_with_its_chain),
        TEST(what_stands_has_an_age_and_what_goes_on_has_none),
        TEST(of_a_crowd_the_groups_are_shown_and_some_of_one),
        TEST(there_is_a_bound_on_the_groups),
        TEST(a_loop_that_is_held_up_is_shown_with_who_holds_it),
        TEST(a_pool_is_shown_with_its_workers),
        TEST(nonsense_is_told_as_such),
        TEST(an_answer_comes_after_the_end_of_what_is_asked),
        TEST(peers_that_do_not_read_or_vanish_harm_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
