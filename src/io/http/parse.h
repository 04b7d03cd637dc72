/* The heads of messages: where they end, and what is in them. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_PARSE_H
#define BIDE_SRC_HTTP_PARSE_H

#include "bide/http_message.h"

/* What a head says. */
typedef struct http_head {
    /* what is asked for: room for fields */
    bide_http_field *fields;
    size_t most_fields;
    size_t most_target;

    /* the result */
    size_t field_count;
    bide_http_method method;
    bide_http_text method_name;
    bide_http_text target;
    bide_http_text path;
    bide_http_text query;
    bide_http_text host;
    bide_http_text upgrade;
    bide_http_text reason;
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
ptrdiff_t http_find_end(const char *data, size_t size, size_t *scanned);

/* Parses a head of `size` bytes, with the empty line. 0, or the status of the response that refuses it. */
int http_parse_request(http_head *head, const char *data, size_t size);

/* The same of a response: 0 or -EBADMSG. */
int http_parse_response(http_head *head, const char *data, size_t size);

/* Parses trailers, with the empty line, into `fields`: 0, -EBADMSG, or -EMSGSIZE (too many). */
int http_parse_trailers(http_head *head, const char *data, size_t size);

/* Which method that is. */
bide_http_method http_method_of(bide_http_text name);

/* Splits head->target, of head->method, into path and query. An authority in it goes to *authority. False: it is none. */
bool http_split_target(http_head *head, bide_http_text *authority);

/* May these stand in a target? */
bool http_is_target(const char *data, size_t size);

/* Digits alone, of a number that a body may have. */
bool http_parse_length(bide_http_text text, uint64_t *length);

/* A token; a value that may stand in a field. */
bool http_is_token(const char *data, size_t size);
bool http_is_value(const char *data, size_t size);

/* A host with or without a port. */
bool http_is_host(const char *data, size_t size);

/* The size of a chunk, of a line without its end: 0 or -EBADMSG. */
int http_parse_chunk_size(const char *line, size_t size, uint64_t *chunk);

/* Has this build a parser at all? */
extern const bool http_is_here;

#endif
