/*
 * nghttp2's session and its callbacks. They run inside nghttp2_session_mem_recv (the reader) and
 * nghttp2_session_mem_send (the writer), on the loop's thread.
 *
 * Why it is correct:
 * 1. A rejected stream has no memory of ours. nghttp2 knows it for a while, without user data.
 * 2. Each frame is charged to a budget, by its head, before nghttp2 decides what it is: nghttp2 passes
 *    frames of unknown types, and of streams that have ended, to no callback. Requests and bytes of bodies,
 *    in both directions, refill the budget. Streams that the client resets before they are answered have
 *    a budget of their own. A client that exhausts it gets ENHANCE_YOUR_CALM. nghttp2 itself limits the answers that
 *    wait to be sent, the frames of a head, and the settings of a frame.
 * 3. nghttp2 ignores frames of streams that it does not know any more; some versions remember a few of them. A head or
 *    data of a stream that the client itself has ended or reset is STREAM_CLOSED: `ended` has the last 64 streams. Other
 *    frames were under way when the server reset their stream, and are ignored. Some versions also ignore a PRIORITY of
 *    stream 0, which is an error.
 * 4. nghttp2 closes a stream once: the callback removes the user data.
 * 5. nghttp2 ignores the head of a stream with a smaller number than another's, because it may be trailers of a stream
 *    that has been reset. But a client may not open such a stream, and `opened` tells these apart for the last 64. Heads of
 *    earlier streams are ignored.
 */
#include "internal.h"

#include <errno.h>

enum { HTTP2_REMEMBERED = 64 }; /* streams: 3, 5 */

int bide_http2_errno_(int error)
{
    switch (error) {
    case 0:
        return 0;
    case NGHTTP2_ERR_NOMEM:
        return -ENOMEM;
    case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
    case NGHTTP2_ERR_FLOODED:
    case NGHTTP2_ERR_PROTO:
        return -EBADMSG;
    default:
        return -EIO;
    }
}

void bide_http2_note_(http2_connection *connection, int error)
{
    if (error != 0 && nghttp2_is_fatal(error) && connection->error == 0)
        connection->error = bide_http2_errno_(error);
    bide_auto_event_set(&connection->output_needed);
}

static http2_stream *http2_find_stream(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

/* ---- Budgets: 2 ---- */

void bide_http2_report_(http2_connection *connection, const char *reason)
{
    bide_http_incident incident = {.peer = bide_http_peer(connection->http->exchange),
                                   .reason = reason};
    bide_http_report_incident(connection->http->server, &incident);
}

void bide_http2_report_flood_(http2_connection *connection)
{
    connection->http2->stats.floods++;
    bide_http2_report_(connection, "the client has sent too much without requests");
}

static int http2_abort(http2_connection *connection)
{
    if (!connection->is_going_away)
        bide_http2_report_flood_(connection);
    connection->is_going_away = true;
    bide_http2_note_(connection, nghttp2_session_terminate_session(connection->session,
                                                                   NGHTTP2_ENHANCE_YOUR_CALM));
    return 0;
}

void bide_http2_settle_frames_(http2_connection *connection)
{
    (void)bide_http2_frames_settle_(&connection->frames, connection->http2->options.max_idle_frames,
                                    0);
}

static void http2_violate(http2_connection *connection, uint32_t code)
{
    bide_http2_note_(connection, nghttp2_session_terminate_session(connection->session, code));
}

/* nghttp2 has taken the head of a frame: 3 */
static void http2_see_taken_frame(void *user, const http2_frame_head *head)
{
    http2_connection *connection = user;
    bool is_message = head->type == NGHTTP2_HEADERS || head->type == NGHTTP2_DATA;
    if (head->type == NGHTTP2_PRIORITY && head->id == 0)
        http2_violate(connection, NGHTTP2_PROTOCOL_ERROR);
    if (head->id % 2 == 0 || head->id > connection->highest)
        return;
    uint32_t before = (uint32_t)(connection->highest - head->id) / 2;
    if (before >= HTTP2_REMEMBERED)
        return;
    uint64_t bit = UINT64_C(1) << before;
    if (is_message && (connection->ended & bit) != 0 &&
        nghttp2_session_get_stream_remote_close(connection->session, head->id) < 0)
        http2_violate(connection, NGHTTP2_STREAM_CLOSED);
    if (head->type == NGHTTP2_RST_STREAM ||
        (is_message && (head->flags & NGHTTP2_FLAG_END_STREAM) != 0))
        connection->ended |= bit;
}

void bide_http2_charge_frames_(http2_connection *connection, const unsigned char *data, size_t size)
{
    size_t preface = size < connection->preface_left ? size : connection->preface_left;
    connection->preface_left -= preface;
    if (!bide_http2_frames_charge_(&connection->frames, connection->http2->options.max_idle_frames,
                                   data + preface, size - preface, http2_see_taken_frame,
                                   connection))
        (void)http2_abort(connection);
}

static void http2_earn_frames(http2_connection *connection, uint32_t frames)
{
    connection->frames.earned += frames;
}

static void http2_earn_reset(http2_connection *connection)
{
    bide_assert(connection->resets_left <= connection->http2->options.max_resets);
    if (connection->resets_left < connection->http2->options.max_resets)
        connection->resets_left++;
}

/* ---- Requests ---- */

/* A frame begins. Ends the connection if it opens a stream whose number is too small: 5 */
static int http2_on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    http2_connection *connection = user;
    int32_t id = head->stream_id;
    if (head->type != NGHTTP2_HEADERS || id % 2 == 0)
        return 0;
    if (id > connection->highest) {
        uint32_t shift = ((uint32_t)id - (uint32_t)connection->highest) /
                         2; /* (from -1 to the largest number) */
        connection->opened = (shift < HTTP2_REMEMBERED ? connection->opened << shift : 0) | 1;
        connection->ended = shift < HTTP2_REMEMBERED ? connection->ended << shift : 0;
        connection->highest = id;
        return 0;
    }
    uint32_t before = (uint32_t)(connection->highest - id) / 2;
    if (before < HTTP2_REMEMBERED && (connection->opened >> before & 1) == 0)
        bide_http2_note_(connection,
                         nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR));
    return 0;
}

static int http2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_connection *connection = user;
    bide_http2 *http2 = connection->http2;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    /* (streams that the client has reset may still be running) */
    bool is_full =
        connection->is_going_away || /* (GOAWAY says that it was not processed) */
        connection->stream_count >= 2 * (size_t)http2->options.max_streams ||
        (connection->stream_count != 0 && http2->stats.live >= http2->options.max_all_streams);
    http2_stream *stream =
        is_full ? NULL : bide_http2_make_stream_(connection, frame->hd.stream_id);
    if (stream == NULL) { /* 1 */
        http2->stats.refused++;
        if (!connection->is_going_away)
            bide_http2_report_(connection, is_full ? "a stream is refused: there are too many"
                                                   : "a stream is refused: there is no memory");
        bide_http2_note_(connection,
                         nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                                   NGHTTP2_REFUSED_STREAM));
        return 0;
    }
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int http2_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                           nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    http2_connection *connection = user;
    http2_stream *stream = http2_find_stream(session, frame->hd.stream_id);
    (void)flags;
    connection->is_paused = connection->started_in_turn >= HTTP2_TURN;
    int status = connection->is_paused ? NGHTTP2_ERR_PAUSE : 0; /* behind this field */
    if (stream == NULL || stream->is_closed)
        return status;
    nghttp2_vec key = nghttp2_rcbuf_get_buf(name);
    nghttp2_vec text = nghttp2_rcbuf_get_buf(value);
    bide_slice key_text = {(const char *)key.base, key.len};
    bide_slice value_text = {(const char *)text.base, text.len};
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        bide_http2_take_field_(stream, key_text, value_text);
    else
        bide_http2_take_trailer_(stream, key_text, value_text);
    return status;
}

static int http2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_connection *connection = user;
    http2_stream *stream = NULL;
    bool has_ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        stream = http2_find_stream(session, frame->hd.stream_id);
        if (stream == NULL || stream->is_closed)
            return 0;
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
            http2_earn_frames(connection, 9);
            bide_http2_end_head_(stream, has_ended);
            bide_http2_begin_stream_(stream);
        }
        break;
    case NGHTTP2_DATA:
        stream = http2_find_stream(session, frame->hd.stream_id);
        break;
    default:
        return 0;
    }
    if (stream != NULL && has_ended) {
        http2_earn_frames(connection, 1);
        stream->input_ended = true;
        bide_single_consumer_auto_event_set(&stream->readable);
    }
    return 0;
}

static int http2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t size, void *user)
{
    http2_connection *connection = user;
    http2_stream *stream = http2_find_stream(session, id);
    (void)flags;
    http2_earn_frames(connection, 2 + (uint32_t)(size / 1024));
    if (stream != NULL && stream->has_ended && !stream->is_closed) {
        bide_http2_drop_body_(stream, size);
        return 0;
    }
    int status = stream == NULL || stream->is_closed
                     ? -EPIPE
                     : bide_http2_take_body_(stream, (const char *)data, size);
    if (status == 0)
        return 0;
    bide_http2_note_(connection, nghttp2_session_consume_connection(session, size));
    if (status == -ENOMEM)
        bide_http2_reset_stream_(stream, NGHTTP2_INTERNAL_ERROR);
    return 0;
}

static int http2_on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    http2_connection *connection = user;
    http2_stream *stream = http2_find_stream(session, id);
    (void)code;
    if (stream == NULL)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    if (stream->is_finished && stream->left == 0)
        http2_earn_reset(connection);
    bide_http2_stop_stream_(stream, -ECONNRESET);
    return 0;
}

static int http2_on_reset(http2_connection *connection, const nghttp2_frame *frame)
{
    http2_stream *stream = http2_find_stream(connection->session, frame->hd.stream_id);
    if (stream != NULL && stream->is_finished && stream->left == 0)
        return 0;
    connection->http2->stats.resets++;
    if (connection->resets_left == 0)
        return http2_abort(connection);
    connection->resets_left--;
    http2_earn_frames(connection, 1);
    return 0;
}

static int http2_on_frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    return frame->hd.type == NGHTTP2_RST_STREAM ? http2_on_reset(user, frame)
                                                : http2_on_frame(session, frame, user);
}

/* If a response has ended before its request, the rest of the request is dropped. */
static int http2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    http2_connection *connection = user;
    if (frame->hd.type == NGHTTP2_DATA)
        http2_earn_frames(connection, 4);
    if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    http2_stream *stream = http2_find_stream(session, frame->hd.stream_id);
    if (stream != NULL && !stream->input_ended)
        bide_http2_drain_stream_(stream);
    return 0;
}

/* ---- The session ---- */

static void http2_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, http2_on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, http2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, http2_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, http2_on_frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, http2_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, http2_on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, http2_on_frame_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, bide_http2_put_body_);
}

int bide_http2_open_session_(http2_connection *connection)
{
    const bide_http2_options *options = &connection->http2->options;
    const bide_http_options *http = &connection->http->server->options;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options->window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
         (uint32_t)http->max_head + 32 * (uint32_t)http->max_fields},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    const http2_opening opening = {.is_server = true,
                                   .set_callbacks = http2_set_callbacks,
                                   .settings = settings,
                                   .setting_count = sizeof settings / sizeof *settings,
                                   .connection_window = options->connection_window,
                                   .user = connection,
                                   .memory = &connection->memory};
    connection->memory = bide_http2_memory_(connection->http2);
    return bide_http2_session_create_(&connection->session, &opening);
}
