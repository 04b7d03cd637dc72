/*
 * An HTTP/1.1 client: requests and responses over one connection, which is any stream. Floor: http.
 *
 *     bide_http_client_init(&self->client, bide_socket_stream(&self->socket), self->memory,
 *                           sizeof self->memory, NULL);
 *     bide_http_client_start_request(&self->client, "GET", "/index.html", "example.org");
 *     bide_http_client_add(&self->client, "Accept", "text/html");
 *     bide_try(bide_http_client_recv(&self->client));
 *     ... self->client.response.status ...
 *     do {
 *         bide_try(bide_http_client_read(&self->client, self->buffer, sizeof self->buffer));
 *         ... self->client.count bytes in self->buffer ...
 *     } while (self->client.count != 0);
 *     ... if bide_http_client_is_reusable(&self->client), start the next request ...
 *
 *     idle --start--> head --(write)--> body --recv--> response --read, to its end--> idle
 *
 * Call everything on the thread of the stream. A request body has the length that was passed to
 * bide_http_client_finish_head, or goes in chunks. Bodies move in pieces in both directions, at the
 * speed of the slower side. Responses with a status of 1xx are skipped (client->on_informational), except
 * 101. More than 32 of them before a response are an error.
 *
 * Operations have no deadlines of their own: use bide_with_deadline. After an operation fails, close
 * the connection, unless the operation's comment says otherwise. Redirects are the caller's
 * (http_url.h). connection_pool.h keeps connections for reuse. http_agent.h does all of this.
 *
 * Why it is correct: src/http/client.c.
 */
#ifndef BIDE_HTTP_CLIENT_H
#define BIDE_HTTP_CLIENT_H

#include "bide/detail/beside.h"
#include "bide/http_message.h"
#include "bide/extend/wrapper.h"

BIDE_EXTERN_C_BEGIN

/* Options of a client. The comment of a member says what 0 means. */
typedef struct bide_http_client_options {
    size_t
        write_buffer_size; /* bytes of the buffer of what goes out, of its memory. 0: a quarter */
    size_t max_fields;     /* of a response, with its trailers. 0: 64 */
    size_t max_head;   /* bytes of a response's head. 0: its buffer less 1024, which is the most */
    uint64_t max_body; /* bytes of a response's. 0: without a limit */
    bool keeps_delay;  /* TCP_NODELAY of a socket stays as it is. False: it is set */
} bide_http_client_options;

/* The head of a response. Texts stay until the next request begins. */
typedef struct bide_http_response {
    int status;
    int minor; /* of the version: 1, or 0 of HTTP/1.0 */
    bide_slice reason;
    const bide_http_field *fields;
    size_t field_count;
    uint64_t
        length; /* of the body; BIDE_HTTP_UNKNOWN: that is found out when it ends. A response to HEAD and a
                        304 have no body: the length that was announced, or BIDE_HTTP_UNKNOWN */
} bide_http_response;

typedef struct bide_http_client bide_http_client;

/* The coroutine that receives. Of a client. */
typedef struct bide_http_receiver_ {
    bide_task task;
    bide_http_client *client;
    bool is_for_continue;
} bide_http_receiver_;

/* One connection. The caller's memory, while it is used. */
struct bide_http_client {
    bide_stream stream;
    bide_http_response response;
    size_t count;   /* bytes that the last bide_http_client_read has read; 0: the body has ended */
    bool continues; /* bide_http_client_continue: the body is wanted */

    /*
     * May be set after bide_http_client_init, while nothing of the client is awaited. NULL: responses with a
     * status of 1xx are skipped. It is called for each of them but 101, such as 103 (Early Hints):
     * client->response is that response until the call returns. It may read fields, and calls no other function
     * of the client.
     */
    void (*on_informational)(bide_http_client *client);

    /* of the library */
    bide_http_client_options options;
    bide_http_field *fields;
    bide_reader reader;
    bide_writer writer;
    bide_http_input input;
    bide_http_output output;
    bide_http_receiver_ receiver;
    bide_forward reading;
    size_t scanned;
    uint8_t state;
    bool closes;
    bool is_head;
    bool is_connect;
    bool has_no_content; /* of a method whose requests have none, mostly */
    int informational;   /* responses of 1xx to this request */
    int status;
};

enum { BIDE_HTTP_CLIENT_MEMORY = 16384 };

/*
 * Makes a client of a stream that is connected. `memory` is aligned as malloc's, and stays, like what
 * the stream was made from, while the client is used; BIDE_HTTP_CLIENT_MEMORY bytes are a good size. `options` is
 * copied; NULL: all 0.
 * Also a macro, so that the linker names bide-http if it is missing.
 * Threads: before it is shared. Errors: -EINVAL (too little memory), -ENOTSUP (the library was built
 * without llhttp). Progress: wait-free.
 */
int bide_http_client_init(bide_http_client *client, bide_stream stream, void *memory, size_t size,
                          const bide_http_client_options *options);
#define bide_http_client_init(...) \
    BIDE_BESIDE_(bide_link_with_lbide_http_, bide_http_client_init(__VA_ARGS__))

/*
 * Begins a request: "`method` `target` HTTP/1.1", and "Host". A client that was used before begins anew.
 * Threads: the stream's. Errors: -EINVAL (they are not allowed there), -EBUSY (the last response
 * was not read to its end, or the connection ends after it), -EMSGSIZE (it does not fit). Progress:
 * wait-free.
 */
int bide_http_client_start_request(bide_http_client *client, const char *method, const char *target,
                                   const char *host);

/*
 * The same of texts that are not terminated.
 * Threads: the stream's. Errors: as bide_http_client_start_request. Progress: wait-free.
 */
int bide_http_client_start_request_slices(bide_http_client *client, bide_slice method,
                                          bide_slice target, bide_slice host);

/*
 * Adds a field to the request's head. Not "Content-Length" and "Transfer-Encoding", which the library
 * adds itself, nor "Connection", for which there is bide_http_client_close_after.
 * Threads: the stream's. Errors: -EINVAL (it is not allowed in a field, or the head is at its end),
 * -EMSGSIZE (it does not fit). Progress: wait-free.
 */
int bide_http_client_add(bide_http_client *client, const char *name, const char *value);

/*
 * The same of texts that are not terminated.
 * Threads: the stream's. Errors: as bide_http_client_add. Progress: wait-free.
 */
int bide_http_client_add_slices(bide_http_client *client, bide_slice name, bide_slice value);

/*
 * The server is asked to end the connection after its response. Before the head ends.
 * Threads: the stream's. Progress: wait-free.
 */
void bide_http_client_close_after(bide_http_client *client);

/*
 * The request asks to change to that protocol: "Connection: Upgrade", "Upgrade: `protocol`". If the
 * response is 101, bide_http_client_reader has what came behind it.
 * Threads: the stream's. Errors: as bide_http_client_add. Progress: wait-free.
 */
int bide_http_client_request_upgrade(bide_http_client *client, const char *protocol);

/*
 * Ends the head of a request whose body has `length` bytes; BIDE_HTTP_UNKNOWN: it goes in chunks. The
 * first write does this, with BIDE_HTTP_UNKNOWN, if nobody has, and receive for a request without a body.
 * Threads: the stream's. Errors: -EINVAL (it has ended), -EMSGSIZE (it does not fit).
 * Progress: wait-free.
 */
int bide_http_client_finish_head(bide_http_client *client, uint64_t length);

/*
 * Writes bytes of the request's body, which stay until it has ended. They are gathered in the buffer
 * until it is full: bide_http_client_flush, or receive. One at a time, but beside reads.
 * Threads: the stream's. Errors: -EMSGSIZE (more than was promised), -EINVAL (it has ended), those of the
 * stream: the server may have responded all the same. Suspends: if they do not fit into the buffer and
 * the server is slow. Cancel-safe: no, the connection cannot be used any more. Progress: that of the
 * stream.
 */
BIDE_KEY_SCOPED(bide_http_client_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_client_write(bide_http_client *client, const void *data, size_t size);

/*
 * Sends what was gathered.
 * Threads: the stream's. Errors: as bide_http_client_write. Suspends: if the server is slow.
 * Cancel-safe: yes, what is not sent stays gathered. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_client_flush(bide_http_client *client);

/*
 * Adds a trailer, behind a body that goes in chunks and all of which was written.
 * Threads: the stream's. Errors: -EINVAL (the body does not go in chunks, or it is not allowed in a
 * field), -EMSGSIZE (it does not fit). Progress: wait-free.
 */
int bide_http_client_add_trailer(bide_http_client *client, const char *name, const char *value);

/*
 * Sends the head, which has "Expect: 100-continue" among its fields, and waits for the server to want the
 * body: then client->continues is true. If it is false the response is there, and no body is to be
 * written. If a deadline ends this with -ETIMEDOUT, the body may be written.
 * Threads: the stream's. Errors: as bide_http_client_recv. Suspends: if the server has not answered.
 * Cancel-safe: yes. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_client_continue(bide_http_client *client);

/*
 * Ends the request, sends the rest of it, and waits for the response's head, which is client->response then. After
 * -EPIPE on a connection that was used before, the request may be tried on another connection.
 * Threads: the stream's. Errors: -EBADMSG (the input is no response, is ambiguous, or has more than 32 responses of 1xx),
 * -EMSGSIZE (the head is too long, or has too many fields), -EFBIG (the body would be too long), -EPIPE (the server has
 * closed the connection before the response), -ENODATA (it has closed it in the middle of the head), -EINVAL (less was
 * written than promised, or a write never began, and nothing of a response is there), -ECANCELED, -ETIMEDOUT, those of the
 * stream.
 * Suspends: if the server has not answered. Cancel-safe: yes, it may be waited for again.
 * Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_client_recv(bide_http_client *client);

/*
 * Reads what there is of the response's body, at least one byte and at most `size`, 1 or more;
 * client->count says how many bytes, 0 at the end.
 * Threads: the stream's. Errors: -EBADMSG (the body is spoilt), -EFBIG (longer than it may be), -EMSGSIZE
 * (the trailers are), -ENODATA (the connection has ended before), -ECANCELED, -ETIMEDOUT, those of the
 * stream. Suspends: if nothing is buffered. Cancel-safe: yes, by `count`. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(bide_http_client_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_client_read(bide_http_client *client, void *data, size_t size);

/*
 * The value of the first field of the response of that name, and of the trailers, which are there when
 * the body has ended; its data is NULL if there is none.
 * Threads: the stream's. Progress: wait-free, linear in the fields.
 */
bide_slice bide_http_client_field(const bide_http_client *client, const char *name);
bide_slice bide_http_client_trailer(const bide_http_client *client, const char *name);

/*
 * All trailers of the response, `*count` of them, which are there when the body has ended.
 * Threads: the stream's. Progress: wait-free.
 */
BIDE_INLINE const bide_http_field *bide_http_client_trailers(const bide_http_client *client,
                                                             size_t *count)
{
    const bide_http_input *input = &client->input;
    *count = input->trailer_count;
    return input->fields + input->field_count;
}

/*
 * Has the response been read to its end, and may another request follow on the connection? The stream itself may
 * hold bytes that the server has sent since: over TLS, see bide_tls_has_input.
 * Threads: the stream's. Progress: wait-free.
 */
bool bide_http_client_is_reusable(const bide_http_client *client);

/*
 * The connection's reader and writer, after 101, or 2xx in response to CONNECT.
 * Threads: the stream's. Progress: wait-free.
 */
BIDE_INLINE bide_reader *bide_http_client_reader(bide_http_client *client)
{
    return &client->reader;
}

BIDE_INLINE bide_writer *bide_http_client_writer(bide_http_client *client)
{
    return &client->writer;
}

BIDE_EXTERN_C_END

#endif
