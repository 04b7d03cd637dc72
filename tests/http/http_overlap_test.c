/*
 * Handlers with several coroutines: reads and writes that are destroyed while their handler goes on, and a read that
 * sends "100 Continue" while another coroutine responds. Handlers that go on after a stop.
 */
#include "http_peer.h"

static peer one;

#define HEAD(line) "HTTP/1.1 " line "\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define POST(path) "POST " path " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"

/* ---- Destroyed operations ---- */

/* The coroutine that reads or writes. */
struct part {
    bide_task task;
    bide_branch branch;
    bide_http_exchange *exchange;
    bide_sleep sleep;
    char body[16];
    size_t size;
    int status;
};

static char text[PEER_PIPE * 4];

bide_coroutine(part_body)
{
    bide_begin(part_body, struct part * self);
    if (path_is(self->exchange, "/writes"))
        bide_await_status(self->status, bide_http_respond(self->exchange, text, sizeof text));
    else if (path_is(self->exchange, "/hints"))
        bide_await_status(self->status, bide_http_send_interim(self->exchange, 103, NULL, 0));
    else
        bide_await_status(self->status, bide_http_read(self->exchange, self->body, sizeof self->body));
    bide_return(self->status);
    bide_end();
}

struct owner {
    bide_http_exchange exchange;
    bide_scope scope;
    struct part part;
    bide_sleep sleep;
};

/* Destroys the part, and waits for longer than its deadline was. */
bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    handled.begun++;
    bide_scope_init(&self->scope, bide_this_frame());
    if (path_is(&self->exchange, "/earlier")) {
        bide_try(bide_http_respond(&self->exchange, text, 300));
        bide_return(0);
    }
    self->part.exchange = &self->exchange;
    self->part.status = 1;
    bide_scope_spawn(&self->scope, &self->part.branch, bide_task_init(&self->part.task, &part_body));
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    assert_int_equal(self->part.status, 1); /* it waits */
    bide_scope_destroy(&self->scope);
    bide_await_status(handled.slept, bide_sleep_for(&self->sleep, 100 * SECOND));
    bide_finally();
    bide_scope_destroy(&self->scope);
    handled.ended++;
    bide_end();
}

static void a_destroyed_operation_leaves_no_deadline(void **state)
{
    static const char *const requests[] = {
        "POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n",
        POST("/reads"), /* it waits until "100 Continue" was sent */
        "GET /hints HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /writes HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&owner_body, sizeof(struct owner)},
                                         .body_idle_timeout = 10 * SECOND});
    one.ends = false;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        static char input[400];
        one.reads_not = i != 0;
        one.piece = i == 0 ? 0 : 256; /* the pipe has less room than the earlier response */
        snprintf(input, sizeof input, "%s%s", i != 0 ? "GET /earlier HTTP/1.1\r\nHost: a\r\n\r\n" : "", requests[i]);
        (void)peer_say(&one, input);
        assert_int_equal(handled.begun, i == 0 ? 1 : 2);
        if (handled.slept != 0)
            printf("# request %zu\n", i);
        assert_int_equal(handled.slept, 0);
    }
    peer_end(&one);
}

/* ---- A response while "100 Continue" is being sent ---- */

struct both {
    bide_http_exchange exchange;
    bide_scope scope;
    struct part part;
    bide_sleep sleep;
    int status;
};

static size_t response_size;
static uint64_t delay;

bide_coroutine(both_body)
{
    bide_begin(both_body, struct both * self);
    handled.begun++;
    if (path_is(&self->exchange, "/earlier")) {
        bide_try(bide_http_respond(&self->exchange, text,
                                   strtoul(self->exchange.request.query.data, NULL, 10)));
    } else {
        self->part.exchange = &self->exchange;
        bide_scope_init(&self->scope, bide_this_frame());
        bide_scope_spawn(&self->scope, &self->part.branch, bide_task_init(&self->part.task, &part_body));
        bide_try(bide_sleep_for(&self->sleep, delay));
        bide_await_status(self->status, bide_http_respond(&self->exchange, text, response_size));
        handled.error = self->status;
        bide_try(bide_scope_join(&self->scope));
        keep_body(self->part.body, self->exchange.count);
    }
    bide_finally();
    if (!path_is(&self->exchange, "/earlier"))
        bide_scope_destroy(&self->scope);
    handled.counted_at = bide_now(bide_this_context());
    handled.ended++;
    bide_end();
}

/* The other operation waits: its deadline stays. */
static void a_read_or_write_that_ends_leaves_the_deadline_of_the_other(void **state)
{
    static const char head[] = "POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    static char whole[sizeof head + 4];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&both_body, sizeof(struct both)},
                                         .body_idle_timeout = 30 * SECOND,
                                         .request_timeout = 300 * SECOND});
    one.ends = false;
    delay = 1;

    /* the write stalls, the read ends */
    snprintf(whole, sizeof whole, "%sbody", head);
    response_size = sizeof text;
    one.reads_not = true;
    one.cut = sizeof head - 1;
    assert_int_equal(peer_say(&one, whole), -ETIMEDOUT);
    assert_int_equal(handled.read, 4);
    assert_int_equal(handled.error, -ETIMEDOUT);
    assert_int_equal((handled.counted_at - one.began) / SECOND, 30);

    /* the read stalls, the write ends */
    response_size = PEER_PIPE + 1;
    one.reads_not = false;
    one.read_pause = SECOND;
    one.cut = 0;
    (void)peer_say(&one, head);
    assert_int_equal(one.connection.input.status, -ETIMEDOUT);
    assert_int_equal(handled.read, 0);
    assert_int_equal(handled.error, 0);
    assert_int_equal((handled.counted_at - one.began) / SECOND, 30);
    peer_end(&one);
}

static void a_response_may_begin_while_100_continue_is_sent(void **state)
{
    static char input[600], wanted[100000];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&both_body, sizeof(struct both)},
                                         .body_idle_timeout = 1000 * SECOND,
                                         .request_timeout = 1000 * SECOND});
    memset(text, 'x', sizeof text);
    one.piece = 256;
    one.read_pause = SECOND; /* so much in a second */
    for (size_t earlier = 100; earlier < 3000; earlier += 577)
        for (response_size = 3; response_size < 40000; response_size *= 9)
            for (delay = 1; delay < 4 * SECOND; delay += SECOND / 2) {
                int before = snprintf(input, sizeof input, "GET /earlier?%zu HTTP/1.1\r\nHost: a\r\n\r\n%s", earlier, POST("/reads"));
                snprintf(input + before, sizeof input - (size_t)before, "body");
                size_t size = (size_t)sprintf(wanted, HEAD("200 OK") "Content-Length: %zu\r\n\r\n", earlier);
                memset(wanted + size, 'x', earlier);
                size += earlier;
                size += (size_t)sprintf(wanted + size, "HTTP/1.1 100 Continue\r\n\r\n");
                one.cut = (size_t)before; /* the body follows "100 Continue" */
                one.cut_until = size;
                size += (size_t)sprintf(wanted + size, HEAD("200 OK") "Content-Length: %zu\r\n\r\n", response_size);
                memset(wanted + size, 'x', response_size);
                wanted[size + response_size] = '\0';
                assert_int_equal(peer_say(&one, input), 0);
                assert_int_equal(handled.error, 0);
                assert_int_equal(handled.read, 4);
                assert_memory_equal(handled.body, "body", 4);
                assert_string_equal(one.output, wanted);
            }
    peer_end(&one);
}

/* ---- Operations that a stop does not reach ---- */

struct sheltered_part {
    bide_task task;
    bide_branch branch;
    bide_http_exchange *exchange;
    bide_with_stop_operation sheltered;
    bide_with_deadline_operation limited;
    char body[16];
    int status;
};

bide_coroutine(sheltered_part_body)
{
    bide_begin(sheltered_part_body, struct sheltered_part * self);
    if (path_is(self->exchange, "/gives-up")) { /* for a time, while "100 Continue" is being sent */
        bide_await_status(self->status,
                          bide_with_stop(&self->sheltered, NULL,
                                         bide_with_timeout(&self->limited, MILLISECOND,
                                                           bide_http_read(self->exchange, self->body, sizeof self->body))));
        assert_int_equal(self->status, -ETIMEDOUT);
    }
    bide_await_status(self->status,
                      bide_with_stop(&self->sheltered, NULL,
                                     bide_http_read(self->exchange, self->body, sizeof self->body)));
    keep_body(self->body, self->exchange->count);
    bide_return(self->status);
    bide_end();
}

struct sheltered {
    bide_http_exchange exchange;
    bide_scope scope;
    struct sheltered_part part;
    bide_with_stop_operation sheltered;
    bide_sleep sleep;
    int status;
};

/* Its connection is stopped before it reads. It responds after that, or after `delay`. */
bide_coroutine(sheltered_body)
{
    bide_begin(sheltered_body, struct sheltered * self);
    handled.begun++;
    if (path_is(&self->exchange, "/earlier")) {
        bide_try(bide_http_respond(&self->exchange, text,
                                   strtoul(self->exchange.request.query.data, NULL, 10)));
        bide_return(0);
    }
    bide_await_status(handled.slept, bide_sleep_for(&self->sleep, 5 * SECOND));
    self->part.exchange = &self->exchange;
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->part.branch, bide_task_init(&self->part.task, &sheltered_part_body));
    if (path_is(&self->exchange, "/responds")) {
        bide_await(bide_with_stop(&self->sheltered, NULL, bide_sleep_for(&self->sleep, delay)));
    } else {
        bide_await_status(self->status, bide_with_stop(&self->sheltered, NULL, bide_scope_join(&self->scope)));
    }
    bide_await_status(handled.error,
                      bide_with_stop(&self->sheltered, NULL, bide_http_respond(&self->exchange, text, response_size)));
    bide_await_status(self->status, bide_with_stop(&self->sheltered, NULL, bide_http_flush(&self->exchange)));
    bide_await_status(self->status, bide_with_stop(&self->sheltered, NULL, bide_scope_join(&self->scope)));
    bide_finally();
    if (!path_is(&self->exchange, "/earlier"))
        bide_scope_destroy(&self->scope);
    handled.ended++;
    bide_end();
}

/* The output of the connection goes on: 100 Continue is sent by the read, behind the earlier response. */
static void a_sheltered_read_sends_100_continue_after_a_stop(void **state)
{
    static const char *const requests[] = {POST("/reads"), POST("/responds"), POST("/gives-up")};
    static char input[600], wanted[100000];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&sheltered_body, sizeof(struct sheltered)},
                                         .body_idle_timeout = 1000 * SECOND,
                                         .request_timeout = 1000 * SECOND});
    memset(text, 'x', sizeof text);
    one.piece = 256;
    one.read_pause = SECOND; /* so much in a second */
    one.stop_after = 3;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        for (size_t earlier = 0; earlier < 3000; earlier += 577)
            for (delay = 1; delay < 4 * SECOND; delay += SECOND / 2) {
                int before = earlier == 0 ? 0
                                          : snprintf(input, sizeof input, "GET /earlier?%zu HTTP/1.1\r\nHost: a\r\n\r\n", earlier);
                before += snprintf(input + before, sizeof input - (size_t)before, "%s", requests[i]);
                snprintf(input + before, sizeof input - (size_t)before, "body");
                size_t size = 0;
                if (earlier != 0) {
                    size = (size_t)sprintf(wanted, HEAD("200 OK") "Content-Length: %zu\r\n\r\n", earlier);
                    memset(wanted + size, 'x', earlier);
                    size += earlier;
                }
                size += (size_t)sprintf(wanted + size, "HTTP/1.1 100 Continue\r\n\r\n");
                one.cut = (size_t)before; /* the body follows "100 Continue" */
                one.cut_until = size;
                response_size = 2000;
                size += (size_t)sprintf(wanted + size, HEAD("200 OK") "Content-Length: %zu\r\n\r\n", response_size);
                memset(wanted + size, 'x', response_size);
                wanted[size + response_size] = '\0';
                (void)peer_say(&one, input);
                assert_int_equal(handled.slept, -ECANCELED);
                assert_int_equal(handled.error, 0);
                assert_int_equal(handled.read, 4);
                assert_memory_equal(handled.body, "body", 4);
                assert_string_equal(one.output, wanted);
            }
    peer_end(&one);
}

/* ---- Writes that do not begin ---- */

struct unbegun {
    bide_http_exchange exchange;
    bide_scope scope;
    bide_branch branch;
    bide_stop_source stop;
    bide_with_stop_operation stopped;
    int status;
};

/* Its write is under a stop that was requested before, and it goes on as if all were sent. */
bide_coroutine(unbegun_body)
{
    bide_begin(unbegun_body, struct unbegun * self);
    handled.begun++;
    bide_scope_init(&self->scope, bide_this_frame());
    if (path_is(&self->exchange, "/next")) {
        bide_try(bide_http_respond(&self->exchange, "next", 4));
        bide_return(0);
    }
    assert_int_equal(bide_http_start_response(&self->exchange, response_size), 0);
    if (path_is(&self->exchange, "/stopped")) {
        bide_stop_source_init(&self->stop);
        bide_stop_request(&self->stop);
        bide_await_status(handled.error, bide_with_stop(&self->stopped, &self->stop,
                                                        bide_http_write(&self->exchange, text, response_size)));
    } else {
        bide_scope_stop(&self->scope);
        bide_scope_spawn(&self->scope, &self->branch, bide_http_write(&self->exchange, text, response_size));
        bide_await_status(handled.error, bide_scope_join(&self->scope));
    }
    bide_finally();
    bide_scope_destroy(&self->scope);
    handled.ended++;
    bide_end();
}

/* Its bytes are counted, and missing: the next response would be taken for them. */
static void a_write_that_does_not_begin_completes_no_response(void **state)
{
    static const char *const paths[] = {"/stopped", "/branch"};
    unsigned cancelled = 0;
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&unbegun_body, sizeof(struct unbegun)}});
    for (one.seed = 0; one.seed < 200; one.seed++)
        for (int i = 0; i < 2; i++) {
            char input[200];
            response_size = one.seed % 2 == 0 ? 20000 : 10; /* ten bytes fit into the buffer */
            snprintf(input, sizeof input, "GET %s HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
                     paths[i]);
            (void)peer_say(&one, input);
            cancelled += handled.error == -ECANCELED && response_size > 10;
            if (handled.error != 0)
                assert_int_equal(handled.error, -ECANCELED);
            const char *body = strstr(one.output, "\r\n\r\n");
            size_t size = body != NULL ? one.output_size - (size_t)(body + 4 - one.output) : 0;
            if (handled.begun == 2) /* the next one is behind the whole body */
                assert_true(size > response_size && memcmp(body + 4 + response_size, "HTTP/1.1 200", 12) == 0);
            else
                assert_true(size < response_size);
            assert_int_equal(handled.begun, handled.error == 0 ? 2 : 1);
        }
    one.seed = 0;
    assert_true(cancelled != 0);
    peer_end(&one);
}

/* ---- Reads that wait beside a write that fails ---- */

struct beside {
    bide_http_exchange exchange;
    bide_scope reads, writes;
    struct part part;
    bide_branch branch;
    bide_sleep sleep;
    int status;
};

static bool destroys;

/* Its read waits behind the earlier response, and its write behind the read's "100 Continue". */
bide_coroutine(beside_body)
{
    bide_begin(beside_body, struct beside * self);
    handled.begun++;
    bide_scope_init(&self->reads, bide_this_frame());
    bide_scope_init(&self->writes, bide_this_frame());
    if (path_is(&self->exchange, "/earlier")) {
        bide_try(bide_http_respond(&self->exchange, text, 300));
        bide_return(0);
    }
    self->part.exchange = &self->exchange;
    self->part.status = 1;
    bide_scope_spawn(&self->reads, &self->part.branch, bide_task_init(&self->part.task, &part_body));
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    bide_scope_spawn(&self->writes, &self->branch, bide_http_respond(&self->exchange, text, sizeof text));
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    assert_int_equal(self->part.status, 1); /* it waits */
    if (!destroys) {
        bide_scope_stop(&self->writes);
        bide_await_status(self->status, bide_scope_join(&self->writes));
        assert_int_equal(self->status, -ECANCELED);
    }
    bide_scope_destroy(&self->writes);
    bide_await_status(handled.error, bide_scope_join(&self->reads));
    handled.counted_at = bide_now(bide_this_context());
    bide_finally();
    bide_scope_destroy(&self->writes);
    bide_scope_destroy(&self->reads);
    handled.ended++;
    bide_end();
}

static void a_write_that_is_cancelled_or_destroyed_wakes_the_read(void **state)
{
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&beside_body, sizeof(struct beside)},
                                         .body_idle_timeout = 100 * SECOND});
    one.ends = false;
    one.reads_not = true;
    one.piece = 256; /* the pipe has less room than the earlier response */
    for (int i = 0; i < 2; i++) {
        destroys = i == 1;
        (void)peer_say(&one, "GET /earlier HTTP/1.1\r\nHost: a\r\n\r\n" POST("/reads"));
        assert_int_equal(handled.error, -ECANCELED);
        assert_int_equal((handled.counted_at - one.began) / SECOND, 2);
    }
    peer_end(&one);
}

/* ---- Reads beside a write that is held ---- */

enum { HELD = 10000 }; /* more than the buffer has room for */

struct held {
    bide_http_exchange exchange;
    bide_scope reads, writes;
    struct part part;
    bide_branch first, branch;
    bide_event read;
    bide_event_waiter wait;
    bide_sleep sleep;
    int status;
};

/* Its write is made while its read waits behind the earlier response, and begins when the read has ended. */
bide_coroutine(held_body)
{
    bide_begin(held_body, struct held * self);
    handled.begun++;
    bide_event_init(&self->read, false);
    bide_scope_init(&self->reads, bide_this_frame());
    bide_scope_init_with(&self->writes, bide_this_frame(), &(bide_scope_options){.max_running = 1});
    if (path_is(&self->exchange, "/earlier")) {
        bide_try(bide_http_respond(&self->exchange, text, 300));
        bide_return(0);
    }
    self->part.exchange = &self->exchange;
    self->part.status = 1;
    bide_scope_spawn(&self->reads, &self->part.branch, bide_task_init(&self->part.task, &part_body));
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    assert_int_equal(self->part.status, 1); /* it waits */
    bide_scope_spawn(&self->writes, &self->first, bide_event_wait(&self->wait, &self->read));
    bide_scope_spawn(&self->writes, &self->branch, bide_http_respond(&self->exchange, text, HELD));
    bide_await_status(handled.error, bide_scope_join(&self->reads));
    keep_body(self->part.body, self->exchange.count);
    bide_event_set(&self->read);
    bide_try(bide_scope_join(&self->writes));
    bide_finally();
    bide_scope_destroy(&self->writes);
    bide_scope_destroy(&self->reads);
    handled.ended++;
    bide_end();
}

static void a_read_beside_a_held_write_sends_100_continue(void **state)
{
    static const char before[] = "GET /earlier HTTP/1.1\r\nHost: a\r\n\r\n" POST("/reads");
    static char wanted[HELD + 1000];
    (void)state;
    peer_init(&one, &(bide_http_options){.handler = {&held_body, sizeof(struct held)}, .body_idle_timeout = 1000 * SECOND});
    memset(text, 'x', sizeof text);
    size_t size = (size_t)sprintf(wanted, HEAD("200 OK") "Content-Length: 300\r\n\r\n%.300sHTTP/1.1 100 Continue\r\n\r\n", text);
    one.piece = 256;
    one.read_pause = SECOND; /* so much in a second */
    one.cut = sizeof before - 1; /* the body follows "100 Continue" */
    one.cut_until = size;
    sprintf(wanted + size, HEAD("200 OK") "Content-Length: %d\r\n\r\n%.*s", HELD, HELD, text);
    assert_int_equal(peer_say(&one, "GET /earlier HTTP/1.1\r\nHost: a\r\n\r\n" POST("/reads") "body"), 0);
    assert_int_equal(handled.error, 0);
    assert_int_equal(handled.read, 4);
    assert_string_equal(one.output, wanted);
    peer_end(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sheltered_read_sends_100_continue_after_a_stop),
        cmocka_unit_test(a_read_or_write_that_ends_leaves_the_deadline_of_the_other),
        cmocka_unit_test(a_destroyed_operation_leaves_no_deadline),
        cmocka_unit_test(a_response_may_begin_while_100_continue_is_sent),
        cmocka_unit_test(a_write_that_does_not_begin_completes_no_response),
        cmocka_unit_test(a_write_that_is_cancelled_or_destroyed_wakes_the_read),
        cmocka_unit_test(a_read_beside_a_held_write_sends_100_continue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
