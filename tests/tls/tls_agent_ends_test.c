/*
 * Requests of an HTTP agent that are cancelled, reach a deadline, or are destroyed, in each state, by HTTP/1.1 and HTTP/2,
 * plain and over TLS. Nothing is left of them, and the agent still works.
 */
#define _GNU_SOURCE
#include "agent_server.h"

static struct runner runner, holder;
static bide_http_fetch held;
static const char huge[HUGE];

typedef enum state {
    BEFORE,
    CONNECTING,
    IN_LINE,
    WAITING,
    READING,
    STARTING,
    CONTINUING,
    WRITING,
    SENDING,
    STATES
} state;

static const char *const states[] = {
    "before it begins",           "connecting", "in line",
    "waiting for a response",     "reading",    "starting an upload",
    "waiting for 100 (Continue)", "writing",    "sending a file"};

/* Has the agent's only connection. */
static void begin_holder(void)
{
    bide_event_waiter wait;
    assert_int_equal(bide_http_fetch_init(&held, f.agent, "GET", url_of("/silent")), 0);
    begin(f.world, &holder, bide_http_fetch_send(&held));
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.began)), 0);
    bide_event_init(&f.began, false);
}

static void end_holder(void)
{
    call_inside(f.world, stop, &holder);
    assert_int_equal(end(f.world, &holder), -ECANCELED);
    bide_http_fetch_close(&held);
}

/* Brings a request in front of that state. Returns the operation that gets there. */
static bide_awaiter *approach(state at)
{
    static const char *const paths[STATES] = {"/x", "/x",     "/x",     "/silent", "/half",
                                              "/x", "/stuck", "/stuck", "/stuck"};
    f.is_silent = at == CONNECTING || at == STARTING;
    if (at == IN_LINE)
        begin_holder();
    assert_int_equal(open_fetch(at >= STARTING ? "POST" : "GET", paths[at]), 0);
    f.fetch.expects_continue = at == CONTINUING;
    if (at == READING) {
        assert_int_equal(send_fetch(), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.page, 5)), 0);
        return bide_http_fetch_read(&f.fetch, f.page, 5);
    }
    if (at == STARTING || at == CONTINUING)
        return bide_http_fetch_start(&f.fetch, HUGE);
    if (at == WRITING) {
        assert_int_equal(world_wait(f.world, bide_http_fetch_start(&f.fetch, HUGE)), 0);
        return bide_http_fetch_write(&f.fetch, huge, sizeof huge);
    }
    if (at == SENDING)
        assert_int_equal(bide_http_fetch_set_file(&f.fetch, &f.file, 0, HUGE), 0);
    return bide_http_fetch_send(&f.fetch);
}

/* The request is in that state. */
static void wait_for(state at)
{
    bide_event_waiter wait;
    if (at == CONNECTING || at == STARTING)
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.silenced)), 0);
    else if (at >= WAITING)
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.began)), 0);
    else
        turn(f.world);
}

/* A plain connection opens at once, so with HTTP/2 it is a tunnel's. In line: of HTTP/2, requests share a connection. */
static bool has_state(state at)
{
    return at == CONNECTING || at == STARTING ? f.transport != PLAIN_1
           : at == IN_LINE                    ? !is_http2()
                                              : true;
}

static void check(void **state_of_test, transport transport, state at, int how)
{
    char proxy[80];
    (void)world_of_a_loop(world_of(state_of_test));
    open_peer(state_of_test, transport, (bide_http_options){0});
    f.is_proxy = transport == PLAIN_2 && (at == CONNECTING || at == STARTING);
    snprintf(proxy, sizeof proxy, "http://%s", f.address);
    make_agent((bide_http_agent_options){.version = version_of(transport),
                                         .max_connections = 1,
                                         .continue_timeout = BIDE_FOREVER,
                                         .proxy = f.is_proxy ? proxy : NULL});
    make_file(HUGE);
    if (has_state(at)) {
        bide_awaiter *operation = approach(at);
        if (at == BEFORE && how != DESTROY) {
            begin_stopped(f.world, &runner, operation);
            assert_int_equal(end(f.world, &runner), -ECANCELED);
        } else if (at != BEFORE) {
            begin_by(f.world, &runner, operation, how);
            if (how != TIME_OUT)
                wait_for(at);
            end_by(f.world, &runner, NULL, how);
        }
        f.is_silent = false;
        if (at == IN_LINE)
            end_holder();
    }
    assert_works();
    bide_close(&f.file);
    close_transport();
}

static void check_each(void **state_of_test, int how)
{
    for (transport t = 0; t < TRANSPORTS; t++) {
        for (state at = 0; at < STATES; at++) {
            printf("# %s, %s\n", transports[t], states[at]);
            check(state_of_test, t, at, how);
        }
    }
}

static void a_request_is_cancelled(void **state_of_test)
{
    check_each(state_of_test, STOP);
}

static void a_request_has_a_deadline(void **state_of_test)
{
    check_each(state_of_test, TIME_OUT);
}

static void a_request_is_destroyed(void **state_of_test)
{
    check_each(state_of_test, DESTROY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_request_is_cancelled),
        world_test(a_request_has_a_deadline),
        world_test(a_request_is_destroyed),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
