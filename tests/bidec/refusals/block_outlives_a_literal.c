/*
 * says: this literal may be gone before this block has ended
 */
#include <bide/async.h>

async void g(bide_scope *scope)
{
    spawn(scope, async_block({
              async_capture int *to = (int[]){1, 2}; /* HERE */
              *to = 1;
          }));
}
