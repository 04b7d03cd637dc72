#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

struct box {
    bide_mutex mutex;
    bide_condition filled;
    int item; /* 0: none */
};

async int take(struct box *box)
{
    bide_mutex_waiter lock;
    int status = 0;
    try await bide_mutex_lock(&lock, &box->mutex);
    defer bide_mutex_unlock(&lock);
    while (status == 0 && box->item == 0)
        status = await bide_condition_wait(&box->filled, &lock);
    printf("%d: took %d\n", status, box->item);
    return status;
}

int main(void)
{
    struct box box = {.item = 0};
    async_frame(take) taker;
    bide_spawned spawned;
    bide_mutex_init(&box.mutex);
    bide_condition_init(&box.filled);
    bide_spawn(&spawned, &bide_default_context, async_take(&taker, &box));
    box.item = 7; /* one thread: nobody else holds the mutex */
    bide_condition_notify_one(&box.filled);
}
