/* Parses the heads of messages. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_PARSE_H
#define BIDE_SRC_HTTP_PARSE_H

#include "bide/http_message.h"

/* A parsed head. */
typedef struct http_head {
    /* set by the caller: room for fields, and limits */
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
    uint64_t length; /* BIDE_HTTP_UNKNOWN: not announced */
    int status;      /* of a response. */
    int minor;       /* of the version, 0 or 1 */
    bool is_chunked;
    bool has_other_coding; /* of a response: its body ends with the connection */
    bool closes;           /* "Connection: close" */
    bool keeps;            /* "Connection: keep-alive" */
    bool upgrades;         /* "Connection: upgrade" */
    bool expects;          /* "Expect: 100-continue" */
} http_head;

enum { HTTP_MORE = 0, HTTP_BAD = -1 };

/*
 * Searches the empty line that ends the lines at `data`. Returns the size including that line,
 * HTTP_MORE (the empty line is missing), or HTTP_BAD (an invalid line end, or a folded line).
 * `*scanned` is 0 for a new head; the function keeps its progress in it.
 */
ptrdiff_t bide_http_find_end_(const char *data, size_t size, size_t *scanned);

/*
 * Parses a head of `size` bytes, including the empty line. Returns 0 or the status that rejects
 * it.
 */
int bide_http_parse_request_(http_head *head, const char *data, size_t size);

/* Parses the head of a response. Returns 0 or -EBADMSG. */
int bide_http_parse_response_(http_head *head, const char *data, size_t size);

/*
 * Parses trailers, including the empty line, into `fields`. Returns 0, -EBADMSG, or -EMSGSIZE (too
 * many).
 */
int bide_http_parse_trailers_(http_head *head, const char *data, size_t size);

bide_http_method bide_http_method_of_(bide_slice name);

/*
 * Splits head->target, according to head->method, into path and query. Sets *authority if the target
 * has one. Returns false if the target is invalid.
 */
bool bide_http_split_target_(http_head *head, bide_slice *authority);

/* All bytes are valid in a target. */
bool bide_http_is_target_(const char *data, size_t size);

/* Parses a number of up to 18 digits, and nothing else. */
bool bide_http_parse_length_(bide_slice text, uint64_t *length);

/* A valid token; a valid value of a field. */
bool bide_http_is_token_(const char *data, size_t size);
bool bide_http_is_value_(const char *data, size_t size);

/* The text between the brackets of a host: an address of IPv6, or of a future version ("v1.a"). */
bool bide_http_is_literal_(const char *data, size_t size);

/* A valid host, with or without a port. */
bool bide_http_is_host_(const char *data, size_t size);

/* Parses the size of a chunk from a line without its end. Returns 0 or -EBADMSG. */
int bide_http_parse_chunk_size_(const char *line, size_t size, uint64_t *chunk);

/* bide was built with llhttp. */
extern const bool bide_http_is_buffered_;

#endif
