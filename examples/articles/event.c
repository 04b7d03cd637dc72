/*
 * One producer, several consumers: a value is announced by an event. Whoever asks before it is set is suspended;
 * whoever asks afterwards goes on at once. The event is the awaitable; the bide_event_waiter in each consumer's
 * frame is the awaiter, and also its place in the list of those who wait: nothing is allocated.
 */
#include <bide/bide.h>
#include <pthread.h>
#include <stdio.h>

enum { EARLY = 3, CONSUMERS = EARLY + 1 };

/* Written before the event is set, read after it: the event orders the two, so it is a plain int. */
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

/* Begins it beside whoever calls, as one of the loop's. */
static void begin_consumer(struct consumer *self, int number, bide_run_loop *loop)
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
        begin_consumer(&consumers[i], i + 1, &loop);
    bide_run_loop_run_ready(&loop); /* until all of them wait */

    if (pthread_create(&thread, NULL, producer, NULL) != 0)
        return 1;
    for (int i = 0; i < EARLY; i++)
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &consumers[i].spawned.ended));
    pthread_join(thread, NULL);

    begin_consumer(&consumers[EARLY], CONSUMERS, &loop);
    bide_run_loop_wait(&loop, bide_event_wait(&wait, &consumers[EARLY].spawned.ended));
    return 0;
}
