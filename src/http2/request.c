/*
 * The life of a stream: from the head of a request to the end of the response.
 *
 * Threads: all functions run on the loop's thread.
 *
 * Why it is correct:
 * 1. A stream has two holders: its coroutine and nghttp2. The last one that releases it frees it.
 * 2. The coroutine ends with its handler. The rest of the response stays in the stream's memory, and
 *    nghttp2 fetches it as the client's windows allow. A response that fits into the buffer therefore
 *    never waits.
 * 3. If the client resets a stream before the coroutine first runs, no handler runs.
 * 4. The stop source of a stream is that of its branch. A stop is requested when nghttp2 has closed the
 *    stream, when its deadline has passed, and by the scope when the connection ends.
 */
#include "internal.h"

#include "../http/watch.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Allocation: 1 ---- */

static size_t http2_align(size_t size)
{
    return (size + BIDE_ALLOCATOR_ALIGN - 1) & ~(size_t)(BIDE_ALLOCATOR_ALIGN - 1);
}

size_t bide_http2_stream_size_(const bide_http2 *http2)
{
    return http2_align(sizeof(http2_stream)) + bide_http_memory_size(http2->server);
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
    bide_single_consumer_auto_event_init(&stream->readable, false);
    bide_single_consumer_auto_event_init(&stream->written, false);
    bide_http_transport_init(&stream->http, http2->server, bide_http2_stream_of_(stream),
                             (char *)stream + http2_align(sizeof *stream), &connection->nudge);
    stream->http.accepted = connection->http;
    stream->http.watch.armed = connection->armed;
    http_watch_until(&stream->http.watch,
                     http_later(connection->now, http2->server->options.header_timeout));
    memcpy(stream->http.peer, connection->http->peer, sizeof stream->http.peer);
    stream->next = connection->streams;
    stream->link = &connection->streams;
    if (stream->next != NULL)
        stream->next->link = &stream->next;
    bide_assert((connection->streams == NULL) == (connection->stream_count == 0));
    connection->streams = stream;
    connection->stream_count++;
    connection->idle_deadline = BIDE_FOREVER;
    http2->stats.streams++;
    http2->stats.live++;
    return stream;
}

void bide_http2_free_stream_(http2_stream *stream)
{
    http2_connection *connection = stream->owner;
    bide_http2 *http2 = connection->http2;
    if (!stream->is_closed || (stream->has_started && !stream->has_ended))
        return;
    bide_assert(!stream->is_waiting && stream->owner->stream_count != 0); /* 1 */
    bide_assert(*stream->link == stream && http2->stats.live != 0);
    *stream->link = stream->next;
    if (stream->next != NULL)
        stream->next->link = stream->link;
    size_t held = bide_http2_empty_ring_(stream);
    if (!connection->is_stopping && held != 0)
        bide_http2_note_(connection, nghttp2_session_consume_connection(connection->session, held));
    bide_http2_deallocate_(http2, stream->ring.data, stream->ring.size);
    bide_http2_deallocate_(http2, stream->trailers, HTTP2_TRAILERS);
    bide_http2_give_piece_(http2, &http2->streams, stream, bide_http2_stream_size_(http2));
    http2->stats.live--;
    connection->stream_count--;
    bide_assert((connection->streams == NULL) == (connection->stream_count == 0));
    if (connection->stream_count != 0)
        return;
    connection->idle_deadline =
        http_later(connection->now, connection->http->server->options.keepalive_timeout);
    if (connection->idle_deadline < connection->armed)
        bide_auto_event_set(&connection->nudge);
    bide_auto_event_set(&connection->output_needed); /* (it may have been the last stream) */
}

/* ---- The end of a stream ---- */

void bide_http2_stop_stream_(http2_stream *stream, int error)
{
    bide_assert(!stream->is_closed || stream->owner->is_stopping); /* session.c, 4 */
    stream->is_closed = true;
    if (stream->error == 0)
        stream->error = error;
    if (!stream->has_started || stream->has_ended) {
        bide_http2_free_stream_(stream);
        return;
    }
    bide_stop_request(&stream->branch.stop);
    bide_single_consumer_auto_event_set(&stream->readable);
    bide_single_consumer_auto_event_set(&stream->written);
}

void bide_http2_expire_stream_(http2_stream *stream)
{
    stream->http.watch.whole = BIDE_FOREVER;
    http_watch_until(&stream->http.watch, BIDE_FOREVER);
    if (stream->has_started && !stream->has_ended)
        bide_stop_request_with(&stream->branch.stop, -ETIMEDOUT);
    else
        bide_http2_reset_stream_(stream, stream->is_draining ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
}

/* (a line that is too long for the log is cut) */
static void http2_report_refused(http2_stream *stream)
{
    char line[300];
    int size = snprintf(line, sizeof line, "%.*s %.*s HTTP/2.0", (int)stream->method.size,
                        stream->method.data != NULL ? stream->method.data : "",
                        stream->path.size < 256 ? (int)stream->path.size : 256,
                        stream->path.data != NULL ? stream->path.data : "");
    if (size < 0 || (size_t)size >= sizeof line)
        size = (int)sizeof line - 1;
    bide_http_transport_report_refused(&stream->http, (bide_slice){line, (size_t)size},
                                       stream->reject_status);
}

/* Completes the response after the handler, or instead of it. */
static void http2_finish_response(http2_stream *stream, const bide_context *context)
{
    bide_http_connection *http = &stream->http;
    int status = stream->status;
    stream->owner->now = bide_now(context);
    if (stream->is_closed) { /* 3 */
        bool has_left = stream->error == -ENODATA || stream->error == -EPIPE; /* with all streams */
        bide_http_transport_report(http, has_left ? -ECONNRESET : stream->error);
        return;
    }
    if (stream->reject_status != 0) {
        http->server->stats.refused++;
        http2_report_refused(stream);
        status = bide_http_transport_reject(http, stream->reject_status);
    } else if (bide_stop_requested(context->stop) && status < 0) {
        if (bide_http_transport_reject(http, http->input.status == -ETIMEDOUT ? 408 : 503) == 0)
            status = 0;
        bide_http_transport_report(http, stream->status);
    } else {
        status = bide_http_transport_finish(http, status);
        bide_http_transport_report(http, status);
    }
    if (http->is_upgraded && status == -EPIPE) /* the other protocol has ended in order */
        status = 0;
    if (status == 0)
        bide_http2_end_stream_(stream); /* 2 */
    else
        bide_http2_reset_stream_(stream, status == -ETIMEDOUT || http->is_upgraded
                                             ? NGHTTP2_CANCEL
                                             : NGHTTP2_INTERNAL_ERROR);
}

void bide_http2_take_leave_(http2_connection *connection)
{
    if (connection->is_going_away || connection->is_stopping)
        return;
    connection->is_going_away = true;
    bide_http2_note_(connection, nghttp2_submit_goaway(
                                     connection->session, NGHTTP2_FLAG_NONE,
                                     nghttp2_session_get_last_proc_stream_id(connection->session),
                                     NGHTTP2_NO_ERROR, NULL, 0));
}

static void http2_stop_waiting(http2_stream *stream)
{
    bide_assert(!stream->is_waiting || stream->owner->http2->waiting != 0);
    stream->owner->http2->waiting -= stream->is_waiting;
    stream->is_waiting = false;
}

bide_coroutine(http2_request)
{
    bide_begin(http2_request, http2_stream * self);
    http2_stop_waiting(self);
    if (!self->is_closed && self->reject_status == 0)
        bide_await_status(self->status, bide_http_transport_run(&self->http));
    http2_finish_response(self, bide_this_context());
    if (self->http.closes) /* bide_http_close_after was called */
        bide_http2_take_leave_(self->owner);
    bide_return(0); /* (an error would stop the other requests) */
    bide_end();
}

/* The coroutine has released the stream. */
static void http2_on_request_end(bide_branch *branch)
{
    http2_stream *stream = bide_container_of(branch, http2_stream, branch);
    bide_assert(stream->has_started && !stream->has_ended);
    stream->has_ended = true;
    http2_stop_waiting(stream); /* it was destroyed before it first ran */
    bide_http2_free_stream_(stream);
}

void bide_http2_begin_stream_(http2_stream *stream)
{
    http2_connection *connection = stream->owner;
    bide_assert(!stream->has_started && !stream->is_closed);
    stream->has_started = true;
    stream->is_waiting = true;
    connection->http2->waiting++;
    connection->http->requests++;
    connection->started_in_turn++;
    bide_scope_spawn_in(&connection->scope, &stream->branch, &connection->scope.context,
                        bide_task_init(&stream->task, &http2_request), http2_on_request_end);
    if (connection->http->requests == connection->http->server->options.max_requests)
        bide_http2_take_leave_(connection);
}
