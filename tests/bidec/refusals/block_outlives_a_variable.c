/*
 * says: sum may be gone before this block has ended: it has to be declared in the block of the bide_scope, or around it
 */
#include <bide/async.h>

async void g(bide_scope *scope)
{
    int sum = 0;
    spawn(scope, async_block({
              async_capture int *to = &sum; /* HERE */
              *to = 1;
          }));
}
