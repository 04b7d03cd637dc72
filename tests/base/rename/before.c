/* A program written against the names from before 0.1.0, to test scripts/rename-0.1. It is compiled, not run. */
#include <bide/bide.h>
#include <bide/pass.h>
#include <bide/test_loop.h>
#include <bide/turn_watch.h>

/* a struct of the program's own, whose members have the same names as bide's */
struct options {
    size_t most, first, input, threads;
};

struct site {
    bide_http_server http;
    bide_server_options listen;
    struct options options;
};

static const bide_http_handler *choose(bide_http_exchange *exchange)
{
    bide_http_text name = {"x", 1};
    return bide_http_add_text(exchange, name, (bide_http_text){.data = "y", .size = 1}) == 0 ? NULL : NULL;
}

static int serve(struct site *site, const struct options *options)
{
    bide_http_options http = {
        .choose = choose,
        .frame = 128,
        .most = options->most,
        .first = options->first,
        .head = 1,
        .between = 2,
        .idle = 3,
        .whole = 4,
        .linger = 5,
        .input = options->input,
        .output = 4096,
        .most_head = 2048,
    };
    site->listen = (bide_server_options){.most = 10, .kept = 2, .pause = 1};
    site->listen.most = site->options.most;
    http.most_body = BIDE_HTTP_UNKNOWN;
    (&http)->most_fields = 10;
    bide_http_server_init(&site->http, &http);
    return site->http.counts.live != 0;
}

static void count(bide_server *server, bide_loop *loop, bide_thread_pool *pool)
{
    bide_server_counts counts;
    bide_loop_counts of_loop;
    bide_thread_pool_counts of_pool;
    bide_server_stats(server, &counts);
    bide_loop_count(loop, &of_loop);
    bide_thread_pool_stats(pool, &of_pool);
    (void)(of_loop.looks + of_loop.begun + of_loop.longest_turn + of_pool.longest_turn);
}

static void report(void *argument, const bide_long_turn *turn)
{
    (void)argument;
    (void)turn->nanoseconds;
}

static int blocking(bide_blocking **pool)
{
    const bide_blocking_options array[2] = {{.threads = 8, .least = 1, .idle = 5}, {.threads = 1}};
    const bide_blocking_options *options = &array[0];
    return bide_blocking_create_with(pool, options->least > 1 ? options : &array[1]);
}

static void *receive(bide_io_operation *operation, bide_descriptor *socket, bide_buffer_pool *pool, bide_channel_waiter *waiter)
{
    (void)bide_receive_lent(operation, socket, pool);
    bide_give_back(pool, bide_lent(operation));
    bide_buffer_pool_end(pool);
    (void)waiter;
    return NULL;
}

static void pass(bide_pass_operation *operation, bide_descriptor *socket, int *fds)
{
    (void)bide_receive_descriptors(operation, socket, NULL, 0, fds, BIDE_PASS_MOST);
    bide_process_pass passes[] = {{0, 3}};
    bide_process_options options = {.program = "true", .passes = passes, .pass_count = 1, .own_group = true};
    (void)options.pass_count;
}

int main(void)
{
    bide_test_options options = {.most_turns = 10, .first_seed = 1};
    struct site site = {.options = {.most = 1}};
    bide_context context = {.unhandled = NULL};
    (void)context, (void)options.most_turns, (void)count, (void)blocking, (void)receive, (void)pass;
    return serve(&site, &site.options) + bide_turn_watch_start(1, report, NULL) + bide_turn_watch_stop();
}
