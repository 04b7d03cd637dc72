/*
 * says: an async main returns an int
 */
#include <bide/async.h>
#include <bide/loop.h>

async void main(void) /* HERE */
{
}
