/*
 * Runs a function on a thread with a stack of 64 KiB (or of the system's minimum, if that is more).
 */
#ifndef BIDE_TESTS_SMALL_STACK_H
#define BIDE_TESTS_SMALL_STACK_H

#include "testing.h"

#include <limits.h>
#include <pthread.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
    /* A sanitizer's frames and its own calls are larger; a million frames would still not fit. */
    SMALL_STACK = SANITIZED ? 512 * 1024 : 64 * 1024,
};

static inline void on_a_small_stack(void *(*function)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    size_t min = (size_t)PTHREAD_STACK_MIN;
    size_t size = SMALL_STACK < min ? min : SMALL_STACK;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, size), 0);
    assert_int_equal(pthread_create(&thread, &attributes, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

#endif
