/* The program that runs in each foreign loop. */
#include "program.h"

#include <errno.h>
#include <stdio.h>

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    for (self->naps = 0; self->naps < 3; self->naps++)
        bide_try(bide_sleep_for(&self->sleep, self->milliseconds * UINT64_C(1000000)));
    printf("%s slept three times\n", self->name);
    bide_end();
}

bide_coroutine(listener_body)
{
    bide_begin(listener_body, struct listener * self);
    bide_try(bide_event_wait(&self->wait, &self->asked));
    bide_event_set(&self->answered);
    bide_end();
}

/* A thread without a loop: it wakes the coroutine, and blocks until the coroutine has answered. */
static void *ask(void *argument)
{
    struct listener *listener = argument;
    bide_event_set(&listener->asked);
    bide_event_wait_blocking(&listener->answered, BIDE_FOREVER);
    return NULL;
}

bide_coroutine(main_body)
{
    static const char *const names[] = {"one", "the other"};
    bide_begin(main_body, struct main_task * self);
    for (self->i = 0; self->i < 2; self->i++) {
        struct sleeper *sleeper = &self->sleepers[self->i];
        sleeper->name = names[self->i];
        sleeper->milliseconds = self->i == 0 ? 2 : 7;
        bide_spawn(&sleeper->spawned, bide_this_context(),
                   bide_task_init(&sleeper->task, &sleeper_body));
    }
    bide_event_init(&self->listener.asked, false);
    bide_event_init(&self->listener.answered, false);
    bide_spawn(&self->listener.spawned, bide_this_context(),
               bide_task_init(&self->listener.task, &listener_body));
    if (pthread_create(&self->thread, NULL, ask, &self->listener) != 0)
        bide_return(-EAGAIN);
    bide_try(bide_event_wait(&self->wait, &self->listener.spawned.ended));
    pthread_join(self->thread, NULL);
    for (self->i = 0; self->i < 2; self->i++)
        bide_try(bide_event_wait(&self->wait, &self->sleepers[self->i].spawned.ended));
    puts("a thread was answered");
    self->ended = true;
    bide_end();
}

void program_begin(struct main_task *self, const bide_context *context)
{
    bide_spawn(&self->spawned, context, bide_task_init(&self->task, &main_body));
}
