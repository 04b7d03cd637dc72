#include <bide/bide.h>
#include <stdio.h>

typedef bide_oneshot(int) reply;

struct asker {
    bide_task task;
    reply *reply;
    bide_oneshot_waiter wait;
    int answer;
};

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    bide_try(bide_oneshot_recv(&self->wait, self->reply, &self->answer));
    printf("the answer is %d\n", self->answer);
    bide_end();
}

int main(void)
{
    reply reply;
    struct asker asker = {.reply = &reply};
    bide_spawned spawned;
    bide_oneshot_init(&reply);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&asker.task, &asker_body));
    printf("%d\n", bide_oneshot_send(&reply, &(int){42}));
    printf("%d\n", bide_oneshot_send(&reply, &(int){43}) == -EPIPE); /* only one is sent */
}
