/*
 * The numbers of errors, which operations end with as negative: those of <errno.h>. Floor: base.
 *
 * A compiler for bare metal may come without a libc and so without that header; the few that the
 * core uses then have the numbers that Linux gives them. macOS and the BSDs lack those of keys and of a
 * remote's error, which names and TLS use: they are defined here.
 */
#ifndef BIDE_ERRORS_H
#define BIDE_ERRORS_H

#if defined __has_include
#if __has_include(<errno.h>)
#include <errno.h>
#endif
#else
#include <errno.h>
#endif

#ifndef ENOENT
#define ENOENT 2
#endif
#ifndef EAGAIN
#define EAGAIN 11
#endif
#ifndef ENOMEM
#define ENOMEM 12
#endif
#ifndef EBUSY
#define EBUSY 16
#endif
#ifndef EINVAL
#define EINVAL 22
#endif
#ifndef EPIPE
#define EPIPE 32
#endif
#ifndef EOVERFLOW
#define EOVERFLOW 75
#endif
#ifndef ENOTSUP
#define ENOTSUP 95
#endif
#ifndef EOPNOTSUPP
#define EOPNOTSUPP 95
#endif
#ifndef ENOBUFS
#define ENOBUFS 105
#endif
#ifndef ETIMEDOUT
#define ETIMEDOUT 110
#endif
#ifndef ECANCELED
#define ECANCELED 125
#endif
#if !defined EREMOTEIO && defined EBADRPC
#define EREMOTEIO EBADRPC
#endif
#if !defined EKEYEXPIRED && !defined _WIN32
#define ENOKEY       126
#define EKEYEXPIRED  127
#define EKEYREVOKED  128
#define EKEYREJECTED 129
#endif

#endif
