#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int square(int number, int *result)
{
    try await bide_sleep_for(BIDE_MILLISECONDS(1));
    *result = number * number;
    return 0;
}

async int sum_of_squares(int *sum)
{
    int results[10];
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 0; i < 10; i++)
        if (spawn(&scope, square(i, &results[i])) < 0)
            return -ENOMEM;
    try await bide_scope_join(&scope); /* an error asks the others to stop */
    *sum = 0;
    for (int i = 0; i < 10; i++)
        *sum += results[i];
    return 0;
}

int main(void)
{
    async_frame(sum_of_squares) frame;
    int sum;
    int status = bide_sync_wait(async_sum_of_squares(&frame, &sum));
    printf("%d: %d\n", status, sum);
}
