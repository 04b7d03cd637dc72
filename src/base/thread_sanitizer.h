/*
 * Whether ThreadSanitizer is on. GCC, and Clang since version 20, define a macro; older Clang has a feature. Floor: base.
 */
#ifndef BIDE_SRC_BASE_THREAD_SANITIZER_H
#define BIDE_SRC_BASE_THREAD_SANITIZER_H

#if defined __SANITIZE_THREAD__
#define BIDE_UNDER_TSAN_ 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define BIDE_UNDER_TSAN_ 1
#endif
#endif
#ifndef BIDE_UNDER_TSAN_
#define BIDE_UNDER_TSAN_ 0
#endif

/*
 * How long a thread that runs handlers of signals may sleep under ThreadSanitizer: nanoseconds. ThreadSanitizer defers a
 * handler until its thread makes a call that it intercepts. A handler that arrives right before such a call that sleeps is
 * sometimes deferred until the call returns. So these threads wake ten times a second.
 */
enum { BIDE_TSAN_SLEEP_MAX_ = 100000000 };

#endif
