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

/* These may block on a descriptor that does not poll. */
ptrdiff_t bide_call_read_(bide_io_operation *operation);
ptrdiff_t bide_call_write_(bide_io_operation *operation);
ptrdiff_t bide_call_readv_(bide_io_operation *operation);
ptrdiff_t bide_call_writev_(bide_io_operation *operation);

/* These may block. */
ptrdiff_t bide_call_open_(bide_io_operation *operation);
ptrdiff_t bide_call_sync_(bide_io_operation *operation);
ptrdiff_t bide_call_allocate_(bide_io_operation *operation);
ptrdiff_t bide_call_truncate_(bide_io_operation *operation);
ptrdiff_t bide_call_stat_(bide_io_operation *operation);
ptrdiff_t bide_call_rename_(bide_io_operation *operation);
ptrdiff_t bide_call_unlink_(bide_io_operation *operation);
ptrdiff_t bide_call_make_directory_(bide_io_operation *operation);
ptrdiff_t bide_call_read_directory_(bide_io_operation *operation);
ptrdiff_t bide_call_map_(bide_io_operation *operation);
ptrdiff_t bide_call_prefault_(bide_io_operation *operation);

#endif
