/*
 * The library's own threads, by pthreads; what is the same by Windows' threads, which are in
 * platform_windows.c. See the header.
 */
#define _GNU_SOURCE
#include "threads.h"

#include "portable.h"

#include "bide/platform.h"

#ifndef _WIN32
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#endif

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

int bide_threads_start_sized_(pthread_t *threads, unsigned count, size_t stack_size,
                              void *(*function)(void *), void *argument, void (*give_up)(void *))
{
    unsigned started = 0;
    int error = 0;
    while (started < count && error == 0) {
        error = bide_threads_start_one_(&threads[started],
                                        stack_size != 0 ? stack_size : BIDE_THREAD_STACK, function,
                                        argument);
        if (error == 0)
            started++;
    }
    if (error != 0) {
        give_up(argument);
        bide_threads_join_(threads, started);
    }
    return error;
}

int bide_threads_start_(pthread_t *threads, unsigned count, void *(*function)(void *),
                        void *argument, void (*give_up)(void *))
{
    return bide_threads_start_sized_(threads, count, 0, function, argument, give_up);
}

#ifndef _WIN32

size_t bide_threads_stack_(uintptr_t *low)
{
    size_t size = 0;
    *low = 0;
#if !BIDE_CHECK && defined __APPLE__
    size = pthread_get_stacksize_np(pthread_self());
    char *address = (char *)pthread_get_stackaddr_np(pthread_self()) - size; /* it has the top */
#elif !BIDE_CHECK && defined __linux__
    pthread_attr_t attributes;
    void *address = NULL;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 0;
    if (pthread_attr_getstack(&attributes, &address, &size) != 0)
        size = 0;
    pthread_attr_destroy(&attributes);
#endif
#if !BIDE_CHECK && (defined __APPLE__ || defined __linux__)
    uintptr_t below = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)address;
    size = below < size ? below : 0;
    *low = size != 0 ? (uintptr_t)address : 0;
#endif
    return size;
}

/*
 * Blocks all signals except faults, which a thread's own instructions or calls raise. If these were
 * blocked, the system would kill the program without calling its handlers. The creator blocks the
 * signals while it creates, because a thread starts with its creator's mask.
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

/* Sets `attributes` up for stacks of so many bytes. 0, or an errno. */
static int init_attributes(pthread_attr_t *attributes, size_t stack_size)
{
    int error = pthread_attr_init(attributes);
    if (error != 0)
        return error;
    error = pthread_attr_setstacksize(attributes, stack_size);
    if (error != 0)
        pthread_attr_destroy(attributes);
    return error;
}

int bide_threads_check_stack_(size_t stack_size)
{
    pthread_attr_t attributes;
    int error = init_attributes(&attributes, stack_size != 0 ? stack_size : BIDE_THREAD_STACK);
    if (error == 0)
        pthread_attr_destroy(&attributes);
    return -error;
}

int bide_threads_start_one_(pthread_t *thread, size_t stack_size, void *(*function)(void *),
                            void *argument)
{
    sigset_t before;
    pthread_attr_t attributes;
    int error = init_attributes(&attributes, stack_size);
    if (error == 0) {
        block_signals(&before);
        error = pthread_create(thread, &attributes, function, argument);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    return -error;
}

void bide_threads_name_this_(const char *name, unsigned number)
{
    enum { NAME_MAX_ = 16 }; /* Linux: with the terminating 0 */
    char whole[2 * NAME_MAX_];
    int length = NAME_MAX_ - 1 - 2; /* of `name`, so that the dash and a digit follow */
    for (unsigned rest = number; rest >= 10; rest /= 10)
        length--;
    (void)snprintf(whole, sizeof whole, "%.*s-%u", length, name, number);
    portable_name_this_thread(whole);
}

#ifdef __linux__

bool bide_threads_may_use_(unsigned processor)
{
    cpu_set_t set;
    return processor < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 &&
           CPU_ISSET(processor, &set);
}

void bide_threads_keep_this_on_(unsigned processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

#else

/* (so to ask for one is an error) */
bool bide_threads_may_use_(unsigned processor)
{
    (void)processor;
    return false;
}

void bide_threads_keep_this_on_(unsigned processor)
{
    (void)processor;
}

#endif

#endif
