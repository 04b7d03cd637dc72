/*
 * The system calls behind the operations, for the operation table. Each function makes one call, and
 * returns its result or a negative errno.
 */
#ifndef BIDE_IO_CALLS_H
#define BIDE_IO_CALLS_H

#include "bide/extend/io.h"

/* None of these waits: instead it returns -EAGAIN. */
ptrdiff_t bide_call_recv_(bide_io_operation *operation);
ptrdiff_t bide_call_send_(bide_io_operation *operation);
ptrdiff_t bide_call_recvmsg_(bide_io_operation *operation);
ptrdiff_t bide_call_sendmsg_(bide_io_operation *operation);
ptrdiff_t bide_call_accept_(bide_io_operation *operation);
ptrdiff_t bide_call_connect_(bide_io_operation *operation);
ptrdiff_t bide_call_case_(bide_io_operation *operation); /* io_choice.c */
ptrdiff_t bide_call_poll_(bide_io_operation *operation);
ptrdiff_t bide_call_recv_provided_(bide_io_operation *operation);
ptrdiff_t bide_call_recv_batch_(bide_io_operation *operation);
ptrdiff_t bide_call_send_batch_(bide_io_operation *operation);
ptrdiff_t bide_call_send_copied_(bide_io_operation *operation); /* for sends without a copy */
ptrdiff_t bide_call_listen_(bide_io_operation *operation);
ptrdiff_t bide_call_bind_(bide_io_operation *operation);
ptrdiff_t bide_call_pair_(bide_io_operation *operation);

/* Sets the options of a new socket, and binds it if they say so. 0, or a negative errno (socket.c). */
int bide_socket_prepare_(bide_descriptor *socket, const struct bide_socket_options *options);

/* These may block on a descriptor that does not poll. */
ptrdiff_t bide_call_read_(bide_io_operation *operation);
ptrdiff_t bide_call_write_(bide_io_operation *operation);
ptrdiff_t bide_call_readv_(bide_io_operation *operation);
ptrdiff_t bide_call_writev_(bide_io_operation *operation);

/* These may block. */
ptrdiff_t bide_call_sync_(bide_io_operation *operation);
ptrdiff_t bide_call_allocate_(bide_io_operation *operation);
ptrdiff_t bide_call_truncate_(bide_io_operation *operation);
ptrdiff_t bide_call_stat_(bide_io_operation *operation);
ptrdiff_t bide_call_read_directory_(bide_io_operation *operation);
ptrdiff_t bide_call_map_(bide_io_operation *operation);
ptrdiff_t bide_call_prefault_(bide_io_operation *operation);
ptrdiff_t bide_call_copy_range_(bide_io_operation *operation); /* file_copy.c */

/* These may block, too: path_open.c, path_calls.c. */
ptrdiff_t bide_call_open_(bide_io_operation *operation);
ptrdiff_t bide_call_open_temporary_(bide_io_operation *operation);
ptrdiff_t bide_call_rename_(bide_io_operation *operation);
ptrdiff_t bide_call_unlink_(bide_io_operation *operation);
ptrdiff_t bide_call_make_directory_(bide_io_operation *operation);
ptrdiff_t bide_call_link_(bide_io_operation *operation);
ptrdiff_t bide_call_symlink_(bide_io_operation *operation);
ptrdiff_t bide_call_readlink_(bide_io_operation *operation);
ptrdiff_t bide_call_realpath_(bide_io_operation *operation);
ptrdiff_t bide_call_statx_(bide_io_operation *operation);
ptrdiff_t bide_call_statfs_(bide_io_operation *operation);
ptrdiff_t bide_call_chmod_(bide_io_operation *operation);
ptrdiff_t bide_call_chown_(bide_io_operation *operation);
ptrdiff_t bide_call_utimes_(bide_io_operation *operation);

/* Roots: path_open.c. The number of a root's directory; AT_FDCWD: the working directory. */
int bide_path_fd_(const struct bide_path_root *root);

/*
 * Whether each path of an operation may be passed to a call as it is: its root is not restricted, and
 * it is not empty. True too if it has no path.
 */
bool bide_path_is_plain_(const bide_io_operation *operation);

/* Whether the root restricts paths. NULL does not. */
bool bide_path_is_restricted_(const struct bide_path_root *root);

/*
 * The arguments of openat2(2), a struct open_how, for an open under a restricted root. 0, or -EINVAL.
 */
int bide_path_how_(uint64_t how[3], const struct bide_path_root *root, int flags, unsigned mode);

#endif
