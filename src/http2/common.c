/*
 * Parts that the sessions of servers and of clients share: nghttp2's session with its first frames, the heads of
 * received frames with the budget of those without a use, and the rings of received bodies.
 *
 * Threads: all functions run on the loop's thread, some of them inside a call of nghttp2.
 *
 * Why it is correct:
 * 1. A field with a name or a value that RFC 9113, 8.2.1, does not allow makes its message malformed, and its stream
 *    is reset. Without a callback, nghttp2 resets the stream or leaves the field out, depending on its version.
 * 2. Bytes of a ring whose part of the connection's window was opened early, `opened` of them, are counted as those
 *    that leave the ring last. So the window is opened once for each byte.
 */
#include "internal.h"

#include <string.h>

enum { HTTP2_MAX_ACKS = 256 };

/* ---- Sessions ---- */

/* 1 */
static int http2_on_invalid_field(nghttp2_session *session, const nghttp2_frame *frame,
                                  nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags,
                                  void *user)
{
    (void)session;
    (void)frame;
    (void)name;
    (void)value;
    (void)flags;
    (void)user;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int http2_new_session(nghttp2_session **session, const http2_opening *opening,
                             const nghttp2_session_callbacks *callbacks,
                             const nghttp2_option *option)
{
    return opening->is_server ? nghttp2_session_server_new3(session, callbacks, opening->user,
                                                            option, opening->memory)
                              : nghttp2_session_client_new3(session, callbacks, opening->user,
                                                            option, opening->memory);
}

int bide_http2_session_create_(nghttp2_session **session, const http2_opening *opening)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int status = nghttp2_session_callbacks_new(&callbacks);
    if (status == 0)
        status = nghttp2_option_new(&option);
    if (status == 0) {
        opening->set_callbacks(callbacks);
        nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks,
                                                                  http2_on_invalid_field);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_max_outbound_ack(option, HTTP2_MAX_ACKS);
        status = http2_new_session(session, opening, callbacks, option);
    }
    if (status == 0)
        status = nghttp2_submit_settings(*session, NGHTTP2_FLAG_NONE, opening->settings,
                                         opening->setting_count);
    if (status == 0)
        status = nghttp2_session_set_local_window_size(*session, NGHTTP2_FLAG_NONE, 0,
                                                       (int32_t)opening->connection_window);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return bide_http2_errno_(status);
}

/* ---- Heads of frames ---- */

bool bide_http2_frames_settle_(bide_http2_frames_ *frames, uint32_t max, uint64_t charge)
{
    uint64_t all = frames->left + frames->earned;
    frames->earned = 0;
    uint64_t left = charge > all ? 0 : all - charge;
    frames->left = left < max ? (uint32_t)left : max;
    return charge <= all;
}

static http2_frame_head http2_parse_frame_head(const unsigned char *head)
{
    return (http2_frame_head){.type = head[3],
                              .flags = head[4],
                              .id = (int32_t)((uint32_t)(head[5] & 0x7f) << 24 |
                                              (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
                                              head[8])};
}

bool bide_http2_frames_charge_(bide_http2_frames_ *frames, uint32_t max, const unsigned char *data,
                               size_t size, http2_see_frame *see, void *user)
{
    uint64_t count = 0;
    for (size_t at = 0; at != size;) {
        size_t payload = size - at < frames->payload ? size - at : frames->payload;
        frames->payload -= payload;
        at += payload;
        while (at != size && frames->payload == 0 && frames->head_size < sizeof frames->head)
            frames->head[frames->head_size++] = data[at++];
        if (frames->head_size != sizeof frames->head)
            continue;
        frames->head_size = 0;
        frames->payload =
            (size_t)frames->head[0] << 16 | (size_t)frames->head[1] << 8 | frames->head[2];
        count++;
        if (see != NULL) {
            http2_frame_head head = http2_parse_frame_head(frames->head);
            see(user, &head);
        }
    }
    return bide_http2_frames_settle_(frames, max, count);
}

/* ---- Rings ---- */

size_t bide_http2_ring_window_(nghttp2_session *session, int32_t id, size_t window)
{
    int32_t current = nghttp2_session_get_stream_effective_local_window_size(session, id);
    return current > 0 && (size_t)current > window ? (size_t)current : window;
}

void bide_http2_ring_put_(bide_http2_ring_ *ring, const char *data, size_t size)
{
    bide_assert(size <= ring->size - ring->count);
    size_t end = (ring->begin + ring->count) % ring->size;
    size_t first = size < ring->size - end ? size : ring->size - end;
    memcpy(ring->data + end, data, first);
    memcpy(ring->data, data + first, size - first);
    ring->count += size;
}

size_t bide_http2_ring_take_(bide_http2_ring_ *ring, char *data, size_t size)
{
    size_t count = size < ring->count ? size : ring->count;
    bide_assert(ring->count <= ring->size && ring->begin < ring->size);
    size_t first = count < ring->size - ring->begin ? count : ring->size - ring->begin;
    memcpy(data, ring->data + ring->begin, first);
    memcpy(data + first, ring->data, count - first);
    ring->begin = (ring->begin + count) % ring->size;
    ring->count -= count;
    return count;
}

/* 2 */
size_t bide_http2_ring_settle_(bide_http2_ring_ *ring, size_t count, size_t *opened)
{
    bide_assert(ring->opened <= ring->count && count <= ring->count);
    size_t held = ring->count - ring->opened;
    if (held > count)
        held = count;
    bide_assert(count - held <= ring->opened && ring->opened <= *opened);
    ring->opened -= count - held;
    *opened -= count - held;
    return held;
}
