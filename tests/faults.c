/*
 * The linker sends each call of a wrapped function F to __wrap_F here, and __real_F to the function.
 * Everything shared is an atomic of its own and relaxed: whoever sets a fault starts the calls that meet
 * it, and whoever reads a count has waited for the calls that it counts.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static struct {
    atomic_uint first; /* 0: none fails */
    atomic_uint times;
    atomic_int error;
    atomic_uint calls;
    atomic_uint hits;
} faults[FAULT_FUNCTIONS];

static atomic_size_t most_read; /* 0: as many as there are */
static atomic_long blocks;
static atomic_long threads;

#define LOAD(object)         atomic_load_explicit(object, memory_order_relaxed)
#define STORE(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#define ADD(object, value)   atomic_fetch_add_explicit(object, value, memory_order_relaxed)

void faults_clear(void)
{
    for (int i = 0; i < FAULT_FUNCTIONS; i++) {
        STORE(&faults[i].first, 0);
        STORE(&faults[i].calls, 0);
        STORE(&faults[i].hits, 0);
    }
    STORE(&most_read, 0);
}

void faults_fail(fault function, unsigned nth, unsigned times, int error)
{
    STORE(&faults[function].times, times);
    STORE(&faults[function].error, error);
    STORE(&faults[function].first, nth);
}

void faults_shorten_reads(size_t most)
{
    STORE(&most_read, most);
}

unsigned faults_calls(fault function)
{
    return LOAD(&faults[function].calls);
}

unsigned faults_hits(fault function)
{
    return LOAD(&faults[function].hits);
}

long faults_blocks(void)
{
    return LOAD(&blocks);
}

long faults_threads(void)
{
    return LOAD(&threads);
}

long faults_descriptors(void)
{
    long count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Counts a call. Returns the errno with which it is to fail, or 0. */
static int fault_of(fault function)
{
    unsigned call = ADD(&faults[function].calls, 1) + 1;
    unsigned first = LOAD(&faults[function].first);
    if (first == 0 || call < first || call - first >= LOAD(&faults[function].times))
        return 0;
    ADD(&faults[function].hits, 1);
    return LOAD(&faults[function].error);
}

/* The same, with the errno where most functions leave it. */
static bool fails(fault function)
{
    int error = fault_of(function);
    if (error != 0)
        errno = error;
    return error != 0;
}

void *__real_malloc(size_t size);
void __real_free(void *block);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __real_pthread_join(pthread_t thread, void **result);
int __real_eventfd(unsigned count, int flags);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
ssize_t __real_read(int fd, void *buffer, size_t size);

void *__wrap_malloc(size_t size)
{
    void *block = fails(FAULT_MALLOC) ? NULL : __real_malloc(size);
    if (block != NULL)
        ADD(&blocks, 1);
    return block;
}

void __wrap_free(void *block)
{
    if (block != NULL)
        ADD(&blocks, -1);
    __real_free(block);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    int error = fault_of(FAULT_PTHREAD_CREATE);
    if (error == 0)
        error = __real_pthread_create(thread, attributes, function, argument);
    if (error == 0)
        ADD(&threads, 1);
    return error;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    int error = __real_pthread_join(thread, result);
    if (error == 0)
        ADD(&threads, -1);
    return error;
}

int __wrap_eventfd(unsigned count, int flags)
{
    return fails(FAULT_EVENTFD) ? -1 : __real_eventfd(count, flags);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return fails(FAULT_POLL) ? -1 : __real_poll(fds, count, timeout);
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
    if (fails(FAULT_READ))
        return -1;
    size_t most = LOAD(&most_read);
    return __real_read(fd, buffer, most != 0 && size > most ? most : size);
}
