/*
 * On which thread does a coroutine continue after an await? In bide this never depends on a race:
 * the coroutine continues on its scheduler, wherever the awaited operation completed. To continue
 * elsewhere, the program asks for it, with one of two functions that other libraries both call
 * `via`:
 *
 *     bide_resume_on     the awaited operation runs here, and the coroutine continues there
 *     bide_schedule_on   the awaited operation runs there, and the coroutine continues here
 *
 * Each coroutine runs many times; its trace is printed if it was the same every time.
 */
#include <bide/bide.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 2000 };

/* The name of the thread: main, or the only thread of a pool. */
static BIDE_THREAD_LOCAL const char *thread_name = "?";
static bide_scheduler *pool, *other;

static char story[128];

static void say(const char *what)
{
    size_t length = strlen(story);
    snprintf(story + length, sizeof story - length, "%s %s\n", what, thread_name);
}

/* Finishes on another thread than the one on which it was started, sooner or later. */
struct foo {
    bide_task task;
    bide_schedule_operation schedule;
};

bide_coroutine(foo_body)
{
    bide_begin(foo_body, struct foo * self);
    bide_await(bide_schedule(&self->schedule, other));
    bide_end();
}

/* Moves to the pool, and stays there whatever foo does. */
struct bar {
    bide_task task;
    bide_schedule_operation schedule;
    struct foo foo;
};

bide_coroutine(bar_body)
{
    bide_begin(bar_body, struct bar * self);
    bide_await(bide_schedule(&self->schedule, pool));
    say("bar1");
    bide_await(bide_call(&self->foo, &foo_body));
    say("bar2");
    bide_end();
}

struct produce {
    bide_task task;
    struct foo foo;
};

bide_coroutine(produce_body)
{
    bide_begin(produce_body, struct produce * self);
    say("produced on");
    bide_await(bide_call(&self->foo, &foo_body));
    bide_end();
}

/* Consumes on the pool. */
struct consumer {
    bide_task task;
    bide_resume_on_operation via;
    struct produce produce;
};

bide_coroutine(consumer_body)
{
    bide_begin(consumer_body, struct consumer * self);
    bide_await(bide_resume_on(&self->via, pool, bide_call(&self->produce, &produce_body)));
    say("consumed on");
    bide_end();
}

/* Lets the pool produce, and stays on its own scheduler. */
struct customer {
    bide_task task;
    bide_schedule_on_operation via;
    struct produce produce;
};

bide_coroutine(customer_body)
{
    bide_begin(customer_body, struct customer * self);
    bide_await(bide_schedule_on(&self->via, pool, bide_call(&self->produce, &produce_body)));
    say("consumed on");
    bide_end();
}

/* Runs `body` in a new frame, repeatedly, and prints its trace. */
static bool print_trace(const char *title, bide_run_loop *loop, bide_task *task,
                        const bide_point *body)
{
    char first[sizeof story] = "";
    for (int i = 0; i < ROUNDS; i++) {
        story[0] = '\0';
        if (bide_run_loop_wait(loop, bide_task_init(task, body)) != 0)
            return false;
        if (i == 0)
            memcpy(first, story, sizeof first);
        else if (strcmp(story, first) != 0)
            return false;
    }
    printf("%s, %d times:\n%s", title, ROUNDS, first);
    return true;
}

struct naming {
    bide_task task;
    const char *name;
};

bide_coroutine(naming_body)
{
    bide_begin(naming_body, struct naming * self);
    thread_name = self->name;
    bide_end();
}

/* Creates a pool of one thread named `name`. */
static bide_thread_pool *create_pool(const char *name)
{
    struct naming naming = {.name = name};
    bide_context context = bide_default_context;
    bide_thread_pool *made;
    if (bide_thread_pool_create(&made, 1) != 0)
        return NULL;
    context.scheduler = bide_thread_pool_scheduler(made);
    bide_sync_wait_in(&context, bide_task_init(&naming.task, &naming_body));
    return made;
}

int main(void)
{
    struct bar bar;
    struct consumer consumer;
    struct customer customer;
    bide_run_loop loop;
    bide_thread_pool *pools[2] = {create_pool("pool"), create_pool("other")};
    if (pools[0] == NULL || pools[1] == NULL)
        return 1;
    pool = bide_thread_pool_scheduler(pools[0]);
    other = bide_thread_pool_scheduler(pools[1]);
    thread_name = "main";
    bide_run_loop_init(&loop);
    bool good = print_trace("bar", &loop, &bar.task, &bar_body) &&
                print_trace("consumer, bide_resume_on", &loop, &consumer.task, &consumer_body) &&
                print_trace("customer, bide_schedule_on", &loop, &customer.task, &customer_body);
    bide_thread_pool_destroy(pools[0]);
    bide_thread_pool_destroy(pools[1]);
    return good ? 0 : 1;
}
