/*
 * A scope is joined that was never opened.
 * told: run
 * says: a scope is joined that was never opened: &scope, body,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/scope.h"

async void body(void)
{
    bide_scope scope = {0};
    await bide_scope_join(&scope); // HERE
}

int main(void)
{
    static struct async_body x;
    bide_sync_wait(async_body(&x));
    return 0;
}
