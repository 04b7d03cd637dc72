/*
 * The monitor's reports about tasks, loops and pools, also while the loop is blocked, and about
 * many tasks.
 */
#define _GNU_SOURCE
#include "monitor_peer.h"

#include <pthread.h>

/* ---- Tasks ---- */

struct inner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

enum { INNER_LINE = __LINE__ + 5 };

bide_coroutine(inner_body)
{
    bide_begin(inner_body, struct inner * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct outer {
    bide_task task;
    struct inner inner;
};

enum { OUTER_LINE = __LINE__ + 5 };

bide_coroutine(outer_body)
{
    bide_begin(outer_body, struct outer * self);
    bide_await(bide_task_init(&self->inner.task, &inner_body));
    bide_end();
}

static void a_task_is_shown_with_its_chain(void **state)
{
    (void)state;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "some\"where"};
    bide_event event;
    bide_spawned spawned;
    peer peer;
    char expected[600];
    bide_event_init(&event, false);
    struct outer self = {.inner.event = &event};
    bide_spawn(&spawned, &context, bide_task_init(&self.task, &outer_body));
    start();
    join(&peer);
    char *text = ask(&peer, "look tasks=5\n");
    snprintf(expected, sizeof expected,
             "\"tasks\":1,\"branches\":0,\"name\":\"outer_body\",\"context\":\"some\\u0022where\","
             "\"state\":\"waiting\",\"at\":\"inner_body\",\"file\":\"%s\",\"line\":%d,"
             "\"waiting_for\":\"bide_event_wait\"",
             __FILE__, INNER_LINE);
    assert_has(text, expected);
    snprintf(expected, sizeof expected,
             "{\"is\":\"frame\",\"task\":\"%lx\",\"number\":0,\"name\":\"inner_body\",\"file\":\"%s\","
             "\"line\":%d}\n"
             "{\"is\":\"frame\",\"task\":\"%lx\",\"number\":1,\"name\":\"outer_body\",\"file\":\"%s\","
             "\"line\":%d}\n"
             "{\"is\":\"end\",\"left_out\":0}\n",
             (unsigned long)(uintptr_t)&spawned.root, __FILE__, INNER_LINE,
             (unsigned long)(uintptr_t)&spawned.root, __FILE__, OUTER_LINE);
    assert_has(text, expected);
    free(text);
    text = ask(&peer, "look tasks=5 frames=1\n"); /* only the innermost one */
    assert_has(text, "\"depth\":2");
    assert_null(strstr(text, "\"number\":1"));
    free(text);
    bide_event_set(&event);
    text = ask(&peer, "look tasks=5\n");
    assert_has(text, "\"tasks\":0,\"waiting\":0,");
    assert_null(strstr(text, "\"is\":\"task\""));
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

/* While nothing moves, repeated looks report increasing ages. */
static void waiting_tasks_have_an_age_and_running_ones_have_none(void **state)
{
    (void)state;
    bide_event event;
    bide_spawned spawned;
    peer peer;
    char record[600];
    uint64_t age = 0;
    bide_event_init(&event, false);
    struct outer self = {.inner.event = &event};
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &outer_body));
    start();
    join(&peer);
    while (age == 0) {
        char *text = ask(&peer, "look\n");
        find_record(text, "\"is\":\"group\"", record, sizeof record);
        age = number_of(record, "longest_ms");
        free(text);
    }
    bide_event_set(&event);
    bide_event_init(&event, false);
    struct outer next = {.inner.event = &event};
    bide_spawned other;
    bide_spawn(&other, &bide_default_context, bide_task_init(&next.task, &outer_body));
    char *text = ask(&peer, "look\n");
    find_record(text, "\"is\":\"group\"", record, sizeof record);
    assert_int_equal(number_of(record, "longest_ms"), 0);
    free(text);
    bide_event_set(&event);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void of_a_crowd_the_groups_are_shown_and_some_of_one(void **state)
{
    (void)state;
    enum { SHOWN = 7 };
    const uint32_t count = rounds_of(100000);
    bide_event event;
    peer peer;
    char record[600], command[100];
    bide_spawned *spawned = malloc(count * sizeof *spawned);
    struct inner *frames = malloc(count * sizeof *frames);
    assert_non_null(spawned);
    assert_non_null(frames);
    bide_event_init(&event, false);
    for (uint32_t i = 0; i < count; i++) {
        frames[i].event = &event;
        bide_spawn(&spawned[i], &bide_default_context,
                   bide_task_init(&frames[i].task, &inner_body));
    }
    start();
    join(&peer);
    char *text = ask(&peer, "look\n");
    assert_true(strlen(text) < 4096);
    find_record(text, "\"is\":\"group\"", record, sizeof record);
    assert_int_equal(number_of(record, "tasks"), count);
    const char *group = strstr(record, "\"group\":\"") + strlen("\"group\":\"");
    snprintf(command, sizeof command, "look group=%.*s tasks=%d\n", (int)strcspn(group, "\""), group,
             SHOWN);
    free(text);
    text = ask(&peer, command);
    unsigned shown = 0;
    for (const char *at = text; (at = strstr(at, "\"is\":\"task\"")) != NULL; at++)
        shown++;
    assert_int_equal(shown, SHOWN);
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
    bide_event_set(&event);
    free(frames);
    free(spawned);
}

/* Operations with any number of names. */
enum { KINDS = 1100 };

static char kind_names[KINDS][24];
static bide_awaiter_ops kinds[KINDS];

static bool kind_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *kind_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    awaiter->frame = frame;
    return NULL;
}

static int kind_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static void there_is_a_bound_on_the_groups(void **state)
{
    (void)state;
    static bide_awaiter awaiters[KINDS];
    static bide_spawned spawned[KINDS];
    char record[600];
    unsigned groups = 0;
    peer peer;
    for (int i = 0; i < KINDS; i++) {
        snprintf(kind_names[i], sizeof kind_names[i], "kind_%d", i);
        kinds[i] = (bide_awaiter_ops){
            .ready = kind_ready, .suspend = kind_suspend, .resume = kind_resume, .name = kind_names[i]};
        awaiters[i].ops = &kinds[i];
        bide_spawn(&spawned[i], &bide_default_context, &awaiters[i]);
    }
    start();
    join(&peer);
    char *text = ask(&peer, "look groups=5000\n");
    find_record(text, "\"is\":\"look\"", record, sizeof record);
    assert_int_equal(number_of(record, "tasks"), KINDS);
    assert_int_equal(number_of(record, "groups"), 1024);
    assert_int_equal(number_of(record, "ungrouped"), KINDS - 1024);
    for (const char *at = text; (at = strstr(at, "\"is\":\"group\"")) != NULL; at++)
        groups++;
    assert_int_equal(groups, 1024);
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
    for (int i = 0; i < KINDS; i++)
        bide_resume(awaiters[i].frame);
}

/* ---- Loops and pools ---- */

struct receiver {
    bide_task task;
    bide_branch branch;
    bide_descriptor *socket;
    bide_io_operation operation;
    char buffer[8];
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    bide_try(bide_recv(&self->operation, self->socket, self->buffer, sizeof self->buffer));
    bide_end();
}

/* The findings of a thread that does not belong to the loop. */
typedef struct watch {
    bide_atomic(bool) is_held; /* the loop is blocked */
    bide_atomic(bool) let_go;
    pthread_t thread;
    char *first;
    char *last;
} watch;

struct holder {
    bide_task task;
    bide_descriptor one, other;
    bide_io_operation operation;
    bide_scope scope;
    struct receiver receiver;
    bide_sleep sleep;
    watch *watch;
    int number; /* of the receiver's descriptor */
};

enum { HOLDER_LINE = __LINE__ + 14 };

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_descriptor_init_closed(&self->one);
    bide_descriptor_init_closed(&self->other);
    bide_try(bide_socket_pair(&self->operation, &self->one, &self->other));
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->receiver.branch,
                     bide_call(&self->receiver, &receiver_body, socket = &self->one));
    bide_try(bide_sleep_for(&self->sleep, 1000));
    bide_try(bide_sleep_for(&self->sleep, 1000));
    self->number = bide_descriptor_fd(&self->one);
    bide_try(bide_sleep_for(&self->sleep, 1000));
    bide_atomic_store(&self->watch->is_held, true, release);
    while (!bide_atomic_load(&self->watch->let_go, acquire))
        sched_yield();
    bide_try(bide_send(&self->operation, &self->other, "x", 1));
    bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_close(&self->one);
    bide_close(&self->other);
    bide_end();
}

/* Looks until the loop has been in one turn for a while. */
static void *watch_loop(void *argument)
{
    watch *watch = argument;
    peer peer;
    char record[1200];
    uint64_t busy = 0;
    while (!bide_atomic_load(&watch->is_held, acquire))
        sched_yield();
    join(&peer);
    free(ask(&peer, "turns on\n"));
    watch->first = ask(&peer, "look tasks=10\n");
    while (busy < 20) {
        free(watch->last);
        watch->last = ask(&peer, "look tasks=10\n");
        find_record(watch->last, "\"is\":\"loop\"", record, sizeof record);
        busy = number_of(record, "busy_ms");
    }
    leave(&peer);
    bide_atomic_store(&watch->let_go, true, release);
    return NULL;
}

static void a_blocked_loop_is_shown_with_the_blocking_task(void **state)
{
    (void)state;
    bide_loop *loop;
    watch watch = {.last = NULL};
    static struct holder holder;
    char record[1200], expected[300];
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    bide_loop_context(loop)->name = "main";
    holder.watch = &watch;
    start();
    assert_int_equal(pthread_create(&watch.thread, NULL, watch_loop, &watch), 0);
    assert_int_equal(bide_loop_wait(loop, bide_task_init(&holder.task, &holder_body)), 0);
    pthread_join(watch.thread, NULL);

    find_record(watch.last, "\"is\":\"loop\"", record, sizeof record);
    assert_has(record, "\"name\":\"main\"");
    assert_has(record, "\"state\":\"busy\"");
    assert_int_equal(number_of(record, "thread"), getpid());
    assert_int_equal(number_of(record, "runs_new"), 0);
    assert_true(number_of(record, "runs") >= 4);
    assert_int_equal(number_of(record, "in_flight"), 1);
    assert_has(record, bide_loop_backend(loop).name);
    snprintf(expected, sizeof expected,
             "\"state\":\"running\",\"at\":\"holder_body\",\"file\":\"%s\",\"line\":%d,", __FILE__,
             HOLDER_LINE);
    assert_has(watch.last, expected);
    find_record(watch.last, "\"kind\":\"branch\"", record, sizeof record);
    assert_has(record, "\"name\":\"receiver_body\"");
    snprintf(expected, sizeof expected,
             "\"waiting_for\":\"bide_recv\",\"descriptor\":%d,\"descriptor_of\":\"system\"",
             holder.number);
    assert_has(record, expected);
    free(watch.first);
    free(watch.last);
    bide_loop_destroy(loop);
    peer peer;
    join(&peer);
    char *text = ask(&peer, "look\n");
    assert_null(strstr(text, "\"is\":\"loop\""));
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

static void a_pool_is_shown_with_its_workers(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    peer peer;
    char record[1200];
    assert_int_equal(
        bide_thread_pool_create_with(
            &pool, &(bide_thread_pool_options){.threads = 3, .name = "three"}),
        0);
    start();
    join(&peer);
    uint64_t asleep = 0;
    while (asleep != 3) {
        char *text = ask(&peer, "look\n");
        find_record(text, "\"is\":\"pool\"", record, sizeof record);
        asleep = number_of(record, "asleep");
        free(text);
    }
    assert_has(record, "\"name\":\"three\",\"workers\":3,");
    uint64_t before = number_of(record, "runs");
    const bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_sleep sleep;
    assert_int_equal(bide_sync_wait_in(&context, bide_sleep_for(&sleep, 1)), 0);
    char *text = ask(&peer, "look\n");
    find_record(text, "\"is\":\"pool\"", record, sizeof record);
    assert_true(number_of(record, "runs") > before);
    assert_int_equal(number_of(record, "runs_new"), number_of(record, "runs") - before);
    assert_has(text, "\"worker\":2,\"thread\":");
    assert_has(text, "\"thread_name\":\"three-2\",\"state\":\"");
    free(text);
    bide_thread_pool_destroy(pool);
    text = ask(&peer, "look\n");
    assert_null(strstr(text, "\"is\":\"pool\""));
    free(text);
    leave(&peer);
    assert_int_equal(bide_monitor_stop(), 0);
}

/* ---- Turns ---- */

struct counted {
    bide_task task;
    bide_branch branch;
    bide_auto_event *event;
    bide_auto_event_waiter wait;
};

bide_coroutine(counted_body)
{
    bide_begin(counted_body, struct counted * self);
    for (;;)
        bide_try(bide_auto_event_wait(&self->wait, self->event));
    bide_end();
}

struct counting {
    bide_task task;
    bide_auto_event event;
    bide_scope scope;
    struct counted counted;
    bide_sleep sleep;
    peer peer;
    char *looks[4];
    int i;
};

enum { COUNTED_WAKES = 3 };

/* Asks the monitor in its own turns: nothing else runs meanwhile. */
bide_coroutine(counting_body)
{
    bide_begin(counting_body, struct counting * self);
    bide_auto_event_init(&self->event, false);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->counted.branch,
                     bide_call(&self->counted, &counted_body, event = &self->event));
    bide_try(bide_sleep_for(&self->sleep, 1));
    join(&self->peer);
    free(ask(&self->peer, "look tasks=10\n"));
    self->looks[0] = ask(&self->peer, "look tasks=10\n");
    free(ask(&self->peer, "turns on\n"));
    free(ask(&self->peer, "look\n")); /* (turns are watched before the second command) */
    for (self->i = 0; self->i < COUNTED_WAKES; self->i++) {
        bide_auto_event_set(&self->event);
        bide_try(bide_sleep_for(&self->sleep, 1));
    }
    self->looks[1] = ask(&self->peer, "look tasks=10\n");
    self->looks[2] = ask(&self->peer, "look tasks=10\n");
    free(ask(&self->peer, "turns off\n"));
    free(ask(&self->peer, "look\n"));
    self->looks[3] = ask(&self->peer, "look tasks=10\n");
    leave(&self->peer);
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    bide_end();
}

static void check_turns(const char *look, const char *mark, unsigned runs, unsigned wakes)
{
    char record[1200];
    find_record(look, mark, record, sizeof record);
    assert_int_equal(number_of(record, "runs"), runs);
    assert_int_equal(number_of(record, "wakes"), wakes);
}

static uint64_t busy_of(const char *look, const char *mark)
{
    char record[1200];
    find_record(look, mark, record, sizeof record);
    return number_of(record, "busy_ns");
}

static void runs_wakes_and_busy_time_are_counted_by_task_between_looks(void **state)
{
    (void)state;
    static const char root[] = "\"kind\":\"root\"", branch[] = "\"kind\":\"branch\"";
    static struct counting counting;
    char record[1200];
    bide_loop *loop;
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    start();
    assert_int_equal(bide_loop_wait(loop, bide_task_init(&counting.task, &counting_body)), 0);
    bide_loop_destroy(loop);
    assert_int_equal(bide_monitor_stop(), 0);

    /* nothing is counted unless turns are watched */
    for (int i = 0; i < 4; i += 3) {
        assert_null(strstr(counting.looks[i], "busy_ns"));
        assert_null(strstr(counting.looks[i], "turns_us"));
    }
    find_record(counting.looks[1], "\"is\":\"look\"", record, sizeof record);
    assert_true(number_of(record, "turns_us") > 0);
    assert_int_equal(number_of(record, "other_runs"), 0);
    check_turns(counting.looks[1], branch, COUNTED_WAKES, COUNTED_WAKES);
    check_turns(counting.looks[1], root, COUNTED_WAKES, COUNTED_WAKES);
    check_turns(counting.looks[1], "\"is\":\"group\"", COUNTED_WAKES, COUNTED_WAKES);
    assert_true(busy_of(counting.looks[1], root) > 0);

    /* the turn that asks is still the same one: it has not begun again, and is busy */
    check_turns(counting.looks[2], branch, 0, 0);
    check_turns(counting.looks[2], root, 0, 0);
    assert_true(busy_of(counting.looks[2], root) > 0);
    assert_int_equal(busy_of(counting.looks[2], branch), 0);
    for (int i = 0; i < 4; i++)
        free(counting.looks[i]);
}

struct brief {
    bide_task task;
    unsigned *finished; /* of the loop's thread */
    bide_sleep sleep;
};

bide_coroutine(brief_body)
{
    bide_begin(brief_body, struct brief * self);
    bide_try(bide_sleep_for(&self->sleep, 1));
    ++*self->finished;
    bide_end();
}

/* More tasks than a thread's table has room for: their runs are counted together. */
static void there_is_a_bound_on_the_tasks_that_are_counted(void **state)
{
    (void)state;
    enum { BRIEF = 2000, RUNS_OF_EACH = 2 };
    static struct brief brief[BRIEF];
    static bide_spawned spawned[BRIEF];
    unsigned finished = 0;
    char record[1200];
    peer peer;
    bide_loop *loop;
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    start();
    join(&peer);
    free(ask(&peer, "turns on\n"));
    free(ask(&peer, "look\n"));
    for (int i = 0; i < BRIEF; i++)
        bide_spawn(&spawned[i], bide_loop_context(loop),
                   bide_call(&brief[i], &brief_body, finished = &finished));
    bide_sleep sleep;
    while (finished != BRIEF)
        assert_int_equal(bide_loop_wait(loop, bide_sleep_for(&sleep, 1)), 0);
    char *text = ask(&peer, "look\n");
    find_record(text, "\"is\":\"look\"", record, sizeof record);
    assert_true(number_of(record, "other_runs") >= RUNS_OF_EACH * BRIEF);
    free(text);
    text = ask(&peer, "look\n");
    find_record(text, "\"is\":\"look\"", record, sizeof record);
    assert_int_equal(number_of(record, "other_runs"), 0);
    free(text);
    leave(&peer);
    bide_loop_destroy(loop);
    assert_int_equal(bide_monitor_stop(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MONITOR_TEST(a_task_is_shown_with_its_chain),
        MONITOR_TEST(waiting_tasks_have_an_age_and_running_ones_have_none),
        MONITOR_TEST(of_a_crowd_the_groups_are_shown_and_some_of_one),
        MONITOR_TEST(there_is_a_bound_on_the_groups),
        MONITOR_TEST(a_blocked_loop_is_shown_with_the_blocking_task),
        MONITOR_TEST(a_pool_is_shown_with_its_workers),
        MONITOR_TEST(runs_wakes_and_busy_time_are_counted_by_task_between_looks),
        MONITOR_TEST(there_is_a_bound_on_the_tasks_that_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
