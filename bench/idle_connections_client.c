/*
 * Idle connections: opens COUNT of them, each of which echoes one message, and then waits.
 *
 *   idle_connections_client PORT COUNT SECONDS PID prints their cost to the server, the process PID:
 *       bytes-each N processor US switches N
 *
 * These are the resident memory for each connection, the processor time of all threads while the
 * connections were idle, and the number of context switches of these threads.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 64, WARM_UP = 100 };

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "idle_connections_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void connect_and_echo(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    char message[MESSAGE] = "idle";
    struct linger at_once = {1, 0};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 ||
        connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0 ||
        send(descriptor, message, MESSAGE, MSG_NOSIGNAL) != MESSAGE ||
        recv(descriptor, message, MESSAGE, MSG_WAITALL) != MESSAGE)
        fail("connect");
}

static uint64_t resident(long pid)
{
    char path[64];
    unsigned long long size, pages;
    snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%llu %llu", &size, &pages) != 2)
        fail(path);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* For all threads: processor time in nanoseconds, and the number of context switches. */
static void measure(long pid, uint64_t *ran, uint64_t *times)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        fail(path);
    *ran = *times = 0;
    for (struct dirent *thread; (thread = readdir(threads)) != NULL;) {
        unsigned long long on, waited, slices;
        snprintf(path, sizeof path, "/proc/%ld/task/%.100s/schedstat", pid, thread->d_name);
        FILE *file = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file == NULL)
            continue;
        if (fscanf(file, "%llu %llu %llu", &on, &waited, &slices) == 3) {
            *ran += on;
            *times += slices;
        }
        fclose(file);
    }
    closedir(threads);
}

static void pause_for(double seconds)
{
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
}

int main(int argc, char **argv)
{
    uint64_t ran, times, ran_after, times_after;
    if (argc != 5) {
        fprintf(stderr, "usage: idle_connections_client PORT COUNT SECONDS PID\n");
        return 2;
    }
    int port = atoi(argv[1]), count = atoi(argv[2]);
    long pid = atol(argv[4]);
    for (int i = 0; i < WARM_UP; i++)
        connect_and_echo(port);
    uint64_t before = resident(pid);
    for (int i = 0; i < count; i++)
        connect_and_echo(port);
    double each = (double)(int64_t)(resident(pid) - before) / count;
    pause_for(0.5);
    measure(pid, &ran, &times);
    pause_for(atof(argv[3]));
    measure(pid, &ran_after, &times_after);
    printf("bytes-each %.0f processor %.1f switches %llu\n", each, (double)(ran_after - ran) / 1e3,
           (unsigned long long)(times_after - times));
    return 0;
}
