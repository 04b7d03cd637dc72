/*
 * One producer, several consumers: an event announces a value. A consumer that waits before the
 * event is set is suspended; one that waits later continues at once. The event is the awaitable.
 * The bide_event_waiter in each consumer's frame is the awaiter, and also the node in the event's
 * list of waiters, so nothing is allocated.
 */
#include <bide/bide.h>
#include <pthread.h>
#include <stdio.h>

enum { EARLY = 3, CONSUMERS = EARLY + 1 };

/*
 * Written before the event is set, read after it. The event orders the two, so a plain int is
 * enough.
 */
static int value;
static bide_event event;

static void *producer(void *unused)
{
    (void)unused;
    puts("the producer sets the event");
    value = 6 * 7;
    bide_event_set(&event);
    return NULL;
}

struct consumer {
    bide_task task;
    int number;
    bide_event_waiter wait;
    bide_spawned spawned;
};

bide_coroutine(consumer_body)
{
    bide_begin(consumer_body, struct consumer * self);
    if (bide_event_is_set(&event))
        printf("consumer %d need not wait\n", self->number);
    else
        printf("consumer %d waits\n", self->number);
    bide_await(bide_event_wait(&self->wait, &event));
    printf("consumer %d has %d\n", self->number, value);
    bide_end();
}

/* Starts a consumer as a task of the loop. */
static void start_consumer(struct consumer *self, int number, bide_run_loop *loop)
{
    bide_spawn(&self->spawned, &loop->context, bide_call(self, &consumer_body, number = number));
}

int main(void)
{
    struct consumer consumers[CONSUMERS];
    bide_event_waiter wait;
    bide_run_loop loop;
    pthread_t thread;

    bide_event_init(&event, false);
    bide_run_loop_init(&loop);
    for (int i = 0; i < EARLY; i++)
        start_consumer(&consumers[i], i + 1, &loop);
    bide_run_loop_run_ready(&loop); /* until all consumers wait */

    if (pthread_create(&thread, NULL, producer, NULL) != 0)
        return 1;
    for (int i = 0; i < EARLY; i++)
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &consumers[i].spawned.ended));
    pthread_join(thread, NULL);

    start_consumer(&consumers[EARLY], CONSUMERS, &loop);
    bide_run_loop_wait(&loop, bide_event_wait(&wait, &consumers[EARLY].spawned.ended));
    return 0;
}
