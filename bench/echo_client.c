/*
 * The load generator of `echo`: one thread that keeps every connection busy with one request at a
 * time. A request is SIZE bytes; the next is sent when all of them have come back.
 *
 * It is cheaper than any server, so that the server is measured. It polls without sleeping, so that
 * no server pays for waking it. Requests are submitted to the kernel in batches, with io_uring.
 * Small answers are received in batches, and the kernel drops their bytes instead of copying them
 * (MSG_TRUNC). The bytes are verified once for each connection, before the measurement. Two figures
 * show whether the client was cheap enough: the part of its time in which it did not poll, and the
 * number of answers that a non-empty poll found (if the client were too slow: all of them). The
 * last figure is the processor time of the process PID, in microseconds per request.
 *
 *   echo_client PORT CONNECTIONS SIZE WARM-UP SECONDS PID prints one line:
 *       requests/s N p50 US p99 US p99.9 US busy PART answers/poll N processor US
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_EVENTS = 256, MAX_SIZE = 65536, SMALL = 1024, TOGETHER = 16, AT_ONCE = 8 };

typedef struct connection {
    int descriptor;
    uint32_t index;   /* of the descriptor in the ring */
    uint32_t missing; /* bytes of requested answers that have not been received */
    uint32_t unread;  /* received answers that are still in the socket */
    uint64_t begun;
} connection;

static char message[MAX_SIZE], answer[MAX_SIZE];

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "echo_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- a histogram of latencies: 64 buckets for each doubling, so a figure is right within 1.6 % ---- */

enum { PARTS = 64 };
static uint64_t buckets[PARTS * 60], counted;

static void count(uint64_t nanoseconds)
{
    uint64_t value = nanoseconds | 1;
    unsigned shift = 0;
    if (value >= PARTS) /* (so that PARTS <= value >> shift < 2 * PARTS) */
        shift = 63 - (unsigned)__builtin_clzll(value) - 6;
    buckets[shift * PARTS + (value >> shift)]++;
    counted++;
}

/* In microseconds. */
static double quantile(double part)
{
    uint64_t wanted = (uint64_t)(part * (double)counted), seen = 0;
    for (unsigned i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        seen += buckets[i];
        if (seen > wanted) {
            unsigned shift = i < 2 * PARTS ? 0 : i / PARTS - 1;
            return (double)((uint64_t)(i - shift * PARTS) << shift) / 1e3;
        }
    }
    return 0;
}

/* ---- */

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    /* (closed by a reset, so that thousands of ports do not linger from turn to turn) */
    struct linger at_once = {.l_onoff = 1};
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0)
        fail("connect");
    return descriptor;
}

/* Verifies an echo. The data of each connection differs in its first byte. */
static void check_echo(int descriptor, uint32_t size, size_t index)
{
    message[0] = (char)index;
    if (send(descriptor, message, size, MSG_NOSIGNAL) != (ssize_t)size ||
        recv(descriptor, answer, size, MSG_WAITALL) != (ssize_t)size)
        fail("the first request");
    if (memcmp(message, answer, size) != 0) {
        errno = EBADMSG;
        fail("the first request");
    }
}

/* Queued requests, which one system call submits to the kernel. */
static struct io_uring ring;
static int have_ring;
static connection *queued[AT_ONCE];
static unsigned queue;

static void make_ring(const connection *all, size_t connections)
{
    struct io_uring_params params = {.flags =
                                         IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN};
    int *descriptors = calloc(connections, sizeof *descriptors);
    if (descriptors == NULL)
        fail("begin");
    for (size_t i = 0; i < connections; i++)
        descriptors[i] = all[i].descriptor;
    have_ring = io_uring_queue_init_params(AT_ONCE, &ring, &params) == 0 &&
                io_uring_register_files(&ring, descriptors, (unsigned)connections) == 0;
    if (!have_ring)
        fprintf(stderr, "echo_client: io_uring is refused, so each request is a system call\n");
    free(descriptors);
}

/* Only a failed send has a completion. */
static void send_queued(void)
{
    uint64_t begun = now();
    for (unsigned i = 0; i < queue; i++)
        queued[i]->begun = begun;
    queue = 0;
    if (have_ring && (io_uring_submit(&ring) < 0 || io_uring_cq_ready(&ring) > 0))
        fail("send");
}

static void request(connection *c, uint32_t size)
{
    c->missing += size;
    if (have_ring) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        io_uring_prep_send(sqe, (int)c->index, message, size, MSG_NOSIGNAL | MSG_WAITALL);
        io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS | IOSQE_FIXED_FILE);
    } else if (send(c->descriptor, message, size, MSG_NOSIGNAL) != (ssize_t)size) {
        fail("send");
    }
    queued[queue++] = c;
    if (queue == AT_ONCE || !have_ring)
        send_queued();
}

/*
 * True if the answer is complete. A small answer arrives in one piece, and its event shows that it
 * has arrived, so several are received together. If a piece is missing, the event was early, and
 * this call waits for the rest.
 */
static int receive(connection *c, uint32_t size)
{
    if (size <= SMALL && c->missing == (c->unread + 1) * size && ++c->unread < TOGETHER)
        return 1;
    c->unread = 0;
    ssize_t got = recv(c->descriptor, answer, c->missing, MSG_DONTWAIT | MSG_TRUNC);
    if (got > 0)
        c->missing -= (uint32_t)got;
    else if (got == 0 || errno != EAGAIN)
        fail("receive");
    return c->missing == 0;
}

static unsigned long number(const char *text, unsigned long min, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == 0 || *end != 0 || value < min || value > max) {
        errno = EINVAL;
        fail(text);
    }
    return value;
}

/* The processor time of a process's threads, in nanoseconds. */
static uint64_t time_of(unsigned long pid)
{
    char path[300];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%lu/task", pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        fail(path);
    for (struct dirent *thread; (thread = readdir(threads)) != NULL;) {
        unsigned long long ran = 0;
        snprintf(path, sizeof path, "/proc/%lu/task/%.100s/schedstat", pid, thread->d_name);
        FILE *file = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file == NULL)
            continue;
        if (fscanf(file, "%llu", &ran) == 1)
            sum += ran;
        fclose(file);
    }
    closedir(threads);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: echo_client PORT CONNECTIONS SIZE WARM-UP SECONDS PID\n");
        return 2;
    }
    unsigned long pid = number(argv[6], 1, INT32_MAX);
    uint16_t port = (uint16_t)number(argv[1], 1, 65535);
    size_t connections = number(argv[2], 1, 100000);
    uint32_t size = (uint32_t)number(argv[3], 1, MAX_SIZE);
    uint64_t warm_up = (uint64_t)(atof(argv[4]) * 1e9), measured = (uint64_t)(atof(argv[5]) * 1e9);

    for (uint32_t i = 0; i < size; i++)
        message[i] = (char)(i * 31 + i / 256);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    connection *all = calloc(connections, sizeof *all);
    if (poll < 0 || all == NULL)
        fail("begin");
    for (size_t i = 0; i < connections; i++) {
        all[i].index = (uint32_t)i;
        all[i].descriptor = connect_to(port);
        check_echo(all[i].descriptor, size, i);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = &all[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, all[i].descriptor, &event) != 0)
            fail("epoll_ctl");
    }
    make_ring(all, connections);
    for (size_t i = 0; i < connections; i++)
        request(&all[i], size);
    send_queued();

    uint64_t begun = now(), from = begun + warm_up, until = from + measured, last = begun;
    uint64_t polling = 0, polls = 0, requests = 0, ran = 0;
    uint64_t counting = 0; /* start of the measurement, after the warm-up */
    while (last < until) {
        struct epoll_event events[MAX_EVENTS];
        uint64_t asked = now();
        int ready = epoll_wait(poll, events, MAX_EVENTS, 0);
        last = now();
        if (ready < 0)
            fail("epoll_wait");
        if (!counting && last >= from)
            counting = last, ran = time_of(pid);
        else if (counting)
            polling += last - asked;
        polls += counting && ready > 0;
        for (int i = 0; i < ready; i++) {
            connection *c = events[i].data.ptr;
            if (!receive(c, size))
                continue;
            if (counting) {
                count(last - c->begun);
                requests++;
            }
            request(c, size);
        }
        if (queue > 0)
            send_queued();
    }
    ran = time_of(pid) - ran;
    double took = (double)(last - counting);
    printf("requests/s %.0f p50 %.1f p99 %.1f p99.9 %.1f busy %.2f answers/poll %.1f "
           "processor %.2f\n",
           (double)requests * 1e9 / took, quantile(0.5), quantile(0.99), quantile(0.999),
           1 - (double)polling / took, (double)requests / (double)(polls ? polls : 1),
           (double)ran / 1e3 / (double)(requests ? requests : 1));
    return 0;
}
