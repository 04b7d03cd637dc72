/*
 * HTTP/2 for the connections of an HTTP agent, by bide-http2. Link with bide-http and bide-http2. Floor: http2.
 *
 *     bide_tls_client_create(&config, &(bide_tls_options){.protocols = bide_http2_protocols}, NULL);
 *     bide_http_agent_create(&agent, NULL);
 *     bide_http_agent_use_tls(agent, config);
 *     bide_http_agent_use_http2(agent);
 *
 * The config offers "h2" and "http/1.1" by ALPN, and the server chooses. Without TLS the server must be known to speak
 * HTTP/2: the option `version` of the agent or of a fetch is BIDE_HTTP_VERSION_2 then. A header alone, so that programs
 * without HTTP/2 do not depend on libnghttp2.
 */
#ifndef BIDE_HTTP_AGENT_HTTP2_H
#define BIDE_HTTP_AGENT_HTTP2_H

#include "bide/http2.h"
#include "bide/http2_client.h"
#include "bide/http_agent.h"

#include <string.h>

BIDE_EXTERN_C_BEGIN

/* One request, and what is called for its responses of 1xx. Of the agent. */
typedef struct bide_http_agent_http2_request_ {
    bide_http2_request request; /* must be first */
    void (*called)(void *argument);
    void *argument;
} bide_http_agent_http2_request_;

BIDE_INLINE size_t bide_http_agent_http2_within_(size_t value, size_t min, size_t max)
{
    return value < min ? min : value > max ? max : value;
}

/* (the limits of a response, in the bounds of a connection's; requests have to fit, too) */
BIDE_INLINE int bide_http_agent_http2_open_(void *client, bide_stream stream,
                                            const bide_http_agent_http2_options *from)
{
    bide_http2_client_options options;
    memset(&options, 0, sizeof options);
    options.is_secure = from->is_secure;
    options.max_fields = bide_http_agent_http2_within_(from->max_fields, 8, (size_t)1 << 19);
    options.max_head = bide_http_agent_http2_within_(from->max_head, 8704, (size_t)1 << 24);
    options.max_body = from->max_body;
    options.idle_timeout = from->idle_timeout;
    options.window = from->window;
    if (from->window >
        (UINT32_C(1)
         << 18)) /* (the connection's: several of them, and not less than its default) */
        options.connection_window =
            from->window < (UINT32_C(1) << 29) ? 4 * from->window : from->window;
    return bide_http2_client_init((bide_http2_client *)client, stream, &options);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_http2_run_(void *client)
{
    return bide_http2_client_run((bide_http2_client *)client);
}

BIDE_INLINE bool bide_http_agent_http2_is_usable_(const void *client)
{
    return bide_http2_client_is_usable((const bide_http2_client *)client);
}

BIDE_INLINE void bide_http_agent_http2_destroy_(void *client)
{
    bide_http2_client_destroy((bide_http2_client *)client);
}

BIDE_INLINE int bide_http_agent_http2_start_(void *request, void *client, const char *method,
                                             const char *target, const char *authority)
{
    return bide_http2_request_init((bide_http2_request *)request, (bide_http2_client *)client,
                                   method, target, authority);
}

BIDE_INLINE int bide_http_agent_http2_add_(void *request, const char *name, const char *value)
{
    return bide_http2_request_add((bide_http2_request *)request, name, value);
}

BIDE_INLINE int bide_http_agent_http2_set_body_(void *request, const void *data, size_t size)
{
    return bide_http2_request_set_body((bide_http2_request *)request, data, size);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_http2_recv_(void *request)
{
    return bide_http2_request_recv((bide_http2_request *)request);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_http2_read_(void *request, void *data, size_t size)
{
    return bide_http2_request_read((bide_http2_request *)request, data, size);
}

BIDE_INLINE const bide_http_response *bide_http_agent_http2_response_(const void *request)
{
    return &((const bide_http2_request *)request)->response;
}

BIDE_INLINE size_t bide_http_agent_http2_count_(const void *request)
{
    return ((const bide_http2_request *)request)->count;
}

BIDE_INLINE void bide_http_agent_http2_close_(void *request)
{
    bide_http2_request_close((bide_http2_request *)request);
}

BIDE_INLINE void bide_http_agent_http2_on_informational_(bide_http2_request *request)
{
    bide_http_agent_http2_request_ *self = (bide_http_agent_http2_request_ *)(void *)request;
    self->called(self->argument);
}

BIDE_INLINE void bide_http_agent_http2_set_informational_(void *request,
                                                          void (*called)(void *argument),
                                                          void *argument)
{
    bide_http_agent_http2_request_ *self = (bide_http_agent_http2_request_ *)request;
    self->called = called;
    self->argument = argument;
    self->request.on_informational = &bide_http_agent_http2_on_informational_;
}

BIDE_INLINE uint64_t bide_http_agent_http2_started_at_(const void *request)
{
    return ((const bide_http2_request *)request)->started_at;
}

BIDE_INLINE void bide_http_agent_http2_doubt_(void *client)
{
    bide_http2_client *self = (bide_http2_client *)client;
    self->is_doubted = true;
    bide_auto_event_set(&self->nudge);
}

BIDE_INLINE bool bide_http_agent_http2_is_doubted_(const void *client)
{
    return ((const bide_http2_client *)client)->is_doubted;
}

BIDE_INLINE uint64_t bide_http_agent_http2_heard_at_(const void *client)
{
    return ((const bide_http2_client *)client)->input_at;
}

BIDE_INLINE void bide_http_agent_http2_set_answered_(void *client, void (*called)(void *argument),
                                                     void *argument)
{
    bide_http2_client *self = (bide_http2_client *)client;
    self->on_answer = called;
    self->on_answer_argument = argument;
}

BIDE_INLINE int bide_http_agent_http2_finish_head_(void *request, uint64_t length)
{
    return bide_http2_request_finish_head((bide_http2_request *)request, length);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_http2_write_(void *request, const void *data, size_t size)
{
    return bide_http2_request_write((bide_http2_request *)request, data, size);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_http2_continue_(void *request)
{
    return bide_http2_request_continue((bide_http2_request *)request);
}

BIDE_INLINE bool bide_http_agent_http2_continues_(const void *request)
{
    return ((const bide_http2_request *)request)->continues;
}

BIDE_INLINE bide_slice bide_http_agent_http2_trailer_(const void *request, const char *name)
{
    return bide_http2_request_trailer((const bide_http2_request *)request, name);
}

/*
 * The agent speaks HTTP/2 with servers that choose it, and for requests of BIDE_HTTP_VERSION_2. Before the agent's first
 * request.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE void bide_http_agent_use_http2(bide_http_agent *agent)
{
    static const bide_http_agent_http2 table = {
        sizeof(bide_http2_client),
        sizeof(bide_http_agent_http2_request_),
        &bide_http_agent_http2_open_,
        &bide_http_agent_http2_run_,
        &bide_http_agent_http2_is_usable_,
        &bide_http_agent_http2_destroy_,
        &bide_http_agent_http2_start_,
        &bide_http_agent_http2_add_,
        &bide_http_agent_http2_set_body_,
        &bide_http_agent_http2_recv_,
        &bide_http_agent_http2_read_,
        &bide_http_agent_http2_response_,
        &bide_http_agent_http2_count_,
        &bide_http_agent_http2_close_,
        &bide_http_agent_http2_set_informational_,
        &bide_http_agent_http2_started_at_,
        &bide_http_agent_http2_doubt_,
        &bide_http_agent_http2_is_doubted_,
        &bide_http_agent_http2_heard_at_,
        &bide_http_agent_http2_set_answered_,
        &bide_http_agent_http2_finish_head_,
        &bide_http_agent_http2_write_,
        &bide_http_agent_http2_continue_,
        &bide_http_agent_http2_continues_,
        &bide_http_agent_http2_trailer_,
    };
    bide_http_agent_set_http2(agent, &table);
}

BIDE_EXTERN_C_END

#endif
