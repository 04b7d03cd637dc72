/*
 * Each operation that there is, without bide_await around it; and a function of the user's own that returns one.
 * told: warning
 * says: -Wunused-result
 * lists: operations
 */
#include "bide/bide.h"
#include "bide/http.h"
#include "bide/http_agent_tls.h"
#include "bide/http2.h"
#include "bide/http2_client.h"
#include "bide/http2_websocket.h"
#include "bide/http_agent_http2.h"
#include "bide/message_log.h"
#include "bide/tls.h"

/* (never called: the compiler reports the mistake) */
static bide_broadcast_subscriber(int) subscriber;
static bide_channel(int) channel;
static bide_oneshot(int) oneshot;
static bide_rendezvous(int) rendezvous;
static bide_spsc_channel(int) spsc_channel;
static bide_unbounded_channel(int) unbounded_channel;
static bide_watch_receiver(int) receiver;
static bide_cyclic_barrier_token token;
static int element;
static const bide_context_key(int) key = BIDE_CONTEXT_KEY("key");
static bide_stream stream;

/* (they are called by tables alone) */
#define bide_http_agent_tls_connect    bide_http_agent_tls_connect_
#define bide_http_agent_http2_run      bide_http_agent_http2_run_
#define bide_http_agent_http2_recv     bide_http_agent_http2_recv_
#define bide_http_agent_http2_read     bide_http_agent_http2_read_
#define bide_http_agent_http2_write    bide_http_agent_http2_write_
#define bide_http_agent_http2_continue bide_http_agent_http2_continue_
static bide_acceptor acceptor;
static bide_signal one_signal;
static bide_directory directory;
static bide_process process;
static struct forker {
    bide_fork_task forking;
    int n;
} forker;

struct x {
    bide_task task;
    int n;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    (void)self;
    bide_end();
}

BIDE_MUST_AWAIT
static bide_awaiter *fetch(struct x *x)
{
    return bide_task_init(&x->task, &body);
}

void awaits_nothing(void);
void awaits_nothing(void)
{
    bide_async_generator_next(0, 0);                                    // HERE
    bide_auto_event_wait(0, 0);                                         // HERE
    bide_barging_mutex_lock(0, 0);                                      // HERE
    bide_blocking_read(0, 0, 0, 0, 0);                                  // HERE
    bide_accept(0, 0, 0, 0);                                            // HERE
    bide_acceptor_next(0, &acceptor, 0, 0);                             // HERE
    bide_recv_batch(0, 0, 0, 1);                                        // HERE
    bide_send_batch(0, 0, 0, 1);                                        // HERE
    bide_send_zero_copy(0, 0, 0, 1);                                    // HERE
    bide_send_file(0, 0, 0, 0, 1);                                      // HERE
    bide_next_entry(0, &directory);                                     // HERE
    bide_file_watch_next(0, 0);                                         // HERE
    bide_tree_watch_next(0, 0);                                         // HERE
    bide_splice(0, 0, 0, 1);                                            // HERE
    bide_copy_between(0);                                               // HERE
    bide_process_wait(0, &process);                                     // HERE
    bide_process_communicate(0, &process, 0, 0, 0, 0, 0, 0);            // HERE
    bide_map_file(0, 0, 0, 0, 0, 0);                                    // HERE
    bide_prefault(0, 0, 0, false);                                      // HERE
    bide_send_fds(0, 0, 0, 1, 0, 0);                            // HERE
    bide_recv_fds(0, 0, 0, 1, 0, 0);                         // HERE
    bide_recv_provided(0, 0, 0);                                         // HERE
    bide_receiver_next(0);                                              // HERE
    bide_bind(0, 0, 0, 0);                                              // HERE
    bide_connect(0, 0, 0);                                              // HERE
    bide_connect_any(0, 0, 0, 0, 0);                                    // HERE
    bide_connect_by_name(0, 0, 0, 0, 0);                                // HERE
    bide_signal_wait(0, &one_signal);                                   // HERE
    bide_listen(0, 0, 0, 0);                                            // HERE
    bide_listen_with(0, 0, 0, 0, 0);                                    // HERE
    bide_bind_using(0, 0, 0, 0, 0);                                     // HERE
    bide_connect_using(0, 0, 0, 0);                                     // HERE
    bide_listen_using(0, 0, 0, 0, 0, 0);                                // HERE
    bide_resolve(0, 0, 0, 0);                                           // HERE
    bide_resolve_records(0, 0, 0, BIDE_RECORD_SRV);                     // HERE
    bide_resolve_reverse(0, 0, 0);                                      // HERE
    bide_recv(0, 0, 0, 0);                                              // HERE
    bide_recv_from(0, 0, 0, 0, 0);                                      // HERE
    bide_recvmsg(0, 0, 0, 0);                                           // HERE
    bide_send(0, 0, 0, 0);                                              // HERE
    bide_send_to(0, 0, 0, 0, 0);                                        // HERE
    bide_sendmsg(0, 0, 0, 0);                                           // HERE
    bide_socket_pair(0, 0, 0);                                          // HERE
    bide_copy(0, 0, 0, 0);                                              // HERE
    bide_reader_fill(0, 0, 0);                                          // HERE
    bide_reader_read(0, 0, 0, 0);                                       // HERE
    bide_reader_read_exact(0, 0, 0, 0);                                 // HERE
    bide_reader_read_line(0, 0);                                        // HERE
    bide_reader_read_until(0, 0, 0);                                    // HERE
    bide_reader_skip(0, 0, 0);                                          // HERE
    bide_writer_finish(0, 0);                                              // HERE
    bide_writer_flush(0, 0);                                            // HERE
    bide_writer_write(0, 0, 0, 0);                                      // HERE
    bide_writer_write_vectors(0, 0, 0, 0);                              // HERE
    bide_stream_ended(0, 0);                                            // HERE
    bide_stream_shutdown_output(0, stream);                                  // HERE
    bide_stream_read(0, stream, 0, 1);                                  // HERE
    bide_stream_write(0, stream, 0, 1);                                 // HERE
    bide_stream_read_within(0, stream, 0, 1, 0);                        // HERE
    bide_stream_write_within(0, stream, 0, 1, 0);                       // HERE
    bide_allocate(0, 0, 0, 0, 0);                                       // HERE
    bide_make_directory(0, 0, 0);                                       // HERE
    bide_open(0, 0, 0, 0, 0);                                           // HERE
    bide_open_at(0, 0, 0, 0, 0, 0);                                     // HERE
    bide_open_temporary(0, 0, 0, 0, 0, 0);                              // HERE
    bide_statx_at(0, 0, 0, 0, 0, 0);                                    // HERE
    bide_statfs_at(0, 0, 0, 0);                                         // HERE
    bide_chmod_at(0, 0, 0, 0, 0);                                       // HERE
    bide_chown_at(0, 0, 0, 0, 0, 0);                                    // HERE
    bide_utimes_at(0, 0, 0, 0, 0);                                      // HERE
    bide_realpath_at(0, 0, 0, 0, 0);                                    // HERE
    bide_readlink_at(0, 0, 0, 0, 0);                                    // HERE
    bide_symlink_at(0, 0, 0, 0);                                        // HERE
    bide_link_at(0, 0, 0, 0, 0, 0);                                     // HERE
    bide_rename_at(0, 0, 0, 0, 0, 0);                                   // HERE
    bide_unlink_at(0, 0, 0, 0);                                         // HERE
    bide_make_directory_at(0, 0, 0, 0);                                 // HERE
    bide_copy_file(0, 0, 0, 0, 0, 0);                                   // HERE
    bide_lock_file(0, 0, BIDE_FILE_SHARED, 0, 0);                       // HERE
    bide_poll(0, 0, 0);                                                 // HERE
    bide_read(0, 0, 0, 0);                                              // HERE
    bide_read_at(0, 0, 0, 0, 0);                                        // HERE
    bide_readv(0, 0, 0, 0, 0);                                          // HERE
    bide_rename(0, 0, 0);                                               // HERE
    bide_stat(0, 0, 0);                                                 // HERE
    bide_stat_path(0, 0, 0, 0);                                         // HERE
    bide_sync(0, 0, BIDE_SYNC_ALL);                                     // HERE
    bide_truncate(0, 0, 0);                                             // HERE
    bide_unlink(0, 0, 0);                                               // HERE
    bide_write(0, 0, 0, 0);                                             // HERE
    bide_write_at(0, 0, 0, 0, 0);                                       // HERE
    bide_writev(0, 0, 0, 0, 0);                                         // HERE
    bide_blocking_run(0, 0, 0, 0);                                      // HERE
    bide_blocking_run_interruptible(0, 0, 0, 0);                        // HERE
    bide_broadcast_recv(0, &subscriber, &element);                   // HERE
    bide_channel_recv(0, &channel, &element);                        // HERE
    bide_channel_recv_many(0, &channel, &element, 1, 0);                // HERE
    bide_channel_reserve(0, &channel, 0);                               // HERE
    bide_channel_reserve_many(0, &channel, 0, 1, 0);                    // HERE
    bide_channel_send(0, &channel, &element);                           // HERE
    bide_condition_wait(0, 0, 0);                                       // HERE
    bide_connection_pool_join(0, 0);                                    // HERE
    bide_connection_pool_acquire(0, 0);                                    // HERE
    bide_cyclic_barrier_arrive_and_wait(0, 0);                          // HERE
    bide_cyclic_barrier_wait(0, 0, token);                              // HERE
    bide_deadline_stop(0, 0);                                            // HERE
    bide_event_count_wait(0, 0, 0);                                    // HERE
    bide_event_count_wait_own(0, 0, 0);                                // HERE
    bide_event_wait(0, 0);                                              // HERE
    bide_fork(&forker, struct forker, &body);                           // HERE
    bide_fork_call(&forker, struct forker, &body, n = 1);               // HERE
    bide_fork_join(&forker);                                            // HERE
    bide_fork_task_init(0, &body);                                        // HERE
    bide_interval_tick(0);                                              // HERE
    bide_latch_arrive_and_wait(0, 0);                                   // HERE
    bide_latch_wait(0, 0);                                              // HERE
    bide_mutex_lock(0, 0);                                              // HERE
    bide_notify_wait(0, 0);                                             // HERE
    bide_once_start(0, 0);                                              // HERE
    bide_once_run(0, 0, 0);                                             // HERE
    bide_oneshot_recv(0, &oneshot, &element);                        // HERE
    bide_owned(0, 0);                                                   // HERE
    bide_rendezvous_recv(0, &rendezvous, &element);                  // HERE
    bide_rendezvous_send(0, &rendezvous, &element);                     // HERE
    bide_resume_on(0, 0, 0);                                            // HERE
    bide_rw_lock_read(0, 0);                                            // HERE
    bide_rw_lock_write(0, 0);                                           // HERE
    bide_rw_lock_upgradable_read(0, 0);                                 // HERE
    bide_rw_lock_upgrade(&(bide_rw_lock_waiter){0});                    // HERE
    bide_schedule(0, 0);                                                // HERE
    bide_schedule_on(0, 0, 0);                                          // HERE
    bide_scope_join(0);                                                 // HERE
    bide_scope_next(0, 0, 0);                                           // HERE
    bide_select_any(0, 0, 0, 0);                                        // HERE
    bide_select_any_in_order(0, 0, 0);                                  // HERE
    bide_select_set_end(0);                                             // HERE
    bide_select_set_next(0, 0);                                         // HERE
    bide_select_set_poll(0, 0);                                         // HERE
    bide_select_set_remove(0, 0);                                       // HERE
    bide_semaphore_acquire(0, 0);                                       // HERE
    bide_semaphore_acquire_many(0, 0, 1);                               // HERE
    bide_server_run(0);                                                 // HERE
    bide_shared_task_wait(0, 0);                                        // HERE
    bide_single_consumer_auto_event_wait(0, 0);                         // HERE
    bide_single_consumer_event_wait(0, 0);                              // HERE
    bide_sleep_for(0, 0);                                               // HERE
    bide_sleep_until(0, 0);                                             // HERE
    bide_spsc_channel_recv(0, &spsc_channel, &element);              // HERE
    bide_spsc_channel_recv_many(0, &spsc_channel, &element, 1, 0);      // HERE
    bide_spsc_channel_send(0, &spsc_channel, &element);                 // HERE
    bide_stop_callback_wait(0, 0);                                      // HERE
    bide_frame_init(0, &body);                                          // HERE
    bide_forward_init(0, 0, 0);                                         // HERE
    bide_call((struct x *)0, &body);                                    // HERE
    bide_call((struct x *)0, &body, n = 1);                             // HERE
    bide_task_init(0, &body);                                           // HERE
    bide_sim_point(0);                                                 // HERE
    bide_then(0, 0, 0, 0);                                              // HERE
    bide_token_bucket_take(0, 0, 1);                                    // HERE
    bide_unbounded_channel_recv(0, &unbounded_channel, 0, &element); // HERE
    bide_unbounded_channel_recv_many(0, &unbounded_channel, 0, &element, 1, 0); // HERE
    bide_wait_group_wait(0, 0);                                         // HERE
    bide_watch_recv(0, &receiver, &element);                         // HERE
    bide_watch_wait_for(0, &receiver, 0, 0, &element);                  // HERE
    bide_when_all(0, 0, 0);                                             // HERE
    bide_when_all_ready(0, 0, 0);                                       // HERE
    bide_when_any(0, 0, 0);                                             // HERE
    bide_with_deadline(0, 0, 0);                                        // HERE
    bide_with_stop(0, 0, 0);                                            // HERE
    bide_with_timeout(0, 0, 0);                                         // HERE
    bide_with_value(0, &key, &element, 0);                              // HERE
    fetch(0);                                                           // HERE
    bide_single_producer_sequencer_claim_up_to(0, 0, 1);                // HERE
    bide_single_producer_sequencer_claim_one(0, 0);                     // HERE
    bide_single_producer_sequencer_wait_until_published(0, 0, 0, 0);    // HERE
    bide_single_producer_sequencer_drain(0, 0);                         // HERE
    bide_multi_producer_sequencer_claim_up_to(0, 0, 1);                 // HERE
    bide_multi_producer_sequencer_claim_one(0, 0);                      // HERE
    bide_multi_producer_sequencer_wait_until_published(0, 0, 0, 0);     // HERE
    bide_multi_producer_sequencer_drain(0, 0);                          // HERE
    bide_sequence_barrier_wait_until_published(0, 0, 0);                // HERE
    bide_sequence_group_wait_until_published(0, 0, 0);                  // HERE
    bide_sequence_group_leave(0, 0, 0);                                 // HERE
    bide_http_accept_websocket(0, 0, 0, 0, 0);                          // HERE
    bide_http_client_continue(0);                                       // HERE
    bide_http_client_flush(0);                                          // HERE
    bide_http_client_read(0, 0, 0);                                     // HERE
    bide_http_client_recv(0);                                        // HERE
    bide_http_client_write(0, 0, 0);                                    // HERE
    bide_http_agent_tls_connect(0, 0, stream, 0);                       // HERE
    bide_http_agent_tls_connect_http1_(0, 0, stream, 0); // bide_http_agent_tls_connect_http1() HERE
    bide_http_agent_http2_run(0);                                       // HERE
    bide_http_agent_http2_recv(0);                                      // HERE
    bide_http_agent_http2_read(0, 0, 0);                                // HERE
    bide_http_agent_http2_write(0, 0, 0);                               // HERE
    bide_http_agent_http2_continue(0);                                  // HERE
    bide_http_fetch_read(0, 0, 0);                                      // HERE
    bide_http_fetch_send(0);                                            // HERE
    bide_http_fetch_start(0, 0);                                        // HERE
    bide_http_fetch_write(0, 0, 0);                                     // HERE
    bide_http_get(0, 0, 0, 0, 0);                                       // HERE
    bide_http_flush(0);                                                 // HERE
    bide_http_log_run(0);                                               // HERE
    bide_http_open_websocket(0, 0, 0, 0, 0, 0, 0);                      // HERE
    bide_http_next(0);                                                 // HERE
    bide_http_next_part(0);                                            // HERE
    bide_http_read_body(0, 0, 0, 0);                                   // HERE
    bide_http_read_part(0, 0, 0);                                      // HERE
    bide_http_send_event(0, 0, 0);                                     // HERE
    bide_http_send_interim(0, 103, 0, 0);                              // HERE
    bide_http_read(0, 0, 0);                                            // HERE
    bide_http_respond(0, 0, 0);                                         // HERE
    bide_http_serve(0, 0, stream, 0);                                   // HERE
    bide_http_server_run(0);                                            // HERE
    bide_http_transport_run(0);                                           // HERE
    bide_http_transport_serve(0, 0, stream, 0, false);                    // HERE
    bide_http2_client_run(0);                                           // HERE
    bide_http2_request_continue(0);                                     // HERE
    bide_http2_request_read(0, 0, 0);                                   // HERE
    bide_http2_open_websocket(0, 0, 0, 0, 0);                           // HERE
    bide_http2_request_recv(0);                                         // HERE
    bide_http2_request_write(0, 0, 0);                                  // HERE
    bide_http2_serve(0, 0, stream, 0, 0);                               // HERE
    bide_http_log_flush(0, 0);                                         // HERE
    bide_http_upgrade(0, 0);                                            // HERE
    bide_http_write(0, 0, 0);                                           // HERE
    bide_http_write_file(0, 0, 0, 0);                                   // HERE
    bide_log_acknowledge(0, 0, 0, 0);                                   // HERE
    bide_log_acknowledge_up_to(0, 0, (bide_log_position){0});           // HERE
    bide_log_open(NULL, 0, 0);                                          // HERE
    bide_log_publish(0, 0, 0, 0);                                       // HERE
    bide_log_publish_claimed(0, 0, 0, 0);                               // HERE
    bide_log_read(0, 0, 0, 0);                                          // HERE
    bide_log_reject(0, 0, 0, 0, 0);                                     // HERE
    bide_log_reserve(0, 0, 0, 0);                                       // HERE
    bide_log_subscribe(0, 0, 0, 0);                                     // HERE
    bide_pool_server_listen(0, 0, 0);                                   // HERE
    bide_pool_server_run(0);                                            // HERE
    bide_tee(0, 0, 0, 0);                                               // HERE
    bide_tls_accept(0, 0, 0, stream);                                   // HERE
    bide_tls_connect(0, 0, 0, stream, 0);                               // HERE
    bide_websocket_close(0, 0, 0, 0);                                   // HERE
    bide_websocket_deflate_recv(0, 0, 0, 0);                           // HERE
    bide_websocket_deflate_send(0, 0, (bide_websocket_kind)0, 0, 0);   // HERE
    bide_websocket_flush(0, 0);                                         // HERE
    bide_websocket_put(0, 0, (bide_websocket_kind)0, 0, 0);             // HERE
    bide_websocket_recv(0, 0, 0, 0);                                 // HERE
    bide_websocket_recv_piece(0, 0);                                 // HERE
    bide_websocket_send(0, 0, (bide_websocket_kind)0, 0, 0);            // HERE
    bide_websocket_send_fragment(0, 0, (bide_websocket_kind)0, 0, 0, 0);// HERE
    bide_websocket_send_ping(0, 0, 0, 0);                               // HERE
}
