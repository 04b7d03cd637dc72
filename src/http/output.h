/* Messages that are sent. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_OUTPUT_H
#define BIDE_SRC_HTTP_OUTPUT_H

#include "bide/http_message.h"

#include "input.h"
#include "watch.h"

/* The state of a message. */
enum {
    HTTP_OUTPUT_NOTHING,
    HTTP_OUTPUT_HEAD,
    HTTP_OUTPUT_BODY,
    HTTP_OUTPUT_TRAILERS,
    HTTP_OUTPUT_ENDED
};

/* Prepares for messages of a server that are not framed, and starts the first one. */
void bide_http_output_init_(bide_http_output *output, bide_writer *writer, bide_http_watch *watch);

/* Starts a message. The writer, the watch, is_framed and is_request keep their values. */
void bide_http_output_start_(bide_http_output *output);

/* Puts the first line, without a line end. Returns false if there is no room. */
bool bide_http_output_start_line_(bide_http_output *output, const char *line, size_t size);

/*
 * Adds one field. Errors: -EINVAL (name or value is invalid, or there is no open head), -EMSGSIZE
 * (there is no room).
 */
int bide_http_output_add_(bide_http_output *output, bide_slice name, bide_slice value);

/* Puts bytes unchanged. Returns false if there is no room. */
bool bide_http_output_put_(bide_http_output *output, const char *data, size_t size);

/*
 * Ends the head. `length` is the length of the body, or BIDE_HTTP_UNKNOWN. Errors: -EMSGSIZE (there is
 * no room).
 */
int bide_http_output_end_head_(bide_http_output *output, uint64_t length);

/*
 * Writes bytes of the body, into the buffer if they fit. They are counted when the operation begins. Errors: -EMSGSIZE
 * (exceeds the announced length), -EINVAL (the body has ended), and those of the stream.
 */
bide_awaiter *bide_http_output_write_(bide_http_output *output, const void *data, size_t size);

/* Sends the buffered bytes. */
bide_awaiter *bide_http_output_flush_(bide_http_output *output);

/*
 * Sends an interim response, which was put into the buffer, and everything before it. If output->early_sender is set,
 * another coroutine does that, and continues after the operation has ended early.
 */
bide_awaiter *bide_http_output_flush_interim_(bide_http_output *output);

/* The other coroutine sends no more: the operations that wait for it, and later ones, send themselves. */
void bide_http_output_end_early_(bide_http_output *output);

/*
 * Sends the buffered output of earlier messages, without a byte of the current one. Meanwhile the buffer's bytes keep
 * their place, plain calls append behind them, and writes and flushes wait. After the awaiter has ended,
 * bide_http_output_take_back_ removes the sent bytes, resumes the waiting operation, and returns the status; -EIO if a
 * stream has sent nothing without an error. If the operation is destroyed,
 * bide_http_output_withdraw_ removes them. Errors: those of the stream.
 */
bide_awaiter *bide_http_output_send_early_(bide_http_output *output);
int bide_http_output_take_back_(bide_http_output *output, int status);
void bide_http_output_withdraw_(bide_http_output *output);

/* Starts an operation that only completes with `status`. */
bide_awaiter *bide_http_output_fail_(bide_http_output *output, int status);

/*
 * "100 Continue", for a read that waits for the body, beside another coroutine's write. bide_http_output_put_continue_
 * puts it into the buffer, unless a response has started, or an earlier read has put it. Returns 0 (nothing is to be
 * sent), -EAGAIN (await bide_http_output_send_continue_, and pass its status to bide_http_output_continued_, which returns the same), or an
 * error: -EMSGSIZE (there is no room), and those of the stream. If that awaiter is destroyed,
 * bide_http_output_leave_continue_ replaces the last call.
 */
int bide_http_output_put_continue_(bide_http_output *output);
bide_awaiter *bide_http_output_send_continue_(bide_http_output *output);
int bide_http_output_continued_(bide_http_output *output, int status);
void bide_http_output_leave_continue_(bide_http_output *output);

/*
 * Counts bytes of the body that were taken by other means; bide_http_output_check_ only looks. Errors: -EMSGSIZE
 * (exceeds the announced length), -EINVAL (the body has ended).
 */
int bide_http_output_check_(const bide_http_output *output, uint64_t size);
int bide_http_output_count_(bide_http_output *output, uint64_t size);

/*
 * A write by other means sets output->is_unfinished when it is made, and clears it when it begins. This is called before,
 * for an earlier write that never began: it makes the message invalid. Returns the output's error.
 */
int bide_http_output_settle_(bide_http_output *output);

/* Adds one trailer. Errors: as bide_http_output_add_. */
int bide_http_output_add_trailer_(bide_http_output *output, bide_slice name, bide_slice value);

/*
 * Ends the message. Returns 0, -EAGAIN (there is no room: flush and call again), or -ENODATA (the body
 * is shorter than announced).
 */
int bide_http_output_end_(bide_http_output *output);

/* The library adds fields of this name itself. */
bool bide_http_output_is_framing_(bide_slice name);

/* Makes room for `size` bytes behind the buffered ones. Returns false if they cannot fit without a wait. */
bool bide_http_output_reserve_(bide_http_output *output, size_t size);

/* The number of buffered bytes that belong to complete messages before the current one. */
static inline size_t http_output_earlier(const bide_http_output *output)
{
    const bide_writer *writer = output->writer;
    bool is_none = output->state == HTTP_OUTPUT_NOTHING || output->state == HTTP_OUTPUT_ENDED;
    size_t end = is_none ? writer->end : output->head;
    return output->is_sent || end < writer->begin ? 0 : end - writer->begin;
}

/* Prints a decimal number and returns the number of digits. */
size_t bide_http_print_number_(char digits[20], uint64_t number);

#endif
