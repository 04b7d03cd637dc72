/*
 * Streams: from the end of a head to the end of the response.
 *
 * 1. A stream is freed when two have let it go: its coroutine, and nghttp2. Whichever is last frees
 *    it.
 * 2. The coroutine ends with its handler. What is left of the response is in the stream's memory,
 *    and nghttp2 takes it when the client's windows let it: so a response that fits into the buffer
 *    costs no wait, and ends by itself.
 * 3. A stream that the client has reset before its coroutine has run, runs no handler.
 * 4. A stream's source is its branch's. It is asked to stop when nghttp2 has closed the stream,
 *    when its time is over, and with the scope when the connection ends.
 */
#include "internal.h"

#include "../http/watch.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/* ---- Its memory: 1 ---- */

static size_t aligned(size_t size)
{
    return (size + BIDE_ALLOCATOR_ALIGN - 1) & ~(size_t)(BIDE_ALLOCATOR_ALIGN - 1);
}

size_t bide_http2_stream_size_(const bide_http2 *http2)
{
    return aligned(sizeof(http2_stream)) + bide_http_memory_size(http2->server);
}

http2_stream *bide_http2_make_stream_(http2_connection *connection, int32_t id)
{
    bide_http2 *http2 = connection->http2;
    http2_stream *stream = bide_http2_take_piece_(&http2->streams);
    if (stream == NULL)
        stream = bide_http2_allocate_for_stream_(http2, bide_http2_stream_size_(http2));
    if (stream == NULL)
        return NULL;
    memset(stream, 0, offsetof(http2_stream, http));
    stream->owner = connection;
    stream->id = id;
    bide_single_consumer_auto_event_init(&stream->came, false);
    bide_single_consumer_auto_event_init(&stream->gone, false);
    bide_http_transport_init(&stream->http, http2->server, bide_http2_stream_of_(stream),
                           (char *)stream + aligned(sizeof *stream), &connection->nudge);
    stream->http.watch.armed = connection->armed;
    http_watch_until(&stream->http.watch, http_later(connection->now, http2->server->options.header_timeout));
    memcpy(stream->http.peer, connection->http->peer, sizeof stream->http.peer);
    stream->next = connection->streams;
    stream->before = &connection->streams;
    if (stream->next != NULL)
        stream->next->before = &stream->next;
    connection->streams = stream;
    connection->live++;
    connection->until = BIDE_FOREVER;
    http2->stats.streams++;
    http2->stats.live++;
    return stream;
}

void bide_http2_free_stream_(http2_stream *stream)
{
    http2_connection *connection = stream->owner;
    bide_http2 *http2 = connection->http2;
    if (!stream->is_closed || (stream->has_begun && !stream->has_ended))
        return;
    *stream->before = stream->next;
    if (stream->next != NULL)
        stream->next->before = stream->before;
    if (!connection->is_joining && stream->count != 0)
        bide_http2_note_(connection,
                   nghttp2_session_consume_connection(connection->session, stream->count));
    bide_http2_deallocate_(http2, stream->ring, stream->ring_size);
    bide_http2_deallocate_(http2, stream->trailers, HTTP2_TRAILERS);
    bide_http2_give_piece_(http2, &http2->streams, stream, bide_http2_stream_size_(http2));
    http2->stats.live--;
    if (--connection->live != 0)
        return;
    connection->until = http_later(connection->now, connection->http->server->options.keepalive_timeout);
    if (connection->until < connection->armed)
        bide_auto_event_set(&connection->nudge);
    bide_auto_event_set(&connection->work); /* (it may have been the last) */
}

/* ---- How it ends ---- */

void bide_http2_stop_stream_(http2_stream *stream, int error)
{
    stream->is_closed = true;
    if (stream->error == 0)
        stream->error = error;
    if (!stream->has_begun || stream->has_ended) {
        bide_http2_free_stream_(stream);
        return;
    }
    bide_stop_request(&stream->branch.stop);
    bide_single_consumer_auto_event_set(&stream->came);
    bide_single_consumer_auto_event_set(&stream->gone);
}

void bide_http2_expire_stream_(http2_stream *stream)
{
    stream->http.watch.until = BIDE_FOREVER;
    stream->http.watch.whole = BIDE_FOREVER;
    if (stream->has_begun && !stream->has_ended)
        bide_stop_request_with(&stream->branch.stop, -ETIMEDOUT);
    else
        bide_http2_reset_stream_(stream, NGHTTP2_CANCEL);
}

/* What becomes of the response when the handler has ended, or none has run. */
static void conclude(http2_stream *stream, const bide_context *context)
{
    bide_http_connection *http = &stream->http;
    int status = stream->status;
    stream->owner->now = bide_now(context);
    if (stream->is_closed) { /* 3 */
        bide_http_transport_report(http, stream->error);
        return;
    }
    if (stream->refusal != 0) {
        http->server->stats.refused++;
        status = bide_http_transport_reject(http, stream->refusal);
    } else if (bide_stop_requested(context->stop) && status < 0) {
        if (bide_http_transport_reject(http, http->input.status == -ETIMEDOUT ? 408 : 503) == 0)
            status = 0;
        bide_http_transport_report(http, stream->status);
    } else {
        status = bide_http_transport_finish(http, status);
        bide_http_transport_report(http, status);
    }
    if (status == 0)
        bide_http2_end_stream_(stream); /* 2 */
    else
        bide_http2_reset_stream_(stream, status == -ETIMEDOUT ? NGHTTP2_CANCEL : NGHTTP2_INTERNAL_ERROR);
}

void bide_http2_take_leave_(http2_connection *connection)
{
    if (connection->is_leaving || connection->is_joining)
        return;
    connection->is_leaving = true;
    bide_http2_note_(connection,
               nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE,
                                     nghttp2_session_get_last_proc_stream_id(connection->session),
                                     NGHTTP2_NO_ERROR, NULL, 0));
}

static void wait_no_more(http2_stream *stream)
{
    stream->owner->http2->waiting -= stream->is_waiting;
    stream->is_waiting = false;
}

bide_coroutine(http2_request)
{
    bide_begin(http2_request, http2_stream * self);
    wait_no_more(self);
    if (!self->is_closed && self->refusal == 0)
        bide_await_status(self->status, bide_http_transport_run(&self->http));
    conclude(self, bide_this_context());
    if (self->http.closes) /* bide_http_close_after */
        bide_http2_take_leave_(self->owner);
    bide_return(0); /* (an error would stop the others) */
    bide_end();
}

/* The coroutine lets it go. */
static void on_end(bide_branch *branch)
{
    http2_stream *stream = bide_container_of(branch, http2_stream, branch);
    stream->has_ended = true;
    wait_no_more(stream); /* it was destroyed before it ran */
    bide_http2_free_stream_(stream);
}

void bide_http2_begin_stream_(http2_stream *stream)
{
    http2_connection *connection = stream->owner;
    stream->has_begun = true;
    stream->is_waiting = true;
    connection->http2->waiting++;
    connection->http->requests++;
    connection->begun++;
    bide_scope_spawn_in(&connection->scope, &stream->branch, &connection->scope.context,
                        bide_task_init(&stream->task, &http2_request), on_end);
    if (connection->http->requests == connection->http->server->options.max_requests)
        bide_http2_take_leave_(connection);
}
