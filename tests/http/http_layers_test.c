/*
 * Layers around handlers, interim responses, and server-sent events.
 */
#include "http_peer.h"
#include "bide/http_events.h"

static peer one;
static char trace[256];

static void note(const char *text)
{
    assert_true(strlen(trace) + strlen(text) < sizeof trace);
    strcat(trace, text);
}

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD(line) "HTTP/1.1 " line "\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

/* ---- Layers ---- */

struct layer {
    bide_http_layer_frame layer;
    int status;
    char own[100]; /* no other layer writes here */
    bide_sleep sleep;
};

bide_coroutine(layer_body)
{
    bide_begin(layer_body, struct layer * self);
    const char *name = self->layer.argument;
    note(name);
    memset(self->own, *name, sizeof self->own);
    if (path_is(self->layer.exchange, "/stopped") && *name == 'b') { /* it responds itself */
        self->layer.exchange->status = 401;
        bide_try(bide_http_respond(self->layer.exchange, "no", 2));
        bide_return(0);
    }
    bide_http_add(self->layer.exchange, "X-Layer", name);
    bide_await_status(self->status, bide_http_next(&self->layer));
    for (size_t i = 0; i < sizeof self->own; i++)
        assert_int_equal(self->own[i], *(const char *)self->layer.argument);
    if (self->status < 0)
        note("!");
    note(self->layer.argument);
    bide_return(self->status);
    bide_finally();
    note(".");
    bide_end();
}

/* An outer layer that answers for handlers which fail before they respond. */
bide_coroutine(page_body)
{
    bide_begin(page_body, struct layer * self);
    bide_await_status(self->status, bide_http_next(&self->layer));
    if (self->status == -ENOENT) {
        self->layer.exchange->status = 404;
        bide_try(bide_http_respond(self->layer.exchange, "a page", 6));
        bide_return(0);
    }
    bide_return(self->status);
    bide_end();
}

static char layer_a[] = "a", layer_b[] = "b", layer_c[] = "c";
static const bide_http_layer layers[] = {
    {&layer_body, sizeof(struct layer), layer_a},
    {&layer_body, sizeof(struct layer), layer_b},
    {&layer_body, sizeof(struct layer), layer_c},
};

static void layers_run_from_the_outside_to_the_inside(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.layers = layers, .layer_count = 3});
    *trace = '\0';
    assert_int_equal(peer_say(&one, GET("/hello") GET("/slow")), 0);
    assert_string_equal(trace, "abcc.b.a.abcc.b.a.");
    assert_non_null(strstr(one.output, "X-Layer: a\r\nX-Layer: b\r\nX-Layer: c\r\nContent-Type: text/plain\r\n"));
    assert_non_null(strstr(one.output, "\r\n\r\nhello"));
    *trace = '\0';
    assert_int_equal(peer_say(&one, GET("/stopped") GET("/hello")), 0);
    assert_string_equal(trace, "ab.a.abcc.b.a.");
    assert_non_null(strstr(one.output, "HTTP/1.1 401 Unauthorized\r\n"));
    assert_non_null(strstr(one.output, "\r\n\r\nnoHTTP/1.1 200 "));
    peer_end(&one);
}

/* ---- Whether the handler has begun ---- */

static void note_begin(bide_http_exchange *exchange, int error)
{
    (void)error;
    note(bide_http_handler_began(exchange) ? "+" : "-");
}

static const bide_http_handler *no_handler(bide_http_exchange *exchange)
{
    static const bide_http_handler handler = {&http_peer_body, sizeof(struct peer_handler)};
    return path_is(exchange, "/nowhere") ? NULL : &handler;
}

/* Its frame has been used before, by an exchange of the same connection. */
static void an_end_says_whether_the_handler_has_begun(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.layers = layers, .layer_count = 3, .ended = note_begin});
    *trace = '\0';
    assert_int_equal(peer_say(&one, GET("/hello") GET("/stopped") GET("/fails") GET("/stopped")), 0);
    assert_string_equal(trace, "abcc.b.a.+ab.a.-abc!c.!b.!a.+ab.a.-");
    peer_end(&one);
    peer_init(&one, &(bide_http_options){.select_handler = no_handler, .max_frame_size = sizeof(struct peer_handler),
                                         .ended = note_begin});
    *trace = '\0';
    assert_int_equal(peer_say(&one, GET("/hello") GET("/nowhere") GET("/hello")), 0);
    assert_string_equal(trace, "+-+");
    peer_end(&one);
}

static void an_error_of_the_handler_passes_through_layers(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.layers = layers, .layer_count = 3});
    *trace = '\0';
    assert_int_equal(peer_say(&one, GET("/fails")), 0);
    assert_string_equal(trace, "abc!c.!b.!a.");
    assert_string_equal(one.output, HEAD("500 Internal Server Error") "Content-Type: text/plain; charset=utf-8\r\n"
                        "Content-Length: 26\r\n\r\n500 Internal Server Error\n");
    peer_end(&one);
}

static void a_layer_may_answer_for_the_handler(void **state)
{
    static const bide_http_layer page = {&page_body, sizeof(struct layer), NULL};
    (void)state;
    peer_init(&one, &(bide_http_options){.layers = &page, .layer_count = 1});
    assert_int_equal(peer_say(&one, GET("/nowhere") GET("/hello")), 0);
    assert_non_null(strstr(one.output, "404 Not Found\r\n"));
    assert_non_null(strstr(one.output, "\r\n\r\na pageHTTP/1.1 200 "));
    peer_end(&one);
}

static void layers_are_cancelled_with_their_handler(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.layers = layers, .layer_count = 3});
    for (one.stop_after = 1; one.stop_after < 12; one.stop_after++) {
        *trace = '\0';
        (void)peer_say(&one, GET("/slow"));
        /* each layer that has started has ended */
        size_t starts = strspn(trace, "abc");
        size_t ends = 0;
        for (const char *at = trace; *at != '\0'; at++)
            ends += *at == '.';
        assert_true(*trace == '\0' || (starts == 3 && ends == 3));
    }
    peer_end(&one);
}

static void layers_without_a_body_are_refused(void **state)
{
    static bide_http_server server;
    static const bide_http_layer none = {NULL, sizeof(struct layer), NULL};
    static const bide_http_layer small = {&layer_body, sizeof(bide_http_layer_frame) - 1, NULL};
    bide_http_options options = {.handler = {&http_peer_body, sizeof(struct peer_handler)}, .layer_count = 1};
    (void)state;
    assert_int_equal(bide_http_server_init(&server, &options), -EINVAL);
    options.layers = &none;
    assert_int_equal(bide_http_server_init(&server, &options), -EINVAL);
    options.layers = &small;
    assert_int_equal(bide_http_server_init(&server, &options), -EINVAL);
}

/* ---- Interim responses ---- */

static int interim_status;
static const char *link_value;

struct hints {
    bide_http_exchange exchange;
    bide_http_field fields[2];
    bide_sleep sleep;
    char body[16];
};

bide_coroutine(hints_body)
{
    bide_begin(hints_body, struct hints * self);
    handled.begun++;
    self->fields[0] = (bide_http_field){{"Link", 4}, {link_value, strlen(link_value)}};
    self->fields[1] = (bide_http_field){{"X-Second", 8}, {"2", 1}};
    if (path_is(&self->exchange, "/late"))
        bide_http_add(&self->exchange, "X-First", "1");
    bide_await_status(interim_status,
                      bide_http_send_interim(&self->exchange,
                                             path_is(&self->exchange, "/switch") ? 101 : 103,
                                             self->fields, 2));
    if (path_is(&self->exchange, "/twice"))
        bide_try(bide_http_send_interim(&self->exchange, 102, NULL, 0));
    if (path_is(&self->exchange, "/fails"))
        bide_return(-EIO);
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    if (path_is(&self->exchange, "/reads"))
        bide_try(bide_http_read(&self->exchange, self->body, sizeof self->body));
    bide_try(bide_http_respond(&self->exchange, "hello", 5));
    bide_finally();
    handled.ended++;
    bide_end();
}

#define HINTS    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Second: 2\r\n\r\n"
#define RESPONSE HEAD("200 OK") "Content-Length: 5\r\n\r\nhello"

static void interim_responses_come_before_the_response(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&hints_body, sizeof(struct hints)}});
    link_value = "</a.css>; rel=preload";
    assert_int_equal(peer_say(&one, GET("/") GET("/")), 0);
    assert_string_equal(one.output, HINTS RESPONSE HINTS RESPONSE);
    assert_int_equal(peer_say(&one, GET("/twice")), 0);
    assert_string_equal(one.output, HINTS "HTTP/1.1 102 Processing\r\n\r\n" RESPONSE);
    assert_int_equal(peer_say(&one, "POST /reads HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"), -ENODATA);
    assert_int_equal(strncmp(one.output, HINTS "HTTP/1.1 100 Continue\r\n\r\n", sizeof HINTS - 1 + 25), 0);
    /* an error afterwards is still reported */
    assert_int_equal(peer_say(&one, GET("/fails")), 0);
    assert_int_equal(strncmp(one.output, HINTS "HTTP/1.1 500 ", sizeof HINTS - 1 + 13), 0);
    peer_end(&one);
}

/*
 * Handlers whose wait for the client's reading ends early, while an earlier response leaves the server slowly. The
 * interim response, or "100 Continue", is behind that.
 */
struct impatient {
    bide_http_exchange exchange;
    bide_with_deadline_operation limited;
    bide_sleep sleep;
    char body[16];
    size_t size;
};

static size_t arrived; /* bytes that the client had, long after the wait */

bide_coroutine(impatient_body)
{
    static char text[8000];
    bide_begin(impatient_body, struct impatient * self);
    handled.begun++;
    self->size = 0;
    if (path_is(&self->exchange, "/earlier")) {
        memset(text, 'x', sizeof text);
        bide_try(bide_http_respond(&self->exchange, text,
                                   strtoul(self->exchange.request.query.data, NULL, 10)));
    } else {
        if (self->exchange.request.query.size != 0) /* the earlier response is being sent then */
            bide_try(bide_sleep_for(&self->sleep, SECOND));
        if (path_is(&self->exchange, "/hints"))
            bide_await_status(interim_status, bide_with_timeout(&self->limited, SECOND,
                                                                bide_http_send_interim(&self->exchange, 103, NULL, 0)));
        else
            bide_await_status(interim_status, bide_with_timeout(&self->limited, SECOND,
                                                                bide_http_read(&self->exchange, self->body, sizeof self->body)));
        bide_try(bide_sleep_for(&self->sleep, 20 * SECOND));
        arrived = one.output_size;
        do {
            bide_try(bide_http_read(&self->exchange, self->body + self->size, sizeof self->body - self->size));
            self->size += self->exchange.count;
        } while (self->exchange.count != 0);
        bide_try(bide_http_respond(&self->exchange, self->body, self->size));
    }
    bide_finally();
    handled.ended++;
    bide_end();
}

static void an_interim_response_that_is_cancelled_spoils_no_other(void **state)
{
    static const char *const requests[] = {
        "POST /reads HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
        "POST /reads?later HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
        "POST /hints HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n",
        "POST /hints?later HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n",
    };
    static char input[600], wanted[10000];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&impatient_body, sizeof(struct impatient)}});
    one.piece = 256;
    one.read_pause = SECOND; /* so much in a second */
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        for (int size = 800; size < 3000; size += 77) {
            int before = snprintf(input, sizeof input, "GET /earlier?%d HTTP/1.1\r\nHost: a\r\n\r\n%s", size, requests[i]);
            snprintf(input + before, sizeof input - (size_t)before, "body" GET("/earlier?5"));
            int head = snprintf(wanted, sizeof wanted, HEAD("200 OK") "Content-Length: %d\r\n\r\n", size);
            memset(wanted + head, 'x', (size_t)size);
            int first = head + size + snprintf(wanted + head + size, 1000, i < 2 ? "HTTP/1.1 100 Continue\r\n\r\n" : "HTTP/1.1 103 Early Hints\r\n\r\n");
            strcpy(wanted + first, HEAD("200 OK") "Content-Length: 4\r\n\r\nbody" HEAD("200 OK") "Content-Length: 5\r\n\r\nxxxxx");
            one.cut = (size_t)before; /* the body follows "100 Continue" */
            one.cut_until = (size_t)first;
            assert_int_equal(peer_say(&one, input), 0);
            assert_int_equal(interim_status, -ETIMEDOUT);
            assert_int_equal(arrived, first);
            assert_string_equal(one.output, wanted);
        }
    one.cut = 0;
    one.cut_until = 0;
    peer_end(&one);
}

/* The client takes nothing, and leaves. */
static void a_client_that_does_not_take_an_interim_response_is_dropped(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&hints_body, sizeof(struct hints)}});
    link_value = "</a.css>; rel=preload";
    one.piece = 64;
    one.reads_not = true;
    assert_int_equal(peer_say(&one, GET("/")), -ETIMEDOUT);
    assert_int_equal(interim_status, -ETIMEDOUT);
    assert_in_range(one.took, 30 * SECOND, 36 * SECOND);
    peer_end(&one);
}

/*
 * Handlers that a stop does not reach (their waits have none) while their client leaves. Their interim response, or
 * "100 Continue", waits for nobody who has ended.
 */
struct shielded {
    bide_http_exchange exchange;
    bide_with_stop_operation own;
    bide_sleep sleep;
    char body[16];
};

bide_coroutine(shielded_body)
{
    bide_begin(shielded_body, struct shielded * self);
    handled.begun++;
    if (path_is(&self->exchange, "/earlier")) {
        static char text[200];
        memset(text, 'x', sizeof text);
        bide_try(bide_http_respond(&self->exchange, text, sizeof text));
        bide_return(0);
    }
    bide_try(bide_with_stop(&self->own, NULL, bide_sleep_for(&self->sleep, SECOND)));
    if (one.reads_not) { /* the earlier response is being sent: that fails */
        bide_memory_pipe_reject(&one.from_server);
        bide_try(bide_with_stop(&self->own, NULL, bide_sleep_for(&self->sleep, SECOND)));
    }
    if (path_is(&self->exchange, "/reads"))
        bide_await_status(interim_status,
                          bide_with_stop(&self->own, NULL, bide_http_read(&self->exchange, self->body, sizeof self->body)));
    else
        bide_await_status(interim_status,
                          bide_with_stop(&self->own, NULL, bide_http_send_interim(&self->exchange, 103, NULL, 0)));
    bide_try(bide_with_stop(&self->own, NULL, bide_http_respond(&self->exchange, "hello", 5)));
    bide_finally();
    handled.ended++;
    bide_end();
}

#define READS "POST /reads HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"

static void a_shielded_interim_response_does_not_outlast_its_client(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&shielded_body, sizeof(struct shielded)}});
    one.server.options.allows_half_close = false;
    interim_status = 1;
    assert_int_equal(peer_say(&one, GET("/")), 0); /* it has ended its output only */
    assert_int_equal(interim_status, 0);
    assert_string_equal(one.output, "HTTP/1.1 103 Early Hints\r\n\r\n" RESPONSE);
    one.piece = 128; /* both requests, and a part of the first response */
    one.reads_not = true;
    one.ends = false;
    interim_status = 1;
    assert_int_equal(peer_say(&one, GET("/earlier") GET("/")), -ECONNRESET);
    assert_int_equal(interim_status, -EPIPE);
    interim_status = 1;
    assert_int_equal(peer_say(&one, GET("/earlier") READS), -ECONNRESET);
    assert_int_equal(interim_status, -EPIPE);
    one.reads_not = false;
    peer_end(&one);
}

/* The client is not waited for elsewhere: it has sent all, and the server watches whether it leaves. */
struct resigned {
    bide_http_exchange exchange;
    bide_with_deadline_operation limited;
    bide_http_field field;
    bide_sleep sleep;
};

bide_coroutine(resigned_body)
{
    bide_begin(resigned_body, struct resigned * self);
    handled.begun++;
    if (path_is(&self->exchange, "/hints")) {
        if (self->exchange.request.query.size != 0) /* the server reads then */
            bide_try(bide_sleep_for(&self->sleep, SECOND));
        self->field = (bide_http_field){{"Link", 4}, {link_value, strlen(link_value)}};
        bide_await_status(interim_status, bide_with_timeout(&self->limited, SECOND,
                                                            bide_http_send_interim(&self->exchange, 103, &self->field, 1)));
        if (!bide_http_is(self->exchange.request.query, "responds"))
            bide_try(bide_sleep_for(&self->sleep, 20 * SECOND));
        arrived = one.output_size;
    }
    bide_try(bide_http_respond(&self->exchange, "hello", 5));
    bide_finally();
    handled.ended++;
    bide_end();
}

static void an_interim_response_that_is_cancelled_is_sent_while_the_server_reads(void **state)
{
    static const char *const requests[] = {GET("/hints"), GET("/hints?later"), GET("/hints?responds")};
    static char value[2500], input[600], wanted[4000];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&resigned_body, sizeof(struct resigned)}});
    memset(value, 'v', sizeof value - 1);
    link_value = value;
    one.piece = 256;
    one.read_pause = SECOND; /* so much in a second */
    one.ends = false;
    size_t first = (size_t)snprintf(wanted, sizeof wanted, "HTTP/1.1 103 Early Hints\r\nLink: %s\r\n\r\n", value);
    strcpy(wanted + first, RESPONSE RESPONSE);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        for (int next = 0; next < 3; next++) { /* when the next request comes: at once, in between, at the end */
            snprintf(input, sizeof input, "%s%s", requests[i], GET("/next"));
            one.cut = next != 0 ? strlen(requests[i]) : 0;
            one.cut_until = next == 2 ? first + 50 : 300;
            assert_int_equal(peer_say(&one, input), -ETIMEDOUT); /* idle at last */
            assert_int_equal(interim_status, -ETIMEDOUT);
            if (i < 2)
                assert_int_equal(arrived, first);
            assert_string_equal(one.output, wanted);
        }
    /* it still notices that the client leaves */
    one.server.options.allows_half_close = false;
    one.cut = one.cut_until = 0;
    one.ends = true;
    one.pause = 5 * SECOND;
    assert_int_equal(peer_say(&one, GET("/hints?later")), -ECONNRESET);
    assert_int_equal(interim_status, -ETIMEDOUT);
    one.pause = 0;
    peer_end(&one);
}

static void interim_responses_are_refused_where_they_may_not_be(void **state)
{
    static char large[9000];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&hints_body, sizeof(struct hints)}});
    link_value = "</a.css>; rel=preload";
    assert_int_equal(peer_say(&one, "GET / HTTP/1.0\r\n\r\n"), 0); /* the client does not know them */
    assert_int_equal(interim_status, 0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    assert_int_equal(peer_say(&one, GET("/late")), 0);
    assert_int_equal(interim_status, -EINVAL);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    assert_int_equal(peer_say(&one, GET("/switch")), 0);
    assert_int_equal(interim_status, -EINVAL);
    link_value = "a\r\nSet-Cookie: b";
    assert_int_equal(peer_say(&one, GET("/")), 0);
    assert_int_equal(interim_status, -EINVAL);
    assert_string_equal(one.output, RESPONSE);
    memset(large, 'x', sizeof large - 1);
    link_value = large;
    assert_int_equal(peer_say(&one, GET("/")), 0);
    assert_int_equal(interim_status, -EMSGSIZE);
    assert_string_equal(one.output, RESPONSE);
    peer_end(&one);
}

/* ---- Events ---- */

static bide_http_event event;
static int event_status, start_status;

struct events {
    bide_http_exchange exchange;
    bide_http_event_operation send;
    bide_sleep sleep;
    unsigned i;
};

bide_coroutine(events_body)
{
    bide_begin(events_body, struct events * self);
    handled.begun++;
    if (path_is(&self->exchange, "/late"))
        (void)bide_http_start_response(&self->exchange, 0);
    start_status = bide_http_start_events(&self->exchange);
    if (start_status < 0)
        bide_return(0);
    for (self->i = 0; self->i < (path_is(&self->exchange, "/three") ? 3U : 1U); self->i++) {
        bide_await_status(event_status, bide_http_send_event(&self->send, &self->exchange, &event));
        if (event_status < 0)
            bide_return(event_status);
        if (path_is(&self->exchange, "/three")) /* (longer than a request may take) */
            bide_try(bide_sleep_for(&self->sleep, 1000 * SECOND));
    }
    bide_finally();
    handled.ended++;
    bide_end();
}

#define TEXT(string) {string, sizeof string - 1}

/* Sends the event and returns its text, without the chunks. */
static const char *said(void)
{
    static char text[1024];
    size_t size = 0;
    assert_int_equal(peer_say(&one, GET("/")), 0);
    const char *at = strstr(one.output, "\r\n\r\n") + 4;
    for (;;) {
        char *end;
        unsigned long chunk = strtoul(at, &end, 16);
        if (chunk == 0)
            break;
        memcpy(text + size, end + 2, chunk);
        size += chunk;
        at = end + 2 + chunk + 2;
    }
    text[size] = '\0';
    return text;
}

static void events_are_written_by_lines(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&events_body, sizeof(struct events)}});
    event = (bide_http_event){.data = TEXT("hello")};
    assert_string_equal(said(), "data: hello\n\n");
    assert_non_null(strstr(one.output, "\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"));
    event = (bide_http_event){.data = TEXT(""), .type = TEXT("news"), .id = TEXT("7"), .comment = TEXT("why"),
                              .has_retry = true, .retry = 4294967295U};
    assert_string_equal(said(), ": why\nid: 7\nevent: news\nretry: 4294967295\ndata:\n\n");
    event = (bide_http_event){.data = TEXT("a\nb\r\nc\rd\n\ne\r")};
    assert_string_equal(said(), "data: a\ndata: b\ndata: c\ndata: d\ndata:\ndata: e\ndata:\n\n");
    event = (bide_http_event){.data = TEXT(" a\nid: 9\n\ndata: x")}; /* it is text */
    assert_string_equal(said(), "data:  a\ndata: id: 9\ndata:\ndata: data: x\n\n");
    event = (bide_http_event){.comment = TEXT("")};
    assert_string_equal(said(), ":\n\n");
    event = (bide_http_event){.comment = TEXT("a\nb"), .id = TEXT("")};
    assert_string_equal(said(), ": a\n: b\nid:\n\n");
    peer_end(&one);
}

static void a_type_or_an_id_with_a_line_end_is_refused(void **state)
{
    static const bide_http_event events[] = {{.type = TEXT("a\nb")}, {.type = TEXT("\r")}, {.id = TEXT("1\n")},
                                             {.id = TEXT("1\r2")},   {.id = TEXT("a\0b")}};
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&events_body, sizeof(struct events)}});
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        event = events[i];
        assert_int_equal(peer_say(&one, GET("/")), 0);
        assert_int_equal(event_status, -EINVAL);
        assert_int_equal(strncmp(one.output, "HTTP/1.1 500 ", 13), 0);
    }
    event = (bide_http_event){.data = TEXT("a")};
    assert_int_equal(peer_say(&one, GET("/late")), 0);
    assert_int_equal(start_status, -EINVAL);
    peer_end(&one);
}

static void events_last_longer_than_a_request_and_end_with_their_client(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&events_body, sizeof(struct events)}});
    event = (bide_http_event){.data = TEXT("x")};
    assert_int_equal(peer_say(&one, GET("/three")), 0);
    assert_non_null(strstr(one.output, "\r\n\r\n0009\r\ndata: x\n\n\r\n0009\r\ndata: x\n\n\r\n0009\r\ndata: x\n\n\r\n0\r\n\r\n"));
    one.server.options.allows_half_close = false;
    assert_int_equal(peer_say(&one, GET("/three")), -ECONNRESET);
    peer_end(&one);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_run_from_the_outside_to_the_inside),
        cmocka_unit_test(an_end_says_whether_the_handler_has_begun),
        cmocka_unit_test(an_error_of_the_handler_passes_through_layers),
        cmocka_unit_test(a_layer_may_answer_for_the_handler),
        cmocka_unit_test(layers_are_cancelled_with_their_handler),
        cmocka_unit_test(layers_without_a_body_are_refused),
        cmocka_unit_test(interim_responses_come_before_the_response),
        cmocka_unit_test(an_interim_response_that_is_cancelled_spoils_no_other),
        cmocka_unit_test(a_client_that_does_not_take_an_interim_response_is_dropped),
        cmocka_unit_test(a_shielded_interim_response_does_not_outlast_its_client),
        cmocka_unit_test(an_interim_response_that_is_cancelled_is_sent_while_the_server_reads),
        cmocka_unit_test(interim_responses_are_refused_where_they_may_not_be),
        cmocka_unit_test(events_are_written_by_lines),
        cmocka_unit_test(a_type_or_an_id_with_a_line_end_is_refused),
        cmocka_unit_test(events_last_longer_than_a_request_and_end_with_their_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
