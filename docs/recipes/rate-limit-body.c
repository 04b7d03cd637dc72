#include <bide/bide.h>
#include <stdio.h>

struct sender {
    bide_task task;
    bide_token_bucket bucket;
    bide_token_take_operation take;
    int sent;
};

bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    bide_token_bucket_init(&self->bucket, 1000, BIDE_SECONDS(1), 2); /* 1000 a second, 2 at once */
    for (self->sent = 0; self->sent < 5; self->sent++)
        bide_try(bide_token_bucket_take(&self->take, &self->bucket, 1));
    printf("%d sent\n", self->sent);
    bide_end();
}

int main(void)
{
    struct sender sender;
    uint64_t start = bide_platform.now();
    int status = bide_sync_wait(bide_task_init(&sender.task, &sender_body));
    puts(bide_platform.now() - start >= BIDE_MILLISECONDS(2) ? "not at once" : "too soon");
    return status != 0;
}
