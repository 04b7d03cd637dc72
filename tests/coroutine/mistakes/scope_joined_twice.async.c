/*
 * A scope is joined twice.
 * told: run
 * says: a scope is joined that is not open: &scope, body,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/scope.h"

async void body(void)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    await bide_scope_join(&scope);
    await bide_scope_join(&scope); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sync_wait(async_body(&x));
    return 0;
}
