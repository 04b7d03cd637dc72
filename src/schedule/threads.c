#define _GNU_SOURCE
#include "threads.h"

#include <signal.h>

void bide_threads_join_(pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int bide_threads_start_(pthread_t *threads, unsigned count, void *(*function)(void *),
                        void *argument, void (*give_up)(void *))
{
    sigset_t all, before;
    int error = 0;
    unsigned started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < count && error == 0) {
        error = pthread_create(&threads[started], NULL, function, argument);
        if (error == 0)
            started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        give_up(argument);
        bide_threads_join_(threads, started);
    }
    return -error;
}
