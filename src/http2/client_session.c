/*
 * nghttp2's session and callbacks, for a client. They run inside nghttp2_session_mem_recv (the reader) and
 * nghttp2_session_mem_send (the writer), on the loop's thread.
 *
 * Why it is correct:
 * 1. A stream's user data is its request as long as the request is active, and NULL otherwise. Frames
 *    for streams without a request are dropped, and their bytes return to the connection's window.
 * 2. nghttp2 closes a stream once. A stream that is closed without an error of the server's, and not by an end, was
 *    reset by nghttp2, because the response violates the protocol. Some versions end the connection instead.
 * 3. Each frame is charged to a budget, by its head, before nghttp2 decides what it is. Responses, and bytes
 *    of bodies in both directions, refill it. The fields of one head are counted too, whether they are
 *    kept or not: small frames can refer to large fields many times.
 * 4. After a GOAWAY the server has not processed requests above its last stream. nghttp2 closes those with
 *    REFUSED_STREAM; requests that it has not sent are ended here. They end with `refusal`: -EPROTONOSUPPORT after a
 *    GOAWAY with HTTP_1_1_REQUIRED, otherwise -ECONNREFUSED. Requests up to the last stream may have been processed.
 */
#include "client.h"

#include <errno.h>

void bide_http2_client_note_(bide_http2_client *client, int error)
{
    if (error != 0 && nghttp2_is_fatal(error))
        bide_http2_client_fail_(client, bide_http2_errno_(error));
    bide_auto_event_set(&client->output_needed);
}

static bide_http2_request *http2_client_find(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

/* ---- Budgets: 3 ---- */

static void http2_client_flooded(bide_http2_client *client)
{
    bide_http2_client_fail_(client, -EBADMSG);
    bide_http2_client_note_(
        client, nghttp2_session_terminate_session(client->session, NGHTTP2_ENHANCE_YOUR_CALM));
}

void bide_http2_client_charge_frames_(bide_http2_client *client, const unsigned char *data,
                                      size_t size)
{
    if (!bide_http2_frames_charge_(&client->frames, client->options.max_idle_frames, data, size,
                                   NULL, NULL))
        http2_client_flooded(client);
}

/* ---- Input ---- */

static int http2_client_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame,
                                         void *user)
{
    bide_http2_client *client = user;
    client->block = 0;
    if (frame->hd.type == NGHTTP2_PUSH_PROMISE) { /* (the server does not know the settings yet) */
        bide_http2_client_note_(client,
                                nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
                                                          frame->push_promise.promised_stream_id,
                                                          NGHTTP2_REFUSED_STREAM));
        return 0;
    }
    bide_http2_request *request = http2_client_find(session, frame->hd.stream_id);
    if (request != NULL)
        bide_http2_request_start_head_(request);
    return 0;
}

static int http2_client_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                  const uint8_t *name, size_t name_size, const uint8_t *value,
                                  size_t value_size, uint8_t flags, void *user)
{
    enum { OVERHEAD = 32, FACTOR = 8 };
    bide_http2_client *client = user;
    const bide_http2_client_options *options = &client->options;
    (void)flags;
    client->block += name_size + value_size + OVERHEAD;
    if (client->block / FACTOR > options->max_head + OVERHEAD * options->max_fields) {
        http2_client_flooded(client);
        return 0;
    }
    bide_http2_request *request = http2_client_find(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS && request != NULL)
        bide_http2_request_take_field_(request, (bide_slice){(const char *)name, name_size},
                                       (bide_slice){(const char *)value, value_size});
    return 0;
}

/* 4 */
static void http2_client_on_goaway(bide_http2_client *client, const nghttp2_goaway *frame)
{
    bide_http2_request *next;
    if (frame->error_code == NGHTTP2_HTTP_1_1_REQUIRED)
        client->refusal = -EPROTONOSUPPORT;
    if (frame->error_code != NGHTTP2_NO_ERROR)
        bide_http2_client_fail_(client, -ECONNABORTED);
    bide_http2_client_go_away_(client);
    for (bide_http2_request *request = client->active.first; request != NULL; request = next) {
        next = request->next;
        if (!request->is_sent)
            bide_http2_request_abort_(request, NGHTTP2_CANCEL, client->refusal);
    }
}

static int http2_client_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    bide_http2_client *client = user;
    bide_http2_request *request = NULL;
    bool has_ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        request = http2_client_find(session, frame->hd.stream_id);
        if (request == NULL)
            return 0;
        client->frames.earned += 9;
        bide_http2_request_end_head_(request, has_ended);
        break;
    case NGHTTP2_DATA:
        request = http2_client_find(session, frame->hd.stream_id);
        break;
    case NGHTTP2_RST_STREAM:
        request = http2_client_find(session, frame->hd.stream_id);
        if (request != NULL)
            request->was_reset = true;
        return 0;
    case NGHTTP2_GOAWAY:
        http2_client_on_goaway(client, &frame->goaway);
        return 0;
    case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 && client->awaited_pongs != 0) {
            client->frames.earned++;
            client->awaited_pongs--;
        }
        return 0;
    case NGHTTP2_SETTINGS: /* (they may allow more streams) */
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
            client->has_settings = true;
        return 0;
    default:
        return 0;
    }
    if (request != NULL && has_ended)
        bide_http2_request_end_input_(request);
    return 0;
}

static int http2_client_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                                const uint8_t *data, size_t size, void *user)
{
    bide_http2_client *client = user;
    bide_http2_request *request = http2_client_find(session, id);
    (void)flags;
    if (request != NULL) {
        client->frames.earned += 2 + size / 1024;
        bide_http2_request_take_body_(request, (const char *)data, size);
    } else { /* 1 */
        bide_http2_client_note_(client, nghttp2_session_consume_connection(session, size));
    }
    return 0;
}

/* 2 */
static int http2_client_error_of(const bide_http2_request *request, uint32_t code)
{
    if (!request->is_sent || code == NGHTTP2_REFUSED_STREAM) /* (also by a GOAWAY) */
        return request->client->refusal;
    if (!request->was_reset)
        return code == NGHTTP2_NO_ERROR ? 0 : -EBADMSG;
    return code == NGHTTP2_HTTP_1_1_REQUIRED ? -EPROTONOSUPPORT : -ECONNRESET;
}

static int http2_client_on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
                                        void *user)
{
    bide_http2_request *request = http2_client_find(session, id);
    (void)user;
    if (request == NULL)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    bide_http2_request_end_(request, http2_client_error_of(request, code));
    return 0;
}

/* ---- Output ---- */

static int http2_client_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame,
                                      void *user)
{
    bide_http2_client *client = user;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS: {
        bide_http2_request *request = http2_client_find(session, frame->hd.stream_id);
        if (request != NULL)
            request->is_sent = true;
        return 0;
    }
    case NGHTTP2_DATA:
        client->frames.earned += 4;
        return 0;
    case NGHTTP2_GOAWAY: /* by nghttp2, because of what came */
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR)
            bide_http2_client_fail_(client, -EBADMSG);
        return 0;
    default:
        return 0;
    }
}

/* ---- The session ---- */

static void http2_client_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                            http2_client_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, http2_client_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, http2_client_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, http2_client_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, http2_client_on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, http2_client_on_frame_sent);
}

int bide_http2_client_open_session_(bide_http2_client *client)
{
    const bide_http2_client_options *options = &client->options;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0}, /* (of the server's) */
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options->window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
         (uint32_t)options->max_head + 32 * (uint32_t)options->max_fields},
    };
    const http2_opening opening = {.set_callbacks = http2_client_set_callbacks,
                                   .settings = settings,
                                   .setting_count = sizeof settings / sizeof *settings,
                                   .connection_window = options->connection_window,
                                   .user = client};
    return bide_http2_session_create_(&client->session, &opening);
}
