/*
 * Makes calls of a whole program fail, controlled by its environment. Such a program is linked from the
 * same objects again, with this file and tests/faults.c:
 *
 *     FAULTS=malloc:17:12        the 17th call of malloc fails with the errno 12
 *     FAULTS=recv:3:104:5        ... and the four after it
 *     FAULTS=openssl:900:12      the 900th allocation of OpenSSL fails
 *     FAULTS=openssl:1:0:1000000 none fails: with the errno 0, calls are only counted
 *     FAULTS_REPORT=PATH         at exit, the number of failed calls is written there
 */
#include "../faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    fault function;
} names[] = {
    {"malloc", FAULT_MALLOC},
    {"calloc", FAULT_CALLOC},
    {"realloc", FAULT_REALLOC},
    {"aligned_alloc", FAULT_ALIGNED_ALLOC},
    {"pthread_create", FAULT_PTHREAD_CREATE},
    {"eventfd", FAULT_EVENTFD},
    {"epoll_create1", FAULT_EPOLL_CREATE1},
    {"epoll_ctl", FAULT_EPOLL_CTL},
    {"epoll_wait", FAULT_EPOLL_WAIT},
    {"read", FAULT_READ},
    {"write", FAULT_WRITE},
    {"close", FAULT_CLOSE},
    {"fcntl", FAULT_FCNTL},
    {"socket", FAULT_SOCKET},
    {"accept4", FAULT_ACCEPT4},
    {"connect", FAULT_CONNECT},
    {"recv", FAULT_RECV},
    {"send", FAULT_SEND},
    {"splice", FAULT_SPLICE},
    {"pipe2", FAULT_PIPE2},
    {"mmap", FAULT_MMAP},
};

static fault function = FAULT_FUNCTIONS;

/* ---- OpenSSL, whose allocations are calls inside a shared library; if the program has it ---- */

extern int CRYPTO_set_mem_functions(void *(*allocate)(size_t size, const char *file, int line),
                                    void *(*reallocate)(void *block, size_t size, const char *file,
                                                        int line),
                                    void (*release)(void *block, const char *file, int line))
    __attribute__((weak));

static struct {
    unsigned first; /* 0: none fails */
    unsigned times;
    int error;
    atomic_uint calls; /* relaxed, as all counters: see ../faults.c */
    atomic_uint hits;
} openssl;

static bool openssl_fails(void)
{
    unsigned call = atomic_fetch_add_explicit(&openssl.calls, 1, memory_order_relaxed) + 1;
    if (call < openssl.first || call - openssl.first >= openssl.times)
        return false;
    atomic_fetch_add_explicit(&openssl.hits, 1, memory_order_relaxed);
    errno = openssl.error;
    return openssl.error != 0;
}

static void *openssl_allocate(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return openssl_fails() ? NULL : malloc(size);
}

static void *openssl_reallocate(void *block, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return openssl_fails() ? NULL : realloc(block, size);
}

static void openssl_release(void *block, const char *file, int line)
{
    (void)file, (void)line;
    free(block);
}

static bool fail_in_openssl(unsigned nth, unsigned times, int error)
{
    openssl.first = nth;
    openssl.times = times;
    openssl.error = error;
    return CRYPTO_set_mem_functions != NULL &&
           CRYPTO_set_mem_functions(openssl_allocate, openssl_reallocate, openssl_release) == 1;
}

/* ---- The environment ---- */

static _Noreturn void misused(const char *text)
{
    fprintf(stderr, "FAULTS=%s: not NAME:NTH:ERRNO[:TIMES]\n", text);
    _exit(3);
}

__attribute__((constructor)) static void begin(void)
{
    char name[20];
    unsigned nth, times = 1;
    int error;
    const char *text = getenv("FAULTS");
    if (text == NULL)
        return;
    if (sscanf(text, "%19[a-z0-9_]:%u:%d:%u", name, &nth, &error, &times) < 3)
        misused(text);
    if (strcmp(name, "openssl") == 0) {
        if (!fail_in_openssl(nth, times, error))
            misused(text);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, name) == 0)
            function = names[i].function;
    }
    if (function == FAULT_FUNCTIONS)
        misused(text);
    faults_fail(function, nth, times, error);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAULTS_REPORT");
    if (path == NULL || (function == FAULT_FUNCTIONS && openssl.first == 0))
        return;
    unsigned hits = openssl.first != 0 ? atomic_load_explicit(&openssl.hits, memory_order_relaxed)
                                       : faults_hits(function);
    faults_clear(); /* (this has to succeed) */
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%u\n", hits) < 0 || fclose(file) != 0)
        abort();
}
