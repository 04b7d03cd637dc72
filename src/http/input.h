/* Bodies that come in. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_INPUT_H
#define BIDE_SRC_HTTP_INPUT_H

#include "bide/http_message.h"

#include "watch.h"

/* Where in a body it is. */
enum {
    HTTP_INPUT_LENGTH, /* in a body of known length, or to the end of the connection */
    HTTP_INPUT_SIZE,   /* before the size of a chunk */
    HTTP_INPUT_CHUNK,
    HTTP_INPUT_CHUNK_END, /* before the end of its last line */
    HTTP_INPUT_TRAILERS,
    HTTP_INPUT_END,
};

/* How the end of a body is known. */
enum http_framing { HTTP_FRAMING_LENGTH, HTTP_FRAMING_CHUNKED, HTTP_FRAMING_CLOSE, HTTP_FRAMING_CARRIED };

/*
 * Begins a body, whose bytes follow in the reader, behind the head. `length` is that of
 * HTTP_FRAMING_LENGTH.
 */
void bide_http_input_begin_(bide_http_input *input, enum http_framing framing, uint64_t length);

/* Is all of it taken? */
static inline bool http_input_has_ended(const bide_http_input *input)
{
    return input->state == HTTP_INPUT_END;
}

/*
 * Reads what there is of the body, at least one byte and at most `size`, 1 or more; input->count is
 * 0 at its end, whose trailers are there then. Errors: -EBADMSG (it is spoilt), -EFBIG (longer than
 * it may be), -EMSGSIZE (the trailers are too long), -ENODATA (the connection has ended before), and
 * those of the stream.
 */
bide_awaiter *bide_http_input_read_(bide_http_input *input, void *data, size_t size);

/*
 * Drops what is buffered of the body. True: it has come to its end by that. Nothing waits.
 */
bool bide_http_input_drop_(bide_http_input *input);

/*
 * One read into the reader's buffer, behind `base`, which has room. The reader counts what has come
 * by bide_http_input_filled_.
 */
bide_awaiter *bide_http_input_fill_(bide_http_input *input);
void bide_http_input_filled_(bide_http_input *input, int status);

#endif
