/*
 * HTTP agents with servers that follow a script: connections that are kept, redirects, retries, compressed bodies,
 * proxies and tunnels, limits, and requests that end early in each place.
 */
#define _GNU_SOURCE
#include "../io/runner.h"
#include "bide/http.h"
#include "http_compressed.h"

#include "../../src/http/decode.h"

#include <stdio.h>

enum { SERVERS = 2, SLOTS = 16, ANSWERS = 40, ROOM = 8192 };

#define OK(text) "HTTP/1.1 200 OK\r\nContent-Length: " text

/* ---- The servers ---- */

struct peer {
    bide_connection connection;
    bide_io_operation operation;
    char text[ROOM];
    size_t size;
    unsigned turn, number;
    bool is_last;
};

static struct {
    world *world;
    bide_server servers[SERVERS];
    bide_spawned running[SERVERS];
    struct peer slots[SERVERS][SLOTS];
    char origins[SERVERS][40]; /* "http://127.0.0.1:1234" */
    struct answer {
        const char *text; /* NULL: none, and the connection ends */
        size_t size;
        bool closes; /* after it */
    } answers[ANSWERS];
    bool answers_by_path;
    unsigned answer_count, turn, connections;
    char requests[ANSWERS][ROOM];
    unsigned on[ANSWERS]; /* the number of its connection */
    bide_http_agent *agent;
    bide_http_fetch fetch;
    char body[4000];
} f;

/* The whole request is there. */
static bool is_complete(const struct peer *self)
{
    const char *body = strstr(self->text, "\r\n\r\n");
    if (body == NULL)
        return false;
    const char *length = strcasestr(self->text, "\r\nContent-Length: ");
    size_t size = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
    return self->size - (size_t)(body + 4 - self->text) >= size;
}

bide_coroutine(peer_body)
{
    bide_begin(peer_body, struct peer * self);
    self->number = f.connections++;
    for (;;) {
        self->size = 0;
        self->text[0] = '\0';
        while (!is_complete(self)) {
            bide_try(bide_recv(&self->operation, &self->connection.socket, self->text + self->size,
                               sizeof self->text - 1 - self->size));
            if (self->operation.count == 0)
                bide_return(0);
            self->size += self->operation.count;
            self->text[self->size] = '\0';
        }
        self->turn = f.turn++;
        assert_true(self->turn < f.answer_count);
        strcpy(f.requests[self->turn], self->text);
        f.on[self->turn] = self->number;
        if (f.answers[self->turn].size != 0)
            bide_try(bide_send(&self->operation, &self->connection.socket,
                               f.answers[self->turn].text, f.answers[self->turn].size));
        if (f.answers[self->turn].closes)
            break;
    }
    bide_end();
}

/*
 * Answers "/KIND/TEXT" with the text: by its length, in chunks, or until the end; only half of it; not at all; by a
 * redirect here or to the other server. Or it answers with the compressed text.
 */
static void make_answer(struct peer *self)
{
    char text[100] = "", kind = 'l';
    char path[130];
    assert_int_equal(sscanf(self->text, "GET /%c/%99s HTTP/1.1", &kind, text), 2);
    size_t size = strlen(text);
    self->is_last = strchr("ehn", kind) != NULL;
    switch (kind) {
    case 'c':
        self->size = (size_t)sprintf(self->text,
                                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                     "%zx\r\n%s\r\n0\r\n\r\n",
                                     size, text);
        break;
    case 'e':
        self->size =
            (size_t)sprintf(self->text, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", text);
        break;
    case 'h':
        self->size = (size_t)sprintf(self->text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                                     size + 1, text);
        break;
    case 'n':
        self->size = 0;
        break;
    case 'r':
    case 'x':
        snprintf(path, sizeof path, "/l/%s", text);
        self->size = (size_t)sprintf(
            self->text, "HTTP/1.1 307 There\r\nLocation: %s%s\r\nContent-Length: 4\r\n\r\nbody",
            kind == 'r' ? "" : f.origins[1], path);
        break;
    case 'z':
        self->size = (size_t)sprintf(self->text, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n",
                                     bide_http_has_inflate_ ? "Content-Encoding: gzip\r\n" : "",
                                     sizeof gzipped);
        memcpy(self->text + self->size, gzipped, sizeof gzipped);
        self->size += sizeof gzipped;
        break;
    default:
        self->size = (size_t)sprintf(self->text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                                     size, text);
        break;
    }
}

bide_coroutine(answering_body)
{
    bide_begin(answering_body, struct peer * self);
    for (;;) {
        self->size = 0;
        self->text[0] = '\0';
        while (!is_complete(self)) {
            bide_try(bide_recv(&self->operation, &self->connection.socket, self->text + self->size,
                               sizeof self->text - 1 - self->size));
            if (self->operation.count == 0)
                bide_return(0);
            self->size += self->operation.count;
            self->text[self->size] = '\0';
        }
        make_answer(self);
        if (self->size != 0)
            bide_try(bide_send(&self->operation, &self->connection.socket, self->text, self->size));
        if (self->is_last)
            break;
    }
    bide_end();
}

static void listen_at(int i)
{
    bide_io_operation operation;
    bide_address address;
    char text[64];
    bide_server_options options = {.body = f.answers_by_path ? &answering_body : &peer_body,
                                   .size = sizeof(struct peer),
                                   .max_connections = SLOTS,
                                   .slots = f.slots[i]};
    assert_int_equal(bide_server_init(&f.servers[i], &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(
        world_wait(f.world, bide_listen(&operation, &f.servers[i].listener, &address, SLOTS)), 0);
    assert_int_equal(bide_local_address(&f.servers[i].listener, &address), 0);
    bide_address_print(&address, text, sizeof text);
    snprintf(f.origins[i], sizeof f.origins[i], "http://%.30s", text);
    bide_spawn(&f.running[i], f.world->context, bide_server_run(&f.servers[i]));
}

static void begin_servers(void **state, bide_http_agent_options options, bool answers_by_path)
{
    memset(&f, 0, sizeof f);
    f.answers_by_path = answers_by_path;
    f.world = world_of(state);
    for (int i = 0; i < SERVERS; i++)
        listen_at(i);
    options.ignores_environment = true;
    assert_int_equal(bide_http_agent_create(&f.agent, &options), 0);
}

static void begin_with(void **state, bide_http_agent_options options)
{
    begin_servers(state, options, false);
}

static void begin_agent(void **state)
{
    begin_with(state, (bide_http_agent_options){0});
}

static void end_agent(void)
{
    bide_event_waiter wait;
    bide_http_fetch_close(&f.fetch);
    bide_http_agent_destroy(f.agent);
    for (int i = 0; i < SERVERS; i++) {
        bide_server_shut_down(&f.servers[i], 0);
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.running[i].ended)), 0);
    }
    assert_int_equal(f.turn, f.answer_count);
}

static void answer_bytes(const void *text, size_t size, bool closes)
{
    assert_true(f.answer_count < ANSWERS);
    f.answers[f.answer_count++] = (struct answer){text, size, closes};
}

static void answer(const char *text)
{
    answer_bytes(text, strlen(text), false);
}

static char *url_of(int server, const char *path)
{
    static char url[4][3000];
    static unsigned next;
    char *text = url[next++ % 4];
    snprintf(text, sizeof url[0], "%s%s", f.origins[server], path);
    return text;
}

static int get(const char *url)
{
    bide_http_fetch_close(&f.fetch);
    memset(f.body, 0, sizeof f.body);
    return world_wait(f.world, bide_http_get(&f.fetch, f.agent, url, f.body, sizeof f.body));
}

static int open_request(const char *method, const char *url)
{
    bide_http_fetch_close(&f.fetch);
    return bide_http_fetch_init(&f.fetch, f.agent, method, url);
}

static int send_request(void)
{
    return world_wait(f.world, bide_http_fetch_send(&f.fetch));
}

/* Reads the whole body, in pieces, into f.body. */
static int read_body(size_t piece)
{
    size_t size = 0;
    memset(f.body, 0, sizeof f.body);
    for (;;) {
        int status = world_wait(f.world, bide_http_fetch_read(&f.fetch, f.body + size, piece));
        if (status < 0 || f.fetch.count == 0)
            return status;
        size += f.fetch.count;
        assert_true(size + piece < sizeof f.body);
    }
}

static bool asks(unsigned turn, const char *line)
{
    return strncmp(f.requests[turn], line, strlen(line)) == 0;
}

static bool has(unsigned turn, const char *field)
{
    return strcasestr(f.requests[turn], field) != NULL;
}

/* ---- Connections ---- */

static void one_call_gets_a_page_and_keeps_the_connection(void **state)
{
    begin_agent(state);
    for (int i = 0; i < 3; i++) {
        answer(OK("5\r\n\r\nhello"));
        assert_int_equal(get(url_of(0, "/a?b#c")), 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_int_equal(f.fetch.count, 5);
        assert_string_equal(f.body, "hello");
        assert_string_equal(f.fetch.url, url_of(0, "/a?b"));
    }
    assert_int_equal(f.connections, 1);
    assert_true(asks(0, "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:"));
    assert_int_equal(has(0, "\r\nAccept-Encoding: "), bide_http_codings_ != NULL);
    assert_int_equal(has(0, "\r\nAccept-Encoding: gzip, deflate"), bide_http_has_inflate_);
    assert_int_equal(has(0, "br\r\n"), bide_http_decodes_(HTTP_CODING_BROTLI));
    answer("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    assert_int_equal(get(url_of(0, "")), 0);
    assert_int_equal(f.fetch.response.status, 404);
    assert_string_equal(f.body, "no");
    assert_true(asks(3, "GET / HTTP/1.1\r\n"));
    end_agent();
}

static void a_body_that_does_not_fit_ends_its_connection(void **state)
{
    begin_agent(state);
    for (size_t room = 0; room <= 6; room++) {
        answer(OK("5\r\n\r\nhello"));
        assert_int_equal(
            world_wait(f.world, bide_http_get(&f.fetch, f.agent, url_of(0, "/"), f.body, room)),
            room < 5 ? -EMSGSIZE : 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_int_equal(f.fetch.count, room < 5 ? room : 5);
    }
    assert_int_equal(
        f.connections,
        5); /* with room for 4 the last byte was read too, and so the connection kept */
    end_agent();
}

static void a_request_has_fields_and_a_body(void **state)
{
    char much[1100];
    begin_agent(state);
    answer("HTTP/1.1 201 Created\r\nETag: \"x\"\r\nContent-Length: 4\r\n\r\nmade");
    assert_int_equal(open_request("PUT", url_of(0, "/p")), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "Content-Type", "text/plain"), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "X-Empty", ""), 0);
    static const char *const reserved[] = {"Host",
                                           "content-length",
                                           "Transfer-Encoding",
                                           "Connection",
                                           "Upgrade",
                                           "Expect",
                                           "Proxy-Authorization",
                                           "TE",
                                           "a b",
                                           ""};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        assert_int_equal(bide_http_fetch_add(&f.fetch, reserved[i], "x"), -EINVAL);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "X", "a\r\nb"), -EINVAL);
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    assert_int_equal(bide_http_fetch_add(&f.fetch, "X", much), -EMSGSIZE);
    assert_int_equal(bide_http_fetch_add(&f.fetch, much, ""), -EMSGSIZE);
    assert_int_equal(bide_http_fetch_set_body(&f.fetch, "some text", 9), 0);
    assert_int_equal(send_request(), 0);
    assert_int_equal(f.fetch.response.status, 201);
    assert_true(bide_http_is(bide_http_fetch_field(&f.fetch, "etag"), "\"x\""));
    assert_int_equal(read_body(3), 0);
    assert_string_equal(f.body, "made");
    assert_true(asks(0, "PUT /p HTTP/1.1\r\n"));
    assert_true(has(0, "\r\nContent-Type: text/plain\r\nX-Empty: \r\n"));
    assert_true(has(0, "\r\nContent-Length: 9\r\n"));
    assert_true(has(0, "\r\n\r\nsome text"));
    assert_int_equal(send_request(), -EINVAL);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "X", "y"), -EINVAL);
    assert_int_equal(bide_http_fetch_set_body(&f.fetch, "", 0), -EINVAL);
    bide_http_fetch_close(&f.fetch);
    bide_http_fetch_close(&f.fetch);
    assert_int_equal(read_body(3), -EINVAL);
    assert_null(bide_http_fetch_field(&f.fetch, "etag").data);
    end_agent();
}

static void what_cannot_be_requested_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "ftp://a/", "/a", "http://", "http://u@a/", "http://u:p@a/", "http://a b/"};
    char longer[5000];
    begin_agent(state);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(open_request("GET", bad[i]), -EINVAL);
        assert_int_equal(get(bad[i]), -EINVAL);
        assert_int_equal(f.fetch.response.status, 0);
    }
    assert_int_equal(open_request("GET", "https://a/"), -EPROTONOSUPPORT);
    assert_non_null(strstr(f.fetch.reason, "bide_http_agent_use_tls"));
    assert_int_equal(get("https://a/"), -EPROTONOSUPPORT);
    assert_non_null(strstr(f.fetch.reason, "-lbide-tls"));
    assert_int_equal(open_request("CONNECT", "http://a/"), -EINVAL);
    assert_int_equal(open_request("G T", "http://a/"), -EINVAL);
    assert_int_equal(open_request("ABCDEFGHIJKLMNOPQRSTUVWX", "http://a/"), -EMSGSIZE);
    memset(longer, 'a', sizeof longer);
    memcpy(longer, "http://a/", 9);
    longer[BIDE_HTTP_FETCH_URL] = '\0';
    assert_int_equal(open_request("GET", longer), -EMSGSIZE);
    longer[BIDE_HTTP_FETCH_URL - 1] = '\0';
    assert_int_equal(open_request("GET", longer), 0);
    assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.body, 1)), -EINVAL);
    bide_http_fetch_close(&f.fetch);
    memcpy(longer + 7, "aaaa", 4); /* a long host */
    assert_int_equal(open_request("GET", longer), -EMSGSIZE);
    end_agent();
}

/* ---- Redirects ---- */

static void redirects_change_methods_by_their_status(void **state)
{
    static const struct {
        int code;
        const char *method, *next;
        bool has_body;
    } cases[] = {
        {301, "GET", "GET", false},  {301, "POST", "GET", false},  {301, "PUT", "PUT", true},
        {302, "POST", "GET", false}, {302, "HEAD", "HEAD", false}, {302, "DELETE", "DELETE", true},
        {303, "POST", "GET", false}, {303, "PUT", "GET", false},   {303, "HEAD", "HEAD", false},
        {307, "POST", "POST", true}, {307, "GET", "GET", false},   {308, "POST", "POST", true},
        {308, "PUT", "PUT", true},
    };
    static char texts[13][200];
    begin_agent(state);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64];
        bool sends = strcmp(cases[i].method, "GET") != 0 && strcmp(cases[i].method, "HEAD") != 0;
        bool is_head = strcmp(cases[i].method, "HEAD") == 0;
        snprintf(texts[i], sizeof texts[i],
                 "HTTP/1.1 %d Moved\r\nLocation: next/../to?%u\r\nContent-Length: 4\r\n\r\n%s",
                 cases[i].code, i, is_head ? "" : "gone");
        answer(texts[i]);
        answer(OK("0\r\n\r\n"));
        assert_int_equal(open_request(cases[i].method, url_of(0, "/from/here")), 0);
        assert_int_equal(bide_http_fetch_add(&f.fetch, "Authorization", "mine"), 0);
        if (sends) {
            assert_int_equal(bide_http_fetch_set_body(&f.fetch, "text", 4), 0);
            assert_int_equal(bide_http_fetch_add(&f.fetch, "Content-Type", "text/plain"), 0);
        }
        assert_int_equal(send_request(), 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_int_equal(f.fetch.redirects, 1);
        snprintf(line, sizeof line, "%s /from/to?%u HTTP/1.1\r\n", cases[i].next, i);
        assert_true(asks(2 * i + 1, line));
        snprintf(line, sizeof line, "/from/to?%u", i);
        assert_string_equal(f.fetch.url, url_of(0, line));
        assert_int_equal(has(2 * i + 1, "\r\n\r\ntext"), cases[i].has_body);
        assert_int_equal(has(2 * i + 1, "Content-Type"), cases[i].has_body);
        assert_true(has(2 * i + 1, "\r\nAuthorization: mine\r\n"));
    }
    bide_http_fetch_close(&f.fetch);
    assert_int_equal(f.connections, 1); /* the bodies were read */
    end_agent();
}

static void credentials_do_not_leave_their_origin(void **state)
{
    static char there[200], back[200];
    begin_agent(state);
    snprintf(there, sizeof there, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             url_of(1, "/b"));
    snprintf(back, sizeof back, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             url_of(0, "/c"));
    answer("HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n");
    answer(there);
    answer(back);
    answer(OK("0\r\n\r\n"));
    assert_int_equal(open_request("GET", url_of(0, "/")), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "Authorization", "mine"), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "COOKIE", "mine"), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "X-Other", "yes"), 0);
    assert_int_equal(send_request(), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(has(i, "mine"), i < 2);
        assert_true(has(i, "\r\nX-Other: yes\r\n"));
    }
    assert_int_equal(f.fetch.redirects, 3);
    assert_string_equal(f.fetch.url, url_of(0, "/c"));
    assert_int_equal(f.connections, 2);
    end_agent();
}

static void cookies_are_kept_and_sent(void **state)
{
    bide_http_cookies *jar;
    static char text[200];
    assert_int_equal(bide_http_cookies_create(&jar, NULL), 0);
    begin_with(state, (bide_http_agent_options){.cookies = jar});
    snprintf(text, sizeof text,
             "HTTP/1.1 302 Found\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; Path=/to\r\n"
             "Set-Cookie: c=3; Secure\r\nLocation: %.60s/to\r\nContent-Length: 0\r\n\r\n",
             f.origins[1]);
    answer(text);
    answer("HTTP/1.1 200 OK\r\nSet-Cookie: a=; Max-Age=0; Path=/\r\nContent-Length: 0\r\n\r\n");
    answer(OK("0\r\n\r\n"));
    answer(OK("0\r\n\r\n"));
    assert_int_equal(get(url_of(0, "/from")), 0); /* (cookies are for all ports of a host) */
    assert_int_equal(get(url_of(0, "/to/x")), 0);
    assert_int_equal(open_request("GET", url_of(0, "/to")), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "Cookie", "own=1"), 0);
    assert_int_equal(send_request(), 0);
    assert_false(has(0, "Cookie"));
    assert_true(has(1, "\r\nCookie: b=2; a=1\r\n"));
    assert_true(has(2, "\r\nCookie: b=2\r\n"));
    assert_true(has(3, "\r\nCookie: own=1\r\n"));
    assert_false(has(3, "b=2"));
    end_agent();
    bide_http_cookies_destroy(jar);
}

static void bad_and_endless_redirects_are_errors(void **state)
{
    static const struct {
        const char *location;
        int status;
    } cases[] = {
        {"ftp://a/", -EBADMSG},
        {"http://u@127.0.0.1/", -EBADMSG},
        {"http://a b/", -EBADMSG},
        {"mailto:x@y", -EBADMSG},
        {"https://127.0.0.1/", -EPROTONOSUPPORT},
        {"//u:p@127.0.0.1/", -EBADMSG},
    };
    static char texts[6][200];
    begin_with(state, (bide_http_agent_options){.max_redirects = 3});
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(texts[i], sizeof texts[i],
                 "HTTP/1.1 301 M\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", cases[i].location);
        answer(texts[i]);
        assert_int_equal(get(url_of(0, "/")), cases[i].status);
        assert_int_equal(f.fetch.reason[0] != '\0', cases[i].status == -EPROTONOSUPPORT);
    }
    for (int i = 0; i < 4; i++)
        answer("HTTP/1.1 301 M\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(get(url_of(0, "/")), -ELOOP);
    assert_int_equal(f.fetch.redirects, 3);
    answer("HTTP/1.1 301 M\r\nContent-Length: 2\r\n\r\nno"); /* without a Location */
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_int_equal(f.fetch.response.status, 301);
    assert_string_equal(f.body, "no");
    answer("HTTP/1.1 300 M\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"); /* of another status */
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_int_equal(f.fetch.response.status, 300);
    end_agent();
    begin_with(state, (bide_http_agent_options){.follows_none = true});
    answer("HTTP/1.1 302 M\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_int_equal(f.fetch.response.status, 302);
    end_agent();
}

/* ---- Interim responses ---- */

static struct {
    char seen[200];
    unsigned count;
} early;

static void keep_early(bide_http_fetch *fetch)
{
    bide_slice link = bide_http_fetch_field(fetch, "link");
    assert_ptr_equal(fetch, &f.fetch);
    early.count++;
    snprintf(early.seen + strlen(early.seen), sizeof early.seen - strlen(early.seen), "%d%.*s%s ",
             fetch->response.status, (int)link.size, link.data != NULL ? link.data : "",
             strrchr(fetch->url, '/'));
}

static void interim_responses_are_seen_of_each_request(void **state)
{
    static const char *const moved = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
                                     "HTTP/1.1 302 M\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    static const char *const final =
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: b\r\n\r\n"
        "HTTP/1.1 200 OK\r\nLink: c\r\nContent-Length: 2\r\n\r\nok";
    begin_agent(state);
    for (int i = 0; i < 2; i++) { /* a kept connection calls it only for the requests that ask */
        answer(moved);
        answer(final);
        memset(&early, 0, sizeof early);
        assert_int_equal(open_request("GET", url_of(0, "/a")), 0);
        f.fetch.on_informational = i == 0 ? keep_early : NULL;
        assert_int_equal(send_request(), 0);
        assert_string_equal(early.seen, i == 0 ? "103a/a 102/b 103b/b " : "");
        assert_int_equal(f.fetch.response.status, 200);
        assert_int_equal(bide_http_fetch_field(&f.fetch, "link").size, 1);
        assert_memory_equal(bide_http_fetch_field(&f.fetch, "link").data, "c", 1);
        assert_int_equal(read_body(100), 0);
        assert_string_equal(f.body, "ok");
    }
    assert_int_equal(f.connections, 1);
    end_agent();
}

/* ---- Retries ---- */

static void a_kept_connection_that_was_closed_is_replaced(void **state)
{
    static const struct {
        const char *method, *half;
        bool is_retried;
    } cases[] = {
        {"GET", "", true},
        {"HEAD", "", true},
        {"PUT", "", true},
        {"DELETE", "", true},
        {"POST", "", false},
        {"PATCH", "", false},
        {"GET", "HTTP/1.1 200", false},
        {"GET", "HTTP/1.1 103 Early\r\n\r\n", false},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_agent(state);
        answer(OK("0\r\n\r\n"));
        assert_int_equal(get(url_of(0, "/")), 0);
        answer_bytes(cases[i].half, strlen(cases[i].half),
                     true); /* the server closes it while it is asked */
        if (cases[i].is_retried)
            answer(OK("0\r\n\r\n"));
        assert_int_equal(open_request(cases[i].method, url_of(0, "/")), 0);
        int status = send_request();
        if (cases[i].is_retried) {
            assert_int_equal(status, 0);
            assert_int_equal(f.on[1], 0);
            assert_int_equal(f.on[2], 1);
        } else {
            assert_true(status == -EPIPE || status == -ENODATA || status == -ECONNRESET);
            assert_int_equal(f.connections, 1);
        }
        end_agent();
    }
    begin_agent(state); /* a new connection is not tried again */
    answer_bytes("", 0, true);
    assert_true(get(url_of(0, "/")) < 0);
    assert_int_equal(f.connections, 1);
    end_agent();
}

/* ---- Bodies ---- */

static void answer_encoded(char *text, const char *coding, const unsigned char *data, size_t size)
{
    int head =
        sprintf(text, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
                coding, size);
    memcpy(text + head, data, size);
    answer_bytes(text, (size_t)head + size, false);
}

static void compressed_bodies_are_decoded(void **state)
{
    static char texts[20][400];
    unsigned char twice[2 * sizeof gzipped];
    if (!bide_http_has_inflate_)
        skip();
    begin_with(state, (bide_http_agent_options){.max_body = 50000});
    for (size_t piece = 1; piece < 200; piece = piece * 5 + 1) {
        answer_encoded(texts[f.answer_count], "GZIP", gzipped, sizeof gzipped);
        assert_int_equal(open_request("GET", url_of(0, "/")), 0);
        assert_int_equal(send_request(), 0);
        assert_true(f.fetch.is_decoded);
        assert_int_equal(read_body(piece), 0);
        assert_string_equal(f.body, COMPRESSED_TEXT);
    }
    answer_encoded(texts[f.answer_count], "deflate", deflated, sizeof deflated);
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_string_equal(f.body, COMPRESSED_TEXT);
    answer_encoded(texts[f.answer_count], "deflate", bare, sizeof bare);
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_string_equal(f.body, COMPRESSED_TEXT);
    answer_encoded(texts[f.answer_count], "gzip", gzipped, 0); /* nothing at all */
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_int_equal(f.fetch.count, 0);
    if (bide_http_decodes_(HTTP_CODING_BROTLI)) {
        answer_encoded(texts[f.answer_count], "br", brotlied, sizeof brotlied);
        assert_int_equal(get(url_of(0, "/")), 0);
        assert_true(f.fetch.is_decoded);
        assert_string_equal(f.body, COMPRESSED_TEXT);
        answer_encoded(texts[f.answer_count], "br", brotlied, 0); /* nothing at all */
        assert_int_equal(get(url_of(0, "/")), 0);
        assert_int_equal(f.fetch.count, 0);
    }
    answer_encoded(texts[f.answer_count], "zstd", gzipped, 4); /* left to the caller */
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_false(f.fetch.is_decoded);
    assert_memory_equal(f.body, gzipped, 4);
    answer_encoded(texts[f.answer_count], "gzip", gzipped, sizeof gzipped);
    assert_int_equal(open_request("GET", url_of(0, "/")), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "Accept-Encoding", "gzip"), 0);
    assert_int_equal(send_request(), 0);
    assert_int_equal(read_body(100), 0);
    assert_memory_equal(f.body, gzipped, sizeof gzipped);
    assert_false(has(f.turn - 1, "deflate"));
    assert_int_equal(f.connections, 1);

    answer_encoded(texts[f.answer_count], "gzip", gzipped, sizeof gzipped - 1);
    assert_int_equal(get(url_of(0, "/")), -ENODATA);
    answer_encoded(texts[f.answer_count], "gzip", deflated, sizeof deflated);
    assert_int_equal(get(url_of(0, "/")), -EBADMSG);
    memcpy(twice, deflated, sizeof deflated);
    memcpy(twice + sizeof deflated, "x", 1);
    answer_encoded(texts[f.answer_count], "deflate", twice, sizeof deflated + 1);
    assert_int_equal(get(url_of(0, "/")), -EBADMSG);
    bide_http_fetch_close(&f.fetch);
    answer_encoded(texts[f.answer_count], "gzip", bomb, sizeof bomb);
    assert_int_equal(open_request("GET", url_of(0, "/")), 0);
    assert_int_equal(send_request(), 0);
    uint64_t got = 0;
    int status;
    while ((status = world_wait(f.world, bide_http_fetch_read(&f.fetch, f.body, sizeof f.body))) ==
           0) {
        assert_int_not_equal(f.fetch.count, 0);
        got += f.fetch.count;
    }
    assert_int_equal(status, -EFBIG);
    assert_true(got <= 50000);
    assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.body, 1)), -EINVAL);
    end_agent();
}

/* Its beginning is missing, so it cannot be decoded. */
static void a_part_of_a_body_is_not_decoded(void **state)
{
    static char text[400];
    begin_agent(state);
    int head = sprintf(text, "HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\n"
                             "Content-Range: bytes 5-8/49\r\nContent-Length: 4\r\n\r\n");
    memcpy(text + head, gzipped + 5, 4);
    answer_bytes(text, (size_t)head + 4, false);
    assert_int_equal(open_request("GET", url_of(0, "/")), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "Range", "bytes=5-8"), 0);
    assert_int_equal(send_request(), 0);
    assert_false(has(0, "Accept-Encoding"));
    assert_false(f.fetch.is_decoded);
    assert_int_equal(read_body(100), 0);
    assert_memory_equal(f.body, gzipped + 5, 4);
    end_agent();
}

/* ---- Proxies ---- */

/* A TLS that changes nothing: what is between it and the server is seen as it is. */
struct no_tls {
    bide_stream below;
    bide_stream_operation operation;
    char byte;
};

static int no_tls_status;
static bool no_tls_waits; /* for a byte that does not come */
static int no_tls_open;
static char no_tls_name[100];

static bide_awaiter *no_tls_connect(void *memory, void *argument, bide_stream below,
                                    const char *name)
{
    struct no_tls *self = memory;
    assert_ptr_equal(argument, &f);
    self->below = below;
    no_tls_open++;
    snprintf(no_tls_name, sizeof no_tls_name, "%s", name);
    return no_tls_waits ? bide_stream_read(&self->operation, below, &self->byte, 1)
                        : bide_stream_ended(&self->operation, no_tls_status);
}

static bide_stream no_tls_stream(void *memory)
{
    return ((struct no_tls *)memory)->below;
}

static void no_tls_close(void *memory)
{
    no_tls_open--;
    bide_stream_close(((struct no_tls *)memory)->below);
}

static const bide_http_agent_tls no_tls = {
    sizeof(struct no_tls), no_tls_connect, no_tls_stream, no_tls_close, NULL, NULL, NULL, NULL};

static void https_is_over_tls(void **state)
{
    char url[100];
    no_tls_status = 0;
    begin_agent(state);
    bide_http_agent_set_tls(f.agent, &no_tls, &f);
    snprintf(url, sizeof url, "https%s", url_of(0, "/x") + 4);
    answer(OK("2\r\n\r\nhi"));
    answer(OK("2\r\n\r\nhi"));
    answer("HTTP/1.1 302 F\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(get(url), 0);
    assert_int_equal(get(url), 0);
    assert_int_equal(f.connections, 1);
    assert_int_equal(no_tls_open, 1);
    assert_string_equal(no_tls_name, "127.0.0.1");
    assert_int_equal(get(url), -EPERM); /* to http */
    assert_int_equal(no_tls_open, 1);   /* (without a body, the connection is kept) */
    answer(OK("0\r\n\r\n"));
    assert_int_equal(get(url_of(0, "/x")), 0); /* the same port, without TLS: another origin */
    assert_int_equal(f.connections, 2);
    end_agent();
    assert_int_equal(no_tls_open, 0);

    begin_agent(state);
    bide_http_agent_set_tls(f.agent, &no_tls, &f);
    snprintf(url, sizeof url, "https%s", url_of(0, "/x") + 4);
    no_tls_status = -EKEYREJECTED;
    assert_int_equal(get(url), -EKEYREJECTED);
    assert_int_equal(no_tls_open, 0);
    end_agent();
}

static void plain_requests_go_to_the_proxy(void **state)
{
    char proxy[100];
    begin_agent(state);
    bide_http_agent_destroy(f.agent);
    snprintf(proxy, sizeof proxy, "http://a:b@%.40s/", f.origins[1] + 7);
    assert_int_equal(bide_http_agent_create(&f.agent, &(bide_http_agent_options){.proxy = proxy}),
                     0);
    memset(proxy, 0, sizeof proxy); /* it was copied */
    answer(OK("1\r\n\r\n1"));
    answer(OK("1\r\n\r\n2"));
    assert_int_equal(get("http://nowhere.invalid/x?y"), 0);
    assert_int_equal(get("http://elsewhere.invalid:81"), 0);
    assert_string_equal(f.body, "2");
    assert_true(asks(0, "GET http://nowhere.invalid/x?y HTTP/1.1\r\nHost: nowhere.invalid\r\n"));
    assert_true(
        asks(1, "GET http://elsewhere.invalid:81/ HTTP/1.1\r\nHost: elsewhere.invalid:81\r\n"));
    assert_true(has(0, "\r\nProxy-Authorization: Basic YTpi\r\n"));
    assert_int_equal(f.connections, 1);
    end_agent();
}

static void secure_requests_go_through_a_tunnel(void **state)
{
    begin_agent(state);
    bide_http_agent_destroy(f.agent);
    assert_int_equal(
        bide_http_agent_create(&f.agent, &(bide_http_agent_options){.proxy = f.origins[1] + 7}), 0);
    bide_http_agent_set_tls(f.agent, &no_tls, &f);
    no_tls_status = 0;
    answer("HTTP/1.1 200 Established\r\n\r\n");
    answer(OK("1\r\n\r\n1"));
    answer(OK("1\r\n\r\n2"));
    answer("HTTP/1.1 200 Established\r\nContent-Length: 0\r\n\r\n");
    answer(OK("1\r\n\r\n3"));
    assert_int_equal(get("https://nowhere.invalid/x"), 0);
    assert_int_equal(get("https://nowhere.invalid/y"), 0);
    assert_string_equal(f.body, "2");
    assert_int_equal(get("https://[::1]:99/z"), 0);
    assert_string_equal(f.body, "3");
    assert_true(asks(0, "CONNECT nowhere.invalid:443 HTTP/1.1\r\nHost: nowhere.invalid:443\r\n"));
    assert_true(asks(1, "GET /x HTTP/1.1\r\nHost: nowhere.invalid\r\n"));
    assert_true(asks(3, "CONNECT [::1]:99 HTTP/1.1\r\n"));
    assert_false(has(1, "Proxy"));
    assert_int_equal(f.connections, 2);
    assert_int_equal(no_tls_open, 2);
    answer("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    answer("HTTP/1.1 200 Established\r\n\r\nx"); /* a byte that nobody has asked for */
    answer_bytes("", 0, true);
    assert_int_equal(get("https://a.invalid/"), -ECONNREFUSED);
    assert_int_equal(get("https://a.invalid/"), -ECONNREFUSED);
    assert_int_equal(get("https://a.invalid/"), -EPIPE);
    assert_int_equal(no_tls_open, 2);
    end_agent();
    assert_int_equal(no_tls_open, 0);
}

/* ---- Limits ---- */

static void a_connection_has_a_limit_of_time(void **state)
{
    char url[100];
    no_tls_status = 0;
    no_tls_waits = true;
    begin_with(state, (bide_http_agent_options){.connect_timeout = 1000000});
    bide_http_agent_set_tls(f.agent, &no_tls, &f);
    snprintf(url, sizeof url, "https%s", url_of(0, "/x") + 4);
    assert_int_equal(get(url), -ETIMEDOUT);
    assert_int_equal(no_tls_open, 0);
    assert_int_equal(f.turn, 0);
    no_tls_waits = false;
    end_agent();
    begin_with(state, (bide_http_agent_options){.connect_timeout = BIDE_FOREVER,
                                                .response_timeout = BIDE_FOREVER});
    bide_http_agent_set_tls(f.agent, &no_tls, &f);
    snprintf(url, sizeof url, "https%s", url_of(0, "/x") + 4);
    answer(OK("2\r\n\r\nhi"));
    assert_int_equal(get(url), 0);
    end_agent();
}

static void a_response_has_a_limit_of_time(void **state)
{
    static const char *const silent[] = {"", "HTTP/1.1 200", "HTTP/1.1 103 Early Hints\r\n\r\n"};
    bide_with_deadline_operation limited;
    /* (so long that a request comes to the server before, also on a busy machine) */
    begin_with(state, (bide_http_agent_options){.response_timeout = UINT64_C(1000000000)});
    for (unsigned i = 0; i < sizeof silent / sizeof *silent; i++) {
        answer(silent[i]);
        assert_int_equal(get(url_of(0, "/")), -ETIMEDOUT);
        assert_int_equal(f.connections, i + 1);
    }
    /* each request has its own; a redirect whose body does not come costs its connection */
    answer("HTTP/1.1 302 M\r\nLocation: /b\r\nContent-Length: 9\r\n\r\nhalf");
    answer(OK("2\r\n\r\nhi"));
    assert_int_equal(get(url_of(0, "/a")), 0);
    assert_string_equal(f.body, "hi");
    assert_int_equal(f.fetch.redirects, 1);
    assert_int_equal(f.on[f.turn - 1], f.on[f.turn - 2] + 1);
    end_agent();
    /* a deadline of the caller's ends the request */
    begin_with(state, (bide_http_agent_options){.response_timeout = UINT64_C(3600000000000)});
    answer("HTTP/1.1 302 M\r\nLocation: /b\r\nContent-Length: 9\r\n\r\nhalf");
    assert_int_equal(open_request("GET", url_of(0, "/a")), 0);
    assert_int_equal(
        world_wait(f.world, bide_with_deadline(&limited, world_now(f.world) + UINT64_C(1000000000),
                                               bide_http_fetch_send(&f.fetch))),
        -ETIMEDOUT);
    assert_true(f.fetch.redirects <= 1);
    end_agent();
}

static void requests_wait_for_connections_in_line(void **state)
{
    static bide_http_fetch fetches[4];
    static struct runner runners[4];
    begin_with(state, (bide_http_agent_options){.max_connections = 2});
    for (int i = 0; i < 4; i++) {
        answer(OK("1\r\n\r\nx"));
        assert_int_equal(bide_http_fetch_init(&fetches[i], f.agent, "GET", url_of(0, "/")), 0);
        begin(f.world, &runners[i], bide_http_fetch_send(&fetches[i]));
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(end(f.world, &runners[i]), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&fetches[i], f.body, 10)), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&fetches[i], f.body, 10)), 0);
        bide_http_fetch_close(&fetches[i]);
    }
    assert_int_equal(f.connections, 2);
    end_agent();
}

static void a_request_that_failed_holds_no_connection(void **state)
{
    static bide_http_fetch other;
    begin_with(state, (bide_http_agent_options){.max_connections = 1});
    answer("no HTTP at all\r\n\r\n");
    assert_int_equal(open_request("GET", url_of(0, "/")), 0);
    assert_int_equal(send_request(), -EBADMSG);
    assert_null(bide_http_fetch_field(&f.fetch, "etag").data);
    answer(OK("2\r\n\r\nhi"));
    assert_int_equal(
        world_wait(f.world, bide_http_get(&other, f.agent, url_of(0, "/"), f.body, sizeof f.body)),
        0);
    assert_int_equal(other.count, 2);
    end_agent();
}

static void only_so_many_origins_are_kept(void **state)
{
    begin_with(state, (bide_http_agent_options){.max_origins = 1});
    for (int i = 0; i < 6; i++) {
        answer(OK("1\r\n\r\nx"));
        assert_int_equal(get(url_of(i / 2 % 2, "/")), 0);
    }
    assert_int_equal(f.connections, 3);
    end_agent();
}

static void a_response_keeps_its_limits(void **state)
{
    static char text[3000];
    begin_with(state, (bide_http_agent_options){.max_fields = 3, .max_head = 1500, .max_body = 4});
    answer("HTTP/1.1 200 OK\r\nA: a\r\nB: b\r\nC: c\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(get(url_of(0, "/")), -EMSGSIZE);
    int size = sprintf(text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: %0*d\r\n\r\n", 2000, 1);
    answer_bytes(text, (size_t)size, false);
    assert_int_equal(get(url_of(0, "/")), -EMSGSIZE);
    answer(OK("5\r\n\r\nhello"));
    assert_int_equal(get(url_of(0, "/")), -EFBIG);
    answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    assert_int_equal(get(url_of(0, "/")), -EFBIG);
    answer(OK("4\r\n\r\nhell"));
    assert_int_equal(get(url_of(0, "/")), 0);
    answer("no HTTP at all\r\n\r\n");
    assert_int_equal(get(url_of(0, "/")), -EBADMSG);
    answer("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    assert_int_equal(get(url_of(0, "/")), -EBADMSG);
    end_agent();
}

/* ---- Early ends ---- */

/* The server sends so much of a response, and the request ends. Its connection is not used again. */
static void a_request_may_end_early_in_each_place(void **state)
{
    static const char whole[] = "HTTP/1.1 302 F\r\nLocation: /\r\nContent-Length: 5\r\n\r\nhello";
    for (int how = STOP; how <= DESTROY; how += DESTROY - STOP) {
        for (size_t size = 0; size < sizeof whole - 1; size += 9) {
            static struct runner runner;
            begin_agent(state);
            answer_bytes(whole, size, false);
            begin_by(f.world, &runner,
                     bide_http_get(&f.fetch, f.agent, url_of(0, "/"), f.body, 100), how);
            while (f.turn == 0)
                turn(f.world);
            if (how == DESTROY) {
                destroy(f.world, &runner);
            } else {
                call_inside(f.world, stop, &runner);
                assert_int_equal(end(f.world, &runner), -ECANCELED);
            }
            answer(OK("5\r\n\r\nagain"));
            assert_int_equal(get(url_of(0, "/")), 0);
            assert_string_equal(f.body, "again");
            assert_int_equal(f.connections, 2);
            end_agent();
        }
    }
}

static void a_read_that_is_cancelled_goes_on(void **state)
{
    static struct runner runner;
    static char text[400];
    static bide_io_operation operation;
    begin_agent(state);
    int head = sprintf(text, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n",
                       bide_http_has_inflate_ ? "Content-Encoding: gzip\r\n" : "", sizeof gzipped);
    memcpy(text + head, gzipped, sizeof gzipped);
    answer_bytes(text, (size_t)head + 20, false);
    assert_int_equal(open_request("GET", url_of(0, "/")), 0);
    assert_int_equal(send_request(), 0);
    size_t got = 0;
    for (;;) { /* until it waits */
        begin_by(f.world, &runner, bide_http_fetch_read(&f.fetch, f.body + got, 10), STOP);
        turn(f.world);
        bool has_waited = !runner.has_ended;
        if (has_waited)
            call_inside(f.world, stop, &runner);
        int status = end(f.world, &runner);
        got += f.fetch.count;
        if (status == -ECANCELED)
            break;
        assert_int_equal(status, 0);
    }
    assert_int_equal(world_wait(f.world, bide_send(&operation, &f.slots[0][0].connection.socket,
                                                   text + head + 20, sizeof gzipped - 20)),
                     0);
    do {
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.body + got, 100)), 0);
        got += f.fetch.count;
    } while (f.fetch.count != 0);
    if (bide_http_has_inflate_)
        assert_string_equal(f.body, COMPRESSED_TEXT);
    else
        assert_memory_equal(f.body, gzipped, sizeof gzipped);
    bide_http_fetch_close(&f.fetch);
    answer(OK("0\r\n\r\n"));
    assert_int_equal(get(url_of(0, "/")), 0);
    assert_int_equal(f.connections, 1);
    end_agent();
}

static void a_fetch_that_is_closed_half_way_ends_its_connection(void **state)
{
    begin_agent(state);
    for (int reads = 0; reads < 3; reads++) {
        answer(OK("10\r\n\r\nhello"));
        assert_int_equal(open_request("GET", url_of(0, "/")), 0);
        assert_int_equal(send_request(), 0);
        for (int i = 0; i < reads; i++)
            assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.body, 2)), 0);
        bide_http_fetch_close(&f.fetch);
    }
    assert_int_equal(f.connections, 3);
    end_agent();
}

static void nobody_listens(void **state)
{
    bide_event_waiter wait;
    begin_agent(state);
    bide_server_shut_down(&f.servers[1], 0);
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.running[1].ended)), 0);
    assert_int_equal(get(url_of(1, "/")), -ECONNREFUSED);
    assert_int_equal(f.fetch.response.status, 0);
    end_agent();
}

/* ---- At random ---- */

enum { USERS = 4 };

static uint64_t random_state;

static size_t draw(size_t below)
{
    return (size_t)(testing_random(&random_state) % below);
}

static struct user {
    bide_task task;
    bide_spawned spawned;
    bide_http_fetch fetch;
    bide_with_deadline_operation limited;
    char url[200], text[20], body[800];
    char kind;
    int round, rounds, status;
    size_t size, until; /* it closes the fetch when it has read so much */
    uint64_t deadline;
} users[USERS];

static void start_round(struct user *self, uint64_t now)
{
    self->kind = "lcehnrxz"[draw(8)];
    self->size = 0;
    self->until = draw(4) == 0 ? draw(10) : SIZE_MAX;
    self->deadline = draw(4) == 0 ? now + draw(400000) : BIDE_FOREVER;
    snprintf(self->text, sizeof self->text, "%08x-%d", (unsigned)draw(UINT32_MAX), self->round);
    snprintf(self->url, sizeof self->url, "%s/%c/%s", f.origins[draw(2)], self->kind, self->text);
}

/* What the round has ended with is what its kind ends with, unless it was cut. */
static void check_round(const struct user *self)
{
    const char *expected = self->kind != 'z'        ? self->text
                           : bide_http_has_inflate_ ? COMPRESSED_TEXT
                                                    : (const char *)gzipped;
    size_t size = self->kind != 'z' || bide_http_has_inflate_ ? strlen(expected) : sizeof gzipped;
    if (self->status == -ETIMEDOUT && self->deadline != BIDE_FOREVER)
        return;
    bool is_whole = self->until == SIZE_MAX && self->status == 0;
    if (self->kind == 'h' || self->kind == 'n')
        assert_false(is_whole);
    else
        assert_int_equal(self->status, 0);
    assert_true(self->size <= size);
    assert_memory_equal(self->body, expected, self->size);
    if (is_whole)
        assert_int_equal(self->size, size);
}

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    for (self->round = 0; self->round < self->rounds; self->round++) {
        start_round(self, bide_now(bide_this_context()));
        assert_int_equal(bide_http_fetch_init(&self->fetch, f.agent, "GET", self->url), 0);
        bide_await_status(self->status, bide_with_deadline(&self->limited, self->deadline,
                                                           bide_http_fetch_send(&self->fetch)));
        while (self->status == 0 && self->size < self->until) {
            bide_await_status(
                self->status,
                bide_with_deadline(
                    &self->limited, self->deadline,
                    bide_http_fetch_read(&self->fetch, self->body + self->size, 1 + draw(50))));
            self->size += self->fetch.count;
            if (self->fetch.count == 0)
                break;
        }
        check_round(self);
        bide_http_fetch_close(&self->fetch);
    }
    bide_end();
}

/* Requests that end in all ways share connections, and none gets what is another's. */
static void responses_are_never_mixed_up(void **state)
{
    bide_event_waiter wait;
    begin_servers(state, (bide_http_agent_options){.max_connections = 2}, true);
    random_state = testing_seed();
    for (int i = 0; i < USERS; i++) {
        users[i].rounds = (int)rounds_of(100);
        bide_spawn(&users[i].spawned, f.world->context, bide_task_init(&users[i].task, &user_body));
    }
    for (int i = 0; i < USERS; i++) {
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &users[i].spawned.ended)), 0);
        assert_int_equal(users[i].spawned.root.status, 0);
    }
    end_agent();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(one_call_gets_a_page_and_keeps_the_connection),
        world_test(a_body_that_does_not_fit_ends_its_connection),
        world_test(a_request_has_fields_and_a_body),
        world_test(what_cannot_be_requested_is_refused),
        world_test(redirects_change_methods_by_their_status),
        world_test(credentials_do_not_leave_their_origin),
        world_test(cookies_are_kept_and_sent),
        world_test(bad_and_endless_redirects_are_errors),
        world_test(interim_responses_are_seen_of_each_request),
        world_test(a_kept_connection_that_was_closed_is_replaced),
        world_test(compressed_bodies_are_decoded),
        world_test(a_part_of_a_body_is_not_decoded),
        world_test(https_is_over_tls),
        world_test(plain_requests_go_to_the_proxy),
        world_test(secure_requests_go_through_a_tunnel),
        world_test(a_connection_has_a_limit_of_time),
        world_test(a_response_has_a_limit_of_time),
        world_test(requests_wait_for_connections_in_line),
        world_test(a_request_that_failed_holds_no_connection),
        world_test(only_so_many_origins_are_kept),
        world_test(a_response_keeps_its_limits),
        world_test(a_request_may_end_early_in_each_place),
        world_test(a_read_that_is_cancelled_goes_on),
        world_test(a_fetch_that_is_closed_half_way_ends_its_connection),
        world_test(nobody_listens),
        world_test(responses_are_never_mixed_up),
    };
    return cmocka_run_group_tests_name("http_agent", tests, NULL, NULL);
}
