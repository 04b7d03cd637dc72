/* Messages that go out. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_OUTPUT_H
#define BIDE_SRC_HTTP_OUTPUT_H

#include "bide/http_message.h"

#include "input.h"
#include "watch.h"

/* How far a message is. */
enum { HTTP_OUTPUT_NOTHING, HTTP_OUTPUT_HEAD, HTTP_OUTPUT_BODY, HTTP_OUTPUT_TRAILERS, HTTP_OUTPUT_ENDED };

/* A message begins. What was set up by the caller stays: the writer, the watch, `is_request`. */
void bide_http_output_begin_(bide_http_output *output);

/* Its first line, without an end. False: there is no room. */
bool bide_http_output_start_line_(bide_http_output *output, const char *line, size_t size);

/*
 * One line. Errors: -EINVAL (name or value may not stand in a field), -EMSGSIZE (there is no room).
 */
int bide_http_output_add_(bide_http_output *output, bide_slice name, bide_slice value);

/* Bytes as they are. False: there is no room. */
bool bide_http_output_put_(bide_http_output *output, const char *data, size_t size);

/* The end of the head. `length` is that of the body, or BIDE_HTTP_UNKNOWN. -EMSGSIZE. */
int bide_http_output_end_head_(bide_http_output *output, uint64_t length);

/*
 * Writes bytes of the body, into the buffer if they fit. Errors: -EMSGSIZE (more than the length that
 * was promised), and those of the stream.
 */
bide_awaiter *bide_http_output_write_(bide_http_output *output, const void *data, size_t size);

/* Sends what is buffered. */
bide_awaiter *bide_http_output_flush_(bide_http_output *output);

/*
 * `status` and nothing else is the result of the operation that comes next.
 */
bide_awaiter *bide_http_output_fail_(bide_http_output *output, int status);

/* "100 Continue", at once. */
bide_awaiter *bide_http_output_continue_(bide_http_output *output);

/* Bytes of the body that are sent by other means: they count. -EMSGSIZE. */
int bide_http_output_count_(bide_http_output *output, uint64_t size);

/* One line of the trailers; errors as bide_http_output_add_. */
int bide_http_output_add_trailer_(bide_http_output *output, bide_slice name, bide_slice value);

/* The end. 0; -EAGAIN: there is no room, flush first; -ENODATA: less than the length that was promised. */
int bide_http_output_end_(bide_http_output *output);

/* How many bytes the buffer still takes. */
static inline size_t http_output_room(const bide_http_output *output)
{
    return output->writer->size - bide_writer_buffered(output->writer);
}

/* The decimal digits of a number, and how many. */
size_t bide_http_print_number_(char digits[20], uint64_t number);

#endif
