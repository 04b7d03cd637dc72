/* For tests with one client and one server of HTTP/2: `one`. */
#ifndef HTTP2_TALK_H
#define HTTP2_TALK_H

#include "http2_peer.h"
#include "bide/http.h"

static talk2 one;

static inline int begin_talk(void **state)
{
    (void)state;
    talk2_init(&one);
    return 0;
}

static inline int end_talk(void **state)
{
    (void)state;
    talk2_end(&one);
    return 0;
}

/* Starts again with other options. */
static inline void use(const bide_http_options *options, const bide_http2_options *options2)
{
    talk2_end(&one);
    talk2_init_with(&one, options, options2);
}

#endif
