/* One client over its websocket, from its first line to the close. */
#ifndef CHAT_SESSION_H
#define CHAT_SESSION_H

#include <bide/http.h>

/* What all sessions go by. Nanoseconds. */
struct session_options {
    uint64_t ping;    /* when it was silent for so long, it is asked */
    uint64_t silence; /* and given up */
    unsigned rate;    /* messages a second */
    unsigned burst;   /* and at once */
};

/* A handler; the exchange's argument is the options. */
extern const bide_http_handler session_handler;

#endif
