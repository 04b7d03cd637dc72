#include <bide/bide.h>
#include <stdio.h>

typedef bide_watch(int) level;
typedef bide_watch_receiver(int) level_receiver;

struct logger {
    bide_task task;
    level_receiver receiver;
    bide_watch_waiter wait;
    int level;
};

bide_coroutine(logger_body)
{
    bide_begin(logger_body, struct logger * self);
    for (;;) {
        bide_try_or_break(bide_watch_recv(&self->wait, &self->receiver, &self->level));
        printf("level %d\n", self->level); /* the latest: values in between may be left out */
    }
    puts("closed");
    bide_end();
}

int main(void)
{
    level level;
    struct logger logger;
    bide_spawned spawned;
    bide_watch_init(&level, &(int){1});
    bide_watch_receiver_init(&logger.receiver, &level);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&logger.task, &logger_body));
    bide_watch_send(&level, &(int){2});
    bide_watch_close(&level);
}
