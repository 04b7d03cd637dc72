/* Whether the process has one thread, where the C library knows. */
#ifndef BIDE_SYSTEM_SINGLE_THREADED_H
#define BIDE_SYSTEM_SINGLE_THREADED_H

#if defined __has_include
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define BIDE_IS_ALONE_       (__libc_single_threaded != 0)
#define BIDE_IS_ALONE_KNOWN_ true
#endif
#endif
#ifndef BIDE_IS_ALONE_
#define BIDE_IS_ALONE_       false /* unknown */
#define BIDE_IS_ALONE_KNOWN_ false
#endif

#endif
