/*
 * Uploads of files as multipart bodies, in each world, by HTTP/1.1 and HTTP/2. The coroutine for HTTP/1.1 is the usage in
 * http_multipart_writer.h; the library's server reads the parts. Files of several sizes arrive whole, with a length. A
 * file that shrinks meanwhile ends the request with an error, and the handler too.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include <bide/http.h>
#include <bide/http_multipart_writer.h>
#if HAS_HTTP2
#include <bide/http2.h>
#include <bide/http2_client.h>
#endif

#include <inttypes.h>

enum { LARGE = 8 << 20, SHRINKING = 1 << 20 };

static struct {
    world *world;
    bide_http_server server;
#if HAS_HTTP2
    bide_http2 http2;
    bide_http2_client client2;
    bide_spawned running2;
#endif
    bide_spawned running;
    bide_address address;
    bide_io_operation operation;
    bide_file_operation file_operation;
    bide_descriptor file, socket;
    char *bytes; /* LARGE, of the file */

    /* what the handler has seen */
    unsigned begun, complete;
    int error;       /* of the last body */
    uint64_t length; /* "Content-Length" of the last request */
    uint64_t received;
    bool is_wrong;

    /* a client; both versions are the same but for the names of their calls */
    struct upload {
        bide_task task;
        bide_file_operation read;
        bide_http_client client;
#if HAS_HTTP2
        bide_http2_request request;
#endif
        bide_http_multipart_writer form;
        bide_http_form_part parts[2];
        struct stat about;
        uint64_t length, sent;
        ptrdiff_t count;
        size_t i;
        int code;               /* of the response */
        uint64_t shrinks_at;    /* bytes that are sent before; BIDE_HTTP_UNKNOWN: it does not shrink */
        int64_t shrinks_to;     /* bytes */
        bool ignores_shrinking; /* and ends the body */
        char text[512];
        char data[5000];
        _Alignas(16) char memory[BIDE_HTTP_CLIENT_MEMORY];
    } upload;
} f;

/* ---- The handler ---- */

struct receiver {
    bide_http_exchange exchange;
    bide_http_multipart parts;
    uint64_t size;
    char text[32];
    char data[3000];
    char memory[1024];
};

static void check_piece(struct receiver *self)
{
    bool is_file = self->parts.filename.data != NULL;
    const char *expected = is_file ? f.bytes : "hello";
    if (!bide_http_is(self->parts.name, is_file ? "file" : "title") ||
        self->size + self->parts.count > (is_file ? LARGE : 5) ||
        memcmp(self->data, expected + self->size, self->parts.count) != 0)
        f.is_wrong = true;
    self->size += self->parts.count;
}

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    f.begun++;
    f.length = self->exchange.request.length;
    f.error = bide_http_multipart_init(&self->parts, &self->exchange, self->memory, sizeof self->memory, NULL);
    while (f.error == 0) {
        bide_await_status(f.error, bide_http_next_part(&self->parts));
        if (f.error < 0 || !self->parts.has_part)
            break;
        self->size = 0;
        do {
            bide_await_status(f.error, bide_http_read_part(&self->parts, self->data, sizeof self->data));
            if (f.error < 0)
                break;
            check_piece(self);
        } while (self->parts.count != 0);
    }
    if (f.error < 0)
        bide_return(f.error);
    f.complete++;
    f.received = self->size;
    int size = snprintf(self->text, sizeof self->text, "%" PRIu64 "\n", self->size);
    bide_try(bide_http_respond(&self->exchange, self->text, (size_t)size));
    bide_end();
}

/* ---- The client ---- */

static bool shrinks_now(struct upload *self)
{
    bool now = self->sent >= self->shrinks_at;
    if (now)
        self->shrinks_at = BIDE_HTTP_UNKNOWN;
    return now;
}

static size_t piece_size(const struct upload *self)
{
    uint64_t left = self->parts[1].size - self->sent;
    return left < sizeof self->data ? (size_t)left : sizeof self->data;
}

bide_coroutine(upload_body)
{
    bide_begin(upload_body, struct upload * self);
    int status = bide_http_client_init(&self->client, bide_socket_stream(&f.socket), self->memory, sizeof self->memory, NULL);
    if (status < 0)
        bide_return(status);
    bide_try(bide_stat(&self->read, &f.file, &self->about));
    self->parts[0] = (bide_http_form_part){.name = "title", .size = 5};
    self->parts[1] = (bide_http_form_part){
        .name = "file", .filename = "a.png", .type = "image/png", .size = (uint64_t)self->about.st_size};
    if ((status = bide_http_multipart_writer_init(&self->form)) < 0 ||
        (status = bide_http_multipart_length(&self->form, self->parts, 2, &self->length)) < 0)
        bide_return(status);
    if ((status = bide_http_client_start_request(&self->client, "POST", "/", "a")) < 0 ||
        (status = bide_http_client_add(&self->client, "Content-Type", self->form.type)) < 0 ||
        (status = bide_http_client_finish_head(&self->client, self->length)) < 0)
        bide_return(status);
    for (self->i = 0; self->i < 2; self->i++) {
        self->count = bide_http_multipart_begin_part(&self->form, &self->parts[self->i], self->text, sizeof self->text);
        if (self->count < 0)
            bide_return((int)self->count);
        bide_try(bide_http_client_write(&self->client, self->text, (size_t)self->count));
        if (self->i == 0) {
            bide_try(bide_http_client_write(&self->client, "hello", 5));
            continue;
        }
        for (self->sent = 0; self->sent < self->parts[1].size; self->sent += self->read.operation.count) {
            if (shrinks_now(self))
                bide_try(bide_truncate(&self->read, &f.file, self->shrinks_to));
            bide_try(bide_read_at(&self->read, &f.file, self->data, piece_size(self), (int64_t)self->sent));
            if (self->read.operation.count == 0) {
                if (self->ignores_shrinking)
                    break;
                bide_return(-ENODATA);
            }
            bide_try(bide_http_client_write(&self->client, self->data, self->read.operation.count));
        }
    }
    self->count = bide_http_multipart_end(&self->form, self->text, sizeof self->text);
    bide_try(bide_http_client_write(&self->client, self->text, (size_t)self->count));
    bide_try(bide_http_client_recv(&self->client));
    self->code = self->client.response.status;
    bide_finally();
    bide_close(&f.socket);
    bide_end();
}

#if HAS_HTTP2
bide_coroutine(upload2_body)
{
    bide_begin(upload2_body, struct upload * self);
    int status;
    bide_try(bide_stat(&self->read, &f.file, &self->about));
    self->parts[0] = (bide_http_form_part){.name = "title", .size = 5};
    self->parts[1] = (bide_http_form_part){
        .name = "file", .filename = "a.png", .type = "image/png", .size = (uint64_t)self->about.st_size};
    if ((status = bide_http_multipart_writer_init(&self->form)) < 0 ||
        (status = bide_http_multipart_length(&self->form, self->parts, 2, &self->length)) < 0)
        bide_return(status);
    if ((status = bide_http2_request_init(&self->request, &f.client2, "POST", "/", "a")) < 0 ||
        (status = bide_http2_request_add(&self->request, "Content-Type", self->form.type)) < 0 ||
        (status = bide_http2_request_finish_head(&self->request, self->length)) < 0)
        bide_return(status);
    for (self->i = 0; self->i < 2; self->i++) {
        self->count = bide_http_multipart_begin_part(&self->form, &self->parts[self->i], self->text, sizeof self->text);
        if (self->count < 0)
            bide_return((int)self->count);
        bide_try(bide_http2_request_write(&self->request, self->text, (size_t)self->count));
        if (self->i == 0) {
            bide_try(bide_http2_request_write(&self->request, "hello", 5));
            continue;
        }
        for (self->sent = 0; self->sent < self->parts[1].size; self->sent += self->read.operation.count) {
            if (shrinks_now(self))
                bide_try(bide_truncate(&self->read, &f.file, self->shrinks_to));
            bide_try(bide_read_at(&self->read, &f.file, self->data, piece_size(self), (int64_t)self->sent));
            if (self->read.operation.count == 0) {
                if (self->ignores_shrinking)
                    break;
                bide_return(-ENODATA);
            }
            bide_try(bide_http2_request_write(&self->request, self->data, self->read.operation.count));
        }
    }
    self->count = bide_http_multipart_end(&self->form, self->text, sizeof self->text);
    bide_try(bide_http2_request_write(&self->request, self->text, (size_t)self->count));
    bide_try(bide_http2_request_recv(&self->request));
    self->code = self->request.response.status;
    bide_finally();
    bide_http2_request_close(&self->request);
    bide_http2_client_shut_down(&f.client2);
    bide_end();
}
#endif

/* ---- A server and a file ---- */

static void begin(void **state)
{
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    f.bytes = malloc(LARGE);
    assert_non_null(f.bytes);
    for (size_t i = 0; i < LARGE; i++) /* (with lines that begin like a delimiter) */
        f.bytes[i] = i % 1000 < 4 ? "\r\n--"[i % 1000] : (char)(i * 31 + i / 251);
    assert_int_equal(bide_http_server_init(&f.server, &(bide_http_options){.handler = {&receiver_body, sizeof(struct receiver)},
                                                                           .max_body = 2 * LARGE,
                                                                           .max_connections = 10}), 0);
#if HAS_HTTP2
    assert_int_equal(bide_http2_init(&f.http2, &f.server, &(bide_http2_options){.is_plain = true}), 0);
#endif
    assert_int_equal(bide_address_ip(&f.address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f.world, bide_listen(&f.operation, &f.server.server.listener, &f.address, 10)), 0);
    assert_int_equal(bide_local_address(&f.server.server.listener, &f.address), 0);
    char name[] = "/tmp/bide_upload_XXXXXX";
    bide_descriptor_init_closed(&f.file);
    int fd = f.world->memory == NULL ? mkstemp(name) : -1;
    if (fd >= 0)
        close(fd);
    assert_int_equal(world_wait(f.world, bide_open(&f.file_operation, &f.file, name, O_RDWR | O_CREAT, 0600)), 0);
    assert_int_equal(world_wait(f.world, bide_unlink(&f.file_operation, name, 0)), 0);
    bide_spawn(&f.running, f.world->context, bide_http_server_run(&f.server));
}

static void wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &spawned->ended)), 0);
}

static void end(void)
{
    bide_http_server_shut_down(&f.server, BIDE_FOREVER);
    wait_for(&f.running);
    assert_int_equal(f.running.root.status, 0);
    assert_int_equal(f.server.stats.live, 0);
    bide_close(&f.file);
    free(f.bytes);
}

static void make_file(size_t size)
{
    assert_int_equal(world_wait(f.world, bide_truncate(&f.file_operation, &f.file, 0)), 0);
    if (size != 0)
        assert_int_equal(world_wait(f.world, bide_write_at(&f.file_operation, &f.file, f.bytes, size, 0)), 0);
    memset(&f.upload, 0, sizeof f.upload);
    f.upload.shrinks_at = BIDE_HTTP_UNKNOWN;
}

/* Sends the file over a connection of its own. Returns the client's status. */
static int send_file(int version)
{
    bide_descriptor_init_closed(&f.socket);
    assert_int_equal(world_wait(f.world, bide_connect(&f.operation, &f.socket, &f.address)), 0);
    if (version == 1)
        return world_wait(f.world, bide_task_init(&f.upload.task, &upload_body));
#if HAS_HTTP2
    assert_int_equal(bide_http2_client_init(&f.client2, bide_socket_stream(&f.socket), NULL), 0);
    bide_spawn(&f.running2, f.world->context, bide_http2_client_run(&f.client2));
    int status = world_wait(f.world, bide_task_init(&f.upload.task, &upload2_body));
    wait_for(&f.running2);
    assert_int_equal(f.running2.root.status, 0);
    bide_http2_client_destroy(&f.client2);
    bide_close(&f.socket);
    return status;
#else
    return -ENOTSUP;
#endif
}

/* ---- Tests ---- */

enum { VERSIONS = 1 + HAS_HTTP2 };

static void files_arrive_whole(void **state)
{
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, LARGE};
    begin(state);
    for (int version = 1; version <= VERSIONS; version++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned complete = f.complete;
            make_file(sizes[i]);
            assert_int_equal(send_file(version), 0);
            assert_int_equal(f.upload.code, 200);
            assert_int_equal(f.complete, complete + 1);
            assert_int_equal(f.error, 0);
            assert_int_equal(f.received, sizes[i]);
            assert_int_equal(f.length, f.upload.length);
            assert_true(f.length > sizes[i] && f.length < sizes[i] + 1000);
            assert_false(f.is_wrong);
        }
    end();
}

/*
 * The file loses its second half, or all bytes, when its first quarter was sent. The client notices that, or ends the body,
 * which is shorter than promised then.
 */
static void a_file_that_shrinks_is_an_error(void **state)
{
    for (int version = 1; version <= VERSIONS; version++)
        for (int i = 0; i < 4; i++) {
            begin(state);
            make_file(SHRINKING);
            f.upload.shrinks_at = SHRINKING / 4;
            f.upload.shrinks_to = i % 2 == 0 ? SHRINKING / 2 : 0;
            f.upload.ignores_shrinking = i >= 2;
            assert_int_equal(send_file(version), i < 2 ? -ENODATA : -EINVAL);
            assert_int_equal(f.upload.code, 0);
            end(); /* the handler has ended */
            assert_int_equal(f.begun, 1);
            assert_int_equal(f.complete, 0);
            /* (a stream is reset, and its handler is cancelled) */
            assert_true(version == 1 ? f.error == -ENODATA : f.error == -ECONNRESET || f.error == -ECANCELED);
            assert_false(f.is_wrong);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(files_arrive_whole),
        world_test(a_file_that_shrinks_is_an_error),
    };
    return cmocka_run_group_tests_name("http_upload", tests, NULL, NULL);
}
