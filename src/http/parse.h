/* The heads of messages: where they end, and what is in them. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_PARSE_H
#define BIDE_SRC_HTTP_PARSE_H

#include "bide/http_message.h"

/* What a head says. */
typedef struct http_head {
    /* what is asked for: room for fields */
    bide_http_field *fields;
    size_t max_fields;
    size_t max_target;

    /* the result */
    size_t field_count;
    bide_http_method method;
    bide_slice method_name;
    bide_slice target;
    bide_slice path;
    bide_slice query;
    bide_slice host;
    bide_slice upgrade;
    bide_slice reason;
    uint64_t length; /* BIDE_HTTP_UNKNOWN: not said */
    int status;      /* of a response */
    int minor;       /* of the version, 0 or 1 */
    bool is_chunked;
    bool has_other_coding; /* of a response: its body goes to the end of the connection */
    bool closes;           /* "Connection: close" */
    bool keeps;            /* "Connection: keep-alive" */
    bool upgrades;         /* "Connection: upgrade" */
    bool expects;          /* "Expect: 100-continue" */
} http_head;

enum { HTTP_MORE = 0, HTTP_BAD = -1 };

/*
 * Looks for the empty line that ends the lines at `data`. The result is where they end, with that
 * line; HTTP_MORE: they have not yet; HTTP_BAD: an end of a line is none, or a line is folded.
 * `*scanned` bytes have been looked at before, 0 at first.
 */
ptrdiff_t bide_http_find_end_(const char *data, size_t size, size_t *scanned);

/* Parses a head of `size` bytes, with the empty line. 0, or the status of the response that refuses it. */
int bide_http_parse_request_(http_head *head, const char *data, size_t size);

/* The same of a response: 0 or -EBADMSG. */
int bide_http_parse_response_(http_head *head, const char *data, size_t size);

/* Parses trailers, with the empty line, into `fields`: 0, -EBADMSG, or -EMSGSIZE (too many). */
int bide_http_parse_trailers_(http_head *head, const char *data, size_t size);

/* Which method that is. */
bide_http_method bide_http_method_of_(bide_slice name);

/* Splits head->target, of head->method, into path and query. An authority in it goes to *authority. False: it is none. */
bool bide_http_split_target_(http_head *head, bide_slice *authority);

/* May these stand in a target? */
bool bide_http_is_target_(const char *data, size_t size);

/* Digits alone, of a number that a body may have. */
bool bide_http_parse_length_(bide_slice text, uint64_t *length);

/* A token; a value that may stand in a field. */
bool bide_http_is_token_(const char *data, size_t size);
bool bide_http_is_value_(const char *data, size_t size);

/* A host with or without a port. */
bool bide_http_is_host_(const char *data, size_t size);

/* The size of a chunk, of a line without its end: 0 or -EBADMSG. */
int bide_http_parse_chunk_size_(const char *line, size_t size, uint64_t *chunk);

/* Has this build a parser at all? */
extern const bool bide_http_is_here_;

#endif
