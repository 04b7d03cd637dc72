/*
 * Internal to the HTTP/2 client: types, limits, and the functions that its files call in each other.
 *
 *     client.c           the coroutines of a connection, and its life
 *     client_session.c   nghttp2's session and callbacks
 *     client_request.c   requests
 *
 * Threads: everything runs on the loop's thread.
 */
#ifndef BIDE_SRC_HTTP2_CLIENT_H
#define BIDE_SRC_HTTP2_CLIENT_H

#include "internal.h"

#include "bide/http2_client.h"

/*
 * INPUT     bytes that are read at once
 * PAIRS     fields of a request that there is room for at first
 * INTERIM   responses of 1xx to a request
 */
enum {
    HTTP2_CLIENT_INPUT = 16384,
    HTTP2_CLIENT_PAIRS = 16,
    HTTP2_CLIENT_INTERIM = 32,
    HTTP2_CLIENT_TRAILERS = 16
};

/*
 *     CLOSED --init--> HEAD --its end--> WAITING --a stream is free--> ACTIVE --its end--> ENDED
 */
enum {
    HTTP2_REQUEST_CLOSED,
    HTTP2_REQUEST_HEAD,
    HTTP2_REQUEST_WAITING, /* in client->waiting */
    HTTP2_REQUEST_ACTIVE,  /* in client->active: nghttp2 has it */
    HTTP2_REQUEST_ENDED    /* nghttp2 has released it, or never had it */
};

/* Opens the session. Returns 0 or a negative errno. */
int bide_http2_client_open_session_(bide_http2_client *client);

/* Handles the result of a call of nghttp2, which may have produced output. */
void bide_http2_client_note_(bide_http2_client *client, int error);

/* Charges for the frames that begin in received bytes. */
void bide_http2_client_charge_frames_(bide_http2_client *client, const unsigned char *data,
                                      size_t size);

/* The connection has failed: requests end, and after what is to be sent it ends. */
void bide_http2_client_fail_(bide_http2_client *client, int error);

/* Takes no more requests. Requests that wait for a stream end with -ECONNREFUSED. */
void bide_http2_client_go_away_(bide_http2_client *client);

/* Submits the requests that wait, as long as there are streams for them. */
void bide_http2_client_start_waiting_(bide_http2_client *client, const bide_context *context);

/* Ends a request that is waiting or active; nghttp2 does not know it any more. `error`: 0, or why. */
void bide_http2_request_end_(bide_http2_request *request, int error);

/* Detaches an active request from nghttp2, resets its stream, and ends it. */
void bide_http2_request_abort_(bide_http2_request *request, uint32_t code, int error);

/* The input: a field of a head or of trailers, the end of these, and a part of the body. */
void bide_http2_request_start_head_(bide_http2_request *request);
void bide_http2_request_take_field_(bide_http2_request *request, bide_slice name, bide_slice value);
void bide_http2_request_end_head_(bide_http2_request *request, bool has_ended);
void bide_http2_request_take_body_(bide_http2_request *request, const char *data, size_t size);
void bide_http2_request_end_input_(bide_http2_request *request);

/* A callback of nghttp2: the next part of a request's body. */
ssize_t bide_http2_request_give_body_(nghttp2_session *session, int32_t id, uint8_t *buffer,
                                      size_t length, uint32_t *flags, nghttp2_data_source *source,
                                      void *client);

/* Lists of requests. */
void bide_http2_requests_add_(bide_http2_requests_ *list, bide_http2_request *request);
void bide_http2_requests_remove_(bide_http2_requests_ *list, bide_http2_request *request);

#endif
