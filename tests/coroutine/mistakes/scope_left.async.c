/*
 * An async function returns with a scope that it has not joined.
 * told: run
 * says: a coroutine ended with a scope that it had not joined, body,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/scope.h"

async void body(void)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
}

int main(void)
{
    static struct async_body x;
    bide_sync_wait(async_body(&x));
    return 0;
}
