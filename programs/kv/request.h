/*
 * Requests of the redis protocol, parsed in place: arrays of bulk strings, or lines of words. If a
 * request arrives in pieces, parsing continues where it stopped, so each byte is examined once.
 */
#ifndef KV_REQUEST_H
#define KV_REQUEST_H

#include "bytes.h"

/* The limits of a request. */
struct request_limits {
    size_t bulk;      /* bytes of an argument */
    size_t arguments; /* number of arguments */
    size_t total;     /* bytes */
};

enum {
    REQUEST_LINE = 65536,            /* the longest line of words, in bytes */
    REQUEST_BULK_BEFORE_AUTH = 16384 /* the largest argument of a client without the password */
};

struct argument {
    size_t offset; /* from the start of the request */
    size_t size;
};

enum { REQUEST_ARGUMENTS = 8 };

/* A parser's state. All zero is a request that has not started. */
struct request {
    size_t size;       /* bytes parsed */
    size_t wanted;     /* arguments; 0: the request has not started */
    size_t count;      /* arguments that have been parsed */
    size_t bulk;       /* bytes of the next argument */
    bool has_bulk;     /* `bulk` is known */
    const char *error; /* the error; or NULL */
    char got;          /* the byte that is the error; or 0 */
    size_t capacity;   /* of `more` */
    struct argument inline_arguments[REQUEST_ARGUMENTS];
    struct argument *more; /* replaces inline_arguments; or NULL */
};

enum request_state {
    REQUEST_INCOMPLETE,
    REQUEST_COMPLETE, /* with at least one argument */
    REQUEST_WRONG     /* see `error`; no further request can be parsed */
};

/*
 * Parses a request that begins at `data`, as far as it has arrived. Quoted words are rewritten in
 * place.
 */
enum request_state request_read(struct request *request, char *data, size_t size,
                                const struct request_limits *limits);

/* Prepares for the next request. */
void request_clear(struct request *request);

/* The number of bytes from the start of the request that the next step needs. */
static inline size_t request_needs(const struct request *request)
{
    return request->has_bulk ? request->size + request->bulk + 2 : request->size + 1;
}

static inline const struct argument *request_arguments(const struct request *request)
{
    return request->more != NULL ? request->more : request->inline_arguments;
}

#endif
