/*
 * Short connections: a fixed number at a time, each of which sends one byte, receives it back, and
 * resets. One thread, with epoll.
 *
 *   accept_client PORT AT-ONCE WARM-UP SECONDS PID prints
 *       connections/s N p99 US processor US
 *
 * p99 is the 99th percentile of the time from connect to the answer; the last figure is the
 * processor time of the process PID for each connection.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, EVENTS = 256, SAMPLES = 1 << 20 };

typedef struct connection {
    int descriptor;
    int is_connected;
    uint64_t begun;
} connection;

static struct sockaddr_in address = {.sin_family = AF_INET};
static connection all[MOST];
static float samples[SAMPLES];
static int poll_set;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "accept_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t time_of(long pid)
{
    char path[300];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        fail(path);
    for (struct dirent *thread; (thread = readdir(threads)) != NULL;) {
        unsigned long long ran = 0;
        snprintf(path, sizeof path, "/proc/%ld/task/%.100s/schedstat", pid, thread->d_name);
        FILE *file = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file != NULL && fscanf(file, "%llu", &ran) == 1)
            sum += ran;
        if (file != NULL)
            fclose(file);
    }
    closedir(threads);
    return sum;
}

static void begin(connection *c)
{
    struct linger at_once = {1, 0};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    c->begun = now();
    c->is_connected = 0;
    c->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->descriptor < 0 ||
        setsockopt(c->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0 ||
        (connect(c->descriptor, (struct sockaddr *)&address, sizeof address) != 0 &&
         errno != EINPROGRESS) ||
        epoll_ctl(poll_set, EPOLL_CTL_ADD, c->descriptor, &event) != 0)
        fail("connect");
}

/* True if the connection has its answer. */
static int go_on(connection *c)
{
    char byte = 'x';
    if (!c->is_connected) {
        if (send(c->descriptor, &byte, 1, MSG_NOSIGNAL) != 1) {
            if (errno == EAGAIN)
                return 0;
            fail("send");
        }
        c->is_connected = 1;
    }
    if (recv(c->descriptor, &byte, 1, 0) == 1)
        return 1;
    if (errno != EAGAIN)
        fail("receive");
    return 0;
}

static int compare(const void *one, const void *other)
{
    float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: accept_client PORT AT-ONCE WARM-UP SECONDS PID\n");
        return 2;
    }
    int count = atoi(argv[2]);
    long pid = atol(argv[5]);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    poll_set = epoll_create1(EPOLL_CLOEXEC);
    if (poll_set < 0 || count < 1 || count > MOST)
        fail("begin");
    for (int i = 0; i < count; i++)
        begin(&all[i]);
    uint64_t begun = now(), from = begun + (uint64_t)(atof(argv[3]) * 1e9);
    uint64_t until = from + (uint64_t)(atof(argv[4]) * 1e9), at = begun, counting = 0, ran = 0;
    size_t ended = 0;
    while (at < until) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll_set, events, EVENTS, 1000);
        at = now();
        if (counting == 0 && at >= from)
            counting = at, ran = time_of(pid);
        for (int i = 0; i < ready; i++) {
            connection *c = events[i].data.ptr;
            if (!go_on(c))
                continue;
            if (counting != 0 && ended < SAMPLES)
                samples[ended++] = (float)(now() - c->begun) / 1e3f;
            close(c->descriptor);
            begin(c);
        }
    }
    ran = time_of(pid) - ran;
    if (ended == 0)
        fail("no connection was answered");
    qsort(samples, ended, sizeof *samples, compare);
    printf("connections/s %.0f p99 %.1f processor %.2f\n", (double)ended * 1e9 / (double)(at - counting),
           (double)samples[ended * 99 / 100], (double)ran / 1e3 / (double)ended);
    return 0;
}
