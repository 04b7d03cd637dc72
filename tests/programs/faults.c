/*
 * Makes calls of a whole program fail, controlled by its environment. Such a program is linked from the
 * same objects again, with this file and tests/faults.c:
 *
 *     FAULTS=malloc:17:12        the 17th call of malloc fails with the errno 12
 *     FAULTS=recv:3:104:5        ... and the four after it
 *     FAULTS_REPORT=PATH         at exit, the number of failed calls is written there
 */
#include "../faults.h"

#include <fcntl.h>
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
    if (path == NULL || function == FAULT_FUNCTIONS)
        return;
    unsigned hits = faults_hits(function);
    faults_clear(); /* (this has to succeed) */
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%u\n", hits) < 0 || fclose(file) != 0)
        abort();
}
