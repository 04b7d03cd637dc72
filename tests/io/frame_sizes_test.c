/*
 * Where the size of a coroutine's frame is given apart from its body (a server's slot, a handler's frame, a forked
 * child's type), one that is smaller than the body's struct is reported, with the body's name.
 */
#include "testing.h"

#include <bide/bide.h>

#if HAS_HTTP
#include <bide/http.h>
#endif

#include "misuse.h"

#if BIDE_DEBUG

struct session {
    bide_connection connection;
    char room[1000];
};

bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    memset(self->room, 7, sizeof self->room);
    bide_end();
}

static void a_server_of_small_slots(void)
{
    static bide_server server;
    static struct session slots[2];
    (void)bide_server_init(&server, &(bide_server_options){.body = &session_body,
                                                           .size = sizeof(bide_connection),
                                                           .max_connections = 2,
                                                           .slots = slots});
}

static void a_pool_server_of_small_slots(void)
{
    static bide_server server;
    bide_server_options options = {
        .body = &session_body, .size = sizeof(struct session) - 1, .max_connections = 2};
    options.allocator = &bide_heap;
    (void)bide_server_init(&server, &options);
}

struct large_child {
    bide_fork_task forking;
    char room[1000];
};

bide_fork_coroutine(large_child_body)
{
    bide_begin(large_child_body, struct large_child * self);
    memset(self->room, 7, sizeof self->room);
    bide_end();
}

struct small_child {
    bide_fork_task forking;
    int i;
};

struct parent {
    bide_fork_task forking;
};

bide_fork_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    bide_await(bide_fork(self, struct small_child, &large_child_body, i = 1));
    bide_await(bide_fork_join(self));
    bide_end();
}

static void a_fork_of_a_small_type(void)
{
    static struct parent parent;
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    (void)bide_sync_wait_in(&context, bide_fork_task_init(&parent.forking, &parent_body));
}

#if HAS_HTTP
struct hello {
    bide_http_exchange exchange;
    char room[1000];
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello * self);
    memset(self->room, 7, sizeof self->room);
    bide_end();
}

static void a_handler_of_a_small_size(void)
{
    static bide_http_server server;
    (void)bide_http_server_init(
        &server, &(bide_http_options){.handler = {&hello_body, sizeof(bide_http_exchange)},
                                      .max_connections = 1});
}
#endif

static void a_frame_that_is_too_small_is_reported(void **state)
{
    static const char what[] = "a frame is smaller than the struct of its body ";
    (void)state;
    assert_true(misuse_aborts_naming(a_server_of_small_slots, what,
                                     "session_body: bide_server_options.size"));
    assert_true(misuse_aborts_naming(a_pool_server_of_small_slots, what, "session_body"));
    assert_true(
        misuse_aborts_naming(a_fork_of_a_small_type, what, "large_child_body: parent_body"));
#if HAS_HTTP
    assert_true(misuse_aborts_naming(a_handler_of_a_small_size, what,
                                     "hello_body: bide_http_handler.size"));
#endif
}

#else

static void a_frame_that_is_too_small_is_reported(void **state)
{
    (void)state;
    skip(); /* only debug builds know the sizes */
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_frame_that_is_too_small_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
