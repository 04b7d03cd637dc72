/*
 * The monitor: a thread that sleeps in ppoll(2), on a listener, its connections, and an event that
 * stops it.
 *
 * Any thread may start and stop the monitor and get its path. All else runs on the monitor's thread.
 *
 * 1. It is a thread that uses only system calls, not a coroutine. A coroutine would need a loop that
 *    is never blocked, and would be part of what the monitor reports.
 * 2. The monitor's thread owns its state. Only `monitor_state` is shared, under a lock: for starting,
 *    stopping, and getting the path. bide_monitor_stop does not hold the lock while it joins the
 *    thread, so the path can be requested meanwhile; `is_ending` keeps other threads from stopping
 *    the monitor, and from starting another.
 * 3. It stops no thread. The lists of roots, branches, loops and pools are held for a few instructions
 *    at a time. All other memory is read through the kernel (inspect/walk.c).
 * 4. After each look the monitor rests for REST_FACTOR times its duration, whichever client asked.
 * 5. A client gets its answer before its next command is read, and an answer that does not fit into
 *    the socket waits for room. So each client has one answer at most, and a client that does not
 *    read delays only itself.
 * 6. A child of fork closes its copies of the descriptors, and uses nothing else of the monitor.
 */
#define _GNU_SOURCE
#include "bide/monitor.h"

#include "client.h"
#include "task_groups.h"
#include "socket_path.h"
#include "current_tasks.h"

#include "../system/descriptors.h"
#include "../system/fork.h"
#include "../system/portable.h"
#include "../system/threads.h"

#include "bide/platform.h"
#include "bide/version.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MONITOR_VERSION = 1,
    CLIENTS_MAX = 8,
    REST_FACTOR = 4,
    MONITOR_MILLISECOND = 1000000,
    MONITOR_NAME_MAX = 64
};

/* The pause after an accept that failed for want of descriptors: nanoseconds. */
enum { MONITOR_ACCEPT_PAUSE = 100 * MONITOR_MILLISECOND };

typedef struct monitor {
    bide_listen_path socket; /* its path and the name are constant */
    char name[MONITOR_NAME_MAX];
    uid_t owner;
    int listener;
    int ending; /* of descriptors.h: readable when the thread has to stop */
    pthread_t thread;

    /* owned by the thread */
    monitor_client clients[CLIENTS_MAX];
    executors last; /* as the last look found them */
    task_groups groups;
    bool watches_turns;
    uint64_t may_look_at;
    uint64_t may_accept_at;
} monitor;

static struct {
    pthread_mutex_t lock;
    monitor *monitor; /* NULL: not running */
    bool is_ending;
} monitor_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Looks ---- */

static void monitor_report_look(monitor *monitor, monitor_client *client, uint64_t took)
{
    const task_groups *groups = &monitor->groups;
    monitor_report *answer = &client->answer;
    uint64_t now = monitor->last.at;
    bide_report_start_(answer, "look");
    bide_report_number_(answer, "time_ms", now / MONITOR_MILLISECOND);
    bide_report_number_(answer, "since_ms",
                        client->before.at != 0 ? (now - client->before.at) / MONITOR_MILLISECOND
                                               : 0);
    bide_report_number_(answer, "took_us", took / 1000);
    bide_report_number_(answer, "tasks", groups->tasks);
    bide_report_number_(answer, "waiting", groups->doing[WALK_WAITING]);
    bide_report_number_(answer, "running", groups->doing[WALK_RUNNING]);
    bide_report_number_(answer, "not_started", groups->doing[WALK_NOT_STARTED]);
    bide_report_number_(answer, "groups", groups->group_count);
    bide_report_number_(answer, "ungrouped", groups->ungrouped);
    if (groups->turns.period != 0) {
        bide_report_number_(answer, "turns_us", (groups->turns.period + 999) / 1000);
        bide_report_number_(answer, "other_runs", groups->turns.runs - groups->runs);
    }
    bide_report_end_(answer);
}

/* Reads the executors, and keeps the result in `last` for the next look. */
static int monitor_look_at_executors(monitor *monitor)
{
    executors now = {0};
    int error = bide_executors_collect_(&now, &monitor->last);
    bide_executors_free_(&monitor->last);
    monitor->last = now;
    return error;
}

static void monitor_look(monitor *monitor, monitor_client *client)
{
    const client_look *asked = &client->look;
    monitor_report details = {0};
    uint64_t began = bide_platform.now();
    client->has_asked = false;
    int error = monitor_look_at_executors(monitor);
    bide_turn_counts_free_(&monitor->groups.turns);
    if (monitor->watches_turns)
        bide_turn_counts_take_(&monitor->groups.turns);
    if (error == 0)
        error = bide_task_groups_collect_(&monitor->groups, asked->group, asked->tasks,
                                          asked->frames, &details);
    uint64_t ended = bide_platform.now();
    monitor->may_look_at = ended + REST_FACTOR * (ended - began); /* 4 */
    if (error != 0) {
        bide_monitor_client_reject_(client, "the program's memory cannot be read");
        bide_report_free_(&details);
        return;
    }
    monitor_report_look(monitor, client, ended - began);
    bide_executors_report_(&monitor->last, &client->before, &client->answer);
    if (monitor->watches_turns)
        bide_current_tasks_report_(&client->answer);
    bide_task_groups_report_(&monitor->groups, asked->groups, &client->answer);
    bide_report_append_(&client->answer, &details);
    bide_report_free_(&details);
    bide_monitor_client_answered_(client);
    bide_executors_copy_(&client->before, &monitor->last);
}

static void monitor_serve_looks(monitor *monitor)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        monitor_client *client = &monitor->clients[i];
        if (client->fd >= 0 && client->has_asked && bide_platform.now() >= monitor->may_look_at)
            monitor_look(monitor, client);
    }
}

/* ---- Connections ---- */

static void monitor_greet(const monitor *monitor, monitor_client *client)
{
    monitor_report *answer = &client->answer;
    bide_report_start_(answer, "hello");
    bide_report_text_(answer, "protocol", "bide-monitor");
    bide_report_number_(answer, "version", MONITOR_VERSION);
    bide_report_number_(answer, "pid", (uint64_t)getpid());
    bide_report_text_(answer, "program", monitor->name);
    bide_report_text_(answer, "library", BIDE_VERSION_TEXT);
    if (!bide_report_end_(answer))
        client->ends = true;
}

static bool monitor_is_allowed(const monitor *monitor, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == monitor->owner || peer.uid == 0);
}

/* Rejects a connection, with a reason if it can be sent at once. */
static void monitor_reject(int fd, const char *why)
{
    monitor_client client;
    bide_monitor_client_start_(&client, fd);
    bide_monitor_client_reject_(&client, why);
    bide_monitor_client_send_(&client);
    bide_monitor_client_stop_(&client);
}

static monitor_client *monitor_free_client(monitor *monitor)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (monitor->clients[i].fd < 0)
            return &monitor->clients[i];
    }
    return NULL;
}

static void monitor_accept(monitor *monitor)
{
    int fd = portable_accept(monitor->listener, NULL, NULL);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            monitor->may_accept_at = bide_platform.now() + MONITOR_ACCEPT_PAUSE;
        return;
    }
    monitor_client *free_client = monitor_free_client(monitor);
    if (!monitor_is_allowed(monitor, fd)) {
        monitor_reject(fd, "this program is another user's");
    } else if (free_client == NULL) {
        monitor_reject(fd, "there are too many connections");
    } else {
        bide_monitor_client_start_(free_client, fd);
        monitor_greet(monitor, free_client);
    }
}

/* Watches turns while a client wants them, and frees memory when no client is left. */
static void monitor_update_watch(monitor *monitor)
{
    bool is_alone = true;
    bool wants_turns = false;
    for (int i = 0; i < CLIENTS_MAX; i++) {
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
        bide_task_groups_free_(&monitor->groups);
        bide_executors_free_(&monitor->last);
    }
}

static void monitor_serve(monitor_client *client, short events)
{
    bool stays = true;
    if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0 && (events & POLLIN) == 0)
        stays = false;
    if (stays && bide_monitor_client_may_request_(client) && (events & POLLIN) != 0)
        stays = bide_monitor_client_read_(client);
    if (stays && client->answer.length != 0)
        stays = bide_monitor_client_send_(client);
    if (!stays)
        bide_monitor_client_stop_(client);
}

/* Continues with commands that were read together with an earlier one: no event of poll reports them. */
static void monitor_continue_clients(monitor *monitor)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        monitor_client *client = &monitor->clients[i];
        while (client->fd >= 0 && client->answer.length != 0) {
            if (!bide_monitor_client_send_(client)) {
                bide_monitor_client_stop_(client);
            } else if (client->answer.length != 0) {
                break;
            } else if (!bide_monitor_client_read_(client)) {
                bide_monitor_client_stop_(client);
            }
        }
        if (client->fd >= 0 && client->ends && client->answer.length == 0)
            bide_monitor_client_stop_(client);
    }
}

/* ---- The thread ---- */

/* The time at which the thread has to wake up even without an event, or BIDE_FOREVER. */
static uint64_t monitor_deadline(const monitor *monitor, uint64_t now)
{
    uint64_t deadline = monitor->may_accept_at > now ? monitor->may_accept_at : BIDE_FOREVER;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const monitor_client *client = &monitor->clients[i];
        if (client->fd >= 0 && client->has_asked && monitor->may_look_at < deadline)
            deadline = monitor->may_look_at;
    }
    return deadline;
}

/* False: the thread has to stop. */
static bool monitor_run_once(monitor *monitor)
{
    struct pollfd polled[2 + CLIENTS_MAX];
    uint64_t now = bide_platform.now();
    uint64_t deadline = monitor_deadline(monitor, now);
    struct timespec left = {0, 0};
    if (deadline != BIDE_FOREVER && deadline > now)
        left = (struct timespec){(time_t)((deadline - now) / 1000000000),
                                 (long)((deadline - now) % 1000000000)};
    polled[0] = (struct pollfd){monitor->ending, POLLIN, 0};
    polled[1] = (struct pollfd){now >= monitor->may_accept_at ? monitor->listener : -1, POLLIN, 0};
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const monitor_client *client = &monitor->clients[i];
        short events = bide_monitor_client_may_request_(client) ? POLLIN : 0;
        if (client->answer.length != 0)
            events = POLLOUT;
        polled[2 + i] = (struct pollfd){client->fd, events, 0};
    }
    if (ppoll(polled, 2 + CLIENTS_MAX, deadline != BIDE_FOREVER ? &left : NULL, NULL) > 0) {
        if (polled[0].revents != 0)
            return false;
        for (int i = 0; i < CLIENTS_MAX; i++) {
            if (polled[2 + i].revents != 0)
                monitor_serve(&monitor->clients[i], polled[2 + i].revents);
        }
        if (polled[1].revents != 0)
            monitor_accept(monitor);
    }
    monitor_serve_looks(monitor);
    monitor_continue_clients(monitor);
    monitor_update_watch(monitor);
    return true;
}

static void *monitor_main(void *argument)
{
    monitor *monitor = argument;
    portable_name_this_thread("monitor");
    while (monitor_run_once(monitor)) {
    }
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (monitor->clients[i].fd >= 0)
            bide_monitor_client_stop_(&monitor->clients[i]);
    }
    monitor_update_watch(monitor);
    return NULL;
}

/* ---- Starting and stopping ---- */

static void monitor_close_descriptors(monitor *monitor)
{
    close(monitor->listener);
    bide_descriptor_close_(monitor->ending);
}

/* In a child of fork: 6. */
static void monitor_after_fork_in_child(void)
{
    monitor *monitor = monitor_state.monitor;
    pthread_mutex_init(&monitor_state.lock, NULL);
    monitor_state.monitor = NULL;
    monitor_state.is_ending = false;
    if (monitor == NULL)
        return;
    monitor_close_descriptors(monitor);
    bide_listen_path_destroy(&monitor->socket); /* (its file is the parent's) */
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (monitor->clients[i].fd >= 0)
            close(monitor->clients[i].fd);
    }
    free(monitor);
}

static void monitor_give_up(void *argument)
{
    (void)argument;
}

static int monitor_start_thread(monitor *monitor)
{
    static bool has_fork_handler;
    if (!has_fork_handler && pthread_atfork(NULL, NULL, monitor_after_fork_in_child) != 0)
        return -ENOMEM;
    has_fork_handler = true;
    monitor->ending = bide_descriptor_create_();
    if (monitor->ending < 0)
        return monitor->ending;
    int error = bide_threads_start_(&monitor->thread, 1, monitor_main, monitor, monitor_give_up);
    if (error != 0)
        bide_descriptor_close_(monitor->ending);
    return error;
}

static int monitor_init(monitor *monitor, const bide_monitor_options *options)
{
    const char *name = options->name != NULL ? options->name : portable_program_name();
    snprintf(monitor->name, sizeof monitor->name, "%s", name);
    monitor->owner = geteuid();
    for (int i = 0; i < CLIENTS_MAX; i++)
        monitor->clients[i].fd = -1;
    monitor->listener = bide_monitor_socket_open_(&monitor->socket, options->path);
    if (monitor->listener < 0)
        return monitor->listener;
    int error = monitor_start_thread(monitor);
    if (error != 0) {
        bide_listen_path_remove(&monitor->socket);
        close(monitor->listener);
    }
    return error;
}

int bide_monitor_start(const bide_monitor_options *options)
{
    static const bide_monitor_options none;
    pthread_mutex_lock(&monitor_state.lock);
    int error = -EALREADY;
    if (monitor_state.monitor == NULL) {
        monitor *monitor = calloc(1, sizeof *monitor);
        error =
            monitor != NULL ? monitor_init(monitor, options != NULL ? options : &none) : -ENOMEM;
        if (error != 0)
            free(monitor);
        else
            monitor_state.monitor = monitor;
    }
    pthread_mutex_unlock(&monitor_state.lock);
    return error;
}

int bide_monitor_stop(void)
{
    pthread_mutex_lock(&monitor_state.lock);
    monitor *monitor = monitor_state.is_ending ? NULL : monitor_state.monitor;
    monitor_state.is_ending = monitor != NULL || monitor_state.is_ending; /* 2 */
    pthread_mutex_unlock(&monitor_state.lock);
    if (monitor == NULL)
        return -EALREADY;
    bide_listen_path_remove(&monitor->socket);
    bide_descriptor_raise_(monitor->ending);
    bide_threads_join_(&monitor->thread, 1);
    pthread_mutex_lock(&monitor_state.lock);
    monitor_state.monitor = NULL;
    monitor_state.is_ending = false;
    pthread_mutex_unlock(&monitor_state.lock);
    monitor_close_descriptors(monitor);
    free(monitor);
    return 0;
}

size_t bide_monitor_path(char *path, size_t size)
{
    size_t length = 0;
    if (size != 0)
        path[0] = '\0';
    pthread_mutex_lock(&monitor_state.lock);
    if (monitor_state.monitor != NULL && !monitor_state.is_ending)
        length = (size_t)snprintf(path, size, "%s", monitor_state.monitor->socket.path);
    pthread_mutex_unlock(&monitor_state.lock);
    return length;
}
