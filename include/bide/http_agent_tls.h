/*
 * TLS for the connections of an HTTP agent, by bide-tls. Link with bide-http and bide-tls. Floor: http.
 *
 *     bide_tls_client_create(&config, NULL, NULL);
 *     bide_http_agent_create(&agent, NULL);
 *     bide_http_agent_use_tls(agent, config);
 *
 * A header alone, so that programs without TLS do not depend on OpenSSL.
 */
#ifndef BIDE_HTTP_AGENT_TLS_H
#define BIDE_HTTP_AGENT_TLS_H

#include "bide/http_agent.h"
#include "bide/tls.h"

BIDE_EXTERN_C_BEGIN

/* One connection's TLS. Of the agent. */
typedef struct bide_http_agent_tls_ {
    bide_tls tls;
    bide_tls_handshake handshake;
} bide_http_agent_tls_;

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_tls_connect_(void *memory, void *argument,
                                                       bide_stream below, const char *name)
{
    bide_http_agent_tls_ *self = (bide_http_agent_tls_ *)memory;
    return bide_tls_connect(&self->handshake, &self->tls, (bide_tls_config *)argument, below, name);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_http_agent_tls_connect_http1_(void *memory, void *argument,
                                                             bide_stream below, const char *name)
{
    bide_awaiter *connect = bide_http_agent_tls_connect_(memory, argument, below, name);
    ((bide_http_agent_tls_ *)memory)->handshake.protocol = "http/1.1";
    return connect;
}

BIDE_INLINE bide_stream bide_http_agent_tls_stream_(void *memory)
{
    return bide_tls_stream(&((bide_http_agent_tls_ *)memory)->tls);
}

BIDE_INLINE void bide_http_agent_tls_close_(void *memory)
{
    (void)bide_tls_close(&((bide_http_agent_tls_ *)memory)->tls);
}

BIDE_INLINE bool bide_http_agent_tls_has_input_(void *memory)
{
    return bide_tls_has_input(&((bide_http_agent_tls_ *)memory)->tls);
}

BIDE_INLINE const char *bide_http_agent_tls_protocol_(void *memory)
{
    return bide_tls_protocol(&((bide_http_agent_tls_ *)memory)->tls);
}

BIDE_INLINE const char *bide_http_agent_tls_reason_(void *memory)
{
    return bide_tls_reason(&((bide_http_agent_tls_ *)memory)->tls);
}

/*
 * The agent's connections become secure by that config, a client's, which stays until the agent is destroyed.
 * Before the agent's first request. A config with protocols has "http/1.1" among them, and "h2" only
 * with bide_http_agent_use_http2.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE void bide_http_agent_use_tls(bide_http_agent *agent, bide_tls_config *config)
{
    static const bide_http_agent_tls table = {
        sizeof(bide_http_agent_tls_),    &bide_http_agent_tls_connect_,
        &bide_http_agent_tls_stream_,    &bide_http_agent_tls_close_,
        &bide_http_agent_tls_has_input_, &bide_http_agent_tls_protocol_,
        &bide_http_agent_tls_reason_,    &bide_http_agent_tls_connect_http1_,
    };
    bide_http_agent_set_tls(agent, &table, config);
}

BIDE_EXTERN_C_END

#endif
