/*
 * The monitor: a thread that sleeps in poll(2), on the listener, on its connections, and on an event
 * that ends it.
 *
 * 1. It is a thread with calls of the system alone: not a coroutine, which would need a loop that is
 *    not held up, and would be seen among what it shows.
 * 2. What it knows is its own, but for `all`, which has a lock: starting, stopping and asking for the
 *    path. While it is stopped the lock is not held, so that the path can be asked for; `is_ending`
 *    keeps others from stopping it, and from starting another, meanwhile.
 * 3. It stops nobody: the lists of roots, branches, loops and pools are held for a few instructions at
 *    a time, everything else is read by the kernel (inspect/walk.c).
 * 4. After each look it rests RESTS times as long as that took, whoever has asked for it.
 * 5. A connection is answered before it is read again, and what has no room in its socket waits for
 *    it. So each has one answer at most, and a peer that does not read harms only itself.
 * 6. A child of fork has copies of the descriptors, which are closed there; and nothing else of it.
 */
#define _GNU_SOURCE
#include "bide/monitor.h"

#include "client.h"
#include "task_groups.h"
#include "socket_path.h"
#include "current_tasks.h"

#include "../system/fork.h"
#include "../system/threads.h"

#include "bide/platform.h"
#include "bide/version.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VERSION = 1, MAX_CLIENTS = 8, RESTS = 4, MILLISECOND = 1000000, MAX_NAME = 64 };

/* How long it does not accept when there are no descriptors left: nanoseconds. */
enum { PAUSE = 100 * MILLISECOND };

typedef struct monitor {
    monitor_place place; /* constant */
    char name[MAX_NAME];
    uid_t owner;
    int listener;
    int ending; /* readable: end */
    pthread_t thread;

    /* of its thread */
    client clients[MAX_CLIENTS];
    runners last; /* what the last look found */
    crowd crowd;
    bool watches_turns;
    uint64_t may_look_at;
    uint64_t may_accept_at;
} monitor;

static struct {
    pthread_mutex_t lock;
    monitor *monitor; /* NULL: none */
    bool is_ending;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Looks ---- */

static void report_look(monitor *monitor, client *client, uint64_t took)
{
    const crowd *crowd = &monitor->crowd;
    report *answer = &client->answer;
    uint64_t now = monitor->last.at;
    bide_report_begin_(answer, "look");
    bide_report_number_(answer, "time_ms", now / MILLISECOND);
    bide_report_number_(answer, "since_ms",
                  client->before.at != 0 ? (now - client->before.at) / MILLISECOND : 0);
    bide_report_number_(answer, "took_us", took / 1000);
    bide_report_number_(answer, "tasks", crowd->tasks);
    bide_report_number_(answer, "waiting", crowd->doing[WALK_WAITING]);
    bide_report_number_(answer, "running", crowd->doing[WALK_RUNNING]);
    bide_report_number_(answer, "not_started", crowd->doing[WALK_NOT_STARTED]);
    bide_report_number_(answer, "groups", crowd->group_count);
    bide_report_number_(answer, "ungrouped", crowd->ungrouped);
    bide_report_end_(answer);
}

/* The next look finds this one in `last`. */
static int look_at_runners(monitor *monitor)
{
    runners now = {0};
    int error = bide_executors_collect_(&now, &monitor->last);
    bide_executors_free_(&monitor->last);
    monitor->last = now;
    return error;
}

static void look(monitor *monitor, client *client)
{
    const client_look *asked = &client->look;
    report details = {0};
    uint64_t began = bide_platform.now();
    client->has_asked = false;
    int error = look_at_runners(monitor);
    if (error == 0)
        error = bide_task_groups_collect_(&monitor->crowd, asked->group, asked->tasks, asked->frames, &details);
    uint64_t ended = bide_platform.now();
    monitor->may_look_at = ended + RESTS * (ended - began); /* 4 */
    if (error != 0) {
        bide_http_client_reject_(client, "the program's memory cannot be read");
        bide_report_free_(&details);
        return;
    }
    report_look(monitor, client, ended - began);
    bide_executors_report_(&monitor->last, &client->before, &client->answer);
    if (monitor->watches_turns)
        bide_current_tasks_report_(&client->answer);
    bide_task_groups_report_(&monitor->crowd, asked->groups, &client->answer);
    bide_report_append_(&client->answer, &details);
    bide_report_free_(&details);
    bide_http_client_answered_(client);
    bide_executors_copy_(&client->before, &monitor->last);
}

static void look_for_all(monitor *monitor)
{
    for (int i = 0; i < MAX_CLIENTS; i++) {
        client *client = &monitor->clients[i];
        if (client->fd >= 0 && client->has_asked && bide_platform.now() >= monitor->may_look_at)
            look(monitor, client);
    }
}

/* ---- Connections ---- */

static void greet(const monitor *monitor, client *client)
{
    report *answer = &client->answer;
    bide_report_begin_(answer, "hello");
    bide_report_text_(answer, "protocol", "bide-monitor");
    bide_report_number_(answer, "version", VERSION);
    bide_report_number_(answer, "pid", (uint64_t)getpid());
    bide_report_text_(answer, "program", monitor->name);
    bide_report_text_(answer, "library", BIDE_VERSION_TEXT);
    if (!bide_report_end_(answer))
        client->ends = true;
}

static bool is_allowed(const monitor *monitor, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == monitor->owner || peer.uid == 0);
}

/* One that is not served is told so, as far as that goes at once. */
static void turn_away(int fd, const char *why)
{
    client client;
    bide_http_client_begin_(&client, fd);
    bide_http_client_reject_(&client, why);
    bide_http_client_send_(&client);
    bide_http_client_end_(&client);
}

static client *free_place(monitor *monitor)
{
    for (int i = 0; i < MAX_CLIENTS; i++) {
        if (monitor->clients[i].fd < 0)
            return &monitor->clients[i];
    }
    return NULL;
}

static void accept_one(monitor *monitor)
{
    int fd = accept4(monitor->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            monitor->may_accept_at = bide_platform.now() + PAUSE;
        return;
    }
    client *place = free_place(monitor);
    if (!is_allowed(monitor, fd)) {
        turn_away(fd, "this program is another user's");
    } else if (place == NULL) {
        turn_away(fd, "there are too many connections");
    } else {
        bide_http_client_begin_(place, fd);
        greet(monitor, place);
    }
}

/* Turns are watched while somebody wants to know; memory is kept while there is anybody. */
static void settle(monitor *monitor)
{
    bool is_alone = true;
    bool wants_turns = false;
    for (int i = 0; i < MAX_CLIENTS; i++) {
        is_alone &= monitor->clients[i].fd < 0;
        wants_turns |= monitor->clients[i].fd >= 0 && monitor->clients[i].wants_turns;
    }
    if (wants_turns != monitor->watches_turns) {
        if (wants_turns)
            bide_current_tasks_start_();
        else
            bide_current_tasks_stop_();
        monitor->watches_turns = wants_turns;
    }
    if (is_alone) {
        bide_task_groups_free_(&monitor->crowd);
        bide_executors_free_(&monitor->last);
    }
}

/* `events`: what it is ready for. */
static void serve(client *client, short events)
{
    bool stays = true;
    if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0 && (events & POLLIN) == 0)
        stays = false;
    if (stays && bide_http_client_may_ask_(client) && (events & POLLIN) != 0)
        stays = bide_http_client_read_(client);
    if (stays && client->answer.length != 0)
        stays = bide_http_client_send_(client);
    if (!stays)
        bide_http_client_end_(client);
}

/* What has come with an earlier command is there already: the socket does not tell of it. */
static void go_on(monitor *monitor)
{
    for (int i = 0; i < MAX_CLIENTS; i++) {
        client *client = &monitor->clients[i];
        while (client->fd >= 0 && client->answer.length != 0) {
            if (!bide_http_client_send_(client)) {
                bide_http_client_end_(client);
            } else if (client->answer.length != 0) {
                break;
            } else if (!bide_http_client_read_(client)) {
                bide_http_client_end_(client);
            }
        }
        if (client->fd >= 0 && client->ends && client->answer.length == 0)
            bide_http_client_end_(client);
    }
}

/* ---- The thread ---- */

/* When it is to go on, whatever comes: BIDE_FOREVER, or a time. */
static uint64_t deadline_of(const monitor *monitor, uint64_t now)
{
    uint64_t deadline = monitor->may_accept_at > now ? monitor->may_accept_at : BIDE_FOREVER;
    for (int i = 0; i < MAX_CLIENTS; i++) {
        const client *client = &monitor->clients[i];
        if (client->fd >= 0 && client->has_asked && monitor->may_look_at < deadline)
            deadline = monitor->may_look_at;
    }
    return deadline;
}

/* False: it is to end. */
static bool wait_and_serve(monitor *monitor)
{
    struct pollfd polled[2 + MAX_CLIENTS];
    uint64_t now = bide_platform.now();
    uint64_t deadline = deadline_of(monitor, now);
    struct timespec left = {0, 0};
    if (deadline != BIDE_FOREVER && deadline > now)
        left = (struct timespec){(time_t)((deadline - now) / 1000000000),
                                 (long)((deadline - now) % 1000000000)};
    polled[0] = (struct pollfd){monitor->ending, POLLIN, 0};
    polled[1] = (struct pollfd){now >= monitor->may_accept_at ? monitor->listener : -1, POLLIN, 0};
    for (int i = 0; i < MAX_CLIENTS; i++) {
        const client *client = &monitor->clients[i];
        short events = bide_http_client_may_ask_(client) ? POLLIN : 0;
        if (client->answer.length != 0)
            events = POLLOUT;
        polled[2 + i] = (struct pollfd){client->fd, events, 0};
    }
    if (ppoll(polled, 2 + MAX_CLIENTS, deadline != BIDE_FOREVER ? &left : NULL, NULL) > 0) {
        if (polled[0].revents != 0)
            return false;
        for (int i = 0; i < MAX_CLIENTS; i++) {
            if (polled[2 + i].revents != 0)
                serve(&monitor->clients[i], polled[2 + i].revents);
        }
        if (polled[1].revents != 0)
            accept_one(monitor);
    }
    look_for_all(monitor);
    go_on(monitor);
    settle(monitor);
    return true;
}

static void *run(void *argument)
{
    monitor *monitor = argument;
    pthread_setname_np(pthread_self(), "monitor");
    while (wait_and_serve(monitor)) {
    }
    for (int i = 0; i < MAX_CLIENTS; i++) {
        if (monitor->clients[i].fd >= 0)
            bide_http_client_end_(&monitor->clients[i]);
    }
    settle(monitor);
    return NULL;
}

/* ---- Beginning and ending ---- */

static void close_all(monitor *monitor)
{
    close(monitor->listener);
    close(monitor->ending);
}

/* 6 */
static void forget_in_child(void)
{
    monitor *monitor = all.monitor;
    pthread_mutex_init(&all.lock, NULL);
    all.monitor = NULL;
    all.is_ending = false;
    if (monitor == NULL)
        return;
    close_all(monitor);
    for (int i = 0; i < MAX_CLIENTS; i++) {
        if (monitor->clients[i].fd >= 0)
            close(monitor->clients[i].fd);
    }
    free(monitor);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static int start_thread(monitor *monitor)
{
    static bool is_told_of_fork;
    if (!is_told_of_fork && pthread_atfork(NULL, NULL, forget_in_child) != 0)
        return -ENOMEM;
    is_told_of_fork = true;
    monitor->ending = eventfd(0, EFD_CLOEXEC);
    if (monitor->ending < 0)
        return -errno;
    int error = bide_threads_start_(&monitor->thread, 1, run, monitor, do_nothing);
    if (error != 0)
        close(monitor->ending);
    return error;
}

static int make(monitor *monitor, const bide_monitor_options *options)
{
    const char *name = options->name != NULL ? options->name : program_invocation_short_name;
    snprintf(monitor->name, sizeof monitor->name, "%s", name);
    monitor->owner = geteuid();
    for (int i = 0; i < MAX_CLIENTS; i++)
        monitor->clients[i].fd = -1;
    monitor->listener = bide_monitor_socket_open_(&monitor->place, options->path);
    if (monitor->listener < 0)
        return monitor->listener;
    int error = start_thread(monitor);
    if (error != 0) {
        bide_monitor_socket_remove_(&monitor->place);
        close(monitor->listener);
    }
    return error;
}

int bide_monitor_start(const bide_monitor_options *options)
{
    static const bide_monitor_options none;
    pthread_mutex_lock(&all.lock);
    int error = -EALREADY;
    if (all.monitor == NULL) {
        monitor *monitor = calloc(1, sizeof *monitor);
        error = monitor != NULL ? make(monitor, options != NULL ? options : &none) : -ENOMEM;
        if (error != 0)
            free(monitor);
        else
            all.monitor = monitor;
    }
    pthread_mutex_unlock(&all.lock);
    return error;
}

int bide_monitor_stop(void)
{
    static const uint64_t one = 1;
    pthread_mutex_lock(&all.lock);
    monitor *monitor = all.is_ending ? NULL : all.monitor;
    all.is_ending = monitor != NULL || all.is_ending; /* 2 */
    pthread_mutex_unlock(&all.lock);
    if (monitor == NULL)
        return -EALREADY;
    bide_monitor_socket_remove_(&monitor->place);
    while (write(monitor->ending, &one, sizeof one) < 0 && errno == EINTR) {
    }
    bide_threads_join_(&monitor->thread, 1);
    pthread_mutex_lock(&all.lock);
    all.monitor = NULL;
    all.is_ending = false;
    pthread_mutex_unlock(&all.lock);
    close_all(monitor);
    free(monitor);
    return 0;
}

size_t bide_monitor_path(char *path, size_t size)
{
    size_t length = 0;
    if (size != 0)
        path[0] = '\0';
    pthread_mutex_lock(&all.lock);
    if (all.monitor != NULL && !all.is_ending)
        length = (size_t)snprintf(path, size, "%s", all.monitor->place.path);
    pthread_mutex_unlock(&all.lock);
    return length;
}
