/*
 * says: spawn.. takes a scope and the call of an async function
 */
#include <bide/async.h>

int f(void);

async void g(bide_scope *scope)
{
    spawn(scope, f()); /* HERE */
}
