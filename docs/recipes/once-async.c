#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async void load(void)
{
    puts("loads the table"); /* may await */
}

async int use(bide_once *once)
{
    try await bide_once_run(once, load());
    puts("uses the table");
    return 0;
}

int main(void)
{
    bide_once once;
    async_frame(use) one, two;
    bide_once_init(&once);
    return bide_sync_wait(async_use(&one, &once)) != 0 ||
           bide_sync_wait(async_use(&two, &once)) != 0;
}
