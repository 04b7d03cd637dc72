/*
 * says: an async main is declared async, and nothing else
 */
#include <bide/async.h>
#include <bide/loop.h>

async_created int main(void) /* HERE */
{
    return 0;
}
