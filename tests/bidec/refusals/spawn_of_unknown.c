/*
 * says: the frame of f is not known here: define it before it is spawned
 */
#include <bide/async.h>

async void f(void);

async void g(bide_scope *scope)
{
    spawn(scope, f()); /* HERE */
}
