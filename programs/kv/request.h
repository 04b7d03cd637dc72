/*
 * Requests of redis's protocol, read where they are: arrays of bulk strings, or lines of words.
 * What comes in pieces is gone on with where it ended, so a byte is looked at once.
 */
#ifndef KV_REQUEST_H
#define KV_REQUEST_H

#include "bytes.h"

/* What a request may have at most. */
struct request_limits {
    size_t bulk;      /* bytes of an argument */
    size_t arguments; /* of them */
    size_t total;     /* bytes */
};

enum { REQUEST_LINE = 65536 }; /* bytes of a line of words at most */

struct argument {
    size_t offset; /* from the request's beginning */
    size_t size;
};

enum { REQUEST_ARGUMENTS = 8 };

/* All zero is one that has not begun. */
struct request {
    size_t size;       /* bytes that were read */
    size_t wanted;     /* arguments; 0: it has not begun */
    size_t count;      /* of those that are there */
    size_t bulk;       /* bytes of the next */
    bool has_bulk;     /* that is known */
    const char *error; /* what is wrong with it; or NULL */
    size_t capacity;   /* of `more` */
    struct argument few[REQUEST_ARGUMENTS];
    struct argument *more; /* in place of them; or NULL */
};

enum request_state {
    REQUEST_INCOMPLETE,
    REQUEST_COMPLETE, /* with an argument or more */
    REQUEST_WRONG     /* `error` says why, and nothing can be read any more */
};

/* Reads a request that begins at `data`, as far as it goes. Words with quotes are changed there. */
enum request_state request_read(struct request *request, char *data, size_t size,
                                const struct request_limits *limits);

/* It is done with, and another may begin. */
void request_clear(struct request *request);

/* How many bytes there have to be for it to go on. */
static inline size_t request_needs(const struct request *request)
{
    return request->has_bulk ? request->size + request->bulk + 2 : request->size + 1;
}

static inline const struct argument *request_arguments(const struct request *request)
{
    return request->more != NULL ? request->more : request->few;
}

#endif
