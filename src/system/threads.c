#define _GNU_SOURCE
#include "threads.h"

#include <signal.h>

bool bide_threads_have_this_(const pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (pthread_equal(threads[i], pthread_self()))
            return true;
    }
    return false;
}

void bide_threads_join_(pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/*
 * What a thread of the library does not take: all signals but those that an instruction or a call
 * of its own raises. If those were blocked, the system would end the program without asking its
 * handlers. It stands for the creator too while that creates, because a thread begins with its
 * creator's mask.
 */
static void block_signals(sigset_t *before)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++)
        sigdelset(&blocked, raised[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

int bide_threads_start_(pthread_t *threads, unsigned count, void *(*function)(void *),
                        void *argument, void (*give_up)(void *))
{
    sigset_t before;
    int error = 0;
    unsigned started = 0;
    block_signals(&before);
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
