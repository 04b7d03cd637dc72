/*
 * Something is spawned into a scope that was joined.
 * told: run
 * says: something is spawned into a scope that bide_scope_init has not opened, or that was joined, body,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/scope.h"

async void child(void)
{
}

async void body(void)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    await bide_scope_join(&scope);
    spawn(&scope, child()); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sync_wait(async_body(&x));
    return 0;
}
