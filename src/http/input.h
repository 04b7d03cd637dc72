/* The body of a message that is received. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_INPUT_H
#define BIDE_SRC_HTTP_INPUT_H

#include "bide/http_message.h"

#include "watch.h"

/*
 * The minimum sizes of a connection's buffers, and the room that the input buffer keeps behind the
 * longest head.
 */
enum { HTTP_MIN_INPUT = 2048, HTTP_MIN_OUTPUT = 512, HTTP_ROOM_BEHIND_HEAD = 1024 };

/* The state of a body. */
enum {
    HTTP_INPUT_LENGTH, /* in a body of known length, or one that ends with the connection. */
    HTTP_INPUT_SIZE,   /* before the size of a chunk. */
    HTTP_INPUT_CHUNK,
    HTTP_INPUT_CHUNK_END, /* before the line end that follows a chunk */
    HTTP_INPUT_TRAILERS,
    HTTP_INPUT_END,
};

/* How the end of a body is found. CARRIED: the carrier marks it. */
enum http_framing {
    HTTP_FRAMING_LENGTH,
    HTTP_FRAMING_CHUNKED,
    HTTP_FRAMING_CLOSE,
    HTTP_FRAMING_CARRIED
};

/* Starts a body, which follows the head in the reader. `length` applies to HTTP_FRAMING_LENGTH. */
void bide_http_input_start_(bide_http_input *input, enum http_framing framing, uint64_t length);

/*
 * Prepares for parsing a head of `size` buffered bytes. The head keeps its place while its exchange
 * lasts, so it moves to the front of the buffer now if too little room is behind it for its body.
 */
void bide_http_input_keep_room_(bide_reader *reader, size_t size);

/* All of the body was read. */
static inline bool http_input_has_ended(const bide_http_input *input)
{
    return input->state == HTTP_INPUT_END;
}

/*
 * Reads available bytes of the body: at least one and at most `size`, which is 1 or more.
 * input->count is 0 at the end of the body; the trailers are then available. Errors: -EBADMSG (the
 * body is invalid), -EFBIG (the body exceeds its limit), -EMSGSIZE (the trailers are too long),
 * -ENODATA (the connection ended early), and those of the stream.
 */
bide_awaiter *bide_http_input_read_(bide_http_input *input, void *data, size_t size);

/* Drops buffered bytes of the body. Returns true if the body has ended. Never waits. */
bool bide_http_input_drop_(bide_http_input *input);

/*
 * Reads once into the reader's buffer, behind `base`. The buffer must have room. Afterwards,
 * bide_http_input_filled_ adds the received bytes to the reader.
 */
bide_awaiter *bide_http_input_fill_(bide_http_input *input);
void bide_http_input_filled_(bide_http_input *input, int status);

#endif
