#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int send_all(void)
{
    bide_token_bucket bucket;
    int sent;
    bide_token_bucket_init(&bucket, 1000, BIDE_SECONDS(1), 2); /* 1000 a second, 2 at once */
    for (sent = 0; sent < 5; sent++)
        try await bide_token_bucket_take(&bucket, 1);
    printf("%d sent\n", sent);
    return 0;
}

int main(void)
{
    async_frame(send_all) frame;
    uint64_t start = bide_platform.now();
    int status = bide_sync_wait(async_send_all(&frame));
    puts(bide_platform.now() - start >= BIDE_MILLISECONDS(2) ? "not at once" : "too soon");
    return status != 0;
}
