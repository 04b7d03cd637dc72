/*
 * The operations of HTTP, of its connections and of WebSockets, over pipes in memory: each is awaited without the struct
 * that it may go without, before a large await, and with it in a function whose result takes over the memory of its
 * variables. The handlers of the server are async functions. Translated by bidec.
 */
#define _GNU_SOURCE
#include "operations.h"

#include "bide/bide.h"
#include "bide/http.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    struct memory_pair pair;
    bide_http_server http;
    bide_http_log log;
    bide_descriptor log_file, page;
    bide_websocket websocket; /* the server's */
    char memory[2][4096];
    void *room;
} objects;

/* ---- Handlers ---- */

async struct big echo(bide_http_exchange *exchange)
{
    char bytes[32];
    do {
        OWN(bide_http_read, exchange, bytes, sizeof bytes);
        size_t count = exchange->count;
        OWN(bide_http_write, exchange, bytes, count);
        OWN(bide_http_flush, exchange);
        if (count == 0)
            break;
    } while (true);
    return filled(0);
}

async struct big respond(bide_http_exchange *exchange)
{
    OWN(bide_http_respond, exchange, "hello", 5);
    return filled(0);
}

async struct big send_page(bide_http_exchange *exchange)
{
    assert_int_equal(bide_http_start_response(exchange, 10000), 0);
    OWN(bide_http_write_file, exchange, &objects.page, 0, 5);
    OWN(bide_http_write_file, exchange, &objects.page, 5,
        9995); /* more than fits into the buffer */
    return filled(0);
}

async struct big read_form(bide_http_exchange *exchange)
{
    char form[32];
    NAMED(bide_http_body_operation, bide_http_read_body, own.count, 5, exchange, form, sizeof form);
    assert_memory_equal(form, "a=b+c", 5);
    OWN(bide_http_respond, exchange, "hello", 5);
    return filled(0);
}

async struct big read_parts(bide_http_exchange *exchange)
{
    bide_http_multipart multipart;
    char memory[1024], bytes[32];
    assert_int_equal(
        bide_http_multipart_init(&multipart, exchange, memory, sizeof memory, NULL), 0);
    OWN(bide_http_next_part, &multipart);
    assert_true(multipart.has_part);
    assert_memory_equal(multipart.name.data, "f", 1);
    OWN(bide_http_read_part, &multipart, bytes, sizeof bytes);
    assert_int_equal(multipart.count, 5);
    assert_memory_equal(bytes, "hello", 5);
    OWN(bide_http_next_part, &multipart);
    assert_false(multipart.has_part);
    OWN(bide_http_respond, exchange, "hello", 5);
    return filled(0);
}

async struct big send_events(bide_http_exchange *exchange)
{
    static const bide_http_field hint = {{"Link", 4}, {"</a>", 4}};
    bide_http_event event = {.data = {"1", 1}};
    OWN(bide_http_send_interim, exchange, 103, &hint, 1);
    assert_int_equal(bide_http_start_events(exchange), 0);
    BOTH(bide_http_event_operation, bide_http_send_event, exchange, &event);
    return filled(0);
}

/* Another protocol: sends five bytes back. */
async struct big upgrade(bide_http_exchange *exchange)
{
    OWN(bide_http_upgrade, exchange, "five");
    bide_reader *reader = bide_http_reader(exchange);
    bide_writer *writer = bide_http_writer(exchange);
    char bytes[5];
    VALUE(bide_reader_read_exact, 5, reader, bytes, sizeof bytes);
    VALUE(bide_writer_write, 5, writer, bytes, 5);
    VALUE(bide_writer_flush, 0, writer);
    return filled(0);
}

/* ---- WebSockets: both ends ---- */

/* Compressed messages, if the library has zlib: here without an agreement to compress. */
async void talk_by_deflate(bide_websocket *websocket)
{
    bide_websocket_deflate deflate;
    char bytes[64];
    if (bide_websocket_deflate_init(&deflate, NULL) == -ENOTSUP)
        return;
    assert_int_equal(bide_websocket_deflate_start(&deflate, websocket), 0);
    BOTH(bide_websocket_deflate_send_operation, bide_websocket_deflate_send, &deflate,
         BIDE_WEBSOCKET_TEXT, "plain", 5);
    for (int i = 0; i < 2; i++)
        NAMED(bide_websocket_deflate_recv_operation, bide_websocket_deflate_recv, own.count, 5,
              &deflate, bytes, sizeof bytes);
    assert_memory_equal(bytes, "plain", 5);
    bide_websocket_deflate_destroy(&deflate);
}

async int talk(bide_websocket *websocket)
{
    await talk_by_deflate(websocket);
    char bytes[64];
    bide_websocket_send_operation fragments, all;
    BOTH(bide_websocket_send_operation, bide_websocket_send, websocket, BIDE_WEBSOCKET_TEXT,
         "hello", 5);
    BOTH(bide_websocket_send_operation, bide_websocket_put, websocket, BIDE_WEBSOCKET_BINARY,
         "12345", 5);
    BOTH(bide_websocket_send_operation, bide_websocket_flush, websocket);
    BOTH(bide_websocket_send_operation, bide_websocket_send_ping, websocket, "p", 1);
    OWN(bide_websocket_send_fragment, &fragments, websocket, BIDE_WEBSOCKET_TEXT, "abc", 3, false);
    OWN(bide_websocket_send_fragment, &fragments, websocket, BIDE_WEBSOCKET_CONTINUATION, "de", 2,
        true);
    NAMED(bide_websocket_recv_operation, bide_websocket_recv, own.count, 5, websocket, bytes,
          sizeof bytes);
    assert_memory_equal(bytes, "hello", 5);
    NAMED(bide_websocket_recv_operation, bide_websocket_recv, own.kind, BIDE_WEBSOCKET_TEXT,
          websocket, bytes, sizeof bytes);
    NAMED(bide_websocket_recv_operation, bide_websocket_recv, own.kind, BIDE_WEBSOCKET_BINARY,
          websocket, bytes, sizeof bytes);
    assert_memory_equal(bytes, "12345", 5);
    NAMED(bide_websocket_recv_operation, bide_websocket_recv, own.count, 5, websocket, bytes,
          sizeof bytes);
    size_t count = 0;
    for (bool is_last = false; !is_last;) {
        bide_websocket_recv_operation receive;
        OWN(bide_websocket_recv_piece, &receive, websocket);
        memcpy(bytes + count, receive.data, receive.count);
        count += receive.count;
        is_last = receive.is_last;
    }
    assert_int_equal(count, 5);
    assert_memory_equal(bytes, "abcde", 5);
    OWN(bide_websocket_send, &all, websocket, BIDE_WEBSOCKET_TEXT, "end",
        3); /* both have received all */
    NAMED(bide_websocket_recv_operation, bide_websocket_recv, own.count, 3, websocket, bytes,
          sizeof bytes);
    return 0;
}

async struct big chat(bide_http_exchange *exchange)
{
    static const bide_websocket_options options;
    if (exchange->request.path.size == 5) { /* "/chat", or with a name: "/named" */
        VALUE(bide_http_accept_websocket, 0, exchange, &objects.websocket, &options, NULL);
    } else {
        NAMED(bide_http_websocket_operation, bide_http_accept_websocket, own.status, 0, exchange,
              &objects.websocket, &options, NULL);
    }
    assert_int_equal(await talk(&objects.websocket), 0);
    if (exchange->request.path.size == 5)
        VALUE(bide_websocket_close, 0, &objects.websocket, BIDE_WEBSOCKET_NORMAL, "done");
    else
        NAMED(bide_websocket_close_operation, bide_websocket_close, objects.websocket.end.is_clean,
              true, &objects.websocket, BIDE_WEBSOCKET_NORMAL, "done");
    return filled(0);
}

async struct big open_chat(const char *path)
{
    static char memory[BIDE_HTTP_CLIENT_MEMORY];
    static const bide_websocket_options options;
    bide_http_client client;
    bide_websocket websocket;
    assert_int_equal(bide_http_client_init(&client, bide_memory_stream(&objects.pair.client),
                                           memory, sizeof memory, NULL),
                     0);
    if (strlen(path) == 5) {
        VALUE(bide_http_open_websocket, 0, &client, &websocket, &options, path, "here", NULL);
    } else {
        NAMED(bide_http_websocket_operation, bide_http_open_websocket, own.status, 0, &client,
              &websocket, &options, path, "here", NULL);
    }
    assert_int_equal(await talk(&websocket), 0);
    bide_websocket_close_operation close;
    OWN(bide_websocket_close, &close, &websocket, BIDE_WEBSOCKET_NORMAL, "done");
    assert_true(websocket.end.is_clean);
    assert_int_equal(await bide_stream_shutdown_output(bide_memory_stream(&objects.pair.client)),
                     0);
    return filled(7);
}

/* ---- The handlers' frames ---- */

#define HANDLER(name)                                          \
    struct name##_handler {                                    \
        bide_http_exchange exchange;                           \
        async_frame(name) frame;                               \
    };                                                         \
    bide_coroutine(name##_body)                                \
    {                                                          \
        bide_begin(name##_body, struct name##_handler *self);  \
        bide_try(async_##name(&self->frame, &self->exchange)); \
        check_filled(&self->frame.result, 0);                  \
        bide_end();                                            \
    }
HANDLER(echo)
HANDLER(respond)
HANDLER(send_page)
HANDLER(upgrade)
HANDLER(chat)
HANDLER(read_form)
HANDLER(read_parts)
HANDLER(send_events)

static const bide_http_route routes[] = {
    {"POST", "/echo", {&echo_body, sizeof(struct echo_handler)}, NULL},
    {"GET", "/respond", {&respond_body, sizeof(struct respond_handler)}, NULL},
    {"GET", "/page", {&send_page_body, sizeof(struct send_page_handler)}, NULL},
    {"GET", "/upgrade", {&upgrade_body, sizeof(struct upgrade_handler)}, NULL},
    {"GET", "/chat", {&chat_body, sizeof(struct chat_handler)}, NULL},
    {"POST", "/form", {&read_form_body, sizeof(struct read_form_handler)}, NULL},
    {"POST", "/parts", {&read_parts_body, sizeof(struct read_parts_handler)}, NULL},
    {"GET", "/events", {&send_events_body, sizeof(struct send_events_handler)}, NULL},
    {"GET", "/named", {&chat_body, sizeof(struct chat_handler)}, NULL},
};
enum { ROUTES = sizeof routes / sizeof *routes };

/* ---- Connections ---- */

/* Serves without a struct, and with one. */
async int hidden_serve(void)
{
    int status = await bide_http_serve(&objects.http, bide_memory_stream(&objects.pair.server),
                                       objects.room);
    await large();
    return status;
}

async struct big named_serve(void)
{
    bide_http_connection connection;
    int status = await bide_http_serve(&connection, &objects.http,
                                       bide_memory_stream(&objects.pair.server), objects.room);
    await large();
    return filled(status);
}

/* The client: its struct is beside the result. */
async struct big request(void)
{
    static char memory[BIDE_HTTP_CLIENT_MEMORY];
    bide_http_client client;
    char bytes[32];
    assert_int_equal(bide_http_client_init(&client, bide_memory_stream(&objects.pair.client),
                                           memory, sizeof memory, NULL),
                     0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bide_http_client_start_request(&client, "POST", "/echo", "here"), 0);
        if (i == 2) {
            assert_int_equal(bide_http_client_add(&client, "Expect", "100-continue"), 0);
            assert_int_equal(bide_http_client_finish_head(&client, 5), 0);
            OWN(bide_http_client_continue, &client);
            assert_true(client.continues);
        }
        OWN(bide_http_client_write, &client, "hello", 5);
        OWN(bide_http_client_flush, &client);
        OWN(bide_http_client_recv, &client);
        assert_int_equal(client.response.status, 200);
        OWN(bide_http_client_read, &client, bytes, sizeof bytes);
        assert_int_equal(client.count, 5);
        assert_memory_equal(bytes, "hello", 5);
        assert_int_equal(await bide_http_client_read(&client, bytes, sizeof bytes), 0);
        assert_int_equal(client.count, 0);
    }
    static const char *const paths[] = {"/respond", "/page"};
    for (int i = 0; i < 2; i++) {
        size_t size = 0;
        assert_int_equal(bide_http_client_start_request(&client, "GET", paths[i], "here"), 0);
        OWN(bide_http_client_recv, &client);
        do {
            assert_int_equal(await bide_http_client_read(&client, bytes, sizeof bytes), 0);
            size += client.count;
        } while (client.count > 0);
        assert_int_equal(size, i == 0 ? 5 : 10000);
    }
    static const struct {
        const char *path, *type, *body;
    } forms[] = {{"/form", "application/x-www-form-urlencoded", "a=b+c"},
                 {"/parts", "multipart/form-data; boundary=x",
                  "--x\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nhello\r\n--x--\r\n"}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bide_http_client_start_request(&client, "POST", forms[i].path, "here"), 0);
        assert_int_equal(bide_http_client_add(&client, "Content-Type", forms[i].type), 0);
        assert_int_equal(bide_http_client_finish_head(&client, strlen(forms[i].body)), 0);
        OWN(bide_http_client_write, &client, forms[i].body, strlen(forms[i].body));
        OWN(bide_http_client_recv, &client);
        assert_int_equal(client.response.status, 200);
        OWN(bide_http_client_read, &client, bytes, sizeof bytes);
        assert_int_equal(client.count, 5);
        assert_int_equal(await bide_http_client_read(&client, bytes, sizeof bytes), 0);
        assert_int_equal(client.count, 0);
    }
    size_t events = 0;
    assert_int_equal(bide_http_client_start_request(&client, "GET", "/events", "here"), 0);
    OWN(bide_http_client_recv, &client);
    assert_int_equal(client.response.status, 200);
    do {
        assert_int_equal(await bide_http_client_read(&client, bytes, sizeof bytes), 0);
        events += client.count;
    } while (client.count > 0);
    assert_int_equal(events, 2 * strlen("data: 1\n\n"));
    bide_stream_operation end;
    OWN(bide_stream_shutdown_output, &end, bide_memory_stream(&objects.pair.client));
    return filled(7);
}

async struct big request_upgrade(void)
{
    static const char head[] =
        "GET /upgrade HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: five\r\n\r\n";
    bide_stream stream = bide_memory_stream(&objects.pair.client);
    char bytes[512] = "";
    size_t size = 0;
    VALUE(bide_stream_write, (long)sizeof head - 1, stream, head, sizeof head - 1);
    VALUE(bide_stream_write, 5, stream, "54321", 5);
    for (long count;
         (count = await bide_stream_read(stream, bytes + size, sizeof bytes - 1 - size)) > 0;)
        size += (size_t)count, bytes[size] = '\0';
    assert_memory_equal(bytes, "HTTP/1.1 101 ", 13);
    assert_string_equal(bytes + size - 5, "54321");
    VALUE(bide_stream_shutdown_output, 0, stream);
    return filled(7);
}

/* Each server beside a client. */
#define SERVE(serve, expression, client, ...)                                                      \
    do {                                                                                           \
        async_frame(serve) server;                                                                 \
        async_frame(client) peer;                                                                  \
        memory_pair_init(&objects.pair);                                                           \
        assert_int_equal(await all(async_##serve(&server), async_##client(&peer __VA_ARGS__)), 0); \
        expression;                                                                                \
        check_filled(&peer.result, 7);                                                             \
    } while (0)

async int serve_each(void)
{
    SERVE(hidden_serve, assert_int_equal(server.result, 0), request, );
    SERVE(named_serve, check_filled(&server.result, 0), request, );
    SERVE(named_serve, check_filled(&server.result, 0), open_chat, , "/chat");
    SERVE(hidden_serve, assert_int_equal(server.result, 0), open_chat, , "/named");
    return 1;
}

/* What an upgrade ends with is the client's: it reads to the end of the stream. */
async int serve_upgrade(void)
{
    async_frame(hidden_serve) server;
    bide_stream_operation end;
    int status = await async_hidden_serve(&server);
    OWN(bide_stream_shutdown_output, &end, bide_memory_stream(&objects.pair.server));
    assert_int_equal(server.result, 0);
    return status;
}

async int upgrades(void)
{
    async_frame(request_upgrade) client;
    memory_pair_init(&objects.pair);
    assert_int_equal(await all(serve_upgrade(), async_request_upgrade(&client)), 0);
    check_filled(&client.result, 7);
    return 1;
}

/* ---- A server that accepts, and its log ---- */

async int run_log(void)
{
    int status = await bide_http_log_run(&objects.log);
    await large();
    return status;
}

async int run_server(void)
{
    int status = await bide_http_server_run(&objects.http);
    await large();
    return status;
}

async int use_server(const bide_address *address)
{
    static const char head[] = "GET /respond HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    bide_descriptor client;
    char bytes[512];
    bide_auto_event_waiter flushed;
    assert_int_equal(await bide_connect(&client, address), 0);
    assert_int_equal(await bide_send(&client, head, sizeof head - 1), sizeof head - 1);
    assert_in_range(await bide_recv(&client, bytes, sizeof bytes), 13, sizeof bytes);
    assert_memory_equal(bytes, "HTTP/1.1 200 ", 13);
    bide_close(&client);
    bide_http_server_shut_down(&objects.http, 0);
    VALUE(bide_http_log_flush, 0, &objects.log);
    OWN(bide_http_log_flush, &flushed, &objects.log);
    bide_http_log_close(&objects.log);
    return 0;
}

async struct big accepts(void)
{
    bide_address address;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(await bide_listen(&objects.http.server.listener, &address, 8), 0);
    assert_int_equal(bide_local_address(&objects.http.server.listener, &address), 0);
    assert_int_equal(await all(run_log(), run_server(), use_server(&address)), 0);
    bide_close(&objects.http.server.listener);
    return filled(0);
}

/* ---- An agent ---- */

static struct {
    bide_http_agent *agent;
    bide_http_server http;
    char url[64];
} agents;

async struct big fetching(void)
{
    bide_http_fetch fetch;
    char page[32];
    assert_int_equal(await bide_http_get(&fetch, agents.agent, agents.url, page, sizeof page), 0);
    await large();
    assert_int_equal(fetch.response.status, 200);
    assert_int_equal(fetch.count, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bide_http_fetch_init(&fetch, agents.agent, "POST", agents.url), 0);
        if (i == 0) {
            assert_int_equal(bide_http_fetch_set_body(&fetch, "hello", 5), 0);
        } else {
            assert_int_equal(await bide_http_fetch_start(&fetch, 5), 0);
            await large();
            assert_int_equal(await bide_http_fetch_write(&fetch, "hello", 5), 0);
            assert_int_equal(fetch.count, 5);
            await large();
        }
        assert_int_equal(await bide_http_fetch_send(&fetch), 0);
        await large();
        assert_int_equal(await bide_http_fetch_read(&fetch, page, sizeof page), 0);
        await large();
        assert_int_equal(fetch.count, 5);
        assert_memory_equal(page, "hello", 5);
        assert_int_equal(await bide_http_fetch_read(&fetch, page, sizeof page), 0);
        assert_int_equal(fetch.count, 0);
        bide_http_fetch_close(&fetch);
    }
    await large();
    return filled(9);
}

/* ---- */

static bide_loop *loop;

static void open_temporary(bide_descriptor *descriptor, size_t size)
{
    char path[] = "/tmp/bide_http_operations_XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    bide_descriptor_init(descriptor, fd);
}

static int set_up(void **state)
{
    (void)state;
    static bide_http_router router;
    bide_http_router_init(&router, routes, ROUTES);
    memset(&objects, 0, sizeof objects);
    open_temporary(&objects.page, 10000);
    open_temporary(&objects.log_file, 0);
    bide_http_log_init(&objects.log, &objects.log_file, objects.memory, sizeof objects.memory,
                       BIDE_HTTP_LOG_COMMON);
    bide_http_options options = {.select_handler = bide_http_route_request,
                                 .argument = &router,
                                 .max_frame_size = router.frame,
                                 .log = &objects.log,
                                 .max_connections = 2};
    if (bide_http_server_init(&objects.http, &options) < 0)
        return -1;
    objects.room = malloc(bide_http_memory_size(&objects.http));
    return objects.room != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(objects.room);
    bide_close(&objects.page);
    bide_close(&objects.log_file);
    return 0;
}

static int create_loop(void **state)
{
    (void)state;
    return bide_loop_create(&loop, NULL);
}

static int destroy_loop(void **state)
{
    (void)state;
    bide_loop_destroy(loop);
    return 0;
}

#define TEST(name, expression)                                           \
    static void test_##name(void **state)                                \
    {                                                                    \
        static async_frame(name) frame;                                  \
        (void)state;                                                     \
        memset(&frame, 0xd5, sizeof frame);                              \
        assert_int_equal(bide_loop_wait(loop, async_##name(&frame)), 0); \
        expression;                                                      \
    }
TEST(serve_each, assert_int_equal(frame.result, 1))
TEST(upgrades, assert_int_equal(frame.result, 1))
TEST(accepts, check_filled(&frame.result, 0))

static void test_agent(void **state)
{
    static async_frame(fetching) frame;
    bide_http_options options = {.handler = {&echo_body, sizeof(struct echo_handler)}, .max_connections = 4};
    bide_http_agent_options alone = {.ignores_environment = true};
    bide_io_operation listen;
    bide_event_waiter wait;
    bide_spawned running;
    bide_address address;
    char text[40];
    (void)state;
    assert_int_equal(bide_http_server_init(&agents.http, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(
        bide_loop_wait(loop, bide_listen(&listen, &agents.http.server.listener, &address, 4)), 0);
    assert_int_equal(bide_local_address(&agents.http.server.listener, &address), 0);
    bide_address_print(&address, text, sizeof text);
    snprintf(agents.url, sizeof agents.url, "http://%s/", text);
    bide_spawn(&running, bide_loop_context(loop), bide_http_server_run(&agents.http));
    assert_int_equal(bide_http_agent_create(&agents.agent, &alone), 0);
    memset(&frame, 0xd5, sizeof frame);
    assert_int_equal(bide_loop_wait(loop, async_fetching(&frame)), 0);
    check_filled(&frame.result, 9);
    bide_http_agent_destroy(agents.agent);
    assert_int_equal(agents.http.stats.connections, 1);
    bide_http_server_shut_down(&agents.http, BIDE_FOREVER);
    assert_int_equal(bide_loop_wait(loop, bide_event_wait(&wait, &running.ended)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_serve_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upgrades, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accepts, set_up, tear_down),
        cmocka_unit_test(test_agent),
    };
    return cmocka_run_group_tests(tests, create_loop, destroy_loop);
}
