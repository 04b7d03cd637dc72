#include <bide/bide.h>
#include <stdio.h>

struct box {
    bide_mutex mutex;
    bide_condition filled;
    int item; /* 0: none */
};

struct taker {
    bide_task task;
    struct box *box;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    int status;
};

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct taker * self);
    bide_try(bide_mutex_lock(&self->lock, &self->box->mutex));
    while (self->status == 0 && self->box->item == 0)
        bide_await_status(self->status,
                          bide_condition_wait(&self->wait, &self->box->filled, &self->lock));
    printf("%d: took %d\n", self->status, self->box->item);
    bide_mutex_unlock(&self->lock);
    bide_end();
}

int main(void)
{
    struct box box = {.item = 0};
    struct taker taker = {.box = &box};
    bide_spawned spawned;
    bide_mutex_init(&box.mutex);
    bide_condition_init(&box.filled);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&taker.task, &taker_body));
    box.item = 7; /* one thread: nobody else holds the mutex */
    bide_condition_notify_one(&box.filled);
}
