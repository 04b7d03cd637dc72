/* A Redis server of the test's own, for logs of the engine "redis". */
#ifndef BIDE_LOG_REDIS_SERVER_H
#define BIDE_LOG_REDIS_SERVER_H

#include "log_directory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct redis_server {
    struct log_directory directory;
    char port[8];
    pid_t pid;
    const char *fsync; /* appendfsync; NULL: no file */
    char master[8];    /* its master's port, or empty */
};

/* A port that nobody has now. */
static inline unsigned redis_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&address, &size), 0);
    close(descriptor);
    return ntohs(address.sin_port);
}

/* A connection to the server, or a negative errno. */
static inline int redis_try_connect(const struct redis_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(server->port)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
        return descriptor;
    int status = -errno;
    close(descriptor);
    return status;
}

/*
 * Sends a command as a line, and returns the first line of the reply, with as much as has come of the
 * rest. False: the connection was lost.
 */
static inline bool redis_try_command(const struct redis_server *server, const char *line,
                                     char *reply, size_t size)
{
    int descriptor = redis_try_connect(server);
    if (descriptor < 0)
        return false;
    size_t length = 0;
    char text[1024];
    int count = snprintf(text, sizeof text, "%s\r\nQUIT\r\n", line);
    bool is_sent = send(descriptor, text, (size_t)count, MSG_NOSIGNAL) == count;
    ssize_t got = 1;
    while (is_sent && length + 1 < size &&
           (got = recv(descriptor, reply + length, size - 1 - length, 0)) > 0)
        length += (size_t)got;
    reply[length] = '\0';
    close(descriptor);
    return is_sent && length != 0;
}

static inline void redis_command(const struct redis_server *server, const char *line, char *reply,
                                 size_t size)
{
    if (!redis_try_command(server, line, reply, size))
        fail_msg("%s: no reply", line);
}

/* A command whose reply begins so. */
static inline void redis_do(const struct redis_server *server, const char *line,
                            const char *expected)
{
    char reply[4096];
    redis_command(server, line, reply, sizeof reply);
    if (strncmp(reply, expected, strlen(expected)) != 0)
        fail_msg("%s: %s", line, reply);
}

static inline void redis_exec(const struct redis_server *server)
{
    int log = open("redis.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)dup2(log, 1);
    (void)dup2(log, 2);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("redis-server", "redis-server", "--port", server->port, "--bind", "127.0.0.1", "--save",
           "", "--appendonly", server->fsync != NULL ? "yes" : "no", "--appendfsync",
           server->fsync != NULL ? server->fsync : "no",
           server->master[0] != '\0' ? "--replicaof" : NULL, "127.0.0.1", server->master, NULL);
    _exit(127);
}

/* True: it answers. False: it has ended, because another has its port. */
static inline bool redis_server_is_up(struct redis_server *server)
{
    char reply[64];
    int status;
    for (;;) {
        if (redis_try_command(server, "PING", reply, sizeof reply) &&
            strncmp(reply, "+PONG", 5) == 0)
            return true;
        pid_t ended = waitpid(server->pid, &status, WNOHANG);
        if (ended == server->pid) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                fail_msg("redis-server cannot be run");
            return false;
        }
        (void)poll(NULL, 0, 10); /* it has no event for that */
    }
}

/* Starts it on its port, with what it had before. */
static inline bool redis_server_run(struct redis_server *server)
{
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        if (chdir(server->directory.path) == 0)
            redis_exec(server);
        _exit(126);
    }
    return redis_server_is_up(server);
}

static inline void redis_server_start(struct redis_server *server, const char *fsync,
                                      const struct redis_server *master)
{
    *server = (struct redis_server){.fsync = fsync};
    if (master != NULL)
        memcpy(server->master, master->port, sizeof server->master);
    log_directory_make(&server->directory);
    assert_int_equal(mkdir(server->directory.path, 0700), 0);
    do
        snprintf(server->port, sizeof server->port, "%u", redis_free_port());
    while (!redis_server_run(server));
}

static inline void redis_server_kill(struct redis_server *server)
{
    if (server->pid > 0) {
        (void)kill(server->pid, SIGKILL);
        (void)waitpid(server->pid, NULL, 0);
    }
    server->pid = 0;
}

static inline void redis_server_end(struct redis_server *server)
{
    char files[sizeof server->directory.path + 16];
    redis_server_kill(server);
    snprintf(files, sizeof files, "%s/appendonlydir", server->directory.path);
    log_directory_empty(files);
    log_directory_remove(&server->directory);
}

/* The test's exit status if there is no server, or 0. */
static inline int redis_server_missing(void)
{
    if (system("command -v redis-server >/dev/null 2>&1") == 0)
        return 0;
    puts("SKIP: redis-server is not installed");
    return 77;
}

#endif
