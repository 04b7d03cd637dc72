/*
 * The HTTP/2 client against the library's server: everything that requests do, and all ways in which a request or
 * a connection can end.
 */
#include "http2_client_peer.h"

static talk3 one;
static char large[400000];

static int begin_talk(void **state)
{
    (void)state;
    talk3_init(&one);
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)('a' + i % 23);
    return 0;
}

static int end_talk(void **state)
{
    (void)state;
    talk3_end(&one);
    return 0;
}

static void answered(const job *job, int code, const char *body)
{
    if (job->status != 0 || job->code != code)
        printf("# %s: %d, status %d\n", job->path, job->code, job->status);
    assert_int_equal(job->status, 0);
    assert_int_equal(job->code, code);
    if (body != NULL)
        assert_string_equal(job->answer, body);
}

static void many_requests_share_a_connection(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        talk3_job(&one, "/hello");
    assert_int_equal(talk3_run(&one), 0);
    for (int i = 0; i < 100; i++) {
        answered(&one.jobs[i], 200, "hello");
        assert_string_equal(one.jobs[i].type, "text/plain");
    }
    assert_int_equal(one.http2.stats.connections, 1);
    assert_int_equal(one.http2.stats.streams, 100);
    assert_int_equal(one.http2.stats.resets, 0);
}

static void a_slow_response_holds_back_no_other(void **state)
{
    (void)state;
    job *slow = talk3_job(&one, "/slow");
    for (int i = 0; i < 5; i++)
        talk3_job(&one, "/hello");
    assert_int_equal(talk3_run(&one), 0);
    answered(slow, 200, "slow");
    assert_int_equal(one.order[5], 0);
}

static void bodies_and_trailers_go_both_ways(void **state)
{
    (void)state;
    job *fixed = talk3_post(&one, "/echo", large, sizeof large);
    job *small = talk3_post(&one, "/echo", "abc", 3);
    small->piece = 2;
    small->trailer = "t";
    small->is_unknown = true; /* (otherwise the body ends before the trailer comes) */
    job *pieces = talk3_post(&one, "/count", large, sizeof large);
    pieces->piece = 1000;
    pieces->is_unknown = true;
    job *chunks = talk3_job(&one, "/chunks");
    job *big = talk3_job(&one, "/large");
    job *empty = talk3_post(&one, "/count", "", 0);
    for (one.seed = 0; one.seed < 20; one.seed++) {
        assert_int_equal(talk3_run(&one), 0);
        answered(fixed, 200, NULL);
        assert_int_equal(fixed->size, sizeof large);
        assert_false(fixed->is_wrong);
        answered(small, 200, "abc");
        assert_string_equal(handled.trailer, "t");
        answered(pieces, 200, "counted");
        answered(chunks, 200, "abcdeabcdeabcde");
        assert_string_equal(chunks->sum, "15");
        answered(big, 200, NULL);
        assert_int_equal(big->size, 300000);
        answered(empty, 200, "counted");
    }
}

static void a_response_without_a_body_has_none(void **state)
{
    (void)state;
    job *head = talk3_job(&one, "/hello"), *nothing = talk3_job(&one, "/nothing"), *none = talk3_job(&one, "/none");
    head->method = "HEAD";
    assert_int_equal(talk3_run(&one), 0);
    answered(head, 200, "");
    answered(nothing, 204, "");
    answered(none, 404, "404 Not Found\n");
}

static void interim_responses_are_skipped(void **state)
{
    (void)state;
    job *hints = talk3_job(&one, "/hints");
    assert_int_equal(talk3_run(&one), 0);
    answered(hints, 200, "hello");
}

static unsigned hints;

static void keep_hints(bide_http2_request *request)
{
    bide_slice link = bide_http2_request_field(request, "link");
    assert_int_equal(request->response.status, 103);
    assert_int_equal(request->response.field_count, 1);
    assert_int_equal(link.size, 21);
    assert_memory_equal(link.data, "</a.css>; rel=preload", 21);
    hints++;
}

static void interim_responses_are_seen_if_asked_for(void **state)
{
    (void)state;
    job *asks = talk3_job(&one, "/hints"), *other = talk3_job(&one, "/hints");
    asks->on_informational = keep_hints;
    hints = 0;
    assert_int_equal(talk3_run(&one), 0);
    answered(asks, 200, "hello");
    answered(other, 200, "hello");
    assert_int_equal(hints, 1);
}

/* They are no part of a value (RFC 9110, 5.5), and HTTP/2 allows none (RFC 9113, 8.2.1). */
static void blanks_at_the_ends_of_values_are_left_out(void **state)
{
    (void)state;
    static const char *const fields[][2] = {{"X-Given", " \t a \t b \t "}, {"X-Empty", " \t "}, {NULL, NULL}};
    job *job = talk3_post(&one, "/blanks", "body", 4);
    job->fields = fields;
    job->piece = 4;
    job->trailer = "\t t ";
    job->is_unknown = true;
    assert_int_equal(talk3_run(&one), 0);
    answered(job, 200, "a \t b");
    assert_string_equal(job->type, "a b");
    assert_string_equal(job->sum, "7");
    assert_string_equal(handled.trailer, "t");
}

static void a_body_can_wait_until_it_is_wanted(void **state)
{
    (void)state;
    static const char *const fields[][2] = {{"Expect", "100-continue"}, {NULL, NULL}};
    job *wanted = talk3_post(&one, "/count", "abc", 3), *unwanted = talk3_post(&one, "/hello", "abc", 3);
    wanted->fields = unwanted->fields = fields;
    wanted->continues = unwanted->continues = true;
    assert_int_equal(talk3_run(&one), 0);
    answered(wanted, 200, "counted");
    assert_true(wanted->continued);
    assert_int_equal(wanted->sent, 3);
    answered(unwanted, 200, "hello");
    assert_false(unwanted->continued);
    assert_int_equal(unwanted->sent, 0);
}

/* The server answers before it has read the body, of which it takes no more. */
static void an_early_response_is_received(void **state)
{
    (void)state;
    job *set = talk3_post(&one, "/hello", large, sizeof large), *pieces = talk3_post(&one, "/none", large, sizeof large);
    pieces->piece = 5000;
    for (one.seed = 0; one.seed < 10; one.seed++) {
        assert_int_equal(talk3_run(&one), 0);
        answered(set, 200, "hello");
        answered(pieces, 404, "404 Not Found\n");
    }
}

/* More than the windows and the buffers of all of them: it does not stop the others. */
static void a_response_that_is_not_read_holds_back_no_other(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        talk3_job(&one, "/large")->reads_not = true;
    job *large_one = talk3_job(&one, "/large");
    large_one->begins_at = SECOND;
    large_one->deadline = 3 * SECOND;
    assert_int_equal(talk3_run(&one), 0);
    answered(large_one, 200, NULL);
    assert_int_equal(large_one->size, 300000);
    assert_int_equal(one.http2.stats.resets, 20); /* closed before their end */
}

/* With a small bound on what is not read, the connection's window is given back by reads. */
static void what_is_not_read_is_bounded(void **state)
{
    (void)state;
    one.options.max_unread = 1000;
    one.options.connection_window = 65535;
    for (int i = 0; i < 10; i++)
        talk3_job(&one, "/large");
    assert_int_equal(talk3_run(&one), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(one.jobs[i].size, 300000);
}

static void windows_may_be_small_or_large(void **state)
{
    (void)state;
    static const uint32_t windows[] = {1, 100, 16384, 65536, 1 << 20};
    job *job = talk3_job(&one, "/large");
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        one.options.window = windows[i];
        job->path = windows[i] == 1 ? "/chunks" : "/large";
        assert_int_equal(talk3_run(&one), 0);
        assert_int_equal(job->size, windows[i] == 1 ? 15 : 300000);
    }
}

static void a_deadline_ends_its_request_alone(void **state)
{
    (void)state;
    job *slow = talk3_job(&one, "/slow"), *other = talk3_job(&one, "/slow"), *late = talk3_post(&one, "/reads-slowly", large, sizeof large);
    slow->deadline = SECOND;
    late->piece = 100000;
    late->deadline = SECOND / 2;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(slow->status, -ETIMEDOUT);
    assert_int_equal(late->status, -ETIMEDOUT);
    answered(other, 200, "slow");
    assert_int_equal(one.http2.stats.resets, 2);
}

static void requests_wait_in_line_for_a_stream(void **state)
{
    (void)state;
    one.options.max_streams = 1;
    for (int i = 0; i < 10; i++)
        talk3_job(&one, i % 2 ? "/hello" : "/slow");
    job *gone = &one.jobs[3];
    gone->deadline = SECOND; /* it leaves the line */
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(gone->status, -ETIMEDOUT);
    assert_int_equal(one.http2.stats.streams, 9);
    assert_int_equal(one.answered, 9);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(one.order[i], i < 3 ? i : i + 1);
}

static void a_server_that_shuts_down_answers_what_it_has(void **state)
{
    (void)state;
    job *slow = talk3_job(&one, "/slow"), *late = talk3_job(&one, "/hello");
    one.drain_at = SECOND;
    late->begins_at = 2 * SECOND;
    assert_int_equal(talk3_run(&one), 0);
    answered(slow, 200, "slow");
    assert_int_equal(late->status, -EPIPE);
}

static void a_client_that_shuts_down_completes_its_requests(void **state)
{
    (void)state;
    one.options.max_streams = 1;
    job *slow = talk3_job(&one, "/slow"), *waits = talk3_job(&one, "/hello"), *late = talk3_job(&one, "/hello");
    one.shut_down_at = SECOND;
    late->begins_at = 2 * SECOND;
    assert_int_equal(talk3_run(&one), 0);
    answered(slow, 200, "slow");
    answered(waits, 200, "hello");
    assert_int_equal(late->status, -EPIPE);
    assert_in_range(one.took, 5 * SECOND, 6 * SECOND);
}

static void an_idle_connection_ends(void **state)
{
    (void)state;
    one.options.idle_timeout = 10 * SECOND;
    one.stays = true;
    job *hello = talk3_job(&one, "/hello"), *second = talk3_job(&one, "/hello");
    second->begins_at = 9 * SECOND;
    assert_int_equal(talk3_run(&one), 0);
    answered(hello, 200, "hello");
    answered(second, 200, "hello");
    assert_in_range(one.took, 19 * SECOND, 20 * SECOND);
}

static void a_handler_that_fails_resets_its_stream(void **state)
{
    (void)state;
    job *fails = talk3_job(&one, "/fails"), *late = talk3_job(&one, "/fails-late"), *hello = talk3_job(&one, "/hello");
    late->reads = 1;
    assert_int_equal(talk3_run(&one), 0);
    answered(fails, 500, NULL);
    assert_int_equal(late->status, -ECONNRESET);
    assert_string_equal(late->answer, "some"); /* what came before */
    answered(hello, 200, "hello");
}

/* A runner that is destroyed ends all requests. */
static void a_connection_that_is_cancelled_ends_its_requests(void **state)
{
    (void)state;
    one.options.max_streams = 2;
    one.destroy_at = SECOND;
    for (int i = 0; i < 4; i++)
        talk3_job(&one, "/slow");
    (void)talk3_run(&one);
    for (int i = 0; i < 4; i++)
        assert_int_equal(one.jobs[i].status, i < 2 ? -ECANCELED : -ECONNREFUSED);
    assert_int_equal(handled.slept, -ECANCELED);
}

/* ---- A second run ---- */

bide_coroutine(second_run_body)
{
    bide_begin(second_run_body, job * self);
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    assert_true(self->talk->client.is_running);
    bide_await_status(self->status, bide_http2_client_run(&self->talk->client));
    bide_finally();
    self->ends++;
    bide_end();
}

static void a_client_runs_once(void **state)
{
    (void)state;
    talk3_job(&one, "/slow");
    talk3_job(&one, "/")->does = &second_run_body;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(one.jobs[0].status, 0);
    assert_int_equal(one.jobs[0].code, 200);
    assert_int_equal(one.jobs[1].status, -EINVAL);
    assert_int_equal(bide_sim_loop_wait(&one.loop, bide_http2_client_run(&one.client)), -EINVAL);
}

struct held_run {
    bide_task task;
    bide_scope scope;
    bide_branch held, branches[2];
    bide_event never;
    bide_event_waiter wait;
    bide_http2_request request;
    bide_with_deadline_operation limited;
    int status;
};

/* Its first run waits in a scope that has no room, which is destroyed. The second one runs. */
bide_coroutine(held_run_body)
{
    bide_begin(held_run_body, struct held_run * self);
    bide_event_init(&self->never, false);
    bide_scope_init_with(&self->scope, bide_this_frame(), &(bide_scope_options){.max_running = 1});
    bide_scope_spawn(&self->scope, &self->held, bide_event_wait(&self->wait, &self->never));
    bide_scope_spawn(&self->scope, &self->branches[0], bide_http2_client_run(&one.client));
    assert_int_equal(bide_http2_request_init(&self->request, &one.client, "GET", "/", "a"), 0);
    bide_scope_destroy(&self->scope);
    bide_await_status(self->status, bide_with_timeout(&self->limited, SECOND, bide_http2_request_recv(&self->request)));
    assert_int_equal(self->status, -ETIMEDOUT);
    assert_true(bide_http2_client_is_usable(&one.client));
    bide_memory_pipe_destroy(&one.from_server);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branches[1], bide_http2_client_run(&one.client));
    bide_await_status(self->status, bide_http2_request_recv(&self->request));
    assert_true(self->status == -EPIPE || self->status == -ECONNREFUSED);
    bide_http2_request_close(&self->request);
    bide_await(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

static void a_run_that_is_destroyed_before_it_begins_may_be_repeated(void **state)
{
    static struct held_run run;
    (void)state;
    bide_sim_loop_init(&one.loop, 1);
    bide_memory_pipe_init(&one.to_server, one.to_memory, PEER_PIPE);
    bide_memory_pipe_init(&one.from_server, one.from_memory, PEER_PIPE);
    one.client_end = (bide_memory_end){&one.from_server, &one.to_server};
    assert_int_equal(bide_http2_client_init(&one.client, bide_memory_stream(&one.client_end), NULL), 0);
    assert_int_equal(bide_sim_loop_wait(&one.loop, bide_task_init(&run.task, &held_run_body)), 0);
    bide_http2_client_destroy(&one.client);
}

static void a_request_is_checked(void **state)
{
    (void)state;
    static const char *const fields[][3] = {
        {"Host", "x", NULL}, {"connection", "close", NULL}, {"Content-Length", "1", NULL}, {"TE", "gzip", NULL},
        {"Transfer-Encoding", "chunked", NULL}, {"upgrade", "x", NULL}, {":path", "/", NULL}, {"a b", "c", NULL},
        {"", "c", NULL}, {"a", "b\nc", NULL}, {"a:b", "c", NULL},
    };
    bide_http2_client *client = &one.client;
    bide_http2_request request;
    static char long_text[9000];
    memset(long_text, 'x', sizeof long_text - 1);
    bide_memory_pipe_init(&one.to_server, one.to_memory, PEER_PIPE);
    bide_memory_pipe_init(&one.from_server, one.from_memory, PEER_PIPE);
    one.client_end = (bide_memory_end){&one.from_server, &one.to_server};
    assert_int_equal(bide_http2_client_init(client, bide_memory_stream(&one.client_end),
                                            &(bide_http2_client_options){.connection_window = 1000}), -EINVAL);
    assert_int_equal(bide_http2_client_init(client, bide_memory_stream(&one.client_end),
                                            &(bide_http2_client_options){.window = UINT32_C(1) << 31}), -EINVAL);
    assert_int_equal(bide_http2_client_init(client, bide_memory_stream(&one.client_end), NULL), 0);
    assert_int_equal(bide_http2_request_init(&request, client, "CONNECT", "/", "a:1"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "CONNECT", "a:1", "b:1"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "connect", "a:1", "a:1"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "CONNECT", "a", "a"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "CONNECT", "a:", "a:"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "CONNECT", ":1", ":1"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "G T", "/", "a"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "", "a"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "a", "a"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "/ ", "a"), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "/", ""), -EINVAL);
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "/", "a b"), -EINVAL);
    long_text[0] = '/';
    assert_int_equal(bide_http2_request_init(&request, client, "GET", long_text, "a"), -EMSGSIZE);
    bide_http2_request_close(&request);
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "/", "a"), 0);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_int_equal(bide_http2_request_add(&request, fields[i][0], fields[i][1]), -EINVAL);
    assert_int_equal(bide_http2_request_add(&request, "a", long_text), -EMSGSIZE);
    assert_int_equal(bide_http2_request_add_trailer(&request, "a", "b"), -EINVAL);
    for (int i = 0; i < 500; i++)
        assert_int_equal(bide_http2_request_add(&request, "X-Name", "value"), 0);
    assert_int_equal(bide_http2_request_set_body(&request, "abc", 3), 0);
    assert_int_equal(bide_http2_request_finish_head(&request, 0), -EINVAL);
    assert_int_equal(bide_http2_request_add(&request, "a", "b"), -EINVAL);
    assert_null(bide_http2_request_field(&request, "a").data);
    assert_null(bide_http2_request_trailer(&request, "a").data);
    bide_http2_request_close(&request);
    bide_http2_request_close(&request);
    assert_true(bide_http2_client_is_usable(client));
    bide_http2_client_shut_down(client);
    assert_false(bide_http2_client_is_usable(client));
    assert_int_equal(bide_http2_request_init(&request, client, "GET", "/", "a"), -EPIPE);
    bide_http2_client_destroy(client);
}

static uint64_t drawn;

static unsigned draw(unsigned below)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(drawn >> 33) % below;
}

/* Random requests with random ends, through small pipes. */
static void a_storm_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const paths[] = {"/hello", "/large", "/chunks", "/echo", "/count", "/slow", "/fails-late", "/none", "/hints", "/nothing"};
    const char *given = getenv("BIDE_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : 1;
    unsigned rounds = rounds_of(given != NULL ? 1 : 120);
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        talk3_end(&one);
        talk3_init(&one);
        drawn = seed * UINT64_C(0x9e3779b97f4a7c15);
        one.seed = seed;
        one.pipe = 100 + draw(5000);
        one.options.max_streams = 1 + draw(20);
        one.options.window = draw(3) ? 0 : 100 + draw(100000);
        one.options.max_unread = draw(2) ? 0 : 1 + draw(200000);
        one.drain_at = draw(6) ? 0 : 1 + draw(3) * SECOND;
        one.shut_down_at = draw(6) ? 0 : 1 + draw(3) * SECOND;
        one.destroy_at = draw(8) ? 0 : 1 + draw(6) * SECOND;
        unsigned count = 1 + draw(40);
        for (unsigned i = 0; i < count; i++) {
            job *job = talk3_job(&one, paths[draw(10)]);
            if (draw(2)) {
                job->body = large;
                job->body_size = draw(draw(4) ? 2000 : 200000);
                job->piece = draw(2) ? 0 : 1 + draw(70000);
                job->is_unknown = draw(2);
                if (job->piece != 0 && (strcmp(job->path, "/echo") == 0 || strcmp(job->path, "/large") == 0))
                    job->path = "/count"; /* (each would wait for the other to read) */
                job->trailer = job->piece != 0 && draw(2) ? "t" : NULL;
            }
            job->reads = 1 + draw(4000);
            job->reads_not = !draw(6);
            job->begins_at = draw(2) * draw(2000) * MILLISECOND;
            job->deadline = draw(5) ? 0 : 1 + draw(6000) * MILLISECOND;
        }
        int status = talk3_run(&one);
        for (unsigned i = 0; i < count; i++) {
            const job *job = &one.jobs[i];
            bool is_known = job->status == 0 || job->status == -ETIMEDOUT || job->status == -ECONNREFUSED ||
                            job->status == -EPIPE || job->status == -ECONNRESET || job->status == -ENODATA ||
                            job->status == -ECANCELED || job->status == -EINPROGRESS;
            bool is_echo = job->status == 0 && job->code == 200 && strcmp(job->path, "/echo") == 0 && !job->reads_not;
            if (!is_known || (is_echo && (job->is_wrong || job->size != job->body_size)) ||
                (job->status == 0 && job->code == 200 && strcmp(job->path, "/large") == 0 && !job->reads_not && job->size != 300000))
                fail_msg("seed %llu, request %u: %s, status %d, code %d, %zu bytes", (unsigned long long)seed, i, job->path,
                         job->status, job->code, job->size);
        }
        if (status != 0 && status != -ECANCELED && status != -EINPROGRESS && status != -ENODATA && status != -EPIPE)
            fail_msg("seed %llu: the connection ended with %d", (unsigned long long)seed, status);
    }
    printf("# seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + rounds - 1));
}

int main(void)
{
#define talk_test(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)
    const struct CMUnitTest tests[] = {
        talk_test(many_requests_share_a_connection),
        talk_test(a_slow_response_holds_back_no_other),
        talk_test(bodies_and_trailers_go_both_ways),
        talk_test(a_response_without_a_body_has_none),
        talk_test(interim_responses_are_skipped),
        talk_test(interim_responses_are_seen_if_asked_for),
        talk_test(blanks_at_the_ends_of_values_are_left_out),
        talk_test(a_body_can_wait_until_it_is_wanted),
        talk_test(an_early_response_is_received),
        talk_test(a_response_that_is_not_read_holds_back_no_other),
        talk_test(what_is_not_read_is_bounded),
        talk_test(windows_may_be_small_or_large),
        talk_test(a_deadline_ends_its_request_alone),
        talk_test(requests_wait_in_line_for_a_stream),
        talk_test(a_server_that_shuts_down_answers_what_it_has),
        talk_test(a_client_that_shuts_down_completes_its_requests),
        talk_test(an_idle_connection_ends),
        talk_test(a_handler_that_fails_resets_its_stream),
        talk_test(a_connection_that_is_cancelled_ends_its_requests),
        talk_test(a_client_runs_once),
        talk_test(a_run_that_is_destroyed_before_it_begins_may_be_repeated),
        talk_test(a_request_is_checked),
        talk_test(a_storm_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
