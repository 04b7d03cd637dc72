/*
 * Declarations for editors whose parser is clang (clangd), which read async functions without the
 * translator: each function that makes an awaiter is overloaded with a declaration that has no waiter
 * and returns the value of its await. Made by scripts/editor-header.sh. Floor: tools.
 */
#ifndef BIDE_DETAIL_EDITOR_H
#define BIDE_DETAIL_EDITOR_H

#include "bide/bide.h"
#include "bide/http.h"

/* clang-format off */

/* Passed to operations that are macros, in place of a waiter: async_macros.h. */
struct bide_here_;
extern struct bide_here_ *bide_here_;

/* The value of bide_this_frame(). */
extern bide_frame *bide_frame_;

#define BIDE_EDITOR_ __attribute__((overloadable))
int bide_with_value_(struct bide_here_ *bide_here, const bide_context_key_ *key, const void *value, ...) BIDE_EDITOR_;
int (bide_forward_init)(const bide_wrapper_ops *ops, ...) BIDE_EDITOR_;
int (bide_deadline_stop)(bide_deadline *deadline) BIDE_EDITOR_;
int (bide_with_deadline)(uint64_t time, ...) BIDE_EDITOR_;
int (bide_with_timeout)(uint64_t duration, ...) BIDE_EDITOR_;
int bide_with_timeout_checked_(struct bide_here_ *bide_here, uint64_t duration, ...) BIDE_EDITOR_;
int (bide_scope_next)(bide_scope *scope, bide_branch **branch) BIDE_EDITOR_;
int bide_scope_join_checked_(struct bide_here_ *bide_here, const char *what, const char *function, const char *file, unsigned line) BIDE_EDITOR_;
int bide_waiter_list_shut_judged_(struct bide_here_ *bide_here, const bide_sweep_ops *rules, void *context) BIDE_EDITOR_;
int (bide_shared_task_wait)(bide_shared_task *shared) BIDE_EDITOR_;
int (bide_stop_callback_wait)(bide_stop_callback *callback) BIDE_EDITOR_;
int (bide_when_all)(bide_branch *branches, size_t count) BIDE_EDITOR_;
int (bide_when_all_ready)(bide_branch *branches, size_t count) BIDE_EDITOR_;
int (bide_when_any)(bide_branch *branches, size_t count) BIDE_EDITOR_;
int (bide_with_stop)(bide_stop_source *token, ...) BIDE_EDITOR_;
int (bide_sleep_until)(uint64_t time) BIDE_EDITOR_;
int (bide_sleep_for)(uint64_t nanoseconds) BIDE_EDITOR_;
int bide_sleep_for_checked_(struct bide_here_ *bide_here, uint64_t nanoseconds, const char *what, const char *function, const char *file, unsigned line) BIDE_EDITOR_;
int (bide_schedule)(bide_scheduler *scheduler) BIDE_EDITOR_;
int (bide_resume_on)(bide_scheduler *scheduler, ...) BIDE_EDITOR_;
int (bide_schedule_on)(bide_scheduler *scheduler, ...) BIDE_EDITOR_;
int (bide_then)(...) BIDE_EDITOR_;
int bide_then_checked_(struct bide_here_ *bide_here, ...) BIDE_EDITOR_;
int (bide_notify_wait)(bide_notify *notify) BIDE_EDITOR_;
int (bide_auto_event_wait)(bide_auto_event *event) BIDE_EDITOR_;
int (bide_event_wait)(bide_event *event) BIDE_EDITOR_;
int bide_single_consumer_wait_(struct bide_here_ *bide_here, bide_single_consumer_word_ *state, const bide_awaiter_ops *ops) BIDE_EDITOR_;
int (bide_single_consumer_event_wait)(bide_single_consumer_event *event) BIDE_EDITOR_;
int (bide_single_consumer_auto_event_wait)(bide_single_consumer_auto_event *event) BIDE_EDITOR_;
int bide_condition_wait_(struct bide_here_ *bide_here, bide_condition *condition, bide_mutex_waiter *lock) BIDE_EDITOR_;
int bide_condition_wait_checked_(struct bide_here_ *bide_here, bide_condition *condition, bide_mutex_waiter *lock, const char *what, const char *function, const char *file, unsigned line) BIDE_EDITOR_;
int (bide_once_run)(bide_once *once, ...) BIDE_EDITOR_;
int bide_rw_lock_start_(struct bide_here_ *bide_here, bide_rw_lock *lock, uint32_t wants, const bide_awaiter_ops *ops) BIDE_EDITOR_;
int bide_rw_lock_upgrade_checked_(struct bide_here_ *bide_here, const char *what, const char *function, const char *file, unsigned line) BIDE_EDITOR_;
int bide_semaphore_refuse_(struct bide_here_ *bide_here, uint32_t permits) BIDE_EDITOR_;
int (bide_semaphore_acquire_many)(bide_semaphore *semaphore, uint32_t permits) BIDE_EDITOR_;
int (bide_semaphore_acquire)(bide_semaphore *semaphore) BIDE_EDITOR_;
int (bide_cyclic_barrier_wait)(bide_cyclic_barrier *barrier, bide_cyclic_barrier_token token) BIDE_EDITOR_;
int (bide_cyclic_barrier_arrive_and_wait)(bide_cyclic_barrier *barrier) BIDE_EDITOR_;
int (bide_latch_wait)(bide_latch *latch) BIDE_EDITOR_;
int bide_latch_arrive_and_wait_(struct bide_here_ *bide_here, bide_latch *latch, const char *what, const char *function, const char *file, unsigned line) BIDE_EDITOR_;
int (bide_wait_group_wait)(bide_wait_group *group) BIDE_EDITOR_;
int (bide_sequence_barrier_wait_until_published)(bide_sequence_barrier *barrier, bide_sequence target) BIDE_EDITOR_;
int bide_sequence_barrier_follow_(struct bide_here_ *bide_here, bide_sequence_barrier *barrier, _Atomic(bide_sequence_counter_) * counter, bide_sequence behind) BIDE_EDITOR_;
int bide_broadcast_recv_(struct bide_here_ *bide_here, bide_broadcast_cursor_ *cursor, size_t *missed, void *to, size_t size) BIDE_EDITOR_;
int bide_event_count_waiter_init_(struct bide_here_ *bide_here, const bide_awaiter_ops *ops, const bide_event_count_ops *rules, bide_event_count *event_count) BIDE_EDITOR_;
int (bide_event_count_wait)(bide_event_count *event_count, const bide_event_count_ops *rules) BIDE_EDITOR_;
int bide_event_count_own_waiter_init_(struct bide_here_ *bide_here, const bide_awaiter_ops *ops, const bide_event_count_ops *rules, bide_event_count *event_count) BIDE_EDITOR_;
int (bide_event_count_wait_own)(bide_event_count *event_count, const bide_event_count_ops *rules) BIDE_EDITOR_;
int bide_channel_make_(struct bide_here_ *bide_here, bide_channel_ *channel, void *element, const bide_awaiter_ops *ops, const bide_event_count_ops *rules, bide_event_count *event_count) BIDE_EDITOR_;
int bide_channel_send_(struct bide_here_ *bide_here, bide_channel_ *channel, const void *from, size_t size) BIDE_EDITOR_;
int bide_channel_recv_(struct bide_here_ *bide_here, bide_channel_ *channel, void *to, size_t size) BIDE_EDITOR_;
int bide_channel_recv_many_(struct bide_here_ *bide_here, bide_channel_ *channel, void *to, size_t max, size_t *count, size_t size) BIDE_EDITOR_;
int bide_channel_reserve_(struct bide_here_ *bide_here, bide_channel_ *channel, bide_channel_permit *permit) BIDE_EDITOR_;
int bide_channel_reserve_many_(struct bide_here_ *bide_here, bide_channel_ *channel, bide_channel_permit *permits, size_t max, size_t *count) BIDE_EDITOR_;
int bide_oneshot_recv_(struct bide_here_ *bide_here, bide_oneshot_ *oneshot, const void *value, void *to, size_t size) BIDE_EDITOR_;
int bide_rendezvous_send_(struct bide_here_ *bide_here, bide_rendezvous_ *rendezvous, const void *from) BIDE_EDITOR_;
int bide_rendezvous_recv_(struct bide_here_ *bide_here, bide_rendezvous_ *rendezvous, void *to) BIDE_EDITOR_;
int (bide_select_any)(bide_select_case *cases, size_t count, uint64_t *random) BIDE_EDITOR_;
int (bide_select_any_in_order)(bide_select_case *cases, size_t count) BIDE_EDITOR_;
int bide_spsc_channel_send_(struct bide_here_ *bide_here, bide_spsc_channel_ *channel, const void *from, size_t size) BIDE_EDITOR_;
int bide_spsc_channel_recv_(struct bide_here_ *bide_here, bide_spsc_channel_ *channel, void *to, size_t size) BIDE_EDITOR_;
int bide_spsc_channel_recv_many_(struct bide_here_ *bide_here, bide_spsc_channel_ *channel, void *to, size_t max, size_t *count) BIDE_EDITOR_;
int bide_unbounded_channel_recv_(struct bide_here_ *bide_here, bide_unbounded_channel_ *channel, bide_hazard_seat *seat, void *to) BIDE_EDITOR_;
int bide_unbounded_channel_recv_many_(struct bide_here_ *bide_here, bide_unbounded_channel_ *channel, bide_hazard_seat *seat, void *to, size_t max, size_t *count) BIDE_EDITOR_;
int bide_watch_recv_(struct bide_here_ *bide_here, bide_watch_receiver_ *receiver, void *to, size_t size) BIDE_EDITOR_;
int bide_watch_wait_for_(struct bide_here_ *bide_here, bide_watch_receiver_ *receiver, _Bool (*predicate)(const void *value, void *argument), void *argument, void *to, size_t size) BIDE_EDITOR_;
int bide_sequence_group_leave_(struct bide_here_ *bide_here, bide_sequence_group *group, bide_sequence_group_member *member) BIDE_EDITOR_;
int bide_sequence_group_leave_checked_(struct bide_here_ *bide_here, bide_sequence_group *group, bide_sequence_group_member *member, const char *what, const char *function, const char *file, unsigned line) BIDE_EDITOR_;
int (bide_sequence_group_wait_until_published)(bide_sequence_group *group, bide_sequence target) BIDE_EDITOR_;
int bide_sequence_group_follow_(struct bide_here_ *bide_here, bide_sequence_group *group, _Atomic(bide_sequence_counter_) * counter, bide_sequence behind) BIDE_EDITOR_;
int (bide_multi_producer_sequencer_wait_until_published)(bide_multi_producer_sequencer *sequencer, bide_sequence target, bide_sequence last_known) BIDE_EDITOR_;
int (bide_multi_producer_sequencer_drain)(bide_multi_producer_sequencer *sequencer) BIDE_EDITOR_;
int (bide_single_producer_sequencer_wait_until_published)(bide_single_producer_sequencer *sequencer, bide_sequence target, bide_sequence last_known) BIDE_EDITOR_;
int (bide_single_producer_sequencer_drain)(bide_single_producer_sequencer *sequencer) BIDE_EDITOR_;
int (bide_blocking_run)(bide_blocking *blocking, void (*function)(void *argument), void *argument) BIDE_EDITOR_;
int (bide_blocking_run_interruptible)(bide_blocking *blocking, int (*function)(void *argument), void *argument) BIDE_EDITOR_;
int bide_blocking_run_checked_(struct bide_here_ *bide_here, bide_blocking *blocking, void (*function)(void *argument), void *argument, const char *what, const char *where, const char *file, unsigned line) BIDE_EDITOR_;
int bide_blocking_run_interruptible_checked_(struct bide_here_ *bide_here, bide_blocking *blocking, int (*function)(void *argument), void *argument, const char *what, const char *where, const char *file, unsigned line) BIDE_EDITOR_;
long (bide_blocking_read)(bide_blocking *blocking, int fd, void *buffer, size_t size) BIDE_EDITOR_;
int (bide_fork_task_init)(const bide_point *body) BIDE_EDITOR_;
int (bide_token_bucket_take)(bide_token_bucket *bucket, uint64_t tokens) BIDE_EDITOR_;
long (bide_acceptor_next)(bide_acceptor *acceptor, bide_descriptor *accepted, bide_address *peer) BIDE_EDITOR_;
long (bide_listen)(bide_descriptor *listener, const bide_address *address, int backlog) BIDE_EDITOR_;
long (bide_listen_with)(bide_descriptor *listener, const bide_address *address, int backlog, int flags) BIDE_EDITOR_;
long (bide_bind)(bide_descriptor *receiver, const bide_address *address, int flags) BIDE_EDITOR_;
long (bide_socket_pair)(bide_descriptor *one, bide_descriptor *other) BIDE_EDITOR_;
long (bide_accept)(bide_descriptor *listener, bide_descriptor *accepted, bide_address *peer) BIDE_EDITOR_;
long (bide_connect)(bide_descriptor *connection, const bide_address *address) BIDE_EDITOR_;
long (bide_recv)(bide_descriptor *socket, void *buffer, size_t size) BIDE_EDITOR_;
long (bide_send)(bide_descriptor *socket, const void *data, size_t size) BIDE_EDITOR_;
long (bide_recvmsg)(bide_descriptor *socket, struct msghdr *message, int flags) BIDE_EDITOR_;
long (bide_sendmsg)(bide_descriptor *socket, const struct msghdr *message, int flags) BIDE_EDITOR_;
long (bide_recv_from)(bide_descriptor *socket, void *buffer, size_t size, bide_address *from) BIDE_EDITOR_;
long (bide_send_to)(bide_descriptor *socket, const void *data, size_t size, const bide_address *to) BIDE_EDITOR_;
long (bide_recv_batch)(bide_descriptor *socket, bide_message *messages, unsigned count) BIDE_EDITOR_;
long (bide_send_batch)(bide_descriptor *socket, bide_message *messages, unsigned count) BIDE_EDITOR_;
long (bide_send_zero_copy)(bide_descriptor *socket, const void *data, size_t size) BIDE_EDITOR_;
long (bide_connect_using)(bide_descriptor *connection, const bide_address *address, const bide_socket_options *options) BIDE_EDITOR_;
long (bide_listen_using)(bide_descriptor *listener, const bide_address *address, int backlog, int flags, const bide_socket_options *options) BIDE_EDITOR_;
long (bide_bind_using)(bide_descriptor *receiver, const bide_address *address, int flags, const bide_socket_options *options) BIDE_EDITOR_;
int (bide_connection_pool_join)(bide_connection_pool *pool) BIDE_EDITOR_;
long (bide_prefault)(void *at, size_t size, _Bool to_write) BIDE_EDITOR_;
long (bide_open)(bide_descriptor *file, const char *path, int flags, unsigned mode) BIDE_EDITOR_;
long (bide_read)(bide_descriptor *file, void *buffer, size_t size) BIDE_EDITOR_;
long (bide_write)(bide_descriptor *file, const void *data, size_t size) BIDE_EDITOR_;
long (bide_read_at)(bide_descriptor *file, void *buffer, size_t size, int64_t offset) BIDE_EDITOR_;
long (bide_write_at)(bide_descriptor *file, const void *data, size_t size, int64_t offset) BIDE_EDITOR_;
long (bide_readv)(bide_descriptor *file, const struct iovec *vectors, int count, int64_t offset) BIDE_EDITOR_;
long (bide_writev)(bide_descriptor *file, const struct iovec *vectors, int count, int64_t offset) BIDE_EDITOR_;
long (bide_sync)(bide_descriptor *file, bide_sync_what what) BIDE_EDITOR_;
long (bide_allocate)(bide_descriptor *file, int mode, int64_t offset, int64_t size) BIDE_EDITOR_;
long (bide_truncate)(bide_descriptor *file, int64_t size) BIDE_EDITOR_;
long (bide_stat)(bide_descriptor *file, struct stat *about) BIDE_EDITOR_;
long (bide_stat_path)(const char *path, struct stat *about, int flags) BIDE_EDITOR_;
long (bide_rename)(const char *from, const char *to) BIDE_EDITOR_;
long (bide_unlink)(const char *path, int flags) BIDE_EDITOR_;
long (bide_make_directory)(const char *path, unsigned mode) BIDE_EDITOR_;
long (bide_poll)(bide_descriptor *descriptor, uint32_t events) BIDE_EDITOR_;
long (bide_copy_file)(bide_descriptor *from, int64_t from_offset, bide_descriptor *to, int64_t to_offset, uint64_t max) BIDE_EDITOR_;
int (bide_lock_file)(const bide_descriptor *file, bide_file_lock_kind kind, int64_t offset, int64_t size) BIDE_EDITOR_;
int (bide_connect_any)(bide_descriptor *connection, const bide_address *addresses, unsigned count, uint64_t stagger) BIDE_EDITOR_;
int (bide_connect_by_name)(bide_descriptor *connection, bide_names *names, const char *host, uint16_t port) BIDE_EDITOR_;
long (bide_open_at)(bide_descriptor *file, const bide_path_root *root, const char *path, int flags, unsigned mode) BIDE_EDITOR_;
long (bide_open_temporary)(bide_descriptor *file, const bide_path_root *root, const char *path, int flags, unsigned mode) BIDE_EDITOR_;
long (bide_statx_at)(const bide_path_root *root, const char *path, int flags, unsigned mask, struct statx *about) BIDE_EDITOR_;
long (bide_statfs_at)(const bide_path_root *root, const char *path, struct statfs *about) BIDE_EDITOR_;
long (bide_chmod_at)(const bide_path_root *root, const char *path, unsigned mode, int flags) BIDE_EDITOR_;
long (bide_chown_at)(const bide_path_root *root, const char *path, uid_t owner, gid_t group, int flags) BIDE_EDITOR_;
long (bide_utimes_at)(const bide_path_root *root, const char *path, const struct timespec *times, int flags) BIDE_EDITOR_;
long (bide_realpath_at)(const bide_path_root *root, const char *path, char *buffer, size_t size) BIDE_EDITOR_;
long (bide_readlink_at)(const bide_path_root *root, const char *path, char *buffer, size_t size) BIDE_EDITOR_;
long (bide_symlink_at)(const char *target, const bide_path_root *root, const char *path) BIDE_EDITOR_;
long (bide_link_at)(const bide_path_root *from_root, const char *from, const bide_path_root *to_root, const char *to, int flags) BIDE_EDITOR_;
long (bide_rename_at)(const bide_path_root *from_root, const char *from, const bide_path_root *to_root, const char *to, unsigned flags) BIDE_EDITOR_;
long (bide_unlink_at)(const bide_path_root *root, const char *path, int flags) BIDE_EDITOR_;
long (bide_make_directory_at)(const bide_path_root *root, const char *path, unsigned mode) BIDE_EDITOR_;
int (bide_send_fds)(bide_descriptor *socket, const void *data, size_t size, const int *descriptors, unsigned count) BIDE_EDITOR_;
int (bide_signal_wait)(bide_signal *signal) BIDE_EDITOR_;
int (bide_process_wait)(bide_process *process) BIDE_EDITOR_;
long (bide_send_file)(bide_descriptor *socket, bide_descriptor *file, int64_t offset, uint64_t max) BIDE_EDITOR_;
long (bide_stream_ended)(int status) BIDE_EDITOR_;
long (bide_stream_read)(bide_stream stream, void *data, size_t size) BIDE_EDITOR_;
long (bide_stream_write)(bide_stream stream, const void *data, size_t size) BIDE_EDITOR_;
long (bide_stream_shutdown_output)(bide_stream stream) BIDE_EDITOR_;
long (bide_stream_read_within)(bide_stream stream, void *data, size_t size, const bide_stream_bounds *bounds) BIDE_EDITOR_;
long (bide_stream_write_within)(bide_stream stream, const void *data, size_t size, const bide_stream_bounds *bounds) BIDE_EDITOR_;
long (bide_reader_read)(bide_reader *reader, void *data, size_t size) BIDE_EDITOR_;
long (bide_reader_read_exact)(bide_reader *reader, void *data, size_t size) BIDE_EDITOR_;
long (bide_reader_read_until)(bide_reader *reader, char delimiter) BIDE_EDITOR_;
long (bide_reader_read_line)(bide_reader *reader) BIDE_EDITOR_;
long (bide_reader_fill)(bide_reader *reader, size_t size) BIDE_EDITOR_;
long (bide_reader_skip)(bide_reader *reader, size_t size) BIDE_EDITOR_;
long (bide_writer_write)(bide_writer *writer, const void *data, size_t size) BIDE_EDITOR_;
long (bide_writer_write_vectors)(bide_writer *writer, const struct iovec *vectors, int count) BIDE_EDITOR_;
long (bide_writer_flush)(bide_writer *writer) BIDE_EDITOR_;
long (bide_writer_finish)(bide_writer *writer) BIDE_EDITOR_;
long (bide_copy)(bide_reader *from, bide_writer *to, uint64_t max) BIDE_EDITOR_;
long (bide_splice)(bide_descriptor *from, bide_descriptor *to, size_t max) BIDE_EDITOR_;
long (bide_tee)(bide_descriptor *from, bide_descriptor *to, size_t max) BIDE_EDITOR_;
int (bide_http_serve)(bide_http_server *server, bide_stream stream, void *memory) BIDE_EDITOR_;
int (bide_http_send_event)(bide_http_exchange *exchange, const bide_http_event *event) BIDE_EDITOR_;
int (bide_http_log_flush)(bide_http_log *log) BIDE_EDITOR_;
int (bide_websocket_send)(bide_websocket *websocket, bide_websocket_kind kind, const void *data, size_t size) BIDE_EDITOR_;
int (bide_websocket_put)(bide_websocket *websocket, bide_websocket_kind kind, const void *data, size_t size) BIDE_EDITOR_;
int (bide_websocket_send_ping)(bide_websocket *websocket, const void *data, size_t size) BIDE_EDITOR_;
int (bide_websocket_flush)(bide_websocket *websocket) BIDE_EDITOR_;
int (bide_websocket_close)(bide_websocket *websocket, int code, const char *reason) BIDE_EDITOR_;
int (bide_http_accept_websocket)(bide_http_exchange *exchange, bide_websocket *websocket, const bide_websocket_options *options, const char *protocols) BIDE_EDITOR_;
int (bide_http_open_websocket)(bide_http_client *client, bide_websocket *websocket, const bide_websocket_options *options, const char *target, const char *host, const char *protocols) BIDE_EDITOR_;
int (bide_websocket_deflate_send)(bide_websocket_deflate *deflate, bide_websocket_kind kind, const void *data, size_t size) BIDE_EDITOR_;
#undef BIDE_EDITOR_

/* clang-format on */

#endif
