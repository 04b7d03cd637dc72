/*
 * On which thread does a coroutine go on after an await? Here it never depends on who was faster: on the one of its
 * scheduler, wherever what it awaited came to its end. To go on elsewhere is asked for, by one of the two that are
 * called `via`:
 *
 *     bide_resume_on     what is awaited runs here, and the coroutine goes on there
 *     bide_schedule_on   what is awaited runs there, and the coroutine goes on here
 *
 * Each coroutine is run many times; its story is printed if it has been the same every time.
 */
#include <bide/bide.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 2000 };

/* Threads by name: main, and the only one of each pool. */
static BIDE_THREAD_LOCAL const char *thread_name = "?";
static bide_scheduler *pool, *other;

static char story[128];

static void say(const char *what)
{
    size_t length = strlen(story);
    snprintf(story + length, sizeof story - length, "%s %s\n", what, thread_name);
}

/* Ends on another thread than the one on which it was begun, sooner or later. */
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

/* Goes to the pool, and stays there whatever foo does. */
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

/* Is to consume on the pool. */
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

/* Has it produced on the pool, and stays. */
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

/* Runs `body` in a frame of its own, again and again, and prints its story. */
static bool tell(const char *title, bide_run_loop *loop, bide_task *task, const bide_point *body)
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

/* A pool of one thread, which is called `name`. */
static bide_thread_pool *make_pool(const char *name)
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
    bide_thread_pool *pools[2] = {make_pool("pool"), make_pool("other")};
    if (pools[0] == NULL || pools[1] == NULL)
        return 1;
    pool = bide_thread_pool_scheduler(pools[0]);
    other = bide_thread_pool_scheduler(pools[1]);
    thread_name = "main";
    bide_run_loop_init(&loop);
    bool good = tell("bar", &loop, &bar.task, &bar_body) &&
                tell("consumer, bide_resume_on", &loop, &consumer.task, &consumer_body) &&
                tell("customer, bide_schedule_on", &loop, &customer.task, &customer_body);
    bide_thread_pool_destroy(pools[0]);
    bide_thread_pool_destroy(pools[1]);
    return good ? 0 : 1;
}
